//! Queries that benchmarks ask: one owner, one recipient, what is opened compared with what the query means.

mod ends;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use veil_cli::{estimate, peak};
use veil_engine::{Data, DeviceFactory};
use veil_job::Security;
use veil_operators::Participants;
use veil_physical::{PhysicalPlan, ResultPorts, TablePorts, plan};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_query::{Job, SortedBytes, compile};
use veil_relation::clear::Input;
use veil_relation::{Column, Kind, Origin, Program, Range, Table, Type, Value, clear};
use veil_session::Peer;

use super::BenchArgs;
use super::measure::{Course, Row, measure_program};
use super::random::Random;
use super::relations::{Least, gathered};
use ends::{Columns, Rows};

/// Party 0 has the tables.
pub(super) const OWNER: &str = "party 0";
/// They are opened to party 1.
pub(super) const READER: &str = "party 1";

/// A table with its cells, all rows valid.
pub(super) struct Owned {
    pub(super) table: Table,
    /// By column.
    pub(super) cells: Vec<Vec<Value>>,
}

impl Owned {
    /// A table of integers below a bound, which are drawn column by column.
    pub(super) fn drawn(
        (name, rows): (&str, u32),
        columns: impl Iterator<Item = String>,
        bound: u64,
        random: &mut Random,
    ) -> Result<Self> {
        let range = Range::new(0, i128::from(bound) - 1);
        let range = range.ok_or_else(|| miette!("an empty range"))?;
        let column = |name| Column {
            name,
            ty: Type::of(Kind::Integer(range)),
            consent: None,
        };
        let columns: Vec<Column> = columns.map(column).collect();
        let mut cells = |_: &Column| {
            let cell = |_| Value::Number(random.below(bound).into());
            (0..rows).map(cell).collect()
        };
        Ok(Self {
            cells: columns.iter().map(&mut cells).collect(),
            table: Table {
                name: name.into(),
                origin: Origin::Owner(OWNER.into()),
                capacity: rows,
                padded: false,
                columns,
                sorted_by: vec![],
                unique: vec![],
            },
        })
    }

    /// The rows, as they are evaluated.
    pub(super) fn input(&self) -> Input {
        let rows = self.table.capacity as usize;
        let row = |at: usize| self.cells.iter().map(|column| column[at]).collect();
        Input {
            valid: vec![true; rows],
            rows: (0..rows).map(row).collect(),
        }
    }
}

/// What a run of a query took: that of every benchmark, of one run as one operation, and what is of queries alone.
#[derive(serde::Serialize)]
pub(super) struct Asked {
    pub(super) passes: usize,
    /// How often all wait for messages, one time after the other.
    pub(super) rounds: u64,
    /// Rows that are opened.
    pub(super) opened: Option<usize>,
    /// Memory of the process before the first run: texts of the generator, packed tables, and what was used earlier and not given back, which
    /// a run may use again.
    pub(super) held_mb: f64,
    #[serde(flatten)]
    pub(super) row: Row,
}

/// A query that is ready to be asked.
pub(super) struct Ready {
    passes: Arc<PassProgram>,
    /// Rows of the tables that it reads.
    rows: u64,
    bounds: Least,
    columns: BTreeMap<usize, Arc<Columns>>,
    result: ResultPorts,
    /// What it means, as far as it is compared.
    pub(super) wanted: Option<Vec<Vec<Value>>>,
}

fn participants(security: Security) -> Participants {
    let parties = 0..security.protocol.parties();
    Participants {
        name: "bench query".into(),
        owners: vec![],
        parties: parties.map(|party| format!("party {party}")).collect(),
        recipients: vec![],
        security,
    }
}

impl Ready {
    /// The first query of a job, over tables of [`OWNER`]; what it means is compared with what it opens if so asked.
    pub(super) fn new(
        job: &Job,
        owned: &[Owned],
        (security, options): (Security, Options),
        compare: bool,
    ) -> Result<Self> {
        let program = compile(job, &SortedBytes).into_diagnostic()?;
        let physical = plan(&program, &participants(security)).into_diagnostic()?;
        let passes = PassProgram::new(&physical.passes, options).into_diagnostic()?;
        let read: BTreeSet<usize> = physical.tables.iter().map(|of| of.table).collect();
        let rows = |at: usize| u64::from(program.tables[at].capacity);
        let result = physical.results.first().cloned();
        Ok(Ready {
            rows: read.into_iter().map(rows).sum(),
            columns: columns(&physical, &passes, owned)?,
            bounds: Least::of(&physical.passes, security),
            passes: Arc::new(passes),
            result: result.ok_or_else(|| miette!("the query opens nothing"))?,
            wanted: compare.then(|| meaning(&program, owned)).transpose()?,
        })
    }

