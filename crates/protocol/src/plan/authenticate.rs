//! Values with MACs: for every value x that a product depends on, the parties also compute r x, for one shared key r
//! that no party knows.
//!
//! The MAC of an input, or of a value converted from bits, is a product with r; MACs of linear gates are linear gates; and the MAC of x y
//! is the product (r x) y. A party that adds an error to the message of a product or of its MAC makes a value and a MAC that do not fit,
//! and has to know r to make them fit again (Chida, Genkin, Hamada, Ikarashi, Kikuchi, Lindell, Nof, *Fast Large-Scale Honest- Majority MPC
//! for Malicious Adversaries*, CRYPTO 2018). `docs/protocol-rep3.md` has the check.

use std::collections::HashMap;

use veil_circuit::{InputPort, OutputPort, Per, Wire};
use veil_math::Ring;

use super::net::{Circuit, Gate, Net};

/// MACs of a circuit's wires. A circuit without MACs has the default.
#[derive(Clone, Default)]
pub(super) struct Macs {
    /// The wire of its MAC, for each product, and for each sum that may become one product with others.
    pub(super) of: HashMap<u32, Wire>,
    /// What each product is that exists for a MAC's sake.
    pub(super) kind: HashMap<u32, Kind>,
    /// The input wires of the job whose MACs are the last input port, in order.
    pub(super) of_inputs: Vec<Wire>,
}

/// A product that is not the circuit's own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The MAC of a product, or of a sum of products.
    Mac,
    /// The product of a value that is in a slot, operand 0, with r.
    Authentication,
}

impl Macs {
    /// Whether the products of the circuit have MACs.
    pub(super) fn kind(&self, wire: Wire) -> Option<Kind> {
        self.kind.get(&wire.0).copied()
    }

    /// The MAC of a wire, if it has one that is checked.
    pub(super) fn of(&self, wire: Wire) -> Option<Wire> {
        self.of.get(&wire.0).copied()
    }
}

/// The wire of r: a job-wide value, the first input.
const KEY: Wire = Wire(0);

/// Wires from here on are MACs of inputs of the job, until it is known how many there are.
const MACS_OF_INPUTS: u32 = 1 << 31;

/// Linear gates that are looked at to see which operand of a product is cheaper to authenticate.
const LOOKED_AT: usize = 64;

/// The net of a circuit over integers with MACs. Its first input port is r; if there are MACs of job-wide values, they are its last.
pub(super) fn authenticated(net: &Net) -> Net {
    let mut copy = Authenticating::new(net);
    copy.run();
    copy.finish()
}

struct Authenticating<'n> {
    net: &'n Net,
    from: &'n Circuit,
    /// Which wires some output needs.
    needed: Vec<bool>,
    /// How many gates read a wire.
    readers: Vec<u32>,
    /// Which wires have one value in the whole job.
    job: Vec<bool>,
    /// The values of public wires.
    public: Vec<Option<u128>>,
    /// Where each wire of `from` is now, and its MAC if that was made.
    now: Vec<Wire>,
    mac: Vec<Option<Wire>>,
    gates: Vec<Gate>,
    inputs: u32,
    components: HashMap<u32, u8>,
    macs: Macs,
}

impl<'n> Authenticating<'n> {
    fn new(net: &'n Net) -> Self {
        let from = &net.circuit;
        let (inputs, wires) = (from.input_wires(), from.wires() as usize);
        let of_port =
            |port: &InputPort| std::iter::repeat_n(port.per == Per::Job, port.width as usize);
        let mut readers = vec![0; wires];
        for operand in from.gates.iter().flat_map(Gate::operands) {
            readers[operand.0 as usize] += 1;
        }
        Authenticating {
            net,
            from,
            readers,
            needed: from.reached(),
            job: from.inputs.iter().flat_map(of_port).collect(),
            public: vec![None; inputs as usize],
            now: (0..inputs).map(|w| Wire(w + 1)).collect(),
            mac: vec![None; wires],
            gates: Vec::new(),
            inputs: inputs + 1,
            components: HashMap::new(),
            macs: Macs::default(),
        }
    }

    fn push(&mut self, gate: Gate) -> Wire {
        self.gates.push(gate);
        Wire(self.inputs + self.gates.len() as u32 - 1)
    }

    fn gate(&self, wire: Wire) -> Option<Gate> {
        let gate = wire.0.checked_sub(self.from.input_wires())?;
        Some(self.from.gates[gate as usize])
    }

