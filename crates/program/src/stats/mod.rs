//! Statistics over tables of several owners: analyses, and their columns.

mod alone;
mod analysis;
mod axis;
mod bit_source;
pub(crate) mod chart;
mod clear;
mod derive;
mod extremes;
mod files;
mod inference;
mod keep;
mod lower;
mod moments;
mod monomial;
mod parse;
mod products;
mod regression;
mod report;
mod result;
mod sink;
mod solve;
mod source;
mod svg;
mod tables;
mod written;

use std::{fmt, path::PathBuf};

#[doc(hidden)]
pub use crate::table::fuzz_table;
pub use analysis::{Analysis, End, Fraction, Statistic};
pub(crate) use bit_source::BitSource;
pub use inference::{Confidence, Interval, Test};
pub use keep::Keeping;
pub(crate) use keep::ring_of;
pub use result::{AnalysisResult, Estimate, Figure, Group, Opened, StatsResult};
pub use sink::StatsSink;
pub use source::StatsSource;
pub(crate) use source::{Reading, table};

use crate::{date, number::Scaled, table::Notation};
pub(crate) use files::ResultFiles;
pub(crate) use lower::Opening;
use lower::{Cell, Layout, Port};
pub(crate) use parse::{bound, day, marks, most_opened, notation};
pub use tables::TableAnalysis;
pub(crate) use tables::{Relation, parse as of_tables, place, result};
use veil_job::{Block, Holder, Order};

/// The treatment of an empty cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Missing {
    /// It is an error at the owner: every cell must have a value.
    Refuse,
    /// The row counts in no analysis.
    DropRow,
    /// The row counts in no analysis that uses this column.
    DropPair,
    /// It counts as the value 0.
    Zero,
}

impl Missing {
    /// The word in job files.
    pub const fn name(self) -> &'static str {
        match self {
            Missing::Refuse => "refuse",
            Missing::DropRow => "drop-row",
            Missing::DropPair => "drop-pair",
            Missing::Zero => "zero",
        }
    }
}

/// How the numbers of a text column are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// Before the fraction: a point or a comma.
    pub decimal: char,
    /// Between groups of three digits, if any.
    pub thousands: Option<char>,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            decimal: '.',
            thousands: None,
        }
    }
}

impl fmt::Display for Marks {
    /// As in job files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { decimal, thousands } = self;
        match thousands {
            None => write!(f, "decimal = \"{decimal}\""),
            Some(mark) if *decimal == '.' => write!(f, "thousands = \"{mark}\""),
            Some(mark) => write!(f, "decimal = \"{decimal}\", thousands = \"{mark}\""),
        }
    }
}

/// The type of a column's cells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Numbers in units of `10^-scale`.
    Number {
        /// Digits after the point.
        scale: u8,
        /// Smallest value, in those units.
        min: i64,
        /// Largest value.
        max: i64,
        /// Unit to show, such as `EUR`.
        unit: Option<String>,
        /// How text files write them.
        marks: Marks,
    },
    /// Dates, computed as days since 1970-01-01.
    Date {
        /// First day.
        min: i64,
        /// Last day.
        max: i64,
        /// Format in text files, as in `strftime`; ISO 8601 if nothing is said.
        format: Option<String>,
    },
    /// One of these values.
    Category(Vec<String>),
}

/// A column, the same in all blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Name, also in the header of the files.
    pub name: String,
    /// Numbers or categories.
    pub kind: ColumnKind,
    /// The treatment of an empty cell.
    pub missing: Missing,
}

impl Column {
    /// The values of a category column; none for numbers.
    pub fn categories(&self) -> &[String] {
        match &self.kind {
            ColumnKind::Category(values) => values,
            ColumnKind::Number { .. } | ColumnKind::Date { .. } => &[],
        }
    }

    /// The smallest and the largest value, in units of the scale or in days; nothing for categories.
    pub fn range(&self) -> Option<(i64, i64)> {
        match self.kind {
            ColumnKind::Number { min, max, .. } | ColumnKind::Date { min, max, .. } => {
                Some((min, max))
            }
            ColumnKind::Category(_) => None,
        }
    }

