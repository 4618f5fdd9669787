//! Steps of truncations: what is drawn, added and shifted stays in the first cache, between one load and one store of each component.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use veil_math::Ring;

use super::Cpu;
use super::convert::columns;
use super::exec::Mask;
use super::exec::columns::Columns;
use super::lift::{DRAWN, Place, drawn};
use super::vector::{self, GROUP, Task, VECTOR, Vector};
use super::workspace::Memory;
use crate::Fault;
use crate::command::Command;
use crate::truncation::Truncation;

impl Cpu {
    /// A step of truncations, which was checked.
    pub(super) fn truncation(
        &self,
        memory: &mut Memory,
        how: Truncation,
        command: &Command,
    ) -> Result<(), Fault> {
        let (place, masks) = self.integers(memory, command)?;
        let from = columns(memory, command.src[0]);
        let mut spans = [Columns::NONE; 3];
        for (to, span) in spans.iter_mut().zip(&command.dst) {
            *to = columns(memory, *span);
        }
        let masks = &masks;
        // SAFETY: the instruction set is the device's, which was checked; so were the spans: all have as many columns of as many rows, and no
        // two overlap.
        unsafe {
            vector::run(
                self.isa,
                Step {
                    place,
                    how,
                    masks,
                    from,
                    to: spans,
                },
            );
        }
        Ok(())
    }
}

/// A step.
struct Step<'a> {
    place: Place,
    how: Truncation,
    masks: &'a [Mask<'a>],
    from: Columns,
    to: [Columns; 3],
}

impl Task for Step<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for k in 0..self.place.columns {
            for at in (0..self.place.bytes).step_by(DRAWN) {
                // SAFETY: the caller's.
                unsafe {
                    match self.place.ring {
                        Ring::Z32 => self.group32::<V>(k, at),
                        Ring::Bits | Ring::Z64 => self.group64::<V>(k, at),
                        Ring::Z128 => self.group128::<V>(k, at),
                    }
                }
            }
        }
    }
}

/// So many bytes, at most those of an array.
#[inline(always)]
unsafe fn get<T: Copy + Default, const N: usize>(from: *const u8, bytes: usize) -> [T; N] {
    // SAFETY: the bytes are there.
    unsafe {
        if bytes >= DRAWN {
            return from.cast::<[T; N]>().read_unaligned();
        }
        let mut part = [T::default(); N];
        std::ptr::copy_nonoverlapping(from, part.as_mut_ptr().cast(), bytes);
        part
    }
}

#[inline(always)]
unsafe fn put<T: Copy, const N: usize>(value: &[T; N], to: *mut u8, bytes: usize) {
    // SAFETY: as `get`.
    unsafe {
        if bytes >= DRAWN {
            to.cast::<[T; N]>().write_unaligned(*value);
            return;
        }
        std::ptr::copy_nonoverlapping(value.as_ptr().cast(), to, bytes);
    }
}

