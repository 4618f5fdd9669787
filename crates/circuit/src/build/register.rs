//! Registers of a circuit that is being built.

use std::collections::HashMap;

use super::Builder;
use crate::{Clock, Initial, Register, Wire};

/// Registers so far, and how many cycles there are.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    /// Their wires, first values and, once it is known, next wires.
    all: Vec<(Wire, Initial, Option<Wire>)>,
    /// Places in `all`, by wire.
    places: HashMap<u32, usize>,
    cycles: u64,
}

impl Default for Registers {
    fn default() -> Self {
        Registers {
            all: Vec::new(),
            places: HashMap::new(),
            cycles: 1,
        }
    }
}

impl Registers {
    pub(super) fn has(&self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|wire| self.places.contains_key(&wire))
    }

    pub(super) fn wires(&self) -> impl Iterator<Item = Wire> {
        self.all.iter().map(|(wire, ..)| *wire)
    }

    /// What the register on `wire` takes next, if there is one.
    pub(super) fn next_of(&self, wire: Wire) -> Option<Wire> {
        let place = self.places.get(&wire.0)?;
        let (.., next) = self.all[*place];
        Some(next.expect("a finished circuit whose registers were all told what they take next"))
    }

    /// The needed ones, under the numbers of the finished circuit.
    pub(super) fn clock(&self, needed: &[bool], number: &[Wire]) -> Clock {
        let number = |wire: Wire| number[wire.0 as usize];
        let all = self.all.iter();
        let registers = all.filter(|(wire, ..)| needed[wire.0 as usize]);
        let registers = registers.map(|&(_, initial, next)| Register {
            initial: match initial {
                Initial::Wire(wire) => Initial::Wire(number(wire)),
                constant @ Initial::Constant(_) => constant,
            },
            next: number(next.expect("a needed register was told what it takes next")),
        });
        Clock {
            registers: registers.collect(),
            cycles: self.cycles,
        }
    }
}

impl Builder {
    /// How many cycles the circuit has; 1 unless this says otherwise.
    pub fn cycles(&mut self, cycles: u64) {
        self.registers.cycles = cycles;
    }

    /// A register, which is told later what it takes next: [`Builder::set_next`]. Its first value is a constant, or a wire of an input port
    /// with one value for all cycles.
    ///
    /// ```
    /// use veil_circuit::{Builder, Initial, Per};
    /// use veil_math::Ring;
    ///
    /// let mut b = Builder::new(Ring::Bits);
    /// b.cycles(4);
    /// let x = b.input("x", 1, Per::Cycle)[0];
    /// let parity = b.register(Initial::Constant(false));
    /// let next = b.xor(parity, x);
    /// b.set_next(parity, next);
    /// b.output("parity", &[next]);
    /// let circuit = b.finish()?;
    /// assert_eq!(circuit.evaluate(&[vec![1, 0, 1, 1]])?, [[1]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register(&mut self, initial: Initial) -> Wire {
        let wire = self.drive(None);
        let registers = &mut self.registers;
        registers.places.insert(wire.0, registers.all.len());
        registers.all.push((wire, initial, None));
        wire
    }

    /// Sets the wire whose value a register takes at the end of each cycle.
    ///
    /// # Panics
    /// If `register` is no register.
    pub fn set_next(&mut self, register: Wire, next: Wire) {
        let place = self.registers.places.get(&register.0);
        let place = *place.expect("a wire that a register drives");
        self.registers.all[place].2 = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Per;
    use veil_math::Ring;

    #[test]
    fn a_chain_moves_at_once_and_what_no_gate_needs_goes() {
        let mut b = Builder::new(Ring::Bits);
        b.cycles(5);
        let first = b.register(Initial::Constant(true));
        let start = b.input("start", 1, Per::Row)[0];
        let chain = [(); 3].map(|()| b.register(Initial::Wire(start)));
        let useless = b.register(Initial::Constant(false));
        let x = b.input("x", 1, Per::Cycle)[0];
        b.set_next(first, x);
        b.set_next(chain[0], first);
        b.set_next(chain[1], chain[0]);
        b.set_next(chain[2], chain[1]);
        let other = b.and(useless, x);
        b.set_next(useless, other);
        b.output_every_cycle("chain", &[chain[2]]);
        let circuit = b.finish().unwrap();
        assert_eq!(circuit.clock.registers.len(), 4);
        assert_eq!(circuit.gates, []);
        let out = circuit.evaluate(&[vec![0], vec![0, 1, 0, 1, 1]]).unwrap();
        assert_eq!(out, [[0, 0, 0, 1, 0]]);
    }

    #[test]
    #[should_panic(expected = "told what they take next")]
    fn a_register_without_a_next_value_is_a_mistake() {
        let mut b = Builder::new(Ring::Bits);
        let q = b.register(Initial::Constant(true));
        b.output("q", &[q]);
        let _ = b.finish();
    }
}
