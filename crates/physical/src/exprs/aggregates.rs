//! Quotients and roots of the sums over a group.

use veil_circuit::generate::{Aim, add, quotient_and_rest};
use veil_circuit::{Builder, Wire};
use veil_relation::Range;

use super::columns::Columns;
use super::compare::{below, padded};
use super::divide::{root, times_ten};
use super::word::width;
use super::{Ratio, Word};

/// The sums over a group of the values that are not null.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums<'a> {
    /// How many there are.
    pub(crate) count: &'a Word,
    /// Their sum, in units.
    pub(crate) sum: &'a Word,
    /// The sum of their squares.
    pub(crate) squares: &'a Word,
}

/// The sample variance `(n·Σx² − (Σx)²) / (n·(n − 1))`, numerator and denominator of ranges that hold them; and whether it is null, for there
/// are fewer than two values.
pub(crate) fn variance(
    b: &mut Builder,
    of: Sums<'_>,
    (above, under): (Range, Range),
    aim: Aim,
) -> (Ratio, Wire) {
    let few = below(b, of.count, 2, aim);
    let mut sum = Columns::new(above.bits());
    sum.product(b, of.count, of.squares, false, aim);
    sum.product(b, of.sum, of.sum, true, aim);
    let above = sum.word(b, above, aim);
    let mut sum = Columns::new(under.bits());
    sum.product(b, of.count, of.count, false, aim);
    sum.scaled(b, of.count, -1);
    let below = sum.word(b, under, aim);
    (Ratio { above, below }, few)
}

/// The root of the sample variance, rounded to the nearest unit of `10^−to` for values with `from` places, halves up; null as the variance.
///
/// With `r = ⌊√(4x)⌋` the nearest integer to √x is `⌊(r + 1) / 2⌋`. `range` is that of the type, whose end no root reaches but 0.
pub(crate) fn deviation(
    b: &mut Builder,
    of: Sums<'_>,
    ranges: (Range, Range),
    (from, to): (u32, u32),
    range: Range,
    aim: Aim,
) -> (Word, Wire) {
    let (ratio, few) = variance(b, of, ranges, aim);
    let zero = b.constant_bit(false);
    let above = ratio.above.unsigned(b, aim);
    let above = times_ten(b, &above, 2 * to.saturating_sub(from), aim);
    let four = [&[zero, zero], above.as_slice()].concat();
    let under = ratio.below.unsigned(b, aim);
    // 4x is less than (2·most + 2)².
    let bits = 2 * (width(range.max().unsigned_abs()) + 1) as usize;
    let (four, _) = quotient_and_rest(b, &four, &under, bits, aim);
    let root = root(b, &four, aim);
    let half = padded(b, &root[1..], range.bits());
    let up = padded(b, &root[..1], range.bits());
    (Word::of_bits(add(b, &half, &up, aim), range), few)
}
