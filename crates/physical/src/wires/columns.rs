//! Columns as wires, and what passes take of them.

use std::collections::HashMap;

use veil_circuit::generate::constant_bits;
use veil_circuit::{Builder, Wire};
use veil_job::passes::{Axis, ColumnId, Take};
use veil_math::Ring;

use super::FEW;
use crate::PhysicalError;
use crate::bits::{fits, words};

/// The bits of all rows of a column, one row behind the other.
#[derive(Clone, Debug)]
pub(super) struct Column {
    /// Bits of a row.
    pub(super) bits: usize,
    wires: Vec<Wire>,
}

impl Column {
    /// Of rows of so many bits.
    pub(super) fn of(rows: &[Vec<Wire>], bits: usize) -> Self {
        debug_assert!(rows.iter().all(|row| row.len() == bits));
        Column {
            bits,
            wires: rows.concat(),
        }
    }

    /// Rows.
    pub(super) fn rows(&self) -> usize {
        self.wires.len() / self.bits.max(1)
    }

    /// The bits of a row.
    pub(super) fn row(&self, row: usize) -> &[Wire] {
        &self.wires[row * self.bits..][..self.bits]
    }

    /// All rows, each by itself.
    pub(super) fn all(&self) -> Vec<Vec<Wire>> {
        self.wires
            .chunks(self.bits.max(1))
            .map(<[Wire]>::to_vec)
            .collect()
    }
}

/// The columns that are there.
#[derive(Debug, Default)]
pub(super) struct Columns {
    all: HashMap<ColumnId, Column>,
}

fn lacks() -> PhysicalError {
    PhysicalError::Circuit("a pass takes what no pass before it has left".into())
}

impl Columns {
    /// Leaves a column.
    pub(super) fn leave(&mut self, id: ColumnId, column: Column) {
        self.all.insert(id, column);
    }

    /// A column.
    pub(super) fn column(&self, id: ColumnId) -> Result<&Column, PhysicalError> {
        self.all.get(&id).ok_or_else(lacks)
    }

    /// Forgets columns that no later pass takes.
    pub(super) fn retain(&mut self, keep: impl Fn(ColumnId) -> bool) {
        self.all.retain(|id, _| keep(*id));
    }

    /// What is taken in each of so many rows: so many bits of it, zeros above those that it has.
    pub(super) fn take(
        &self,
        b: &mut Builder,
        take: &Take,
        (rows, bits): (usize, usize),
    ) -> Result<Vec<Vec<Wire>>, PhysicalError> {
        let all = match take {
            Take::Of(of) => {
                let of = self.column(*of)?;
                Self::rows_of(&[of], (0..rows).map(|row| row as i64))
            }
            Take::Rows { of, first, step } => {
                let of = self.columns(of)?;
                let places = (0..rows as i64).map(|row| first + i64::from(*step) * row);
                Self::rows_of(&of, places)
            }
            Take::Turns { even, odd } => {
                let of = [self.column(*even)?, self.column(*odd)?];
                let row = |row: usize| {
                    let of = of[row % 2];
                    if row / 2 < of.rows() {
                        of.row(row / 2).to_vec()
                    } else {
                        Vec::new()
                    }
                };
                (0..rows).map(row).collect()
            }
            Take::View { of, axes } => {
                let of = self.columns(of)?;
                let places: Vec<i64> = (0..rows).map(|row| place(axes, row)).collect();
                Self::rows_of(&of, places.into_iter())
            }
            Take::Public { integers, ring } => {
                let integer = |row: usize| {
                    let integer = integers.get(row).copied().ok_or_else(lacks)?;
                    Ok(ring.reduce(i128::from(integer).cast_unsigned()))
                };
                let integers = (0..rows).map(integer);
                let integers: Vec<u128> = integers.collect::<Result<_, PhysicalError>>()?;
                let constant = |of: &u128| constant_bits(b, *of, ring.bits());
                integers.iter().map(constant).collect()
            }
            Take::Bits { of, first, count } => {
                let (first, count) = (*first as usize, *count as usize);
                let words = self.take(b, of, (rows, first + count))?;
                words.iter().map(|word| word[first..].to_vec()).collect()
            }
            Take::Within { first, end } => (0..rows as u32)
                .map(|row| vec![b.constant_bit((*first..*end).contains(&row))])
                .collect(),
            Take::Numbered { of, bits: number } => {
                let above = bits.saturating_sub(*number as usize);
                let words = match of {
                    Some(of) => self.take(b, of, (rows, above))?,
                    None => vec![vec![]; rows],
                };
                let numbered = |(row, word): (usize, Vec<Wire>)| {
                    let mut all = constant_bits(b, row as u128, *number);
                    all.extend(word);
                    all
                };
                words.into_iter().enumerate().map(numbered).collect()
            }
            Take::Sums {
                of,
                row,
                constant,
                totals,
                ring,
            } => self.sums(b, (*of, totals, *ring), (*row, *constant), rows, bits)?,
            Take::Compared { .. } => return Err(lacks()),
        };
        let all = all.iter().map(|word| words::extended(b, word, bits));
        Ok(all.collect())
    }

