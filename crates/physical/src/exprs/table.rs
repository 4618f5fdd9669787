//! Public tables applied to an index on wires.

use std::collections::{HashMap, HashSet};

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Wire};

/// Most bits of an index: tables are looked at as a whole.
pub(crate) const MOST_INDEX: u32 = 16;

/// How a table is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// A decision for each bit of the index from the highest, one for equal parts of the table or of two results.
    Decisions,
    /// The index is split above its lowest bits; each result is a sum of products of a function of the upper and one of the lower, as few as
    /// there are.
    Ranks(usize),
    /// As before, but products of a value of the upper and of "the lower are at least c" where the table changes at c: results share them.
    Changes(usize),
}

/// A table as its results, bit by bit.
struct Table {
    /// Bits of the index.
    len: usize,
    /// For each bit of the results, its value for each index.
    results: Vec<Vec<bool>>,
}

/// The bits of `rows[index]`, of `len` bits; an index behind the last may have any result.
///
/// The way is the one with the fewest ANDs; decisions, which take as many rounds as the index has bits, only if they are fewer than two thirds of
/// the others' or size is the aim.
pub(crate) fn look_up(
    b: &mut Builder,
    index: &[Wire],
    rows: &[u128],
    len: u32,
    aim: Aim,
) -> Vec<Wire> {
    let table = Table::new(index.len(), rows, len);
    match table.best(aim).0 {
        Way::Decisions => table.decide(b, index),
        Way::Ranks(low) => table.ranks(b, index, low),
        Way::Changes(low) => table.changes(b, index, low),
    }
}

/// ANDs that [`look_up`] takes at most.
pub(crate) fn cost(index: usize, rows: &[u128], len: u32, aim: Aim) -> usize {
    Table::new(index, rows, len).best(aim).1
}

impl Table {
    fn new(len: usize, rows: &[u128], width: u32) -> Self {
        let last = rows.last().copied().unwrap_or(0);
        let row = |at: usize| rows.get(at).copied().unwrap_or(last);
        let result = |bit: u32| (0..1 << len).map(|at| row(at) >> bit & 1 == 1).collect();
        Self {
            len,
            results: (0..width).map(result).collect(),
        }
    }

    /// The best way and its ANDs.
    fn best(&self, aim: Aim) -> (Way, usize) {
        let decisions = self.decisions();
        let middle = self.len / 2;
        let splits = middle.saturating_sub(2)..=(middle + 2).min(self.len);
        let ways = splits.flat_map(|low| {
            let products = monomials(low) + monomials(self.len - low);
            [
                (Way::Ranks(low), products + self.rank(low)),
                (Way::Changes(low), products + self.all_changes(low).len()),
            ]
        });
        let split = ways.min_by_key(|(_, ands)| *ands);
        match split {
            Some((way, ands)) if ands <= decisions => (way, ands),
            Some((way, ands)) if aim == Aim::Depth && 2 * ands <= 3 * decisions => (way, ands),
            _ => (Way::Decisions, decisions),
        }
    }

    /// Choices of the decision diagram: different parts whose halves are neither equal nor opposite.
    fn decisions(&self) -> usize {
        let mut seen: HashSet<Vec<bool>> = HashSet::new();
        let mut open: Vec<Vec<bool>> = self.results.clone();
        let mut count = 0;
        while let Some(part) = open.pop() {
            let part = standing(&part).1;
            if part.len() == 1 || !seen.insert(part.clone()) {
                continue;
            }
            let (low, high) = part.split_at(part.len() / 2);
            if low == high || opposite(low, high) {
                open.push(low.to_vec());
                continue;
            }
            count += 1;
            open.extend([low.to_vec(), high.to_vec()]);
        }
        count
    }

    fn decide(&self, b: &mut Builder, index: &[Wire]) -> Vec<Wire> {
        let mut known = HashMap::new();
        let results = self.results.iter();
        results
            .map(|part| decision(b, index, part, &mut known))
            .collect()
    }

    /// For each bit of the results, pairs of functions of the upper and the lower part of the index whose products add up to it.
    fn factors(&self, low: usize) -> Vec<Vec<(Vec<bool>, Vec<bool>)>> {
        let of = |result: &Vec<bool>| factors(result.chunks(1 << low));
        self.results.iter().map(of).collect()
    }

    fn rank(&self, low: usize) -> usize {
        let all = self.factors(low).into_iter().flatten();
        let costly = all.filter(|(upper, lower)| !constant(upper) && !constant(lower));
        costly.count()
    }

    fn ranks(&self, b: &mut Builder, index: &[Wire], low: usize) -> Vec<Wire> {
        let lower = Functions::new(b, &index[..low]);
        let upper = Functions::new(b, &index[low..]);
        let mut bits = Vec::new();
        for pairs in self.factors(low) {
            let mut sum = b.constant_bit(false);
            for (of_upper, of_lower) in pairs {
                let (x, y) = (upper.of(b, of_upper), lower.of(b, of_lower));
                let product = b.and(x, y);
                sum = b.xor(sum, product);
            }
            bits.push(sum);
        }
        bits
    }

