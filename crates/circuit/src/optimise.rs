//! The same function with fewer gates and rounds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Builder, Circuit, Gate, Initial, Reduce, Wire, clock};

/// [`simplify`], [`balance`] and [`schedule`].
///
/// The result computes the same outputs from the same inputs, with at most as many products and at most the depth. The
/// circuit must be valid.
pub fn optimise(circuit: &Circuit) -> Circuit {
    schedule(&balance(&simplify(circuit)))
}

/// Folds constants, makes equal gates once, and drops gates and registers that no output needs, in any cycle.
///
/// A register that has the same public value in every cycle is a constant, and one of a single cycle what it begins as.
pub fn simplify(circuit: &Circuit) -> Circuit {
    let held = clock::held(circuit);
    rebuild(circuit, &held, |b, wires, _, gate| copy(b, wires, gate))
}

/// Rebuilds chains of products so that late factors come last: `((a · b) · c) · d` in two rounds instead of three.
///
/// Only products that nothing else reads are taken apart, so none are added.
pub fn balance(circuit: &Circuit) -> Circuit {
    let chains = Chains::new(circuit);
    rebuild(circuit, &[], |b, wires, own, gate| {
        match gate {
            Gate::Mul(..) if chains.inner[own.0 as usize] => {
                // Made as part of the chain that reads it; nothing else looks at this wire.
                Wire(0)
            }
            Gate::Mul(..) => {
                let mut factors: BinaryHeap<_> = chains
                    .factors(circuit, own)
                    .map(|factor| wires[factor.0 as usize])
                    .map(|wire| Reverse((b.depth(wire), wire)))
                    .collect();
                multiply_all(b, &mut factors)
            }
            _ => copy(b, wires, gate),
        }
    })
}

/// Orders gates by the round in which they can be computed, products first in each round, otherwise as they were.
pub fn schedule(circuit: &Circuit) -> Circuit {
    let depths = circuit.depths();
    let inputs = circuit.sources();
    let mut order: Vec<u32> = (0..circuit.gates.len() as u32).collect();
    // Stable: operands of a linear gate have at most its depth, and stay before it among equals.
    order.sort_by_key(|&gate| {
        let product = matches!(circuit.gates[gate as usize], Gate::Mul(..));
        (depths[(inputs + gate) as usize], !product)
    });
    let mut place: Vec<Wire> = (0..circuit.wires()).map(Wire).collect();
    for (new, &old) in (inputs..).zip(&order) {
        place[(inputs + old) as usize] = Wire(new);
    }
    let map = |wire: Wire| place[wire.0 as usize];
    let mut scheduled = circuit.clone();
    for register in &mut scheduled.clock.registers {
        register.next = map(register.next);
    }
    scheduled.gates = order
        .iter()
        .map(|&gate| circuit.gates[gate as usize].map_operands(map))
        .collect();
    for wire in scheduled
        .outputs
        .iter_mut()
        .flat_map(|port| &mut port.wires)
    {
        *wire = map(*wire);
    }
    scheduled
}

/// Runs the gates of `circuit` through a builder; `gate` adds one and says which wire has its value. A register that `held` has something
/// for is that; a shorter list has nothing for the others.
fn rebuild(
    circuit: &Circuit,
    held: &[Option<Initial>],
    mut gate: impl FnMut(&mut Builder, &[Wire], Wire, Gate) -> Wire,
) -> Circuit {
    let mut b = Builder::new(circuit.ring);
    let mut wires = Vec::with_capacity(circuit.wires() as usize);
    for port in &circuit.inputs {
        wires.extend(b.input(port.name.clone(), port.width, port.per));
    }
    b.cycles(circuit.clock.cycles);
    for (k, register) in circuit.clock.registers.iter().enumerate() {
        let wire = match held.get(k).copied().flatten() {
            Some(Initial::Constant(bit)) => b.constant_bit(bit),
            Some(Initial::Wire(wire)) => wires[wire.0 as usize],
            None => {
                let initial = match register.initial {
                    Initial::Wire(wire) => Initial::Wire(wires[wire.0 as usize]),
                    constant @ Initial::Constant(_) => constant,
                };
                b.register(initial)
            }
        };
        wires.push(wire);
    }
    for &old in &circuit.gates {
        let own = Wire(wires.len() as u32);
        let new = gate(&mut b, &wires, own, old);
        wires.push(new);
    }
    for port in &circuit.outputs {
        let from: Vec<Wire> = port
            .wires
            .iter()
            .map(|wire| wires[wire.0 as usize])
            .collect();
        match port.reduce {
            Reduce::None => b.output(port.name.clone(), &from),
            Reduce::Sum => b.output_sum(port.name.clone(), &from),
            Reduce::EveryCycle => b.output_every_cycle(port.name.clone(), &from),
        }
    }
    for (k, register) in circuit.clock.registers.iter().enumerate() {
        if held.get(k).copied().flatten().is_none() {
            let own = circuit.register_wire(k);
            b.set_next(wires[own.0 as usize], wires[register.next.0 as usize]);
        }
    }
    b.finish_within(&NO_LIMITS)
        .expect("a valid circuit rebuilt with its own ports, and no more gates than wires allow")
}

