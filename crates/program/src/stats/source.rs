//! An owner's tables as input of the computation.

use std::path::PathBuf;

use veil_math::Ring;

use super::{
    Opening, Stats,
    read::{Wanted, read},
    table::{Cells, Table},
};
use crate::{DataError, Holder, Slice, Source};

/// The values of one owner, read from its CSV files and checked against the job.
#[derive(Clone, Debug)]
pub struct StatsSource {
    /// By block of the job; nothing where this owner holds no column.
    pub(super) tables: Vec<Option<Table>>,
    /// Column of the job behind each port, and its wires.
    ports: Vec<(usize, u32)>,
    ring: Ring,
}

impl StatsSource {
    /// Reads all files of `holder`. `file` says where those of a block are, given its index.
    pub(crate) fn read(
        stats: &Stats,
        opening: &Opening,
        holder: Holder,
        file: impl Fn(usize) -> Result<PathBuf, DataError>,
    ) -> Result<Self, DataError> {
        let table = |(index, block): (usize, &super::StatsBlock)| {
            let held: Vec<usize> = opening
                .columns
                .iter()
                .copied()
                .filter(|&column| block.holders[column] == holder)
                .collect();
            if held.is_empty() {
                return Ok(None);
            }
            let wanted = Wanted {
                columns: &stats.columns,
                held: &held,
                block: &block.name,
                rows: block.rows,
            };
            read(&file(index)?, &wanted).map(Some)
        };
        let tables = stats
            .blocks
            .iter()
            .enumerate()
            .map(table)
            .collect::<Result<_, _>>()?;
        Ok(Self::new(stats, opening, tables))
    }

    /// The values of these tables.
    pub(super) fn new(stats: &Stats, opening: &Opening, tables: Vec<Option<Table>>) -> Self {
        let ports = opening
            .columns
            .iter()
            .map(|&column| (column, stats.columns[column].width()))
            .collect();
        Self {
            tables,
            ports,
            ring: opening.ring,
        }
    }

    /// The cells of a port in a block, if they are here.
    fn cells(&self, port: usize, block: u32) -> Option<(&Cells, u32)> {
        let &(column, width) = self.ports.get(port)?;
        let table = self.tables.get(usize::try_from(block).ok()?)?.as_ref()?;
        Some((table.columns[column].as_ref()?, width))
    }
}

impl Source for StatsSource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let Slice { block, first, rows } = slice;
        let beyond = || DataError::OutOfReach {
            port,
            block,
            first,
            rows: rows.into(),
        };
        let (cells, width) = self.cells(port, block).ok_or_else(beyond)?;
        let end = first
            .checked_add(rows.into())
            .filter(|&end| end <= cells.len() as u64)
            .ok_or_else(beyond)?;
        let range = first as usize..end as usize;
        let wire = self.ring.bytes(rows.into()) as usize;
        if into.len() != wire * width as usize {
            return Err(beyond());
        }
        if rows == 0 {
            return Ok(());
        }
        for (index, column) in into.chunks_exact_mut(wire).enumerate() {
            match cells {
                Cells::Numbers { values, .. } if index == 0 => {
                    write(
                        self.ring,
                        column,
                        values[range.clone()].iter().map(|&value| i128::from(value)),
                    );
                }
                Cells::Numbers { .. } => {
                    write(
                        self.ring,
                        column,
                        range.clone().map(|row| cells.is_present(row).into()),
                    );
                }
                Cells::Codes(codes) => {
                    let member = index as u8 + 1;
                    write(
                        self.ring,
                        column,
                        codes[range.clone()]
                            .iter()
                            .map(|&code| (code == member).into()),
                    );
                }
            }
        }
        Ok(())
    }
}

/// Writes elements, negative numbers in two's complement.
fn write(ring: Ring, into: &mut [u8], values: impl Iterator<Item = i128>) {
    let bytes = ring.bytes(1) as usize;
    for (element, value) in into.chunks_exact_mut(bytes).zip(values) {
        element.copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}
