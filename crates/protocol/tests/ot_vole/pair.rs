//! Both parties of a vector of products, on any device.

use veil_device::{ColumnType, Frame, Layout, Lpn, Region, Residency, Span};
use veil_math::Ring;
use veil_protocol::Round;
use veil_protocol::ot::extension::Challenge;
use veil_protocol::ot::silent::Base;
use veil_protocol::ot::vole::{Receiver, Sender, Sets, Shape};
use veil_session::{Peer, Secret, SessionId};

use crate::common::Kind;
use crate::ot_silent::pair::{Look, Pass, TREES, keyed};
use crate::ot_transfers::pair::{
    AT, End, Failed, LEAVES, OFFSET, PRIVATE, RECEIVER, SENDER, START, block, exchange,
};

/// Parameters whose rounds follow each other. They hide nothing.
pub(crate) const TOYS: Sets = Sets {
    silent: Lpn::of(40, 4, 6),
    blocks: Lpn::over_blocks(9, 3, 3),
};

pub(crate) struct Pair {
    pub(crate) ends: [End; 2],
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) layouts: [Layout; 2],
    pub(crate) offset: u128,
    pub(crate) rows: u32,
    pub(crate) base: Base,
}

impl Pair {
    /// Keys that follow from `seed`.
    pub(crate) fn new(shape: Shape, kind: Kind, seed: u64, challenge: Challenge) -> Pair {
        let offset = u128::from_le_bytes(block(seed, 0)) | 1;
        let mut pair = Pair::with(shape, kind, offset, challenge, (1, 3, 37));
        keyed(&mut pair.ends, offset, seed);
        pair
    }

    /// Without keys but the offset. All regions that may be are mapped, so that tests see what parties do not send.
    pub(crate) fn with(
        shape: Shape,
        kind: Kind,
        offset: u128,
        challenge: Challenge,
        (lane, chunk, rows): (u16, u32, u32),
    ) -> Pair {
        let base = Base {
            trees: TREES,
            challenge,
            leaves: LEAVES,
            common: START,
            private: PRIVATE,
            back: false,
        };
        let (mut sender, mut receiver) = (None, None);
        let mut layouts = Vec::new();
        let ends = [SENDER, RECEIVER].map(|me| {
            let mut layout = Layout {
                chunk_rows: rows,
                regions: vec![],
            };
            let mut add = |column| {
                let region = layout.add(Region {
                    residency: Residency::Mapped,
                    column,
                    components: 1,
                    count: 1,
                });
                layout.all(region, 0)
            };
            let labels = add(ColumnType::Labels);
            let choices = add(ColumnType::Rows(Ring::Bits));
            if me == SENDER {
                let made = Sender::new(&mut layout, RECEIVER, shape, base, OFFSET);
                sender = Some(made);
            } else {
                receiver = Some(Receiver::new(&mut layout, SENDER, shape, base));
            }
            let made = match (&sender, &receiver) {
                (_, Some(receiver)) => receiver.entries().to_vec(),
                (Some(sender), _) => vec![sender.entries()],
                _ => vec![],
            };
            for (index, region) in (0..).zip(&mut layout.regions) {
                let is_made = made.iter().any(|span| span.region == index);
                // Columns of the extension stay where they have to be.
                if is_made || matches!(region.column, ColumnType::Bytes(bytes) if bytes >= 16 && region.count < 128)
                {
                    region.residency = Residency::Mapped;
                }
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
                items: 1,
            }
        });
        let mut pair = Pair {
            ends,
            sender: sender.expect("it was made"),
            receiver: receiver.expect("it was made"),
            layouts: layouts.try_into().expect("of both"),
            offset,
            rows,
            base,
        };
        let device = &mut pair.ends[0].device;
        let secret = Secret::new(offset.to_le_bytes());
        device.load_key(OFFSET, &secret).expect("room for it");
        pair
    }

    pub(crate) fn rounds(&self) -> [Vec<Round>; 2] {
        [self.sender.rounds(AT), self.receiver.rounds(AT)]
    }

    /// Rounds of both, in order; `pass` is told how many of them went before.
    pub(crate) fn all(
        &mut self,
        rounds: [&[Round]; 2],
        look: Look<'_>,
        pass: Pass<'_>,
    ) -> Result<(), Failed> {
        assert_eq!(rounds[0].len(), rounds[1].len());
        for (k, both) in (0..).zip(rounds[0].iter().zip(rounds[1])) {
            assert_eq!(both.0.place, both.1.place);
            exchange(&mut self.ends, both.into(), look, &mut |from, _, bytes| {
                pass(from, k, bytes);
            })?;
        }
        Ok(())
    }

    /// All rounds.
    pub(crate) fn run(&mut self, pass: Pass<'_>) -> Result<(), Failed> {
        let [sender, receiver] = self.rounds();
        self.all([&sender, &receiver], &mut |_, _, _, _| {}, pass)
    }

    /// Blocks at an end.
    pub(crate) fn see(&self, end: usize, span: Span) -> Vec<u128> {
        let end = &self.ends[end];
        let view = end.device.view(end.workspace, span);
        let chunks = view.expect("it is mapped").as_chunks().0.iter();
        chunks.map(|block| u128::from_le_bytes(*block)).collect()
    }

    /// B, then A and C.
    pub(crate) fn entries(&self) -> [Vec<u128>; 3] {
        let [a, c] = self.receiver.entries();
        [
            self.see(0, self.sender.entries()),
            self.see(1, a),
            self.see(1, c),
        ]
    }

    /// A = B ⊕ C Δ, and C are many different blocks.
    pub(crate) fn check(&self) {
        let [b, a, mut c] = self.entries();
        assert_eq!((b.len(), a.len()), (c.len(), c.len()));
        for (k, ((b, a), c)) in b.iter().zip(&a).zip(&c).enumerate() {
            assert_eq!(*a, b ^ dot(*c, self.offset), "entry {k}");
        }
        let all = c.len();
        c.sort_unstable();
        c.dedup();
        assert_eq!(c.len(), all, "two entries have one block");
    }
}

/// a b x^-128, bit by bit.
pub(crate) fn dot(a: u128, b: u128) -> u128 {
    const FIELD: u128 = 1 << 127 | 1 << 126 | 1 << 121 | 1;
    // From x^127 of b on: a b x^-128 is the sum of a x^(i-128).
    let (mut sum, mut power) = (0, a);
    for i in (0..128).rev() {
        // The polynomial's constant is 1: with it the sum is divisible by x.
        power = power >> 1 ^ (power & 1).wrapping_neg() & (FIELD >> 1 | 1 << 127);
        sum ^= (b >> i & 1).wrapping_neg() & power;
    }
    sum
}

/// What a receiver says of a wrong round.
pub(crate) fn caught(what: &'static str) -> Result<(), Failed> {
    Err(Failed(RECEIVER, vec![SENDER], what))
}

pub(crate) const TREES_OF_ENTRIES: &str = "trees of a vector of products";
pub(crate) const TREES_OF_SILENT: &str = "trees of silent transfers";

pub(crate) fn honest(_: Peer, _: u32, _: &mut Vec<u8>) {}
