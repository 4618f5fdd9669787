//! Inputs: masks of which the owner alone learns the value, Λ for both parties, and labels.
//!
//! Each party draws its part of the mask λ of every input wire, and authenticates it. The party that does not own a wire opens its part to the
//! owner, which tells Λ = x ⊕ λ. Both draw the active label from their common key, with bit 1 set to Λ; the garbler takes it ⊕ Λ Δ for its own.
//!
//! To an owner from outside both tell their parts ([`outside`]). It tells Λ to both, which compare what they were told before there are labels.

use veil_circuit::Per;
use veil_device::ag::{Ag, Role};
use veil_device::{Command, Op, Span};
use veil_job::Holder;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::outside::{self, Told};
use super::regions::{self, By, Use, items, part};
use super::steps::{Party, Rounds, ag, compare, digest, fold};
use super::{Ends, Shape, label, what};
use crate::ot::extension::At;
use crate::plan::Plan;
use crate::round::{Round, Transfer};
use crate::yao::{COMMON, OFFSET, PRIVATE, combine, random};

/// Rounds, each of which has a place.
pub(super) const ROUNDS: u32 = 7;

/// The same of what owners from outside are told, and tell.
pub(super) const ROUNDS_OUTSIDE: u32 = outside::ROUNDS + 2;

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

/// What is staged of a holder: its ports side by side, and behind those of an owner from outside wires that hide them.
struct Staging {
    holder: Holder,
    ports: Vec<Staged>,
    /// First item, and how many are of ports.
    at: u32,
    wires: u32,
    hiding: u32,
}

impl Staging {
    /// The items of ports in a staged span.
    fn of(&self, all: Span) -> Span {
        items(all, self.at, self.wires)
    }

    /// The same with what hides them.
    fn hidden(&self, all: Span) -> Span {
        items(all, self.at, self.wires + self.hiding)
    }
}

/// The input ports of a block: those of the garbler come first, then those of the evaluator, then those of owners from outside.
struct Inputs<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    taken: Taken,
    parties: [Staging; 2],
    owners: Vec<Staging>,
    /// All items.
    wires: u32,
}

/// The rounds of inputs of a block; `ends` are the transfers of a party, unless masks come from a stock.
pub(super) fn rounds(
    (plan, shape): (&Plan, &Shape),
    (me, block): (Peer, usize),
    taken: Taken,
    ends: Option<&Ends>,
) -> Vec<Round> {
    let inputs = Inputs::new((plan, shape), block, taken);
    match me {
        _ if inputs.wires == 0 => vec![],
        Peer::Party(me) => inputs.rounds(Party(me), ends),
        Peer::Owner(me) => inputs.owner(me),
        Peer::Recipient(_) => vec![],
    }
}

impl<'a> Inputs<'a> {
    fn new((plan, shape): (&'a Plan, &'a Shape), block: usize, taken: Taken) -> Self {
        let mut at = 0;
        let mut staging = |holder, hiding| {
            let first = at;
            let holders = plan.job.blocks[block].holders.iter().zip(&plan.inputs);
            let of_holder = holders
                .enumerate()
                .filter(|(_, (of, port))| **of == holder && port.per == taken.per());
            let ports = of_holder.map(|(number, (_, port))| {
                let before = at;
                at += port.width;
                Staged {
                    port: number,
                    at: before,
                    width: port.width,
                }
            });
            let ports = ports.collect();
            let wires = at - first;
            at += hiding;
            Staging {
                holder,
                ports,
                at: first,
                wires,
                hiding,
            }
        };
        let roles = [Role::Garbler, Role::Evaluator];
        let parties = roles.map(|role| staging(Holder::Party(Party::of(role).0), 0));
        let owners = outside::owners_of(plan, block, taken.per()).into_iter();
        let hiding = shape.hiding(taken);
        let owners = owners.map(|owner| staging(Holder::Owner(owner), hiding));
        Inputs {
            owners: owners.collect(),
            parties,
            plan,
            shape,
            taken,
            wires: at,
        }
    }

