//! A few thousand rows of an owner's columns in memory.

use std::hash::{BuildHasher, Hasher};

use foldhash::quality::FixedState;

/// The cells of one column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cells {
    /// Numbers in units of the scale, dates in days; 0 where missing.
    Numbers {
        /// One for each row.
        values: Vec<i64>,
        /// A byte per row, 1 where missing; allocated with the first missing value.
        missing: Vec<u8>,
        /// Empty cells that count as 0.
        zeros: u64,
    },
    /// 0 where missing, else 1 + the number of the value.
    Codes(Vec<u16>),
    /// Digests of keys; nothing where missing.
    Keys(Vec<Option<u128>>),
    /// Texts; nothing where missing.
    Texts(Vec<Option<Box<str>>>),
}

impl Cells {
    pub(super) fn numbers() -> Self {
        Self::Numbers {
            values: Vec::new(),
            missing: Vec::new(),
            zeros: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Numbers {
                values,
                missing,
                zeros,
            } => {
                values.clear();
                missing.clear();
                *zeros = 0;
            }
            Self::Codes(codes) => codes.clear(),
            Self::Keys(keys) => keys.clear(),
            Self::Texts(texts) => texts.clear(),
        }
    }

    pub(super) fn push_number(&mut self, value: i64) {
        if let Self::Numbers {
            values, missing, ..
        } = self
        {
            values.push(value);
            if !missing.is_empty() {
                missing.push(0);
            }
        }
    }

    /// An empty cell that counts as 0.
    pub(super) fn push_zero(&mut self) {
        self.push_number(0);
        if let Self::Numbers { zeros, .. } = self {
            *zeros += 1;
        }
    }

    pub(super) fn push_missing(&mut self) {
        match self {
            Self::Numbers {
                values, missing, ..
            } => {
                missing.resize(values.len(), 0);
                missing.push(1);
                values.push(0);
            }
            Self::Codes(codes) => codes.push(0),
            Self::Keys(keys) => keys.push(None),
            Self::Texts(texts) => texts.push(None),
        }
    }

    /// No cells, of the same type.
    pub(crate) const fn none(&self) -> Self {
        match self {
            Self::Numbers { .. } => Self::Numbers {
                values: Vec::new(),
                missing: Vec::new(),
                zeros: 0,
            },
            Self::Codes(_) => Self::Codes(Vec::new()),
            Self::Keys(_) => Self::Keys(Vec::new()),
            Self::Texts(_) => Self::Texts(Vec::new()),
        }
    }

    /// Adds a cell of others of the same type.
    pub(crate) fn push_of(&mut self, other: &Self, row: usize) {
        match (&mut *self, other) {
            (Self::Codes(into), Self::Codes(from)) => into.push(from[row]),
            (Self::Keys(into), Self::Keys(from)) => into.push(from[row]),
            (Self::Texts(into), Self::Texts(from)) => into.push(from[row].clone()),
            (into, from) => match from.number(row) {
                Some(number) => into.push_number(number),
                None => into.push_missing(),
            },
        }
    }

    /// Rows.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Numbers { values, .. } => values.len(),
            Self::Codes(codes) => codes.len(),
            Self::Keys(keys) => keys.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Rows without a value of their own.
    fn missing(&self) -> u64 {
        match self {
            Self::Numbers { missing, zeros, .. } => {
                missing.iter().map(|&flag| u64::from(flag)).sum::<u64>() + zeros
            }
            Self::Codes(codes) => codes.iter().map(|&code| u64::from(code == 0)).sum(),
            Self::Keys(keys) => keys.iter().map(|key| u64::from(key.is_none())).sum(),
            Self::Texts(texts) => texts.iter().map(|text| u64::from(text.is_none())).sum(),
        }
    }

    /// The number in a row, if there is one.
    pub(crate) fn number(&self, row: usize) -> Option<i64> {
        match self {
            Self::Numbers { values, .. } => self.is_present(row).then(|| values[row]),
            Self::Codes(_) | Self::Keys(_) | Self::Texts(_) => None,
        }
    }

    /// The category in a row, if there is one.
    pub(crate) fn category(&self, row: usize) -> Option<u16> {
        match self {
            Self::Codes(codes) => codes[row].checked_sub(1),
            Self::Numbers { .. } | Self::Keys(_) | Self::Texts(_) => None,
        }
    }

    /// The digest in a row, if there is one.
    pub(crate) fn key(&self, row: usize) -> Option<u128> {
        match self {
            Self::Keys(keys) => keys[row],
            Self::Numbers { .. } | Self::Codes(_) | Self::Texts(_) => None,
        }
    }

    /// The text in a row, if there is one.
    pub(crate) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Texts(texts) => texts[row].as_deref(),
            Self::Numbers { .. } | Self::Codes(_) | Self::Keys(_) => None,
        }
    }

    /// Whether a row has a value.
    pub(crate) fn is_present(&self, row: usize) -> bool {
        match self {
            Self::Numbers { missing, .. } => missing.get(row).is_none_or(|&flag| flag == 0),
            Self::Codes(codes) => codes[row] != 0,
            Self::Keys(keys) => keys[row].is_some(),
            Self::Texts(texts) => texts[row].is_some(),
        }
    }

    fn digest(&self, hasher: &mut impl Hasher) {
        match self {
            Self::Numbers {
                values, missing, ..
            } => {
                for &value in values {
                    hasher.write_i64(value);
                }
                // A flag that is not stored is 0.
                let last = missing.iter().rposition(|&flag| flag == 1);
                hasher.write(&missing[..last.map_or(0, |last| last + 1)]);
                hasher.write_usize(values.len());
            }
            Self::Codes(codes) => codes.iter().for_each(|&code| hasher.write_u16(code)),
            Self::Keys(keys) => keys.iter().for_each(|key| {
                // A missing key and the digest 0 differ.
                hasher.write_u8(key.is_some().into());
                hasher.write_u128(key.unwrap_or(0));
            }),
            Self::Texts(texts) => texts.iter().for_each(|text| {
                hasher.write_u8(text.is_some().into());
                let text = text.as_deref().unwrap_or_default();
                hasher.write_usize(text.len());
                hasher.write(text.as_bytes());
            }),
        }
    }
}

/// Consecutive rows of the columns that an owner holds of a block, in the order of the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    pub(crate) columns: Vec<Cells>,
    /// How many: of a table of which no column is read they are all that is known.
    pub(crate) rows: usize,
}

impl Chunk {
    pub(super) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Cells::clear);
        self.rows = 0;
    }

    /// Has so many rows: behind the last of each column come cells without a value.
    pub(super) fn pad(&mut self, rows: usize) {
        for cells in &mut self.columns {
            while cells.len() < rows {
                cells.push_missing();
            }
        }
        self.rows = rows;
    }

    /// Missing values of each column.
    pub(super) fn missing(&self) -> impl Iterator<Item = u64> {
        self.columns.iter().map(Cells::missing)
    }

    /// 64 bits by which a file that changed between two readings is noticed. Not against an adversary: the file is the
    /// reader's own.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = FixedState::with_seed(0).build_hasher();
        for column in &self.columns {
            column.digest(&mut hasher);
        }
        hasher.finish()
    }
}
