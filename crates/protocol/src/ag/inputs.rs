//! Inputs: masks of which the owner alone learns the value, Λ for both parties, and labels.
//!
//! Each party draws its part of the mask λ of every input wire, and authenticates it. The party that does not own a wire opens its part to the
//! owner, which tells Λ = x ⊕ λ. Both draw the active label from their common key, with bit 1 set to Λ; the garbler takes it ⊕ Λ Δ for its own.

use veil_circuit::Per;
use veil_device::ag::{Ag, Role};
use veil_device::{Command, Op, Span};
use veil_job::Holder;
use veil_prss::DomainTag;

use super::regions::{self, By, Use, items, part};
use super::steps::{Party, Rounds, ag, fold};
use super::{Ends, Shape, what};
use crate::ot::extension::At;
use crate::plan::Plan;
use crate::round::Round;
use crate::yao::{COMMON, OFFSET, PRIVATE, combine, random};

/// Rounds, each of which has a place.
pub(super) const ROUNDS: u32 = 7;

/// Whose values are taken at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// Those of the rows of a chunk.
    Rows,
    /// Those of a window of cycles, by its number.
    Window(u64),
    /// Those that all rows use.
    Job,
}

impl Taken {
    fn per(self) -> Per {
        match self {
            Taken::Rows => Per::Row,
            Taken::Window(_) => Per::Cycle,
            Taken::Job => Per::Job,
        }
    }
}

/// A port on its way in.
struct Staged {
    port: usize,
    /// First item of what is staged.
    at: u32,
    width: u32,
}

/// The input ports of a block: those of the garbler come first.
struct Inputs<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    me: Party,
    taken: Taken,
    /// Ports of the garbler, and of the evaluator.
    ports: [Vec<Staged>; 2],
    /// Wires of each.
    wires: [u32; 2],
}

/// The rounds of inputs of a block.
pub(super) fn rounds(
    (plan, shape): (&Plan, &Shape),
    (me, block): (Party, usize),
    taken: Taken,
    ends: &Ends,
) -> Vec<Round> {
    let holders = &plan.job.blocks[block].holders;
    let (mut at, mut ports, mut wires) = (0, [Vec::new(), Vec::new()], [0; 2]);
    for role in [Role::Garbler, Role::Evaluator] {
        let of = role.number() as usize;
        for (port, (holder, of_port)) in holders.iter().zip(&plan.inputs).enumerate() {
            if of_port.per == taken.per() && *holder == Holder::Party(Party::of(role).0) {
                let width = of_port.width;
                ports[of].push(Staged { port, at, width });
                at += width;
                wires[of] += width;
            }
        }
    }
    let inputs = Inputs {
        plan,
        shape,
        me,
        taken,
        ports,
        wires,
    };
    if at == 0 {
        return vec![];
    }
    inputs.rounds(ends)
}

