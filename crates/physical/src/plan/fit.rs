//! Regressions: passes over the rows for what they add up to, and passes over a small matrix, which has a row for each term.
//!
//! Cells are made of bits once, as integers between −1 and 1 modulo 2^64. In each step of Newton's method a product gives the sums of rows, a pass of rows what follows from them, and a product of
//! transposed cells the gradient and the information matrix: one element of each is sent, however many rows there are. The matrix is inverted modulo 2^128.

use veil_circuit::Wire;
use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::Take;
use veil_math::Ring;
use veil_numeric::{Arithmetic, Number};
use veil_operators::{Shared, Sharing};
use veil_relation::{
    Comparison, Expr, Family, Fit, Kind, PlanError, Range, Regression, Shape, Type,
};

use super::rel::{Base, Field, Places, Rel};
use super::rows::{Out, Ports, aim_of};
use super::{PhysicalError, Planner};
use crate::exprs::{Bits, Data, ExprError, Shown, Want, Word};

/// The ring of rows; that of matrices is WIDE.
const NARROW: Ring = Ring::Z64;
const WIDE: Ring = Ring::Z128;

type On = Number<Wire>;

/// The rows that a model is fitted to, as integers modulo 2^64; 0 in rows that do not count.
struct Rows {
    count: u32,
    /// The intercept's cells, then those of the features.
    cells: Vec<Shared>,
    response: Shared,
    /// Whether a row counts.
    holds: Shared,
}

/// What a step is taken with: columns of a matrix with a row for each term.
struct Matrix {
    information: Vec<Shared>,
    /// One over the root of the diagonal.
    scale: Shared,
    inverse: Vec<Shared>,
    /// Before it was damped, if standard errors are asked for.
    plain: Vec<Shared>,
}

fn wrong(error: impl Into<veil_relation::FitError>) -> PhysicalError {
    PlanError::from(error.into()).into()
}

fn arithmetic<'a, 'b>(on: &'a mut OnRing<'b>) -> Arithmetic<'a, OnRing<'b>> {
    Arithmetic(on)
}

/// What stands in row `row` of a column, in all rows.
fn everywhere(of: Shared, row: usize) -> Take {
    Take::Rows {
        of: vec![of.column()],
        first: row as i64,
        step: 0,
    }
}

/// The public number 0.
const fn zero(ring: Ring) -> Take {
    Take::Sums {
        of: None,
        row: 0,
        constant: 0,
        totals: vec![],
        ring,
    }
}

/// One bit for each term, in rows of a matrix: 1 in the row of the term.
fn diagonal(ports: &mut Ports, terms: usize) -> Vec<Wire> {
    let row = |at: usize| Take::Within {
        first: at as u32,
        end: at as u32 + 1,
    };
    (0..terms).map(|at| ports.bits(row(at), 1)[0]).collect()
}

/// Input ports of integers of a range.
fn numbers(ports: &mut Ports, takes: impl IntoIterator<Item = Take>, range: Range) -> Vec<On> {
    let takes = takes.into_iter();
    takes
        .map(|take| Number {
            int: ports.integer(take),
            range,
        })
        .collect()
}

fn takes(of: &[Shared]) -> impl Iterator<Item = Take> {
    of.iter().map(Shared::take)
}

