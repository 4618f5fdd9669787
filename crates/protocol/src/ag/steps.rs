//! What the rounds of this protocol are made of.

use veil_device::ag::{Ag, Role};
use veil_device::{Check, Command, Op, PrfCall, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::regions::{self, By, Use};
use crate::round::{Round, Transfer};
use crate::yao::{EVALUATOR, GARBLER, OFFSET, PRIVATE, other, random};

/// One of the two parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Party(pub(super) PartyId);

impl Party {
    pub(super) fn role(self) -> Role {
        if self.0 == GARBLER {
            Role::Garbler
        } else {
            Role::Evaluator
        }
    }

    pub(super) fn garbles(self) -> bool {
        self.0 == GARBLER
    }

    /// The party of a role.
    pub(super) fn of(role: Role) -> Self {
        match role {
            Role::Garbler => Party(GARBLER),
            Role::Evaluator => Party(EVALUATOR),
        }
    }

    pub(super) fn peer(self) -> Peer {
        other(self.0)
    }

    /// Who the party of a role is to this one.
    pub(super) fn by(self, role: Role) -> By {
        if self.role() == role {
            By::Me
        } else {
            By::Them
        }
    }
}

/// A step.
pub(super) fn ag(step: Ag, src: Vec<Span>, dst: Vec<Span>) -> Command {
    Command::new(Op::Ag(step), src, dst)
}

/// A digest, under a label of its own for each kind, of the use of number `first` in the chunk.
pub(super) fn digest(label: u16, first: u64, src: Vec<Span>, to: Span) -> Command {
    let mut command = Command::new(Op::Hash { label }, src, vec![to]);
    command.calls = vec![PrfCall {
        key: PRIVATE,
        tag: DomainTag::AG_CHALLENGE,
        first,
    }];
    command
}

/// The fold of arrays under a challenge; `of` are bits that are added with the own offset.
pub(super) fn fold(challenge: Span, of: Option<Span>, arrays: &[Span], to: Span) -> Command {
    let offset = of.map(|_| OFFSET);
    let src = [&[challenge], of.as_slice(), arrays].concat();
    ag(Ag::Fold { offset }, src, vec![to])
}

/// Compares two spans at the end of a round.
pub(super) fn compare(
    round: &mut Round,
    compared: [Span; 2],
    (suspects, what): (Vec<Peer>, &'static str),
) {
    round.checks.push(Check {
        command: round.finish.len(),
        suspects,
        what,
    });
    let compare = Command::new(Op::CheckEqual, compared.to_vec(), vec![]);
    round.finish.push(compare);
}

/// Rounds of consecutive places.
pub(super) struct Rounds {
    pub(super) me: Party,
    next: u32,
    pub(super) made: Vec<Round>,
}

impl Rounds {
    pub(super) fn new(me: Party, first: u32) -> Self {
        Rounds {
            me,
            next: first,
            made: Vec::new(),
        }
    }

    /// The next round is at this place, and others follow it.
    pub(super) fn go_on_at(&mut self, place: u32) {
        self.next = place;
    }

    /// Another round, which is the last one from now on.
    pub(super) fn next(&mut self) -> &mut Round {
        self.made.push(Round {
            place: self.next,
            ..Round::default()
        });
        self.next += 1;
        self.last()
    }

    /// The last round.
    pub(super) fn last(&mut self) -> &mut Round {
        self.made.last_mut().expect("there is a round")
    }

    /// Rounds of others at consecutive places, of one party's both ends.
    pub(super) fn both(&mut self, ends: [Vec<Round>; 2]) {
        let [one, other] = ends;
        for (one, other) in one.into_iter().zip(other) {
            let mut round = one;
            let before = round.finish.len();
            round.local.extend(other.local);
            round.sends.extend(other.sends);
            round.recvs.extend(other.recvs);
            round.finish.extend(other.finish);
            round
                .checks
                .extend(other.checks.into_iter().map(|check| Check {
                    command: before + check.command,
                    ..check
                }));
            self.next = round.place + 1;
            self.made.push(round);
        }
    }

    /// Sends a span in the last round, as message `part`.
    pub(super) fn send(&mut self, span: Span, part: u16) {
        let peer = self.me.peer();
        if span.count > 0 {
            self.last().sends.push(Transfer::new(span, peer, part));
        }
    }

    /// Receives a span in the last round, as message `part`.
    pub(super) fn receive(&mut self, span: Span, part: u16) {
        let peer = self.me.peer();
        if span.count > 0 {
            self.last().recvs.push(Transfer::new(span, peer, part));
        }
    }

    /// The party of a role sends a span of its own to the other, in the last round.
    pub(super) fn from(&mut self, role: Role, span: impl Fn(By) -> Span, part: u16) {
        match self.me.by(role) {
            By::Me => self.send(span(By::Me), part),
            By::Them => self.receive(span(By::Them), part),
        }
    }

    /// Both send each other a span, in the last round.
    pub(super) fn exchange(&mut self, span: impl Fn(By) -> Span, part: u16) {
        self.send(span(By::Me), part);
        self.receive(span(By::Them), part);
    }

    pub(super) fn local(&mut self, command: Command) {
        self.last().local.push(command);
    }

    pub(super) fn finish(&mut self, command: Command) {
        self.last().finish.push(command);
    }

    /// Compares two spans at the end of the last round: the other party is the suspect.
    pub(super) fn compare(&mut self, compared: [Span; 2], what: &'static str) {
        let suspects = vec![self.me.peer()];
        compare(self.last(), compared, (suspects, what));
    }

    /// A challenge of this party, which it sends in the last round as message `part`.
    pub(super) fn challenge(&mut self, of: Use, first: u64, part: u16) {
        let to = regions::challenge(By::Me, of);
        self.local(random(PRIVATE, DomainTag::AG_CHALLENGE, first, to));
        self.send(to, part);
    }

    /// The other party's challenge, in the last round as message `part`.
    pub(super) fn challenged(&mut self, of: Use, part: u16) {
        self.receive(regions::challenge(By::Them, of), part);
    }
}
