//! `veil-lab bench logreg` and `veil-lab bench tree`: models that are fitted among parties, a logistic regression by Newton's method or by gradient descent, and a
//! decision tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use miette::{IntoDiagnostic, Result, WrapErr, miette};
use veil_cli::devices::Registry;
use veil_job::ProtocolKind;
use veil_program::Words;
use veil_query::{Job, Model, ModelKind, Query};
use veil_relation::{Column, Family, Kind, Origin, Range, Stepping, Table, Type, Value};

use super::asked::{Asked, Asking, OWNER, Owned, READER, Ready};
use super::{BenchArgs, print_json};

/// Rows, where none are said.
const ROWS: u64 = 100_000;

/// What is fitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fitted {
    Logistic,
    /// Each feature has as many cuts as without a word for it, and steps are levels of splits.
    Tree,
}

impl Fitted {
    const fn name(self) -> &'static str {
        match self {
            Fitted::Logistic => "logreg",
            Fitted::Tree => "tree",
        }
    }

    /// Features and steps, where none are said.
    const fn usual(self) -> (u32, u32) {
        match self {
            Fitted::Logistic => (30, 8),
            Fitted::Tree => (11, 4),
        }
    }

    fn model(self, args: &BenchArgs, steps: u32) -> Model {
        let target = "y".to_owned();
        let kind = match self {
            Fitted::Logistic => ModelKind::Regression {
                family: Family::Logistic,
                target,
                ridge: (0, 1),
                stepping: args.gradient.then_some(STEPPING),
            },
            Fitted::Tree => ModelKind::Tree {
                target,
                cuts: BTreeMap::new(),
            },
        };
        Model {
            kind,
            iterations: steps,
            places: 6,
        }
    }
}

/// Gradient descent over all rows, whose steps are as many passes over them as Newton's.
const STEPPING: Stepping = Stepping {
    batch: None,
    rate: (50, 1),
    momentum: (0, 1),
    limit: 32,
};

/// Up to so many rows, what is opened is compared with the model in the clear.
const COMPARED: u64 = 1 << 21;

/// A row of results.
#[derive(serde::Serialize)]
struct Answer {
    features: u32,
    steps: u32,
    gradient: bool,
    /// Rows and steps a second of all parties' time.
    row_steps_per_cpu_s: f64,
    #[serde(flatten)]
    asked: Asked,
}

/// Numbers that look random, and are the same each time.
struct Draws(u64);

impl Draws {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Rows of numbers from -8 to 8 with three decimal places, most of them below 2; the target follows from them.
fn table(rows: u64, features: u32) -> Result<Owned> {
    let capacity = u32::try_from(rows).into_diagnostic()?;
    let units = Range::new(-8_000, 8_000).ok_or_else(|| miette!("a range is empty"))?;
    let column = |name: String, kind: Kind| Column {
        name,
        ty: Type::of(kind),
        consent: None,
    };
    let numbers =
        (0..features).map(|k| column(format!("x{k}"), Kind::Decimal { places: 3, units }));
    let columns = numbers.chain([column("y".into(), Kind::Bool)]).collect();
    let mut draws = Draws(1);
    let slopes: Vec<f64> = (0..features).map(|_| draws.next() - 0.5).collect();
    let mut cells = vec![Vec::with_capacity(rows as usize); features as usize + 1];
    for _ in 0..rows {
        let mut sum = 0.25;
        for (slope, column) in slopes.iter().zip(&mut cells) {
            let near = (0..4).map(|_| draws.next() - 0.5).sum::<f64>() * 1_700.0;
            let units = near.round();
            sum += slope * units / 1_000.0;
            column.push(Value::Number(units as i128));
        }
        let yes = draws.next() < 1.0 / (1.0 + (-sum).exp());
        cells[features as usize].push(Value::Bool(yes));
    }
    let table = Table {
        name: "stays".into(),
        origin: Origin::Owner(OWNER.into()),
        capacity,
        padded: false,
        columns,
        sorted_by: vec![],
        unique: vec![],
    };
    Ok(Owned { table, cells })
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>, of: Fitted) -> Result<()> {
    if args.svg.is_some() {
        return Err(miette!("--svg has no meaning for {}", of.name()));
    }
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    let security = args.security(sharing, Words::default())?;
    let device = args.devices(registry)?;
    let rows = args.batch.unwrap_or(ROWS);
    let (features, steps) = of.usual();
    let (features, steps) = (
        args.features.unwrap_or(features),
        args.steps.unwrap_or(steps),
    );
    let owned = [table(rows, features)?];
    let names = owned[0]
        .table
        .columns
        .iter()
        .map(|column| column.name.as_str());
    let job = Job {
        tables: vec![owned[0].table.clone()],
        queries: vec![Query {
            name: "model".into(),
            sql: format!("SELECT {} FROM stays", names.collect::<Vec<_>>().join(", ")),
            to: Some(READER.into()),
            keep: None,
            min_count: 1,
            fit: Some(of.model(args, steps)),
            apply: None,
        }],
        bounds: vec![],
        models: vec![],
        functions: vec![],
    };
    if !args.json {
        println!("{HEADER}");
    }
    let asking = Asking {
        args,
        device,
        security,
        name: of.name(),
        ops: 1.0,
        blocks: 0.0,
    };
    let ready = |how| {
        let ready = Ready::new(&job, &owned, how, rows <= COMPARED);
        ready.wrap_err("the model cannot be fitted")
    };
    asking.each(ready, |asked| {
        let work = rows as f64 * f64::from(steps);
        let answer = Answer {
            features,
            steps,
            gradient: args.gradient,
            row_steps_per_cpu_s: work / asked.row.cpu_s,
            asked,
        };
        if args.json {
            return print_json(&answer);
        }
        print(rows, &answer);
        Ok(())
    })
}

const HEADER: &str = "rows       features   steps   link    cores   passes   rounds   CPU-s    online s   MB sent   MB   of bytes   row steps / CPU-s";

fn print(rows: u64, answer: &Answer) {
    let Answer {
        features,
        steps,
        gradient: _,
        row_steps_per_cpu_s,
        asked,
    } = answer;
    let Asked {
        passes,
        rounds,
        opened: _,
        held_mb,
        row,
    } = asked;
    println!(
        "{rows:<10} {features:<10} {steps:<7} {:<7} {:>5} {passes:>8} {rounds:>8} {:>7.2} {:>11.2} {:>9.1} {:>4.0} {:>9.2} {row_steps_per_cpu_s:>10.0}",
        row.link,
        row.cores,
        row.cpu_s,
        row.online_ms / 1e3,
        row.bytes_sent as f64 / 1e6,
        (row.peak_rss_mb - held_mb).max(0.0),
        row.bytes_fraction,
    );
}
