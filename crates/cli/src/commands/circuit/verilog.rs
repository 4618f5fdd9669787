//! Circuits from Verilog.

use std::path::{Path, PathBuf};
use std::time::Duration;

use veil_circuit::Circuit;
use veil_circuit::generate::Aim;
use veil_circuit::verilog::{self, Source, VerilogError};
use veil_circuit::yosys::{Options, Synthesis};

use crate::failure::{Code, Failure};

/// The programs that read Verilog.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Programs {
    /// Seconds that Yosys, and the simulator, may take with Verilog.
    #[arg(long, value_name = "SECONDS", default_value_t = verilog::TIME.as_secs(), value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    time_limit: u64,
}

/// What to make of which Verilog.
#[derive(clap::Args, Clone, Debug)]
pub struct Compile {
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
pub fn is_verilog(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|end| end == "v" || end == "sv")
}

/// What is made of one file with the fewest ANDs.
pub fn load(name: &str, clocked: &super::Clocked) -> Result<(Source, Synthesis), Failure> {
    let options = Options {
        cycles: clocked.cycles,
        ..Options::default()
    };
    let top = clocked.top.as_deref();
    made(&[name.into()], top, &options, clocked.programs)
}

/// Says where there are assertions, which the circuit does not check.
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

/// What a command says where Verilog is at fault.
pub fn failure(error: &VerilogError) -> Failure {
    let failure = Failure::new(Code::Input, error.to_string());
    match error {
        VerilogError::TooLong { .. } => failure.help(
            "`--time-limit SECONDS` allows it more; fewer `--cycles` and `--cases` make it faster",
        ),
        _ => failure,
    }
}
