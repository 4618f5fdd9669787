//! Positions of rows by the digit of a key, one round: a product of columns with running sums ([`Op::Rank`]), whose messages are those of one product in
//! every row.
//!
//! Running sums are local. Among three parties the component that a party computes is its message, and the next party's; among four cross terms are
//! joint messages, with codes as those of a layer of products have them, and are checked before anything is added (rule R1).

use veil_device::ColumnType;
use veil_device::{Command, Form, Layout, Op, PrfCall, Region, Residency, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::MovePlan;
use super::moves::Moving;
use super::regions::FIRST;
use crate::rep3::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS};
use crate::rep4::layers::{CROSSES, JOINT, drawn_for, form};
use crate::rep4::pair_key;
use crate::replicated::{Component, Scheme, check, combine, transfer};
use crate::round::{Cost, Round, Spans, Stored};

const RING: Ring = Ring::Z32;
/// Bytes of an authentication code.
const CODE: u32 = 16;
/// Most joint messages that one party vouches for, and that one receives.
const MOST_CODES: u32 = 2;

/// Number of the code of a joint message, behind the messages of all of them.
fn code_part(joint: usize) -> u16 {
    (JOINT.len() + joint) as u16
}

/// Where things are, behind the indicators.
struct Places {
    digits: u16,
}

impl Places {
    const fn one(region: u16, component: u8, first: u32) -> Span {
        Span {
            region,
            component,
            first,
            count: 1,
        }
    }

    const fn position(&self, part: u8) -> Span {
        Self::one(self.digits, part, 0)
    }

    /// The message of cross term `k`.
    const fn sent(&self, k: u8) -> Span {
        Self::one(self.digits + 1, k, 0)
    }

    /// The `k`-th joint message that this party receives.
    const fn received(&self, k: u8) -> Span {
        Self::one(self.digits + 2, k, 0)
    }

    /// The `k`-th code of those that are sent (0), computed (1) or received (2).
    const fn mac(&self, group: u32, k: u32) -> Span {
        Self::one(self.digits + 3, 0, MOST_CODES * group + k)
    }
}

/// The workspace of a party, what it takes and leaves, and its round.
pub(super) fn of(moving: &Moving<'_>) -> (Layout, Spans, Vec<Round>) {
    let places = Places {
        digits: moving.plan.columns.len() as u16,
    };
    let round = match moving.scheme.parties.len() {
        3 => three(moving, &places),
        _ => four(moving, &places),
    };
    (layout(moving), spans(moving, &places), vec![round])
}

fn layout(moving: &Moving<'_>) -> Layout {
    let scheme = moving.scheme;
    let four = scheme.parties.len() == 4;
    let mut layout = Layout {
        chunk_rows: moving.plan.rows,
        regions: Vec::new(),
    };
    let lent = |components: u8| Region {
        residency: Residency::Lent,
        column: ColumnType::Rows(RING),
        components,
        count: 1,
    };
    let parts = scheme.parts.len() as u8;
    for _ in &moving.plan.columns {
        layout.add(lent(parts));
    }
    layout.add(lent(parts));
    if four {
        layout.add(lent(scheme.products.messages));
        layout.add(lent(MOST_CODES as u8));
        layout.add(Region {
            residency: Residency::Mapped,
            column: ColumnType::Bytes(CODE),
            components: 1,
            count: 3 * MOST_CODES,
        });
    }
    layout
}

fn spans(moving: &Moving<'_>, places: &Places) -> Spans {
    let parts = || moving.scheme.parts();
    let taken = (0..moving.plan.columns.len()).map(|port| Stored {
        port,
        components: parts()
            .map(|part| Places::one(port as u16, part, 0))
            .collect(),
    });
    Spans {
        constants: (moving.scheme.constants)(RING, moving.me),
        takes: taken.collect(),
        leaves: vec![Stored {
            port: 0,
            components: parts().map(|part| places.position(part)).collect(),
        }],
        ..Spans::default()
    }
}

/// The command, with all of its indicators.
fn rank(moving: &Moving<'_>, form: &'static Form, dst: Vec<Span>, calls: Vec<PrfCall>) -> Command {
    let digits = 0..moving.plan.columns.len() as u16;
    let parts = || moving.scheme.parts();
    let src = digits.flat_map(|digit| parts().map(move |part| Places::one(digit, part, 0)));
    let mut command = Command::new(Op::Rank(form), src.collect(), dst);
    command.constants = (moving.scheme.constants)(RING, moving.me);
    command.calls = calls;
    command
}

