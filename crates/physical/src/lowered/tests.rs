//! Passes of words in the clear, against sums of integers; what has no form in bits.

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::{Builder as Gates, Circuit, Per, Wire};
use veil_job::passes::{ColumnId, PassSpec, ProgramSpec, Take};
use veil_job::{Adversary, Audience, Holder, Security};
use veil_math::Ring;
use veil_operators::{Builder, Key, Participants, Shared, Sharing};

use super::{Lowered, bits_for};
use crate::PhysicalError;

fn builder(security: Security) -> Builder {
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect();
    Builder::new(Participants {
        name: "sums".into(),
        owners: names(&["owner"]),
        parties: names(&["p0", "p1", "p2"]),
        recipients: names(&["recipient"]),
        security,
    })
}

fn malicious() -> Builder {
    builder(Security::among(3).against(Adversary::Malicious))
}

fn lowered(spec: &ProgramSpec) -> Result<ProgramSpec, PhysicalError> {
    let mut lowered = Lowered::new(spec)?;
    lowered.passes()?;
    Ok(lowered.passes)
}

/// Columns of a program of words without moves, by number.
type Columns = HashMap<ColumnId, Vec<u128>>;

/// What is taken in a row.
fn taken(columns: &Columns, take: &Take, row: usize) -> u128 {
    let at = |of: &[ColumnId], place: i64| {
        let mut rows = of.iter().flat_map(|of| &columns[of]);
        let place = usize::try_from(place).ok();
        place.and_then(|at| rows.nth(at)).copied().unwrap_or(0)
    };
    match take {
        Take::Of(of) => columns[of][row],
        Take::Rows { of, first, step } => at(of, first + i64::from(*step) * row as i64),
        Take::Turns { even, odd } => {
            columns[if row.is_multiple_of(2) { even } else { odd }][row / 2]
        }
        Take::Bits { of, first, count } => {
            taken(columns, of, row) >> first & u128::MAX >> (128 - count)
        }
        Take::Within { first, end } => (*first as usize <= row && row < *end as usize).into(),
        Take::Sums {
            of: None,
            row: each,
            constant,
            ring,
            ..
        } => {
            let number = i128::from(*each) * row as i128 + i128::from(*constant);
            ring.reduce(number.cast_unsigned())
        }
        take => panic!("{take:?} is taken by no pass of rows"),
    }
}

/// What the passes open, in their order, of an owner's column.
fn opened(spec: &ProgramSpec, supplied: &[u128]) -> Vec<Vec<u128>> {
    let mut columns = Columns::new();
    let (mut all, mut made) = (Vec::new(), spec.made.iter().peekable());
    for (number, pass) in spec.passes.iter().enumerate() {
        while let Some(made) = made.next_if(|made| made.before as usize == number) {
            let rows = 0..made.rows as usize;
            let column = rows.map(|row| taken(&columns, &made.take, row)).collect();
            columns.insert(made.column, column);
        }
        let PassSpec::Rows {
            job, takes, leaves, ..
        } = pass
        else {
            panic!("no row moves");
        };
        assert_eq!(job.circuit.ring, Ring::Bits);
        let mut left = vec![Vec::new(); leaves.len()];
        for row in 0..job.rows() as usize {
            let ports = takes.iter().zip(&job.circuit.inputs);
            let inputs = ports.map(|(take, port)| {
                let word = take.as_ref();
                let own = supplied.get(row).copied().unwrap_or(0);
                let word = word.map_or(own, |take| taken(&columns, take, row));
                (0..port.width).map(|bit| word >> bit & 1).collect()
            });
            let out = job.circuit.evaluate(&inputs.collect::<Vec<_>>()).unwrap();
            for (left, bits) in left.iter_mut().zip(out) {
                left.push(
                    bits.iter()
                        .zip(0..)
                        .map(|(bit, at)| bit << at)
                        .sum::<u128>(),
                );
            }
        }
        for (column, left) in leaves.iter().zip(left) {
            match column {
                Some(column) => drop(columns.insert(*column, left)),
                None => all.push(left),
            }
        }
    }
    all
}

