//! Sessions that begin with transfers that were kept from the one before, between honest ends and with ends that cheat (cases D1 to D3).

use crate::common::transfers::{Drawn, For, SEAL, agree, drawn, ends, hash, never, sealed, start};
use veil_device::Trees;
use veil_device::ot::fold;
use veil_protocol::ot::base::TRANSFERS;
use veil_protocol::ot::cache::{CachedReceiver, CachedSender, claim};
use veil_protocol::ot::reversal::{self, MESSAGE, choose, offer};
use veil_protocol::ot::{Cheat, Ends, Pins, ReceiverSetUp, SenderSetUp, SenderTrees};
use veil_session::Secret;

/// Bytes of a fold.
const FOLD: usize = 16;
/// Where the folds begin.
const FOLDS: usize = MESSAGE - SEAL - (TRANSFERS + 1) * FOLD;

/// Old transfers: both keys, the other end's choices, and its keys.
struct Old {
    pairs: Vec<[Secret; 2]>,
    choices: reversal::Choices,
    keys: Vec<Secret>,
}

fn old(random: &mut Drawn) -> Old {
    let both = [random.secrets(TRANSFERS), random.secrets(TRANSFERS)];
    let pairs: Vec<_> = (0..TRANSFERS)
        .map(|i| [0, 1].map(|j: usize| both[j][i].clone()))
        .collect();
    let choices = reversal::choices(&random.secret());
    let chosen = pairs.iter().zip(choices.iter());
    let keys = chosen.map(|(pair, c)| pair[usize::from(*c)].clone());
    Old {
        keys: keys.collect(),
        pairs,
        choices,
    }
}

#[test]
fn turned_transfers_give_the_chosen_key() {
    let mut random = drawn(1);
    for _ in 0..20 {
        let old = old(&mut random);
        let choices = reversal::choices(&random.secret());
        let (message, chosen) = choose(&ends(1), &old.pairs, &choices);
        assert_eq!(message.len(), MESSAGE);
        let pairs = offer(&ends(1), &old.choices, &old.keys, &message).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for ((pair, key), choice) in pairs.iter().zip(&chosen).zip(choices.iter()) {
            assert_eq!(pair[usize::from(*choice)].expose(), key.expose());
            seen.extend(pair.iter().map(|key| *key.expose()));
        }
        assert_eq!(seen.len(), 2 * TRANSFERS);
    }
}

/// Nothing that is sent or made in one session is what it is in another one, or the other way round.
#[test]
fn every_session_turns_to_other_keys() {
    let mut random = drawn(2);
    let (old, choices) = (old(&mut random), reversal::choices(&random.secret()));
    let all = [ends(1), ends(2), ends(1).reversed()].map(|ends| {
        let (message, keys) = choose(&ends, &old.pairs, &choices);
        let keys = keys.iter().flat_map(|key| *key.expose());
        [message, keys.collect()]
    });
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        for (one, other) in all[a].iter().zip(&all[b]) {
            let blocks = |bytes: &[u8]| -> std::collections::BTreeSet<Vec<u8>> {
                bytes.chunks(16).map(<[u8]>::to_vec).collect()
            };
            assert!(blocks(one).is_disjoint(&blocks(other)));
        }
    }
}

#[test]
fn a_turn_of_another_session_is_refused() {
    let mut random = drawn(3);
    let (old, choices) = (old(&mut random), reversal::choices(&random.secret()));
    let told = |message: &[u8]| offer(&ends(1), &old.choices, &old.keys, message).err();
    for other in [ends(2), ends(1).reversed()] {
        let (message, _) = choose(&other, &old.pairs, &choices);
        assert_eq!(told(&message), Some(Cheat::Stranger));
        // Who seals it anew has a challenge of the other session.
        let anew = sealed(&ends(1), For::Turn, message);
        assert_eq!(told(&anew), Some(Cheat::Reversed));
    }
    let (message, _) = choose(&ends(1), &old.pairs, &choices);
    assert_eq!(told(&message), None);
    for length in [0, SEAL, MESSAGE - 1, MESSAGE + 1] {
        let mut other = message.clone();
        other.resize(length, 0);
        assert_eq!(told(&other), Some(Cheat::Length));
    }
}