    /// Runs it, and looks at what was opened.
    pub(super) fn ask(
        &self,
        name: &'static str,
        measure: impl FnOnce(&Course<'_>) -> Result<Row>,
    ) -> Result<Asked> {
        let seen = Arc::new(Rows::default());
        let data = |peer: Peer, pass: usize| match peer {
            Peer::Party(party) if party.index() == 0 => Data {
                source: self.columns.get(&pass).map(|of| Arc::clone(of) as _),
                ..Data::default()
            },
            Peer::Party(party) if party.index() == 1 && pass == self.result.pass => Data {
                sink: Some(Arc::clone(&seen) as _),
                ..Data::default()
            },
            _ => Data::default(),
        };
        peak::forget();
        let held = peak::bytes().unwrap_or(0) as f64 / (1 << 20) as f64;
        let course = Course {
            name,
            batch: self.rows,
            ops: 1.0,
            blocks_per_op: self.bounds.blocks,
            gather_seconds: self.bounds.gathers * gathered(self.bounds.widest),
            program: Arc::clone(&self.passes),
            data: &data,
        };
        let row = measure(&course)?;
        let opened = self.compared(&seen)?;
        Ok(Asked {
            passes: self.passes.passes().len(),
            rounds: estimate::rounds(&self.passes),
            opened,
            held_mb: held,
            row,
        })
    }

    /// Rows of the last run, if all runs have opened what the query means.
    fn compared(&self, seen: &Rows) -> Result<Option<usize>> {
        let pass = self.passes.passes()[self.result.pass].rows();
        let rows = pass.map_or(0, |plan| plan.job.rows());
        let runs = seen.take(&self.result, rows);
        let count = runs.last().map(Vec::len);
        let Some(wanted) = &self.wanted else {
            return Ok(count);
        };
        // Rows that come in no order are put in one by who reads them.
        let ordered = |rows: &[Vec<Value>]| {
            let mut rows = rows.to_vec();
            if self.result.order.is_some() {
                rows.sort_unstable();
            }
            rows
        };
        let all = ordered(wanted);
        if count.is_none() || runs.iter().any(|rows| ordered(rows) != all) {
            return Err(miette!(
                help = "this is a mistake of the program: please report it",
                "the rows that were opened are not those that the query means"
            ));
        }
        Ok(count)
    }
}

/// How a command asks a query.
pub(super) struct Asking<'a> {
    pub(super) args: &'a BenchArgs,
    pub(super) device: DeviceFactory,
    pub(super) security: Security,
    /// The benchmark.
    pub(super) name: &'static str,
    /// Operations of a run.
    pub(super) ops: f64,
    /// AES blocks of masks of each, beside those of rows that move.
    pub(super) blocks: f64,
}

impl Asking<'_> {
    /// Asks it on every number of cores, over every link that is measured.
    pub(super) fn each(
        &self,
        ready: impl Fn((Security, Options)) -> Result<Ready>,
        mut found: impl FnMut(Asked) -> Result<()>,
    ) -> Result<()> {
        let args = self.args;
        for cores in args.cores.0..=args.cores.1 {
            let options = Options {
                lanes: cores,
                chunk_rows: args.chunk_rows,
            };
            let ready = ready((self.security, options))?;
            for &carrier in &args.link {
                let asked = ready.ask(self.name, |course| {
                    let course = Course {
                        ops: self.ops,
                        blocks_per_op: course.blocks_per_op / self.ops + self.blocks,
                        program: Arc::clone(&course.program),
                        ..*course
                    };
                    measure_program(&course, &args.setup(&self.device, carrier, cores))
                });
                let failed = || format!("{} was not answered, {}", self.name, carrier.name());
                found(asked.wrap_err_with(failed)?)?;
            }
        }
        Ok(())
    }
}

/// The rows that a question means.
fn meaning(program: &Program, owned: &[Owned]) -> Result<Vec<Vec<Value>>> {
    let inputs: Vec<_> = owned.iter().map(Owned::input).collect();
    let opened = clear::evaluate(program, &inputs).into_diagnostic()?;
    let first = opened.first();
    let first = first.ok_or_else(|| miette!("the query opens nothing"))?;
    Ok(first.rows.clone())
}

/// What party 0 supplies, by pass.
fn columns(
    physical: &PhysicalPlan,
    passes: &PassProgram,
    owned: &[Owned],
) -> Result<BTreeMap<usize, Arc<Columns>>> {
    let one = |ports: &TablePorts| {
        let plan = passes.passes()[ports.pass].rows();
        let plan = plan.ok_or_else(|| miette!("a table is supplied where rows move"))?;
        let columns = Columns::new(&plan.job, ports, &owned[ports.table]);
        Ok((ports.pass, Arc::new(columns)))
    };
    physical.tables.iter().map(one).collect()
}
