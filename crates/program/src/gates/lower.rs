//! Changes to a circuit: split inputs, chosen outputs, and AES in counter mode.

use std::collections::HashMap;

use veil_circuit::{
    Builder, Circuit, CircuitError, Gate, Initial, InputPort, Limits, OutputPort, Per, Reduce,
    Wire, generate,
};
use veil_math::Ring;

use crate::raw::RawCombine;

/// How an input port of the original circuit is supplied.
pub(super) struct Supply {
    /// A value per row or one for the job.
    pub(super) per: Per,
    /// Names of the ports that it is made of; usually one.
    pub(super) parts: Vec<String>,
    /// How, if they are several.
    pub(super) combine: RawCombine,
}

/// The circuit with other ports, unless that is too large: `supply` says how each input port is made, `outputs` which output ports remain, under
/// which names, and of which cycles.
pub(super) fn rewire(
    circuit: Circuit,
    supply: &[Supply],
    outputs: &[(usize, String, Reduce)],
) -> Result<Circuit, CircuitError> {
    if supply.iter().all(|supply| supply.parts.len() == 1) {
        return Ok(renamed(circuit, supply, outputs));
    }
    let mut inputs = Vec::new();
    for (port, supply) in circuit.inputs.iter().zip(supply) {
        for name in &supply.parts {
            inputs.push(InputPort {
                name: name.clone(),
                width: port.width,
                per: supply.per,
                bits: false,
            });
        }
    }
    let mut rewired = Circuit {
        ring: circuit.ring,
        inputs,
        gates: Vec::with_capacity(circuit.gates.len()),
        outputs: vec![],
        // Their wires come before those of gates.
        clock: circuit.clock.clone(),
    };
    // Where each wire of the original is now.
    let mut now = Vec::with_capacity(circuit.wires() as usize);
    let mut first = 0;
    for (port, supply) in circuit.inputs.iter().zip(supply) {
        let parts = supply.parts.len() as u32;
        let wires = (first..first + parts * port.width).map(Wire);
        let mut wires: Vec<Wire> = wires.collect();
        if parts > 1 {
            let combined = combined(circuit.ring, port.width, parts, supply.combine)?;
            append(&mut rewired, &combined.gates, &mut wires);
            let outputs = combined.outputs[0].wires.iter();
            wires = outputs.map(|wire| wires[wire.0 as usize]).collect();
        }
        now.extend(wires);
        first += parts * port.width;
    }
    let registers = circuit.clock.registers.len();
    now.extend((0..registers).map(|k| rewired.register_wire(k)));
    append(&mut rewired, &circuit.gates, &mut now);
    for register in &mut rewired.clock.registers {
        register.next = now[register.next.0 as usize];
        if let Initial::Wire(wire) = &mut register.initial {
            *wire = now[wire.0 as usize];
        }
    }
    for (index, name, reduce) in outputs {
        let port = &circuit.outputs[*index];
        let wires = port.wires.iter().map(|wire| now[wire.0 as usize]).collect();
        rewired.outputs.push(OutputPort {
            name: name.clone(),
            wires,
            reduce: *reduce,
        });
    }
    Ok(rewired)
}

/// The circuit with as many input ports as it has, under other names: its wires and gates stay what they are.
fn renamed(
    mut circuit: Circuit,
    supply: &[Supply],
    outputs: &[(usize, String, Reduce)],
) -> Circuit {
    for (port, supply) in circuit.inputs.iter_mut().zip(supply) {
        port.name.clone_from(&supply.parts[0]);
        port.per = supply.per;
    }
    let chosen = outputs.iter().map(|(index, name, reduce)| OutputPort {
        name: name.clone(),
        wires: circuit.outputs[*index].wires.clone(),
        reduce: *reduce,
    });
    circuit.outputs = chosen.collect();
    circuit
}

