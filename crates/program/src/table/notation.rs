//! How an owner's file writes numbers, dates and missing values, where it differs from what columns say.

use crate::stats::Marks;

/// How one file writes its cells: each field holds for all columns of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Notation {
    /// Marks of numbers.
    pub(crate) marks: Option<Marks>,
    /// The format of dates.
    pub(crate) dates: Option<String>,
    /// Words for a missing value.
    pub(crate) missing: Vec<String>,
    /// Whether numbers with more digits than a column keeps are rounded, halves away from zero.
    pub(crate) round: bool,
}

impl Notation {
    /// What it makes of values, in words behind a column's type: rounding, and words that are read as a missing value. Participants agree on these; marks and formats of dates say only how
    /// one value is written, and are the owner's own.
    pub(crate) fn makes(&self) -> String {
        let rounded = if self.round { ", rounded" } else { "" };
        let missing = match self.missing.as_slice() {
            [] => String::new(),
            words => format!(", {words:?} read as missing"),
        };
        format!("{rounded}{missing}")
    }

    /// Whether a text stands for a missing value.
    #[inline]
    pub(super) fn is_missing(&self, text: &[u8]) -> bool {
        text.is_empty() || self.missing.iter().any(|word| word.as_bytes() == text)
    }
}
