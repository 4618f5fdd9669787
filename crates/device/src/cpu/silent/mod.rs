//! Steps of silent transfers: trees in whole vectors, rows of places that are made many at a time, and everything else as it is defined.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

#[cfg(target_arch = "x86_64")]
mod leaves;
mod rows;
#[cfg(target_arch = "x86_64")]
mod trees;
mod vole;

use std::time::{Duration, Instant};

use zeroize::Zeroizing;

#[cfg(target_arch = "x86_64")]
use super::garble::{aesni::Xmm, vaes::Ymm, x86::Zmm};
use super::mac::MacKey;
use super::vector::{self, VECTOR};
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::Fault;
use crate::command::Command;
use crate::gf128;
use crate::layout::Span;
use crate::silent::{self, Known, Lpn, Over, Silent};
#[cfg(target_arch = "x86_64")]
use leaves::{Lack, Leaves};
use rows::{Rows, WORDS};
#[cfg(target_arch = "x86_64")]
use trees::Tree;

/// Bytes of a block.
const BLOCK: usize = 16;

impl Cpu {
    /// Does a step, which was checked.
    pub(super) fn silent(
        &self,
        memory: &mut Memory,
        step: Silent,
        command: &Command,
    ) -> Result<(), Fault> {
        let offset = match step.offset() {
            Some(key) => self.offset(key)?,
            None => 0,
        };
        let mut keys = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            keys.push(self.mask(*call, memory.frame)?.key.prf());
        }
        let known = Known {
            offset: Zeroizing::new(offset),
            keys,
        };
        match step {
            #[cfg(target_arch = "x86_64")]
            Silent::Grow { set, .. } | Silent::Puncture { set } if self.isa != Isa::Portable => {
                self.trees(memory, &known, (step, set), command);
            }
            #[cfg(target_arch = "x86_64")]
            Silent::Give { set } | Silent::Fill { set } if self.isa != Isa::Portable => {
                self.second_hashes(memory, &known, (step, set), command);
            }
            Silent::Pack => vole::pack_all(memory, command.src[0], &command.dst),
            Silent::Rows { set } if set.over == Over::Blocks => {
                self.rows_over_blocks(memory, set, command)?;
            }
            Silent::Rows { set } => self.rows(memory, set, command)?,
            Silent::Ask { set } if set.over == Over::Blocks => {
                let [a, b, c, d, own, other, by] = [0, 1, 2, 3, 4, 5, 6].map(|k| command.src[k]);
                let challenge = first_block(memory, by);
                let [own, other] = [own, other].map(|base| silent::hides(memory, set, base));
                let told = self.fold_leaves(memory, challenge, [c, d]) ^ other;
                let folded = self.fold_leaves(memory, challenge, [a, b]);
                put(memory, command.dst[0], told);
                put(memory, command.dst[1], folded ^ own);
            }
            Silent::Ask { set } => {
                let [a, b, base, by] = [0, 1, 2, 3].map(|k| command.src[k]);
                let challenge = first_block(memory, by);
                let folded = self.fold_leaves(memory, challenge, [a, b]);
                let (own, choices) = silent::hiding(memory, set, base);
                let told = silent::weight(memory, set, base, challenge) ^ choices;
                put(memory, command.dst[0], told);
                put(memory, command.dst[1], folded ^ own);
            }
            Silent::Answer { set, .. } => {
                let [a, b, base, by, told] = [0, 1, 2, 3, 4].map(|k| command.src[k]);
                let challenge = first_block(memory, by);
                let folded = self.fold_leaves(memory, challenge, [a, b]);
                let own = match set.over {
                    Over::Bits => silent::hiding(memory, set, base).0,
                    Over::Blocks => silent::hides(memory, set, base),
                };
                let told = gf128::dot(first_block(memory, told), *known.offset);
                put(memory, command.dst[0], folded ^ own ^ told);
            }
            _ => silent::step(memory, &known, step, command),
        }
        Ok(())
    }

    #[cfg(target_arch = "x86_64")]
    fn trees(
        &self,
        memory: &mut Memory,
        known: &Known<'_>,
        (step, set): (Silent, Lpn),
        command: &Command,
    ) {
        let frame = (memory.frame.lane, memory.frame.chunk);
        let grows = matches!(step, Silent::Grow { .. });
        let (leaves, sums) = if grows {
            ([command.dst[0], command.dst[1]], command.dst[2])
        } else {
            ([command.dst[0], command.dst[1]], command.src[1])
        };
        let levels = match set.over {
            Over::Bits => BLOCK << set.log_secret,
            Over::Blocks => 0,
        };
        let of_tree = BLOCK * usize::from(set.height);
        let (base, sums) = (memory.column(command.src[0], 0).0, memory.column(sums, 0).0);
        for number in 0..set.trees {
            let nodes = tree_at(memory, (set, number), leaves);
            let drawn = |k| known.drawn(frame, command, (k, number.into()));
            let (start, memory) = (drawn(0), memory.base());
            let root = if grows { drawn(1) } else { 0 };
            let at = of_tree * number as usize;
            // SAFETY: the command was checked: a column has the leaves, the base the levels, and there is a sum for each; `with` checked the
            // instruction set.
            unsafe {
                let tree = Tree {
                    nodes: memory.add(nodes),
                    height: set.height.into(),
                    start,
                    base: memory.add(base + levels + at),
                    sums: memory.add(sums + at),
                };
                match (self.isa, grows) {
                    (Isa::Avx512, true) => grow_avx512(&tree, root, *known.offset),
                    (Isa::Avx512, false) => puncture_avx512(&tree),
                    (Isa::Avx2Vaes, true) => grow_avx2_vaes(&tree, root, *known.offset),
                    (Isa::Avx2Vaes, false) => puncture_avx2_vaes(&tree),
                    (_, true) => grow_avx2(&tree, root, *known.offset),
                    (_, false) => puncture_avx2(&tree),
                }
            }
        }
    }

    fn rows(&self, memory: &mut Memory, set: Lpn, command: &Command) -> Result<(), Fault> {
        let call = command.calls[0];
        let (table, _) = memory.column(command.src[0], 0);
        let mut first = call.first;
        for to in &command.dst {
            let count = (u64::from(to.count) << set.height) as usize;
            let ((at, _), memory_at) = (memory.column(*to, 0), memory.base());
            let mask = self.mask(call, memory.frame)?;
            // SAFETY: the command was checked: the base begins with the secret, and the columns of a span, which lie one behind the other, have `count`
            // blocks; `with` checked the instruction set.
            unsafe {
                let rows = Rows {
                    table: memory_at.add(table),
                    mask: (1 << set.log_secret) - 1,
                    to: memory_at.add(at),
                    count,
                    keys: mask.key,
                    domain: mask.domain,
                    first,
                };
                vector::run(self.isa, rows);
            }
            first += set.row_blocks() / u64::from(set.trees) * u64::from(to.count);
        }
        Ok(())
    }

    /// Σ χ^(n−i) leaf i.
    fn fold_leaves(&self, memory: &Memory, challenge: u128, leaves: [Span; 2]) -> u128 {
        let key = MacKey::of(self.isa, &challenge.to_le_bytes());
        let mut sum = 0;
        for span in leaves {
            let bytes = memory.bytes(span);
            let behind = gf128::power(challenge, (bytes.len() / BLOCK) as u64);
            let folded = u128::from_le_bytes(*key.blocks(self.isa, bytes));
            sum = gf128::dot(sum, behind) ^ folded;
        }
        sum
    }

    /// Rows of ten blocks per CPU-second that this device adds up if their places are at hand, out of a table of 2^`log` blocks: what bounds outputs of silent
    /// transfers beside the AES. Measured for about `budget`.
    pub fn row_rate(&self, log: u8, budget: Duration) -> f64 {
        const ROUNDS: usize = 4096;
        // Short enough that some are not interrupted; each reads places of its own.
        const ROUND: usize = 1024;
        let table = vec![0x5au8; BLOCK << log];
        let mut places = vec![0u32; ROUNDS * WORDS];
        // Knuth's generator (The Art of Computer Programming 2, 3.3.4).
        let mut state = 1u64;
        for place in &mut places {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            *place = (state >> 32) as u32;
        }
        let (rows, _) = places.as_chunks::<{ silent::WEIGHT }>();
        let mut sums = vec![0u8; BLOCK * VECTOR];
        let (start, mut best) = (Instant::now(), 0f64);
        while start.elapsed() < budget {
            for rows in rows.chunks(ROUND) {
                let round = Instant::now();
                for (k, row) in rows.iter().enumerate() {
                    let to = sums[BLOCK * (k % VECTOR)..].as_mut_ptr();
                    // SAFETY: places are masked, and there is a block.
                    unsafe { rows::add(table.as_ptr(), (1 << log) - 1, row, to) };
                }
                best = best.max(rows.len() as f64 / round.elapsed().as_secs_f64());
            }
        }
        std::hint::black_box(sums);
        best
    }
}

