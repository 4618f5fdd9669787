//! What is fitted, and the numbers of places that follow from it.

use veil_numeric::{Arithmetic, Range, Ranges};

use crate::column::{Centred, Column, Factor, about, log2_up, within};
use crate::design::Design;
use crate::error::{FitError, WIDE};
use crate::link::Link;

/// How the mean of a row follows from the sum of its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// It is the sum: least squares.
    Linear,
    /// The logistic function of it: the target is 0 or 1.
    Logistic,
    /// The exponential of it: the target is a count.
    Poisson,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Linear, Self::Logistic, Self::Poisson];

    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Logistic => "logistic",
            Self::Poisson => "poisson",
        }
    }

    /// The family of a word.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

/// What is fitted to which columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// How the mean of a row follows.
    pub family: Family,
    /// The features; an intercept is added.
    pub features: Vec<Column>,
    /// The target. Of [`Family::Logistic`] it is 0 or 1, of [`Family::Poisson`] a whole number from 0 on.
    pub target: Column,
    /// Rows, at most.
    pub rows: u32,
    /// The penalty of ridge regression, units and decimal places: half of it times the squares of all coefficients but the intercept's are added to the loss. The loss is the negative logarithm
    /// of the likelihood, of [`Family::Linear`] half the sum of squares.
    pub ridge: (u64, u32),
    /// Newton's steps from zeros, 1 to [`MOST_ITERATIONS`].
    pub iterations: u32,
    /// Decimal places of coefficients and standard errors.
    pub places: u32,
}

/// Features and the intercept, at most.
pub const MOST_TERMS: usize = 64;
/// Newton's steps, at most.
pub const MOST_ITERATIONS: u32 = 64;

/// Binary places of coefficients; they are below 2^[`LIMIT`].
pub(crate) const WEIGHT: u32 = 28;
/// See [`WEIGHT`].
pub(crate) const LIMIT: u32 = 10;
/// Binary places of the sum of a row's terms.
pub(crate) const SUM: u32 = 18;
/// Binary places of matrices.
pub(crate) const MATRIX: u32 = 48;
/// Binary places of the means of counts, at least.
pub(crate) const FEWEST: u32 = 12;
/// 2^-DAMPING is added to the diagonal of a matrix before it is inverted.
pub(crate) const DAMPING: u32 = 12;

/// Ranges of what goes from one stage to another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Between {
    /// Cells of the terms, 0 where a row does not count.
    pub cell: Range,
    /// Targets.
    pub response: Range,
    /// The sum of the products of a row's cells and the coefficients.
    pub sum: Range,
    /// The same, rounded.
    pub rounded: Range,
    /// Means.
    pub mean: Range,
    /// Coefficients.
    pub coefficient: Range,
    /// The gradient: sums over all rows.
    pub gradient: Range,
    /// Elements of the information matrix, penalties included.
    pub information: Range,
    /// Factors of terms.
    pub scale: Range,
    /// Elements of the matrix that is inverted.
    pub matrix: Range,
    /// Elements of its inverse.
    pub inverse: Range,
    /// Elements of what an inverse is multiplied by to improve it.
    pub correction: Range,
    /// Elements of the scaled gradient.
    pub scaled_gradient: Range,
}

/// A regression whose arithmetic fits.
#[derive(Clone, Debug)]
pub struct Regression {
    pub(crate) spec: Spec,
    pub(crate) design: Design,
    pub(crate) link: Link,
    /// Binary places of weights: the derivative of the mean.
    pub(crate) weight: u32,
    /// Rows are at most 2^halvings, an even power.
    pub(crate) halvings: u32,
    /// Binary places of the scaled gradient.
    pub(crate) gradient: u32,
    /// The penalty of each term, in units of the information matrix.
    pub(crate) ridge: Vec<i128>,
    pub(crate) between: Between,
    pub(crate) directions: Range,
    /// Of each term: the range of its coefficient and, if there are any, that of its standard error.
    pub(crate) outputs: Vec<(Range, Option<Range>)>,
}

impl Regression {
    /// The model.
    ///
    /// # Errors
    /// [`FitError`].
    pub fn new(spec: Spec) -> Result<Self, FitError> {
        let count = spec.features.len();
        if spec.iterations == 0 || spec.iterations > MOST_ITERATIONS {
            return Err(FitError::Iterations(spec.iterations));
        }
        if spec.places > 18 {
            return Err(FitError::Places(spec.places));
        }
        let mut link = Link::new(spec.family, spec.target, count)?;
        let mean_bits = link.mean_bits;
        let rows = log2_up(spec.rows.max(1).into());
        let weight_bits = match spec.family {
            Family::Linear => 0,
            Family::Logistic => 18,
            Family::Poisson => 18 + (mean_bits / 2).min(6),
        };
        let weight = match spec.family {
            Family::Linear => 0,
            Family::Logistic => weight_bits + 2,
            Family::Poisson => weight_bits - mean_bits,
        };
        // The information matrix is below 2^62, and so is the gradient.
        let cell = (61_u32.saturating_sub(rows + weight_bits) / 2).min(20);
        let mean = (61_u32.saturating_sub(rows + cell + mean_bits)).min(SUM);
        let mean = if spec.family == Family::Linear {
            mean.min(61_u32.saturating_sub(rows) / 2)
        } else {
            mean
        };
        link.places = mean;
        let mut of = Self {
            design: Design::new(&spec.features, cell)?,
            link,
            weight,
            halvings: rows.next_multiple_of(2),
            gradient: 36 - mean_bits,
            ridge: vec![],
            between: Between {
                cell: within(cell),
                response: Range::point(0),
                sum: Range::point(0),
                rounded: Range::point(0),
                mean: Range::point(0),
                coefficient: within(WEIGHT + LIMIT),
                gradient: Range::point(0),
                information: Range::point(0),
                scale: Range::point(0),
                matrix: about(MATRIX),
                inverse: within(MATRIX + DAMPING + 3),
                correction: about(MATRIX + 1),
                scaled_gradient: Range::point(0),
            },
            directions: Range::point(0),
            outputs: vec![],
            spec,
        };
        of.ridge = of.penalties()?;
        // Means of many places may not fit the arithmetic of an exponential.
        loop {
            match of.derive() {
                Err(FitError::TooWide { .. })
                    if of.spec.family == Family::Poisson && of.link.places > FEWEST =>
                {
                    of.link.places -= 1;
                }
                result => return result.map(|()| of),
            }
        }
    }

