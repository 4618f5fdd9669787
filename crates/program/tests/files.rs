//! Circuit jobs: formats in and out, padding, split keys, several recipients, broken files.

use std::fs;

use crate::common::Case;
use aes::{
    Aes128,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use veil_job::{Slice, Source};
use veil_session::Peer;

const HEAD: &str = r#"
version = 1
kind = "circuit"
name = "test"
owners = ["a", "b", "p"]
parties = ["p", "q", "r"]
recipients = ["c", "d"]
"#;

fn adder(rows: &str, output: &str) -> String {
    format!(
        r#"{HEAD}
        [circuit]
        make = "adder:12"
        {rows}
        [[input]]
        port = "x"
        owner = "a"
        format = "csv"
        column = "n"
        file = "a.csv"
        [[input]]
        port = "y"
        owner = "p"
        format = "hex"
        file = "b.hex"
        {output}
        "#
    )
}

const TO_CSV: &str = "[[output]]\nport = \"out\"\nto = \"c\"\nformat = \"csv\"\nfile = \"sum.csv\"";

#[test]
fn integers_are_added() {
    let outputs = format!(
        "{TO_CSV}\n[[output]]\nport = \"out\"\nto = \"c\"\nformat = \"hex\"\nfile = \"deep/sum.hex\"\n\
         [[output]]\nport = \"out\"\nto = \"d\"\nformat = \"binary\"\nfile = \"sum.bin\"\nbytes = 5"
    );
    let case = Case::new(&[
        ("job.toml", &adder("", &outputs)),
        ("a.csv", "id,n\r\n1,4095\r\n2,-3\r\n3,0x10\r\n"),
        ("b.hex", "0100\n0500\nFF0f\n"),
    ]);
    let job = case.load().unwrap();
    assert_eq!(job.spec().rows(), 3);
    assert_eq!(job.spec().owners, ["a", "b"]);
    let names: Vec<&str> = job
        .spec()
        .circuit
        .outputs
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    assert_eq!(names, ["out", "out 2", "out 3"]);
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    assert_eq!(
        fs::read_to_string(case.path("out/sum.csv")).unwrap(),
        "out\n0\n2\n15\n"
    );
    assert_eq!(
        fs::read_to_string(case.path("out/deep/sum.hex")).unwrap(),
        "0000\n0200\n0f00\n"
    );
    assert!(
        !case.path("out/sum.bin").exists(),
        "it is for another recipient"
    );
    case.evaluate(&job, Peer::Recipient(1)).unwrap();
    assert_eq!(
        fs::read(case.path("out/sum.bin")).unwrap(),
        [0, 0, 2, 0, 15]
    );
}

#[test]
fn broken_files_are_explained() {
    for (a, b, message) in [
        (
            "n\n1\n",
            "0000\n0000\n",
            "rows do not align: a.csv has 1 rows, but the job declares 2 for input `x`; \
          the rows of all owners must be the same ones in the same order",
        ),
        (
            "n\n1\n2\n",
            "0000\n0000\n0000",
            "rows do not align: b.hex has 3 rows, but the job declares 2 for input `y`",
        ),
        (
            "m\n1\n2\n",
            "0000\n0000\n",
            "a.csv: no column `n`; the header names `m`",
        ),
        (
            "",
            "0000\n0000\n",
            "a.csv: the file is empty, or its first line is; the first line must name the columns",
        ),
        (
            "n\n1\n4096\n",
            "0000\n0000\n",
            "a.csv: line 3 (row 2), column `n`: `4096` does not fit 12 bits",
        ),
        (
            "n\n1\nx\n",
            "0000\n0000\n",
            "a.csv: line 3 (row 2), column `n`: `x` is not a number",
        ),
        (
            "n\n1\n2\n",
            "0000\n000\n",
            "b.hex: line 2: needs exactly 4 hexadecimal digits for 12 bits",
        ),
        (
            "n\n1\n2\n",
            "0000\n0010\n",
            "b.hex: line 2: has bits beyond the 12 of the port; they must be 0",
        ),
    ] {
        let case = Case::new(&[
            ("job.toml", &adder("rows = 2", TO_CSV)),
            ("a.csv", a),
            ("b.hex", b),
        ]);
        let job = case.load().unwrap();
        let found = case.sources(&job).map(|_| ()).expect_err(message);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let case = Case::new(&[
        ("job.toml", &adder("rows = 2", TO_CSV)),
        ("b.hex", "0000\n0000\n"),
    ]);
    let found = case.sources(&case.load().unwrap()).map(|_| ()).unwrap_err();
    assert_eq!(
        found,
        "cannot open a.csv: No such file or directory (os error 2); check the path in the job, it is relative to the job file"
    );
    let case = Case::new(&[
        ("job.toml", &adder("", TO_CSV)),
        ("a.csv", "n\n1\n"),
        ("b.hex", "0000\n0000\n"),
    ]);
    let found = case.load().unwrap_err();
    assert!(
        found.ends_with("rows do not align: a.csv has 1 rows, b.hex has 2"),
        "{found}"
    );
}

/// Of three owners, one of whom also gives what is added to it; modulo 2^12.
#[test]
fn a_sum_of_several_owners_is_one_modulo_the_width() {
    let input = |port: &str, owner: &str, combine: &str| {
        let column = format!("{port} of {owner}");
        format!(
            "[[input]]\nport = \"{port}\"\nowner = \"{owner}\"\n{combine}\nformat = \"csv\"\n\
             column = \"{column}\"\nfile = \"{owner}.csv\"\n"
        )
    };
    let inputs = ["a", "b", "p"].map(|owner| input("x", owner, "combine = \"sum\""));
    let job = format!(
        "{HEAD}[circuit]\nmake = \"adder:12\"\n{}{}{TO_CSV}",
        inputs.concat(),
        input("y", "p", "")
    );
    let rows: [[u32; 4]; 4] = [
        [1, 2, 3, 4],
        [4095, 4095, 4095, 4095],
        [2048, 2048, 0, 7],
        [4000, 90, 5, 0],
    ];
    let table = |header: &str, columns: &[usize]| {
        let cell = |row: &[u32; 4]| columns.iter().map(|c| row[*c].to_string()).collect();
        let lines = rows.iter().map(|row| {
            let cells: Vec<String> = cell(row);
            cells.join(",") + "\n"
        });
        format!("{header}\n") + &lines.collect::<String>()
    };
    let case = Case::new(&[
        ("job.toml", &job),
        ("a.csv", &table("x of a", &[0])),
        ("b.csv", &table("x of b", &[1])),
        ("p.csv", &table("x of p,y of p", &[2, 3])),
    ]);
    let job = case.load().unwrap();
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    let sums = rows.map(|row| format!("{}\n", row.iter().sum::<u32>() % 4096));
    let found = fs::read_to_string(case.path("out/sum.csv")).unwrap();
    assert_eq!(found, "out\n".to_owned() + &sums.concat());
}

fn block_cipher(pad: &str, output: &str) -> String {
    format!(
        r#"{HEAD}
        [circuit]
        make = "aes128"
        [[input]]
        port = "key"
        owner = "a"
        combine = "xor"
        format = "binary"
        file = "a.key"
        [[input]]
        port = "key"
        owner = "b"
        combine = "xor"
        format = "hex"
        file = "b.key"
        [[input]]
        port = "block"
        owner = "p"
        format = "binary"
        file = "text"
        {pad}
        [[output]]
        port = "out"
        to = "parties"
        format = "binary"
        file = "cipher"
        {output}
        "#
    )
}

#[test]
fn padding_follows_the_standard() {
    // FIPS 197, appendix B, as the XOR of two halves.
    let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128;
    let half = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef_u128;
    let cipher = Aes128::new(&key.to_be_bytes().into());
    let text: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for (length, pad, fill) in [
        (0, 16, 16),
        (5, 11, 11),
        (16, 16, 16),
        (99_983, 1, 1),
        (31, 1, 0),
        (32, 0, 0),
    ] {
        let pkcs7 = fill > 0;
        let case = Case::new(&[
            (
                "job.toml",
                &block_cipher(
                    if pkcs7 {
                        "pad = \"pkcs7\""
                    } else {
                        "pad = \"zero\""
                    },
                    "",
                ),
            ),
            ("b.key", &format!("{:032x}", key ^ half)),
        ]);
        case.write("a.key", &half.to_be_bytes());
        case.write("text", &text[..length]);
        let job = case.load().unwrap();
        case.evaluate(&job, Peer::Party(veil_session::PartyId::THREE[1]))
            .unwrap();
        let padded = [&text[..length], &vec![fill; pad][..]].concat();
        let want: Vec<u8> = padded
            .chunks_exact(16)
            .flat_map(|chunk| {
                let mut block = <[u8; 16]>::try_from(chunk).unwrap().into();
                cipher.encrypt_block(&mut block);
                <[u8; 16]>::from(block)
            })
            .collect();
        assert_eq!(
            fs::read(case.path("out/cipher")).unwrap(),
            want,
            "{length} bytes"
        );
    }
}

#[test]
fn binary_files_are_checked_and_read_where_they_are_needed() {
    let case = Case::new(&[
        ("job.toml", &block_cipher("", "")),
        ("b.key", &"0".repeat(32)),
    ]);
    case.write("a.key", &[1; 16]);
    case.write("text", &[7; 40]);
    let found = case.load().unwrap_err();
    assert!(
        found.ends_with(
            "text: 40 bytes are not a multiple of the record of 16 bytes; cut or complete the last record, or set \
             `pad = \"zero\"` or `pad = \"pkcs7\"`"
        ),
        "{found}"
    );
    case.write("text", &[7; 48]);
    case.write("a.key", &[1; 32]);
    let job = case.load().unwrap();
    let found = case.sources(&job).map(|_| ()).unwrap_err();
    assert!(
        found.starts_with(
            "rows do not align: a.key has 2 rows, but the job declares 1 for input `key`"
        ),
        "{found}"
    );

    case.write("a.key", &[1; 16]);
    let sources = case.sources(&job).unwrap();
    let party: &dyn Source = sources
        .iter()
        .find(|source| {
            source
                .0
                .peer()
                .and_then(veil_session::Peer::party)
                .is_some()
        })
        .unwrap()
        .1
        .as_ref();
    let port = job
        .spec()
        .circuit
        .inputs
        .iter()
        .position(|port| port.name == "block")
        .unwrap();
    let mut into = vec![0; 128];
    let slice = |block, first, rows| Slice { block, first, rows };
    party.fill(port, slice(0, 1, 2), &mut into).unwrap();
    assert!((0..128).all(|bit| into[bit] == if 7 >> (bit % 8) & 1 == 1 { 3 } else { 0 }));
    for (port, slice) in [
        (port, slice(0, 2, 2)),
        (port, slice(0, u64::MAX, 1)),
        (port, slice(1, 0, 1)),
        (port, slice(0, 0, 9)),
        (0, slice(0, 0, 1)),
        (99, slice(0, 0, 1)),
    ] {
        let error = party
            .fill(port, slice, &mut into)
            .expect_err("out of reach")
            .to_string();
        assert!(
            error.contains("this is a mistake of the program"),
            "{error}"
        );
    }
    fs::OpenOptions::new()
        .write(true)
        .open(case.path("text"))
        .unwrap()
        .set_len(20)
        .unwrap();
    let error = party
        .fill(port, slice(0, 1, 2), &mut into)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("changed while the job was running"),
        "{error}"
    );
}

#[test]
fn results_that_cannot_be_written_are_refused_before_anything_is_computed() {
    let case = Case::new(&[
        ("job.toml", &adder("rows = 1", TO_CSV)),
        ("a.csv", "n\n1\n"),
        ("b.hex", "0000\n"),
        ("out", "a file where the folder should be"),
    ]);
    let error = case
        .evaluate(&case.load().unwrap(), Peer::Recipient(0))
        .map(|_| ())
        .unwrap_err();
    assert!(error.starts_with("cannot create the folder "), "{error}");
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let folder = std::path::Path::new("/dev/full");
    if !folder.exists() {
        println!("skipped: no /dev/full on this machine");
        return;
    }
    let source = fs::OpenOptions::new().write(true).open(folder).unwrap();
    let error = std::io::Write::write_all(&mut &source, b"x").unwrap_err();
    let shown = veil_job::DataError::Io {
        doing: "write",
        file: "result".into(),
        source: error,
    }
    .to_string();
    assert_eq!(
        shown,
        "cannot write result: No space left on device (os error 28); free some space and run again, nothing was published"
    );
}
