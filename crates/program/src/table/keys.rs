//! Whether a key names one row: a key column in which two rows have the same cell says nothing about the order of these two.
//!
//! Of every cell 64 bits are kept, and of a long table the bits of a part of all cells at a time, in as many readings as there are parts.
//! So memory does not depend on the length of a file. Whether two cells with the same bits are the same is found in one more reading.

use std::{
    collections::HashMap,
    fmt,
    hash::{BuildHasher, RandomState},
};

use super::problems::{Place, Problems, shorten};
use crate::table::CellFault;

/// Cells whose bits are kept at once: 64 MiB.
const AT_ONCE: u64 = 1 << 23;
/// Pairs of equal bits that are looked at: more than an error shows.
const LOOKED_AT: usize = 1 << 10;

/// The keys of a table.
pub(crate) struct Keys {
    /// Two unpredictable hashes: the first finds cells that may be equal, both together tell whether they are.
    hashers: [RandomState; 2],
    parts: u64,
    doing: Doing,
}

/// What a reading is for.
enum Doing {
    /// The hashes of one part of all cells.
    Gather { part: u64, hashes: Vec<u64> },
    /// Where the cells with these hashes are.
    Look {
        hashes: Vec<u64>,
        cells: Vec<(Place, [u64; 2], String)>,
    },
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys in {} parts", self.parts)
    }
}

impl Keys {
    /// Of a table with so many rows.
    pub(crate) fn new(rows: u64) -> Self {
        Self::in_parts(rows.div_ceil(AT_ONCE).max(1))
    }

    fn in_parts(parts: u64) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            parts,
            doing: Doing::Gather {
                part: 0,
                hashes: Vec::new(),
            },
        }
    }

    /// The next cell of the table.
    pub(crate) fn push(&mut self, place: Place, cell: &[u8]) {
        let hash = self.hashers[0].hash_one(cell);
        match &mut self.doing {
            Doing::Gather { part, hashes } => {
                if hash % self.parts == *part {
                    hashes.push(hash);
                }
            }
            Doing::Look { hashes, cells } => {
                if hashes.binary_search(&hash).is_ok() && cells.len() < 4 * LOOKED_AT {
                    let both = [hash, self.hashers[1].hash_one(cell)];
                    cells.push((place, both, shorten(cell)));
                }
            }
        }
    }

    /// After a reading: whether another one is needed.
    pub(crate) fn again(&mut self) -> bool {
        let Doing::Gather { part, hashes } = &mut self.doing else {
            return false;
        };
        hashes.sort_unstable();
        let twice = hashes.windows(2).filter(|two| two[0] == two[1]);
        let mut twice: Vec<u64> = twice.map(|two| two[0]).collect();
        twice.dedup();
        twice.truncate(LOOKED_AT);
        if !twice.is_empty() {
            self.doing = Doing::Look {
                hashes: twice,
                cells: Vec::new(),
            };
            return true;
        }
        *part += 1;
        hashes.clear();
        *part < self.parts
    }

    /// The rows whose key is that of a row before them; `fault` says what is wrong with them.
    pub(crate) fn problems(self, column: &str, fault: impl Fn(Place) -> CellFault) -> Problems {
        let mut problems = Problems::default();
        let mut seen = HashMap::new();
        let Doing::Look { cells, .. } = self.doing else {
            return problems;
        };
        for (place, both, text) in cells {
            let first = *seen.entry(both).or_insert(place);
            if first != place {
                problems.cell(place, column, text.as_bytes(), fault(first));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn found(cells: &[&str], parts: u64) -> String {
        let mut keys = Keys::in_parts(parts);
        loop {
            for (row, cell) in (1..).zip(cells) {
                let line = Some(row + 1);
                keys.push(Place { line, row }, cell.as_bytes());
            }
            if !keys.again() {
                break;
            }
        }
        let same = |first: Place| CellFault::SameKey {
            row: first.row,
            line: first.line,
        };
        let found = keys.problems("id", same).none(Path::new("a.csv"));
        found.map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn rows_of_one_key_are_named_in_whatever_part_they_are() {
        let many: Vec<String> = (0..1000).map(|id| id.to_string()).collect();
        let mut cells: Vec<&str> = many.iter().map(String::as_str).collect();
        for parts in [1, 2, 7] {
            assert_eq!(found(&cells, parts), "");
        }
        cells[999] = "3";
        for parts in [1, 2, 7] {
            let error = found(&cells, parts);
            assert_eq!(
                error,
                "a.csv: line 1001 (row 1000), column `id`: `3` is the key of row 4 (line 5) as well; a key names one row: correct it, or \
                 write `duplicates = \"allowed\"` into `align`"
            );
        }
    }
}
