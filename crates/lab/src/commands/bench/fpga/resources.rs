//! What cores take of an FPGA, as `make synth` counted it, beside tables 4 and 5 of the paper.

use miette::{IntoDiagnostic, Result};
use serde_json::Value;

use super::super::{print_json, short};

/// What was counted when this was built.
const RESULTS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../rtl/synth/garble.json"
));

/// LUTs, those of them that are memory, flip-flops, and block RAMs of 36 kb.
type Counts = [f64; 4];

/// Tables 4 and 5, by part: FASE, and the paper's two rows. Labels of inputs and of gates are one part.
const PAPER: [(&str, [Counts; 2]); 3] = [
    (
        "total",
        [
            [56_111.0, 315.0, 15_415.0, 69.0],
            [158_902.0, 619.0, 44_497.0, 585.0],
        ],
    ),
    (
        "engines",
        [
            [26_575.0, 285.0, 5445.0, 0.0],
            [52_975.0, 557.0, 10_856.0, 0.0],
        ],
    ),
    (
        "labels",
        [
            [1073.0 + 22_012.0, 0.0, 1031.0 + 8596.0, 4.0 + 28.5],
            [4965.0 + 41_539.0, 0.0, 3094.0 + 25_116.0, 64.0 + 456.0],
        ],
    ),
];

/// Parts of ours that the paper does not tell.
const OTHERS: [&str; 3] = ["tables", "program", "rest"];

/// Prints all tables, or what they are made from.
pub(super) fn print(json: bool) -> Result<()> {
    let results: Value = serde_json::from_str(RESULTS).into_diagnostic()?;
    if json {
        return print_json(&serde_json::json!({ "bench": "fpga-resources", "results": results }));
    }
    let tool = |name: &str| results["tools"][name].as_str().unwrap_or("?");
    println!(
        "\nUltraScale+, by Yosys {}: tables 4 and 5 of the paper (Vivado), and ours with as much room\n{:<9} {:<14} {:>9} {:>10} {:>9} {:>7}",
        tool("yosys"),
        "part",
        "core",
        "LUT",
        "as memory",
        "FF",
        "BRAM"
    );
    let parts = PAPER.iter().map(|(part, _)| part).chain(&OTHERS);
    for part in parts {
        let published = PAPER.iter().find(|(of, _)| of == part);
        for (name, counts) in ["FASE", "paper, N = 2"]
            .iter()
            .zip(published.map_or(&[][..], |p| &p.1))
        {
            line(part, name, counts);
        }
        for run in runs(&results["xilinx"]) {
            if let Some(counts) = counts(&run[*part], ["lut", "lutram", "ff", "bram"]) {
                line(part, &name(run), &counts);
            }
        }
    }
    println!(
        "\nCyclone V, by Yosys\n{:<9} {:<14} {:>9} {:>10} {:>9} {:>7}",
        "part", "core", "ALUT", "MLAB cells", "FF", "M10K"
    );
    for run in runs(&results["intel"]) {
        if let Some(counts) = counts(&run["total"], ["alut", "mlab", "ff", "m10k"]) {
            line("total", &name(run), &counts);
        }
    }
    println!(
        "\nECP5, by nextpnr {}\n{:<24} {:<14} {:>9} {:>9} {:>7} {:>9} {:>15}",
        tool("nextpnr"),
        "device",
        "core",
        "LUT4",
        "FF",
        "DP16KD",
        "MHz",
        "tables per s"
    );
    for run in runs(&results["ecp5"]) {
        clock(run);
    }
    Ok(())
}

/// A core on ECP5: a row makes a table per cycle, at most.
fn clock(run: &Value) {
    let (rows, mhz) = (run["parameters"]["Rows"].as_f64(), run["mhz"].as_f64());
    let (Some([lut, ff, bram]), Some(rows), Some(mhz)) =
        (counts(run, ["lut4", "ff", "dp16kd"]), rows, mhz)
    else {
        return;
    };
    let placed = if run["routed"].as_bool() == Some(false) {
        " (placed, not routed)"
    } else {
        ""
    };
    println!(
        "{:<24} {:<14} {lut:>9} {ff:>9} {bram:>7} {mhz:>9.2} {:>15}{placed}",
        run["device"].as_str().unwrap_or("?"),
        format!("ours, N = {rows}"),
        short(rows * mhz * 1e6),
    );
}

/// One measurement, or a list of them.
fn runs(value: &Value) -> &[Value] {
    match value {
        Value::Array(runs) => runs,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

fn name(run: &Value) -> String {
    run["name"].as_str().map_or_else(
        || format!("ours, N = {}", run["rows"]),
        |name| format!("ours, {name}"),
    )
}

/// Numbers of a measurement, if it has all of them.
fn counts<const N: usize>(of: &Value, names: [&str; N]) -> Option<[f64; N]> {
    let counts = names.map(|name| of[name].as_f64());
    counts
        .iter()
        .all(Option::is_some)
        .then(|| counts.map(Option::unwrap_or_default))
}

fn line(part: &str, core: &str, [lut, memory, ff, bram]: &Counts) {
    println!("{part:<9} {core:<14} {lut:>9} {memory:>10} {ff:>9} {bram:>7}");
}