/// Where the leaves of a tree are.
#[cfg(target_arch = "x86_64")]
fn tree_at(memory: &Memory, (set, tree): (Lpn, u32), [a, b]: [Span; 2]) -> usize {
    let at = tree * set.tree_columns();
    let (at, _) = if at < a.count {
        memory.column(a, at)
    } else {
        memory.column(b, at - a.count)
    };
    at
}

fn first_block(memory: &Memory, span: Span) -> u128 {
    let block = memory.column_bytes(span, 0).first_chunk();
    u128::from_le_bytes(*block.expect("an item of 16 bytes or more"))
}

fn put(memory: &mut Memory, span: Span, block: u128) {
    memory
        .column_bytes_mut(span, 0)
        .copy_from_slice(&block.to_le_bytes());
}

/// The kernels once per instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($blocks:ty, $groups:literal, $features:literal, $grow:ident, $puncture:ident, $give:ident, $fill:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $grow(tree: &Tree, root: u128, offset: u128) {
            // SAFETY: the caller's.
            unsafe { trees::grow::<$blocks, $groups>(tree, root, offset) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $puncture(tree: &Tree) {
            // SAFETY: the caller's.
            unsafe { trees::puncture::<$blocks, $groups>(tree) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $give(leaves: &Leaves) -> u128 {
            // SAFETY: the caller's.
            unsafe { leaves::give::<$blocks, $groups>(leaves) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $fill(leaves: &Leaves, lack: &Lack) {
            // SAFETY: the caller's.
            unsafe { leaves::fill::<$blocks, $groups>(leaves, lack) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernels!(
    Zmm,
    4,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    grow_avx512,
    puncture_avx512,
    give_avx512,
    fill_avx512
);
#[cfg(target_arch = "x86_64")]
kernels!(
    Ymm,
    2,
    "avx2,aes,vaes,bmi2",
    grow_avx2_vaes,
    puncture_avx2_vaes,
    give_avx2_vaes,
    fill_avx2_vaes
);
#[cfg(target_arch = "x86_64")]
kernels!(
    Xmm,
    1,
    "avx2,aes",
    grow_avx2,
    puncture_avx2,
    give_avx2,
    fill_avx2
);
