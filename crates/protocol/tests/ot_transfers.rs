//! Transfers between two parties on every device: honest ones against the model and against their law, and lies of the receiver (cases
//! D2 and D3).

mod common;

use std::cell::Cell;

use common::Kind;
use common::vectors::json;
use serde_json::Value;
use sha2::{Digest, Sha256};
use veil_device::{
    Bank, Device, Frame, Item, KeyId, Layout, Op, Ot, Outcome, Place, Region, Span, Tag, Trees,
};
use veil_math::Ring;
use veil_protocol::Round;
use veil_protocol::ot::extension::{At, Challenge, Receiver, Sender};
use veil_protocol::ot::transfer::{Chosen, Correlated, keys};
use veil_prss::{Prf, Use};
use veil_session::{PartyId, Peer, Secret, SessionId};

const SENDER: Peer = Peer::Party(PartyId::THREE[0]);
const RECEIVER: Peer = Peer::Party(PartyId::THREE[1]);

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);
const PRIVATE: KeyId = KeyId(2);
const LEAVES: KeyId = KeyId(16);

/// Kinds of labels that a test looks at or writes: those of the transfers, two keys, two messages, what comes of them.
const KINDS: u32 = 8;

/// A use of transfers.
const AT: At = At {
    place: 5,
    first: 1 << 33,
    label: 0x7000,
};

/// A party: a device with a bank of both regions that a test looks at, and those of transfers.
struct End {
    device: Box<dyn Device>,
    bank: Bank,
    labels: Span,
    choices: Span,
    items: u32,
}

impl End {
    /// `labels` of a kind.
    fn labels(&self, kind: u32) -> Span {
        Span {
            first: kind * self.items,
            count: self.items,
            ..self.labels
        }
    }

    fn see(&self, kind: u32) -> Vec<u128> {
        let bytes = self
            .device
            .view(self.bank, self.labels(kind))
            .expect("it is mapped");
        let chunks = bytes.as_chunks().0.iter();
        chunks.map(|label| u128::from_le_bytes(*label)).collect()
    }

    fn put(&mut self, kind: u32, labels: &[u128]) {
        let bytes: Vec<u8> = labels.iter().flat_map(|l| l.to_le_bytes()).collect();
        let to = self.labels(kind);
        self.device
            .write(self.bank, to, &bytes)
            .expect("it is mapped");
    }

    /// Runs commands one by one; whoever looks on may change the bank after each.
    fn run(
        &mut self,
        commands: &[veil_device::Command],
        look: &mut dyn FnMut(&Op, &mut dyn Device, Bank),
    ) -> Result<(), usize> {
        for (k, command) in commands.iter().enumerate() {
            let one = std::slice::from_ref(command);
            self.device
                .submit(self.bank, one, Tag(0))
                .expect("a good command");
            match self.device.poll().expect("a completion").outcome {
                Outcome::Done => look(&command.op, &mut *self.device, self.bank),
                Outcome::Mismatch { .. } => return Err(k),
            }
        }
        Ok(())
    }
}

/// Both parties of a set-up.
struct Pair {
    ends: [End; 2],
    sender: Sender,
    receiver: Receiver,
    offset: u128,
    rows: u32,
    items: u32,
}

/// What a run of transfers is.
#[derive(Clone, Copy)]
struct Shape {
    trees: Trees,
    items: u32,
    rows: u32,
    coin: bool,
}

const SHAPE: Shape = Shape {
    trees: Trees::ALL[2],
    items: 2,
    rows: 37,
    coin: false,
};

fn block(seed: u64, what: u32) -> [u8; 16] {
    Prf::new(&Secret::new([0x77; 16])).block(Use(1), 0, seed, what)
}

impl Pair {
    /// Keys that follow from `seed`.
    fn new(shape: Shape, kind: Kind, seed: u64) -> Pair {
        let offset = u128::from_le_bytes(block(seed, 0)) | 1;
        let leaf = |tree, x| block(seed, 16 + u32::from(shape.trees.index(tree, x)));
        let mut pair = Pair::with(shape, kind, offset, &leaf, (0, 3, shape.rows.max(512)));
        pair.load(START, &[0, 1], block(seed, 1));
        pair.load(PRIVATE, &[0], block(seed, 2));
        pair
    }

