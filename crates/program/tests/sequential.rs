//! Circuit jobs with registers and cycles: values of all cycles in every format, and the mistakes that there are.

use std::fs;

use crate::common::Case;
use veil_circuit::Per;
use veil_job::{Holder, Slice};
use veil_session::Peer;

/// A bit of two numbers in every cycle, and the carry.
const ADDER: &str = "0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n-2\n";

const JOB: &str = r#"version = 1
kind = "circuit"
name = "serial"
owners = ["a", "b"]
parties = ["p", "q", "r"]
recipients = ["c"]

[circuit]
file = "adder.scd"
cycles = 12

[[input]]
port = "g_input"
owner = "a"
format = "csv"
column = "n"
file = "a.csv"

[[input]]
port = "e_input"
owner = "b"
format = "binary"
pad = "zero"
file = "b.bin"

[[output]]
port = "output"
to = "c"
format = "csv"
file = "sum.csv"

[[output]]
port = "output"
of = "last"
to = "c"
format = "hex"
file = "last.hex"
"#;

fn case(job: &str) -> Case {
    let case = Case::new(&[
        ("job.toml", job),
        ("adder.scd", ADDER),
        ("a.csv", "n\n1000\n4095\n0\n2047\n"),
    ]);
    // Little-endian, the last byte left to the padding.
    case.write("b.bin", &[0xe8, 0x03, 1, 0, 0xff, 0x0f, 7]);
    case
}

#[test]
fn a_value_of_all_cycles_is_one_number() {
    let case = case(JOB);
    let job = case.load().unwrap();
    let circuit = &job.spec().circuit;
    assert_eq!(
        (circuit.clock.cycles, circuit.inputs[1].per),
        (12, Per::Cycle)
    );
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    let text = |name: &str| fs::read_to_string(case.path(&format!("out/{name}"))).unwrap();
    assert_eq!(text("sum.csv"), "output\n2000\n0\n4095\n2054\n");
    // The last bit of each of them.
    assert_eq!(text("last.hex"), "00\n00\n01\n01\n");
}

#[test]
fn a_port_may_have_one_value_for_all_cycles() {
    let one = JOB.replace("owner = \"b\"", "owner = \"b\"\nper = \"job\"");
    let one = one.replace("pad = \"zero\"\n", "");
    let case = case(&one);
    case.write("b.bin", &[1]);
    let job = case.load().unwrap();
    assert_eq!(job.spec().circuit.inputs[1].per, Per::Job);
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    // All ones are added, which is one taken away.
    let text = fs::read_to_string(case.path("out/sum.csv")).unwrap();
    assert_eq!(text, "output\n999\n4094\n4095\n2046\n");
}

#[test]
fn a_port_of_every_cycle_may_be_the_sum_of_several() {
    let more = "[[input]]\nport = \"g_input\"\nowner = \"b\"\ncombine = \"xor\"\nformat = \"hex\"\nfile = \"more.hex\"\n\n[[output]]";
    let several = JOB.replace("owner = \"a\"", "owner = \"a\"\ncombine = \"xor\"");
    let case = case(&several.replacen("[[output]]", more, 1));
    case.write("more.hex", b"ff0f\n0000\n0100\n0000\n");
    let job = case.load().unwrap();
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    let text = fs::read_to_string(case.path("out/sum.csv")).unwrap();
    let want = [(0xfff ^ 0x3e8) + 1000, 4096, 1 + 4095, 2047 + 7].map(|sum| sum % 4096);
    let want = want.map(|sum| sum.to_string()).join("\n");
    assert_eq!(text, format!("output\n{want}\n"));
}

/// What is read of some cycles is that part of what is read of all.
#[test]
fn cycles_are_read_as_they_are_needed() {
    let case = case(JOB);
    let job = case.load().unwrap();
    for (holder, port) in [(Holder::Owner(0), 0), (Holder::Owner(1), 1)] {
        let source = job.source(holder).unwrap();
        for (first, rows) in [(0, 4), (1, 3), (3, 1)] {
            let slice = Slice {
                block: 0,
                first,
                rows,
            };
            let mut all = [0xaa; 12];
            source.fill(port, slice, &mut all).unwrap();
            for start in 0..12 {
                for end in start + 1..=12 {
                    let mut some = vec![0x55; end - start];
                    let cycles = (start as u64..end as u64, 12);
                    source.fill_cycles(port, slice, cycles, &mut some).unwrap();
                    assert_eq!(some, all[start..end], "{start}..{end}");
                }
            }
            assert!(
                source
                    .fill_cycles(port, slice, (0..13, 12), &mut [0; 13])
                    .is_err()
            );
            assert!(
                source
                    .fill_cycles(port, slice, (0..2, 12), &mut [0; 3])
                    .is_err()
            );
        }
    }
}

#[test]
fn mistakes_are_named() {
    let cases = [
        (
            "cycles = 12\n",
            "",
            "an SCD netlist does not say how many cycles it has: write `cycles`",
        ),
        ("cycles = 12", "cycles = 0", "the circuit has no cycles"),
        (
            "cycles = 12",
            "cycles = 5000000000",
            "cycles, and the limit is",
        ),
        ("cycles = 12", "cycles = 20000000", "bits in a value"),
        (
            "cycles = 12",
            "cycles = 200",
            "port `g_input` has 200 bits, and numbers at most 128",
        ),
        ("of = \"last\"", "of = \"first\"", "unknown variant `first`"),
        ("adder.scd", "adder.txt", "No such file"),
    ];
    for (from, to, want) in cases {
        let message = case(&JOB.replacen(from, to, 1)).load().map(|_| ());
        let message = message.unwrap_err();
        assert!(message.contains(want), "{to}: {message}");
    }
    let case = case(JOB);
    case.write("adder.scd", ADDER.replace("-2", "0").as_bytes());
    let message = case.load().map(|_| ()).unwrap_err();
    assert!(message.contains("register 0 begins as wire 0"), "{message}");
}

/// A value of more bits than a circuit may have wires is read where cycles need it.
#[test]
fn many_cycles_are_read_from_a_binary_file() {
    const CYCLES: u64 = 20_000_000;
    let job = &JOB[..JOB.find("[[output]]").unwrap()];
    let last = &JOB[JOB.rfind("[[output]]").unwrap()..];
    let binary = (job.to_owned() + last)
        .replace("cycles = 12", &format!("cycles = {CYCLES}\nrows = 2"))
        .replace(
            "format = \"csv\"\ncolumn = \"n\"\nfile = \"a.csv\"",
            "format = \"binary\"\nfile = \"a.bin\"",
        );
    let case = case(&binary);
    let record = CYCLES as usize / 8;
    for name in ["a.bin", "b.bin"] {
        let file = fs::File::create(case.path(name)).unwrap();
        file.set_len(2 * record as u64).unwrap();
    }
    let mut values = vec![0; 2 * record];
    (values[record - 1], values[2 * record - 1]) = (0b0100_0000, 0b1000_0000);
    case.write("a.bin", &values);
    let source = case.load().unwrap().source(Holder::Owner(0)).unwrap();
    let slice = Slice {
        block: 0,
        first: 0,
        rows: 2,
    };
    let mut some = [0xaa; 3];
    let last = (CYCLES - 3..CYCLES, CYCLES);
    source.fill_cycles(0, slice, last, &mut some).unwrap();
    assert_eq!(some, [0, 0b01, 0b10]);
}
