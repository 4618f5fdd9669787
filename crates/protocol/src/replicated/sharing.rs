//! Inputs: by a computing party, by an outside owner who only sends shares, and from the parties' stores.
//!
//! Party P_i makes one component explicit, and sends it to its other holders; the one that it lacks is zero, and the others are drawn from
//! keys that their holders have. A consistent sharing of whatever the party sent: with two other holders, they compare what they got.
//!
//! An owner draws all components but the last from a seed each, which the component's holders have, and sends the last to its holders.
//! Holders of the same seed compare digests of it once, and holders of the last component digests of every chunk of it, before they use it
//! (attack case A4). A difference is refused, never repaired.

use veil_circuit::Per;
use veil_device::{Command, Op, Span};
use veil_job::Holder;
use veil_session::{PartyId, Peer};

use super::digests::Digests;
use super::regions::{self, JOB_MASKS, MASKS};
use super::scheme::{Component, Scheme};
use super::{check, combine, convert, label, place, random, transfer};
use crate::plan::{Gives, Plan, PortPlan};
use crate::round::Round;

/// Ports of a block with a value per row, or per job.
#[derive(Clone, Copy)]
struct Kind {
    block: usize,
    per: Per,
}

/// Makes the rounds in which a participant supplies and gets inputs.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub(super) scheme: &'a Scheme,
    pub(super) plan: &'a Plan,
    pub(super) me: Peer,
}

impl<'a> Inputs<'a> {
    /// Agreement on the list of inputs and on seeds, then the job-wide inputs, and what follows from them.
    pub(super) fn set_up(self) -> Vec<Round> {
        let Inputs { scheme, plan, me } = self;
        let mut rounds = Vec::new();
        if let Peer::Party(me) = me {
            rounds.push(self.list(me));
        }
        rounds.extend(self.rounds(Kind {
            block: 0,
            per: Per::Job,
        }));
        rounds.extend(super::job_layers(scheme, plan, me));
        let keep = super::opening::keep(scheme, plan, Gives::Once);
        if me.party().is_some() && !keep.is_empty() {
            rounds.push(Round {
                place: place::JOB_CHECK,
                local: keep,
                ..Round::default()
            });
        }
        rounds
    }

    /// Inputs of the rows of a chunk of block `block`.
    pub(super) fn rows(self, block: usize) -> Vec<Round> {
        self.rounds(Kind {
            block,
            per: Per::Row,
        })
    }

    /// Inputs of a window of cycles of a chunk of block `block`.
    pub(super) fn cycles(self, block: usize) -> Vec<Round> {
        self.rounds(Kind {
            block,
            per: Per::Cycle,
        })
    }

    /// Everyone tells everyone the digest of its list of accepted inputs (attack case A7), and holders of a seed or of a key that was dealt
    /// its digest.
    fn list(self, me: PartyId) -> Round {
        let mut round = Round {
            place: place::LIST,
            ..Round::default()
        };
        let digests = Digests::of(self.scheme, self.plan);
        for (k, peer) in (1..).zip(self.scheme.others(me)) {
            let compared = Compared {
                mine: digests.list(0),
                theirs: digests.list(k),
                part: 0,
                suspects: vec![Peer::Party(peer)],
                what: "the list of accepted inputs",
            };
            compared.with(&mut round, peer);
        }
        for owner in 0..self.plan.job.owners.len() as u16 {
            for seed in self.scheme.seeded() {
                let others = self.scheme.other_holders(me, seed);
                for (k, other) in (1..).zip(others) {
                    let number = self.scheme.parts.len() as u16 * owner + seed.number();
                    let compared = Compared {
                        mine: digests.seed(owner, seed, 0),
                        theirs: digests.seed(owner, seed, k),
                        part: 1 + number,
                        suspects: vec![Peer::Owner(owner), Peer::Party(other)],
                        what: "an owner's seed",
                    };
                    compared.with(&mut round, other);
                }
            }
        }
        let owners = self.plan.job.owners.len() as u16;
        let first = 1 + self.scheme.parts.len() as u16 * owners;
        for component in self.scheme.components() {
            let dealer = self.scheme.dealer(component);
            for (k, other) in (1..).zip(self.scheme.dealt_with(me, component)) {
                let suspects = dealer.into_iter().chain([other]);
                let compared = Compared {
                    mine: digests.dealt(component, 0),
                    theirs: digests.dealt(component, k),
                    part: first + component.number(),
                    suspects: suspects.map(Peer::Party).collect(),
                    what: "a key of three parties",
                };
                compared.with(&mut round, other);
            }
        }
        round
    }

