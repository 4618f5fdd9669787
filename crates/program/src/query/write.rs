//! Results as files.

use std::fmt::Write as _;
use std::path::Path;

use veil_job::DataError;
use veil_relation::{Field, Kind, Value};

use super::{Answered, chart, show};
use crate::publish::Staged;

/// A form of a result's file, by the ending of its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing {
    /// A header and a line for each row.
    Csv,
    /// One object.
    Json,
    /// A table for people.
    Text,
    /// A chart, as SVG.
    Chart,
    /// An Arrow IPC file.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Writing {
    /// Those of a query that names no file.
    pub(super) const DEFAULT: [Self; 4] = [Self::Csv, Self::Json, Self::Text, Self::Chart];

    const ALL: [Self; 6] = [
        Self::Csv,
        Self::Json,
        Self::Text,
        Self::Chart,
        Self::Arrow,
        Self::Parquet,
    ];

    /// The ending of its files.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Text => "txt",
            Self::Chart => "svg",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }

    /// The form that the name of a file says.
    ///
    /// # Errors
    /// The endings that there are, in a sentence.
    pub fn of(file: &Path) -> Result<Self, String> {
        let ending = file.extension().and_then(|ending| ending.to_str());
        let mut all = Self::ALL.into_iter();
        let found = all.find(|writing| ending == Some(writing.ending()));
        let found = found.ok_or_else(|| {
            let all = Self::ALL.map(|writing| format!(".{}", writing.ending()));
            format!(
                "a result is written as the ending of its file says: {}",
                all.join(", ")
            )
        })?;
        if cfg!(not(feature = "columnar")) && matches!(found, Self::Arrow | Self::Parquet) {
            return Err("this build writes no columnar files; write .csv, or build with the feature `columnar`".into());
        }
        Ok(found)
    }

    /// Writes a result.
    pub(super) fn write(
        self,
        answer: &Answered,
        (job, recipient): (&str, &str),
        file: &mut Staged,
    ) -> Result<(), DataError> {
        match self {
            Self::Csv => file.append(answer.csv().as_bytes()),
            Self::Json => file.append((answer.json() + "\n").as_bytes()),
            Self::Text => {
                let table = show::table(&answer.fields, &answer.rows, answer.rows.len());
                file.append((answer.heading(job, recipient) + &table).as_bytes())
            }
            Self::Chart => file.append(chart::draw(answer, job).as_bytes()),
            #[cfg(feature = "columnar")]
            Self::Arrow => columnar::arrow(answer, file),
            #[cfg(feature = "columnar")]
            Self::Parquet => columnar::parquet(answer, file),
            #[cfg(not(feature = "columnar"))]
            Self::Arrow | Self::Parquet => {
                Err(DataError::own("this build writes no columnar files"))
            }
        }
    }
}

/// A text as a cell of CSV; an empty text is quoted, so that it is no null.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A text as JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The largest integer that all readers of JSON take as it is: 2^53.
const EXACT: u128 = 1 << 53;

/// A cell as JSON: numbers as numbers where any reader takes them exactly, else as text.
fn cell(kind: &Kind, value: Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number)
            if matches!(kind, Kind::Integer(_)) && number.unsigned_abs() <= EXACT =>
        {
            number.to_string()
        }
        value => text(&show::cell(kind, value)),
    }
}

impl Answered {
    /// A header, and a line for each row: as CSV.
    pub fn csv(&self) -> String {
        let names = self.fields.iter().map(|field| quoted(&field.name));
        let mut out = names.collect::<Vec<_>>().join(",");
        out.push('\n');
        for row in &self.rows {
            let cells = self.fields.iter().zip(row);
            let cells = cells.map(|(field, value)| match value {
                Value::Null => String::new(),
                value => quoted(&show::cell(&field.ty.kind, *value)),
            });
            out += &cells.collect::<Vec<_>>().join(",");
            out.push('\n');
        }
        out
    }

    /// One object: the query, whether it lacks rows if a bound says so, its columns with their types, the rows as lists.
    pub fn json(&self) -> String {
        let column = |field: &Field| {
            let (name, kind) = (text(&field.name), text(&field.ty.kind.to_string()));
            format!("{{\"name\":{name},\"type\":{kind}}}")
        };
        let columns: Vec<String> = self.fields.iter().map(column).collect();
        let row = |row: &Vec<Value>| {
            let cells = self.fields.iter().zip(row);
            let cells: Vec<String> = cells
                .map(|(field, value)| cell(&field.ty.kind, *value))
                .collect();
            format!("[{}]", cells.join(","))
        };
        let rows: Vec<String> = self.rows.iter().map(row).collect();
        let incomplete = self.incomplete.map_or_else(String::new, |incomplete| {
            format!("\"incomplete\":{incomplete},")
        });
        let mut out = String::new();
        let _ = write!(
            out,
            "{{\"query\":{},\"min_count\":{},{incomplete}\"columns\":[{}],\"rows\":[{}]}}",
            text(&self.query),
            self.min_count,
            columns.join(","),
            rows.join(",")
        );
        out
    }
}

