//! From the text of a cell to a value.

mod number;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sha2::{Digest as _, Sha256};
use veil_relation::{Kind as RelationKind, Type};

pub(crate) use number::THOUSANDS;
use number::{Normal, plain, readings};

use super::cells::Cells;
use super::notation::Notation;
use crate::{
    CellFault, date,
    number::{NumberError, Scaled, parse_rounded, parse_scaled},
    stats::{Column, ColumnKind, Marks, Missing},
};

/// Words that other programs write for a missing value.
pub(crate) const PLACEHOLDERS: [&str; 12] = [
    "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "-", "?", ".",
];
/// How the cells of a column are read.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// Index of the column in the job.
    pub(super) index: usize,
    /// What messages call it.
    pub(super) name: String,
    /// The columns of the file that it is read from: several make one key.
    pub(super) parts: Vec<String>,
    pub(super) kind: Kind,
    absent: Absent,
    /// What the file has otherwise.
    pub(super) notation: Notation,
}

/// The treatment of an empty cell.
#[derive(Clone, Debug)]
enum Absent {
    /// It is at fault.
    Refuse(CellFault),
    /// It has no value.
    Null,
    /// It is 0.
    Zero,
}

impl Absent {
    fn of(missing: Missing) -> Self {
        match missing {
            Missing::Refuse => Self::Refuse(CellFault::Empty),
            Missing::DropRow | Missing::DropPair => Self::Null,
            Missing::Zero => Self::Zero,
        }
    }
}

/// A digest of the texts of a key: `SHA-256("veil key" ‖ salt ‖ length ‖ text ‖ length ‖ text …)`, of which the first bytes are a number,
/// little-endian; lengths have 64 bits, little-endian.
#[derive(Clone, Debug)]
pub(crate) struct Digest {
    salted: Sha256,
    bytes: usize,
}

impl Digest {
    /// Of so many bits, a multiple of 8 up to 128, under a public salt.
    pub(crate) fn new(salt: &str, bits: u16) -> Self {
        Self {
            salted: Sha256::new().chain_update("veil key").chain_update(salt),
            bytes: usize::from(bits / 8).min(16),
        }
    }

