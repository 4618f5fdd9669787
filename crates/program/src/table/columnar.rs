//! Tables of typed columns: from the arrays of Arrow to cells.

use std::{fmt, panic, panic::AssertUnwindSafe, path::Path, sync::Arc};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{
        ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
        Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, Schema, TimeUnit};

use super::{
    Mark, Notes, Rows, Spec,
    cells::{Cells, Chunk},
    problems::Place,
    split::trim,
    text::{Kind, Reader},
};
use crate::{
    data::{CellFault, DataError},
    date,
    number::NumberError,
};

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
    /// Where in a batch each wanted column is.
    columns: Vec<usize>,
    /// Where the key is whose order is compared.
    key: Option<usize>,
}

impl Places {
    /// Finds the wanted columns and checks their types.
    pub(super) fn find(spec: &Spec, schema: &Schema) -> Result<Self, DataError> {
        let find = |name: &str| {
            let named = |(_, field): &(usize, &Arc<arrow_schema::Field>)| field.name() == name;
            let mut found = schema.fields().iter().enumerate().filter(named);
            match (found.next(), found.next()) {
                (Some((index, field)), None) => Ok((index, field.data_type().clone())),
                (Some(_), Some(_)) => Err(DataError::ColumnTwice {
                    file: spec.file.clone(),
                    column: name.to_owned(),
                }),
                (None, _) => Err(DataError::NoColumn {
                    file: spec.file.clone(),
                    column: name.to_owned(),
                    found: (schema.fields().iter())
                        .map(|field| super::problems::shorten(field.name().as_bytes()))
                        .collect(),
                }),
            }
        };
        let mut wanted = Vec::new();
        for reader in &spec.readers {
            let (index, data_type) = find(&reader.name)?;
            accepts(reader, &data_type).map_err(|advice| DataError::ColumnType {
                file: spec.file.clone(),
                column: reader.name.clone(),
                found: data_type.to_string(),
                declared: declared(reader),
                advice,
            })?;
            wanted.push(index);
        }
        let key = spec.key.as_deref().map(find).transpose()?;
        if let Some((_, data_type)) = &key
            && !(is_text(data_type) || is_integer(data_type) || *data_type == DataType::Date32)
        {
            return Err(DataError::ColumnType {
                file: spec.file.clone(),
                column: spec.key.clone().unwrap_or_default(),
                found: data_type.to_string(),
                declared: "a key whose order is compared".into(),
                advice: "store it as text, integers or days".into(),
            });
        }
        let mut projection: Vec<usize> = wanted.clone();
        projection.extend(key.iter().map(|key| key.0));
        projection.sort_unstable();
        projection.dedup();
        let place = |index: &usize| {
            (projection.iter().position(|other| other == index)).expect("all wanted are projected")
        };
        Ok(Self {
            columns: wanted.iter().map(place).collect(),
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
        for ((&index, reader), cells) in columns.zip(&mut into.columns) {
            let array = batch.column(index).as_ref();
            fill(reader, array, first, count, cells, |offset, text, fault| {
                let text = text.as_bytes();
                notes
                    .problems
                    .cell(place(offset), &reader.name, text, fault);
            });
        }
        let Some((index, chain)) = self.places.key.zip(notes.chain.as_mut()) else {
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
            chain.push(text.as_bytes());
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

/// Runs a reader of others on bytes that nobody vouches for: what it says and what it panics about are both the
/// file's fault.
pub(super) fn guarded<T, E: fmt::Display>(
    file: &Path,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T, DataError> {
    let damaged = |reason: String| DataError::Damaged {
        file: file.to_owned(),
        reason,
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
        (Kind::Number { .. } | Kind::Category { .. }, integer) if is_integer(integer) => Ok(()),
        (Kind::Category { .. }, DataType::Boolean)
        | (Kind::Number { .. }, DataType::Float32 | DataType::Float64)
        | (Kind::Date { .. }, DataType::Date32 | DataType::Date64) => Ok(()),
        (
            Kind::Number { scale, .. },
            DataType::Decimal32(_, found)
            | DataType::Decimal64(_, found)
            | DataType::Decimal128(_, found)
            | DataType::Decimal256(_, found),
        ) => {
            if i16::from(*found) <= i16::from(*scale) {
                Ok(())
            } else {
                Err(format!(
                    "declare `scale = {found}`, or round the numbers of the file"
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
    }
}

fn declared(reader: &Reader) -> String {
    match &reader.kind {
        Kind::Number { scale: 0, .. } => "an integer".into(),
        Kind::Number { scale, .. } => format!("a decimal of scale {scale}"),
        Kind::Date { .. } => "a date".into(),
        Kind::Category { .. } => "a category".into(),
    }
}

/// Adds `count` cells of an array; `report` takes the offset, the text and the fault of each that cannot be used.
fn fill(
    reader: &Reader,
    array: &dyn Array,
    first: usize,
    count: usize,
    cells: &mut Cells,
    mut report: impl FnMut(usize, String, CellFault),
) {
    let values = Values::of(array);
    for offset in 0..count {
        let row = first + offset;
        let result = values.push(reader, row, cells);
        if let Err(fault) = result {
            report(offset, values.show(row), fault);
            cells.push_missing();
        }
    }
}

type Integer<'a> = Box<dyn Fn(usize) -> i128 + 'a>;

/// The values of an array, without its type.
enum Values<'a> {
    None,
    Text(&'a dyn Array, Box<dyn Fn(usize) -> Option<&'a [u8]> + 'a>),
    Boolean(&'a dyn Array, Box<dyn Fn(usize) -> bool + 'a>),
    Integer(&'a dyn Array, Integer<'a>),
    /// In units of a power of ten; nothing beyond 128 bits.
    Decimal(&'a dyn Array, Box<dyn Fn(usize) -> Option<i128> + 'a>, i8),
    Float(&'a dyn Array, Box<dyn Fn(usize) -> f64 + 'a>),
    /// In units of which a day has so many.
    Time(&'a dyn Array, Integer<'a>, i128),
}

impl<'a> Values<'a> {
    fn of(array: &'a dyn Array) -> Self {
        fn integers<T: ArrowPrimitiveType>(array: &dyn Array) -> Integer<'_>
        where
            T::Native: Into<i128>,
        {
            let values = array.as_primitive::<T>().values();
            Box::new(move |row| values[row].into())
        }
        match array.data_type() {
            DataType::Utf8 => {
                let text = array.as_string::<i32>();
                Self::Text(array, Box::new(|row| Some(text.value(row).as_bytes())))
            }
            DataType::LargeUtf8 => {
                let text = array.as_string::<i64>();
                Self::Text(array, Box::new(|row| Some(text.value(row).as_bytes())))
            }
            DataType::Utf8View => {
                let text = array.as_string_view();
                Self::Text(array, Box::new(|row| Some(text.value(row).as_bytes())))
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = Self::of(dictionary.keys());
                let values = Self::of(dictionary.values().as_ref());
                let value = move |row| match (&keys, &values) {
                    (Self::Integer(_, key), Self::Text(array, text)) => {
                        let key = usize::try_from(key(row)).ok()?;
                        let there = key < array.len() && array.is_valid(key);
                        there.then(|| text(key))?
                    }
                    _ => None,
                };
                Self::Text(array, Box::new(value))
            }
            DataType::Boolean => {
                let values = array.as_boolean();
                Self::Boolean(array, Box::new(|row| values.value(row)))
            }
            DataType::Int8 => Self::Integer(array, integers::<Int8Type>(array)),
            DataType::Int16 => Self::Integer(array, integers::<Int16Type>(array)),
            DataType::Int32 => Self::Integer(array, integers::<Int32Type>(array)),
            DataType::Int64 => Self::Integer(array, integers::<Int64Type>(array)),
            DataType::UInt8 => Self::Integer(array, integers::<UInt8Type>(array)),
            DataType::UInt16 => Self::Integer(array, integers::<UInt16Type>(array)),
            DataType::UInt32 => Self::Integer(array, integers::<UInt32Type>(array)),
            DataType::UInt64 => Self::Integer(array, integers::<UInt64Type>(array)),
            DataType::Decimal32(_, scale) => {
                let values = integers::<Decimal32Type>(array);
                Self::Decimal(array, Box::new(move |row| Some(values(row))), *scale)
            }
            DataType::Decimal64(_, scale) => {
                let values = integers::<Decimal64Type>(array);
                Self::Decimal(array, Box::new(move |row| Some(values(row))), *scale)
            }
            DataType::Decimal128(_, scale) => {
                let values = integers::<Decimal128Type>(array);
                Self::Decimal(array, Box::new(move |row| Some(values(row))), *scale)
            }
            DataType::Decimal256(_, scale) => {
                let values = array.as_primitive::<Decimal256Type>().values();
                Self::Decimal(array, Box::new(|row| values[row].to_i128()), *scale)
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                Self::Float(array, Box::new(|row| values[row].into()))
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                Self::Float(array, Box::new(|row| values[row]))
            }
            DataType::Date32 => Self::Time(array, integers::<Date32Type>(array), 1),
            DataType::Date64 => Self::Time(array, integers::<Date64Type>(array), 86_400_000),
            DataType::Timestamp(unit, _) => {
                let (values, second) = match unit {
                    TimeUnit::Second => (integers::<TimestampSecondType>(array), 1),
                    TimeUnit::Millisecond => (integers::<TimestampMillisecondType>(array), 1_000),
                    TimeUnit::Microsecond => {
                        (integers::<TimestampMicrosecondType>(array), 1_000_000)
                    }
                    TimeUnit::Nanosecond => {
                        (integers::<TimestampNanosecondType>(array), 1_000_000_000)
                    }
                };
                Self::Time(array, values, 86_400 * second)
            }
            // `Null`; the types that are read were chosen when the file was opened.
            _ => Self::None,
        }
    }

    fn push(&self, reader: &Reader, row: usize, cells: &mut Cells) -> Result<(), CellFault> {
        match self {
            Self::None => reader.push_missing(cells),
            Self::Text(array, _)
            | Self::Boolean(array, _)
            | Self::Integer(array, _)
            | Self::Decimal(array, ..)
            | Self::Float(array, _)
            | Self::Time(array, ..)
                if array.is_null(row) =>
            {
                reader.push_missing(cells)
            }
            Self::Text(_, text) => reader.push(cells, trim(text(row).unwrap_or_default())),
            Self::Boolean(_, value) => {
                let text: &[u8] = if value(row) { b"true" } else { b"false" };
                reader.push(cells, text)
            }
            Self::Integer(_, value) => match reader.kind {
                Kind::Category { .. } => reader.push(cells, value(row).to_string().as_bytes()),
                _ => push_scaled(reader, cells, Some(value(row)), 0),
            },
            Self::Decimal(_, value, scale) => push_scaled(reader, cells, value(row), *scale),
            Self::Float(_, value) => push_float(reader, cells, value(row)),
            Self::Time(_, value, day) => {
                if value(row).rem_euclid(*day) != 0 {
                    return Err(CellFault::TimeOfDay);
                }
                let day = i64::try_from(value(row).div_euclid(*day));
                reader.push_number(cells, day.map_err(|_| NumberError::TooLarge)?)
            }
        }
    }

    /// A cell for a message.
    fn show(&self, row: usize) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(array, _)
            | Self::Boolean(array, _)
            | Self::Integer(array, _)
            | Self::Decimal(array, ..)
            | Self::Float(array, _)
            | Self::Time(array, ..)
                if array.is_null(row) =>
            {
                String::new()
            }
            Self::Text(_, text) => {
                let text = text(row).unwrap_or_default();
                String::from_utf8_lossy(&text[..text.len().min(256)]).into_owned()
            }
            Self::Boolean(_, value) => value(row).to_string(),
            Self::Integer(_, value) => value(row).to_string(),
            Self::Decimal(_, value, scale) => match (value(row), u8::try_from(*scale)) {
                (Some(value), Ok(scale)) => crate::Scaled { value, scale }.to_string(),
                (Some(value), Err(_)) => format!("{value}e{}", -scale),
                (None, _) => "a number beyond 128 bits".into(),
            },
            Self::Float(_, value) => value(row).to_string(),
            Self::Time(_, value, day) => {
                let days = i64::try_from(value(row).div_euclid(*day)).unwrap_or(i64::MAX);
                let rest = value(row).rem_euclid(*day);
                let seconds = rest / (*day / 86_400).max(1);
                match rest {
                    0 => date::show(days),
                    _ => format!(
                        "{} {:02}:{:02}:{:02}",
                        date::show(days),
                        seconds / 3600,
                        seconds / 60 % 60,
                        seconds % 60
                    ),
                }
            }
        }
    }
}

/// Adds a number in units of `10^-from`, as the column keeps it.
fn push_scaled(
    reader: &Reader,
    cells: &mut Cells,
    value: Option<i128>,
    from: i8,
) -> Result<(), CellFault> {
    let Kind::Number { scale, .. } = reader.kind else {
        return Err(NumberError::NotANumber.into());
    };
    let power = u32::try_from(i16::from(scale) - i16::from(from));
    let power = power.map_err(|_| NumberError::Digits { scale })?;
    let scaled = 10i128
        .checked_pow(power)
        .and_then(|unit| value?.checked_mul(unit))
        .and_then(|value| i64::try_from(value).ok());
    reader.push_number(cells, scaled.ok_or(NumberError::TooLarge)?)
}

/// Adds a binary fraction, if it is exactly a number that the column keeps.
fn push_float(reader: &Reader, cells: &mut Cells, value: f64) -> Result<(), CellFault> {
    let Kind::Number { scale, .. } = reader.kind else {
        return Err(NumberError::NotANumber.into());
    };
    if value.is_nan() {
        return Err(CellFault::Placeholder);
    }
    if value.abs() >= 2f64.powi(63) {
        return Err(NumberError::TooLarge.into());
    }
    let scaled = exact(value, scale).ok_or(CellFault::Inexact { scale })?;
    let scaled = i64::try_from(scaled).map_err(|_| NumberError::TooLarge)?;
    reader.push_number(cells, scaled)
}

/// `value * 10^scale`, if that is an integer. `value` is below 2^63, `scale` at most 18.
fn exact(value: f64, scale: u8) -> Option<i128> {
    if value == 0.0 {
        return Some(0);
    }
    // value = mantissa * 2^exponent, so value * 10^scale = mantissa * 5^scale * 2^(exponent + scale).
    let bits = value.abs().to_bits();
    let exponent = ((bits >> 52) as i32).max(1) - 1075;
    let implied = u64::from(bits >> 52 != 0) << 52;
    let mantissa = i128::from(bits & ((1 << 52) - 1) | implied);
    let fives = mantissa * 5i128.pow(scale.into());
    let shift = exponent + i32::from(scale);
    let size = if shift >= 0 {
        fives.checked_mul(1i128.checked_shl(shift as u32)?)?
    } else if fives.trailing_zeros() >= shift.unsigned_abs() {
        fives >> shift.unsigned_abs()
    } else {
        return None;
    };
    Some(if value < 0.0 { -size } else { size })
}

/// A key as a CSV file would have it; empty where there is none.
fn key(array: &dyn Array, row: usize) -> String {
    let values = Values::of(array);
    match &values {
        Values::Text(array, text) if array.is_valid(row) => {
            let text = trim(text(row).unwrap_or_default());
            String::from_utf8_lossy(text).into_owned()
        }
        Values::None | Values::Text(..) => String::new(),
        _ => values.show(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn binary_fractions_are_exact_or_refused(units in -(1i64 << 52)..1i64 << 52, scale in 0u8..=6, halves in 0u32..8) {
            // units / 2^halves is exact in binary; it has `halves` digits after the point.
            let value = units as f64 / f64::from(1u32 << halves);
            let want = (i128::from(units) * 10i128.pow(scale.into())).checked_rem(1 << halves) == Some(0);
            let got = exact(value, scale);
            prop_assert_eq!(got.is_some(), want);
            if let Some(got) = got {
                prop_assert_eq!(got << halves, i128::from(units) * 10i128.pow(scale.into()));
            }
        }
    }

    #[test]
    fn a_tenth_is_no_binary_fraction() {
        assert_eq!(exact(0.1, 1), None);
        assert_eq!(exact(12.34, 2), None);
        assert_eq!(exact(-12.25, 2), Some(-1225));
        assert_eq!(exact(1e15, 3), Some(10i128.pow(18)));
        assert_eq!(exact(f64::from_bits(1), 18), None);
    }
}
