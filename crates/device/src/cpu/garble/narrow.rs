//! Sums of labels where a wire has fewer rows than a vector has lanes.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the loop over a tape"
)]

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use super::super::tape::{NO_ROW, Row, Xor};
use super::blocks::LANES;
use super::gates::Wires;

#[inline(always)]
unsafe fn load(from: *const u8, row: usize) -> __m128i {
    // SAFETY: the caller's address; every machine of this kind has these instructions, here and below.
    unsafe { _mm_loadu_si128(from.add(16 * row).cast()) }
}

#[inline(always)]
unsafe fn store(to: *mut u8, row: usize, label: __m128i) {
    // SAFETY: as above.
    unsafe { _mm_storeu_si128(to.add(16 * row).cast(), label) }
}

/// A run of short sums.
///
/// # Safety
/// The rows exist.
#[inline(always)]
pub(super) unsafe fn xors(wires: &Wires, xors: &[Xor]) {
    static NOTHING: [u8; 16 * LANES] = [0; 16 * LANES];
    // A sum of two is one of three, without a branch for which it is: that is seldom foreseen.
    let third = |x: &Xor, c: *mut u8| {
        std::hint::select_unpredictable(x.c == NO_ROW, NOTHING.as_ptr(), c.cast_const())
    };
    if wires.rows == 1 {
        for x in xors {
            // SAFETY: the caller's rows.
            unsafe {
                let (a, b) = (wires.label(x.a), wires.label(x.b));
                let (c, out) = (wires.label(x.c), wires.label(x.out));
                let sum = _mm_xor_si128(load(a, 0), load(b, 0));
                store(out, 0, _mm_xor_si128(sum, load(third(x, c), 0)));
            }
        }
        return;
    }
    for x in xors {
        // SAFETY: the caller's rows.
        unsafe {
            let (a, b) = (wires.at(x.a), wires.at(x.b));
            let (c, out) = (third(x, wires.at(x.c)), wires.at(x.out));
            for row in 0..wires.rows {
                let sum = _mm_xor_si128(load(a, row), load(b, row));
                store(out, row, _mm_xor_si128(sum, load(c, row)));
            }
        }
    }
}

/// out = the XOR of rows and of a label that all have.
///
/// # Safety
/// As [`xors`].
#[inline(always)]
pub(super) unsafe fn sum(wires: &Wires, rows: &[Row], constant: u128, out: Row) {
    // SAFETY: the caller's rows.
    unsafe {
        let constant = constant.to_le_bytes();
        for k in 0..wires.rows {
            let mut sum = load(constant.as_ptr(), 0);
            for &row in rows {
                sum = _mm_xor_si128(sum, load(wires.at(row), k));
            }
            store(wires.at(out), k, sum);
        }
    }
}
