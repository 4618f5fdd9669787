//! The best candidate of each node: a tournament, whose rounds are passes over the rows of all nodes and candidates that are left.

use veil_circuit::generate::{OnRing, Rounding};
use veil_job::passes::{Axis, Take};
use veil_numeric::Arithmetic;
use veil_operators::{Shared, Sharing};
use veil_relation::{Split, Tree, TreeFitting};

use super::{Level, below_each_other, lifted_sums, outs};
use crate::exprs::{choose as choose_bits, decoded};
use crate::plan::fit::{
    Int, NARROW, Out, PhysicalError, Planner, WIDE, arithmetic, none, number, wrong,
};

/// The splits of a level's nodes, in a row for each.
pub(super) struct Splits {
    /// What the rows of the first child add up to, modulo 2^128.
    pub(super) left: Vec<Shared>,
    /// Whether there is one.
    pub(super) is_split: Shared,
    /// The codes of feature and cut, as bits; nothing of a column of one code.
    pub(super) codes: [Option<Shared>; 2],
    /// Of each candidate whether it is the chosen one, modulo 2^64.
    pub(super) chosen: Vec<Shared>,
}

/// Candidates of nodes while they are compared: a row for each that is left of each node.
struct Contest {
    above: Shared,
    below: Shared,
    left: Vec<Shared>,
    /// Bits of the candidate's number, from 1 on; 0 is none.
    number: Option<(Shared, u32)>,
}

/// Bits of the numbers of candidates, and of none.
fn number_bits(of: &Tree) -> u32 {
    let places = (of.candidates().len() + 1).next_power_of_two();
    places.trailing_zeros()
}

/// Every row of a column so many times.
fn repeated(of: Shared, times: u32) -> Take {
    let axis = |length, step, count| Axis {
        length,
        first: 0,
        step,
        count,
    };
    Take::View {
        of: vec![of.column()],
        axes: vec![axis(of.rows(), 1, of.rows()), axis(1, 0, times)],
    }
}

/// The first, or the second, of each two rows.
fn every_other(of: Shared, first: i64) -> Take {
    Take::Rows {
        of: vec![of.column()],
        first,
        step: 2,
    }
}

