//! Models that are fitted to rows: passes over the rows for what they add up to, and passes over what that is.
//!
//! Cells are made of columns once, as integers between −1 and 1 modulo 2^64, 0 in rows that do not count. In each step products of matrices give what each row is looked at with, and what all rows
//! add up to: one element of each is sent, however many rows there are.

mod clusters;
mod components;
mod descent;
mod regression;
mod square;
mod tree;

use veil_circuit::generate::{Aim, OnRing, Rounding};
use veil_circuit::{Circuit, Wire};
use veil_job::passes::Take;
use veil_math::Ring;
use veil_numeric::{Arithmetic, Number};
use veil_operators::{Shared, Sharing};
use veil_relation::{
    Comparison, Design, Expr, Fit, FitError, Fitting, Kind, Link, PlanError, Range, Shape, Type,
};

use super::rel::{Base, Field, Places, Rel, present};
use super::rows::{Out, Ports, aim_of};
use super::{PhysicalError, Planner};
use crate::exprs::{Bits, Data, ExprError, Shown, Want, Word};

/// The ring of rows.
pub(super) const NARROW: Ring = Ring::Z64;
/// The ring of what they add up to.
const WIDE: Ring = Ring::Z128;

/// An integer on a wire.
type Int = Number<Wire>;

/// The rows that a model is fitted to, as integers modulo 2^64; 0 in rows that do not count.
struct Rows {
    count: u32,
    /// Whether a row counts, then the cells of the features.
    cells: Vec<Shared>,
    /// The targets, if there are any.
    response: Option<Shared>,
    /// Whether a row counts, as a bit.
    holds: Shared,
}

pub(super) fn wrong(error: impl Into<FitError>) -> PhysicalError {
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

/// A public number, in all rows.
pub(super) const fn public(ring: Ring, constant: i64) -> Take {
    Take::Sums {
        of: None,
        row: 0,
        constant,
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
fn numbers(ports: &mut Ports, takes: impl IntoIterator<Item = Take>, range: Range) -> Vec<Int> {
    let takes = takes.into_iter();
    takes
        .map(|take| Number {
            int: ports.integer(take),
            range,
        })
        .collect()
}

/// An input port of an integer of a range.
fn number(ports: &mut Ports, take: Take, range: Range) -> Int {
    Number {
        int: ports.integer(take),
        range,
    }
}

fn takes(of: &[Shared]) -> impl Iterator<Item = Take> {
    of.iter().map(Shared::take)
}

impl Planner<'_> {
    /// The relation of a model.
    pub(super) fn fitted(
        &mut self,
        mut rel: Rel,
        (model, of): (&Fit, &Fitting),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let exprs = model.exprs().into_iter().map(|expr| rel.over_base(expr));
        let exprs: Vec<Expr> = exprs.collect();
        match of {
            Fitting::Regression(of) => {
                let rows = self.cells_of(&mut rel, of.design(), (&exprs, Some(of.link())))?;
                self.regression(of, model, &rows, shape)
            }
            Fitting::Descent(of) => {
                let rows = self.cells_of(&mut rel, of.design(), (&exprs, Some(of.link())))?;
                self.descent(of, model, &rows, shape)
            }
            Fitting::Components(of) => {
                let rows = self.cells_of(&mut rel, of.design(), (&exprs, None))?;
                self.components(of, model, &rows, shape)
            }
            Fitting::Clusters(of) => {
                let rows = self.cells_of(&mut rel, of.design(), (&exprs, None))?;
                self.clusters(of, model, &rows, shape)
            }
            Fitting::Tree(of) => self.tree(&mut rel, of, (model, &exprs), shape),
        }
    }

    /// Cells and responses of the rows that are valid and have no null.
    fn cells_of(
        &mut self,
        rel: &mut Rel,
        of: &Design,
        (exprs, target): (&[Expr], Option<&Link>),
    ) -> Result<Rows, PhysicalError> {
        let features = of.count();
        let types = rel.types();
        let mut all = rel.valid.clone();
        all.extend(present(exprs, &types)?);
        let condition = Expr::all(all);
        // A cell that is a number less another, times a third, takes the number as an integer, as an owner may supply it.
        let exact = |at: usize| at < features && of.is_exact(at);
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
                let x = match target {
                    Some(target) if at == features => target.response(&mut a, &x),
                    _ => of.cell(&mut a, at, &x),
                };
                let x = x.map_err(wrong)?;
                outs.push(Out::Integer(counted(on, &x.int, (holds, one))));
            }
            Ok(outs)
        })?;
        let (cells, response) = left[1..].split_at(1 + features);
        Ok(Rows {
            count: rel.rows,
            cells: cells.to_vec(),
            response: response.first().copied(),
            holds: left[0],
        })
    }

    /// A circuit over a ring in each of so many rows.
    pub(super) fn matrix_pass(
        &mut self,
        ring: Ring,
        rows: u32,
        with: impl FnOnce(&mut Ports) -> Result<Vec<Out>, PhysicalError>,
    ) -> Result<Vec<Shared>, PhysicalError> {
        let (circuit, takes) = ring_circuit(ring, with)?;
        Ok(self.b.compute(circuit, rows, takes))
    }

    /// What is computed modulo 2^128 in each of so many rows of integers of these ranges: a column, and the range of its integers.
    fn integer<const N: usize, E: Into<FitError>>(
        &mut self,
        rows: u32,
        inputs: [(Take, Range); N],
        with: impl FnOnce(&mut Arithmetic<'_, OnRing<'_>>, [Int; N]) -> Result<Int, E>,
    ) -> Result<(Shared, Range), PhysicalError> {
        let mut range = Range::point(0);
        let made = self.matrix_pass(WIDE, rows, |ports| {
            let inputs = inputs.map(|(take, range)| number(ports, take, range));
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let made = with(&mut arithmetic(&mut on), inputs).map_err(wrong)?;
            range = made.range;
            Ok(vec![Out::Integer(made.int)])
        })?;
        Ok((made[0], range))
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

    /// Columns of one row, one below the other.
    fn stacked(&mut self, of: &[Shared], sharing: Sharing) -> Shared {
        let take = Take::Rows {
            of: of.iter().map(Shared::column).collect(),
            first: 0,
            step: 1,
        };
        self.b.make(take, of.len() as u32, sharing)
    }

    /// Leaves the rows of a relation valid where so many rows counted.
    fn enough(&mut self, rel: &mut Rel, holds: Shared, least: u32) {
        if least == 0 {
            return;
        }
        let count = self.b.count(holds);
        let count = self.b.make(everywhere(count, 0), rel.rows, count.sharing());
        let most = Range::new(0, holds.rows().into()).unwrap_or(Range::point(0));
        let count = rel.push(Base::of_integer(Type::of(Kind::Integer(most)), count));
        rel.valid.push(at_least(count, least));
    }

    /// The numbers of rows of a relation, from 0 on, as bits.
    fn numbered(&mut self, rows: usize, bits: u32) -> Result<Shared, PhysicalError> {
        let number = self.matrix_pass(NARROW, rows as u32, |ports| {
            let rows = diagonal(ports, rows);
            let bits = (0..bits).map(|bit| {
                let rows = rows.iter().enumerate();
                let some = rows.filter(|(row, _)| row >> bit & 1 == 1);
                some.fold(ports.b.constant_bit(false), |all, (_, row)| {
                    ports.b.xor(all, *row)
                })
            });
            Ok(vec![Out::Bits(bits.collect())])
        })?;
        Ok(number[0])
    }
}

