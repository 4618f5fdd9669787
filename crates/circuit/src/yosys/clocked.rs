//! Registers, their one clock, and what they begin as.

use std::collections::HashMap;

use super::error::{YosysError, YosysErrorKind};
use super::json::{Bit, Direction};
use super::netlist::{CellRef, Netlist};

/// The registers of a design and the ports that are about them alone.
#[derive(Default)]
pub(super) struct Clocked<'a> {
    pub(super) registers: Vec<Stored<'a>>,
    /// The clock's port, and whether registers take their values when it falls.
    pub(super) clock: Option<(&'a str, bool)>,
    /// The port of the asynchronous reset, and whether it is active at 0.
    pub(super) reset: Option<(&'a str, bool)>,
}

/// One bit of a register.
pub(super) struct Stored<'a> {
    pub(super) cell: CellRef<'a>,
    /// The net that it drives.
    pub(super) output: u32,
    /// What it takes next.
    pub(super) next: Bit,
    /// What it begins as: a constant, or a net of an input port.
    pub(super) initial: Bit,
}

/// Whether a cell is a register of a kind that is left when enables and synchronous resets are choices.
fn is_register(kind: &str) -> bool {
    matches!(kind, "$dff" | "$adff" | "$aldff" | "$_DFF_P_" | "$_DFF_N_")
}

impl<'a> Clocked<'a> {
    pub(super) fn new(netlist: &Netlist<'a>) -> Result<Self, YosysError> {
        let mut clocked = Clocked::default();
        let initial = initial(netlist);
        let (mut clock_reads, mut reset_reads) = (0, 0);
        let cells = netlist.cells.iter().copied();
        for at in cells.filter(|at| is_register(&at.cell.kind)) {
            clocked.set_clock(netlist, at)?;
            clock_reads += 1;
            let load = loaded(at);
            if let Some((port, _)) = &load {
                clocked.set_reset(netlist, at, port)?;
                reset_reads += 1;
            }
            let (outputs, nexts) = (at.bits("Q"), at.bits("D"));
            if outputs.len() != nexts.len() {
                return Err(netlist.malformed_cell(at, "an input of another width"));
            }
            for (place, (&output, &next)) in outputs.iter().zip(nexts).enumerate() {
                let Bit::Net(net) = output else { continue };
                let first = match &load {
                    Some((_, values)) => values.get(place).copied().unwrap_or(Bit::Undefined),
                    None => initial.get(&net).copied().unwrap_or(Bit::Undefined),
                };
                let initial = check_initial(netlist, at, output, first)?;
                clocked.registers.push(Stored {
                    cell: at,
                    output: net,
                    next,
                    initial,
                });
            }
        }
        let ports = [
            (clocked.clock, clock_reads, "clock"),
            (clocked.reset, reset_reads, "reset"),
        ];
        for (port, reads, what) in ports {
            if let Some((name, _)) = port {
                check_only(netlist, name, reads, what)?;
            }
        }
        Ok(clocked)
    }

    /// Whether a port has no value in a circuit: its clock or its reset.
    pub(super) fn is_own_port(&self, name: &str) -> bool {
        [self.clock, self.reset]
            .iter()
            .flatten()
            .any(|(port, _)| *port == name)
    }

    fn set_clock(&mut self, netlist: &Netlist<'a>, at: CellRef<'a>) -> Result<(), YosysError> {
        let kind = at.cell.kind.as_str();
        let pin = if kind.starts_with("$_") { "C" } else { "CLK" };
        let falling = match kind {
            "$_DFF_P_" => false,
            "$_DFF_N_" => true,
            _ => at.parameter("CLK_POLARITY") == Some(0),
        };
        let name = port_of(netlist, at, pin, |signal| YosysErrorKind::Clock { signal })?;
        match self.clock.get_or_insert((name, falling)) {
            (first, _) if *first != name => {
                let clocks = [(*first).to_owned(), name.to_owned()];
                Err(netlist.error_at(at, YosysErrorKind::TwoClocks { clocks }))
            }
            (_, edge) if *edge != falling => {
                let clock = name.to_owned();
                Err(netlist.error_at(at, YosysErrorKind::TwoEdges { clock }))
            }
            _ => Ok(()),
        }
    }

