//! Takes over wires, against what they mean.

use std::sync::Arc;

use veil_circuit::{Builder, Per, Wire};
use veil_job::passes::{Axis, ColumnId, Take};
use veil_math::Ring;

use super::columns::{Column, Columns};

fn bits(number: u128, count: u32) -> Vec<u128> {
    (0..count).map(|bit| number >> bit & 1).collect()
}

fn number(bits: &[u128]) -> u128 {
    bits.iter().zip(0..).map(|(bit, at)| bit << at).sum()
}

/// What is taken of two columns of five and four rows of seven bits, as numbers.
fn taken(take: &Take, rows: usize, width: usize) -> (Vec<u128>, [Vec<u128>; 2]) {
    let values = [vec![5, 100, 127, 0, 64], vec![1, 2, 99, 77]];
    let mut b = Builder::new(Ring::Bits);
    let mut columns = Columns::default();
    let mut inputs = Vec::new();
    for (id, values) in values.iter().enumerate() {
        let words: Vec<Vec<Wire>> = values
            .iter()
            .enumerate()
            .map(|(row, value)| {
                inputs.push(bits(*value, 7));
                b.input(format!("c{id}r{row}"), 7, Per::Row)
            })
            .collect();
        columns.leave(ColumnId(id as u32), Column::of(&words, 7));
    }
    let all = columns.take(&mut b, take, (rows, width)).unwrap();
    assert_eq!(all.len(), rows);
    b.output("all", &all.concat());
    let found = b.finish().unwrap().evaluate(&inputs).unwrap();
    let words = found[0].chunks(width).map(number);
    (words.collect(), values)
}

#[test]
fn takes_are_rows_of_columns() {
    let [c0, c1] = [ColumnId(0), ColumnId(1)];
    let of = |take: Take, rows, width| taken(&take, rows, width).0;
    let (_, [first, second]) = taken(&Take::Of(c0), 5, 7);
    assert_eq!(of(Take::Of(c0), 5, 9), first);
    assert_eq!(of(Take::Of(c0), 5, 3), [5, 4, 7, 0, 0]);
    let stacked = |from, step| Take::Rows {
        of: vec![c0, c1],
        first: from,
        step,
    };
    let both = [first.clone(), second.clone()].concat();
    assert_eq!(of(stacked(0, 1), 9, 7), both);
    assert_eq!(of(stacked(-1, 1), 4, 7), [0, 5, 100, 127]);
    assert_eq!(of(stacked(8, -2), 6, 7), [77, 2, 64, 127, 5, 0]);
    assert_eq!(of(stacked(3, 3), 3, 7), [0, 2, 0]);
    assert_eq!(of(stacked(1, 0), 3, 7), [100; 3]);
    let turns = Take::Turns { even: c0, odd: c1 };
    assert_eq!(of(turns, 9, 7), [5, 1, 100, 2, 127, 99, 0, 77, 64]);
    // Three rows of three: every other column from the one before the first on, of rows 2, 1 and one that there is not.
    let axes = vec![
        Axis {
            length: 3,
            first: 2,
            step: -1,
            count: 4,
        },
        Axis {
            length: 3,
            first: -1,
            step: 2,
            count: 2,
        },
    ];
    let view = Take::View {
        of: vec![c0, c1],
        axes,
    };
    assert_eq!(of(view, 8, 7), [0, 99, 0, 64, 0, 100, 0, 0]);
    let public = Take::Public {
        integers: Arc::new(vec![3, -1]),
        ring: Ring::Z32,
    };
    assert_eq!(of(public, 2, 32), [3, u128::from(u32::MAX)]);
    assert_eq!(of(Take::Of(c0).bits(2, 3), 5, 4), [1, 1, 7, 0, 0]);
    assert_eq!(of(Take::Within { first: 1, end: 3 }, 4, 1), [0, 1, 1, 0]);
    let numbered = |of: Option<Take>| Take::Numbered {
        of: of.map(Box::new),
        bits: 3,
    };
    assert_eq!(of(numbered(None), 5, 3), [0, 1, 2, 3, 4]);
    let words = of(numbered(Some(Take::Of(c0))), 5, 10);
    let wanted: Vec<u128> = first
        .iter()
        .zip(0..)
        .map(|(word, row)| word << 3 | row)
        .collect();
    assert_eq!(words, wanted);
    let sums = |of, totals| Take::Sums {
        of,
        row: -2,
        constant: 7,
        totals,
        ring: Ring::Z32,
    };
    let ring = |value: i128| Ring::Z32.reduce(value.cast_unsigned());
    let rows = |values: [i128; 5]| values.map(ring).to_vec();
    assert_eq!(of(sums(None, vec![]), 5, 32), rows([7, 5, 3, 1, -1]));
    assert_eq!(
        of(sums(Some(c0), vec![]), 5, 32),
        rows([7, 10, 108, 233, 231])
    );
    // 296 and 179 in all.
    let totals = vec![(-1, c0), (3, c1)];
    assert_eq!(
        of(sums(Some(c0), totals), 5, 32),
        rows([7, 10, 108, 233, 231].map(|sum| sum - 296 + 3 * 179))
    );
}

#[test]
fn what_is_not_there_is_no_panic() {
    let mut b = Builder::new(Ring::Bits);
    let columns = Columns::default();
    let refused = |take: &Take, b: &mut Builder| columns.take(b, take, (2, 3)).unwrap_err();
    for take in [
        Take::Of(ColumnId(3)),
        Take::shifted(ColumnId(3), 1),
        Take::Compared {
            of: ColumnId(3),
            second: true,
        },
        Take::Public {
            integers: Arc::new(vec![1]),
            ring: Ring::Z64,
        },
    ] {
        let said = refused(&take, &mut b).to_string();
        assert!(said.contains("what no pass before it has left"), "{said}");
    }
}
