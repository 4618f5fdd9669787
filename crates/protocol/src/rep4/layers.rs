//! Layers of products: six joint messages, one round.
//!
//! The product is the sum of six terms, each of components that one pair of parties holds. For each term t the pair has a *joint message* m
//! = t - ρ to a third party, the receiver; ρ is drawn from the key that all parties but the receiver hold. One of the pair sends m, the
//! other vouches for it. Component `receiver` of the product grows by ρ, and component `outsider` by m.
//!
//! In odd chunks sender and voucher change places, so that all parties send as much. Against semi-honest parties there is no voucher.

use veil_device::{Command, Form, Op, PrfCall, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{SCHEME, lifts, pair_key};
use crate::plan::{LayerPlan, Plan};
use crate::replicated::regions::MACS;
use crate::replicated::{
    Component, Products, Scheme, Work, check, conversions, place, says_products, transfer,
};
use crate::round::{Cost, Round};

/// Four parties, six joint messages: numbers of parties.
pub(crate) struct Joint {
    /// Who computes the term. The first sends in even chunks.
    pub(crate) pair: [usize; 2],
    pub(crate) receiver: usize,
    /// Holds ρ, and neither sends nor receives.
    pub(crate) outsider: usize,
}

const fn joint(pair: [usize; 2], receiver: usize, outsider: usize) -> Joint {
    Joint {
        pair,
        receiver,
        outsider,
    }
}

/// Terms of neighbours (p, p + 1): u_{p+2} w_{p+2} + u_{p+3} w_{p+2} + u_{p+2} w_{p+3}; then of the opposite pairs: u_1 w_3 + u_3 w_1, and
/// u_2 w_0 + u_0 w_2.
pub(crate) static JOINT: [Joint; 6] = [
    joint([0, 1], 3, 2),
    joint([1, 2], 0, 3),
    joint([2, 3], 1, 0),
    joint([3, 0], 2, 1),
    joint([0, 2], 3, 1),
    joint([1, 3], 2, 0),
];

/// Joint messages whose term a party computes, in the order of the form's cross terms: with the next, the previous, the opposite one.
pub(crate) const CROSSES: [[usize; 3]; 4] = [[0, 3, 4], [1, 0, 5], [2, 1, 4], [3, 2, 5]];

/// Most joint messages that one party vouches for, and that one receives.
const MOST_CODES: u32 = 2;

/// With a MAC of each joint message, or without.
pub(super) const fn products<const CHECKED: bool>() -> Products {
    Products {
        messages: 3,
        alternates: true,
        are_shares: false,
        macs: if CHECKED { 3 * MOST_CODES } else { 0 },
        layer: round::<CHECKED>,
        cost: cost::<CHECKED>,
        proof: None,
        check: None,
    }
}

impl Joint {
    /// Who sends, and who vouches.
    pub(crate) fn givers(&self, odd: bool) -> [PartyId; 2] {
        let [first, second] = self.pair.map(|party| PartyId::FOUR[party]);
        if odd {
            [second, first]
        } else {
            [first, second]
        }
    }
}

/// Number of a message of joint message `joint`: products, sums, code; then, behind those of all joint messages, products of bits beside
/// integers; then lifts.
fn part(joint: usize, kind: usize) -> u16 {
    let number = match kind {
        BITS => 3 * JOINT.len() + joint,
        LIFTS => 4 * JOINT.len() + joint,
        _ => 3 * joint + kind,
    };
    number as u16
}

/// The MAC among the messages of a joint message.
const MAC: usize = 2;
/// The products of bits among them.
const BITS: usize = 3;
/// The elements of lifts.
const LIFTS: usize = 4;

/// The messages of cross term `part`, or of what is received in its place, with their kinds, as far as there are any: row products, then sums; then
/// those of bits, and what is `lifted`.
fn messages(
    works: &[Work],
    regions: fn(&Work) -> [u16; 2],
    part: u8,
    lifted: Span,
) -> Vec<(usize, Span)> {
    let mut messages = Vec::new();
    for (number, work) in works.iter().enumerate() {
        let [products, sums] = work.messages(regions(work), part);
        match number {
            0 => messages.extend([(0, products), (1, sums)]),
            _ => messages.push((BITS, products)),
        }
    }
    messages.push((LIFTS, lifted));
    messages.retain(|(_, span)| span.count > 0);
    messages
}

/// Where MACs are: those that this party sends, those that it computes, those that it receives.
fn mac_span(group: u32, k: u32) -> Span {
    Span {
        region: MACS,
        component: 0,
        first: MOST_CODES * group + k,
        count: 1,
    }
}

/// The MAC of joint message `joint` in layer `index`, under the key of `me` and `other`.
fn mac(
    me: PartyId,
    other: PartyId,
    joint: usize,
    index: usize,
    of: &[(usize, Span)],
    to: Span,
) -> Command {
    let of = of.iter().map(|(_, span)| *span).collect();
    let mut command = Command::new(Op::Mac, of, vec![to]);
    command.calls = vec![PrfCall {
        key: pair_key(me, other),
        tag: DomainTag::mac4(joint as u8),
        first: index as u64,
    }];
    command
}

fn round<const CHECKED: bool>(
    plan: &Plan,
    me: PartyId,
    index: usize,
    layer: &LayerPlan,
    odd: bool,
) -> Round {
    let scheme = &SCHEME;
    let mut round = Round {
        place: place::LAYERS + index as u32,
        local: conversions(scheme, plan, me, layer),
        ..Round::default()
    };
    let works = Work::of(plan, layer);
    let first = round.local.len();
    for work in &works {
        round.local.push(run(me, work));
    }
    let programs = first..round.local.len();
    if layer.lifted() == 0 && !works.iter().any(Work::multiplies) {
        return round;
    }
    round.local.extend(lifts::local(plan, me, layer));
    let crosses = CROSSES[me.index()];
    let sent = (0..).zip(crosses).map(|(k, joint)| {
        let lifted = lifts::sent(layer, joint, k);
        messages(&works, |work| work.send, k, lifted)
    });
    let sent: Vec<_> = sent.collect();

    let mut macs = Vec::new();
    for (k, joint) in crosses.into_iter().enumerate() {
        if sent[k].is_empty() {
            continue;
        }
        let [sender, voucher] = JOINT[joint].givers(odd);
        let receiver = PartyId::FOUR[JOINT[joint].receiver];
        let to = Peer::Party(receiver);
        if me == sender {
            for &(kind, span) in &sent[k] {
                round.sends.push(transfer(span, to, part(joint, kind)));
            }
        } else if CHECKED {
            debug_assert_eq!(me, voucher);
            let span = mac_span(0, macs.len() as u32);
            macs.push((round.local.len(), receiver));
            round
                .local
                .push(mac(me, receiver, joint, index, &sent[k], span));
            round.sends.push(transfer(span, to, part(joint, MAC)));
        }
    }
    let mut added = Vec::new();
    let mut vouched = Vec::new();
    let received = (0..JOINT.len()).filter(|j| JOINT[*j].receiver == me.index());
    for (k, joint) in received.enumerate() {
        let [sender, voucher] = JOINT[joint].givers(odd);
        let lifted = lifts::received(layer, joint, k as u8);
        let got = messages(&works, |work| work.receive, k as u8, lifted);
        if got.is_empty() {
            continue;
        }
        let from = Peer::Party(sender);
        for &(kind, span) in &got {
            round.recvs.push(transfer(span, from, part(joint, kind)));
        }
        if CHECKED {
            let (mine, theirs) = (mac_span(1, k as u32), mac_span(2, k as u32));
            let by = Peer::Party(voucher);
            round.recvs.push(transfer(theirs, by, part(joint, MAC)));
            vouched.push((round.finish.len(), voucher));
            round
                .finish
                .push(mac(me, voucher, joint, index, &got, mine));
            check(
                &mut round,
                mine,
                theirs,
                vec![from, by],
                "a joint message of a product",
            );
        }
        let to = scheme.part_of(me, Component(JOINT[joint].outsider));
        let op = Op::AddReceived {
            component: to.expect("a party lacks the component of its own number alone"),
        };
        for work in works.iter().filter(|work| work.multiplies()) {
            let got = work.messages(work.receive, k as u8);
            let mut add = Command::new(op.clone(), got.to_vec(), vec![]);
            add.program = work.run(scheme, me).program;
            added.push(add);
        }
        added.extend(lifts::finish(plan, me, layer, (joint, k as u8)));
    }
    // After all checks.
    round.finish.extend(added);
    // The messages of lifts are behind those of products, under the same MACs.
    if layer.lifted() > 0 {
        return round;
    }
    says_products(scheme, me, &mut round, programs, [macs, vouched]);
    round
}

/// The command that runs a program, with its products if it has any.
fn run(me: PartyId, work: &Work) -> Command {
    let scheme = &SCHEME;
    let mut run = work.run(scheme, me);
    if !work.multiplies() {
        return run;
    }
    let (form, drawn) = form(work.ring, me);
    run.op = Op::Product(form);
    let sent: Vec<[Span; 2]> = (0..3).map(|k| work.messages(work.send, k)).collect();
    run.dst = [0, 1]
        .into_iter()
        .flat_map(|kind| sent.iter().map(move |m| m[kind]))
        .collect();
    let calls = |tag: fn(u8) -> DomainTag, first| {
        let drawn = drawn.iter();
        drawn.map(move |joint| drawn_for(me, *joint, tag, first))
    };
    run.calls = calls(DomainTag::joint4, work.calls[0])
        .chain(calls(DomainTag::sum4, work.calls[1]))
        .collect();
    run
}

/// The form of a party's products, and the joint messages whose ρ its calls draw.
pub(crate) fn form(ring: Ring, me: PartyId) -> (&'static Form, Vec<usize>) {
    let crosses = CROSSES[me.index()];
    let outside = (0..JOINT.len()).filter(|j| JOINT[*j].outsider == me.index());
    let drawn: Vec<usize> = crosses.into_iter().chain(outside).collect();
    let opposite = &JOINT[crosses[2]];
    let swapped = SCHEME.part_of(me, Component(opposite.outsider)) == Some(2);
    (Form::fourfold(ring, swapped, drawn.len() == 5), drawn)
}

/// The draw of ρ of a joint message, from counter `first` on.
pub(crate) fn drawn_for(
    me: PartyId,
    joint: usize,
    tag: fn(u8) -> DomainTag,
    first: u64,
) -> PrfCall {
    let key = SCHEME.part_of(me, Component(JOINT[joint].receiver));
    let key = key.expect("all parties but the receiver hold the key");
    PrfCall {
        key: Scheme::key(key),
        tag: tag(joint as u8),
        first,
    }
}

/// Of every joint message that is there, and that the party sends, its products, its sums, its products of bits and its lifts; of every one that it
/// vouches for, a MAC.
fn cost<const CHECKED: bool>(me: PartyId, layer: &LayerPlan, sizes: [u64; 3], odd: bool) -> Cost {
    let bits = layer.bits.as_ref().map_or(0, |bits| bits.products);
    let counts = [layer.products, layer.sums, bits].map(u64::from);
    let kinds = counts.iter().filter(|count| **count > 0).count() as u64;
    let bytes: u64 = counts.iter().zip(sizes).map(|(n, size)| n * size).sum();
    let lifted = |joint| u64::from(lifts::sent(layer, joint, 0).count);
    let is_there = |joint: usize| kinds > 0 || lifted(joint) > 0;
    let receives = |joint: usize| JOINT[joint].receiver == me.index() && is_there(joint);
    let mut cost = Cost {
        rounds: u64::from((0..JOINT.len()).any(receives)),
        ..Cost::default()
    };
    for joint in CROSSES[me.index()].into_iter().filter(|j| is_there(*j)) {
        if JOINT[joint].givers(odd)[0] == me {
            cost.messages += kinds + u64::from(lifted(joint) > 0);
            cost.bytes += bytes + lifted(joint) * sizes[0];
        } else if CHECKED {
            cost.messages += 1;
            cost.bytes += 16;
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every joint message has four roles, and every party the roles that the documentation says.
    #[test]
    fn roles_are_those_of_the_paper() {
        for joint in &JOINT {
            let mut all = [joint.pair[0], joint.pair[1], joint.receiver, joint.outsider];
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2, 3]);
        }
        let count = |role: fn(&Joint) -> usize| {
            [0, 1, 2, 3].map(|party| JOINT.iter().filter(|joint| role(joint) == party).count())
        };
        assert_eq!(count(|joint| joint.pair[0]), [2, 2, 1, 1]);
        assert_eq!(count(|joint| joint.pair[1]), [1, 1, 2, 2]);
        assert_eq!(count(|joint| joint.receiver), [1, 1, 2, 2]);
        assert_eq!(count(|joint| joint.outsider), [2, 2, 1, 1]);
        for (party, crosses) in CROSSES.iter().enumerate() {
            assert!(crosses.iter().all(|j| JOINT[*j].pair.contains(&party)));
        }
    }
}
