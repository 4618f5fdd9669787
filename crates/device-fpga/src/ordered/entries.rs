//! Netlists as `ordered_core` takes them: registers, then gates, each an entry that starts by itself.

use veil_circuit::scd::{Gate, Kind, Netlist, Operand};

use super::Ordered;
use crate::garble::{TooLarge, limit};

/// A netlist as words of the core, and which inputs these read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entries {
    pub(super) list: Vec<Entry>,
    /// Inputs with one label in a run, those with one in each cycle, and those with one in each but the first, which registers alone take:
    /// wires of the netlist. Inputs that nothing reads have none.
    inputs: [Vec<u32>; 3],
}

/// A gate or a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) is_register: bool,
    pub(super) is_and: bool,
    pub(super) is_output: bool,
    /// Of both operands and of the result.
    not: [bool; 3],
    /// Of a register: what it takes in every cycle but the first, and in the first.
    pub(super) operands: [Source; 2],
}

/// What an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// The result of an entry that is a gate.
    Gate(u32),
    /// A register, which is the entry of the same number.
    Register(u32),
    /// An input, by its place among those that have labels.
    Input(u32),
    /// The label 0.
    Zero,
}

impl Entries {
    /// A netlist in the order of its gates. A register that takes an input which something else reads, or which has one label in the run,
    /// takes a copy of it: a gate behind all others. A netlist of nothing has a gate that no other gate reads, as the core has to start something.
    ///
    /// # Errors
    /// [`TooLarge::Room`] if the netlist has more gates or inputs than the core.
    pub fn of(netlist: &Netlist) -> Result<Self, TooLarge> {
        let (base, registers) = (netlist.inputs(), netlist.registers.len() as u32);
        let mut gates = netlist.gates.clone();
        let mut read = vec![false; base as usize];
        let mut mark = |operand: Operand| match operand {
            Operand::Wire(wire) if wire < base => read[wire as usize] = true,
            _ => {}
        };
        for gate in &gates {
            gate_operands(gate).into_iter().for_each(&mut mark);
        }
        for (_, initial) in &netlist.registers {
            mark(*initial);
        }
        let mut taken = vec![false; base as usize];
        let mut states = netlist.registers.clone();
        for (next, _) in &mut states {
            let Operand::Wire(wire) = *next else { continue };
            if wire >= base {
                continue;
            }
            if read[wire as usize] || wire < netlist.initial {
                read[wire as usize] = true;
                let (a, b) = (*next, Operand::Constant(false));
                let kind = Kind::Xor(false);
                gates.push(Gate { a, b, kind });
                *next = Operand::Wire(base + registers + gates.len() as u32 - 1);
            } else {
                taken[wire as usize] = true;
            }
        }
        if gates.is_empty() && states.is_empty() {
            let zero = Operand::Constant(false);
            gates.push(Gate {
                a: zero,
                b: zero,
                kind: Kind::Xor(false),
            });
        }
        let of = |range: std::ops::Range<u32>, has: &dyn Fn(usize) -> bool| -> Vec<u32> {
            range.filter(|wire| has(*wire as usize)).collect()
        };
        let inputs = [
            of(0..netlist.initial, &|wire| read[wire]),
            of(netlist.initial..base, &|wire| read[wire]),
            of(netlist.initial..base, &|wire| !read[wire] && taken[wire]),
        ];
        let mut numbering = Numbering {
            base,
            registers,
            places: vec![0; base as usize],
            is_output: vec![false; gates.len() + registers as usize],
        };
        for (place, wire) in inputs.iter().flatten().enumerate() {
            numbering.places[*wire as usize] = place as u32;
        }
        for output in &netlist.outputs {
            if let Operand::Wire(wire) = output
                && *wire >= base
            {
                numbering.is_output[(wire - base) as usize] = true;
            }
        }
        let list = numbering.list(&states, &gates);
        let (entries, labels) = (list.len() as u64, inputs.iter().flatten().count() as u64);
        let outputs = list.iter().filter(|entry| entry.is_output).count() as u64;
        limit(
            "entries and registers",
            entries + u64::from(registers),
            Ordered::ENTRIES,
        )?;
        limit("inputs", labels, Ordered::INPUTS)?;
        limit("outputs of a cycle", outputs, Ordered::OUTPUTS)?;
        Ok(Entries { list, inputs })
    }

