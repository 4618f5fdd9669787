//! Conversions between integers and bits, lowered to local operations, products, and openings of masked values.
//!
//! A shared integer is x = Σ u_c, and all parties but one hold u_c. So bit j of u_c is a shared bit without any message: its component c is
//! that bit, and its others are zero. The bits of x are the bits of the sum of the u_c, by an adder over bits. In the same way component c
//! of a shared bit is a shared integer, and the bit, which is the XOR of its components, is an integer after products, or after two rounds of
//! messages of its own (`docs/conversions.md`). No party can cheat in a local operation, and the rest is checked as products are.
//!
//! Two conversions open something: the sum of a value and of one that is drawn for it. This is the only place where a gate that opens is made,
//! and its mask is made with it.

use std::collections::HashMap;

use veil_circuit::{Circuit, Gate, Wire};
use veil_math::Ring;

use super::authenticate::Macs;
use super::net::{self, Gate as Node, Net};
use super::small::{Of, xors};

impl Net {
    /// Lowers a valid circuit for values of so many components, which may be opened behind `masks` or not: then conversions are products alone.
    pub(super) fn of(circuit: &Circuit, components: usize, masks: bool) -> Self {
        Net::plain(circuit).unwrap_or_else(|| {
            let mut lowering = Lowering::new(circuit, components, masks);
            lowering.run();
            lowering.finish().pruned()
        })
    }
}

struct Lowering<'a> {
    from: &'a Circuit,
    /// Components of a value.
    count: usize,
    /// Whether something may be opened behind a mask.
    masks: bool,
    inputs: u32,
    /// Which wires of `from` an output needs. Of a word that bits are appended to, only the last.
    needed: Vec<bool>,
    /// Where each wire of `from` is now.
    now: Vec<Wire>,
    gates: Vec<Node>,
    rings: Vec<Ring>,
    components: HashMap<u32, u8>,
    /// For each wire of `from` that bits are taken of, how many from bit 0 on.
    widths: HashMap<u32, u32>,
    /// Their bits, once they are made.
    bits: HashMap<u32, Vec<Wire>>,
    /// Random values, by their gates.
    randoms: HashMap<Gate, Wire>,
    /// Groups of values that are opened together.
    groups: u32,
    /// The circuits that are computed of all components, by their function.
    made: HashMap<Of, Circuit>,
    /// Gates of single components that there are.
    known: HashMap<(Node, u8), Wire>,
    /// The XOR of the components of a bit, lifted; away while it is copied.
    xors: Option<Circuit>,
    /// Bits that are lifted by messages of their own.
    raised: HashMap<Wire, Wire>,
}

/// The component that what was opened is shared as.
const OPENED: u8 = 0;

