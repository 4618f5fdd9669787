//! Sorting networks: rows are put in order by comparisons of fixed pairs of places, so that nothing need be opened.
//!
//! The pairs are those of Batcher's merge exchange, for any number of rows (Batcher, "Sorting Networks and Their Applications", 1968; Knuth, "The Art of Computer Programming", volume 3, 5.2.2,
//! algorithm M): for n rows about n/4 · log² n.

use veil_circuit::generate::{Aim, exchange, less_than};
use veil_circuit::{Builder, Wire};

/// The pairs of places, in order; the smaller row goes to the first place.
pub(super) fn pairs(rows: usize) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    if rows < 2 {
        return all;
    }
    let half = rows.next_power_of_two() / 2;
    let mut p = half;
    while p > 0 {
        let (mut q, mut r, mut d) = (half, 0, p);
        loop {
            let firsts = (0..rows - d).filter(|at| at & p == r);
            all.extend(firsts.map(|at| (at, at + d)));
            if q == p {
                break;
            }
            (d, q, r) = (q - p, q / 2, p);
        }
        p /= 2;
    }
    all
}

/// No more than there are pairs, for any number of rows.
pub(super) fn least_pairs(rows: u64) -> u64 {
    let log = u64::from(rows.max(1).ilog2());
    rows.saturating_mul(log * log.saturating_sub(1)) / 4
}

/// How rows have moved: of each pair of places whether the rows there have changed places.
pub(super) struct Swaps {
    rows: usize,
    bits: Vec<Wire>,
}

impl Swaps {
    /// Puts rows in the order of their words, bit 0 first, no two of which are equal.
    pub(super) fn sort(b: &mut Builder, rows: &mut [Vec<Wire>]) -> Self {
        let pairs = pairs(rows.len());
        let mut bits = Vec::with_capacity(pairs.len());
        for (first, second) in pairs {
            let bit = less_than(b, &rows[second], &rows[first], Aim::Size);
            exchange(b, rows, (first, second), bit);
            bits.push(bit);
        }
        Swaps {
            rows: rows.len(),
            bits,
        }
    }

    /// Rows that they are of.
    pub(super) const fn rows(&self) -> usize {
        self.rows
    }

    /// Moves other rows along.
    pub(super) fn along(&self, b: &mut Builder, rows: &mut [Vec<Wire>]) {
        for (pair, bit) in pairs(self.rows).into_iter().zip(&self.bits) {
            exchange(b, rows, pair, *bit);
        }
    }

    /// Moves rows back to where they came from.
    pub(super) fn back(&self, b: &mut Builder, rows: &mut [Vec<Wire>]) {
        let pairs = pairs(self.rows);
        for (pair, bit) in pairs.into_iter().zip(&self.bits).rev() {
            exchange(b, rows, pair, *bit);
        }
    }
}

#[cfg(test)]
mod tests {
    use veil_circuit::Per;
    use veil_math::Ring;

    use super::*;

    /// By the principle of zeros and ones a network that sorts all rows of bits sorts all rows.
    #[test]
    fn pairs_sort_all_rows_of_bits() {
        for rows in 0..=14usize {
            let pairs = pairs(rows);
            assert!(
                pairs
                    .iter()
                    .all(|(first, second)| first < second && *second < rows)
            );
            for word in 0..1u32 << rows {
                let mut bits: Vec<u32> = (0..rows).map(|row| word >> row & 1).collect();
                for (first, second) in &pairs {
                    if bits[*second] < bits[*first] {
                        bits.swap(*first, *second);
                    }
                }
                assert!(bits.is_sorted(), "{word:b} of {rows}");
            }
        }
        assert_eq!(pairs(1024).len(), 24_063);
        for rows in [0, 1, 2, 5, 64, 100, 1000, 1024, 1025, 3000] {
            let (least, all) = (least_pairs(rows as u64), pairs(rows).len() as u64);
            assert!(
                least <= all && all <= 2 * least + 2 * rows as u64,
                "{rows}: {least}, {all}"
            );
        }
    }

    #[test]
    fn rows_go_along_and_back() {
        const ROWS: usize = 23;
        let mut b = Builder::new(Ring::Bits);
        let mut rows: Vec<Vec<Wire>> = (0..ROWS)
            .map(|row| b.input(format!("key{row}"), 6, Per::Row))
            .collect();
        let mut others: Vec<Vec<Wire>> = (0..ROWS)
            .map(|row| b.input(format!("other{row}"), 5, Per::Row))
            .collect();
        let swaps = Swaps::sort(&mut b, &mut rows);
        assert_eq!(swaps.rows(), ROWS);
        swaps.along(&mut b, &mut others);
        b.output("sorted", &rows.concat());
        b.output("along", &others.concat());
        swaps.back(&mut b, &mut others);
        b.output("back", &others.concat());
        let circuit = b.finish().unwrap();
        let keys: Vec<u128> = (0..ROWS as u128).map(|row| row * 29 % 61).collect();
        let bits = |number: &u128, count: u32| -> Vec<u128> {
            (0..count).map(|bit| number >> bit & 1).collect()
        };
        let all = (0..ROWS as u128).collect::<Vec<u128>>();
        let inputs: Vec<Vec<u128>> = keys
            .iter()
            .map(|key| bits(key, 6))
            .chain(all.iter().map(|row| bits(row, 5)))
            .collect();
        let found = circuit.evaluate(&inputs).unwrap();
        let words = |port: usize, width: usize| -> Vec<u128> {
            let words = found[port].chunks(width);
            words
                .map(|bits| bits.iter().zip(0..).map(|(bit, at)| bit << at).sum())
                .collect()
        };
        let mut sorted: Vec<(u128, u128)> = keys.iter().copied().zip(all.clone()).collect();
        sorted.sort_unstable();
        let (of_keys, of_rows): (Vec<u128>, Vec<u128>) = sorted.into_iter().unzip();
        assert_eq!(words(0, 6), of_keys);
        assert_eq!(words(1, 5), of_rows);
        assert_eq!(words(2, 5), all);
    }
}
