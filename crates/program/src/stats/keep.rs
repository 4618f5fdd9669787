//! Columns that parties keep in one job and load in another: names, ports, and meanings.

use std::fmt::Write as _;

use toml::Spanned;
use veil_math::Ring;

use super::{Column, ColumnKind, Stats};
use crate::{
    error::{Fault, JobProblem},
    raw::RawKeep,
    roles::check_name,
};

/// Bits of an element that a dataset may have.
const WIDE: u16 = 128;
const NARROW: u16 = 64;

/// The kept columns of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keeping {
    /// Name of the dataset.
    pub name: String,
    /// Ring of the shares, if the job says so; otherwise the one that its analyses need.
    pub ring: Option<Ring>,
}

impl Keeping {
    pub(super) fn parse(raw: &RawKeep) -> Result<Self, Fault> {
        check_name("dataset", &raw.name)?;
        Ok(Keeping {
            name: raw.name.get_ref().clone(),
            ring: raw.ring.as_ref().map(ring_of).transpose()?,
        })
    }
}

/// The ring of kept shares whose elements have so many bits.
pub(crate) fn ring_of(bits: &Spanned<u16>) -> Result<Ring, Fault> {
    match *bits.get_ref() {
        NARROW => Ok(Ring::Z64),
        WIDE => Ok(Ring::Z128),
        other => Err(Fault::new(
            bits.span(),
            JobProblem::Number {
                field: "ring",
                value: other.to_string(),
                reason: "shares are kept with 64 or with 128 bits".into(),
            },
        )),
    }
}

impl Stats {
    /// The meaning of the columns, wherever their shares are: two jobs with the same text can use the same dataset. It says nothing of
    /// blocks, holders and analyses, nor of how files write a value.
    pub fn schema(&self) -> String {
        let mut text = String::new();
        for column in &self.columns {
            if !text.is_empty() {
                text += "; ";
            }
            // Writing to a string does not fail.
            let _ = column.declare(&mut text);
        }
        text
    }
}

impl Column {
    /// Strings are quoted with escapes, so that no two declarations read alike.
    fn declare(&self, text: &mut String) -> std::fmt::Result {
        let Self {
            name,
            kind,
            missing,
        } = self;
        write!(text, "{name:?}: {}", self.type_name())?;
        match kind {
            ColumnKind::Number {
                scale,
                min,
                max,
                unit,
                marks: _,
            } => {
                if *scale > 0 {
                    write!(text, ", scale {scale}")?;
                }
                write!(text, ", {} to {}", self.show(*min), self.show(*max))?;
                if let Some(unit) = unit {
                    write!(text, ", unit {unit:?}")?;
                }
            }
            ColumnKind::Date {
                min,
                max,
                format: _,
            } => write!(text, ", {} to {}", self.show(*min), self.show(*max))?,
            ColumnKind::Category(values) => write!(text, ", {values:?}")?,
        }
        write!(text, ", missing {:?}", missing.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Marks, Missing};

    fn columns() -> Vec<Column> {
        let number = |scale, unit: Option<&str>| ColumnKind::Number {
            scale,
            min: -5,
            max: 99_999,
            unit: unit.map(String::from),
            marks: Marks::default(),
        };
        let column = |name: &str, kind, missing| Column {
            name: name.into(),
            kind,
            missing,
        };
        vec![
            column("pay", number(2, Some("EUR")), Missing::DropPair),
            column("age", number(0, None), Missing::Refuse),
            column(
                "since",
                ColumnKind::Date {
                    min: 0,
                    max: 1,
                    format: None,
                },
                Missing::DropRow,
            ),
            column(
                "region",
                ColumnKind::Category(vec!["north".into(), "so\"uth".into()]),
                Missing::Refuse,
            ),
        ]
    }

    fn schema(columns: Vec<Column>) -> String {
        Stats {
            columns,
            blocks: Vec::new(),
            analyses: Vec::new(),
            keep: None,
            most_opened: 1024,
        }
        .schema()
    }

    #[test]
    fn a_schema_says_what_the_columns_mean() {
        assert_eq!(
            schema(columns()),
            "\"pay\": decimal, scale 2, -0.05 to 999.99, unit \"EUR\", missing \"drop-pair\"; \
             \"age\": integer, -5 to 99999, missing \"refuse\"; \
             \"since\": date, 1970-01-01 to 1970-01-02, missing \"drop-row\"; \
             \"region\": category, [\"north\", \"so\\\"uth\"], missing \"refuse\""
        );
    }

    #[test]
    fn whatever_changes_the_meaning_changes_the_schema() {
        let mut seen = vec![schema(columns())];
        let changes: [fn(&mut Vec<Column>); 6] = [
            |c| c[0].name = "wage".into(),
            |c| c[0].missing = Missing::Zero,
            |c| c.swap(0, 1),
            |c| drop(c.pop()),
            |c| c[3].kind = ColumnKind::Category(vec!["north\", \"so\"uth".into()]),
            |c| {
                if let ColumnKind::Number { max, .. } = &mut c[1].kind {
                    *max += 1;
                }
            },
        ];
        for change in changes {
            let mut columns = columns();
            change(&mut columns);
            let schema = schema(columns);
            assert!(!seen.contains(&schema), "{schema}");
            seen.push(schema);
        }
    }

    #[test]
    fn how_files_write_a_value_does_not_matter() {
        let mut other = columns();
        if let ColumnKind::Number { marks, .. } = &mut other[0].kind {
            marks.decimal = ',';
        }
        if let ColumnKind::Date { format, .. } = &mut other[2].kind {
            *format = Some("%d.%m.%Y".into());
        }
        assert_eq!(schema(other), schema(columns()));
    }
}
