//! Hoisting: gates that depend on no row are computed once, in the set-up.
//!
//! A key schedule over a key that the whole batch uses is the case that matters.

use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};

/// A circuit cut in two.
pub(super) struct Split {
    /// Over the job-wide values, as if they were one row; one output port, the derived values.
    pub(super) job: Circuit,
    /// The rest. Its last input port is the derived values, which all rows share.
    pub(super) rows: Circuit,
    /// How many derived values there are.
    pub(super) derived: u32,
}

/// What a wire depends on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depends {
    /// On public constants alone: both halves may have it.
    Nothing,
    /// On job-wide values.
    Job,
    /// On values of a row.
    Row,
}

/// Cuts `circuit`, unless no gate depends on shared values alone.
pub(super) fn split(circuit: &Circuit) -> Option<Split> {
    let inputs = circuit.input_wires();
    let mut depends: Vec<Depends> = Vec::with_capacity(circuit.wires() as usize);
    for port in &circuit.inputs {
        let of = if port.per == Per::Job {
            Depends::Job
        } else {
            Depends::Row
        };
        depends.extend(std::iter::repeat_n(of, port.width as usize));
    }
    for gate in &circuit.gates {
        let most = gate.operands().map(|w| depends[w.0 as usize]).max();
        // Every row has its own random values; and the set-up works on the circuit's ring alone, so that bits are taken in every row, of
        // job-wide values, and of constants.
        let of_row = gate.is_random() || gate.converts();
        depends.push(if of_row {
            Depends::Row
        } else {
            most.unwrap_or(Depends::Nothing)
        });
    }
    // Gates of the job that the rest, or an output, reads.
    let mut crossing = vec![false; depends.len()];
    let read_by_rows = circuit
        .gates
        .iter()
        .enumerate()
        .filter(|(g, _)| depends[inputs as usize + g] == Depends::Row);
    let read = read_by_rows
        .flat_map(|(_, gate)| gate.operands())
        .chain(circuit.outputs.iter().flat_map(|o| o.wires.clone()));
    for wire in read.filter(|w| w.0 >= inputs && depends[w.0 as usize] == Depends::Job) {
        crossing[wire.0 as usize] = true;
    }
    let derived: Vec<Wire> = (0..circuit.wires())
        .map(Wire)
        .filter(|w| crossing[w.0 as usize])
        .collect();
    if derived.is_empty() {
        return None;
    }
    let ports = |per: Option<Per>| {
        circuit
            .inputs
            .iter()
            .filter(move |p| per.is_none_or(|per| p.per == per))
            .cloned()
    };

    // The job's half: its ports with a value per row, of which there is one.
    let mut job = Copy::new(circuit);
    for port in circuit.inputs.iter().scan(0, |first, p| {
        Some((std::mem::replace(first, *first + p.width), p))
    }) {
        if port.1.per == Per::Job {
            job.inputs(port.0, port.1.width);
        }
    }
    job.gates(&depends, &[Depends::Nothing, Depends::Job]);
    let outputs = vec![OutputPort {
        name: "derived".into(),
        wires: derived.iter().map(|w| job.at(*w)).collect(),
        reduce: Reduce::None,
    }];
    let one_row = ports(Some(Per::Job))
        .map(|p| InputPort { per: Per::Row, ..p })
        .collect();
    let job = Circuit {
        ring: circuit.ring,
        inputs: one_row,
        gates: job.gates,
        outputs,
        clock: veil_circuit::Clock::default(),
    };

    // The rest: all ports, and the derived values.
    let mut rest = Copy::new(circuit);
    rest.inputs(0, inputs);
    for wire in &derived {
        rest.input(*wire);
    }
    rest.gates(&depends, &[Depends::Nothing, Depends::Row]);
    let port = InputPort {
        name: "derived".into(),
        width: derived.len() as u32,
        per: Per::Job,
        bits: false,
    };
    let outputs = circuit.outputs.iter();
    let outputs = outputs
        .map(|o| OutputPort {
            wires: o.wires.iter().map(|w| rest.at(*w)).collect(),
            ..o.clone()
        })
        .collect();
    let rows = Circuit {
        ring: circuit.ring,
        inputs: ports(None).chain([port]).collect(),
        gates: rest.gates,
        outputs,
        clock: veil_circuit::Clock::default(),
    };
    Some(Split {
        job,
        rows,
        derived: derived.len() as u32,
    })
}

