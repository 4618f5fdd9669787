//! Agreement, then openings: each missing component arrives once in clear and as a digest from another holder, at a recipient from each
//! other holder, and is used only if they match (rules R1 and R2, attack case A3).

use veil_device::{Command, Op, Span};
use veil_program::Audience;
use veil_session::{PartyId, Peer};

use super::regions::{self, Digests, OPEN, OPEN_SUMS, OPENED, OPENED_SUMS};
use super::scheme::{Component, Scheme};
use super::{check, combine, label, place, transfer};
use crate::plan::{Gives, Plan};
use crate::round::Round;

/// Every party tells the others that all its checks have passed.
pub(super) fn agree(scheme: &Scheme, me: Peer) -> Vec<Round> {
    let Peer::Party(me) = me else {
        return Vec::new();
    };
    let mut round = Round {
        place: place::AGREE,
        ..Round::default()
    };
    let mine = Digests::agreement(0);
    let op = Op::Hash {
        label: label::AGREE,
    };
    round.local.push(Command::new(op, vec![], vec![mine]));
    for (k, peer) in (1..).zip(scheme.others(me)) {
        let (peer, theirs) = (Peer::Party(peer), Digests::agreement(k));
        round.sends.push(transfer(mine, peer, 0));
        round.recvs.push(transfer(theirs, peer, 0));
        check(
            &mut round,
            mine,
            theirs,
            vec![peer],
            "the agreement to open",
        );
    }
    vec![round]
}

/// All ports that are opened per chunk, or all sums, in one round.
pub(super) fn open(scheme: &Scheme, plan: &Plan, me: Peer, totals: bool) -> Vec<Round> {
    let place = if totals {
        place::OPEN_TOTALS
    } else {
        place::OPEN
    };
    let mut round = Round {
        place,
        ..Round::default()
    };
    let gives = if totals { Gives::Sum } else { Gives::Row };
    for (port, _) in plan
        .outputs
        .iter()
        .enumerate()
        .filter(|(_, o)| o.gives == gives)
    {
        let span = |part| regions::output(plan, port, OPEN, OPEN_SUMS, part);
        let port = Port {
            scheme,
            plan,
            index: port,
            span: &span,
            label: if totals {
                label::OPEN_TOTALS
            } else {
                label::OPEN
            },
        };
        match (me, plan.job.audiences[port.index]) {
            (_, Audience::Stored) => {}
            (Peer::Party(me), audience) => port.at_party(&mut round, me, audience),
            (Peer::Recipient(me), Audience::Recipient(r)) if me == r => {
                port.at_recipient(&mut round);
            }
            (Peer::Owner(_) | Peer::Recipient(_), _) => {}
        }
    }
    if round.local.is_empty() && round.recvs.is_empty() {
        vec![]
    } else {
        vec![round]
    }
}

/// Puts all parts of every port that the parties keep, and that gives `gives`, where the host finds them.
pub(super) fn keep(scheme: &Scheme, plan: &Plan, gives: Gives) -> Vec<Command> {
    let mut commands = Vec::new();
    for port in regions::kept(plan, gives) {
        for part in scheme.parts() {
            let to = regions::output(plan, port, OPEN, OPEN_SUMS, part);
            let from = regions::result(&plan.outputs[port], part);
            commands.push(combine(plan.ring, vec![from], 0, to));
        }
    }
    commands
}

struct Port<'a> {
    scheme: &'a Scheme,
    plan: &'a Plan,
    index: usize,
    span: &'a dyn Fn(u8) -> Span,
    label: u16,
}

