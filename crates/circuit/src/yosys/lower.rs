//! From cells to gates, beginning at the outputs.

use std::collections::HashMap;

use super::cells;
use super::error::{YosysError, YosysErrorKind};
use super::json::Bit;
use super::netlist::{CellRef, Netlist};
use super::sums;
use crate::generate::Aim;
use crate::{Builder, Limits, Wire};

/// What a cell's output, or one bit of it, is on its way to being known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Begun,
    Done,
}

/// A part of a cell that is computed at once: a bit of a bitwise cell, and the whole of any other.
#[derive(Clone, Copy)]
struct Part {
    cell: u32,
    bit: u32,
}

/// A step of the walk.
enum Step {
    Begin(Part),
    Compute(Part),
}

/// Cells become gates of the builder as outputs need them.
pub(super) struct Lowering<'a> {
    pub(super) b: Builder,
    pub(super) netlist: &'a Netlist<'a>,
    pub(super) aim: Aim,
    /// The wire of each net that is known.
    pub(super) wires: HashMap<u32, Wire>,
    limit: u64,
    /// The state of each part; the states of a cell begin at its index in `first`.
    states: Vec<State>,
    first: Vec<u32>,
}

impl<'a> Lowering<'a> {
    pub(super) fn new(b: Builder, netlist: &'a Netlist<'a>, aim: Aim, limits: &Limits) -> Self {
        let mut first = Vec::with_capacity(netlist.cells.len());
        let mut parts = 0u32;
        for at in &netlist.cells {
            first.push(parts);
            // Bits of a file that fits memory: their number fits, too.
            let bits = if cells::is_bitwise(&at.cell.kind) {
                at.bits(at.output()).len()
            } else {
                1
            };
            parts = parts.saturating_add(bits as u32);
        }
        Lowering {
            b,
            netlist,
            aim,
            wires: HashMap::new(),
            limit: limits.wires.min(u64::from(u32::MAX)),
            states: vec![State::Unknown; parts as usize],
            first,
        }
    }

    /// Whether so many more wires are within the limits.
    pub(super) fn room(&self, more: u64) -> Result<(), YosysError> {
        let found = self.b.wires().saturating_add(more);
        if found <= self.limit {
            return Ok(());
        }
        Err(YosysError {
            place: None,
            kind: YosysErrorKind::TooLarge {
                what: "wires",
                found,
                limit: self.limit,
            },
        })
    }

    /// Makes these bits known.
    pub(super) fn need(&mut self, bits: &[Bit]) -> Result<(), YosysError> {
        let mut steps = Vec::new();
        self.begin(bits, &mut steps)?;
        while let Some(step) = steps.pop() {
            match step {
                Step::Begin(part) => {
                    let at = self.netlist.cells[part.cell as usize];
                    match self.state(part) {
                        State::Done => {}
                        State::Begun => {
                            let output = at.bits(at.output())[part.bit as usize];
                            let signal = self.netlist.signal(output);
                            let kind = YosysErrorKind::Loop { signal };
                            return Err(self.netlist.error_at(at, kind));
                        }
                        State::Unknown => {
                            self.set(part, State::Begun);
                            steps.push(Step::Compute(part));
                            let inputs = inputs(self.netlist, at, part.bit);
                            self.begin(&inputs, &mut steps)?;
                        }
                    }
                }
                Step::Compute(part) => {
                    self.set(part, State::Done);
                    let at = self.netlist.cells[part.cell as usize];
                    cells::lower(self, at, part.bit as usize)?;
                    self.room(0)?;
                }
            }
        }
        Ok(())
    }

    fn begin(&self, bits: &[Bit], steps: &mut Vec<Step>) -> Result<(), YosysError> {
        for &bit in bits {
            let Bit::Net(net) = bit else { continue };
            if self.wires.contains_key(&net) {
                continue;
            }
            let Some((cell, place)) = self.netlist.driver(net) else {
                let signal = self.netlist.signal(bit);
                let kind = YosysErrorKind::Undriven { signal };
                return Err(self.netlist.error_at_bit(bit, kind));
            };
            let kind = &self.netlist.cells[cell as usize].cell.kind;
            let bit = if cells::is_bitwise(kind) { place } else { 0 };
            steps.push(Step::Begin(Part { cell, bit }));
        }
        Ok(())
    }

    fn state(&self, part: Part) -> State {
        self.states[(self.first[part.cell as usize] + part.bit) as usize]
    }

    fn set(&mut self, part: Part, state: State) {
        self.states[(self.first[part.cell as usize] + part.bit) as usize] = state;
    }

    /// The wire of a bit that was made known.
    pub(super) fn wire(&mut self, at: CellRef<'_>, bit: Bit) -> Result<Wire, YosysError> {
        match bit {
            Bit::Known(value) => Ok(self.b.constant_bit(value)),
            Bit::Net(net) => self.wires.get(&net).copied().ok_or_else(|| {
                let signal = self.netlist.signal(bit);
                (self.netlist).error_at(at, YosysErrorKind::Undriven { signal })
            }),
            Bit::Undefined | Bit::Open => {
                let output = at.bits(at.output()).first().copied();
                let signal = output.map_or("a value".into(), |bit| self.netlist.signal(bit));
                Err(self.netlist.error_at(at, unknown(bit, signal)))
            }
        }
    }

    /// The wires of an input of a cell.
    pub(super) fn word(&mut self, at: CellRef<'_>, port: &str) -> Result<Vec<Wire>, YosysError> {
        self.wires_of(at, at.bits(port))
    }

    /// The wires of bits that a cell reads.
    pub(super) fn wires_of(
        &mut self,
        at: CellRef<'_>,
        bits: &[Bit],
    ) -> Result<Vec<Wire>, YosysError> {
        bits.iter().map(|&bit| self.wire(at, bit)).collect()
    }

    /// Says what the nets of a cell's output are.
    pub(super) fn drive(&mut self, at: CellRef<'_>, word: &[Wire]) -> Result<(), YosysError> {
        let bits = at.bits(at.output());
        if bits.len() != word.len() {
            return Err(self
                .netlist
                .malformed_cell(at, "an output of another width"));
        }
        for (bit, &wire) in bits.iter().zip(word) {
            if let Bit::Net(net) = *bit {
                self.wires.insert(net, wire);
            }
        }
        Ok(())
    }
}

/// The error of reading a bit that is no value.
pub(super) fn unknown(bit: Bit, signal: String) -> YosysErrorKind {
    match bit {
        Bit::Open => YosysErrorKind::HighImpedance { signal },
        _ => YosysErrorKind::Undefined { signal },
    }
}

/// The bits that a part of a cell is computed from.
fn inputs(netlist: &Netlist<'_>, at: CellRef<'_>, bit: u32) -> Vec<Bit> {
    let kind = at.cell.kind.as_str();
    if sums::is_sum(kind) {
        return sums::terms(netlist, at)
            .iter()
            .flat_map(sums::Term::bits)
            .collect();
    }
    let connections = at.cell.connections.0.iter();
    let inputs = connections.filter(|(port, _)| port != at.output());
    if !cells::is_bitwise(kind) {
        return inputs.flat_map(|(_, bits)| bits.iter().copied()).collect();
    }
    let of_bit = |(port, bits): &'_ (String, Vec<Bit>)| match port.as_str() {
        "S" if kind == "$mux" => bits.first().copied(),
        // Beyond its end an operand is its sign, or zero.
        _ => bits.get(bit as usize).or(bits.last()).copied(),
    };
    inputs.filter_map(of_bit).collect()
}
