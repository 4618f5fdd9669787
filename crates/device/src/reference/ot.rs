//! Steps of transfers, as they are defined: string by string.

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

use super::{Memory, Reference};
use crate::Fault;
use crate::command::{Command, KeyId, PrfCall};
use crate::garble::{ROW_BITS, hash};
use crate::layout::Span;
use crate::ot::{BLOCK, COLUMNS, Choices, Low, Ot, Trees, fold};

/// A string, whole blocks.
type Bytes = Zeroizing<Vec<u8>>;

impl Reference {
    /// Does a step, which was checked, and says what a comparison found.
    pub(super) fn transfer(
        &mut self,
        memory: &mut Memory,
        step: Ot,
        command: &Command,
    ) -> Result<bool, Fault> {
        let (src, dst) = (&command.src, &command.dst);
        match step {
            Ot::Receive { trees } => {
                self.receive(memory, trees, command.calls[0], src[0], dst)?;
            }
            Ot::Send { trees, offset } => {
                let offset = self.offset(offset)?;
                self.send(memory, trees, command.calls[0], offset, src, dst[0])?;
            }
            Ot::Fold { items, of } => {
                let blocks = of.blocks(items, memory.frame.rows) as usize;
                for k in 0..dst[0].count {
                    let challenge = memory.bytes(src[1]).first_chunk();
                    let challenge = challenge.expect("a challenge has 16 bytes");
                    let folded = fold(challenge, &memory.bytes(src[0].column(k))[..blocks * BLOCK]);
                    memory.bytes_mut(dst[0].column(k)).copy_from_slice(&folded);
                }
            }
            Ot::Compare { offset } => {
                let offset = self.offset(offset)?;
                let (own, theirs) = (memory.bytes(src[0]), memory.bytes(src[1]));
                let (theirs, choices) = theirs.split_at(own.len());
                let mut want = theirs.to_vec();
                for (c, want) in (0..).zip(want.chunks_mut(BLOCK)) {
                    xor_where(bit(offset, c), want, choices);
                }
                return Ok(bool::from(own.ct_eq(&want)));
            }
            Ot::Labels { low } => labels(memory, low, src[0], dst[0]),
            Ot::Keys { offset } => {
                let offset = offset.map(|key| self.offset(key)).transpose()?;
                self.transfer_keys(memory, offset.unwrap_or(0), command)?;
            }
            Ot::Choose => choose(memory, [src[0], src[1], src[2]], dst[0]),
        }
        Ok(true)
    }

    /// L of a leaf.
    fn string(
        &mut self,
        memory: &Memory,
        (items, of): (u32, Choices),
        call: PrfCall,
    ) -> Result<Bytes, Fault> {
        let frame = memory.frame;
        let prf = self.keys.get(&call.key);
        let prf = prf.ok_or(Fault::Unknown("a leaf of the trees"))?;
        let drawn = of.blocks(items, memory.layout.chunk_rows);
        let key = call.key.0;
        self.ledger
            .record_call(key, call.tag, frame.lane, frame.chunk, call.first, drawn)?;
        let mut bytes = Zeroizing::new(vec![0; of.blocks(items, frame.rows) as usize * BLOCK]);
        prf.stream(call.tag, frame.lane, call.first, frame.chunk, &mut bytes);
        Ok(bytes)
    }

    /// ⊕ L over the leaves of a tree from `first` on, and over those whose bit p is 1, for each p.
    fn sums(
        &mut self,
        memory: &Memory,
        items: (u32, Choices),
        (trees, tree, first): (Trees, u32, u32),
        call: PrfCall,
    ) -> Result<(Bytes, Vec<Bytes>), Fault> {
        let blocks = items.1.blocks(items.0, memory.frame.rows);
        let none = Zeroizing::new(vec![0; blocks as usize * BLOCK]);
        let (mut all, mut sums) = (none.clone(), vec![none; trees.bits() as usize]);
        for leaf in first..trees.leaves() {
            let key = KeyId(call.key.0 + trees.index(tree, leaf));
            let string = self.string(memory, items, PrfCall { key, ..call })?;
            xor(&mut all, &string);
            for (p, sum) in sums.iter_mut().enumerate() {
                if leaf >> p & 1 == 1 {
                    xor(sum, &string);
                }
            }
        }
        Ok((all, sums))
    }

    fn receive(
        &mut self,
        memory: &mut Memory,
        trees: Trees,
        call: PrfCall,
        choices: Span,
        dst: &[Span],
    ) -> Result<(), Fault> {
        let (items, [corrections, last, columns]) = (choices.count, [dst[0], dst[1], dst[2]]);
        let mut x = Zeroizing::new(memory.bytes(choices).to_vec());
        let length = x.len();
        let keep = memory.column(choices).padding(memory.frame.rows);
        for item in x.chunks_mut((length / (items.max(1) as usize)).max(1)) {
            if let Some(byte) = item.last_mut() {
                *byte &= keep;
            }
        }
        let of = choices_of(memory, choices);
        let end = (of.blocks(items, memory.frame.rows) as usize - 1) * BLOCK;
        x.resize(end, 0);
        for tree in 0..trees.count() {
            let (u, sums) = self.sums(memory, (items, of), (trees, tree, 0), call)?;
            if tree == 0 {
                x.extend_from_slice(&u[end..]);
            }
            for (p, mut sum) in (0..).zip(sums) {
                sum[length..end].fill(0);
                put(memory, columns.column(trees.bits() * tree + p), &sum);
            }
            let mut d = u;
            xor(&mut d, &x);
            let of_tree = Span {
                first: corrections.first + tree * items,
                count: items,
                ..corrections
            };
            put(memory, of_tree, &d[..length]);
            if tree > 0 {
                put(memory, last.column(tree - 1), &d[end..]);
            }
        }
        put(memory, columns.column(COLUMNS), &x);
        Ok(())
    }

