//! What is done in every row: conditions once, and for each level of nodes what rows add to their sums.

use veil_circuit::Wire;
use veil_job::passes::Take;
use veil_numeric::{Arithmetic, Number};
use veil_operators::Shared;
use veil_relation::{Expr, Test, Tree};

use super::contest::Splits;
use crate::exprs::{Asked, Bits, Data, ExprError, Exprs, Shown, Want, Word};
use crate::plan::fit::{NARROW, Out, PhysicalError, Planner, Rel, counted, none, takes, wrong};
use crate::plan::rel::present;

/// Rows, modulo 2^64.
pub(super) struct Rows {
    /// Of each candidate whether it holds.
    pub(super) asked: Vec<Shared>,
    /// What each row adds to the sums of its node, for each node of a level: 0 in rows of other nodes.
    pub(super) members: Vec<Vec<Shared>>,
}

/// The bits of a word, and the least number that it may be.
fn word_of(on: &mut Exprs, expr: &Expr) -> Result<Word, PhysicalError> {
    let Data::Word(word) = on.cell(expr)?.value else {
        let expr = Shown::of(expr);
        return Err(ExprError::Quotient { expr }.into());
    };
    Ok(word)
}

/// Whether tests hold of a word.
fn tested(on: &mut Exprs, word: &Word, tests: &[Test]) -> Vec<Wire> {
    let (aim, range) = (on.aim(), word.range);
    let bits = word.normal(&mut on.b, aim);
    // What the range decides is public.
    let place = |of: i128| (of - range.min()) as u128;
    let mut asked = Asked::default();
    for test in tests {
        match test {
            Test::AtMost(cut) if (range.min()..range.max()).contains(cut) => {
                asked.below.insert(place(cut + 1));
            }
            Test::Is(value) if range.contains(*value) => {
                asked.equal.insert(place(*value));
            }
            _ => {}
        }
    }
    let known = asked.answer(&mut on.b, &bits, aim);
    let answer = |test: &Test| match test {
        Test::AtMost(cut) if *cut < range.min() => on.b.constant_bit(false),
        Test::AtMost(cut) if *cut >= range.max() => on.b.constant_bit(true),
        Test::AtMost(cut) => known.is_below(&mut on.b, place(cut + 1)),
        Test::Is(value) if range.contains(*value) => known.is_equal(place(*value)),
        Test::Is(_) => on.b.constant_bit(false),
    };
    tests.iter().map(answer).collect()
}

