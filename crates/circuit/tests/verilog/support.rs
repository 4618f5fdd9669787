//! Designs in files, and rows of values for them.

use std::path::PathBuf;

use veil_circuit::Circuit;
use veil_circuit::verilog::{
    Comparison, Source, TIME, VerilogError, compare, compile, is_installed,
};
use veil_circuit::yosys::{Options, Synthesis};

/// Whether the programs are there; says so if not.
pub(crate) fn can_run() -> bool {
    let there = is_installed();
    if !there {
        eprintln!("SKIPPED: yosys or iverilog is not installed (apt-get install yosys iverilog)");
    }
    there
}

/// Whether the Yosys that is there has this version.
pub(crate) fn yosys_is(version: &str) -> bool {
    let said = std::process::Command::new("yosys").arg("-V").output();
    let said = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    said.is_ok_and(|said| said.split(' ').nth(1) == Some(version))
}

/// A design in a folder of its own, for as long as it lives.
pub(crate) struct Design {
    _folder: tempfile::TempDir,
    pub(crate) source: Source,
}

impl Design {
    pub(crate) fn new(text: &str) -> Result<Design, VerilogError> {
        Design::with(text, &[])
    }

    /// A design with files beside it.
    pub(crate) fn with(text: &str, beside: &[(&str, &str)]) -> Result<Design, VerilogError> {
        let folder = tempfile::tempdir().expect("a place for files");
        for (name, text) in beside {
            std::fs::write(folder.path().join(name), text).expect("a place for files");
        }
        let file = folder.path().join("design.v");
        std::fs::write(&file, text).expect("a place for files");
        let source = Source::new(&[file], None, TIME)?;
        Ok(Design {
            _folder: folder,
            source,
        })
    }
}

/// What is made of a text, which must be a design.
pub(crate) fn compiled(text: &str) -> (Design, Synthesis) {
    let design = Design::new(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let made = compile(&design.source, &Options::default());
    let made = made.unwrap_or_else(|error| panic!("{error}\n{text}"));
    (design, made)
}

/// The error of a text, without the folder that its file is in.
pub(crate) fn refused(text: &str) -> String {
    let error = match Design::new(text) {
        Err(error) => error,
        Ok(design) => compile(&design.source, &Options::default()).expect_err("it is no circuit"),
    };
    let error = error.to_string();
    let path = error.split(' ').find(|word| word.contains("design.v"));
    match path.and_then(|path| path.split_once("design.v")) {
        Some((folder, _)) => error.replacen(folder, "", 1),
        None => error,
    }
}

/// A design of the repository.
pub(crate) fn file(name: &str, top: Option<&str>) -> (Source, Synthesis) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../circuits/verilog")
        .join(name);
    let source = Source::new(&[path], top, TIME).unwrap_or_else(|error| panic!("{name}: {error}"));
    let made = compile(&source, &Options::default());
    (
        source,
        made.unwrap_or_else(|error| panic!("{name}: {error}")),
    )
}

/// Compares the design with its circuit on edge values and random ones; returns the undefined bits of the simulation.
pub(crate) fn agrees(source: &Source, made: &Synthesis, rows: usize) -> u64 {
    let rows = values(&made.circuit, rows);
    match compare(source, made, &made.circuit, &rows).expect("a simulation") {
        Comparison::Same { undefined, .. } => undefined,
        Comparison::Differ {
            row,
            port,
            circuit,
            simulated,
        } => panic!(
            "{}: {port} of {:?} is {circuit:?}, simulated {simulated:?}",
            source.top, rows[row]
        ),
    }
}

/// Rows of values: the first have all zeros, all ones, ones and highest bits, mixed between ports; the others are random.
pub(crate) fn values(circuit: &Circuit, rows: usize) -> Vec<Vec<Vec<bool>>> {
    let mut random = Random(7);
    let mut row = |number: usize| {
        let ports = 0..circuit.inputs.len();
        ports
            .map(|port| {
                let width = circuit.input_width(port) as usize;
                let kind = if number < 64 {
                    number >> (2 * port % 6) & 3
                } else {
                    4
                };
                (0..width)
                    .map(|bit| match kind {
                        0 => false,
                        1 => true,
                        2 => bit == 0,
                        3 => bit + 1 == width,
                        _ => random.next() & 1 == 1,
                    })
                    .collect()
            })
            .collect()
    };
    (0..rows).map(&mut row).collect()
}

/// Numbers that are the same in every run (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators").
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