    fn send(
        &mut self,
        memory: &mut Memory,
        trees: Trees,
        call: PrfCall,
        offset: u128,
        src: &[Span],
        columns: Span,
    ) -> Result<(), Fault> {
        let (corrections, last) = (src[0], src[1]);
        let items = corrections.count / trees.count();
        let of = choices_of(memory, corrections);
        let end = (of.blocks(items, memory.frame.rows) as usize - 1) * BLOCK;
        for tree in 0..trees.count() {
            let of_tree = Span {
                first: corrections.first + tree * items,
                count: items,
                ..corrections
            };
            let mut d = memory.bytes(of_tree).to_vec();
            let length = d.len();
            d.resize(end, 0);
            match tree {
                0 => d.resize(end + BLOCK, 0),
                _ => d.extend_from_slice(memory.bytes(last.column(tree - 1))),
            }
            let (_, sums) = self.sums(memory, (items, of), (trees, tree, 1), call)?;
            for (p, mut sum) in (0..).zip(sums) {
                let c = trees.bits() * tree + p;
                xor_where(bit(offset, c), &mut sum, &d);
                sum[length..end].fill(0);
                put(memory, columns.column(c), &sum);
            }
        }
        Ok(())
    }

    fn transfer_keys(
        &mut self,
        memory: &mut Memory,
        offset: u128,
        command: &Command,
    ) -> Result<(), Fault> {
        let (from, call, frame) = (command.src[0], command.calls[0], memory.frame);
        let start = self.keys.get(&call.key);
        let start = start.ok_or(Fault::Unknown("the key of a draw"))?;
        let start = u128::from_le_bytes(start.block(call.tag, frame.lane, 0, frame.chunk));
        for p in 0..from.count {
            for row in 0..frame.rows {
                let tweak = (call.first + u64::from(p)) << ROW_BITS | u64::from(row);
                let label = label(memory, from.column(p), row);
                for (to, offset) in command.dst.iter().zip([0, offset]) {
                    let key = hash(start, tweak, label ^ offset);
                    set_label(memory, to.column(p), row, key);
                }
            }
        }
        Ok(())
    }
}

/// What the items of a checked span are.
fn choices_of(memory: &Memory, span: Span) -> Choices {
    Choices::of(memory.column(span)).unwrap_or(Choices::Rows)
}

fn labels(memory: &mut Memory, low: Low, columns: Span, to: Span) {
    // Labels of an item, each of a bit of it.
    let count = (memory.column(to).bytes(memory.frame.rows) / 16) as u32;
    let width = count.div_ceil(8) as usize;
    for p in 0..to.count {
        for row in 0..count {
            let (byte, bit) = (p as usize * width + row as usize / 8, row % 8);
            let of = |column| memory.bytes(columns.column(column))[byte] >> bit & 1;
            let first = low.column().map_or(0, |column| u128::from(of(column)));
            let label = (1..COLUMNS).fold(first, |label, c| label | u128::from(of(c)) << c);
            set_label(memory, to.column(p), row, label);
        }
    }
}

fn choose(memory: &mut Memory, [a, b, bits]: [Span; 3], to: Span) {
    for p in 0..to.count {
        for row in 0..memory.frame.rows {
            let bit = memory.bytes(bits.column(p))[row as usize / 8] >> (row % 8) & 1;
            let other = u128::from(bit).wrapping_neg() & label(memory, b.column(p), row);
            let label = label(memory, a.column(p), row) ^ other;
            set_label(memory, to.column(p), row, label);
        }
    }
}

fn label(memory: &Memory, span: Span, row: u32) -> u128 {
    let bytes = &memory.bytes(span)[16 * row as usize..][..16];
    u128::from_le_bytes(bytes.try_into().expect("16 bytes"))
}

fn set_label(memory: &mut Memory, span: Span, row: u32, label: u128) {
    memory.bytes_mut(span)[16 * row as usize..][..16].copy_from_slice(&label.to_le_bytes());
}

/// Writes what a span begins with.
fn put(memory: &mut Memory, span: Span, bytes: &[u8]) {
    memory.bytes_mut(span)[..bytes.len()].copy_from_slice(bytes);
}

fn xor(to: &mut [u8], other: &[u8]) {
    to.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

fn xor_where(bit: Choice, to: &mut [u8], other: &[u8]) {
    let mask = u8::conditional_select(&0, &0xff, bit);
    to.iter_mut().zip(other).for_each(|(a, b)| *a ^= b & mask);
}

fn bit(offset: u128, c: u32) -> Choice {
    Choice::from((offset >> c) as u8 & 1)
}
