//! The circuit on totals: computed once on the sums over all rows, before anything is opened.

use std::collections::HashMap;

use veil_circuit::{
    Builder, Circuit, Limits, Per, Wire,
    generate::{Aim, Integer, decompose, is_zero, less_than, recompose},
};

use super::{
    Opening,
    division::Division,
    target::{Shown, Target},
};
use crate::{
    error::JobProblem,
    stats::{Column, End, extremes, monomial::Monomial},
};

/// What is opened of the sums and of the extremes that owners bring. Nothing if all sums are opened as they are.
pub(super) fn circuit(
    opening: &Opening,
    columns: &[Column],
    rows: u64,
) -> Result<Option<Circuit>, JobProblem> {
    let plain = |shown: &Shown| shown.guard.is_none() && matches!(shown.target, Target::Sum(_));
    if opening.shown.iter().all(plain) {
        return Ok(None);
    }
    let mut b = Builder::new(opening.ring);
    let sums: Vec<Vec<&Monomial>> = opening.shown.iter().map(Shown::sums).collect();
    let width = sums.iter().map(|sums| sums.len().max(1) as u32).sum();
    let mut inputs = b.input("sums", width, Per::Row).into_iter();
    let own: Vec<Vec<Wire>> = (sums.iter())
        .map(|sums| inputs.by_ref().take(sums.len().max(1)).collect())
        .collect();
    let counts = sums.iter().zip(&own);
    let counts = counts.flat_map(|(sums, wires)| sums.iter().copied().zip(wires.iter().copied()));
    let mut totals = Totals {
        rows,
        columns,
        counts: counts.collect(),
        extremes: Vec::new(),
        opening,
    };
    let mut ports = extremes::ports(&opening.extremes, columns);
    for one in &opening.extremes {
        let ports = ports.by_ref().take(one.holders.len());
        let wires = ports.map(|(name, width, _)| b.input(name, width, Per::Row));
        totals.extremes.push(wires.collect());
    }
    for (index, (shown, own)) in opening.shown.iter().zip(&own).enumerate() {
        let opened = totals.open(&mut b, shown, own);
        b.output(format!("opened {index}"), &[opened]);
        // Long before memory is a concern.
        let limit = Limits::default().gates;
        if b.wires() > limit {
            let what = "gates for what is computed of sums";
            let found = b.wires();
            return Err(JobProblem::TooMany { what, found, limit });
        }
    }
    Ok(Some(
        b.finish()
            .expect("as many gates as ports of other names have"),
    ))
}

struct Totals<'a> {
    rows: u64,
    columns: &'a [Column],
    opening: &'a Opening,
    /// Sums that are there.
    counts: HashMap<&'a Monomial, Wire>,
    /// By extreme and owner, an element for each group.
    extremes: Vec<Vec<Vec<Wire>>>,
}

impl Totals<'_> {
    /// What is opened in a port, given what is summed for it.
    fn open(&self, b: &mut Builder, shown: &Shown, own: &[Wire]) -> Wire {
        let enough = shown.guard.as_ref().map(|guard| {
            let count = self.counts[&guard.count];
            guard.holds(b, count, self.rows)
        });
        match &shown.target {
            Target::Sum(_) => times(b, own[0], enough),
            Target::Mean { of, decimals, .. } => {
                let count = own.get(1).copied();
                let enough = enough.or_else(|| {
                    let of = Integer::unsigned(u64::BITS - self.rows.leading_zeros());
                    let none = is_zero(b, count?, of);
                    Some(b.not(none))
                });
                let count = count.unwrap_or_else(|| b.constant(self.rows.into()));
                let division = Division::new(&self.columns[*of], *decimals, self.rows);
                let division = division.expect("the ring was chosen for it");
                let quotient = division.divide(b, own[0], count);
                let from_one = b.plus(quotient, 1);
                times(b, from_one, enough)
            }
            Target::Extreme {
                end, of, by, group, ..
            } => {
                let (index, group) = self.opening.extreme(*end, *of, by, group);
                let owners = &self.extremes[index];
                let values: Vec<Wire> = owners.iter().map(|groups| groups[group]).collect();
                largest(b, &values, steps(*end, &self.columns[*of]), enough)
            }
        }
    }
}

/// Bits of an extreme as it is supplied: 0, or from 1 on the steps from the far end of the range.
pub(super) fn steps(end: End, column: &Column) -> u32 {
    let (first, last) = end.range(column);
    u128::BITS - (first.abs_diff(last) + 1).leading_zeros()
}

/// An integer where a bit is 1, else 0.
fn times(b: &mut Builder, x: Wire, condition: Option<Wire>) -> Wire {
    match condition {
        None => x,
        Some(condition) => {
            let condition = b.lift(condition);
            b.mul(x, condition)
        }
    }
}

/// The largest of integers of so many bits, where the condition holds, else 0.
///
/// Of several, bits are compared and chosen, never the integers: whatever an owner supplies, it is a number of so many bits, and of the
/// others' no more than their largest is seen.
fn largest(b: &mut Builder, values: &[Wire], bits: u32, condition: Option<Wire>) -> Wire {
    if let [one] = values {
        return times(b, *one, condition);
    }
    let of = Integer::unsigned(bits);
    let mut words: Vec<Vec<Wire>> = values.iter().map(|x| decompose(b, *x, of)).collect();
    while words.len() > 1 {
        let pairs = words.chunks(2);
        words = pairs
            .map(|pair| match pair {
                [x, y] => {
                    let less = less_than(b, x, y, Aim::Depth);
                    let bits = x.iter().zip(y);
                    bits.map(|(x, y)| b.mux(less, *y, *x)).collect()
                }
                one => one[0].clone(),
            })
            .collect();
    }
    let mut word = words.pop().unwrap_or_default();
    if let Some(condition) = condition {
        word = word.iter().map(|bit| b.and(*bit, condition)).collect();
    }
    recompose(b, &word, false)
}
