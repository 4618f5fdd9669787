//! `veil-lab bench fpga-share`: what cores of replicated sharing compute in a second, simulated cycle by cycle, and what they take of an FPGA.
//!
//! Beside table II and figure 4 of P.-F. Wolfe, R. Patel, R. Munafo, M. Varia, M. Herbordt, "Secret Sharing MPC on FPGAs in the Datacenter",
//! FPL 2020, for three parties; beside figure 3 and table I of R. Patel, P. Haghi, S. Jain, A. Kot, V. Krishnan, M. Varia, M. Herbordt,
//! "Distributed Hardware Accelerated Secure Joint Computation on the COPA Framework", HPEC 2022, for four. Clocks are those of the papers.

mod area;
mod four;
mod nodes;
mod three;

use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result};
use veil_device_fpga::Absent;
use veil_device_fpga::share::rates;

use super::BenchArgs;
use super::chart::{self, Drawn};

/// Measures, prints the tables, and draws.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let areas = area::read()?;
    if let Some(pace) = simulated(rates::three)? {
        let rows = three::rows(&pace, &areas);
        three::print(&pace, &rows, args.json)?;
        if let Some(path) = &args.svg {
            draw(&beside(path, "cores"), |svg| three::draw(&rows, svg))?;
            draw(&beside(path, "area"), |svg| three::draw_area(&rows, svg))?;
        }
    }
    if let Some(runs) = simulated(four::measure)? {
        four::print(&runs, args.json)?;
        if let Some(path) = &args.svg {
            draw(&beside(path, "batch"), |svg| four::draw(&runs, svg))?;
        }
    }
    if let Some(nodes) = simulated(nodes::measure)? {
        let nodes = nodes.into_diagnostic()?;
        nodes::print(&nodes, args.json)?;
        if let Some(path) = &args.svg {
            draw(&beside(path, "nodes"), |svg| nodes::draw(&nodes, svg))?;
        }
    }
    area::print(&areas, args.json)
}

/// What was measured; nothing, and why, where there are no models.
fn simulated<T>(measure: impl FnOnce() -> Result<T, Absent>) -> Result<Option<T>> {
    match measure() {
        Err(Absent::NoVerilator) => {
            eprintln!(
                "skipped: no core was built to be simulated: {}",
                Absent::NoVerilator
            );
            Ok(None)
        }
        measured => measured.map(Some).into_diagnostic(),
    }
}

/// One of several plots of one name: `fig.svg` becomes `fig-cores.svg`.
fn beside(path: &Path, of: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{of}.svg"))
}

fn draw(path: &Path, plot: impl FnOnce(&mut String) -> Drawn) -> Result<()> {
    let mut svg = String::new();
    let drawn = plot(&mut svg);
    chart::put(drawn, &svg, path)
}