    fn with(
        shape: Shape,
        kind: Kind,
        offset: u128,
        leaf: &dyn Fn(u32, u32) -> [u8; 16],
        (lane, chunk, chunk_rows): (u16, u32, u32),
    ) -> Pair {
        let Shape {
            trees,
            items,
            rows,
            coin,
        } = shape;
        let challenge = if coin {
            Challenge::Coin(PRIVATE)
        } else {
            Challenge::Hash
        };
        let (mut sender, mut receiver) = (None, None);
        let ends = [SENDER, RECEIVER].map(|me| {
            let mut layout = Layout {
                chunk_rows,
                regions: vec![],
            };
            let mut add = |item, count| {
                let region = layout.add(Region {
                    place: Place::Mapped,
                    item,
                    parts: 1,
                    count,
                });
                layout.all(region, 0)
            };
            let labels = add(Item::Labels, KINDS * items);
            let choices = add(Item::Rows(Ring::Bits), items);
            let both = (trees, items);
            if me == SENDER {
                sender = Some(Sender::new(
                    &mut layout,
                    RECEIVER,
                    both,
                    challenge,
                    (LEAVES, OFFSET),
                ));
            } else {
                receiver = Some(Receiver::new(&mut layout, SENDER, both, challenge, LEAVES));
            }
            let mut device = kind.device();
            device.bind(SessionId([0x5e; 32]));
            let frame = Frame {
                epoch: 0,
                lane,
                chunk,
                rows,
            };
            let bank = device.open(&layout, frame).expect("a small bank");
            End {
                device,
                bank,
                labels,
                choices,
                items,
            }
        });
        let mut pair = Pair {
            ends,
            sender: sender.expect("it was made"),
            receiver: receiver.expect("it was made"),
            offset,
            rows,
            items,
        };
        pair.load(OFFSET, &[0], offset.to_le_bytes());
        for tree in 0..trees.count() {
            let path = (offset >> (trees.bits() * tree)) as u32 & (trees.leaves() - 1);
            for x in 0..trees.leaves() {
                let key = leaf(tree, x);
                pair.load(KeyId(LEAVES.0 + trees.index(tree, x)), &[1], key);
                if x != path {
                    pair.load(KeyId(LEAVES.0 + trees.index(tree, x ^ path)), &[0], key);
                }
            }
        }
        pair
    }

    fn load(&mut self, id: KeyId, at: &[usize], key: [u8; 16]) {
        for end in at {
            let device = &mut self.ends[*end].device;
            device.load_key(id, &Secret::new(key)).expect("room for it");
        }
    }

    /// Choices, packed.
    fn choose(&mut self, choices: &[u8]) {
        let end = &mut self.ends[1];
        end.device
            .write(end.bank, end.choices, choices)
            .expect("it is mapped");
    }

    /// The bit of a row of an item.
    fn choice(&self, item: u32, row: u32) -> bool {
        let end = &self.ends[1];
        let bytes = end
            .device
            .view(end.bank, end.choices)
            .expect("it is mapped");
        let width = self.rows.div_ceil(8);
        bytes[(item * width + row / 8) as usize] >> (row % 8) & 1 == 1
    }

