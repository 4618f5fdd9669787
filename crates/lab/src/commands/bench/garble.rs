//! `veil-lab bench garble`: how fast this machine garbles and evaluates, without a link, against the rows of a chunk; and which scheme a link
//! wants.

use std::sync::Arc;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, miette};
use plotters::prelude::*;
use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Garbling, HashRate, KeyId, Layout, Op, Outcome,
    PrfCall, Region, Residency, Span, Tag, Workspace, completion,
};
use veil_job::{ProtocolKind, Security, Tables, Word};
use veil_protocol::{Options, Plan};
use veil_prss::DomainTag;
use veil_session::Secret;

use super::chart::{self, Drawn, Line};
use super::workload::Name;
use super::{BenchArgs, short};

/// Rows of a chunk that are measured if nothing else is said: a single circuit, and batches.
const ROWS: [u32; 6] = [1, 4, 16, 32, 64, 256];

/// How long each side of a case is measured, and each limit.
const BUDGET: Duration = Duration::from_millis(400);

/// Links, in Gb/s.
const LINKS: [f64; 4] = [1.0, 10.0, 25.0, 100.0];

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);
const DICE: KeyId = KeyId(2);

/// A row of results. Gates are ANDs, with all XORs of the circuit beside them.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    bench: &'static str,
    device: &'static str,
    tables: &'static str,
    /// Rows of a chunk.
    rows: u32,
    ands: u32,
    /// Bytes of wires that live at once.
    #[serde(rename = "bank_bytes")]
    workspace_bytes: u64,
    bytes_per_and: f64,
    /// ANDs per second of one core, and the part of what its hashes alone would allow.
    garble_per_s: f64,
    garble_of_hash: f64,
    evaluate_per_s: f64,
    evaluate_of_hash: f64,
    /// What hashes alone allow, measured in the same run; and AES blocks under one fixed key per second.
    hash_garble_per_s: f64,
    hash_evaluate_per_s: f64,
    aes_per_s: f64,
}

/// What the machine allows.
#[derive(Clone, Copy)]
struct Limits {
    hash: HashRate,
    aes: f64,
}

/// Measures, prints the table, and draws.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    if args.protocol.is_some_and(|of| of != ProtocolKind::Yao) {
        return Err(miette!(
            help = "leave --protocol out",
            "garbling is of two parties: yao"
        ));
    }
    let device = Cpu::detect();
    let aes = device.prf_rate(BUDGET);
    let mut rows = Vec::new();
    if !args.json {
        println!("{HEADER}");
    }
    for tables in [Tables::HalfGates, Tables::ThreeHalves] {
        if args.tables.is_some_and(|only| only != tables) {
            continue;
        }
        let hash = device.hash_rate(scheme(tables), BUDGET);
        let of_batch = args.batch.map(|rows| rows.clamp(1, 1 << 14) as u32);
        for chunk in of_batch.map_or(ROWS.to_vec(), |rows| vec![rows]) {
            let row = measure(tables, chunk, Limits { hash, aes })?;
            if args.json {
                println!("{}", serde_json::to_string(&row).into_diagnostic()?);
            } else {
                print(&row);
            }
            rows.push(row);
        }
    }
    if !args.json {
        print_links(&rows);
    }
    match &args.svg {
        Some(path) => {
            let mut svg = String::new();
            let drawn = draw(&rows, &mut svg);
            chart::put(drawn, &svg, path)
        }
        None => Ok(()),
    }
}

const fn scheme(tables: Tables) -> Garbling {
    match tables {
        Tables::HalfGates => Garbling::HalfGates,
        Tables::ThreeHalves => Garbling::ThreeHalves,
    }
}

/// A workspace with all tables of a layer, and a command for each layer at either side.
struct Case {
    device: Cpu,
    workspace: Workspace,
    garble: Vec<Command>,
    evaluate: Vec<Command>,
}

