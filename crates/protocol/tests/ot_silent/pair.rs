//! Both parties of silent transfers, on any device.

use veil_device::{
    ColumnType, Device, Frame, KeyId, Layout, Lpn, Op, Region, Residency, Span, Trees, Workspace,
};
use veil_math::Ring;
use veil_protocol::Round;
use veil_protocol::ot::extension::Challenge;
use veil_protocol::ot::silent::{Base, Receiver, Sender};
use veil_session::{Peer, Secret, SessionId};

use crate::common::Kind;
use crate::ot_transfers::pair::{
    AT, End, Failed, LEAVES, OFFSET, PRIVATE, RECEIVER, SENDER, START, block, exchange,
};

/// Parameters whose rounds follow each other. They hide nothing.
pub(crate) const LASTING: Lpn = Lpn::of(32, 5, 5);
pub(crate) const TREES: Trees = Trees::ALL[2];

/// Items of choices.
pub(crate) const ITEMS: u32 = 2;

/// What a command leaves, and what a message is on its way.
pub(crate) type Look<'a> = &'a mut dyn FnMut(Peer, &Op, &mut dyn Device, Workspace);
pub(crate) type Pass<'a> = &'a mut dyn FnMut(Peer, u32, &mut Vec<u8>);

pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    /// What a chosen transfer sends, at both.
    pub(crate) messages: [Span; 2],
    pub(crate) layouts: [Layout; 2],
    pub(crate) offset: u128,
    pub(crate) rows: u32,
}

impl Pair {
    /// Keys that follow from `seed`.
    pub(crate) fn new(set: Lpn, kind: Kind, seed: u64, coin: bool) -> Pair {
        let frame = (1, 3, 37);
        let offset = u128::from_le_bytes(block(seed, 0)) | 1;
        let pair = Pair::with(set, kind, offset, coin, frame);
        pair.keyed(seed)
    }

    /// Without keys but the offset. All regions can be reached, so that tests see what parties do not send.
    pub(crate) fn with(
        set: Lpn,
        kind: Kind,
        offset: u128,
        coin: bool,
        (lane, chunk, rows): (u16, u32, u32),
    ) -> Pair {
        let base = Base {
            trees: TREES,
            challenge: if coin {
                Challenge::Coin(PRIVATE)
            } else {
                Challenge::Hash
            },
            leaves: LEAVES,
            common: START,
            private: PRIVATE,
            back: false,
        };
        let (mut sender, mut receiver) = (None, None);
        let (mut messages, mut layouts) = (Vec::new(), Vec::new());
        let ends = [SENDER, RECEIVER].map(|me| {
            let mut layout = Layout {
                chunk_rows: rows,
                regions: vec![],
            };
            let mut add = |column, count| {
                let region = layout.add(Region {
                    residency: Residency::Mapped,
                    column,
                    components: 1,
                    count,
                });
                layout.all(region, 0)
            };
            let labels = add(ColumnType::Labels, ITEMS);
            let choices = add(ColumnType::Rows(Ring::Bits), ITEMS);
            messages.push(add(ColumnType::Rows(Ring::Bits), ITEMS));
            if me == SENDER {
                sender = Some(Sender::new(&mut layout, RECEIVER, set, base, OFFSET));
            } else {
                receiver = Some(Receiver::new(&mut layout, SENDER, set, base));
            }
            for region in &mut layout.regions {
                region.residency = match region.column {
                    // Columns of the extension stay where they have to be.
                    ColumnType::Bytes(bytes) if region.count >= 128 && bytes % 16 == 0 => {
                        region.residency
                    }
                    _ => Residency::Mapped,
                };
            }
            let mut device = kind.device();
            device.bind(SessionId([0x5e; 32]));
            let frame = Frame {
                epoch: 0,
                lane,
                chunk,
                rows,
            };
            let workspace = device.open(&layout, frame).expect("a small workspace");
            layouts.push(layout);
            End {
                device,
                workspace,
                labels,
                choices,
                items: ITEMS,
            }
        });
        let mut pair = Pair {
            ends,
            sender: sender.expect("it was made"),
            receiver: receiver.expect("it was made"),
            messages: [messages[0], messages[1]],
            layouts: layouts.try_into().expect("of both"),
            offset,
            rows,
        };
        pair.load(OFFSET, &[0], offset.to_le_bytes());
        pair
    }

    fn keyed(mut self, seed: u64) -> Pair {
        keyed(&mut self.ends, self.offset, seed);
        self
    }