    /// A value as people write it: a date, or a decimal.
    pub fn show(&self, value: i64) -> String {
        match self.kind {
            ColumnKind::Date { .. } => date::show(value),
            _ => Scaled {
                value: value.into(),
                scale: self.scale(),
            }
            .to_string(),
        }
    }

    /// The type in a word, as in job files.
    pub fn type_name(&self) -> &'static str {
        match self.kind {
            ColumnKind::Number { scale: 0, .. } => "integer",
            ColumnKind::Number { .. } => "decimal",
            ColumnKind::Date { .. } => "date",
            ColumnKind::Category(_) => "category",
        }
    }

    /// Whether it has values to add and multiply: numbers and dates.
    pub(crate) fn is_number(&self) -> bool {
        self.range().is_some()
    }

    pub(crate) fn is_date(&self) -> bool {
        matches!(self.kind, ColumnKind::Date { .. })
    }

    pub(crate) fn scale(&self) -> u8 {
        match self.kind {
            ColumnKind::Number { scale, .. } => scale,
            ColumnKind::Date { .. } | ColumnKind::Category(_) => 0,
        }
    }

    /// The unit of differences.
    pub(crate) fn unit(&self) -> Option<&str> {
        match &self.kind {
            ColumnKind::Number { unit, .. } => unit.as_deref(),
            ColumnKind::Date { .. } => Some("days"),
            ColumnKind::Category(_) => None,
        }
    }

    /// Whether a row can be without a value.
    pub(crate) fn may_be_missing(&self) -> bool {
        matches!(self.missing, Missing::DropRow | Missing::DropPair)
    }
}

/// A key column whose order the owners of a block compare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alignment {
    /// Name of the column in every owner's file. It is read for this alone, and never shared.
    pub column: String,
    /// Rows per compared digest.
    pub every: u32,
    /// Whether several rows of an owner may have the same key.
    pub duplicates: bool,
}

/// Why the rows of a block's owners are rows of the same people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pairing {
    /// Nothing is said: one owner holds all columns, or they are stored.
    Unsaid,
    /// The owners have agreed on the order beforehand, and it is not compared.
    Agreed,
    /// The owners compare the order of a key column.
    Compared(Alignment),
}

impl Pairing {
    /// The key column whose order is compared, if one is.
    pub const fn compared(&self) -> Option<&Alignment> {
        match self {
            Pairing::Compared(align) => Some(align),
            Pairing::Unsaid | Pairing::Agreed => None,
        }
    }

    /// The same, as all participants must know it.
    pub(crate) fn order(&self) -> Order {
        match *self {
            Pairing::Unsaid => Order::Unsaid,
            Pairing::Agreed => Order::Agreed,
            Pairing::Compared(Alignment {
                every, duplicates, ..
            }) => Order::Compared { every, duplicates },
        }
    }
}

/// Rows of the same people, machines or days, whose columns may lie with several owners, in the same order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatsBlock {
    /// Name in the job.
    pub name: String,
    /// Rows, with those behind the last of the owner's file, if the job says no number but a bound: rows without any value.
    pub rows: u64,
    /// The fewest rows that the owners' files may have.
    pub fewest_rows: u64,
    /// Who holds each column of the job, in order.
    pub holders: Vec<Holder>,
    /// Where the owners' files are, if the job says so.
    pub files: Vec<(Holder, PathBuf)>,
    /// Between the cells of the owners' CSV files, where it is not a comma.
    pub delimiters: Vec<(Holder, u8)>,
    /// How the owners' files write their cells, where it is not as the columns say.
    pub(crate) notations: Vec<(Holder, Notation)>,
    /// Why its rows are rows of the same people, if they lie with several owners.
    pub pairing: Pairing,
    /// The dataset that all columns are loaded from, instead of holders that supply them.
    pub stored: Option<String>,
}

impl StatsBlock {
    /// The delimiter of cells in a CSV file of `holder`.
    pub fn delimiter(&self, holder: Holder) -> u8 {
        let given = self.delimiters.iter().find(|given| given.0 == holder);
        given.map_or(b',', |given| given.1)
    }

