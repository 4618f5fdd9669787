//! Changes to a circuit: split inputs, chosen outputs, and AES in counter mode.

use std::collections::HashMap;

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Wire};

/// How an input port of the original circuit is supplied.
pub(super) struct Supply {
    /// A value per row or one for the job.
    pub(super) per: Per,
    /// Names of the ports whose XOR it is; usually one.
    pub(super) parts: Vec<String>,
}

/// The circuit with other ports: `supply` says how each input port is made, `outputs` which output ports remain, under
/// which names.
pub(super) fn rewire(circuit: &Circuit, supply: &[Supply], outputs: &[(usize, String)]) -> Circuit {
    let mut inputs = Vec::new();
    for (port, supply) in circuit.inputs.iter().zip(supply) {
        for name in &supply.parts {
            inputs.push(InputPort {
                name: name.clone(),
                width: port.width,
                per: supply.per,
            });
        }
    }
    let mut rewired = Circuit {
        ring: circuit.ring,
        inputs,
        gates: Vec::with_capacity(circuit.gates.len()),
        outputs: vec![],
    };
    let input_wires = rewired.input_wires();
    // Where each wire of the original is now.
    let mut now = Vec::with_capacity(circuit.wires() as usize);
    let mut first = 0;
    for (port, supply) in circuit.inputs.iter().zip(supply) {
        for bit in 0..port.width {
            let mut wire = Wire(first + bit);
            for part in 1..supply.parts.len() as u32 {
                rewired
                    .gates
                    .push(Gate::Add(wire, Wire(first + part * port.width + bit)));
                wire = Wire(input_wires + rewired.gates.len() as u32 - 1);
            }
            now.push(wire);
        }
        first += supply.parts.len() as u32 * port.width;
    }
    append(&mut rewired, &circuit.gates, &mut now);
    for (index, name) in outputs {
        let port = &circuit.outputs[*index];
        let wires = port.wires.iter().map(|wire| now[wire.0 as usize]).collect();
        rewired.outputs.push(OutputPort {
            name: name.clone(),
            wires,
            reduce: port.reduce,
        });
    }
    rewired
}

/// Copies gates; `now` maps the wires that they read, and grows by those that they drive.
fn append(circuit: &mut Circuit, gates: &[Gate], now: &mut Vec<Wire>) {
    let inputs = circuit.input_wires();
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
