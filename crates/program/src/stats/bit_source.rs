//! An owner's tables as input of a circuit of bits, between two parties.

use std::ops::Range;

use veil_job::{DataError, Holder, Slice, Source};

use super::{
    Cell, Layout, Opening, Port, Stats, StatsSource, lower::only_holder, monomial::Monomial,
};
use crate::bits::write;
use crate::table::{Cells, Table};

/// The values of one owner: rows of blocks that have several holders, the sums over the owner's own rows, and the extremes that it finds.
pub(crate) struct BitSource {
    tables: StatsSource,
    layout: Layout,
    /// Sums over own rows, and the bits of each.
    sums: Vec<(i128, u32)>,
    /// By port of the layout, extremes of all groups and the bits of each; nothing for other ports.
    extremes: Vec<Option<(Vec<u64>, u32)>>,
    holder: Holder,
}

impl BitSource {
    /// The values of `holder`, whose tables were read and checked.
    ///
    /// # Errors
    /// [`DataError`] if a table cannot be read again.
    pub(crate) fn new(
        stats: &Stats,
        opening: &Opening,
        holder: Holder,
        tables: StatsSource,
    ) -> Result<Self, DataError> {
        let layout = opening
            .layout
            .clone()
            .expect("an opening of a circuit of bits has a layout");
        let mut sums = vec![0; layout.sums.len()];
        for (index, block) in stats.blocks.iter().enumerate() {
            let table = tables.table(index);
            if let Some(table) = table.filter(|_| only_holder(block, opening) == Some(holder)) {
                add_rows(table, &layout.sums, &mut sums)?;
            }
        }
        let bits = layout.sums.iter().map(|(_, bits)| *bits);
        let sums = sums.into_iter().zip(bits).collect();
        let mut supplied = tables.supplied();
        let extremes = layout.ports.iter().map(|port| match *port {
            Port::Extremes { extreme, .. } => {
                let bits = opening.extremes[extreme].bits(&stats.columns);
                Some((supplied.next()?.to_vec(), bits))
            }
            Port::Cells { .. } | Port::Sums { .. } => None,
        });
        let extremes = extremes.collect();
        drop(supplied);
        Ok(Self {
            tables,
            layout,
            sums,
            extremes,
            holder,
        })
    }
}

/// Adds what all rows of a table give.
fn add_rows(table: &Table, sums: &[(Monomial, u32)], into: &mut [i128]) -> Result<(), DataError> {
    let mut at = 0;
    while at < table.rows() {
        let (part, first) = table.at(at)?;
        let cells = |column: usize| {
            let place = table.place(column);
            &part.columns[place.expect("the table was opened with it")]
        };
        for ((sum, _), into) in sums.iter().zip(into.iter_mut()) {
            let values: Vec<&Cells> = sum.values.iter().map(|&column| cells(column)).collect();
            let members: Vec<(&Cells, u16)> = (sum.cells.iter())
                .map(|&(column, value)| (cells(column), value.into()))
                .collect();
            let valid: Vec<&Cells> = sum.valid.iter().map(|&column| cells(column)).collect();
            for row in first..part.rows {
                let counts = members
                    .iter()
                    .all(|(cells, value)| cells.category(row) == Some(*value))
                    && valid.iter().all(|cells| cells.is_present(row));
                if counts {
                    let numbers = values.iter();
                    *into += numbers
                        .map(|cells| i128::from(cells.number(row).unwrap_or(0)))
                        .product::<i128>();
                }
            }
        }
        at += (part.rows - first) as u64;
    }
    Ok(())
}

/// Writes the cell of a row.
fn write_cell(cell: Cell, cells: &Cells, row: usize, into: &mut [u8]) {
    match cell {
        Cell::Number { bits, flag, .. } => {
            let (number, there) = into.split_at_mut(bits as usize);
            write(cells.number(row).unwrap_or(0).into(), number);
            if flag {
                there[0] = cells.is_present(row).into();
            }
        }
        Cell::Code { .. } => {
            let code = cells.category(row).map_or(0, |value| i128::from(value) + 1);
            write(code, into);
        }
    }
}

impl Source for BitSource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let only = Slice {
            block: 0,
            first: 0,
            rows: 1,
        };
        if slice != only {
            return Err(beyond());
        }
        match *self.layout.ports.get(port).ok_or_else(beyond)? {
            Port::Cells {
                block,
                rows,
                cell,
                skipped,
                ..
            } => {
                let table = self.tables.table(block).ok_or_else(beyond)?;
                let cycles = (table.rows() + skipped) / u64::from(rows.max(1));
                let all = cycles * u64::from(rows) * u64::from(cell.width());
                if into.len() as u64 != all {
                    return Err(beyond());
                }
                self.fill_cycles(port, slice, (0..cycles, cycles), into)
            }
            Port::Sums { holder } => {
                let bits: u32 = self.sums.iter().map(|(_, bits)| *bits).sum();
                if holder != self.holder || into.len() != bits as usize {
                    return Err(beyond());
                }
                let mut left = into;
                for &(sum, bits) in &self.sums {
                    let (word, rest) = left.split_at_mut(bits as usize);
                    write(sum, word);
                    left = rest;
                }
                Ok(())
            }
            Port::Extremes { holder, .. } => {
                let found = self.extremes[port]
                    .as_ref()
                    .filter(|_| holder == self.holder);
                let (values, bits) = found.ok_or_else(beyond)?;
                if into.len() != values.len() * *bits as usize {
                    return Err(beyond());
                }
                let words = into.chunks_exact_mut(*bits as usize);
                for (word, &value) in words.zip(values) {
                    write(value.into(), word);
                }
                Ok(())
            }
        }
    }

    fn fill_cycles(
        &self,
        port: usize,
        slice: Slice,
        (cycles, _): (Range<u64>, u64),
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let found = self.layout.ports.get(port).ok_or_else(beyond)?;
        let &Port::Cells {
            block,
            column,
            cell,
            rows,
            skipped,
        } = found
        else {
            return Err(beyond());
        };
        let table = self.tables.table(block).ok_or_else(beyond)?;
        let place = table.place(column).ok_or_else(beyond)?;
        let width = cell.width() as usize;
        let count = cycles.end.saturating_sub(cycles.start) * u64::from(rows);
        if into.len() as u64 != count * width as u64 {
            return Err(beyond());
        }
        let first = cycles.start * u64::from(rows);
        // Rows before the first are none.
        let none = skipped.saturating_sub(first).min(count);
        let (before, mut left) = into.split_at_mut(none as usize * width);
        before.fill(0);
        let mut at = first + none - skipped.min(first + none);
        while !left.is_empty() {
            if at >= table.rows() {
                return Err(beyond());
            }
            let (chunk, here) = table.at(at)?;
            let cells = &chunk.columns[place];
            let count = (chunk.rows - here).min(left.len() / width);
            let (now, rest) = left.split_at_mut(count * width);
            for (row, cell_bits) in (here..).zip(now.chunks_exact_mut(width)) {
                write_cell(cell, cells, row, cell_bits);
            }
            left = rest;
            at += count as u64;
        }
        Ok(())
    }

    fn order(&self, block: u32) -> &[[u8; 32]] {
        let compared = self.layout.compared.filter(|_| block == 0);
        let table = compared.and_then(|block| self.tables.table(block));
        table.map_or(&[], Table::order)
    }
}
