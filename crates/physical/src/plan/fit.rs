//! Regressions: passes over the rows for what they add up to, and passes over a small matrix, which has a row for each term.
//!
//! Cells are made of bits once, as integers between −1 and 1 modulo 2^64. In each step of Newton's method a product gives the sums of rows, a pass of rows what follows from them, and a product of
//! transposed cells the gradient and the information matrix: one element of each is sent, however many rows there are. The matrix is inverted modulo 2^128.

use veil_circuit::Wire;
use veil_circuit::generate::{Aim, OnRing, Rounding};
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

/// A square matrix with a row for each term.
#[derive(Clone)]
struct Square {
    /// Its columns, one behind the other; of a product each by itself.
    of: Vec<Shared>,
    terms: usize,
}

impl Square {
    /// All elements, in terms² rows.
    fn elements(&self) -> Take {
        Take::Rows {
            of: self.of.iter().map(Shared::column).collect(),
            first: 0,
            step: 1,
        }
    }

    /// The elements on the diagonal.
    fn diagonal(&self) -> Take {
        Take::Rows {
            of: self.of.iter().map(Shared::column).collect(),
            first: 0,
            step: self.terms as i32 + 1,
        }
    }

    /// The columns of the matrix.
    fn columns(&self) -> Vec<Take> {
        match &self.of[..] {
            [all] => (0..self.terms)
                .map(|column| all.rows_from((column * self.terms) as i64))
                .collect(),
            columns => takes(columns).collect(),
        }
    }
}

/// What a step is taken with.
struct Matrix {
    information: Square,
    /// One over the root of the diagonal.
    scale: Shared,
    inverse: Square,
    /// Before it was damped, if standard errors are asked for.
    plain: Option<Square>,
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

/// An input port of an integer of a range.
fn number(ports: &mut Ports, take: Take, range: Range) -> On {
    Number {
        int: ports.integer(take),
        range,
    }
}

/// The elements of a column of terms, in the rows of all elements of a square: those of their rows.
fn down(of: Shared, terms: usize) -> Take {
    Take::Rows {
        of: vec![of.column(); terms],
        first: 0,
        step: 1,
    }
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
        let fit = self.fit_of(of, model.errors)?;
        let results = match model.family {
            Family::Linear => self.least_squares(&fit, &rows)?,
            _ => self.newton(&fit, &rows)?,
        };
        self.shown(&fit, model, (rows.holds, results), shape)
    }

