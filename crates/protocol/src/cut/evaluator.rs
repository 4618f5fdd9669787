//! The evaluator's rounds, with all checks.

use veil_device::{Command, Cut, Op, Span};
use veil_job::Holder;
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Peer;

use super::circuit::{Circuit, commit, cut, of_inputs};
use super::regions::{self, Shape, holder, input, part};
use super::{check, checked, label, place};
use crate::ot::transfer::keys;
use crate::plan::Plan;
use crate::round::{Round, Transfer};
use crate::yao::{COMMON, EVALUATOR, Ends, GARBLER, Group, PRIVATE, combine, transfer};

/// The rounds of a chunk up to the first table, and those of the tables.
pub(super) fn rounds(plan: &Plan, shape: &Shape, groups: &[Group], ends: &Ends) -> [Vec<Round>; 2] {
    let evaluator = Evaluator {
        plan,
        shape,
        groups,
    };
    let before = vec![
        committed(),
        evaluator.choose(ends),
        evaluator.answer(),
        toss(),
    ];
    let mut tables = vec![evaluator.show()];
    tables.extend(evaluator.tables());
    [before, tables]
}

/// What becomes of the outputs: each is what more than half of all circuits say.
pub(super) fn open(shape: &Shape) -> Round {
    let [_, _, numbers, _] = shape.circuits(0);
    let marks = shape.shown().output_marks;
    let step = Cut::Majority {
        label: label::OUTPUT,
    };
    let outputs = shape.work().outputs;
    let to = regions::all_opened(shape);
    Round {
        place: place::OPEN,
        local: vec![cut(step, &[outputs, marks, numbers], &[to])],
        ..Round::default()
    }
}

fn peer(span: Span, part: u16) -> Transfer {
    transfer(span, Peer::Party(GARBLER), part)
}

/// Only now, when it has everything that the order decides about, does it say what its coin was.
fn toss() -> Round {
    let [coin, nonce, _, _] = regions::coins();
    Round {
        place: place::TOSS,
        sends: vec![peer(coin, 0), peer(nonce, 1)],
        ..Round::default()
    }
}

/// What the garbler commits to.
fn committed() -> Round {
    Round {
        place: place::COMMIT,
        recvs: vec![peer(regions::all_commitments(), 0)],
        ..Round::default()
    }
}

struct Evaluator<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    groups: &'a [Group],
}

