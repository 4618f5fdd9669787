//! Every cell of a table as text, for what is not declared yet.

use std::path::Path;

use veil_job::DataError;

use super::csv;
use super::input::Input;
use crate::InputError;

/// What the type of a column in its file says of its cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Typed {
    /// Nothing: the file is text.
    Any,
    /// Texts.
    Text,
    /// Integers, decimals and binary fractions.
    Number,
    /// Days, and moments.
    Date,
    /// True and false.
    Bool,
    /// No type that tables have.
    Other,
}

/// Takes a table, cell by cell.
pub(crate) trait Visit {
    /// The columns, first of all; and what is between cells, if the file is text.
    fn header(&mut self, columns: Vec<(String, Typed)>, delimiter: Option<u8>);

    /// The cell of a column in the next row; nothing if it is missing.
    fn cell(&mut self, column: usize, text: Option<&str>);

    /// A row is over.
    fn row(&mut self);
}

/// Shows `visit` a file in the format that its name says.
pub(crate) fn file(path: &Path, visit: &mut dyn Visit) -> Result<(), DataError> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let ending = ending.map(str::to_ascii_lowercase);
    match ending.as_deref() {
        #[cfg(feature = "columnar")]
        Some("parquet") => columnar::parquet(path, Input::open(path)?, visit),
        #[cfg(feature = "columnar")]
        Some("arrow" | "feather" | "ipc") => columnar::arrow(path, visit),
        #[cfg(not(feature = "columnar"))]
        Some("parquet" | "arrow" | "feather" | "ipc") => {
            Err(InputError::CsvOnly(path.to_owned()).into())
        }
        None | Some("csv" | "txt" | "tsv" | "tab" | "dat") => {
            csv::scan(path, Input::open(path)?, visit)
        }
        Some(_) => Err(InputError::Format(path.to_owned()).into()),
    }
}

#[cfg(feature = "columnar")]
pub(crate) use columnar::memory;

#[cfg(feature = "columnar")]
mod columnar {
    use std::fs::File;
    use std::path::Path;

    use arrow_array::RecordBatch;
    use arrow_ipc::reader::FileReader;
    use arrow_schema::{DataType, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use veil_job::DataError;

    use super::{Input, Typed, Visit};
    use crate::table::MemoryTable;
    use crate::table::columnar::{guarded, texts};

    fn typed(data_type: &DataType) -> Typed {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                Typed::Text
            }
            DataType::Dictionary(_, values) => match typed(values) {
                Typed::Text => Typed::Text,
                _ => Typed::Other,
            },
            DataType::Boolean => Typed::Bool,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => Typed::Date,
            DataType::Float32
            | DataType::Float64
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => Typed::Number,
            other if other.is_integer() => Typed::Number,
            _ => Typed::Other,
        }
    }

    fn header(schema: &Schema, visit: &mut dyn Visit) -> Vec<Typed> {
        let columns = schema.fields().iter();
        let columns: Vec<_> = columns
            .map(|field| (field.name().clone(), typed(field.data_type())))
            .collect();
        let all = columns.iter().map(|(_, typed)| *typed).collect();
        visit.header(columns, None);
        all
    }

    fn batch(batch: &RecordBatch, typed: &[Typed], visit: &mut dyn Visit) {
        let columns = batch.columns().iter().zip(typed);
        let columns: Vec<_> = columns
            .map(|(array, typed)| match typed {
                Typed::Other => None,
                _ => Some(texts(array)),
            })
            .collect();
        for row in 0..batch.num_rows() {
            for (at, column) in columns.iter().enumerate() {
                if let Some(text) = column {
                    visit.cell(at, text(row).as_deref());
                }
            }
            visit.row();
        }
    }

    pub(super) fn parquet(
        path: &Path,
        input: Input,
        visit: &mut dyn Visit,
    ) -> Result<(), DataError> {
        let builder = guarded(path, || ParquetRecordBatchReaderBuilder::try_new(input))?;
        let typed = header(builder.schema(), visit);
        let mut reader = guarded(path, || builder.build())?;
        while let Some(read) = guarded(path, || reader.next().transpose())? {
            batch(&read, &typed, visit);
        }
        Ok(())
    }

    pub(super) fn arrow(path: &Path, visit: &mut dyn Visit) -> Result<(), DataError> {
        let file = File::open(path).map_err(DataError::io("open", path))?;
        let mut reader = guarded(path, || FileReader::try_new_buffered(file, None))?;
        let typed = header(&reader.schema(), visit);
        while let Some(read) = guarded(path, || reader.next().transpose())? {
            batch(&read, &typed, visit);
        }
        Ok(())
    }

    /// Shows `visit` a table in memory.
    pub(crate) fn memory(table: &MemoryTable, visit: &mut dyn Visit) {
        let typed = header(table.schema(), visit);
        for read in table.batches() {
            batch(read, &typed, visit);
        }
    }
}
