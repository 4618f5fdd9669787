//! Between integers and bits, and between rings: what is done to whole columns.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set"
)]

#[cfg(target_arch = "x86_64")]
mod pick;
mod rows;
mod split;

use veil_math::Ring;

use super::Isa;
use super::exec::columns::{Columns, Dot, Products};
use super::vector;
use super::workspace::Memory;
use crate::layout::{ColumnType, Span};
use rows::{Lift, Resize, Shift};
pub(super) use split::split;

/// Every item of `to` = the same of `from`, as integers. It was checked that they fit.
pub(super) fn lift(memory: &mut Memory, isa: Isa, from: Span, to: Span) {
    // SAFETY: the instruction set is the device's, which was checked; so it is below.
    unsafe { vector::run(isa, Lift { memory, from, to }) }
}

/// Every item of `to` = the same of `from`, in another ring. It was checked that they fit.
pub(super) fn resize(memory: &mut Memory, isa: Isa, from: Span, to: Span) {
    // SAFETY: as above.
    unsafe { vector::run(isa, Resize { memory, from, to }) }
}

/// The one item of `to` = that of `from` without its lowest bits. It was checked that they fit.
pub(super) fn shift(memory: &mut Memory, isa: Isa, by: u32, (from, to): (Span, Span)) {
    let shift = Shift {
        memory,
        by,
        from,
        to,
    };
    // SAFETY: as above.
    unsafe { vector::run(isa, shift) }
}

/// Every item of `to` = the product of those of two others. It was checked that they fit.
pub(super) fn scale(memory: &mut Memory, isa: Isa, from: [Span; 2], to: Span) {
    let (ring, bytes) = (ring(memory, to), memory.column(to, 0).1);
    let products = Products {
        ring,
        from: from.map(|span| columns(memory, span)),
        to: columns(memory, to),
        columns: to.count as usize,
        bytes,
    };
    // SAFETY: as above; columns of one type have the same bytes, and no source overlaps the destination.
    unsafe { vector::run(isa, products) }
}

/// `to` += Σ a (c + d) + b c over all elements of `src`, which are a, b, c, d. It was checked that they fit.
pub(super) fn dot(memory: &mut Memory, isa: Isa, src: &[Span], to: Span) {
    let mut sum = 0;
    let of = |memory: &mut Memory, first: usize| {
        [src[first], src[first + 1]].map(|span| columns(memory, span))
    };
    let dot = Dot {
        narrow: ring(memory, src[0]) != ring(memory, src[2]),
        ring: ring(memory, to),
        factors: of(memory, 0),
        values: of(memory, 2),
        columns: src[0].count as usize,
        bytes: memory.column(src[2], 0).1,
        sum: &mut sum,
    };
    // SAFETY: as above; factors and values have as many rows.
    unsafe { vector::run(isa, dot) }
    let into = memory.column_bytes_mut(to, 0);
    let size = into.len();
    let mut value = [0; 16];
    value[..size].copy_from_slice(into);
    let value = u128::from_le_bytes(value).wrapping_add(sum);
    into.copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Where the columns of a span are.
pub(super) fn columns(memory: &mut Memory, span: Span) -> Columns {
    Columns {
        first: memory.first(span),
        stride: memory.all_strides[span.region as usize].column,
    }
}

/// The ring of a span of integers or bits.
fn ring(memory: &Memory, span: Span) -> Ring {
    match memory.layout.regions[span.region as usize].column {
        ColumnType::Rows(ring) | ColumnType::One(ring) => ring,
        _ => unreachable!("it was checked"),
    }
}

/// Whether a span is of what all rows share.
fn shared(memory: &Memory, span: Span) -> bool {
    let column = memory.layout.regions[span.region as usize].column;
    matches!(column, ColumnType::One(_))
}
