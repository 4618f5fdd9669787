//! The steps of a proof that go through the whole batch, register by register.

#![allow(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

mod portable;
#[cfg(target_arch = "x86_64")]
mod wide;

use veil_math::P61;
use zeroize::Zeroizing;

use super::vector::VECTOR;
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::command::Command;
use crate::layout::Span;
use crate::proof::{self, BASE, COUNTS, Elements, Proof, Side, Table, factor, length};
use crate::{Fault, mac};

impl Elements for Memory {
    fn bytes_of(&self, span: Span) -> &[u8] {
        self.bytes(span)
    }

    fn bytes_of_mut(&mut self, span: Span) -> &mut [u8] {
        self.bytes_mut(span)
    }

    fn rows(&self) -> u32 {
        self.frame.rows
    }
}

/// 512 rows of bits.
type Register = [u64; VECTOR / 8];

/// Of 512 gates, three bits each: x, y, s. Rows that do not exist are zero.
type Half = [Register; 3];

/// Rows of items in a region of the workspace.
struct Columns<'a> {
    region: &'a [u8],
    /// Of item 0 of part 0 in the region.
    offset: usize,
    column: usize,
    component: usize,
}

impl<'a> Columns<'a> {
    fn new(
        region: &'a [u8],
        (place, column, component): (usize, usize, usize),
        first: usize,
    ) -> Self {
        Columns {
            region,
            offset: first - place,
            column,
            component,
        }
    }

    /// A register of an item, of which `bytes` bytes count from there on.
    #[inline(always)]
    fn register(&self, component: usize, column: u32, register: usize, bytes: usize) -> Register {
        let at = self.offset
            + component * self.component
            + column as usize * self.column
            + register * VECTOR;
        let bytes = &self.region[at..][..bytes.min(VECTOR)];
        let mut all = [0; VECTOR];
        match bytes.first_chunk::<VECTOR>() {
            Some(whole) => all = *whole,
            None => all[..bytes.len()].copy_from_slice(bytes),
        }
        let mut words = [0; VECTOR / 8];
        for (word, bytes) in words.iter_mut().zip(all.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }
}

/// The trace of a batch and what was received of it.
pub(super) struct Gates<'a> {
    trace: Columns<'a>,
    received: Columns<'a>,
    products: u32,
    rows: usize,
}

impl Gates<'_> {
    fn products(&self) -> u32 {
        self.products
    }

    fn quarter(&self) -> u32 {
        self.products.div_ceil(BASE as u32)
    }

    fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of a product's rows.
    fn bytes(&self) -> usize {
        self.rows.div_ceil(8)
    }

    fn registers(&self) -> usize {
        self.bytes().div_ceil(VECTOR)
    }

    /// Ones in the rows that exist of a register.
    #[inline(always)]
    fn present(&self, register: usize) -> Register {
        let left = self.rows - register * VECTOR * 8;
        let mut present = [0; VECTOR / 8];
        for (k, word) in present.iter_mut().enumerate() {
            *word = match left.saturating_sub(k * 64) {
                0 => 0,
                left if left < 64 => (1 << left) - 1,
                _ => u64::MAX,
            };
        }
        present
    }

    /// One half of 512 gates. `present` is what [`Self::present`] says of the register.
    #[inline(always)]
    fn half(&self, side: Side, product: u32, register: usize, present: &Register) -> Half {
        let bytes = self.bytes() - register * VECTOR;
        let trace = |component| self.trace.register(component, product, register, bytes);
        let (u, u1, w, w1) = (trace(0), trace(1), trace(2), trace(3));
        let mask = trace(if side == Side::Next { 4 } else { 5 });
        let received = match side {
            Side::Previous => self.received.register(0, product, register, bytes),
            _ => [0; VECTOR / 8],
        };
        let mut half = match side {
            Side::OwnNext => [u, w, mask],
            Side::OwnPrevious => [w1, u1, mask],
            Side::Previous => [u1, w1, mask],
            Side::Next => [w, u, mask],
        };
        for k in 0..VECTOR / 8 {
            half[2][k] ^= match side {
                Side::OwnNext => (u[k] & w1[k]) ^ (w[k] & u1[k]) ^ (u1[k] & w1[k]),
                Side::OwnPrevious => u1[k] & w1[k],
                Side::Previous => received[k],
                Side::Next => u[k] & w[k],
            };
            for bits in &mut half {
                bits[k] &= present[k];
            }
        }
        half
    }
}

/// The kernels that a device uses.
#[derive(Clone, Copy)]
enum Kernels {
    #[cfg(target_arch = "x86_64")]
    Wide,
    Portable,
}

impl Kernels {
    fn of(isa: Isa) -> Self {
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 && wide::is_there() {
            return Kernels::Wide;
        }
        let _ = isa;
        Kernels::Portable
    }

    fn counts(self, gates: &Gates<'_>, counts: &mut [i64; COUNTS as usize]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `of` looked for the instructions, here and below.
            Kernels::Wide => unsafe { wide::counts(gates, counts) },
            Kernels::Portable => portable::counts(gates, counts),
        }
    }

    fn expand(self, gates: &Gates<'_>, side: Side, table: &Table, vector: &mut [u64]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernels::Wide => unsafe { wide::expand(gates, side, table, vector) },
            Kernels::Portable => portable::expand(gates, side, table, vector),
        }
    }

    fn gram(self, a: &[u64], b: &[u64], places: usize) -> Zeroizing<Vec<u64>> {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernels::Wide => unsafe { wide::gram(a, b, places) },
            Kernels::Portable => proof::gram(a, b, places),
        }
    }

    fn fold(self, vector: &mut [u64], basis: &[u64]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Kernels::Wide => unsafe { wide::fold(vector, basis) },
            Kernels::Portable => proof::fold(vector, basis),
        }
    }
}

