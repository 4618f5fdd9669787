//! `veil-lab bench tpch`: questions of TPC-H among parties, on tables of its generator.

mod ends;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use veil_cli::devices::Registry;
use veil_cli::{estimate, peak};
use veil_engine::Data;
use veil_job::{ProtocolKind, Security};
use veil_operators::Participants;
use veil_physical::{PhysicalPlan, ResultPorts, TablePorts, plan};
use veil_program::Words;
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_query::{Job, SortedBytes, compile};
use veil_relation::{Program, Value, clear};
use veil_session::Peer;

use super::measure::{Carrier, Course, Row, measure_program};
use super::relations::{Least, gathered};
use super::{BenchArgs, print_json};
use ends::{Columns, Rows};
use tables::Owned;

/// A question: its name, and its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    name: &'static str,
    sql: &'static str,
}

macro_rules! questions {
    ($($name:literal)*) => {
        [$(Question {
            name: $name,
            sql: include_str!(concat!("../../../../../bench/tpch/", $name, ".sql")),
        }),*]
    };
}

static QUESTIONS: [Question; 22] = questions!(
    "q01" "q02" "q03" "q04" "q05" "q06" "q07" "q08" "q09" "q10" "q11" "q12" "q13" "q14" "q15" "q16" "q17" "q18" "q19" "q20" "q21" "q22"
);

/// The question of a name, such as q03 or 3.
pub(super) fn question(text: &str) -> Result<Question, String> {
    let number = |name: &str| name.trim_start_matches('q').parse::<u8>().ok();
    let asked = number(text);
    let mut all = QUESTIONS.iter();
    let found = all.find(|of| asked.is_some() && number(of.name) == asked);
    found.copied().ok_or_else(|| {
        let names = QUESTIONS.map(|of| of.name).join(", ");
        format!("there is no question `{text}` here; there are {names}")
    })
}

/// The largest scale whose tables fit memory in the clear.
const LARGEST: f64 = 100.0;

/// A scale factor.
pub(super) fn scale(text: &str) -> Result<f64, String> {
    let scale = text.parse::<f64>().ok();
    let scale = scale.filter(|scale| (0.001..=LARGEST).contains(scale));
    scale.ok_or_else(|| format!("`{text}` is no scale factor from 0.001 to {LARGEST}"))
}

/// The scale, where none is said.
const SCALE: f64 = 0.01;

/// Up to this scale, what is opened is compared with what the question means.
const COMPARED: f64 = 0.1;

/// Party 0 has the tables, and they are opened to party 1.
const OWNER: &str = "party 0";
const READER: &str = "party 1";

/// A row of results: that of every benchmark, of one run as one operation, and what is of questions alone.
#[derive(serde::Serialize)]
struct Answer {
    query: &'static str,
    /// The scale factor.
    sf: f64,
    passes: usize,
    /// How often all wait for messages, one time after the other.
    rounds: u64,
    /// Rows that are opened.
    opened: Option<usize>,
    /// Memory of the process before the first run: texts of the generator, packed tables, and what was used earlier and not given back, which
    /// a run may use again.
    held_mb: f64,
    #[serde(flatten)]
    row: Row,
}

/// A question that is ready to be asked.
struct Ready {
    passes: Arc<PassProgram>,
    /// Rows of the tables that it reads.
    rows: u64,
    bounds: Least,
    columns: BTreeMap<usize, Arc<Columns>>,
    result: ResultPorts,
    /// What it means, as far as it is compared.
    wanted: Option<Vec<Vec<Value>>>,
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    if args.batch.is_some() || args.svg.is_some() {
        return Err(miette!(
            help = "the tables follow from the scale: `veil-lab bench tpch --sf 0.01 --query q03`",
            "--batch and --svg have no meaning for tpch"
        ));
    }
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    let security = args.security(sharing, Words::default())?;
    let device = args.devices(registry)?;
    let sf = args.sf.unwrap_or(SCALE);
    let all = QUESTIONS.to_vec();
    let asked = if args.query.is_empty() {
        &all
    } else {
        &args.query
    };
    if !args.json {
        println!("{HEADER}");
    }
    for question in asked {
        for cores in args.cores.0..=args.cores.1 {
            let options = Options {
                lanes: cores,
                chunk_rows: args.chunk_rows,
            };
            let ready = Ready::new(*question, sf, security, options);
            let ready = ready.wrap_err_with(|| format!("{} cannot be asked", question.name))?;
            for &carrier in &args.link {
                let answer = ready.ask(*question, sf, |course| {
                    measure_program(course, &args.setup(&device, carrier, cores))
                });
                let answer = answer.wrap_err_with(|| failed(question.name, carrier))?;
                if args.json {
                    print_json(&answer)?;
                } else {
                    print(&answer);
                }
            }
        }
    }
    Ok(())
}

