//! Real numbers in rigorous enclosures: two ends with 192 binary places, rounded outwards.
//!
//! Coefficients are generated and proved with it, and tests compare with it. It is slow, and nothing that runs on shares uses it but to state bounds.

mod functions;
mod jet;

use std::ops::{Add, Mul, Neg, Sub};

use num_bigint::BigInt;

pub use jet::Jet;

/// Binary places of the ends.
const PLACES: u32 = 192;

/// All real numbers between two ends, of which one is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enclosure {
    lo: BigInt,
    hi: BigInt,
}

/// The quotient, rounded down.
fn div_floor(a: &BigInt, b: &BigInt) -> BigInt {
    let (quotient, rest) = (a / b, a % b);
    let down = rest.sign() != num_bigint::Sign::NoSign && (rest.sign() != b.sign());
    if down { quotient - 1 } else { quotient }
}

/// The quotient, rounded up.
fn div_ceil(a: &BigInt, b: &BigInt) -> BigInt {
    -div_floor(&-a, b)
}

/// `a · 2^-places`, rounded up.
fn shift_ceil(a: &BigInt, places: u32) -> BigInt {
    -(-a >> places)
}

impl Enclosure {
    /// `above / below`.
    ///
    /// # Panics
    /// If `below` is 0.
    #[must_use]
    pub fn ratio(above: i128, below: i128) -> Self {
        let (above, below) = (BigInt::from(above) << PLACES, BigInt::from(below));
        Self {
            lo: div_floor(&above, &below),
            hi: div_ceil(&above, &below),
        }
    }

    /// `number · 2^exponent`.
    #[must_use]
    pub fn scaled(number: i128, exponent: i32) -> Self {
        Self::from(number).shifted(exponent)
    }

    /// The same times `2^exponent`.
    #[must_use]
    pub fn shifted(&self, exponent: i32) -> Self {
        let by = exponent.unsigned_abs();
        if exponent >= 0 {
            Self {
                lo: &self.lo << by,
                hi: &self.hi << by,
            }
        } else {
            Self {
                lo: &self.lo >> by,
                hi: shift_ceil(&self.hi, by),
            }
        }
    }

    /// From the least number of one to the largest of both.
    #[must_use]
    pub fn hull(&self, other: &Self) -> Self {
        Self {
            lo: (&self.lo).min(&other.lo).clone(),
            hi: (&self.hi).max(&other.hi).clone(),
        }
    }

    /// Its least number.
    #[must_use]
    pub fn low(&self) -> Self {
        Self {
            lo: self.lo.clone(),
            hi: self.lo.clone(),
        }
    }

    /// Its largest number.
    #[must_use]
    pub fn high(&self) -> Self {
        Self {
            lo: self.hi.clone(),
            hi: self.hi.clone(),
        }
    }

    /// A number in the middle of it.
    #[must_use]
    pub fn middle(&self) -> Self {
        let middle: BigInt = (&self.lo + &self.hi) >> 1;
        Self {
            lo: middle.clone(),
            hi: middle,
        }
    }

    /// All absolute values.
    #[must_use]
    pub fn abs(&self) -> Self {
        let zero = BigInt::ZERO;
        if self.lo >= zero {
            self.clone()
        } else if self.hi <= zero {
            -self
        } else {
            Self {
                lo: zero,
                hi: (&self.hi).max(&-&self.lo).clone(),
            }
        }
    }

    /// The quotient; `None` if the divisor may be 0.
    #[must_use]
    pub fn over(&self, divisor: &Self) -> Option<Self> {
        if !divisor.is_positive() && !(-divisor).is_positive() {
            return None;
        }
        let ends = [
            (&self.lo, &divisor.lo),
            (&self.lo, &divisor.hi),
            (&self.hi, &divisor.lo),
            (&self.hi, &divisor.hi),
        ];
        let quotients = ends.map(|(a, b)| (a << PLACES, b));
        let lo = quotients.iter().map(|(a, b)| div_floor(a, b)).min();
        let hi = quotients.iter().map(|(a, b)| div_ceil(a, b)).max();
        Some(Self { lo: lo?, hi: hi? })
    }

    /// Whether all its numbers are above 0.
    #[must_use]
    pub fn is_positive(&self) -> bool {
        self.lo > BigInt::ZERO
    }

    /// Whether all numbers of this one are at most all numbers of the other.
    #[must_use]
    pub fn at_most(&self, other: &Self) -> bool {
        self.hi <= other.lo
    }

    /// Whether a number lies in both.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }

    /// ⌊x · 2^places⌋ of the least number; `None` beyond 127 bits.
    #[must_use]
    pub fn floor(&self, places: u32) -> Option<i128> {
        i128::try_from((&self.lo << places) >> PLACES).ok()
    }

    /// ⌈x · 2^places⌉ of the largest number; `None` beyond 127 bits.
    #[must_use]
    pub fn ceil(&self, places: u32) -> Option<i128> {
        i128::try_from(shift_ceil(&(&self.hi << places), PLACES)).ok()
    }

    /// The middle in units of 2^-places, rounded to nearest; `None` beyond 127 bits.
    #[must_use]
    pub fn nearest(&self, places: u32) -> Option<i128> {
        let half = Self::scaled(1, -(places as i32) - 1);
        (&self.middle() + &half).floor(places)
    }

    /// The middle, roughly: for reports alone.
    #[must_use]
    pub fn approximately(&self) -> f64 {
        let middle: BigInt = (&self.lo + &self.hi) >> 1;
        // Sixty bits of it are enough for a double, whatever its size is.
        let drop = middle.bits().saturating_sub(60);
        let head = i64::try_from(&middle >> drop).unwrap_or(i64::MAX);
        head as f64 * 2_f64.powi(drop as i32 - PLACES as i32)
    }
}

impl From<i128> for Enclosure {
    fn from(number: i128) -> Self {
        let number = BigInt::from(number) << PLACES;
        Self {
            lo: number.clone(),
            hi: number,
        }
    }
}

impl Add for &Enclosure {
    type Output = Enclosure;

    fn add(self, other: Self) -> Enclosure {
        Enclosure {
            lo: &self.lo + &other.lo,
            hi: &self.hi + &other.hi,
        }
    }
}

impl Neg for &Enclosure {
    type Output = Enclosure;

    fn neg(self) -> Enclosure {
        Enclosure {
            lo: -&self.hi,
            hi: -&self.lo,
        }
    }
}

impl Sub for &Enclosure {
    type Output = Enclosure;

    fn sub(self, other: Self) -> Enclosure {
        Enclosure {
            lo: &self.lo - &other.hi,
            hi: &self.hi - &other.lo,
        }
    }
}

impl Mul for &Enclosure {
    type Output = Enclosure;

    fn mul(self, other: Self) -> Enclosure {
        let ends = [
            &self.lo * &other.lo,
            &self.lo * &other.hi,
            &self.hi * &other.lo,
            &self.hi * &other.hi,
        ];
        let (mut lo, mut hi) = (ends[0].clone(), ends[0].clone());
        for end in &ends[1..] {
            lo = lo.min(end.clone());
            hi = hi.max(end.clone());
        }
        Enclosure {
            lo: lo >> PLACES,
            hi: shift_ceil(&hi, PLACES),
        }
    }
}
