//! Half-gates of one row: neighbouring products, whose tables lie one after the other in the message.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

use super::super::tape::{Product, Row};
use super::Run;
use super::blocks::{Blocks, LANES, each};
use super::gates::Wires;
use super::half;
use super::run::Fixed;
use crate::garble::ROW_BITS;

/// Bytes of a vector of labels.
const VECTOR: usize = 16 * LANES;

/// Whether products are numbered one after the other.
pub(super) fn in_order(products: &[Product]) -> bool {
    products
        .windows(2)
        .all(|two| two[1].index == two[0].index.wrapping_add(1))
}

/// Where the labels of four products are.
#[derive(Clone, Copy)]
struct Four {
    a: [*const u8; LANES],
    b: [*const u8; LANES],
    out: [*mut u8; LANES],
}

impl Four {
    /// The products from number `first` on; those beyond the last one are the last one again.
    ///
    /// # Safety
    /// There are products, and `pairs` has their operands.
    #[inline(always)]
    unsafe fn new(
        wires: &Wires,
        (products, pairs): (&[Product], &[(Row, Row)]),
        first: usize,
    ) -> Self {
        let none = wires.base;
        let mut four = Four {
            a: [none; LANES],
            b: [none; LANES],
            out: [none; LANES],
        };
        for lane in 0..LANES {
            // SAFETY: the caller's.
            let (a, b, out) = unsafe {
                let product = products.get_unchecked((first + lane).min(products.len() - 1));
                let (a, b) = *pairs.get_unchecked(product.start as usize);
                (a, b, product.out)
            };
            four.a[lane] = wires.label(a);
            four.b[lane] = wires.label(b);
            four.out[lane] = wires.label(out);
        }
        four
    }
}

/// Half-gates of up to `4 N` products from number `first` of a batch on, at the garbler or at the evaluator.
///
/// # Safety
/// As `run`; products are in order, and there are more than `first`.
#[inline(always)]
pub(super) unsafe fn group<B: Blocks, const N: usize, const GARBLER: bool>(
    wires: &Wires,
    run: &Run<'_>,
    products: &[Product],
    first: usize,
    fixed: &Fixed<B>,
) {
    // SAFETY: the caller's.
    unsafe {
        let of = (products, &run.tape.pairs[..]);
        let mut fours = [Four::new(wires, of, first); N];
        let (mut a, mut b) = ([fixed.start; N], [fixed.start; N]);
        let mut keys = [[fixed.start; 2]; N];
        let index = u64::from(products.get_unchecked(first).index);
        let mut tweaks = B::tweak((run.first + index) << ROW_BITS << 1).plus(fixed.steps);
        each!(n < N, {
            if n > 0 {
                fours[n] = Four::new(wires, of, first + LANES * n);
                tweaks = tweaks.plus(fixed.four);
            }
            a[n] = B::gather(fours[n].a);
            b[n] = B::gather(fours[n].b);
            keys[n] = [
                fixed.start.xor(tweaks),
                fixed.start.xor(tweaks.plus(fixed.one)),
            ];
        });
        let table = wires.base.wrapping_add(run.tables[0] + 32 * index as usize);
        let left = products.len() - first;
        if GARBLER {
            let out = half::garble(a, b, keys, [fixed.offset.into(); N], &fixed.constants);
            each!(n < N, {
                let lanes = left.saturating_sub(LANES * n).min(LANES);
                out[n][0].scatter(fours[n].out, lanes);
                let labels = out[n][1].interleave(out[n][2]);
                let to = table.wrapping_add(2 * VECTOR * n);
                labels[0].store_part(to, (2 * lanes).min(LANES));
                labels[1].store_part(to.wrapping_add(VECTOR), (2 * lanes).saturating_sub(LANES));
            });
            return;
        }
        let mut tables = [[fixed.start; 2]; N];
        each!(n < N, {
            let lanes = left.saturating_sub(LANES * n).min(LANES);
            let from = table.wrapping_add(2 * VECTOR * n).cast_const();
            let low = B::load_part(from, (2 * lanes).min(LANES));
            let last = (2 * lanes).saturating_sub(LANES);
            let high = B::load_part(from.wrapping_add(VECTOR), last);
            tables[n] = low.apart(high);
        });
        let out = half::evaluate(a, b, keys, tables, &fixed.constants);
        each!(n < N, {
            let lanes = left.saturating_sub(LANES * n).min(LANES);
            out[n].scatter(fours[n].out, lanes);
        });
    }
}
