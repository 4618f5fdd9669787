//! An owner's table in memory: a column is a few bytes per row.

use super::{Column, ColumnKind};

/// The cells of one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Cells {
    /// Numbers in units of the scale; 0 where missing.
    Numbers {
        values: Vec<i64>,
        /// A bit per row, allocated with the first missing value.
        missing: Vec<u8>,
    },
    /// 0 where missing, else 1 + the number of the value.
    Codes(Vec<u8>),
}

impl Cells {
    /// No rows yet, and memory for `rows`.
    pub(super) fn with_capacity(column: &Column, rows: usize) -> Self {
        match column.kind {
            ColumnKind::Number { .. } => Self::Numbers {
                values: Vec::with_capacity(rows),
                missing: Vec::new(),
            },
            ColumnKind::Category(_) => Self::Codes(Vec::with_capacity(rows)),
        }
    }

    pub(super) fn push_missing(&mut self) {
        match self {
            Self::Numbers { values, missing } => {
                let row = values.len();
                missing.resize(missing.len().max(row / 8 + 1), 0);
                missing[row / 8] |= 1 << (row % 8);
                values.push(0);
            }
            Self::Codes(codes) => codes.push(0),
        }
    }

    pub(super) fn push_number(&mut self, value: i64) {
        if let Self::Numbers { values, .. } = self {
            values.push(value);
        }
    }

    pub(super) fn push_category(&mut self, value: u8) {
        if let Self::Codes(codes) = self {
            codes.push(value + 1);
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Numbers { values, .. } => values.len(),
            Self::Codes(codes) => codes.len(),
        }
    }

    /// The number in a row, if there is one.
    pub(super) fn number(&self, row: usize) -> Option<i64> {
        match self {
            Self::Numbers { values, missing } => (!is_missing(missing, row)).then(|| values[row]),
            Self::Codes(_) => None,
        }
    }

    /// The category in a row, if there is one.
    pub(super) fn category(&self, row: usize) -> Option<u8> {
        match self {
            Self::Numbers { .. } => None,
            Self::Codes(codes) => codes[row].checked_sub(1),
        }
    }

    /// Whether a row has a value.
    pub(super) fn is_present(&self, row: usize) -> bool {
        match self {
            Self::Numbers { missing, .. } => !is_missing(missing, row),
            Self::Codes(codes) => codes[row] != 0,
        }
    }
}

fn is_missing(missing: &[u8], row: usize) -> bool {
    missing
        .get(row / 8)
        .is_some_and(|byte| byte >> (row % 8) & 1 == 1)
}

/// What one owner holds of one block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Table {
    /// By column of the job; nothing for columns of others.
    pub(super) columns: Vec<Option<Cells>>,
}