    /// The items of a staged span that a party owns.
    fn owned(&self, me: Party, by: By, all: Span) -> Span {
        let mine = usize::from(!me.garbles());
        match by {
            By::Me => self.parties[mine].of(all),
            By::Them => self.parties[1 - mine].of(all),
        }
    }

    /// What the owner of a staging is told.
    fn told(&self, number: usize) -> Told {
        let owner = &self.owners[number];
        let wires = self.shape.wires(self.taken);
        let staged = |component| owner.hidden(regions::staged(wires, component));
        Told {
            number: number as u32,
            to: owner.holder.peer().expect("an owner is a participant"),
            bits: [By::Me, By::Them].map(|by| owner.hidden(regions::said(wires, by))),
            macs: staged(part::MAC),
            keys: staged(part::KEY),
        }
    }

    /// The number of challenges and digests.
    fn number(&self) -> u64 {
        self.shape.challenge_of_inputs(self.taken)
    }

    fn rounds(&self, me: Party, ends: Option<&Ends>) -> Vec<Round> {
        let (shape, taken) = (self.shape, self.taken);
        let wires = shape.wires(taken);
        let parts = regions::parts(wires);
        let [mac, key] = [part::MAC, part::KEY].map(|of| regions::staged(wires, of));
        let mut rounds = Rounds::new(me, shape.place(taken));
        if let Some(ends) = ends {
            let at = At {
                place: shape.place(taken),
                first: shape.leaves.inputs(taken),
                label: 0,
            };
            rounds.both(ends.rounds(at, parts, [mac, key]));
            let first = shape.parts.inputs(taken);
            let draw = random(PRIVATE, DomainTag::AG_PARTS, first, parts);
            rounds.made[0].local.insert(0, draw);
        } else {
            rounds.next().feeds = true;
            rounds.finish(ag(Ag::Bits { bit: 0 }, vec![mac], vec![parts]));
        }
        if self.parties.iter().any(|party| party.wires > 0) {
            self.of_parties(&mut rounds);
        }
        if !self.owners.is_empty() {
            self.of_owners(&mut rounds);
        }
        self.labels(&mut rounds);
        rounds.made
    }

    /// Each party opens its parts of what the other one owns, which tells Λ.
    fn of_parties(&self, rounds: &mut Rounds) {
        let me = rounds.me;
        let wires = self.shape.wires(self.taken);
        let (parts, public) = (regions::parts(wires), regions::public(wires));
        let [mac, key] = [part::MAC, part::KEY].map(|of| regions::staged(wires, of));
        let said = |by| regions::said(wires, by);
        rounds.next();
        let opens = |by: By| match by {
            By::Me => self.owned(me, By::Them, said(By::Me)),
            By::Them => self.owned(me, By::Me, said(By::Them)),
        };
        let of_others = self.owned(me, By::Them, mac);
        if of_others.count > 0 {
            let bits = ag(Ag::Bits { bit: 0 }, vec![of_others], vec![opens(By::Me)]);
            rounds.local(bits);
        }
        rounds.exchange(opens, 0);
        rounds.next();
        rounds.challenge(Use::Opening, self.number(), 0);
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
        let mine = self.owned(me, By::Me, key);
        if mine.count > 0 {
            rounds.receive(regions::folds(By::Them, 0, 1), 0);
            let challenge = regions::challenge(By::Me, Use::Opening);
            let told = Some(opens(By::Them));
            rounds.finish(fold(challenge, told, &[mine], regions::own_folds(0, 1)));
            let compared = [regions::folds(By::Them, 0, 1), regions::own_folds(0, 1)];
            rounds.compare(compared, what::INPUTS);
        }
        rounds.next();
        for port in &self.parties[usize::from(!me.garbles())].ports {
            let staged = |all: Span| items(all, port.at, port.width);
            let from = vec![
                regions::input(self.plan, port.port),
                staged(parts),
                staged(said(By::Them)),
            ];
            rounds.local(combine(from, staged(public)));
        }
        rounds.exchange(|by| self.owned(me, by, public), 0);
    }

