//! Set-ups of oblivious transfer between honest ends, and with ends that cheat (cases D1 and D3).

use crate::common::transfers::{For, SEAL, agree, drawn, ends, sealed, start};
use veil_device::Trees;
use veil_protocol::ot::base::{BaseReceiver, BaseSender, RECEIVER_MESSAGE, TRANSFERS};
use veil_protocol::ot::trees::{choices, grow, puncture};
use veil_protocol::ot::{Cheat, Ends, Pins, ReceiverSetUp, SenderSetUp};
use veil_session::Secret;
use zeroize::Zeroizing;

#[test]
fn the_sender_lacks_the_leaves_that_its_offset_says() {
    for trees in Trees::ALL {
        let (sender, to_receiver, receiver, to_sender) = start(1, trees);
        assert_eq!(to_receiver.len(), ReceiverSetUp::EXPECTS);
        assert_eq!(to_sender.len(), SenderSetUp::EXPECTS);
        let (message, all) = receiver.finish(&to_receiver).unwrap();
        let sender = sender.base(&to_sender).unwrap();
        assert_eq!(message.len(), sender.expects());
        let (offset, some) = sender.finish(&message).unwrap();
        assert_eq!(offset.expose()[0] & 1, 1);
        agree(trees, &offset, &all, &some);
    }
}

/// Chosen keys are one of each pair, for both choices, and all of them are different.
#[test]
fn base_transfers_give_the_chosen_key() {
    let mut random = drawn(3);
    let mut choices = Zeroizing::new([0; TRANSFERS]);
    random.fill(&mut choices[..]);
    choices.iter_mut().for_each(|c| *c &= 1);
    let (mut a, mut b) = ([0; 64], [0; TRANSFERS * 128]);
    random.fill(&mut a);
    random.fill(&mut b);
    let (sender, point) = BaseSender::start(&ends(1), &a);
    let (receiver, points) = BaseReceiver::start(&ends(1), choices.clone(), &b);
    let (pairs, chosen) = (
        sender.finish(&points).unwrap(),
        receiver.finish(&point).unwrap(),
    );
    let mut seen = std::collections::BTreeSet::new();
    for ((pair, chosen), choice) in pairs.iter().zip(&chosen).zip(choices.iter()) {
        assert_eq!(pair[usize::from(*choice)].expose(), chosen.expose());
        seen.extend(pair.iter().map(|key| *key.expose()));
    }
    assert_eq!(seen.len(), 2 * TRANSFERS);
    assert!(choices.contains(&0) && choices.contains(&1));
}

/// Encodings that RFC 9496 refuses (its appendix A.3): no field element below the prime, a negative one, one that is no square; and the identity.
fn no_points() -> Vec<[u8; 32]> {
    let first = |byte: u8, fill: u8, last: u8| {
        let mut bytes = [fill; 32];
        (bytes[0], bytes[31]) = (byte, last);
        bytes
    };
    let hex = "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371";
    let no_square =
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..][..2], 16).expect("hex"));
    vec![
        [0; 32],
        first(0, 0xff, 0xff),
        first(0xed, 0xff, 0x7f),
        first(0xf3, 0xff, 0x7f),
        [0xff; 32],
        first(1, 0, 0),
        first(1, 0xff, 0x7f),
        no_square,
    ]
}

/// Case D1: points that are none.
#[test]
fn no_end_takes_what_is_no_point() {
    for bad in no_points() {
        let (sender, to_receiver, _, mut to_sender) = start(1, Trees::default());
        to_sender[..32].copy_from_slice(&bad);
        let told = sender.base(&sealed(&ends(1), For::BaseSender, to_sender));
        assert_eq!(told.err(), Some(Cheat::Point), "{bad:02x?}");
        for place in [0, 32, RECEIVER_MESSAGE - SEAL - 32] {
            let receiver = start(1, Trees::default()).2;
            let mut points = to_receiver.clone();
            points[place..place + 32].copy_from_slice(&bad);
            let told = receiver.finish(&sealed(&ends(1), For::BaseReceiver, points));
            assert_eq!(told.err(), Some(Cheat::Point), "{bad:02x?}");
        }
    }
}

