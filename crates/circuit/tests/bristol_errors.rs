//! Every way in which a Bristol file can be wrong: line, column and words.

use veil_circuit::{Circuit, Limits, bristol};

fn read(text: &str) -> Result<Circuit, String> {
    bristol::read(text.as_bytes(), &Limits::default()).map_err(|error| error.to_string())
}

#[test]
fn every_error_has_its_place_and_words() {
    const KNOWN: &str = "Bristol Fashion has XOR, AND, INV, EQ, EQW and MAND";
    let head = "2 4\n2 1 1\n1 1\n\n";
    let gate = |line: &str| format!("{head}2 1 0 1 2 XOR\n{line}\n");
    let cases: Vec<(String, String)> = [
        (
            String::new(),
            "line 1, column 1: the file ends where the numbers of gates and wires should follow; it was cut off, or \
             its header counts too many",
        ),
        ("x 4\n".into(), "line 1, column 1: expected the number of gates, found `x`"),
        ("-1 4\n".into(), "line 1, column 1: expected the number of gates, found `-1`"),
        ("2\n".into(), "line 1, column 2: the line ends where the number of wires should follow"),
        (
            "2 4 7\n".into(),
            "line 1, column 5: `7` follows the end of the numbers of gates and wires; remove it, or correct the counts \
             before it",
        ),
        (
            "18446744073709551616 4\n".into(),
            "line 1, column 1: expected the number of gates, found `18446744073709551616`",
        ),
        (
            "16777217 4\n".into(),
            "line 1, column 1: 16777217 gates are more than the limit of 16777216; split the circuit, or raise the \
             limit at every party",
        ),
        (
            "1 33554433\n".into(),
            "line 1, column 3: 33554433 wires are more than the limit of 33554432; split the circuit, or raise the \
             limit at every party",
        ),
        (
            "2 4\n".into(),
            "line 2, column 1: the file ends where the widths of the inputs should follow; it was cut off, or its \
             header counts too many",
        ),
        (
            "2 4\n2 1\n1 1\n".into(),
            "line 2, column 4: the line ends where the width of a value should follow",
        ),
        (
            "2 4\n16385 1\n1 1\n".into(),
            "line 2, column 1: 16385 inputs are more than the limit of 16384; split the circuit, or raise the limit at \
             every party",
        ),
        (
            "2 4\n2 1 0\n1 1\n".into(),
            "line 2, column 5: a value of 0 bits; leave it out, and lower the number of values",
        ),
        (
            "2 4\n2 1 4\n1 1\n".into(),
            "line 2, column 5: the inputs take 5 wires, but line 1 declares 4; correct one of them",
        ),
        (
            "2 4\n2 1 18446744073709551615\n1 1\n".into(),
            "line 2, column 5: the inputs take 18446744073709551615 wires, but line 1 declares 4; correct one of them",
        ),
        (
            "2 4\n2 1 1\n1 5\n".into(),
            "line 3, column 3: the outputs take 5 wires, but line 1 declares 4; correct one of them",
        ),
        (
            "2 4\n2 1 1 1\n1 1\n".into(),
            "line 2, column 7: `1` follows the end of the widths of the values; remove it, or correct the counts before \
             it",
        ),
        (
            "1 3\n1 1 1 1\n2 1 0 1 2 AND\n".into(),
            "line 2, column 7: `1` follows the end of the widths of two inputs and an output; remove it, or correct the \
             counts before it",
        ),
        (
            "0 2\n2 1 1\n0\n".into(),
            "line 1, column 3: the circuit has no outputs; name at least one",
        ),
        (
            format!("{head}2 1 0 1 2 XOR\n"),
            "line 6, column 1: the file ends where gate 2 of 2 should follow; it was cut off, or its header counts too \
             many",
        ),
        (
            format!("{head}2 1 0 1 2 XOR\n1 1 2 3 INV\n\n  1 1 0 1 INV"),
            "line 8, column 3: `1` follows the last of 2 gates; remove it, or correct the gate count in line 1",
        ),
        (gate("2 1 0 1 3 XNOR"), "line 6, column 11: unknown gate `XNOR`; {known}"),
        (gate("2 1 0 1 3 xor"), "line 6, column 11: unknown gate `xor`; {known}"),
        (gate("2 1 0 1 3"), "line 6, column 10: the line ends where the name of the gate should follow"),
        (gate("2 1 0"), "line 6, column 6: the line ends where the name of the gate should follow"),
        (gate("2"), "line 6, column 2: the line ends where the gate's number of outputs should follow"),
        (gate("2 1 zero 1 3"), "line 6, column 5: expected a wire, found `zero`"),
        (gate("2 1 0 -1 3 XOR"), "line 6, column 7: expected a wire, found `-1`"),
        (gate("2 1 0 1 XOR"), "line 6, column 9: expected the wire that the gate drives, found `XOR`"),
        (
            gate("2 1 0 1 3 3 XOR"),
            "line 6, column 11: `3` follows the end of the wires of the gate; remove it, or correct the counts before \
             it",
        ),
        (gate("1 1 0 3 XOR"), "line 6, column 1: a gate XOR has 2 inputs and 1 output, not 1 and 1"),
        (gate("2 2 0 1 3 2 AND"), "line 6, column 1: a gate AND has 2 inputs and 1 output, not 2 and 2"),
        (gate("2 1 0 1 3 INV"), "line 6, column 1: a gate INV has 1 input and 1 output, not 2 and 1"),
        (
            gate("3 1 0 1 0 3 MAND"),
            "line 6, column 1: a gate MAND has two inputs for each of its outputs, not 3 and 1",
        ),
        (gate("0 0 MAND"), "line 6, column 1: a gate MAND has two inputs for each of its outputs, not 0 and 0"),
        (
            gate("9223372036854775808 9223372036854775808 0 3 MAND"),
            "line 6, column 1: a gate MAND has two inputs for each of its outputs, not 9223372036854775808 and \
             9223372036854775808",
        ),
        (
            gate("9223372036854775806 4611686018427387903 0 3 MAND"),
            "line 6, column 1: 4611686018427387904 gates are more than the limit of 16777216; split the circuit, or \
             raise the limit at every party",
        ),
        (gate("1 1 2 3 EQ"), "line 6, column 5: 2 is not a bit; an EQ gate takes the constant 0 or 1"),
        (gate("1 1 4 3 INV"), "line 6, column 5: wire 4 does not exist; line 1 declares wires 0 to 3"),
        (gate("1 1 0 4 INV"), "line 6, column 7: wire 4 does not exist; line 1 declares wires 0 to 3"),
        (
            gate("1 1 3 3 INV"),
            "line 6, column 5: wire 3 is read before any gate drives it; put gates in topological order",
        ),
        (
            gate("1 1 0 2 INV"),
            "line 6, column 7: wire 2 is already driven, by an input or an earlier gate; give each gate its own output \
             wire",
        ),
        (
            gate("1 1 0 1 INV"),
            "line 6, column 7: wire 1 is already driven, by an input or an earlier gate; give each gate its own output \
             wire",
        ),
        (
            "1 4\n2 1 1\n1 1\n2 1 0 1 3 AND\n".into(),
            "line 1, column 3: wire 2 is never driven: 3 of the 4 wires in line 1 are inputs or gate outputs",
        ),
        (
            "1 1000000\n2 1 1\n1 1\n2 1 0 1 2 AND\n".into(),
            "line 1, column 3: wire 3 is never driven: 3 of the 1000000 wires in line 1 are inputs or gate outputs",
        ),
        (
            "1 3\n1 1 1\n1 1 0 2 EQW\n".into(),
            "line 3, column 9: unknown gate `EQW`; the old Bristol Format has XOR, AND and INV",
        ),
        (gate("2 1 0 1 3 A\u{7f}B"), "line 6, column 11: unknown gate `A\u{fffd}B`; {known}"),
        (
            gate(&format!("2 1 0 1 3 {}", "Z".repeat(40))),
            "line 6, column 11: unknown gate `ZZZZZZZZZZZZZZZZZZZZZZZZ…`; {known}",
        ),
    ]
    .map(|(text, want)| (text, want.replace("{known}", KNOWN)))
    .into();
    for (text, want) in cases {
        assert_eq!(read(&text), Err(want), "{text:?}");
    }
}

