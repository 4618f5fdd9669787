//! An owner's tables as input of the computation.

use std::path::PathBuf;

use veil_math::Ring;

use super::{Opening, Stats, StatsBlock, extremes};
use crate::InputError;
use crate::{
    TableReport, Watch,
    table::{AlignKey, Cells, Count, Order, Reader, Table, Wanted},
};
use veil_job::{DataError, Holder, Slice, Source};

/// The values of one owner: its files were checked against the job, and are read again where values are needed.
#[derive(Debug)]
pub struct StatsSource {
    /// By block of the job; nothing where this owner holds no column.
    tables: Vec<Option<Table>>,
    /// Column of the job behind each of the first ports, and its wires.
    ports: Vec<(usize, u32)>,
    /// Values of the other ports, once for the job; empty where other owners supply them.
    extremes: Vec<Vec<u64>>,
    ring: Ring,
}

/// What an owner brings beside its files.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The owner's name.
    pub(crate) owner: &'a str,
    /// The key under which the order of rows is compared.
    pub(crate) align: Option<&'a AlignKey>,
    /// Is told how far the reading is.
    pub(crate) watch: Watch<'a>,
}

impl StatsSource {
    /// Reads and checks all files of `holder`. `file` says where those of a block are, given its index.
    pub(crate) fn read(
        stats: &Stats,
        opening: &Opening,
        holder: Holder,
        reading: Reading<'_>,
        file: impl Fn(usize) -> Result<PathBuf, DataError>,
    ) -> Result<Self, DataError> {
        // Whatever is missing beside the files is said before a long reading begins.
        for block in &stats.blocks {
            order(block, opening, holder, reading)?;
        }
        let tables: Vec<Option<Table>> = (0..stats.blocks.len())
            .map(|block| table(stats, opening, holder, reading, block, &file))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            extremes: extremes::find(&opening.extremes, stats, holder, &tables)?,
            tables,
            ports: (opening.columns.iter())
                .map(|&column| (column, stats.columns[column].width()))
                .collect(),
            ring: opening.ring,
        })
    }

    /// The table of a block, if it is here.
    pub(super) fn table(&self, block: usize) -> Option<&Table> {
        self.tables.get(block)?.as_ref()
    }

    /// What the owner supplies for each port of extremes: a value for each group, nothing in those of others.
    pub(super) fn supplied(&self) -> impl Iterator<Item = &[u64]> {
        self.extremes.iter().map(Vec::as_slice)
    }

    /// Reports of the checked tables.
    pub fn reports(&self) -> impl Iterator<Item = &TableReport> {
        self.tables.iter().flatten().map(Table::report)
    }
}

/// Reads and checks the file of one block, if `holder` holds a column of it.
pub(crate) fn table(
    stats: &Stats,
    opening: &Opening,
    holder: Holder,
    reading: Reading<'_>,
    index: usize,
    file: impl Fn(usize) -> Result<PathBuf, DataError>,
) -> Result<Option<Table>, DataError> {
    let block = &stats.blocks[index];
    let held = held(block, opening, holder);
    if held.is_empty() {
        return Ok(None);
    }
    let notation = block.notation(holder);
    let readers = held.iter();
    let wanted = Wanted {
        readers: readers
            .map(|&column| Reader::new(column, &stats.columns[column]).written(&notation))
            .collect(),
        kind: "block",
        name: &block.name,
        rows: if block.fewest_rows < block.rows {
            Count::Between(block.fewest_rows, block.rows)
        } else {
            Count::Exact(block.rows)
        },
        padded: true,
        alone: block.holders.iter().all(|other| *other == holder),
        delimiter: block.delimiter(holder),
        order: order(block, opening, holder, reading)?,
    };
    Table::open(&file(index)?, &wanted, reading.watch).map(Some)
}

/// Columns that a holder supplies of a block.
fn held(block: &StatsBlock, opening: &Opening, holder: Holder) -> Vec<usize> {
    let mine = |column: &usize| block.holders[*column] == holder;
    opening.reads().into_iter().filter(mine).collect()
}