#[cfg(feature = "columnar")]
impl Answered {
    /// The relation as arrays, as its Arrow and Parquet files have them.
    ///
    /// # Errors
    /// [`DataError::Own`] if a column fits no array.
    pub fn batch(&self) -> Result<arrow_array::RecordBatch, DataError> {
        columnar::batch(self).map_err(DataError::own)
    }
}

#[cfg(feature = "columnar")]
mod columnar {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int64Array, RecordBatch, StringArray,
    };
    use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema};
    use veil_job::DataError;
    use veil_relation::{Kind, Value};

    use super::{Answered, show};
    use crate::publish::Staged;

    /// Digits of a decimal of 128 bits.
    const DIGITS: u32 = 38;

    /// In the metadata of the schema: whether a bound has left out rows, `true` or `false`.
    const INCOMPLETE: &str = "veil.incomplete";

    /// The array of a column: text where no number of the format holds all that the kind has.
    fn array(
        kind: &Kind,
        cells: impl Iterator<Item = Value> + Clone,
    ) -> Result<ArrayRef, ArrowError> {
        let numbers = || cells.clone().map(Value::number);
        let most = kind.range().map_or(u128::MAX, |range| {
            range.min().unsigned_abs().max(range.max().unsigned_abs())
        });
        let fits = most < 10_u128.pow(DIGITS);
        Ok(match kind {
            Kind::Integer(_) if most <= i64::MAX as u128 => {
                let all = numbers().map(|number| i64::try_from(number?).ok());
                Arc::new(all.collect::<Int64Array>())
            }
            Kind::Date(_) => {
                let all = numbers().map(|number| i32::try_from(number?).ok());
                Arc::new(all.collect::<Date32Array>())
            }
            Kind::Integer(_) if fits => Arc::new(decimals(numbers(), 0)?),
            Kind::Decimal { places, .. } if fits && *places <= DIGITS => {
                Arc::new(decimals(numbers(), *places)?)
            }
            Kind::Bool => {
                let all = cells.map(|cell| match cell {
                    Value::Bool(value) => Some(value),
                    _ => None,
                });
                Arc::new(all.collect::<BooleanArray>())
            }
            _ => {
                let text = |cell| (cell != Value::Null).then(|| show::cell(kind, cell));
                Arc::new(cells.map(text).collect::<StringArray>())
            }
        })
    }

    fn decimals(
        numbers: impl Iterator<Item = Option<i128>>,
        places: u32,
    ) -> Result<Decimal128Array, ArrowError> {
        let all = numbers.collect::<Decimal128Array>();
        all.with_precision_and_scale(DIGITS as u8, places as i8)
    }

    pub(super) fn batch(answer: &Answered) -> Result<RecordBatch, ArrowError> {
        let (mut fields, mut columns) = (Vec::new(), Vec::new());
        for (at, field) in answer.fields.iter().enumerate() {
            let array = array(&field.ty.kind, answer.rows.iter().map(|row| row[at]))?;
            let kind: DataType = array.data_type().clone();
            fields.push(ArrowField::new(&field.name, kind, true));
            columns.push(array);
        }
        let said = answer.incomplete;
        let said = said.map(|incomplete| (INCOMPLETE.to_owned(), incomplete.to_string()));
        let schema = Schema::new_with_metadata(fields, said.into_iter().collect());
        RecordBatch::try_new(Arc::new(schema), columns)
    }

    fn failed(
        file: &Staged,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> DataError {
        file.failed(std::io::Error::other(error))
    }

    pub(super) fn arrow(answer: &Answered, file: &Staged) -> Result<(), DataError> {
        let write = || {
            let batch = batch(answer)?;
            let mut writer = arrow_ipc::writer::FileWriter::try_new(file.file(), &batch.schema())?;
            writer.write(&batch)?;
            writer.finish()
        };
        write().map_err(|error: ArrowError| failed(file, error))
    }

    pub(super) fn parquet(answer: &Answered, file: &Staged) -> Result<(), DataError> {
        let write = || {
            let batch = batch(answer)?;
            let handle = file.file().try_clone()?;
            let mut writer = parquet::arrow::ArrowWriter::try_new(handle, batch.schema(), None)?;
            writer.write(&batch)?;
            writer.close().map(drop)
        };
        write().map_err(|error: parquet::errors::ParquetError| failed(file, error))
    }
}