    /// Both rounds of an exchange, the sender's and the receiver's. `look` sees what a party has after each command, and `pass` what goes
    /// from one to the other.
    fn round(
        &mut self,
        rounds: [&Round; 2],
        look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Bank),
        pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
    ) -> Result<(), Failed> {
        assert_eq!(rounds[0].place, rounds[1].place);
        for (end, (round, me)) in self
            .ends
            .iter_mut()
            .zip(rounds.iter().zip([SENDER, RECEIVER]))
        {
            let done = end.run(&round.local, &mut |op, device, bank| {
                look(me, op, device, bank);
            });
            assert_eq!(done, Ok(()), "nothing is checked before it is received");
        }
        for from in [0, 1] {
            let (me, to) = ([SENDER, RECEIVER][from], 1 - from);
            let lists = (&rounds[from].sends, &rounds[to].recvs);
            assert_eq!(lists.0.len(), lists.1.len());
            for send in lists.0 {
                let mut bytes = {
                    let end = &self.ends[from];
                    end.device
                        .view(end.bank, send.span)
                        .expect("it is mapped")
                        .to_vec()
                };
                pass(me, send.part, &mut bytes);
                let recv = lists.1.iter().find(|recv| recv.part == send.part);
                let span = recv.expect("what is sent is received").span;
                let end = &mut self.ends[to];
                end.device
                    .write(end.bank, span, &bytes)
                    .expect("as long as agreed");
            }
        }
        for (end, (round, me)) in self
            .ends
            .iter_mut()
            .zip(rounds.iter().zip([SENDER, RECEIVER]))
        {
            let done = end.run(&round.finish, &mut |op, device, bank| {
                look(me, op, device, bank);
            });
            if let Err(command) = done {
                let mut checks = round.checks.iter();
                let check = checks
                    .find(|c| c.command == command)
                    .expect("it is declared");
                return Err(Failed(me, check.suspects.clone(), check.what));
            }
        }
        Ok(())
    }

    /// All rounds of the transfers.
    fn transfers(
        &mut self,
        look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Bank),
        pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
    ) -> Result<(), Failed> {
        self.transfers_at(AT.first, look, pass)
    }

    fn transfers_at(
        &mut self,
        first: u64,
        look: &mut dyn FnMut(Peer, &Op, &mut dyn Device, Bank),
        pass: &mut dyn FnMut(Peer, u16, &mut Vec<u8>),
    ) -> Result<(), Failed> {
        let at = At { first, ..AT };
        let to = [0, 1].map(|end| self.ends[end].labels(0));
        let sender = self.sender.rounds(at, to[0]);
        let receiver = self.receiver.rounds(at, self.ends[1].choices, to[1]);
        assert_eq!(sender.len(), receiver.len());
        for rounds in sender.iter().zip(&receiver) {
            self.round(rounds.into(), look, pass)?;
        }
        Ok(())
    }

    fn honest(&mut self) {
        let done = self.transfers(&mut |_, _, _, _| {}, &mut |_, _, _| {});
        assert_eq!(done, Ok(()));
    }

    /// Q = T ⊕ x Δ.
    fn check(&self) {
        let (q, t) = (self.ends[0].see(0), self.ends[1].see(0));
        assert_eq!(q.len(), (self.items * self.rows) as usize);
        for (k, (q, t)) in (0..).zip(q.iter().zip(&t)) {
            let x = self.choice(k / self.rows, k % self.rows);
            let want = if x { t ^ self.offset } else { *t };
            assert_eq!(*q, want, "transfer {k}");
        }
    }

    /// Runs commands of one party.
    fn run(&mut self, end: usize, command: &veil_device::Command) {
        let one = std::slice::from_ref(command);
        let done = self.ends[end].run(one, &mut |_, _, _| {});
        assert_eq!(done, Ok(()));
    }
}

/// Who noticed, who is suspected, and of what.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Failed(Peer, Vec<Peer>, &'static str);

fn caught() -> Result<(), Failed> {
    Err(Failed(
        SENDER,
        vec![RECEIVER],
        "corrections of oblivious transfer",
    ))
}

fn drawn(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Prf::new(&Secret::new([0x33; 16])).stream(Use(2), 0, seed << 20, 0, &mut bytes);
    bytes
}

fn choices(shape: Shape, seed: u64) -> Vec<u8> {
    drawn(seed, (shape.items * shape.rows.div_ceil(8)) as usize)
}

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

fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