impl Inputs<'_> {
    /// The items of a staged span that the party of a role owns.
    fn of(&self, role: Role, all: Span) -> Span {
        let [garbler, evaluator] = self.wires;
        match role {
            Role::Garbler => items(all, 0, garbler),
            Role::Evaluator => items(all, garbler, evaluator),
        }
    }

    /// The items of a staged span that a party owns.
    fn owned(&self, by: By, all: Span) -> Span {
        let role = match (by, self.me.role()) {
            (By::Me, role) => role,
            (By::Them, Role::Garbler) => Role::Evaluator,
            (By::Them, Role::Evaluator) => Role::Garbler,
        };
        self.of(role, all)
    }

    fn rounds(&self, ends: &Ends) -> Vec<Round> {
        let (shape, me, taken) = (self.shape, self.me, self.taken);
        let wires = shape.wires(taken);
        let (parts, said, public) = (
            regions::parts(wires),
            |by| regions::said(wires, by),
            regions::public(wires),
        );
        let staged = |component| regions::staged(wires, component);
        let [label, mac, key] = [part::LABEL, part::MAC, part::KEY].map(staged);
        let mut rounds = Rounds::new(me, shape.place(taken));
        let at = At {
            place: shape.place(taken),
            first: shape.leaves.inputs(taken),
            label: 0,
        };
        rounds.both(ends.rounds(at, parts, [mac, key]));
        let first = shape.parts.inputs(taken);
        let draw = random(PRIVATE, DomainTag::AG_PARTS, first, parts);
        rounds.made[0].local.insert(0, draw);
        let pin = |from: Span, bits: &[Span], bit| {
            ag(Ag::Pin { bit }, [&[from], bits].concat(), vec![from])
        };
        rounds.finish(pin(mac, &[parts], 0));
        rounds.finish(pin(key, &[], 0));
        // Each party opens its parts of what the other one owns.
        rounds.next();
        let opens = |by: By| match by {
            By::Me => self.owned(By::Them, said(By::Me)),
            By::Them => self.owned(By::Me, said(By::Them)),
        };
        let of_others = self.owned(By::Them, mac);
        if of_others.count > 0 {
            let bits = ag(Ag::Bits { bit: 0 }, vec![of_others], vec![opens(By::Me)]);
            rounds.local(bits);
        }
        rounds.exchange(opens, 0);
        rounds.next();
        rounds.challenge(Use::Opening, shape.challenge_of_inputs(taken), 0);
        rounds.challenged(Use::Opening, 0);
        rounds.next();
        if of_others.count > 0 {
            let challenge = regions::challenge(By::Them, Use::Opening);
            rounds.local(fold(
                challenge,
                None,
                &[of_others],
                regions::folds(By::Me, 0, 1),
            ));
            rounds.send(regions::folds(By::Me, 0, 1), 0);
        }
        let mine = self.owned(By::Me, key);
        if mine.count > 0 {
            rounds.receive(regions::folds(By::Them, 0, 1), 0);
            let challenge = regions::challenge(By::Me, Use::Opening);
            let told = Some(opens(By::Them));
            rounds.finish(fold(challenge, told, &[mine], regions::own_folds(0, 1)));
            let compared = [regions::folds(By::Them, 0, 1), regions::own_folds(0, 1)];
            rounds.compare(compared, what::INPUTS);
        }
        rounds.next();
        let of_me = self.me.role().number() as usize;
        for port in &self.ports[of_me] {
            let staged = |all: Span| items(all, port.at, port.width);
            let from = vec![
                regions::input(self.plan, port.port),
                staged(parts),
                staged(said(By::Them)),
            ];
            rounds.local(combine(from, staged(public)));
        }
        rounds.exchange(|by| self.owned(by, public), 0);
        let all = |span: Span| items(span, 0, self.wires[0] + self.wires[1]);
        let first = shape.labels.inputs(taken);
        rounds.finish(random(COMMON, DomainTag::ACTIVE, first, all(label)));
        rounds.finish(pin(all(label), &[all(public)], 1));
        if me.garbles() {
            let op = Op::Encode { offset: OFFSET };
            let src = vec![all(label), all(public)];
            rounds.finish(Command::new(op, src, vec![all(label)]));
            let to = all(staged(part::PUBLIC));
            rounds.finish(ag(Ag::Expand, vec![all(public)], vec![to]));
        }
        for port in self.ports.iter().flatten() {
            let components = if me.garbles() {
                part::ALL
            } else {
                part::PUBLIC
            };
            for component in 0..components {
                let from = items(staged(component), port.at, port.width);
                let to = regions::values(&self.plan.inputs[port.port], component);
                rounds.finish(combine(vec![from], to));
            }
        }
        rounds.made
    }
}

/// Wires of the input ports with so many values.
pub(super) fn wires(plan: &Plan, per: Per) -> u32 {
    let ports = plan.inputs.iter().filter(|port| port.per == per);
    ports.map(|port| port.width).sum()
}
