//! How many rows are computed together, where a job or a device asks for another number than the planner's.

use std::fmt;
use std::str::FromStr;

use crate::{UnknownWord, Word};

/// Rows of a chunk, at most: a power of two. A processor is best at chunks that fit its cache, which the planner makes by itself; a GPU wants as many rows
/// as it has threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ChunkRows(u8);

impl ChunkRows {
    /// The largest number that is at most `rows` and at most 2^20; nothing of fewer than 64, which no device is best at.
    pub const fn within(rows: u64) -> Option<Self> {
        match rows.checked_ilog2() {
            None | Some(0..6) => None,
            Some(bits @ 6..20) => Some(ChunkRows(bits as u8)),
            Some(_) => Some(ChunkRows(20)),
        }
    }

    /// The number.
    pub const fn count(self) -> u32 {
        1 << self.0
    }
}

/// The numbers there are: from what a batch of proofs has in the widest layers to what the largest GPU computes at once.
macro_rules! rows {
    ($($bits:literal $rows:literal)*) => {
        impl Word for ChunkRows {
            const FIELD: &'static str = "chunk_rows";
            const OPTION: &'static str = "--chunk-rows";
            const ALL: &'static [Self] = &[$(ChunkRows($bits)),*];

            fn word(self) -> &'static str {
                match self.0 {
                    $($bits => stringify!($rows),)*
                    _ => unreachable!("there are no others"),
                }
            }
        }
    };
}
rows!(6 64 7 128 8 256 9 512 10 1024 11 2048 12 4096 13 8192 14 16384 15 32768 16 65536 17 131072 18 262144 19 524288 20 1048576);

impl FromStr for ChunkRows {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl fmt::Display for ChunkRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_numbers() {
        for rows in ChunkRows::ALL {
            assert_eq!(rows.word(), rows.count().to_string());
            assert_eq!(ChunkRows::within(rows.count().into()), Some(*rows));
            assert_eq!(rows.word().parse(), Ok(*rows));
        }
    }

    /// A wish of a device that is none, and one beyond all memory.
    #[test]
    fn wishes_are_within_bounds() {
        let of = |rows| ChunkRows::within(rows).map(ChunkRows::count);
        assert_eq!([0, 1, 63].map(of), [None; 3]);
        assert_eq!(of(100), Some(64));
        assert_eq!(of(70_000), Some(65_536));
        assert_eq!([1 << 20, 1 << 40, u64::MAX].map(of), [Some(1 << 20); 3]);
    }
}
