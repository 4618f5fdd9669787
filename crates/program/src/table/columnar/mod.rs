//! Tables of typed columns: from the arrays of Arrow to cells.

mod values;

use std::{fmt, panic, panic::AssertUnwindSafe, path::Path, sync::Arc};

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::{
    Mark, Notes, Rows, Spec,
    cells::Chunk,
    problems::Place,
    text::{Kind, Reader},
};
use crate::InputError;
use crate::table::{CellFault, DataError};
pub(super) use values::texts;
use values::{fill, fill_keys, key};

/// Record batches in the order of their rows.
pub(super) trait Batches: Send {
    /// The next batch, with the wanted columns alone; nothing at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>, DataError>;

    /// Goes on at `row`; returns how many rows of the next batch lie before it.
    fn seek(&mut self, row: u64) -> Result<usize, DataError>;
}

/// Reads the cells of record batches.
pub(super) struct ColumnarRows {
    spec: Arc<Spec>,
    batches: Box<dyn Batches>,
    /// Where each wanted column is in a batch.
    places: Arc<Places>,
    /// The batch under way, and how many of its rows were read.
    batch: Option<(RecordBatch, usize)>,
    row: u64,
    /// Bytes of the file per row, for a progress bar.
    bytes_per_row: f64,
}

/// The columns of a file that are wanted.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// Columns of the file, in its order: what a batch has.
    pub(super) projection: Vec<usize>,
    /// Where in a batch each wanted column is, or its parts are.
    columns: Vec<Vec<usize>>,
    /// Where the key is whose order is compared.
    key: Option<usize>,
}

impl Places {
    /// Finds the wanted columns and checks their types.
    pub(super) fn find(spec: &Spec, schema: &Schema) -> Result<Self, DataError> {
        let find = |name: &str| -> Result<_, DataError> {
            let named = |(_, field): &(usize, &Arc<arrow_schema::Field>)| field.name() == name;
            let mut found = schema.fields().iter().enumerate().filter(named);
            match (found.next(), found.next()) {
                (Some((index, field)), None) => Ok((index, field.data_type().clone())),
                (Some(_), Some(_)) => Err(InputError::ColumnTwice {
                    file: spec.file.clone(),
                    column: name.to_owned(),
                }
                .into()),
                (None, _) => Err(InputError::NoColumn {
                    file: spec.file.clone(),
                    column: name.to_owned(),
                    found: (schema.fields().iter())
                        .map(|field| super::problems::shorten(field.name().as_bytes()))
                        .collect(),
                }
                .into()),
            }
        };
        let mut wanted = Vec::new();
        for reader in &spec.readers {
            let mut parts = Vec::new();
            for part in &reader.parts {
                let (index, data_type) = find(part)?;
                accepts(reader, &data_type).map_err(|advice| InputError::ColumnType {
                    file: spec.file.clone(),
                    column: part.clone(),
                    found: data_type.to_string(),
                    declared: declared(reader),
                    advice,
                })?;
                parts.push(index);
            }
            wanted.push(parts);
        }
        let key = spec.key.as_deref().map(find).transpose()?;
        if let Some((_, data_type)) = &key
            && !(is_text(data_type) || is_integer(data_type) || *data_type == DataType::Date32)
        {
            return Err(InputError::ColumnType {
                file: spec.file.clone(),
                column: spec.key.clone().unwrap_or_default(),
                found: data_type.to_string(),
                declared: "a key whose order is compared".into(),
                advice: "store it as text, integers or days".into(),
            }
            .into());
        }
        let mut projection: Vec<usize> = wanted.concat();
        projection.extend(key.iter().map(|key| key.0));
        projection.sort_unstable();
        projection.dedup();
        let place = |index: &usize| {
            (projection.iter().position(|other| other == index)).expect("all wanted are projected")
        };
        Ok(Self {
            columns: (wanted.iter())
                .map(|parts| parts.iter().map(place).collect())
                .collect(),
            key: key.iter().map(|key| place(&key.0)).next(),
            projection,
        })
    }
}

impl ColumnarRows {
    pub(super) fn new(
        spec: &Arc<Spec>,
        places: &Arc<Places>,
        batches: Box<dyn Batches>,
        bytes: u64,
        rows: u64,
    ) -> Self {
        Self {
            spec: Arc::clone(spec),
            batches,
            places: Arc::clone(places),
            batch: None,
            row: 0,
            bytes_per_row: bytes as f64 / rows.max(1) as f64,
        }
    }

