//! Circuit jobs over integers: from files and from the catalogue, with integers in every format.

use std::{fmt::Write as _, fs};

use crate::common::Case;
use veil_circuit::{Flavour, bristol, make};
use veil_session::Peer;

const HEAD: &str = r#"version = 1
kind = "circuit"
name = "test"
owners = ["a", "b"]
parties = ["p", "q", "r"]
recipients = ["c"]
"#;

/// z = k (x + x') - y, and whether z is less than 2^63, of `x` from two owners and `k` for the whole job.
const LINES: &str = "6 9 integers 64
3 1 1 1
2 1 1

2 1 0 2 3 MUL
2 1 3 1 4 SUB
2 1 4 63 5 BIT
1 1 5 6 INV
1 1 4 7 EQW
1 1 6 8 LIFT
";

fn job(more: &str) -> String {
    format!(
        r#"{HEAD}
[circuit]
file = "circuit.txt"
{more}
[[input]]
port = "in0"
owner = "a"
combine = "sum"
format = "csv"
column = "x"
file = "a.csv"
[[input]]
port = "in0"
owner = "b"
combine = "sum"
format = "hex"
file = "b.hex"
[[input]]
port = "in1"
owner = "b"
format = "binary"
file = "b.bin"
[[input]]
port = "in2"
owner = "a"
per = "job"
format = "csv"
column = "k"
file = "k.csv"
[[output]]
port = "out0"
to = "c"
format = "csv"
signed = true
file = "z.csv"
[[output]]
port = "out0"
to = "c"
format = "hex"
file = "z.hex"
[[output]]
port = "out1"
to = "c"
format = "csv"
file = "less.csv"
"#
    )
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

#[test]
fn a_circuit_of_integers_is_read_and_computed() {
    let y = [5i64, i64::MAX, -1];
    let case = Case::new(&[
        ("job.toml", &job("")),
        ("circuit.txt", LINES),
        ("a.csv", "x\n10\n-3\n18446744073709551615\n"),
        (
            "b.hex",
            "0100000000000000\n0000000000000000\nffffffffffffffff\n",
        ),
        ("k.csv", "k\n-7\n"),
    ]);
    let bytes: Vec<u8> = y.iter().flat_map(|y| y.to_le_bytes()).collect();
    case.write("b.bin", &bytes);
    let job = case.load().unwrap();
    assert_eq!(job.spec().rows(), 3);
    assert_eq!(
        job.spec().opened[0],
        "`out0` of every row: an integer of 64 bits of each of 3 rows"
    );
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    let want = [-82i64, 21i64.wrapping_sub(i64::MAX), 15];
    let text = |name: &str| fs::read_to_string(case.path(&format!("out/{name}"))).unwrap();
    assert_eq!(
        text("z.csv"),
        format!("out0\n{}\n{}\n{}\n", want[0], want[1], want[2])
    );
    let hex = |z: &i64| hex_of(&z.to_le_bytes());
    assert_eq!(
        text("z.hex").lines().collect::<Vec<_>>(),
        want.iter().map(hex).collect::<Vec<_>>()
    );
    assert_eq!(text("less.csv"), "out1\n0\n0\n1\n");
}

/// A product of matrices: several integers in a value, one after the other, and 128 bits.
#[test]
fn values_of_several_integers_are_records() {
    let mut text = Vec::new();
    let circuit = make("matmul128:2x2x1").unwrap();
    bristol::write(&circuit, Flavour::Integers, &mut text).unwrap();
    let job = format!(
        r#"{HEAD}
[circuit]
file = "matmul.txt"
[[input]]
port = "in0"
owner = "a"
format = "binary"
file = "a.bin"
[[input]]
port = "in1"
owner = "b"
format = "hex"
file = "b.hex"
[[output]]
port = "out0"
to = "c"
format = "binary"
file = "z.bin"
"#
    );
    let case = Case::new(&[
        ("job.toml", &job),
        ("matmul.txt", std::str::from_utf8(&text).unwrap()),
    ]);
    let rows: [([i128; 4], [i128; 2]); 2] = [
        ([1, 2, 3, 4], [-5, 6]),
        ([0, 1 << 100, -1, 0], [1 << 20, 3]),
    ];
    let bytes = |values: &[i128]| {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    case.write(
        "a.bin",
        &rows
            .iter()
            .flat_map(|row| bytes(&row.0))
            .collect::<Vec<_>>(),
    );
    let line = |row: &([i128; 4], [i128; 2])| hex_of(&bytes(&row.1)) + "\n";
    case.write(
        "b.hex",
        rows.iter().map(line).collect::<String>().as_bytes(),
    );
    let job = case.load().unwrap();
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    let product = |(a, b): &([i128; 4], [i128; 2])| [0, 2].map(|k| a[k] * b[0] + a[k + 1] * b[1]);
    let want: Vec<u8> = rows.iter().flat_map(|row| bytes(&product(row))).collect();
    assert_eq!(fs::read(case.path("out/z.bin")).unwrap(), want);
}

#[test]
fn what_integers_cannot_be_is_refused() {
    let text = job("rows = 3");
    for (from, to, message) in [
        (
            "combine = \"sum\"",
            "combine = \"xor\"",
            "job.toml:11:1: input port `in0` of the circuit is supplied 2 times; integers have a `sum`: write `combine = \"sum\"` \
             in each",
        ),
        (
            "format = \"binary\"\nfile = \"b.bin\"",
            "format = \"counter\"\nstart = \"00\"",
            "job.toml:27:10: `format` is `counter`: a counter is for circuits of bits",
        ),
        (
            "format = \"hex\"\nfile = \"z.hex\"",
            "format = \"hex\"\nsigned = true\nfile = \"z.hex\"",
            "job.toml:45:10: hex output `out0` has no use for `signed`; remove it",
        ),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        let case = Case::new(&[("job.toml", &changed), ("circuit.txt", LINES)]);
        assert_eq!(case.load().unwrap_err(), message);
    }
    let case = Case::new(&[
        ("job.toml", &text),
        (
            "circuit.txt",
            &LINES.replace("2 1 0 2 3 MUL", "2 1 0 2 3 AND"),
        ),
    ]);
    let found = case.load().unwrap_err();
    assert!(
        found.starts_with(
            "job.toml:9:8: cannot use circuit `circuit.txt`: line 5, column 5: wire 0 is an integer"
        ),
        "{found}"
    );
    let matrix = text.replace("file = \"circuit.txt\"", "make = \"matmul64:1x1x2\"");
    let matrix = matrix
        .replace("\"in0\"", "\"x\"")
        .replace("\"in1\"", "\"y\"");
    let case = Case::new(&[("job.toml", &matrix)]);
    let known = case.load().unwrap_err();
    assert!(known.contains("input port `in2` is not defined"), "{known}");
    let wide = format!(
        "{HEAD}[circuit]\nmake = \"matmul64:1x2x1\"\nrows = 1\n[[input]]\nport = \"x\"\nowner = \"a\"\nformat = \"csv\"\ncolumn = \"x\"\n[[output]]\nport = \"out\"\nto = \"c\"\nformat = \"hex\"\nfile = \"z\"\n"
    );
    let case = Case::new(&[("job.toml", &wide)]);
    let found = case.load().unwrap_err();
    assert!(
        found.contains("port `x` has 2 integers, and a row of a column one; use hex or binary"),
        "{found}"
    );
}
