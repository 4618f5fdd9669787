//! Relations that parties keep, and how much is opened of how many of their rows are valid.

/// How a step's relation is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kept {
    /// The name of the dataset.
    pub dataset: String,
    /// What is opened of its number of valid rows, if anything is. Valid rows stand in front of all others then.
    pub size: Option<OpenSize>,
}

impl From<&str> for Kept {
    /// Of which no size is opened.
    fn from(dataset: &str) -> Self {
        Self {
            dataset: dataset.to_owned(),
            size: None,
        }
    }
}

/// What is opened of a relation's number of valid rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpenSize {
    /// The bucket that the number falls into.
    pub bucket: Bucket,
    /// Why it is opened, in the words of the job.
    pub why: String,
}

/// Ranges of numbers of rows: which of them a number is in is opened, and the number itself is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bucket {
    /// Multiples of so many rows, rounded up.
    RoundUpTo(u32),
    /// Powers of two, rounded up.
    PowerOfTwo,
}

impl Bucket {
    /// Whether it is one: its numbers of rows are more than one number.
    #[must_use]
    pub const fn hides(self) -> bool {
        match self {
            Self::RoundUpTo(rows) => rows > 1,
            Self::PowerOfTwo => true,
        }
    }

    /// The number that is opened where so many rows are valid: ⌈valid/rows⌉, or the least exponent whose power of two is at least as many.
    #[must_use]
    pub const fn number(self, valid: u32) -> u32 {
        match self {
            Self::RoundUpTo(rows) => valid.div_ceil(rows),
            Self::PowerOfTwo => u32::BITS - valid.saturating_sub(1).leading_zeros(),
        }
    }

    /// The most valid rows of a relation of `capacity` rows of which this number is opened: the opened size.
    #[must_use]
    pub fn rows(self, number: u32, capacity: u32) -> u32 {
        let most = match self {
            Self::RoundUpTo(rows) => u64::from(number) * u64::from(rows),
            Self::PowerOfTwo => 1_u64.checked_shl(number).unwrap_or(u64::MAX),
        };
        most.min(capacity.into()) as u32
    }

    /// The places whose rows are looked at, of `capacity`: if valid rows stand in front of all others, as many of these are valid as the number says.
    #[must_use]
    pub fn places(self, capacity: u32) -> Vec<u32> {
        match self {
            Self::RoundUpTo(rows) => (0..capacity).step_by(rows as usize).collect(),
            Self::PowerOfTwo => (0..u32::BITS)
                .map_while(|at| 1_u32.checked_shl(at).filter(|place| *place < capacity))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition, for every number of valid rows: the number, the size, and that places add up to the number.
    #[test]
    fn a_number_is_that_of_the_bucket_and_of_the_places() {
        for capacity in [1_u32, 2, 3, 7, 64, 65, 100] {
            for valid in 0..=capacity {
                for rows in [2, 3, 7, 64, 99, 200] {
                    let bucket = Bucket::RoundUpTo(rows);
                    let number = bucket.number(valid);
                    assert!(number * rows >= valid && number * rows < valid + rows);
                    assert_eq!(bucket.rows(number, capacity), (number * rows).min(capacity));
                    counted(bucket, valid, capacity);
                }
                let bucket = Bucket::PowerOfTwo;
                let number = bucket.number(valid);
                assert!(1 << number >= valid && (number == 0 || 1 << (number - 1) < valid));
                assert_eq!(bucket.rows(number, capacity), capacity.min(1 << number));
                counted(bucket, valid, capacity);
            }
        }
    }

    fn counted(bucket: Bucket, valid: u32, capacity: u32) {
        let places = bucket.places(capacity).into_iter();
        let counted = places.filter(|place| *place < valid).count();
        assert_eq!(counted as u32, bucket.number(valid), "{bucket:?}: {valid}");
        assert!(bucket.rows(bucket.number(valid), capacity) >= valid);
    }

    #[test]
    fn the_largest_numbers_are_no_more_than_fits() {
        let pow2 = Bucket::PowerOfTwo;
        assert_eq!(pow2.number(u32::MAX), 32);
        assert_eq!(pow2.rows(32, u32::MAX), u32::MAX);
        assert_eq!(pow2.rows(64, 9), 9);
        assert_eq!(Bucket::RoundUpTo(u32::MAX).rows(u32::MAX, 7), 7);
        assert!(!Bucket::RoundUpTo(1).hides() && !Bucket::RoundUpTo(0).hides());
        assert!(Bucket::RoundUpTo(2).hides() && pow2.hides());
    }
}
