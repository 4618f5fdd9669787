//! `veil-lab bench forest`: trees whose thresholds and leaves are public, over rows of many features.

use std::sync::Arc;

use miette::{IntoDiagnostic, Result, miette};
use veil_cli::devices::Registry;
use veil_job::{ProtocolKind, Security};
use veil_program::Words;
use veil_query::{Job, Query};
use veil_relation::forest::{
    Feature, FeatureKind, ForestParts, Node, Split, Test, Threshold, Tree,
};
use veil_relation::{Expr, Forest, Type, forest::Output};

use super::asked::{Asked, Asking, Owned, READER, Ready};
use super::random::Random;
use super::workload::streams;
use super::{BenchArgs, print_json, short};

/// Trees, levels of splits in each, features, and bits of a feature.
const TREES: usize = 100;
const DEPTH: usize = 8;
const FEATURES: u16 = 30;
const BITS: u32 = 16;

/// Rows, where nothing else is said.
const ROWS: u64 = 10_000;

/// A tree with all its leaves as deep as they may be, and a threshold of its own in each split.
fn node(random: &mut Random, depth: usize) -> Option<Node> {
    if depth == 0 {
        return Some(Node::Leaf(vec![i128::from(random.below(1 << 20))]));
    }
    let threshold = Threshold::new(i128::from(random.below(1 << BITS)), 0)?;
    Some(Node::Split(Box::new(Split {
        feature: random.below(u64::from(FEATURES)) as u16,
        test: Test::AtMost(threshold),
        null: None,
        yes: node(random, depth - 1)?,
        no: node(random, depth - 1)?,
    })))
}

fn name(at: u16) -> String {
    format!("x{at}")
}

fn forest(random: &mut Random) -> Result<Forest> {
    let trees = (0..TREES).map(|_| node(random, DEPTH).map(|root| Tree { to: None, root }));
    let trees: Option<Vec<Tree>> = trees.collect();
    let feature = |at| Feature {
        name: name(at),
        kind: FeatureKind::Number,
    };
    Forest::new(ForestParts {
        name: "bench".into(),
        source: "made up".into(),
        features: (0..FEATURES).map(feature).collect(),
        classes: vec![],
        places: 6,
        base: vec![0],
        trees: trees.ok_or_else(|| miette!("a threshold has too many places"))?,
    })
    .into_diagnostic()
}

/// What is measured: what each row is predicted, added up over all rows, which is opened.
fn job(model: &Forest, owned: &Owned) -> Job {
    let names: Vec<String> = (0..FEATURES).map(name).collect();
    Job {
        tables: vec![owned.table.clone()],
        queries: vec![Query {
            name: "sum".into(),
            sql: format!(
                "SELECT sum(predict('bench', {})) AS sum FROM rows",
                names.join(", ")
            ),
            to: Some(READER.into()),
            keep: None,
            min_count: 0,
            fit: None,
            apply: None,
        }],
        bounds: vec![],
        models: vec![model.clone().into()],
        functions: vec![],
    }
}

/// A row of results: that of every benchmark, and what is of models alone.
#[derive(serde::Serialize)]
struct Found {
    trees: usize,
    depth: usize,
    splits: usize,
    /// ANDs of the model in each row.
    ands: u64,
    #[serde(flatten)]
    asked: Asked,
}

const HEADER: &str = "trees   splits   ANDs/row   link    cores     rows   CPU-s   rows per CPU-s   of masks   of bytes   MB sent   online s";

fn print(found: &Found) {
    let row = &found.asked.row;
    println!(
        "{:<7} {:>6} {:>10}   {:<7} {:>5} {:>8} {:>7.2} {:>16} {:>9.0}% {:>9.0}% {:>9.1} {:>10.2}",
        found.trees,
        found.splits,
        found.ands,
        row.link,
        row.cores,
        row.batch,
        row.cpu_s,
        short(row.rate_per_cpu_s),
        row.bound_fraction * 100.0,
        row.bytes_fraction * 100.0,
        row.bytes_sent as f64 / 1e6,
        row.online_ms / 1e3,
    );
}

/// ANDs of the model in each row.
fn ands(model: &Forest, owned: &Owned) -> Result<u64> {
    let types: Vec<Type> = owned.table.columns.iter().map(|of| of.ty.clone()).collect();
    let expr = Expr::Predict {
        model: model.clone(),
        output: Output::Value,
        of: (0..u32::from(FEATURES)).map(Expr::column).collect(),
    };
    veil_physical::ands(&expr, &types).ok_or_else(|| miette!("the model has no circuit"))
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    if sharing == ProtocolKind::Yao {
        return Err(miette!("models are applied among three or four parties"));
    }
    let security: Security = args.security(sharing, Words::default())?;
    let device = args.devices(registry)?;
    let rows = args.batch.unwrap_or(ROWS).clamp(1, 1 << 24) as u32;
    let mut random = Random(1);
    let model = forest(&mut random)?;
    let names = (0..FEATURES).map(name);
    let owned = Owned::drawn(("rows", rows), names, 1 << BITS, &mut random)?;
    let ands = ands(&model, &owned)?;
    let job = job(&model, &owned);
    if !args.json {
        println!("{HEADER}");
    }
    let tables = std::slice::from_ref(&owned);
    let asking = Asking {
        args,
        device,
        security,
        name: "forest",
        ops: f64::from(rows),
        blocks: ands as f64 * streams(sharing) / 128.0,
    };
    let ready = |how| Ready::new(&job, tables, how, true);
    asking.each(ready, |asked| {
        let size = model.size();
        let found = Found {
            trees: TREES,
            depth: size.depth,
            splits: size.splits,
            ands,
            asked,
        };
        if args.json {
            return print_json(&found);
        }
        print(&found);
        Ok(())
    })
}
