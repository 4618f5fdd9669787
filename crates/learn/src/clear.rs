//! The model in the clear: what parties open, computed by one who has all rows.

use veil_numeric::{Arithmetic, Clear, Number, On, Range};

use crate::spec::{Family, FitError, Regression};

/// A term of a fitted model, in units of the last decimal place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Its coefficient.
    pub coefficient: i128,
    /// Its standard error, if there are any.
    pub error: Option<i128>,
}

type Value = On<Clear>;
type Matrix = Vec<Vec<Value>>;

const fn value(int: i128, range: Range) -> Value {
    Number { int, range }
}

/// A product of matrices whose elements are in a range.
fn product(left: &Matrix, right: &Matrix, range: Range) -> Matrix {
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
        let (terms, linear) = (self.terms(), self.spec.family == Family::Linear);
        let mut cells: Vec<Vec<i128>> = Vec::new();
        let mut responses = Vec::new();
        for (features, target) in rows {
            let mut row = vec![self.design.one()];
            for (feature, x) in features.iter().enumerate() {
                let x = value(*x, self.spec.features[feature].range);
                row.push(self.design.cell(&mut a, feature, &x)?.int);
            }
            cells.push(row);
            let target = value(*target, self.spec.target.range);
            responses.push(self.response(&mut a, &target)?);
        }
        let mut coefficients = vec![value(0, between.coefficient); terms];
        let mut known: Option<(Matrix, Vec<Value>, Matrix)> = None;
        let mut last = None;
        for _ in 0..self.spec.iterations {
            // What all rows add up to.
            let mut gradient = vec![0_i128; terms];
            let mut information = vec![vec![0_i128; terms]; terms];
            for (row, response) in cells.iter().zip(&responses) {
                let (residual, weight) = if linear {
                    if known.is_some() {
                        break;
                    }
                    (response.int, 1)
                } else {
                    let sum = row.iter().zip(&coefficients).map(|(x, w)| x * w.int).sum();
                    let rounded = self.rounded(&mut a, &value(sum, between.sum))?;
                    let mean = self.mean(&mut a, &rounded)?;
                    let row = self.row(&mut a, &mean, response)?;
                    (row.residual.int, row.weight.int)
                };
                for (i, x) in row.iter().enumerate() {
                    gradient[i] += x * residual;
                    for (j, other) in row.iter().enumerate() {
                        information[i][j] += x * other * weight;
                    }
                }
            }
            if !linear || known.is_none() {
                let gradient = gradient.iter().map(|g| value(*g, between.gradient));
                let gradient: Vec<Value> = gradient.collect();
                let (mut scales, mut damped, mut plain): (Vec<Value>, Matrix, Matrix) =
                    <_>::default();
                for (i, row) in information.iter_mut().enumerate() {
                    for (j, element) in row.iter_mut().enumerate() {
                        let of = value(*element, between.information);
                        let penalty = value(self.ridge[i], self.penalties_range());
                        *element = self.ridged(&mut a, &of, &penalty, &(i == j))?.int;
                    }
                    let diagonal = value(row[i], between.information);
                    scales.push(self.scale(&mut a, &diagonal)?);
                }
                for (i, row) in information.iter().enumerate() {
                    let (mut of_plain, mut of_damped) = (Vec::new(), Vec::new());
                    for (j, element) in row.iter().enumerate() {
                        let element = value(*element, between.information);
                        let element = self.balanced(&mut a, &element, [&scales[i], &scales[j]])?;
                        of_damped.push(self.damped(&mut a, &element, &(i == j))?);
                        of_plain.push(element);
                    }
                    plain.push(of_plain);
                    damped.push(of_damped);
                }
                let inverse = self.inverted(&mut a, &damped)?;
                let of = information
                    .iter()
                    .map(|row| row.iter().map(|h| value(*h, between.information)).collect());
                known = Some((of.collect(), scales.clone(), inverse.clone()));
                last = Some((plain, scales, inverse, gradient));
            }
            let (Some((information, scales, inverse)), Some((.., first))) = (&known, &last) else {
                break;
            };
            let column: Matrix = coefficients.iter().map(|w| vec![w.clone()]).collect();
            let products = if linear {
                let range = self.dot(between.information, between.coefficient)?;
                product(information, &column, range)
            } else {
                column.clone()
            };
            let mut scaled = Vec::new();
            for term in 0..terms {
                let gradient = if linear {
                    self.remaining(&mut a, &first[term], &products[term][0])?
                } else {
                    let which: Vec<bool> = (0..terms).map(|at| at == term).collect();
                    let penalty = self.penalty(&mut a, &which)?;
                    self.penalised(&mut a, &first[term], &coefficients[term], &penalty)?
                };
                scaled.push(vec![self.scaled_gradient(
                    &mut a,
                    &gradient,
                    &scales[term],
                )?]);
            }
            let range = self.dot(between.inverse, between.scaled_gradient)?;
            let directions = product(inverse, &scaled, range);
            for (term, coefficient) in coefficients.iter_mut().enumerate() {
                *coefficient =
                    self.step(&mut a, &directions[term][0], &scales[term], coefficient)?;
            }
        }
        let shown = self.coefficients(&mut a, &coefficients)?;
        let mut fitted: Vec<Fitted> = shown
            .iter()
            .map(|coefficient| Fitted {
                coefficient: coefficient.int,
                error: None,
            })
            .collect();
        if let (true, Some((plain, scales, inverse, first))) = (self.has_errors(), last) {
            let information = known.map(|(information, ..)| information);
            let information = information.unwrap_or_default();
            let errors = self.errors(&mut a, (plain, scales, inverse))?;
            let dispersion = if linear {
                let squares = responses.iter().map(|y| y.int * y.int).sum();
                let range = self.dot(between.information, between.coefficient)?;
                let column: Matrix = coefficients.iter().map(|w| vec![w.clone()]).collect();
                let products = product(&information, &column, range);
                let mut explained = 0;
                for term in 0..terms {
                    let left = self.remaining(&mut a, &first[term], &products[term][0])?;
                    explained += coefficients[term].int * (first[term].int + left.int);
                }
                let explained = value(explained, self.explained_range()?);
                let squares = value(squares, self.squares_range()?);
                Some(self.dispersion(&mut a, &squares, &explained, &information[0][0])?)
            } else {
                None
            };
            for (term, deviation) in errors.iter().enumerate() {
                let error = self.error(&mut a, term, deviation, dispersion.as_ref())?;
                fitted[term].error = Some(error.int);
            }
        }
        Ok(fitted)
    }

    /// The inverse of a matrix.
    fn inverted(&self, a: &mut Arithmetic<'_, Clear>, of: &Matrix) -> Result<Matrix, FitError> {
        let mut inverse = of.clone();
        for (i, row) in inverse.iter_mut().enumerate() {
            for (j, element) in row.iter_mut().enumerate() {
                *element = self.first(a, element, &(i == j))?;
            }
        }
        for _ in 1..self.inversions() {
            inverse = self.improved_by(a, of, &inverse)?;
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
        (plain, scales, mut inverse): (Matrix, Vec<Value>, Matrix),
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
