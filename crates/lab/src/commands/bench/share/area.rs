//! What cores of sharing take of an FPGA, as `make synth` counted it, beside table I of the COPA paper.

use std::collections::BTreeMap;

use miette::{IntoDiagnostic, Result};
use serde::Deserialize;

use super::super::print_json;

/// What was counted when this was built.
const RESULTS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../rtl/synth/share.json"
));

/// LUTs of the VU9P of Wolfe and others.
const VU9P: f64 = 1_182_240.0;

/// Table I of Patel and others, HPEC 2022: ALMs, block RAMs of 20 kb and DSP blocks of one accelerator on Stratix 10, which takes a product in
/// about six cycles.
const COPA: [f64; 3] = [10_667.0, 668.0, 150.0];
/// `Fold`s that were mapped.
const FOLDS: [u32; 4] = [1, 2, 4, 6];
/// Draws of a product, each of which takes a pipeline of AES for a cycle.
const DRAWS: u32 = 5;

/// Counts by resource.
type Counts = BTreeMap<String, f64>;

/// A core that was mapped.
#[derive(Deserialize)]
struct Design {
    module: String,
    parameters: BTreeMap<String, u32>,
    xilinx: Option<Mapped>,
    intel: Option<Mapped>,
}

#[derive(Deserialize)]
struct Mapped {
    total: Counts,
}

/// A pipeline of AES on Cyclone V: flat, S-boxes in block RAM, or apart, in ALUTs.
#[derive(Deserialize)]
struct Pipeline {
    flat: Counts,
    apart: Counts,
}

/// A core that was placed and routed on ECP5.
#[derive(Deserialize)]
struct Routed {
    name: String,
    lut4: f64,
    ff: f64,
    mult18: f64,
    mhz: f64,
}

/// All that was counted.
#[derive(Deserialize)]
pub(super) struct Areas {
    date: String,
    tools: BTreeMap<String, String>,
    designs: BTreeMap<String, Design>,
    #[serde(default)]
    in_ram: BTreeMap<String, Pipeline>,
    #[serde(default)]
    ecp5: Vec<Routed>,
}

/// What `make synth` wrote.
pub(super) fn read() -> Result<Areas> {
    serde_json::from_str(RESULTS).into_diagnostic()
}

/// The part of a VU9P that so many cores of bits take, and whether it was counted: beyond what was mapped by a line through the last two.
pub(super) fn of_cores(areas: &Areas, cores: u32) -> Option<(f64, bool)> {
    let bits = areas.designs.values().filter(|design| {
        design.module == "rep3_core" && design.parameters.get("Rings") == Some(&0)
    });
    let mut counted: Vec<(u32, f64)> = bits
        .filter_map(|design| {
            let lut = design.xilinx.as_ref()?.total.get("lut")?;
            Some((*design.parameters.get("Cores")?, lut / VU9P))
        })
        .collect();
    counted.sort_by_key(|(of, _)| *of);
    if let Some((_, part)) = counted.iter().find(|(of, _)| *of == cores) {
        return Some((*part, true));
    }
    let at = counted.iter().position(|(of, _)| *of > cores);
    let at = at
        .unwrap_or(counted.len())
        .clamp(1, counted.len().max(2) - 1);
    let (&(low, from), &(high, to)) = (counted.get(at - 1)?, counted.get(at)?);
    let slope = (to - from) / f64::from(high - low);
    let part = from + slope * (f64::from(cores) - f64::from(low));
    Some((part, false))
}

/// Both stages on Cyclone V: ALMs, block RAMs, DSP blocks.
fn both_stages(areas: &Areas, fold: u32, in_ram: bool) -> Option<[f64; 3]> {
    let total = |name: &str| Some(&areas.designs.get(name)?.intel.as_ref()?.total);
    let stages = [
        total(&format!("rep4_local, Fold {fold}"))?,
        total("rep4_join")?,
    ];
    let mut counts = [0.0; 3];
    for (count, key) in counts.iter_mut().zip(["alm", "m10k", "dsp"]) {
        *count = stages.iter().filter_map(|stage| stage.get(key)).sum();
        if in_ram {
            let pipeline = areas.in_ram.get("aes_pipeline")?;
            let of = |counts: &Counts| counts.get(key).copied().unwrap_or_default();
            let pipelines = f64::from(DRAWS.div_ceil(fold));
            *count += pipelines * (of(&pipeline.flat) - of(&pipeline.apart));
        }
    }
    Some(counts)
}

/// Prints all tables, or what they are made from.
pub(super) fn print(areas: &Areas, json: bool) -> Result<()> {
    if json {
        let results: serde_json::Value = serde_json::from_str(RESULTS).into_diagnostic()?;
        let bench = "fpga-share-resources";
        return print_json(&serde_json::json!({ "bench": bench, "results": results }));
    }
    let tool = |name: &str| areas.tools.get(name).map_or("?", String::as_str);
    println!(
        "\nresources by Yosys {}, {}\n{:<26} {:>9} {:>9} {:>6} {:>5}   {:>9} {:>9} {:>6} {:>6}",
        tool("yosys"),
        areas.date,
        "core",
        "UltraScale+ LUT",
        "FF",
        "BRAM",
        "DSP",
        "Cyclone V ALUT",
        "FF",
        "M10K",
        "DSP"
    );
    for (name, design) in &areas.designs {
        let columns = |mapped: &Option<Mapped>, keys: [&str; 4], widths: [usize; 4]| {
            let of = |key| mapped.as_ref().and_then(|mapped| mapped.total.get(key));
            let cells = keys.into_iter().zip(widths).map(|(key, width)| {
                let cell = of(key).map_or_else(String::new, f64::to_string);
                format!(" {cell:>width$}")
            });
            cells.collect::<String>()
        };
        println!(
            "{name:<26}{}  {}",
            columns(&design.xilinx, ["lut", "ff", "bram", "dsp"], [15, 9, 6, 5]),
            columns(&design.intel, ["alut", "ff", "m10k", "dsp"], [14, 9, 6, 6]),
        );
    }
    println!(
        "\nan accelerator of four parties, both stages: table I of the paper (Stratix 10, Quartus), and ours (Cyclone V, Yosys)\n{:<34} {:>18} {:>8} {:>10} {:>11}",
        "", "cycles per product", "ALM", "block RAMs", "DSP blocks"
    );
    let line = |name: &str, cycles: &str, [alm, ram, dsp]: [f64; 3]| {
        println!("{name:<34} {cycles:>18} {alm:>8} {ram:>10} {dsp:>11}");
    };
    line("paper, block RAMs of 20 kb", "6, about", COPA);
    for fold in FOLDS {
        for (in_ram, place) in [(false, "ALMs"), (true, "block RAMs of 10 kb")] {
            if let Some(counts) = both_stages(areas, fold, in_ram) {
                let name = format!("Fold {fold}, S-boxes in {place}");
                line(&name, &fold.to_string(), counts);
            }
        }
    }
    if !areas.ecp5.is_empty() {
        println!(
            "\nECP5, placed and routed by nextpnr {}\n{:<26} {:>9} {:>9} {:>10} {:>7}",
            tool("nextpnr"),
            "core",
            "LUT4",
            "FF",
            "MULT18X18D",
            "MHz"
        );
    }
    for run in &areas.ecp5 {
        println!(
            "{:<26} {:>9} {:>9} {:>10} {:>7.2}",
            run.name, run.lut4, run.ff, run.mult18, run.mhz
        );
    }
    Ok(())
}
