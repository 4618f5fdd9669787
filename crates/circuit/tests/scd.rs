//! SCD netlists: small ones written by hand, every way in which they can be wrong, and, where there are some, public ones.
//!
//! `VEIL_NETLISTS=folder cargo test --test scd` checks all files of a folder (not of its folders) that are called `NAME_bits_cycles.scd`.

use std::path::Path;

use crate::common::numbers::Xorshift;
use veil_circuit::{Circuit, Limits, Per, Reduce, make, scd, simplify};

/// A bit of two numbers and the carry, in any number of cycles.
const ADDER: &str = "0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n-2\n";

fn read(text: &str, cycles: u64) -> Result<Circuit, String> {
    scd::read(
        text.as_bytes(),
        cycles,
        Reduce::EveryCycle,
        &Limits::default(),
    )
    .map_err(|error| error.to_string())
}

fn bits(value: u128, width: u64) -> Vec<u128> {
    (0..width)
        .map(|k| value.checked_shr(k as u32).unwrap_or(0) & 1)
        .collect()
}

fn value(bits: &[u128]) -> u128 {
    (0..).zip(bits).map(|(k, bit)| bit << k).sum()
}

#[test]
fn a_serial_adder_adds() {
    let circuit = read(ADDER, 8).expect("a good netlist");
    let names: Vec<&str> = circuit.inputs.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["g_input", "e_input"]);
    for (a, b) in [(200, 99), (255, 1), (0, 0), (17, 204)] {
        let out = circuit.evaluate(&[bits(a, 8), bits(b, 8)]).expect("bits");
        assert_eq!(value(&out[0]), (a + b) % 256);
    }
}

/// A gate of the file is one gate, and is put behind what it reads.
#[test]
fn netlists_stand_as_they_are() {
    use scd::{Gate, Kind, Operand};
    let text = "1 0 1 0 1 2 3\n4 0 1\n-3 2 -1\n7 9 12\n5 3\n4\n0\n";
    let netlist = scd::netlist(text.as_bytes(), &Limits::default()).expect("a good netlist");
    assert_eq!(
        (netlist.initial, netlist.cyclic, netlist.inputs()),
        (1, 1, 2)
    );
    let [a, b, of] = [0, 2, 1].map(Operand::Wire);
    let gate = |a, b, kind| Gate { a, b, kind };
    let nand = Kind::And([false, false, true]);
    let expected = [
        gate(a, b, Kind::Xor(true)),
        gate(Operand::Wire(3), Operand::Constant(true), nand),
        gate(of, of, Kind::Not),
    ];
    assert_eq!(netlist.gates, expected);
    // What the file calls 3 and 4 are the other way round.
    assert_eq!(netlist.outputs, [5, 4].map(Operand::Wire));
    assert_eq!(netlist.registers, [(Operand::Wire(3), Operand::Wire(0))]);
    let refused = scd::netlist(b"0 0 1 1 0 1 1\n0\n1\n3\n2\n\n\n", &Limits::default());
    assert!(refused.is_err(), "there is no such type");
}

#[test]
fn every_gate_type_is_its_truth_table() {
    for kind in [1, 2, 4, 6, 7, 8, 9, 11, 13, 14] {
        let text = format!("0 0 1 1 0 1 1\n0\n1\n{kind}\n2\n\n\n");
        let circuit = read(&text, 1).expect("a good netlist");
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let out = circuit.evaluate(&[vec![a], vec![b]]).expect("bits");
            assert_eq!(
                out,
                [[kind >> (2 * a + b) & 1]],
                "type {kind} of {a} and {b}"
            );
        }
    }
    let not = read("0 0 1 0 0 1 1\n0\n-1\n12\n1\n", 1).expect("a good netlist");
    assert_eq!(not.evaluate(&[vec![0]]), Ok(vec![vec![1]]));
}

#[test]
fn the_long_header_has_public_inputs() {
    // p_init g_init e_init p_input g_input e_input dff output terminate gate: q' = q + p, out = q + g_init.
    let text = "0 1 0 1 0 0 1 1 0 2\n2 2\n1 0\n6 6\n4\n3\n-3\n";
    let circuit = read(text, 3).expect("a good netlist");
    let names: Vec<&str> = circuit.inputs.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["g_init", "p_input"]);
    let out = circuit.evaluate(&[vec![1], vec![1, 1, 0]]).expect("bits");
    assert_eq!(out, [[0, 1, 0]]);
    // The same as a release before wrote it, which had no terminate.
    let older = text.replacen("1 1 0 2", "1 1 2", 1);
    assert_eq!(read(&older, 3), Ok(circuit));
}

