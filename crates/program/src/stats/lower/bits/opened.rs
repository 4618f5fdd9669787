//! What is opened of the sums: themselves, means, extremes, and nothing of groups that are too small.

use std::collections::HashMap;

use veil_circuit::{
    Builder, Wire,
    generate::{Aim, any, constant_bits, less_than},
};

use crate::bits::{Word, extended};
use crate::stats::{
    Column, Stats,
    extremes::Extremes,
    lower::{
        Guard, Opening,
        division::Division,
        target::{Shown, Target},
        totals::steps,
    },
    monomial::Monomial,
};

/// What is known of all rows.
pub(super) struct Sums<'a> {
    pub(super) stats: &'a Stats,
    pub(super) opening: &'a Opening,
    pub(super) totals: HashMap<&'a Monomial, &'a [Wire]>,
    /// By extreme and holder, the bits of each group.
    pub(super) extremes: Vec<Vec<Vec<Wire>>>,
}

impl Extremes {
    /// Bits of an extreme.
    pub(in crate::stats) fn bits(&self, columns: &[Column]) -> u32 {
        steps(self.end, &columns[self.of])
    }
}

impl Sums<'_> {
    /// What is opened in a port.
    pub(super) fn open(&self, b: &mut Builder, shown: &Shown) -> Word {
        let guard = shown.guard.as_ref();
        let enough = guard.map(|guard| self.holds(b, guard));
        let word = match &shown.target {
            Target::Sum(sum) => Word {
                bits: self.totals[sum].to_vec(),
                signed: true,
            },
            Target::Mean {
                of,
                decimals,
                sum,
                count,
            } => {
                let rows = self.stats.rows();
                let bits = u64::BITS - rows.leading_zeros();
                let (count, public) = match self.totals.get(count) {
                    Some(count) => (extended(b, count, bits, false), false),
                    None => (constant_bits(b, rows.into(), bits), true),
                };
                let division = Division::new(&self.stats.columns[*of], *decimals, rows);
                let division = division.expect("it was found to fit");
                let quotient = division.quotient(b, self.totals[sum], &count);
                let mean = Word {
                    bits: from_one(b, &quotient),
                    signed: false,
                };
                if enough.is_some() || public {
                    mean
                } else {
                    let some = any(b, &count);
                    mean.masked(b, Some(some))
                }
            }
            Target::Extreme {
                end, of, by, group, ..
            } => {
                let (index, group) = self.opening.extreme(*end, *of, by, group);
                let before = self.opening.extremes[..index].iter();
                let first: usize = before.map(|one| one.holders.len()).sum();
                let count = self.opening.extremes[index].holders.len();
                let holders = &self.extremes[first..first + count];
                let words = holders.iter().map(|groups| groups[group].clone()).collect();
                Word {
                    bits: largest(b, words),
                    signed: false,
                }
            }
        };
        word.masked(b, enough)
    }

    /// Whether the group has enough rows.
    fn holds(&self, b: &mut Builder, guard: &Guard) -> Wire {
        let bits = guard.bits(self.stats.rows());
        // A number of rows is not negative.
        let count = extended(b, self.totals[guard.count()], bits, false);
        let least = constant_bits(b, guard.least().into(), bits);
        let few = less_than(b, &count, &least, Aim::Size);
        b.not(few)
    }
}

/// One more, in a bit more: 0 is free.
fn from_one(b: &mut Builder, word: &[Wire]) -> Vec<Wire> {
    let width = word.len() as u32 + 1;
    let word = extended(b, word, width, false);
    let one = constant_bits(b, 1, width);
    super::plus(b, &word, &one)
}

/// The largest of words of as many bits.
fn largest(b: &mut Builder, words: Vec<Vec<Wire>>) -> Vec<Wire> {
    let largest = words.into_iter().reduce(|x, y| {
        let less = less_than(b, &x, &y, Aim::Size);
        let bits = x.iter().zip(&y);
        bits.map(|(&x, &y)| b.mux(less, y, x)).collect()
    });
    largest.expect("an extreme has a holder")
}
