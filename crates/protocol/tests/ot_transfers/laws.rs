//! What honest transfers give, and that they hide the choices.

use veil_device::{Span, Trees};
use veil_protocol::ot::transfer::{Chosen, Correlated, keys};

use crate::common::Kind;
use crate::ot_transfers::pair::{
    OFFSET, Pair, RECEIVER, SENDER, SHAPE, START, Shape, block, choices,
};

#[test]
fn labels_differ_by_the_offset_where_the_choice_is_one() {
    for kind in Kind::all() {
        for trees in Trees::ALL {
            for (items, rows) in [(1, 1), (3, 8), (2, 37), (1, 512), (2, 300), (5, 0)] {
                for coin in [false, true] {
                    if trees.bits() == 8 && (kind == Kind::Reference || rows > 40) {
                        continue;
                    }
                    let shape = Shape {
                        trees,
                        items,
                        rows,
                        coin,
                    };
                    let mut pair = Pair::new(shape, kind, u64::from(rows));
                    pair.choose(&choices(shape, 9));
                    pair.honest();
                    pair.check();
                }
            }
        }
    }
}

/// Random, correlated and chosen transfers give what was chosen, and nothing that looks like the other message.
#[test]
fn transfers_give_what_was_chosen() {
    for kind in Kind::all() {
        for (items, rows) in [(1, 1), (2, 37), (3, 300)] {
            let shape = Shape {
                items,
                rows,
                ..SHAPE
            };
            let count = (items * rows) as usize;
            let mut pair = Pair::new(shape, kind, 77);
            pair.choose(&choices(shape, 3));
            pair.honest();
            let [sender, receiver] = [0, 1].map(|end| pair.ends[end].labels);
            let kind_of = |span: Span, kind: u32| Span {
                first: kind * items,
                count: items,
                ..span
            };
            let both = [kind_of(sender, 1), kind_of(sender, 2)];
            let number = (START, 1 << 40);
            pair.run(0, &keys(kind_of(sender, 0), &both, Some(OFFSET), number));
            let own = kind_of(receiver, 1);
            pair.run(1, &keys(kind_of(receiver, 0), &[own], None, number));
            let (zero, one) = (pair.ends[0].see(1), pair.ends[0].see(2));
            let chosen = pair.ends[1].see(1);
            for k in 0..count {
                let x = pair.choice(k as u32 / rows, k as u32 % rows);
                let (got, other) = if x {
                    (one[k], zero[k])
                } else {
                    (zero[k], one[k])
                };
                assert_eq!(chosen[k], got);
                assert_ne!(chosen[k], other);
                assert_ne!(zero[k] ^ one[k], pair.offset);
            }
            let label = |k: usize, what: u32| u128::from_le_bytes(block(k as u64, what));
            let messages = [500, 501].map(|what| (0..count).map(|k| label(k, what)).collect());
            let messages: [Vec<u128>; 2] = messages;
            pair.ends[0].put(3, &messages[0]);
            pair.ends[0].put(4, &messages[1]);
            // Correlated: k_0 and k_0 ⊕ δ, with δ the first list.
            let at = |peer, message| Correlated {
                place: 9,
                peer,
                message,
            };
            let send = at(RECEIVER, kind_of(sender, 5)).send(both, kind_of(sender, 3));
            let choices = pair.ends[1].choices;
            let to = kind_of(receiver, 2);
            let receive = at(SENDER, kind_of(receiver, 5)).receive(own, choices, to);
            let done = pair.round([&send, &receive], &mut |_, _, _, _| {}, &mut |_, _, _| {});
            assert_eq!(done, Ok(()));
            let correlated = pair.ends[1].see(2);
            for k in 0..count {
                let x = pair.choice(k as u32 / rows, k as u32 % rows);
                let want = zero[k] ^ if x { messages[0][k] } else { 0 };
                assert_eq!(correlated[k], want);
            }
            // Chosen: both lists.
            let at = |peer, span| Chosen {
                place: 10,
                peer,
                messages: [kind_of(span, 5), kind_of(span, 6)],
            };
            let send = at(RECEIVER, sender).send(both, [kind_of(sender, 3), kind_of(sender, 4)]);
            let receive = at(SENDER, receiver).receive(own, choices, kind_of(receiver, 7), to);
            let done = pair.round([&send, &receive], &mut |_, _, _, _| {}, &mut |_, _, _| {});
            assert_eq!(done, Ok(()));
            for (k, got) in pair.ends[1].see(2).iter().enumerate() {
                let x = pair.choice(k as u32 / rows, k as u32 % rows);
                assert_eq!(*got, messages[usize::from(x)][k]);
            }
        }
    }
}

/// What the sender sees has nothing to do with the choices: with all choices 0 and with all 1, half of the bits of every kind of message
/// are set.
#[test]
fn messages_do_not_depend_on_choices() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let shape = Shape {
        items: 4,
        rows: 2048,
        ..SHAPE
    };
    for byte in [0, 0xff] {
        let mut pair = Pair::new(shape, kind, 5 + u64::from(byte));
        pair.choose(&vec![byte; choices(shape, 0).len()]);
        let mut seen = vec![(0u64, 0u64); 3];
        let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, part, bytes| {
            if from == RECEIVER {
                let (ones, all) = &mut seen[usize::from(part)];
                *ones += bytes.iter().map(|b| u64::from(b.count_ones())).sum::<u64>();
                *all += 8 * bytes.len() as u64;
            }
        });
        assert_eq!(told, Ok(()));
        let labels = pair.ends[0].see(0);
        let ones = labels.iter().map(|l| u64::from(l.count_ones())).sum();
        seen.push((ones, 128 * labels.len() as u64));
        for (part, (ones, all)) in seen.into_iter().enumerate() {
            let distance = (ones as f64 - all as f64 / 2.0).abs() / (all as f64 / 4.0).sqrt();
            assert!(
                distance < 4.5,
                "kind {part}, choices {byte}: {ones} of {all}"
            );
        }
    }
}