/// The step on a group of elements of one type: as many as are drawn at once.
macro_rules! group {
    ($name:ident, $element:ty, $count:literal) => {
        #[inline(always)]
        unsafe fn $name<V: Vector>(&self, k: usize, at: usize) {
            const HIGHEST: u32 = <$element>::BITS - 1;
            let bytes = self.place.bytes - at;
            let row = at / size_of::<$element>();
            // SAFETY: the caller's: every column has `bytes` bytes, or bits for as many rows.
            unsafe {
                let from = self.from.at(k).cast_const();
                let to = [self.to[0].at(k), self.to[1].at(k), self.to[2].at(k)];
                match self.how {
                    Truncation::Hide { by } => {
                        let x: [$element; $count] = get(from.add(at), bytes);
                        let mut r: [$element; $count] = get(to[2].add(at).cast_const(), bytes);
                        let [s, mask] = [
                            self.drawn::<V, $element, $count>(0, k, at),
                            self.drawn::<V, $element, $count>(1, k, at),
                        ];
                        let (mut sum, mut both) = ([0; $count], [0; $count]);
                        for i in 0..$count {
                            let own = <$element>::from_le(r[i]);
                            let s = <$element>::from_le(s[i]) & 1;
                            sum[i] = <$element>::from_le(x[i]).wrapping_add(own).to_le();
                            let mask = <$element>::from_le(mask[i]);
                            both[i] = (s & own >> HIGHEST).wrapping_add(mask).to_le();
                            r[i] = (own >> by).wrapping_neg().to_le();
                        }
                        put(&sum, to[0].add(at), bytes);
                        put(&both, to[1].add(at), bytes);
                        put(&r, to[2].add(at), bytes);
                    }
                    Truncation::Take { by } => {
                        let up = <$element>::BITS - by;
                        let x: [$element; $count] = get(from.add(at), bytes);
                        let told: [$element; $count] = get(to[0].add(at).cast_const(), bytes);
                        let [y, s] = [
                            self.drawn::<V, $element, $count>(0, k, at),
                            self.drawn::<V, $element, $count>(1, k, at),
                        ];
                        let [first, second] = [
                            self.drawn::<V, $element, $count>(2, k, at),
                            self.drawn::<V, $element, $count>(3, k, at),
                        ];
                        let (mut kept, mut rest) = ([0; $count], [0; $count]);
                        for i in 0..$count {
                            let c = <$element>::from_le(x[i])
                                .wrapping_add(<$element>::from_le(told[i]));
                            let bit = <$element>::from_le(s[i]) & 1 ^ 1 ^ c >> HIGHEST;
                            kept[i] = (c & !(1 << HIGHEST) | bit << HIGHEST).to_le();
                            // All ones where the bit is 1: -x = (x xor -1) + 1.
                            let minus = bit.wrapping_neg();
                            let turned = (<$element>::from_le(first[i]) ^ minus).wrapping_add(bit);
                            let masks = turned.wrapping_add(<$element>::from_le(second[i]));
                            let own = (c >> by).wrapping_sub(masks << up);
                            rest[i] = own.wrapping_sub(<$element>::from_le(y[i])).to_le();
                        }
                        put(&kept, to[0].add(at), bytes);
                        put(&y, to[1].add(at), bytes);
                        put(&rest, to[2].add(at), bytes);
                    }
                    Truncation::Answer { by } => {
                        let up = <$element>::BITS - by;
                        let mut word = [0u8; 8];
                        let length = (self.place.rows - row).div_ceil(8).min($count / 8);
                        std::ptr::copy_nonoverlapping(from.add(row / 8), word.as_mut_ptr(), length);
                        let word = u64::from_le_bytes(word);
                        let told: [$element; $count] = get(to[0].add(at).cast_const(), bytes);
                        let r: [$element; $count] = get(to[1].add(at).cast_const(), bytes);
                        let mask = self.drawn::<V, $element, $count>(0, k, at);
                        let (mut answer, mut result) = ([0; $count], [0; $count]);
                        for i in 0..$count {
                            let bit = (word >> i & 1) as $element;
                            let r = <$element>::from_le(r[i]);
                            let turned = (<$element>::from_le(told[i]) ^ bit.wrapping_neg())
                                .wrapping_add(bit);
                            let own = turned.wrapping_add(bit & r >> HIGHEST);
                            let own = own.wrapping_add(<$element>::from_le(mask[i]));
                            answer[i] = own.to_le();
                            result[i] = (own << up).wrapping_sub(r >> by).to_le();
                        }
                        put(&answer, to[0].add(at), bytes);
                        put(&result, to[1].add(at), bytes);
                    }
                    Truncation::Settle { by } => {
                        let up = <$element>::BITS - by;
                        let told: [$element; $count] = get(from.add(at), bytes);
                        let mut result: [$element; $count] = get(to[0].add(at).cast_const(), bytes);
                        for i in 0..$count {
                            let more = <$element>::from_le(told[i]) << up;
                            result[i] = <$element>::from_le(result[i]).wrapping_add(more).to_le();
                        }
                        put(&result, to[0].add(at), bytes);
                    }
                }
            }
        }
    };
}

impl Step<'_> {
    /// What a call draws for a group of a column.
    #[inline(always)]
    unsafe fn drawn<V: Vector, T: Copy + Default, const N: usize>(
        &self,
        call: usize,
        k: usize,
        at: usize,
    ) -> [T; N] {
        let mask = &self.masks[call];
        let mut all = [T::default(); N];
        // SAFETY: the caller's instruction set; an array has as many bytes as the vectors.
        unsafe {
            let vectors = drawn::<V>(mask, self.place.counter(mask, k, at));
            for g in 0..GROUP {
                vectors[g].store(all.as_mut_ptr().cast::<u8>().add(g * VECTOR));
            }
        }
        all
    }

    group!(group32, u32, 64);
    group!(group64, u64, 32);
    group!(group128, u128, 16);
}