    /// The places where some result changes, but for those where the lower part begins again: upper part and lower.
    fn all_changes(&self, low: usize) -> Vec<(usize, usize)> {
        let changes = |at: &usize| {
            !at.is_multiple_of(1 << low)
                && self.results.iter().any(|bits| bits[*at] != bits[*at - 1])
        };
        let places = (1..1 << self.len).filter(changes);
        places.map(|at| (at >> low, at % (1 << low))).collect()
    }

    fn changes(&self, b: &mut Builder, index: &[Wire], low: usize) -> Vec<Wire> {
        let lower = Functions::new(b, &index[..low]);
        let upper = Functions::new(b, &index[low..]);
        // What results are where the lower part is 0.
        let mut bits: Vec<Wire> = Vec::new();
        for result in &self.results {
            let first = result.iter().step_by(1 << low).copied().collect();
            bits.push(upper.of(b, first));
        }
        let mut thresholds = HashMap::new();
        let mut values = HashMap::new();
        for (high, from) in self.all_changes(low) {
            let at_least = *thresholds
                .entry(from)
                .or_insert_with(|| lower.of(b, (0..1 << low).map(|at| at >= from).collect()));
            let there = *values.entry(high).or_insert_with(|| {
                let all = 0..1 << (self.len - low);
                upper.of(b, all.map(|at| at == high).collect())
            });
            let changed = b.and(there, at_least);
            let at = (high << low) + from;
            for (bit, result) in bits.iter_mut().zip(&self.results) {
                if result[at] != result[at - 1] {
                    *bit = b.xor(*bit, changed);
                }
            }
        }
        bits
    }
}

/// ANDs of all products of `len` bits.
const fn monomials(len: usize) -> usize {
    (1 << len) - len - 1
}

fn constant(values: &[bool]) -> bool {
    values.iter().all(|value| *value == values[0])
}

fn opposite(low: &[bool], high: &[bool]) -> bool {
    low.iter().zip(high).all(|(low, high)| low != high)
}

/// Whether the first value is 1, and the values, or their opposites if it is: two parts that are opposite stand for one.
fn standing(part: &[bool]) -> (bool, Vec<bool>) {
    let flip = part[0];
    (flip, part.iter().map(|value| *value != flip).collect())
}

fn decision(
    b: &mut Builder,
    index: &[Wire],
    part: &[bool],
    known: &mut HashMap<Vec<bool>, Wire>,
) -> Wire {
    let (flip, part) = standing(part);
    let found = known.get(&part).copied();
    let wire = if part.len() == 1 {
        b.constant_bit(false)
    } else if let Some(wire) = found {
        wire
    } else {
        let (low, high) = part.split_at(part.len() / 2);
        let (top, rest) = match index.split_last() {
            Some((top, rest)) => (*top, rest),
            None => (b.constant_bit(false), index),
        };
        let no = decision(b, rest, low, known);
        let yes = decision(b, rest, high, known);
        let wire = b.mux(top, yes, no);
        known.insert(part, wire);
        wire
    };
    if flip { b.not(wire) } else { wire }
}

/// Pairs of functions whose products add up to a matrix over bits, given by its rows: as many as its rank.
fn factors<'a>(rows: impl Iterator<Item = &'a [bool]>) -> Vec<(Vec<bool>, Vec<bool>)> {
    let rows: Vec<&[bool]> = rows.collect();
    // Each row is a sum of those of the basis; a row of the basis has a place of its own, where all later ones are 0.
    let mut basis: Vec<(usize, Vec<bool>, Vec<bool>)> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let mut left = row.to_vec();
        for (place, of, members) in &mut basis {
            if left[*place] {
                left.iter_mut().zip(of).for_each(|(x, y)| *x ^= *y);
                members[at] = true;
            }
        }
        if let Some(place) = left.iter().position(|value| *value) {
            let mut members = vec![false; rows.len()];
            members[at] = true;
            basis.push((place, left, members));
        }
    }
    let pairs = basis.into_iter();
    pairs.map(|(_, of, members)| (members, of)).collect()
}

/// All functions of a few bits, as sums of their products.
struct Functions {
    /// The product of the bits whose places are set in its place; the first is 1.
    products: Vec<Wire>,
}

impl Functions {
    fn new(b: &mut Builder, bits: &[Wire]) -> Self {
        let mut products = vec![b.constant_bit(true)];
        for set in 1..1_usize << bits.len() {
            // Halves of about equal size, for few rounds.
            let members: Vec<usize> = (0..bits.len()).filter(|j| set >> j & 1 == 1).collect();
            let (half, _) = members.split_at(members.len() / 2);
            let part: usize = half.iter().map(|j| 1 << j).sum();
            products.push(match members[..] {
                [one] => bits[one],
                _ => b.and(products[part], products[set - part]),
            });
        }
        Self { products }
    }

    /// The function with these values: the sum of the products that its transform names.
    fn of(&self, b: &mut Builder, mut values: Vec<bool>) -> Wire {
        let mut sum = b.constant_bit(false);
        let mut step = 1;
        while step < values.len() {
            for at in (0..values.len()).filter(|at| at & step != 0) {
                values[at] ^= values[at - step];
            }
            step *= 2;
        }
        for (&product, _) in self
            .products
            .iter()
            .zip(&values)
            .filter(|(_, value)| **value)
        {
            sum = b.xor(sum, product);
        }
        sum
    }
}