    /// Adds rows of a batch.
    fn take(
        &self,
        batch: &RecordBatch,
        first: usize,
        count: usize,
        into: &mut Chunk,
        notes: &mut Notes,
    ) {
        let place = |offset: usize| Place {
            line: None,
            row: self.row + offset as u64 + 1,
        };
        let columns = self.places.columns.iter().zip(&self.spec.readers);
        for ((parts, reader), cells) in columns.zip(&mut into.columns) {
            let arrays = parts.iter().map(|index| batch.column(*index).as_ref());
            let arrays: Vec<&dyn Array> = arrays.collect();
            let report = |offset, text: String, fault| {
                let text = text.as_bytes();
                notes
                    .problems
                    .cell(place(offset), &reader.name, text, fault);
            };
            match (&reader.kind, &arrays[..]) {
                (Kind::Key(_) | Kind::Text, _) => {
                    fill_keys(reader, &arrays, first..first + count, cells, report);
                }
                (_, [array]) => fill(reader, *array, first, count, cells, report),
                _ => unreachable!("several columns make a key"),
            }
        }
        let Some(index) = self.places.key.filter(|_| notes.key.wanted()) else {
            return;
        };
        let array = batch.column(index).as_ref();
        for offset in 0..count {
            let text = key(array, first + offset);
            if text.is_empty() {
                let name = self.spec.key.as_deref().unwrap_or_default();
                notes
                    .problems
                    .cell(place(offset), name, b"", CellFault::NoKey);
            }
            notes.key.push(place(offset), text.as_bytes());
        }
    }
}

impl Rows for ColumnarRows {
    fn read(
        &mut self,
        most: usize,
        into: &mut Chunk,
        notes: &mut Notes,
    ) -> Result<usize, DataError> {
        let mut done = 0;
        while done < most {
            let (batch, used) = match self.batch.take() {
                Some((batch, used)) if used < batch.num_rows() => (batch, used),
                _ => match self.batches.next()? {
                    Some(batch) => (batch, 0),
                    None => break,
                },
            };
            let count = (batch.num_rows() - used).min(most - done);
            if !notes.quiet {
                self.take(&batch, used, count, into, notes);
            }
            self.row += count as u64;
            done += count;
            self.batch = Some((batch, used + count));
        }
        Ok(done)
    }

    fn mark(&self) -> Mark {
        Mark {
            row: self.row,
            offset: 0,
            line: 0,
        }
    }

    fn seek(&mut self, to: Mark) -> Result<(), DataError> {
        if to.row == self.row {
            return Ok(());
        }
        self.batch = None;
        let before = self.batches.seek(to.row)?;
        self.row = to.row;
        if before > 0 {
            self.batch = self.batches.next()?.map(|batch| (batch, before));
        }
        Ok(())
    }

    fn done(&self) -> u64 {
        (self.row as f64 * self.bytes_per_row) as u64
    }
}

impl fmt::Debug for ColumnarRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColumnarRows at row {}", self.row)
    }
}

/// Runs a reader of others on untrusted bytes: what it says and what it panics about are both the
/// file's fault.
pub(super) fn guarded<T, E: fmt::Display>(
    file: &Path,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T, DataError> {
    let damaged = |reason: String| {
        DataError::from(InputError::Damaged {
            file: file.to_owned(),
            reason,
        })
    };
    match panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| damaged(error.to_string())),
        Err(_) => Err(damaged("its reader gave up".into())),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => {
            matches!(
                **values,
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
            )
        }
        _ => false,
    }
}

fn is_integer(data_type: &DataType) -> bool {
    data_type.is_integer()
}

/// Whether a column of the job can be read from an array of this type; if not, what to do.
fn accepts(reader: &Reader, data_type: &DataType) -> Result<(), String> {
    if is_text(data_type) || *data_type == DataType::Null {
        return Ok(());
    }
    let no = |advice: &str| Err(advice.to_owned());
    match (&reader.kind, data_type) {
        (Kind::Number { .. } | Kind::Category { .. } | Kind::Key(_) | Kind::Text, integer)
            if is_integer(integer) =>
        {
            Ok(())
        }
        (Kind::Category { .. } | Kind::Bool, DataType::Boolean)
        | (Kind::Key(_) | Kind::Text, DataType::Date32)
        | (Kind::Number { .. }, DataType::Float32 | DataType::Float64)
        | (Kind::Date { .. }, DataType::Date32 | DataType::Date64) => Ok(()),
        (
            Kind::Number { scale, .. },
            DataType::Decimal32(_, found)
            | DataType::Decimal64(_, found)
            | DataType::Decimal128(_, found)
            | DataType::Decimal256(_, found),
        ) => {
            if i16::from(*found) <= i16::from(*scale) || reader.notation.round {
                Ok(())
            } else {
                Err(format!(
                    "declare `scale = {found}`, or have numbers rounded: `round = true` in `written`"
                ))
            }
        }
        (Kind::Date { .. }, DataType::Timestamp(_, zone)) => match zone.as_deref() {
            None | Some("UTC" | "+00:00") => Ok(()),
            Some(_) => no("which day a moment is on depends on the zone: store dates"),
        },
        (Kind::Number { .. }, _) => no("store it as integers, decimals or text"),
        (Kind::Date { .. }, _) => no("store it as dates or text"),
        (Kind::Category { .. }, _) => no("store it as text or dictionary"),
        (Kind::Bool, _) => no("store it as booleans or text"),
        (Kind::Key(_) | Kind::Text, _) => no("store it as text, integers or days"),
    }
}

fn declared(reader: &Reader) -> String {
    match &reader.kind {
        Kind::Number { scale: 0, .. } => "an integer".into(),
        Kind::Number { scale, .. } => format!("a decimal of scale {scale}"),
        Kind::Date { .. } => "a date".into(),
        Kind::Category { .. } => "a category".into(),
        Kind::Bool => "a bool".into(),
        Kind::Key(_) => "a key".into(),
        Kind::Text => "a text".into(),
    }
}