    /// What is public of a model, as columns.
    fn fit_of<'r>(&mut self, of: &'r Regression, errors: bool) -> Result<FitOf<'r>, PhysicalError> {
        let terms = of.terms();
        let rows = terms as u32;
        let columns = self.matrix_pass(WIDE, rows, |ports| {
            let bits = diagonal(ports, terms);
            Ok(bits.into_iter().map(|bit| Out::Bits(vec![bit])).collect())
        })?;
        let square = Square { of: columns, terms };
        let diagonal = self
            .b
            .make(square.elements(), rows * rows, Sharing::Bits(1));
        let penalty = if of.is_ridged() {
            let penalty = self.matrix_pass(WIDE, rows, |ports| {
                let bits = self::diagonal(ports, terms);
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
        // A cell that is a number less another, times a third, takes the number as an integer, as an owner may supply it.
        let exact = |at: usize| at + 1 < exprs.len() && of.is_exact(at);
        let mut wants = vec![(condition.clone(), Want::Bits)];
        for (at, expr) in exprs.iter().enumerate() {
            let want = if exact(at) { Want::Integer } else { Want::Bits };
            wants.push((expr.clone(), want));
        }
        let aim = aim_of(rel.rows);
        let all_count = condition == Expr::all(vec![]);
        let left = self.rows(rel, NARROW, &wants, |on| {
            let holds = on.truth(&condition)?;
            let one = on.b.lift(holds);
            let mut outs = vec![Out::Bits(vec![holds])];
            outs.push(Out::Integer(on.b.times(one, of.one() as u128)));
            for (at, expr) in exprs.iter().enumerate() {
                if exact(at) {
                    let range = number_of(&on.ty(expr)?.kind);
                    let int = on.integer(expr)?.0;
                    let mut on_ring = OnRing::new(&mut on.b, Rounding::Nearest);
                    let mut a = arithmetic(&mut on_ring);
                    let cell = of.cell(&mut a, at, &Number { int, range }).map_err(wrong)?;
                    let int = if all_count {
                        cell.int
                    } else {
                        on.b.mul(one, cell.int)
                    };
                    outs.push(Out::Integer(int));
                    continue;
                }
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
                outs.push(Out::Integer(counted(on, &x.int, (holds, one))));
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
        (take, rows): (Take, u32),
        range: Range,
    ) -> Result<Shared, PhysicalError> {
        let bits = self.matrix_pass(from, rows, |ports| {
            let of = number(ports, take, range);
            Ok(vec![Out::Bits(bits_of(ports, &of, range))])
        })?[0];
        let made = self.matrix_pass(to, rows, |ports| {
            let bits = ports.bits(bits.take(), range.bits());
            let value = integer_of(&mut ports.b, &bits, range.min());
            Ok(vec![Out::Integer(value)])
        })?;
        Ok(made[0])
    }

    /// A pass over all elements of a square, for another one.
    fn elementwise(
        &mut self,
        fit: &FitOf<'_>,
        with: impl FnOnce(&mut Ports) -> Result<Vec<Out>, PhysicalError>,
    ) -> Result<Vec<Square>, PhysicalError> {
        let terms = fit.terms;
        let made = self.matrix_pass(WIDE, (terms * terms) as u32, with)?;
        let square = |of: Shared| Square {
            of: vec![of],
            terms,
        };
        Ok(made.into_iter().map(square).collect())
    }

    /// The product of two squares.
    fn squares_product(&mut self, left: &Square, right: &Square) -> Square {
        let (of, terms) = ((WIDE, false), left.terms);
        let product = self
            .b
            .product_of(terms as u32, of, left.columns(), right.columns());
        Square { of: product, terms }
    }

    /// The product of a square and a column.
    fn column_product(&mut self, left: &Square, right: Shared) -> Shared {
        let of = (WIDE, false);
        self.b
            .product_of(left.terms as u32, of, left.columns(), vec![right.take()])[0]
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
        let mut information = Square {
            of: vec![wide],
            terms,
        };
        if let Some(penalty) = fit.penalty {
            information = self
                .elementwise(fit, |ports| {
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
        let scale = self.matrix_pass(WIDE, rows, |ports| {
            let diagonal = number(ports, information.diagonal(), between.information);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let scale = of
                .scale(&mut arithmetic(&mut on), &diagonal)
                .map_err(wrong)?;
            Ok(vec![Out::Integer(scale.int)])
        })?[0];
        let of_columns: Vec<Shared> = (0..terms)
            .map(|row| {
                self.b
                    .make(everywhere(scale, row), rows, Sharing::Ring(WIDE))
            })
            .collect();
        let mut made = self.elementwise(fit, |ports| {
            let element = number(ports, information.elements(), between.information);
            let of_row = number(ports, down(scale, terms), between.scale);
            let of_column = Square {
                of: of_columns,
                terms,
            };
            let of_column = number(ports, of_column.elements(), between.scale);
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
        let correction = self.elementwise(fit, |ports| {
            let element = number(ports, product.elements(), range);
            let on_diagonal = ports.bits(fit.diagonal.take(), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let correction = of.correction(&mut arithmetic(&mut on), &element, &on_diagonal);
            Ok(vec![Out::Integer(correction.map_err(wrong)?.int)])
        })?;
        let product = self.squares_product(inverse, &correction[0]);
        let range = of.dot(between.inverse, between.correction).map_err(wrong)?;
        let improved = self.elementwise(fit, |ports| {
            let element = number(ports, product.elements(), range);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let improved = of.improved(&mut arithmetic(&mut on), &element);
            Ok(vec![Out::Integer(improved.map_err(wrong)?.int)])
        })?;
        improved.into_iter().next().ok_or_else(none)
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
        let next = self.matrix_pass(WIDE, rows, |ports| {
            let product = &number(ports, product.take(), range);
            let scale = &number(ports, matrix.scale.take(), between.scale);
            let coefficient = &number(ports, coefficients, between.coefficient);
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
        let mut coefficients: Option<Shared> = None;
        let mut narrow: Option<Shared> = None;
        let mut last = None;
        for step in 0..of.spec().iterations {
            let sum = match narrow {
                None => zero(NARROW),
                Some(narrow) => self.b.product(&rows.cells, &[narrow])[0].take(),
            };
            let aim = aim_of(rows.count);
            let right = self.matrix_pass(NARROW, rows.count, |ports| {
                let sum = number(ports, sum, between.sum);
                let response = number(ports, rows.response.take(), between.response);
                let cells = numbers(ports, takes(&rows.cells), between.cell);
                let rounded = rounded(ports, &sum, of.sum_shift(), between.rounded);
                let mut bits = Bits::new(&mut ports.b, aim);
                let mean = of
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
            let own = coefficients.map_or(zero(WIDE), |of| of.take());
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
        let right: Vec<Shared> = rows.cells.iter().chain([&rows.response]).copied().collect();
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
                None => (zero(WIDE), zero(WIDE)),
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
        let both = self.matrix_pass(WIDE, terms as u32, |ports| {
            let gradient = &number(ports, gradient.take(), between.gradient);
            let product = &number(ports, product.take(), range);
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
        let squares = self.in_ring_of((NARROW, WIDE), (squares[0].take(), 1), most)?;
        let known = matrix.information.of[0];
        let dispersion = self.matrix_pass(WIDE, 1, |ports| {
            let squares = &number(ports, squares.take(), most);
            let range = of.explained_range().map_err(wrong)?;
            let explained = &number(ports, explained.take(), range);
            let rows = &number(ports, everywhere(known, 0), between.information);
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
        let plain = matrix.plain.ok_or_else(none)?;
        for _ in 0..Regression::UNDAMPED {
            inverse = self.improved_inverse(fit, &plain, &inverse)?;
        }
        let scale = matrix.scale;
        let features = self.matrix_pass(WIDE, rows, |ports| {
            let element = &number(ports, inverse.diagonal(), between.inverse);
            let scale = &number(ports, scale.take(), between.scale);
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
        let product = self.column_product(&inverse, direction);
        let products = of.dot(between.inverse, range).map_err(wrong)?;
        let mut spread_range = Range::point(0);
        let spread = self.matrix_pass(WIDE, rows, |ports| {
            let product = &number(ports, product.take(), products);
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
            let sum = &number(ports, sum.take(), sums);
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

fn none() -> PhysicalError {
    PhysicalError::Circuit("a model lacks a column".into())
}

/// The integers that a number or a condition may be.
fn number_of(kind: &Kind) -> Range {
    let of = match kind {
        Kind::Bool => Range::new(0, 1),
        kind => kind.range(),
    };
    of.unwrap_or(Range::point(0))
}

/// A word as an integer of the ring, 0 where the bit, which is lifted as well, is not 1.
fn counted(on: &mut crate::exprs::Exprs, word: &Word, (holds, one): (Wire, Wire)) -> Wire {
    let aim = on.aim();
    let bits = word.normal(&mut on.b, aim);
    let bits: Vec<Wire> = bits.into_iter().map(|bit| on.b.and(bit, holds)).collect();
    let value = integer_of(&mut on.b, &bits, 0);
    let least = on.b.ring().reduce(word.range.min() as u128);
    let least = on.b.times(one, least);
    on.b.add(value, least)
}

/// A word as an integer of the ring.
fn lifted(b: &mut veil_circuit::Builder, word: &Word, aim: Aim) -> Wire {
    let bits = word.normal(b, aim);
    integer_of(b, &bits, word.range.min())
}

/// A number over 2^by, rounded to nearest: its bits from place `by` on.
fn rounded(ports: &mut Ports, of: &On, by: u32, range: Range) -> Number<Word> {
    // What is added before is a multiple of 2^by, and comes off behind it.
    let below = range.min().min(0);
    let b = &mut ports.b;
    let up = (1_i128 << (by - 1)) - (below << by);
    let up = b.ring().reduce(up as u128);
    let positive = b.plus(of.int, up);
    let width = 128 - (range.max() - below).leading_zeros();
    let bits = (0..width)
        .map(|place| b.bit(positive, by + place))
        .collect();
    let int = Word {
        offset: below,
        bits,
        range,
    };
    Number { int, range }
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