    /// Ports of a kind, and their holders.
    fn ports(self, kind: Kind) -> impl Iterator<Item = (usize, &'a PortPlan, Holder)> {
        let holders = &self.plan.job.blocks[kind.block].holders;
        let ports = self.plan.inputs.iter().zip(holders).enumerate();
        ports
            .filter(move |(_, (p, _))| p.per == kind.per)
            .map(|(k, (p, h))| (k, p, *h))
    }

    fn rounds(self, kind: Kind) -> Vec<Round> {
        let (place, check_place) = match kind.per {
            Per::Row => (place::INPUTS, place::INPUT_CHECK),
            Per::Cycle => super::cycles::places(self.scheme, self.plan),
            Per::Job => (place::JOB_INPUTS, place::JOB_CHECK),
        };
        let mut round = Round {
            place,
            ..Round::default()
        };
        let mut suppliers: Vec<Holder> = Vec::new();
        let mut arrived = Vec::new();
        for (k, port, holder) in self.ports(kind) {
            if self.me.party().is_some() && holder != Holder::Stored && self.plan.has_macs() {
                arrived.push(port);
            }
            match (self.me, holder) {
                (Peer::Party(me), Holder::Party(p)) => self.by_party(&mut round, me, p, k, port),
                (Peer::Party(me), Holder::Owner(o)) => self.of_owner(&mut round, me, o, k, port),
                (Peer::Party(_), Holder::Stored) => {
                    for part in self.scheme.parts() {
                        let (from, to) = (regions::stored(port, part), regions::shares(port, part));
                        round.local.push(convert(self.plan, from, to));
                    }
                }
                (Peer::Owner(me), Holder::Owner(o)) if me == o => {
                    self.by_owner(&mut round, o, k, port);
                }
                // They are in their slots.
                (_, Holder::Column) | (Peer::Owner(_) | Peer::Recipient(_), _) => {}
            }
            if !suppliers.contains(&holder) {
                suppliers.push(holder);
            }
        }
        for port in arrived {
            for part in self.scheme.parts() {
                let (from, to) = (regions::stored(port, part), regions::shares(port, part));
                round.finish.push(convert(self.plan, from, to));
            }
        }
        let mut rounds = Vec::new();
        let nothing = round.local.is_empty()
            && round.sends.is_empty()
            && round.recvs.is_empty()
            && round.finish.is_empty();
        if !nothing {
            rounds.push(round);
        }
        if let Peer::Party(me) = self.me {
            let mut round = Round {
                place: check_place,
                ..Round::default()
            };
            for supplier in &suppliers {
                self.compare_explicit(&mut round, me, *supplier, kind);
            }
            if suppliers.contains(&Holder::Stored) {
                self.compare_loaded(&mut round, me, kind);
            }
            if !round.sends.is_empty() {
                rounds.push(round);
            }
        }
        rounds
    }