/// An end that names cached transfers which it does not have.
#[test]
fn who_lacks_the_keys_turns_nothing() {
    let mut random = drawn(4);
    let (right, wrong) = (old(&mut random), old(&mut random));
    let choices = reversal::choices(&random.secret());
    let (message, _) = choose(&ends(1), &wrong.pairs, &choices);
    let told = offer(&ends(1), &right.choices, &right.keys, &message);
    assert_eq!(told.err(), Some(Cheat::Reversed));
    // The end that chose before, without the keys, gets none of the new ones.
    let (message, chosen) = choose(&ends(1), &right.pairs, &choices);
    let told = offer(&ends(1), &wrong.choices, &wrong.keys, &message);
    assert_eq!(told.err(), Some(Cheat::Reversed));
    let one = [right.keys[..127].to_vec(), wrong.keys[127..].to_vec()].concat();
    let told = offer(&ends(1), &right.choices, &one, &message);
    assert_eq!(told.err(), Some(Cheat::Reversed));
    drop(chosen);
}

/// Case D2: any other fold, or fold of the choices, is caught; of the latter but at an end that lacks no key 1, and there is none.
#[test]
fn other_folds_are_caught() {
    let mut random = drawn(5);
    let (old, choices) = (old(&mut random), reversal::choices(&random.secret()));
    let (message, _) = choose(&ends(1), &old.pairs, &choices);
    for fold in 0..=TRANSFERS {
        let mut other = message.clone();
        other[FOLDS + FOLD * fold + fold % FOLD] ^= 1 << (fold % 8);
        let told = offer(
            &ends(1),
            &old.choices,
            &old.keys,
            &sealed(&ends(1), For::Turn, other),
        );
        assert_eq!(told.err(), Some(Cheat::Reversed), "{fold}");
    }
}

/// The message of an end that makes the other choice in transfer 0 in some of its corrections, and of each of those guesses what the other end
/// lacks, to mend its fold.
pub(crate) fn forged(
    ends: &Ends,
    pairs: &[[Secret; 2]],
    choices: &reversal::Choices,
    lies: &[u8],
) -> Vec<u8> {
    let add = |a: &[u8], b: &[u8]| -> Vec<u8> { a.iter().zip(b).map(|(a, b)| a ^ b).collect() };
    let string = |i: usize, j: u8| {
        let parts = [
            &(i as u16).to_le_bytes()[..],
            &[j],
            pairs[i][usize::from(j)].expose(),
        ];
        hash(ends, For::String, &parts)
    };
    let mut x = vec![0; 16];
    for (i, choice) in choices.iter().enumerate() {
        x[i / 8] |= choice << (i % 8);
    }
    x.extend_from_slice(&add(&string(0, 0), &string(0, 1))[16..]);
    let mut other = [0; 32];
    other[0] = 1;
    let mut message = Vec::new();
    for i in 0..TRANSFERS {
        let mut d = add(&add(&string(i, 0), &string(i, 1)), &x);
        if i < lies.len() {
            d = add(&d, &other);
        }
        message.extend_from_slice(&d[..if i == 0 { 16 } else { 32 }]);
    }
    let digest = hash(ends, For::Challenge, &[&message]);
    let challenge = digest.first_chunk().expect("16 of 32 bytes");
    for i in 0..TRANSFERS {
        let mut told = fold(challenge, &string(i, 1)).to_vec();
        if lies.get(i) == Some(&1) {
            told = add(&told, &fold(challenge, &other));
        }
        message.extend_from_slice(&told);
    }
    message.extend_from_slice(&fold(challenge, &x));
    message.extend_from_slice(&[0; SEAL]);
    sealed(ends, For::Turn, message)
}

/// Case D2: who makes other choices in some corrections passes if it has guessed for each of them which key the other end lacks, and not
/// otherwise.
#[test]
fn other_choices_cost_a_guess_each() {
    let mut random = drawn(6);
    for _ in 0..8 {
        let (old, choices) = (old(&mut random), reversal::choices(&random.secret()));
        let honest = forged(&ends(1), &old.pairs, &choices, &[]);
        assert_eq!(honest, choose(&ends(1), &old.pairs, &choices).0);
        for guess in 0..16u8 {
            let lies = [0, 1, 2, 3].map(|i| guess >> i & 1);
            let message = forged(&ends(1), &old.pairs, &choices, &lies);
            let told = offer(&ends(1), &old.choices, &old.keys, &message);
            let right = (0..4).all(|i| lies[i] == 1 - old.choices[i]);
            assert_eq!(told.err(), (!right).then_some(Cheat::Reversed));
        }
    }
}

/// A session with curves that leaves something to keep.
fn first(trees: Trees) -> (CachedSender, CachedReceiver) {
    let (sender, to_receiver, receiver, to_sender) = start(1, trees);
    let sender = sender.base(&to_sender).expect("both are honest");
    let choices = drawn(7).secret();
    let (message, all, theirs) = receiver
        .finish_and_keep(&to_receiver, &choices)
        .expect("both are honest");
    assert_eq!(message.len(), sender.expects() + MESSAGE);
    let (offset, some, mine) = sender.finish_and_keep(&message).expect("both are honest");
    agree(trees, &offset, &all, &some);
    (mine, theirs)
}