impl Planner<'_> {
    /// The relation of a model: its terms in the order of their names.
    pub(super) fn fitted(
        &mut self,
        mut rel: Rel,
        (model, of): (&Fit, &Regression),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let exprs = model.features.iter().map(|feature| &feature.expr);
        let exprs: Vec<Expr> = exprs
            .chain([&model.target])
            .map(|expr| rel.over_base(expr))
            .collect();
        let rows = self.cells_of(&mut rel, of, &exprs)?;
        let fit = FitOf {
            of,
            terms: of.terms(),
            errors: model.errors,
        };
        let results = match model.family {
            Family::Linear => self.least_squares(&fit, &rows)?,
            _ => self.newton(&fit, &rows)?,
        };
        self.shown(&fit, model, (rows.holds, results), shape)
    }

    /// Cells and responses of the rows that are valid and have no null.
    fn cells_of(
        &mut self,
        rel: &mut Rel,
        of: &Regression,
        exprs: &[Expr],
    ) -> Result<Rows, PhysicalError> {
        let types = rel.types();
        let mut all = rel.valid.clone();
        for expr in exprs {
            if expr.ty(&types).map_err(ExprError::from)?.nullable {
                let null = Expr::IsNull(Box::new(expr.clone()));
                all.push(Expr::Not(Box::new(null)));
            }
        }
        let condition = Expr::all(all);
        let wants = exprs.iter().chain([&condition]);
        let wants: Vec<_> = wants.map(|expr| (expr.clone(), Want::Bits)).collect();
        let aim = aim_of(rel.rows);
        let left = self.rows(rel, NARROW, &wants, |on| {
            let holds = on.truth(&condition)?;
            let mut outs = vec![Out::Bits(vec![holds])];
            let one = on.b.lift(holds);
            outs.push(Out::Integer(on.b.times(one, of.one() as u128)));
            for (at, expr) in exprs.iter().enumerate() {
                let cell = on.cell(expr)?;
                let Data::Word(word) = &cell.value else {
                    let expr = Shown::of(expr);
                    return Err(ExprError::Quotient { expr }.into());
                };
                let x = Number {
                    int: word.clone(),
                    range: word.range,
                };
                let mut bits = Bits::new(&mut on.b, aim);
                let mut a = Arithmetic(&mut bits);
                let x = if at + 1 < exprs.len() {
                    of.cell(&mut a, at, &x).map_err(wrong)?
                } else {
                    of.response(&mut a, &x).map_err(wrong)?
                };
                outs.push(Out::Integer(counted(on, &x.int, holds)));
            }
            Ok(outs)
        })?;
        let (response, cells) = left[1..].split_last().ok_or_else(none)?;
        Ok(Rows {
            count: rel.rows,
            cells: cells.to_vec(),
            response: *response,
            holds: left[0],
        })
    }

    /// A circuit over a ring in each of so many rows.
    fn matrix_pass(
        &mut self,
        ring: Ring,
        rows: u32,
        with: impl FnOnce(&mut Ports) -> Result<Vec<Out>, PhysicalError>,
    ) -> Result<Vec<Shared>, PhysicalError> {
        let mut ports = Ports::new(ring);
        let outs = with(&mut ports)?;
        for (k, out) in outs.into_iter().enumerate() {
            match out {
                Out::Bits(bits) => ports.b.output(format!("out{k}"), &bits),
                Out::Integer(wire) => ports.b.output(format!("out{k}"), &[wire]),
                Out::Sum(wire) => ports.b.output_sum(format!("out{k}"), &[wire]),
            }
        }
        let circuit = ports.b.finish()?;
        Ok(self.b.compute(circuit, rows, ports.takes))
    }

    /// Integers of one ring as integers of the other, by their bits.
    fn in_ring_of(
        &mut self,
        (from, to): (Ring, Ring),
        columns: &[Shared],
        ranges: &[Range],
    ) -> Result<Vec<Shared>, PhysicalError> {
        let rows = columns.first().map_or(1, Shared::rows);
        let bits = self.matrix_pass(from, rows, |ports| {
            let of = columns.iter().zip(ranges);
            let inputs =
                of.map(|(column, range)| numbers(ports, [column.take()], *range)[0].clone());
            let inputs: Vec<On> = inputs.collect();
            let outs = inputs
                .iter()
                .map(|of| Ok(Out::Bits(bits_of(ports, of, of.range))));
            outs.collect()
        })?;
        self.matrix_pass(to, rows, |ports| {
            let of = bits.iter().zip(ranges);
            let inputs: Vec<_> = of
                .map(|(column, range)| (ports.bits(column.take(), range.bits()), *range))
                .collect();
            let outs = inputs.iter().map(|(bits, range)| {
                let value = integer_of(&mut ports.b, bits, range.min());
                Ok(Out::Integer(value))
            });
            outs.collect()
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
        let ranges = vec![between.information; terms];
        let mut information = self.in_ring_of((NARROW, WIDE), information, &ranges)?;
        if of.is_ridged() {
            let before = information.clone();
            information = self.matrix_pass(WIDE, rows, |ports| {
                let diagonal = diagonal(ports, terms);
                let elements = numbers(ports, takes(&before), between.information);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let mut a = arithmetic(&mut on);
                let outs = elements.iter().enumerate().map(|(column, element)| {
                    let ridged = of.ridged(&mut a, element, column, &diagonal[column]);
                    Ok(Out::Integer(ridged.map_err(wrong)?.int))
                });
                outs.collect()
            })?;
        }
        let scale = self.matrix_pass(WIDE, rows, |ports| {
            let take = Take::Rows {
                of: information.iter().map(Shared::column).collect(),
                first: 0,
                step: terms as i32 + 1,
            };
            let diagonal = &numbers(ports, [take], between.information)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let scale = of
                .scale(&mut arithmetic(&mut on), diagonal)
                .map_err(wrong)?;
            Ok(vec![Out::Integer(scale.int)])
        })?[0];
        let made = self.matrix_pass(WIDE, rows, |ports| {
            let bits = diagonal(ports, terms);
            let elements = numbers(ports, takes(&information), between.information);
            let own = &numbers(ports, [scale.take()], between.scale)[0];
            let others = (0..terms).map(|row| everywhere(scale, row));
            let others = numbers(ports, others, between.scale);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let mut outs = [vec![], vec![], vec![]];
            for (column, element) in elements.iter().enumerate() {
                let plain = of
                    .balanced(&mut a, element, [own, &others[column]])
                    .map_err(wrong)?;
                let damped = of.damped(&mut a, &plain, &bits[column]).map_err(wrong)?;
                let first = of.first(&mut a, &damped, &bits[column]).map_err(wrong)?;
                outs[0].push(Out::Integer(damped.int));
                outs[1].push(Out::Integer(first.int));
                if fit.errors {
                    outs[2].push(Out::Integer(plain.int));
                }
            }
            Ok(outs.into_iter().flatten().collect())
        })?;
        let (damped, rest) = made.split_at(terms);
        let (first, plain) = rest.split_at(terms);
        let mut inverse = first.to_vec();
        for _ in 1..of.inversions() {
            inverse = self.improved_inverse(fit, damped, &inverse)?;
        }
        Ok(Matrix {
            information,
            scale,
            inverse,
            plain: plain.to_vec(),
        })
    }

    /// The next of the inverses of a matrix.
    fn improved_inverse(
        &mut self,
        fit: &FitOf<'_>,
        matrix: &[Shared],
        inverse: &[Shared],
    ) -> Result<Vec<Shared>, PhysicalError> {
        let (of, terms) = (fit.of, fit.terms);
        let between = of.ranges();
        let product = self.b.product(matrix, inverse);
        let range = of.dot(between.matrix, between.inverse).map_err(wrong)?;
        let correction = self.matrix_pass(WIDE, terms as u32, |ports| {
            let bits = diagonal(ports, terms);
            let elements = numbers(ports, takes(&product), range);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let outs = elements.iter().zip(&bits).map(|(element, bit)| {
                let correction = of.correction(&mut a, element, bit).map_err(wrong)?;
                Ok(Out::Integer(correction.int))
            });
            outs.collect()
        })?;
        let product = self.b.product(inverse, &correction);
        let range = of.dot(between.inverse, between.correction).map_err(wrong)?;
        self.matrix_pass(WIDE, terms as u32, |ports| {
            let elements = numbers(ports, takes(&product), range);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let outs = elements.iter().map(|element| {
                let improved = of.improved(&mut a, element).map_err(wrong)?;
                Ok(Out::Integer(improved.int))
            });
            outs.collect()
        })
    }

    /// The next coefficients modulo 2^128, of the gradient that is left of what `gradient` computes in the row of each term.
    fn stepped(
        &mut self,
        fit: &FitOf<'_>,
        matrix: &Matrix,
        coefficients: Take,
        gradient: impl FnOnce(&mut Ports) -> Result<On, PhysicalError>,
    ) -> Result<Shared, PhysicalError> {
        let (of, rows) = (fit.of, fit.terms as u32);
        let between = of.ranges();
        let scaled = self.matrix_pass(WIDE, rows, |ports| {
            let scale = &numbers(ports, [matrix.scale.take()], between.scale)[0];
            let gradient = gradient(ports)?;
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let scaled = of.scaled_gradient(&mut arithmetic(&mut on), &gradient, scale);
            Ok(vec![Out::Integer(scaled.map_err(wrong)?.int)])
        })?;
        let product = self.b.product(&matrix.inverse, &scaled)[0];
        let range = of
            .dot(between.inverse, between.scaled_gradient)
            .map_err(wrong)?;
        let next = self.matrix_pass(WIDE, rows, |ports| {
            let product = &numbers(ports, [product.take()], range)[0];
            let scale = &numbers(ports, [matrix.scale.take()], between.scale)[0];
            let coefficient = &numbers(ports, [coefficients], between.coefficient)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let next = of.step(&mut arithmetic(&mut on), product, scale, coefficient);
            Ok(vec![Out::Integer(next.map_err(wrong)?.int)])
        })?;
        Ok(next[0])
    }

    /// Newton's method.
    fn newton(&mut self, fit: &FitOf<'_>, rows: &Rows) -> Result<Fitted, PhysicalError> {
        let (of, terms) = (fit.of, fit.terms);
        let between = of.ranges();
        let penalty = if of.is_ridged() {
            let penalty = self.matrix_pass(WIDE, terms as u32, |ports| {
                let bits = diagonal(ports, terms);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let penalty = of.penalty(&mut arithmetic(&mut on), &bits).map_err(wrong)?;
                Ok(vec![Out::Integer(penalty.int)])
            })?;
            Some(penalty[0])
        } else {
            None
        };
        let mut coefficients: Option<Shared> = None;
        let mut narrow: Option<Shared> = None;
        let mut last = None;
        for step in 0..of.spec().iterations {
            let sum = match narrow {
                None => zero(NARROW),
                Some(narrow) => self.b.product(&rows.cells, &[narrow])[0].take(),
            };
            let right = self.matrix_pass(NARROW, rows.count, |ports| {
                let sum = &numbers(ports, [sum], between.sum)[0];
                let response = &numbers(ports, [rows.response.take()], between.response)[0];
                let cells = numbers(ports, takes(&rows.cells), between.cell);
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let mut a = arithmetic(&mut on);
                let row = of.row(&mut a, sum, response).map_err(wrong)?;
                let mut outs = vec![Out::Integer(row.residual.int)];
                for cell in &cells {
                    let weighted = a.multiply(&row.weight, cell).map_err(wrong)?;
                    outs.push(Out::Integer(weighted.int));
                }
                Ok(outs)
            })?;
            let sums = self.b.transposed_product(&rows.cells, &right);
            let (gradient, information) = sums.split_first().ok_or_else(none)?;
            let gradient = self.in_ring_of((NARROW, WIDE), &[*gradient], &[between.gradient])?[0];
            let errors = fit.errors && step + 1 == of.spec().iterations;
            let matrix = self.matrix_of(&FitOf { errors, ..*fit }, information)?;
            let own = coefficients.map_or(zero(WIDE), |of| of.take());
            let take = own.clone();
            let next = self.stepped(fit, &matrix, own, |ports| {
                let gradient = numbers(ports, [gradient.take()], between.gradient);
                let [gradient] = &gradient[..] else {
                    return Err(none());
                };
                let Some(penalty) = penalty else {
                    return Ok(gradient.clone());
                };
                let coefficient = &numbers(ports, [take], between.coefficient)[0];
                let most = of.penalties_range();
                let penalty = &numbers(ports, [penalty.take()], most)[0];
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                let a = &mut arithmetic(&mut on);
                of.penalised(a, gradient, coefficient, penalty)
                    .map_err(wrong)
            })?;
            coefficients = Some(next);
            if step + 1 < of.spec().iterations {
                let next = self.in_ring_of((WIDE, NARROW), &[next], &[between.coefficient])?;
                narrow = Some(next[0]);
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
        let right: Vec<Shared> = rows.cells.iter().chain([&rows.response]).copied().collect();
        let sums = self.b.transposed_product(&rows.cells, &right);
        let (gradient, information) = sums.split_last().ok_or_else(none)?;
        let gradient = self.in_ring_of((NARROW, WIDE), &[*gradient], &[between.gradient])?[0];
        let matrix = self.matrix_of(fit, information)?;
        let range = of
            .dot(between.information, between.coefficient)
            .map_err(wrong)?;
        let mut coefficients: Option<Shared> = None;
        for _ in 0..of.spec().iterations {
            let (own, product) = match coefficients {
                None => (zero(WIDE), zero(WIDE)),
                Some(coefficients) => {
                    let product = self.b.product(&matrix.information, &[coefficients]);
                    (coefficients.take(), product[0].take())
                }
            };
            let next = self.stepped(fit, &matrix, own, |ports| {
                let gradient = &numbers(ports, [gradient.take()], between.gradient)[0];
                let product = &numbers(ports, [product], range)[0];
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
        let product = self.b.product(&matrix.information, &[coefficients])[0];
        let both = self.matrix_pass(WIDE, terms as u32, |ports| {
            let gradient = &numbers(ports, [gradient.take()], between.gradient)[0];
            let product = &numbers(ports, [product.take()], range)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let left = of.remaining(&mut a, gradient, product).map_err(wrong)?;
            let both = a.add(gradient, &left).map_err(wrong)?;
            Ok(vec![Out::Integer(both.int)])
        })?;
        let explained = self.b.transposed_product(&[coefficients], &both)[0];
        let squares = self
            .b
            .transposed_product(&[rows.response], &[rows.response]);
        let most = of.squares_range().map_err(wrong)?;
        let squares = self.in_ring_of((NARROW, WIDE), &squares, &[most])?[0];
        let known = matrix.information[0];
        let dispersion = self.matrix_pass(WIDE, 1, |ports| {
            let squares = &numbers(ports, [squares.take()], most)[0];
            let range = of.explained_range().map_err(wrong)?;
            let explained = &numbers(ports, [explained.take()], range)[0];
            let rows = &numbers(ports, [everywhere(known, 0)], between.information)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let a = &mut arithmetic(&mut on);
            let dispersion = of.dispersion(a, squares, explained, rows).map_err(wrong)?;
            Ok(vec![Out::Integer(dispersion.int)])
        })?[0];
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
        for _ in 0..Regression::UNDAMPED {
            inverse = self.improved_inverse(fit, &matrix.plain, &inverse)?;
        }
        let scale = matrix.scale;
        let features = self.matrix_pass(WIDE, rows, |ports| {
            let take = Take::Rows {
                of: inverse.iter().map(Shared::column).collect(),
                first: 0,
                step: terms as i32 + 1,
            };
            let element = &numbers(ports, [take], between.inverse)[0];
            let scale = &numbers(ports, [scale.take()], between.scale)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let a = &mut arithmetic(&mut on);
            let deviation = of.deviation(a, element, scale).map_err(wrong)?;
            Ok(vec![Out::Integer(deviation.int)])
        })?[0];
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
        let product = self.b.product(&inverse, &[direction])[0];
        let products = of.dot(between.inverse, range).map_err(wrong)?;
        let mut spread_range = Range::point(0);
        let spread = self.matrix_pass(WIDE, rows, |ports| {
            let product = &numbers(ports, [product.take()], products)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let spread = of
                .spread(&mut arithmetic(&mut on), product)
                .map_err(wrong)?;
            spread_range = spread.range;
            Ok(vec![Out::Integer(spread.int)])
        })?;
        let sum = self.b.transposed_product(&spread, &[direction])[0];
        let sums = of.dot(spread_range, range).map_err(wrong)?;
        let intercept = self.matrix_pass(WIDE, 1, |ports| {
            let sum = &numbers(ports, [sum.take()], sums)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let a = &mut arithmetic(&mut on);
            let deviation = of.intercept_deviation(a, sum).map_err(wrong)?;
            Ok(vec![Out::Integer(deviation.int)])
        })?[0];
        Ok(vec![features, intercept])
    }

    /// Columns of one row, one below the other.
    fn stacked(&mut self, of: &[Shared], sharing: Sharing) -> Shared {
        let take = Take::Rows {
            of: of.iter().map(Shared::column).collect(),
            first: 0,
            step: 1,
        };
        self.b.make(take, of.len() as u32, sharing)
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
        let names = model.names()?;
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
        // The row of a term is its name's place among all names.
        let mut order: Vec<usize> = (0..terms).collect();
        let of_terms = model.terms();
        order.sort_by_key(|term| names.index(of_terms[*term]));
        let mut base = vec![];
        let number = self.matrix_pass(NARROW, terms as u32, |ports| {
            let rows = diagonal(ports, terms);
            let bits = (0..kind(0).bits().unwrap_or(0)).map(|bit| {
                let rows = rows.iter().enumerate();
                let some = rows.filter(|(row, _)| row >> bit & 1 == 1);
                some.fold(ports.b.constant_bit(false), |all, (_, row)| {
                    ports.b.xor(all, *row)
                })
            });
            Ok(vec![Out::Bits(bits.collect())])
        })?;
        base.push(number[0]);
        for values in values.chunks(terms) {
            let sorted: Vec<Shared> = order.iter().map(|term| values[*term]).collect();
            base.push(self.stacked(&sorted, sorted[0].sharing()));
        }
        let base = base.into_iter().enumerate().map(|(at, column)| {
            let ty = shape.fields[at].ty.clone();
            let bits = ty.kind.bits().unwrap_or(0);
            Base::of_bits(ty, Some(Field::new(column, 0, bits)), None)
        });
        let mut rel = Rel {
            rows: terms as u32,
            base: base.collect(),
            fields: (0..shape.fields.len() as u32).map(Expr::column).collect(),
            valid: vec![],
            places: Places::Public,
            order: None,
            min_rows: model.min_rows,
        };
        if model.min_rows > 0 {
            let count = self.b.count(holds);
            let take = everywhere(count, 0);
            let count = self.b.make(take, terms as u32, count.sharing());
            let most = Range::new(0, holds.rows().into()).unwrap_or(Range::point(0));
            let count = rel.push(Base::of_integer(Type::of(Kind::Integer(most)), count));
            let least = Expr::integer(model.min_rows.into());
            rel.valid = vec![Expr::Compare(
                Comparison::Ge,
                Box::new(count),
                Box::new(least),
            )];
        }
        Ok(rel)
    }
}

/// A regression while it is planned.
#[derive(Clone, Copy)]
struct FitOf<'a> {
    of: &'a Regression,
    terms: usize,
    errors: bool,
}

/// What is there after the last step.
struct Fitted {
    /// In the order of terms.
    coefficients: Shared,
    /// The root of each variance, and that of the intercept's.
    deviations: Vec<Shared>,
    dispersion: Option<Shared>,
}

fn none() -> PhysicalError {
    PhysicalError::Circuit("a model lacks a column".into())
}

/// A word as an integer of the ring, 0 where the bit is not 1.
fn counted(on: &mut crate::exprs::Exprs, word: &Word, holds: Wire) -> Wire {
    let aim = on.aim();
    let bits = word.normal(&mut on.b, aim);
    let bits: Vec<Wire> = bits.into_iter().map(|bit| on.b.and(bit, holds)).collect();
    let value = integer_of(&mut on.b, &bits, 0);
    let one = on.b.lift(holds);
    let least = on.b.ring().reduce(word.range.min() as u128);
    let least = on.b.times(one, least);
    on.b.add(value, least)
}

/// The integer of these bits, lowest first, and a public number.
fn integer_of(b: &mut veil_circuit::Builder, bits: &[Wire], least: i128) -> Wire {
    let least = b.ring().reduce(least as u128);
    let mut sum = b.constant(least);
    for (place, bit) in bits.iter().enumerate() {
        let bit = b.lift(*bit);
        let bit = b.times(bit, 1 << place);
        sum = b.add(sum, bit);
    }
    sum
}

/// The bits of a number less the least of a range.
fn bits_of(ports: &mut Ports, of: &On, range: Range) -> Vec<Wire> {
    let b = &mut ports.b;
    let up = b.ring().reduce(range.min().wrapping_neg() as u128);
    let up = b.plus(of.int, up);
    (0..range.bits()).map(|place| b.bit(up, place)).collect()
}