    /// A party that got the explicit components of an owner or a party compares digests of all of them with the others that did.
    fn compare_explicit(self, round: &mut Round, me: PartyId, supplier: Holder, kind: Kind) {
        let Some(explicit) = Explicit::of(self.scheme, supplier) else {
            return;
        };
        let digests = Digests::of(self.scheme, self.plan);
        let digest = |k| match supplier {
            Holder::Owner(owner) => digests.owner(owner, kind.per, k),
            _ => digests.party(u32::from(explicit.number), kind.per, k),
        };
        let mut receivers = explicit.others(self.scheme, me).peekable();
        if receivers.peek().is_none() {
            return;
        }
        let base = match (supplier, kind.per) {
            (Holder::Owner(_), Per::Cycle) => label::OWNER_CYCLES,
            (_, Per::Cycle) => label::PARTY_CYCLES,
            (Holder::Owner(_), Per::Row) => label::OWNER_ROWS,
            (Holder::Owner(_), Per::Job) => label::OWNER_JOB,
            (_, Per::Row) => label::PARTY_ROWS,
            (_, Per::Job) => label::PARTY_JOB,
        };
        let op = Op::Hash {
            label: base + explicit.number,
        };
        let src = self.ports(kind).filter(|(_, _, h)| *h == supplier);
        let src = src.map(|(_, port, _)| regions::input(port)).collect();
        round.local.push(Command::new(op, src, vec![digest(0)]));
        for (k, other) in (1..).zip(receivers) {
            let compared = Compared {
                mine: digest(0),
                theirs: digest(k),
                part: explicit.part,
                suspects: vec![explicit.peer, Peer::Party(other)],
                what: explicit.what,
            };
            compared.with(round, other);
        }
    }

    /// All holders of a component that was loaded compare digests of it.
    fn compare_loaded(self, round: &mut Round, me: PartyId, kind: Kind) {
        let base = match kind.per {
            Per::Row | Per::Cycle => label::STORED_ROWS,
            Per::Job => label::STORED_JOB,
        };
        let digests = Digests::of(self.scheme, self.plan);
        for part in self.scheme.parts() {
            let component = self.scheme.component_of(me, part);
            let src = self.ports(kind).filter(|(_, _, h)| *h == Holder::Stored);
            let src = src.map(|(_, port, _)| regions::stored(port, part));
            let op = Op::Hash {
                label: base + component.number(),
            };
            let mine = digests.loaded(kind.per, part, 0);
            round
                .local
                .push(Command::new(op, src.collect(), vec![mine]));
            for (k, other) in (1..).zip(self.scheme.other_holders(me, component)) {
                let compared = Compared {
                    mine,
                    theirs: digests.loaded(kind.per, part, k),
                    part: LOADED + component.number(),
                    suspects: vec![Peer::Party(me), Peer::Party(other)],
                    what: "a stored share",
                };
                compared.with(round, other);
            }
        }
    }

    /// Counter of a port's first wire: wires in order, as many counters each as a full chunk of one wire takes.
    fn first_call(self, port: &PortPlan) -> u64 {
        let stride = match port.per {
            Per::Row | Per::Cycle => self.plan.stride(self.plan.ring),
            Per::Job => 1,
        };
        u64::from(port.first) * stride
    }

    fn by_party(self, round: &mut Round, me: PartyId, holder: PartyId, k: usize, port: &PortPlan) {
        let (scheme, ring) = (self.scheme, self.plan.ring);
        let (tag, first) = ((scheme.input)(holder.index() as u8), self.first_call(port));
        let (explicit, zero) = (scheme.explicit(holder), scheme.missing(holder));
        let input = regions::input(port);
        let mut drawn = Vec::new();
        let mut mine = None;
        for part in scheme.parts() {
            let to = regions::arriving(self.plan, port, part);
            let component = scheme.component_of(me, part);
            if component == explicit {
                mine = Some(to);
            } else if component == zero {
                round.local.push(combine(ring, vec![], 0, to));
            } else {
                round.local.push(random(to, Scheme::key(part), tag, first));
                drawn.push(to);
            }
        }
        let Some(to) = mine else { return };
        if me == holder {
            let minus = (1 << (drawn.len() + 1)) - 2;
            let src = [vec![input], drawn].concat();
            round.local.push(combine(ring, src, minus, input));
            round.local.push(combine(ring, vec![input], 0, to));
            for other in scheme.other_holders(me, explicit) {
                round
                    .sends
                    .push(transfer(input, Peer::Party(other), k as u16));
            }
        } else {
            round
                .recvs
                .push(transfer(input, Peer::Party(holder), k as u16));
            round.finish.push(combine(ring, vec![input], 0, to));
        }
    }

