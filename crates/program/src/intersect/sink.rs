//! A recipient's end of an intersection: its keys that the other party has too.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use veil_job::{DataError, Sink, Slice};

use super::source::each_key;
use super::{HALVES, Intersection};
use crate::publish::{Staged, publish};
use crate::query::OwnerTable;
use crate::table::Table;

/// The answer of an intersection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommonKeys {
    /// The columns of the recipient's file that make a key.
    pub columns: Vec<String>,
    /// The texts of each key that both have, in the order of the recipient's rows.
    pub keys: Vec<Vec<String>>,
    /// Keys of the recipient.
    pub of: u64,
}

/// Takes which keys both have. Once finished, its file has the texts of these keys, and [`IntersectionSink::common`] the answer.
pub struct IntersectionSink {
    of: OwnerTable,
    table: Table,
    bits: Mutex<Option<Vec<u8>>>,
    file: Mutex<Option<Staged>>,
    common: OnceLock<CommonKeys>,
}

impl fmt::Debug for IntersectionSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntersectionSink of table `{}`", self.of.table.name)
    }
}

impl IntersectionSink {
    /// Of the recipient's own table in a file, with a result in `folder`.
    pub(crate) fn new(
        of: &Intersection,
        own: &Path,
        folder: Option<&Path>,
    ) -> Result<Self, DataError> {
        let [table, _] = of.sides();
        let staged = folder.map(|folder| Staged::create(&folder.join(&of.file)));
        Ok(Self {
            of: table.clone(),
            table: Intersection::open(table, own, true, &|_, _| {})?,
            bits: Mutex::default(),
            file: Mutex::new(staged.transpose()?),
            common: OnceLock::new(),
        })
    }

    /// The answer, once finished.
    pub fn common(&self) -> Option<&CommonKeys> {
        self.common.get()
    }

    /// The keys that both have, of a bit for each key.
    fn of_bits(&self, bits: &[u8]) -> Result<CommonKeys, DataError> {
        let columns = Intersection::columns(&self.of).to_vec();
        let parts = HALVES.len()..HALVES.len() + columns.len();
        let (mut keys, mut number) = (Vec::new(), 0usize);
        each_key(&self.table, |_, chunk, row, _| {
            let byte = bits.get(number / 8).copied();
            let byte = byte.ok_or_else(|| DataError::own("a key was not compared"))?;
            if byte >> (number % 8) & 1 == 1 {
                let texts = parts.clone().map(|part| {
                    let text = chunk.columns[part].text(row);
                    text.unwrap_or_default().to_owned()
                });
                keys.push(texts.collect());
            }
            number += 1;
            Ok(())
        })?;
        Ok(CommonKeys {
            columns,
            keys,
            of: number as u64,
        })
    }
}

impl CommonKeys {
    /// As a CSV file: the columns of the recipient's file.
    fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for key in &self.keys {
            writer.write_record(key)?;
        }
        writer
            .into_inner()
            .map_err(|error| error.into_error().into())
    }
}

impl Sink for IntersectionSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let fits = (port, slice.block, slice.first) == (0, 0, 0)
            && values.len() as u32 == self.of.table.capacity.div_ceil(8);
        let mut bits = self.bits.lock().unwrap_or_else(PoisonError::into_inner);
        if !fits || bits.is_some() {
            return Err(beyond());
        }
        *bits = Some(values.to_vec());
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        let bits = self.bits.lock().unwrap_or_else(PoisonError::into_inner);
        let bits = bits
            .as_ref()
            .ok_or(DataError::Incomplete { got: 0, want: 1 })?;
        let common = self.of_bits(bits)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut staged) = file.take() {
            let text = common.csv().map_err(|error| staged.failed(error.into()))?;
            staged.append(&text)?;
            publish(vec![staged])?;
        }
        let _ = self.common.set(common);
        Ok(())
    }
}

impl Intersection {
    /// The files that a party gets.
    pub fn files(&self, peer: veil_session::Peer) -> Vec<PathBuf> {
        if peer.party() == Some(self.result) {
            vec![self.file.clone()]
        } else {
            Vec::new()
        }
    }
}
