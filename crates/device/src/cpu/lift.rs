//! Steps of lifts: masks are drawn, subtracted and added in registers, between one load and one store of each component.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

use veil_math::Ring;

use super::Cpu;
use super::commands::stride;
use super::convert::columns;
use super::exec::columns::Columns;
use super::exec::{Mask, step};
use super::vector::{self, GROUP, Task, VECTOR, Vector};
use super::workspace::Memory;
use crate::Fault;
use crate::command::Command;
use crate::layout::ColumnType;
use crate::lift::{Lifting, PARTS};

/// Bytes that are drawn at once.
pub(super) const DRAWN: usize = GROUP * VECTOR;

impl Cpu {
    /// The columns of integers that a checked step of lifts or of truncations is about, and its draws.
    pub(super) fn integers(
        &self,
        memory: &Memory,
        command: &Command,
    ) -> Result<(Place, Vec<Mask<'_>>), Fault> {
        let to = command.dst[0];
        let column = memory.layout.regions[to.region as usize].column;
        let ColumnType::Rows(ring) = column else {
            unreachable!("it was checked")
        };
        let mut masks = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            masks.push(self.mask(*call, memory.frame)?);
        }
        let place = Place {
            ring,
            stride: stride(memory, to.region),
            columns: to.count as usize,
            rows: memory.frame.rows as usize,
            bytes: column.bytes(memory.frame.rows) as usize,
        };
        Ok((place, masks))
    }

    /// A step of lifts, which was checked.
    pub(super) fn lifting(
        &self,
        memory: &mut Memory,
        how: Lifting,
        command: &Command,
    ) -> Result<(), Fault> {
        let (place, masks) = self.integers(memory, command)?;
        let bits = command.src.first().map(|span| columns(memory, *span));
        let bits = bits.unwrap_or(Columns::NONE);
        let to = |memory: &mut Memory, k: usize| columns(memory, command.dst[k]);
        // SAFETY: the instruction set is the device's, which was checked; so were the spans: all have as many columns of as many rows, and no
        // two overlap.
        unsafe {
            match how {
                Lifting::Share => {
                    let to = [0, 1].map(|k| to(memory, k));
                    let mask = masks[0];
                    vector::run(
                        self.isa,
                        Share {
                            place,
                            mask,
                            bits,
                            to,
                        },
                    );
                }
                Lifting::Turn => {
                    let to = [0, 1].map(|k| to(memory, k));
                    let masks = [masks[0], masks[1]];
                    vector::run(
                        self.isa,
                        Turn {
                            place,
                            masks,
                            bits,
                            to,
                        },
                    );
                }
                Lifting::Terms { terms, keeps } => {
                    let messages = [0, 1].map(|k| to(memory, k));
                    let parts = [2, 3, 4].map(|k| to(memory, k));
                    let terms = Terms {
                        place,
                        masks: &masks,
                        pairs: terms.map(|(r, o)| [r, o].map(usize::from)),
                        keeps: keeps.map(|part| part.map_or(PARTS, usize::from)),
                        messages,
                        parts,
                    };
                    vector::run(self.isa, terms);
                }
            }
        }
        Ok(())
    }
}

/// What columns a step is about.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) ring: Ring,
    /// Counters of a column.
    pub(super) stride: u64,
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Of a column.
    pub(super) bytes: usize,
}

impl Place {
    /// Counter of the blocks from byte `at` of column `k` on.
    #[inline(always)]
    pub(super) fn counter(self, mask: &Mask<'_>, k: usize, at: usize) -> u64 {
        mask.first
            .wrapping_add(self.stride.wrapping_mul(k as u64))
            .wrapping_add((at / 16) as u64)
    }
}

/// Elements as lanes of a vector.
trait Lanes {
    const RING: Ring;
    /// Bytes of an element.
    const SIZE: usize = Self::RING.bytes(1) as usize;
    /// The lowest bits as elements.
    unsafe fn ones<V: Vector>(bits: u16) -> V;
}

/// Lanes of a ring, whose elements are of this type: so many in a vector.
macro_rules! lanes {
    ($name:ident, $ring:ident, $element:ty, $count:literal) => {
        struct $name;

        impl Lanes for $name {
            const RING: Ring = Ring::$ring;
            #[inline(always)]
            unsafe fn ones<V: Vector>(bits: u16) -> V {
                let mut elements: [$element; $count] = [0; $count];
                for r in 0..$count {
                    elements[r] = (<$element>::from(bits) >> r & 1).to_le();
                }
                // SAFETY: the array is as long as a vector; the instruction set is the caller's.
                unsafe { V::load(elements.as_ptr().cast()) }
            }
        }
    };
}
lanes!(Lanes32, Z32, u32, 16);
lanes!(Lanes64, Z64, u64, 8);
lanes!(Lanes128, Z128, u128, 4);

