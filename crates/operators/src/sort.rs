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

use veil_job::passes::{ColumnForm, ColumnId, Take};
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::digits;
use crate::key::Key;
use crate::moves::{Opened, grouped};

/// Bits of a digit.
pub const DIGIT: u32 = 2;

/// An order of rows that no party knows: the position of each, shared.
#[derive(Debug)]
pub struct Order {
    pub(crate) positions: ColumnId,
    pub(crate) rows: u32,
}

impl Order {
    /// Rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }
}

impl Builder {
    /// The stable order of rows by a key, ascending.
    pub fn sort(&mut self, key: &Key) -> Order {
        let rows = key.rows();
        let words = key.words().iter();
        let digits = words.flat_map(|&(ref take, bits)| {
            let first = (0..bits).step_by(DIGIT as usize);
            first.map(move |first| (take.clone(), first, DIGIT.min(bits - first)))
        });
        let mut order: Option<ColumnId> = None;
        for (word, first, count) in digits {
            let digit = word.bits(first, count);
            let Some(before) = order else {
                order = Some(self.positions(rows, digit, count));
                continue;
            };
            let form = ColumnForm::of_bits(count).expect("a digit has bits");
            let (opened, moved) = self.open_positions(rows, before, vec![(digit, form)]);
            let again = self.positions(rows, Take::Of(moved[0]).bits(0, count), count);
            let positions = (Take::Of(again), ColumnForm::Ring(Ring::Z32));
            order = Some(self.go_back(rows, &opened, vec![positions])[0]);
        }
        Order {
            positions: order.expect("a key has bits"),
            rows,
        }
    }

    /// The positions of rows by one digit of so many bits, of rows as they are taken.
    fn positions(&mut self, rows: u32, digit: Take, bits: u32) -> ColumnId {
        let indicators = self.compute(digits::indicators(bits), rows, vec![digit]);
        let indicators = indicators.iter().map(|e| e.column);
        self.ranks(rows, indicators)
    }

    /// The columns, in this order.
    ///
    /// # Panics
    /// If there are no columns, or they have other rows than the order.
    pub fn apply(&mut self, order: &Order, columns: &[Shared]) -> Vec<Shared> {
        let rows = crate::moves::rows_of(columns);
        assert_eq!(rows, order.rows, "an order is of its rows");
        let taken = columns.iter().map(|shared| (shared.take(), shared.sharing));
        self.apply_and_keep(order, &taken.collect::<Vec<_>>()).1
    }

    /// What is taken of columns, in this order, with the permutation that brings rows back.
    pub(crate) fn apply_and_keep(
        &mut self,
        order: &Order,
        columns: &[(Take, Sharing)],
    ) -> (Opened, Vec<Shared>) {
        // Positions have four bytes.
        let mut parts = grouped(order.rows, columns, 4).into_iter();
        let forms = |part: &[(Take, Sharing)]| -> Vec<(Take, ColumnForm)> {
            let moved = part.iter();
            moved.map(|(take, of)| (take.clone(), of.form())).collect()
        };
        let beside = parts.next().map(forms).unwrap_or_default();
        let (opened, mut left) = self.open_positions(order.rows, order.positions, beside);
        for part in parts {
            left.extend(self.move_along(order.rows, &opened, forms(part)));
        }
        let moved = columns.iter().zip(left);
        let moved = moved.map(|((_, sharing), column)| Shared {
            column,
            rows: order.rows,
            sharing: *sharing,
        });
        let moved = moved.collect();
        (opened, moved)
    }
}
