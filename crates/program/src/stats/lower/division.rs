//! Means that are divided by the parties: exactly, and rounded to so many decimals.

use num_bigint::BigInt;
use veil_circuit::{
    Builder, Wire,
    generate::{Aim, Integer, decompose, quotient_bits, recompose, sub},
};

use crate::bits::{extended, plus, times};

use crate::stats::Column;

/// How the mean of a column over some of at most `rows` rows is computed from their sum `s` and their number `c`.
///
/// The mean is at least the smallest value `l`, so `s - c l` is not negative, and with `u / d` for the result's units in one of the column's,
/// where `u` or `d` is 1 and `l` a multiple of `d`,
///
/// ```text
/// ⌊(2u(s - c l) + d c) / 2dc⌋ = ⌊u/d (s/c - l) + 1/2⌋
/// ```
///
/// is the mean less `l`, rounded to the nearest, halves up. Of dates it is `⌊(s - c l) / c⌋`, the day that the mean is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Division {
    least: i128,
    up: u128,
    down: u128,
    to_nearest: bool,
    dividend: Integer,
    /// Of `d c`.
    divisor: Integer,
    quotient: u32,
    /// The largest quotient.
    largest: i128,
}

impl Division {
    /// The division, or how many bits its dividend has if that is more than any ring.
    pub(super) fn new(column: &Column, decimals: u8, rows: u64) -> Result<Self, u64> {
        let (least, most) = column.range().unwrap_or_default();
        let scale = column.scale();
        let power = |digits: u8| 10u128.pow(digits.into());
        let (up, down) = (
            power(decimals.saturating_sub(scale)),
            power(scale.saturating_sub(decimals)),
        );
        let step = down as i128;
        let least = i128::from(least).div_euclid(step) * step;
        let to_nearest = !column.is_date();
        let double = 1 + u32::from(to_nearest);
        // Less than 2^63 times 10^18: as a double it still fits.
        let span = i128::from(most) - least;
        let half = if to_nearest { step } else { 0 };
        let largest = (2 * span * up as i128 + half) / (2 * step);
        let divisor = BigInt::from(down) * rows;
        let dividend = BigInt::from(span) * up * double * rows + &divisor;
        let bits = |number: &BigInt| number.bits() as u32;
        if dividend.bits() > u64::from(u128::BITS) {
            return Err(dividend.bits());
        }
        Ok(Self {
            least,
            up,
            down,
            to_nearest,
            dividend: Integer::unsigned(bits(&dividend)),
            divisor: Integer::unsigned(bits(&divisor)),
            quotient: bits(&largest.into()).max(1),
            largest,
        })
    }

    /// Bits of the ring that it takes.
    pub(super) fn bits(&self) -> u32 {
        self.dividend.bits
    }

    /// What a quotient of 0 stands for, in units of the result.
    pub(super) fn first(&self) -> i128 {
        self.least * self.up as i128 / self.down as i128
    }

    /// What the largest quotient stands for.
    pub(super) fn last(&self) -> i128 {
        self.first() + self.largest
    }

    /// The quotient of words of bits, the sum in two's complement. It means nothing if `count` is 0.
    pub(super) fn quotient(&self, b: &mut Builder, sum: &[Wire], count: &[Wire]) -> Vec<Wire> {
        let width = self.dividend.bits + 1;
        let sum = extended(b, sum, width, true);
        let count = extended(b, count, width, false);
        let least = times(b, &count, self.least, width);
        let above = sub(b, &sum, &least, Aim::Size);
        let parts = times(b, &count, self.down as i128, width);
        let mut divisor = parts[..self.divisor.bits as usize].to_vec();
        let mut dividend = times(b, &above, self.up as i128, width);
        if self.to_nearest {
            divisor.insert(0, b.constant_bit(false));
            let twice = times(b, &dividend, 2, width);
            dividend = plus(b, &twice, &parts);
        }
        dividend.truncate(self.dividend.bits as usize);
        quotient_bits(b, &dividend, &divisor, self.quotient as usize)
    }

    /// The quotient. It means nothing if `count` is 0.
    pub(super) fn divide(&self, b: &mut Builder, sum: Wire, count: Wire) -> Wire {
        let ring = b.ring();
        let least = b.times(count, ring.reduce(self.least as u128));
        let above = b.sub(sum, least);
        let parts = b.times(count, ring.reduce(self.down));
        let mut divisor = decompose(b, parts, self.divisor);
        let mut dividend = b.times(above, ring.reduce(self.up));
        if self.to_nearest {
            divisor.insert(0, b.constant_bit(false));
            let twice = b.times(dividend, 2);
            dividend = b.add(twice, parts);
        }
        let dividend = decompose(b, dividend, self.dividend);
        let quotient = quotient_bits(b, &dividend, &divisor, self.quotient as usize);
        recompose(b, &quotient, false)
    }
}
