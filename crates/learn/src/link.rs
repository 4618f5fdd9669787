//! How the mean of a row follows from the sum of its terms, and what a coefficient is in units of the columns.

use veil_numeric::{Arithmetic, Function, Machine, On, Range, Scale, TooWide};

use crate::column::{Centred, Column, Factor, log2_up};
use crate::design::Design;
use crate::error::FitError;
use crate::scaled::applied;
use crate::spec::{Family, SUM, WEIGHT};

/// A family with its target: what all ways to fit a regression share.
#[derive(Clone, Debug)]
pub struct Link {
    pub(crate) family: Family,
    pub(crate) target: Centred,
    /// Binary places of targets and means.
    pub(crate) places: u32,
    /// Means of this family are below 2^`mean_bits`.
    pub(crate) mean_bits: u32,
    /// The range that the sum of a row is brought to.
    pub(crate) clip: Option<Range>,
}

impl Link {
    /// Of this target, for a model of so many features; binary places are said later.
    pub(crate) fn new(family: Family, target: Column, features: usize) -> Result<Self, FitError> {
        let (least, most) = (target.range.min(), target.range.max());
        let whole = least >= 0 && target.places == 0;
        let needed = match family {
            Family::Logistic if !whole || most > 1 => Some("a condition, or 0 and 1"),
            Family::Poisson if !whole || most >= 1 << 12 => Some("a whole number from 0 to 4095"),
            _ => None,
        };
        if let Some(needed) = needed {
            return Err(FitError::Target { of: family, needed });
        }
        // What the mean of a count may be at most.
        let most_mean = 4 * most + 16;
        let (mean_bits, clip) = match family {
            Family::Poisson => (log2_up(most_mean), Some(exponents(most_mean)?)),
            _ => (0, None),
        };
        let target = match family {
            Family::Linear => Centred::of(target).ok_or(FitError::Wide(features))?,
            _ => Centred {
                centre: 0,
                exponent: 0,
                places: 0,
            },
        };
        Ok(Self {
            family,
            target,
            places: 0,
            mean_bits,
            clip,
        })
    }

    /// The target of a row.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine.
    pub fn response<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        y: &On<M>,
    ) -> Result<On<M>, TooWide> {
        match self.family {
            Family::Linear => self.target.on(a, y, self.places),
            _ => a.times(y, 1 << self.places),
        }
    }

    /// The mean of a row, of its sum with 18 binary places; of [`Family::Linear`] it is the sum.
    ///
    /// # Errors
    /// [`FitError::TooWide`] if a number does not fit the machine.
    pub fn mean<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        rounded: &On<M>,
    ) -> Result<On<M>, FitError> {
        let sum = match self.clip {
            Some(range) => a.clip(rounded, range)?,
            None => rounded.clone(),
        };
        let function = match self.family {
            Family::Linear => return Ok(sum),
            Family::Logistic => Function::Sigmoid,
            Family::Poisson => Function::Exp,
        };
        let scales = [Scale::binary(SUM), Scale::binary(self.places)];
        applied(a, function, &sum, scales)
    }

    /// What a coefficient of a term is in units of the columns, with so many decimal places.
    pub(crate) fn factor(&self, design: &Design, term: usize, places: u32) -> Factor {
        let places = Factor::of(1).tens(places as i32);
        let places = match term {
            0 => places,
            term => places.times(&design.features()[term - 1].slope()),
        };
        let (tens, exponent) = (self.target.places as i32, self.target.exponent as i32);
        places.tens(-tens).twos(exponent)
    }

    /// Coefficients of [`WEIGHT`] binary places in units of the columns, with so many decimal places, the intercept first.
    pub(crate) fn coefficients<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        design: &Design,
        coefficients: &[On<M>],
        places: u32,
    ) -> Result<Vec<On<M>>, TooWide> {
        let mut intercept = coefficients[0].clone();
        for (feature, coefficient) in design.features().iter().zip(&coefficients[1..]) {
            let part = feature.shift().of_number(a, coefficient, 0)?;
            intercept = a.sub(&intercept, &part)?;
        }
        let wide = TooWide {
            bits: 129,
            most: 128,
        };
        let centre = Factor::of(self.target.centre);
        let centre = centre.tens(places as i32 - self.target.places as i32);
        let factor = self.factor(design, 0, places);
        let intercept = factor.of_number(a, &intercept, WEIGHT)?;
        let intercept = a.plus(&intercept, centre.rounded(0).ok_or(wide)?)?;
        let mut all = vec![intercept];
        for (term, coefficient) in coefficients.iter().enumerate().skip(1) {
            let factor = self.factor(design, term, places);
            all.push(factor.of_number(a, coefficient, WEIGHT)?);
        }
        Ok(all)
    }
}

/// The logarithms of means from 2^-16 to `most`, with [`SUM`] places.
fn exponents(most: i128) -> Result<Range, FitError> {
    let (one, to) = (Scale::ONE, Scale::binary(SUM));
    let ln = veil_numeric::Applied::new(Function::Ln, one, Range::point(most), to)?;
    let high = ln.clear(most).unwrap_or(0);
    Ok(Range::new(-(11 << SUM), high).unwrap_or(Range::point(0)))
}