impl Evaluator<'_> {
    /// The circuits that are opened.
    fn opened(&self) -> Circuit<'_> {
        let [offsets, starts, numbers, labels] = self.shape.circuits(0);
        Circuit {
            plan: self.plan,
            shape: self.shape,
            offsets: Some(offsets),
            starts,
            numbers,
            labels,
            hashes: true,
        }
    }

    /// Those that are evaluated.
    fn evaluated(&self) -> Circuit<'_> {
        let [_, _, numbers, _] = self.shape.circuits(0);
        Circuit {
            plan: self.plan,
            shape: self.shape,
            offsets: None,
            starts: self.shape.shown().start,
            numbers,
            labels: self.shape.work().active,
            hashes: true,
        }
    }

    /// Transfers of the encoded inputs; the key of the sum over the garbler's inputs, which it has committed to; a commitment to a coin.
    fn choose(&self, ends: &Ends) -> Round {
        let shape = self.shape;
        let [coin, nonce, _, key] = regions::coins();
        let [choices, bits] = shape.choice_bits();
        let own = bits.count;
        let mut local = Vec::new();
        for (k, port) in self.plan.inputs.iter().enumerate() {
            if holder(self.plan, k) == Holder::Party(EVALUATOR) {
                let (from, first) = input(self.plan, k);
                local.push(combine(vec![from], part(bits, first, port.width)));
            }
        }
        if own > 0 {
            let random = part(choices, own, choices.count - own);
            local.push(super::random(PRIVATE, random, DomainTag::CUT_ENCODING));
            // y = ŷ_1 ⊕ R ŷ_2, so that ŷ_1 = y ⊕ R ŷ_2.
            let step = Cut::Matrix {
                key: Some(super::ENCODING),
            };
            local.push(cut(step, &[bits, random], &[part(choices, 0, own)]));
            local.push(cut(Cut::Spread, &[choices], &[shape.choices()]));
        }
        for (to, tag) in [
            (coin, DomainTag::CUT_COIN),
            (nonce, DomainTag::CUT_NONCE),
            (key, DomainTag::CUT_MATRIX),
        ] {
            local.push(super::random(PRIVATE, to, tag));
        }
        let [committed, _, _] = regions::hashes();
        local.push(super::commit_coin([coin, nonce], committed));
        let mut round = super::transfers(ends, shape);
        local.append(&mut round.local);
        round.local = local;
        round.sends.extend([peer(key, 10), peer(committed, 11)]);
        round
    }

    fn answer(&self) -> Round {
        let shape = self.shape;
        let [transferred, chosen, _] = shape.keys();
        let mut local = Vec::new();
        if shape.encoded > 0 {
            local.push(keys(transferred, &[chosen], None, (COMMON, 0)));
        }
        Round {
            place: place::ANSWER,
            local,
            recvs: vec![
                peer(shape.all_masked(), 0),
                peer(regions::all_digests(), 1),
                peer(regions::coins()[2], 2),
            ],
            ..Round::default()
        }
    }

    /// Circuits that are opened are made again and compared; of the others, labels are checked against what was committed to.
    fn show(&self) -> Round {
        let shape = self.shape;
        let mut round = Round {
            place: place::SHOW,
            recvs: vec![
                peer(regions::seeds(), 0),
                peer(shape.all_shown(), 1),
                peer(shape.shown_colours(), 2),
            ],
            finish: super::order(),
            ..Round::default()
        };
        let numbers = shape.work().numbers;
        for half in 0..2 {
            let step = Cut::Number {
                first: half * shape.half,
            };
            round.finish.push(cut(step, &[], &[part(numbers, half, 1)]));
        }
        self.check_opened(&mut round);
        self.check_shown(&mut round);
        self.evaluated().begin(&mut round.finish);
        round
    }

    /// Commitments, digests, masked labels and numbers of one half of the order.
    fn pick(&self, half: u8, commands: &mut Vec<Command>) {
        let shape = self.shape;
        let [commitments, digests, masked] = shape.picked();
        let [_, _, number, _] = shape.circuits(0);
        for (from, to) in [
            (regions::all_commitments(), commitments),
            (regions::all_digests(), digests),
            (shape.all_masked(), masked),
            (shape.work().numbers, number),
        ] {
            commands.push(cut(Cut::Pick { half }, &[from, regions::order()], &[to]));
        }
    }

    /// The evaluator's labels out of the masked ones that were picked.
    fn unmask(&self, to: Span) -> Command {
        let shape = self.shape;
        let [[_, _, masked], [_, chosen, _]] = [shape.picked(), shape.keys()];
        let [choices, _] = shape.choice_bits();
        let [_, _, numbers, _] = shape.circuits(0);
        cut(Cut::Unmask, &[masked, chosen, choices, numbers], &[to])
    }

    fn check_opened(&self, round: &mut Round) {
        let (shape, work, circuit) = (self.shape, self.shape.work(), self.opened());
        let [commitments, digests, _] = shape.picked();
        let [by_seed, by_inputs, _] = of_commitments(commitments);
        let [seed, nonce] = [0, 1].map(|k| part(regions::seeds(), k, 1));
        let garbler = Peer::Party(GARBLER);
        self.pick(0, &mut round.finish);
        let finish = &mut round.finish;
        finish.push(commit(
            label::SEED,
            [circuit.numbers, nonce, seed],
            work.digest,
        ));
        checked(round, [by_seed, work.digest], garbler, super::SEED);
        let [offsets, starts, _, labels] = shape.circuits(0);
        let finish = &mut round.finish;
        finish.push(cut(Cut::Stretch, &[seed], &[offsets, starts, labels]));
        circuit.inputs(finish, work.marks, work.digest);
        checked(round, [by_inputs, work.digest], garbler, super::INPUTS);
        let finish = &mut round.finish;
        circuit.begin(finish);
        circuit.whole(finish, self.groups);
        circuit.outputs(finish);
        circuit.decoding(finish, work.output_marks, shape.colours(0));
        let of = [by_inputs, work.output_marks, shape.colours(0)];
        circuit.digest(finish, self.groups.len(), of, work.digest);
        checked(round, [digests, work.digest], garbler, super::CIRCUIT);
        let finish = &mut round.finish;
        let encoded = part(labels, shape.own(), shape.encoded);
        let active = part(work.active, shape.own(), shape.encoded);
        let [choices, _] = shape.choice_bits();
        finish.push(cut(Cut::Active, &[encoded, offsets, choices], &[active]));
        finish.push(self.unmask(work.opened));
        checked(round, [active, work.opened], garbler, super::MASKED);
    }

    fn check_shown(&self, round: &mut Round) {
        let (shape, work, shown) = (self.shape, self.shape.work(), self.shape.shown());
        let [commitments, _, _] = shape.picked();
        let [_, by_inputs, by_active] = of_commitments(commitments);
        let [_, _, numbers, _] = shape.circuits(0);
        let garbler = Peer::Party(GARBLER);
        self.pick(1, &mut round.finish);
        round
            .finish
            .push(of_inputs([numbers, shown.marks], work.digest));
        checked(round, [by_inputs, work.digest], garbler, super::INPUTS);
        let active = [numbers, shown.nonce, shown.active];
        round
            .finish
            .push(commit(label::ACTIVE, active, work.digest));
        checked(round, [by_active, work.digest], garbler, super::ACTIVE);
        let own = part(work.active, 0, shape.own());
        round.finish.push(combine(vec![shown.active], own));
        let encoded = part(work.active, shape.own(), shape.encoded);
        round.finish.push(self.unmask(encoded));
        let step = Cut::Member {
            label: label::INPUT,
        };
        let member = cut(step, &[work.active, shown.marks, numbers], &[]);
        check(round, member, garbler, super::MEMBER);
    }

    /// Tables are evaluated and hashed as they come. With the last ones the digests are compared, and the sums.
    fn tables(&self) -> Vec<Round> {
        let circuit = self.evaluated();
        let mut gate = 0;
        let messages = (place::TABLES..).zip(self.groups.iter().enumerate());
        let rounds = messages.map(|(place, (number, group))| {
            let mut round = Round {
                place,
                ..Round::default()
            };
            if group.gates > 0 {
                round.recvs.push(peer(regions::tables(0, group.gates), 0));
            }
            circuit.group(&mut round.finish, group, (number, gate));
            gate += u64::from(group.gates);
            round
        });
        let mut rounds: Vec<Round> = rounds.collect();
        if let Some(last) = rounds.last_mut() {
            self.check_tables(last);
        }
        rounds
    }

    fn check_tables(&self, round: &mut Round) {
        let (shape, work, circuit) = (self.shape, self.shape.work(), self.evaluated());
        let [commitments, digests, _] = shape.picked();
        let [_, by_inputs, _] = of_commitments(commitments);
        let (marks, colours) = (shape.shown().output_marks, shape.shown_colours());
        let garbler = Peer::Party(GARBLER);
        circuit.outputs(&mut round.finish);
        let of = [by_inputs, marks, colours];
        circuit.digest(&mut round.finish, self.groups.len(), of, work.digest);
        checked(round, [digests, work.digest], garbler, super::TABLES);
        let [active, sums] = shape.sums();
        let colour = Command::new(Op::Colour, vec![work.sums], vec![active]);
        round.finish.push(colour);
        let xor = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        round
            .finish
            .push(Command::new(xor, vec![active, colours], vec![sums]));
        check(round, cut(Cut::Same, &[sums], &[]), garbler, super::SUMS);
    }
}

/// Digests of seeds, of marks, of active labels.
fn of_commitments(all: Span) -> [Span; 3] {
    [0, 1, 2].map(|k| part(all, 2 * k, 2))
}
