//! Sorts: by comparisons that are opened behind a shuffle, and, of keys of few bits, by counting.
//!
//! ```text
//! by comparisons:
//!     Π fresh:  the words of the key move, each row with its number below them, so that no two are equal
//!     rows are compared in batches, and which is the smaller is opened: σ' of the rows that have moved
//! by digits, the least significant first:
//!     σ ← positions by digit 0
//!     for each further digit:
//!         Π fresh:  σ' ← Π(σ), opened;  the digit's bits move with it
//!         ρ ← positions by the digit, of the bits in the order of σ'
//!         σ ← Π⁻¹(ρ[σ'])
//!     Π fresh:  σ' ← Π(σ), opened
//! then columns move by Π, and are put in the order of σ'
//! ```
//!
//! Digits are counted in integers: where parties move none ([`moves_integers`](veil_job::Security::moves_integers)), every sort is by comparisons.
//!
//! Between two parties rows are sorted by a network instead, which opens nothing: programs for them have one pass of comparisons for each sort.
//!
//! What is opened is a uniform permutation, whatever the keys are: Π is one that no party knows, and each Π is used for one opening. Both sorts are stable.
//!
//! From: Hamada, Kikuchi, Ikarashi, Chida, Takahashi, "Practically Efficient Multi-party Sorting Protocols from Comparison Sort Algorithms", ICISC 2012;
//! Hamada, Ikarashi, Chida, Takahashi, "Oblivious Radix Sort", ePrint 2014/121; Chida, Hamada, Ikarashi, Kikuchi, Kiribuchi, Pinkas, "An Efficient
//! Secure Three-Party Sorting Protocol with an Honest Majority", ePrint 2019/695; Asharov et al., "Efficient Secure Three-Party Sorting with Applications to
//! Data Analysis and Heavy Hitters", CCS 2022.

use std::sync::Arc;

use veil_circuit::generate::precedes;
use veil_job::passes::{
    ColumnForm, ColumnId, MoveKind, PassSpec, Take, comparisons_at_once, passes_of_comparisons,
};
use veil_job::{Audience, Holder};
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::digits;
use crate::key::Key;
use crate::moves::{Opened, grouped};

/// Bits of a digit.
pub const DIGIT: u32 = 2;

/// Bits of keys that are sorted by digits, at most: of a million rows, six digits take three parties about as many CPU-seconds as comparisons do, and a
/// quarter of the rounds.
const BY_DIGITS: u32 = 12;

/// An order of rows that no party knows.
#[derive(Debug)]
pub struct Order {
    by: By,
    rows: u32,
}

#[derive(Debug)]
enum By {
    /// The position of each row, shared.
    Digits(ColumnId),
    /// The position of each row behind a shuffle, opened; and the words of the key in this order.
    Comparisons { opened: Opened, words: Vec<Sorted> },
}

/// A word of a key, in order.
#[derive(Debug)]
struct Sorted {
    /// What it was taken of.
    take: Take,
    bits: u32,
    /// The column, and the lowest bit in it.
    column: ColumnId,
    low: u32,
}

impl Order {
    /// Rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }
}

/// What is known of the order in which rows come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arranged {
    /// Nothing.
    Anyhow,
    /// Rows that take part come in the order of their key.
    ByKey,
    /// The same, and rows that take no part come last.
    Fully,
}

impl Builder {
    /// The columns in the stable order of a key as of [`Key`], ascending: rows that come in it already do not move, and those among which others take no part
    /// move by one bit.
    ///
    /// # Panics
    /// As [`Key::of`], and as [`Builder::apply`].
    pub fn in_order(
        &mut self,
        key: &[Shared],
        arranged: Arranged,
        columns: &[Shared],
    ) -> Vec<Shared> {
        let key = match arranged {
            Arranged::Anyhow => Key::of(key),
            Arranged::ByKey => Key::absent(key),
            Arranged::Fully => return columns.to_vec(),
        };
        let order = self.sort(&key);
        self.apply(&order, columns)
    }

    /// The stable order of rows by a key, ascending.
    pub fn sort(&mut self, key: &Key) -> Order {
        let bits: u32 = key.words().iter().map(|(_, bits)| bits).sum();
        let by = if bits <= BY_DIGITS && self.participants().security.moves_integers() {
            By::Digits(self.by_digits(key))
        } else {
            self.by_comparisons(key)
        };
        let rows = key.rows();
        Order { by, rows }
    }

