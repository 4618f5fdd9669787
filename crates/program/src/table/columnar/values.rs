//! From the values of an array to cells.

use arrow_array::{
    Array,
    cast::AsArray,
    types::{
        ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type,
        Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, TimeUnit};
use veil_relation::round_ratio;

use crate::{
    CellFault, date,
    number::NumberError,
    table::{
        cells::Cells,
        split::trim,
        text::{Kind, Reader},
    },
};

/// Adds `count` cells of an array; `report` takes the offset, the text and the fault of each that cannot be used.
pub(super) fn fill(
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
        let missing = array.is_null(row);
        let result = if missing {
            reader.push_missing(cells)
        } else {
            values.push(reader, row, cells)
        };
        if let Err(fault) = result {
            let shown = if missing {
                String::new()
            } else {
                values.show(row)
            };
            report(offset, shown, fault);
            cells.push_missing();
        }
    }
}

/// Adds the digests of keys of these arrays, a part of each.
pub(super) fn fill_keys(
    reader: &Reader,
    arrays: &[&dyn Array],
    rows: std::ops::Range<usize>,
    cells: &mut Cells,
    mut report: impl FnMut(usize, String, CellFault),
) {
    let values: Vec<Values<'_>> = arrays.iter().map(|array| Values::of(*array)).collect();
    for (offset, row) in rows.enumerate() {
        let parts = arrays.iter().zip(&values);
        let texts: Vec<String> = parts
            .map(|(array, values)| values.key(*array, row))
            .collect();
        let result = reader.push_parts(cells, texts.iter().map(String::as_bytes));
        if let Err(fault) = result {
            report(offset, texts.join(" "), fault);
            cells.push_missing();
        }
    }
}

type Integer<'a> = Box<dyn Fn(usize) -> i128 + 'a>;

