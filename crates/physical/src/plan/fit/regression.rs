//! Regressions. The matrix that a step is taken with is inverted modulo 2^128.

use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::Take;
use veil_numeric::{Arithmetic, Number};
use veil_operators::{Shared, Sharing};
use veil_relation::{Family, Fit, FitKind, Range, Regression, Shape};

use super::square::{Square, down};
use super::{
    Bits, Int, NARROW, Out, PhysicalError, Planner, Ports, Rel, Rows, WIDE, aim_of, arithmetic,
    bits_of, everywhere, lifted, none, number, numbers, public, relation, rounded, takes, wrong,
};

/// What a step is taken with.
struct Matrix {
    information: Square,
    /// One over the root of the diagonal.
    scale: Shared,
    inverse: Square,
    /// Before it was damped, if standard errors are asked for.
    plain: Option<Square>,
}

/// A regression while it is planned.
#[derive(Clone, Copy)]
struct FitOf<'a> {
    of: &'a Regression,
    terms: usize,
    errors: bool,
    /// Whether an element of a square is on its diagonal.
    diagonal: Shared,
    /// The penalty of each term, if there are any.
    penalty: Option<Shared>,
}

/// What is there after the last step.
struct Fitted {
    /// In the order of terms.
    coefficients: Shared,
    /// The root of each variance, and that of the intercept's.
    deviations: Vec<Shared>,
    dispersion: Option<Shared>,
}

