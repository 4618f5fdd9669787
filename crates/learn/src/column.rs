//! Columns of rows that a model is fitted to, between −1 and 1.

use num_bigint::BigInt;
use veil_numeric::{Arithmetic, Machine, On, Range, TooWide};

/// A column of decimals: integers of a range, each `units · 10^-places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Column {
    /// The integers.
    pub range: Range,
    /// Decimal places.
    pub places: u32,
}

/// How a column's integers come between −1 and 1: less the centre of their range, over a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Centred {
    pub(crate) centre: i128,
    pub(crate) exponent: u32,
    pub(crate) places: u32,
}

/// The least e with `value` ≤ 2^e.
pub(crate) const fn log2_up(value: i128) -> u32 {
    if value <= 1 {
        0
    } else {
        128 - (value - 1).leading_zeros()
    }
}

impl Centred {
    /// Of a column; `None` if its range is wider than 120 bits.
    pub(crate) fn of(column: Column) -> Option<Self> {
        let (min, max) = (column.range.min(), column.range.max());
        let width = max.checked_sub(min).filter(|width| width >> 120 == 0)?;
        // Of 0 and 1 it is 0: indicators stay what they are.
        let centre = min + width / 2;
        Some(Self {
            centre,
            exponent: log2_up((max - centre).max(centre - min)),
            places: column.places,
        })
    }

    /// A number of the column, with so many binary places.
    pub(crate) fn on<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        x: &On<M>,
        places: u32,
    ) -> Result<On<M>, TooWide> {
        let x = a.plus(x, -self.centre)?;
        let x = a.scale_down(&x, self.exponent as i32 - places as i32)?;
        a.within(&x, -(1 << places), 1 << places)
    }

    /// What a change of 1 in the column is here, over what it is there: 10^places / 2^exponent.
    pub(crate) fn slope(&self) -> Factor {
        Factor::of(1)
            .tens(self.places as i32)
            .twos(-(self.exponent as i32))
    }

    /// What a penalty of coefficients of the column is of those here.
    pub(crate) fn penalty(&self, ridge: &Factor) -> Factor {
        let slope = self.slope();
        ridge.clone().times(&slope).times(&slope)
    }

    /// How far the centre is from 0, here.
    pub(crate) fn shift(&self) -> Factor {
        Factor::of(self.centre).twos(-(self.exponent as i32))
    }
}

/// A public rational number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    above: BigInt,
    below: BigInt,
}

impl Factor {
    pub(crate) fn of(value: i128) -> Self {
        Self {
            above: value.into(),
            below: 1.into(),
        }
    }

    /// Units of a decimal of so many places.
    pub(crate) fn decimal((units, places): (u64, u32)) -> Self {
        Self::of(units.into()).tens(-(places as i32))
    }

    /// Times 10^by.
    pub(crate) fn tens(mut self, by: i32) -> Self {
        let power = BigInt::from(10).pow(by.unsigned_abs());
        if by < 0 {
            self.below *= power;
        } else {
            self.above *= power;
        }
        self
    }

    /// Times 2^by.
    pub(crate) fn twos(mut self, by: i32) -> Self {
        if by < 0 {
            self.below <<= by.unsigned_abs();
        } else {
            self.above <<= by.unsigned_abs();
        }
        self
    }

    pub(crate) fn times(mut self, by: &Self) -> Self {
        self.above *= &by.above;
        self.below *= &by.below;
        self
    }

    /// Over a number that is not 0.
    pub(crate) fn over(mut self, by: i128) -> Self {
        self.below *= by;
        self
    }

    /// The nearest integer of units 2^-places; `None` if it does not fit.
    pub(crate) fn rounded(&self, places: u32) -> Option<i128> {
        let twice: BigInt = (&self.above << (places + 1)) + &self.below;
        let below: BigInt = &self.below << 1_u32;
        let (quotient, rest) = (&twice / &below, &twice % &below);
        let less = i32::from(rest.sign() == num_bigint::Sign::Minus);
        i128::try_from(quotient - less).ok()
    }

    /// The least e with |this| ≤ 2^e, or one more.
    fn bits(&self) -> i32 {
        self.above.bits() as i32 - self.below.bits() as i32 + 1
    }

    /// A number of `from` binary places times this factor, which has 40 bits, rounded to units of the factor. A factor whose product is less than half a unit makes 0.
    pub(crate) fn of_number<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        x: &On<M>,
        from: u32,
    ) -> Result<On<M>, TooWide> {
        let places = (40 - self.bits()).max(0);
        let shift = places + from as i32;
        let wide = TooWide {
            bits: 129,
            most: 128,
        };
        if shift > 120 {
            return a.constant(0);
        }
        let factor = self.rounded(places as u32).ok_or(wide)?;
        let product = a.times(x, factor)?;
        a.scale_down(&product, shift)
    }
}

/// The range from −2^bits to 2^bits.
pub(crate) fn within(bits: u32) -> Range {
    let most = 1_i128 << bits.min(126);
    Range::new(-most, most).unwrap_or(Range::point(0))
}

/// The range from −2^bits to 2^bits, and 2^(bits − 11) more: what is proved to be in it in exact arithmetic.
pub(crate) fn about(bits: u32) -> Range {
    let most = (1_i128 << bits) + (1 << (bits - 11));
    Range::new(-most, most).unwrap_or(Range::point(0))
}
