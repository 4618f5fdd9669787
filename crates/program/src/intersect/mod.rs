//! Private set intersection: which keys of a table another party's table has too, or what is computed of those that both have.
//!
//! A job has a table of each of two parties, with one column that is a key, and says what is opened. A key is a digest of the
//! texts of one or more columns of a file, 32 bytes of SHA-256; rows without a key have none, rows of one key are one, and what a table has fewer than
//! declared are keys that no row has.
//!
//! Which keys both have is opened by a protocol of its own. How many they are, sums of their values, and columns of the other table are computed by a circuit over
//! [bins].

mod bins;
mod parse;
mod reading;
mod sink;
mod source;

use std::path::{Path, PathBuf};

use veil_circuit::Circuit;
use veil_job::{Audience, Block, Holder, InputSpec, Order, equality};
use veil_session::PartyId;

use crate::query::OwnerTable;
use crate::table::{TableReport, Watch};
use veil_job::DataError;

pub(crate) use bins::BinSource;
pub use bins::{BinSink, OfCommon};
pub use sink::{CommonKeys, IntersectionSink};
pub(crate) use source::KeySource;

use bins::{Bins, Cell};
use reading::Readings;

/// The output port.
const OUTPUT: &str = "common";

/// Bytes that three semi-honest parties send together for a comparison of keys, with all that such a query takes besides: what `veil explain` says of one over 2 · 10^5 rows.
const BYTES_OF_A_COMPARISON: u64 = 65;

/// Keys of a table, at most, where more is opened than which keys both have.
pub(crate) const MOST_COUNTED: u32 = 1 << 16;

/// Megabytes that three parties send, about, to join two tables of so many keys by a query, count and add up: both tables are put in the order of keys
/// of 80 bits, which takes 1.1 log2 (2 n) comparisons a row.
pub(crate) fn among_three(keys: u32) -> u64 {
    let rows = 2 * u64::from(keys);
    rows * u64::from(rows.max(2).ilog2()) * BYTES_OF_A_COMPARISON / 1_000_000
}

/// What of the keys that both have is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shows {
    /// Which they are, to the party that has them.
    Keys,
    /// How many they are.
    Size,
    /// How many they are, and the sum of every column of values over them.
    Sums,
    /// Which they are, to the party that has them, with the other party's columns of values.
    Columns,
}

impl Shows {
    const ALL: [Self; 4] = [Self::Keys, Self::Size, Self::Sums, Self::Columns];

    /// Its word in job files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Size => "size",
            Self::Sums => "sums",
            Self::Columns => "columns",
        }
    }

    /// Whether it is opened for each key, to the party that has the key.
    pub const fn names_keys(self) -> bool {
        matches!(self, Self::Keys | Self::Columns)
    }
}

/// A job in which keys of two parties meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intersection {
    /// The table of each party, in the order of the parties.
    pub(crate) tables: [OwnerTable; 2],
    /// What is opened.
    pub(crate) opened: Shows,
    /// To whom.
    pub(crate) to: Audience,
    /// The fewest keys of which a number or a sum is opened; 0 or 1 for any.
    pub(crate) least: u32,
    /// The file of the result, within the folder of its recipient.
    pub(crate) file: PathBuf,
    /// The column of each table that is its key.
    keys_at: [usize; 2],
    /// The columns of each table whose values count.
    cells: [Vec<Cell>; 2],
    readings: Readings,
}

impl Intersection {
    /// What is opened.
    pub const fn opens(&self) -> Shows {
        self.opened
    }

    /// The fewest keys of which a number or a sum is opened; 0 if it is opened of any.
    pub const fn least(&self) -> u32 {
        self.least
    }

    /// Keys of a party, at most.
    pub(crate) fn keys(&self) -> [u64; 2] {
        let [a, b] = &self.tables;
        [a, b].map(|table| u64::from(table.table.capacity))
    }

    /// Keys of a party, at most; nothing for one without a table.
    pub fn keys_of(&self, holder: Holder) -> Option<u64> {
        let (at, _) = self.of(holder)?;
        Some(self.keys()[at])
    }

    /// The table of a holder, and its port.
    pub(crate) fn of(&self, holder: Holder) -> Option<(usize, &OwnerTable)> {
        let tables = self.tables.iter().enumerate();
        tables.into_iter().find(|(_, table)| table.holder == holder)
    }

    /// The number of the table whose keys are named in the result, or of the first one where none are.
    fn own(&self) -> usize {
        match self.to {
            Audience::Party(party) if self.opened.names_keys() => party.index(),
            _ => 0,
        }
    }

    /// The table whose keys are opened, and the other one.
    pub(crate) fn sides(&self) -> [&OwnerTable; 2] {
        let own = self.own();
        [own, 1 - own].map(|at| &self.tables[at])
    }

    /// The columns of a table whose values count.
    fn values(&self, at: usize) -> &[Cell] {
        &self.cells[at]
    }

    /// Whether the result has the texts of a table's keys.
    fn shows_texts(&self, at: usize) -> bool {
        self.opened.names_keys() && at == self.own()
    }

    /// The columns of its file of which a table has a key.
    fn key_of(&self, at: usize) -> &[String] {
        &self.tables[at].columns[self.keys_at[at]].of
    }

    /// A column of a table, as `table.column`.
    fn named(&self, at: usize, column: usize) -> String {
        let table = &self.tables[at].table;
        format!("{}.{}", table.name, table.columns[column].name)
    }

