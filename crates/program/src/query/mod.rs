//! Queries over tables: SQL that parties answer without seeing a row.
//!
//! A job with queries names tables of owners and queries. [`Queries`] is the job checked: the program of the algebra that the queries are, and the
//! passes that parties run for it.

mod chart;
mod claims;
mod column;
mod decimal;
mod declare;
mod explain;
mod forest;
mod forests;
mod functions;
mod gradient;
mod keys;
mod lower;
mod model;
mod network;
mod networks;
mod parse;
mod read;
mod shadow;
mod show;
mod sink;
mod size;
mod source;
mod trained;
mod wanted;
mod within;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

use veil_job::Holder;
use veil_physical::{Opening, PhysicalPlan};
use veil_query::{Application, Model, ModelKind, TableFunction};
use veil_relation::{Kept, Program, Table};

pub use explain::{ColumnFacts, KeptFacts, Opens, Operator, TableFacts, openings};
pub use forests::{NetworkFacts, read_model, read_network};
pub use keys::Collisions;
pub use shadow::{Shadow, ShadowColumn};
pub use sink::{Answered, QuerySink};
pub(crate) use sink::{LACKS, of};
pub use size::SizeSink;
pub use write::Writing;

use crate::stats::{Marks, ResultFiles, TableAnalysis};
use crate::table::{Count, Notation};
pub(crate) use lower::fault;
pub(crate) use parse::table as owner_table;
pub(crate) use show::cell;
pub(crate) use source::{OwnTable, QuerySource};

/// A job with queries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queries {
    /// The tables, in the order of the program's.
    pub(crate) tables: Vec<OwnerTable>,
    /// The functions that are given by their values.
    pub(crate) functions: Vec<TableFunction>,
    /// The queries, those of analyses among them.
    pub(crate) asked: Vec<NamedQuery>,
    /// The analyses of a job with statistics.
    pub(crate) analyses: Vec<TableAnalysis>,
    /// The most numbers that may be opened, of a job with analyses.
    pub(crate) most_opened: Option<u64>,
    /// The public word under which keys are digests.
    pub(crate) salt: String,
    /// What is computed.
    pub(crate) program: Program,
    /// How: made again whenever the security is another.
    pub(crate) physical: Arc<PhysicalPlan>,
    /// Hashes of the families of its queries.
    pub(crate) families: Vec<[u8; 32]>,
    /// How likely two different keys have one digest.
    pub(crate) collisions: Vec<Collisions>,
}

/// A table, and how its owner's file is read, if it is of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OwnerTable {
    pub(crate) table: Table,
    pub(crate) holder: Holder,
    pub(crate) rows: Count,
    pub(crate) file: Option<PathBuf>,
    pub(crate) delimiter: u8,
    /// How its file writes cells.
    pub(crate) notation: Notation,
    /// How each column is written; nothing of a table that parties have kept.
    pub(crate) columns: Vec<Written>,
}

/// How a file writes a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// The columns of the file.
    pub(crate) of: Vec<String>,
    pub(crate) marks: Marks,
    /// Whether the column says its marks.
    pub(crate) marked: bool,
    pub(crate) format: Option<String>,
}

/// A query of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedQuery {
    /// Its name.
    pub name: String,
    /// Its text.
    pub sql: String,
    /// To whom its relation is opened, if it is.
    pub to: Option<String>,
    /// As which dataset the parties keep its relation, if they do, and whether its size is opened.
    pub keep: Option<Kept>,
    /// The fewest rows of a group that is shown, or of a model; 0 where all are, and for a model [`veil_query::ROWS_A_TERM`] for each term.
    pub min_count: u32,
    /// The files of its result.
    pub files: Vec<PathBuf>,
    /// The model that is fitted to its rows, if one is: its terms are the result.
    pub fit: Option<Model>,
    /// The network that is applied to its rows, if one is.
    pub apply: Option<Application>,
}

impl NamedQuery {
    /// What is left out where there are too few rows, in words.
    pub fn left_out(&self) -> Option<String> {
        let least = match self.min_count {
            0 => veil_query::ROWS_A_TERM,
            least => least,
        };
        let least = explain::count(least, "row");
        match self.fit.as_ref().map(|model| &model.kind) {
            None if self.min_count < 2 => None,
            None => Some(format!("groups of fewer than {least}")),
            Some(ModelKind::Clusters { .. }) => Some(format!("clusters of fewer than {least}")),
            Some(ModelKind::Tree { .. }) => Some(format!("nodes of fewer than {least}")),
            Some(ModelKind::Regression { .. } | ModelKind::Components { .. }) => {
                let each = match self.min_count {
                    0 => " for each term",
                    _ => "",
                };
                Some(format!("a model of fewer than {least}{each}"))
            }
        }
    }
}

impl Queries {
    /// What is computed.
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// How it is computed.
    pub fn physical(&self) -> &PhysicalPlan {
        &self.physical
    }

    /// The queries, in the order of the job.
    pub fn queries(&self) -> &[NamedQuery] {
        &self.asked
    }

    /// Hashes of the families of the queries that open or keep something, each once: queries that differ in literals alone have one.
    pub fn families(&self) -> impl Iterator<Item = &[u8; 32]> {
        self.families.iter()
    }

    /// How likely two different keys have one digest, for each width of keys.
    pub fn collisions(&self) -> &[Collisions] {
        &self.collisions
    }

    /// ANDs of the circuit that all queries are between two parties; nothing among more.
    pub fn ands(&self) -> Option<u64> {
        let wires = self.physical.wires.as_ref();
        wires.map(|wires| wires.ands.iter().sum())
    }

    /// How many numbers are opened at most: cells of all relations that recipients get, and whether these lack rows.
    pub fn numbers(&self) -> u64 {
        let opens = self.physical.opens.iter();
        let cells = opens.filter_map(|opening| match opening {
            Opening::Rows { rows, columns, .. } => Some(u64::from(*rows) * columns.len() as u64),
            Opening::Incomplete { .. } => Some(1),
            _ => None,
        });
        cells.sum()
    }

    /// The name of a query in the job: that of its analysis, if it is one.
    pub fn title<'a>(&'a self, query: &'a str) -> &'a str {
        let mut analyses = self.analyses.iter();
        let analysis = analyses.find(|analysis| analysis.step == query);
        analysis.map_or(query, TableAnalysis::name)
    }

    /// The analyses of a job with statistics over tables; none of a job with queries.
    pub fn analyses(&self) -> &[TableAnalysis] {
        &self.analyses
    }

    /// The files of all that is opened to the recipient of this name, in its folder.
    pub fn files(&self, recipient: &str) -> Vec<PathBuf> {
        let opened = self.physical.results.iter();
        let opened = opened.filter(|ports| ports.to == recipient);
        let files = opened.flat_map(|ports| {
            let mut queries = self.asked.iter();
            let query = queries.find(|query| query.name == ports.step);
            query.map_or_else(Vec::new, |query| query.written(&ports.fields))
        });
        if self.analyses.iter().any(|one| one.to == recipient) {
            return files.chain(ResultFiles::paths()).collect();
        }
        files.collect()
    }

    /// The word under which keys are digests.
    pub fn salt(&self) -> &str {
        &self.salt
    }
}
