//! The schedule `list(N)`: products of a garbled circuit in the order in which hardware of N rows starts them.
//!
//! The gates of a cycle are put on the garbling engines by [`veil_circuit::schedule`](mod@veil_circuit::schedule), where values of
//! registers are values of cycles before. That gives products their numbers, which number gates and tables on every device. Each product is
//! then a layer of its own, as results of labels are complete at once: so linear gates come right before the product that needs them first,
//! and a slot is free again after the last product that reads it. In the end as many of these layers are one program as a message has
//! tables.

use std::ops::Range;

use veil_circuit::Wire;
use veil_circuit::schedule::{Machine, NO_NUMBER, Node, Read, ScheduleError, schedule};
use veil_device::{Dst, Instr, Program, Src};

use super::layers::Layer;
use super::net::{Circuit, Gate};

/// The hardware, and how often it computes a circuit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct List {
    /// Rows that start a gate in each of its cycles.
    pub(super) rows: u32,
    /// Cycles of the circuit.
    pub(super) cycles: u64,
    /// Input wires that have the values of registers. What these take next is the last output port.
    pub(super) registers: Range<u32>,
}

impl List {
    /// The same of a circuit that is computed once.
    pub(super) fn once(&self) -> List {
        List {
            rows: self.rows,
            cycles: 1,
            registers: 0..0,
        }
    }
}

/// What a wire's value is for who waits for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// There when a cycle begins, whichever it is.
    Given,
    /// The value that a node makes in this cycle, or made so many ago.
    Made(Read),
    /// The value of a register, so many cycles ago.
    Held { register: u32, distance: u32 },
}

impl Value {
    /// The same of so many cycles before.
    fn before(self, by: u32) -> Value {
        match self {
            Value::Given => Value::Given,
            Value::Made(Read { node, distance }) => Value::Made(Read {
                node,
                distance: distance.saturating_add(by),
            }),
            Value::Held { register, distance } => Value::Held {
                register,
                distance: distance.saturating_add(by),
            },
        }
    }
}

/// Products of a circuit in the order in which they are computed, each with its number.
///
/// `needed` says which gates are: all products, and whatever these and the outputs read.
pub(super) fn order(
    circuit: &Circuit,
    needed: &[bool],
    list: &List,
) -> Result<Vec<(Wire, u32)>, ScheduleError> {
    let nodes = Nodes::of(circuit, needed, list);
    let machine = Machine::garbler(list.rows);
    let found = schedule(&nodes.nodes, &machine, list.cycles)?;
    let mut order: Vec<(Wire, u32, u32)> =
        (nodes.wires.iter().zip(&found.numbers).zip(&found.starts))
            .filter(|((_, number), _)| **number != NO_NUMBER)
            .map(|((wire, number), start)| (*wire, *number, *start))
            .collect();
    order.sort_by_key(|(_, number, _)| *number);
    for line in order.chunks_mut(list.rows as usize) {
        let starts = || line.iter().map(|(.., start)| *start);
        let longest = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
        // Products of a line that are far apart may read each other. Then the earlier one comes first, whatever its number.
        if longest >= machine.and {
            line.sort_by_key(|(_, number, start)| (*start, *number));
        }
    }
    let order = order.into_iter().map(|(wire, number, _)| (wire, number));
    Ok(order.collect())
}

/// What takes a row: products, and sums of two. Negations and constants are part of who reads them.
struct Nodes {
    nodes: Vec<Node>,
    /// The wire that each drives.
    wires: Vec<Wire>,
}

impl Nodes {
    fn of(circuit: &Circuit, needed: &[bool], list: &List) -> Nodes {
        let mut values: Vec<Value> = (0..circuit.input_wires())
            .map(|wire| {
                if list.registers.contains(&wire) {
                    let register = wire - list.registers.start;
                    Value::Held {
                        register,
                        distance: 0,
                    }
                } else {
                    Value::Given
                }
            })
            .collect();
        let mut wires = Vec::new();
        for (gate, wire) in circuit.gates.iter().zip(values.len()..) {
            values.push(match *gate {
                Gate::Add(..) | Gate::Sub(..) | Gate::Mul(..) if needed[wire] => {
                    wires.push(Wire(wire as u32));
                    Value::Made(Read {
                        node: wires.len() as u32 - 1,
                        distance: 0,
                    })
                }
                Gate::Plus(a, _) => values[a.0 as usize],
                Gate::Times(a, c) if c & 1 == 1 => values[a.0 as usize],
                _ => Value::Given,
            });
        }
        let registers = held(circuit, &values, list.registers.len());
        let read = |wire: Wire| match resolved(values[wire.0 as usize], &registers) {
            Value::Made(read) => Some(read),
            Value::Given | Value::Held { .. } => None,
        };
        let inputs = circuit.input_wires();
        let node = |wire: &Wire| {
            let (product, a, b) = match circuit.gates[(wire.0 - inputs) as usize] {
                Gate::Mul(a, b) => (true, a, b),
                Gate::Add(a, b) | Gate::Sub(a, b) => (false, a, b),
                _ => unreachable!("a node is a product or a sum"),
            };
            Node {
                product,
                reads: [read(a), read(b)],
            }
        };
        Nodes {
            nodes: wires.iter().map(node).collect(),
            wires,
        }
    }
}