fn failed(question: &str, carrier: Carrier) -> String {
    format!("{question} was not answered, {}", carrier.name())
}

fn participants(security: Security) -> Participants {
    let parties = 0..security.protocol.parties();
    Participants {
        name: "bench tpch".into(),
        owners: vec![],
        parties: parties.map(|party| format!("party {party}")).collect(),
        recipients: vec![],
        security,
    }
}

impl Ready {
    fn new(question: Question, sf: f64, security: Security, options: Options) -> Result<Self> {
        let owned = tables::tables(sf, OWNER)?;
        let job = Job {
            tables: owned.iter().map(|of| of.table.clone()).collect(),
            queries: vec![veil_query::Query {
                keep: None,
                name: question.name.to_owned(),
                sql: question.sql.to_owned(),
                to: Some(READER.to_owned()),
                min_count: 0,
            }],
            bounds: vec![],
        };
        let program = compile(&job, &SortedBytes).into_diagnostic()?;
        let physical = plan(&program, &participants(security)).into_diagnostic()?;
        let passes = PassProgram::new(&physical.passes, options).into_diagnostic()?;
        let read: BTreeSet<usize> = physical.tables.iter().map(|of| of.table).collect();
        let rows = |at: usize| u64::from(program.tables[at].capacity);
        let result = physical.results.first().cloned();
        Ok(Ready {
            rows: read.into_iter().map(rows).sum(),
            columns: columns(&physical, &passes, &owned)?,
            bounds: Least::of(&physical.passes, security.protocol),
            passes: Arc::new(passes),
            result: result.ok_or_else(|| miette!("the question opens nothing"))?,
            wanted: (sf <= COMPARED)
                .then(|| meaning(&program, &owned))
                .transpose()?,
        })
    }

    /// Runs it, and looks at what was opened.
    fn ask(
        &self,
        question: Question,
        sf: f64,
        measure: impl FnOnce(&Course<'_>) -> Result<Row>,
    ) -> Result<Answer> {
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
            name: "tpch",
            batch: self.rows,
            ops: 1.0,
            blocks_per_op: self.bounds.blocks,
            gather_seconds: self.bounds.gathers * gathered(self.bounds.widest),
            program: Arc::clone(&self.passes),
            data: &data,
        };
        let row = measure(&course)?;
        let opened = self.compared(&seen)?;
        Ok(Answer {
            query: question.name,
            sf,
            passes: self.passes.passes().len(),
            rounds: estimate::rounds(&self.passes),
            opened,
            held_mb: held,
            row,
        })
    }

    /// Rows of the last run, if all runs have opened what the question means.
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
                "the rows that were opened are not those that the question means"
            ));
        }
        Ok(count)
    }
}

/// The rows that a question means.
fn meaning(program: &Program, owned: &[Owned]) -> Result<Vec<Vec<Value>>> {
    let inputs: Vec<_> = owned.iter().map(Owned::input).collect();
    let opened = clear::evaluate(program, &inputs).into_diagnostic()?;
    let first = opened.first();
    let first = first.ok_or_else(|| miette!("the question opens nothing"))?;
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

const HEADER: &str =
    "query   sf      link    cores   passes   rounds   CPU-s    online s   MB sent   MB   rows";

fn print(answer: &Answer) {
    let Answer {
        query,
        sf,
        passes,
        rounds,
        opened,
        held_mb,
        row,
    } = answer;
    println!(
        "{query:<7} {sf:<7} {:<7} {:>5} {passes:>8} {rounds:>8} {:>7.2} {:>11.2} {:>9.1} {:>4.0} {:>6}",
        row.link,
        row.cores,
        row.cpu_s,
        row.online_ms / 1e3,
        row.bytes_sent as f64 / 1e6,
        (row.peak_rss_mb - held_mb).max(0.0),
        opened.unwrap_or(0),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published answer to question 6 at this scale, in ten-thousandths.
    const REVENUE: i128 = 11_930_532_253;

    #[test]
    fn questions_mean_what_is_published() {
        let of = question("6").expect("a question");
        let ready = Ready::new(of, 0.01, Security::among(3), Options::default());
        let wanted = ready.expect("a plan").wanted.expect("rows");
        assert_eq!(wanted, [[Value::Number(REVENUE)]]);
    }

    #[test]
    fn questions_have_short_names() {
        let name = |text: &str| question(text).map(|of| of.name);
        for (text, wanted) in [("q03", "q03"), ("q3", "q03"), ("3", "q03"), ("18", "q18")] {
            assert_eq!(name(text), Ok(wanted));
        }
        for text in ["", "q", "0", "q23", "303", "all"] {
            assert!(name(text).is_err(), "{text}");
        }
        assert!(scale("0.1").is_ok());
        for text in ["0", "-1", "nan", "inf", "1e9", "one"] {
            assert!(scale(text).is_err(), "{text}");
        }
    }
}
