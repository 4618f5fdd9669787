//! A builder that never adds a gate whose value it already has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use veil_math::Ring;

use super::register::Registers;
use crate::{Circuit, CircuitError, Gate, InputPort, Limits, OutputPort, Per, Reduce, Wire};

/// Builds a circuit gate by gate.
///
/// Constants are folded (`a + 0`, `a · 1`, `a ⊕ a`, …), equal gates are made once, and gates that no output needs are
/// dropped at the end. Wires are this builder's own: [`Builder::finish`] numbers them anew, inputs first.
///
/// ```
/// use veil_circuit::{Builder, Per};
/// use veil_math::Ring;
///
/// let mut b = Builder::new(Ring::Bits);
/// let x = b.input("x", 2, Per::Row);
/// let both = b.and(x[0], x[1]);
/// let again = b.and(x[1], x[0]);
/// assert_eq!(both, again);
/// b.output("both", &[both]);
/// let circuit = b.finish()?;
/// assert_eq!(circuit.evaluate(&[vec![1, 1]])?, [[1]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    ring: Ring,
    inputs: Vec<InputPort>,
    outputs: Vec<OutputPort>,
    /// The driver of each wire: a gate, or none for an input or a register.
    drivers: Vec<Option<Gate>>,
    pub(super) registers: Registers,
    /// Products on the longest path to each wire.
    depths: Vec<u32>,
    /// The ring of each wire.
    rings: Vec<Ring>,
    known: HashMap<Gate, Wire>,
    /// Numbers of random values that are taken.
    randoms: u32,
}