    /// Both tell owners from outside their parts, and compare what these say.
    fn of_owners(&self, rounds: &mut Rounds) {
        let told: Vec<Told> = (0..self.owners.len()).map(|k| self.told(k)).collect();
        rounds.go_on_at(self.shape.place_of_owners(self.taken));
        outside::tell(rounds, &told, self.number());
        let public = regions::public(self.shape.wires(self.taken));
        let public: Vec<Span> = self.owners.iter().map(|owner| owner.of(public)).collect();
        let all = || told.iter().zip(&public);
        let recvs = all().map(|(told, public)| Transfer::new(*public, told.to, 0));
        rounds.next().recvs = recvs.collect();
        rounds.next();
        let mine = regions::agreed(By::Me);
        rounds.local(digest(label::MASKED, self.number(), public.clone(), mine));
        rounds.exchange(regions::agreed, 0);
        let mut suspects = vec![rounds.me.peer()];
        suspects.extend(told.iter().map(|told| told.to));
        let compared = [By::Me, By::Them].map(regions::agreed);
        compare(rounds.last(), compared, (suspects, what::MASKED));
    }

    /// Labels, when Λ is known, and all components go to where they are computed with.
    fn labels(&self, rounds: &mut Rounds) {
        let wires = self.shape.wires(self.taken);
        let staged = |component| regions::staged(wires, component);
        let all = |span: Span| items(span, 0, self.wires);
        let (label, public) = (all(staged(part::LABEL)), all(regions::public(wires)));
        let garbles = rounds.me.garbles();
        let first = self.shape.labels.inputs(self.taken);
        rounds.finish(random(COMMON, DomainTag::ACTIVE, first, label));
        rounds.finish(ag(Ag::Pin { bit: 1 }, vec![label, public], vec![label]));
        if garbles {
            let op = Op::Encode { offset: OFFSET };
            let src = vec![label, public];
            rounds.finish(Command::new(op, src, vec![label]));
            let to = all(staged(part::PUBLIC));
            rounds.finish(ag(Ag::Expand, vec![public], vec![to]));
        }
        let holders = self.parties.iter().chain(&self.owners);
        for port in holders.flat_map(|holder| &holder.ports) {
            let components = if garbles { part::ALL } else { part::PUBLIC };
            for component in 0..components {
                let from = items(staged(component), port.at, port.width);
                let to = regions::values(&self.plan.inputs[port.port], component);
                rounds.finish(combine(vec![from], to));
            }
        }
    }

    /// What an owner from outside does: it is told its masks, and tells Λ to both parties.
    fn owner(&self, me: u16) -> Vec<Round> {
        let mut owners = self.owners.iter();
        let Some(number) = owners.position(|of| of.holder == Holder::Owner(me)) else {
            return vec![];
        };
        let (owner, told) = (&self.owners[number], self.told(number));
        let place = self.shape.place_of_owners(self.taken);
        let mut rounds = outside::hear(place, &told, self.number());
        let mut round = Round {
            place: place + outside::ROUNDS,
            ..Round::default()
        };
        let public = regions::public(self.shape.wires(self.taken));
        for port in &owner.ports {
            let told = told
                .bits
                .map(|bits| items(bits, port.at - owner.at, port.width));
            let from = [&[regions::input(self.plan, port.port)], &told[..]].concat();
            let to = items(public, port.at, port.width);
            round.local.push(combine(from, to));
        }
        let parties = PartyId::TWO.map(Peer::Party);
        let sends = parties.map(|party| Transfer::new(owner.of(public), party, 0));
        round.sends = sends.into();
        rounds.push(round);
        rounds
    }
}

/// Wires of the input ports with so many values.
pub(super) fn wires(plan: &Plan, per: Per) -> u32 {
    let ports = plan.inputs.iter().filter(|port| port.per == per);
    ports.map(|port| port.width).sum()
}
