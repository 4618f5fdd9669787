//! A recipient's end of an intersection: its keys that the other party has too.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use veil_job::{DataError, Sink, Slice};
use veil_session::Peer;

use super::Intersection;
use super::reading::Reading;
use crate::publish::{Staged, publish};

/// Keys that both parties have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommonKeys {
    /// The columns of the recipient's file that make a key, and behind them the other party's columns, as `table.column`, if these are opened.
    pub columns: Vec<String>,
    /// The texts of each key that both have, in the order of the recipient's rows, with the values of the other party's columns.
    pub keys: Vec<Vec<String>>,
    /// Keys of the recipient.
    pub of: u64,
}

/// Takes which keys both have. Once finished, its file has the texts of these keys, and [`IntersectionSink::common`] the answer.
pub struct IntersectionSink {
    columns: Vec<String>,
    keys: u64,
    reading: Arc<Reading>,
    bits: Mutex<Option<Vec<u8>>>,
    file: Mutex<Option<Staged>>,
    common: OnceLock<CommonKeys>,
}

impl fmt::Debug for IntersectionSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntersectionSink of {} keys", self.keys)
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
        let (at, reading) = of.reading(table.holder, own, &|_, _| {})?;
        Ok(Self {
            columns: of.key_of(at).to_vec(),
            keys: of.keys()[at],
            reading,
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
        let (mut keys, mut number) = (Vec::new(), 0usize);
        self.reading.each(|chunk, row| {
            let byte = bits.get(number / 8).copied();
            let byte = byte.ok_or_else(|| DataError::own("a key was not compared"))?;
            if byte >> (number % 8) & 1 == 1 {
                keys.push(self.reading.texts(chunk, row).collect());
            }
            number += 1;
            Ok(())
        })?;
        Ok(CommonKeys {
            columns: self.columns.clone(),
            keys,
            of: number as u64,
        })
    }
}

impl CommonKeys {
    /// As a CSV file: the columns, and a line for each key.
    pub(super) fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for key in &self.keys {
            writer.write_record(key)?;
        }
        writer
            .into_inner()
            .map_err(|error| error.into_error().into())
    }

    /// Writes it to a file that has its name then.
    pub(super) fn publish(&self, mut file: Staged) -> Result<(), DataError> {
        let text = self.csv().map_err(|error| file.failed(error.into()))?;
        file.append(&text)?;
        publish(vec![file])
    }
}

impl Sink for IntersectionSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let fits = (port, slice.block, slice.first) == (0, 0, 0)
            && values.len() as u64 == self.keys.div_ceil(8);
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
        if let Some(staged) = file.take() {
            common.publish(staged)?;
        }
        let _ = self.common.set(common);
        Ok(())
    }
}

impl Intersection {
    /// The files that a party or recipient gets.
    pub fn files(&self, peer: Peer) -> Vec<std::path::PathBuf> {
        if self.to.includes(peer) {
            vec![self.file.clone()]
        } else {
            Vec::new()
        }
    }
}