#[test]
fn flip_flops_that_follow_each_other_move_at_once() {
    // q0' = q1, q1' = q0, q2' = q2; they begin as g_init, 1 and e_init, and there is no gate.
    let text = "1 1 0 0 3 3 0\n\n\n\n2 3 4\n3 2 4\n0 -3 1\n";
    let circuit = read(text, 3).expect("a good netlist");
    let out = circuit.evaluate(&[vec![0], vec![1]]).expect("bits");
    assert_eq!(out, [[0, 1, 1, 1, 0, 1, 0, 1, 1]]);
    let last = scd::read(text.as_bytes(), 2, Reduce::None, &Limits::default());
    let out = last.expect("a good netlist").evaluate(&[vec![0], vec![1]]);
    assert_eq!(out, Ok(vec![vec![1, 0, 1]]));
}

#[test]
fn gates_may_come_in_any_order() {
    // The adder again, its gates from the last to the first.
    let text = "0 0 1 1 1 1 5\n2 0 7 1 0\n5 6 6 2 2\n6 6 8 6 6\n4\n3\n-2\n";
    let (one, other) = (read(ADDER, 4), read(text, 4));
    let (one, other) = (one.expect("good"), other.expect("good"));
    for a in 0..16 {
        for b in 0..16 {
            let inputs = [bits(a, 4), bits(b, 4)];
            assert_eq!(one.evaluate(&inputs), other.evaluate(&inputs));
        }
    }
}

#[test]
fn every_error_has_its_place_and_words() {
    let cases = [
        (
            "",
            "line 1, column 1: 0 numbers where a netlist begins with 7, 9 or 10",
        ),
        (
            "0 0 1 1 1 1\n",
            "line 1, column 1: 6 numbers where a netlist begins with 7, 9 or 10",
        ),
        (
            "0 0 1 x 1 1 5\n",
            "line 1, column 7: expected wires, found `x`",
        ),
        (
            "0 0 1 -1 1 1 5\n",
            "line 1, column 7: expected wires, found `-1`",
        ),
        (
            "0 0 1 1 1 1 99999999\n",
            "line 1, column 13: 99999999 gates are more than the limit of 16777216",
        ),
        (
            "0 0 33554433 1 1 1 5\n",
            "line 1, column 5: 33554433 wires are more than the limit of 33554432",
        ),
        (
            "0 0 33554432 1 1 1 5\n",
            "line 1, column 20: 33554439 wires are more than the limit",
        ),
        (
            "0 0 1 1 1 99999999 5\n",
            "99999999 output wires are more than the limit",
        ),
        (
            "0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4",
            "line 3, column 6: the file ends where the second operand of a gate",
        ),
        (
            "0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n",
            "the file ends where the first value of a flip-flop",
        ),
        (
            "0 0 1 1 0 1 1\n0\n1\n6\n2\n9\n",
            "line 6, column 1: `9` follows the last of 1 gates",
        ),
        (
            "0 0 1 1 0 1 1\n0\n3\n6\n2\n",
            "line 3, column 1: wire 3 does not exist; line 1 declares wires 0 to 2",
        ),
        (
            "0 0 1 1 0 1 1\n0\n-4\n6\n2\n",
            "line 3, column 1: expected a wire, -2 or -3, found `-4`",
        ),
        (
            "0 0 1 1 0 1 1\n0\n-1\n6\n2\n",
            "line 3, column 1: expected a wire, -2 or -3, found `-1`",
        ),
        (
            "0 0 1 1 0 1 1\n0\n1\n5\n2\n",
            "line 4, column 1: 5 is no gate type",
        ),
        (
            "0 0 1 1 0 1 1\n0\n1\n6\n3\n",
            "line 5, column 1: wire 3 does not exist",
        ),
        (
            "0 0 1 1 0 1 1\n0\n2\n6\n2\n",
            "line 2, column 1: wire 2 depends on itself within one cycle",
        ),
        (
            "0 0 1 0 0 1 2\n2 1\n0 0\n6 6\n1\n",
            "wire 1 depends on itself within one cycle",
        ),
        (
            "0 0 1 0 1 1 0\n\n\n\n1\n9\n-2\n",
            "line 6, column 1: wire 9 does not exist",
        ),
        (
            "0 0 1 0 1 1 0\n\n\n\n1\n0\n0\n",
            "register 0 begins as wire 0",
        ),
        (
            "0 1 0 0 1 0 0 1 5 0\n",
            "line 1, column 17: the netlist ends when wire 5 is 1",
        ),
        ("0 0 1 0 0 0 0\n", "output"),
    ];
    for (text, want) in cases {
        let message = read(text, 4).expect_err(text);
        assert!(message.contains(want), "{text:?}: {message}");
    }
    assert!(read(ADDER, 0).is_err_and(|error| error.contains("no cycles")));
    assert!(read(ADDER, 1 << 33).is_err_and(|error| error.contains("8589934592 cycles")));
}