// What went in was within the caller's limits, and what comes out is no larger.
const NO_LIMITS: crate::Limits = crate::Limits {
    gates: u64::MAX,
    wires: u64::MAX,
    ports: u64::MAX,
    output_wires: u64::MAX,
    cycles: u64::MAX,
    value_bits: u64::MAX,
};

fn copy(b: &mut Builder, wires: &[Wire], gate: Gate) -> Wire {
    let at = |wire: Wire| wires[wire.0 as usize];
    match gate {
        Gate::Bit(x, j) => b.bit(at(x), j),
        Gate::Lift(x) => b.lift(at(x)),
        Gate::ConstantBit(c) => b.constant_bit(c),
        Gate::IsZero(x, bits) => b.is_zero(at(x), bits),
        Gate::ShiftRight { of, by, bits } => b.shift_right(at(of), by, bits),
        Gate::Random(number) => b.random_of(number),
        Gate::RandomBit(number) => b.random_bit_of(number),
        Gate::TruncatePr { of, by, bits } => b.truncate_pr(at(of), by, bits),
        Gate::Append(x, bit) => b.append(at(x), at(bit)),
        Gate::Add(x, y) => b.add(at(x), at(y)),
        Gate::Sub(x, y) => b.sub(at(x), at(y)),
        Gate::Mul(x, y) => b.mul(at(x), at(y)),
        Gate::Plus(x, c) => b.plus(at(x), c),
        Gate::Times(x, c) => b.times(at(x), c),
        Gate::Constant(c) => b.constant(c),
    }
}

/// Products that are only a factor of another product.
struct Chains {
    inner: Vec<bool>,
}

impl Chains {
    fn new(circuit: &Circuit) -> Self {
        let mut readers = vec![0u32; circuit.wires() as usize];
        let mut in_product = vec![false; circuit.wires() as usize];
        for gate in &circuit.gates {
            for wire in gate.operands() {
                readers[wire.0 as usize] = readers[wire.0 as usize].saturating_add(1);
                in_product[wire.0 as usize] |= matches!(gate, Gate::Mul(..));
            }
        }
        for wire in circuit.outputs.iter().flat_map(|port| &port.wires) {
            readers[wire.0 as usize] = u32::MAX;
        }
        for register in &circuit.clock.registers {
            readers[register.next.0 as usize] = u32::MAX;
        }
        let product = |wire| matches!(gate_of(circuit, Wire(wire)), Some(Gate::Mul(..)));
        let inner =
            |wire| product(wire) && in_product[wire as usize] && readers[wire as usize] == 1;
        Self {
            inner: (0..circuit.wires()).map(inner).collect(),
        }
    }

    /// The factors of the chain that ends at `last`.
    fn factors(&self, circuit: &Circuit, last: Wire) -> impl Iterator<Item = Wire> {
        let mut open: Vec<Wire> = gate_of(circuit, last)
            .into_iter()
            .flat_map(|gate| gate.operands())
            .collect();
        std::iter::from_fn(move || {
            loop {
                let wire = open.pop()?;
                match gate_of(circuit, wire) {
                    Some(gate) if self.inner[wire.0 as usize] => open.extend(gate.operands()),
                    _ => return Some(wire),
                }
            }
        })
    }
}

fn gate_of(circuit: &Circuit, wire: Wire) -> Option<Gate> {
    let gate = wire.0.checked_sub(circuit.sources())?;
    circuit.gates.get(gate as usize).copied()
}

/// The product of all factors: always the two earliest, so that the last is as early as it can be (as in Huffman's
/// code).
fn multiply_all(b: &mut Builder, factors: &mut BinaryHeap<Reverse<(u32, Wire)>>) -> Wire {
    loop {
        match (factors.pop(), factors.pop()) {
            (Some(Reverse((_, x))), Some(Reverse((_, y)))) => {
                let product = b.mul(x, y);
                factors.push(Reverse((b.depth(product), product)));
            }
            (Some(Reverse((_, last))), None) => return last,
            (None, _) => unreachable!("a product has factors"),
        }
    }
}
