//! `veil bench fpga-garble`: cycles that garbling cores take for the netlists of a paper, on simulated cards.
//!
//! Table 3 of the paper on FPGA garbling (its systems: FASE, which has one pipeline, and two pipelines over a live-value table), beside cores that are
//! scheduled by their programs. The netlists are public, and no part of this project: a folder of them is an option.

use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, miette};
use plotters::prelude::*;
use serde::Serialize;
use veil_circuit::{Limits, Reduce, scd};
use veil_device_fpga::garble::Image;
use veil_device_fpga::garble::bound::least;
use veil_device_fpga::garble::circuit::Sequential;
use veil_device_fpga::{Garbler, Run, Simulated, Stalls, Streams};

use super::chart::{self, Line};
use super::{BenchArgs, print_json};

/// Rows of the cores that are told about.
const ROWS: [u32; 4] = [1, 2, 4, 8];

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
    ands: u32,
    rows: u32,
    /// Clock cycles from the start of the run until all of it has left; of the core that was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u64>,
    /// Cycles in which bundles start, by the program.
    scheduled: u64,
    /// No schedule is faster.
    bound: u64,
    paper_fase: u64,
    paper_two_rows: u64,
}

/// Measures, prints the table, and draws.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let folder = args
        .circuits
        .clone()
        .or_else(|| std::env::var_os("VEIL_CIRCUITS").map(PathBuf::from));
    let Some(folder) = folder else {
        println!(
            "skipped: the netlists of the paper are no part of this project; --circuits DIR (or VEIL_CIRCUITS) names a folder with NAME.scd files, such as AES_128_11.scd"
        );
        return Ok(());
    };
    let built = Simulated::built();
    if !args.json {
        println!(
            "netlist        cycles  rows     clock cycles   scheduled      bound   of bound   FASE   two rows (paper)   of paper"
        );
    }
    let mut all = Vec::new();
    for (netlist, cycles, fase, two_rows) in PUBLISHED {
        let path = folder.join(format!("{netlist}.scd"));
        if !path.is_file() {
            eprintln!("skipped: {} is not there", path.display());
            continue;
        }
        for rows in ROWS {
            let mut measured = measure(&path, netlist, cycles, rows, built.contains(&rows))?;
            (measured.paper_fase, measured.paper_two_rows) = (fase, two_rows);
            if args.json {
                print_json(&measured)?;
            } else {
                print(&measured);
            }
            all.push(measured);
        }
    }
    if !args.json {
        let absent: Vec<String> = ROWS
            .iter()
            .filter(|rows| !built.contains(rows))
            .map(u32::to_string)
            .collect();
        if !absent.is_empty() {
            println!(
                "\nno simulated core of {} rows is in this build: of these, cycles are those of the schedule. VEIL_RTL_ROWS=1,2,4,8 builds them, where Verilator is there",
                absent.join(", ")
            );
        }
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

fn measure(
    path: &Path,
    netlist: &'static str,
    cycles: u64,
    rows: u32,
    built: bool,
) -> Result<Measured> {
    let text = std::fs::read(path).into_diagnostic()?;
    let circuit = scd::read(&text, cycles, Reduce::EveryCycle, &Limits::default());
    let circuit = circuit.map_err(|error| miette!("{}: {error}", path.display()))?;
    let sequential = Sequential::of(&circuit).into_diagnostic()?;
    let garbler = built
        .then(|| Garbler::simulated(rows, Stalls::default()))
        .transpose()
        .into_diagnostic()?;
    let capacity = garbler
        .as_ref()
        .map_or_else(|| Simulated::capacity(rows), |garbler| *garbler.capacity());
    let image = Image::of(&sequential.body, &capacity, cycles).into_diagnostic()?;
    Ok(Measured {
        bench: "fpga-garble",
        netlist,
        netlist_cycles: cycles,
        gates: sequential.body.gates.len(),
        ands: image.products,
        rows,
        cycles: garbler
            .map(|mut garbler| clock(&mut garbler, &image, cycles))
            .transpose()?,
        scheduled: image.cycles(cycles),
        bound: least(&sequential.body, rows, cycles),
        paper_fase: 0,
        paper_two_rows: 0,
    })
}

/// Garbles with random labels, and counts.
fn clock(garbler: &mut Garbler, image: &Image, cycles: u64) -> Result<u64> {
    let inputs = image.run_inputs.len() + image.each_inputs.len() * cycles as usize;
    let mut labels = vec![0; 16 * inputs];
    let mut secrets = [0; 32];
    for bytes in [&mut labels[..], &mut secrets[..]] {
        getrandom::fill(bytes)
            .map_err(|error| miette!("the operating system gives no randomness: {error}"))?;
    }
    let [offset, start] = [0, 16].map(|at| {
        let half = secrets[at..at + 16]
            .try_into()
            .expect("half of 32 bytes is 16");
        u128::from_le_bytes(half)
    });
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
        .run(image, &run, (offset | 1, start), &mut streams)
        .into_diagnostic()
}

impl Measured {
    /// What it takes, as far as it is known.
    fn taken(&self) -> u64 {
        self.cycles.unwrap_or(self.scheduled)
    }
}

fn print(m: &Measured) {
    let cycles = m
        .cycles
        .map_or_else(|| "not built".to_owned(), |cycles| cycles.to_string());
    println!(
        "{:<14} {:>6} {:>5} {cycles:>16} {:>11} {:>10} {:>9.2}x {:>8} {:>14} {:>13.2}",
        m.netlist,
        m.netlist_cycles,
        m.rows,
        m.scheduled,
        m.bound,
        m.taken() as f64 / m.bound as f64,
        m.paper_fase,
        m.paper_two_rows,
        m.taken() as f64 / m.paper_two_rows as f64,
    );
}

/// How many times as fast as one row cores of more rows are.
fn draw(all: &[Measured], svg: &mut String) -> chart::Drawn {
    let speed = |m: &Measured, of: fn(&Measured) -> u64| {
        let one = all
            .iter()
            .find(|one| one.netlist == m.netlist && one.rows == 1);
        one.map(|one| (f64::from(m.rows), of(one) as f64 / of(m) as f64))
    };
    let lines = PUBLISHED.iter().enumerate().map(|(number, (netlist, ..))| {
        let own = || all.iter().filter(|m| m.netlist == *netlist);
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