impl Case {
    fn new(plan: &Plan, scheme: Garbling, rows: u32) -> Result<Self> {
        let region = |residency, column, count| Region {
            residency,
            column,
            components: 1,
            count,
        };
        let most = plan.layers.iter().map(|layer| layer.products).max();
        let most = most.unwrap_or(0);
        // Slots, job-wide values and sums are the planner's regions 0 to 2.
        let mut regions = vec![
            region(Residency::Resident, ColumnType::Labels, plan.slots),
            region(Residency::Mapped, ColumnType::Label, plan.job_wide),
            region(Residency::Mapped, ColumnType::Label, plan.sums),
        ];
        let kinds = scheme.tables().iter();
        regions.extend(kinds.map(|(item, count)| region(Residency::Mapped, *item, most * count)));
        let layout = Layout {
            chunk_rows: rows,
            regions,
        };
        let mut device = Cpu::detect();
        for (key, byte) in [(OFFSET, 0x35), (START, 2), (DICE, 3)] {
            let key_of = Secret::new([byte; 16]);
            device.load_key(key, &key_of).into_diagnostic()?;
        }
        let (mut garble, mut evaluate, mut first) = (Vec::new(), Vec::new(), 0);
        for layer in &plan.layers {
            let program = Arc::clone(&plan.programs[layer.program]);
            let id = device.load(&program, &layout).into_diagnostic()?;
            let span = |(region, (_, count)): (u16, &(ColumnType, u32))| Span {
                region,
                component: 0,
                first: 0,
                count: count * layer.products,
            };
            let tables: Vec<Span> = (3..).zip(scheme.tables()).map(span).collect();
            let op = Op::Garble {
                scheme,
                offset: OFFSET,
            };
            let call = |key, tag, first| PrfCall { key, tag, first };
            let calls = vec![
                call(START, DomainTag::GARBLE, first),
                call(DICE, DomainTag::DICE, first * scheme.dice(rows)),
            ];
            for (op, src, dst, to) in [
                (op, vec![], tables.clone(), &mut garble),
                (Op::Evaluate { scheme }, tables, vec![], &mut evaluate),
            ] {
                let mut command = Command::new(op, src, dst);
                command.program = Some(id);
                command.calls.clone_from(&calls);
                to.push(command);
            }
            first += u64::from(layer.products);
        }
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows,
        };
        let workspace = device.open(&layout, frame).into_diagnostic()?;
        Ok(Case {
            device,
            workspace,
            garble,
            evaluate,
        })
    }

    /// Seconds of the fastest of many runs: the others were interrupted.
    fn seconds(&mut self, garbler: bool) -> Result<f64> {
        let commands = if garbler {
            &self.garble
        } else {
            &self.evaluate
        };
        let (start, mut best) = (Instant::now(), f64::INFINITY);
        while start.elapsed() < BUDGET || best.is_infinite() {
            let began = Instant::now();
            let submitted = self.device.submit(self.workspace, commands, Tag(0));
            best = best.min(began.elapsed().as_secs_f64());
            submitted.into_diagnostic()?;
            let ended = completion(&mut self.device).into_diagnostic()?;
            if ended.outcome != Outcome::Done {
                return Err(miette!("the device did not garble"));
            }
        }
        Ok(best)
    }
}

/// One scheme on chunks of so many rows.
fn measure(tables: Tables, rows: u32, limits: Limits) -> Result<Row> {
    let security = Security {
        tables,
        ..Security::of(ProtocolKind::Yao)
    };
    let workload = Name::Garble.workload(rows.into(), security);
    let options = Options {
        lanes: 1,
        chunk_rows: Some(rows),
    };
    let plan = Plan::new(workload.job, options).into_diagnostic()?;
    let scheme = scheme(tables);
    let mut case = Case::new(&plan, scheme, rows)?;
    let ands: u32 = plan.layers.iter().map(|layer| layer.products).sum();
    let gates = f64::from(ands) * f64::from(rows);
    let (garble, evaluate) = (gates / case.seconds(true)?, gates / case.seconds(false)?);
    let sizes = scheme.tables().iter();
    let table: u64 = sizes
        .map(|(item, n)| item.bytes(rows) * u64::from(*n))
        .sum();
    Ok(Row {
        bench: workload.name,
        device: case.device.name(),
        tables: tables.word(),
        rows,
        ands,
        workspace_bytes: u64::from(plan.slots) * ColumnType::Labels.bytes(rows),
        bytes_per_and: table as f64 / f64::from(rows),
        garble_per_s: garble,
        garble_of_hash: garble / limits.hash.garble,
        evaluate_per_s: evaluate,
        evaluate_of_hash: evaluate / limits.hash.evaluate,
        hash_garble_per_s: limits.hash.garble,
        hash_evaluate_per_s: limits.hash.evaluate,
        aes_per_s: limits.aes,
    })
}