    fn is_integer(&self, wire: Wire) -> bool {
        self.net.rings[wire.0 as usize] != Ring::Bits
    }

    fn run(&mut self) {
        for (index, &gate) in self.from.gates.iter().enumerate() {
            let wire = self.from.gate_wire(index);
            let job = !gate.converts() && gate.operands().all(|o| self.job[o.0 as usize]);
            let public = self.is_integer(wire).then(|| self.known(gate)).flatten();
            self.job.push(job);
            self.public.push(public);
            let now = match gate {
                // No output needs it.
                _ if !self.needed[wire.0 as usize] => KEY,
                _ if public.is_some() => {
                    self.push(Gate::Constant(public.expect("looked at just now")))
                }
                Gate::Mul(a, b) if self.is_integer(wire) => self.product(wire, a, b),
                _ => {
                    let now = gate.map_operands(|w| self.now[w.0 as usize]);
                    self.push(now)
                }
            };
            if let Some(component) = self.net.components.get(&wire.0) {
                self.components.insert(now.0, *component);
            }
            self.now.push(now);
            if let Gate::Add(a, b) = gate
                && self.needed[wire.0 as usize]
                && self.sums_products(a)
                && self.sums_products(b)
            {
                let mac = self.mac_of(wire);
                self.macs.of.insert(now.0, mac);
                self.macs.kind.insert(mac.0, Kind::Mac);
            }
        }
    }

    /// The value of a gate of public operands.
    fn known(&self, gate: Gate) -> Option<u128> {
        let (ring, public) = (self.from.ring, |w: Wire| self.public[w.0 as usize]);
        Some(match gate {
            Gate::Constant(c) => c,
            Gate::Add(a, b) => ring.add(public(a)?, public(b)?),
            Gate::Sub(a, b) => ring.sub(public(a)?, public(b)?),
            Gate::Mul(a, b) => ring.mul(public(a)?, public(b)?),
            Gate::Plus(a, c) => ring.add(public(a)?, c),
            Gate::Times(a, c) => ring.mul(public(a)?, c),
            _ => return None,
        })
    }

    /// Whether a wire is a product, or a sum of products and nothing else.
    fn sums_products(&self, wire: Wire) -> bool {
        self.macs.of.contains_key(&self.now[wire.0 as usize].0)
    }

    /// A product and its MAC: that of one operand, times the other.
    fn product(&mut self, wire: Wire, a: Wire, b: Wire) -> Wire {
        let public = |w: Wire| self.public[w.0 as usize];
        if let Some((other, c)) = (public(b).map(|c| (a, c))).or(public(a).map(|c| (b, c))) {
            return self.push(Gate::Times(self.now[other.0 as usize], c));
        }
        // A MAC of what many gates read will be of use to other products.
        let price = |w: Wire| (self.missing(w), u32::MAX - self.readers[w.0 as usize]);
        let (a, b) = if price(b) < price(a) { (b, a) } else { (a, b) };
        let mac = self.mac_of(a);
        let [a, b] = [a, b].map(|w| self.now[w.0 as usize]);
        let product = self.push(Gate::Mul(a, b));
        let mac = self.push(Gate::Mul(mac, b));
        self.mac[wire.0 as usize] = Some(mac);
        self.macs.of.insert(product.0, mac);
        self.macs.kind.insert(mac.0, Kind::Mac);
        product
    }

    /// Values of rows that have to be authenticated for a MAC of `wire`; of a large sum, those that are seen soon.
    fn missing(&self, wire: Wire) -> usize {
        let (mut stack, mut seen, mut missing) = (vec![wire], Vec::new(), 0);
        while let Some(w) = stack.pop() {
            let known = self.mac[w.0 as usize].is_some() || self.job[w.0 as usize];
            if known || seen.contains(&w) || seen.len() > LOOKED_AT {
                continue;
            }
            seen.push(w);
            match self.linear(w) {
                Some(gate) => stack.extend(gate.operands()),
                None => missing += 1,
            }
        }
        missing
    }

