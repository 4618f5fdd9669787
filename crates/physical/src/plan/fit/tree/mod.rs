//! Decision trees: what is asked of rows is computed once; a level is a product of matrices, which adds up the rows of each node and candidate, a tournament of the candidates' scores, and a product
//! that says to which child each row goes.
//!
//! Of two children the sums of the first come of rows, and those of the second are the rest of the node's.

mod contest;
mod rows;

use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::Take;
use veil_numeric::Number;
use veil_operators::{Shared, Sharing};
use veil_relation::{Expr, Fit, Kind, Range, Shape, Tree, TreeFitting, Type};

use super::{
    Int, NARROW, Out, PhysicalError, Planner, Ports, Rel, WIDE, arithmetic, at_least, bits_of,
    integer_of, none, number, relation, takes, wrong,
};
use crate::exprs::{Word, quotient};
use crate::plan::rel::{Base, Field};
use crate::plan::rows::aim_of;
use contest::Splits;

/// The nodes of a level.
struct Level {
    /// What their rows add up to, modulo 2^128.
    totals: Vec<Shared>,
    /// Whether there is such a node.
    open: Shared,
}

/// Columns one below the other.
fn below_each_other(of: impl IntoIterator<Item = Shared>) -> Take {
    Take::Rows {
        of: of.into_iter().map(|of| of.column()).collect(),
        first: 0,
        step: 1,
    }
}

fn integers(ports: &mut Ports, of: &[Shared], ranges: &[Range]) -> Vec<Int> {
    let both = takes(of).zip(ranges);
    both.map(|(take, range)| number(ports, take, *range))
        .collect()
}

fn outs(of: &[Int]) -> impl Iterator<Item = Out> {
    of.iter().map(|of| Out::Integer(of.int))
}