    /// Moves the words of a key with the numbers of rows, and compares rows until all positions are opened.
    fn by_comparisons(&mut self, key: &Key) -> By {
        let rows = key.rows();
        let number = (rows - 1).max(1).ilog2() + 1;
        let (mut takes, mut widths, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let numbered = |of: Option<Take>, width: u32| {
            let of = of.map(Box::new);
            let take = Take::Numbered { of, bits: number };
            let form = ColumnForm::of_bits(width).expect("a word has 1 to 128 bits");
            (take, form)
        };
        for (take, bits) in key.words() {
            let (mut low, mut width) = (0, *bits);
            let word = take.clone().bits(0, *bits);
            let form = ColumnForm::of_bits(*bits).expect("a word has 1 to 128 bits");
            let mut moved = (word, form);
            if takes.is_empty() && bits + number <= u128::BITS {
                (low, width) = (number, bits + number);
                moved = numbered(Some(moved.0), width);
            } else if takes.is_empty() {
                takes.push(numbered(None, number));
                widths.push(number);
            }
            words.push((take.clone(), *bits, takes.len(), low));
            takes.push(moved);
            widths.push(width);
        }
        let (rotation, factors) = (self.rotation(), self.column());
        let by = (rotation, MoveKind::There, Some(factors), None);
        let of = self.moved(rows, by, takes);
        let job = self.comparing(&widths, comparisons_at_once(rows));
        let positions = self.column();
        // A network is one pass.
        let last = if self.is_garbled() {
            1
        } else {
            passes_of_comparisons(rows)
        };
        for pass in 1..=last {
            self.passes.push(PassSpec::Compare {
                job: Arc::clone(&job),
                rows,
                of: of.clone(),
                factors,
                positions: (pass == last).then_some(positions),
            });
        }
        let words = words.into_iter().map(|(take, bits, at, low)| Sorted {
            take,
            bits,
            column: of[at],
            low,
        });
        By::Comparisons {
            words: words.collect(),
            opened: Opened {
                positions,
                factors,
                rotation,
            },
        }
    }

    /// The job of comparisons of words of so many bits.
    fn comparing(&mut self, widths: &[u32], rows: u32) -> Arc<veil_job::JobSpec> {
        if let Some(known) = self.comparing.get(&(widths.to_vec(), rows)) {
            return Arc::clone(known);
        }
        let circuit = precedes(widths);
        let holders = vec![Holder::Column; circuit.inputs.len()];
        let mut job = self.job(circuit, rows, holders, vec![Audience::Parties]);
        job.opened =
            vec!["which of two rows comes first, where no party knows which rows they are".into()];
        let job = Arc::new(job);
        let key = (widths.to_vec(), rows);
        self.comparing.insert(key, Arc::clone(&job));
        job
    }

    /// The position of each row by a key, digit by digit.
    fn by_digits(&mut self, key: &Key) -> ColumnId {
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
        order.expect("a key has bits")
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
        let rows = order.rows;
        let forms = |part: &[(Take, Sharing)]| -> Vec<(Take, ColumnForm)> {
            let moved = part.iter();
            moved.map(|(take, of)| (take.clone(), of.form())).collect()
        };
        let shared = |column, sharing| Shared {
            column,
            rows,
            sharing,
        };
        match &order.by {
            By::Digits(positions) => {
                // Positions have four bytes.
                let mut parts = grouped(rows, columns, 4).into_iter();
                let beside = parts.next().map(forms).unwrap_or_default();
                let (opened, mut left) = self.open_positions(rows, *positions, beside);
                for part in parts {
                    left.extend(self.move_along(rows, &opened, forms(part)));
                }
                let moved = columns.iter().zip(left);
                let moved = moved.map(|((_, sharing), column)| shared(column, *sharing));
                (opened, moved.collect())
            }
            By::Comparisons { opened, words } => {
                // Words of the key are in order already.
                let sorted = |(take, sharing): &(Take, Sharing)| {
                    let same =
                        |word: &&Sorted| word.take == *take && Sharing::Bits(word.bits) == *sharing;
                    words.iter().find(same)
                };
                let others = columns.iter().filter(|column| sorted(column).is_none());
                let others: Vec<_> = others.cloned().collect();
                let mut left = Vec::new();
                for part in grouped(rows, &others, 0) {
                    left.extend(self.move_along(rows, opened, forms(part)));
                }
                let mut left = left.into_iter();
                let all = columns.iter().map(|column| match sorted(column) {
                    Some(word) => {
                        let bits = Take::Of(word.column).bits(word.low, word.bits);
                        self.make(bits, rows, column.1)
                    }
                    None => shared(left.next().expect("a column for each"), column.1),
                });
                let all = all.collect();
                (*opened, all)
            }
        }
    }
}
