//! A row of a block: cells as bits, and the products of its cells.

use std::collections::HashMap;

use veil_circuit::{
    Builder, Wire,
    generate::{all, constant_bits, equal},
};

use crate::bits::{Word, product, within};
use crate::stats::{Column, ColumnKind, monomial::Monomial};

/// The bits of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::stats) enum Cell {
    /// A number, in two's complement if it can be negative; where it can be missing, a bit behind it is 1 if it is there.
    Number {
        /// Bits of the number.
        bits: u32,
        /// Whether it can be negative.
        signed: bool,
        /// Whether it can be missing.
        flag: bool,
    },
    /// The number of a category, from 1 on; 0 is none.
    Code {
        /// Bits of the number.
        bits: u32,
    },
}

impl Cell {
    /// Of a column.
    pub(super) fn of(column: &Column) -> Self {
        let length = |value: i64| u64::BITS - (value as u64).leading_zeros();
        match &column.kind {
            ColumnKind::Category(values) => Cell::Code {
                bits: length(values.len() as i64),
            },
            &ColumnKind::Number { min, max, .. } | &ColumnKind::Date { min, max, .. } => {
                let signed = min < 0;
                // Below 0 the complement has the bits of the number.
                let bits = [min, max].map(|end| length(if end < 0 { !end } else { end }));
                let bits = bits[0].max(bits[1]) + u32::from(signed);
                Cell::Number {
                    bits: bits.max(1),
                    signed,
                    flag: column.may_be_missing(),
                }
            }
        }
    }

    /// Bits in all.
    pub(in crate::stats) const fn width(self) -> u32 {
        match self {
            Cell::Number { bits, flag, .. } => bits + flag as u32,
            Cell::Code { bits } => bits,
        }
    }
}

/// The cells of a row, as far as it counts: an owner that supplies a value that the column does not declare supplies none.
#[derive(Default)]
pub(super) struct Row {
    numbers: HashMap<usize, Word>,
    /// Whether a column has a value, of those that may have none.
    valid: HashMap<usize, Wire>,
    members: HashMap<usize, Vec<Wire>>,
    products: HashMap<Vec<usize>, Word>,
}

impl Row {
    /// Takes a cell from its wires. A row that does not count, by `live`, has no value anywhere, or 0 where one must be.
    pub(super) fn take(
        &mut self,
        b: &mut Builder,
        (index, column): (usize, &Column),
        wires: &[Wire],
        live: Option<Wire>,
    ) {
        match Cell::of(column) {
            Cell::Number { bits, signed, flag } => {
                let (value, flags) = wires.split_at(bits as usize);
                let value = Word {
                    bits: value.to_vec(),
                    signed,
                };
                let (least, most) = column.range().unwrap_or_default();
                let fits = within(b, &value, least.into(), most.into());
                let value = if flag {
                    let conditions = flags.iter().copied().chain(fits).chain(live);
                    let conditions: Vec<Wire> = conditions.collect();
                    let valid = all(b, &conditions);
                    self.valid.insert(index, valid);
                    value.masked(b, Some(valid))
                } else {
                    let value = nearest(b, &value, fits, least);
                    value.masked(b, live)
                };
                self.numbers.insert(index, value);
            }
            Cell::Code { bits } => {
                let code: Vec<Wire> = match live {
                    None => wires.to_vec(),
                    Some(live) => wires.iter().map(|&bit| b.and(bit, live)).collect(),
                };
                let member = |value: u128| {
                    let number = constant_bits(b, value + 1, bits);
                    equal(b, &code, &number)
                };
                let count = column.categories().len() as u128;
                let members: Vec<Wire> = (0..count).map(member).collect();
                // At most one of them is 1.
                let any = members
                    .iter()
                    .copied()
                    .reduce(|any, member| b.xor(any, member));
                if let Some(any) = any {
                    self.valid.insert(index, any);
                }
                self.members.insert(index, members);
            }
        }
    }

    /// A product of cells, where all of it has values, else 0.
    pub(super) fn product(&mut self, b: &mut Builder, of: &Monomial) -> Word {
        let cells = of.cells.iter();
        let cells = cells.map(|&(column, value)| self.members[&column][usize::from(value)]);
        let valid = of.explicit().map(|column| self.valid[&column]);
        let conditions: Vec<Wire> = cells.chain(valid).collect();
        let mask = (!conditions.is_empty()).then(|| all(b, &conditions));
        if of.values.is_empty() {
            let one = b.constant_bit(true);
            return Word {
                bits: vec![mask.unwrap_or(one)],
                signed: false,
            };
        }
        self.values(b, &of.values).masked(b, mask)
    }

    fn values(&mut self, b: &mut Builder, columns: &[usize]) -> Word {
        if let [column] = columns {
            return self.numbers[column].clone();
        }
        if let Some(known) = self.products.get(columns) {
            return known.clone();
        }
        // A square, or the product of two, serves longer ones.
        let (first, last) = columns.split_at(columns.len() - 1);
        let (first, last) = (self.values(b, first), self.values(b, last));
        let made = product(b, &first, &last);
        self.products.insert(columns.to_vec(), made.clone());
        made
    }
}

/// A number that fits, and in the place of another one the least that does.
fn nearest(b: &mut Builder, word: &Word, fits: Option<Wire>, least: i64) -> Word {
    let Some(fits) = fits else {
        return word.clone();
    };
    let least = constant_bits(b, i128::from(least) as u128, word.bits.len() as u32);
    let bits = word.bits.iter().zip(least);
    Word {
        bits: bits.map(|(&bit, least)| b.mux(fits, bit, least)).collect(),
        signed: word.signed,
    }
}
