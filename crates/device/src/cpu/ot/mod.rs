//! Steps of transfers: trees side by side, strings in whole vectors.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

#[cfg(target_arch = "x86_64")]
mod keys;
mod stretch;
mod transpose;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

#[cfg(target_arch = "x86_64")]
use super::garble::{aesni::Xmm, vaes::Ymm, x86::Zmm};
use super::mac::MacKey;
use super::vector::{self, Portable, RoundKeys, VECTOR, Vector};
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::Fault;
use crate::command::{Command, KeyId, PrfCall};
use crate::garble::{ROW_BITS, hash};
use crate::layout::Span;
use crate::ot::{BLOCK, COLUMNS, Choices, Low, Ot, Trees};
#[cfg(target_arch = "x86_64")]
use keys::Labels;
use stretch::{LeafSum, TILE_BYTES, Tree, stretch};
use transpose::{From, LABELS, Words};

impl Cpu {
    /// Does a step, which was checked, and says what a comparison found.
    pub(super) fn transfer(
        &self,
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
                self.fold(
                    memory,
                    of.blocks(items, memory.frame.rows),
                    [src[0], src[1]],
                    dst[0],
                );
            }
            Ot::Compare { offset } => {
                return Ok(compare(memory, self.offset(offset)?, [src[0], src[1]]));
            }
            Ot::Labels { low } => self.transpose(memory, low, src[0], dst[0]),
            Ot::Keys { offset } => {
                let offset = offset.map(|key| self.offset(key)).transpose()?;
                self.transfer_keys(memory, offset, command)?;
            }
            Ot::Choose => choose(memory, [src[0], src[1], src[2]], dst[0]),
        }
        Ok(true)
    }

    /// The leaves of all trees, or all but leaf 0 of each.
    fn leaves(&self, trees: Trees, first: KeyId, lacking: u32) -> Result<Vec<&RoundKeys>, Fault> {
        let count = trees.count() * trees.leaves();
        let last = KeyId(first.0 + (count - 1) as u16);
        let mut found = self.keys.range(first..=last);
        let mut leaves = Vec::with_capacity(count as usize);
        for tree in 0..trees.count() {
            for leaf in 0..trees.leaves() {
                let id = KeyId(first.0 + trees.index(tree, leaf));
                if leaf >= lacking {
                    let next = found.by_ref().find(|(key, _)| **key >= id);
                    match next {
                        Some((key, keys)) if *key == id => leaves.push(keys),
                        _ => return Err(Fault::Unknown("a leaf of the trees")),
                    }
                }
            }
        }
        Ok(leaves)
    }

    fn receive(
        &self,
        memory: &mut Memory,
        trees: Trees,
        call: PrfCall,
        choices: Span,
        dst: &[Span],
    ) -> Result<(), Fault> {
        let leaves = self.leaves(trees, call.key, 0)?;
        let [corrections, last, columns] = [dst[0], dst[1], dst[2]];
        let bytes = string_blocks(memory, choices, choices.count) as usize * BLOCK;
        let end = bytes - BLOCK;
        let mut x = string_of(memory, choices, bytes);
        let length = memory
            .bytes(Span {
                count: choices.count,
                ..corrections
            })
            .len();
        let mut u = Zeroizing::new(vec![0; bytes.next_multiple_of(TILE_BYTES)]);
        let of_tree = leaves.chunks(trees.leaves() as usize);
        for (tree, leaves) in (0..).zip(of_tree) {
            let leaves = Cpu::tree(leaves, call, memory);
            let to = columns_of(memory, columns, trees, tree);
            self.stretch(&leaves, to, (length, bytes), &mut LeafSum::Sum(&mut u));
            if tree == 0 {
                x[end..].copy_from_slice(&u[end..bytes]);
            } else {
                let last = memory.column_bytes_mut(last, tree - 1);
                add(last, &x[end..], &u[end..bytes]);
            }
            let message = Span {
                first: corrections.first + tree * choices.count,
                count: choices.count,
                ..corrections
            };
            add(memory.bytes_mut(message), &x[..length], &u[..length]);
        }
        memory.column_bytes_mut(columns, COLUMNS)[..bytes].copy_from_slice(&x);
        Ok(())
    }

    fn send(
        &self,
        memory: &mut Memory,
        trees: Trees,
        call: PrfCall,
        offset: u128,
        src: &[Span],
        columns: Span,
    ) -> Result<(), Fault> {
        let leaves = self.leaves(trees, call.key, 1)?;
        let (corrections, last) = (src[0], src[1]);
        let items = corrections.count / trees.count();
        let bytes = string_blocks(memory, corrections, items) as usize * BLOCK;
        let mut d = vec![0; bytes.next_multiple_of(TILE_BYTES)];
        let masks: Zeroizing<Vec<u64>> = Zeroizing::new(
            (0..COLUMNS)
                .map(|c| ((offset >> c) as u64 & 1).wrapping_neg())
                .collect(),
        );
        let of_tree = leaves.chunks(trees.leaves() as usize - 1);
        for ((tree, leaves), masks) in (0..).zip(of_tree).zip(masks.chunks(trees.bits() as usize)) {
            let message = Span {
                first: corrections.first + tree * items,
                count: items,
                ..corrections
            };
            let message = memory.bytes(message);
            let length = message.len();
            d[..length].copy_from_slice(message);
            if tree > 0 {
                let last = memory.column_bytes(last, tree - 1);
                d[bytes - BLOCK..bytes].copy_from_slice(last);
            }
            let leaves = Cpu::tree(leaves, call, memory);
            let to = columns_of(memory, columns, trees, tree);
            self.stretch(&leaves, to, (length, bytes), &mut LeafSum::Add(&d, masks));
        }
        Ok(())
    }

    fn tree<'a>(leaves: &'a [&'a RoundKeys], call: PrfCall, memory: &Memory) -> Tree<'a> {
        Tree {
            leaves,
            domain: vector::Domain {
                tag: call.tag,
                lane: memory.frame.lane,
                j: memory.frame.chunk,
            },
            first: call.first,
        }
    }

    /// Stretches a tree to its columns: so many bytes for choices, and so many in all, of the items of a region.
    fn stretch(
        &self,
        tree: &Tree<'_>,
        (columns, item): (&mut [u8], usize),
        (length, bytes): (usize, usize),
        leaf_sum: &mut LeafSum<'_>,
    ) {
        let mut columns: Vec<&mut [u8]> =
            columns.chunks_mut(item).map(|c| &mut c[..bytes]).collect();
        // SAFETY: `with` checked the instruction set.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => stretch_avx512(tree, &mut columns, leaf_sum),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => stretch_avx2_vaes(tree, &mut columns, leaf_sum),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => stretch_avx2(tree, &mut columns, leaf_sum),
                _ => any::<Portable>(tree, &mut columns, leaf_sum),
            }
        }
        for column in columns {
            column[length..bytes - BLOCK].fill(0);
        }
    }

    fn fold(&self, memory: &mut Memory, blocks: u64, [columns, challenge]: [Span; 2], to: Span) {
        let bytes = blocks as usize * BLOCK;
        let challenge = &memory.column_bytes(challenge, 0)[..BLOCK];
        let key = MacKey::of(self.isa, challenge.try_into().expect("16 bytes"));
        for k in 0..to.count {
            let (column, last) = memory.column_bytes(columns, k)[..bytes].split_at(bytes - BLOCK);
            let mut folded = key.blocks(self.isa, column);
            folded.iter_mut().zip(last).for_each(|(a, b)| *a ^= b);
            memory.column_bytes_mut(to, k).copy_from_slice(&folded[..]);
        }
    }

    fn transfer_keys(
        &self,
        memory: &mut Memory,
        offset: Option<u128>,
        command: &Command,
    ) -> Result<(), Fault> {
        let (from, call, frame) = (command.src[0], command.calls[0], memory.frame);
        let start = self.mask(call, frame)?;
        let start = start.key.prf().block(call.tag, frame.lane, 0, frame.chunk);
        let start = u128::from_le_bytes(start);
        for p in 0..from.count {
            let tweak = (call.first + u64::from(p)) << ROW_BITS;
            #[cfg(target_arch = "x86_64")]
            if self.isa != Isa::Portable {
                let (at, length) = memory.column(from, p);
                let to = [command.dst[0], command.dst[command.dst.len() - 1]];
                let to = to.map(|to| memory.column(to, p).0);
                let base = memory.base();
                // SAFETY: `with` checked the instruction set; the spans have the item, and do not overlap.
                unsafe {
                    let labels = Labels {
                        from: base.add(at),
                        to: to.map(|to| base.add(to)),
                        count: length / 16,
                        start,
                        tweak,
                        offset: offset.unwrap_or(0),
                    };
                    match self.isa {
                        Isa::Avx512 => keys_avx512(&labels, offset.is_some()),
                        Isa::Avx2Vaes => keys_avx2_vaes(&labels, offset.is_some()),
                        _ => keys_avx2(&labels, offset.is_some()),
                    }
                }
                continue;
            }
            for (k, to) in command.dst.iter().enumerate() {
                let offset = if k == 0 { 0 } else { offset.unwrap_or(0) };
                let [(from, length), (to, _)] = [memory.column(from, p), memory.column(*to, p)];
                let bytes = memory.all_mut();
                for (row, at) in (0..).zip((0..length).step_by(16)) {
                    let label: [u8; 16] = bytes[from + at..][..16].try_into().expect("16 bytes");
                    let key = hash(start, tweak | row, u128::from_le_bytes(label) ^ offset);
                    bytes[to + at..][..16].copy_from_slice(&key.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    fn transpose(&self, memory: &mut Memory, low: Low, columns: Span, to: Span) {
        // Bytes of an item in the string, and labels of it.
        let column = memory.layout.regions[to.region as usize].column;
        let rows = (column.bytes(memory.frame.rows) / 16) as usize;
        let width = rows.div_ceil(8);
        let length = width * to.count as usize;
        let (first, stride) = memory.column(columns, 0);
        let lowest = low.column().map(|column| memory.column(columns, column).0);
        let nothing = [0; VECTOR];
        let mut scratch = Scratch::new();
        for at in (0..length).step_by(VECTOR) {
            let end = length.min(at + VECTOR);
            let (p, base) = (at / width, memory.base());
            let from = if end - at == VECTOR {
                // SAFETY: the span has the columns, which are longer than `length`.
                unsafe {
                    From {
                        lowest: lowest.map_or(nothing.as_ptr(), |lowest| {
                            base.add(lowest + at).cast_const()
                        }),
                        columns: base.add(first + at).cast_const(),
                        stride,
                    }
                }
            } else {
                for (c, padded) in (0..).zip(&mut scratch.columns) {
                    let column = if c == 0 { low.column() } else { Some(c) };
                    match column {
                        Some(c) => {
                            let column = &memory.column_bytes(columns, c)[at..end];
                            padded[..end - at].copy_from_slice(column);
                        }
                        None => padded.fill(0),
                    }
                }
                From {
                    lowest: scratch.columns.as_ptr().cast(),
                    columns: scratch.columns.as_ptr().cast(),
                    stride: VECTOR,
                }
            };
            // Where all labels of the tile are those of one item, they go there.
            let row = 8 * (at - p * width);
            if end - at == VECTOR && row + LABELS <= rows {
                // SAFETY: the item has these rows.
                let into = unsafe { base.add(memory.column(to, p as u32).0 + 16 * row) };
                self.turn_tile(&mut scratch.words, from, into);
                continue;
            }
            let into = scratch.labels.as_mut_ptr().cast();
            self.turn_tile(&mut scratch.words, from, into);
            for p in p..end.div_ceil(width) {
                let first = at.max(p * width);
                let row = 8 * (first - p * width);
                let last = rows.min(8 * (end - p * width));
                let labels = &scratch.labels[8 * (first - at)..][..last.saturating_sub(row)];
                let into = &mut memory.column_bytes_mut(to, p as u32)[16 * row..];
                into[..16 * labels.len()].copy_from_slice(labels.as_flattened());
            }
        }
    }

    /// Turns what `from` begins with, 64 bytes of each column, into 512 labels at `to`.
    fn turn_tile(&self, words: &mut Words, from: From, to: *mut u8) {
        // SAFETY: `with` checked the instruction set; both ends lie in the workspace or in scratch, and are long enough.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => turn_avx512(words, from, to),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => turn_avx2_vaes(words, from, to),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => turn_avx2(words, from, to),
                _ => transpose::transpose::<Portable>(words, from, to),
            }
        }
    }
}

/// What turning needs beside columns and labels: wiped on drop.
struct Scratch {
    words: Words,
    columns: [[u8; VECTOR]; COLUMNS as usize],
    labels: [[u8; 16]; LABELS],
}

impl Scratch {
    fn new() -> Self {
        Scratch {
            words: [[0; 8]; COLUMNS as usize],
            columns: [[0; VECTOR]; COLUMNS as usize],
            labels: [[0; 16]; LABELS],
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.words.as_flattened_mut().fill(0);
        self.columns.as_flattened_mut().fill(0);
        self.labels.as_flattened_mut().fill(0);
        // The zeros are seen by a reader, as far as the compiler knows, and are written as fast as a fill.
        std::hint::black_box(&*self);
    }
}

/// Blocks of the string of so many items as those of a span.
fn string_blocks(memory: &Memory, of: Span, items: u32) -> u64 {
    let of = Choices::of(memory.layout.regions[of.region as usize].column);
    of.map_or(0, |of| of.blocks(items, memory.frame.rows))
}

/// The string of choices: packed items without their padding, and zeros.
fn string_of(memory: &Memory, choices: Span, bytes: usize) -> Zeroizing<Vec<u8>> {
    let mut x = Zeroizing::new(Vec::with_capacity(bytes));
    let keep = memory.layout.regions[choices.region as usize]
        .column
        .padding(memory.frame.rows);
    for k in 0..choices.count {
        x.extend_from_slice(memory.column_bytes(choices, k));
        if let Some(last) = x.last_mut() {
            *last &= keep;
        }
    }
    x.resize(bytes, 0);
    x
}

/// The columns of a tree, and the bytes of each.
fn columns_of(memory: &mut Memory, columns: Span, trees: Trees, tree: u32) -> (&mut [u8], usize) {
    let of_tree = Span {
        first: columns.first + trees.bits() * tree,
        count: trees.bits(),
        ..columns
    };
    let item = memory.column(columns, 0).1;
    (memory.bytes_mut(of_tree), item)
}

fn add(to: &mut [u8], a: &[u8], b: &[u8]) {
    for (to, (a, b)) in to.iter_mut().zip(a.iter().zip(b)) {
        *to = a ^ b;
    }
}

fn compare(memory: &Memory, offset: u128, [own, theirs]: [Span; 2]) -> bool {
    let (own, (theirs, choices)) = (
        memory.bytes(own),
        memory.bytes(theirs).split_at(COLUMNS as usize * BLOCK),
    );
    let mut want = Zeroizing::new(theirs.to_vec());
    for (c, want) in want.as_chunks_mut::<BLOCK>().0.iter_mut().enumerate() {
        // Unknown to the compiler, which otherwise branches on the bit: it sees that a mask of zeros changes nothing.
        let mask = std::hint::black_box(((offset >> c) as u8 & 1).wrapping_neg());
        want.iter_mut()
            .zip(choices)
            .for_each(|(a, b)| *a ^= b & mask);
    }
    bool::from(own.ct_eq(&want))
}

fn choose(memory: &mut Memory, [a, b, choices]: [Span; 3], to: Span) {
    for k in 0..to.count {
        let [(a, _), (b, _), (choices, _), (to, length)] =
            [a, b, choices, to].map(|span| memory.column(span, k));
        let bytes = memory.all_mut();
        for row in 0..length / 16 {
            let bit = u128::from(bytes[choices + row / 8] >> (row % 8) & 1);
            let label = |at: usize| {
                let label: [u8; 16] = bytes[at + 16 * row..][..16].try_into().expect("16 bytes");
                u128::from_le_bytes(label)
            };
            let chosen = label(a) ^ (bit.wrapping_neg() & label(b));
            bytes[to + 16 * row..][..16].copy_from_slice(&chosen.to_le_bytes());
        }
    }
}

/// A tree of any number of bits.
#[inline(always)]
unsafe fn any<V: Vector>(tree: &Tree<'_>, columns: &mut [&mut [u8]], leaf_sum: &mut LeafSum<'_>) {
    // SAFETY: the caller's instruction set.
    unsafe {
        match columns.len() {
            1 => stretch::<V, 1>(tree, columns, leaf_sum),
            2 => stretch::<V, 2>(tree, columns, leaf_sum),
            4 => stretch::<V, 4>(tree, columns, leaf_sum),
            _ => stretch::<V, 8>(tree, columns, leaf_sum),
        }
    }
}

/// The kernels once per instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($vector:ty, $blocks:ty, $groups:literal, $features:literal, $stretch:ident, $transpose:ident, $keys:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $stretch(tree: &Tree<'_>, columns: &mut [&mut [u8]], leaf_sum: &mut LeafSum<'_>) {
            // SAFETY: the caller's.
            unsafe { any::<$vector>(tree, columns, leaf_sum) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $transpose(words: &mut Words, from: From, to: *mut u8) {
            // SAFETY: the caller's.
            unsafe { transpose::transpose::<$vector>(words, from, to) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $keys(labels: &Labels, sender: bool) {
            // SAFETY: the caller's.
            unsafe {
                if sender {
                    keys::keys::<$blocks, $groups, 2>(labels);
                } else {
                    keys::keys::<$blocks, $groups, 1>(labels);
                }
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx512,
    Zmm,
    4,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    stretch_avx512,
    turn_avx512,
    keys_avx512
);
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx2Vaes,
    Ymm,
    2,
    "avx2,aes,vaes,bmi2",
    stretch_avx2_vaes,
    turn_avx2_vaes,
    keys_avx2_vaes
);
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx2,
    Xmm,
    1,
    "avx2,aes",
    stretch_avx2,
    turn_avx2,
    keys_avx2
);