/// A circuit over integers from one of as many bits as said to what is made of it.
fn of_word(ring: Ring, bits: u32, make: impl FnOnce(&mut Gates, Wire)) -> Circuit {
    let mut b = Gates::new(ring);
    let word = b.input_bits("word", bits);
    let zero = b.constant(0);
    let word = word
        .iter()
        .rev()
        .fold(zero, |word, bit| b.append(word, *bit));
    make(&mut b, word);
    b.finish().unwrap()
}

const fn sums(of: Shared, (row, constant): (i64, i64)) -> Take {
    Take::Sums {
        of: Some(of.column()),
        row,
        constant,
        totals: vec![],
        ring: Ring::Z32,
    }
}

/// Opens a sum over all rows, and in each row those over the rows before it with a public number, of which so many low bits are kept.
fn summed(rows: u32, (row, constant): (i64, i64), kept: u32) -> ProgramSpec {
    let mut b = malicious();
    let word = b.input(Holder::Owner(0), "word", rows, Sharing::Bits(5));
    let both = of_word(Ring::Z32, 5, |b, word| {
        b.output("integer", &[word]);
        b.output_sum("all", &[word]);
    });
    let both = b.compute(both, rows, vec![word.take()]);
    let mut low = Gates::new(Ring::Z32);
    let sum = low.input("sum", 1, Per::Row)[0];
    let bits: Vec<Wire> = (0..kept).map(|bit| low.bit(sum, bit)).collect();
    low.output("low", &bits);
    let takes = vec![sums(both[0], (row, constant))];
    let low = b.compute(low.finish().unwrap(), rows, takes);
    let to = Audience::Recipient(0);
    b.open(&[both[1], low[0]], to, "sums");
    b.finish()
}

#[test]
fn sums_are_those_of_integers() {
    let mut next = 7u64;
    for rows in (1..=40).chain([255, 257]) {
        let words: Vec<u128> = (0..rows)
            .map(|_| {
                next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                u128::from(next >> 59)
            })
            .collect();
        for (number, kept) in [
            ((0, 0), 32),
            ((1, 1), 32),
            ((-2, 7), 32),
            ((3, 0), 6),
            ((0, 0), 3),
        ] {
            let spec = lowered(&summed(rows, number, kept)).unwrap();
            let found = opened(&spec, &words);
            let total: u128 = words.iter().sum();
            assert_eq!(found[0], [total], "{rows} rows");
            let mut before = 0;
            let wanted: Vec<u128> = words
                .iter()
                .zip(0..)
                .map(|(word, at)| {
                    let public = i128::from(number.0) * at + i128::from(number.1);
                    let sum = public.wrapping_add(before);
                    before += word.cast_signed();
                    sum.cast_unsigned() & u128::MAX >> (128 - kept)
                })
                .collect();
            assert_eq!(found[1], wanted, "{rows} rows, {number:?}, {kept} bits");
        }
    }
}

/// A sum has the bits of the largest that it can be, and of running sums no more are made than are read.
#[test]
fn sums_have_the_bits_of_their_largest() {
    for rows in [1, 2, 31, 32, 33, 1000] {
        let spec = lowered(&summed(rows, (0, 0), 4)).unwrap();
        let bits = |name: &str| {
            let mut all = Vec::new();
            for pass in &spec.passes {
                if let PassSpec::Rows { job, .. } = pass {
                    let own = job.circuit.outputs.iter();
                    let own = own.filter(|of| of.name.starts_with(name));
                    all.extend(own.map(|of| of.wires.len() as u32));
                }
            }
            all
        };
        let total = bits("sum").into_iter().max().unwrap_or(5);
        assert_eq!(total, bits_for(31 * u128::from(rows)), "{rows} rows");
        assert!(bits("before").iter().all(|bits| *bits <= 4));
    }
}

