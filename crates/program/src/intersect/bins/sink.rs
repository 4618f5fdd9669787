//! A recipient's end of an intersection over bins.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use veil_job::{DataError, Sink, Slice};
use veil_relation::{Kind, Value};

use super::source::InBins;
use super::{Bins, Cell};
use crate::intersect::reading::Reading;
use crate::intersect::{CommonKeys, Intersection, Shows};
use crate::publish::Staged;
use crate::query::cell as shown_as;

/// What is opened of the keys that both parties have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfCommon {
    /// How many they are, and sums over them.
    Numbers {
        /// How many; nothing if they are fewer than the job shows.
        size: Option<u64>,
        /// The column of each sum as `table.column`, and the sum as a decimal number; nothing if there are fewer keys than the job shows.
        sums: Vec<(String, Option<String>)>,
    },
    /// Which they are, with columns of the other party.
    Keys(CommonKeys),
}

/// The recipient's keys in bins.
struct Own {
    reading: Arc<Reading>,
    keys: InBins,
    /// The columns of its file that make a key.
    key: Vec<String>,
}

/// Takes what is opened of common keys. Once finished, its file has it, and [`BinSink::found`] the answer.
pub struct BinSink {
    bins: Bins,
    least: u32,
    /// The columns of values, with their kinds: those of sums, or those that are opened.
    cells: Vec<(String, Kind, Cell)>,
    /// The bits of each port.
    widths: Vec<usize>,
    own: Option<Own>,
    taken: Mutex<Vec<Option<Vec<u8>>>>,
    file: Mutex<Option<Staged>>,
    found: OnceLock<OfCommon>,
}

impl fmt::Debug for BinSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BinSink of {} ports", self.widths.len())
    }
}

/// A number of bits, a byte for each.
fn number(bits: &[u8], signed: bool) -> i128 {
    let value: i128 = bits
        .iter()
        .zip(0..)
        .map(|(bit, at)| i128::from(bit & 1) << at)
        .sum();
    let negative = signed && bits.last().is_some_and(|bit| bit & 1 == 1);
    value - i128::from(negative) * (1 << bits.len())
}

impl BinSink {
    /// Of an intersection: with the recipient's own table in a file where keys are named, and a result in `folder`.
    pub(crate) fn new(
        of: &Intersection,
        own: Option<&Path>,
        folder: Option<&Path>,
    ) -> Result<Self, DataError> {
        let bins = of.bins();
        let cells = (0..2).flat_map(|at| {
            let table = &of.tables[at].table;
            let cells = of.values(at).iter().enumerate();
            cells.map(move |(place, cell)| {
                let kind = table.columns[cell.column].ty.kind.clone();
                ((at, place), (of.named(at, cell.column), kind, cell.clone()))
            })
        });
        let cells: Vec<_> = cells.collect();
        let own = match own {
            None => None,
            Some(file) => {
                let [table, _] = of.sides();
                let (at, reading) = of.reading(table.holder, file, &|_, _| {})?;
                Some(Own {
                    keys: InBins::of(&bins, at, reading.keys())?,
                    reading,
                    key: of.key_of(at).to_vec(),
                })
            }
        };
        let widths = match of.opens() {
            Shows::Keys => return Err(DataError::own("keys are opened without bins")),
            Shows::Columns => {
                let (at, other) = (of.own(), 1 - of.own());
                let slots = bins.slots[at] as usize * (1 + bins.widths[other] as usize);
                vec![slots << bins.log]
            }
            Shows::Size | Shows::Sums => {
                let size = super::length(of.most_common()) as usize + 1;
                let sums = cells.iter();
                let sums = sums.map(|((at, place), _)| of.sum_bits(*at, *place) as usize);
                std::iter::once(size).chain(sums).collect()
            }
        };
        let staged = folder.map(|folder| Staged::create(&folder.join(&of.file)));
        Ok(Self {
            bins,
            least: of.least,
            cells: cells.into_iter().map(|(_, cell)| cell).collect(),
            taken: Mutex::new(vec![None; widths.len()]),
            widths,
            own,
            file: Mutex::new(staged.transpose()?),
            found: OnceLock::new(),
        })
    }

    /// The answer, once finished.
    pub fn found(&self) -> Option<&OfCommon> {
        self.found.get()
    }

