//! Verilog, as Yosys hands it on.
//!
//! Yosys reads Verilog and makes of it cells on words: additions, comparisons, choices, shifts. [`read`] takes its JSON (`write_json`) at
//! that level and makes gates of each cell, with as few ANDs as is known: 63 for a sum of 64 bits, 64 for a comparison, 993 for a product
//! of 32 bits, one for each bit of a choice. Yosys' own mappings to gates count XOR as dear as AND, and are not used.
//!
//! ```text
//! yosys -q -p 'read_verilog -sv f.v; hierarchy -top f; proc; flatten; memory -nomap; memory_map; dffunmap; opt_clean; write_json f.json'
//! ```
//!
//! Ports keep their names. The gates of one bit that `techmap` leaves are read, too. There is no `x` and no `z`: a design in which a result
//! depends on one is refused, and a place beyond the end of a vector reads as 0.
//!
//! Assertions (`assert`, `assume`, `cover`) and prints (`$display`) are no part of a circuit: they are left out, as synthesis does, with all
//! that they alone depend on, and [`Synthesis::watching`] says where.
//!
//! A design with registers is a sequential circuit. It has one clock, an input that nothing else reads, and a number of cycles: attribute
//! `(* cycles = 11 *)` of the module, or [`Options::cycles`]. Registers begin as `initial` says; or as an asynchronous reset does, which is
//! taken to be active before the first cycle and never again, and may set them to inputs. Inputs have a value in every cycle, except first
//! values of registers, and outputs one in the last cycle; attribute `per` of a port says otherwise: `"row"`, `"job"` or `"cycle"`.

mod cells;
mod checks;
mod choose;
mod clocked;
mod divide;
mod error;
mod json;
mod lower;
mod netlist;
mod shift;
mod sums;

use std::collections::HashSet;

use clocked::Clocked;
use json::{Bit, Design, Direction, Module, Port};
use lower::Lowering;
use netlist::Netlist;
use veil_math::Ring;

use crate::generate::Aim;
use crate::{Builder, Circuit, Initial, Limits, Per, Wire, optimise};

pub use error::{YosysError, YosysErrorKind};

/// Options for the circuit of a design.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The module to take; if there is none, the one that Yosys marked, or that is an instance of no other.
    pub top: Option<&'a str>,
    /// Whether size or depth is kept small.
    pub aim: Aim,
    /// How many cycles a clocked design runs; if this does not say it, attribute `cycles` of the module does.
    pub cycles: Option<u64>,
    /// The largest circuit, before it is optimised.
    pub limits: Limits,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            top: None,
            aim: Aim::Size,
            cycles: None,
            limits: Limits::default(),
        }
    }
}

/// A circuit, and the ports of its design that have no value in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synthesis {
    /// The circuit, optimised.
    pub circuit: Circuit,
    /// The clock, and whether registers take their values when it falls.
    pub clock: Option<(String, bool)>,
    /// The asynchronous reset, which is active before the first cycle and never again, and whether that is at 0.
    pub reset: Option<(String, bool)>,
    /// Where the design asserts or prints something, `design.v:12`, which is no part of the circuit.
    pub watching: Vec<String>,
}

