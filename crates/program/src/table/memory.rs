//! Tables in memory: record batches of another program.

use std::path::{Path, PathBuf};
use std::{fmt, sync::Arc};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use veil_job::DataError;

use super::{
    Format, Rows, Spec,
    columnar::{Batches, ColumnarRows, Places, guarded},
    input::Input,
};
use crate::InputError;

/// A table in memory: record batches of one schema, in the order of their rows. Its cells are read and checked as those of a file are.
///
/// Who has the arrays may still write to them: as with a file, a run ends if cells are not what they were when they were checked.
#[derive(Clone)]
pub struct MemoryTable {
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
    /// The first row of each batch, and the number of all rows.
    first: Arc<[u64]>,
}

impl fmt::Debug for MemoryTable {
    /// Without a cell.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryTable of {} rows", self.rows())
    }
}

fn damaged(file: &Path, reason: &str) -> DataError {
    let (file, reason) = (file.to_owned(), reason.to_owned());
    InputError::Damaged { file, reason }.into()
}

/// Where these columns are in a file.
fn projection(file: &Path, schema: &Schema, columns: &[String]) -> Result<Vec<usize>, DataError> {
    let find = |column: &String| {
        let found = schema.index_of(column);
        found.map_err(|_| {
            let found = schema.fields().iter();
            InputError::NoColumn {
                file: file.to_owned(),
                column: column.clone(),
                found: found.map(|field| field.name().clone()).collect(),
            }
            .into()
        })
    };
    columns.iter().map(find).collect()
}

impl MemoryTable {
    /// A table of these batches. Every buffer of theirs is looked at first: lengths, offsets, texts and indices are as Arrow says.
    ///
    /// # Errors
    /// An [`ArrowError`] if a batch has other columns than the schema, or an array is not what its type says.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self, ArrowError> {
        let mut first = vec![0];
        let mut rows = 0;
        for batch in &batches {
            if batch.schema().fields() != schema.fields() {
                let message = "a batch has other columns than the table";
                return Err(ArrowError::SchemaError(message.into()));
            }
            for column in batch.columns() {
                column.to_data().validate_full()?;
            }
            rows += batch.num_rows() as u64;
            first.push(rows);
        }
        Ok(Self {
            schema,
            batches: batches.into(),
            first: first.into(),
        })
    }

    /// The rows of Parquet files that have the same columns, one after the other, in memory: of these columns, or of all.
    ///
    /// # Errors
    /// A [`DataError`] if a file cannot be read, or has other columns than the first.
    pub fn of_parquet(files: &[PathBuf], columns: Option<&[String]>) -> Result<Self, DataError> {
        let (mut schema, mut batches) = (None, Vec::new());
        for file in files {
            let input = Input::open(file)?;
            let builder = guarded(file, || ParquetRecordBatchReaderBuilder::try_new(input))?;
            let projection = match columns {
                Some(columns) => Some(projection(file, builder.schema(), columns)?),
                None => None,
            };
            let mask = match &projection {
                Some(roots) => ProjectionMask::roots(builder.parquet_schema(), roots.clone()),
                None => ProjectionMask::all(),
            };
            let mut reader = guarded(file, || builder.with_projection(mask).build())?;
            let own = reader.schema();
            let wanted = schema.get_or_insert_with(|| Arc::clone(&own));
            if wanted.fields() != own.fields() {
                let reason = "it has other columns than the file before it, or of other types";
                return Err(damaged(file, reason));
            }
            while let Some(batch) = guarded(file, || reader.next().transpose())? {
                batches.push(batch);
            }
        }
        let schema = schema.ok_or_else(|| DataError::own("there is no file to read"))?;
        Self::new(schema, batches).map_err(DataError::own)
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Its batches.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Its rows.
    pub fn rows(&self) -> u64 {
        self.first.last().copied().unwrap_or_default()
    }

    /// Bytes of its arrays.
    pub(super) fn bytes(&self) -> u64 {
        let sizes = self.batches.iter().map(RecordBatch::get_array_memory_size);
        sizes.sum::<usize>() as u64
    }

    /// What reads it.
    pub(super) fn format(&self, spec: &Arc<Spec>) -> Result<Box<dyn Format>, DataError> {
        let places = Places::find(spec, &self.schema)?;
        Ok(Box::new(MemoryFormat {
            spec: Arc::clone(spec),
            table: self.clone(),
            places: Arc::new(places),
        }))
    }
}

/// A table in memory whose columns were found.
#[derive(Debug)]
struct MemoryFormat {
    spec: Arc<Spec>,
    table: MemoryTable,
    places: Arc<Places>,
}

impl Format for MemoryFormat {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn rows(&self) -> Result<Box<dyn Rows>, DataError> {
        let batches = MemoryBatches {
            spec: Arc::clone(&self.spec),
            table: self.table.clone(),
            places: Arc::clone(&self.places),
            next: 0,
        };
        let (bytes, rows) = (self.table.bytes(), self.table.rows());
        let (spec, places) = (&self.spec, &self.places);
        let rows = ColumnarRows::new(spec, places, Box::new(batches), bytes, rows);
        Ok(Box::new(rows))
    }
}

struct MemoryBatches {
    spec: Arc<Spec>,
    table: MemoryTable,
    places: Arc<Places>,
    next: usize,
}

impl Batches for MemoryBatches {
    fn next(&mut self) -> Result<Option<RecordBatch>, DataError> {
        let Some(batch) = self.table.batches.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        let projected = || batch.project(&self.places.projection);
        guarded(&self.spec.file, projected).map(Some)
    }

    fn seek(&mut self, row: u64) -> Result<usize, DataError> {
        let ends = &self.table.first[1..];
        self.next = ends.partition_point(|end| *end <= row);
        Ok((row - self.table.first[self.next].min(row)) as usize)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn numbers(numbers: &[i64]) -> RecordBatch {
        let array: ArrayRef = Arc::new(Int64Array::from(numbers.to_vec()));
        RecordBatch::try_from_iter([("n", array)]).unwrap()
    }

    #[test]
    fn a_batch_of_another_schema_is_refused() {
        let schema = Arc::new(Schema::new(vec![Field::new("m", DataType::Int64, true)]));
        let error = MemoryTable::new(schema, vec![numbers(&[1])]).unwrap_err();
        let message = "Schema error: a batch has other columns than the table";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn nothing_shows_a_cell() {
        let batch = numbers(&[4711]);
        let table = MemoryTable::new(batch.schema(), vec![batch]).unwrap();
        assert_eq!(format!("{table:?}"), "MemoryTable of 1 rows");
    }
}
