//! Files of sequential circuits: written, read again, and refused, where and with which words.

use crate::common::sequential;
use proptest::prelude::*;
use veil_circuit::bristol::{self, Flavour, WriteError};
use veil_circuit::{Circuit, Gate, Initial, Limits, Per, Reduce, Wire};

fn read(text: &str) -> Result<Circuit, String> {
    bristol::read(text.as_bytes(), &Limits::default()).map_err(|error| error.to_string())
}

/// Adds a bit of two numbers in every cycle, the second of them the same bit in all, and counts carries modulo 2.
const ADDER: &str = "\
6 10 sequential 3
input 1 cycle the number
input 1 job step
output 1 cycle sum
output 1 last parity of carries
register 6 1
register 9 one

2 1 0 2 4 XOR
2 1 1 2 5 XOR
2 1 4 5 7 AND
2 1 2 7 6 XOR
2 1 0 5 8 XOR
2 1 3 6 9 XOR
";

#[test]
fn a_file_says_what_the_circuit_is() {
    let circuit = read(ADDER).expect("a good file");
    assert_eq!((circuit.clock.cycles, circuit.gates.len()), (3, 6));
    assert_eq!(
        (circuit.inputs[0].name.as_str(), circuit.inputs[0].per),
        ("the number", Per::Cycle)
    );
    assert_eq!(
        (circuit.inputs[1].name.as_str(), circuit.inputs[1].per),
        ("step", Per::Job)
    );
    assert_eq!(
        (circuit.outputs[0].reduce, circuit.outputs[1].reduce),
        (Reduce::EveryCycle, Reduce::None)
    );
    let [carry, count] = &circuit.clock.registers[..] else {
        panic!("two registers")
    };
    assert_eq!(
        (carry.initial, count.initial),
        (Initial::Wire(Wire(1)), Initial::Constant(true))
    );
    // The carry is the fourth gate, which drives the wire behind four sources and three gates.
    assert_eq!(
        (carry.next, circuit.gates[3]),
        (Wire(7), Gate::Add(Wire(2), Wire(6)))
    );
    // 3 + 7 with a carry in, from the lowest bit on, and carries of 1, 1, 1 counted from 1.
    let out = circuit.evaluate(&[vec![1, 1, 0], vec![1]]).expect("bits");
    assert_eq!(out, [vec![1, 1, 0], vec![0]]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(circuit in sequential(40), pool in any::<u128>()) {
        let mut text = Vec::new();
        bristol::write(&circuit, Flavour::Sequential, &mut text).expect("a valid circuit");
        let again = bristol::read(&text, &Limits::default()).expect("a good file");
        prop_assert_eq!(&circuit.inputs, &again.inputs);
        prop_assert_eq!(&circuit.clock.cycles, &again.clock.cycles);
        let mut bits = (0..128).map(|k| pool >> k & 1).cycle();
        let inputs: Vec<Vec<u128>> = (0..circuit.inputs.len())
            .map(|port| bits.by_ref().take(circuit.input_width(port) as usize).collect())
            .collect();
        prop_assert_eq!(circuit.evaluate(&inputs), again.evaluate(&inputs));
        let mut twice = Vec::new();
        bristol::write(&again, Flavour::Sequential, &mut twice).expect("a valid circuit");
        let third = bristol::read(&twice, &Limits::default()).expect("a good file");
        prop_assert_eq!(again.canonical_hash(), third.canonical_hash());
    }
}

#[test]
fn other_formats_hold_no_registers() {
    let mut circuit = read(ADDER).expect("a good file");
    for flavour in [Flavour::Fashion, Flavour::Old] {
        let refused = bristol::write(&circuit, flavour, &mut Vec::new());
        assert!(matches!(refused, Err(WriteError::Sequential)));
    }
    circuit.inputs[0].name = " x".into();
    let refused = bristol::write(&circuit, Flavour::Sequential, &mut Vec::new());
    assert!(matches!(refused, Err(WriteError::Name(name)) if name == " x"));
}

#[test]
fn every_error_has_its_place_and_words() {
    let cases = [
        (
            "sequential 3",
            "sequential x",
            "line 1, column 17: expected the number of cycles, found `x`",
        ),
        (
            "sequential 3",
            "sequential 5000000000",
            "line 1, column 17: 5000000000 cycles are more than the limit",
        ),
        ("sequential 3", "sequential 0", "the circuit has no cycles"),
        (
            "sequential 3",
            "sequential 3 4",
            "line 1, column 19: `4` follows the end",
        ),
        (
            "1 cycle the",
            "1 often the",
            "line 2, column 9: expected row, job or cycle, found `often`",
        ),
        (
            "1 cycle the",
            "99 cycle the",
            "line 2, column 7: the inputs take 99 wires, but line 1 declares 10",
        ),
        (
            "1 cycle the",
            "0 cycle the",
            "line 2, column 7: a value of 0 bits",
        ),
        (
            " the number",
            "",
            "line 2, column 14: the line ends where the name of the input should follow",
        ),
        (
            "step",
            "the number",
            "two input ports are called `the number`",
        ),
        (
            "last parity",
            "first parity",
            "line 5, column 10: expected cycle or last, found `first`",
        ),
        (
            "register 6 1",
            "register 6",
            "line 6, column 11: the line ends where what the register begins as",
        ),
        (
            "register 6 1",
            "register 6 half",
            "line 6, column 12: expected zero, one or a wire, found `half`",
        ),
        (
            "register 6 1",
            "register 6 1 2",
            "line 6, column 14: `2` follows the end of the line of a register",
        ),
        (
            "register 6 1",
            "register 10 1",
            "line 6, column 10: wire 10 does not exist",
        ),
        (
            "register 6 1",
            "register 6 10",
            "line 6, column 10: wire 10 does not exist",
        ),
        (
            "register 6 1",
            "register 6 0",
            "register 0 begins as wire 0; it may begin as",
        ),
        ("register 6 1", "register 6 4", "register 0 begins as wire"),
        (
            "register 6 1",
            "flipflop 6 1",
            "line 6, column 1: expected input, output, register or a gate, found `flipflop`",
        ),
        ("2 4 XOR", "2 3 XOR", "wire 3 is already driven"),
        (
            "0 2 4 XOR",
            "0 4 4 XOR",
            "wire 4 is read before any gate drives it",
        ),
        (
            "3 6 9 XOR",
            "3 6 9 NAND",
            "there are XOR, AND, INV, EQ, EQW and MAND, as in Bristol Fashion",
        ),
        (
            "2 1 3 6 9 XOR\n",
            "",
            "the file ends where gate 6 of 6 should follow",
        ),
    ];
    for (from, to, want) in cases {
        let text = ADDER.replacen(from, to, 1);
        assert_ne!(text, ADDER, "{from}");
        let message = read(&text).expect_err(to);
        assert!(message.contains(want), "{to:?}: {message}");
    }
}