    /// The digest of these texts.
    pub(crate) fn of<'a>(&self, texts: impl Iterator<Item = &'a [u8]>) -> u128 {
        let mut hash = self.salted.clone();
        for text in texts {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        let mut number = [0; 16];
        number[..self.bytes].copy_from_slice(&hash.finalize()[..self.bytes]);
        u128::from_le_bytes(number)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Number {
        scale: u8,
        min: i64,
        max: i64,
        marks: Marks,
    },
    Date {
        min: i64,
        max: i64,
        format: Option<String>,
    },
    Category {
        codes: HashMap<Box<[u8]>, u16, RandomState>,
        values: Vec<String>,
    },
    Bool,
    Key(Digest),
    Text,
}

/// Texts of a bool, the false one first.
const BOOLS: [[&str; 5]; 2] = [
    ["false", "FALSE", "False", "f", "0"],
    ["true", "TRUE", "True", "t", "1"],
];

/// The code of each value of a category.
fn codes(values: &[String]) -> HashMap<Box<[u8]>, u16, RandomState> {
    let coded = values.iter().zip(1..=u16::MAX);
    coded
        .map(|(value, code)| (value.as_bytes().into(), code))
        .collect()
}

impl Reader {
    /// Of a column of statistics.
    pub(crate) fn new(index: usize, column: &Column) -> Self {
        let kind = match &column.kind {
            ColumnKind::Number {
                scale,
                min,
                max,
                marks,
                ..
            } => Kind::Number {
                scale: *scale,
                min: *min,
                max: *max,
                marks: *marks,
            },
            ColumnKind::Date { min, max, format } => Kind::Date {
                min: *min,
                max: *max,
                format: format.clone(),
            },
            ColumnKind::Category(values) => Kind::Category {
                codes: codes(values),
                values: values.clone(),
            },
        };
        Self {
            index,
            name: column.name.clone(),
            parts: vec![column.name.clone()],
            kind,
            absent: Absent::of(column.missing),
            notation: Notation::default(),
        }
    }

    /// Of the texts of a column of a file, as they are; empty ones are missing.
    pub(crate) fn of_text(index: usize, column: &str) -> Self {
        Self {
            index,
            name: column.to_owned(),
            parts: vec![column.to_owned()],
            kind: Kind::Text,
            absent: Absent::Null,
            notation: Notation::default(),
        }
    }

    /// The same, of a file that writes its cells so.
    pub(crate) fn written(mut self, notation: &Notation) -> Self {
        match &mut self.kind {
            Kind::Number { marks, .. } => *marks = notation.marks.unwrap_or(*marks),
            Kind::Date { format, .. } if notation.dates.is_some() => {
                format.clone_from(&notation.dates);
            }
            _ => {}
        }
        self.notation = notation.clone();
        self
    }

    /// Of a column of a query, from these columns of a file; several for a key alone. Nothing if the kind is none of a file, or its numbers are
    /// too large.
    pub(crate) fn of_query(
        index: usize,
        ty: &Type,
        parts: &[String],
        marks: Marks,
        format: Option<&str>,
        digest: Option<Digest>,
    ) -> Option<Self> {
        let ends = |range: veil_relation::Range| {
            let end = |value: i128| i64::try_from(value).ok();
            Some((end(range.min())?, end(range.max())?))
        };
        let kind = match &ty.kind {
            RelationKind::Integer(range) => {
                let (min, max) = ends(*range)?;
                Kind::Number {
                    scale: 0,
                    min,
                    max,
                    marks,
                }
            }
            RelationKind::Decimal { places, units } => {
                let (min, max) = ends(*units)?;
                Kind::Number {
                    scale: u8::try_from(*places).ok()?,
                    min,
                    max,
                    marks,
                }
            }
            RelationKind::Date(days) => {
                let (min, max) = ends(*days)?;
                Kind::Date {
                    min,
                    max,
                    format: format.map(str::to_owned),
                }
            }
            RelationKind::Category(values) => Kind::Category {
                codes: codes(values.texts()),
                values: values.texts().to_vec(),
            },
            RelationKind::Bool => Kind::Bool,
            RelationKind::Key { .. } => Kind::Key(digest?),
            RelationKind::Ratio { .. } => return None,
        };
        let absent = if ty.nullable {
            Absent::Null
        } else {
            Absent::Refuse(CellFault::Null)
        };
        Some(Self {
            index,
            name: parts.join("` and `"),
            parts: parts.to_vec(),
            kind,
            absent,
            notation: Notation::default(),
        })
    }

    /// No cells yet.
    pub(super) fn cells(&self) -> Cells {
        match self.kind {
            Kind::Number { .. } | Kind::Date { .. } => Cells::numbers(),
            Kind::Category { .. } | Kind::Bool => Cells::Codes(Vec::new()),
            Kind::Key(_) => Cells::Keys(Vec::new()),
            Kind::Text => Cells::Texts(Vec::new()),
        }
    }

    /// Adds the cell with this text; nothing is added if it is at fault.
    #[inline]
    pub(super) fn push(&self, cells: &mut Cells, text: &[u8]) -> Result<(), CellFault> {
        if self.notation.is_missing(text) {
            return self.push_missing(cells);
        }
        match (&self.kind, cells) {
            (
                Kind::Number {
                    scale,
                    min,
                    max,
                    marks,
                },
                cells @ Cells::Numbers { .. },
            ) => {
                let value = match plain(text, *scale, marks.decimal as u8) {
                    Some(value) if value >= *min && value <= *max => value,
                    _ => self.number(text, *scale, *marks)?,
                };
                cells.push_number(value);
            }
            (Kind::Date { format, .. }, cells @ Cells::Numbers { .. }) => {
                let day = match format {
                    None => date::iso(text),
                    Some(format) => date::parse(text, format),
                };
                let day = day.ok_or_else(|| {
                    explain(text, || CellFault::Date {
                        format: format.clone().unwrap_or_else(|| "%Y-%m-%d".into()),
                    })
                })?;
                return self.push_number(cells, day);
            }
            (Kind::Category { codes, values }, Cells::Codes(cells)) => {
                let Some(code) = codes.get(text) else {
                    return Err(explain(text, || CellFault::Category(values.clone())));
                };
                cells.push(*code);
            }
            (Kind::Bool, Cells::Codes(cells)) => {
                let is = |texts: &[&str; 5]| texts.iter().any(|known| known.as_bytes() == text);
                let Some(code) = (1..).zip(&BOOLS).find(|(_, texts)| is(texts)) else {
                    return Err(explain(text, || CellFault::Bool));
                };
                cells.push(code.0);
            }
            (Kind::Key(_) | Kind::Text, cells @ (Cells::Keys(_) | Cells::Texts(_))) => {
                return self.push_parts(cells, std::iter::once(text));
            }
            _ => unreachable!("the cells were made by this reader"),
        }
        Ok(())
    }

    /// Adds the digest of a key of these texts, or their only text; a key of which a part is empty is missing.
    pub(super) fn push_parts<'a>(
        &self,
        cells: &mut Cells,
        texts: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<(), CellFault> {
        for text in texts.clone() {
            if self.notation.is_missing(text) {
                return self.push_missing(cells);
            }
            if std::str::from_utf8(text).is_err() || text.contains(&0) {
                return Err(explain(text, || CellFault::Nul));
            }
        }
        match (&self.kind, cells) {
            (Kind::Key(digest), Cells::Keys(keys)) => keys.push(Some(digest.of(texts))),
            (Kind::Text, Cells::Texts(cells)) => {
                let mut texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
                cells.push(texts.next().map(Box::from));
            }
            _ => unreachable!("several columns make a key, whose cells were made by its reader"),
        }
        Ok(())
    }

    /// Adds a missing value, if the column may have one.
    pub(super) fn push_missing(&self, cells: &mut Cells) -> Result<(), CellFault> {
        match &self.absent {
            Absent::Refuse(fault) => return Err(fault.clone()),
            Absent::Zero => cells.push_zero(),
            Absent::Null => cells.push_missing(),
        }
        Ok(())
    }

    /// Adds a number in units of the scale, or a day.
    pub(super) fn push_number(&self, cells: &mut Cells, value: i64) -> Result<(), CellFault> {
        let (Kind::Number { min, max, .. } | Kind::Date { min, max, .. }) = self.kind else {
            return Err(CellFault::Number(NumberError::NotANumber));
        };
        if value < min || value > max {
            let show = |value| self.show(value);
            return Err(CellFault::Range {
                min: show(min),
                max: show(max),
            });
        }
        cells.push_number(value);
        Ok(())
    }

    fn show(&self, value: i64) -> String {
        match self.kind {
            Kind::Date { .. } => date::show(value),
            Kind::Number { scale, .. } => Scaled {
                value: value.into(),
                scale,
            }
            .to_string(),
            Kind::Category { .. } | Kind::Bool | Kind::Key(_) | Kind::Text => value.to_string(),
        }
    }

    /// A number that is not plain, or not in the range: read in full, or explained.
    #[cold]
    fn number(&self, text: &[u8], scale: u8, marks: Marks) -> Result<i64, CellFault> {
        let Ok(string) = std::str::from_utf8(text) else {
            return Err(explain(text, || CellFault::Number(NumberError::NotANumber)));
        };
        let Some(number) = Normal::of(string, marks) else {
            let fault = || match parse_scaled(string, scale) {
                // `1.5` in a column with a decimal comma is as wrong as any other mark that is not declared.
                Err(NumberError::Exponent) => CellFault::Number(NumberError::Exponent),
                _ => readings(string),
            };
            return Err(explain(text, fault));
        };
        let value = if self.notation.round {
            parse_rounded(number.as_str(), scale)?
        } else {
            parse_scaled(number.as_str(), scale)?
        };
        self.push_number(&mut Cells::numbers(), value)
            .map(|()| value)
    }
}

/// What is wrong with a cell that has no value of the column.
#[cold]
fn explain(text: &[u8], fault: impl FnOnce() -> CellFault) -> CellFault {
    match std::str::from_utf8(text) {
        Err(error) => CellFault::Utf8 {
            at: error.valid_up_to() + 1,
        },
        Ok(text) if text.contains('\0') => CellFault::Nul,
        Ok(text) if PLACEHOLDERS.contains(&text) => CellFault::Placeholder,
        Ok(_) => fault(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{LARGEST, MOST_DIGITS};
    use proptest::prelude::*;

    fn number(scale: u8, marks: Marks) -> Reader {
        let kind = ColumnKind::Number {
            scale,
            min: -LARGEST,
            max: LARGEST,
            unit: None,
            marks,
        };
        let column = Column {
            name: "x".into(),
            kind,
            missing: Missing::Refuse,
        };
        Reader::new(0, &column)
    }

    /// SHA-256("veil key" ‖ "salt" ‖ length ‖ text …), its first bytes: by hashlib of Python.
    #[test]
    fn keys_are_digests_of_texts_with_their_lengths() {
        let digest = |bits, texts: &[&str]| {
            let texts = texts.iter().map(|text| text.as_bytes());
            Digest::new("salt", bits).of(texts)
        };
        assert_eq!(
            digest(80, &["anna", "1990-01-31"]),
            0x9423_073e_324f_d71d_5cfe
        );
        assert_eq!(
            digest(128, &["5", "x"]),
            0x46a4_ef9b_5f01_c56f_2ce4_fff1_9674_7c77
        );
        assert_eq!(digest(80, &["-7"]), 0x0126_34bd_0beb_ea29_21a7);
        assert_ne!(digest(80, &["ab", "c"]), digest(80, &["a", "bc"]));
        assert_eq!(
            digest(64, &["-7"]),
            digest(80, &["-7"]) & u128::from(u64::MAX)
        );
    }

    #[test]
    fn a_key_of_which_a_part_is_missing_is_missing() {
        let ty = Type::of(RelationKind::Key { bits: 80 });
        let reader = |null| {
            let parts = ["name".to_owned(), "born".to_owned()];
            let (ty, digest) = (ty.clone().or_null(null), Digest::new("salt", 80));
            Reader::of_query(0, &ty, &parts, Marks::default(), None, Some(digest)).unwrap()
        };
        let push = |reader: &Reader, parts: [&[u8]; 2]| {
            let mut cells = reader.cells();
            reader.push_parts(&mut cells, parts.into_iter())?;
            Ok::<_, CellFault>(cells.key(0))
        };
        let both: [&[u8]; 2] = [b"anna", b"1990-01-31"];
        let key = Ok(Some(0x9423_073e_324f_d71d_5cfe));
        assert_eq!(push(&reader(false), both), key);
        assert_eq!(push(&reader(true), [b"anna", b""]), Ok(None));
        assert_eq!(push(&reader(false), [b"anna", b""]), Err(CellFault::Null));
        assert_eq!(
            push(&reader(true), [b"\xff", b"x"]),
            Err(CellFault::Utf8 { at: 1 })
        );
        assert_eq!(push(&reader(true), [b"a\0", b"x"]), Err(CellFault::Nul));
    }

    fn read(reader: &Reader, text: &str) -> Result<i64, CellFault> {
        let mut cells = reader.cells();
        reader.push(&mut cells, text.as_bytes())?;
        Ok(cells.number(0).expect("one was added"))
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_slow_reader(text in "-?[0-9]{0,20}(\\.[0-9]{0,20})?", scale in 0..=MOST_DIGITS) {
            let reader = number(scale, Marks::default());
            let slow = parse_scaled(&text, scale);
            match (read(&reader, &text), &slow) {
                (Ok(value), Ok(slow)) => prop_assert_eq!(value, *slow),
                (Ok(value), Err(error)) => prop_assert!(false, "{} was read as {}: {}", text, value, error),
                (Err(fault), Ok(_)) => prop_assert!(false, "{} was refused: {}", text, fault),
                (Err(_), Err(_)) => {}
            }
        }

        #[test]
        fn marks_change_the_writing_and_not_the_number(value in -LARGEST..=LARGEST, scale in 0..=MOST_DIGITS, mark in prop::sample::select(THOUSANDS.to_vec())) {
            let point = Scaled { value: value.into(), scale }.to_string();
            let (sign, digits) = point.split_at(usize::from(point.starts_with('-')));
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let decimal = if mark == ',' { '.' } else { ',' };
            let mut grouped = String::new();
            for (index, digit) in whole.chars().enumerate() {
                if index > 0 && (whole.len() - index) % 3 == 0 {
                    grouped.push(mark);
                }
                grouped.push(digit);
            }
            let rest = if fraction.is_empty() { String::new() } else { format!("{decimal}{fraction}") };
            let reader = number(scale, Marks { decimal, thousands: Some(mark) });
            prop_assert_eq!(read(&reader, &format!("{sign}{grouped}{rest}")), Ok(value));
            prop_assert_eq!(read(&reader, &format!("{sign}{whole}{rest}")), Ok(value));
        }

        #[test]
        fn no_text_is_a_reason_to_panic(text in ".*", scale in 0..=MOST_DIGITS) {
            let _ = read(&number(scale, Marks { decimal: ',', thousands: Some('’') }), &text);
        }
    }

    #[test]
    fn marks_that_are_not_declared_are_reported_with_every_reading() {
        let said = |text: &str| {
            read(&number(2, Marks::default()), text)
                .expect_err("no plain number")
                .to_string()
        };
        assert_eq!(
            said("1.234,50"),
            "looks like 1234.50; put `decimal = \",\", thousands = \".\"` into the column if that is meant"
        );
        assert_eq!(
            said("-1,234.50"),
            "looks like -1234.50; put `thousands = \",\"` into the column if that is meant"
        );
        assert_eq!(
            said("1,234"),
            "looks like 1234 (`thousands = \",\"`) or like 1.234 (`decimal = \",\"`); put what is meant into the column"
        );
        assert_eq!(
            said("12 345"),
            "looks like 12345; put `thousands = \" \"` into the column if that is meant"
        );
        assert_eq!(said("12,34,5"), "is not a number");
        assert_eq!(
            read(
                &number(
                    1,
                    Marks {
                        decimal: ',',
                        thousands: None
                    }
                ),
                "1.5"
            )
            .expect_err("a comma")
            .to_string(),
            "looks like 1.5; put `decimal = \".\"` into the column if that is meant"
        );
    }
}
