//! Rounds over blocks are those of the model.

use serde_json::Value;
use sha2::{Digest, Sha256};
use veil_device::{Lpn, Op, Silent, Span};
use veil_protocol::ot::extension::Challenge;
use veil_protocol::ot::vole::{Sets, Shape, Way};

use crate::common::Kind;
use crate::common::vectors::{bytes, json};
use crate::ot_transfers::pair::{OFFSET, PRIVATE, START};
use crate::ot_vole::pair::Pair;

/// What a case says of blocks: them, or their digest.
fn assert_said(of: &Value, name: &str, got: &[u8], what: &str) {
    if let Some(said) = of.get(name) {
        assert_eq!(got, bytes(said), "{what}: {name}");
    } else {
        let said = bytes(&of[format!("{name}_sha256")]);
        assert_eq!(Sha256::digest(got)[..], said, "{what}: {name}");
    }
}

/// The golden vectors: `vectors/vole.json`.
#[test]
fn rounds_are_those_of_the_model() {
    let vectors: Value = json(include_str!("../../../../vectors/vole.json"));
    for case in vectors["cases"].as_array().expect("a list") {
        let set = |name: &str, of: fn(u32, u8, u8) -> Lpn| {
            let number = |k: usize| case[name][k].as_u64().expect("a number");
            of(number(0) as u32, number(1) as u8, number(2) as u8)
        };
        let sets = Sets {
            silent: set("silent", Lpn::of),
            blocks: set("blocks", Lpn::over_blocks),
        };
        let number = |name: &str| case[name].as_u64().expect("a number");
        let block = |name: &str| <[u8; 16]>::try_from(bytes(&case[name])).expect("16 bytes");
        let shape = Shape::with(number("entries") as u32, sets).expect("the case has rounds");
        let rounds = case["rounds"].as_array().expect("a list");
        let expansions = rounds.len() as u32;
        let way = Way::Expanded {
            rounds: 1,
            expansions,
        };
        assert_eq!(shape.way(), way);
        let frame = (
            number("lane") as u16,
            number("chunk") as u32,
            number("rows") as u32,
        );
        for kind in Kind::all() {
            let offset = u128::from_le_bytes(block("offset"));
            let mut pair = Pair::with(shape, kind, offset, Challenge::Hash, frame);
            for (id, ends, key) in [
                (START, &[0, 1][..], "common"),
                (PRIVATE, &[0], "own"),
                (OFFSET, &[0], "offset"),
            ] {
                for end in ends {
                    let key = veil_session::Secret::new(block(key));
                    pair.ends[*end].device.load_key(id, &key).expect("room");
                }
            }
            let both = pair.rounds();
            let names = [&["base_b"][..], &["base_a", "base_c"]];
            for (end, (rounds, name)) in both.iter().zip(["keys", "macs"]).enumerate() {
                let pack = rounds[3].finish.last().expect("it packs");
                let of = &pair.layouts[end].regions[usize::from(pack.src[0].region)];
                let all = Span {
                    count: of.count,
                    ..pack.src[0]
                };
                let of_case = bytes(&case[name]);
                let of_end = &mut pair.ends[end];
                let written = of_end.device.write(of_end.workspace, all, &of_case);
                written.expect("it is mapped");
                let one = std::slice::from_ref(pack);
                let done = of_end.run(one, &mut |_, device, workspace| {
                    for (to, name) in pack.dst.iter().zip(names[end]) {
                        let made = device.view(workspace, *to).expect("it is mapped");
                        assert_said(case, name, made, &format!("{kind:?}"));
                    }
                });
                assert_eq!(done, Ok(()));
            }
            for (k, of) in rounds.iter().enumerate() {
                let what = format!("{kind:?}, {sets:?}, round {k}");
                let three = [&both[0][4 + 3 * k..][..3], &both[1][4 + 3 * k..][..3]];
                let leaves = [
                    three[0][0].local[1].dst[..2].to_vec(),
                    three[1][0].finish[1].dst.clone(),
                ];
                let (mut looked, mut messages) = (0, Vec::new());
                let done = pair.all(
                    three,
                    &mut |_, op, device, workspace| {
                        let names: &[&str] = match op {
                            Op::Silent(Silent::Grow { .. }) => &["sender_leaves"],
                            Op::Silent(Silent::Give { .. }) => &["v"],
                            Op::Silent(Silent::Puncture { .. }) => &["receiver_leaves"],
                            Op::Silent(Silent::Fill { .. }) => &["w", "noise"],
                            Op::Silent(Silent::Rows { .. }) => {
                                looked += 1;
                                [&["b"][..], &["a", "c"]][looked - 1]
                            }
                            _ => return,
                        };
                        let end = usize::from(!["sender_leaves", "v", "b"].contains(&names[0]));
                        for (name, spans) in names.iter().zip(leaves[end].chunks(2)) {
                            let mut all = Vec::new();
                            for span in spans {
                                all.extend(device.view(workspace, *span).expect("it is mapped"));
                            }
                            assert_said(of, name, &all, &what);
                        }
                    },
                    &mut |_, _, bytes| messages.push(bytes.clone()),
                );
                assert_eq!((done, looked), (Ok(()), 2), "{what}");
                for (message, name) in messages.iter().zip(["message", "told", "answer"]) {
                    assert_eq!(*message, bytes(&of[name]), "{what}: {name}");
                }
            }
            pair.check();
        }
    }
}
