//! A circuit of bits as what a party does: sums, complements and products of columns.

use veil_circuit::{Circuit, Gate};

use super::Unfit;

/// What makes a value of earlier ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// An input wire.
    Input,
    /// A sum.
    Xor(u32, u32),
    /// A sum with the public constant 1.
    Not(u32),
    /// A product.
    And(u32, u32),
}

impl Step {
    /// The values that it reads.
    pub(super) fn operands(self) -> impl Iterator<Item = u32> {
        let (a, b) = match self {
            Step::Input => (None, None),
            Step::Not(a) => (Some(a), None),
            Step::Xor(a, b) | Step::And(a, b) => (Some(a), Some(b)),
        };
        a.into_iter().chain(b)
    }

    pub(super) fn is_product(self) -> bool {
        matches!(self, Step::And(..))
    }

    const fn kind(self) -> u64 {
        match self {
            Step::Input => 1,
            Step::Xor(..) => 2,
            Step::Not(_) => 3,
            Step::And(..) => 4,
        }
    }
}

/// What a wire of the circuit is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// The result of a step.
    Step(u32),
    /// A public bit.
    Constant(bool),
}

/// A circuit, each value after what it is made of. Inputs are in the order of their wires.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Graph {
    pub(super) steps: Vec<Step>,
    /// Output wires, port by port.
    pub(super) outputs: Vec<Value>,
}

impl Graph {
    /// Of a circuit over bits, in which constants were folded.
    pub(super) fn of(circuit: &Circuit) -> Result<Self, Unfit> {
        let mut graph = Graph::default();
        let mut wires: Vec<Value> = (0..circuit.input_wires()).map(|_| graph.input()).collect();
        for gate in &circuit.gates {
            let at = |wire: veil_circuit::Wire| wires[wire.0 as usize];
            let public = |c: u128| Value::Constant(c & 1 == 1);
            let wire = match *gate {
                Gate::Add(a, b) | Gate::Sub(a, b) => graph.sum(at(a), at(b)),
                Gate::Plus(a, c) => graph.sum(at(a), public(c)),
                Gate::Mul(a, b) => graph.product(at(a), at(b)),
                Gate::Times(a, c) => graph.product(at(a), public(c)),
                Gate::Constant(c) => public(c),
                _ => return Err(Unfit::Integers),
            };
            wires.push(wire);
        }
        let outputs = circuit.outputs.iter().flat_map(|port| &port.wires);
        graph.outputs = outputs.map(|wire| wires[wire.0 as usize]).collect();
        Ok(graph)
    }

    /// One more input.
    pub(crate) fn input(&mut self) -> Value {
        self.step(Step::Input)
    }

    /// A sum.
    pub(crate) fn sum(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Step(a), Value::Step(b)) if a == b => Value::Constant(false),
            (Value::Step(a), Value::Step(b)) => self.step(Step::Xor(a, b)),
            (Value::Step(a), Value::Constant(true)) | (Value::Constant(true), Value::Step(a)) => {
                self.step(Step::Not(a))
            }
            (a, Value::Constant(false)) | (Value::Constant(false), a) => a,
            (Value::Constant(true), Value::Constant(true)) => Value::Constant(false),
        }
    }

    /// A product.
    pub(crate) fn product(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Constant(false), _) | (_, Value::Constant(false)) => Value::Constant(false),
            (Value::Constant(true), other) | (other, Value::Constant(true)) => other,
            (Value::Step(x), Value::Step(y)) if x == y => a,
            (Value::Step(x), Value::Step(y)) => self.step(Step::And(x, y)),
        }
    }

    /// One more output.
    pub(crate) fn output(&mut self, value: Value) {
        self.outputs.push(value);
    }

    /// Inputs.
    pub(super) fn inputs(&self) -> u32 {
        let inputs = self.steps.iter().filter(|step| **step == Step::Input);
        inputs.count() as u32
    }

    /// Values that are made, and inputs.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    fn step(&mut self, step: Step) -> Value {
        self.steps.push(step);
        Value::Step(self.steps.len() as u32 - 1)
    }

    /// How many products there are, one after the other, until a value is there.
    pub(super) fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let before = step.operands().map(|of| depths[of as usize]).max();
            depths.push(before.unwrap_or(0) + u32::from(step.is_product()));
        }
        depths
    }

    /// A number for each value that says what is made of it, `readers` steps far, and what it is made of, `operands` steps far. What has the same
    /// number is likely to be the same place of parts of the circuit that are alike, as S-boxes are (Weisfeiler, Leman, "A Reduction of a Graph to a
    /// Canonical Form", 1968).
    pub(super) fn neighbourhoods(&self, readers: u32, operands: u32) -> Vec<u64> {
        let kinds: Vec<u64> = self.steps.iter().map(|step| mix(step.kind())).collect();
        let mut of = kinds.clone();
        for _ in 0..readers {
            let mut next = kinds.clone();
            for (at, step) in self.steps.iter().enumerate() {
                for (side, operand) in (1..).zip(step.operands()) {
                    let next = &mut next[operand as usize];
                    *next = next.wrapping_add(mix(of[at] ^ side));
                }
            }
            of = next;
        }
        for _ in 0..operands {
            let mut next: Vec<u64> = of.iter().map(|of| mix(*of)).collect();
            for (at, step) in self.steps.iter().enumerate() {
                for (side, operand) in (1..).zip(step.operands()) {
                    next[at] = next[at].wrapping_add(mix(of[operand as usize] ^ side));
                }
            }
            of = next;
        }
        of
    }
}

/// Bits that follow from all bits (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
