//! The model in the clear: what parties open, computed by one who has all rows.

use veil_numeric::{Arithmetic, Clear, Number, On, Range};

use crate::error::FitError;
use crate::spec::{Family, Regression};

/// A term of a fitted model, in units of the last decimal place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Its coefficient.
    pub coefficient: i128,
    /// Its standard error, if there are any.
    pub error: Option<i128>,
}

/// An integer in the clear.
pub(crate) type Value = On<Clear>;
/// Rows of them.
pub(crate) type Matrix = Vec<Vec<Value>>;

/// What the rows add up to, and what a step is taken with.
struct Known {
    gradient: Vec<Value>,
    information: Matrix,
    /// The information between the factors of its rows and columns.
    plain: Matrix,
    scales: Vec<Value>,
    inverse: Matrix,
}

pub(crate) const fn value(int: i128, range: Range) -> Value {
    Number { int, range }
}

/// A product of matrices whose elements are in a range.
pub(crate) fn product(left: &Matrix, right: &Matrix, range: Range) -> Matrix {
    let element = |row: &Vec<Value>, column: usize| {
        let pairs = row.iter().zip(right);
        value(
            pairs.map(|(x, right)| x.int * right[column].int).sum(),
            range,
        )
    };
    let columns = right.first().map_or(0, Vec::len);
    let rows = left.iter();
    rows.map(|row| (0..columns).map(|at| element(row, at)).collect())
        .collect()
}

impl Regression {
    /// The model of these rows: cells of the features, in units of their columns, and the target.
    ///
    /// # Errors
    /// [`FitError::TooWide`], which [`Regression::new`] has refused before.
    ///
    /// # Panics
    /// If a number is not in the range of its column, or there are more rows than the model is made for.
    pub fn fit(&self, rows: &[(Vec<i128>, i128)]) -> Result<Vec<Fitted>, FitError> {
        assert!(
            rows.len() <= self.spec.rows as usize,
            "a model has as many rows as it is made for"
        );
        let mut clear = Clear;
        let mut a = Arithmetic(&mut clear);
        let between = &self.between;
        let mut cells: Vec<Vec<i128>> = Vec::new();
        let mut responses = Vec::new();
        for (features, target) in rows {
            cells.push(self.design.row(&mut a, &self.spec.features, features)?);
            let target = value(*target, self.spec.target.range);
            responses.push(self.link.response(&mut a, &target)?);
        }
        let mut coefficients = vec![value(0, between.coefficient); self.terms()];
        let mut known: Option<Known> = None;
        for _ in 0..self.spec.iterations {
            // The rows of least squares are looked at once.
            let of = match known.take() {
                Some(of) if self.spec.family == Family::Linear => of,
                _ => self.looked_at(&mut a, (&cells, &responses), &coefficients)?,
            };
            let mut scaled = Vec::new();
            for (gradient, scale) in self
                .left(&mut a, &of, &coefficients)?
                .iter()
                .zip(&of.scales)
            {
                scaled.push(vec![self.scaled_gradient(&mut a, gradient, scale)?]);
            }
            let range = self.dot(between.inverse, between.scaled_gradient)?;
            let directions = product(&of.inverse, &scaled, range);
            for (term, coefficient) in coefficients.iter_mut().enumerate() {
                *coefficient =
                    self.step(&mut a, &directions[term][0], &of.scales[term], coefficient)?;
            }
            known = Some(of);
        }
        let shown = self.coefficients(&mut a, &coefficients)?;
        let without = shown.iter().map(|coefficient| Fitted {
            coefficient: coefficient.int,
            error: None,
        });
        let mut fitted: Vec<Fitted> = without.collect();
        let Some(of) = known.filter(|_| self.has_errors()) else {
            return Ok(fitted);
        };
        let dispersion = if self.spec.family == Family::Linear {
            let left = self.left(&mut a, &of, &coefficients)?;
            let both = of
                .gradient
                .iter()
                .zip(&left)
                .map(|(all, left)| all.int + left.int);
            let explained = coefficients.iter().zip(both).map(|(w, both)| w.int * both);
            let explained = value(explained.sum(), self.explained_range()?);
            let squares = responses.iter().map(|y| y.int * y.int).sum();
            let squares = value(squares, self.squares_range()?);
            Some(self.dispersion(&mut a, &squares, &explained, &of.information[0][0])?)
        } else {
            None
        };
        for (term, deviation) in self.errors(&mut a, of)?.iter().enumerate() {
            let error = self.error(&mut a, term, deviation, dispersion.as_ref())?;
            fitted[term].error = Some(error.int);
        }
        Ok(fitted)
    }

