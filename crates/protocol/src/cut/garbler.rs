//! The garbler's rounds.

use veil_device::{Command, Cut, Span};
use veil_job::Holder;
use veil_prss::DomainTag;
use veil_session::Peer;

use super::circuit::{Circuit, commit, cut};
use super::regions::{self, Shape, holder, input, part};
use super::{checked, label, place};
use crate::ot::transfer::keys;
use crate::plan::Plan;
use crate::round::{Round, Transfer};
use crate::yao::{COMMON, EVALUATOR, Ends, GARBLER, Group, OFFSET, PRIVATE, combine, transfer};

/// The rounds of a chunk up to the first table, and those of the tables.
pub(super) fn rounds(plan: &Plan, shape: &Shape, groups: &[Group], ends: &Ends) -> [Vec<Round>; 2] {
    let garbler = Garbler {
        plan,
        shape,
        groups,
    };
    let mut transfer = super::transfers(ends, shape);
    transfer.recvs.extend([
        peer(regions::coins()[3], 10),
        peer(regions::hashes()[0], 11),
    ]);
    let before = vec![garbler.commit(), transfer, garbler.answer(), toss()];
    let mut tables = vec![garbler.show()];
    tables.extend(garbler.tables());
    [before, tables]
}

fn peer(span: Span, part: u16) -> Transfer {
    transfer(span, Peer::Party(EVALUATOR), part)
}

/// Random values of the garbler's own.
fn random(to: Span, tag: DomainTag) -> Command {
    super::random(PRIVATE, to, tag)
}

/// The evaluator's coin, to which it had committed before it saw the garbler's.
fn toss() -> Round {
    let ([coin, nonce, _, _], [committed, again, _]) = (regions::coins(), regions::hashes());
    let mut round = Round {
        place: place::TOSS,
        recvs: vec![peer(coin, 0), peer(nonce, 1)],
        ..Round::default()
    };
    round.finish.push(super::commit_coin([coin, nonce], again));
    let evaluator = Peer::Party(EVALUATOR);
    checked(&mut round, [committed, again], evaluator, super::COIN);
    round
}

/// Everything of circuits that follows from their seeds.
fn stretch(seeds: Span, circuit: &Circuit<'_>) -> Command {
    let offsets = circuit.offsets.expect("circuits are garbled");
    cut(
        Cut::Stretch,
        &[seeds],
        &[offsets, circuit.starts, circuit.labels],
    )
}

struct Garbler<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    groups: &'a [Group],
}