impl Planner<'_> {
    /// The best split of each node of a level, with so many bits of the codes of feature and cut.
    pub(super) fn splits(
        &mut self,
        of: &TreeFitting,
        level: &Level,
        histograms: &[Vec<Shared>],
        (widths, goes_on): ([u32; 2], bool),
    ) -> Result<Splits, PhysicalError> {
        let tree = of.tree();
        let nodes = histograms.len() as u32;
        let bits = number_bits(tree);
        let places = 1 << bits;
        // Row 0 of each node is that of no split, whose sums are 0; so are those of rows behind the candidates.
        let mut sums = Vec::new();
        for measure in 0..tree.measures().len() {
            let of_nodes = histograms.iter().map(|of| {
                let take = Take::Rows {
                    of: vec![of[measure].column()],
                    first: -1,
                    step: 1,
                };
                self.b.make(take, places, Sharing::Ring(NARROW))
            });
            let of_nodes: Vec<Shared> = of_nodes.collect();
            sums.push(below_each_other(of_nodes));
        }
        let sums = self.bits_of_sums(tree, sums, nodes * places)?;
        let scored = self.matrix_pass(WIDE, nodes * places, |ports| {
            let left = lifted_sums(ports, tree, &sums);
            let of_totals = level.totals.iter().zip(tree.measures());
            let totals = of_totals.map(|(of, range)| number(ports, repeated(*of, places), *range));
            let totals: Vec<Int> = totals.collect();
            let open = ports.bits(repeated(level.open, places).bits(0, 1), 1)[0];
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let split = tree.split(&mut arithmetic(&mut on), (&totals, &left), &open);
            let split = split.map_err(wrong)?;
            let scores = [split.above, split.below];
            Ok(outs(&scores).chain(outs(&split.left)).collect())
        })?;
        let mut contest = Contest {
            above: scored[0],
            below: scored[1],
            left: scored[2..].to_vec(),
            number: None,
        };
        for round in 0..bits {
            contest = self.round_of(tree, &contest, (nodes * places) >> (round + 1))?;
        }
        self.chosen(of, contest, nodes, (widths, goes_on))
    }

    /// The better one of each two candidates, of equals the first.
    fn round_of(
        &mut self,
        of: &Tree,
        contest: &Contest,
        rows: u32,
    ) -> Result<Contest, PhysicalError> {
        let width = contest.number.map_or(0, |(_, bits)| bits);
        let [above, below] = of.scores();
        let is_last = width + 1 == number_bits(of);
        let made = self.matrix_pass(WIDE, rows, |ports| {
            let mut sides = Vec::new();
            for side in 0..2 {
                let left = contest.left.iter().zip(of.measures());
                let left = left.map(|(of, range)| number(ports, every_other(*of, side), *range));
                let split = Split {
                    left: left.collect(),
                    above: number(ports, every_other(contest.above, side), above),
                    below: number(ports, every_other(contest.below, side), below),
                };
                let bits = contest.number.map_or(vec![], |(of, bits)| {
                    ports.bits(every_other(of, side).bits(0, bits), bits)
                });
                sides.push((split, bits));
            }
            let [(first, of_first), (second, of_second)] = &sides[..] else {
                return Err(none());
            };
            let mut on = OnRing::new(&mut ports.b, Rounding::Nearest);
            let mut a = Arithmetic(&mut on);
            let better = of.is_better(&mut a, first, second).map_err(wrong)?;
            let mut choose = |one: &Int, other: &Int| a.choose(&better, other, one).map_err(wrong);
            let pairs = first.left.iter().zip(&second.left);
            let mut all = pairs
                .map(|(one, other)| choose(one, other))
                .collect::<Result<Vec<_>, _>>()?;
            if !is_last {
                all.push(choose(&first.above, &second.above)?);
                all.push(choose(&first.below, &second.below)?);
            }
            let mut number = choose_bits(&mut ports.b, better, of_second, of_first);
            number.push(better);
            Ok(outs(&all).chain([Out::Bits(number)]).collect())
        })?;
        let measures = of.measures().len();
        Ok(Contest {
            left: made[..measures].to_vec(),
            // The last round has no more of them, which are not read.
            above: made[if is_last { 0 } else { measures }],
            below: made[if is_last { 0 } else { measures + 1 }],
            number: made.last().map(|of| (*of, width + 1)),
        })
    }

    /// What follows from the numbers of the candidates that were chosen.
    fn chosen(
        &mut self,
        of: &TreeFitting,
        contest: Contest,
        nodes: u32,
        (widths, goes_on): ([u32; 2], bool),
    ) -> Result<Splits, PhysicalError> {
        let (number, bits) = contest.number.ok_or_else(none)?;
        let codes = of.codes();
        let made = self.matrix_pass(NARROW, nodes, |ports| {
            let number = ports.bits(number.take().bits(0, bits), bits);
            let b = &mut ports.b;
            let all = decoded(b, &number);
            let candidates = &all[1..=codes.len()];
            let mut outs = vec![Out::Bits(vec![b.not(all[0])])];
            for (which, width) in widths.into_iter().enumerate() {
                let mut code = Vec::new();
                for bit in 0..width {
                    let some = codes.iter().zip(candidates);
                    let some = some.filter(|(code, _)| code[which] >> bit & 1 == 1);
                    let zero = b.constant_bit(false);
                    code.push(some.fold(zero, |all, (_, one)| b.xor(all, *one)));
                }
                if width > 0 {
                    outs.push(Out::Bits(code));
                }
            }
            if goes_on {
                outs.extend(candidates.iter().map(|one| Out::Integer(b.lift(*one))));
            }
            Ok(outs)
        })?;
        let mut made = made.into_iter();
        let is_split = made.next().ok_or_else(none)?;
        let codes = widths.map(|width| if width > 0 { made.next() } else { None });
        Ok(Splits {
            left: contest.left,
            is_split,
            codes,
            chosen: made.collect(),
        })
    }
}