    /// How the file of `holder` writes its cells.
    pub(crate) fn notation(&self, holder: Holder) -> Notation {
        let given = self.notations.iter().find(|given| given.0 == holder);
        given.map_or_else(Notation::default, |given| given.1.clone())
    }
}

/// A statistics job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// Columns, as the job lists them.
    pub columns: Vec<Column>,
    /// Blocks, stacked.
    pub blocks: Vec<StatsBlock>,
    /// Questions.
    pub analyses: Vec<Analysis>,
    /// The columns that the parties keep.
    pub keep: Option<Keeping>,
    /// The most numbers that may be opened.
    pub most_opened: u64,
}

impl Stats {
    /// Rows of all blocks.
    pub fn rows(&self) -> u64 {
        self.blocks.iter().map(|block| block.rows).sum()
    }

    /// The blocks of the contract. Parties that compute on integers take every row of each; two take one row, in which the rows are those of
    /// cycles, or sums.
    pub(crate) fn shared(&self, opening: &Opening) -> Vec<Block> {
        if let Some(layout) = &opening.layout {
            return vec![self.in_cycles(layout)];
        }
        let blocks = self.blocks.iter();
        let shared = blocks.map(|block| Block {
            name: block.name.clone(),
            rows: block.rows,
            holders: (opening.columns.iter())
                .map(|&column| block.holders[column])
                .chain(opening.extremes.iter().flat_map(|one| one.holders.clone()))
                .collect(),
            stored: block.stored.clone(),
            order: block.pairing.order(),
        });
        shared.collect()
    }

    /// The one row that two parties take.
    fn in_cycles(&self, layout: &Layout) -> Block {
        let joint = layout.joint();
        let named = layout.compared.or(joint.first().copied());
        let agreed = joint
            .iter()
            .any(|&block| self.blocks[block].pairing == Pairing::Agreed);
        let order = layout.compared.and_then(|block| {
            let rows = self.blocks[block].rows;
            self.blocks[block].pairing.order().in_cycles(rows)
        });
        Block {
            name: self.blocks[named.unwrap_or(0)].name.clone(),
            rows: 1,
            holders: layout.holders(self),
            stored: None,
            order: order.unwrap_or(if agreed { Order::Agreed } else { Order::Unsaid }),
        }
    }

    /// The columns that must have a value in a row, or it does not count for an analysis: those that the statistic
    /// uses, and those that drop a row from everything.
    pub(crate) fn needed(&self, analysis: &Analysis) -> Vec<usize> {
        let mut needed = analysis.statistic.columns();
        let drops = |column: &usize| self.columns[*column].missing == Missing::DropRow;
        needed.extend((0..self.columns.len()).filter(drops));
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Whether rows can be left out of an analysis because a value is missing.
    pub(crate) fn may_drop(&self, analysis: &Analysis) -> bool {
        let used = self.needed(analysis);
        let mut used = used.iter().chain(&analysis.by);
        used.any(|&column| self.columns[column].may_be_missing())
    }

    /// The groups of an analysis: a value for each column of `by`, numbered as in the column.
    pub(crate) fn groups(&self, analysis: &Analysis) -> Vec<Vec<u8>> {
        analysis
            .by
            .iter()
            .fold(vec![Vec::new()], |groups, &column| {
                let values = self.columns[column].categories().len() as u8;
                let extend = |group: Vec<u8>| {
                    (0..values).map(move |value| [group.as_slice(), &[value]].concat())
                };
                groups.into_iter().flat_map(extend).collect()
            })
    }

    /// Names of columns.
    fn names(&self, columns: &[usize]) -> Vec<String> {
        let name = |&column: &usize| self.columns[column].name.clone();
        columns.iter().map(name).collect()
    }

    /// What the values of a group are called.
    fn values(&self, analysis: &Analysis, group: &[u8]) -> Vec<String> {
        let value = |(&column, &value): (&usize, &u8)| {
            self.columns[column].categories()[usize::from(value)].clone()
        };
        analysis.by.iter().zip(group).map(value).collect()
    }
}
