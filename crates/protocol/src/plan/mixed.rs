//! Conversions between integers and bits, lowered to gates on single components.
//!
//! A shared integer is x = Σ u_c, and everybody but one party has u_c. So bit j of u_c is a shared bit without any message: its component c
//! is that bit, and its others are zero. The bits of x are those of the sum of the u_c, by an adder over bits. In the same way component c
//! of a shared bit is a shared integer, and the bit, which is the XOR of its components, is an integer after products
//! (`docs/conversions.md`). Nobody can cheat in what is local, and the rest are products as all others.

use std::borrow::Cow;
use std::collections::HashMap;

use veil_circuit::{Builder, Circuit, Gate, Per, Wire, generate};
use veil_math::Ring;

/// A circuit as it is computed on shares.
pub(super) struct Net<'a> {
    /// Its `Bit` gates are of one component of an integer, its `Lift` gates of one component of a bit, and its `ShiftRight` gates of every
    /// component by itself.
    pub(super) circuit: Cow<'a, Circuit>,
    /// The component of each `Bit` and `Lift` gate, by wire.
    pub(super) components: HashMap<u32, u8>,
    /// The ring of every wire.
    pub(super) rings: Vec<Ring>,
}

impl<'a> Net<'a> {
    /// Lowers a valid circuit for values of so many components.
    pub(super) fn of(circuit: &'a Circuit, components: usize) -> Self {
        if !circuit.gates.iter().any(Gate::converts) {
            return Net {
                circuit: Cow::Borrowed(circuit),
                components: HashMap::new(),
                rings: circuit.rings(),
            };
        }
        let mut lowering = Lowering::new(circuit, components);
        lowering.run();
        lowering.finish()
    }
}

struct Lowering<'a> {
    from: &'a Circuit,
    /// Components of a value.
    count: usize,
    inputs: u32,
    /// Which wires of `from` an output needs.
    needed: Vec<bool>,
    /// Where each wire of `from` is now.
    now: Vec<Wire>,
    gates: Vec<Gate>,
    components: HashMap<u32, u8>,
    /// For each wire of `from` that bits are taken of, how many from bit 0 on.
    widths: HashMap<u32, u32>,
    /// Their bits, once they are made.
    bits: HashMap<u32, Vec<Wire>>,
    /// What is computed of all components, by what it is.
    made: HashMap<Of, Circuit>,
    /// Gates of single components that there are.
    known: HashMap<(Gate, u8), Wire>,
    xors: Circuit,
}

impl<'a> Lowering<'a> {
    fn new(from: &'a Circuit, count: usize) -> Self {
        let inputs = from.input_wires();
        let needed = reached(from);
        let mut widths = HashMap::new();
        for (index, gate) in from.gates.iter().enumerate() {
            if let Gate::Bit(x, j) = *gate
                && needed[from.gate_wire(index).0 as usize]
            {
                let width: &mut u32 = widths.entry(x.0).or_default();
                *width = (*width).max(j + 1);
            }
        }
        Lowering {
            from,
            count,
            inputs,
            needed,
            now: (0..inputs).map(Wire).collect(),
            gates: Vec::new(),
            components: HashMap::new(),
            widths,
            bits: HashMap::new(),
            made: HashMap::new(),
            known: HashMap::new(),
            xors: xors(from.ring, count),
        }
    }

    fn push(&mut self, gate: Gate) -> Wire {
        self.gates.push(gate);
        Wire(self.inputs + self.gates.len() as u32 - 1)
    }

    fn at(&self, wire: Wire) -> Wire {
        self.now[wire.0 as usize]
    }

    fn driver(&self, wire: Wire) -> Option<Gate> {
        let gate = wire.0.checked_sub(self.inputs)?;
        Some(self.gates[gate as usize])
    }

    fn run(&mut self) {
        for (index, &gate) in self.from.gates.iter().enumerate() {
            let wire = self.from.gate_wire(index);
            let now = match gate {
                // Nobody reads it.
                _ if !self.needed[wire.0 as usize] => Wire(0),
                Gate::Bit(x, j) => self.bits_of(x)[j as usize],
                Gate::Lift(b) => self.lift(self.at(b)),
                Gate::IsZero(x, bits) => self.is_zero(self.at(x), bits),
                Gate::ShiftRight(x, 0) => self.at(x),
                Gate::ShiftRight(x, by) => self.shift(self.at(x), by),
                _ => {
                    let gate = gate.map_operands(|w| self.at(w));
                    self.push(gate)
                }
            };
            self.now.push(now);
        }
    }