/// What several words are together, as a circuit: of bits their XOR, or their sum modulo 2 to their width; of integers their sums. Unless
/// that is too large, which is said before anything of that size is made.
fn combined(
    ring: Ring,
    width: u32,
    parts: u32,
    combine: RawCombine,
) -> Result<Circuit, CircuitError> {
    // Gates of two bits that are combined: those of a full adder, or one.
    let each = match combine {
        RawCombine::Sum if ring == Ring::Bits => 5,
        RawCombine::Sum | RawCombine::Xor => 1,
    };
    let (what, limit) = ("gates", Limits::default().gates);
    let found = u64::from(parts - 1) * u64::from(width) * each;
    if found > limit {
        return Err(CircuitError::TooLarge { what, found, limit });
    }
    let mut b = Builder::new(ring);
    let all = b.input("parts", parts * width, Per::Row);
    let words: Vec<Vec<Wire>> = all
        .chunks(width.max(1) as usize)
        .map(<[Wire]>::to_vec)
        .collect();
    let whole = match combine {
        RawCombine::Sum if ring == Ring::Bits => generate::sum(&mut b, &words, generate::Aim::Size),
        // Addition of integers, or of bits.
        RawCombine::Sum | RawCombine::Xor => {
            let mut words = words.into_iter();
            let first = words.next().unwrap_or_default();
            words.fold(first, |sum, word| {
                let pairs = sum.into_iter().zip(word);
                pairs.map(|(x, y)| b.add(x, y)).collect()
            })
        }
    };
    b.output("whole", &whole);
    b.finish()
}

/// Copies gates; `now` maps the wires that they read, and grows by those that they drive.
fn append(circuit: &mut Circuit, gates: &[Gate], now: &mut Vec<Wire>) {
    let inputs = circuit.sources();
    for gate in gates {
        let at = |wire: Wire| now[wire.0 as usize];
        circuit.gates.push(gate.map_operands(at));
        now.push(Wire(inputs + circuit.gates.len() as u32 - 1));
    }
}

/// A block cipher in counter mode: `out = data XOR cipher(key, counter)`, from a circuit with ports `key`, `block` and
/// `out` (NIST SP 800-38A, section 6.5).
pub(super) fn counter_mode(cipher: &Circuit) -> Circuit {
    let [key, block] = cipher.inputs.as_slice() else {
        unreachable!("a block cipher has two inputs")
    };
    let data = InputPort {
        name: "data".into(),
        width: block.width,
        per: Per::Row,
        bits: false,
    };
    let counter = InputPort {
        name: "counter".into(),
        per: Per::Row,
        ..block.clone()
    };
    let inputs = vec![key.clone(), counter, data];
    let mut circuit = Circuit {
        ring: cipher.ring,
        inputs,
        gates: Vec::new(),
        outputs: Vec::new(),
        clock: veil_circuit::Clock::default(),
    };
    let mut now: Vec<Wire> = (0..key.width + block.width).map(Wire).collect();
    append(&mut circuit, &cipher.gates, &mut now);
    let wires = (cipher.outputs[0]
        .wires
        .iter()
        .zip(key.width + block.width..))
    .map(|(stream, data)| {
        circuit
            .gates
            .push(Gate::Add(now[stream.0 as usize], Wire(data)));
        circuit.gate_wire(circuit.gates.len() - 1)
    })
    .collect();
    circuit.outputs.push(OutputPort {
        name: "out".into(),
        wires,
        reduce: veil_circuit::Reduce::None,
    });
    circuit
}

/// Names that are not there yet: the second `out` becomes `out 2`.
pub(super) fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    names
        .map(|name| {
            let count = seen.entry(name.clone()).or_insert(0);
            *count += 1;
            if *count == 1 {
                name
            } else {
                format!("{name} {count}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_wide_words_are_refused_and_their_xor_is_not() {
        let circuit = Circuit {
            ring: Ring::Bits,
            inputs: vec![InputPort {
                name: "x".into(),
                width: 1 << 22,
                per: Per::Row,
                bits: false,
            }],
            gates: vec![],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: vec![Wire(0)],
                reduce: veil_circuit::Reduce::None,
            }],
            clock: veil_circuit::Clock::default(),
        };
        let made = |combine| {
            let supply = Supply {
                per: Per::Row,
                parts: ["a", "b"].map(String::from).into(),
                combine,
            };
            rewire(circuit.clone(), &[supply], &[(0, "z".into(), Reduce::None)])
        };
        let xor = made(RawCombine::Xor).expect("a gate per bit");
        assert_eq!(xor.gates.len(), 1 << 22);
        let refused = made(RawCombine::Sum).expect_err("20 million gates are too many");
        assert!(
            matches!(refused, CircuitError::TooLarge { found, .. } if found == 5 << 22),
            "{refused}"
        );
    }
}
