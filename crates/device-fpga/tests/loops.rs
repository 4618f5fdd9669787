//! Sequential circuits on the core: what it garbles is evaluated by an evaluator of this file, and compared with the clear computation.

use std::path::Path;

use crate::common::{PUBLISHED, product};
use veil_circuit::{
    Circuit, Clock, Gate, InputPort, Limits, OutputPort, Per, Reduce, Wire, make, scd,
};
use veil_device_fpga::garble::body::{Of, Value};
use veil_device_fpga::garble::circuit::{Each, Sequential};
use veil_device_fpga::garble::{Capacity, Image};
use veil_device_fpga::{Garbler, Run, Simulated, Stalls, Streams};
use veil_testkit::{Numbers, Seed, clocked};

/// Bits of the circuit's inputs and their zero-labels.
struct Inputs {
    run: Vec<(bool, u128)>,
    /// `[cycle][input]`.
    cycles: Vec<Vec<(bool, u128)>>,
}

impl Inputs {
    fn new(circuit: &Circuit, numbers: &mut Numbers) -> Self {
        let width = |each: bool| {
            let ports = circuit
                .inputs
                .iter()
                .filter(|port| (port.per == Per::Cycle) == each);
            ports.map(|port| port.width).sum::<u32>()
        };
        let mut some = |n: u32| -> Vec<(bool, u128)> {
            (0..n)
                .map(|_| (numbers.below(2) == 1, label(numbers)))
                .collect()
        };
        Inputs {
            run: some(width(false)),
            cycles: (0..circuit.clock.cycles)
                .map(|_| some(width(true)))
                .collect(),
        }
    }

    /// As the ports of the circuit take them.
    fn of_ports(&self, circuit: &Circuit) -> Vec<Vec<u128>> {
        let (mut of_run, mut of_cycle) = (0, 0);
        let port = |port: &veil_circuit::InputPort| {
            let width = port.width as usize;
            let bits = |all: &[(bool, u128)], from: usize| -> Vec<u128> {
                all[from..from + width]
                    .iter()
                    .map(|(bit, _)| u128::from(*bit))
                    .collect()
            };
            if port.per == Per::Cycle {
                of_cycle += width;
                self.cycles
                    .iter()
                    .flat_map(|all| bits(all, of_cycle - width))
                    .collect()
            } else {
                of_run += width;
                bits(&self.run, of_run - width)
            }
        };
        circuit.inputs.iter().map(port).collect()
    }

    /// Bit and zero-label of a constant or an input of the run.
    fn known(&self, value: Value, offset: u128) -> (bool, u128) {
        let (bit, label) = match value.of {
            Of::Run(input) => self.run[input as usize],
            _ => (false, 0),
        };
        (bit != value.not, label ^ if value.not { offset } else { 0 })
    }

    /// Of an input of every repetition.
    fn each(&self, each: &Each, cycle: usize, offset: u128) -> (bool, u128) {
        if let Some(first) = each.first.get(cycle) {
            return self.known(*first, offset);
        }
        match each.then.of {
            Of::Each { input, .. } => {
                let (bit, label) = self.cycles[cycle - each.first.len()][input as usize];
                let not = each.then.not;
                (bit != not, label ^ if not { offset } else { 0 })
            }
            _ => self.known(each.then, offset),
        }
    }
}

fn label(numbers: &mut Numbers) -> u128 {
    numbers.next_u128()
}

