//! A workspace of the reference device: packed bytes, read and written element by element.

use std::collections::BTreeSet;

use veil_math::Ring;
use veil_session::Frame;

use crate::layout::{ColumnType, Layout, Span};

/// A workspace: packed bytes `[component][column][row]` per region.
pub(super) struct Memory {
    pub(super) layout: Layout,
    pub(super) frame: Frame,
    pub(super) regions: Vec<Vec<u8>>,
    /// Columns of correlations that were taken: region, component and number.
    pub(super) spent: BTreeSet<(u16, u8, u32)>,
}

impl Memory {
    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let region = &self.layout.regions[span.region as usize];
        let column = region.column.bytes(self.frame.rows) as usize;
        let start =
            (span.component as usize * region.count as usize + span.first as usize) * column;
        start..start + span.count as usize * column
    }

    pub(super) fn bytes(&self, span: Span) -> &[u8] {
        &self.regions[span.region as usize][self.range(span)]
    }

    pub(super) fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        let range = self.range(span);
        &mut self.regions[span.region as usize][range]
    }

    pub(super) fn column(&self, span: Span) -> ColumnType {
        self.layout.regions[span.region as usize].column
    }

    /// Elements of a column: for bits whole bytes, so that padding bits of messages are defined too.
    pub(super) fn cells(&self, region: u16) -> usize {
        match self.layout.regions[region as usize].column {
            ColumnType::Rows(Ring::Bits) => self.frame.rows.div_ceil(8) as usize * 8,
            ColumnType::Rows(_)
            | ColumnType::Labels
            | ColumnType::Halves
            | ColumnType::Words(_) => self.frame.rows as usize,
            ColumnType::One(Ring::Bits) => 8,
            ColumnType::One(_) | ColumnType::Label => 1,
            ColumnType::Bytes(n) => n as usize,
        }
    }

    pub(super) fn get(&self, span: Span, ring: Ring, cell: usize) -> u128 {
        element(ring, self.bytes(Span { count: 1, ..span }), cell)
    }

    pub(super) fn set(&mut self, span: Span, ring: Ring, cell: usize, value: u128) {
        let bytes = self.bytes_mut(Span { count: 1, ..span });
        match ring {
            Ring::Bits => {
                let bit = 1 << (cell % 8);
                bytes[cell / 8] = if value & 1 == 1 {
                    bytes[cell / 8] | bit
                } else {
                    bytes[cell / 8] & !bit
                };
            }
            Ring::Z32 => bytes[cell * 4..][..4].copy_from_slice(&(value as u32).to_le_bytes()),
            Ring::Z64 => bytes[cell * 8..][..8].copy_from_slice(&(value as u64).to_le_bytes()),
            Ring::Z128 => bytes[cell * 16..][..16].copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// Element `cell` of a packed column.
pub(super) fn element(ring: Ring, bytes: &[u8], cell: usize) -> u128 {
    match ring {
        Ring::Bits => u128::from(bytes[cell / 8] >> (cell % 8) & 1),
        Ring::Z32 => u32::from_le_bytes(bytes[cell * 4..][..4].try_into().expect("4 bytes")).into(),
        Ring::Z64 => u64::from_le_bytes(bytes[cell * 8..][..8].try_into().expect("8 bytes")).into(),
        Ring::Z128 => u128::from_le_bytes(bytes[cell * 16..][..16].try_into().expect("16 bytes")),
    }
}