impl Planner<'_> {
    /// The relation of a tree, in the order of its nodes' numbers.
    pub(super) fn tree(
        &mut self,
        rel: &mut Rel,
        of: &TreeFitting,
        (model, exprs): (&Fit, &[Expr]),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let tree = of.tree();
        let depth = tree.spec().depth;
        let widths = [1, 2].map(|at: usize| shape.fields[at].ty.kind.bits().unwrap_or(0));
        let (mut rows, totals) = self.tree_rows(rel, tree, exprs)?;
        let open = self.matrix_pass(NARROW, 1, |ports| {
            let one = ports.bits(Take::Within { first: 0, end: 1 }, 1);
            Ok(vec![Out::Bits(one)])
        })?[0];
        let totals = self.widened(tree, &totals, 1)?;
        let mut levels = vec![Level { totals, open }];
        let mut histograms = self.histograms(&rows, 0..1);
        let mut splits: Vec<Splits> = Vec::new();
        for depth_now in 0..depth {
            let level = levels.last().ok_or_else(none)?;
            let goes_on = depth_now + 1 < depth;
            let found = self.splits(of, level, &histograms, (widths, goes_on))?;
            let next = self.next_level(tree, level, &found)?;
            if goes_on {
                self.moved_on(tree, &mut rows, &found)?;
                histograms = self.next_histograms(tree, &rows, &histograms)?;
            }
            levels.push(next);
            splits.push(found);
        }
        self.shown_tree(of, model, (&levels, &splits), shape)
    }

    /// Sums modulo 2^64 as bits less the least of their ranges.
    pub(super) fn bits_of_sums(
        &mut self,
        of: &Tree,
        sums: Vec<Take>,
        rows: u32,
    ) -> Result<Vec<Shared>, PhysicalError> {
        self.matrix_pass(NARROW, rows, |ports| {
            let of_each = sums.into_iter().zip(of.measures());
            let outs = of_each.map(|(take, range)| {
                let sum = number(ports, take, *range);
                Out::Bits(bits_of(ports, &sum, *range))
            });
            Ok(outs.collect())
        })
    }

    /// Sums modulo 2^64 as such modulo 2^128.
    fn widened(
        &mut self,
        of: &Tree,
        sums: &[Shared],
        rows: u32,
    ) -> Result<Vec<Shared>, PhysicalError> {
        let bits = self.bits_of_sums(of, takes(sums).collect(), rows)?;
        self.matrix_pass(WIDE, rows, |ports| {
            let wide = lifted_sums(ports, of, &bits);
            Ok(outs(&wide).collect())
        })
    }

    /// The children of nodes: of each the first, then the second.
    fn next_level(
        &mut self,
        of: &Tree,
        level: &Level,
        splits: &Splits,
    ) -> Result<Level, PhysicalError> {
        let nodes = level.open.rows();
        let rest = self.matrix_pass(WIDE, nodes, |ports| {
            let totals = integers(ports, &level.totals, of.measures());
            let left = integers(ports, &splits.left, of.measures());
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let rest = of.rest(&mut arithmetic(&mut on), &totals, &left);
            Ok(outs(&rest.map_err(wrong)?).collect())
        })?;
        let mut by_turns = |even: Shared, odd: Shared| {
            let take = Take::Turns {
                even: even.column(),
                odd: odd.column(),
            };
            self.b.make(take, 2 * nodes, even.sharing())
        };
        let totals = splits.left.iter().zip(&rest);
        Ok(Level {
            totals: totals.map(|(left, rest)| by_turns(*left, *rest)).collect(),
            open: by_turns(splits.is_split, splits.is_split),
        })
    }

    /// The nodes of all levels.
    fn shown_tree(
        &mut self,
        of: &TreeFitting,
        model: &Fit,
        (levels, splits): (&[Level], &[Splits]),
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let tree = of.tree();
        let nodes = of.nodes();
        let kind = |at: usize| &shape.fields[at].ty.kind;
        let range = |at: usize| kind(at).range().unwrap_or(Range::point(0));
        let values = self.matrix_pass(WIDE, nodes, |ports| {
            let measures = tree.measures().iter().enumerate();
            let totals = measures.map(|(at, range)| {
                let totals = below_each_other(levels.iter().map(|level| level.totals[at]));
                number(ports, totals, *range)
            });
            let totals: Vec<Int> = totals.collect();
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = arithmetic(&mut on);
            let rows = tree.rows(&mut a, &totals).map_err(wrong)?;
            let above = tree.numerators(&mut a, &totals).map_err(wrong)?;
            let rows_bits = bits_of(ports, &rows, range(3));
            let rows = Word::of_bits(rows_bits.clone(), range(3));
            let mut outs = vec![Out::Bits(rows_bits)];
            for (at, units, fraction) in of.values() {
                let bits = bits_of(ports, &above[at], fraction.above);
                let above = Word::of_bits(bits, fraction.above);
                let (b, aim) = (&mut ports.b, aim_of(nodes));
                let places = (fraction.from, of.places());
                let value = quotient(b, (&above, &rows), places, units, aim);
                let value = value.normal(b, aim);
                if !value.is_empty() {
                    outs.push(Out::Bits(value));
                }
            }
            Ok(outs)
        })?;
        let bit = Sharing::Bits(1);
        let open = below_each_other(levels.iter().map(|level| level.open));
        let open = self.b.make(open, nodes, bit);
        // Behind the nodes that may be split are those of the last level, which are not.
        let is_split = below_each_other(splits.iter().map(|of| of.is_split));
        let is_leaf = self.matrix_pass(NARROW, nodes, |ports| {
            let is_split = ports.bits(is_split.bits(0, 1), 1)[0];
            Ok(vec![Out::Bits(vec![ports.b.not(is_split)])])
        })?[0];
        let mut base = vec![];
        let number = self.numbered(nodes as usize, kind(0).bits().unwrap_or(0))?;
        base.push(some_bits(&shape.fields[0].ty, Some(number), None));
        for which in 0..2 {
            let codes: Option<Vec<Shared>> = splits.iter().map(|of| of.codes[which]).collect();
            let codes = codes.map(|codes| {
                let sharing = codes[0].sharing();
                self.b.make(below_each_other(codes), nodes, sharing)
            });
            base.push(some_bits(&shape.fields[1 + which].ty, codes, Some(is_leaf)));
        }
        let mut values = values.into_iter();
        for field in &shape.fields[3..] {
            let bits = field.ty.kind.bits().unwrap_or(0);
            let column = if bits > 0 { values.next() } else { None };
            base.push(some_bits(&field.ty, column, None));
        }
        let mut rel = relation(&[], nodes as usize, shape, model.min_rows);
        rel.base = base;
        let open = rel.push(some_bits(&Type::of(Kind::Bool), Some(open), None));
        rel.valid.push(open);
        rel.valid
            .push(at_least(rel.fields[3].clone(), model.min_rows.max(1)));
        Ok(rel)
    }
}

/// A column of a relation of these bits, and of whether it is null.
fn some_bits(ty: &Type, bits: Option<Shared>, null: Option<Shared>) -> Base {
    let count = ty.kind.bits().unwrap_or(0);
    let bits = bits.map(|of| Field::new(of, 0, count));
    Base::of_bits(ty.clone(), bits, null.map(|of| Field::new(of, 0, 1)))
}

/// Sums modulo 2^128 of their bits.
fn lifted_sums(ports: &mut Ports, of: &Tree, bits: &[Shared]) -> Vec<Int> {
    let both = bits.iter().zip(of.measures());
    both.map(|(bits, range)| {
        let bits = ports.bits(bits.take().bits(0, range.bits()), range.bits());
        let int = integer_of(&mut ports.b, &bits, range.min());
        Number { int, range: *range }
    })
    .collect()
}
