//! Radix sort, least significant digit first: every digit by counting, and rows to their positions by permutations that are opened behind shuffles.
//!
//! ```text
//! σ ← positions by digit 0
//! for each further digit:
//!     Π fresh:  σ' ← Π(σ), opened;  the digit's bits move with it
//!     ρ ← positions by the digit, of the bits in the order of σ'
//!     σ ← Π⁻¹(ρ[σ'])
//! apply:  Π fresh;  σ' ← Π(σ), opened;  the columns move with it, and stand in the order of σ'
//! ```
//!
//! What is opened is a uniform permutation, whatever the keys are: Π is one that no party knows, and each Π is used for one opening.
//!
//! From: Hamada, Ikarashi, Chida, Takahashi, "Oblivious Radix Sort", ePrint 2014/121; Chida, Hamada, Ikarashi, Kikuchi, Kiribuchi, Pinkas, "An Efficient
//! Secure Three-Party Sorting Protocol with an Honest Majority", ePrint 2019/695; Asharov et al., "Efficient Secure Three-Party Sorting with Applications to
//! Data Analysis and Heavy Hitters", CCS 2022.

use std::sync::Arc;

use veil_job::passes::{ColumnForm, ColumnId, Take};
use veil_math::Ring;

use crate::builder::{Builder, Opened, Shared, grouped, rows_of, takes};
use crate::digits;

/// Bits of a digit.
pub const DIGIT: u32 = 2;

/// A digit of a key.
const fn digit(of: ColumnId, first: u32, count: u32) -> Take {
    Take::Bits { of, first, count }
}

/// An order of rows that no party knows: the position of each, shared.
#[derive(Debug)]
pub struct Order {
    pub(crate) positions: ColumnId,
    pub(crate) rows: u32,
}

impl Builder {
    /// The stable order of rows by the lowest `bits` bits of a key, ascending.
    ///
    /// # Panics
    /// If there are no bits, or the key is not shared bit by bit or has fewer.
    pub fn sort(&mut self, key: Shared, bits: u32) -> Order {
        assert!(bits > 0, "a key has bits");
        let rows = key.rows;
        let width = |first: u32| DIGIT.min(bits - first);
        let mut order = self.positions(rows, digit(key.column, 0, width(0)));
        let mut first = width(0);
        while first < bits {
            let count = width(first);
            let beside = digit(key.column, first, count);
            let form = ColumnForm::of_bits(count).expect("a digit has bits");
            let (opened, moved) = self.open_positions(rows, order, vec![(beside, form)]);
            let again = self.positions(rows, digit(moved[0], 0, count));
            let positions = (Take::Of(again), ColumnForm::Ring(Ring::Z32));
            order = self.go_back(rows, &opened, vec![positions])[0];
            first += count;
        }
        Order {
            positions: order,
            rows,
        }
    }

    /// The positions of rows by one digit, of rows as they are taken.
    fn positions(&mut self, rows: u32, digit: Take) -> ColumnId {
        let Take::Bits { count, .. } = digit else {
            unreachable!("a digit is bits");
        };
        let first = self.digit_job("indicators", rows, count);
        let indicators = self.rows(&first, vec![digit]);
        let second = self.digit_job("position", rows, count);
        let sums = |of: Option<ColumnId>, row, constant, totals| Take::Sums {
            of,
            row,
            constant,
            totals,
            ring: Ring::Z32,
        };
        let all = i64::from(rows);
        let mut takes: Vec<Take> = indicators.iter().copied().map(Take::Of).collect();
        for (digit, column) in indicators.iter().enumerate() {
            // Rows with a smaller digit are all but those with this one and greater ones.
            let not_before = indicators[digit..].iter().map(|column| (-1, *column));
            takes.push(sums(Some(*column), 0, all, not_before.collect()));
        }
        // Of digit 0 row j has j rows before it, but those that the others count: with what all others begin at.
        let begin = (1..).zip(&indicators).map(|(k, column)| (-k, *column));
        let digits = indicators.len() as i64;
        takes.push(sums(None, 1, digits * all, begin.collect()));
        self.rows(&second, takes)[0]
    }

    fn digit_job(&mut self, which: &'static str, rows: u32, bits: u32) -> Arc<veil_job::JobSpec> {
        if let Some(job) = self.known.get(&(which, rows, bits)) {
            return Arc::clone(job);
        }
        let circuit = match which {
            "indicators" => digits::indicators(bits),
            _ => digits::position(bits),
        };
        let job = Arc::new(self.computed(circuit, rows));
        self.known.insert((which, rows, bits), Arc::clone(&job));
        job
    }

    /// The columns, in this order.
    ///
    /// # Panics
    /// If there are no columns, or they have other rows than the order.
    pub fn apply(&mut self, order: &Order, columns: &[Shared]) -> Vec<Shared> {
        self.apply_and_keep(order, columns).1
    }

    /// The same, with the permutation that brings rows back.
    pub(crate) fn apply_and_keep(
        &mut self,
        order: &Order,
        columns: &[Shared],
    ) -> (Opened, Vec<Shared>) {
        assert_eq!(rows_of(columns), order.rows, "an order is of its rows");
        // Positions have four bytes.
        let mut parts = grouped(order.rows, columns, 4).into_iter();
        let beside = parts.next().map(takes).unwrap_or_default();
        let (opened, mut left) = self.open_positions(order.rows, order.positions, beside);
        for part in parts {
            left.extend(self.move_along(order.rows, &opened, takes(part)));
        }
        let moved = columns
            .iter()
            .zip(left)
            .map(|(moved, column)| Shared { column, ..*moved });
        let moved = moved.collect();
        (opened, moved)
    }
}
