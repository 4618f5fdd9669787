//! Participants from outside, which have no keys of masks: an owner that is told the masks of its inputs, a recipient that is told those of its outputs.
//!
//! Both parties tell it their parts, and behind these the parts of wires of their own use, 128 random bits or more, which hide what follows. When it has all, it draws a
//! challenge χ, and of each party's parts v computes s = Σ χ^i v_i, the sum of 1 where the part is 1. It sends χ to both parties, and of the parts of
//! one of them s to the other one. The party that told them has Σ χ^i M_i, the other one has Σ χ^i K_i ⊕ s Δ of its keys: these are the same, unless the parts are others than
//! the authenticated ones. Both send digests of both sums, which the participant compares.
//!
//! - A party that tells another part passes with the probability of a root, n / 2^128 for n wires and rows, or if it guesses the other one's offset.
//! - Of the other party's parts a party learns s, which is uniform: the powers of χ that hide span whatever space all powers of χ span.
//! - What a party answers is right or not, and it knows which, since it knows s: whether the run goes on tells it nothing of a part. Hashes of both possible MACs of every
//!   bit in the place of sums would let it bet on a part: one wrong hash, of which the other party's part decides whether it counts.
//! - A participant that is in league with a party, and sends another s, gets a digest of a sum that the other party's offset has a part in: 126 unknown bits.

use veil_circuit::Per;
use veil_device::Span;
use veil_device::ag::{Ag, Role};
use veil_job::{Audience, Holder};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::regions::{self, items};
use super::steps::{Rounds, ag, compare, digest, fold};
use super::{label, what};
use crate::plan::Plan;
use crate::round::{Round, Transfer};
use crate::yao::{OFFSET, PRIVATE, random};

/// Bits that hide a sum.
pub(super) const HIDING: u32 = 128;

/// Rounds in which something is told.
pub(super) const ROUNDS: u32 = 3;

/// Rows of the shortest chunk.
pub(super) fn fewest_rows(plan: &Plan) -> u32 {
    let full = u64::from(plan.chunk_rows);
    let rest = |rows: u64| match rows % full {
        0 => full,
        rest => rest,
    };
    let fewest = plan.job.blocks.iter().map(|block| rest(block.rows)).min();
    fewest.unwrap_or(1) as u32
}

/// Owners from outside of the inputs of a block with so many values, in order.
pub(super) fn owners_of(plan: &Plan, block: usize, per: Per) -> Vec<u16> {
    let holders = plan.job.blocks[block].holders.iter().zip(&plan.inputs);
    let mut owners: Vec<u16> = holders
        .filter_map(|(holder, port)| match holder {
            Holder::Owner(owner) if port.per == per && port.width > 0 => Some(*owner),
            _ => None,
        })
        .collect();
    owners.sort_unstable();
    owners.dedup();
    owners
}

/// How many there are in a block, at most.
pub(super) fn owners(plan: &Plan, per: Per) -> u32 {
    let blocks = 0..plan.job.blocks.len();
    let most = blocks.map(|block| owners_of(plan, block, per).len()).max();
    most.unwrap_or(0) as u32
}

/// Recipients from outside, in order, with their outputs.
pub(super) fn recipients(plan: &Plan) -> Vec<(u16, Vec<usize>)> {
    let all = 0..plan.job.recipients.len() as u16;
    let outputs = |recipient| {
        let ports = (0..plan.outputs.len()).filter(|port| plan.outputs[*port].width > 0);
        let ports =
            ports.filter(|port| plan.job.audiences[*port] == Audience::Recipient(recipient));
        ports.collect()
    };
    let all = all.map(|recipient| (recipient, outputs(recipient)));
    all.filter(|(_, ports): &(_, Vec<usize>)| !ports.is_empty())
        .collect()
}

/// What a participant from outside is told at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// Its number among those that are told something.
    pub(super) number: u32,
    pub(super) to: Peer,
    /// Parts of masks, with those that hide: the own ones at a party, those of both at the participant.
    pub(super) bits: [Span; 2],
    /// Their MACs, or at the participant as many blocks that it works with; and the keys of the other party's.
    pub(super) macs: Span,
    pub(super) keys: Span,
}

/// The label of the digest of the sum of a party's parts.
fn label_of(number: u32, of: Role) -> u16 {
    label::OUTSIDE + 2 * number as u16 + of.number() as u16
}

/// What a party does in the rounds in which others are told something. `first` is a number that no two uses in the chunk have in common.
pub(super) fn tell(rounds: &mut Rounds, all: &[Told], first: u64) {
    let role = rounds.me.role();
    rounds.next();
    for told in all {
        let [own, _] = told.bits;
        rounds.local(ag(Ag::Bits { bit: 0 }, vec![told.macs], vec![own]));
        rounds.last().sends.push(Transfer::new(own, told.to, 0));
    }
    rounds.next();
    for told in all {
        for k in 0..2 {
            let from = items(regions::asked(), 2 * told.number + k, 1);
            let asked = Transfer::new(from, told.to, k as u16);
            rounds.last().recvs.push(asked);
        }
    }
    rounds.next();
    for told in all {
        let asked = |k| items(regions::asked(), 2 * told.number + k, 1);
        let [own, theirs, expected] = [0, 1, 2].map(regions::told_sums);
        let answers = items(regions::answers(), 2 * told.number, 2);
        let answer = |k, of, sum| {
            let label = label_of(told.number, of);
            digest(label, first, vec![sum], items(answers, k, 1))
        };
        let expect = Ag::Expect { offset: OFFSET };
        for command in [
            fold(asked(0), None, &[told.macs], own),
            answer(0, role, own),
            fold(asked(0), None, &[told.keys], theirs),
            ag(expect, vec![theirs, asked(1)], vec![expected]),
            answer(1, role.opposite(), expected),
        ] {
            rounds.local(command);
        }
        rounds.last().sends.push(Transfer::new(answers, told.to, 0));
    }
}

/// What the participant does that is told something, at places from number `place` on.
pub(super) fn hear(place: u32, told: &Told, first: u64) -> Vec<Round> {
    let parties = PartyId::TWO.map(Peer::Party);
    let mut rounds: Vec<Round> = (place..place + ROUNDS)
        .map(|place| Round {
            place,
            ..Round::default()
        })
        .collect();
    let of_both = (0..).zip(parties).zip(told.bits);
    rounds[0].recvs = of_both
        .clone()
        .map(|((_, party), bits)| Transfer::new(bits, party, 0))
        .collect();
    let asked = |k| items(regions::asked(), k, 1);
    let draw = random(PRIVATE, DomainTag::AG_CHALLENGE, first, asked(0));
    rounds[1].local.push(draw);
    for ((k, party), bits) in of_both {
        rounds[1].local.extend([
            ag(Ag::Expand, vec![bits], vec![told.macs]),
            fold(asked(0), None, &[told.macs], asked(1 + 2 * k)),
        ]);
        // Each is asked about the other one's parts.
        let sends = [(asked(0), 0), (asked(3 - 2 * k), 1)];
        let sends = sends.map(|(span, part)| Transfer::new(span, party, part));
        rounds[1].sends.extend(sends);
    }
    let answers = |party: u32, k: u32| items(regions::answers(), 2 * party + k, 1);
    for (k, party) in (0..).zip(parties) {
        let both = items(regions::answers(), 2 * k, 2);
        rounds[2].recvs.push(Transfer::new(both, party, 0));
    }
    for k in 0..2 {
        let compared = [answers(k, 0), answers(1 - k, 1)];
        compare(&mut rounds[2], compared, (parties.into(), what::TOLD));
    }
    rounds
}
