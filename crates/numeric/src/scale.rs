//! What one unit of an integer stands for.

use crate::exact::Enclosure;

/// A number is `integer · 2^-two · 10^-ten`: binary fixed point has no tens, money no twos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Scale {
    /// Binary places.
    pub two: u32,
    /// Decimal places.
    pub ten: u32,
}

/// Most places of one kind: more leave no room before them.
pub const MOST_PLACES: u32 = 64;

impl Scale {
    /// Whole numbers.
    pub const ONE: Self = Self { two: 0, ten: 0 };

    /// Binary places.
    #[must_use]
    pub const fn binary(two: u32) -> Self {
        Self { two, ten: 0 }
    }

    /// Decimal places.
    #[must_use]
    pub const fn decimal(ten: u32) -> Self {
        Self { two: 0, ten }
    }

    /// 10^ten; `None` beyond 127 bits.
    pub(crate) fn tens(self) -> Option<i128> {
        10_i128.checked_pow(self.ten)
    }

    /// The number that so many units are.
    ///
    /// # Panics
    /// If the scale has more than 38 decimal places.
    #[must_use]
    pub fn value(self, units: i128) -> Enclosure {
        let tens = self.tens().expect("a scale has at most 38 decimal places");
        Enclosure::ratio(units, tens).shifted(-(self.two as i32))
    }

    /// A number in units.
    ///
    /// # Panics
    /// As [`Scale::value`].
    #[must_use]
    pub fn units(self, value: &Enclosure) -> Enclosure {
        let tens = self.tens().expect("a scale has at most 38 decimal places");
        (value * &Enclosure::from(tens)).shifted(self.two as i32)
    }
}