#[test]
fn damaged_netlists_are_read_or_refused() {
    const WORDS: [&str; 12] = [
        "-1",
        "-2",
        "-3",
        "-4",
        "0",
        "1",
        "12",
        "9",
        "4294967296",
        "99999999999999999999",
        "+1",
        "x",
    ];
    let good = [
        ADDER,
        "0 1 0 1 0 0 1 1 0 2\n2 2\n1 0\n6 6\n4\n3\n-3\n",
        "1 1 0 0 3 3 0\n\n\n\n2 3 4\n3 2 4\n0 -3 1\n",
    ];
    let mut random = Xorshift(0x5eed_0005);
    let (mut read, mut refused) = (0u32, 0u32);
    for round in 0..200_000 {
        let mut words: Vec<String> = good[round % good.len()]
            .split_inclusive(char::is_whitespace)
            .map(str::to_owned)
            .collect();
        for _ in 0..=random.below(2) {
            let at = random.below(words.len());
            match random.below(4) {
                0 => words.truncate(at),
                1 if at < words.len() => drop(words.remove(at)),
                2 => words.insert(at, format!("{} ", random.below(12))),
                _ if at < words.len() => {
                    let end = words[at].pop().unwrap_or(' ');
                    words[at] = format!("{}{end}", WORDS[random.below(WORDS.len())]);
                }
                _ => {}
            }
        }
        let mut text = words.concat().into_bytes();
        if random.below(8) == 0 {
            let at = random.below(text.len());
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        *(if scd::fuzz(&text) {
            &mut read
        } else {
            &mut refused
        }) += 1;
    }
    assert!(
        read > 1_000 && refused > 50_000,
        "{read} read, {refused} refused"
    );
}

/// Rows that functions are compared on.
const ROWS: usize = 192;

#[test]
fn public_netlists_compute_what_their_names_say() {
    let Some(folder) = std::env::var_os("VEIL_NETLISTS") else {
        println!("skipped: VEIL_NETLISTS names no folder of netlists");
        return;
    };
    let files = std::fs::read_dir(&folder).expect("the folder of netlists");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "scd"));
    files.sort();
    assert!(!files.is_empty(), "the folder has netlists");
    for file in files {
        let known = public(&file);
        let shown = file.file_name().unwrap_or_default().display().to_string();
        println!("{shown}: {known}");
    }
}