    fn of_owner(self, round: &mut Round, me: PartyId, owner: u16, k: usize, port: &PortPlan) {
        let (scheme, input) = (self.scheme, regions::input(port));
        let first = self.first_call(port);
        for part in scheme.parts() {
            let to = regions::arriving(self.plan, port, part);
            let component = scheme.component_of(me, part);
            if component == scheme.owners_explicit() {
                round
                    .recvs
                    .push(transfer(input, Peer::Owner(owner), k as u16));
                round
                    .finish
                    .push(combine(self.plan.ring, vec![input], 0, to));
            } else {
                let key = scheme.seed_key(owner, component);
                round.local.push(random(to, key, scheme.share, first));
            }
        }
    }

    fn by_owner(self, round: &mut Round, owner: u16, k: usize, port: &PortPlan) {
        let (scheme, input) = (self.scheme, regions::input(port));
        let region = match port.per {
            Per::Row | Per::Cycle => MASKS,
            Per::Job => JOB_MASKS,
        };
        let first = self.first_call(port);
        let mut src = vec![input];
        for seed in scheme.seeded() {
            let to = Span {
                region,
                component: seed.number() as u8,
                ..input
            };
            let key = scheme.seed_key(owner, seed);
            round.local.push(random(to, key, scheme.share, first));
            src.push(to);
        }
        let minus = (1 << src.len()) - 2;
        round.local.push(combine(self.plan.ring, src, minus, input));
        for party in scheme.holders(scheme.owners_explicit()) {
            round
                .sends
                .push(transfer(input, Peer::Party(party), k as u16));
        }
    }
}

/// Numbers of digest messages: those of owners, of whom there are at most 1024, come first.
const LOADED: u16 = 1024;
const PARTIES: u16 = LOADED + 16;

/// The explicit components of one participant that supplies values.
struct Explicit {
    component: Component,
    /// Who supplies them.
    peer: Peer,
    number: u16,
    /// Number of the digest message.
    part: u16,
    what: &'static str,
}

impl Explicit {
    fn of(scheme: &Scheme, supplier: Holder) -> Option<Self> {
        match supplier {
            Holder::Owner(owner) => Some(Explicit {
                component: scheme.owners_explicit(),
                peer: Peer::Owner(owner),
                number: owner,
                part: owner,
                what: "an owner's shares",
            }),
            Holder::Party(party) => Some(Explicit {
                component: scheme.explicit(party),
                peer: Peer::Party(party),
                number: party.index() as u16,
                part: PARTIES + party.index() as u16,
                what: "a party's shares",
            }),
            Holder::Stored | Holder::Column => None,
        }
    }

    /// The others that got them, if `me` did.
    fn others(&self, scheme: &Scheme, me: PartyId) -> impl Iterator<Item = PartyId> {
        let supplier = self.peer;
        let others = scheme.other_holders(me, self.component);
        others.filter(move |other| supplier != Peer::Party(me) && supplier != Peer::Party(*other))
    }
}

/// Digests that two parties tell each other.
struct Compared {
    mine: Span,
    theirs: Span,
    part: u16,
    suspects: Vec<Peer>,
    what: &'static str,
}

impl Compared {
    fn with(self, round: &mut Round, other: PartyId) {
        let other = Peer::Party(other);
        round.sends.push(transfer(self.mine, other, self.part));
        round.recvs.push(transfer(self.theirs, other, self.part));
        check(round, self.mine, self.theirs, self.suspects, self.what);
    }
}