/// The values of an array, without its type; which of them are missing, the array says.
enum Values<'a> {
    None,
    Text(Box<dyn Fn(usize) -> Option<&'a [u8]> + 'a>),
    Boolean(Box<dyn Fn(usize) -> bool + 'a>),
    Integer(Integer<'a>),
    /// In units of a power of ten; nothing beyond 128 bits.
    Decimal(Box<dyn Fn(usize) -> Option<i128> + 'a>, i8),
    Float(Box<dyn Fn(usize) -> f64 + 'a>),
    /// In units of which a day has so many.
    Time(Integer<'a>, i128),
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
                Self::Text(Box::new(|row| Some(text.value(row).as_bytes())))
            }
            DataType::LargeUtf8 => {
                let text = array.as_string::<i64>();
                Self::Text(Box::new(|row| Some(text.value(row).as_bytes())))
            }
            DataType::Utf8View => {
                let text = array.as_string_view();
                Self::Text(Box::new(|row| Some(text.value(row).as_bytes())))
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = Self::of(dictionary.keys());
                let array = dictionary.values().as_ref();
                let values = Self::of(array);
                let value = move |row| match (&keys, &values) {
                    (Self::Integer(key), Self::Text(text)) => {
                        let key = usize::try_from(key(row)).ok()?;
                        let there = key < array.len() && array.is_valid(key);
                        there.then(|| text(key))?
                    }
                    _ => None,
                };
                Self::Text(Box::new(value))
            }
            DataType::Boolean => {
                let values = array.as_boolean();
                Self::Boolean(Box::new(|row| values.value(row)))
            }
            DataType::Int8 => Self::Integer(integers::<Int8Type>(array)),
            DataType::Int16 => Self::Integer(integers::<Int16Type>(array)),
            DataType::Int32 => Self::Integer(integers::<Int32Type>(array)),
            DataType::Int64 => Self::Integer(integers::<Int64Type>(array)),
            DataType::UInt8 => Self::Integer(integers::<UInt8Type>(array)),
            DataType::UInt16 => Self::Integer(integers::<UInt16Type>(array)),
            DataType::UInt32 => Self::Integer(integers::<UInt32Type>(array)),
            DataType::UInt64 => Self::Integer(integers::<UInt64Type>(array)),
            DataType::Decimal32(_, scale) => {
                let values = integers::<Decimal32Type>(array);
                Self::Decimal(Box::new(move |row| Some(values(row))), *scale)
            }
            DataType::Decimal64(_, scale) => {
                let values = integers::<Decimal64Type>(array);
                Self::Decimal(Box::new(move |row| Some(values(row))), *scale)
            }
            DataType::Decimal128(_, scale) => {
                let values = integers::<Decimal128Type>(array);
                Self::Decimal(Box::new(move |row| Some(values(row))), *scale)
            }
            DataType::Decimal256(_, scale) => {
                let values = array.as_primitive::<Decimal256Type>().values();
                Self::Decimal(Box::new(|row| values[row].to_i128()), *scale)
            }
            DataType::Float32 => {
                let values = array.as_primitive::<Float32Type>().values();
                Self::Float(Box::new(|row| values[row].into()))
            }
            DataType::Float64 => {
                let values = array.as_primitive::<Float64Type>().values();
                Self::Float(Box::new(|row| values[row]))
            }
            DataType::Date32 => Self::Time(integers::<Date32Type>(array), 1),
            DataType::Date64 => Self::Time(integers::<Date64Type>(array), 86_400_000),
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
                Self::Time(values, 86_400 * second)
            }
            // `Null`; the types that are read were chosen when the file was opened.
            _ => Self::None,
        }
    }

    fn push(&self, reader: &Reader, row: usize, cells: &mut Cells) -> Result<(), CellFault> {
        match self {
            Self::None => reader.push_missing(cells),
            Self::Text(text) => reader.push(cells, trim(text(row).unwrap_or_default())),
            Self::Boolean(value) => {
                let text: &[u8] = if value(row) { b"true" } else { b"false" };
                reader.push(cells, text)
            }
            Self::Integer(value) => match reader.kind {
                Kind::Category { .. } | Kind::Bool => {
                    reader.push(cells, value(row).to_string().as_bytes())
                }
                _ => push_scaled(reader, cells, Some(value(row)), 0),
            },
            Self::Decimal(value, scale) => push_scaled(reader, cells, value(row), *scale),
            Self::Float(value) => push_float(reader, cells, value(row)),
            Self::Time(value, day) => {
                if value(row).rem_euclid(*day) != 0 {
                    return Err(CellFault::TimeOfDay);
                }
                let day = i64::try_from(value(row).div_euclid(*day));
                reader.push_number(cells, day.map_err(|_| NumberError::TooLarge)?)
            }
        }
    }

    /// A key as a CSV file would have it; empty where there is none.
    fn key(&self, array: &dyn Array, row: usize) -> String {
        if array.is_null(row) {
            return String::new();
        }
        match self {
            Self::Text(text) => {
                let text = trim(text(row).unwrap_or_default());
                String::from_utf8_lossy(text).into_owned()
            }
            values => values.show(row),
        }
    }

    /// A cell for a message.
    fn show(&self, row: usize) -> String {
        match self {
            Self::None => String::new(),
            Self::Text(text) => {
                let text = text(row).unwrap_or_default();
                String::from_utf8_lossy(&text[..text.len().min(256)]).into_owned()
            }
            Self::Boolean(value) => value(row).to_string(),
            Self::Integer(value) => value(row).to_string(),
            Self::Decimal(value, scale) => match (value(row), u8::try_from(*scale)) {
                (Some(value), Ok(scale)) => crate::Scaled { value, scale }.to_string(),
                (Some(value), Err(_)) => format!("{value}e{}", -scale),
                (None, _) => "a number beyond 128 bits".into(),
            },
            Self::Float(value) => value(row).to_string(),
            Self::Time(value, day) => {
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
    let power = i16::from(scale) - i16::from(from);
    if power < 0 && reader.notation.round {
        let value = value.ok_or(NumberError::TooLarge)?;
        let unit = 10_i128.checked_pow(power.unsigned_abs().into());
        // Of a unit beyond 128 bits nothing is left.
        let rounded = unit.map_or(Some(0), |unit| round_ratio(value, unit, 0, 0));
        let rounded = rounded.and_then(|rounded| i64::try_from(rounded).ok());
        let rounded = rounded.ok_or(NumberError::TooLarge)?;
        return reader.push_number(cells, rounded);
    }
    let power = u32::try_from(power).map_err(|_| NumberError::Digits { scale })?;
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
        if reader.notation.is_missing(b"NaN") {
            return reader.push_missing(cells);
        }
        return Err(CellFault::Placeholder);
    }
    if value.abs() >= 2f64.powi(63) {
        return Err(NumberError::TooLarge.into());
    }
    let scaled = match exact(value, scale) {
        None if reader.notation.round => rounded(value, scale).ok_or(NumberError::TooLarge)?,
        scaled => scaled.ok_or(CellFault::Inexact { scale })?,
    };
    let scaled = i64::try_from(scaled).map_err(|_| NumberError::TooLarge)?;
    reader.push_number(cells, scaled)
}

/// `value * 10^scale`, rounded to the nearest integer, halves away from zero. `value` is below 2^63 and has a fraction, `scale` is at most 18.
fn rounded(value: f64, scale: u8) -> Option<i128> {
    let bits = value.abs().to_bits();
    let exponent = ((bits >> 52) as i32).max(1) - 1075;
    let implied = u64::from(bits >> 52 != 0) << 52;
    let mantissa = i128::from(bits & ((1 << 52) - 1) | implied);
    // Of a number with a fraction the exponent is below 0; the product is below 2^(53 + 42).
    let product = mantissa * 5i128.pow(scale.into());
    let shift = -(exponent + i32::from(scale));
    let size = match shift {
        ..=0 => product << shift.unsigned_abs(),
        1..=125 => round_ratio(product, 1 << shift, 0, 0)?,
        _ => 0,
    };
    Some(if value < 0.0 { -size } else { size })
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
pub(super) fn key(array: &dyn Array, row: usize) -> String {
    Values::of(array).key(array, row)
}

/// The cells of an array as a CSV file would have them; a binary fraction as the shortest decimal that stands for it.
pub(in crate::table) fn texts(array: &dyn Array) -> impl Fn(usize) -> Option<String> + '_ {
    let values = Values::of(array);
    move |row| {
        let text = values.key(array, row);
        let none = array.is_null(row) || text.is_empty() || text == "NaN";
        (!none).then_some(text)
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