/// Case D1: a point that is there twice, in one transfer, in two, or as the peer's own.
#[test]
fn no_end_takes_a_point_twice() {
    for (from, to) in [(0, 32), (32, 4096 + 64)] {
        let (_, mut points, receiver, _) = start(1, Trees::default());
        points.copy_within(from..from + 32, to);
        let told = receiver.finish(&sealed(&ends(1), For::BaseReceiver, points));
        assert_eq!(told.err(), Some(Cheat::Twice));
    }
    let (sender, mut points, receiver, mut point) = start(1, Trees::default());
    let own = point.clone();
    point[..32].copy_from_slice(&points[64..96]);
    points[64..96].copy_from_slice(&own[..32]);
    let told = sender.base(&sealed(&ends(1), For::BaseSender, point));
    assert_eq!(told.err(), Some(Cheat::Twice));
    let told = receiver.finish(&sealed(&ends(1), For::BaseReceiver, points));
    assert_eq!(told.err(), Some(Cheat::Twice));
}

/// Case D1: messages of another session, of another pair, of the other end, and of other lengths.
#[test]
fn no_end_takes_what_was_made_elsewhere() {
    let (old_sender, old_points, old_receiver, old_point) = start(2, Trees::default());
    let (sender, points, receiver, point) = start(1, Trees::default());
    assert_eq!(sender.base(&old_point).err(), Some(Cheat::Stranger));
    assert_eq!(receiver.finish(&old_points).err(), Some(Cheat::Stranger));
    let (old_trees, _) = old_receiver.finish(&old_points).unwrap();
    drop(old_sender);
    let sender = start(1, Trees::default()).0.base(&point).unwrap();
    assert_eq!(sender.finish(&old_trees).err(), Some(Cheat::Stranger));
    for other in [
        Ends {
            sender: ends(1).receiver,
            receiver: ends(1).sender,
            ..ends(1)
        },
        ends(2),
    ] {
        let receiver = start(1, Trees::default()).2;
        let told = receiver.finish(&sealed(&other, For::BaseReceiver, points.clone()));
        assert_eq!(told.err(), Some(Cheat::Stranger));
        let receiver = start(1, Trees::default()).2;
        let told = receiver.finish(&sealed(&ends(1), For::BaseSender, points.clone()));
        assert_eq!(told.err(), Some(Cheat::Stranger));
    }
    for length in [0, SEAL - 1, SEAL, points.len() - 1, points.len() + 1] {
        let mut other = points.clone();
        other.resize(length, 0);
        let told = start(1, Trees::default()).2.finish(&other);
        assert_eq!(told.err(), Some(Cheat::Length));
        other.resize(length % 100, 0);
        let told = start(1, Trees::default()).0.base(&other);
        assert_eq!(told.err(), Some(Cheat::Length));
        let sender = start(1, Trees::default()).0.base(&point).unwrap();
        assert_eq!(sender.finish(&other).err(), Some(Cheat::Length));
    }
}

/// Case D1: who seals an old point anew cannot make trees for it, as it does not know the secret of the point.
#[test]
fn an_old_point_is_of_no_use() {
    let old = start(2, Trees::default()).3;
    let (sender, points, receiver, _) = start(1, Trees::default());
    let sender = sender
        .base(&sealed(&ends(1), For::BaseSender, old))
        .unwrap();
    let (message, _) = receiver.finish(&points).unwrap();
    assert_eq!(sender.finish(&message).err(), Some(Cheat::Trees));
}

/// Case D1: nor does an old message with points tell its sender any key.
#[test]
fn old_points_are_of_no_use() {
    let (mut a, mut b) = ([0; 64], [0; TRANSFERS * 128]);
    drawn(3).fill(&mut a);
    drawn(4).fill(&mut b);
    let none = Zeroizing::new([0; TRANSFERS]);
    let points = BaseReceiver::start(&ends(2), none.clone(), &b).1;
    let (receiver, _) = BaseReceiver::start(&ends(1), none, &b);
    let (sender, point) = BaseSender::start(&ends(1), &a);
    let pairs = sender
        .finish(&sealed(&ends(1), For::BaseReceiver, points))
        .unwrap();
    for (pair, key) in pairs.iter().zip(receiver.finish(&point).unwrap()) {
        assert!(pair.iter().all(|k| k.expose() != key.expose()));
    }
}