    /// What the rows add up to with these coefficients, and what a step is taken with.
    fn looked_at(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        (cells, responses): (&[Vec<i128>], &[Value]),
        coefficients: &[Value],
    ) -> Result<Known, FitError> {
        let (terms, between) = (self.terms(), &self.between);
        let mut gradient = vec![0_i128; terms];
        let mut information = vec![vec![0_i128; terms]; terms];
        for (row, response) in cells.iter().zip(responses) {
            let (residual, weight) = if self.spec.family == Family::Linear {
                (response.int, 1)
            } else {
                let sum = row.iter().zip(coefficients).map(|(x, w)| x * w.int).sum();
                let rounded = self.rounded(a, &value(sum, between.sum))?;
                let mean = self.link.mean(a, &rounded)?;
                let row = self.row(a, &mean, response)?;
                (row.residual.int, row.weight.int)
            };
            for (i, x) in row.iter().enumerate() {
                gradient[i] += x * residual;
                for (j, other) in row.iter().enumerate() {
                    information[i][j] += x * other * weight;
                }
            }
        }
        let gradient = gradient.into_iter().map(|g| value(g, between.gradient));
        let mut ridged: Matrix = Vec::new();
        for (i, row) in information.into_iter().enumerate() {
            let penalty = value(self.ridge[i], self.penalties_range());
            let row = row.into_iter().enumerate().map(|(j, element)| {
                let element = value(element, between.information);
                let ridged = self.ridged(a, &element, &penalty, &(i == j))?;
                Ok(value(ridged.int, between.information))
            });
            ridged.push(row.collect::<Result<_, FitError>>()?);
        }
        let scales = (0..terms).map(|at| self.scale(a, &ridged[at][at]));
        let scales = scales.collect::<Result<Vec<_>, _>>()?;
        let mut plain: Matrix = Vec::new();
        for (row, own) in ridged.iter().zip(&scales) {
            let row = row.iter().zip(&scales);
            let row = row.map(|(element, other)| self.balanced(a, element, [own, other]));
            plain.push(row.collect::<Result<_, _>>()?);
        }
        Ok(Known {
            gradient: gradient.collect(),
            information: ridged,
            inverse: self.inverted(a, &plain)?,
            plain,
            scales,
        })
    }

    /// The gradient that is left with these coefficients.
    fn left(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        of: &Known,
        coefficients: &[Value],
    ) -> Result<Vec<Value>, FitError> {
        if self.spec.family == Family::Linear {
            let column: Matrix = coefficients.iter().map(|w| vec![w.clone()]).collect();
            let range = self.dot(self.between.information, self.between.coefficient)?;
            let products = product(&of.information, &column, range);
            let pairs = of.gradient.iter().zip(&products);
            let left = pairs.map(|(gradient, product)| self.remaining(a, gradient, &product[0]));
            return Ok(left.collect::<Result<_, _>>()?);
        }
        let pairs = of.gradient.iter().zip(coefficients).zip(&self.ridge);
        let left = pairs.map(|((gradient, coefficient), penalty)| {
            let penalty = value(*penalty, self.penalties_range());
            self.penalised(a, gradient, coefficient, &penalty)
        });
        Ok(left.collect::<Result<_, _>>()?)
    }

    /// The inverse of a matrix, which is damped before.
    fn inverted(&self, a: &mut Arithmetic<'_, Clear>, of: &Matrix) -> Result<Matrix, FitError> {
        let (mut damped, mut inverse) = (of.clone(), of.clone());
        for (i, row) in damped.iter_mut().enumerate() {
            for (j, element) in row.iter_mut().enumerate() {
                *element = self.damped(a, element, &(i == j))?;
                inverse[i][j] = self.first(a, element, &(i == j))?;
            }
        }
        for _ in 1..self.inversions() {
            inverse = self.improved_by(a, &damped, &inverse)?;
        }
        Ok(inverse)
    }

    /// One step of it.
    fn improved_by(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        of: &Matrix,
        inverse: &Matrix,
    ) -> Result<Matrix, FitError> {
        let range = self.dot(self.between.matrix, self.between.inverse)?;
        let mut correction = product(of, inverse, range);
        for (i, row) in correction.iter_mut().enumerate() {
            for (j, element) in row.iter_mut().enumerate() {
                *element = self.correction(a, element, &(i == j))?;
            }
        }
        let range = self.dot(self.between.inverse, self.between.correction)?;
        let mut next = product(inverse, &correction, range);
        for element in next.iter_mut().flatten() {
            *element = self.improved(a, element)?;
        }
        Ok(next)
    }

    /// The roots of the variances but for the dispersion.
    fn errors(
        &self,
        a: &mut Arithmetic<'_, Clear>,
        Known {
            plain,
            scales,
            mut inverse,
            ..
        }: Known,
    ) -> Result<Vec<Value>, FitError> {
        for _ in 0..Self::UNDAMPED {
            inverse = self.improved_by(a, &plain, &inverse)?;
        }
        let mut directions: Matrix = Vec::new();
        let range = self.directions_range();
        for (term, scale) in scales.iter().enumerate() {
            let direction = self.direction(a, term, scale)?;
            directions.push(vec![value(direction.int, range)]);
        }
        let spreads = product(
            &inverse,
            &directions,
            self.dot(self.between.inverse, range)?,
        );
        let (mut sum, mut most) = (0, Range::point(0));
        for (spread, direction) in spreads.iter().zip(&directions) {
            let spread = self.spread(a, &spread[0])?;
            sum += spread.int * direction[0].int;
            most = self.dot(spread.range, range)?;
        }
        let mut all = vec![self.intercept_deviation(a, &value(sum, most))?];
        for term in 1..self.terms() {
            all.push(self.deviation(a, &inverse[term][term], &scales[term])?);
        }
        Ok(all)
    }
}
