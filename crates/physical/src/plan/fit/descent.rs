//! Regressions by gradient descent: a batch is a run of rows behind one shuffle, and takes three passes over its rows and one over the terms, all modulo 2^64.

use std::sync::Arc;

use veil_circuit::Circuit;
use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::Take;
use veil_numeric::{Arithmetic, Number};
use veil_operators::Shared;
use veil_relation::{Descent, Family, Fit, Range, Shape};

use super::{
    Bits, NARROW, Out, PhysicalError, Planner, Rel, Rows, WIDE, aim_of, arithmetic, bits_of,
    everywhere, lifted, none, number, numbers, public, ring_circuit, rounded, wrong,
};

/// What moves from batch to batch, in a row for each term; nothing before the first.
#[derive(Clone, Copy, Default)]
struct State {
    coefficients: Option<Shared>,
    velocities: Option<Shared>,
}

impl Planner<'_> {
    /// The relation of a regression by gradient descent: its terms in the order of their names.
    pub(super) fn descent(
        &mut self,
        of: &Descent,
        model: &Fit,
        rows: &Rows,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let (terms, ranges) = (of.terms() as u32, of.ranges());
        if rows.count != of.spec().rows {
            return Err(PhysicalError::Circuit(
                "a relation has other rows than its batches".into(),
            ));
        }
        let mut columns = rows.cells.clone();
        columns.push(rows.response.ok_or_else(none)?);
        let batches: Vec<_> = of.batches().collect();
        if batches.len() > 1 {
            columns = self.b.shuffle(&columns);
        }
        let (response, cells) = columns.split_last().ok_or_else(none)?;
        let term = Self::term_circuit(of)?;
        let mut in_rows: Vec<(u32, Circuit)> = Vec::new();
        for batch in &batches {
            let count = batch.len() as u32;
            if in_rows.iter().all(|(known, _)| *known != count) {
                in_rows.push((count, Self::row_circuit(of, count)?));
            }
        }
        let penalties = of.penalties().iter();
        let penalties = penalties.map(|factor| i64::try_from(*factor).map_err(|_| none()));
        let penalties = Arc::new(penalties.collect::<Result<Vec<i64>, _>>()?);
        let mut state = State::default();
        for _ in 0..of.spec().epochs {
            for batch in &batches {
                let count = batch.len() as u32;
                let taken = |of: &Shared| match batches.len() {
                    1 => of.take(),
                    _ => of.rows_from(batch.start.into()),
                };
                let left: Vec<Take> = cells.iter().map(taken).collect();
                let sum = match state.coefficients {
                    None => public(NARROW, 0),
                    Some(of) => {
                        let of = vec![of.take()];
                        self.b.product_of(count, (NARROW, false), left.clone(), of)[0].take()
                    }
                };
                let known = in_rows.iter().find(|(known, _)| *known == count);
                let (_, circuit) = known.ok_or_else(none)?;
                let takes = vec![sum, taken(response)];
                let residual = self.b.compute(circuit.clone(), count, takes)[0];
                let right = vec![residual.take()];
                let gradient = self.b.product_of(count, (NARROW, true), left, right)[0];
                let or_zero = |of: Option<Shared>| of.map_or(public(NARROW, 0), |of| of.take());
                let mut takes = vec![gradient.take(), or_zero(state.coefficients)];
                if of.has_momentum() {
                    takes.push(or_zero(state.velocities));
                }
                if of.is_ridged() {
                    takes.push(Take::Public {
                        integers: Arc::clone(&penalties),
                        ring: NARROW,
                    });
                }
                let moved = self.b.compute(term.clone(), terms, takes);
                state = State {
                    coefficients: moved.first().copied(),
                    velocities: moved.get(1).copied(),
                };
            }
        }
        let coefficients = state.coefficients.ok_or_else(none)?;
        let take = (coefficients.take(), terms);
        let wide = self.in_ring_of((NARROW, WIDE), take, ranges.coefficient)?;
        let range = shape.fields[1].ty.kind.range().unwrap_or(Range::point(0));
        let values = self.matrix_pass(WIDE, 1, |ports| {
            let rows = (0..terms as usize).map(|row| everywhere(wide, row));
            let coefficients = numbers(ports, rows, ranges.coefficient);
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let shown = of.coefficients(&mut arithmetic(&mut on), &coefficients);
            let shown = shown.map_err(wrong)?;
            let bits = shown.iter().map(|x| Out::Bits(bits_of(ports, x, range)));
            Ok(bits.collect())
        })?;
        self.terms_of(model, (rows.holds, &values), shape)
    }

    /// In each row of a batch: the response less its mean, of the sum of its terms and the response.
    fn row_circuit(of: &Descent, rows: u32) -> Result<Circuit, PhysicalError> {
        let (ranges, aim) = (of.ranges(), aim_of(rows));
        let (circuit, _) = ring_circuit(NARROW, |ports| {
            let sum = number(ports, Take::Within { first: 0, end: 0 }, ranges.sum);
            let response = number(ports, Take::Within { first: 0, end: 0 }, ranges.response);
            let mean = if of.spec().family == Family::Linear {
                let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
                of.rounded(&mut arithmetic(&mut on), &sum).map_err(wrong)?
            } else {
                let rounded = rounded(ports, &sum, of.sum_shift(), ranges.rounded);
                let mut bits = Bits::new(&mut ports.b, aim);
                let mean = of.link().mean(&mut Arithmetic(&mut bits), &rounded);
                let mean = mean.map_err(wrong)?;
                Number {
                    int: lifted(&mut ports.b, &mean.int, aim),
                    range: mean.range,
                }
            };
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let residual = arithmetic(&mut on).sub(&response, &mean).map_err(wrong)?;
            Ok(vec![Out::Integer(residual.int)])
        })?;
        Ok(circuit)
    }

    /// In the row of each term, behind each batch: the next coefficient and, if there is momentum, the step; of the gradient, the coefficient, the last step and the penalty, if there are any.
    fn term_circuit(of: &Descent) -> Result<Circuit, PhysicalError> {
        let ranges = of.ranges();
        let (circuit, _) = ring_circuit(NARROW, |ports| {
            let mut port = |range| number(ports, Take::Within { first: 0, end: 0 }, range);
            let gradient = port(ranges.gradient);
            let coefficient = port(ranges.coefficient);
            let velocity = of.has_momentum().then(|| port(ranges.velocity));
            let penalty = of.is_ridged().then(|| port(ranges.penalty));
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let moved = of.moved(
                &mut arithmetic(&mut on),
                &gradient,
                (&coefficient, velocity.as_ref()),
                penalty.as_ref(),
            );
            let moved = moved.map_err(wrong)?;
            let mut outs = vec![Out::Integer(moved.coefficient.int)];
            if of.has_momentum() {
                outs.push(Out::Integer(moved.velocity.int));
            }
            Ok(outs)
        })?;
        Ok(circuit)
    }
}
