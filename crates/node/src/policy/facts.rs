//! The public facts of a job, which a policy judges.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use veil_job::{Adversary, Audience, Holder, InputSpec, Statistical, Word};
use veil_program::stats::{Missing, Stats};
use veil_program::{Intersection, Job, Kind, Queries, Shows};
use veil_protocol::{Plan, Protocol};
use veil_session::Peer;

use crate::home::hex;

/// The public facts of a job. All of them are under the plan hash.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Facts {
    /// Name of the job. The job's author chooses it.
    pub job: String,
    /// The operations: the kinds of its analyses, what its queries do, `circuit`, or `reshare`.
    pub operations: BTreeSet<String>,
    /// The circuit of a circuit job: its name if `veil` makes it, and `sha256:` with the hash of the circuit that runs.
    pub circuits: BTreeSet<String>,
    /// Columns that are computed on (of queries as `table.column`), grouped by, kept, or given to other parties; of a circuit the columns that are read from CSV files.
    pub columns: BTreeSet<String>,
    /// Columns that queries join on, as `table.column`.
    #[serde(default)]
    pub join_on: BTreeSet<String>,
    /// Columns that queries group by, or make distinct.
    #[serde(default)]
    pub group_by: BTreeSet<String>,
    /// Columns that decide which rows of a query count.
    #[serde(default)]
    pub filters_on: BTreeSet<String>,
    /// Rows that a query opens, at most; nothing for other jobs.
    #[serde(default)]
    pub result_rows: Option<u64>,
    /// Hashes of the families of its queries: those that differ in literals alone have one.
    #[serde(default)]
    pub families: BTreeSet<String>,
    /// Inputs of a circuit that are read from something else than a column of a CSV file, so that their columns are unknown.
    pub unnamed: BTreeSet<String>,
    /// Every input: whose, which column or port, how it is read, and what becomes of it.
    pub inputs: Vec<InputFact>,
    /// Stored data sets that it computes on, or gives to other parties.
    pub datasets: BTreeSet<String>,
    /// What a run may rest on beyond what every run rests on.
    #[serde(default)]
    pub assumptions: BTreeSet<String>,
    /// Whether the parties keep shares of something.
    pub keeps: bool,
    /// Names of the participants to whom something is opened.
    pub to: BTreeSet<String>,
    /// Names of the computing parties.
    pub parties: BTreeSet<String>,
    /// Whether something is opened in every row, and not only sums over rows.
    pub opens_rows: bool,
    /// Rows of all blocks.
    pub rows: u64,
    /// Rows of the smallest block.
    pub smallest_block: u64,
    /// The largest number of groups that an analysis makes; 1 without groups.
    pub groups: u64,
    /// Rows that a group of any analysis needs to be shown; 0 where some are shown whatever they have.
    pub min_count: u64,
    /// The protocol.
    pub protocol: String,
    /// The weakest adversary against which a run of it may have to hold, `semi-honest`, `malicious` or `malicious-cutchoose`.
    pub adversary: String,
    /// Of a job against a malicious party: a cheat gets away with probability 2 to the minus this, where the protocol has such a
    /// parameter.
    pub statistical: Option<u8>,
    /// The delivery of the result if a party cheats or is lost, `abort` or `guaranteed`.
    pub delivery: String,
}

/// An input of a job.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct InputFact {
    /// Who supplies it; nothing if it is loaded from the parties' stores.
    pub owner: Option<String>,
    /// The block whose rows it has, of statistics and data sets.
    pub block: Option<String>,
    /// The column that it is read from, where it is one.
    pub column: Option<String>,
    /// The port that it feeds, of a circuit or a data set.
    pub port: Option<String>,
    /// How it is read, and what becomes of it.
    pub read: String,
}