/// A sum over rows takes fewer ANDs than two for each bit of a row and one more.
#[test]
fn sums_over_rows_take_few_products() {
    for bits in [1, 5, 14, 33] {
        let mut b = malicious();
        let word = b.input(Holder::Owner(0), "word", 1000, Sharing::Bits(bits));
        let all = of_word(Ring::Z64, bits, |b, word| b.output_sum("all", &[word]));
        let all = b.compute(all, 1000, vec![word.take()]);
        b.open(&all, Audience::Recipient(0), "the sum");
        let spec = lowered(&b.finish()).unwrap();
        let products: u64 = spec
            .passes
            .iter()
            .map(|pass| match pass {
                PassSpec::Rows { job, .. } => job.circuit.stats().total_muls() * job.rows(),
                _ => panic!("no row moves"),
            })
            .sum();
        assert!(
            products < 2 * 1000 * u64::from(bits + 1),
            "{bits} bits: {products}"
        );
        // It is supplied, made a summand, added up three times, and opened.
        assert_eq!(spec.passes.len(), 6);
    }
}

/// A pass whose columns nothing reads is left out, and the column of an integer that nothing reads too.
#[test]
fn what_nothing_reads_is_left_out() {
    let mut b = malicious();
    let word = b.input(Holder::Owner(0), "word", 20, Sharing::Bits(5));
    let square = of_word(Ring::Z64, 5, |b, word| {
        let square = b.mul(word, word);
        b.output("square", &[square]);
    });
    let square = b.compute(square, 20, vec![word.take()]);
    b.shuffle(&square);
    b.open(&[word], Audience::Recipient(0), "the word");
    let spec = lowered(&b.finish()).unwrap();
    assert_eq!(spec.passes.len(), 2);
}

#[test]
fn what_has_no_form_in_bits_is_refused() {
    let refused = |spec: &ProgramSpec, what: &str| match lowered(spec) {
        Err(PhysicalError::NotInBits { what: found }) => assert_eq!(found, what),
        other => panic!("{what}: {other:?}"),
    };
    let integer = |b: &mut Builder| {
        let of = Sharing::Ring(Ring::Z64);
        b.input(Holder::Owner(0), "integer", 4, of)
    };
    // Parties that follow the protocol count digits.
    let mut b = builder(Security::among(3));
    let key = b.input(Holder::Owner(0), "key", 4, Sharing::Bits(3));
    let order = b.sort(&Key::of(&[key]));
    let sorted = b.apply(&order, &[key]);
    b.open(&sorted, Audience::Recipient(0), "the keys");
    refused(&b.finish(), "sort by counting");

    let mut b = malicious();
    let left = [integer(&mut b)];
    let product = b.transposed_product(&left, &left);
    b.open(&product, Audience::Recipient(0), "a square");
    refused(&b.finish(), "multiply matrices");

    let with = |take: &dyn Fn(Shared) -> Take, random: bool| {
        let mut b = malicious();
        let own = integer(&mut b);
        let mut gates = Gates::new(Ring::Z64);
        let mut x = gates.input("x", 1, Per::Row)[0];
        if random {
            let drawn = gates.random();
            x = gates.add(x, drawn);
        }
        gates.output("y", &[x]);
        let out = b.compute(gates.finish().unwrap(), 4, vec![take(own)]);
        b.open(&out, Audience::Recipient(0), "what is taken");
        b.finish()
    };
    let public = |_| Take::Public {
        integers: Arc::new(vec![1, 5, 2, 9]),
        ring: Ring::Z64,
    };
    refused(
        &with(&public, false),
        "take public numbers that follow no rule",
    );
    let totals = |of: Shared| Take::Sums {
        of: None,
        row: 0,
        constant: 0,
        totals: vec![(1, of.column())],
        ring: Ring::Z64,
    };
    refused(
        &with(&totals, false),
        "add totals of columns to sums of their rows",
    );
    refused(
        &with(&|of| of.take(), true),
        "draw values that none of them knows",
    );

    let mut b = malicious();
    let mut gates = Gates::new(Ring::Z64);
    let x = gates.input("x", 1, Per::Row);
    gates.output("y", &x);
    let words = (("x".into(), "integer".into()), 0);
    let loaded = b.loaded(("all", 4), gates.finish().unwrap(), 4, &[words]);
    b.open(&loaded, Audience::Recipient(0), "what is loaded");
    refused(&b.finish(), "load integers");
}
