//! Bristol files: what is read, what is written, and what is refused, where and with which words.

use veil_circuit::bristol::{self, Flavour};
use veil_circuit::{Circuit, Gate, Limits, Wire, catalogue, make};

fn read(text: &str) -> Result<Circuit, String> {
    bristol::read(text.as_bytes(), &Limits::default()).map_err(|error| error.to_string())
}

fn write(circuit: &Circuit, flavour: Flavour) -> String {
    let mut text = Vec::new();
    bristol::write(circuit, flavour, &mut text).expect("a circuit that the format holds");
    String::from_utf8(text).expect("Bristol files are ASCII")
}

/// Outputs for `inputs`, one after the other: 0 or 1 per wire.
fn run(circuit: &Circuit, inputs: &[&[u128]]) -> Vec<u128> {
    let inputs: Vec<_> = inputs.iter().map(|input| input.to_vec()).collect();
    circuit
        .evaluate(&inputs)
        .expect("inputs of the right size")
        .concat()
}

const EVERY_GATE: &str = "\
7 13
2 3 2
2 1 3

1 1 1 6 EQ
2 1 0 3 5 XOR
4 2 0 1 3 4 8 7 MAND
1 1 8 11 EQW
2 1 5 2 9 AND
1 1 9 10 INV
1 1 0 12 EQ
";

#[test]
fn every_gate_is_read() {
    let circuit = read(EVERY_GATE).expect("a good file");
    assert_eq!(
        circuit.gates,
        [
            Gate::Constant(1),
            Gate::Add(Wire(0), Wire(3)),
            Gate::Mul(Wire(0), Wire(3)),
            Gate::Mul(Wire(1), Wire(4)),
            Gate::Mul(Wire(6), Wire(2)),
            Gate::Plus(Wire(9), 1),
            Gate::Constant(0),
        ]
    );
    let names: Vec<_> = circuit
        .inputs
        .iter()
        .map(|port| (port.name.as_str(), port.width))
        .collect();
    assert_eq!(names, [("in0", 3), ("in1", 2)]);
    // File wire 9, then 10, 11 and 12.
    assert_eq!(circuit.outputs[0].wires, [Wire(9)]);
    assert_eq!(circuit.outputs[1].wires, [Wire(10), Wire(7), Wire(11)]);
    for input in 0..32u128 {
        let bit = |i: u32| input >> i & 1;
        let and = (bit(0) ^ bit(3)) & bit(2);
        let want = [and, 1 ^ and, bit(0) & bit(3), 0];
        assert_eq!(
            run(&circuit, &[&[bit(0), bit(1), bit(2)], &[bit(3), bit(4)]]),
            want
        );
    }
}

#[test]
fn layout_is_free() {
    let plain = "2 4\n2 1 1\n1 1\n\n2 1 0 1 2 AND\n1 1 2 3 INV\n";
    let want = read(plain).expect("a good file");
    for text in [
        plain.replace('\n', "\r\n"),
        plain.replace('\n', " \t \n"),
        plain.replace('\n', "\n\n \n"),
        plain.replace(' ', "   "),
        plain.trim_end().to_owned(),
        format!("\n\n{}", plain.replace("\n\n", "\n")),
    ] {
        assert_eq!(read(&text).as_ref(), Ok(&want), "{text:?}");
    }
}

#[test]
fn the_old_format_is_told_apart() {
    // Line 2 alone could be either: one value of two bits, or two inputs and an output.
    let gates = "2 1 0 1 2 XOR\n2 1 0 2 3 AND\n1 1 3 4 INV\n";
    let old = format!("3 5\n1 1 2\n\n{gates}");
    let new = format!("3 5\n1 2\n1 2\n\n{gates}");
    assert_eq!(bristol::detect(old.as_bytes()), Flavour::Old);
    assert_eq!(bristol::detect(new.as_bytes()), Flavour::Fashion);
    let (old, new) = (
        read(&old).expect("a good file"),
        read(&new).expect("a good file"),
    );
    assert_eq!((old.inputs.len(), new.inputs.len()), (2, 1));
    assert_eq!((&old.gates, &old.outputs), (&new.gates, &new.outputs));
    let one = read("1 3\n2 0 1\n2 1 0 1 2 AND\n").expect("a good file with one input");
    assert_eq!((one.inputs.len(), one.inputs[0].width), (1, 2));
    let none = read("0 2\n1 1 2\n").expect("a good file without gates");
    assert_eq!(none.outputs[0].wires, [Wire(0), Wire(1)]);
}

