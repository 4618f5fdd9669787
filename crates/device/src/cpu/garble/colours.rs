//! Labels and bits: active labels of zero-labels and bits, and the colours of labels, four side by side.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

use super::super::workspace::Memory;
use super::blocks::{Blocks, LANES};
use crate::layout::Span;

/// Items of a workspace: where the first one is, and bytes from one to the next.
#[derive(Clone, Copy)]
struct Columns {
    first: *mut u8,
    pitch: usize,
}

impl Columns {
    fn of(memory: &mut Memory, span: Span) -> Self {
        let (at, _) = memory.column(span, 0);
        Columns {
            first: memory.base().wrapping_add(at),
            pitch: memory.all_strides[span.region as usize].column,
        }
    }

    /// Byte `at` of item `k`.
    #[inline(always)]
    fn at(self, k: usize, at: usize) -> *mut u8 {
        self.first.wrapping_add(k * self.pitch + at)
    }

    /// The first label of each of four items from `k` on, of `count`; the last one again where there are no more.
    #[inline(always)]
    fn four(self, k: usize, count: usize) -> [*mut u8; LANES] {
        let mut four = [self.first; LANES];
        for (lane, place) in four.iter_mut().enumerate() {
            *place = self.at((k + lane).min(count - 1), 0);
        }
        four
    }
}

/// to = labels ⊕ bits · offset, of `rows` labels in each item.
///
/// # Safety
/// The instruction set of `B` is enabled in the caller; the spans lie in the workspace, hold labels and bits, and are as long as `to`.
#[inline(always)]
pub(super) unsafe fn encode<B: Blocks>(
    memory: &mut Memory,
    offset: u128,
    [labels, bits]: [Span; 2],
    to: Span,
    rows: usize,
) {
    let count = to.count as usize;
    let [labels, bits, to] = [labels, bits, to].map(|span| Columns::of(memory, span));
    // SAFETY: the caller's; whatever is read or written belongs to an item below `count` and a row below `rows`.
    unsafe {
        let offset = B::splat(offset);
        if rows == 1 {
            for k in (0..count).step_by(LANES) {
                let mut of_four = 0;
                for (lane, bit) in bits.four(k, count).into_iter().enumerate() {
                    of_four |= (bit.read() & 1) << lane;
                }
                let from = labels.four(k, count).map(<*mut u8>::cast_const);
                let active = B::gather(from).xor_where(B::bits(of_four), offset);
                active.scatter(to.four(k, count), (count - k).min(LANES));
            }
            return;
        }
        for k in 0..count {
            for row in (0..rows).step_by(LANES) {
                let lanes = (rows - row).min(LANES);
                let bits = bits.at(k, row / 8).read() >> (row % 8) & 0xf;
                let label = B::load_part(labels.at(k, 16 * row), lanes);
                let active = label.xor_where(B::bits(bits), offset);
                active.store_part(to.at(k, 16 * row), lanes);
            }
        }
    }
}

/// to = bit 0 of every label, of `rows` in each item; zero beyond them.
///
/// # Safety
/// As [`encode`].
#[inline(always)]
pub(super) unsafe fn colour<B: Blocks>(memory: &mut Memory, labels: Span, to: Span, rows: usize) {
    let count = to.count as usize;
    let [labels, to] = [labels, to].map(|span| Columns::of(memory, span));
    // SAFETY: the caller's, as in `encode`.
    unsafe {
        if rows == 1 {
            for k in (0..count).step_by(LANES) {
                let from = labels.four(k, count).map(<*mut u8>::cast_const);
                let colours = B::number(B::gather(from).colour());
                for (lane, to) in to.four(k, count).into_iter().enumerate() {
                    // Beyond the last item the last one is written again: with its own colour.
                    to.write(colours >> lane & 1);
                }
            }
            return;
        }
        for k in 0..count {
            for row in (0..rows).step_by(2 * LANES) {
                let mut byte = 0;
                for half in 0..2 {
                    let row = row + half * LANES;
                    let lanes = rows.saturating_sub(row).min(LANES);
                    let label = B::load_part(labels.at(k, 16 * row), lanes);
                    byte |= B::number(label.colour()) << (half * LANES);
                }
                to.at(k, row / 8).write(byte);
            }
        }
    }
}