/// The key column of a block, if its order is compared and the holder takes part in it.
fn order<'a>(
    block: &'a StatsBlock,
    opening: &Opening,
    holder: Holder,
    reading: Reading<'a>,
) -> Result<Option<Order<'a>>, DataError> {
    let Some(align) = block.pairing.compared() else {
        return Ok(None);
    };
    if held(block, opening, holder).is_empty() {
        return Ok(None);
    }
    let key = reading.align.ok_or_else(|| InputError::NoAlignKey {
        owner: reading.owner.to_owned(),
        block: block.name.clone(),
        column: align.column.clone(),
    })?;
    Ok(Some(Order {
        column: &align.column,
        every: align.every,
        duplicates: align.duplicates,
        key,
    }))
}

impl Source for StatsSource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let Slice { block, first, rows } = slice;
        let beyond = || DataError::out_of_reach(port, slice);
        if let Some(place) = port.checked_sub(self.ports.len()) {
            let values = self.extremes.get(place).ok_or_else(beyond)?;
            let fits = into.len() as u64 == self.ring.bytes(1) * values.len() as u64;
            if values.is_empty() || (block, first, rows) != (0, 0, 1) || !fits {
                return Err(beyond());
            }
            write(self.ring, into, values.iter().map(|&value| value.into()));
            return Ok(());
        }
        let &(column, width) = self.ports.get(port).ok_or_else(beyond)?;
        let table = usize::try_from(block)
            .ok()
            .and_then(|block| self.table(block));
        let table = table.ok_or_else(beyond)?;
        let place = table.place(column).ok_or_else(beyond)?;
        let end = first
            .checked_add(rows.into())
            .filter(|&end| end <= table.rows())
            .ok_or_else(beyond)?;
        let wire = self.ring.bytes(rows.into()) as usize;
        if into.len() != wire * width as usize {
            return Err(beyond());
        }
        let element = self.ring.bytes(1) as usize;
        let mut at = first;
        while at < end {
            let (chunk, here) = table.at(at)?;
            let cells = &chunk.columns[place];
            let count = (cells.len() - here).min((end - at) as usize);
            let start = (at - first) as usize * element;
            let wires = into.chunks_exact_mut(wire);
            for (index, wire) in wires.enumerate() {
                let wire = &mut wire[start..start + count * element];
                pack(self.ring, cells, here, index, wire);
            }
            at += count as u64;
        }
        Ok(())
    }

    fn order(&self, block: u32) -> &[[u8; 32]] {
        let table = usize::try_from(block)
            .ok()
            .and_then(|block| self.table(block));
        table.map_or(&[], Table::order)
    }
}

/// Writes wire `index` of the cells from `first` on, as many as there is room for.
fn pack(ring: Ring, cells: &Cells, first: usize, index: usize, into: &mut [u8]) {
    match cells {
        Cells::Numbers { values, .. } if index == 0 => {
            write(
                ring,
                into,
                values[first..].iter().map(|&value| value.into()),
            );
        }
        Cells::Numbers {
            values, missing, ..
        } if missing.is_empty() => {
            write(ring, into, values[first..].iter().map(|_| 1));
        }
        Cells::Numbers { missing, .. } => {
            write(
                ring,
                into,
                missing[first..].iter().map(|&flag| i128::from(flag == 0)),
            );
        }
        // Tables of statistics have no keys, and no texts.
        Cells::Keys(_) | Cells::Texts(_) => {}
        Cells::Codes(codes) => {
            let member = index as u16 + 1;
            write(
                ring,
                into,
                codes[first..]
                    .iter()
                    .map(|&code| i128::from(code == member)),
            );
        }
    }
}

/// Writes elements, negative numbers in two's complement.
fn write(ring: Ring, into: &mut [u8], values: impl Iterator<Item = i128>) {
    if ring == Ring::Z64 {
        let (elements, _) = into.as_chunks_mut::<8>();
        for (element, value) in elements.iter_mut().zip(values) {
            *element = (value as i64).to_le_bytes();
        }
    } else {
        let bytes = ring.bytes(1) as usize;
        for (element, value) in into.chunks_exact_mut(bytes).zip(values) {
            element.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
}