/// Checks a file called `NAME_bits_cycles.scd`.
fn public(file: &Path) -> String {
    let name = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut words = name.split('_');
    let function = words.next().unwrap_or_default().to_owned();
    let mut number = || -> u64 {
        let word = words.next().expect("NAME_bits_cycles.scd");
        word.parse().expect("a number")
    };
    let (width, cycles) = (number(), number());
    let text = std::fs::read(file).expect("a file");
    let circuit = scd::read(&text, cycles, Reduce::EveryCycle, &Limits::default());
    let circuit = circuit.unwrap_or_else(|error| panic!("{name}: {error}"));
    // How many gates and flip-flops there are, by the length of the first line; then the third list has the types: all but XOR, XNOR and
    // NOT are products.
    let words = String::from_utf8_lossy(&text);
    let header = words.lines().next().unwrap_or_default();
    let header = header.split_whitespace().count();
    let registers = if header == 7 { 4 } else { 6 };
    let numbers: Vec<i64> = words
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    let gates = numbers[header - 1] as usize;
    let types = &numbers[header + 2 * gates..header + 3 * gates];
    let ands = types.iter().filter(|t| ![6, 9, 12].contains(*t)).count() as u64;
    let stats = circuit.stats();
    assert_eq!(
        (stats.muls, stats.registers),
        (ands, numbers[registers] as u64),
        "{name}"
    );

    // Rows of random inputs; simplified it computes the same.
    let mut random = Xorshift(0x5eed_0006);
    let simple = simplify(&circuit);
    let mut rows = Vec::new();
    for _ in 0..ROWS {
        let inputs: Vec<Vec<u128>> = (0..circuit.inputs.len())
            .map(|port| {
                (0..circuit.input_width(port))
                    .map(|_| u128::from(random.next() >> 63))
                    .collect()
            })
            .collect();
        let out = circuit.evaluate(&inputs).expect("bits").remove(0);
        assert_eq!(
            simple.evaluate(&inputs).expect("bits"),
            std::slice::from_ref(&out),
            "{name}"
        );
        rows.push((inputs, out));
    }
    let last = circuit.outputs[0].wires.len();
    let checked = function_of(&function, width as usize, &circuit);
    if let Some(compute) = checked {
        // Outputs are sorted by wire, so that which is which has to be found out: every bit is one of them in all rows.
        let want: Vec<Vec<u128>> = rows.iter().map(|(inputs, _)| compute(inputs)).collect();
        let serial = last < want[0].len();
        let outputs = if serial {
            0..rows[0].1.len()
        } else {
            rows[0].1.len() - last..rows[0].1.len()
        };
        for bit in 0..want[0].len() {
            let found = outputs.clone().any(|k| {
                rows.iter()
                    .zip(&want)
                    .all(|((_, out), want)| out[k] == want[bit])
            });
            assert!(found, "{name}: bit {bit} of the result is no output");
        }
    }
    let how = if checked.is_some() {
        "as its name says"
    } else {
        "counted, and the same simplified"
    };
    format!("{stats}; {how}")
}

type Compute = fn(&[Vec<u128>]) -> Vec<u128>;

/// What a netlist of this name computes, as far as we know: all bits of it, the lowest first.
fn function_of(name: &str, width: usize, circuit: &Circuit) -> Option<Compute> {
    fn add(inputs: &[Vec<u128>]) -> Vec<u128> {
        let mut carry = 0;
        let pairs = inputs[0].iter().zip(&inputs[1]);
        let sum = |(a, b): (&u128, &u128)| {
            let all = a + b + carry;
            carry = all >> 1;
            all & 1
        };
        pairs.map(sum).collect()
    }
    fn at_least(inputs: &[Vec<u128>]) -> Vec<u128> {
        let less = inputs[0].iter().rev().lt(inputs[1].iter().rev());
        vec![u128::from(!less)]
    }
    fn distance(inputs: &[Vec<u128>]) -> Vec<u128> {
        let differ = inputs[0].iter().zip(&inputs[1]).filter(|(a, b)| a != b);
        let width = u64::from(usize::BITS - inputs[0].len().leading_zeros());
        bits(differ.count() as u128, width)
    }
    fn aes(inputs: &[Vec<u128>]) -> Vec<u128> {
        // Checked against the standard's vectors where it is made.
        let own = make("aes128").expect("the catalogue has it");
        own.evaluate(inputs).expect("a key and a block").remove(0)
    }
    fn product(inputs: &[Vec<u128>]) -> Vec<u128> {
        // The last bit would come a cycle after the end.
        let mut sum = vec![0; inputs[1].len() - 1];
        for (k, _) in inputs[0].iter().enumerate().filter(|(_, bit)| **bit == 1) {
            let mut carry = 0;
            for (to, bit) in sum[k..].iter_mut().zip(&inputs[1]) {
                let all = *to + bit + carry;
                (*to, carry) = (all & 1, all >> 1);
            }
        }
        sum
    }
    let held = circuit.inputs.first().map(|port| port.per);
    match (name, width) {
        ("Mult", _) if held == Some(Per::Row) => Some(product),
        ("Add", _) => Some(add),
        ("Mill", _) => Some(at_least),
        ("Hamm", _) => Some(distance),
        ("AES", 128) => Some(aes),
        _ => None,
    }
}