/// The first elements of a region's bytes, as this machine has numbers.
fn words(bytes: &[u8], length: usize) -> &[u64] {
    // SAFETY: any bytes are words, and those that are not aligned are left out.
    let (before, words, _) = unsafe { bytes.align_to::<u64>() };
    assert!(before.is_empty(), "regions of a workspace are aligned");
    &words[..length]
}

fn words_mut(bytes: &mut [u8], length: usize) -> &mut [u64] {
    // SAFETY: as `words`.
    let (before, words, _) = unsafe { bytes.align_to_mut::<u64>() };
    assert!(before.is_empty(), "regions of a workspace are aligned");
    &mut words[..length]
}

/// Where a span begins in its region: of the region, of an item, of a part, of the span.
fn shape(memory: &Memory, span: Span) -> ((usize, usize, usize), usize) {
    let strides = memory.all_strides[span.region as usize];
    let first = memory.column(span, 0).0;
    ((strides.offset, strides.column, strides.component), first)
}

impl Cpu {
    pub(super) fn proof(
        &self,
        memory: &mut Memory,
        step: Proof,
        command: &Command,
    ) -> Result<bool, Fault> {
        let blocks = |memory: &Memory, call: usize, count: u32| {
            let call = command.calls[call];
            let mask = self.mask(call, memory.frame)?;
            let mut bytes = Zeroizing::new(vec![0; mac::BLOCK * count as usize]);
            self.random(mask, call.first, &mut bytes);
            Ok(bytes)
        };
        if let Some(fits) = proof::step(step, memory, command, blocks)? {
            return Ok(fits);
        }
        let (src, dst) = (&command.src, &command.dst);
        let (rows, kernels) = (memory.frame.rows, Kernels::of(self.isa));
        match step {
            Proof::Counts => {
                let mut counts = Zeroizing::new([0i64; COUNTS as usize]);
                with_gates(memory, src, dst[0], |gates, _| {
                    kernels.counts(gates, &mut counts);
                })?;
                let counts = counts.iter().map(|count| P61::signed(*count));
                let counts = Zeroizing::new(counts.collect::<Vec<u64>>());
                memory.put(dst[0], &counts);
            }
            Proof::Expand { side } => {
                let challenges = [src[2], src[3]].map(|span| memory.element(span));
                let table = Table::new::<61>(side.is_left(), challenges);
                let length = length(src[0].count, rows, 3) as usize;
                with_gates(memory, src, dst[0], |gates, bytes| {
                    kernels.expand(gates, side, &table, words_mut(bytes, length));
                })?;
            }
            Proof::Fold { level, products } => {
                let length = length(products, rows, level) as usize;
                let places = factor(level) as usize;
                let basis = proof::basis_of(places, memory.element(src[1]));
                kernels.fold(words_mut(memory.bytes_mut(dst[0]), length), &basis);
            }
            Proof::Share {
                level, products, ..
            } => {
                let length = length(products, rows, level) as usize;
                let places = factor(level) as usize;
                let [a, b] = [src[0], src[1]].map(|span| words(memory.bytes(span), length));
                let gram = kernels.gram(a, b, places);
                let masks = blocks(memory, 0, 2 * places as u32 - 1)?;
                proof::put_share(memory, dst[0], &gram, places, &masks);
            }
            // Those that every device does alike.
            _ => return Err(Fault::Program("a step of a proof that no party does")),
        }
        Ok(true)
    }
}

/// Lets `act` see the gates of `src` and write the bytes of a span, which is in another region.
fn with_gates(
    memory: &mut Memory,
    src: &[Span],
    to: Span,
    act: impl FnOnce(&Gates<'_>, &mut [u8]),
) -> Result<(), Fault> {
    let rows = memory.frame.rows as usize;
    let [trace, received, out] = [src[0], src[1], to].map(|span| shape(memory, span));
    let bytes = memory.bytes(to).len();
    let regions = [src[0].region, src[1].region, to.region];
    let [of_trace, of_received, of_out] = memory.regions_mut(regions)?;
    let gates = Gates {
        trace: Columns::new(of_trace, trace.0, trace.1),
        received: Columns::new(of_received, received.0, received.1),
        products: src[0].count,
        rows,
    };
    let first = out.1 - out.0.0;
    act(&gates, &mut of_out[first..][..bytes]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of all lengths around registers and blocks, of the largest elements and of others.
    #[test]
    fn inner_products_and_folds_are_those_of_the_reference() {
        let kernels: Vec<Kernels> = Isa::available().into_iter().map(Kernels::of).collect();
        let lengths = [
            1, 2, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1030, 2048, 8200, 9001,
        ];
        for (length, places) in lengths.into_iter().flat_map(|l| [(l, 4), (l, 8)]) {
            let mut x = 1u64;
            let mut random = || {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                (x >> 3) % P61::P
            };
            let largest = vec![P61::P - 1; length];
            let other: Vec<u64> = (0..length).map(|_| random()).collect();
            let basis: Vec<u64> = (0..places).map(|_| random()).collect();
            for (a, b) in [(&largest, &largest), (&largest, &other), (&other, &other)] {
                let gram = proof::gram(a, b, places);
                let mut folded = a.clone();
                proof::fold(&mut folded, &basis);
                let left = length.div_ceil(places);
                for kernels in &kernels {
                    assert_eq!(kernels.gram(a, b, places), gram, "{length}, {places}");
                    let mut vector = a.clone();
                    kernels.fold(&mut vector, &basis);
                    assert_eq!(vector[..left], folded[..left], "{length}, {places}");
                }
            }
        }
    }
}
