//! Agreement, then openings: each missing component arrives once in clear and once as a digest, from its two holders, and is used only if
//! they match (rules R1 and R2, attack case A3).

use veil_device::{Command, Op, Span};
use veil_program::Audience;
use veil_session::{PartyId, Peer};

use super::regions::{self, OPEN, OPEN_SUMS, OPENED, OPENED_SUMS};
use super::{OWN, PREVIOUS, check, combine, label, place, transfer};
use crate::plan::{Gives, Plan};
use crate::round::Round;

/// Where a party puts the component that it receives.
const RECEIVED: u8 = 2;

/// Every party tells the others that all its checks have passed.
pub(super) fn agree(me: Peer) -> Vec<Round> {
    let Peer::Party(me) = me else {
        return Vec::new();
    };
    let mut round = Round {
        place: place::AGREE,
        ..Round::default()
    };
    round.local.push(Command::new(
        Op::Hash {
            label: label::AGREE,
        },
        vec![],
        vec![regions::agreement(0)],
    ));
    for (k, peer) in [(1, me.next()), (2, me.previous())] {
        let peer = Peer::Party(peer);
        round.sends.push(transfer(regions::agreement(0), peer, 0));
        round.recvs.push(transfer(regions::agreement(k), peer, 0));
        check(
            &mut round,
            regions::agreement(0),
            regions::agreement(k),
            vec![peer],
            "the agreement to open",
        );
    }
    vec![round]
}

/// All ports that are opened per chunk, or all sums, in one round.
pub(super) fn open(plan: &Plan, me: Peer, totals: bool) -> Vec<Round> {
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

/// Puts both components of every port that the parties keep, and that gives `gives`, where the host finds them.
pub(super) fn keep(plan: &Plan, gives: Gives) -> Vec<Command> {
    let ports = regions::kept(plan, gives);
    ports
        .flat_map(|port| {
            let output = &plan.outputs[port];
            [OWN, PREVIOUS].map(|part| {
                let to = regions::output(plan, port, OPEN, OPEN_SUMS, part);
                combine(plan.ring, vec![regions::result(output, part)], 0, to)
            })
        })
        .collect()
}

struct Port<'a> {
    plan: &'a Plan,
    index: usize,
    span: &'a dyn Fn(u8) -> Span,
    label: u16,
}

impl Port<'_> {
    /// Number of the value message of component `c`; that of its digest is one more.
    fn part(&self, component: PartyId) -> u16 {
        (self.index * 6 + component.index() * 2) as u16
    }

    fn digest(&self, k: u32) -> Span {
        regions::open_digest(self.plan, self.index, k)
    }

    fn hash(&self, component: PartyId, of: Span, k: u32) -> Command {
        Command::new(
            Op::Hash {
                label: self.label + component.index() as u16,
            },
            vec![of],
            vec![self.digest(k)],
        )
    }

    fn at_party(&self, round: &mut Round, me: PartyId, audience: Audience) {
        let ring = self.plan.ring;
        let from = |part| {
            let output = self.plan.outputs[self.index];
            regions::result(&output, part)
        };
        for part in [OWN, PREVIOUS] {
            round
                .local
                .push(combine(ring, vec![from(part)], 0, (self.span)(part)));
        }
        // Own component: u_me; previous: u_{me-1}; missing: u_{me+1}.
        let missing = me.next();
        let send_value = |round: &mut Round, part: u8, component: PartyId, to| {
            round
                .sends
                .push(transfer((self.span)(part), to, self.part(component)));
        };
        let send_digest = |round: &mut Round, part: u8, component: PartyId, to| {
            round.local.push(self.hash(component, (self.span)(part), 0));
            round
                .sends
                .push(transfer(self.digest(0), to, self.part(component) + 1));
        };
        match audience {
            Audience::Recipient(r) => {
                send_value(round, OWN, me, Peer::Recipient(r));
                send_digest(round, PREVIOUS, me.previous(), Peer::Recipient(r));
                return;
            }
            Audience::Party(p) if p == me.next() => {
                return send_value(round, PREVIOUS, me.previous(), Peer::Party(p));
            }
            Audience::Party(p) if p == me.previous() => {
                return send_digest(round, OWN, me, Peer::Party(p));
            }
            Audience::Party(_) | Audience::Stored => {}
            Audience::Parties => {
                send_value(round, PREVIOUS, me.previous(), Peer::Party(me.next()));
                send_digest(round, OWN, me, Peer::Party(me.previous()));
            }
        }
        let (next, previous) = (Peer::Party(me.next()), Peer::Party(me.previous()));
        round.recvs.push(transfer(
            (self.span)(RECEIVED),
            previous,
            self.part(missing),
        ));
        round
            .recvs
            .push(transfer(self.digest(3), next, self.part(missing) + 1));
        round
            .finish
            .push(self.hash(missing, (self.span)(RECEIVED), 1));
        check(
            round,
            self.digest(1),
            self.digest(3),
            vec![previous, next],
            "an opened component",
        );
        self.reveal(round);
    }

    fn at_recipient(&self, round: &mut Round) {
        for component in PartyId::ALL {
            let c = component.index() as u8;
            let (holder, other) = (Peer::Party(component), Peer::Party(component.next()));
            let theirs = self.digest(3 + u32::from(c));
            round
                .recvs
                .push(transfer((self.span)(c), holder, self.part(component)));
            round
                .recvs
                .push(transfer(theirs, other, self.part(component) + 1));
            round
                .finish
                .push(self.hash(component, (self.span)(c), u32::from(c)));
            check(
                round,
                self.digest(u32::from(c)),
                theirs,
                vec![holder, other],
                "an opened component",
            );
        }
        self.reveal(round);
    }

    /// The sum of all three components: the last command of a port, after its checks.
    fn reveal(&self, round: &mut Round) {
        let to = regions::output(self.plan, self.index, OPENED, OPENED_SUMS, 0);
        round.finish.push(combine(
            self.plan.ring,
            (0..3).map(self.span).collect(),
            0,
            to,
        ));
    }
}