impl Port<'_> {
    /// Number of the value message of a component; that of its digest is one more.
    fn part(&self, component: Component) -> u16 {
        (self.index * 2 * self.scheme.parties.len()) as u16 + 2 * component.number()
    }

    /// Where the digest of a component is: 0 computed here, k received from the k-th who vouches for it.
    fn digest(&self, component: Component, k: u32) -> Span {
        Digests::of(self.scheme, self.plan).open(self.index, component, k)
    }

    fn hash(&self, component: Component, of: Span) -> Command {
        let label = self.label + component.number();
        Command::new(
            Op::Hash { label },
            vec![of],
            vec![self.digest(component, 0)],
        )
    }

    /// Who sends `component` to whom: its value, and digests of it.
    fn givers(&self, component: Component, to: Option<PartyId>) -> (PartyId, Vec<PartyId>) {
        if let Some(party) = to {
            // The neighbours of whoever lacks it.
            let (previous, next) = (self.scheme.previous(party), self.scheme.next(party));
            return (previous, vec![next]);
        }
        let mut holders = self.scheme.holders(component);
        let first = holders.next().expect("somebody holds it");
        (first, holders.collect())
    }

    /// What `me` sends of `component`.
    fn give(
        &self,
        round: &mut Round,
        me: PartyId,
        component: Component,
        to: Option<PartyId>,
        peer: Peer,
    ) {
        let Some(part) = self.scheme.part_of(me, component) else {
            return;
        };
        let (value, digests) = self.givers(component, to);
        if value == me {
            let span = (self.span)(part);
            round.sends.push(transfer(span, peer, self.part(component)));
        } else if digests.contains(&me) {
            round.local.push(self.hash(component, (self.span)(part)));
            let digest = self.digest(component, 0);
            round
                .sends
                .push(transfer(digest, peer, self.part(component) + 1));
        }
    }

    /// Receives `component` into part `part` of what is opened, and checks it.
    fn take(&self, round: &mut Round, component: Component, part: u8, to: Option<PartyId>) {
        let (value, digests) = self.givers(component, to);
        let span = (self.span)(part);
        let value = Peer::Party(value);
        round
            .recvs
            .push(transfer(span, value, self.part(component)));
        round.finish.push(self.hash(component, span));
        for (k, other) in (1..).zip(digests) {
            let (other, theirs) = (Peer::Party(other), self.digest(component, k));
            round
                .recvs
                .push(transfer(theirs, other, self.part(component) + 1));
            check(
                round,
                self.digest(component, 0),
                theirs,
                vec![value, other],
                "an opened component",
            );
        }
    }

    fn at_party(&self, round: &mut Round, me: PartyId, audience: Audience) {
        let output = self.plan.outputs[self.index];
        for part in self.scheme.parts() {
            let from = regions::result(&output, part);
            let to = (self.span)(part);
            round.local.push(combine(self.plan.ring, vec![from], 0, to));
        }
        let receivers: Vec<PartyId> = match audience {
            Audience::Recipient(r) => {
                for part in self.scheme.parts() {
                    let component = self.scheme.component_of(me, part);
                    self.give(round, me, component, None, Peer::Recipient(r));
                }
                return;
            }
            Audience::Parties => self.scheme.parties.to_vec(),
            Audience::Party(party) => vec![party],
            Audience::Stored => return,
        };
        for party in receivers.iter().copied().filter(|party| *party != me) {
            let component = self.scheme.missing(party);
            self.give(round, me, component, Some(party), Peer::Party(party));
        }
        if receivers.contains(&me) {
            let received = self.scheme.parts.len() as u8;
            self.take(round, self.scheme.missing(me), received, Some(me));
            self.reveal(round);
        }
    }

    fn at_recipient(&self, round: &mut Round) {
        for component in self.scheme.components() {
            self.take(round, component, component.number() as u8, None);
        }
        self.reveal(round);
    }

    /// The sum of all components: the last command of a port, after its checks.
    fn reveal(&self, round: &mut Round) {
        let to = regions::output(self.plan, self.index, OPENED, OPENED_SUMS, 0);
        let components = 0..self.scheme.parties.len() as u8;
        round.finish.push(combine(
            self.plan.ring,
            components.map(self.span).collect(),
            0,
            to,
        ));
    }
}