#[inline(always)]
unsafe fn add<V: Vector, L: Lanes>(a: V, b: V) -> V {
    // SAFETY: the caller's, here and below.
    unsafe { step(L::RING, false, a, b) }
}

#[inline(always)]
unsafe fn sub<V: Vector, L: Lanes>(a: V, b: V) -> V {
    unsafe { step(L::RING, true, a, b) }
}

#[inline(always)]
unsafe fn mul<V: Vector, L: Lanes>(a: V, b: V) -> V {
    unsafe {
        match L::RING {
            Ring::Z32 => a.mul32(b),
            Ring::Bits | Ring::Z64 => a.mul64(b),
            Ring::Z128 => {
                let (mut x, mut y) = ([0u128; 4], [0u128; 4]);
                a.store(x.as_mut_ptr().cast());
                b.store(y.as_mut_ptr().cast());
                for k in 0..4 {
                    x[k] = u128::from_le(x[k])
                        .wrapping_mul(u128::from_le(y[k]))
                        .to_le();
                }
                V::load(x.as_ptr().cast())
            }
        }
    }
}

/// The bits of the rows of the vector at byte `at` of a column of elements; if there are not that many rows, zeros behind them.
#[inline(always)]
unsafe fn ones<V: Vector, L: Lanes>(bits: *const u8, at: usize, rows: usize) -> V {
    let row = at / L::SIZE;
    // SAFETY: the column of bits has a byte for row `row`, and one for row `row + 8` if that exists.
    unsafe {
        let mut word = u16::from(bits.add(row / 8).read()) >> (row % 8);
        if L::SIZE == 4 && row + 8 < rows {
            word |= u16::from(bits.add(row / 8 + 1).read()) << 8;
        }
        L::ones::<V>(word)
    }
}

/// At most a vector, of so many bytes.
#[inline(always)]
pub(super) unsafe fn get<V: Vector>(from: *const u8, bytes: usize) -> V {
    // SAFETY: the bytes are there; the array is as long as a vector.
    unsafe {
        if bytes >= VECTOR {
            return V::load(from);
        }
        let mut part = [0u8; VECTOR];
        std::ptr::copy_nonoverlapping(from, part.as_mut_ptr(), bytes);
        V::load(part.as_ptr())
    }
}

#[inline(always)]
pub(super) unsafe fn put<V: Vector>(value: V, to: *mut u8, bytes: usize) {
    // SAFETY: as `get`.
    unsafe {
        if bytes >= VECTOR {
            value.store(to);
            return;
        }
        let mut part = [0u8; VECTOR];
        value.store(part.as_mut_ptr());
        std::ptr::copy_nonoverlapping(part.as_ptr(), to, bytes);
    }
}

#[inline(always)]
pub(super) unsafe fn drawn<V: Vector>(mask: &Mask<'_>, ctr: u64) -> [V; GROUP] {
    let counters = [
        ctr,
        ctr.wrapping_add(4),
        ctr.wrapping_add(8),
        ctr.wrapping_add(12),
    ];
    // SAFETY: the caller's instruction set.
    unsafe { V::prf(mask.key, mask.domain, counters) }
}

/// A step on one group of vectors of each column, by ring.
macro_rules! task {
    ($step:ident) => {
        impl Task for $step<'_> {
            #[inline(always)]
            unsafe fn run<V: Vector>(self) {
                let place = self.place;
                for k in 0..place.columns {
                    for at in (0..place.bytes).step_by(DRAWN) {
                        // SAFETY: the caller's.
                        unsafe {
                            match place.ring {
                                Ring::Z32 => self.group::<V, Lanes32>(k, at),
                                Ring::Bits | Ring::Z64 => self.group::<V, Lanes64>(k, at),
                                Ring::Z128 => self.group::<V, Lanes128>(k, at),
                            }
                        }
                    }
                }
            }
        }
    };
}

/// [`Lifting::Share`].
struct Share<'a> {
    place: Place,
    mask: Mask<'a>,
    bits: Columns,
    to: [Columns; 2],
}

