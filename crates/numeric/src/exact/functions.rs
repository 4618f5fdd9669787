//! Enclosures of functions: series whose remainders are bounded.

use num_bigint::BigInt;

use super::{Enclosure, PLACES};

/// Terms of the series of e^x for |x| below 2^-8: their remainder is below 2^-260.
const TERMS: i128 = 28;

/// Σ (±1)^n x^(2n+1)/(2n+1), which is atanh x, or atan x where the signs alternate, for |x| of at most 1/3.
fn arc(x: &Enclosure, alternating: bool) -> Enclosure {
    let square = x * x;
    let (mut power, mut sum) = (x.clone(), Enclosure::from(0));
    // x^2 is at most 1/9, so that each term has three bits less than the one before.
    let terms = i128::from(PLACES / 3 + 2);
    for n in 0..terms {
        let term = power.over_integer(2 * n + 1);
        sum = if alternating && n % 2 == 1 {
            &sum - &term
        } else {
            &sum + &term
        };
        power = &power * &square;
    }
    // The rest is less than the next power times 1/(1 − 1/9).
    let rest = power.abs().shifted(1);
    &sum + &rest.hull(&-&rest)
}

impl Enclosure {
    /// The quotient by an integer above 0.
    pub(crate) fn over_integer(&self, by: i128) -> Self {
        let by = BigInt::from(by);
        Self {
            lo: super::div_floor(&self.lo, &by),
            hi: super::div_ceil(&self.hi, &by),
        }
    }

    /// ln 2.
    #[must_use]
    pub fn ln_2() -> Self {
        arc(&Self::ratio(1, 3), false).shifted(1)
    }

    /// π, by Machin's formula.
    #[must_use]
    pub fn pi() -> Self {
        let fifth = arc(&Self::ratio(1, 5), true).shifted(4);
        &fifth - &arc(&Self::ratio(1, 239), true).shifted(2)
    }

    /// e^x.
    ///
    /// # Panics
    /// Beyond |x| = 2^20: such a number is an error of the caller.
    #[must_use]
    pub fn exp(&self) -> Self {
        let (low, high) = (self.low().exp_of_end(), self.high().exp_of_end());
        low.hull(&high)
    }

    fn exp_of_end(&self) -> Self {
        let most = self.abs().ceil(0).filter(|most| *most <= 1 << 20);
        let most = most.expect("exponents are small");
        if self.hi < BigInt::ZERO {
            let positive = (-self).exp_of_end();
            return Self::from(1)
                .over(&positive)
                .expect("e^x of x above 0 is at least 1");
        }
        let halvings = 8 + (128 - most.leading_zeros());
        let small = self.shifted(-(halvings as i32));
        let (mut term, mut sum) = (Self::from(1), Self::from(1));
        for n in 1..TERMS {
            term = (&term * &small).over_integer(n);
            sum = &sum + &term;
        }
        let rest = term.abs().shifted(-7);
        sum = &sum + &rest.hull(&-&rest);
        for _ in 0..halvings {
            sum = &sum * &sum;
        }
        sum
    }

    /// ln x; `None` unless x is above 0.
    #[must_use]
    pub fn ln(&self) -> Option<Self> {
        if !self.is_positive() {
            return None;
        }
        Some(self.low().ln_of_end().hull(&self.high().ln_of_end()))
    }

    fn ln_of_end(&self) -> Self {
        // x = 2^e · m with m from 3/4 to 3/2; ln m = 2 atanh((m − 1)/(m + 1)), of at most 1/5.
        let mut exponent = self.lo.bits() as i32 - PLACES as i32;
        let mut mantissa = self.shifted(-exponent);
        if !Self::ratio(3, 4).at_most(&mantissa) {
            exponent -= 1;
            mantissa = mantissa.shifted(1);
        }
        let one = Self::from(1);
        let z = (&mantissa - &one).over(&(&mantissa + &one));
        let z = z.expect("mantissas are above 0");
        let whole = &Self::ln_2() * &Self::from(i128::from(exponent));
        &whole + &arc(&z, false).shifted(1)
    }

    /// √x; `None` if x may be below 0.
    #[must_use]
    pub fn sqrt(&self) -> Option<Self> {
        if self.lo < BigInt::ZERO {
            return None;
        }
        let root = |end: &BigInt| (end << PLACES).sqrt();
        Some(Self {
            lo: root(&self.lo),
            hi: root(&self.hi) + 1,
        })
    }

    /// erf x = 2/√π ∫ e^(−t²) dt from 0 to x.
    ///
    /// # Panics
    /// Beyond |x| = 16, where it is ±1 to more places than the enclosures have.
    #[must_use]
    pub fn erf(&self) -> Self {
        let (low, high) = (self.low().erf_of_end(), self.high().erf_of_end());
        low.hull(&high)
    }

    fn erf_of_end(&self) -> Self {
        assert!(
            self.abs().at_most(&Self::from(16)),
            "erf is taken of small numbers"
        );
        // 2/√π e^(−x²) Σ 2^n x^(2n+1) / (1 · 3 · … · (2n+1)): all terms have the sign of x.
        let twice_square = (self * self).shifted(1);
        let (mut term, mut sum, mut n) = (self.clone(), self.clone(), 1);
        let tiny = Self::scaled(1, 8 - PLACES as i32);
        loop {
            term = (&term * &twice_square).over_integer(2 * n + 1);
            sum = &sum + &term;
            n += 1;
            // From here on each term is less than half of the one before.
            let halves = twice_square.shifted(1).at_most(&Self::from(2 * n + 1));
            if halves && term.abs().at_most(&tiny) {
                break;
            }
        }
        let rest = term.abs();
        sum = &sum + &rest.hull(&-&rest);
        let bell = (-&(self * self)).exp();
        let root = Self::pi().sqrt().expect("π is above 0");
        (&bell * &sum.shifted(1))
            .over(&root)
            .expect("√π is above 0")
    }
}
