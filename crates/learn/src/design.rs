//! Rows as a model has them: cells between −1 and 1.

use veil_numeric::{Arithmetic, Clear, Machine, Number, On, TooWide};

use crate::column::{Centred, Column};
use crate::error::FitError;
use crate::spec::MOST_TERMS;

/// The cells of a row: that of a one, and those of the features, with so many binary places. In a row that does not count all of them are 0.
#[derive(Clone, Debug)]
pub struct Design {
    features: Vec<Centred>,
    places: u32,
}

impl Design {
    /// Of these columns.
    pub(crate) fn new(columns: &[Column], places: u32) -> Result<Self, FitError> {
        let found = columns.len();
        if found == 0 || found >= MOST_TERMS {
            return Err(FitError::Features { found });
        }
        let centred =
            |(at, column): (usize, &Column)| Centred::of(*column).ok_or(FitError::Wide(at));
        let features = columns.iter().enumerate().map(centred);
        Ok(Self {
            features: features.collect::<Result<_, _>>()?,
            places,
        })
    }

    /// Binary places of cells, over half of a column's range (rounded up to a power of two).
    #[must_use]
    pub const fn places(&self) -> u32 {
        self.places
    }

    pub(crate) fn features(&self) -> &[Centred] {
        &self.features
    }

    /// How many features there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.features.len()
    }

    /// The cell of the one, in every row that counts.
    #[must_use]
    pub const fn one(&self) -> i128 {
        1 << self.places
    }

    /// Whether the cells of a feature are its numbers less a public one, times a public one.
    ///
    /// # Panics
    /// If there is no such feature.
    #[must_use]
    pub fn is_exact(&self, feature: usize) -> bool {
        self.features[feature].exponent <= self.places
    }

    /// A cell of feature `feature`, from 0 on.
    ///
    /// # Errors
    /// [`TooWide`] if it does not fit the machine.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn cell<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        feature: usize,
        x: &On<M>,
    ) -> Result<On<M>, TooWide> {
        self.features[feature].on(a, x, self.places)
    }

    /// All cells of a row in the clear, that of the one first.
    ///
    /// # Panics
    /// If a number is not in the range of its column.
    pub(crate) fn row(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        columns: &[Column],
        row: &[i128],
    ) -> Result<Vec<i128>, TooWide> {
        let mut cells = vec![self.one()];
        for (feature, (x, column)) in row.iter().zip(columns).enumerate() {
            let x = Number {
                int: *x,
                range: column.range,
            };
            cells.push(self.cell(a, feature, &x)?.int);
        }
        Ok(cells)
    }
}