impl<'a> Lowering<'a> {
    fn new(from: &'a Circuit, count: usize, masks: bool) -> Self {
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
            masks,
            inputs,
            needed,
            now: (0..inputs).map(Wire).collect(),
            gates: Vec::new(),
            rings: from.rings()[..inputs as usize].to_vec(),
            components: HashMap::new(),
            widths,
            bits: HashMap::new(),
            randoms: HashMap::new(),
            groups: 0,
            made: HashMap::new(),
            known: HashMap::new(),
            xors: None,
            raised: HashMap::new(),
        }
    }

    fn push(&mut self, node: Node, ring: Ring) -> Wire {
        self.gates.push(node);
        self.rings.push(ring);
        Wire(self.inputs + self.gates.len() as u32 - 1)
    }

    /// A gate over the circuit's ring.
    fn integer(&mut self, node: Node) -> Wire {
        self.push(node, self.from.ring)
    }

    fn ring_of(&self, wire: Wire) -> Ring {
        self.rings[wire.0 as usize]
    }

    fn at(&self, wire: Wire) -> Wire {
        self.now[wire.0 as usize]
    }

    fn driver(&self, wire: Wire) -> Option<Node> {
        let node = wire.0.checked_sub(self.inputs)?;
        Some(self.gates[node as usize])
    }

    fn run(&mut self) {
        for (index, &gate) in self.from.gates.iter().enumerate() {
            let wire = self.from.gate_wire(index);
            let now = match gate {
                // No output needs it.
                _ if !self.needed[wire.0 as usize] => Wire(0),
                Gate::Bit(x, j) => self.bits_of(x)[j as usize],
                Gate::Lift(b) => self.lift(self.at(b)),
                Gate::IsZero(x, bits) => self.is_zero(self.at(x), bits),
                Gate::ShiftRight { of: x, by: 0, .. } | Gate::TruncatePr { of: x, by: 0, .. } => {
                    self.at(x)
                }
                Gate::ShiftRight { of, by, bits } => self.shift_right(self.at(of), by, bits),
                Gate::Random(_) => self.random(gate, self.from.ring),
                Gate::RandomBit(_) => self.random(gate, Ring::Bits),
                // Exactly, which is one of the two.
                Gate::TruncatePr { of, by, .. } if !self.masks => self.shift(self.at(of), 0, by).0,
                Gate::TruncatePr { of, by, .. } if self.told() => {
                    let of = self.at(of);
                    let digits = false;
                    self.integer(Node::Truncate { of, by, digits })
                }
                Gate::TruncatePr { of, by, bits } => self.truncate(self.at(of), by, bits),
                Gate::Append(..) => self.word(wire),
                Gate::Add(..)
                | Gate::Sub(..)
                | Gate::Mul(..)
                | Gate::Plus(..)
                | Gate::Times(..)
                | Gate::Constant(_)
                | Gate::ConstantBit(_) => {
                    let gate = gate.map_operands(|w| self.at(w));
                    self.plain(gate)
                }
            };
            self.now.push(now);
        }
    }

    /// A gate on wires of the net that is computed as it is.
    fn plain(&mut self, gate: Gate) -> Wire {
        let node = Node::of(gate).expect("conversions are lowered by themselves");
        let ring = match gate {
            Gate::ConstantBit(_) => Ring::Bits,
            _ => node
                .operands()
                .next()
                .map_or(self.from.ring, |w| self.ring_of(w)),
        };
        self.push(node, ring)
    }

    /// A number for what is opened together.
    fn group(&mut self) -> u32 {
        self.groups += 1;
        self.groups
    }

    fn random(&mut self, gate: Gate, ring: Ring) -> Wire {
        if let Some(wire) = self.randoms.get(&gate) {
            return *wire;
        }
        let wire = self.push(Node::Random, ring);
        self.randoms.insert(gate, wire);
        wire
    }

    /// The low bits of wire `x` of `from`, as many as are read: Σ u_c modulo 2^width.
    fn bits_of(&mut self, x: Wire) -> &[Wire] {
        if !self.bits.contains_key(&x.0) {
            let (width, now) = (self.widths[&x.0], self.at(x));
            let bits = self.of_components(now, 0, Of::Sum(width));
            self.bits.insert(x.0, bits);
        }
        &self.bits[&x.0]
    }

    /// What `of` says, of so many bits of all components of integer `now`, from bit `first` on.
    fn of_components(&mut self, now: Wire, first: u32, of: Of) -> Vec<Wire> {
        let mut inputs = Vec::new();
        for component in 0..self.count as u8 {
            for bit in first..first + of.width() {
                inputs.push(self.of_component(Node::Bit(now, bit), component));
            }
        }
        self.apply(of, &inputs)
    }

    fn apply(&mut self, of: Of, inputs: &[Wire]) -> Vec<Wire> {
        let count = self.count;
        let made = self.made.remove(&of).unwrap_or_else(|| of.make(count));
        let outputs = self.insert(&made, inputs);
        self.made.insert(of, made);
        outputs
    }

    /// x = 0 if x - 1 = -1, which is seen of the components without a carry.
    fn is_zero(&mut self, now: Wire, bits: u32) -> Wire {
        let less = self.integer(Node::Plus(now, self.from.ring.sub(0, 1)));
        self.of_components(less, 0, Of::IsMinusOne(bits))[0]
    }

    /// Whether one party may learn the sum of an integer and of what all others draw: three parties, of whom none deviates.
    fn told(&self) -> bool {
        self.masks && self.count == 3
    }

    /// ⌊x / 2^by⌋ of x from 0 to 2^bits - 1.
    fn shift_right(&mut self, now: Wire, by: u32, bits: u32) -> Wire {
        if !self.told() || bits >= self.from.ring.bits() {
            return self.shift(now, 0, by).0;
        }
        let up = self.integer(Node::Truncate {
            of: now,
            by,
            digits: true,
        });
        let digit = |at| Node::Digit { of: up, at };
        let digits: Vec<Wire> = (0..2 * by)
            .map(|at| self.push(digit(at), Ring::Bits))
            .collect();
        let less = self.apply(Of::Less(by), &digits)[0];
        let less = self.lift(less);
        self.integer(Node::Sub(up, less))
    }

    /// ⌊x / 2^by⌋ of an integer whose components are multiples of 2^zeros; and its highest bit.
    ///
    /// With u_c = 2^by h_c + l_c and Σ u_c = x + 2^k w, it is Σ h_c + ⌊Σ l_c / 2^by⌋ - 2^(k - by) w.
    fn shift(&mut self, now: Wire, zeros: u32, by: u32) -> (Wire, Wire) {
        let k = self.from.ring.bits();
        let carries = Of::Carries {
            low: by - zeros,
            width: k - zeros,
        };
        let carries = self.of_components(now, zeros, carries);
        let [low, wraps] = [0, 2].map(|of| {
            let [ones, twos] = [0, 1].map(|k| self.lift(carries[of + k]));
            let twos = self.integer(Node::Times(twos, 2));
            self.integer(Node::Add(ones, twos))
        });
        let high = self.integer(Node::ShiftRight(now, by));
        let sum = self.integer(Node::Add(high, low));
        let wraps = self.integer(Node::Times(wraps, 1 << (k - by)));
        (self.integer(Node::Sub(sum, wraps)), carries[4])
    }

    /// ⌊(x + R) / 2^by⌋ of x from 0 to 2^bits - 1, with R = 2^by - 1 - (c modulo 2^by) of the opened c = x + r.
    ///
    /// On X = 2^s x, where s = k - 1 - bits, with r a uniform multiple of 2^s: c = X + r - 2^k w, and X is less than 2^(k-1), so w is bit
    /// k - 1 of r where that of c is 0, else 0. With t = s + by the result is ⌊c / 2^t⌋ - ⌊r / 2^t⌋ + 2^(k-t) w.
    fn truncate(&mut self, now: Wire, by: u32, bits: u32) -> Wire {
        let k = self.from.ring.bits();
        let s = k - 1 - bits;
        let t = s + by;
        let drawn = self.integer(Node::Random);
        let mask = self.integer(Node::Times(drawn, 1 << s));
        let (of_mask, top) = self.shift(mask, s, t);
        let top = self.lift(top);

        let scaled = self.integer(Node::Times(now, 1 << s));
        let masked = self.integer(Node::Add(scaled, mask));
        let group = self.group();
        let opened = self.integer(Node::Open {
            from: masked,
            group,
        });
        let of_opened = self.integer(Node::ShiftRight(opened, t));
        let of_opened = self.of_component(Node::Take(of_opened), OPENED);
        let top_of_opened = self.integer(Node::ShiftRight(opened, k - 1));
        let both = self.integer(Node::Scale(top, top_of_opened));
        let wraps = self.integer(Node::Sub(top, both));
        let wraps = self.integer(Node::Times(wraps, 1 << (k - t)));
        let high = self.integer(Node::Sub(of_opened, of_mask));
        self.integer(Node::Add(high, wraps))
    }

    /// The word that ends with wire `last` of `from`, of bits appended to something: what it was appended to, times a power of two, and the
    /// bits as an integer.
    fn word(&mut self, last: Wire) -> Wire {
        let ring = self.from.ring;
        let (mut rest, mut bits) = (last, Vec::new());
        while let Some(Gate::Append(before, bit)) = self.gate(rest) {
            rest = before;
            bits.push(self.at(bit));
        }
        let width = bits.len();
        bits.truncate(ring.bits() as usize);
        let word = self.compose(&bits);
        // Beyond the ring, nothing is left of it.
        let Some(weight) = 1u128.checked_shl(width as u32).map(|w| ring.reduce(w)) else {
            return word;
        };
        match self.gate(rest) {
            Some(Gate::Constant(0)) => word,
            _ if weight == 0 => word,
            _ => {
                let high = self.integer(Node::Times(self.at(rest), weight));
                self.integer(Node::Add(high, word))
            }
        }
    }

    fn gate(&self, wire: Wire) -> Option<Gate> {
        let gate = wire.0.checked_sub(self.inputs)?;
        Some(self.from.gates[gate as usize])
    }

    /// Σ 2^j b_j of bits b_j: c = Σ 2^j b_j + r is added on bits, for a uniform r, and opened; r is subtracted from it.
    fn compose(&mut self, bits: &[Wire]) -> Wire {
        if !self.masks {
            return self.compose_singly(bits);
        }
        let k = self.from.ring.bits();
        let mask = self.integer(Node::Random);
        let mut inputs = Vec::new();
        for component in 0..self.count as u8 {
            for bit in 0..k {
                inputs.push(self.of_component(Node::Bit(mask, bit), component));
            }
        }
        inputs.extend(bits);
        let masked = self.apply(Of::Masked(k, bits.len() as u32), &inputs);
        let group = self.group();
        let mut sum: Option<Wire> = None;
        for (j, bit) in masked.into_iter().enumerate() {
            let opened = self.push(Node::Open { from: bit, group }, Ring::Bits);
            let lifted = self.of_component(Node::Lift(opened), OPENED);
            let term = self.integer(Node::Times(lifted, 1 << j));
            sum = Some(match sum {
                Some(sum) => self.integer(Node::Add(sum, term)),
                None => term,
            });
        }
        let sum = sum.expect("a ring has bits");
        self.integer(Node::Sub(sum, mask))
    }

    /// The same of bits that are lifted one by one.
    fn compose_singly(&mut self, bits: &[Wire]) -> Wire {
        let mut sum = self.integer(Node::Constant(0));
        for (j, bit) in bits.iter().enumerate() {
            let lifted = self.lift(*bit);
            let term = self.integer(Node::Times(lifted, 1 << j));
            sum = self.integer(Node::Add(sum, term));
        }
        sum
    }

    /// A bit as an integer. Where products are checked by MACs, it is the XOR of its components, by products.
    fn lift(&mut self, b: Wire) -> Wire {
        if let Some(Node::ConstantBit(value)) = self.driver(b) {
            return self.integer(Node::Constant(value.into()));
        }
        if self.masks {
            if let Some(wire) = self.raised.get(&b) {
                return *wire;
            }
            let wire = self.integer(Node::Raise(b));
            self.raised.insert(b, wire);
            return wire;
        }
        let components = 0..self.count as u8;
        let inputs: Vec<Wire> = components
            .map(|component| self.of_component(Node::Lift(b), component))
            .collect();
        let made = self.xors.take();
        let made = made.unwrap_or_else(|| xors(self.from.ring, self.count));
        let outputs = self.insert(&made, &inputs);
        self.xors = Some(made);
        outputs[0]
    }

    fn of_component(&mut self, gate: Node, component: u8) -> Wire {
        if let Some(wire) = self.known.get(&(gate, component)) {
            return *wire;
        }
        let ring = match gate {
            Node::Bit(..) => Ring::Bits,
            _ => self.from.ring,
        };
        let wire = self.push(gate, ring);
        self.components.insert(wire.0, component);
        self.known.insert((gate, component), wire);
        wire
    }

    /// Copies the gates of a circuit whose inputs are `inputs`; its outputs.
    fn insert(&mut self, circuit: &Circuit, inputs: &[Wire]) -> Vec<Wire> {
        let mut now = inputs.to_vec();
        for gate in &circuit.gates {
            let wire = match *gate {
                Gate::Constant(c) if circuit.ring == Ring::Bits => {
                    self.push(Node::ConstantBit(c == 1), Ring::Bits)
                }
                gate => self.plain(gate.map_operands(|w| now[w.0 as usize])),
            };
            now.push(wire);
        }
        let wires = circuit.outputs.iter().flat_map(|port| &port.wires);
        wires.map(|w| now[w.0 as usize]).collect()
    }

    fn finish(self) -> Net {
        let mut outputs = self.from.outputs.clone();
        for wire in outputs.iter_mut().flat_map(|port| &mut port.wires) {
            *wire = self.now[wire.0 as usize];
        }
        Net {
            circuit: net::Circuit {
                ring: self.from.ring,
                inputs: self.from.inputs.clone(),
                gates: self.gates,
                outputs,
            },
            components: self.components,
            rings: self.rings,
            macs: Macs::default(),
        }
    }
}

/// Which wires some output needs. What bits are appended to is needed only where the word begins, or where another gate reads it.
fn reached(circuit: &Circuit) -> Vec<bool> {
    let mut needed = vec![false; circuit.wires() as usize];
    let mut passed = vec![false; circuit.wires() as usize];
    for wire in circuit.outputs.iter().flat_map(|port| &port.wires) {
        needed[wire.0 as usize] = true;
    }
    for (index, gate) in circuit.gates.iter().enumerate().rev() {
        let own = circuit.gate_wire(index).0 as usize;
        match *gate {
            _ if !needed[own] && !passed[own] => {}
            Gate::Append(before, bit) => {
                needed[bit.0 as usize] = true;
                passed[before.0 as usize] = true;
            }
            _ => {
                needed[own] = true;
                gate.operands().for_each(|w| needed[w.0 as usize] = true);
            }
        }
    }
    needed
}
