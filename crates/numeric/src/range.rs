//! Exact intervals of integers.
//!
//! The end points are of 128 bits, and every operation is exact or returns `None`: a range that does not fit is a refusal of the
//! expression, never a range that wraps.

/// The integers from `min` to `max`, both included; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    min: i128,
    max: i128,
}

impl Range {
    /// The integers from `min` to `max`; `None` if there are none.
    #[must_use]
    pub const fn new(min: i128, max: i128) -> Option<Self> {
        if min <= max {
            Some(Self { min, max })
        } else {
            None
        }
    }

    /// One integer.
    #[must_use]
    pub const fn point(value: i128) -> Self {
        Self {
            min: value,
            max: value,
        }
    }

    /// The smallest integer.
    #[must_use]
    pub const fn min(self) -> i128 {
        self.min
    }

    /// The largest integer.
    #[must_use]
    pub const fn max(self) -> i128 {
        self.max
    }

    /// Whether an integer lies in the range.
    #[must_use]
    pub const fn contains(self, value: i128) -> bool {
        self.min <= value && value <= self.max
    }

    /// The smallest range that holds both.
    #[must_use]
    pub fn hull(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// All sums of an integer of each.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            min: self.min.checked_add(other.min)?,
            max: self.max.checked_add(other.max)?,
        })
    }

    /// All differences.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        Some(Self {
            min: self.min.checked_sub(other.max)?,
            max: self.max.checked_sub(other.min)?,
        })
    }

    /// All products, and what lies between them.
    #[must_use]
    pub fn times(self, other: Self) -> Option<Self> {
        let ends = [
            self.min.checked_mul(other.min)?,
            self.min.checked_mul(other.max)?,
            self.max.checked_mul(other.min)?,
            self.max.checked_mul(other.max)?,
        ];
        Some(Self {
            min: *ends.iter().min()?,
            max: *ends.iter().max()?,
        })
    }

    /// The integers times 10^`places`.
    #[must_use]
    pub fn shifted(self, places: u32) -> Option<Self> {
        self.times(Self::point(10_i128.checked_pow(places)?))
    }

    /// All sums of at most `terms` integers of the range; the sum of none is 0.
    #[must_use]
    pub fn sum(self, terms: u64) -> Option<Self> {
        Some(Self {
            min: self.min.min(0).checked_mul(i128::from(terms))?,
            max: self.max.max(0).checked_mul(i128::from(terms))?,
        })
    }

    /// The largest absolute value.
    #[must_use]
    pub fn magnitude(self) -> Option<i128> {
        Some(self.min.checked_abs()?.max(self.max.checked_abs()?))
    }

    /// Bits of `value − min` for every value of the range: what a column of this range takes when it is shared as bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        // As unsigned integers the difference is right, also if it does not fit i128.
        let widest = (self.max as u128).wrapping_sub(self.min as u128);
        u128::BITS - widest.leading_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_exact() {
        let range = |min, max| Range::new(min, max).unwrap();
        assert_eq!(range(-3, 2).times(range(-5, 4)), Range::new(-12, 15));
        assert_eq!(range(-3, 2).minus(range(-5, 4)), Range::new(-7, 7));
        assert_eq!(range(3, 7).sum(0), Some(Range::point(0)));
        assert_eq!(range(3, 7).sum(2), Range::new(0, 14));
        assert_eq!(Range::new(1, 0), None);
        assert_eq!(Range::point(i128::MAX).plus(Range::point(1)), None);
        assert_eq!(Range::point(i128::MIN).magnitude(), None);
        assert_eq!(range(i128::MIN, i128::MAX).bits(), 128);
        assert_eq!(range(5, 5).bits(), 0);
        assert_eq!(range(-1, 6).bits(), 3);
    }
}