impl Builder {
    /// An empty circuit over `ring`.
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            inputs: Vec::new(),
            outputs: Vec::new(),
            drivers: Vec::new(),
            registers: Registers::default(),
            depths: Vec::new(),
            rings: Vec::new(),
            known: HashMap::new(),
            randoms: 0,
        }
    }

    /// The ring of the circuit.
    pub fn ring(&self) -> Ring {
        self.ring
    }

    /// The ring of a wire: the circuit's, or bits.
    pub fn ring_of(&self, wire: Wire) -> Ring {
        self.rings[wire.0 as usize]
    }

    /// Wires so far, including wires that no output needs.
    pub fn wires(&self) -> u64 {
        self.drivers.len() as u64
    }

    /// The largest number of products on a path to `wire`.
    pub fn depth(&self, wire: Wire) -> u32 {
        self.depths[wire.0 as usize]
    }

    /// Adds an input port of `width` wires, bit 0 first.
    pub fn input(&mut self, name: impl Into<String>, width: u32, per: Per) -> Vec<Wire> {
        self.inputs.push(InputPort {
            name: name.into(),
            width,
            per,
            bits: false,
        });
        (0..width).map(|_| self.drive(None)).collect()
    }

    /// Adds an input port of `width` bits, in a circuit over integers, with values in every row.
    pub fn input_bits(&mut self, name: impl Into<String>, width: u32) -> Vec<Wire> {
        let wires = self.input(name, width, Per::Row);
        if let Some(port) = self.inputs.last_mut() {
            port.bits = true;
        }
        for wire in &wires {
            self.rings[wire.0 as usize] = Ring::Bits;
        }
        wires
    }

    /// Adds an output port with a value per row.
    pub fn output(&mut self, name: impl Into<String>, wires: &[Wire]) {
        self.outputs.push(OutputPort {
            name: name.into(),
            wires: wires.to_vec(),
            reduce: Reduce::None,
        });
    }

    /// Adds an output port with the sum over all rows. Rings of integers only.
    pub fn output_sum(&mut self, name: impl Into<String>, wires: &[Wire]) {
        self.outputs.push(OutputPort {
            name: name.into(),
            wires: wires.to_vec(),
            reduce: Reduce::Sum,
        });
    }

    /// Adds an output port with a value per row of every cycle of a sequential circuit.
    pub fn output_every_cycle(&mut self, name: impl Into<String>, wires: &[Wire]) {
        self.outputs.push(OutputPort {
            name: name.into(),
            wires: wires.to_vec(),
            reduce: Reduce::EveryCycle,
        });
    }

    /// The public constant `value`, reduced into the circuit's ring.
    pub fn constant(&mut self, value: u128) -> Wire {
        self.gate(Gate::Constant(self.ring.reduce(value)))
    }

    /// A public bit.
    pub fn constant_bit(&mut self, value: bool) -> Wire {
        match self.ring {
            Ring::Bits => self.constant(value.into()),
            Ring::Z32 | Ring::Z64 | Ring::Z128 => self.gate(Gate::ConstantBit(value)),
        }
    }

    /// Bit `j` of an integer.
    ///
    /// # Panics
    /// If `a` is no integer, or has no such bit.
    pub fn bit(&mut self, a: Wire, j: u32) -> Wire {
        let integer = self.ring_of(a) != Ring::Bits && j < self.ring.bits();
        assert!(integer, "this gate is for bits of integers");
        match self.driver(a) {
            Some(Gate::Constant(value)) => self.constant_bit(value >> j & 1 == 1),
            Some(Gate::Lift(bit)) if j == 0 => bit,
            Some(Gate::Lift(_)) => self.constant_bit(false),
            _ => self.gate(Gate::Bit(a, j)),
        }
    }

    /// A bit as the integer 0 or 1.
    ///
    /// # Panics
    /// If `a` is no bit, or the circuit has no integers.
    pub fn lift(&mut self, a: Wire) -> Wire {
        self.assert_bits(a);
        assert!(self.ring != Ring::Bits, "a circuit of bits has no integers");
        match self.driver(a) {
            Some(Gate::ConstantBit(value)) => self.constant(value.into()),
            Some(Gate::Plus(x, _)) => {
                let minus = self.lift(x);
                let minus = self.times(minus, self.ring.sub(0, 1));
                self.plus(minus, 1)
            }
            _ => self.gate(Gate::Lift(a)),
        }
    }

    /// Whether an integer is 0 modulo 2^bits: a bit.
    ///
    /// # Panics
    /// If `a` is no integer, or `bits` are none, or more than it has.
    pub fn is_zero(&mut self, a: Wire, bits: u32) -> Wire {
        let integer = self.ring_of(a) != Ring::Bits && (1..=self.ring.bits()).contains(&bits);
        assert!(integer, "this gate is for bits of integers");
        match self.driver(a) {
            Some(Gate::Constant(value)) => self.constant_bit(value << (128 - bits) == 0),
            _ if bits == 1 => {
                let low = self.bit(a, 0);
                self.not(low)
            }
            _ => self.gate(Gate::IsZero(a, bits)),
        }
    }

    /// ⌊a / 2^by⌋ of an integer from 0 to 2^bits - 1: [`Gate::ShiftRight`].
    ///
    /// # Panics
    /// If `a` is no integer, or the ring has no more than `by` bits or fewer than `bits`.
    pub fn shift_right(&mut self, a: Wire, by: u32, bits: u32) -> Wire {
        let most = self.ring.bits();
        let integer = self.ring_of(a) != Ring::Bits && by < most && (1..=most).contains(&bits);
        assert!(integer, "this gate is for bits of integers");
        match self.driver(a) {
            _ if by == 0 => a,
            Some(Gate::Constant(value)) => self.constant(value >> by),
            Some(Gate::Lift(_)) => self.constant(0),
            _ => self.gate(Gate::ShiftRight { of: a, by, bits }),
        }
    }

    /// A uniform element of the ring in every row, which no party knows. It costs nothing.
    pub fn random(&mut self) -> Wire {
        self.random_of(self.randoms)
    }

    /// A uniform bit in every row, which no party knows. It costs nothing.
    pub fn random_bit(&mut self) -> Wire {
        self.random_bit_of(self.randoms)
    }

    /// The random element of that number.
    pub(crate) fn random_of(&mut self, number: u32) -> Wire {
        self.randoms = self.randoms.max(number.saturating_add(1));
        self.gate(Gate::Random(number))
    }

    /// The random bit of that number.
    pub(crate) fn random_bit_of(&mut self, number: u32) -> Wire {
        if self.ring == Ring::Bits {
            return self.random_of(number);
        }
        self.randoms = self.randoms.max(number.saturating_add(1));
        self.gate(Gate::RandomBit(number))
    }

    /// ⌊a / 2^by⌋ or one more, of an integer from 0 to 2^bits - 1: [`Gate::TruncatePr`].
    ///
    /// # Panics
    /// If `a` is no integer, or the ring has no more than `bits` bits, or these are no more than `by`.
    pub fn truncate_pr(&mut self, a: Wire, by: u32, bits: u32) -> Wire {
        let integer = self.ring_of(a) != Ring::Bits && by < bits && bits < self.ring.bits();
        assert!(integer, "this gate is for integers shorter than the ring");
        match self.driver(a) {
            _ if by == 0 => a,
            Some(Gate::Constant(value)) => self.constant(value >> by),
            _ => self.gate(Gate::TruncatePr { of: a, by, bits }),
        }
    }

    /// 2a + b of an integer and a bit: [`Gate::Append`].
    ///
    /// # Panics
    /// If `a` is no integer, or `b` no bit.
    pub fn append(&mut self, a: Wire, b: Wire) -> Wire {
        assert_eq!(self.ring_of(b), Ring::Bits, "a bit is appended");
        assert_ne!(self.ring_of(a), Ring::Bits, "to an integer");
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(a), Some(b)) => self.constant(self.ring.add(self.ring.mul(a, 2), b)),
            _ => self.gate(Gate::Append(a, b)),
        }
    }

    /// The public constant `value` over the ring of `like`.
    fn constant_like(&mut self, like: Wire, value: u128) -> Wire {
        match self.ring_of(like) {
            Ring::Bits => self.constant_bit(value & 1 == 1),
            Ring::Z32 | Ring::Z64 | Ring::Z128 => self.constant(value),
        }
    }

    /// `a + b`.
    pub fn add(&mut self, a: Wire, b: Wire) -> Wire {
        let ring = self.ring_of(a);
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(a), _) => return self.plus(b, a),
            (_, Some(b)) => return self.plus(a, b),
            _ => {}
        }
        // (x + c) + (y + d) = (x + y) + (c + d), which of two NOTs leaves none.
        if let (Some(Gate::Plus(x, c)), Some(Gate::Plus(y, d))) = (self.driver(a), self.driver(b)) {
            let sum = self.add(x, y);
            return self.plus(sum, ring.add(c, d));
        }
        if ring == Ring::Bits
            && let Some(difference) = self.difference(a, b)
        {
            return self.constant_like(a, difference);
        }
        self.gate(Gate::Add(a.min(b), a.max(b)))
    }

    /// `a - b`. Of bits this is [`Builder::add`].
    pub fn sub(&mut self, a: Wire, b: Wire) -> Wire {
        let ring = self.ring_of(a);
        if ring == Ring::Bits {
            return self.add(a, b);
        }
        if let Some(difference) = self.difference(a, b) {
            return self.constant_like(a, difference);
        }
        match (self.constant_of(a), self.constant_of(b)) {
            (_, Some(b)) => self.plus(a, ring.sub(0, b)),
            (Some(a), _) => {
                let minus = self.times(b, ring.sub(0, 1));
                self.plus(minus, a)
            }
            _ => self.gate(Gate::Sub(a, b)),
        }
    }

    /// `a · b`: the only gate that costs communication.
    pub fn mul(&mut self, a: Wire, b: Wire) -> Wire {
        match (self.constant_of(a), self.constant_of(b)) {
            (Some(a), _) => return self.times(b, a),
            (_, Some(b)) => return self.times(a, b),
            _ => {}
        }
        if self.ring_of(a) == Ring::Bits {
            match self.difference(a, b) {
                Some(0) => return a,
                Some(_) => return self.constant_bit(false),
                None => {}
            }
        }
        self.gate(Gate::Mul(a.min(b), a.max(b)))
    }

    /// `a + value` for a public constant.
    pub fn plus(&mut self, a: Wire, value: u128) -> Wire {
        let ring = self.ring_of(a);
        let value = ring.reduce(value);
        if let Some(other) = self.constant_of(a) {
            return self.constant_like(a, ring.add(other, value));
        }
        match self.driver(a) {
            _ if value == 0 => a,
            Some(Gate::Plus(x, other)) => self.plus(x, ring.add(other, value)),
            _ => self.gate(Gate::Plus(a, value)),
        }
    }

    /// `a · value` for a public constant.
    pub fn times(&mut self, a: Wire, value: u128) -> Wire {
        let ring = self.ring_of(a);
        let value = ring.reduce(value);
        if let Some(other) = self.constant_of(a) {
            return self.constant_like(a, ring.mul(other, value));
        }
        match self.driver(a) {
            _ if value == 0 => self.constant_like(a, 0),
            _ if value == 1 => a,
            Some(Gate::Times(x, other)) => self.times(x, ring.mul(other, value)),
            _ => self.gate(Gate::Times(a, value)),
        }
    }

    /// `a ⊕ b` of bits: addition.
    pub fn xor(&mut self, a: Wire, b: Wire) -> Wire {
        self.assert_bits(a);
        self.add(a, b)
    }

    /// `a ∧ b` of bits: multiplication.
    pub fn and(&mut self, a: Wire, b: Wire) -> Wire {
        self.assert_bits(a);
        self.mul(a, b)
    }

    /// `a ∨ b` of bits: one AND.
    pub fn or(&mut self, a: Wire, b: Wire) -> Wire {
        let (both, either) = (self.and(a, b), self.xor(a, b));
        self.xor(both, either)
    }

    /// `¬a` of a bit.
    pub fn not(&mut self, a: Wire) -> Wire {
        self.assert_bits(a);
        self.plus(a, 1)
    }

    /// `yes` where `condition` is 1, `no` where it is 0: one multiplication. A bit that chooses between integers is lifted.
    pub fn mux(&mut self, condition: Wire, yes: Wire, no: Wire) -> Wire {
        let condition = match (self.ring_of(condition), self.ring_of(yes)) {
            (Ring::Bits, Ring::Z32 | Ring::Z64 | Ring::Z128) => self.lift(condition),
            _ => condition,
        };
        let change = self.sub(yes, no);
        let chosen = self.mul(condition, change);
        self.add(no, chosen)
    }

    /// The circuit: inputs first, then registers, then gates in the order they were made, without gates that no output needs.
    ///
    /// # Panics
    /// If a register was not told what it takes next.
    ///
    /// # Errors
    /// [`CircuitError`] as of [`Circuit::validate`], for the default [`Limits`]: no outputs, a port without wires or with a bad
    /// or second name, a circuit too large.
    pub fn finish(self) -> Result<Circuit, CircuitError> {
        self.finish_within(&Limits::default())
    }

    /// [`Builder::finish`] with limits of the caller's choice.
    ///
    /// # Errors
    /// [`CircuitError`] as of [`Circuit::validate_within`].
    ///
    /// # Panics
    /// If a register was not told what it takes next.
    pub fn finish_within(self, limits: &Limits) -> Result<Circuit, CircuitError> {
        let needed = self.needed();
        // Numbers: inputs in the order of their ports, then the needed registers, then the needed gates.
        let mut number = vec![Wire(0); self.drivers.len()];
        let mut next = 0;
        let inputs = (self.drivers.iter().enumerate())
            .filter(|(index, driver)| driver.is_none() && !self.registers.has(*index));
        let inputs = inputs.map(|(index, _)| index);
        let registers = self.registers.wires().map(|wire| wire.0 as usize);
        for index in inputs.chain(registers.filter(|index| needed[*index])) {
            number[index] = Wire(next);
            next += 1;
        }
        let mut gates = Vec::new();
        for (index, driver) in self.drivers.iter().enumerate() {
            if let Some(gate) = driver.filter(|_| needed[index]) {
                number[index] = Wire(next);
                next += 1;
                gates.push(gate.map_operands(|wire| number[wire.0 as usize]));
            }
        }
        let mut outputs = self.outputs;
        for wire in outputs.iter_mut().flat_map(|port| &mut port.wires) {
            *wire = number[wire.0 as usize];
        }
        let circuit = Circuit {
            ring: self.ring,
            inputs: self.inputs,
            gates,
            outputs,
            clock: self.registers.clock(&needed, &number),
        };
        circuit.validate_within(limits)?;
        Ok(circuit)
    }

    /// Products so far, those among them that no output needs.
    pub fn products(&self) -> u64 {
        let products = self.drivers.iter();
        products
            .filter(|driver| matches!(driver, Some(Gate::Mul(..))))
            .count() as u64
    }

    /// How many products outputs need of those that were made before there were so many wires, and after there were as many as the number before says.
    pub fn needed_products(&self, ends: &[u64]) -> Vec<u64> {
        let needed = self.needed();
        let mut first = 0;
        let products = ends.iter().map(|end| {
            let own = first..*end as usize;
            first = own.end.max(first);
            own.filter(|at| needed[*at] && matches!(self.drivers[*at], Some(Gate::Mul(..))))
                .count() as u64
        });
        products.collect()
    }

    /// Which wires an output needs, in this cycle or a later one.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.drivers.len()];
        let mut open: Vec<Wire> = self.outputs.iter().flat_map(|o| o.wires.clone()).collect();
        while let Some(wire) = open.pop() {
            if !std::mem::replace(&mut needed[wire.0 as usize], true) {
                match self.driver(wire) {
                    Some(gate) => open.extend(gate.operands()),
                    None => open.extend(self.registers.next_of(wire)),
                }
            }
        }
        needed
    }

    fn assert_bits(&self, wire: Wire) {
        assert_eq!(self.ring_of(wire), Ring::Bits, "this gate is for bits");
    }

    fn driver(&self, wire: Wire) -> Option<Gate> {
        self.drivers[wire.0 as usize]
    }

    fn constant_of(&self, wire: Wire) -> Option<u128> {
        match self.driver(wire) {
            Some(Gate::Constant(value)) => Some(value),
            Some(Gate::ConstantBit(value)) => Some(value.into()),
            _ => None,
        }
    }

    /// `a - b`, if it is known to be a constant.
    fn difference(&self, a: Wire, b: Wire) -> Option<u128> {
        let split = |wire| match self.driver(wire) {
            Some(Gate::Plus(x, c)) => (x, c),
            _ => (wire, 0),
        };
        let ((x, c), (y, d)) = (split(a), split(b));
        (x == y).then(|| self.ring_of(a).sub(c, d))
    }

    fn gate(&mut self, gate: Gate) -> Wire {
        let next = Wire(self.drivers.len() as u32);
        match self.known.entry(gate) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                entry.insert(next);
                self.drive(Some(gate))
            }
        }
    }

    pub(super) fn drive(&mut self, driver: Option<Gate>) -> Wire {
        let wire = u32::try_from(self.drivers.len()).expect("a circuit of fewer than 2^32 wires");
        let before = driver
            .iter()
            .flat_map(Gate::operands)
            .map(|wire| self.depth(wire))
            .max();
        let own = u32::from(matches!(driver, Some(Gate::Mul(..))));
        let ring = driver.map_or(self.ring, |gate| gate.ring(self.ring, |w| self.ring_of(w)));
        self.rings.push(ring);
        self.drivers.push(driver);
        self.depths.push(before.unwrap_or(0) + own);
        Wire(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_over_bits() {
        let mut b = Builder::new(Ring::Bits);
        let x = b.input("x", 2, Per::Row);
        let (x, y) = (x[0], x[1]);
        let (zero, one) = (b.constant(0), b.constant(1));
        let (not_x, not_y) = (b.not(x), b.not(y));
        assert_eq!(b.not(not_x), x);
        assert_eq!(b.xor(x, zero), x);
        assert_eq!(b.xor(one, x), not_x);
        assert_eq!(b.xor(x, x), zero);
        assert_eq!(b.xor(not_x, x), one);
        assert_eq!(b.and(x, one), x);
        assert_eq!(b.and(x, zero), zero);
        assert_eq!(b.and(x, x), x);
        assert_eq!(b.and(x, not_x), zero);
        assert_eq!(b.or(x, one), one);
        assert_eq!(b.mux(x, y, y), y);
        assert_eq!(b.xor(not_x, not_y), b.xor(y, x));
        assert_eq!(b.xor(one, one), zero);
    }

    #[test]
    fn constants_fold_over_integers() {
        let mut b = Builder::new(Ring::Z64);
        let wires = b.input("x", 2, Per::Row);
        let (x, y) = (wires[0], wires[1]);
        let (zero, one, three) = (b.constant(0), b.constant(1), b.constant(3));
        assert_eq!(b.add(one, three), b.constant(4));
        assert_eq!(b.mul(three, three), b.constant(9));
        assert_eq!(b.sub(one, three), b.constant(u64::MAX as u128 - 1));
        assert_eq!(b.sub(x, x), zero);
        assert_eq!(b.mul(x, one), x);
        assert_eq!(b.constant(1 << 64), zero);
        let (up, down) = (b.plus(x, 5), b.sub(x, three));
        assert_eq!(b.sub(up, down), b.constant(8));
        assert_eq!(b.plus(down, 3), x);
        let minus = b.sub(zero, x);
        assert_eq!(b.times(minus, u128::MAX), x);
        assert_ne!(b.add(x, x), zero);
        assert_ne!(b.mul(x, x), x);
        assert_ne!(b.sub(x, y), b.sub(y, x));
    }

    #[test]
    fn conversions_fold() {
        let mut b = Builder::new(Ring::Z64);
        let x = b.input("x", 1, Per::Row)[0];
        let five = b.constant(5);
        let (zero, one) = (b.constant_bit(false), b.constant_bit(true));
        assert_eq!([b.bit(five, 0), b.bit(five, 1)], [one, zero]);
        assert_eq!([b.lift(zero), b.lift(one)], [b.constant(0), b.constant(1)]);
        let bit = b.bit(x, 3);
        assert_eq!((b.ring_of(x), b.ring_of(bit)), (Ring::Z64, Ring::Bits));
        assert_eq!([b.xor(bit, bit), b.and(bit, one)], [zero, bit]);
        let lifted = b.lift(bit);
        assert_eq!([b.bit(lifted, 0), b.bit(lifted, 1)], [bit, zero]);
        let not = b.not(bit);
        let sum = b.lift(not);
        let sum = b.add(sum, lifted);
        assert_eq!(b.mux(bit, x, five), b.mux(lifted, x, five));
        b.output("one", &[sum]);
        let circuit = b.finish().unwrap();
        assert_eq!(circuit.evaluate(&[vec![8]]).unwrap(), [[1]]);
        assert_eq!(circuit.stats().lifts, 1);
    }

    #[test]
    fn inputs_may_come_late_and_unneeded_gates_go() {
        let mut b = Builder::new(Ring::Bits);
        let x = b.input("x", 1, Per::Row)[0];
        let not = b.not(x);
        let y = b.input("y", 1, Per::Job)[0];
        b.and(x, y);
        let z = b.xor(not, y);
        b.output("z", &[z, x]);
        let circuit = b.finish().unwrap();
        assert_eq!(
            circuit.gates,
            [Gate::Plus(Wire(0), 1), Gate::Add(Wire(2), Wire(1))]
        );
        assert_eq!(circuit.outputs[0].wires, [Wire(3), Wire(0)]);
    }

    #[test]
    fn finish_checks() {
        let mut b = Builder::new(Ring::Bits);
        b.input("x", 1, Per::Row);
        assert_eq!(b.finish(), Err(CircuitError::NoOutputs));
    }

    #[test]
    #[should_panic(expected = "this gate is for bits")]
    fn not_is_for_bits() {
        let mut b = Builder::new(Ring::Z64);
        let x = b.input("x", 1, Per::Row)[0];
        b.not(x);
    }
}