/// Garbles a circuit on a core, evaluates it, and compares. Says how many cycles the run took; nothing without Verilator.
fn right(circuit: &Circuit, (rows, stalls): (u32, Stalls), seed: Seed) -> Option<u64> {
    let Ok(mut garbler) = Garbler::simulated(rows, stalls) else {
        println!("skipped: no garbler of {rows} rows in this build");
        return None;
    };
    let mut numbers = seed.numbers("labels");
    let sequential = Sequential::of(circuit).expect("it is of bits");
    let cycles = sequential.cycles as usize;
    let capacity: &Capacity = garbler.capacity();
    let image = Image::of(&sequential.body, capacity, sequential.cycles).expect("it fits");
    let (offset, start) = (label(&mut numbers) | 1, label(&mut numbers));
    let inputs = Inputs::new(circuit, &mut numbers);
    let each = |input: u32, cycle| inputs.each(&sequential.each[input as usize], cycle, offset);
    let mut labels: Vec<u8> = Vec::new();
    for input in &image.run_inputs {
        labels.extend(inputs.run[*input as usize].1.to_le_bytes());
    }
    for cycle in 0..cycles {
        for input in &image.each_inputs {
            labels.extend(each(*input, cycle).1.to_le_bytes());
        }
    }
    let (mut tables, mut leaves) = (Vec::new(), Vec::new());
    let run = Run {
        repetitions: cycles as u32,
        first: numbers.below(1 << 40),
        instance: numbers.below(1 << 16) as u16,
        rows: false,
        leave_from: 0,
    };
    let mut streams = Streams {
        labels: &labels,
        tables: &mut tables,
        leaves: &mut leaves,
    };
    garbler.load(&image).expect("it fits");
    let took = garbler.run(&image, &run, (offset, start), &mut streams);
    let took = took.expect("it runs");

    // The evaluator: active labels only.
    let tables = tables.as_chunks::<16>().0;
    let leaves: Vec<u128> = leaves
        .as_chunks::<16>()
        .0
        .iter()
        .map(|bytes| u128::from_le_bytes(*bytes))
        .collect();
    let body = &sequential.body;
    let active = |(bit, label): (bool, u128)| label ^ if bit { offset } else { 0 };
    let mut results: Vec<Vec<u128>> = Vec::new();
    let mut opened: Vec<Vec<u128>> = Vec::new();
    for cycle in 0..cycles {
        results.push(Vec::new());
        let read = |results: &[Vec<u128>], of: Of| match of {
            Of::Zero => 0,
            Of::Run(input) => active(inputs.run[input as usize]),
            Of::Each { input, back } => active(each(input, cycle - back as usize)),
            Of::Gate { gate, back } => {
                let of = |first: &&veil_device_fpga::garble::body::First| {
                    (first.gate, u64::from(first.back)) == (gate, u64::from(back) - cycle as u64)
                };
                match cycle.checked_sub(back as usize) {
                    Some(cycle) => results[cycle][gate as usize],
                    // An inversion changes the value of a label and not which is active.
                    None => match body.firsts.iter().find(of).expect("it is read").value.of {
                        Of::Run(input) => active(inputs.run[input as usize]),
                        _ => 0,
                    },
                }
            }
        };
        for (k, gate) in body.gates.iter().enumerate() {
            let [a, b] = gate.operands.map(|value| read(&results, value.of));
            let result = if gate.is_and {
                let number = image.numbers[k];
                let place = cycle * image.products as usize + number as usize;
                let table = [0, 1].map(|half| u128::from_le_bytes(tables[2 * place + half]));
                let g = (run.first + place as u64) << 16 | u64::from(run.instance);
                product(start, g, [a, b], table)
            } else {
                a ^ b
            };
            results[cycle].push(result);
        }
        let row = sequential.outputs.iter().map(|output| {
            let active = read(&results, output.of);
            let zero = match output.of {
                Of::Gate { .. } => {
                    let leave = body.leaves.iter().position(|of| *of == output.of);
                    let at = image.leaves.iter().position(|k| Some(*k as usize) == leave);
                    leaves[cycle * image.leaves.len() + at.expect("it leaves")]
                }
                Of::Each { input, back } => each(input, cycle - back as usize).1,
                of => inputs.known(Value::plain(of), offset).1,
            };
            assert!(
                [0, offset].contains(&(active ^ zero)),
                "seed {seed}: a label of neither value"
            );
            u128::from((active != zero) != output.not)
        });
        opened.push(row.collect());
    }
    let want = circuit
        .evaluate(&inputs.of_ports(circuit))
        .expect("inputs of the right sizes");
    let mut from = 0;
    for (port, want) in circuit.outputs.iter().zip(want) {
        let part = |row: &Vec<u128>| row[from..from + port.wires.len()].to_vec();
        let got: Vec<u128> = match port.reduce {
            Reduce::EveryCycle => opened.iter().flat_map(part).collect(),
            _ => opened.last().map(part).unwrap_or_default(),
        };
        assert_eq!(got, want, "seed {seed}: {}", port.name);
        from += port.wires.len();
    }
    assert!(
        stalls.rate > 0 || took < image.cycles(sequential.cycles) + labels.len() as u64 / 16 + 40
    );
    Some(took)
}

