//! Moves among four parties, against one that does anything: a step for each party, twelve elements for each row.
//!
//! In step g all parties but P_g permute the components that they hold by factor π_g, which P_g lacks, and add fresh masks whose sum is zero:
//!
//! ```text
//! u'_c = π_g(u_c) + r_c,   r_g = -Σ r_c over c ≠ g
//! ```
//!
//! P_g is sent its three components: each is a joint message of the two others that hold it. One sends it, and the other vouches for it with an
//! authentication code under the key that it shares with P_g, as for products. P_g compares in the round, before it does anything else (rule R1), so
//! that an error is found before anything that depends on it leaves.
//!
//! P_g sees three values that masks hide, and knows nothing of π_g. No other party receives anything. What was checked may be opened at once: a step is
//! over when the codes of all columns are right. Against a semi-honest party there are no codes.

use veil_device::{Command, Op, PrfCall, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::moves::Moving;
use super::regions::{FIRST, Places};
use super::{ColumnForm, MoveKind};
use crate::rep4::pair_key;
use crate::replicated::{Component, Exchange, check, label, transfer};
use crate::round::Round;

/// Who gives P_g component c: who sends it, and who vouches.
pub(super) fn givers(rotation: u8, g: usize, c: usize) -> [PartyId; 2] {
    let mut pair = (0..4).filter(|party| ![g, c].contains(party));
    let pair = [pair.next(), pair.next()].map(|party| PartyId::FOUR[party.unwrap_or(0)]);
    let [first, second] = pair;
    // So that all parties send as much, over both of two passes.
    if (usize::from(rotation) + g + c).is_multiple_of(2) {
        [first, second]
    } else {
        [second, first]
    }
}

/// The steps in their order.
pub(super) fn steps(kind: MoveKind) -> [usize; 4] {
    match kind {
        MoveKind::There | MoveKind::Along | MoveKind::Open | MoveKind::Rank => [0, 1, 2, 3],
        MoveKind::Back => [3, 2, 1, 0],
    }
}

/// Number of a column's message, and of a code, which are behind those of all columns.
fn part(moving: &Moving<'_>, index: Option<usize>, c: Component) -> u16 {
    let index = index.unwrap_or(moving.plan.columns.len());
    4 * index as u16 + c.number()
}

/// The rounds of a party.
pub(super) fn rounds(moving: &Moving<'_>) -> Vec<Round> {
    let kind = moving.plan.kind;
    let mut rounds: Vec<Round> = (0..)
        .zip(steps(kind))
        .map(|(k, g)| step(moving, k, g))
        .collect();
    if kind.draws() {
        let drawn = super::draw(moving, DomainTag::perm4);
        rounds[0].begin_with(drawn.collect());
    }
    if kind == MoveKind::Open {
        rounds.push(open(moving));
    }
    if moving.plan.orders {
        let moved = moving.columns().skip(usize::from(kind == MoveKind::Open));
        let commands = moved.flat_map(|(index, _)| super::order(moving, index));
        let commands: Vec<Command> = commands.collect();
        match (kind, rounds.last_mut()) {
            (MoveKind::Back, _) => rounds[0].begin_with(commands),
            (_, Some(last)) => last.finish.extend(commands),
            (_, None) => {}
        }
    }
    rounds
}

fn step(moving: &Moving<'_>, k: u32, g: usize) -> Round {
    let mut round = Round {
        place: FIRST + k,
        ..Round::default()
    };
    if moving.me.index() == g {
        receive(moving, &mut round, k);
        return round;
    }
    let to = PartyId::FOUR[g];
    let lacks = Component(g);
    let key = moving.scheme.part_of(moving.me, lacks);
    let key = key.expect("all parties but one hold the key of a step");
    for column in moving.columns() {
        permute(moving, &mut round, column, (key, lacks));
    }
    for own in moving.scheme.parts() {
        let c = moving.scheme.component_of(moving.me, own);
        if c == lacks {
            continue;
        }
        let [sender, _] = givers(moving.plan.rotation, g, c.0);
        if moving.me == sender {
            for (index, _) in moving.columns() {
                let number = part(moving, Some(index), c);
                let span = Places::part(index, own);
                round.sends.push(transfer(span, Peer::Party(to), number));
            }
        } else if moving.scheme.products.macs > 0 {
            let mac = moving.places.mac(0, own.into());
            round.local.push(code(moving, to, (c, own), k, mac));
            let number = part(moving, None, c);
            round.sends.push(transfer(mac, Peer::Party(to), number));
        }
    }
    round
}

/// The components of a column, after a step in which this party is one of three that permute them.
fn permute(
    moving: &Moving<'_>,
    round: &mut Round,
    column: (usize, ColumnForm),
    (key, lacks): (u8, Component),
) {
    let (index, form) = column;
    let back = moving.plan.kind == MoveKind::Back;
    let [moved, masks @ ..] = [0, 1, 2].map(|which| moving.places.message(index, which));
    let here = |c: Component| {
        let part = moving.scheme.part_of(moving.me, c);
        Places::part(index, part.expect("a component that the party holds"))
    };
    let permuted = |c: Component| {
        let by = moving.places.factor(key);
        Command::new(Op::Permute { back }, vec![here(c), by], vec![moved])
    };
    let call = |c: Component| moving.call(key, DomainTag::move4(c.number() as u8), index);
    let (plus, minus) = (false, true);
    let own = Component(moving.me.index());
    let held = moving.scheme.components();
    let held = held.filter(|c| ![own, lacks].contains(c));
    for (c, mask) in held.zip(masks) {
        let sum = [plus; 2].into_iter();
        round.local.extend([
            permuted(c),
            super::combined(form, vec![], std::iter::empty(), vec![call(c)], mask),
            super::combined(form, vec![moved, mask], sum, vec![], here(c)),
        ]);
    }
    // The sum of these masks, and of that of the component that it lacks, is what component `lacks` is masked with.
    let (src, signs) = ([moved, masks[0], masks[1]], [plus, minus, minus, minus]);
    let signs = signs.into_iter();
    round.local.extend([
        permuted(lacks),
        super::combined(form, src.to_vec(), signs, vec![call(own)], here(lacks)),
    ]);
}

/// The components that this party is given in its step, and their codes.
fn receive(moving: &Moving<'_>, round: &mut Round, k: u32) {
    for own in moving.scheme.parts() {
        let c = moving.scheme.component_of(moving.me, own);
        let [sender, voucher] = givers(moving.plan.rotation, moving.me.index(), c.0);
        let [from, by] = [sender, voucher].map(Peer::Party);
        for (index, _) in moving.columns() {
            let number = part(moving, Some(index), c);
            let span = Places::part(index, own);
            round.recvs.push(transfer(span, from, number));
        }
        if moving.scheme.products.macs > 0 {
            let [mine, theirs] = [1, 2].map(|group| moving.places.mac(group, own.into()));
            let number = part(moving, None, c);
            round.recvs.push(transfer(theirs, by, number));
            round.finish.push(code(moving, voucher, (c, own), k, mine));
            check(
                round,
                mine,
                theirs,
                vec![from, by],
                "a joint message of a move",
            );
        }
    }
}

/// The code of a component of all columns in step `k`, under the key of this party and another.
fn code(
    moving: &Moving<'_>,
    other: PartyId,
    (c, own): (Component, u8),
    k: u32,
    to: Span,
) -> Command {
    let columns = moving.columns().map(|(index, _)| Places::part(index, own));
    let mut command = Command::new(Op::Mac, columns.collect(), vec![to]);
    command.calls = vec![PrfCall {
        key: pair_key(moving.me, other),
        tag: DomainTag::mac4(c.number() as u8),
        first: k.into(),
    }];
    command
}

/// Opens what moved in column 0: every party is sent the component that it lacks, and a digest of it.
fn open(moving: &Moving<'_>) -> Round {
    let scheme = moving.scheme;
    let mut round = Round {
        place: FIRST + 4,
        ..Round::default()
    };
    let received = scheme.parts.len() as u8;
    let span = |part: u8| match part {
        _ if part == received => moving.places.message(0, 0),
        _ => Places::part(0, part),
    };
    let exchange = Exchange {
        scheme,
        spans: &|part| vec![span(part)],
        number: &|component, k| 2 * component.number() + k,
        digest: &|component, k| {
            // This party's own digest of what it vouches for, and of what it receives, are of different components.
            let receives = component == scheme.missing(moving.me);
            moving.places.digest(2 * u32::from(receives) + k)
        },
        label: label::MOVED,
        what: "an opened component of positions",
    };
    exchange.among(&mut round, moving.me, scheme.parties);
    let all = (0..=received).map(span).collect();
    let form = moving.plan.columns[0];
    let to = moving.places.opened();
    let none = std::iter::empty();
    round
        .finish
        .push(super::combined(form, all, none, vec![], to));
    super::look(moving, &mut round);
    round
}