/// Reads a design, and optimises its circuit.
///
/// ```
/// use veil_circuit::yosys::{self, Options};
/// let text = br#"{ "modules": { "both": {
///     "ports": {
///         "x": { "direction": "input", "bits": [2] }, "y": { "direction": "input", "bits": [3] },
///         "z": { "direction": "output", "bits": [4] } },
///     "cells": { "and": {
///         "type": "$_AND_", "attributes": { "src": "both.v:2" }, "connections": { "A": [2], "B": [3], "Y": [4] } } }
/// } } }"#;
/// let circuit = yosys::read(text, &Options::default())?.circuit;
/// assert_eq!(circuit.outputs[0].name, "z");
/// assert_eq!(circuit.evaluate(&[vec![1], vec![1]])?, [[1]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`YosysError`] at the line of the Verilog, where Yosys knows it: [`YosysErrorKind::Json`] if the text is not Yosys' format,
/// [`YosysErrorKind::NoTop`] and [`YosysErrorKind::SeveralTops`] if no module or several can be the top,
/// [`YosysErrorKind::NoCycles`] if there are registers and nothing says how many cycles, another [`YosysErrorKind`] for a cell,
/// clock, reset, port or net that has no meaning in a circuit, [`YosysErrorKind::TooLarge`] and [`YosysErrorKind::Circuit`] if
/// the circuit exceeds the limits or breaks a rule.
pub fn read(text: &[u8], options: &Options<'_>) -> Result<Synthesis, YosysError> {
    let design: Design = serde_json::from_slice(text)
        .map_err(|error| without_place(YosysErrorKind::Json(error.to_string())))?;
    let module = top(&design, options.top)?;
    let netlist = Netlist::new(module)?;
    check_cells(&netlist)?;
    let clocked = Clocked::new(&netlist)?;
    let mut b = Builder::new(Ring::Bits);
    let cycles = cycles(&netlist, &clocked, options)?;
    b.cycles(cycles.unwrap_or(1));
    let mut lowering = Lowering::new(b, &netlist, options.aim, &options.limits);
    add_inputs(&mut lowering, &clocked, cycles.is_some())?;
    let registers = add_registers(&mut lowering, &clocked)?;
    let mut outputs = Vec::new();
    for (name, port) in ports(module, Direction::Output) {
        let error = |bit| netlist.error_at_net(name, lower::unknown(bit, name.into()));
        outputs.push((name, words(&mut lowering, &port.bits, error)?));
    }
    for (stored, wire) in clocked.registers.iter().zip(registers) {
        let error = |bit| {
            let signal = netlist.signal(Bit::Net(stored.output));
            netlist.error_at(stored.cell, lower::unknown(bit, signal))
        };
        let next = words(&mut lowering, &[stored.next], error)?[0];
        lowering.b.set_next(wire, next);
    }
    for (name, wires) in outputs {
        if per(&netlist, name, Direction::Output)? == Some(Per::Cycle) {
            lowering.b.output_every_cycle(name, &wires);
        } else {
            lowering.b.output(name, &wires);
        }
    }
    let circuit = lowering.b.finish_within(&options.limits);
    let circuit = circuit.map_err(|error| without_place(error.into()))?;
    let port = |port: Option<(&str, bool)>| port.map(|(name, low)| (name.to_owned(), low));
    Ok(Synthesis {
        circuit: optimise(&circuit),
        clock: port(clocked.clock),
        reset: port(clocked.reset),
        watching: netlist.watching.clone(),
    })
}

/// How many cycles a design has, if it has any.
fn cycles(
    netlist: &Netlist<'_>,
    clocked: &Clocked<'_>,
    options: &Options<'_>,
) -> Result<Option<u64>, YosysError> {
    let attributes = &netlist.module.attributes;
    let said = attributes.get("cycles").and_then(json::Value::number);
    let cycles = options.cycles.or(said);
    if cycles.is_none() && !clocked.registers.is_empty() {
        return Err(YosysError {
            place: netlist::place(attributes),
            kind: YosysErrorKind::NoCycles,
        });
    }
    Ok(cycles)
}

fn add_inputs(
    lowering: &mut Lowering<'_>,
    clocked: &Clocked<'_>,
    cycles: bool,
) -> Result<(), YosysError> {
    let netlist = lowering.netlist;
    let first: HashSet<Bit> = clocked
        .registers
        .iter()
        .map(|stored| stored.initial)
        .collect();
    for (name, port) in ports(netlist.module, Direction::Input) {
        if clocked.is_own_port(name) {
            continue;
        }
        lowering.room(port.bits.len() as u64)?;
        let begins = port.bits.iter().any(|bit| first.contains(bit));
        let usual = if cycles && !begins {
            Per::Cycle
        } else {
            Per::Row
        };
        let per = per(netlist, name, Direction::Input)?.unwrap_or(usual);
        let wires = lowering.b.input(name, port.bits.len() as u32, per);
        for (bit, wire) in port.bits.iter().zip(wires) {
            if let Bit::Net(net) = *bit {
                lowering.wires.insert(net, wire);
            }
        }
    }
    Ok(())
}

/// Adds the registers, which are told later what they take next.
fn add_registers(
    lowering: &mut Lowering<'_>,
    clocked: &Clocked<'_>,
) -> Result<Vec<Wire>, YosysError> {
    let mut wires = Vec::with_capacity(clocked.registers.len());
    for stored in &clocked.registers {
        let initial = match stored.initial {
            Bit::Known(bit) => Initial::Constant(bit),
            bit => Initial::Wire(lowering.wire(stored.cell, bit)?),
        };
        let wire = lowering.b.register(initial);
        lowering.wires.insert(stored.output, wire);
        wires.push(wire);
    }
    lowering.room(0)?;
    Ok(wires)
}

/// The wires of bits that something outside the cells reads: an output, or a register.
fn words(
    lowering: &mut Lowering<'_>,
    bits: &[Bit],
    error: impl Fn(Bit) -> YosysError,
) -> Result<Vec<Wire>, YosysError> {
    lowering.need(bits)?;
    let wire = |&bit: &Bit| match bit {
        Bit::Known(value) => Ok(lowering.b.constant_bit(value)),
        Bit::Net(net) if lowering.wires.contains_key(&net) => Ok(lowering.wires[&net]),
        _ => Err(error(bit)),
    };
    bits.iter().map(wire).collect()
}

