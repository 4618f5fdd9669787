//! `veil circuit`: looking at circuits, making and converting them.

pub mod verilog;

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use veil_circuit::{
    Circuit, CircuitError, Flavour, Limits, Per, Reduce, bristol, catalogue, make, optimise, scd,
};
use veil_math::Ring;

use crate::commands::moved::{self, Moved};
use crate::failure::{Code, Failure};
use crate::output::{self, columns};

/// What is said after the help of a command that takes circuits.
pub const AFTER_HELP: &str = "Examples:
  veil circuit list                                  what `make` knows
  veil circuit info adder.txt                        gates, depth, ports, hash
  veil circuit make adder:64 --out adder.txt
  veil circuit make int-lt:32 --out less.txt         with integers: a format like Bristol Fashion
  veil circuit convert adder.txt --to old --out adder-old.txt
  veil-lab circuit check adder.txt make:adder:64     do they compute the same?
  veil circuit info sum.scd --cycles 32              a netlist of TinyGarble, which does not say how long it runs
  veil circuit convert sum.scd --cycles 32 --out sum.txt
  veil circuit compile design.v --out design.txt     Verilog, combinational or clocked
  veil-lab circuit check design.txt design.v         is the netlist what a simulator makes of the Verilog?

A CIRCUIT is a file: Bristol of either flavour, or our formats like it with integers or registers, SCD (`.scd`), or Verilog (`.v`,
`.sv`); or `make:` and a name of the catalogue.";

/// What `veil circuit` takes.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) enum Circuits {
    #[command(flatten)]
    Circuit(CircuitCommand),
    #[command(hide = true, disable_help_flag = true)]
    Check(Moved),
}

/// Looks at circuits, makes and converts them.
#[derive(clap::Subcommand, Debug)]
pub enum CircuitCommand {
    /// List the circuits that can be made
    List,
    /// Print gates, depth, ports and hash
    Info {
        /// The circuit.
        circuit: String,
        /// What its file leaves open.
        #[command(flatten)]
        clocked: Clocked,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Write a circuit of the catalogue to a file
    Make {
        /// Its name, with a width where it takes one: adder:64.
        name: String,
        /// The file.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// The format [default: fashion, or integers for a circuit that has some]
        #[arg(long, value_enum)]
        to: Option<To>,
    },
    /// Write a circuit in the other format, or with fewer gates
    Convert {
        /// The circuit.
        circuit: String,
        /// What its file leaves open.
        #[command(flatten)]
        clocked: Clocked,
        /// The file.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// The format [default: fashion, or integers or sequential for a circuit that has some or is]
        #[arg(long, value_enum)]
        to: Option<To>,
        /// Fold constants, share common gates, drop dead ones, and reorder by depth.
        #[arg(long)]
        optimise: bool,
    },
    /// Make a netlist with few ANDs of Verilog, by Yosys
    Compile(verilog::Compile),
}

/// What files of sequential circuits leave open.
#[derive(clap::Args, Clone, Debug)]
pub struct Clocked {
    /// Cycles of a sequential circuit [default: what its file says, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cycles: Option<u64>,
    /// Outputs of an SCD netlist are those of the last cycle, not of every one.
    #[arg(long)]
    last: bool,
    /// Top module of Verilog [default: the one that is an instance of no other]
    #[arg(long, value_name = "NAME")]
    top: Option<String>,
    #[command(flatten)]
    programs: verilog::Programs,
}

/// A format of files.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub enum To {
    /// Bristol Fashion.
    Fashion,
    /// The older Bristol Format.
    Old,
    /// Like Bristol Fashion, with integers.
    Integers,
    /// Like Bristol Fashion, with registers, cycles, and names of ports.
    Sequential,
}

impl From<To> for Flavour {
    fn from(to: To) -> Self {
        match to {
            To::Fashion => Flavour::Fashion,
            To::Old => Flavour::Old,
            To::Integers => Flavour::Integers,
            To::Sequential => Flavour::Sequential,
        }
    }
}

pub(crate) fn run(command: &Circuits) -> Result<(), Failure> {
    match command {
        Circuits::Circuit(command) => run_one(command),
        Circuits::Check(_) => Err(moved::to("circuit check")),
    }
}

/// Runs the command.
pub fn run_one(command: &CircuitCommand) -> Result<(), Failure> {
    match command {
        CircuitCommand::List => list(),
        CircuitCommand::Info {
            circuit,
            clocked,
            json,
        } => info(circuit, clocked, *json),
        CircuitCommand::Make { name, out, to } => write(&made(name)?, *to, out),
        CircuitCommand::Compile(compile) => {
            let to = compile.to.unwrap_or(To::Sequential);
            write(&compile.circuit()?, Some(to), &compile.out)
        }
        CircuitCommand::Convert {
            circuit,
            clocked,
            out,
            to,
            optimise: better,
        } => {
            let circuit = load(circuit, clocked)?;
            let circuit = if *better { optimise(&circuit) } else { circuit };
            write(&circuit, *to, out)
        }
    }
}

fn list() -> Result<(), Failure> {
    let rows: Vec<_> = catalogue()
        .iter()
        .map(|entry| vec![entry.usage(), entry.summary.to_owned()])
        .collect();
    output::print(&columns(&rows))
}

/// What `info --json` prints.
#[derive(Serialize)]
struct Info {
    ring: &'static str,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    wires: u64,
    gates: u64,
    products: u64,
    depth: u64,
    registers: u64,
    cycles: u64,
    /// Over all cycles.
    total_products: u64,
    hash: String,
}