#[test]
fn limits_are_the_callers() {
    let limits = Limits {
        gates: 2,
        wires: 5,
        ports: 2,
        output_wires: 2,
        ..Limits::default()
    };
    let text = |extra: &str| format!("2 5\n2 1 1\n1 2\n4 2 0 0 1 1 2 3 MAND\n{extra}\n");
    let message = |limits, text: String| {
        bristol::read(text.as_bytes(), &limits).map_err(|error| error.to_string())
    };
    // Three gates in two lines: the header's count is of lines.
    let want = "line 1, column 3: the circuit has 3 gates, and the limit is 2; split it, or raise the limit at every party";
    assert_eq!(message(limits, text("1 1 2 4 INV")), Err(want.to_owned()));
    assert!(message(Limits { gates: 3, ..limits }, text("1 1 2 4 INV")).is_ok());
}

#[test]
fn catalogue_goes_through_both_formats() {
    for entry in catalogue() {
        let specification = entry.example(9);
        let circuit = make(&specification).expect("a name of the catalogue");
        if circuit.is_random() {
            let refused = bristol::write(&circuit, Flavour::Integers, &mut std::io::sink());
            let refused = refused.expect_err("files hold functions").to_string();
            assert!(refused.contains("random gates"), "{refused}");
            continue;
        }
        let flavours = match circuit.ring {
            veil_math::Ring::Bits => &[Flavour::Fashion, Flavour::Old][..],
            _ => &[Flavour::Integers],
        };
        for &flavour in flavours {
            let text = write(&circuit, flavour);
            assert_eq!(bristol::detect(text.as_bytes()), flavour, "{specification}");
            let back = read(&text).expect("what was written");
            let (mut stats, same) = (back.stats(), circuit.stats());
            // Reading forgets that a key is for the job.
            stats.job_muls = same.job_muls;
            assert_eq!(stats, same, "{specification}");
            assert_eq!(write(&back, flavour), text, "{specification}");

            let inputs: Vec<Vec<u128>> = circuit
                .inputs
                .iter()
                .map(|port| {
                    (0..port.width)
                        .map(|wire| match flavour {
                            // Of a few bits, as circuits of small integers want.
                            Flavour::Integers => u128::from(7 * wire + port.width) % 200,
                            _ => u128::from(wire % 3 == 1),
                        })
                        .collect()
                })
                .collect();
            assert_eq!(
                back.evaluate(&inputs),
                circuit.evaluate(&inputs),
                "{specification}"
            );
        }
    }
}

/// Every gate of a file with integers, on integers of both sizes.
#[test]
fn every_gate_over_integers_is_read() {
    for (bits, top) in [(64, u128::from(u64::MAX)), (128, u128::MAX)] {
        let text = format!(
            "18 21 integers {bits}\n2 2 1\n1 7\n
             2 1 0 1 3 ADD\n2 1 0 1 4 SUB\n2 1 3 4 5 MUL\n2 1 5 {top} 6 PLUS\n2 1 6 3 7 TIMES\n2 1 2 3 8 BIT\n2 1 2 2 9 ZERO\n\
             2 1 8 9 10 XOR\n1 1 1 11 EQ\n2 1 10 11 12 AND\n1 1 12 13 INV\n1 1 9 16 LIFT\n1 1 13 17 LIFT\n2 1 2 4 18 SHIFT\n\
             1 1 {top} 19 CONST\n1 1 7 15 EQW\n1 1 0 14 EQW\n2 1 1 8 20 APPEND\n"
        );
        let circuit = read(&text).expect("a good file");
        assert!(circuit.is_mixed());
        let big = 1000u128;
        for (x, y, z) in [(9, 4, 0b1100_1000), (0, 0, 0), (2, big, 0b1000), (5, 5, 3)] {
            let reduce = |value: u128| value & top;
            let product = (x + y).wrapping_mul(x.wrapping_sub(y));
            let product = reduce(product.wrapping_sub(1).wrapping_mul(3));
            let zero = u128::from(z % 4 == 0);
            let bit = z >> 3 & 1;
            let want = [x, product, zero, 1 ^ bit ^ zero, z >> 4, top, 2 * y + bit];
            assert_eq!(run(&circuit, &[&[x, y], &[z]]), want, "{x} {y} {z}");
        }
        let back = read(&write(&circuit, Flavour::Integers)).expect("what was written");
        let value = [&[7, 11][..], &[13]];
        assert_eq!(run(&back, &value), run(&circuit, &value));
    }
}

