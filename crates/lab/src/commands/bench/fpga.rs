//! `veil-lab bench fpga-garble`: cycles that garbling cores take for the netlists of a paper, on simulated cards, and what these take of an FPGA.
//!
//! Table 3 of R. Oishi, J. Kadomoto, H. Irie, S. Sakai, "FPGA-based Garbling Accelerator with Parallel Pipeline Processing" (its systems: FASE,
//! which has one pipeline, and two pipelines over a live-value table), beside our core of that design, and beside cores that are scheduled by their
//! programs. The netlists are public, and no part of this project: a folder of them is an option.

mod print;
mod resources;

use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, miette};
use plotters::prelude::*;
use serde::Serialize;
use veil_circuit::{Limits, Reduce, scd};
use veil_device_fpga::garble::bound::least;
use veil_device_fpga::garble::circuit::Sequential;
use veil_device_fpga::garble::{Capacity, Image};
use veil_device_fpga::ordered::{Entries, Job, Ordered, rule};
use veil_device_fpga::{Garbler, Run, Simulated, Stalls, Streams};

use super::chart::{self, Line};
use super::{BenchArgs, print_json};

/// Rows of the cores that are told about.
const ROWS: [u32; 4] = [1, 2, 4, 8];
/// Of those that take gates in the order of the netlist.
const IN_ORDER: [u32; 4] = [1, 2, 3, 4];

/// A netlist of the paper: its name and cycles, and the clock cycles that the paper gives for FASE and for its own two pipelines.
const PUBLISHED: [(&str, u64, u64, u64); 12] = [
    ("Mill_8_8", 8, 259, 252),
    ("Add_8_1", 1, 139, 133),
    ("Add_8_8", 8, 179, 172),
    ("Hamm_32_1", 1, 354, 262),
    ("Hamm_32_32", 32, 2980, 2884),
    ("Hamm_512_512", 512, 78_340, 75_780),
    ("Mult_256_512", 512, 1_681_412, 901_124),
    ("MAC_8_1", 1, 716, 588),
    ("MAC_16_1", 1, 2889, 2241),
    ("MAC_32_1", 1, 11_031, 8133),
    ("CORDIC_32_31", 31, 129_925, 97_003),
    ("AES_128_11", 11, 84_044, 55_664),
];

/// A netlist on a core.
#[derive(Serialize)]
struct Measured {
    bench: &'static str,
    netlist: &'static str,
    netlist_cycles: u64,
    gates: usize,
    ands: u64,
    /// `scheduled` by programs, or `in-order` as the paper's.
    core: &'static str,
    rows: u32,
    /// Clock cycles of the core that was simulated: from the start of the run until all of it has left; in order, as the paper counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
    /// Cycles in which bundles start, by the program; in order, by the rule of the paper's design.
    scheduled: u64,
    /// No schedule is faster.
    bound: u64,
    paper_fase: u64,
    paper_two_rows: u64,
}

/// Measures, prints the tables, and draws.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let named = args.circuits.clone();
    let folder = named.or_else(|| std::env::var_os("VEIL_CIRCUITS").map(PathBuf::from));
    match folder {
        Some(folder) if folder.is_dir() => netlists(args, &folder)?,
        folder => {
            let found = folder.map(|folder| format!("{} is no folder; ", folder.display()));
            eprintln!(
                "skipped: {}the netlists of the paper are no part of this project; --circuits DIR (or VEIL_CIRCUITS) names a folder with NAME.scd files, such as AES_128_11.scd",
                found.unwrap_or_default()
            );
        }
    }
    resources::print(args.json)
}

/// Table 3.
fn netlists(args: &BenchArgs, folder: &Path) -> Result<()> {
    let mut all = Vec::new();
    for (netlist, cycles, fase, two_rows) in PUBLISHED {
        let path = folder.join(format!("{netlist}.scd"));
        if !path.is_file() {
            eprintln!("skipped: {} is not there", path.display());
            continue;
        }
        let text = std::fs::read(&path).into_diagnostic()?;
        let own =
            measure(&text, cycles).map_err(|error| error.wrap_err(path.display().to_string()))?;
        let own: Vec<Measured> = own
            .into_iter()
            .map(|counted| Measured {
                netlist,
                paper_fase: fase,
                paper_two_rows: two_rows,
                ..counted
            })
            .collect();
        if args.json {
            own.iter().try_for_each(print_json)?;
        } else {
            if all.is_empty() {
                print::head();
            }
            print::line(&own);
        }
        all.extend(own);
    }
    if !args.json {
        print::absent(&all);
    }
    match &args.svg {
        Some(path) => {
            let mut svg = String::new();
            let drawn = draw(&all, &mut svg);
            chart::put(drawn, &svg, path)
        }
        None => Ok(()),
    }
}