/// A circuit over a ring, and what its input ports take.
fn ring_circuit(
    ring: Ring,
    with: impl FnOnce(&mut Ports) -> Result<Vec<Out>, PhysicalError>,
) -> Result<(Circuit, Vec<Take>), PhysicalError> {
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
    Ok((circuit, ports.takes))
}

/// The condition that a number is at least so large.
fn at_least(number: Expr, least: u32) -> Expr {
    let least = Box::new(Expr::integer(least.into()));
    Expr::Compare(Comparison::Ge, Box::new(number), least)
}

/// The relation of a model, whose fields are these columns of bits.
fn relation(columns: &[Shared], rows: usize, shape: &Shape, min_rows: u32) -> Rel {
    let base = columns.iter().zip(&shape.fields).map(|(column, field)| {
        let bits = field.ty.kind.bits().unwrap_or(0);
        let bits = (bits > 0).then(|| Field::new(*column, 0, bits));
        Base::of_bits(field.ty.clone(), bits, None)
    });
    Rel {
        rows: rows as u32,
        base: base.collect(),
        fields: (0..shape.fields.len() as u32).map(Expr::column).collect(),
        valid: vec![],
        places: Places::Public,
        order: None,
        min_rows,
    }
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
pub(super) fn rounded(ports: &mut Ports, of: &Int, by: u32, range: Range) -> Number<Word> {
    // What is added before is a multiple of 2^by, and comes off behind it.
    let below = range.min().min(0);
    let b = &mut ports.b;
    let half = if by == 0 { 0 } else { 1_i128 << (by - 1) };
    let up = half - (below << by);
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
pub(super) fn integer_of(b: &mut veil_circuit::Builder, bits: &[Wire], least: i128) -> Wire {
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
fn bits_of(ports: &mut Ports, of: &Int, range: Range) -> Vec<Wire> {
    let b = &mut ports.b;
    let up = b.ring().reduce(range.min().wrapping_neg() as u128);
    let up = b.plus(of.int, up);
    (0..range.bits()).map(|place| b.bit(up, place)).collect()
}
