//! Circuits from Verilog, and whether a simulation agrees with them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use veil_circuit::generate::Aim;
use veil_circuit::verilog::{self, Comparison, Source, VerilogError};
use veil_circuit::yosys::{Options, Synthesis};
use veil_circuit::{Circuit, Per};

use crate::failure::{Code, Failure};

/// Rows that are simulated at most: a simulator is slow.
const ROWS: u32 = 1000;
/// Bits that all rows have at most.
const BITS: u64 = 1 << 23;
/// Inputs of so few bits are all tried.
const EXHAUSTIVE: u64 = 10;

/// The programs that read Verilog.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Programs {
    /// Seconds that Yosys, and the simulator, may take with Verilog.
    #[arg(long, value_name = "SECONDS", default_value_t = verilog::TIME.as_secs(), value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time_limit: u64,
}

/// What to make of which Verilog.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Compile {
    /// Files of Verilog, in the order in which they are read.
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// The netlist to write.
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: PathBuf,
    /// The top module [default: the one that is an instance of no other]
    #[arg(long, value_name = "NAME")]
    pub(super) top: Option<String>,
    /// Cycles of a clocked design [default: its attribute `cycles`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) cycles: Option<u64>,
    /// Small depth instead of few ANDs.
    #[arg(long)]
    pub(super) shallow: bool,
    /// The format [default: sequential, the one with names of ports]
    #[arg(long, value_enum)]
    pub(super) to: Option<super::To>,
    #[command(flatten)]
    pub(super) programs: Programs,
}

impl Compile {
    pub(super) fn circuit(&self) -> Result<Circuit, Failure> {
        let aim = if self.shallow { Aim::Depth } else { Aim::Size };
        let options = Options {
            aim,
            cycles: self.cycles,
            ..Options::default()
        };
        let (_, made) = made(&self.files, self.top.as_deref(), &options, self.programs)?;
        note_watching(&made);
        Ok(made.circuit)
    }
}

/// Whether a file is Verilog, by its name.
pub(super) fn is_verilog(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|end| end == "v" || end == "sv")
}

/// What is made of one file with the fewest ANDs.
pub(super) fn load(name: &str, clocked: &super::Clocked) -> Result<(Source, Synthesis), Failure> {
    let options = Options {
        cycles: clocked.cycles,
        ..Options::default()
    };
    let top = clocked.top.as_deref();
    made(&[name.into()], top, &options, clocked.programs)
}

/// Says where there are assertions, which nobody checks.
pub(super) fn note_watching(made: &Synthesis) {
    if !made.watching.is_empty() {
        let places = made.watching.join(", ");
        crate::home::note(&format!(
            "note: what is asserted or printed at {places} is no part of the circuit"
        ));
    }
}

/// What is made of files.
fn made(
    files: &[PathBuf],
    top: Option<&str>,
    options: &Options<'_>,
    programs: Programs,
) -> Result<(Source, Synthesis), Failure> {
    let time = Duration::from_secs(programs.time_limit);
    let source = Source::new(files, top, time).map_err(|error| failure(&error))?;
    let made = verilog::compile(&source, options).map_err(|error| failure(&error))?;
    Ok((source, made))
}

fn failure(error: &VerilogError) -> Failure {
    let failure = Failure::new(Code::Input, error.to_string());
    match error {
        VerilogError::TooLong { .. } => failure.help(
            "`--time-limit SECONDS` allows it more; fewer `--cycles` and `--cases` make it faster",
        ),
        _ => failure,
    }
}

/// Compares a simulation of Verilog with a circuit; returns a line that says that they agree.
pub(super) fn simulate(
    (source, made): &(Source, Synthesis),
    circuit: &Circuit,
    what: &str,
    cases: u32,
) -> Result<String, Failure> {
    let bits: u64 = (0..made.circuit.inputs.len())
        .map(|port| made.circuit.input_width(port))
        .sum();
    let all = bits <= EXHAUSTIVE;
    let rows = values(&made.circuit, cases)?;
    match verilog::compare(source, made, circuit, &rows).map_err(|error| failure(&error))? {
        Comparison::Same { rows, undefined } => {
            let undefined = match undefined {
                0 => String::new(),
                bits => format!("; {bits} bits of it are undefined (x), where any value is right"),
            };
            let (top, all) = (&source.top, if all { "all " } else { "" });
            Ok(format!(
                "a simulation of `{top}` agrees with {what} on {all}{rows} inputs{undefined}\n"
            ))
        }
        Comparison::Differ {
            row,
            port,
            circuit,
            simulated,
        } => {
            let known = |bits: &[bool]| text(&bits.iter().copied().map(Some).collect::<Vec<_>>());
            let given: Vec<String> = rows[row].iter().map(|bits| known(bits)).collect();
            let message = format!(
                "a simulation of `{}` and {what} differ: of {}, `{port}` is {} in the simulation and {} in the circuit",
                source.top,
                given.join(" "),
                text(&simulated),
                known(&circuit),
            );
            Err(Failure::new(Code::Check, message))
        }
    }
}

/// A value in hexadecimal, the most significant digit first; a digit of which a bit is undefined is x.
fn text(bits: &[Option<bool>]) -> String {
    let digit = |digit: &[Option<bool>]| {
        let value = digit
            .iter()
            .rev()
            .try_fold(0, |sum, bit| Some(2 * sum + u32::from((*bit)?)));
        value
            .and_then(|value| char::from_digit(value, 16))
            .unwrap_or('x')
    };
    let digits: String = bits.chunks(4).rev().map(digit).collect();
    format!("0x{digits}")
}

/// All inputs, if they are few; otherwise edges (zeros, ones, the lowest and the highest bit alone) and random ones.
fn values(circuit: &Circuit, cases: u32) -> Result<Vec<Vec<Vec<bool>>>, Failure> {
    let widths: Vec<u64> = (0..circuit.inputs.len())
        .map(|port| circuit.input_width(port))
        .collect();
    let outputs = (0..circuit.outputs.len()).map(|port| circuit.output_width(port));
    let bits = widths.iter().sum::<u64>();
    // Values that are the same in all cycles are given anew in each.
    let repeated = (circuit.inputs.iter().filter(|port| port.per != Per::Cycle))
        .map(|port| u64::from(port.width).saturating_mul(circuit.clock.cycles));
    let each = bits
        .saturating_add(outputs.sum())
        .saturating_add(repeated.sum())
        .max(1);
    let rows = if bits <= EXHAUSTIVE {
        1 << bits
    } else {
        u64::from(cases.min(ROWS)).min(BITS / each).max(1)
    };
    let mut all = Vec::new();
    for row in 0..rows {
        let mut random = vec![0; bits as usize];
        getrandom::fill(&mut random).map_err(|error| {
            let message = format!("the operating system gives no randomness: {error}");
            Failure::new(Code::Other, message)
        })?;
        let mut place = 0;
        let mut values = Vec::new();
        for (port, &width) in widths.iter().enumerate() {
            let first = place;
            place += width;
            let edge = row >> (2 * port % 6) & 3;
            let bit = |at: u64| match edge {
                _ if bits <= EXHAUSTIVE => row >> (first + at) & 1 == 1,
                _ if row >= 64 => random[(first + at) as usize] & 1 == 1,
                0 => false,
                1 => true,
                2 => at == 0,
                _ => at + 1 == width,
            };
            values.push((0..width).map(bit).collect());
        }
        all.push(values);
    }
    Ok(all)
}