    /// The gate of a wire, if its MAC follows from those of its operands.
    fn linear(&self, wire: Wire) -> Option<Gate> {
        let public = self.public[wire.0 as usize].map(Gate::Constant);
        let gate = public.or_else(|| self.gate(wire))?;
        match gate {
            // Times a public one, or else it has a MAC.
            Gate::Mul(a, b) => {
                let public = |w: Wire| self.public[w.0 as usize];
                let by_b = public(b).map(|c| Gate::Times(a, c));
                by_b.or_else(|| public(a).map(|c| Gate::Times(b, c)))
            }
            Gate::Add(..)
            | Gate::Sub(..)
            | Gate::Plus(..)
            | Gate::Times(..)
            | Gate::Constant(_)
            | Gate::ConstantBit(_) => Some(gate),
            Gate::Bit(..)
            | Gate::Lift(_)
            | Gate::ShiftRight(..)
            | Gate::Random
            | Gate::Take(_)
            | Gate::Scale(..) => None,
            Gate::Open { .. } | Gate::Raise(_) | Gate::Truncate { .. } | Gate::Digit { .. } => {
                unreachable!("with codes nothing is sent but products")
            }
        }
    }

    /// The MAC of a wire, made of those of what it depends on, operands first.
    fn mac_of(&mut self, root: Wire) -> Wire {
        let mut stack = vec![root];
        while let Some(&wire) = stack.last() {
            if self.mac[wire.0 as usize].is_some() {
                stack.pop();
                continue;
            }
            let gate = self.linear(wire);
            let before = stack.len();
            let operands = gate.iter().flat_map(Gate::operands);
            stack.extend(operands.filter(|o| self.mac[o.0 as usize].is_none()));
            if stack.len() > before {
                continue;
            }
            let mac = |w: Wire| self.mac[w.0 as usize].expect("operands have MACs by now");
            let made = match gate {
                None if self.job[wire.0 as usize] => {
                    let of_inputs = &mut self.macs.of_inputs;
                    let mac = Wire(MACS_OF_INPUTS + of_inputs.len() as u32);
                    of_inputs.push(self.now[wire.0 as usize]);
                    self.mac[wire.0 as usize] = Some(mac);
                    continue;
                }
                None => Gate::Mul(self.now[wire.0 as usize], KEY),
                Some(Gate::Plus(a, c)) => {
                    let a = mac(a);
                    let of_constant = self.push(Gate::Times(KEY, c));
                    Gate::Add(a, of_constant)
                }
                Some(Gate::Constant(c)) => Gate::Times(KEY, c),
                Some(gate) => gate.map_operands(mac),
            };
            let made = self.push(made);
            if gate.is_none() {
                self.macs.kind.insert(made.0, Kind::Authentication);
            }
            self.mac[wire.0 as usize] = Some(made);
        }
        self.mac[root.0 as usize].expect("it was made just now")
    }

    /// The number of a wire once there are inputs for MACs of inputs.
    fn at(&self, wire: Wire) -> Wire {
        let more = self.macs.of_inputs.len() as u32;
        Wire(match wire.0 {
            w if w >= MACS_OF_INPUTS => self.inputs + w - MACS_OF_INPUTS,
            w if w >= self.inputs => w + more,
            w => w,
        })
    }