/// What registers have, where it is not what others have: nothing that is waited for, if they only hand on what they begin with.
fn held(circuit: &Circuit, values: &[Value], count: usize) -> Vec<Value> {
    let next = circuit.outputs.last().map_or(&[][..], |port| &port.wires);
    let next = next.iter().take(count);
    let next: Vec<Value> = next.map(|wire| values[wire.0 as usize].before(1)).collect();
    let mut known: Vec<Option<Value>> = vec![None; count];
    for register in 0..count {
        let (mut at, mut path) = (register, Vec::new());
        let mut value = loop {
            if let Some(value) = known[at] {
                break value;
            }
            // If the path comes back to here, the registers hand round what they began with.
            known[at] = Some(Value::Given);
            path.push(at);
            match next[at] {
                Value::Held { register, .. } => at = register as usize,
                value => break value,
            }
        };
        // From the end back: each has what the one behind it has, so many cycles later.
        for at in path.into_iter().rev() {
            value = match next[at] {
                Value::Held { distance, .. } => value.before(distance),
                own => own,
            };
            known[at] = Some(value);
        }
    }
    let known = known.into_iter();
    known.map(|value| value.unwrap_or(Value::Given)).collect()
}

fn resolved(value: Value, registers: &[Value]) -> Value {
    match value {
        Value::Held { register, distance } => registers[register as usize].before(distance),
        value => value,
    }
}

/// Joins layers of one product each, in order, to programs of as many as `most`; the last layer, which has none, stays what it is.
pub(super) fn join(layers: Vec<Layer>, order: &[(Wire, u32)], most: u32) -> Vec<Layer> {
    let mut joined: Vec<Layer> = Vec::new();
    for (place, mut layer) in layers.into_iter().enumerate() {
        let number = order.get(place).map(|(_, number)| *number);
        for instr in &mut layer.program.code {
            if let (Instr::Product { index, .. }, Some(number)) = (instr, number) {
                *index = number % most;
            }
        }
        match joined.last_mut() {
            Some(last) if number.is_some() && !(place as u32).is_multiple_of(most) => {
                append(&mut last.program, layer.program);
            }
            _ => joined.push(layer),
        }
    }
    joined
}

/// Appends a program over the same regions, whose temps are its own.
fn append(to: &mut Program, program: Program) {
    let (temps, pairs) = (to.temps, to.pairs.len() as u32);
    let src = |src: Src| match src {
        Src::Temp(temp) => Src::Temp(temp + temps),
        Src::Slot(_) | Src::JobWide(_) => src,
    };
    let dst = |dst: Dst| match dst {
        Dst::Temp(temp) => Dst::Temp(temp + temps),
        Dst::Slot(_) => dst,
    };
    to.temps += program.temps;
    let operands = program.pairs.into_iter().map(|(a, b)| (src(a), src(b)));
    to.pairs.extend(operands);
    to.code
        .extend(program.code.into_iter().map(|instr| match instr {
            Instr::Add(a, b, out) => Instr::Add(src(a), src(b), dst(out)),
            Instr::Sub(a, b, out) => Instr::Sub(src(a), src(b), dst(out)),
            Instr::Plus(a, c, out) => Instr::Plus(src(a), c, dst(out)),
            Instr::Times(a, c, out) => Instr::Times(src(a), c, dst(out)),
            Instr::Copy(a, out) => Instr::Copy(src(a), dst(out)),
            Instr::Constant(c, out) => Instr::Constant(c, dst(out)),
            Instr::Product {
                pairs: of,
                out,
                index,
            } => Instr::Product {
                pairs: of.start + pairs..of.end + pairs,
                out,
                index,
            },
            Instr::ProductSum {
                pairs: of,
                out,
                index,
            } => Instr::ProductSum {
                pairs: of.start + pairs..of.end + pairs,
                out,
                index,
            },
            Instr::Sum(a, out) => Instr::Sum(src(a), out),
        }));
}
