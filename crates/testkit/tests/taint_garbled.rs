//! Attack case G2 between two parties: what is on the link looks the same for any input.

use veil_circuit::{Builder, Per};
use veil_device::Cpu;
use veil_job::{Adversary, Audience, Holder};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_testkit::sample::{against, between_two, job, party};
use veil_testkit::{Kind, Message, Seed, Values, World};

use crate::taint::uneven;

/// Rows of a job between two: a bit of each is more than a thousand bytes.
const BITS: u64 = 16_384;

/// Long messages: an owner's share of a column, corrections for it, tables, and shares of what is opened to another participant.
fn between(holders: [Holder; 2], bit: [u128; 2]) -> World {
    garbled(
        (holders, Audience::Recipient(0)),
        bit,
        Adversary::SemiHonest,
    )
}

/// The same of authenticated garbling: corrections, parts of masks, masked inputs, offers, bits, tables, masked results.
fn checked(bit: [u128; 2]) -> World {
    let holders = [0, 1].map(|p| Holder::Party(party(p)));
    garbled((holders, Audience::Parties), bit, Adversary::Malicious)
}

fn garbled((holders, to): ([Holder; 2], Audience), bit: [u128; 2], by: Adversary) -> World {
    let mut b = Builder::new(Ring::Bits);
    let (x, y) = (b.input("x", 1, Per::Row), b.input("y", 1, Per::Row));
    let m = b.mul(x[0], y[0]);
    let n = b.add(m, x[0]);
    b.output("z", &[n, m]);
    let circuit = b.finish().expect("a valid circuit");
    let job = against(between_two(job(circuit, &[(BITS, &holders)], &[to])), by);
    let values = Values::new(&job, |_, _, port, _| bit[port]);
    World::in_chunks(job, BITS as u32, 1)
        .seed(Seed(7))
        .values(values)
        .devices(|_| Box::new(Cpu::detect()))
}

#[test]
fn messages_of_two_parties_are_uniform_whatever_the_inputs() {
    let [garbler, evaluator] = [0, 1].map(|p| Holder::Party(party(p)));
    let owners = [0, 1].map(Holder::Owner);
    for holders in [owners, [garbler, evaluator], [evaluator, garbler]] {
        for bit in [[0, 0], [1, 0], [0, 1], [1, 1]] {
            let outcome = between(holders, bit).run();
            let found = uneven(outcome.assert_right(), BITS / 8, 3);
            assert!(found.is_empty(), "{holders:?}, {bit:?}: {found:?}");
        }
    }
}

/// Parts of masks and masked results to participants from outside, and what an owner tells.
#[test]
fn messages_from_and_to_outside_are_uniform_whatever_the_inputs() {
    for bit in [[0, 0], [1, 0], [0, 1], [1, 1]] {
        let holders = [0, 1].map(Holder::Owner);
        let to = (holders, Audience::Recipient(0));
        let outcome = garbled(to, bit, Adversary::Malicious).run();
        let found = uneven(outcome.assert_right(), BITS / 8, 20);
        assert!(found.is_empty(), "{bit:?}: {found:?}");
    }
}

#[test]
fn messages_of_authenticated_garbling_are_uniform_whatever_the_inputs() {
    for bit in [[0, 0], [1, 0], [0, 1], [1, 1]] {
        let outcome = checked(bit).run();
        let found = uneven(outcome.assert_right(), BITS / 8, 20);
        assert!(found.is_empty(), "{bit:?}: {found:?}");
    }
}

/// Bits without a mask, and blocks that are the same.
#[test]
fn a_message_of_authenticated_garbling_without_a_mask_is_noticed() {
    for (kind, length) in [
        (Kind::BatchCorrection, 1),
        (Kind::InputParts, 1),
        (Kind::MaskedInput, 1),
        (Kind::LeakyOffer, 16),
        (Kind::LeakyBits, 1),
        (Kind::OpenedBits, 1),
        (Kind::MaskedResults, 1),
        (Kind::OutputParts, 1),
    ] {
        let bare = move |m: &Message| {
            if m.kind == Some(kind) && m.bytes.len() > 16 {
                let bytes = m.bytes[..length].iter().cycle();
                Fate::Replace(bytes.take(m.bytes.len()).copied().collect())
            } else {
                Fate::Pass
            }
        };
        let found = uneven(&checked([0, 0]).cheat(bare).run(), BITS / 8, 2);
        assert!(!found.is_empty(), "{kind:?}");
    }
}

/// Corrections without the leaves, an owner's value without its mask, and a label that is sent as it is twice.
#[test]
fn a_message_between_two_without_a_mask_is_noticed() {
    let owners = [0, 1].map(Holder::Owner);
    for (kind, unmask) in [
        (Kind::Correction, (|_| vec![1; 1]) as fn(&[u8]) -> Vec<u8>),
        (Kind::OwnerInput, |_| vec![0; 1]),
        (Kind::Table, |bytes| bytes[..16].to_vec()),
        (Kind::Opened, |_| vec![0xff; 1]),
    ] {
        let bare = move |m: &Message| {
            if m.kind == Some(kind) {
                let bytes = unmask(&m.bytes).into_iter().cycle();
                Fate::Replace(bytes.take(m.bytes.len()).collect())
            } else {
                Fate::Pass
            }
        };
        let outcome = between(owners, [0, 0]).cheat(bare).run();
        let found = uneven(&outcome, BITS / 8, 2);
        assert!(!found.is_empty(), "{kind:?}");
    }
}