/// The next one, begun.
fn again(
    session: u8,
    trees: Trees,
    kept: (CachedSender, CachedReceiver),
) -> (SenderTrees, ReceiverSetUp, Vec<u8>) {
    let (mine, theirs) = kept;
    let seed = u64::from(session);
    let pins = Pins::default();
    let Ok((sender, message)) =
        SenderSetUp::again(&ends(session), trees, pins, mine, &mut never(drawn(seed)));
    let Ok(receiver) = ReceiverSetUp::again(
        &ends(session),
        trees,
        theirs,
        &mut never(drawn(1000 + seed)),
    );
    (sender, receiver, message)
}

/// A chain of sessions: each has leaves and an offset of its own.
#[test]
fn sessions_follow_each_other() {
    for trees in Trees::ALL {
        let mut kept = first(trees);
        let mut seen = std::collections::BTreeSet::new();
        for session in 2..6 {
            let (sender, receiver, message) = again(session, trees, kept);
            assert_eq!(message.len(), MESSAGE);
            let choices = drawn(u64::from(session)).secret();
            let (message, all, theirs) = receiver.finish_and_keep(&message, &choices).unwrap();
            let (offset, some, mine) = sender.finish_and_keep(&message).unwrap();
            assert_eq!(offset.expose()[0] & 1, 1);
            agree(trees, &offset, &all, &some);
            assert!(seen.insert(*offset.expose()));
            assert!(all.iter().all(|(_, leaf)| seen.insert(*leaf.expose())));
            kept = (mine, theirs);
        }
        let (sender, receiver, message) = again(7, trees, kept);
        let (message, all) = receiver.finish(&message).unwrap();
        let (offset, some) = sender.finish(&message).unwrap();
        agree(trees, &offset, &all, &some);
    }
}

/// Cases D1 and D3: ends that have kept other transfers than they say, and messages of other sessions.
#[test]
fn ends_that_kept_other_things_are_found() {
    let trees = Trees::default();
    let both = || {
        [first(trees), {
            let (sender, receiver, message) = again(2, trees, first(trees));
            let (message, _, theirs) = receiver
                .finish_and_keep(&message, &drawn(8).secret())
                .unwrap();
            (sender.finish_and_keep(&message).unwrap().2, theirs)
        }]
    };
    let [(mine, _), (_, theirs)] = both();
    let (_, receiver, message) = again(3, trees, (mine, theirs));
    assert_eq!(receiver.finish(&message).err(), Some(Cheat::Reversed));
    // The receiver lies: whatever it makes its trees of, the sender finds that it lacks the keys.
    let [(mine, theirs), (other, others)] = both();
    let (sender, _, _) = again(3, trees, (mine, theirs));
    let (_, receiver, message) = again(3, trees, (other, others));
    let (message, _) = receiver.finish(&message).unwrap();
    assert_eq!(sender.finish(&message).err(), Some(Cheat::Trees));
    // Another session.
    let [kept, old] = both();
    let (_, receiver, _) = again(3, trees, kept);
    let (_, _, message) = again(4, trees, old);
    assert_eq!(receiver.finish(&message).err(), Some(Cheat::Stranger));
    // Trees that are right, and then a turn that is not.
    let (sender, receiver, message) = again(3, trees, first(trees));
    let (mut message, _, _) = receiver
        .finish_and_keep(&message, &drawn(9).secret())
        .unwrap();
    let end = message.len();
    message[end - SEAL - 1] ^= 1;
    assert_eq!(
        sender.finish_and_keep(&message).err(),
        Some(Cheat::Stranger)
    );
    for length in [0, 100, MESSAGE, end - 1, end + 1] {
        let (sender, ..) = again(3, trees, first(trees));
        message.resize(length, 0);
        assert!(sender.finish_and_keep(&message).is_err());
    }
}

#[test]
fn claims_are_of_one_key_session_and_end() {
    let mut random = drawn(10);
    let (one, other) = (random.secret(), random.secret());
    let (ends, me, you) = (ends(1), ends(1).sender, ends(1).receiver);
    let all = [
        claim(&ends, me, &one),
        claim(&ends, you, &one),
        claim(&ends, me, &other),
        claim(&crate::common::transfers::ends(2), me, &one),
        claim(&ends.reversed(), me, &one),
    ];
    let set: std::collections::BTreeSet<_> = all.into_iter().collect();
    assert_eq!(set.len(), all.len());
    assert_eq!(claim(&ends, me, &one), all[0]);
}