    pub(crate) fn load(&mut self, id: KeyId, at: &[usize], key: [u8; 16]) {
        for end in at {
            let device = &mut self.ends[*end].device;
            device.load_key(id, &Secret::new(key)).expect("room for it");
        }
    }

    /// Rounds of both, in order.
    pub(crate) fn all(
        &mut self,
        rounds: [&[Round]; 2],
        look: Look<'_>,
        pass: Pass<'_>,
    ) -> Result<(), Failed> {
        assert_eq!(rounds[0].len(), rounds[1].len());
        for both in rounds[0].iter().zip(rounds[1]) {
            let place = both.0.place;
            exchange(&mut self.ends, both.into(), look, &mut |from, _, bytes| {
                pass(from, place, bytes);
            })?;
        }
        Ok(())
    }

    /// The base of round 0.
    pub(crate) fn base(&mut self, pass: Pass<'_>) -> Result<(), Failed> {
        let rounds = [self.sender.base(AT), self.receiver.base(AT)];
        self.all([&rounds[0], &rounds[1]], &mut |_, _, _, _| {}, pass)
    }

    /// Places of a round are 0, 1 and 2 here.
    pub(crate) fn round(&mut self, number: u64, lasts: bool, pass: Pass<'_>) -> Result<(), Failed> {
        let rounds = [
            self.sender.round(0, number, lasts),
            self.receiver.round(0, number, lasts),
        ];
        self.all([&rounds[0], &rounds[1]], &mut |_, _, _, _| {}, pass)
    }

    /// Transfers of choices by outputs from number `first` on; the message.
    pub(crate) fn choose(&mut self, first: u64, choices: &[u8]) -> Vec<u8> {
        let end = &mut self.ends[1];
        end.device
            .write(end.workspace, end.choices, choices)
            .expect("it is mapped");
        let with = [end.choices, self.messages[1]];
        let receiver = self.receiver.choose(9, first, with, end.labels);
        let to = self.ends[0].labels;
        let sender = self.sender.turn(9, first, self.messages[0], to);
        let mut sent = Vec::new();
        let rounds = [&[sender][..], &[receiver][..]];
        let done = self.all(rounds, &mut |_, _, _, _| {}, &mut |from, _, bytes| {
            assert_eq!(from, RECEIVER);
            sent.clone_from(bytes);
        });
        assert_eq!(done, Ok(()));
        sent
    }

    /// Q = T ⊕ x Δ.
    pub(crate) fn check(&self) {
        let (q, t) = (self.ends[0].see(0), self.ends[1].see(0));
        let end = &self.ends[1];
        let view = end.device.view(end.workspace, end.choices);
        let choices = view.expect("it is mapped");
        assert_eq!(q.len(), (ITEMS * self.rows) as usize);
        let width = self.rows.div_ceil(8);
        for (k, (q, t)) in (0..).zip(q.iter().zip(&t)) {
            let (item, row) = (k / self.rows, k % self.rows);
            let x = choices[(item * width + row / 8) as usize] >> (row % 8) & 1;
            let want = t ^ u128::from(x).wrapping_neg() & self.offset;
            assert_eq!(*q, want, "transfer {k}");
        }
    }
}

/// Loads all keys but the offset, which follow from `seed`.
pub(crate) fn keyed(ends: &mut [End; 2], offset: u128, seed: u64) {
    let mut load = |id: KeyId, at: &[usize], key: [u8; 16]| {
        for end in at {
            let device = &mut ends[*end].device;
            device.load_key(id, &Secret::new(key)).expect("room for it");
        }
    };
    load(START, &[0, 1], block(seed, 1));
    load(PRIVATE, &[0], block(seed, 2));
    load(PRIVATE, &[1], block(seed, 3));
    for tree in 0..TREES.count() {
        let path = (offset >> (TREES.bits() * tree)) as u32 & (TREES.leaves() - 1);
        for x in 0..TREES.leaves() {
            let key = block(seed, 16 + u32::from(TREES.index(tree, x)));
            load(KeyId(LEAVES.0 + TREES.index(tree, x)), &[1], key);
            if x != path {
                load(KeyId(LEAVES.0 + TREES.index(tree, x ^ path)), &[0], key);
            }
        }
    }
}

pub(crate) fn honest(_: Peer, _: u32, _: &mut Vec<u8>) {}

/// What a receiver says of a wrong round.
pub(crate) fn caught() -> Result<(), Failed> {
    Err(Failed(RECEIVER, vec![SENDER], "trees of silent transfers"))
}