    /// The number and the sums that were opened.
    fn numbers(&self, values: &[Vec<u8>]) -> OfCommon {
        let size = number(&values[0], false) as u64;
        // Fewer than the job shows are opened as none.
        let shown = self.least < 2 || size > 0;
        let sums = self.cells.iter().zip(&values[1..]).map(|(cell, bits)| {
            let (name, kind, cell) = cell;
            let sum = Value::Number(number(bits, cell.signed()));
            (name.clone(), shown.then(|| shown_as(kind, sum)))
        });
        OfCommon::Numbers {
            size: shown.then_some(size),
            sums: sums.collect(),
        }
    }

    /// The keys that were opened, with the other party's values.
    fn keys(&self, own: &Own, slots: &[u8]) -> Result<CommonKeys, DataError> {
        let count = own.reading.count();
        let mut found: Vec<Option<&[u8]>> = vec![None; count];
        let values: usize = self
            .cells
            .iter()
            .map(|(_, _, cell)| cell.width() as usize)
            .sum();
        let of_bin = slots.len() >> self.bins.log;
        let mut first = 0;
        for (bin, end) in slots.chunks_exact(of_bin).zip(&own.keys.ends) {
            let slots = bin.chunks_exact(1 + values);
            for (number, slot) in own.keys.order[first..*end].iter().zip(slots) {
                found[*number as usize] = (slot[0] & 1 == 1).then(|| &slot[1..]);
            }
            first = *end;
        }
        let (mut keys, mut number) = (Vec::new(), 0usize);
        own.reading.each(|chunk, row| {
            if let Some(slot) = found[number] {
                let mut texts: Vec<String> = own.reading.texts(chunk, row).collect();
                let mut left = slot;
                for (_, kind, cell) in &self.cells {
                    let (bits, rest) = left.split_at(cell.bits as usize);
                    let missing = cell.flag && rest[0] & 1 == 0;
                    left = &rest[usize::from(cell.flag)..];
                    texts.push(self::text(kind, cell, bits, missing)?);
                }
                keys.push(texts);
            }
            number += 1;
            Ok(())
        })?;
        let values = self.cells.iter().map(|(name, ..)| name.clone());
        Ok(CommonKeys {
            columns: own.key.iter().cloned().chain(values).collect(),
            keys,
            of: count as u64,
        })
    }
}

/// A value as text; an empty one if it is missing.
fn text(kind: &Kind, cell: &Cell, bits: &[u8], missing: bool) -> Result<String, DataError> {
    if missing {
        return Ok(String::new());
    }
    let number = number(bits, cell.signed());
    let value = match kind {
        Kind::Bool => Value::Bool(number != 0),
        _ => Value::Number(number),
    };
    if !kind.holds(&value) {
        return Err(DataError::own(
            "a value beyond its declared range was opened",
        ));
    }
    Ok(shown_as(kind, value))
}

impl OfCommon {
    /// As a table: its columns and its lines.
    fn table(&self) -> CommonKeys {
        match self {
            OfCommon::Keys(keys) => keys.clone(),
            OfCommon::Numbers { size, sums } => {
                let names = sums.iter().map(|(name, _)| name.clone());
                let size = size.map(|size| size.to_string()).unwrap_or_default();
                let sums = sums.iter().map(|(_, sum)| sum.clone().unwrap_or_default());
                CommonKeys {
                    columns: std::iter::once("keys".to_owned()).chain(names).collect(),
                    keys: vec![std::iter::once(size).chain(sums).collect()],
                    of: 1,
                }
            }
        }
    }
}

impl Sink for BinSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let width = *self.widths.get(port).ok_or_else(beyond)?;
        let fits = (slice.block, slice.first, slice.rows) == (0, 0, 1) && values.len() == width;
        if !fits || taken[port].is_some() {
            return Err(beyond());
        }
        taken[port] = Some(values.to_vec());
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let got = taken.iter().flatten().count() as u64;
        let want = taken.len() as u64;
        let all: Option<Vec<Vec<u8>>> = taken.iter().cloned().collect();
        let all = all.ok_or(DataError::Incomplete { got, want })?;
        let found = match &self.own {
            None => self.numbers(&all),
            Some(own) => OfCommon::Keys(self.keys(own, &all[0])?),
        };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(staged) = file.take() {
            found.table().publish(staged)?;
        }
        let _ = self.found.set(found);
        Ok(())
    }
}
