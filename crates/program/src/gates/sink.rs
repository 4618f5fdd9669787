//! A recipient's files: written where the values belong, in any order, and published when complete.

use std::{
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use veil_math::{Ring, bits_to_rows};
use veil_session::Peer;

use super::{
    Gates, Length, Output, OutputFormat,
    format::{column_bytes, elements_to_rows, write_hex},
    record_bytes,
};
use crate::publish::{Staged, publish};
use veil_job::{DataError, Sink, Slice};

/// Takes the outputs of one recipient.
#[derive(Debug)]
pub struct FileSink {
    ports: Vec<Option<Port>>,
    ring: Ring,
    rows: u64,
    files: Mutex<Vec<(usize, Staged)>>,
}

#[derive(Debug)]
struct Port {
    width: u32,
    format: OutputFormat,
    /// For positioned writes into the staged file.
    file: std::fs::File,
    path: PathBuf,
    bytes: Option<u64>,
    /// Records of a CSV file, whose lines differ in length.
    records: Mutex<Vec<u8>>,
    taken: AtomicU64,
}

impl FileSink {
    /// Makes the files of `peer` in `folder`. `length` says how long the file of an input is.
    pub(crate) fn create(
        gates: &Gates,
        peer: Peer,
        folder: &Path,
        length: impl Fn(&str) -> Result<u64, DataError>,
    ) -> Result<Self, DataError> {
        let mut files = Vec::new();
        let mut ports = Vec::new();
        for (index, output) in gates.outputs.iter().enumerate() {
            if !output.to.includes(peer) {
                ports.push(None);
                continue;
            }
            let path = folder.join(&output.file);
            let staged = Staged::create(&path)?;
            ports.push(Some(Port::new(output, gates.rows, &staged, path, &length)?));
            files.push((index, staged));
        }
        Ok(Self {
            ports,
            ring: gates.ring,
            rows: gates.rows,
            files: Mutex::new(files),
        })
    }
}

impl Port {
    fn new(
        output: &Output,
        rows: u64,
        staged: &Staged,
        path: PathBuf,
        length: impl Fn(&str) -> Result<u64, DataError>,
    ) -> Result<Self, DataError> {
        let file = staged
            .file()
            .try_clone()
            .map_err(|source| staged.failed(source))?;
        let record = record_bytes(output.width);
        let whole = rows.saturating_mul(record as u64);
        let bytes = match &output.format {
            OutputFormat::Binary(Length::Bytes(bytes)) => Some(*bytes),
            OutputFormat::Binary(Length::Like(input)) => Some(length(input)?.min(whole)),
            OutputFormat::Binary(Length::Whole) | OutputFormat::Hex | OutputFormat::Csv { .. } => {
                None
            }
        };
        Ok(Self {
            width: output.width,
            format: output.format.clone(),
            file,
            path,
            bytes,
            records: Mutex::new(Vec::new()),
            taken: AtomicU64::new(0),
        })
    }

    fn write(&self, first: u64, records: &[u8]) -> Result<(), DataError> {
        let record = record_bytes(self.width);
        let failed = DataError::io("write", &self.path);
        match &self.format {
            OutputFormat::Binary(_) => self
                .file
                .write_all_at(records, first * record as u64)
                .map_err(failed),
            OutputFormat::Hex => {
                let line = 2 * record + 1;
                let mut text = Vec::with_capacity(records.len() / record * line);
                records
                    .chunks_exact(record)
                    .for_each(|record| write_hex(record, &mut text));
                self.file
                    .write_all_at(&text, first * line as u64)
                    .map_err(failed)
            }
            OutputFormat::Csv { .. } => {
                let mut all = self.records.lock().unwrap_or_else(PoisonError::into_inner);
                let start = first as usize * record;
                let end = start + records.len();
                // Grows with what really comes, not with what the job declares.
                if all.len() < end {
                    all.resize(end, 0);
                }
                all[start..end].copy_from_slice(records);
                Ok(())
            }
        }
    }

    /// Writes what only the whole gives.
    fn complete(&self, staged: &mut Staged) -> Result<(), DataError> {
        if let Some(bytes) = self.bytes {
            self.file
                .set_len(bytes)
                .map_err(|source| staged.failed(source))?;
        }
        if let OutputFormat::Csv { column, signed } = &self.format {
            let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            let mut writer = csv::Writer::from_writer(Vec::new());
            let header = writer.write_record([column]);
            let write = |record: &[u8]| {
                let mut value = [0; 16];
                value[..record.len()].copy_from_slice(record);
                let value = u128::from_le_bytes(value);
                let text = if *signed {
                    // Up to the top of 128 bits, and down with the sign.
                    let up = u128::BITS - self.width;
                    (((value << up) as i128) >> up).to_string()
                } else {
                    value.to_string()
                };
                writer.write_record([text])
            };
            let rows = records
                .chunks_exact(record_bytes(self.width))
                .try_for_each(write);
            header
                .and(rows)
                .map_err(|error| staged.failed(error.into()))?;
            let text = writer
                .into_inner()
                .map_err(|error| staged.failed(error.into_error()))?;
            staged.append(&text)?;
        }
        Ok(())
    }
}

impl Sink for FileSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let Slice { block, first, rows } = slice;
        let beyond = || DataError::out_of_reach(port, slice);
        let own = self
            .ports
            .get(port)
            .and_then(Option::as_ref)
            .ok_or_else(beyond)?;
        let inside = first
            .checked_add(rows.into())
            .is_some_and(|end| end <= self.rows);
        let bytes = column_bytes(self.ring, rows, own.width);
        if block != 0 || !inside || values.len() as u64 != bytes {
            return Err(beyond());
        }
        let mut records = vec![0; rows as usize * record_bytes(own.width)];
        let (rows_here, width) = (rows as usize, own.width as usize);
        match self.ring {
            Ring::Bits => bits_to_rows(values, rows_here, width, &mut records),
            ring => elements_to_rows(ring, values, rows_here, &mut records),
        }
        own.write(first, &records)?;
        own.taken.fetch_add(rows.into(), Ordering::Relaxed);
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        let ports = self.ports.iter().flatten();
        let got = ports
            .clone()
            .map(|port| port.taken.load(Ordering::Relaxed))
            .sum();
        let want = self.rows * ports.count() as u64;
        if got != want {
            return Err(DataError::Incomplete { got, want });
        }
        let files = std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
        let mut complete = Vec::new();
        for (index, mut staged) in files {
            if let Some(port) = &self.ports[index] {
                port.complete(&mut staged)?;
            }
            complete.push(staged);
        }
        publish(complete)
    }
}