#[test]
fn every_error_of_integers_has_its_place_and_words() {
    let gate = |line: &str| format!("2 5 integers 64\n1 3\n1 1\n2 1 0 0 3 BIT\n{line}\n");
    let over = "and this gate is over";
    for (text, want) in [
        (
            "1 2 integers 32\n".to_owned(),
            "line 1, column 14: integers of 32 bits are not known; write `integers 64` or `integers 128`".to_owned(),
        ),
        (
            "1 2 integers\n".into(),
            "line 1, column 13: the line ends where the bits of an integer, 64 or 128 should follow".into(),
        ),
        (
            "1 2 integers 64 bits\n".into(),
            "line 1, column 17: `bits` follows the end of the numbers of gates and wires; remove it, or correct the counts \
             before it"
                .into(),
        ),
        (
            gate("2 1 0 3 4 ADD"),
            format!("line 5, column 7: wire 3 is a bit, {over} integers; lift it first (LIFT)"),
        ),
        (
            gate("2 1 0 3 4 AND"),
            format!("line 5, column 5: wire 0 is an integer, {over} bits; take one of its bits first (BIT)"),
        ),
        (
            gate("1 1 0 4 LIFT"),
            format!("line 5, column 5: wire 0 is an integer, {over} bits; take one of its bits first (BIT)"),
        ),
        (
            gate("4 2 3 3 3 1 4 5 MAND"),
            format!("line 5, column 11: wire 1 is an integer, {over} bits; take one of its bits first (BIT)"),
        ),
        (
            gate("2 1 0 18446744073709551616 4 PLUS"),
            "line 5, column 7: `18446744073709551616` is no element of the ring; write a number from 0 to 2^64 - 1, a \
             negative one as what it is modulo 2^64"
                .into(),
        ),
        (
            gate("1 1 -1 4 CONST"),
            "line 5, column 5: `-1` is no element of the ring; write a number from 0 to 2^64 - 1, a negative one as what it \
             is modulo 2^64"
                .into(),
        ),
        (
            gate("2 1 0 64 4 BIT"),
            "line 5, column 7: 64 is beyond the integers of this file; a gate BIT takes 0 to 63".into(),
        ),
        (
            gate("2 1 0 0 4 ZERO"),
            "line 5, column 7: 0 is beyond the integers of this file; a gate ZERO takes 1 to 64".into(),
        ),
        (
            gate("1 1 0 4 SHIFT"),
            "line 5, column 1: a gate SHIFT has 2 inputs and 1 output, not 1 and 1".into(),
        ),
        (
            gate("2 1 0 1 4 NAND"),
            "line 5, column 11: unknown gate `NAND`; over bits there are XOR, AND, INV, EQ and MAND, over integers ADD, SUB, \
             MUL, PLUS, TIMES, CONST, SHIFT and SHIFTN, between them BIT, ZERO, LIFT and APPEND, and EQW over both"
                .into(),
        ),
        (
            gate("1 1 3 4 INV"),
            "line 1, column 3: output `out0` names wire 4, and a port is of integers alone or of bits alone, which are not \
             summed; lift the bit first, or put it out by a port of its own"
                .into(),
        ),
    ] {
        assert_eq!(read(&text), Err(want), "{text}");
    }
}