/// Part of a circuit under new wire numbers.
struct Copy<'a> {
    from: &'a Circuit,
    new: Vec<Option<Wire>>,
    wires: u32,
    gates: Vec<Gate>,
}

impl<'a> Copy<'a> {
    fn new(from: &'a Circuit) -> Self {
        Copy {
            from,
            new: vec![None; from.wires() as usize],
            wires: 0,
            gates: Vec::new(),
        }
    }

    fn input(&mut self, wire: Wire) {
        self.new[wire.0 as usize] = Some(Wire(self.wires));
        self.wires += 1;
    }

    fn inputs(&mut self, first: u32, width: u32) {
        (first..first + width).for_each(|w| self.input(Wire(w)));
    }

    /// Copies the gates that depend on nothing beyond `kinds`.
    fn gates(&mut self, depends: &[Depends], kinds: &[Depends]) {
        for (index, gate) in self.from.gates.iter().enumerate() {
            let wire = self.from.gate_wire(index);
            if kinds.contains(&depends[wire.0 as usize]) {
                let gate = gate.map_operands(|w| self.at(w));
                self.gates.push(gate);
                self.input(wire);
            }
        }
    }

    fn at(&self, wire: Wire) -> Wire {
        self.new[wire.0 as usize].expect("operands of a copied gate are copied, or are inputs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key schedule of AES goes into the set-up: the rows keep the ANDs of the cipher.
    #[test]
    fn a_key_schedule_is_computed_once() {
        let circuit = veil_circuit::make("aes128").expect("the catalogue has it");
        let split = split(&circuit).expect("the key is per job");
        let ands = |c: &Circuit| {
            c.gates
                .iter()
                .filter(|g| matches!(g, Gate::Mul(..)))
                .count()
        };
        assert_eq!((ands(&split.job), ands(&split.rows)), (1280, 5120));
        split.job.validate().expect("a valid circuit");
        split.rows.validate().expect("a valid circuit");
    }

    /// Both halves together compute what the whole does.
    #[test]
    fn the_halves_are_the_whole() {
        let circuit = veil_circuit::make("aes128").expect("the catalogue has it");
        let split = split(&circuit).expect("the key is per job");
        let bits = |x: u128| (0..128).map(|k| x >> k & 1).collect::<Vec<_>>();
        let (key, block) = (
            bits(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100),
            bits(0xffee_ddcc_bbaa_9988_7766_5544_3322_1100),
        );
        let derived = split
            .job
            .evaluate(std::slice::from_ref(&key))
            .expect("one port")
            .remove(0);
        let whole = circuit
            .evaluate(&[key.clone(), block.clone()])
            .expect("two ports");
        assert_eq!(
            split
                .rows
                .evaluate(&[key, block, derived])
                .expect("three ports"),
            whole
        );
    }

    /// The set-up has no bits, not even those of constants, and draws nothing.
    #[test]
    fn bits_and_random_values_stay_with_the_rows() {
        let port = |name: &str, per| InputPort {
            name: name.into(),
            width: 1,
            per,
            bits: false,
        };
        let circuit = Circuit {
            ring: veil_math::Ring::Z64,
            inputs: vec![port("k", Per::Job), port("x", Per::Row)],
            gates: vec![
                Gate::Constant(6),            // 2
                Gate::Bit(Wire(2), 1),        // 3
                Gate::Lift(Wire(3)),          // 4
                Gate::Times(Wire(0), 3),      // 5: of the job
                Gate::Mul(Wire(5), Wire(4)),  // 6
                Gate::Random(0),              // 7
                Gate::Mul(Wire(0), Wire(7)),  // 8
                Gate::Sub(Wire(8), Wire(8)),  // 9
                Gate::Add(Wire(6), Wire(9)),  // 10
                Gate::Mul(Wire(10), Wire(1)), // 11
            ],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: vec![Wire(11)],
                reduce: Reduce::None,
            }],
            clock: veil_circuit::Clock::default(),
        };
        let split = split(&circuit).expect("something is of the job alone");
        let local = |gate: &Gate| !gate.converts() && !gate.is_random();
        assert!(split.job.gates.iter().all(local));
        assert_eq!(split.derived, 1);
        let whole = circuit.evaluate(&[vec![5], vec![7]]);
        let of_rows = split.rows.evaluate(&[vec![5], vec![7], vec![15]]);
        assert_eq!(of_rows, whole);
    }

    #[test]
    fn nothing_to_hoist() {
        let circuit = veil_circuit::make("adder:8").expect("the catalogue has it");
        assert!(split(&circuit).is_none());
    }
}
