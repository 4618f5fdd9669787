//! Segmented scans: what a row has from the rows of its segment up to it.
//!
//! Flags say which rows begin a segment. With `(f1, v1) ∘ (f2, v2) = (f1 ∨ f2, f2 ? v2 : v1 ⊙ v2)`, which is associative, row j has the product of rows 0 to j: pairs
//! of rows are combined, the half as many are scanned, and every other row is one combination more (Brent, Kung, "A Regular Layout for Parallel Adders", 1982).
//! Fewer than 2n combinations, 2 ⌈log2 n⌉ passes.

use veil_circuit::generate::{Aim, add, less_than};
use veil_circuit::{Builder as Gates, Per, Wire};
use veil_job::passes::Take;
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::key::done;

/// How two values of a segment become one. Values are unsigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// The first row's.
    First,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The sum, modulo 2 to the number of bits.
    Sum,
    /// Bit by bit, whether one is 1.
    Or,
    /// Bit by bit, whether both are 1.
    And,
}

impl Scan {
    /// v1 ⊙ v2.
    fn combine(self, b: &mut Gates, v1: &[Wire], v2: &[Wire], aim: Aim) -> Vec<Wire> {
        let chosen = match self {
            Scan::First => return v1.to_vec(),
            Scan::Sum => return add(b, v1, v2, aim),
            Scan::Or => return pairs(b, v1, v2, Gates::or),
            Scan::And => return pairs(b, v1, v2, Gates::and),
            Scan::Min => less_than(b, v2, v1, aim),
            Scan::Max => less_than(b, v1, v2, aim),
        };
        chosen_of(b, chosen, v2, v1)
    }
}

fn pairs(
    b: &mut Gates,
    x: &[Wire],
    y: &[Wire],
    gate: fn(&mut Gates, Wire, Wire) -> Wire,
) -> Vec<Wire> {
    x.iter().zip(y).map(|(x, y)| gate(b, *x, *y)).collect()
}

/// Of two words one, by a bit.
fn chosen_of(b: &mut Gates, bit: Wire, yes: &[Wire], no: &[Wire]) -> Vec<Wire> {
    let both = yes.iter().zip(no);
    both.map(|(yes, no)| b.mux(bit, *yes, *no)).collect()
}

/// A column of values, and how it is scanned.
type Scanned = (Scan, Shared);

impl Builder {
    /// Scans columns over segments: `first` is a bit that says where one begins. Rows before the first segment have what comes of values that are zero.
    ///
    /// # Panics
    /// If `first` is no bit, values are not shared bit by bit, or they have not one number of rows.
    pub fn scan(&mut self, first: Shared, values: &[Scanned]) -> Vec<Shared> {
        let rows = first.rows;
        assert!(
            values.iter().all(|(_, value)| value.rows == rows),
            "columns of one relation have one number of rows"
        );
        if rows == 1 || values.is_empty() {
            return values.iter().map(|(_, value)| *value).collect();
        }
        let every_other = |of: &Shared, first| Take::Rows {
            of: vec![of.column],
            first,
            step: 2,
        };
        let both = |of: &Shared| [every_other(of, 0), every_other(of, 1)];
        let takes = both(&first);
        let takes = takes
            .into_iter()
            .chain(values.iter().flat_map(|(_, value)| both(value)));
        let half = self.compute(level(values, true, self.aim()), rows / 2, takes.collect());
        let of_half = values.iter().zip(&half[1..]);
        let of_half: Vec<Scanned> = of_half.map(|((scan, _), half)| (*scan, *half)).collect();
        let odd = self.scan(half[0], &of_half);
        // Row 2j follows what rows 0 to 2j - 1 have given: nothing, at row 0.
        let takes = std::iter::once(every_other(&first, 0));
        let takes = takes.chain(values.iter().zip(&odd).flat_map(|((_, value), odd)| {
            let before = odd.rows_from(-1);
            [before, every_other(value, 0)]
        }));
        let even = self.compute(
            level(values, false, self.aim()),
            rows.div_ceil(2),
            takes.collect(),
        );
        let turns = even.iter().zip(&odd);
        turns
            .map(|(even, odd)| {
                let take = Take::Turns {
                    even: even.column,
                    odd: odd.column,
                };
                self.make(take, rows, even.sharing)
            })
            .collect()
    }
}

impl Builder {
    /// Copies what the last row of each segment has to all of its rows; `first` is a bit that says where one begins.
    ///
    /// # Panics
    /// As [`Builder::scan`].
    pub fn copy_back(&mut self, first: Shared, values: &[Shared]) -> Vec<Shared> {
        let rows = first.rows;
        let backwards = |of: Shared, from: u32| Take::Rows {
            of: vec![of.column],
            first: from.into(),
            step: -1,
        };
        // From the last row to the first a segment begins where the one behind it did.
        let mut b = Gates::new(Ring::Bits);
        let next = b.input("next", 1, Per::Row)[0];
        let last_row = b.input("last row", 1, Per::Row)[0];
        let begins = b.or(next, last_row);
        b.output("begins", &[begins]);
        let takes = vec![backwards(first, rows), Take::Within { first: 0, end: 1 }];
        let begins = self.compute(done(b), rows, takes)[0];
        let turned: Vec<Scanned> = values
            .iter()
            .map(|of| {
                let turned = self.make(backwards(*of, rows - 1), rows, of.sharing);
                (Scan::First, turned)
            })
            .collect();
        let copied = self.scan(begins, &turned);
        let copied = copied.into_iter();
        copied
            .map(|of| self.make(backwards(of, rows - 1), rows, of.sharing))
            .collect()
    }
}

/// The combination of two rows; with their flags, if those go on.
fn level(values: &[Scanned], with_flags: bool, aim: Aim) -> veil_circuit::Circuit {
    let mut b = Gates::new(Ring::Bits);
    let flag = |b: &mut Gates, name: &str| b.input(name, 1, Per::Row)[0];
    let second = if with_flags {
        let (f1, f2) = (flag(&mut b, "first1"), flag(&mut b, "first2"));
        let both = b.or(f1, f2);
        b.output("first", &[both]);
        f2
    } else {
        flag(&mut b, "first2")
    };
    for (k, (scan, value)) in values.iter().enumerate() {
        let Sharing::Bits(bits) = value.sharing else {
            panic!("scans are of values that are shared bit by bit")
        };
        let v1 = b.input(format!("before{k}"), bits, Per::Row);
        let v2 = b.input(format!("value{k}"), bits, Per::Row);
        let together = scan.combine(&mut b, &v1, &v2, aim);
        let out = chosen_of(&mut b, second, &v2, &together);
        b.output(format!("value{k}"), &out);
    }
    done(b)
}