impl Garbler<'_> {
    /// Circuits of a half.
    fn circuit(&self, half: u32) -> Circuit<'_> {
        let [offsets, starts, numbers, labels] = self.shape.circuits(half);
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

    /// The circuits that are evaluated, garbled once more: in the place of those of half 0.
    fn again(&self) -> Circuit<'_> {
        Circuit {
            hashes: false,
            ..self.circuit(0)
        }
    }

    /// Everything that does not depend on what the evaluator says: seeds, labels of inputs, and what the garbler's inputs are.
    fn commit(&self) -> Round {
        let shape = self.shape;
        let [own, _] = shape.inputs;
        let mut local = Vec::new();
        for (k, port) in self.plan.inputs.iter().enumerate() {
            if holder(self.plan, k) == Holder::Party(GARBLER) {
                let (from, first) = input(self.plan, k);
                let to = part(shape.own_bits(), first, port.width);
                local.push(combine(vec![from], to));
            }
        }
        local.push(random(
            part(shape.own_bits(), own, shape.check),
            DomainTag::CUT_HIDING,
        ));
        for half in 0..2 {
            let [seeds, nonces] = regions::secrets(half);
            let kept = shape.kept_of(half);
            let [by_seed, by_inputs, by_active] = regions::commitments(half);
            let circuit = self.circuit(half);
            let first = u64::from(half) * u64::from(shape.half);
            for (to, tag) in [
                (seeds, DomainTag::CUT_SEED),
                (nonces, DomainTag::CUT_NONCE),
                (kept.nonce, DomainTag::CUT_ACTIVE),
            ] {
                let mut call = random(to, tag);
                call.calls[0].first = first;
                local.push(call);
            }
            let step = Cut::Number {
                first: half * shape.half,
            };
            local.push(cut(step, &[], &[circuit.numbers]));
            local.push(stretch(seeds, &circuit));
            circuit.inputs(&mut local, kept.marks, by_inputs);
            local.push(commit(
                label::SEED,
                [circuit.numbers, nonces, seeds],
                by_seed,
            ));
            let zeros = part(circuit.labels, 0, shape.own());
            let offsets = shape.circuits(half)[0];
            let src = [zeros, offsets, shape.own_bits()];
            local.push(cut(Cut::Active, &src, &[kept.active]));
            let active = [circuit.numbers, kept.nonce, kept.active];
            local.push(commit(label::ACTIVE, active, by_active));
            local.push(combine(vec![circuit.starts], kept.start));
        }
        Round {
            place: place::COMMIT,
            local,
            sends: vec![peer(regions::all_commitments(), 0)],
            ..Round::default()
        }
    }

    /// Both labels of the evaluator's inputs, each under the key of a transfer; all circuits, hashed; and a coin.
    fn answer(&self) -> Round {
        let shape = self.shape;
        let mut local = Vec::new();
        let mut sends = Vec::new();
        let [transferred, zero, one] = shape.keys();
        if shape.encoded > 0 {
            local.push(keys(transferred, &[zero, one], Some(OFFSET), (COMMON, 0)));
        }
        for half in 0..2 {
            let circuit = self.circuit(half);
            let offsets = shape.circuits(half)[0];
            let encoded = part(circuit.labels, shape.own(), shape.encoded);
            let src = [encoded, offsets, circuit.numbers, zero, one];
            local.push(cut(Cut::Mask, &src, &[shape.masked(half)]));
            let kept = shape.kept_of(half);
            let [_, inputs, _] = regions::commitments(half);
            circuit.begin(&mut local);
            circuit.whole(&mut local, self.groups);
            circuit.outputs(&mut local);
            let colours = shape.colours(half);
            circuit.decoding(&mut local, kept.output_marks, colours);
            let of = [inputs, kept.output_marks, colours];
            circuit.digest(&mut local, self.groups.len(), of, regions::digests(half));
        }
        let [_, _, coin, _] = regions::coins();
        local.push(random(coin, DomainTag::CUT_COIN));
        sends.push(peer(shape.all_masked(), 0));
        sends.push(peer(regions::all_digests(), 1));
        sends.push(peer(coin, 2));
        Round {
            place: place::ANSWER,
            local,
            sends,
            ..Round::default()
        }
    }

    /// Seeds of the circuits that are opened; of the others, what it takes to evaluate them. Then the latter are garbled again.
    fn show(&self) -> Round {
        let shape = self.shape;
        let order = regions::order();
        let mut local = super::order();
        let mut pick = |half, from, to| {
            local.push(cut(Cut::Pick { half }, &[from, order], &[to]));
        };
        let secrets = shape.work().secrets;
        pick(0, regions::all_secrets(), regions::seeds());
        pick(1, shape.all_kept(), shape.all_shown());
        pick(1, shape.all_colours(), shape.shown_colours());
        pick(1, regions::all_secrets(), secrets);
        let circuit = self.again();
        local.push(stretch(part(secrets, 0, 1), &circuit));
        circuit.begin(&mut local);
        Round {
            place: place::SHOW,
            local,
            sends: vec![
                peer(regions::seeds(), 0),
                peer(shape.all_shown(), 1),
                peer(shape.shown_colours(), 2),
            ],
            ..Round::default()
        }
    }

    /// Tables of the circuits that are evaluated.
    fn tables(&self) -> Vec<Round> {
        let circuit = self.again();
        let mut gate = 0;
        let messages = (place::TABLES..).zip(self.groups.iter().enumerate());
        let rounds = messages.map(|(place, (number, group))| {
            let mut round = Round {
                place,
                ..Round::default()
            };
            circuit.group(&mut round.local, group, (number, gate));
            gate += u64::from(group.gates);
            if group.gates > 0 {
                round.sends.push(peer(regions::tables(0, group.gates), 0));
            }
            round
        });
        rounds.collect()
    }
}
