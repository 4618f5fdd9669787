//! Private set intersection: which keys of a table another party's table has too.
//!
//! A job has a table of each of two parties, with one column that is a key, and says which of the two learns what both have. A key is a digest of the
//! texts of one or more columns of a file, 32 bytes of SHA-256; rows without a key have none, rows of one key are one, and what a table has fewer than
//! declared are keys that no row has.

mod parse;
mod sink;
mod source;

use std::path::{Path, PathBuf};

use veil_circuit::Circuit;
use veil_job::{Audience, Block, Holder, InputSpec, Order, equality};
use veil_session::PartyId;

use crate::query::OwnerTable;
use crate::table::{Digest, Reader, Table, TableReport, Wanted, Watch};
use veil_job::DataError;

pub use sink::{CommonKeys, IntersectionSink};
pub(crate) use source::KeySource;

/// Prefixes of what is hashed for each half of a key.
const HALVES: [&str; 2] = ["intersection, first half", "intersection, second half"];

/// The output port.
const OUTPUT: &str = "common";

/// A job in which keys of two parties meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Intersection {
    /// The table of each party, in the order of the parties.
    pub(crate) tables: [OwnerTable; 2],
    /// Who learns which of its keys the other has.
    pub(crate) result: PartyId,
    /// The file of the result, within the folder of its recipient.
    pub(crate) file: PathBuf,
}

impl Intersection {
    /// Keys of a party, at most.
    pub(crate) fn keys(&self) -> [u64; 2] {
        let [a, b] = &self.tables;
        [a, b].map(|table| u64::from(table.table.capacity))
    }

    /// The table of a holder, and its port.
    pub(crate) fn of(&self, holder: Holder) -> Option<(usize, &OwnerTable)> {
        let tables = self.tables.iter().enumerate();
        tables.into_iter().find(|(_, table)| table.holder == holder)
    }

    /// The table whose keys are opened, and the other one.
    pub(crate) fn sides(&self) -> [&OwnerTable; 2] {
        let [a, b] = &self.tables;
        if self.result == PartyId::TWO[0] {
            [a, b]
        } else {
            [b, a]
        }
    }

    /// The columns of its file of which a table has a key.
    pub(crate) fn columns(table: &OwnerTable) -> &[String] {
        table.columns.first().map_or(&[], |column| &column.of)
    }

    /// The key of each table, as `table.column`.
    pub fn key_columns(&self) -> impl Iterator<Item = String> {
        let name = |table: &OwnerTable| {
            let column = &table.table.columns[0];
            format!("{}.{}", table.table.name, column.name)
        };
        self.tables.iter().map(name)
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

    pub(crate) fn circuit(&self) -> Circuit {
        let [a, b] = &self.tables;
        equality([&a.table.name, &b.table.name], OUTPUT)
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let keys = self.keys();
        vec![Block {
            name: "keys".into(),
            rows: keys[self.result.index()],
            holders: PartyId::TWO.map(Holder::Party).to_vec(),
            stored: None,
            order: Order::Intersected {
                keys,
                result: self.result,
            },
        }]
    }

    pub(crate) fn audiences(&self) -> Vec<Audience> {
        vec![Audience::Party(self.result)]
    }

    /// What is opened, to the recipient and by a recipient that lies, and what the other party learns.
    pub(crate) fn opened(&self, parties: &[String]) -> Vec<String> {
        let [own, other] = self.sides();
        let name = |table: &OwnerTable| match table.holder {
            Holder::Party(party) => parties[party.index()].clone(),
            _ => String::new(),
        };
        let (from, to) = (name(other), name(own));
        let keys = own.table.capacity;
        vec![format!(
            "which keys of `{}` are in `{}` of {from}, for up to {keys} keys of {to}: one that lies can ask for up to {} keys, and need \
             have none of them; {from} learns nothing, and can leave keys out",
            own.table.name,
            other.table.name,
            veil_job::Intersection {
                keys: self.keys(),
                result: self.result
            }
            .most_keys_asked()
        )]
    }

    pub(crate) fn inputs(&self) -> Vec<InputSpec> {
        let of = |table: &OwnerTable| InputSpec {
            holder: table.holder,
            block: None,
            column: table
                .table
                .columns
                .first()
                .map(|column| column.name.clone()),
            port: Some(table.table.name.clone()),
            format: format!(
                "a key of `{}`, in up to {} rows",
                Self::columns(table).join("` and `"),
                table.table.capacity
            ),
        };
        self.tables.iter().map(of).collect()
    }

    /// Checks the file of a party.
    pub(crate) fn check(
        &self,
        holder: Holder,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<TableReport, DataError> {
        let (_, table) = self
            .of(holder)
            .ok_or_else(|| DataError::own("this party has no table"))?;
        Ok(Self::open(table, file, false, watch)?.report().clone())
    }

    /// Opens the table of a party in a file, of which it reads both halves of keys, and the texts of their columns if these are wanted.
    pub(crate) fn open(
        table: &OwnerTable,
        file: &Path,
        texts: bool,
        watch: Watch<'_>,
    ) -> Result<Table, DataError> {
        let (column, written) = (&table.table.columns[0], &table.columns[0]);
        let halves = HALVES.iter().enumerate().map(|(half, prefix)| {
            let digest = Digest::new(prefix, 128);
            let reader = Reader::of_query(
                half,
                &column.ty,
                &written.of,
                written.marks,
                None,
                Some(digest),
            );
            reader.ok_or_else(|| DataError::own("a key is none of a file"))
        });
        let halves: Vec<Reader> = halves.collect::<Result<_, _>>()?;
        let parts = written.of.iter().filter(|_| texts);
        let parts = parts
            .enumerate()
            .map(|(at, part)| Reader::of_text(HALVES.len() + at, part));
        let readers = halves.into_iter().chain(parts);
        let wanted = Wanted {
            padded: false,
            readers: readers
                .map(|reader| reader.written(&table.notation))
                .collect(),
            kind: "table",
            name: &table.table.name,
            rows: table.rows,
            alone: true,
            delimiter: table.delimiter,
            order: None,
        };
        Table::open(file, &wanted, watch)
    }
}
