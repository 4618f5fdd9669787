//! Rounds are those of the model.

use serde_json::Value;
use sha2::{Digest, Sha256};
use veil_device::{Lpn, Op, Silent};

use crate::common::Kind;
use crate::common::vectors::{bytes, json};
use crate::ot_silent::pair::{ITEMS, Pair};
use crate::ot_transfers::pair::{PRIVATE, START};

/// What a case says of blocks: them, or their digest.
fn assert_said(of: &Value, name: &str, got: &[u8], what: &str) {
    if let Some(said) = of.get(name) {
        assert_eq!(got, bytes(said), "{what}: {name}");
    } else {
        let said = bytes(&of[format!("{name}_sha256")]);
        assert_eq!(Sha256::digest(got)[..], said, "{what}: {name}");
    }
}

/// The golden vectors: `vectors/silent.json`.
#[test]
fn rounds_are_those_of_the_model() {
    let vectors: Value = json(include_str!("../../../../vectors/silent.json"));
    for case in vectors["cases"].as_array().expect("a list") {
        let number = |name: &str| case[name].as_u64().expect("a number");
        let block = |name: &str| <[u8; 16]>::try_from(bytes(&case[name])).expect("16 bytes");
        let set = Lpn::of(
            number("trees") as u32,
            number("log_secret") as u8,
            number("height") as u8,
        );
        let frame = (
            number("lane") as u16,
            number("chunk") as u32,
            number("rows") as u32,
        );
        for kind in Kind::all() {
            let offset = u128::from_le_bytes(block("offset"));
            let mut pair = Pair::with(set, kind, offset, false, frame);
            pair.load(START, &[0, 1], block("common"));
            pair.load(PRIVATE, &[0], block("own"));
            let rounds = case["rounds"].as_array().expect("a list");
            for (k, of) in (0..).zip(rounds) {
                let lasts = k + 1 < rounds.len() as u64;
                let both = [
                    pair.sender.round(0, k, lasts),
                    pair.receiver.round(0, k, lasts),
                ];
                let trees = [&both[0][0].local[0], &both[1][0].finish[0]];
                let leaves = trees.map(|command| [command.dst[0], command.dst[1]]);
                if k == 0 {
                    for (end, (command, name)) in pair
                        .ends
                        .iter_mut()
                        .zip(trees.into_iter().zip(["sender_base", "receiver_base"]))
                    {
                        let base = bytes(&case[name]);
                        end.device
                            .write(end.workspace, command.src[0], &base)
                            .expect("tests reach it");
                    }
                }
                let mut looked = 0;
                let what = format!("{kind:?}, {set:?}, round {k}");
                let mut messages = Vec::new();
                let done = pair.all(
                    [&both[0], &both[1]],
                    &mut |_, op, device, workspace| {
                        let (name, end) = match op {
                            Op::Silent(Silent::Grow { .. }) => ("sender_leaves", 0),
                            Op::Silent(Silent::Puncture { .. }) => ("receiver_leaves", 1),
                            Op::Silent(Silent::Rows { .. }) => {
                                looked += 1;
                                [("sender_outputs", 0), ("receiver_outputs", 1)][looked - 1]
                            }
                            _ => return,
                        };
                        let mut all = Vec::new();
                        for span in leaves[end] {
                            all.extend(device.view(workspace, span).expect("tests reach it"));
                        }
                        assert_said(of, name, &all, &what);
                    },
                    &mut |_, _, bytes| messages.push(bytes.clone()),
                );
                assert_eq!((done, looked), (Ok(()), 2), "{what}");
                for (message, name) in messages.iter().zip(["sums", "told", "answer"]) {
                    assert_eq!(*message, bytes(&of[name]), "{what}: {name}");
                }
            }
            assert_eq!(number("items"), u64::from(ITEMS));
            let turned = pair.choose(number("first_output"), &bytes(&case["choices"]));
            assert_eq!(turned, bytes(&case["turned"]), "{kind:?}");
            pair.check();
            for (end, name) in pair.ends.iter().zip(["sender_labels", "receiver_labels"]) {
                let labels: Vec<u8> = end.see(0).iter().flat_map(|l| l.to_le_bytes()).collect();
                assert_eq!(labels, bytes(&case[name]), "{kind:?}: {name}");
            }
        }
    }
}