/// Trees for keys that both ends have from elsewhere.
fn planted(trees: Trees, seed: u64) -> (Secret, Vec<Secret>, Vec<u8>) {
    let mut random = drawn(seed);
    let offset = random.secret();
    let roots = random.secrets(trees.count() as usize);
    let pairs: Vec<[Secret; 2]> = (0..TRANSFERS)
        .map(|_| [random.secret(), random.secret()])
        .collect();
    let (message, _) = grow(&ends(1), trees, &roots, &pairs);
    let chosen = choices(trees, &offset);
    let keys = pairs
        .iter()
        .zip(chosen.iter())
        .map(|(pair, c)| pair[usize::from(*c)].clone());
    (offset, keys.collect(), message)
}

/// Case D3: a wrong sum is caught if the sender's path leaves it to that side, at every level.
#[test]
fn a_wrong_sum_is_caught_where_it_is_used() {
    for trees in Trees::ALL {
        for transfer in 0..TRANSFERS {
            let (offset, keys, message) = planted(trees, 5);
            let used = choices(trees, &offset)[transfer];
            for side in [0, 1] {
                let mut message = message.clone();
                message[32 * transfer + 16 * usize::from(side) + transfer % 16] ^=
                    1 << (transfer % 8);
                let message = sealed(&ends(1), For::Trees, message);
                let told = puncture(&ends(1), trees, &offset, &keys, &message);
                let want = (side == used).then_some(Cheat::Trees);
                assert_eq!(
                    told.err(),
                    want,
                    "{trees:?} transfer {transfer} side {side}"
                );
            }
        }
    }
}

/// Case D3: wrong check values and a wrong digest are caught always.
#[test]
fn a_wrong_check_is_caught() {
    let trees = Trees::default();
    let (offset, keys, message) = planted(trees, 6);
    assert!(puncture(&ends(1), trees, &offset, &keys, &message).is_ok());
    for place in [
        4096,
        4096 + 31,
        message.len() - SEAL - 33,
        message.len() - SEAL - 1,
    ] {
        let mut message = message.clone();
        message[place] ^= 0x80;
        let message = sealed(&ends(1), For::Trees, message);
        let told = puncture(&ends(1), trees, &offset, &keys, &message);
        assert_eq!(told.err(), Some(Cheat::Trees));
    }
}

/// Case D3: who guesses c bits of the offset stays unseen with probability 2^-c.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn guesses_cost_a_half_each() {
    let (trees, trials) = (Trees::default(), 2000);
    for guesses in 1..=4 {
        let mut unseen = 0u32;
        for trial in 0..trials {
            let (offset, keys, mut message) = planted(trees, 100 + trial);
            // It guesses that bit 1 of some trees is 0, so that their sums of left children at that level are not used.
            for tree in 0..guesses {
                message[32 * (4 * tree + 2) + 16] ^= 1;
            }
            let message = sealed(&ends(1), For::Trees, message);
            match puncture(&ends(1), trees, &offset, &keys, &message) {
                Ok(_) => unseen += 1,
                Err(cheat) => assert_eq!(cheat, Cheat::Trees),
            }
        }
        let rate = f64::from(unseen) / trials as f64;
        let want = 0.5f64.powi(guesses as i32);
        let deviation = (want * (1.0 - want) / trials as f64).sqrt();
        assert!(
            (rate - want).abs() < 4.5 * deviation,
            "{guesses} guesses: {rate}"
        );
    }
}

#[test]
fn no_randomness_no_set_up() {
    let mut none = |_: &mut [u8]| Err("none");
    let trees = Trees::default();
    assert_eq!(
        SenderSetUp::start(&ends(1), trees, Pins::default(), &mut none).err(),
        Some("none")
    );
    assert_eq!(
        ReceiverSetUp::start(&ends(1), trees, &mut none).err(),
        Some("none")
    );
}
