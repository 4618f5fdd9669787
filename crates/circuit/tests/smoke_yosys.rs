//! Damaged files of Yosys: the body of the fuzz target on mutations of good files, from a fixed seed.

use crate::common::numbers::Xorshift;
use veil_circuit::yosys::{Options, fuzz, read};

/// Cells with two operands, and what they are to be called.
const CELLS: [&str; 26] = [
    "$add", "$sub", "$mul", "$div", "$mod", "$neg", "$not", "$and", "$or", "$xor", "$eq", "$lt",
    "$ge", "$shl", "$shr", "$sshr", "$shiftx", "$shift", "$pmux", "$mux", "$bmux", "$dff", "$adff",
    "$aldff", "$assert", "$check",
];

const PIECES: [&str; 14] = [
    "\"0\"",
    "\"1\"",
    "\"x\"",
    "\"z\"",
    "2",
    "9",
    "4294967295",
    "4294967296",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"Y\"",
];

/// A design with one cell of each of three kinds.
fn design(kinds: [&str; 3]) -> String {
    let cell = |name: &str, kind: &str, a: &str, b: &str, y: &str| {
        let connections = if kind.contains("dff") {
            format!(r#""D": {a}, "AD": {b}, "CLK": [30], "ARST": [31], "ALOAD": [31], "Q": {y}"#)
        } else {
            format!(r#""A": {a}, "B": {b}, "S": [2], "Y": {y}"#)
        };
        format!(
            r#""{name}": {{ "type": "{kind}", "parameters": {{ "A_SIGNED": "1", "B_SIGNED": "1", "CLK_POLARITY": "1",
              "ARST_POLARITY": "1", "ARST_VALUE": "0101" }}, "attributes": {{ "src": "d.v:3.4-3.9" }},
              "connections": {{ {connections} }} }}"#
        )
    };
    let cells = [
        cell(
            "c",
            kinds[0],
            "[2, 3, 4, 5]",
            "[6, 7, 8, 9]",
            "[10, 11, 12, 13]",
        ),
        cell(
            "d",
            kinds[1],
            "[10, 11, 12, 13]",
            "[2, 3, \"1\", 5]",
            "[14, 15, 16, 17]",
        ),
        cell(
            "e",
            kinds[2],
            "[14, 15, 16, 17]",
            "[9, 9]",
            "[18, 19, 20, 21]",
        ),
    ];
    format!(
        r#"{{ "modules": {{ "t": {{ "attributes": {{ "cycles": "11" }},
          "ports": {{ "x": {{ "direction": "input", "bits": [2, 3, 4, 5] }}, "y": {{ "direction": "input", "bits": [6, 7, 8, 9] }},
            "k": {{ "direction": "input", "bits": [30] }}, "r": {{ "direction": "input", "bits": [31] }},
            "z": {{ "direction": "output", "bits": [18, 19, 20, 21, 13] }} }},
          "cells": {{ {} }},
          "netnames": {{ "q": {{ "bits": [10, 11, 12, 13], "attributes": {{ "init": "0011", "src": "d.v:2.2-2.3" }} }} }} }} }} }}"#,
        cells.join(", ")
    )
}

fn damage(text: &mut Vec<u8>, random: &mut Xorshift) {
    let at = random.below(text.len() + 1);
    match random.below(6) {
        0 => text.truncate(at),
        1 if at < text.len() => text[at] ^= 1 << random.below(8),
        2 if at < text.len() => {
            let end = (at + 1 + random.below(12)).min(text.len());
            text.drain(at..end);
        }
        3 => {
            let end = (at + random.below(60)).min(text.len());
            let piece = text[at..end].to_vec();
            let to = random.below(text.len() + 1);
            text.splice(to..to, piece);
        }
        _ => {
            // A whole number or word, so that it often stays a file.
            let number = |byte: &u8| byte.is_ascii_digit();
            let begin = text[at..]
                .iter()
                .position(number)
                .map_or(text.len(), |to| at + to);
            let end = text[begin..]
                .iter()
                .position(|byte| !number(byte))
                .map_or(text.len(), |to| begin + to);
            text.splice(begin..end, PIECES[random.below(PIECES.len())].bytes());
        }
    }
}

#[test]
fn damaged_files_are_read_or_refused() {
    let mut random = Xorshift(0x5eed_0002);
    let (mut read, mut refused) = (0u32, 0u32);
    for _ in 0..60_000 {
        let kinds = [(); 3].map(|()| CELLS[random.below(CELLS.len())]);
        let mut text = design(kinds).into_bytes();
        for _ in 0..random.below(4) {
            damage(&mut text, &mut random);
        }
        *(if fuzz(&text) { &mut read } else { &mut refused }) += 1;
    }
    // Both paths were taken, often.
    assert!(
        read > 1_000 && refused > 10_000,
        "{read} read, {refused} refused"
    );
}

#[test]
fn cells_that_read_themselves_are_refused() {
    for kind in ["$add", "$neg", "$reduce_or", "$pmux"] {
        let text = format!(
            r#"{{ "modules": {{ "t": {{ "ports": {{ "z": {{ "direction": "output", "bits": [4, 5] }} }},
              "cells": {{ "c": {{ "type": "{kind}", "connections": {{ "A": [2, 3], "B": ["0", "1"], "S": [2], "Y": [2, 3] }} }},
                "d": {{ "type": "{kind}", "connections": {{ "A": [2, 3], "B": [6, 7], "S": [2], "Y": [4, 5] }} }},
                "e": {{ "type": "{kind}", "connections": {{ "A": [4, 5], "B": ["1", "1"], "S": [4], "Y": [6, 7] }} }} }} }} }} }}"#
        );
        let error = read(text.as_bytes(), &Options::default()).unwrap_err();
        assert!(
            error.to_string().contains("depends on itself"),
            "{kind}: {error}"
        );
    }
}