    fn set_reset(
        &mut self,
        netlist: &Netlist<'a>,
        at: CellRef<'a>,
        pin: &str,
    ) -> Result<(), YosysError> {
        let polarity = if pin == "ARST" {
            "ARST_POLARITY"
        } else {
            "ALOAD_POLARITY"
        };
        let low = at.parameter(polarity) == Some(0);
        let name = port_of(netlist, at, pin, |signal| YosysErrorKind::Reset { signal })?;
        if *self.reset.get_or_insert((name, low)) == (name, low) {
            return Ok(());
        }
        let signal = name.to_owned();
        Err(netlist.error_at(at, YosysErrorKind::Reset { signal }))
    }
}

/// The pin of a register's asynchronous reset or load, and the values that it gives.
fn loaded(at: CellRef<'_>) -> Option<(&'static str, Vec<Bit>)> {
    match at.cell.kind.as_str() {
        "$adff" => {
            let value = at.cell.parameters.get("ARST_VALUE");
            let text = value.and_then(|value| value.text()).unwrap_or_default();
            Some(("ARST", constants(text)))
        }
        "$aldff" => Some(("ALOAD", at.bits("AD").to_vec())),
        _ => None,
    }
}

/// Bits from text, the most significant first there.
fn constants(text: &str) -> Vec<Bit> {
    let bit = |digit| match digit {
        '0' => Bit::Known(false),
        '1' => Bit::Known(true),
        _ => Bit::Undefined,
    };
    text.chars().rev().map(bit).collect()
}

/// What `initial` says, by net.
fn initial(netlist: &Netlist<'_>) -> HashMap<u32, Bit> {
    let mut initial = HashMap::new();
    for (_, net) in &netlist.module.netnames.0 {
        let text = net.attributes.get("init").and_then(|value| value.text());
        let values = constants(text.unwrap_or_default());
        for (bit, value) in net.bits.iter().zip(values) {
            if let (Bit::Net(net), Bit::Known(_)) = (*bit, value) {
                initial.insert(net, value);
            }
        }
    }
    initial
}

fn check_initial(
    netlist: &Netlist<'_>,
    at: CellRef<'_>,
    output: Bit,
    first: Bit,
) -> Result<Bit, YosysError> {
    let signal = || netlist.signal(output);
    match first {
        Bit::Known(_) => Ok(first),
        Bit::Net(net) if input_port(netlist, net).is_some() => Ok(first),
        Bit::Net(_) => {
            let kind = YosysErrorKind::Load { signal: signal() };
            Err(netlist.error_at(at, kind))
        }
        _ => {
            let kind = YosysErrorKind::NoInitial { signal: signal() };
            Err(netlist.error_at(at, kind))
        }
    }
}

/// The input port that a net belongs to, and how many bits it has.
pub(super) fn input_port<'a>(netlist: &Netlist<'a>, net: u32) -> Option<(&'a str, usize)> {
    let ports = netlist.module.ports.0.iter();
    let mut inputs = ports.filter(|(_, port)| port.direction == Direction::Input);
    let found = inputs.find(|(_, port)| port.bits.contains(&Bit::Net(net)));
    found.map(|(name, port)| (name.as_str(), port.bits.len()))
}

/// The input port of one bit that a pin is.
fn port_of<'a>(
    netlist: &Netlist<'a>,
    at: CellRef<'a>,
    pin: &str,
    error: impl Fn(String) -> YosysErrorKind,
) -> Result<&'a str, YosysError> {
    match *at.bits(pin) {
        [bit @ Bit::Net(net)] => match input_port(netlist, net) {
            Some((name, 1)) => Ok(name),
            _ => Err(netlist.error_at(at, error(netlist.signal(bit)))),
        },
        [_] => Err(netlist.error_at(at, error("a constant".into()))),
        _ => Err(netlist.malformed_cell(at, "a clock or reset of other than one bit")),
    }
}

/// Whether registers alone read a port.
fn check_only(
    netlist: &Netlist<'_>,
    name: &str,
    reads: u32,
    what: &'static str,
) -> Result<(), YosysError> {
    let port = netlist.module.ports.get(name);
    let bit = port.and_then(|port| port.bits.first().copied());
    if bit.is_some_and(|bit| netlist.reads(bit) == reads) {
        return Ok(());
    }
    let port = name.to_owned();
    Err(netlist.error_at_net(name, YosysErrorKind::UsedAsValue { port, what }))
}