    /// The low bits of wire `x` of `from`, as many as are read: Σ u_c modulo 2^width.
    fn bits_of(&mut self, x: Wire) -> &[Wire] {
        if !self.bits.contains_key(&x.0) {
            let (width, now) = (self.widths[&x.0], self.at(x));
            let bits = self.of_components(now, width, Of::Sum(width));
            self.bits.insert(x.0, bits);
        }
        &self.bits[&x.0]
    }

    /// What `of` says, of the `width` lowest bits of all components of integer `now`.
    fn of_components(&mut self, now: Wire, width: u32, of: Of) -> Vec<Wire> {
        let mut inputs = Vec::new();
        for component in 0..self.count as u8 {
            for j in 0..width {
                inputs.push(self.of_component(Gate::Bit(now, j), component));
            }
        }
        let count = self.count;
        let made = self.made.remove(&of).unwrap_or_else(|| of.make(count));
        let outputs = self.insert(&made, &inputs);
        self.made.insert(of, made);
        outputs
    }

    /// x = 0 if x - 1 = -1, which is seen of the components without a carry.
    fn is_zero(&mut self, now: Wire, bits: u32) -> Wire {
        let less = self.push(Gate::Plus(now, self.from.ring.sub(0, 1)));
        self.of_components(less, bits, Of::IsMinusOne(bits))[0]
    }

    /// With u_c = 2^by h_c + l_c and Σ u_c = x + 2^k w: ⌊x / 2^by⌋ = Σ h_c + ⌊Σ l_c / 2^by⌋ - 2^(k - by) w.
    fn shift(&mut self, now: Wire, by: u32) -> Wire {
        let ring = self.from.ring;
        let low = self.carried(now, by);
        let wraps = self.carried(now, ring.bits());
        let high = self.push(Gate::ShiftRight(now, by));
        let sum = self.push(Gate::Add(high, low));
        let wraps = self.push(Gate::Times(wraps, 1 << (ring.bits() - by)));
        self.push(Gate::Sub(sum, wraps))
    }

    /// What the sum of the `width` lowest bits of all components carries out of them, as an integer: less than 4.
    fn carried(&mut self, now: Wire, width: u32) -> Wire {
        let carries = self.of_components(now, width, Of::Carries(width));
        let [ones, twos] = [0, 1].map(|k| self.lift(carries[k]));
        let twos = self.push(Gate::Times(twos, 2));
        self.push(Gate::Add(ones, twos))
    }

    /// A bit as an integer: the XOR of its components.
    fn lift(&mut self, b: Wire) -> Wire {
        if let Some(Gate::ConstantBit(value)) = self.driver(b) {
            return self.push(Gate::Constant(value.into()));
        }
        let components = 0..self.count as u8;
        let inputs: Vec<Wire> = components
            .map(|component| self.of_component(Gate::Lift(b), component))
            .collect();
        let xors = std::mem::replace(&mut self.xors, empty(self.from.ring));
        let outputs = self.insert(&xors, &inputs);
        self.xors = xors;
        outputs[0]
    }

    fn of_component(&mut self, gate: Gate, component: u8) -> Wire {
        if let Some(wire) = self.known.get(&(gate, component)) {
            return *wire;
        }
        let wire = self.push(gate);
        self.components.insert(wire.0, component);
        self.known.insert((gate, component), wire);
        wire
    }

    /// Copies the gates of a circuit whose inputs are `inputs`; its outputs.
    fn insert(&mut self, circuit: &Circuit, inputs: &[Wire]) -> Vec<Wire> {
        let mut now = inputs.to_vec();
        for gate in &circuit.gates {
            let gate = match *gate {
                Gate::Constant(c) if circuit.ring == Ring::Bits => Gate::ConstantBit(c == 1),
                gate => gate.map_operands(|w| now[w.0 as usize]),
            };
            now.push(self.push(gate));
        }
        let wires = circuit.outputs.iter().flat_map(|port| &port.wires);
        wires.map(|w| now[w.0 as usize]).collect()
    }

