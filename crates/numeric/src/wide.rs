//! Intervals of integers of any size: how many bits a result would take that does not fit.

use num_bigint::{BigInt, Sign};

use crate::range::Range;

/// The integers from one to another, of any size: what a [`Range`] is where it does not fit one.
///
/// Messages are made of it, and nothing that is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wide {
    min: BigInt,
    max: BigInt,
}

impl From<Range> for Wide {
    fn from(range: Range) -> Self {
        Self {
            min: range.min().into(),
            max: range.max().into(),
        }
    }
}

impl Wide {
    /// All sums of an integer of each.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            min: &self.min + &other.min,
            max: &self.max + &other.max,
        }
    }

    /// All differences.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        Self {
            min: &self.min - &other.max,
            max: &self.max - &other.min,
        }
    }

    /// All products, and what lies between them.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let ends = [
            &self.min * &other.min,
            &self.min * &other.max,
            &self.max * &other.min,
            &self.max * &other.max,
        ];
        let [mut min, mut max] = [ends[0].clone(), ends[0].clone()];
        for end in ends {
            if end < min {
                min = end;
            } else if end > max {
                max = end;
            }
        }
        Self { min, max }
    }

    /// The integers times 10^`places`.
    #[must_use]
    pub fn shifted(&self, places: u32) -> Self {
        let by = BigInt::from(10).pow(places);
        Self {
            min: &self.min * &by,
            max: &self.max * &by,
        }
    }

    /// All sums of at most `terms` integers of the interval; the sum of none is 0.
    #[must_use]
    pub fn sum(&self, terms: u64) -> Self {
        let zero = BigInt::ZERO;
        Self {
            min: self.min.clone().min(zero.clone()) * terms,
            max: self.max.clone().max(zero) * terms,
        }
    }

    /// From 0 to the largest absolute value.
    #[must_use]
    pub fn magnitude(&self) -> Self {
        let size = |end: &BigInt| BigInt::from_biguint(Sign::Plus, end.magnitude().clone());
        Self {
            min: BigInt::ZERO,
            max: size(&self.min).max(size(&self.max)),
        }
    }

    /// Bits of an integer in two's complement that holds both ends.
    #[must_use]
    pub fn bits(&self) -> u32 {
        let of = |end: &BigInt| match end.sign() {
            Sign::Minus => (end + 1_u8).bits(),
            _ => end.bits(),
        };
        1 + of(&self.min).max(of(&self.max)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(min: i128, max: i128) -> Wide {
        Range::new(min, max).unwrap().into()
    }

    #[test]
    fn bits_are_those_of_twos_complement() {
        for (min, max, bits) in [
            (0, 0, 1),
            (-1, 0, 1),
            (0, 1, 2),
            (-128, 127, 8),
            (-129, 0, 9),
            (0, 128, 9),
            (i128::MIN, i128::MAX, 128),
        ] {
            assert_eq!(wide(min, max).bits(), bits, "{min} to {max}");
        }
        let square = wide(0, i128::MAX).times(&wide(0, i128::MAX));
        assert_eq!(square.bits(), 255);
        // 10 (2^127 - 1)^2 is more than 2^257, and there is a sign.
        assert_eq!(square.shifted(1).bits(), 259);
        assert_eq!(wide(0, i128::MAX).sum(2).bits(), 129);
    }

    #[test]
    fn what_fits_is_what_ranges_have() {
        let range = |min, max| Range::new(min, max).unwrap();
        let (a, b) = (range(-3, 2), range(-5, 4));
        let (x, y) = (Wide::from(a), Wide::from(b));
        assert_eq!(x.plus(&y), a.plus(b).unwrap().into());
        assert_eq!(x.minus(&y), a.minus(b).unwrap().into());
        assert_eq!(x.times(&y), a.times(b).unwrap().into());
        assert_eq!(x.sum(7), a.sum(7).unwrap().into());
        assert_eq!(range(3, 7).sum(7).map(Wide::from), Some(wide(3, 7).sum(7)));
        assert_eq!(x.shifted(4), a.shifted(4).unwrap().into());
        assert_eq!(x.magnitude(), wide(0, 3));
    }
}
