//! Tables in memory: record batches of another program.

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use veil_job::DataError;

use super::{
    Format, Rows, Spec,
    columnar::{Batches, ColumnarRows, Places, guarded},
};

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
