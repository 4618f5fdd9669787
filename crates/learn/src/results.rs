//! What is shown of a model: coefficients and standard errors in units of the columns.

use veil_numeric::{Arithmetic, Function, Machine, Number, On, Range, Ranges, Scale, TooWide};

use crate::column::{Factor, within};
use crate::error::FitError;
use crate::scaled::{SCALE, applied};
use crate::spec::{Family, MATRIX, Regression, WEIGHT};

/// Binary places of standard errors on the way.
const ERROR: u32 = 30;
/// Binary places of the variance of an intercept.
const VARIANCE: u32 = 40;

impl Regression {
    /// Whether there are standard errors: not of penalised coefficients.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        !self.is_ridged()
    }

    /// The range of the coefficient of each term, the intercept first, and that of its standard error if there are any; in units of the last decimal place.
    #[must_use]
    pub fn outputs(&self) -> &[(Range, Option<Range>)] {
        &self.outputs
    }

    fn factor(&self, term: usize) -> Factor {
        self.link.factor(&self.design, term, self.spec.places)
    }

    /// The coefficients in units of the columns, the intercept first.
    ///
    /// # Errors
    /// [`TooWide`] if a number does not fit the machine, as below.
    pub fn coefficients<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        coefficients: &[On<M>],
    ) -> Result<Vec<On<M>>, TooWide> {
        self.link
            .coefficients(a, &self.design, coefficients, self.spec.places)
    }

    /// The root of a term's variance but for the dispersion, of its element on the diagonal of the inverse.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn deviation<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        inverse: &On<M>,
        scale: &On<M>,
    ) -> Result<On<M>, FitError> {
        // An inverse is no less than 1 over the trace.
        let inverse = a.within(inverse, 1, i128::MAX)?;
        let scales = [Scale::binary(MATRIX), Scale::binary(ERROR)];
        let root = applied(a, Function::Root, &inverse, scales)?;
        let deviation = a.multiply(&root, scale)?;
        Ok(a.scale_down(&deviation, SCALE as i32)?)
    }

    /// How the coefficient of a term enters the intercept in units of the columns, times the term's factor.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn direction<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        term: usize,
        scale: &On<M>,
    ) -> Result<On<M>, TooWide> {
        match term {
            0 => Ok(scale.clone()),
            term => {
                let part = self.design.features()[term - 1]
                    .shift()
                    .of_number(a, scale, 0)?;
                a.times(&part, -1)
            }
        }
    }

    /// An element of the product of the inverse and the directions, rounded.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn spread<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        product: &On<M>,
    ) -> Result<On<M>, TooWide> {
        a.scale_down(product, (MATRIX + SCALE - ERROR) as i32)
    }

    /// The root of the intercept's variance but for the dispersion, of the sum of the products of directions and spreads.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn intercept_deviation<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        sum: &On<M>,
    ) -> Result<On<M>, FitError> {
        let sum = a.scale_down(sum, (SCALE + ERROR - VARIANCE) as i32)?;
        let most = Range::new(0, sum.range.max().max(0)).unwrap_or(Range::point(0));
        let sum = a.clip(&sum, most)?;
        let scales = [Scale::binary(VARIANCE), Scale::binary(ERROR)];
        applied(a, Function::Root, &sum, scales)
    }

    /// Of [`Family::Linear`], the root of the residuals' variance: of the sum of the squares of responses, of the sum of products of the coefficients with Xᵀy and with the gradient that is left, and
    /// of the information of the intercept, which is the number of rows.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn dispersion<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        squares: &On<M>,
        explained: &On<M>,
        rows: &On<M>,
    ) -> Result<On<M>, FitError> {
        let explained = a.scale_down(
            explained,
            (WEIGHT + self.design.places()) as i32 - self.link.places as i32,
        )?;
        let left = a.sub(squares, &explained)?;
        let most = Range::new(0, squares.range.max().max(0)).unwrap_or(Range::point(0));
        let left = a.clip(&left, most)?;
        let scales = [Scale::binary(2 * self.link.places), Scale::binary(ERROR)];
        let root = applied(a, Function::Root, &left, scales)?;
        let rows = a.scale_down(rows, self.information_places() as i32)?;
        let free = a.plus(&rows, -(self.terms() as i128))?;
        let some = Range::new(1, self.spec.rows.max(1).into()).unwrap_or(Range::point(1));
        let free = a.clip(&free, some)?;
        let scales = [Scale::ONE, Scale::binary(ERROR)];
        let inverse = applied(a, Function::InverseRoot, &free, scales)?;
        let dispersion = a.multiply(&root, &inverse)?;
        Ok(a.scale_down(&dispersion, ERROR as i32)?)
    }

    /// The standard error of a term in units of the columns.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn error<M: Machine>(
        &self,
        a: &mut Arithmetic<'_, M>,
        term: usize,
        deviation: &On<M>,
        dispersion: Option<&On<M>>,
    ) -> Result<On<M>, TooWide> {
        let deviation = match dispersion {
            None => deviation.clone(),
            Some(dispersion) => {
                let product = a.multiply(deviation, dispersion)?;
                a.scale_down(&product, ERROR as i32)?
            }
        };
        let factor = self.factor(term).twos(-(self.halvings as i32 / 2));
        factor.of_number(a, &deviation, ERROR)
    }

    /// Steps that take the damping out of an inverse, before errors are made of it.
    pub const UNDAMPED: u32 = 2;

    /// The ranges of deviations and of the dispersion.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn deviation_ranges(&self) -> Result<Deviations, FitError> {
        let some = |range: Range| Number { int: (), range };
        let mut ranges = Ranges(128);
        let mut a = Arithmetic(&mut ranges);
        let feature = self.deviation(
            &mut a,
            &some(self.between.inverse),
            &some(self.between.scale),
        )?;
        let direction = self.directions_range();
        let spread = some(self.dot(self.between.inverse, direction)?);
        let spread = self.spread(&mut a, &spread)?;
        let sum = some(self.dot(spread.range, direction)?);
        let intercept = self.intercept_deviation(&mut a, &sum)?;
        let dispersion = match self.spec.family {
            Family::Linear => {
                let (squares, explained) = (self.squares_range()?, self.explained_range()?);
                let rows = some(self.between.information);
                self.dispersion(&mut a, &some(squares), &some(explained), &rows)?
                    .range
            }
            _ => Range::point(1),
        };
        Ok(Deviations {
            feature: feature.range,
            intercept: intercept.range,
            dispersion,
        })
    }

    /// The ranges of the results.
    pub(crate) fn results(&self) -> Result<Vec<(Range, Option<Range>)>, FitError> {
        let some = |range: Range| Number { int: (), range };
        let mut ranges = Ranges(128);
        let mut a = Arithmetic(&mut ranges);
        let coefficients = vec![some(self.between.coefficient); self.terms()];
        let coefficients = self.coefficients(&mut a, &coefficients)?;
        if !self.has_errors() {
            return Ok(coefficients
                .into_iter()
                .map(|of| (of.range, None))
                .collect());
        }
        let of = self.deviation_ranges()?;
        let dispersion = Some(some(of.dispersion)).filter(|_| self.spec.family == Family::Linear);
        let mut all = Vec::new();
        for (term, coefficient) in coefficients.into_iter().enumerate() {
            let deviation = some(if term == 0 { of.intercept } else { of.feature });
            let error = self.error(&mut a, term, &deviation, dispersion.as_ref())?;
            all.push((coefficient.range, Some(error.range)));
        }
        Ok(all)
    }

    /// The range of all directions.
    #[must_use]
    pub fn directions_range(&self) -> Range {
        self.directions
    }

    /// See [`Regression::directions_range`].
    pub(crate) fn directions(&self) -> Result<Range, TooWide> {
        let mut ranges = Ranges(128);
        let mut a = Arithmetic(&mut ranges);
        let scale = Number {
            int: (),
            range: self.between.scale,
        };
        let mut range = self.between.scale;
        for term in 1..self.terms() {
            range = range.hull(self.direction(&mut a, term, &scale)?.range);
        }
        Ok(range)
    }

    /// The range of the sum of the squares of responses.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn squares_range(&self) -> Result<Range, FitError> {
        let most = within(2 * self.link.places).max();
        let sum = Range::new(0, most).and_then(|range| range.sum(self.spec.rows.into()));
        sum.ok_or(crate::error::WIDE)
    }

    /// The range of the sum of products of the coefficients with Xᵀy, and with the gradient that is left.
    ///
    /// # Errors
    /// [`FitError::TooWide`].
    pub fn explained_range(&self) -> Result<Range, FitError> {
        let some = |range: Range| Number { int: (), range };
        let product = self.dot(self.between.information, self.between.coefficient)?;
        let mut ranges = Ranges(128);
        let mut a = Arithmetic(&mut ranges);
        let gradient = some(self.between.gradient);
        let left = self.remaining(&mut a, &gradient, &some(product))?;
        let both = a.add(&gradient, &left)?;
        self.dot(both.range, self.between.coefficient)
    }
}

/// The ranges of the roots of variances.
#[derive(Clone, Copy, Debug)]
pub struct Deviations {
    /// Of features, but for the dispersion.
    pub feature: Range,
    /// Of the intercept in units of the columns, but for the dispersion.
    pub intercept: Range,
    /// Of the dispersion.
    pub dispersion: Range,
}
