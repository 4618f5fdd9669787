//! Parquet files.

use std::{
    fmt,
    io::{self, BufReader, Read},
    sync::Arc,
};

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::{
    ProjectionMask,
    arrow_reader::{
        ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
        ParquetRecordBatchReaderBuilder,
    },
};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::{
    Format, Rows, Spec,
    columnar::{Batches, ColumnarRows, Places, guarded},
    input::Input,
};
use crate::InputError;
use veil_job::DataError;

/// Rows that are decoded at a time, whatever the row groups of the file: a page of each column and these are in memory.
const BATCH: usize = 4096;
const MAGIC: &[u8; 4] = b"PAR1";

/// A Parquet file whose schema was read.
pub(super) struct ParquetFile {
    spec: Arc<Spec>,
    input: Input,
    metadata: ArrowReaderMetadata,
    places: Arc<Places>,
}

impl ParquetFile {
    pub(super) fn open(spec: &Arc<Spec>, input: Input) -> Result<Self, DataError> {
        let mut head = [0; 8];
        let got = (input.read_at(&mut head, 0)).map_err(DataError::io("read", &spec.file))?;
        if !head[..got].starts_with(MAGIC) {
            let (looks, advice) = match &head {
                [b'P', b'A', b'R', b'E', ..] => ("an encrypted Parquet file", "decrypt it first"),
                [b'A', b'R', b'R', b'O', b'W', b'1', ..] => {
                    ("an Arrow file", "rename it to end with .arrow")
                }
                _ => (
                    "something else",
                    "write it as Parquet, or give it the ending of what it is",
                ),
            };
            return Err(InputError::Magic {
                file: spec.file.clone(),
                looks,
                wanted: "Parquet",
                advice,
            }
            .into());
        }
        let options = ArrowReaderOptions::new();
        let metadata = guarded(&spec.file, || ArrowReaderMetadata::load(&input, options))?;
        let places = Arc::new(Places::find(spec, metadata.schema())?);
        Ok(Self {
            spec: Arc::clone(spec),
            input,
            metadata,
            places,
        })
    }

    fn row_count(&self) -> u64 {
        let groups = self.metadata.metadata().row_groups().iter();
        groups
            .map(|group| u64::try_from(group.num_rows()).unwrap_or(0))
            .sum()
    }
}

impl Format for ParquetFile {
    fn name(&self) -> &'static str {
        "Parquet"
    }

    fn rows(&self) -> Result<Box<dyn Rows>, DataError> {
        let mut batches = ParquetBatches {
            spec: Arc::clone(&self.spec),
            input: self.input.clone(),
            metadata: self.metadata.clone(),
            projection: self.places.projection.clone(),
            reader: None,
        };
        batches.seek(0)?;
        Ok(Box::new(ColumnarRows::new(
            &self.spec,
            &self.places,
            Box::new(batches),
            self.input.length(),
            self.row_count(),
        )))
    }
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParquetFile {}", self.spec.file.display())
    }
}

struct ParquetBatches {
    spec: Arc<Spec>,
    input: Input,
    metadata: ArrowReaderMetadata,
    projection: Vec<usize>,
    reader: Option<ParquetRecordBatchReader>,
}

impl Batches for ParquetBatches {
    fn next(&mut self) -> Result<Option<RecordBatch>, DataError> {
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        guarded(&self.spec.file, || reader.next().transpose())
    }

    fn seek(&mut self, row: u64) -> Result<usize, DataError> {
        // Whole row groups are left out without looking at them, and pages of one by their headers.
        let mut before = 0u64;
        let groups = self.metadata.metadata().row_groups().iter();
        let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        let skipped = rows
            .take_while(|rows| match before.checked_add(*rows) {
                Some(end) if end <= row => {
                    before = end;
                    true
                }
                _ => false,
            })
            .count();
        let all = self.metadata.metadata().num_row_groups();
        self.reader = Some(guarded(&self.spec.file, || {
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
                self.input.clone(),
                self.metadata.clone(),
            );
            let mask =
                ProjectionMask::roots(builder.parquet_schema(), self.projection.iter().copied());
            builder
                .with_projection(mask)
                .with_batch_size(BATCH)
                .with_row_groups((skipped..all).collect())
                .with_offset((row - before) as usize)
                .build()
        })?);
        Ok(0)
    }
}

/// Reads an [`Input`] from its own place: readers do not move each other, unlike clones of a `File`.
#[derive(Clone, Debug)]
pub(crate) struct InputReader {
    input: Input,
    at: u64,
}

impl Read for InputReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read_at(into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.length()
    }
}

impl ChunkReader for Input {
    type T = BufReader<InputReader>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(InputReader {
            input: self.clone(),
            at: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // The length comes from the file: what it does not have is not allocated.
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.length())
        {
            return Err(ParquetError::EOF(
                "a page lies beyond the end of the file".into(),
            ));
        }
        let mut bytes = vec![0; length];
        let got = self.read_at(&mut bytes, start)?;
        if got < length {
            return Err(ParquetError::EOF("the file became shorter".into()));
        }
        Ok(bytes.into())
    }
}