    /// The key of each table, as `table.column`.
    pub fn key_columns(&self) -> impl Iterator<Item = String> {
        (0..2).map(|at| self.named(at, self.keys_at[at]))
    }

    /// The columns whose values are added up or opened, as `table.column`.
    pub fn value_columns(&self) -> impl Iterator<Item = String> {
        let of = move |at: usize| {
            let cells = self.values(at).iter();
            cells.map(move |cell| self.named(at, cell.column))
        };
        (0..2).flat_map(of)
    }

    /// Keys that both may have, at most.
    pub fn most_common(&self) -> u64 {
        let [a, b] = self.keys();
        a.min(b)
    }

    /// The fewest rows that each of the two tables may have.
    pub fn fewest_rows(&self) -> u64 {
        let least = self.tables.iter().map(|table| table.rows.least());
        least.min().unwrap_or(0)
    }

    /// What a result is in, within the folder of its recipient.
    pub fn file(&self) -> &Path {
        &self.file
    }

    fn bins(&self) -> Bins {
        Bins::of(self)
    }

    pub(crate) fn circuit(&self) -> Circuit {
        if self.opened != Shows::Keys {
            return self.bins().circuit(self);
        }
        let [a, b] = &self.tables;
        equality([&a.table.name, &b.table.name], OUTPUT)
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let keys = self.keys();
        let (rows, order) = match (self.opened, self.to) {
            (Shows::Keys, Audience::Party(result)) => {
                (keys[result.index()], Order::Intersected { keys, result })
            }
            _ => (1, Order::Unsaid),
        };
        vec![Block {
            name: "keys".into(),
            rows,
            holders: PartyId::TWO.map(Holder::Party).to_vec(),
            stored: None,
            order,
        }]
    }

    pub(crate) fn audiences(&self) -> Vec<Audience> {
        let ports = match self.opened {
            Shows::Keys | Shows::Size | Shows::Columns => 1,
            Shows::Sums => 1 + self.value_columns().count(),
        };
        vec![self.to; ports]
    }

    /// How keys become inputs of a circuit.
    pub(crate) fn schema(&self) -> String {
        match self.opened {
            Shows::Keys => String::new(),
            _ => self.bins().schema(),
        }
    }

    /// A sentence for each output: what is opened, and what a party that lies can do.
    pub(crate) fn sentences(&self, parties: &[String]) -> Vec<String> {
        let [own, other] = self.sides();
        let name = |table: &OwnerTable| match table.holder {
            Holder::Party(party) => parties[party.index()].clone(),
            _ => String::new(),
        };
        let (from, to) = (name(other), name(own));
        let (keys, others) = (own.table.capacity, other.table.capacity);
        let (own, other) = (&own.table.name, &other.table.name);
        let both = format!(
            "`{own}` of {to} and `{other}` of {from} have in common, for up to {keys} and {others} keys"
        );
        let least = match self.least {
            0 | 1 => String::new(),
            least => format!(", and 0 of fewer than {least}"),
        };
        let lies = "a party that lies can use other keys than those of its file, as many as it has declared";
        match self.opened {
            Shows::Keys => vec![format!(
                "which keys of `{own}` are in `{other}` of {from}, for up to {keys} keys of {to}: one that lies can ask for up to {} keys, and need \
                 have none of them; {from} learns nothing, and can leave keys out",
                veil_job::Intersection {
                    keys: self.keys(),
                    result: PartyId::TWO[self.own()],
                }
                .most_keys_asked()
            )],
            Shows::Size | Shows::Sums => {
                let size = format!("how many keys {both}{least}: {lies}");
                let sum = |column| {
                    format!("the sum of `{column}` over the keys that {both}{least}: {lies}")
                };
                std::iter::once(size)
                    .chain(self.value_columns().map(sum))
                    .collect()
            }
            Shows::Columns => {
                let columns: Vec<String> = self.value_columns().collect();
                vec![format!(
                    "which keys of `{own}` are in `{other}` of {from}, and `{}` of each, for up to {keys} keys of {to} and {others} of {from}: {lies}; {from} \
                     learns nothing",
                    columns.join("`, `")
                )]
            }
        }
    }

    pub(crate) fn inputs(&self) -> Vec<InputSpec> {
        let of = |(at, table): (usize, &OwnerTable)| {
            let input = |column: usize, format| InputSpec {
                holder: table.holder,
                block: None,
                column: Some(table.table.columns[column].name.clone()),
                port: Some(table.table.name.clone()),
                format,
            };
            let key = format!(
                "a key of `{}`, in up to {} rows",
                self.key_of(at).join("` and `"),
                table.table.capacity
            );
            let values = self.values(at).iter().map(|cell| {
                let read = table.columns[cell.column].of.join("` and `");
                let ty = &table.table.columns[cell.column].ty;
                let makes = table.notation.makes();
                input(
                    cell.column,
                    format!("{}, of `{read}`{makes}", cell.words(ty)),
                )
            });
            let key = input(self.keys_at[at], key);
            std::iter::once(key).chain(values).collect::<Vec<_>>()
        };
        self.tables.iter().enumerate().flat_map(of).collect()
    }

    /// Checks the file of a party.
    pub(crate) fn check(
        &self,
        holder: Holder,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<TableReport, DataError> {
        let (_, reading) = self.reading(holder, file, watch)?;
        Ok(reading.report().clone())
    }
}
