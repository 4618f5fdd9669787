//! Units of cells, and rounding between them.

use num_bigint::BigInt;
use veil_numeric::Scale;

/// Errors are in units of 2^-ERROR.
pub(super) const ERROR: u32 = 64;

/// What a cell's integers are units of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Decimal(u32),
    Binary(u32),
}

impl Unit {
    /// Units in 1.
    pub(super) fn one(self) -> BigInt {
        match self {
            Self::Decimal(places) => BigInt::from(10).pow(places),
            Self::Binary(places) => BigInt::from(1) << places,
        }
    }

    pub(super) fn scale(self) -> Scale {
        match self {
            Self::Decimal(places) => Scale::decimal(places),
            Self::Binary(places) => Scale::binary(places),
        }
    }

    /// So many halves of a unit that is 2^-by of this one, as an error.
    pub(super) fn halves(self, count: u128, by: u32) -> u128 {
        let above = BigInt::from(count) << ERROR;
        let below = self.one() << (by + 1);
        u128::try_from(ceiling(&above, &below)).unwrap_or(u128::MAX)
    }
}

pub(super) fn ceiling(above: &BigInt, below: &BigInt) -> BigInt {
    (above + below - 1) / below
}

/// The nearest integer, halves up.
pub(super) fn nearest(above: &BigInt, below: &BigInt) -> BigInt {
    let (twice, below) = (above * 2 + below, below * 2);
    let floor = &twice / &below;
    // Division of big integers goes towards 0.
    if twice < BigInt::from(0) && &floor * &below != twice {
        floor - 1
    } else {
        floor
    }
}
