//! Rows that move: their hashes, weights and claims.

use veil_prss::DomainTag;
use zeroize::{Zeroize, Zeroizing};

use super::gates::load;
use super::lanes::{LANES, Lanes, Register, element};
use super::{Pass, TILE, draw, pass, words_mut};
use crate::Fault;
use crate::command::Command;
use crate::cpu::Cpu;
use crate::cpu::vector::RoundKeys;
use crate::cpu::workspace::Memory;
use crate::moves::no_row;
use crate::proof::rows::{self, RowStep};
use crate::proof::{self, Elements};

/// Rows of a column: `size` bytes each, 1, 2, 4, 8 or 16.
#[derive(Clone, Copy)]
pub(super) struct Column<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) size: usize,
}

impl Column<'_> {
    /// Words of eight rows, or fewer and zeros: the first of each, and the second.
    #[inline(always)]
    fn words<L: Lanes>(&self, first: usize, count: usize) -> [L; 2] {
        let bytes = &self.bytes[first * self.size..][..count * self.size];
        if let (8, Some(whole)) = (self.size, bytes.first_chunk()) {
            return [L::bytes(whole), L::zero()];
        }
        let mut words = [Register::ZERO; 2];
        match self.size {
            1 => {
                for lane in 0..count {
                    words[0].0[lane] = bytes[lane].into();
                }
            }
            2 => {
                let (all, _) = bytes.as_chunks::<2>();
                for lane in 0..count {
                    words[0].0[lane] = u16::from_le_bytes(all[lane]).into();
                }
            }
            4 => {
                let (all, _) = bytes.as_chunks::<4>();
                for lane in 0..count {
                    words[0].0[lane] = u32::from_le_bytes(all[lane]).into();
                }
            }
            8 => {
                let (all, _) = bytes.as_chunks::<8>();
                for lane in 0..count {
                    words[0].0[lane] = u64::from_le_bytes(all[lane]);
                }
            }
            _ => {
                let (all, _) = bytes.as_chunks::<8>();
                for lane in 0..count {
                    words[0].0[lane] = u64::from_le_bytes(all[2 * lane]);
                    words[1].0[lane] = u64::from_le_bytes(all[2 * lane + 1]);
                }
            }
        }
        [L::load(&words[0].0), L::load(&words[1].0)]
    }
}

/// Adds hashes of rows to `sums`.
#[inline(always)]
pub(super) fn hashes<L: Lanes>(column: Column<'_>, keys: [u64; 2], sums: &mut [u64]) {
    let rows = column.bytes.len() / column.size;
    let (first, second) = (L::splat(keys[0]), L::splat(keys[1]));
    let mut at = 0;
    while at < rows {
        let count = (rows - at).min(LANES);
        let words: [L; 2] = column.words(at, count);
        let mut all = words[0].products(first);
        if column.size > 8 {
            let [even, odd] = words[1].products(second);
            all = [all[0].xor(even), all[1].xor(odd)];
        }
        let before: L = load(&sums[at..at + count]);
        let mut out = Register::ZERO;
        before.xor(L::reduce(all)).store(&mut out.0);
        sums[at..at + count].copy_from_slice(&out.0[..count]);
        at += LANES;
    }
}

/// Σ weight · word over rows, of first and second words.
#[inline(always)]
pub(super) fn weighted<L: Lanes>(column: Column<'_>, weights: &[u64], out: &mut [u64; 2]) {
    let rows = weights.len();
    let mut all = [L::zero(); 2];
    let mut at = 0;
    while at < rows {
        let count = (rows - at).min(LANES);
        let words: [L; 2] = column.words(at, count);
        let weights: L = load(&weights[at..at + count]);
        all[0] = all[0].add_products(words[0], weights);
        if column.size > 8 {
            all[1] = all[1].add_products(words[1], weights);
        }
        at += LANES;
    }
    for k in 0..2 {
        let mut sum = Register::ZERO;
        all[k].store(&mut sum.0);
        out[k] = element(&sum);
        sum.zeroize();
    }
}

/// Does a step, command `index`, which was checked.
pub(super) fn step(
    device: &Cpu,
    memory: &mut Memory,
    index: usize,
    step: RowStep,
    command: &Command,
) -> Result<(), Fault> {
    let (from, to) = (command.src[1], command.dst[0]);
    let (seed, frame) = (proof::seed_of(memory, command.src[0]), memory.frame);
    let count = frame.rows as usize;
    let size = memory.layout.regions[from.region as usize].column.bytes(1);
    let keys = |word| rows::keys(&seed, frame, word, rows::words(size));
    let isa = device.isa;
    match step {
        RowStep::Hashes { word, place } => {
            let to = rows::in_vector(to, place, frame.rows);
            if word == 0 {
                memory.bytes_mut(to).fill(0);
            }
            let keys = keys(word);
            let size = size as usize;
            let mut tile = Zeroizing::new([0; 16 * TILE]);
            for first in (0..count).step_by(TILE) {
                let rows = (count - first).min(TILE);
                let bytes = &mut tile[..rows * size];
                bytes.copy_from_slice(&memory.column_bytes(from, 0)[first * size..][..rows * size]);
                let column = Column { bytes, size };
                let all = words_mut(memory.bytes_mut(to), first + rows);
                pass(isa, Pass::Hashes(column, *keys, &mut all[first..]));
            }
        }
        RowStep::Weights { place, back } => {
            let to = rows::in_vector(to, place, frame.rows);
            let mut weights = Zeroizing::new(vec![0; count]);
            let key = RoundKeys::new(&seed);
            draw(
                device,
                &key,
                (DomainTag::dzkp_rows(place), frame),
                0,
                &mut weights,
            );
            let mut places = Zeroizing::new(Vec::with_capacity(count));
            let (entries, _) = memory.column_bytes(from, 0).as_chunks::<4>();
            places.extend(entries.iter().map(|entry| u32::from_le_bytes(*entry)));
            if places.iter().any(|at| *at >= frame.rows) {
                return Err(no_row(index));
            }
            let moved = words_mut(memory.bytes_mut(to), to.count as usize);
            moved[count..].fill(0);
            for row in 0..count {
                let at = places[row] as usize;
                if back {
                    moved[at] = weights[row];
                } else {
                    moved[row] = weights[at];
                }
            }
        }
        RowStep::Claim { word, place, first } => {
            let keys = keys(word);
            let (size, key) = (size as usize, RoundKeys::new(&seed));
            let mut claim = if first { 0 } else { memory.element(to) };
            let mut weights = Zeroizing::new([0; TILE]);
            let mut sums = Zeroizing::new([0; 2]);
            for first in (0..count).step_by(TILE) {
                let weights = &mut weights[..(count - first).min(TILE)];
                draw(
                    device,
                    &key,
                    (DomainTag::dzkp_rows(place), frame),
                    first,
                    weights,
                );
                let bytes = &memory.column_bytes(from, 0)[first * size..];
                let column = Column { bytes, size };
                let mut tile = [0; 2];
                pass(isa, Pass::Weighted(column, weights, &mut tile));
                sums[0] ^= tile[0];
                sums[1] ^= tile[1];
            }
            claim ^= veil_math::Gf64::dot(&*keys, &*sums);
            memory.put(to, &[claim]);
        }
    }
    Ok(())
}