fn round() -> Round {
    Round {
        place: FIRST,
        ..Round::default()
    }
}

fn three(moving: &Moving<'_>, places: &Places) -> Round {
    let [own, previous] = [OWN, PREVIOUS].map(|part| places.position(part));
    let call = |key| PrfCall {
        key,
        tag: DomainTag::MUL3,
        first: 0,
    };
    let calls = vec![call(KEY_OWN), call(KEY_PREVIOUS)];
    let mut round = round();
    round
        .local
        .push(rank(moving, Form::replicated(RING), vec![own], calls));
    let (next, before) = (
        moving.scheme.next(moving.me),
        moving.scheme.previous(moving.me),
    );
    round.sends.push(transfer(own, Peer::Party(next), 0));
    round.recvs.push(transfer(previous, Peer::Party(before), 0));
    round
}

fn four(moving: &Moving<'_>, places: &Places) -> Round {
    let (scheme, me, odd) = (moving.scheme, moving.me, is_odd(moving.plan));
    let checked = scheme.products.macs > 0;
    let (form, drawn) = form(RING, me);
    let drawn = drawn.into_iter();
    let calls = drawn.map(|joint| drawn_for(me, joint, DomainTag::joint4, 0));
    let components = scheme.parts().map(|part| places.position(part));
    let messages = (0..scheme.products.messages).map(|k| places.sent(k));
    let dst = components.chain(messages).collect();
    let mut round = round();
    round.local.push(rank(moving, form, dst, calls.collect()));
    let mut codes = 0;
    for (k, joint) in (0..).zip(CROSSES[me.index()]) {
        let receiver = PartyId::FOUR[JOINT[joint].receiver];
        let to = Peer::Party(receiver);
        if JOINT[joint].givers(odd)[0] == me {
            let sent = transfer(places.sent(k), to, joint as u16);
            round.sends.push(sent);
        } else if checked {
            let mac = places.mac(0, codes);
            codes += 1;
            round
                .local
                .push(code(me, receiver, joint, places.sent(k), mac));
            round.sends.push(transfer(mac, to, code_part(joint)));
        }
    }
    let mut added = Vec::new();
    let received = (0..JOINT.len()).filter(|joint| JOINT[*joint].receiver == me.index());
    for (k, joint) in (0..).zip(received) {
        let [from, by] = JOINT[joint].givers(odd);
        let got = places.received(k);
        let sender = Peer::Party(from);
        round.recvs.push(transfer(got, sender, joint as u16));
        if checked {
            let [mine, theirs] = [1, 2].map(|group| places.mac(group, k.into()));
            let voucher = Peer::Party(by);
            round
                .recvs
                .push(transfer(theirs, voucher, code_part(joint)));
            round.finish.push(code(me, by, joint, got, mine));
            let givers = vec![sender, voucher];
            check(
                &mut round,
                mine,
                theirs,
                givers,
                "a joint message of positions",
            );
        }
        let part = scheme.part_of(me, Component(JOINT[joint].outsider));
        let part = part.expect("a party lacks the component of its own number alone");
        let position = places.position(part);
        added.push(combine(RING, vec![position, got], 0, position));
    }
    // After all checks.
    round.finish.extend(added);
    round
}

/// Sender and voucher change places from one pass to the next.
fn is_odd(plan: &MovePlan) -> bool {
    plan.rotation % 2 == 1
}

/// The code of a joint message, under the key of this party and another.
fn code(me: PartyId, other: PartyId, joint: usize, of: Span, to: Span) -> Command {
    let mut command = Command::new(Op::Mac, vec![of], vec![to]);
    command.calls = vec![PrfCall {
        key: pair_key(me, other),
        tag: DomainTag::mac4(joint as u8),
        first: 0,
    }];
    command
}

/// A message to the next party of three; of four, every joint message that the party sends, and a code of every one that it vouches for.
pub(super) fn cost(scheme: &Scheme, plan: &MovePlan, me: PartyId) -> Cost {
    let bytes = RING.bytes(plan.rows.into());
    if scheme.parties.len() == 3 {
        return Cost {
            rounds: 1,
            messages: 1,
            bytes,
        };
    }
    let mut cost = Cost {
        rounds: 1,
        ..Cost::default()
    };
    for joint in CROSSES[me.index()] {
        if JOINT[joint].givers(is_odd(plan))[0] == me {
            cost.messages += 1;
            cost.bytes += bytes;
        } else if scheme.products.macs > 0 {
            cost.messages += 1;
            cost.bytes += u64::from(CODE);
        }
    }
    cost
}
