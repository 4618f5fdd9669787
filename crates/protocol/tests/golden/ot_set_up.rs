//! The golden vectors of the set-up of oblivious transfer: `vectors/ot_set_up.json`, written by the Python model.

use serde_json::Value;
use sha2::{Digest, Sha256};
use veil_device::Trees;
use veil_protocol::ot::base::BaseSender;
use veil_protocol::ot::cache::claim;
use veil_protocol::ot::trees::grow;
use veil_protocol::ot::{Ends, Leaf, Pins, ReceiverSetUp, SenderSetUp};
use veil_session::{Peer, Secret, SessionId};

const VECTORS: &str = include_str!("../../../../vectors/ot_set_up.json");

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("hex digits");
    let byte = |two: usize| u8::from_str_radix(&text[two..two + 2], 16).expect("hex digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

fn secrets(value: &Value) -> Vec<Secret> {
    let list = value.as_array().expect("a list").iter();
    list.map(|s| Secret::new(hex(s).try_into().expect("16 bytes")))
        .collect()
}

fn pairs(value: &Value) -> Vec<[Secret; 2]> {
    let list = value.as_array().expect("a list").iter();
    list.map(|two| secrets(two).try_into().expect("two"))
        .collect()
}

fn ends(vectors: &Value) -> Ends {
    let peer = |name: &str| {
        let bytes = hex(&vectors[name]).try_into().expect("three bytes");
        Peer::from_bytes(bytes).expect("a peer")
    };
    Ends {
        session: SessionId(hex(&vectors["session"]).try_into().expect("32 bytes")),
        sender: peer("sender"),
        receiver: peer("receiver"),
    }
}

fn trees(case: &Value) -> Trees {
    Trees::new(case["k"].as_u64().expect("a number") as u8).expect("there are such trees")
}

/// Random bytes from a list, all of which must be taken.
struct Listed(Vec<u8>);

impl Listed {
    fn fill(&mut self, bytes: &mut [u8]) {
        let rest = self.0.split_off(bytes.len());
        bytes.copy_from_slice(&self.0);
        self.0 = rest;
    }
}

#[test]
fn the_set_up_is_that_of_the_model() {
    let vectors: Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    let (ends, case) = (ends(&vectors), &vectors["set_up"]);
    let mut random = Listed(hex(&case["sender_random"]));
    let (sender, points) = SenderSetUp::start(&ends, trees(case), Pins::default(), &mut |b| {
        random.fill(b);
        Ok::<_, ()>(())
    })
    .unwrap();
    assert!(random.0.is_empty());
    let mut random = Listed(hex(&case["receiver_random"]));
    let a = random.0[..64].try_into().expect("64 bytes");
    let (receiver, point) = ReceiverSetUp::start(&ends, trees(case), &mut |b| {
        random.fill(b);
        Ok::<_, ()>(())
    })
    .unwrap();
    assert!(random.0.is_empty());
    assert_eq!(points, hex(&case["points"]));
    assert_eq!(point, hex(&case["point"]));
    let keys = BaseSender::start(&ends, &a).0.finish(&points).unwrap();
    for (got, want) in keys.iter().zip(pairs(&case["pairs"])) {
        assert_eq!(got[0].expose(), want[0].expose());
        assert_eq!(got[1].expose(), want[1].expose());
    }
    let (message, all) = receiver.finish(&points).unwrap();
    assert_eq!(message, hex(&case["trees"]));
    let want: Vec<Vec<Secret>> = case["leaves"]
        .as_array()
        .map(|l| l.iter().map(secrets).collect())
        .expect("a list");
    for (tree, leaves) in want.iter().enumerate() {
        for (x, leaf) in leaves.iter().enumerate() {
            let index = trees(case).index(tree as u32, x as u32);
            let (number, got) = &all[usize::from(index)];
            assert_eq!((*number, got.expose()), (index, leaf.expose()));
        }
    }
    let (offset, some) = sender.base(&point).unwrap().finish(&message).unwrap();
    assert_eq!(offset.expose()[..], hex(&case["offset"]));
    for (number, got) in &some {
        let (tree, y) = (usize::from(number / 16), number % 16);
        let path = u16::from(offset.expose()[tree / 2] >> (4 * (tree % 2)) & 15);
        assert_eq!(
            got.expose(),
            want[tree][usize::from(y ^ path)].expose(),
            "tree {tree} leaf {y}"
        );
    }
}

/// A session that leaves transfers, and the one that begins with them.
#[test]
fn the_session_after_is_that_of_the_model() {
    let vectors: Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    let (first, case) = (ends(&vectors), &vectors["set_up"]);
    let (trees, again) = (trees(case), &case["again"]);
    let secret = |value| Secret::new(hex(value).try_into().expect("16 bytes"));
    let listed = |value: &Value| {
        let mut random = Listed(hex(value));
        move |bytes: &mut [u8]| {
            random.fill(bytes);
            Ok::<_, ()>(())
        }
    };
    let (sender, points) = SenderSetUp::start(
        &first,
        trees,
        Pins::default(),
        &mut listed(&case["sender_random"]),
    )
    .unwrap();
    let (receiver, point) =
        ReceiverSetUp::start(&first, trees, &mut listed(&case["receiver_random"])).unwrap();
    let choices = secret(&again["kept_choices"]);
    let (message, _, theirs) = receiver.finish_and_keep(&points, &choices).unwrap();
    assert_eq!(
        message,
        [hex(&case["trees"]), hex(&again["turned"])].concat()
    );
    let sender = sender.base(&point).unwrap();
    let (_, _, mine) = sender.finish_and_keep(&message).unwrap();

    let session = SessionId(hex(&again["session"]).try_into().expect("32 bytes"));
    let ends = Ends { session, ..first };
    let key = secret(&again["key"]);
    for (by, want) in [(ends.sender, 0), (ends.receiver, 1)] {
        assert_eq!(claim(&ends, by, &key)[..], hex(&again["claims"][want]));
    }
    let mut random = listed(&again["sender_random"]);
    let (sender, message) =
        SenderSetUp::again(&ends, trees, Pins::default(), mine, &mut random).unwrap();
    assert_eq!(message, hex(&again["first"]));
    let mut random = listed(&again["receiver_random"]);
    let receiver = ReceiverSetUp::again(&ends, trees, theirs, &mut random).unwrap();
    let (message, all) = receiver.finish(&message).unwrap();
    assert_eq!(message, hex(&again["trees"]));
    let leaves: Vec<Secret> = (again["leaves"].as_array().expect("a list").iter())
        .flat_map(secrets)
        .collect();
    for ((_, got), want) in all.iter().zip(&leaves) {
        assert_eq!(got.expose(), want.expose());
    }
    let (offset, _) = sender.finish(&message).unwrap();
    assert_eq!(offset.expose()[..], hex(&again["offset"]));
}

/// Transfers of the other direction in the same session.
#[test]
fn both_directions_are_those_of_the_model() {
    let vectors: Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    let (ends, case) = (ends(&vectors), &vectors["set_up"]);
    let (trees, both) = (trees(case), &case["both"]);
    let listed = |value: &Value| {
        let mut random = Listed(hex(value));
        move |bytes: &mut [u8]| {
            random.fill(bytes);
            Ok::<_, ()>(())
        }
    };
    let number = |value: &Value| {
        let text = value.as_str().expect("hex digits");
        u128::from_str_radix(text, 16).expect("hex digits")
    };
    let mut random = listed(&case["sender_random"]);
    let (sender, points) = SenderSetUp::start(&ends, trees, Pins::default(), &mut random).unwrap();
    let mut random = listed(&case["receiver_random"]);
    let (receiver, point) = ReceiverSetUp::start(&ends, trees, &mut random).unwrap();
    let drawn = Secret::new(hex(&both["drawn"]).try_into().expect("16 bytes"));
    let pins = Pins::new(number(&both["pins"][0]), number(&both["pins"][1]));
    let (message, _, back) = receiver.finish_and_turn(&points, &drawn, pins).unwrap();
    assert_eq!(
        message,
        [hex(&case["trees"]), hex(&both["turned"])].concat()
    );
    let roots = hex(&both["roots"]);
    let roots: Vec<Secret> = (roots.as_chunks().0.iter().copied())
        .map(Secret::new)
        .collect();
    let sender = sender.base(&point).unwrap();
    let (_, (message, all)) = sender.finish_and_grow(&message, &roots).unwrap();
    assert_eq!(message, hex(&both["trees"]));
    let leaves: Vec<Secret> = (both["leaves"].as_array().expect("a list").iter())
        .flat_map(secrets)
        .collect();
    assert_eq!(all.len(), leaves.len());
    for ((_, got), want) in all.iter().zip(&leaves) {
        assert_eq!(got.expose(), want.expose());
    }
    let (offset, some) = back.finish(&message).unwrap();
    assert_eq!(offset.expose()[..], hex(&both["offset"]));
    for (number, got) in &some {
        let path = u16::from(offset.expose()[usize::from(number / 32)] >> (number / 16 % 2 * 4));
        let want = &leaves[usize::from(number ^ path & 15)];
        assert_eq!(got.expose(), want.expose(), "leaf {number}");
    }
}

#[test]
fn trees_of_every_size_are_those_of_the_model() {
    let vectors: Value = serde_json::from_str(VECTORS).expect("the vectors are JSON");
    for case in vectors["trees"].as_array().expect("a list") {
        let (roots, keys) = (secrets(&case["roots"]), pairs(&case["pairs"]));
        let (message, leaves) = grow(&ends(&vectors), trees(case), &roots, &keys);
        assert_eq!(
            Sha256::digest(&message)[..],
            hex(&case["trees_sha256"]),
            "{case}"
        );
        let joined = |sum: Sha256, (_, leaf): &Leaf| sum.chain_update(leaf.expose());
        let digest = leaves.iter().fold(Sha256::new(), joined).finalize();
        assert_eq!(digest[..], hex(&case["leaves_sha256"]));
    }
}