impl Planner<'_> {
    /// The relation of a regression: its terms in the order of their names.
    pub(super) fn regression(
        &mut self,
        of: &Regression,
        model: &Fit,
        rows: &Rows,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let FitKind::Regression { family, errors, .. } = &model.kind else {
            return Err(none());
        };
        let fit = self.fit_of(of, *errors)?;
        let results = match family {
            Family::Linear => self.least_squares(&fit, rows)?,
            _ => self.newton(&fit, rows)?,
        };
        self.shown(&fit, model, (rows.holds, results), shape)
    }

    /// What is public of a model, as columns.
    fn fit_of<'r>(&mut self, of: &'r Regression, errors: bool) -> Result<FitOf<'r>, PhysicalError> {
        let terms = of.terms();
        let rows = terms as u32;
        let diagonal = self.diagonal_of(terms)?;
        let penalty = if of.is_ridged() {
            let penalty = self.matrix_pass(WIDE, rows, |ports| {
                let bits = super::diagonal(ports, terms);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let penalty = of.penalty(&mut arithmetic(&mut on), &bits).map_err(wrong)?;
                Ok(vec![Out::Integer(penalty.int)])
            })?;
            Some(penalty[0])
        } else {
            None
        };
        Ok(FitOf {
            of,
            terms,
            errors,
            diagonal,
            penalty,
        })
    }

    /// What a step is taken with, of the information matrix modulo 2^64.
    fn matrix_of(
        &mut self,
        fit: &FitOf<'_>,
        information: &[Shared],
    ) -> Result<Matrix, PhysicalError> {
        let (of, terms) = (fit.of, fit.terms);
        let (rows, between) = (terms as u32, of.ranges());
        let narrow = Square {
            of: information.to_vec(),
            terms,
        };
        let elements = (narrow.elements(), rows * rows);
        let wide = self.in_ring_of((NARROW, WIDE), elements, between.information)?;
        let mut information = Square::whole(wide, terms);
        if let Some(penalty) = fit.penalty {
            information = self
                .elementwise(terms, |ports| {
                    let element = number(ports, information.elements(), between.information);
                    let penalty = number(ports, down(penalty, terms), of.penalties_range());
                    let on_diagonal = ports.bits(fit.diagonal.take(), 1)[0];
                    let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                    let ridged =
                        of.ridged(&mut arithmetic(&mut on), &element, &penalty, &on_diagonal);
                    Ok(vec![Out::Integer(ridged.map_err(wrong)?.int)])
                })?
                .remove(0);
        }
        let inputs = [(information.diagonal(), between.information)];
        let (scale, _) = self.integer(rows, inputs, |a, [x]| of.scale(a, &x))?;
        let of_columns = self.across(scale, terms);
        let mut made = self.elementwise(fit.terms, |ports| {
            let element = number(ports, information.elements(), between.information);
            let of_row = number(ports, down(scale, terms), between.scale);
            let of_column = number(ports, of_columns.elements(), between.scale);
            let on_diagonal = ports.bits(fit.diagonal.take(), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let plain = of
                .balanced(&mut a, &element, [&of_row, &of_column])
                .map_err(wrong)?;
            let damped = of.damped(&mut a, &plain, &on_diagonal).map_err(wrong)?;
            let first = of.first(&mut a, &damped, &on_diagonal).map_err(wrong)?;
            let mut outs = vec![Out::Integer(damped.int), Out::Integer(first.int)];
            if fit.errors {
                outs.push(Out::Integer(plain.int));
            }
            Ok(outs)
        })?;
        let plain = if fit.errors { made.pop() } else { None };
        let (Some(mut inverse), Some(damped)) = (made.pop(), made.pop()) else {
            return Err(none());
        };
        for _ in 1..of.inversions() {
            inverse = self.improved_inverse(fit, &damped, &inverse)?;
        }
        Ok(Matrix {
            information,
            scale,
            inverse,
            plain,
        })
    }

    /// The next of the inverses of a matrix.
    fn improved_inverse(
        &mut self,
        fit: &FitOf<'_>,
        matrix: &Square,
        inverse: &Square,
    ) -> Result<Square, PhysicalError> {
        let of = fit.of;
        let between = of.ranges();
        let product = self.squares_product(matrix, inverse);
        let range = of.dot(between.matrix, between.inverse).map_err(wrong)?;
        let correction = self.elementwise(fit.terms, |ports| {
            let element = number(ports, product.elements(), range);
            let on_diagonal = ports.bits(fit.diagonal.take(), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let correction = of.correction(&mut arithmetic(&mut on), &element, &on_diagonal);
            Ok(vec![Out::Integer(correction.map_err(wrong)?.int)])
        })?;
        let product = self.squares_product(inverse, &correction[0]);
        let range = of.dot(between.inverse, between.correction).map_err(wrong)?;
        let inputs = [(product.elements(), range)];
        let squares = (fit.terms * fit.terms) as u32;
        let (improved, _) = self.integer(squares, inputs, |a, [x]| of.improved(a, &x))?;
        Ok(Square::whole(improved, fit.terms))
    }

    /// The next coefficients modulo 2^128, of the gradient that is left of what `gradient` computes in the row of each term.
    fn stepped(
        &mut self,
        fit: &FitOf<'_>,
        matrix: &Matrix,
        coefficients: Take,
        gradient: impl FnOnce(&mut Ports) -> Result<Int, PhysicalError>,
    ) -> Result<Shared, PhysicalError> {
        let (of, rows) = (fit.of, fit.terms as u32);
        let between = of.ranges();
        let scaled = self.matrix_pass(WIDE, rows, |ports| {
            let scale = &number(ports, matrix.scale.take(), between.scale);
            let gradient = gradient(ports)?;
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let scaled = of.scaled_gradient(&mut arithmetic(&mut on), &gradient, scale);
            Ok(vec![Out::Integer(scaled.map_err(wrong)?.int)])
        })?;
        let product = self.column_product(&matrix.inverse, scaled[0]);
        let range = of
            .dot(between.inverse, between.scaled_gradient)
            .map_err(wrong)?;
        let inputs = [
            (product.take(), range),
            (matrix.scale.take(), between.scale),
            (coefficients, between.coefficient),
        ];
        let (next, _) = self.integer(rows, inputs, |a, [product, scale, coefficient]| {
            of.step(a, &product, &scale, &coefficient)
        })?;
        Ok(next)
    }

    /// Newton's method.
    fn newton(&mut self, fit: &FitOf<'_>, rows: &Rows) -> Result<Fitted, PhysicalError> {
        let (of, terms) = (fit.of, fit.terms);
        let between = of.ranges();
        let response = rows.response.ok_or_else(none)?;
        let mut coefficients: Option<Shared> = None;
        let mut narrow: Option<Shared> = None;
        let mut last = None;
        for step in 0..of.spec().iterations {
            let sum = match narrow {
                None => public(NARROW, 0),
                Some(narrow) => self.b.product(&rows.cells, &[narrow])[0].take(),
            };
            let aim = aim_of(rows.count);
            let right = self.matrix_pass(NARROW, rows.count, |ports| {
                let sum = number(ports, sum, between.sum);
                let response = number(ports, response.take(), between.response);
                let cells = numbers(ports, takes(&rows.cells), between.cell);
                let rounded = rounded(ports, &sum, of.sum_shift(), between.rounded);
                let mut bits = Bits::new(&mut ports.b, aim);
                let mean = of
                    .link()
                    .mean(&mut Arithmetic(&mut bits), &rounded)
                    .map_err(wrong)?;
                let mean = Number {
                    int: lifted(&mut ports.b, &mean.int, aim),
                    range: mean.range,
                };
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let mut a = arithmetic(&mut on);
                let row = of.row(&mut a, &mean, &response).map_err(wrong)?;
                let mut outs = vec![Out::Integer(row.residual.int)];
                for cell in &cells {
                    let weighted = a.multiply(&row.weight, cell).map_err(wrong)?;
                    outs.push(Out::Integer(weighted.int));
                }
                Ok(outs)
            })?;
            let sums = self.b.transposed_product(&rows.cells, &right);
            let (gradient, information) = sums.split_first().ok_or_else(none)?;
            let gradient = self.in_ring_of(
                (NARROW, WIDE),
                (gradient.take(), terms as u32),
                between.gradient,
            )?;
            let errors = fit.errors && step + 1 == of.spec().iterations;
            let matrix = self.matrix_of(&FitOf { errors, ..*fit }, information)?;
            let own = coefficients.map_or(public(WIDE, 0), |of| of.take());
            let take = own.clone();
            let next = self.stepped(fit, &matrix, own, |ports| {
                let gradient = numbers(ports, [gradient.take()], between.gradient);
                let [gradient] = &gradient[..] else {
                    return Err(none());
                };
                let Some(penalty) = fit.penalty else {
                    return Ok(gradient.clone());
                };
                let coefficient = &number(ports, take, between.coefficient);
                let most = of.penalties_range();
                let penalty = &number(ports, penalty.take(), most);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let a = &mut arithmetic(&mut on);
                of.penalised(a, gradient, coefficient, penalty)
                    .map_err(wrong)
            })?;
            coefficients = Some(next);
            if step + 1 < of.spec().iterations {
                let of = (next.take(), terms as u32);
                narrow = Some(self.in_ring_of((WIDE, NARROW), of, between.coefficient)?);
            }
            last = Some(matrix);
        }
        let coefficients = coefficients.ok_or_else(none)?;
        let matrix = last.ok_or_else(none)?;
        let deviations = self.deviations(fit, matrix)?;
        Ok(Fitted {
            coefficients,
            deviations,
            dispersion: None,
        })
    }

    /// Least squares: the matrix is one, and each step takes what is left of the gradient.
    fn least_squares(&mut self, fit: &FitOf<'_>, rows: &Rows) -> Result<Fitted, PhysicalError> {
        let (of, terms) = (fit.of, fit.terms);
        let between = of.ranges();
        let response = rows.response.ok_or_else(none)?;
        let right: Vec<Shared> = rows.cells.iter().chain([&response]).copied().collect();
        let sums = self.b.transposed_product(&rows.cells, &right);
        let (gradient, information) = sums.split_last().ok_or_else(none)?;
        let gradient = self.in_ring_of(
            (NARROW, WIDE),
            (gradient.take(), terms as u32),
            between.gradient,
        )?;
        let matrix = self.matrix_of(fit, information)?;
        let range = of
            .dot(between.information, between.coefficient)
            .map_err(wrong)?;
        let mut coefficients: Option<Shared> = None;
        for _ in 0..of.spec().iterations {
            let (own, product) = match coefficients {
                None => (public(WIDE, 0), public(WIDE, 0)),
                Some(coefficients) => {
                    let product = self.column_product(&matrix.information, coefficients);
                    (coefficients.take(), product.take())
                }
            };
            let next = self.stepped(fit, &matrix, own, |ports| {
                let gradient = &number(ports, gradient.take(), between.gradient);
                let product = &number(ports, product, range);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let a = &mut arithmetic(&mut on);
                of.remaining(a, gradient, product).map_err(wrong)
            })?;
            coefficients = Some(next);
        }
        let coefficients = coefficients.ok_or_else(none)?;
        if !fit.errors {
            return Ok(Fitted {
                coefficients,
                deviations: vec![],
                dispersion: None,
            });
        }
        // What is left once more: the squares of the residuals follow from it.
        let product = self.column_product(&matrix.information, coefficients);
        let inputs = [(gradient.take(), between.gradient), (product.take(), range)];
        let (both, _) = self.integer(terms as u32, inputs, |a, [gradient, product]| {
            let left = of.remaining(a, &gradient, &product)?;
            a.add(&gradient, &left)
        })?;
        let explained = self.b.transposed_product(&[coefficients], &[both])[0];
        let squares = self.b.transposed_product(&[response], &[response]);
        let most = of.squares_range().map_err(wrong)?;
        let squares = self.in_ring_of((NARROW, WIDE), (squares[0].take(), 1), most)?;
        let known = matrix.information.of[0];
        let inputs = [
            (squares.take(), most),
            (explained.take(), of.explained_range().map_err(wrong)?),
            (everywhere(known, 0), between.information),
        ];
        let (dispersion, _) = self.integer(1, inputs, |a, [squares, explained, rows]| {
            of.dispersion(a, &squares, &explained, &rows)
        })?;
        let deviations = self.deviations(fit, matrix)?;
        Ok(Fitted {
            coefficients,
            deviations,
            dispersion: Some(dispersion),
        })
    }

    /// The roots of variances but for the dispersion: of all terms, and in a column of its own that of the intercept.
    fn deviations(
        &mut self,
        fit: &FitOf<'_>,
        matrix: Matrix,
    ) -> Result<Vec<Shared>, PhysicalError> {
        if !fit.errors {
            return Ok(vec![]);
        }
        let (of, terms) = (fit.of, fit.terms);
        let (rows, between) = (terms as u32, of.ranges());
        let mut inverse = matrix.inverse;
        let plain = matrix.plain.ok_or_else(none)?;
        for _ in 0..Regression::UNDAMPED {
            inverse = self.improved_inverse(fit, &plain, &inverse)?;
        }
        let scale = matrix.scale;
        let inputs = [
            (inverse.diagonal(), between.inverse),
            (scale.take(), between.scale),
        ];
        let (features, _) =
            self.integer(rows, inputs, |a, [x, scale]| of.deviation(a, &x, &scale))?;
        let directions = self.matrix_pass(WIDE, 1, |ports| {
            let scales = (0..terms).map(|row| everywhere(scale, row));
            let scales = numbers(ports, scales, between.scale);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let a = &mut arithmetic(&mut on);
            let outs = scales.iter().enumerate().map(|(term, scale)| {
                let direction = of.direction(a, term, scale).map_err(wrong)?;
                Ok(Out::Integer(direction.int))
            });
            outs.collect()
        })?;
        let direction = self.stacked(&directions, Sharing::Ring(WIDE));
        let range = of.directions_range();
        let product = self.column_product(&inverse, direction);
        let products = of.dot(between.inverse, range).map_err(wrong)?;
        let inputs = [(product.take(), products)];
        let (spread, spread_range) = self.integer(rows, inputs, |a, [x]| of.spread(a, &x))?;
        let sum = self.b.transposed_product(&[spread], &[direction])[0];
        let sums = of.dot(spread_range, range).map_err(wrong)?;
        let inputs = [(sum.take(), sums)];
        let (intercept, _) = self.integer(1, inputs, |a, [x]| of.intercept_deviation(a, &x))?;
        Ok(vec![features, intercept])
    }

    /// The terms in units of the columns.
    fn shown(
        &mut self,
        fit: &FitOf<'_>,
        model: &Fit,
        (holds, fitted): (Shared, Fitted),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let (of, terms) = (fit.of, fit.terms);
        let between = of.ranges();
        let kind = |at: usize| &shape.fields[at].ty.kind;
        let range = |at: usize| kind(at).range().unwrap_or(Range::point(0));
        let deviations = of.deviation_ranges().map_err(wrong)?;
        let values = self.matrix_pass(WIDE, 1, |ports| {
            let rows = |of: Shared| (0..terms).map(move |row| everywhere(of, row));
            let coefficients = numbers(ports, rows(fitted.coefficients), between.coefficient);
            let mut errors = vec![];
            if let [features, intercept] = &fitted.deviations[..] {
                errors = numbers(ports, [intercept.take()], deviations.intercept);
                errors.extend(numbers(ports, rows(*features).skip(1), deviations.feature));
            }
            let dispersion = fitted.dispersion.map(|of| (of, deviations.dispersion));
            let dispersion =
                dispersion.map(|(of, range)| numbers(ports, [of.take()], range)[0].clone());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let shown = of.coefficients(&mut a, &coefficients).map_err(wrong)?;
            let shown_errors = errors.iter().enumerate().map(|(term, deviation)| {
                of.error(&mut a, term, deviation, dispersion.as_ref())
                    .map_err(wrong)
            });
            let shown_errors = shown_errors.collect::<Result<Vec<_>, _>>()?;
            let coefficients = shown.iter().map(|x| bits_of(ports, x, range(1)));
            let mut outs: Vec<Out> = coefficients.map(Out::Bits).collect();
            for error in &shown_errors {
                outs.push(Out::Bits(bits_of(ports, error, range(2))));
            }
            Ok(outs)
        })?;
        self.terms_of(model, (holds, &values), shape)
    }

    /// The relation of terms, of one column after the other: of each the bits of all terms in their order, each in a column of its own.
    pub(super) fn terms_of(
        &mut self,
        model: &Fit,
        (holds, values): (Shared, &[Shared]),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let names = model.names()?;
        // The row of a term is its name's place among all names.
        let of_terms = model.terms();
        let terms = of_terms.len();
        let mut order: Vec<usize> = (0..terms).collect();
        order.sort_by_key(|term| names.index(of_terms[*term]));
        let bits = shape.fields[0].ty.kind.bits().unwrap_or(0);
        let mut columns = vec![self.numbered(terms, bits)?];
        for values in values.chunks(terms) {
            let sorted: Vec<Shared> = order.iter().map(|term| values[*term]).collect();
            columns.push(self.stacked(&sorted, sorted[0].sharing()));
        }
        let mut rel = relation(&columns, terms, shape, model.min_rows);
        self.enough(&mut rel, holds, model.min_rows);
        Ok(rel)
    }
}