    fn finish(self) -> Net {
        let port = |name: &str, width| InputPort {
            name: name.into(),
            width,
            per: Per::Job,
            bits: false,
        };
        let mut inputs = vec![port("the key of the codes", 1)];
        inputs.extend(self.from.inputs.iter().cloned());
        let more = self.macs.of_inputs.len() as u32;
        inputs.extend((more > 0).then(|| port("codes", more)));
        let outputs = self.from.outputs.iter().map(|port| OutputPort {
            wires: (port.wires.iter().map(|w| self.at(self.now[w.0 as usize]))).collect(),
            ..port.clone()
        });
        let circuit = Circuit {
            ring: self.from.ring,
            inputs,
            gates: (self.gates.iter().map(|g| g.map_operands(|w| self.at(w)))).collect(),
            outputs: outputs.collect(),
        };
        let at = |wire: &u32| self.at(Wire(*wire)).0;
        let macs = Macs {
            of: (self.macs.of.iter().map(|(w, mac)| (at(w), self.at(*mac)))).collect(),
            kind: (self.macs.kind.iter().map(|(w, kind)| (at(w), *kind))).collect(),
            of_inputs: self.macs.of_inputs.clone(),
        };
        // Bits are where they were; all else, and all MACs, are integers.
        let mut rings = vec![self.from.ring; circuit.wires() as usize];
        for (old, now) in self
            .now
            .iter()
            .enumerate()
            .filter(|(old, _)| self.needed[*old])
        {
            rings[self.at(*now).0 as usize] = self.net.rings[old];
        }
        Net {
            rings,
            circuit,
            components: (self.components.iter().map(|(w, c)| (at(w), *c))).collect(),
            macs,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veil_circuit::{Builder, Circuit as Plain, Gate as Of, OutputPort, Reduce};

    use super::*;

    /// A net without conversions, as a circuit that can be evaluated.
    fn plain(circuit: &Circuit) -> Plain {
        let gate = |gate: &Gate| match *gate {
            Gate::Add(a, b) => Of::Add(a, b),
            Gate::Sub(a, b) => Of::Sub(a, b),
            Gate::Mul(a, b) => Of::Mul(a, b),
            Gate::Plus(a, c) => Of::Plus(a, c),
            Gate::Times(a, c) => Of::Times(a, c),
            Gate::Constant(c) => Of::Constant(c),
            _ => unreachable!("there are no conversions"),
        };
        Plain {
            ring: circuit.ring,
            inputs: circuit.inputs.clone(),
            gates: circuit.gates.iter().map(gate).collect(),
            outputs: circuit.outputs.clone(),
            clock: veil_circuit::Clock::default(),
        }
    }

    /// A gate of a random circuit: what it is, and which wires it reads.
    type Step = (u8, usize, usize, u64);

    fn circuit(steps: &[Step]) -> Plain {
        let mut b = Builder::new(Ring::Z64);
        let mut wires = b.input("x", 3, Per::Row);
        wires.extend(b.input("k", 2, Per::Job));
        for &(kind, i, j, c) in steps {
            let (x, y) = (wires[i % wires.len()], wires[j % wires.len()]);
            wires.push(match kind {
                0..=2 => b.mul(x, y),
                3 | 4 => b.add(x, y),
                5 => b.sub(x, y),
                6 => b.plus(x, c.into()),
                7 => b.times(x, c.into()),
                _ => b.constant(c.into()),
            });
        }
        let last = wires.len() - wires.len().min(4);
        b.output("z", &wires[last..]);
        b.output_sum("sum", &wires[last..]);
        b.finish().expect("a valid circuit")
    }

    proptest! {
        /// Beside the values that the circuit makes, each MAC is r times what it is of, and every product has one.
        #[test]
        fn macs_are_products_with_the_key(
            steps in prop::collection::vec((0..9u8, any::<usize>(), any::<usize>(), any::<u64>()), 1..40),
            inputs in prop::array::uniform5(any::<u64>()),
            key: u64,
        ) {
            let clear = circuit(&steps);
            let authenticated = authenticated(&Net::of(&clear, 3, false));
            let mut all = plain(&authenticated.circuit);
            all.validate().expect("a valid circuit");
            // Of each MAC its wire and that of what it is of.
            let mut pairs: Vec<(Wire, Wire)> =
                authenticated.macs.of.iter().map(|(value, mac)| (Wire(*value), *mac)).collect();
            for (index, gate) in all.gates.iter().enumerate() {
                let wire = all.gate_wire(index);
                match (gate, authenticated.macs.kind(wire)) {
                    (Of::Mul(value, key), Some(Kind::Authentication)) => {
                        prop_assert_eq!(*key, KEY);
                        pairs.push((*value, wire));
                    }
                    (Of::Mul(..), None) => prop_assert!(authenticated.macs.of(wire).is_some()),
                    _ => {}
                }
            }
            for (k, wires) in [0, 1].map(|k| pairs.iter().map(|p| [p.0, p.1][k]).collect()).into_iter().enumerate() {
                all.outputs.push(OutputPort { name: format!("pairs {k}"), wires, reduce: Reduce::None });
            }
            let inputs = inputs.map(u128::from);
            let key = u128::from(key);
            let (x, k) = (inputs[..3].to_vec(), inputs[3..].to_vec());
            let mut ports = vec![vec![key], x.clone(), k.clone()];
            if !authenticated.macs.of_inputs.is_empty() {
                let of = authenticated.macs.of_inputs.iter();
                ports.push(of.map(|w| Ring::Z64.mul(key, inputs[w.0 as usize - 1])).collect());
            }
            let mut found = all.evaluate(&ports).expect("ports that fit");
            let (macs, values) = (found.pop().expect("codes"), found.pop().expect("values"));
            prop_assert_eq!(found, clear.evaluate(&[x, k]).expect("ports that fit"));
            let wanted: Vec<u128> = values.iter().map(|v| Ring::Z64.mul(key, *v)).collect();
            prop_assert_eq!(macs, wanted);
        }
    }
}
