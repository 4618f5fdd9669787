//! Words that move among three parties of whom one may be malicious.

use veil_job::passes::{ColumnForm, MoveKind, PassSpec, ProgramSpec};
use veil_job::{Audience, Holder};
use veil_math::Ring;
use veil_operators::{Duplicates, Key, Sharing};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;

use crate::common::programs::{CPU, Factory, REFERENCE, builder, opened, proving, random};

/// Numbers of rows around the ends of words of 64 and of tiles.
const ROWS: [u32; 7] = [1, 2, 63, 64, 65, 513, 700];

fn devices(rows: u32) -> &'static [Factory] {
    if rows < 3 { &[REFERENCE, CPU] } else { &[CPU] }
}

#[test]
fn shuffled_rows_are_the_rows_in_another_order() {
    for rows in [300, 2000] {
        let widths = [1, 9, 17, 64, 127];
        let columns: Vec<Vec<u128>> = (1..).zip(widths).map(|(k, w)| random(k, rows, w)).collect();
        let mut b = builder(proving(), 3);
        let shared: Vec<_> = widths
            .iter()
            .map(|bits| b.input(Holder::Owner(0), "x", rows, Sharing::Bits(*bits)))
            .collect();
        let once = b.shuffle(&shared);
        let twice = b.shuffle(&once);
        b.open(&twice, Audience::Recipient(0), "the rows");
        let spec = b.finish();
        let found = opened(&spec, &columns, CPU, 1);
        let all = |of: &[Vec<u128>]| -> Vec<Vec<u128>> {
            let row = |row| of.iter().map(|column| column[row]).collect();
            (0..rows as usize).map(row).collect()
        };
        let (mut before, mut after) = (all(&columns), all(&found));
        assert_ne!(before, after);
        before.sort_unstable();
        after.sort_unstable();
        assert_eq!(before, after);
    }
}

#[test]
fn sorted_rows_are_sorted_and_equal_keys_keep_their_order() {
    for rows in ROWS {
        for (bits, lanes) in [(13, 1), (20, 2), (125, 1)] {
            let columns = [
                random(3, rows, bits)
                    .iter()
                    .map(|key| key / 3 * 3)
                    .collect(),
                (0..rows.into()).collect::<Vec<u128>>(),
            ];
            let mut wanted: Vec<[u128; 2]> = (0..rows as usize)
                .map(|row| [columns[0][row], columns[1][row]])
                .collect();
            wanted.sort_unstable();
            let mut b = builder(proving(), 3);
            let mut input = |bits| b.input(Holder::Owner(0), "x", rows, Sharing::Bits(bits));
            let (keys, payload) = (input(bits), input(32));
            let order = b.sort(&Key::of(&[keys]));
            let sorted = b.apply(&order, &[keys, payload]);
            b.open(&sorted, Audience::Recipient(0), "the rows in order");
            let spec = b.finish();
            for device in devices(rows) {
                let found = opened(&spec, &columns, *device, lanes);
                let found: Vec<[u128; 2]> = (0..rows as usize)
                    .map(|row| [found[0][row], found[1][row]])
                    .collect();
                assert!(found == wanted, "{rows} rows, {bits} bits");
            }
        }
    }
}

/// Rows go to an order, and back.
#[test]
fn looked_up_values_are_those_of_the_key() {
    for (rows, others) in [(1, 3), (40, 25), (300, 450)] {
        let of: Vec<u128> = (0..others)
            .map(|row| (u128::from(row) * 7 % 8192) << 1)
            .collect();
        let by: Vec<u128> = random(4, rows, 10)
            .iter()
            .map(|key| (key * 3 % 8192) << 1)
            .collect();
        let values = random(5, others, 90);
        let mut b = builder(proving(), 3);
        let mut input = |rows, bits| b.input(Holder::Owner(0), "x", rows, Sharing::Bits(bits));
        let (key, keys, value) = (input(rows, 14), input(others, 14), input(others, 90));
        let found = b.look_up(
            &[key],
            &[keys],
            &[value],
            Duplicates::Refused("keys are there once"),
        );
        let (there, value) = (found.found, found.columns[0]);
        b.open(&[there, value], Audience::Recipient(0), "what was found");
        let columns = [by.clone(), of.clone(), values.clone()];
        let found = opened(&b.finish(), &columns, CPU, 1);
        for (row, key) in by.iter().enumerate() {
            let at = of.iter().position(|of| of == key);
            assert_eq!(
                found[0][row],
                u128::from(at.is_some()),
                "{rows} rows, row {row}"
            );
            if let Some(at) = at {
                assert_eq!(found[1][row], values[at], "{rows} rows, row {row}");
            }
        }
    }
}

fn refused(spec: &ProgramSpec) -> String {
    let planned = PassProgram::new(spec, Options::default());
    planned.expect_err("what they do not move").to_string()
}

#[test]
fn integers_do_not_move_and_positions_are_not_opened() {
    const WORDS: &str =
        "three parties of whom one may be malicious move words, and open no positions";
    let mut b = builder(proving(), 3);
    let word = b.input(Holder::Owner(0), "x", 20, Sharing::Bits(20));
    let moved = b.shuffle(&[word]);
    b.open(&moved, Audience::Recipient(0), "the rows");
    let spec = b.finish();
    PassProgram::new(&spec, Options::default()).unwrap();
    let at = spec
        .passes
        .iter()
        .position(|pass| matches!(pass, PassSpec::Move { .. }));
    let at = at.unwrap();
    for (kind, form) in [
        (MoveKind::Open, ColumnForm::Ring(Ring::Z32)),
        (MoveKind::Rank, ColumnForm::Ring(Ring::Z32)),
        (MoveKind::There, ColumnForm::Ring(Ring::Z64)),
    ] {
        let mut spec = spec.clone();
        let PassSpec::Move {
            kind: of, takes, ..
        } = &mut spec.passes[at]
        else {
            unreachable!("it moves")
        };
        *of = kind;
        takes[0].1 = form;
        assert_eq!(refused(&spec), format!("pass {at} of the program: {WORDS}"));
    }
    let mut long = spec.clone();
    if let PassSpec::Move { rows, .. } = &mut long.passes[at] {
        *rows = 1 << 31;
    }
    let said = refused(&long);
    assert!(
        said.ends_with("three parties of whom one may be malicious move fewer than 2^31 rows"),
        "{said}"
    );
    let mut b = builder(proving(), 3);
    let number = b.input(Holder::Owner(0), "x", 20, Sharing::Ring(Ring::Z64));
    let square = b.transposed_product(&[number], &[number]);
    b.open(&square, Audience::Recipient(0), "a product");
    let said = refused(&b.finish());
    assert!(
        said.contains("matrices are multiplied among three parties that are semi-honest"),
        "{said}"
    );
}