impl Facts {
    /// The facts of `job`, planned as `plan` for `protocol`.
    pub fn of(job: &Job, plan: &Plan, protocol: &dyn Protocol) -> Self {
        let spec = &plan.job;
        let mut facts = Facts {
            job: spec.name.clone(),
            operations: BTreeSet::new(),
            circuits: BTreeSet::new(),
            columns: BTreeSet::new(),
            join_on: BTreeSet::new(),
            group_by: BTreeSet::new(),
            filters_on: BTreeSet::new(),
            result_rows: None,
            families: BTreeSet::new(),
            unnamed: BTreeSet::new(),
            inputs: Vec::new(),
            datasets: (spec.blocks.iter())
                .filter(|block| block.holders.contains(&Holder::Stored))
                .map(|block| block.stored.clone().unwrap_or_default())
                .collect(),
            assumptions: (spec.assumptions().iter())
                .map(|assumption| assumption.word().to_owned())
                .collect(),
            keeps: spec.audiences.contains(&Audience::Stored),
            to: (spec.audiences.iter())
                .flat_map(|audience| readers(plan, *audience))
                .collect(),
            parties: spec.parties.iter().cloned().collect(),
            opens_rows: plan.opens_rows(),
            rows: spec.rows(),
            smallest_block: (spec.blocks.iter())
                .map(|block| block.rows)
                .min()
                .unwrap_or(0),
            groups: 1,
            min_count: 0,
            protocol: protocol.name().to_owned(),
            adversary: spec.security.adversary.word().to_owned(),
            statistical: spec.security.error().map(Statistical::bits),
            delivery: spec.security.delivery.word().to_owned(),
        };
        match job.kind() {
            Kind::Stats(stats) => {
                // Of a bound nothing says how many rows there are.
                let rows = stats.blocks.iter().map(|block| block.fewest_rows);
                facts.smallest_block = rows.min().unwrap_or(0);
                facts.rows = stats.rows();
                let least = stats.analyses.iter().map(|a| a.min_count.unwrap_or(0));
                facts.min_count = least.min().unwrap_or(0);
                for analysis in &stats.analyses {
                    let statistic = &analysis.statistic;
                    facts.operations.insert(statistic.name().to_owned());
                    let mut groups = 1u64;
                    for &column in &analysis.by {
                        let values = stats.columns[column].categories().len() as u64;
                        groups = groups.saturating_mul(values.max(1));
                    }
                    facts.groups = facts.groups.max(groups);
                    let used = statistic.columns().into_iter();
                    let used = used.chain(analysis.by.iter().copied());
                    let names = used.map(|column| stats.columns[column].name.clone());
                    facts.columns.extend(names);
                }
                facts.read_by(stats);
            }
            Kind::Circuit(gates) => {
                for input in &gates.inputs {
                    if let Some(column) = input.column() {
                        facts.columns.insert(column.to_owned());
                    } else if input.reads_file() {
                        facts.unnamed.insert(input.port.clone());
                    }
                }
                facts.operations.insert("circuit".to_owned());
                facts.circuits.extend(gates.make.clone());
                let hash = hex(&spec.circuit.canonical_hash());
                facts.circuits.insert(format!("sha256:{hash}"));
            }
            Kind::Reshare(resharing) => {
                facts.operations.insert("reshare".to_owned());
                facts.datasets.insert(resharing.dataset.clone());
                let columns = resharing.ports.iter().map(|(name, _)| name.clone());
                facts.columns.extend(columns);
            }
            Kind::Query(queries) => facts.of_queries(queries),
            Kind::Intersection(of) => facts.of_keys(of, job.rows()),
            // A kind that this release does not know is judged by nothing but a person.
            _ => {
                facts.operations.insert("unknown".to_owned());
            }
        }
        // A column of a statistics job that no analysis uses is not read.
        let read = |input: &&InputSpec| match (&input.block, &input.column) {
            (Some(_), Some(_)) if job.queries().is_some() => true,
            (Some(_), Some(column)) => facts.columns.contains(column),
            _ => true,
        };
        facts.inputs = (spec.inputs.iter().filter(read))
            .map(|input| InputFact {
                owner: owner(job, input.holder),
                block: input.block.clone(),
                column: input.column.clone(),
                port: input.port.clone(),
                read: input.format.clone(),
            })
            .collect();
        facts
    }

    /// What an intersection opens: keys, which name rows, and so rows; or how many both have, and sums over them.
    fn of_keys(&mut self, of: &Intersection, rows: u64) {
        let names_keys = of.opens().names_keys();
        let operations: &[&str] = match of.opens() {
            Shows::Keys | Shows::Columns => &["intersect", "select-rows"],
            Shows::Size => &["intersect", "count"],
            Shows::Sums => &["intersect", "count", "sum"],
        };
        self.operations = operations.iter().copied().map(str::to_owned).collect();
        self.join_on = of.key_columns().collect();
        self.columns = of.key_columns().chain(of.value_columns()).collect();
        self.smallest_block = of.fewest_rows();
        self.rows = rows;
        self.result_rows = Some(if names_keys { of.most_common() } else { 1 });
        self.opens_rows = names_keys;
        self.min_count = of.least().into();
    }

    /// What queries do, with which columns, and how much they open. Tables of several owners have columns of one name: they are `table.column`.
    fn of_queries(&mut self, queries: &Queries) {
        let operations = queries.operations().into_iter();
        self.operations = operations.map(str::to_owned).collect();
        for of in queries.column_facts() {
            let name = format!("{}.{}", of.table, of.column);
            let sets = [
                ("join", &mut self.join_on),
                ("group-by", &mut self.group_by),
                ("filter", &mut self.filters_on),
            ];
            for (_, set) in { sets }
                .into_iter()
                .filter(|(word, _)| of.operations.contains(word))
            {
                set.insert(name.clone());
            }
            self.columns.insert(name);
        }
        self.families = queries.families().map(|hash| hex(hash)).collect();
        self.smallest_block = queries.fewest_rows();
        let (rows, least) = queries.shows();
        self.result_rows = Some(rows);
        self.min_count = least;
        self.opens_rows = self.operations.contains("select-rows");
        // How many groups there are is secret; no more than rows are opened.
        self.groups = rows.max(1);
    }

    /// The columns of a statistics job that are read, used by an analysis or not: what drops rows counts in all of them, and what is kept
    /// is there for later jobs.
    fn read_by(&mut self, stats: &Stats) {
        for column in &stats.columns {
            if stats.keep.is_some() || column.missing == Missing::DropRow {
                self.columns.insert(column.name.clone());
            }
        }
    }

    /// The same of a job that may be finished by runs which hold against this adversary only.
    #[must_use]
    pub fn against(self, weakest: Adversary) -> Self {
        let statistical = self
            .statistical
            .filter(|_| weakest == Adversary::CutAndChoose);
        Facts {
            adversary: weakest.word().to_owned(),
            statistical,
            ..self
        }
    }
}

/// Who supplies an input, if a participant does in the run.
fn owner(job: &Job, holder: Holder) -> Option<String> {
    holder
        .peer()
        .is_some()
        .then(|| job.roles().holder_name(holder))
}

fn readers(plan: &Plan, audience: Audience) -> Vec<String> {
    let name = |peer| veil_engine::name_of(plan, peer).to_owned();
    match audience {
        Audience::Parties => plan
            .parties()
            .iter()
            .map(|party| name(Peer::Party(*party)))
            .collect(),
        Audience::Party(party) => vec![name(Peer::Party(party))],
        Audience::Recipient(recipient) => vec![name(Peer::Recipient(recipient))],
        Audience::Stored | Audience::Column => Vec::new(),
    }
}