/// A port of a circuit.
#[derive(Serialize)]
struct Port {
    name: String,
    width: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    per: Option<&'static str>,
}

fn info(name: &str, clocked: &Clocked, json: bool) -> Result<(), Failure> {
    let circuit = load(name, clocked)?;
    let stats = circuit.stats();
    let per = |per| match per {
        Per::Job => "job",
        Per::Row => "row",
        Per::Cycle => "cycle",
    };
    let input = |port: &veil_circuit::InputPort| Port {
        name: port.name.clone(),
        width: port.width.into(),
        per: Some(per(port.per)),
    };
    let output_port = |port: &veil_circuit::OutputPort| Port {
        name: port.name.clone(),
        width: port.wires.len() as u64,
        per: (port.reduce == Reduce::EveryCycle).then_some("cycle"),
    };
    let info = Info {
        ring: circuit.ring.name(),
        inputs: circuit.inputs.iter().map(input).collect(),
        outputs: circuit.outputs.iter().map(output_port).collect(),
        wires: stats.wires,
        gates: stats.gates,
        products: stats.muls,
        depth: stats.depth,
        registers: stats.registers,
        cycles: stats.cycles,
        total_products: stats.total_muls(),
        hash: output::hex(&circuit.canonical_hash()),
    };
    if json {
        return output::print_json(&info);
    }
    let mut rows = vec![
        vec!["circuit".to_owned(), name.to_owned()],
        vec!["size".into(), stats.to_string()],
    ];
    let unit = match circuit.ring {
        Ring::Bits => "bits".to_owned(),
        ring => format!("integers of {} bits", ring.bits()),
    };
    let often = |per| match per {
        Some("job") => ", one value for the job",
        Some("cycle") => " in every cycle",
        _ => "",
    };
    for port in &info.inputs {
        let per = often(port.per);
        rows.push(vec![
            "input".into(),
            format!("{}: {} {unit}{per}", port.name, port.width),
        ]);
    }
    for port in &info.outputs {
        rows.push(vec![
            "output".into(),
            format!("{}: {} {unit}{}", port.name, port.width, often(port.per)),
        ]);
    }
    rows.push(vec!["hash".into(), info.hash]);
    output::print(&columns(&rows))
}

fn made(name: &str) -> Result<Circuit, Failure> {
    make(name).map_err(|error| {
        Failure::new(Code::Input, error.to_string()).help("`veil circuit list` shows all")
    })
}

/// Longest circuit file: sixteen million gates take less.
const LONGEST: u64 = 1 << 30;

/// A circuit of the catalogue, or of a file, with as many cycles as asked for.
pub fn load(name: &str, clocked: &Clocked) -> Result<Circuit, Failure> {
    let mut circuit = loaded(name, clocked)?;
    if let Some(cycles) = clocked.cycles.filter(|c| *c != circuit.clock.cycles) {
        let failed = |error: CircuitError| Failure::new(Code::Input, format!("{name}: {error}"));
        // One circuit of two that are compared may have no cycles: it is what the other is unrolled, or differs.
        if circuit.is_sequential() {
            circuit.clock.cycles = cycles;
            circuit.validate().map_err(failed)?;
        }
    }
    Ok(circuit)
}

fn loaded(name: &str, clocked: &Clocked) -> Result<Circuit, Failure> {
    if let Some(name) = name.strip_prefix("make:") {
        return made(name);
    }
    if verilog::is_verilog(name) {
        let (_, made) = verilog::load(name, clocked)?;
        verilog::note_watching(&made);
        return Ok(made.circuit);
    }
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Code::Input, format!("cannot read {name}: {error}"))
    };
    let file = std::fs::File::open(name).map_err(|error| failed(&error))?;
    let mut text = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut text)
        .map_err(|error| failed(&error))?;
    if text.len() as u64 > LONGEST {
        return Err(failed(&format!(
            "it is longer than {LONGEST} bytes; split it"
        )));
    }
    let limits = Limits::default();
    let netlist = Path::new(name).extension().is_some_and(|e| e == "scd");
    let read = if netlist {
        let outputs = if clocked.last {
            Reduce::None
        } else {
            Reduce::EveryCycle
        };
        scd::read(&text, clocked.cycles.unwrap_or(1), outputs, &limits)
    } else {
        bristol::read(&text, &limits)
    };
    read.map_err(|error| Failure::new(Code::Input, format!("{name}: {error}")))
}

/// Writes a circuit to a file that appears complete or not at all.
fn write(circuit: &Circuit, to: Option<To>, path: &Path) -> Result<(), Failure> {
    let mut text = Vec::new();
    let flavour = match (to, circuit.ring) {
        (Some(to), _) => to.into(),
        (None, _) if circuit.is_sequential() => Flavour::Sequential,
        (None, Ring::Bits) => Flavour::Fashion,
        (None, _) => Flavour::Integers,
    };
    bristol::write(circuit, flavour, &mut text)
        .map_err(|error| Failure::new(Code::Input, error.to_string()))?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // A circuit is no secret: every user that the umask allows may read it.
    let staging = tempfile::Builder::new()
        .prefix(".veil-")
        .suffix(".partial")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder);
    let written = staging.and_then(|mut file| {
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map_err(|error| {
        Failure::new(
            Code::Input,
            format!("cannot write {}: {error}", path.display()),
        )
    })?;
    output::print(&format!("{}: {}\n", path.display(), circuit.stats()))
}