task!(Share);

impl Share<'_> {
    #[inline(always)]
    unsafe fn group<V: Vector, L: Lanes>(&self, k: usize, first: usize) {
        let place = self.place;
        let bits = self.bits.at(k);
        let to = [self.to[0].at(k), self.to[1].at(k)];
        // SAFETY: the caller's: every column has `bytes` bytes, or bits for as many rows.
        unsafe {
            let masks = drawn::<V>(&self.mask, place.counter(&self.mask, k, first));
            for g in 0..GROUP {
                let at = first + g * VECTOR;
                if at >= place.bytes {
                    break;
                }
                let bytes = place.bytes - at;
                let bit = ones::<V, L>(bits, at, place.rows);
                put(masks[g], to[0].add(at), bytes);
                put(sub::<V, L>(bit, masks[g]), to[1].add(at), bytes);
            }
        }
    }
}

/// [`Lifting::Turn`].
struct Turn<'a> {
    place: Place,
    masks: [Mask<'a>; 2],
    bits: Columns,
    to: [Columns; 2],
}

task!(Turn);

impl Turn<'_> {
    #[inline(always)]
    unsafe fn group<V: Vector, L: Lanes>(&self, k: usize, first: usize) {
        let place = self.place;
        let bits = self.bits.at(k);
        let to = [self.to[0].at(k), self.to[1].at(k)];
        // SAFETY: as above.
        unsafe {
            let [a, b] = [&self.masks[0], &self.masks[1]];
            let masks = drawn::<V>(a, place.counter(a, k, first));
            let others = drawn::<V>(b, place.counter(b, k, first));
            for g in 0..GROUP {
                let at = first + g * VECTOR;
                if at >= place.bytes {
                    break;
                }
                let bytes = place.bytes - at;
                let bit = ones::<V, L>(bits, at, place.rows);
                let x = get::<V>(to[0].add(at), bytes);
                // All ones where the bit is 1: -x = (x xor -1) + 1.
                let minus = sub::<V, L>(V::splat(0), bit);
                let turned = add::<V, L>(x.xor(minus), bit);
                put(add::<V, L>(turned, masks[g]), to[0].add(at), bytes);
                let rest = sub::<V, L>(sub::<V, L>(bit, masks[g]), others[g]);
                put(rest, to[1].add(at), bytes);
            }
        }
    }
}

/// [`Lifting::Terms`].
struct Terms<'a> {
    place: Place,
    masks: &'a [Mask<'a>],
    pairs: [[usize; 2]; 2],
    /// `PARTS`: none.
    keeps: [usize; 2],
    messages: [Columns; 2],
    parts: [Columns; PARTS],
}

task!(Terms);

impl Terms<'_> {
    #[inline(always)]
    unsafe fn group<V: Vector, L: Lanes>(&self, k: usize, first: usize) {
        let place = self.place;
        // SAFETY: as above; components and calls are those that were checked.
        unsafe {
            let mut masks = [[V::splat(0); GROUP]; 4];
            for d in 0..2 {
                let mask = &self.masks[d];
                masks[d] = drawn::<V>(mask, place.counter(mask, k, first));
            }
            for d in 2..self.masks.len() {
                let mask = &self.masks[d];
                masks[d] = drawn::<V>(mask, place.counter(mask, k, first));
            }
            for g in 0..GROUP {
                let at = first + g * VECTOR;
                if at >= place.bytes {
                    break;
                }
                let bytes = place.bytes - at;
                let mut x = [V::splat(0); PARTS + 1];
                for part in 0..PARTS {
                    x[part] = get::<V>(self.parts[part].at(k).add(at), bytes);
                }
                let mut result = x;
                for d in 0..2 {
                    let [r, o] = self.pairs[d];
                    let product = mul::<V, L>(x[r], x[o]);
                    let twice = add::<V, L>(product, product);
                    let message = sub::<V, L>(sub::<V, L>(V::splat(0), twice), masks[d][g]);
                    put(message, self.messages[d].at(k).add(at), bytes);
                    result[o] = add::<V, L>(result[o], message);
                    result[r] = add::<V, L>(result[r], masks[d][g]);
                }
                for d in 0..2 {
                    let part = self.keeps[d];
                    result[part] = add::<V, L>(result[part], masks[2 + d][g]);
                }
                for part in 0..PARTS {
                    put(result[part], self.parts[part].at(k).add(at), bytes);
                }
            }
        }
    }
}
