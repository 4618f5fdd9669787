//! Transfers are those of the model.

use serde_json::Value;
use sha2::{Digest, Sha256};
use veil_device::{Op, Trees};
use veil_protocol::ot::transfer::keys;

use crate::common::vectors::json;
use crate::common::{self, Kind};
use crate::ot_transfers::pair::{AT, OFFSET, PRIVATE, Pair, RECEIVER, START, Shape};

/// The golden vectors: `vectors/ot.json`.
#[test]
fn transfers_are_those_of_the_model() {
    let vectors: Value = json(include_str!("../../../../vectors/ot.json"));
    let hex = |value: &Value| common::vectors::bytes(value);
    for case in vectors["transfers"].as_array().expect("a list") {
        let number = |name: &str| case[name].as_u64().expect("a number");
        let trees = Trees::new(number("k") as u8).expect("there are such trees");
        let shape = Shape {
            trees,
            items: number("items") as u32,
            rows: number("rows") as u32,
            coin: true,
        };
        let leaf = |tree: u32, x: u32| {
            let mut hash = Sha256::new();
            let label = format!("ot/leaf/{}/{tree}/{x}", trees.bits());
            hash.update(b"veilworks golden vectors 1/");
            hash.update(label.as_bytes());
            hash.update([b'/', 0, 0, 0, 0, 0, 0, 0, 0]);
            let digest: [u8; 32] = hash.finalize().into();
            digest[..16].try_into().expect("16 of 32 bytes")
        };
        let block = |name: &str| <[u8; 16]>::try_from(hex(&case[name])).expect("16 bytes");
        let frame = (
            number("lane") as u16,
            number("chunk") as u32,
            number("chunk_rows") as u32,
        );
        for kind in Kind::all() {
            let offset = u128::from_le_bytes(block("offset"));
            let mut pair = Pair::with(shape, kind, offset, &leaf, frame);
            pair.load(START, &[0, 1], block("start"));
            pair.load(PRIVATE, &[0], [0; 16]);
            pair.choose(&hex(&case["choices"]));
            let mut messages = vec![Vec::new(); 3];
            // The challenge is the model's: the sender's own is replaced before it is sent.
            let challenge = pair.sender.rounds(AT, pair.ends[0].labels(0))[1].sends[0].span;
            let told = pair.transfers_at(
                number("first"),
                &mut |_, op, device, workspace| {
                    if let Op::Random = op {
                        let to = device.map(workspace, challenge).expect("it is mapped");
                        to.copy_from_slice(&block("challenge"));
                    }
                },
                &mut |from, part, bytes| {
                    if from == RECEIVER {
                        messages[usize::from(part)].clone_from(bytes);
                    }
                },
            );
            assert_eq!(told, Ok(()));
            assert_eq!(messages[0], hex(&case["corrections"]), "{kind:?}");
            assert_eq!(messages[1], hex(&case["last"]));
            assert_eq!(messages[2], hex(&case["receiver_folds"]));
            let joined = |labels: Vec<u128>| -> Vec<u8> {
                labels.iter().flat_map(|l| l.to_le_bytes()).collect()
            };
            assert_eq!(joined(pair.ends[0].see(0)), hex(&case["sender_labels"]));
            assert_eq!(joined(pair.ends[1].see(0)), hex(&case["receiver_labels"]));
            let first = case["first_key"].as_str().expect("digits");
            let number = (START, first.parse().expect("a number"));
            let [t, own] = [0, 1].map(|kind| pair.ends[1].labels(kind));
            let [q, zero, one] = [0, 1, 2].map(|kind| pair.ends[0].labels(kind));
            pair.run(1, &keys(t, &[own], None, number));
            pair.run(0, &keys(q, &[zero, one], Some(OFFSET), number));
            assert_eq!(joined(pair.ends[1].see(1)), hex(&case["keys"]["own"]));
            assert_eq!(joined(pair.ends[0].see(1)), hex(&case["keys"]["zero"]));
            assert_eq!(joined(pair.ends[0].see(2)), hex(&case["keys"]["one"]));
        }
    }
}
