//! What a shadow run reports: proved ranges beside what sample rows use of them.

use std::fmt::Write as _;

use serde::Serialize;
use veil_job::DataError;
use veil_relation::clear::{ColumnUse, Observed};
use veil_relation::{Kind, Range, Value};

use super::{Queries, show};
use crate::InputError;

/// What a shadow run reports: of each column of tables and queries its proved range, and what sample rows use of it. It never feeds the planner: a plan
/// that depends on data would tell of them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shadow {
    /// The job.
    pub job: String,
    /// The columns that queries read, by table, then those that queries make, by query.
    pub columns: Vec<ShadowColumn>,
}

/// A column of a shadow run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ShadowColumn {
    /// The table or the query.
    pub relation: String,
    /// Whether the relation is a query, whose ranges are derived, and no table, whose ranges are declared.
    pub derived: bool,
    /// The column.
    pub column: String,
    /// Its type.
    pub r#type: String,
    /// Rows of the relation.
    pub rows: u64,
    /// Rows in which the column is null.
    pub nulls: u64,
    /// The proved range, in its own units: its ends, as result files write cells. Nothing of quotients and keys.
    pub proved: Option<[String; 2]>,
    /// The least and the greatest value of the sample; nothing of keys, and where there is none.
    pub observed: Option<[String; 2]>,
    /// Bits that the proved range takes.
    pub bits: Option<u32>,
    /// Bits that the observed range would take.
    pub used_bits: Option<u32>,
    /// Rows at the least and at the greatest value of the proved range, where `least` and `greatest` put what is beyond; of numbers and dates.
    pub at_ends: Option<[u64; 2]>,
    /// The largest distance from IEEE doubles, in units of the numbers, of a column that functions without exact values made.
    pub max_error: Option<f64>,
}

impl Queries {
    /// Refuses tables that no participant has.
    pub(crate) fn without_stored(&self) -> Result<(), DataError> {
        for table in &self.tables {
            if let Some(dataset) = table.table.origin.dataset() {
                return Err(InputError::Stored {
                    table: table.table.name.clone(),
                    dataset: dataset.to_owned(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// The same tables, each of which may have fewer rows.
    pub(crate) fn of_sample(&self) -> Self {
        let mut sample = self.clone();
        for table in &mut sample.tables {
            table.rows = table.rows.of_sample();
        }
        sample
    }

    /// The report on what was observed of tables and steps.
    pub(crate) fn shadow(&self, job: &str, observed: &[Observed]) -> Shadow {
        let mut columns = Vec::new();
        for (at, relation) in observed.iter().enumerate() {
            let derived = at >= self.tables.len();
            let read = (!derived).then(|| {
                let read = self.is_taken(at).then(|| self.columns_read(at));
                read.unwrap_or_default()
            });
            let name = if derived {
                self.title(&relation.name)
            } else {
                &relation.name
            };
            for (index, column) in relation.columns.iter().enumerate() {
                if read.as_ref().is_none_or(|read| read.contains(&index)) {
                    columns.push(ShadowColumn::new(name, derived, relation.rows, column));
                }
            }
        }
        Shadow {
            job: job.to_owned(),
            columns,
        }
    }
}

impl ShadowColumn {
    fn new(relation: &str, derived: bool, rows: u64, of: &ColumnUse) -> Self {
        let kind = &of.field.ty.kind;
        let range = kind.range();
        let ends = |(least, greatest)| [show::cell(kind, least), show::cell(kind, greatest)];
        let of_kind = |end: i128| match kind {
            Kind::Bool => Value::Bool(end != 0),
            _ => Value::Number(end),
        };
        let used = of.extremes.and_then(|(least, greatest)| {
            let number = |value| match value {
                Value::Bool(bit) => Some(i128::from(bit)),
                value => value.number(),
            };
            Range::new(number(least)?, number(greatest)?)
        });
        Self {
            relation: relation.to_owned(),
            derived,
            column: of.field.name.clone(),
            r#type: kind.to_string(),
            rows,
            nulls: of.nulls,
            proved: range.map(|range| ends((of_kind(range.min()), of_kind(range.max())))),
            observed: of.extremes.map(ends),
            bits: range.map(Range::bits),
            used_bits: used.map(Range::bits),
            at_ends: of.at_ends.map(|(least, greatest)| [least, greatest]),
            max_error: of.error,
        }
    }

    /// Bits of the proved range that no observed value needs; nothing of a column without bits or without values.
    #[must_use]
    pub fn unused_bits(&self) -> Option<u32> {
        Some(self.bits?.saturating_sub(self.used_bits?))
    }
}

impl Shadow {
    /// The report as one JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("a report has only text, numbers and lists")
    }

    /// The report as a table for people, a part for each relation.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let same = |a: &ShadowColumn, b: &ShadowColumn| {
            (a.derived, &a.relation) == (b.derived, &b.relation)
        };
        for columns in self.columns.chunk_by(same) {
            let (first, gap) = (&columns[0], if text.is_empty() { "" } else { "\n" });
            let what = if first.derived { "query" } else { "table" };
            let rows = match first.rows {
                1 => "1 row".to_owned(),
                rows => format!("{rows} rows"),
            };
            let _ = writeln!(text, "{gap}{what} {}: {rows}", first.relation);
            let head = [
                "column",
                "proved",
                "observed",
                "bits used",
                "nulls",
                "at the ends",
                "from doubles",
            ];
            let mut lines = vec![head.map(str::to_owned)];
            lines.extend(columns.iter().map(ShadowColumn::line));
            text += &aligned(&lines);
        }
        text
    }
}

impl ShadowColumn {
    fn line(&self) -> [String; 7] {
        let span = |ends: &Option<[String; 2]>| match ends {
            Some([least, greatest]) if least == greatest => show::short(least),
            Some([least, greatest]) => {
                format!("{} to {}", show::short(least), show::short(greatest))
            }
            None => "–".to_owned(),
        };
        [
            show::short(&self.column),
            match self.proved {
                None => self.r#type.clone(),
                Some(_) => span(&self.proved),
            },
            span(&self.observed),
            match (self.used_bits, self.bits) {
                (Some(used), Some(bits)) => format!("{used} of {bits}"),
                (None, Some(bits)) => format!("– of {bits}"),
                _ => "–".to_owned(),
            },
            self.nulls.to_string(),
            match self.at_ends {
                Some([least, greatest]) => format!("{least} and {greatest}"),
                None => "–".to_owned(),
            },
            self.max_error
                .map_or_else(|| "–".to_owned(), |error| format!("{error:.1e}")),
        ]
    }
}

/// Lines with their cells below each other; the first is a heading. A column that has nothing in any line is left out.
fn aligned(lines: &[[String; 7]]) -> String {
    let empty = |column: &usize| lines[1..].iter().all(|line| line[*column] == "–");
    let shown: Vec<usize> = (0..7).filter(|column| !empty(column)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let mut text = String::new();
    for line in lines {
        let mut all = String::from(" ");
        for &column in &shown {
            let (cell, width) = (&line[column], width(column).unwrap_or(0));
            let gap = " ".repeat(width - cell.chars().count());
            let _ = write!(all, " {cell}{gap} ");
        }
        text += all.trim_end();
        text.push('\n');
    }
    text
}
