//! Rows of the public code: sums of ten blocks of a table, at places that a stream says.

use super::super::vector::{Domain, GROUP, RoundKeys, Task, VECTOR, Vector};
use crate::silent::WEIGHT;

/// Bytes of a block.
const BLOCK: usize = 16;

/// Rows whose places are made at once: those of whole groups of vectors.
const TILE: usize = 32;

/// Words of a tile.
pub(super) const WORDS: usize = TILE * WEIGHT;

/// Words that the PRF makes at once.
const STEP: usize = GROUP * VECTOR / 4;

const _: () = assert!(WORDS.is_multiple_of(STEP));

/// Rows one after the other.
pub(super) struct Rows<'a> {
    /// The secret, 2^k blocks.
    pub(super) table: *const u8,
    /// 2^k − 1.
    pub(super) mask: u32,
    /// Blocks that rows are added to.
    pub(super) to: *mut u8,
    pub(super) count: usize,
    pub(super) keys: &'a RoundKeys,
    pub(super) domain: Domain,
    /// The counter of the first place of the first row.
    pub(super) first: u64,
}

impl Task for Rows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let mut words = [0u32; WORDS];
        for at in (0..self.count).step_by(TILE) {
            let mut counter = self.first + (at * WEIGHT / 4) as u64;
            let rows = (self.count - at).min(TILE);
            for step in (0..rows * WEIGHT).step_by(STEP) {
                // SAFETY: the caller's instruction set; `words` has whole steps.
                unsafe {
                    let counters = [counter, counter + 4, counter + 8, counter + 12];
                    let made = V::prf(self.keys, self.domain, counters);
                    for g in 0..GROUP {
                        let to = words.as_mut_ptr().add(step + g * VECTOR / 4);
                        made[g].store(to.cast());
                    }
                }
                counter += (STEP / 4) as u64;
            }
            for row in 0..rows {
                let places = words[row * WEIGHT..][..WEIGHT].as_ptr().cast();
                // SAFETY: the caller's: places are masked, and `count` blocks are written.
                unsafe {
                    let to = self.to.add(BLOCK * (at + row));
                    add(self.table, self.mask, places, to);
                }
            }
        }
    }
}

/// Adds the blocks at ten places of a table to a block.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn add(table: *const u8, mask: u32, places: *const [u32; WEIGHT], to: *mut u8) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128, _mm_xor_si128};
    // SAFETY: the caller's; SSE2 is part of the architecture.
    unsafe {
        let mut sum = _mm_loadu_si128(to.cast());
        for k in 0..WEIGHT {
            let place = ((*places)[k] & mask) as usize;
            sum = _mm_xor_si128(sum, _mm_loadu_si128(table.add(BLOCK * place).cast()));
        }
        _mm_storeu_si128(to.cast(), sum);
    }
}

/// The same on other machines.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn add(table: *const u8, mask: u32, places: *const [u32; WEIGHT], to: *mut u8) {
    // SAFETY: the caller's.
    unsafe {
        let mut sum = to.cast::<u128>().read_unaligned();
        for k in 0..WEIGHT {
            let place = ((*places)[k] & mask) as usize;
            sum ^= table.add(BLOCK * place).cast::<u128>().read_unaligned();
        }
        to.cast::<u128>().write_unaligned(sum);
    }
}