const HEADER: &str = "tables        rows   bank MB   B/AND    garble/s   of hash   of AES   evaluate/s   of hash   of AES";

/// Blocks of AES per gate: of the garbler, who hashes both labels; half as many of the evaluator.
fn blocks(row: &Row) -> f64 {
    if row.tables == Tables::HalfGates.word() {
        4.0
    } else {
        6.0
    }
}

fn print(row: &Row) {
    let of_aes = [
        row.garble_per_s * blocks(row),
        row.evaluate_per_s * blocks(row) / 2.0,
    ];
    let [garble, evaluate] = of_aes.map(|blocks| blocks / row.aes_per_s * 100.0);
    println!(
        "{:<12} {:>5} {:>9.2} {:>7.3} {:>11} {:>8.0}% {garble:>7.0}% {:>12} {:>8.0}% {evaluate:>7.0}%",
        row.tables,
        row.rows,
        row.workspace_bytes as f64 / 1e6,
        row.bytes_per_and,
        short(row.garble_per_s),
        row.garble_of_hash * 100.0,
        short(row.evaluate_per_s),
        row.evaluate_of_hash * 100.0,
    );
}

/// The fastest rows of each scheme, on links: what the link takes, or what the slower side computes.
fn print_links(rows: &[Row]) {
    println!("\nANDs per second on a link, with one core at each side");
    for tables in [Tables::HalfGates, Tables::ThreeHalves] {
        let speed = |row: &Row| row.garble_per_s.min(row.evaluate_per_s);
        let of = rows.iter().filter(|row| row.tables == tables.word());
        let Some(best) = of.max_by(|a, b| speed(a).total_cmp(&speed(b))) else {
            continue;
        };
        print!("{:<12}", best.tables);
        for link in LINKS {
            let rate = (link * 1e9 / 8.0 / best.bytes_per_and).min(speed(best));
            print!("   {link:>3} Gb/s: {:>8}", short(rate));
        }
        println!();
    }
}

/// A rate of a row.
type Rate = fn(&Row) -> f64;

fn draw(rows: &[Row], svg: &mut String) -> Drawn {
    let limits = rows.iter().map(|row| row.hash_evaluate_per_s);
    let most = limits.fold(1e6, f64::max) / 1e6 * 1.1;
    let sides: [(&str, Rate, Rate); 2] = [
        (
            "garble",
            |row| row.garble_per_s,
            |row| row.hash_garble_per_s,
        ),
        (
            "evaluate",
            |row| row.evaluate_per_s,
            |row| row.hash_evaluate_per_s,
        ),
    ];
    let schemes = [Tables::HalfGates, Tables::ThreeHalves];
    let kinds = schemes
        .iter()
        .flat_map(|tables| sides.map(|side| (tables, side)));
    let lines = kinds.enumerate().map(|(number, (tables, side))| {
        let (side, rate, limit) = side;
        let line = |of: Rate| {
            let rows = rows.iter().filter(|row| row.tables == tables.word());
            rows.map(|row| (f64::from(row.rows), of(row) / 1e6))
                .collect()
        };
        Line {
            name: format!("{}, {side} (pale: hash alone)", tables.word()),
            color: Palette99::pick(number).to_rgba(),
            points: line(rate),
            limit: line(limit),
        }
    });
    let title = "ANDs of AES-128 on one core, with its XORs";
    let axes = ["rows of a chunk", "M/s"];
    chart::lines(title, axes, most, lines.collect(), svg)
}