    fn columns(&self, of: &[ColumnId]) -> Result<Vec<&Column>, PhysicalError> {
        of.iter().map(|of| self.column(*of)).collect()
    }

    /// Rows of columns that stand one behind the other; zeros where there are none.
    fn rows_of(of: &[&Column], places: impl Iterator<Item = i64>) -> Vec<Vec<Wire>> {
        let row = |place: i64| {
            let mut place = usize::try_from(place).ok()?;
            for of in of {
                if place < of.rows() {
                    return Some(of.row(place));
                }
                place -= of.rows();
            }
            None
        };
        // What has fewer bits than are taken has zeros above them, and a row that there is not has no bits.
        places
            .map(|place| row(place).map_or_else(Vec::new, <[Wire]>::to_vec))
            .collect()
    }

    /// [`Take::Sums`], of which so many bits are read.
    fn sums(
        &self,
        b: &mut Builder,
        (of, totals, ring): (Option<ColumnId>, &[(i64, ColumnId)], Ring),
        (row, constant): (i64, i64),
        rows: usize,
        bits: usize,
    ) -> Result<Vec<Vec<Wire>>, PhysicalError> {
        let bits = bits.min(ring.bits() as usize);
        let read = |b: &mut Builder, column: &Column| -> Vec<Vec<Wire>> {
            let rows = 0..column.rows();
            rows.map(|row| words::extended(b, column.row(row), bits))
                .collect()
        };
        let mut base = words::zeros(b, bits);
        for (factor, total) in totals {
            let all = read(b, self.column(*total)?);
            let all = words::sum_of(b, &all, bits, FEW);
            let factor = i128::from(*factor).cast_unsigned();
            let all = words::times_constant(b, &all, factor, FEW);
            base = words::plus(b, &base, &all, FEW);
        }
        let before = of.map(|of| self.column(of)).transpose()?;
        let mut running = words::Running::new(b, bits);
        let mut all = Vec::with_capacity(rows);
        for at in 0..rows {
            let number = i128::from(row) * at as i128 + i128::from(constant);
            let mut sum = words::plus_constant(b, &base, number.cast_unsigned(), FEW);
            if let Some(before) = before {
                sum = words::plus(b, &sum, running.sum(), FEW);
                if at < before.rows() {
                    running.add(b, before.row(at), FEW);
                }
            }
            all.push(sum);
            fits(b)?;
        }
        Ok(all)
    }
}

/// The place of a row of a view in its columns, or one that there is not.
fn place(axes: &[Axis], row: usize) -> i64 {
    let (mut left, mut stride, mut place) = (row as i64, 1, 0);
    for axis in axes.iter().rev() {
        let (length, count) = (i64::from(axis.length), i64::from(axis.count.max(1)));
        let at = i64::from(axis.first) + i64::from(axis.step) * (left % count);
        if !(0..length).contains(&at) {
            return -1;
        }
        place += stride * at;
        (left, stride) = (left / count, stride * length);
    }
    place
}
