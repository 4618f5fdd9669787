//! Circuits from Verilog, by the programs Yosys and Icarus Verilog, which have to be installed.
//!
//! [`compile`] has Yosys read the files, and makes a circuit of what it says ([`crate::yosys`]). [`simulate()`] has Icarus Verilog run the same
//! files, which is a second opinion on what they mean: [`compare()`] tells where the two differ.
//!
//! Each program is ended if it takes longer than [`Source::time`], or prints without end. A simulation runs what the design says, so it
//! runs in a folder of its own, which goes with it; this hinders no design that means harm.

mod compare;
mod error;
mod simulate;
mod tools;

use std::path::PathBuf;
use std::time::Duration;

pub use compare::{Comparison, compare};
pub use error::VerilogError;
pub use simulate::simulate;

use crate::yosys::{self, Options, Synthesis};
use tools::Tool;

/// What Yosys does before [`yosys::read`]: no more than to make cells on words of processes, hierarchy and memories. Its `proc` would make
/// memories of tables.
const PASSES: &str = "proc_clean; proc_rmdead; proc_prune; proc_init; proc_arst; proc_mux; proc_dlatch; proc_dff; proc_memwr; proc_clean; \
     opt_expr -keepdc; flatten; memory -nomap; memory_map; opt_muxtree; dffunmap; opt_clean";

/// How long a program may run unless something else is said: a design of millions of gates takes minutes.
pub const TIME: Duration = Duration::from_secs(600);

/// Files and the module in them that is meant.
#[derive(Clone, Debug)]
pub struct Source {
    /// The files, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// The top module.
    pub top: String,
    /// How long each program may run with them.
    pub time: Duration,
}

impl Source {
    /// The files, with the module that is an instance of no other as top unless another is chosen.
    pub fn new(
        files: &[PathBuf],
        top: Option<&str>,
        time: Duration,
    ) -> Result<Source, VerilogError> {
        let source = |top: &str| Source {
            files: files.to_vec(),
            top: top.to_owned(),
            time,
        };
        if let Some(top) = top {
            return if is_name(top) {
                Ok(source(top))
            } else {
                Err(VerilogError::BadName(top.to_owned()))
            };
        }
        let arguments = yosys_arguments(files, "proc; write_json");
        let tops = yosys::tops(&Tool::Yosys.run(&arguments, time, None)?)?;
        match &tops[..] {
            [top] if is_name(top) => Ok(source(top)),
            [top] => Err(VerilogError::BadName(top.clone())),
            [] => Err(VerilogError::NoTop),
            _ => Err(VerilogError::SeveralTops(tops)),
        }
    }
}

/// Makes a circuit of Verilog. What [`Options::top`] says does not matter.
pub fn compile(source: &Source, options: &Options<'_>) -> Result<Synthesis, VerilogError> {
    let passes = format!("hierarchy -top {}; {PASSES}; write_json", source.top);
    let arguments = yosys_arguments(&source.files, &passes);
    let json = Tool::Yosys.run(&arguments, source.time, None)?;
    let options = Options {
        top: Some(&source.top),
        ..*options
    };
    Ok(yosys::read(&json, &options)?)
}

/// Whether programs that a circuit is compiled and compared with are installed.
pub fn is_installed() -> bool {
    [Tool::Yosys, Tool::Icarus]
        .into_iter()
        .all(Tool::is_installed)
}

/// A name that needs no escape, in a script of Yosys or in Verilog.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|other| other.is_ascii_alphanumeric() || other == '_' || other == '$')
}

fn yosys_arguments(files: &[PathBuf], passes: &str) -> Vec<std::ffi::OsString> {
    let mut arguments: Vec<std::ffi::OsString> = ["-q", "-f", "verilog -sv", "-p", passes]
        .map(Into::into)
        .into();
    arguments.extend(files.iter().map(|file| tools::as_pattern(file)));
    arguments
}