#[test]
fn random_circuits_with_rings_and_chains_of_registers() {
    for k in 0..60 {
        let seed = Seed(k);
        let mut circuit = clocked(seed);
        circuit.clock.cycles = [1, 2, 5, 40][k as usize % 4];
        let stalls = Stalls {
            seed: k,
            rate: [0, 90, 200][k as usize % 3],
        };
        right(&circuit, (2, stalls), seed);
    }
}

#[test]
fn time_tells_nothing() {
    let circuit = make("adder:32").expect("the catalogue has it");
    let took = [1, 2, 3].map(|seed| right(&circuit, (2, Stalls::default()), Seed(seed)));
    assert!(took.iter().all(|cycles| *cycles == took[0]));
}

/// A circuit with more products and bundles than 13 bits can number, which keeps more labels than these can.
#[test]
fn numbers_beyond_thirteen_bits() {
    const INPUTS: u32 = 1 << 12;
    const SUMS: u32 = 5000;
    const PRODUCTS: u32 = 8000;
    const KEPT: u32 = 2500;
    let mut numbers = Seed(13).numbers("large");
    let mut gates = Vec::new();
    let mut push = |gate| {
        gates.push(gate);
        Wire(INPUTS + gates.len() as u32 - 1)
    };
    let mut pick = |from: u32, count: u32| Wire(from + numbers.below(count.into()) as u32);
    for k in 0..SUMS {
        push(Gate::Add(Wire(k % INPUTS), pick(0, INPUTS)));
    }
    let products = (0..PRODUCTS).map(|k| {
        let sum = Wire(INPUTS + k % SUMS);
        push(Gate::Mul(sum, pick(INPUTS, SUMS)))
    });
    // The sum of all products waits for them; with it, what was there before is read again.
    let mut all: Vec<Wire> = products.collect();
    while all.len() > 1 {
        let pairs = all.chunks(2).map(|pair| match *pair {
            [a, b] => push(Gate::Add(a, b)),
            _ => pair[0],
        });
        all = pairs.collect();
    }
    let sum = all[0];
    let kept = (0..KEPT).map(|k| {
        let product = push(Gate::Mul(sum, Wire(INPUTS + k)));
        push(Gate::Add(product, Wire(k)))
    });
    let outputs = kept.collect();
    let circuit = Circuit {
        ring: veil_math::Ring::Bits,
        inputs: vec![InputPort {
            name: "in".into(),
            width: INPUTS,
            per: Per::Row,
            bits: false,
        }],
        outputs: vec![OutputPort {
            name: "out".into(),
            wires: outputs,
            reduce: Reduce::None,
        }],
        clock: Clock::default(),
        gates,
    };
    let body = Sequential::of(&circuit).expect("it is of bits").body;
    let image = Image::of(&body, &Simulated::capacity(2), 1).expect("it fits");
    let [xor, and, input] = image.slots;
    assert!(image.products > 1 << 13 && image.kernel > 1 << 13);
    assert!(
        input == INPUTS && input + 2 * (xor + and) > 1 << 13,
        "{:?}",
        image.slots
    );
    right(&circuit, (2, Stalls::default()), Seed(13));
}

/// The public netlists, which the repository does not contain, with the numbers of cycles that the paper gives: table 3, "Proposal".
#[test]
fn public_netlists_in_fewer_cycles() {
    let Some(folder) = std::env::var_os("VEIL_CIRCUITS") else {
        println!("skipped: VEIL_CIRCUITS names no folder of circuits");
        return;
    };
    for (name, cycles, paper) in PUBLISHED {
        let path = Path::new(&folder).join(format!("{name}.scd"));
        let Ok(text) = std::fs::read(&path) else {
            println!("skipped: {} is not there", path.display());
            continue;
        };
        let circuit = scd::read(&text, cycles.into(), Reduce::EveryCycle, &Limits::default())
            .expect("a public netlist");
        for rows in Simulated::built() {
            let took = right(&circuit, (rows, Stalls::default()), Seed(1));
            println!("{name} {rows} rows: {took:?} (paper, 2 rows: {paper})");
            assert!(rows != 2 || took.is_none_or(|took| took < paper));
        }
    }
}