/// The modules of a design that are instances of no other, in the order of the file.
///
/// # Errors
/// [`YosysErrorKind::Json`] if the text is not Yosys' format.
pub fn tops(text: &[u8]) -> Result<Vec<String>, YosysError> {
    let design: Design = serde_json::from_slice(text)
        .map_err(|error| without_place(YosysErrorKind::Json(error.to_string())))?;
    Ok(roots(&design)
        .into_iter()
        .map(|(name, _)| name.clone())
        .collect())
}

fn without_place(kind: YosysErrorKind) -> YosysError {
    YosysError { place: None, kind }
}

fn top<'a>(design: &'a Design, wanted: Option<&str>) -> Result<&'a Module, YosysError> {
    let no_top = || YosysErrorKind::NoTop {
        wanted: wanted.map(str::to_owned),
        modules: design
            .modules
            .0
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
    };
    if let Some(name) = wanted {
        return (design.modules.get(name)).ok_or_else(|| without_place(no_top()));
    }
    let is_top = |module: &Module| module.attributes.get("top").is_some();
    if let Some((_, module)) = design.modules.0.iter().find(|(_, module)| is_top(module)) {
        return Ok(module);
    }
    match roots(design)[..] {
        [(_, module)] => Ok(module),
        [] => Err(without_place(no_top())),
        ref several => Err(without_place(YosysErrorKind::SeveralTops(
            several.iter().map(|(name, _)| name.clone()).collect(),
        ))),
    }
}

fn roots(design: &Design) -> Vec<&(String, Module)> {
    let modules = design.modules.0.iter();
    let cells = modules.clone().flat_map(|(_, module)| &module.cells.0);
    let instances: std::collections::HashSet<&str> =
        cells.map(|(_, cell)| cell.kind.as_str()).collect();
    let is_root = |(name, module): &&(String, Module)| {
        !instances.contains(name.as_str()) && module.attributes.get("blackbox").is_none()
    };
    modules.filter(is_root).collect()
}

fn ports(module: &Module, direction: Direction) -> impl Iterator<Item = (&str, &Port)> {
    let ports = module.ports.0.iter();
    let ports = ports.map(|(name, port)| (name.as_str(), port));
    ports.filter(move |(_, port)| port.direction == direction)
}

/// How often a port has a value, if its attribute `per` says so.
fn per(netlist: &Netlist<'_>, name: &str, direction: Direction) -> Result<Option<Per>, YosysError> {
    let net = netlist.module.netnames.get(name);
    let Some(value) = net.and_then(|net| net.attributes.get("per")) else {
        return Ok(None);
    };
    let input = direction == Direction::Input;
    match value.text() {
        Some("row") => Ok(Some(Per::Row)),
        Some("cycle") => Ok(Some(Per::Cycle)),
        Some("job") if input => Ok(Some(Per::Job)),
        found => {
            let kind = YosysErrorKind::Attribute {
                name: "per",
                found: found.map_or("a number".into(), |text| format!("\"{text}\"")),
                expected: if input {
                    "\"row\", \"job\" or \"cycle\""
                } else {
                    "\"row\" or \"cycle\""
                },
            };
            Err(netlist.error_at_net(name, kind))
        }
    }
}

/// Refuses what is wrong even where no output depends on it.
fn check_cells(netlist: &Netlist<'_>) -> Result<(), YosysError> {
    for &at in &netlist.cells {
        let kind = at.cell.kind.as_str();
        let latch = ["$dlatch", "$adlatch", "$sr", "$_DLATCH", "$_SR_"];
        if latch.iter().any(|start| kind.starts_with(start)) {
            let stored = at.bits("Q").first();
            let signal = stored.map_or("a value".into(), |bit| netlist.signal(*bit));
            return Err(netlist.error_at(at, YosysErrorKind::Latch { signal }));
        }
        if !kind.starts_with('$') {
            let kind = YosysErrorKind::BlackBox(kind.into());
            return Err(netlist.error_at(at, kind));
        }
    }
    Ok(())
}

/// The body of the fuzz target: reads `text`, and checks the circuit. Returns whether it was a circuit.
///
/// # Panics
/// If a promise of this module is broken.
#[doc(hidden)]
pub fn fuzz(text: &[u8]) -> bool {
    let limits = Limits {
        gates: 1 << 15,
        wires: 1 << 16,
        ports: 64,
        output_wires: 1 << 15,
        cycles: 16,
        value_bits: 1 << 16,
    };
    let options = Options {
        limits,
        ..Options::default()
    };
    let Ok(read) = read(text, &options) else {
        return false;
    };
    read.circuit
        .validate_within(&limits)
        .expect("what is read is valid");
    true
}