/// Cases D2 and D3: a receiver that sends other corrections in c trees passes if it has guessed all their bits of the offset, here
/// that they are zero: with probability 2^-kc. If it passes it has learnt these bits, and the labels are as if they were.
#[test]
fn other_corrections_in_some_trees_cost_a_guess_of_their_bits() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for (bits, wrong, trials) in [(1, 1, 400), (1, 3, 400), (2, 1, 400), (4, 1, 600)] {
        for coin in [false, true] {
            let shape = Shape {
                trees: Trees::new(bits).expect("there are such trees"),
                coin,
                items: 1,
                ..SHAPE
            };
            let mut passed = 0;
            for seed in 0..trials {
                let mut pair = Pair::new(shape, kind, 1000 * u64::from(bits) + seed);
                pair.choose(&choices(shape, seed));
                let item = 8 * shape.rows.div_ceil(8) as usize;
                // Not in the first tree, whose bit 0 it knows.
                let lie = |device: &mut dyn Device, bank, message| {
                    let message = device.map(bank, message).expect("it is mapped");
                    (1..=wrong).for_each(|tree| flip(message, tree * item + 5));
                };
                let corrections =
                    pair.receiver
                        .rounds(AT, pair.ends[1].choices, pair.ends[1].labels(0))[0]
                        .sends[0]
                        .span;
                let told = pair.transfers(
                    &mut |_, op, device, bank| {
                        if matches!(op, Op::Ot(Ot::Receive { .. })) {
                            lie(device, bank, corrections);
                        }
                    },
                    &mut |_, _, _| {},
                );
                let guessed = pair.offset >> bits & ((1 << (usize::from(bits) * wrong)) - 1) == 0;
                if guessed {
                    passed += 1;
                    assert_eq!(told, Ok(()));
                    pair.check();
                } else {
                    assert_eq!(told, caught());
                    // Nothing was made of what is wrong.
                    assert!(pair.ends[0].see(0).iter().all(|label| *label == 0));
                }
            }
            let want = 0.5f64.powi(i32::from(bits) * wrong as i32);
            let deviation = (want * (1.0 - want) / trials as f64).sqrt();
            let rate = f64::from(passed) / trials as f64;
            assert!(
                (rate - want).abs() < 4.5 * deviation,
                "trees of {bits} bits, {wrong} wrong: {rate}"
            );
        }
    }
}

/// Case D2: another string of choices in every tree is never believed, and no wrong fold is.
#[test]
fn lies_about_all_trees_are_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for coin in [false, true] {
        let shape = Shape { coin, ..SHAPE };
        for seed in 0..50 {
            let mut pair = Pair::new(shape, kind, seed);
            pair.choose(&choices(shape, seed));
            let other = drawn(seed + 1, 10_000);
            let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, part, bytes| {
                if (from, part) == (RECEIVER, 0) {
                    bytes.iter_mut().zip(&other).for_each(|(a, b)| *a ^= b);
                }
            });
            assert_eq!(told, caught());
        }
    }
}

#[test]
fn every_wrong_byte_of_the_check_is_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    let parts = [(1, 31 * 16), (2, 129 * 16)];
    for coin in [false, true] {
        let shape = Shape { coin, ..SHAPE };
        for (part, length) in parts {
            for seed in 0..100u64 {
                let mut pair = Pair::new(shape, kind, seed);
                pair.choose(&choices(shape, seed));
                let bit = (seed as usize * 7919 + seed as usize % 8) % (8 * length);
                let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, p, bytes| {
                    if (from, p) == (RECEIVER, part) {
                        assert_eq!(bytes.len(), length);
                        flip(bytes, bit);
                    }
                });
                // A correction of the last block is believed if all bits of its tree are zero.
                let zero = || (pair.offset >> (4 * (1 + bit / 128))).trailing_zeros() >= 4;
                if part == 1 && coin && zero() {
                    assert_eq!(told, Ok(()));
                } else {
                    assert_eq!(told, caught(), "part {part} bit {bit}");
                }
            }
        }
    }
}

/// Case D1: messages of another use of the same keys are not taken.
#[test]
fn replayed_messages_are_caught() {
    let kind = *Kind::all().get(1).expect("there is a CPU");
    for coin in [false, true] {
        for replayed in [0, 1, 2] {
            let shape = Shape { coin, ..SHAPE };
            let kept = Cell::new(Vec::new());
            let mut old = Pair::new(shape, kind, 1);
            old.choose(&choices(shape, 1));
            let told = old.transfers_at(500, &mut |_, _, _, _| {}, &mut |from, part, bytes| {
                if (from, part) == (RECEIVER, replayed) {
                    kept.set(bytes.clone());
                }
            });
            assert_eq!(told, Ok(()));
            let kept = kept.take();
            let mut pair = Pair::new(shape, kind, 1);
            pair.choose(&choices(shape, 1));
            let told = pair.transfers(&mut |_, _, _, _| {}, &mut |from, part, bytes| {
                if (from, part) == (RECEIVER, replayed) {
                    bytes.clone_from(&kept);
                }
            });
            assert_eq!(told, caught(), "part {replayed}");
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

/// The golden vectors: `vectors/ot.json`.
#[test]
fn transfers_are_those_of_the_model() {
    let vectors: Value = json(include_str!("../../../vectors/ot.json"));
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
                &mut |_, op, device, bank| {
                    if let Op::Random = op {
                        let to = device.map(bank, challenge).expect("it is mapped");
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