    /// The gates that an output needs.
    fn finish(self) -> Net<'a> {
        let mut circuit = Circuit {
            ring: self.from.ring,
            inputs: self.from.inputs.clone(),
            gates: self.gates,
            outputs: self.from.outputs.clone(),
        };
        for wire in (circuit.outputs.iter_mut()).flat_map(|port| &mut port.wires) {
            *wire = self.now[wire.0 as usize];
        }
        let needed = reached(&circuit);
        let mut now: Vec<Wire> = (0..self.inputs).map(Wire).collect();
        let mut components = HashMap::new();
        let mut kept = Vec::new();
        for (gate, wire) in circuit.gates.iter().zip(self.inputs..) {
            let new = Wire(self.inputs + kept.len() as u32);
            now.push(new);
            if needed[wire as usize] {
                kept.push(gate.map_operands(|w| now[w.0 as usize]));
                if let Some(component) = self.components.get(&wire) {
                    components.insert(new.0, *component);
                }
            }
        }
        circuit.gates = kept;
        for wire in (circuit.outputs.iter_mut()).flat_map(|port| &mut port.wires) {
            *wire = now[wire.0 as usize];
        }
        Net {
            rings: circuit.rings(),
            circuit: Cow::Owned(circuit),
            components,
        }
    }
}

/// Which wires some output needs.
fn reached(circuit: &Circuit) -> Vec<bool> {
    let mut needed = vec![false; circuit.wires() as usize];
    for wire in circuit.outputs.iter().flat_map(|port| &port.wires) {
        needed[wire.0 as usize] = true;
    }
    for (index, gate) in circuit.gates.iter().enumerate().rev() {
        if needed[circuit.gate_wire(index).0 as usize] {
            gate.operands().for_each(|w| needed[w.0 as usize] = true);
        }
    }
    needed
}

const MADE: &str = "a small circuit of distinct ports";

/// What is computed of words, one for each component.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Of {
    /// The sum of words of so many bits, modulo 2 to their number.
    Sum(u32),
    /// Whether it is -1.
    IsMinusOne(u32),
    /// Their sum without them: two bits.
    Carries(u32),
}

impl Of {
    fn make(self, count: usize) -> Circuit {
        let mut b = Builder::new(Ring::Bits);
        let (Of::Sum(width) | Of::IsMinusOne(width) | Of::Carries(width)) = self;
        let mut words: Vec<Vec<Wire>> = (0..count)
            .map(|c| b.input(format!("u{c}"), width, Per::Row))
            .collect();
        let out = match self {
            Of::Sum(_) => generate::sum(&mut b, &words, generate::Aim::Depth),
            Of::IsMinusOne(_) => vec![generate::sum_is_minus_one(&mut b, &words)],
            Of::Carries(width) => {
                let zero = b.constant_bit(false);
                for word in &mut words {
                    word.extend([zero; 2]);
                }
                generate::sum(&mut b, &words, generate::Aim::Depth).split_off(width as usize)
            }
        };
        b.output("out", &out);
        b.finish().expect(MADE)
    }
}

/// The XOR of `count` integers that are 0 or 1: a tree of a + b - 2ab.
fn xors(ring: Ring, count: usize) -> Circuit {
    let mut b = Builder::new(ring);
    let mut rest = b.input("t", count as u32, Per::Row);
    while rest.len() > 1 {
        let pairs = rest.chunks(2).map(|pair| match *pair {
            [x, y] => {
                let (sum, both) = (b.add(x, y), b.mul(x, y));
                let twice = b.times(both, 2);
                b.sub(sum, twice)
            }
            _ => pair[0],
        });
        rest = pairs.collect();
    }
    b.output("xor", &rest);
    b.finish().expect(MADE)
}

fn empty(ring: Ring) -> Circuit {
    Circuit {
        ring,
        inputs: Vec::new(),
        gates: Vec::new(),
        outputs: Vec::new(),
    }
}
