//! Circuits from Verilog, by the programs Yosys and Icarus Verilog, which have to be installed.
//!
//! [`compile`] has Yosys read the files, and makes a circuit of what it says ([`crate::yosys`]). [`simulate()`] has Icarus Verilog run the
//! modules as Yosys has read them, before anything is chosen or optimised: [`compare()`] tells where the two differ.
//!
//! A design may be foreign, and malicious. Its text is never run: the simulator runs a netlist that Yosys has written, in which there are
//! no system tasks, and nothing of the design is executed when Yosys reads it (`-nodpi`). The design reads no file but the files delivered
//! with it. Each program is ended if it takes longer than [`Source::time`], or prints without end.

mod compare;
mod confine;
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
const PASSES: &str =
    "opt_expr -keepdc; flatten; memory -nomap; memory_map; opt_muxtree; dffunmap; opt_clean";

/// The first part, of a simulation, too.
const PROCESSES: &str = "proc_clean; proc_rmdead; proc_prune; proc_init; proc_arst; proc_mux; proc_dlatch; proc_dff; proc_memwr; proc_clean";

/// What makes a netlist for a simulator: without assertions and what prints, and without attributes and strings of the design.
const NETLIST: &str = "opt_expr -keepdc; flatten; delete t:$print t:$check t:$assert t:$assume t:$live t:$fair t:$cover; write_verilog -noattr -nostr";

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
    ///
    /// # Errors
    /// [`VerilogError::BadName`] if the top module's name is no plain identifier. Where Yosys has to find the top module:
    /// [`VerilogError::NoTop`] and [`VerilogError::SeveralTops`] if it is not one, [`VerilogError::Elsewhere`] if the design
    /// reads a file outside the folders of `files`, [`VerilogError::Yosys`] if Yosys' output cannot be read, and
    /// [`VerilogError::Missing`], [`VerilogError::Run`], [`VerilogError::TooLong`], [`VerilogError::TooMuch`],
    /// [`VerilogError::Refused`] and [`VerilogError::Files`] if Yosys does not run to its end.
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
        let tops = yosys::tops(&run_yosys(files, "proc; write_json", time)?)?;
        match &tops[..] {
            [top] if is_name(top) => Ok(source(top)),
            [top] => Err(VerilogError::BadName(top.clone())),
            [] => Err(VerilogError::NoTop),
            _ => Err(VerilogError::SeveralTops(tops)),
        }
    }
}

/// Makes a circuit of Verilog. What [`Options::top`] says does not matter.
///
/// # Errors
/// [`VerilogError::Yosys`] if the design is none that becomes a circuit (see [`yosys::read`]); [`VerilogError::Elsewhere`] if it
/// reads a file outside the folders of its sources; [`VerilogError::Missing`], [`VerilogError::Run`], [`VerilogError::TooLong`],
/// [`VerilogError::TooMuch`], [`VerilogError::Refused`] and [`VerilogError::Files`] if Yosys does not run to its end.
pub fn compile(source: &Source, options: &Options<'_>) -> Result<Synthesis, VerilogError> {
    let passes = format!(
        "hierarchy -top {}; {PROCESSES}; {PASSES}; write_json",
        source.top
    );
    let json = run_yosys(&source.files, &passes, source.time)?;
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

/// The modules of a design as Yosys has read them, in one, in Verilog that computes and does nothing else.
fn netlist(source: &Source) -> Result<String, VerilogError> {
    let passes = format!("hierarchy -top {}; {PROCESSES}; {NETLIST}", source.top);
    let text = run_yosys(&source.files, &passes, source.time)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    match confine::netlist(&text) {
        Ok(()) => Ok(text),
        Err(found) => {
            let top = source.top.clone();
            Err(VerilogError::Simulation { top, found })
        }
    }
}

/// What Yosys prints when it has read files and done these passes.
fn run_yosys(files: &[PathBuf], passes: &str, time: Duration) -> Result<Vec<u8>, VerilogError> {
    confine::named(files)?;
    let scratch = tempfile::tempdir().map_err(VerilogError::Files)?;
    let dependencies = scratch.path().join("read");
    // Without -nodpi a design may call functions of any library while it is read.
    let options = ["-q", "-f", "verilog -sv -nodpi", "-p", passes, "-E"];
    let mut arguments: Vec<std::ffi::OsString> = options.map(Into::into).into();
    arguments.push(dependencies.clone().into());
    arguments.extend(files.iter().map(|file| tools::as_pattern(file)));
    let printed = Tool::Yosys.run(&arguments, time, None)?;
    let read = std::fs::read(&dependencies).map_err(VerilogError::Files)?;
    confine::read(files, &String::from_utf8_lossy(&read))?;
    Ok(printed)
}
