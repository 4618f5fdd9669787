//! Agreement, then openings: each missing component arrives once in clear and as a digest from another holder, at a recipient from each
//! other holder, and is used only if they match (rules R1 and R2, attack case A3).

use veil_device::{Command, Op, Span};
use veil_job::Audience;
use veil_session::{PartyId, Peer};

use super::digests::Digests;
use super::regions::{self, OPEN, OPEN_SUMS, OPENED, OPENED_SUMS};
use super::scheme::{Component, Scheme};
use super::{check, combine, convert, label, place, transfer};
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
            (_, Audience::Stored | Audience::Column) => {}
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

/// Puts all parts of every port that the parties keep, and that gives `gives`, where the host finds them, and says which slots are columns.
pub(super) fn keep(scheme: &Scheme, plan: &Plan, gives: Gives) -> Vec<Command> {
    let mut commands = Vec::new();
    let columns = regions::columns(plan).filter(|_| gives == Gives::Row);
    let columns: Vec<Span> = columns
        .flat_map(|port| {
            scheme
                .parts()
                .map(move |part| regions::result(&plan.outputs[port], part))
        })
        .collect();
    if !columns.is_empty() {
        commands.push(Command::new(Op::Publish, columns, vec![]));
    }
    for port in regions::kept(plan, gives) {
        for part in scheme.parts() {
            let to = regions::output(plan, port, OPEN, OPEN_SUMS, part);
            let from = regions::result(&plan.outputs[port], part);
            commands.push(convert(plan, from, to));
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

/// How components of something reach those who lack them: each once in clear, and as digests from others who hold it.
pub(crate) struct Exchange<'a> {
    pub(crate) scheme: &'a Scheme,
    /// What is exchanged of part `part`: a message each.
    pub(crate) spans: &'a dyn Fn(u8) -> Vec<Span>,
    /// Number of a component's message, of those of `spans`; that of its digest comes behind them.
    pub(crate) number: &'a dyn Fn(Component, u16) -> u16,
    /// Where the digest of a component is: 0 computed here, k received from the k-th who vouches for it.
    pub(crate) digest: &'a dyn Fn(Component, u32) -> Span,
    /// Of digests, with the component's number added.
    pub(crate) label: u16,
    /// What is compared, for the log.
    pub(crate) what: &'static str,
}

impl Exchange<'_> {
    fn hash(&self, component: Component, of: Vec<Span>) -> Command {
        let label = self.label + component.number();
        Command::new(Op::Hash { label }, of, vec![(self.digest)(component, 0)])
    }

    /// Who sends `component` to whom: its value, and digests of it.
    fn givers(&self, component: Component, to: Option<PartyId>) -> (PartyId, Vec<PartyId>) {
        if let Some(party) = to {
            // The neighbours of the party that lacks it.
            let (previous, next) = (self.scheme.previous(party), self.scheme.next(party));
            return (previous, vec![next]);
        }
        let mut holders = self.scheme.holders(component);
        let first = holders.next().expect("a party holds it");
        (first, holders.collect())
    }

    /// What `me` sends of `component`.
    pub(crate) fn give(
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
        let spans = (self.spans)(part);
        if value == me {
            for (k, span) in (0..).zip(spans) {
                let number = (self.number)(component, k);
                round.sends.push(transfer(span, peer, number));
            }
        } else if digests.contains(&me) {
            let number = (self.number)(component, spans.len() as u16);
            round.local.push(self.hash(component, spans));
            let digest = (self.digest)(component, 0);
            round.sends.push(transfer(digest, peer, number));
        }
    }

    /// Receives `component` into part `part` of what is opened, and checks it.
    pub(crate) fn take(
        &self,
        round: &mut Round,
        component: Component,
        part: u8,
        to: Option<PartyId>,
    ) {
        let (value, digests) = self.givers(component, to);
        let spans = (self.spans)(part);
        let value = Peer::Party(value);
        let number = |k| (self.number)(component, k);
        for (k, span) in (0..).zip(&spans) {
            round.recvs.push(transfer(*span, value, number(k)));
        }
        let behind = number(spans.len() as u16);
        round.finish.push(self.hash(component, spans));
        for (k, other) in (1..).zip(digests) {
            let (other, theirs) = (Peer::Party(other), (self.digest)(component, k));
            round.recvs.push(transfer(theirs, other, behind));
            check(
                round,
                (self.digest)(component, 0),
                theirs,
                vec![value, other],
                self.what,
            );
        }
    }

    /// Every one of `receivers` gets the component that it lacks.
    pub(crate) fn among(&self, round: &mut Round, me: PartyId, receivers: &[PartyId]) {
        for party in receivers.iter().copied().filter(|party| *party != me) {
            let component = self.scheme.missing(party);
            self.give(round, me, component, Some(party), Peer::Party(party));
        }
        if receivers.contains(&me) {
            let received = self.scheme.parts.len() as u8;
            self.take(round, self.scheme.missing(me), received, Some(me));
        }
    }
}

impl Port<'_> {
    fn exchange(&self, act: impl FnOnce(&Exchange<'_>)) {
        let digests = Digests::of(self.scheme, self.plan);
        let first = self.index * 2 * self.scheme.parties.len();
        act(&Exchange {
            scheme: self.scheme,
            spans: &|part| vec![(self.span)(part)],
            number: &|component, k| first as u16 + 2 * component.number() + k,
            digest: &|component, k| digests.open(self.index, component, k),
            label: self.label,
            what: "an opened component",
        });
    }

    fn at_party(&self, round: &mut Round, me: PartyId, audience: Audience) {
        let output = self.plan.outputs[self.index];
        for part in self.scheme.parts() {
            let from = regions::result(&output, part);
            let to = (self.span)(part);
            round.local.push(convert(self.plan, from, to));
        }
        let receivers: Vec<PartyId> = match audience {
            Audience::Recipient(r) => {
                self.exchange(|exchange| {
                    for part in self.scheme.parts() {
                        let component = self.scheme.component_of(me, part);
                        exchange.give(round, me, component, None, Peer::Recipient(r));
                    }
                });
                return;
            }
            Audience::Parties => self.scheme.parties.to_vec(),
            Audience::Party(party) => vec![party],
            Audience::Stored | Audience::Column => return,
        };
        self.exchange(|exchange| exchange.among(round, me, &receivers));
        if receivers.contains(&me) {
            self.reveal(round);
        }
    }

    fn at_recipient(&self, round: &mut Round) {
        self.exchange(|exchange| {
            for component in self.scheme.components() {
                exchange.take(round, component, component.number() as u8, None);
            }
        });
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