/// A netlist on all cores, in order and scheduled.
fn measure(text: &[u8], cycles: u64) -> Result<Vec<Measured>> {
    let limits = Limits::default();
    let circuit = scd::read(text, cycles, Reduce::EveryCycle, &limits).into_diagnostic()?;
    let sequential = Sequential::of(&circuit).into_diagnostic()?;
    let netlist = scd::netlist(text, &limits).into_diagnostic()?;
    let entries = Entries::of(&netlist).into_diagnostic()?;
    let mut all = Vec::new();
    let (in_order, cards) = (Ordered::built(), Simulated::built());
    for rows in IN_ORDER {
        let counted = in_order
            .contains(&rows)
            .then(|| clock_in_order(rows, &entries, cycles as u32));
        all.push(Measured {
            core: "in-order",
            cycles: counted.transpose()?,
            scheduled: rule::count(&entries, rows).run(cycles as u32),
            ..Measured::of(&sequential, &Simulated::capacity(rows), cycles)
        });
    }
    for rows in ROWS {
        let garbler = cards
            .contains(&rows)
            .then(|| Garbler::simulated(rows, Stalls::default()));
        let garbler = garbler.transpose().into_diagnostic()?;
        let capacity = garbler
            .as_ref()
            .map_or_else(|| Simulated::capacity(rows), |garbler| *garbler.capacity());
        let image = Image::of(&sequential.body, &capacity, cycles).into_diagnostic()?;
        all.push(Measured {
            core: "scheduled",
            cycles: garbler
                .map(|mut garbler| clock(&mut garbler, &image, cycles))
                .transpose()?,
            scheduled: image.cycles(cycles),
            ..Measured::of(&sequential, &capacity, cycles)
        });
    }
    Ok(all)
}

/// Random bytes.
fn random(count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)
        .map_err(|error| miette!("the operating system gives no randomness: {error}"))?;
    Ok(bytes)
}

/// An offset and a start of the hash.
fn secrets() -> Result<(u128, u128)> {
    let bytes = random(32)?;
    let [offset, start] = [0, 16].map(|at| {
        let half = bytes[at..at + 16]
            .try_into()
            .expect("half of 32 bytes is 16");
        u128::from_le_bytes(half)
    });
    Ok((offset | 1, start))
}

/// Garbles with random labels on a core that takes gates in order, and counts.
fn clock_in_order(rows: u32, entries: &Entries, cycles: u32) -> Result<u64> {
    let job = Job {
        cycles,
        first: 0,
        instance: 0,
        keys: secrets()?,
        labels: &random(16 * entries.labels(cycles) as usize)?,
    };
    let mut core = Ordered::new(rows, Stalls::default()).into_diagnostic()?;
    Ok(core.run(entries, &job).into_diagnostic()?.cycles)
}

/// Garbles with random labels, and counts.
fn clock(garbler: &mut Garbler, image: &Image, cycles: u64) -> Result<u64> {
    let inputs = image.run_inputs.len() + image.each_inputs.len() * cycles as usize;
    let labels = random(16 * inputs)?;
    garbler.load(image).into_diagnostic()?;
    let run = Run {
        repetitions: cycles as u32,
        first: 0,
        instance: 0,
        rows: false,
        leave_from: 0,
    };
    let mut streams = Streams {
        labels: &labels,
        tables: &mut Vec::new(),
        leaves: &mut Vec::new(),
    };
    garbler
        .run(image, &run, secrets()?, &mut streams)
        .into_diagnostic()
}

impl Measured {
    /// A netlist on a core of such a capacity, nothing of it counted yet.
    fn of(sequential: &Sequential, capacity: &Capacity, cycles: u64) -> Self {
        Measured {
            bench: "fpga-garble",
            netlist: "",
            netlist_cycles: cycles,
            gates: sequential.body.gates.len(),
            ands: sequential.body.ands().into(),
            core: "",
            rows: capacity.engines,
            cycles: None,
            scheduled: 0,
            bound: least(&sequential.body, capacity, cycles),
            paper_fase: 0,
            paper_two_rows: 0,
        }
    }

    /// What it takes, as far as it is known.
    fn taken(&self) -> u64 {
        self.cycles.unwrap_or(self.scheduled)
    }
}

/// How many times as fast as one row cores of more rows are.
fn draw(all: &[Measured], svg: &mut String) -> chart::Drawn {
    let speed = |m: &Measured, of: fn(&Measured) -> u64| {
        let one = all
            .iter()
            .find(|one| (one.netlist, one.core, one.rows) == (m.netlist, m.core, 1));
        one.map(|one| (f64::from(m.rows), of(one) as f64 / of(m) as f64))
    };
    let lines = PUBLISHED.iter().enumerate().map(|(number, (netlist, ..))| {
        let own = || {
            all.iter()
                .filter(|m| (m.netlist, m.core) == (*netlist, "scheduled"))
        };
        Line {
            name: (*netlist).to_owned(),
            color: Palette99::pick(number).to_rgba(),
            points: own().filter_map(|m| speed(m, Measured::taken)).collect(),
            limit: own().filter_map(|m| speed(m, |m| m.bound)).collect(),
        }
    });
    let lines = lines.filter(|line| !line.points.is_empty()).collect();
    chart::lines(
        "Garbling cores of more rows (pale: what no schedule exceeds)",
        ["gates that start in a cycle", "times one row"],
        8.5,
        lines,
        svg,
    )
}