/// Outputs that are inputs, repeat, or are constants; gates that do nothing.
fn awkward() -> Circuit {
    let mut circuit = read("2 4\n2 1 1\n1 1\n2 1 0 1 2 AND\n1 1 2 3 INV\n").expect("a good file");
    circuit.gates.extend([
        Gate::Constant(1),           // 4
        Gate::Times(Wire(0), 1),     // 5: wire 0
        Gate::Plus(Wire(2), 0),      // 6: wire 2
        Gate::Times(Wire(1), 0),     // 7: zero
        Gate::Sub(Wire(5), Wire(6)), // 8
    ]);
    circuit.outputs[0].wires = [3, 0, 5, 2, 2, 6, 4, 7, 8].map(Wire).to_vec();
    circuit
}

#[test]
fn awkward_outputs_are_copied() {
    let circuit = awkward();
    for flavour in [Flavour::Fashion, Flavour::Old] {
        let text = write(&circuit, flavour);
        let back = read(&text).expect("what was written");
        for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let want = [1 ^ (x & y), x, x, x & y, x & y, x & y, 1, 0, x ^ (x & y)];
            assert_eq!(run(&circuit, &[&[x], &[y]]), want);
            assert_eq!(run(&back, &[&[x], &[y]]), want, "{text}");
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let refusal = |circuit: &Circuit, flavour| {
        bristol::write(circuit, flavour, &mut std::io::sink())
            .expect_err("not in this format")
            .to_string()
    };
    let three = read("1 4\n3 1 1 1\n2 1 1\n2 1 0 1 3 AND\n").expect("a good file");
    assert_eq!(
        refusal(&three, Flavour::Old),
        "the circuit has 3 input ports, and the old Bristol Format holds one or two; write Bristol Fashion"
    );
    let mut two_out = three.clone();
    two_out.inputs.truncate(2);
    two_out.gates.clear();
    two_out.outputs[0].wires = vec![Wire(0)];
    two_out.outputs[1].wires = vec![Wire(1)];
    assert_eq!(
        refusal(&two_out, Flavour::Old),
        "the circuit has 2 output ports, and the old Bristol Format holds one; write Bristol Fashion"
    );
    let mut integers = three.clone();
    integers.ring = veil_math::Ring::Z64;
    assert_eq!(
        refusal(&integers, Flavour::Fashion),
        "the circuit is over Z_2^64, and Bristol files hold circuits of bits; write the format `integers`"
    );
    assert_eq!(
        refusal(&three, Flavour::Integers),
        "the circuit is over bits; write Bristol Fashion"
    );
    integers.outputs[0].reduce = veil_circuit::Reduce::Sum;
    assert_eq!(
        refusal(&integers, Flavour::Integers),
        "output `out0` is summed over the rows, which files cannot say"
    );
    let mut broken = three;
    broken.gates[0] = Gate::Add(Wire(9), Wire(0));
    assert_eq!(
        refusal(&broken, Flavour::Fashion),
        "gate 0 drives wire 3 and reads wire 9; a gate may only read wires of smaller number"
    );
}

#[test]
fn a_full_disk_is_reported() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = bristol::write(&awkward(), Flavour::Fashion, &mut Full)
        .expect_err("no space")
        .to_string();
    assert!(error.starts_with("cannot write the circuit: "), "{error}");
}