    /// Features and the intercept, which is the first.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.design.count() + 1
    }

    /// What it fits.
    #[must_use]
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How the mean of a row follows, and what a target is.
    #[must_use]
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// The cells of rows.
    #[must_use]
    pub const fn design(&self) -> &Design {
        &self.design
    }

    /// Binary places of the information matrix.
    pub(crate) const fn information_places(&self) -> u32 {
        2 * self.design.places() + self.weight
    }

    /// Steps in which a matrix is inverted: the last has the inverse to 2^-8 where the matrix is as near to singular as it can be.
    #[must_use]
    pub fn inversions(&self) -> u32 {
        DAMPING + 3 + log2_up(self.terms() as i128 + 1)
    }

    /// What the ridge adds to the diagonal of the information matrix, for each term: λ·c² of a coefficient c of a column is λ·slope²·w² of its coefficient w here, in units of the target's
    /// square.
    fn penalties(&self) -> Result<Vec<i128>, FitError> {
        let ridge = Factor::decimal(self.spec.ridge);
        let places = self.information_places();
        let of = |feature: &Centred| {
            let penalty = feature.penalty(&ridge).rounded(places);
            penalty.filter(|penalty| *penalty < 1 << 99).ok_or(WIDE)
        };
        let features = self.design.features().iter().map(of);
        std::iter::once(Ok(0)).chain(features).collect()
    }

    /// All ranges, stage by stage.
    fn derive(&mut self) -> Result<(), FitError> {
        let some = |range: Range| veil_numeric::Number { int: (), range };
        let rows = u64::from(self.spec.rows.max(1));
        let mut narrow = Ranges(64);
        let mut a = Arithmetic(&mut narrow);
        self.between.response = self
            .link
            .response(&mut a, &some(self.spec.target.range))?
            .range;
        let (residual, weight) = if self.spec.family == Family::Linear {
            (self.between.response, Range::point(1))
        } else {
            self.between.sum = sums(
                self.between.cell,
                self.between.coefficient,
                self.terms() as u64,
                63,
            )?;
            let rounded = self.rounded(&mut a, &some(self.between.sum))?;
            self.between.rounded = rounded.range;
            let mean = self.link.mean(&mut a, &rounded)?;
            self.between.mean = mean.range;
            let row = self.row(&mut a, &mean, &some(self.between.response))?;
            (row.residual.range, row.weight.range)
        };
        let cell = self.between.cell;
        self.between.gradient = sums(cell, residual, rows, 63)?;
        let weighted = weight.times(cell).ok_or(WIDE)?;
        let information = sums(weighted, cell, rows, 63)?;
        let penalty = self.penalties_range();
        self.between.information = information.plus(penalty).ok_or(WIDE)?;
        let mut wide = Ranges(128);
        let mut a = Arithmetic(&mut wide);
        let information = some(self.between.information);
        self.between.scale = self.scale(&mut a, &information)?.range;
        let scale = some(self.between.scale);
        self.balanced(&mut a, &information, [&scale, &scale])?;
        let gradient = some(self.between.gradient);
        let coefficient = some(self.between.coefficient);
        let gradient = match self.spec.family {
            Family::Linear => {
                let product = self.dot(self.between.information, self.between.coefficient)?;
                self.remaining(&mut a, &gradient, &some(product))?
            }
            _ => self.penalised(&mut a, &gradient, &coefficient, &some(penalty))?,
        };
        let scaled = self.scaled_gradient(&mut a, &gradient, &scale)?;
        self.between.scaled_gradient = scaled.range;
        let direction = self.dot(self.between.inverse, scaled.range)?;
        self.step(&mut a, &some(direction), &scale, &coefficient)?;
        self.directions = if self.has_errors() {
            self.directions()?
        } else {
            self.between.scale
        };
        self.outputs = self.results()?;
        Ok(())
    }

    /// The ranges of what goes from one stage to another.
    #[must_use]
    pub const fn ranges(&self) -> &Between {
        &self.between
    }

    /// The range of penalties.
    #[must_use]
    pub fn penalties_range(&self) -> Range {
        let most = self.ridge.iter().copied().max().unwrap_or(0);
        Range::point(0).hull(Range::point(most))
    }

    /// The range of an element of a product of matrices with a row for each term.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn dot(&self, left: Range, right: Range) -> Result<Range, FitError> {
        sums(left, right, self.terms() as u64, 127)
    }
}

/// The range of sums of so many products, less than 2^most.
pub(crate) fn sums(left: Range, right: Range, count: u64, most: u32) -> Result<Range, FitError> {
    let range = left.times(right).and_then(|range| range.sum(count));
    let range = range.ok_or(WIDE)?;
    let bits = log2_up(range.magnitude().ok_or(WIDE)? + 1);
    if bits > most {
        let bits = bits + 1;
        return Err(FitError::TooWide { bits, most });
    }
    Ok(range)
}