    /// The wires of inputs that have one label in a run, one in each cycle, and one in each cycle but the first. In this order their labels
    /// leave: those of the run, then those of cycle after cycle.
    pub fn inputs(&self) -> &[Vec<u32>; 3] {
        &self.inputs
    }

    /// Labels that a run takes and gives out.
    pub fn labels(&self, cycles: u32) -> u64 {
        let [run, each, later] = [0, 1, 2].map(|k| self.inputs[k].len() as u64);
        let cycles = u64::from(cycles);
        run + cycles * each + cycles.saturating_sub(1) * later
    }

    /// Tables of a netlist cycle.
    pub fn ands(&self) -> u64 {
        self.list.iter().filter(|entry| entry.is_and).count() as u64
    }

    /// As the core keeps them.
    pub(super) fn words(&self) -> Vec<u64> {
        self.list.iter().map(Entry::word).collect()
    }
}

/// What a gate reads: of a negation, one wire.
fn gate_operands(gate: &Gate) -> [Operand; 2] {
    match gate.kind {
        Kind::Not => [gate.a, Operand::Constant(false)],
        _ => [gate.a, gate.b],
    }
}

/// From wires to entries and places.
struct Numbering {
    base: u32,
    registers: u32,
    /// Of inputs.
    places: Vec<u32>,
    /// Of entries.
    is_output: Vec<bool>,
}

impl Numbering {
    /// What an operand is, and whether it is the negation of that.
    fn source(&self, operand: Operand) -> (Source, bool) {
        match operand {
            Operand::Constant(bit) => (Source::Zero, bit),
            Operand::Wire(wire) => (self.wire(wire), false),
        }
    }

    fn wire(&self, wire: u32) -> Source {
        match wire.checked_sub(self.base) {
            None => Source::Input(self.places[wire as usize]),
            Some(entry) if entry < self.registers => Source::Register(entry),
            Some(entry) => Source::Gate(entry),
        }
    }

    fn list(&self, states: &[(Operand, Operand)], gates: &[Gate]) -> Vec<Entry> {
        let states = states.iter().map(|(next, initial)| {
            let [(a, not_a), (b, not_b)] = [*next, *initial].map(|o| self.source(o));
            (true, false, [not_a, not_b, false], [a, b])
        });
        let gates = gates.iter().map(|gate| {
            let [(a, one_a), (b, one_b)] = gate_operands(gate).map(|o| self.source(o));
            let (is_and, [not_a, not_b, not_c]) = match gate.kind {
                Kind::Not => (false, [false, false, true]),
                Kind::Xor(not) => (false, [false, false, not]),
                Kind::And(not) => (true, not),
            };
            (false, is_and, [not_a ^ one_a, not_b ^ one_b, not_c], [a, b])
        });
        let entries = states.chain(gates).zip(&self.is_output);
        let entry = |((is_register, is_and, not, operands), is_output): (_, &bool)| Entry {
            is_register,
            is_and,
            is_output: *is_output,
            not,
            operands,
        };
        entries.map(entry).collect()
    }
}

impl Entry {
    /// `word_t` of `ordered_pkg`.
    fn word(&self) -> u64 {
        let [not_a, not_b, not_c] = self.not;
        let flags = [
            self.is_register,
            self.is_and,
            not_a,
            not_b,
            not_c,
            self.is_output,
        ];
        let flags = flags
            .into_iter()
            .fold(0, |all, flag| all << 1 | u64::from(flag));
        let [a, b] = self.operands.map(|source| {
            let (kind, index) = match source {
                Source::Gate(index) => (0, index),
                Source::Register(index) => (1, index),
                Source::Input(index) => (2, index),
                Source::Zero => (3, 0),
            };
            kind << 16 | u64::from(index)
        });
        flags << 36 | a << 18 | b
    }
}