impl Planner<'_> {
    /// What is asked of the rows that are valid and have no null, what each adds to the root, and what they add up to.
    pub(super) fn tree_rows(
        &mut self,
        rel: &mut Rel,
        of: &Tree,
        exprs: &[Expr],
    ) -> Result<(Rows, Vec<Shared>), PhysicalError> {
        let (target, features) = exprs.split_last().ok_or_else(none)?;
        let types = rel.types();
        let mut all = rel.valid.clone();
        all.extend(present(exprs, &types)?);
        let condition = Expr::all(all);
        let wanted = exprs.iter().chain([&condition]);
        let wants: Vec<_> = wanted.map(|expr| (expr.clone(), Want::Bits)).collect();
        let (candidates, measures) = (of.candidates(), of.measures().len());
        let left = self.rows(rel, NARROW, &wants, |on| {
            let mut outs = Vec::new();
            for (feature, expr) in features.iter().enumerate() {
                let of_feature = candidates.iter().filter(|of| of.feature == feature);
                let tests: Vec<Test> = of_feature.map(|of| of.test).collect();
                let word = word_of(on, expr)?;
                for bit in tested(on, &word, &tests) {
                    outs.push(Out::Integer(on.b.lift(bit)));
                }
            }
            let holds = on.truth(&condition)?;
            for wire in added(on, of, target, holds)? {
                outs.push(Out::Integer(wire));
                outs.push(Out::Sum(wire));
            }
            Ok(outs)
        })?;
        let (asked, added) = left.split_at(candidates.len());
        let each = |first: usize| added[first..].iter().step_by(2).copied().collect();
        let (members, totals): (Vec<Shared>, Vec<Shared>) = (each(0), each(1));
        debug_assert_eq!(members.len(), measures, "a column for each measure");
        let rows = Rows {
            asked: asked.to_vec(),
            members: vec![members],
        };
        Ok((rows, totals))
    }

    /// What the rows of nodes add up to for which each candidate holds: for each node and measure a column, in rows of candidates.
    pub(super) fn histograms(
        &mut self,
        rows: &Rows,
        nodes: impl Iterator<Item = usize>,
    ) -> Vec<Vec<Shared>> {
        let members: Vec<&Vec<Shared>> = nodes.map(|node| &rows.members[node]).collect();
        let measures = members[0].len();
        let right: Vec<Shared> = members.into_iter().flatten().copied().collect();
        let product = self.b.transposed_product(&rows.asked, &right);
        product.chunks(measures).map(<[Shared]>::to_vec).collect()
    }

    /// The histograms of the next level, whose rows have moved on: of first children by their rows, of second ones what is left of their parent's.
    pub(super) fn next_histograms(
        &mut self,
        of: &Tree,
        rows: &Rows,
        parents: &[Vec<Shared>],
    ) -> Result<Vec<Vec<Shared>>, PhysicalError> {
        let first = self.histograms(rows, (0..parents.len()).map(|node| 2 * node));
        let flat = |of: &[Vec<Shared>]| of.iter().flatten().copied().collect::<Vec<_>>();
        let (whole, part) = (flat(parents), flat(&first));
        let measures = of.measures().len();
        let candidates = of.candidates().len() as u32;
        let second = self.matrix_pass(NARROW, candidates, |ports| {
            let [whole, part] = [&whole, &part].map(|of| {
                let integers = takes(of).map(|take| ports.integer(take));
                integers.collect::<Vec<Wire>>()
            });
            let rest = whole.iter().zip(&part);
            let rest = rest.map(|(whole, part)| Out::Integer(ports.b.sub(*whole, *part)));
            Ok(rest.collect())
        })?;
        let second = second.chunks(measures).map(<[Shared]>::to_vec);
        let pairs = first.into_iter().zip(second);
        Ok(pairs.flat_map(|(first, second)| [first, second]).collect())
    }

    /// Rows go to the children of their nodes; those of nodes that are not split to the second, which does not count.
    pub(super) fn moved_on(
        &mut self,
        of: &Tree,
        rows: &mut Rows,
        splits: &Splits,
    ) -> Result<(), PhysicalError> {
        let nodes = rows.members.len();
        let count = rows.asked[0].rows();
        // A column of the right matrix is a node.
        let right = (0..nodes).map(|node| Take::Rows {
            of: splits.chosen.iter().map(Shared::column).collect(),
            first: node as i64,
            step: nodes as i32,
        });
        let left = takes(&rows.asked).collect();
        let first = self
            .b
            .product_of(count, (NARROW, false), left, right.collect());
        let measures = of.measures().len();
        let moved = self.matrix_pass(NARROW, count, |ports| {
            let mut outs = Vec::new();
            for (members, first) in rows.members.iter().zip(&first) {
                let first = ports.integer(first.take());
                let members: Vec<Wire> = takes(members).map(|take| ports.integer(take)).collect();
                let in_first = members.iter().map(|member| ports.b.mul(*member, first));
                let in_first: Vec<Wire> = in_first.collect();
                let both = members.iter().zip(&in_first);
                let in_second = both.map(|(member, first)| ports.b.sub(*member, *first));
                let in_second: Vec<Wire> = in_second.collect();
                outs.extend(in_first.into_iter().map(Out::Integer));
                outs.extend(in_second.into_iter().map(Out::Integer));
            }
            Ok(outs)
        })?;
        rows.members = moved.chunks(measures).map(<[Shared]>::to_vec).collect();
        Ok(())
    }
}

/// What a row adds to the sums of the root, 0 if it does not count: a 1 for its class, or a 1 and the target.
fn added(
    on: &mut Exprs,
    of: &Tree,
    target: &Expr,
    holds: Wire,
) -> Result<Vec<Wire>, PhysicalError> {
    let word = word_of(on, target)?;
    if of.target_places().is_none() {
        let tests: Vec<Test> = (0..of.measures().len())
            .map(|class| Test::Is(class as i128))
            .collect();
        let classes = tested(on, &word, &tests);
        let mut all = Vec::new();
        for class in classes {
            let counts = on.b.and(class, holds);
            all.push(on.b.lift(counts));
        }
        return Ok(all);
    }
    let one = on.b.lift(holds);
    let x = Number {
        range: word.range,
        int: word,
    };
    let aim = on.aim();
    let mut bits = Bits::new(&mut on.b, aim);
    let x = of.response(&mut Arithmetic(&mut bits), &x).map_err(wrong)?;
    Ok(vec![one, counted(on, &x.int, (holds, one))])
}
