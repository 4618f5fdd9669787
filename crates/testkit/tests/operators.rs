//! Relational operators over shares, against the same in the clear.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_circuit::{Builder as Gates, Circuit, Per};
use veil_engine::Abort;
use veil_job::passes::{Axis, ColumnId, ProgramSpec, Take};
use veil_job::{Audience, Holder, Security};
use veil_math::Ring;
use veil_operators::{
    Arranged, Builder, Duplicates, GroupKey, Grouped, Key, Scan, Shared, Sharing,
};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::Peer;

use crate::common::programs::{
    CPU, Ends, Factory, REFERENCE, builder, honest, opened, parties, random, run, securities,
};

/// Numbers of rows around the ends of chunks and of words.
const ROWS: [u32; 8] = [1, 2, 3, 40, 511, 512, 513, 2000];

fn device(rows: u32) -> Factory {
    if rows < 100 { REFERENCE } else { CPU }
}

/// Runs what `with` writes over columns, by every protocol: what is opened.
fn everywhere(
    columns: &[(Vec<u128>, Sharing)],
    lanes: u16,
    with: impl Fn(&mut Builder, &[Shared]) -> Vec<Shared>,
) -> Vec<(Security, Vec<Vec<u128>>)> {
    let each = securities().map(|security| {
        let mut b = builder(security, parties(security));
        let owner = Holder::Owner(0);
        let inputs: Vec<Shared> = columns
            .iter()
            .map(|(values, sharing)| b.input(owner, "x", values.len() as u32, *sharing))
            .collect();
        let left = with(&mut b, &inputs);
        for column in left {
            b.open(&[column], Audience::Recipient(0), "a column");
        }
        let values: Vec<Vec<u128>> = columns.iter().map(|(values, _)| values.clone()).collect();
        let most = values.iter().map(Vec::len).max().unwrap() as u32;
        (security, opened(&b.finish(), &values, device(most), lanes))
    });
    each.into()
}

fn bits(values: Vec<u128>, bits: u32) -> (Vec<u128>, Sharing) {
    (values, Sharing::Bits(bits))
}

/// Sums over the rows before a chunk are right however short chunks are: a job may ask for 64 rows.
#[test]
fn chunks_of_any_length_give_the_same_groups() {
    let rows = 700;
    let (keys, values) = (random(7, rows, 3), random(9, rows, 64));
    let wanted = grouped(&keys, &vec![1; rows as usize], &values, &values);
    for security in securities() {
        for chunk_rows in [64, 128, 200, 512, 1024] {
            let mut b = builder(security, parties(security));
            let owner = Holder::Owner(0);
            let key = b.input(owner, "key", rows, Sharing::Bits(3));
            let value = b.input(owner, "value", rows, Sharing::Ring(Ring::Z64));
            let by = GroupKey {
                words: &[key],
                all: true,
                arranged: Arranged::Anyhow,
            };
            let groups = b.group(by, &[value], &[]);
            let columns = [groups.key[0], groups.count, groups.sums[0]];
            b.open(&columns, Audience::Recipient(0), "a column");
            let options = Options {
                lanes: 2,
                chunk_rows: Some(chunk_rows),
            };
            let program = Arc::new(PassProgram::new(&b.finish(), options).unwrap());
            let ends = Ends::of(&program, &[keys.clone(), values.clone()]);
            run(&program, &ends, CPU, &honest()).unwrap();
            let found = ends.opened(&program);
            let found = |group: usize| [0, 1, 2].map(|column: usize| found[column][group]);
            for (group, [key, count, sum, ..]) in wanted.iter().enumerate() {
                assert_eq!(
                    found(group),
                    [*key, *count, *sum],
                    "{security}, chunks of {chunk_rows}"
                );
            }
        }
    }
}

/// Groups of valid rows by a key, in the clear: key, rows, sum, smallest, largest.
fn grouped(keys: &[u128], valid: &[u128], values: &[u128], words: &[u128]) -> Vec<[u128; 5]> {
    let mut groups: BTreeMap<u128, [u128; 4]> = BTreeMap::new();
    for row in (0..keys.len()).filter(|row| valid[*row] == 1) {
        let group = groups.entry(keys[row]).or_insert([0, 0, u128::MAX, 0]);
        group[0] += 1;
        group[1] = Ring::Z64.add(group[1], values[row]);
        group[2] = group[2].min(words[row]);
        group[3] = group[3].max(words[row]);
    }
    let all = groups.into_iter();
    all.map(|(key, of)| [key, of[0], of[1], of[2], of[3]])
        .collect()
}

#[test]
fn groups_have_the_sums_and_ends_of_their_rows() {
    type Fill = fn(u32) -> Vec<u128>;
    let all: Fill = |rows| vec![1; rows as usize];
    let none: Fill = |rows| vec![0; rows as usize];
    let some: Fill = |rows| random(8, rows, 1);
    let cases = [
        (1, 1, all),
        (1, 3, none),
        (2, 1, some),
        (511, 3, some),
        (513, 8, some),
        (600, 2, all),
        (40, 4, none),
        (5000, 7, some),
    ];
    let known = [Arranged::Anyhow, Arranged::ByKey, Arranged::Fully];
    let cases = cases
        .into_iter()
        .flat_map(|of| known.map(|known| (of, known)));
    for ((rows, key_bits, valid), arranged) in cases {
        // Sums of any integers, which may wrap on the way.
        let (mut keys, mut valid) = (random(7, rows, key_bits), valid(rows));
        if arranged != Arranged::Anyhow {
            keys.sort_unstable();
        }
        if arranged == Arranged::Fully {
            valid.sort_unstable_by_key(|valid| 1 - valid);
        }
        let whole = arranged == Arranged::Fully && !valid.contains(&0);
        let (values, words) = (random(9, rows, 64), random(10, rows, 11));
        let wanted = grouped(&keys, &valid, &values, &words);
        let columns = [
            bits(keys, key_bits),
            bits(valid, 1),
            (values, Sharing::Ring(Ring::Z64)),
            bits(words, 11),
        ];
        for (security, found) in everywhere(&columns, 1, |b, inputs| {
            let [key, valid, value, word] = inputs[..] else {
                unreachable!("four columns")
            };
            let key = if whole { key } else { b.key(key, valid) };
            let value = b.zeroed(value, valid);
            let by = GroupKey {
                words: &[key],
                all: whole,
                arranged,
            };
            let groups = b.group(by, &[value], &[(Scan::Min, word), (Scan::Max, word)]);
            let mut open = vec![groups.key[0], groups.valid, groups.count, groups.sums[0]];
            open.extend(groups.scanned);
            open
        }) {
            let rows_found = (0..rows as usize).take_while(|row| found[1][*row] == 1);
            let groups: Vec<[u128; 5]> = rows_found
                .map(|row| [0, 2, 3, 4, 5].map(|column| found[column][row]))
                .collect();
            assert!(
                groups == wanted,
                "{rows} rows, {key_bits} bits, {security}, {arranged:?}"
            );
            // Rows that are no groups come behind.
            let behind = &found[1][wanted.len()..];
            assert!(behind.iter().all(|valid| *valid == 0));
        }
    }
}

#[test]
fn scans_give_what_a_loop_gives() {
    for (rows, seed) in ROWS.into_iter().zip(20..) {
        let mut first: Vec<u128> = random(seed, rows, 3)
            .iter()
            .map(|x| u128::from(*x == 0))
            .collect();
        first[0] = 1;
        let values = random(seed + 100, rows, 13);
        let kinds = [
            Scan::First,
            Scan::Min,
            Scan::Max,
            Scan::Sum,
            Scan::Or,
            Scan::And,
        ];
        let combine = |scan, a: u128, b: u128| match scan {
            Scan::First => a,
            Scan::Min => a.min(b),
            Scan::Max => a.max(b),
            Scan::Sum => (a + b) & 0x1fff,
            Scan::Or => a | b,
            Scan::And => a & b,
        };
        let wanted = kinds.map(|scan| {
            let mut last = 0;
            let rows = first.iter().zip(&values).map(|(first, value)| {
                last = if *first == 1 {
                    *value
                } else {
                    combine(scan, last, *value)
                };
                last
            });
            rows.collect::<Vec<u128>>()
        });
        // The last row of each segment, from the last to the first.
        let mut ends = values.clone();
        for row in (1..rows as usize).rev() {
            if first[row] == 0 {
                ends[row - 1] = ends[row];
            }
        }
        let wanted: Vec<Vec<u128>> = wanted.into_iter().chain([ends]).collect();
        let columns = [bits(first, 1), bits(values, 13)];
        for (security, found) in everywhere(&columns, 1, |b, inputs| {
            let mut all = b.scan(inputs[0], &kinds.map(|scan| (scan, inputs[1])));
            all.extend(b.copy_back(inputs[0], &inputs[1..]));
            all
        }) {
            assert!(found == wanted, "{rows} rows, {security}");
        }
    }
}

/// Rows with keys in a relation of which each key is there once, and where there is none.
#[test]
fn rows_find_what_has_their_key() {
    for (of, by, lanes) in [(1, 1, 1), (3, 1, 1), (1, 5, 2), (40, 30, 1), (513, 600, 2)] {
        // Keys of the one are all different among those that take part.
        let keys: Vec<u128> = (0..u128::from(of)).map(|k| k * 7 % 1024).collect();
        let present = random(30, of, 1);
        let (wide, narrow) = (random(31, of, 100), random(32, of, 3));
        let asked: Vec<u128> = random(33, by, 10)
            .iter()
            .map(|x| x % (2 * u128::from(of) + 3))
            .collect();
        let asks = random(34, by, 1);
        let lookup = |key: u128| {
            let found = (0..of as usize).find(|row| present[*row] == 1 && keys[*row] == key);
            found.map(|row| (wide[row], narrow[row]))
        };
        let wanted: Vec<Option<(u128, u128)>> = asked.iter().map(|key| lookup(*key)).collect();
        let columns = [
            bits(keys.clone(), 10),
            bits(present.clone(), 1),
            bits(wide.clone(), 100),
            bits(narrow.clone(), 3),
            bits(asked, 10),
            bits(asks.clone(), 1),
        ];
        for duplicates in [
            Duplicates::First,
            Duplicates::Refused("keys are there once"),
        ] {
            for (security, found) in everywhere(&columns, lanes, |b, inputs| {
                let of = b.key(inputs[0], inputs[1]);
                let by = b.key(inputs[4], inputs[5]);
                let found = b.look_up(&[by], &[of], &inputs[2..4], duplicates);
                let mut all = vec![found.found];
                all.extend(found.columns);
                all
            }) {
                for row in (0..by as usize).filter(|row| asks[*row] == 1) {
                    let got = (found[0][row] == 1).then(|| (found[1][row], found[2][row]));
                    assert_eq!(got, wanted[row], "row {row} of {by} in {of}, {security}");
                }
            }
        }
    }
}

/// Rows ask for the groups of others, whether several have a key or one, and where there is no group.
#[test]
fn rows_find_the_groups_of_their_key() {
    for (of, by, key_bits, lanes) in [
        (1, 1, 1, 1),
        (3, 1, 2, 1),
        (1, 5, 2, 2),
        (40, 30, 3, 1),
        (513, 600, 8, 2),
        (600, 40, 14, 1),
    ] {
        let (keys, present) = (random(40, of, key_bits), random(41, of, 1));
        let (asked, asks) = (random(42, by, key_bits), random(43, by, 1));
        let (values, words) = (random(44, of, 64), random(45, of, 11));
        let groups = grouped(&keys, &present, &values, &words);
        let columns = [
            bits(keys, key_bits),
            bits(present, 1),
            bits(asked.clone(), key_bits),
            bits(asks.clone(), 1),
            (values, Sharing::Ring(Ring::Z64)),
            bits(words, 11),
        ];
        for (security, found) in everywhere(&columns, lanes, |b, inputs| {
            let [key, present, asked, asks, value, word] = inputs[..] else {
                unreachable!("six columns")
            };
            let (of, by) = (b.key(key, present), b.key(asked, asks));
            let sums = [b.zeroed(value, present)];
            // The smallest of rows that take part is that of all where others are the largest.
            let large = b.zeroed(word, present);
            let small = lifted_where(b, word, present);
            let groups = b.look_up_groups(
                &[by],
                Grouped {
                    key: &[of],
                    sums: &sums,
                    scans: &[(Scan::Min, small), (Scan::Max, large), (Scan::Or, present)],
                },
                Duplicates::First,
            );
            let mut open = vec![groups.found, groups.count];
            open.extend(groups.sums);
            open.extend(groups.scanned);
            open
        }) {
            for row in (0..by as usize).filter(|row| asks[*row] == 1) {
                let wanted = groups.iter().find(|group| group[0] == asked[row]);
                let got = [0, 1, 2, 3, 4, 5].map(|column| found[column][row]);
                match wanted {
                    Some([_, count, sum, least, most]) => {
                        assert_eq!(got, [1, *count, *sum, *least, *most, 1], "{security}");
                    }
                    None => assert_eq!(got[..3], [0, 0, 0], "row {row} of {by}, {security}"),
                }
            }
        }
    }
}

/// A value of 11 bits, and the largest of all where a bit is 0.
fn lifted_where(b: &mut Builder, word: Shared, present: Shared) -> Shared {
    let mut gates = Gates::new(Ring::Bits);
    let of = gates.input("word", 11, Per::Row);
    let here = gates.input("here", 1, Per::Row)[0];
    let absent = gates.not(here);
    let out: Vec<_> = of.into_iter().map(|bit| gates.or(bit, absent)).collect();
    gates.output("out", &out);
    let circuit = gates.finish().unwrap();
    b.compute(circuit, word.rows(), vec![word.take(), present.take()])[0]
}

/// Rows that ask with a key that another one has end the run, if each is to have its own: rows that take no part may, and so may those that are grouped.
#[test]
fn rows_that_ask_twice_end_the_run() {
    for (asks, twice) in [
        ([1, 1, 0, 0, 1], false),
        ([1, 1, 1, 0, 1], true),
        ([0, 0, 0, 0, 0], false),
    ] {
        for security in securities() {
            let mut b = builder(security, parties(security));
            let input =
                |b: &mut Builder, bits| b.input(Holder::Owner(0), "x", 5, Sharing::Bits(bits));
            let (key, valid) = (input(&mut b, 4), input(&mut b, 1));
            let (asked, asks_here) = (input(&mut b, 4), input(&mut b, 1));
            let (of, by) = (b.key(key, valid), b.key(asked, asks_here));
            let groups = b.look_up_groups(
                &[by],
                Grouped {
                    key: &[of],
                    sums: &[],
                    scans: &[],
                },
                Duplicates::Refused("each asks with a key of its own"),
            );
            b.open(&[groups.count], Audience::Recipient(0), "how many");
            let columns = [
                vec![5, 9, 9, 5, 5],
                vec![1, 1, 1, 1, 0],
                vec![5, 9, 9, 5, 7],
                asks.to_vec(),
            ];
            let program = PassProgram::new(&b.finish(), Options::default()).unwrap();
            let program = Arc::new(program);
            let ends = Ends::of(&program, &columns);
            let ran = run(&program, &ends, REFERENCE, &honest());
            assert_eq!(ran.is_err(), twice, "{security}");
            let Err(failure) = ran else { continue };
            assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
            let said = "each asks with a key of its own: that is false, and the run is over; nothing else was opened";
            assert!(failure.to_string().contains(said), "{failure}");
        }
    }
}

/// A key that is there twice ends the run at all parties, and nothing is opened to a recipient; of rows that take no part it does not.
#[test]
fn a_key_that_is_there_twice_ends_the_run() {
    let keys = [vec![5, 9, 9, 5, 7], vec![5, 9, 9, 5, 7]];
    for (present, twice) in [
        ([1, 1, 0, 0, 1], false),
        ([1, 1, 1, 0, 1], true),
        ([0, 1, 0, 0, 0], false),
    ] {
        for security in securities() {
            let mut b = builder(security, parties(security));
            let input =
                |b: &mut Builder, bits| b.input(Holder::Owner(0), "x", 5, Sharing::Bits(bits));
            let (key, valid) = (input(&mut b, 4), input(&mut b, 1));
            let (by, all) = (input(&mut b, 4), input(&mut b, 1));
            let (of, by) = (b.key(key, valid), b.key(by, all));
            let found = b.look_up(
                &[by],
                &[of],
                &[],
                Duplicates::Refused("each key is there once"),
            );
            b.open(&[found.found], Audience::Recipient(0), "which are found");
            let spec = b.finish();
            let columns = [
                keys[0].clone(),
                present.to_vec(),
                keys[1].clone(),
                vec![1; 5],
            ];
            let program = Arc::new(PassProgram::new(&spec, Options::default()).unwrap());
            let ends = Ends::of(&program, &columns);
            let ran = run(&program, &ends, REFERENCE, &honest());
            let Err(failure) = ran else {
                assert!(!twice, "{security}");
                continue;
            };
            assert!(twice, "{security}: {failure}");
            assert!(ends.seen.values().all(|seen| seen.slices().is_empty()));
            let said: Vec<String> = failure
                .0
                .iter()
                .filter(|(peer, abort)| {
                    peer.party().is_some() && matches!(abort, Abort::Claim { .. })
                })
                .map(|(_, abort)| abort.to_string())
                .collect();
            assert!(!said.is_empty(), "{failure:?}");
            for said in said {
                assert_eq!(
                    said,
                    "each key is there once: that is false, and the run is over; nothing else was opened"
                );
            }
            // Who is no party is told that it is over, and not why.
            let told = failure
                .0
                .iter()
                .filter(|(peer, _)| matches!(peer, Peer::Owner(_) | Peer::Recipient(_)));
            for (peer, abort) in told {
                assert!(!abort.to_string().contains("each key"), "{peer}: {abort}");
            }
        }
    }
}

/// All pairs of rows with one key, in their order; at exactly the bound, and with room.
#[test]
fn pairs_are_those_of_two_loops() {
    for (left, right, bits_of_key, seed) in [
        (1, 1, 1, 70),
        (5, 7, 2, 71),
        (30, 20, 4, 72),
        (300, 280, 6, 73),
    ] {
        let keys = [
            random(seed, left, bits_of_key),
            random(seed + 10, right, bits_of_key),
        ];
        let present = [random(seed + 20, left, 1), random(seed + 30, right, 1)];
        let values = [random(seed + 40, left, 20), random(seed + 50, right, 33)];
        let mut wanted = Vec::new();
        for row in (0..left as usize).filter(|row| present[0][*row] == 1) {
            for other in (0..right as usize).filter(|row| present[1][*row] == 1) {
                if keys[0][row] == keys[1][other] {
                    wanted.push((values[0][row], values[1][other]));
                }
            }
        }
        let all = wanted.len() as u32;
        let columns = [
            bits(keys[0].clone(), bits_of_key),
            bits(present[0].clone(), 1),
            bits(values[0].clone(), 20),
            bits(keys[1].clone(), bits_of_key),
            bits(present[1].clone(), 1),
            bits(values[1].clone(), 33),
        ];
        for most in [all, all + 3] {
            for (security, found) in everywhere(&columns, 1, |b, inputs| {
                let of_left = b.key(inputs[0], inputs[1]);
                let of_right = b.key(inputs[3], inputs[4]);
                let side = |key, columns| veil_operators::Side { key, columns };
                let pairs = b.pairs(
                    side(&[of_left], &inputs[2..3]),
                    side(&[of_right], &inputs[5..]),
                    most,
                    "there are few pairs",
                );
                vec![pairs.valid, pairs.left[0], pairs.right[0]]
            }) {
                let rows = (0..found[0].len()).filter(|row| found[0][*row] == 1);
                let pairs: Vec<_> = rows.map(|row| (found[1][row], found[2][row])).collect();
                assert!(
                    pairs == wanted,
                    "{left} and {right} rows, {most} pairs, {security}"
                );
            }
        }
    }
}

/// Bits come out of circuits over integers, and sums over rows are columns of one row, over all lanes and chunks.
#[test]
fn bits_of_integers_and_sums_are_columns() {
    for (rows, lanes) in [(1, 1), (700, 1), (20_000, 2)] {
        let values = random(40, rows, 32);
        let flags = random(41, rows, 1);
        let sum = values
            .iter()
            .fold(0, |sum, value| Ring::Z32.add(sum, *value));
        let count: u128 = flags.iter().sum();
        let wanted: Vec<u128> = values
            .iter()
            .zip(&flags)
            .map(|(x, f)| x >> 30 & 1 | f << 1)
            .collect();
        let columns = [(values, Sharing::Ring(Ring::Z32)), bits(flags, 1)];
        for (security, found) in everywhere(&columns, lanes, |b, inputs| {
            let mut g = Gates::new(Ring::Z32);
            let x = g.input("x", 1, Per::Row)[0];
            let flag = g.input_bits("flag", 1)[0];
            let bit = g.bit(x, 30);
            let one = g.lift(flag);
            g.output("bits", &[bit, flag]);
            g.output_sum("sum", &[x]);
            g.output_sum("count", &[one]);
            let takes = inputs.iter().map(Shared::take).collect();
            let left = b.compute(g.finish().unwrap(), rows, takes);
            // The sums as one relation of two rows.
            let both = Take::Rows {
                of: vec![left[1].column(), left[2].column()],
                first: 0,
                step: 1,
            };
            let both = b.make(both, 2, Sharing::Ring(Ring::Z32));
            vec![left[0], both]
        }) {
            assert!(found[0] == wanted, "{rows} rows, {security}");
            assert_eq!(found[1], [sum, count], "{rows} rows, {security}");
        }
    }
}

/// Whatever is taken of columns between passes is what the words say.
#[test]
fn columns_are_made_of_columns() {
    let rows = 1100;
    let (x, y) = (random(50, rows, 17), random(51, 300, 17));
    let stacked: Vec<u128> = x.iter().chain(&y).copied().collect();
    let every_third = |first: usize| -> Vec<u128> {
        let all = stacked.iter().skip(first).step_by(3);
        all.copied().chain(std::iter::repeat(0)).take(600).collect()
    };
    let wanted = [
        stacked.clone(),
        every_third(2),
        (0..600)
            .map(|k| if k % 2 == 0 { x[k / 2] } else { y[k / 2] } >> 3 & 0x1f)
            .collect(),
    ];
    let columns = [bits(x, 17), bits(y, 17)];
    for (security, found) in everywhere(&columns, 2, |b, inputs| {
        let of = || inputs.iter().map(Shared::column).collect::<Vec<_>>();
        let rows_of = |first, step| Take::Rows {
            of: of(),
            first,
            step,
        };
        let turns = Take::Turns {
            even: inputs[0].column(),
            odd: inputs[1].column(),
        };
        vec![
            b.make(rows_of(0, 1), 1400, Sharing::Bits(17)),
            b.make(rows_of(2, 3), 600, Sharing::Bits(17)),
            b.make(turns.bits(3, 5), 600, Sharing::Bits(5)),
        ]
    }) {
        assert!(found == wanted, "{security}");
    }
}

/// Windows, strides, transposed axes and rows beyond the array.
#[test]
fn views_are_the_elements_of_an_array() {
    let (length, columns) = ([2_usize, 3, 4, 5], 2);
    let element = |at: usize| (at * 37 + 11) as u128 % 100_003;
    let of: Vec<Vec<u128>> = (0..columns)
        .map(|k| (0..60).map(|j| element(60 * k + j)).collect())
        .collect();
    let axis = |length: usize, first, step, count| Axis {
        length: length as u32,
        first,
        step,
        count,
    };
    let views = [
        // All of it, a part of it, and one place of an axis.
        length.map(|length| axis(length, 0, 1, length as u32)),
        [
            axis(2, 1, 0, 1),
            axis(3, 0, 2, 2),
            axis(4, 1, 1, 2),
            axis(5, 0, 1, 5),
        ],
        // Beyond both ends, backwards, and strides along the last axis.
        [
            axis(2, 0, 1, 2),
            axis(3, -1, 1, 5),
            axis(4, 3, -1, 4),
            axis(5, -2, 3, 4),
        ],
        [
            axis(2, -1, 1, 4),
            axis(3, 2, -2, 3),
            axis(4, 0, 3, 2),
            axis(5, 4, -1, 7),
        ],
    ];
    let wanted = views.each_ref().map(|axes| {
        let rows = axes.iter().map(|axis| axis.count as usize).product();
        let found: Vec<u128> = (0..rows)
            .map(|row: usize| {
                let (mut rest, mut stride, mut at) = (row, 1, Some(0));
                for axis in axes.iter().rev() {
                    let digit = (rest % axis.count as usize) as i32;
                    rest /= axis.count as usize;
                    let place = axis.first + axis.step * digit;
                    let there = (0..axis.length as i32).contains(&place);
                    at = at.filter(|_| there).map(|at| at + place as usize * stride);
                    stride *= axis.length as usize;
                }
                at.map_or(0, element)
            })
            .collect();
        found
    });
    let ring = Sharing::Ring(Ring::Z64);
    let all: Vec<_> = of.into_iter().map(|column| (column, ring)).collect();
    for (security, found) in everywhere(&all, 2, |b, inputs| {
        let of: Vec<_> = inputs.iter().map(Shared::column).collect();
        let made = views.iter().zip(&wanted).map(|(axes, wanted)| {
            let take = Take::View {
                of: of.clone(),
                axes: axes.to_vec(),
            };
            b.make(take, wanted.len() as u32, ring)
        });
        made.collect()
    }) {
        assert!(found == wanted, "{security}");
    }
}

/// A product with a public matrix, of windows of a column.
#[test]
fn public_integers_are_a_matrix() {
    let x: Vec<u128> = (0..1000).map(|j| j * j % 977).collect();
    let weights = [[3_i64, -5, 1 << 40], [0, -1, 7]];
    let wanted: Vec<Vec<u128>> = weights
        .iter()
        .map(|of| {
            let at = |row: usize, k: usize| x.get(row + k).copied().unwrap_or(0) as i64;
            let sum = |row| {
                (0..3)
                    .map(|k| at(row, k).wrapping_mul(of[k]))
                    .fold(0, i64::wrapping_add)
            };
            (0..1000)
                .map(|row| u128::from(sum(row).cast_unsigned()))
                .collect()
        })
        .collect();
    let ring = Sharing::Ring(Ring::Z64);
    for (security, found) in everywhere(&[(x.clone(), ring)], 2, |b, inputs| {
        let left = (0..3).map(|k| Take::shifted(inputs[0].column(), k));
        let right = weights.iter().map(|of| Take::Public {
            integers: Arc::new(of.to_vec()),
            ring: Ring::Z64,
        });
        let of = (Ring::Z64, false);
        b.product_of(1000, of, left.collect(), right.collect())
    }) {
        assert!(found == wanted, "{security}");
    }
}

/// A circuit of one port of so many bits, which puts them out; over integers they are bits beside them.
fn passed_on(ring: Ring, bits: u32) -> Circuit {
    let mut b = Gates::new(ring);
    let word = match ring {
        Ring::Bits => b.input("word", bits, Per::Row),
        _ => b.input_bits("word", bits),
    };
    b.output("word", &word);
    b.finish().unwrap()
}

/// Numbers of rows, counted upwards and downwards.
const fn numbers(of: Option<ColumnId>, (row, constant): (i64, i64), ring: Ring) -> Take {
    Take::Sums {
        of,
        row,
        constant,
        totals: vec![],
        ring,
    }
}

/// Public numbers of rows are taken as their low bits, in every chunk, by circuits of bits and beside integers.
#[test]
fn public_numbers_of_rows_are_bits() {
    let cases = [
        (Ring::Bits, (1, 1), Ring::Z32, 11),
        (Ring::Z64, (-3, 5), Ring::Z32, 32),
        (Ring::Bits, (7, -2), Ring::Z64, 40),
        (Ring::Bits, (i64::MIN, 3), Ring::Z128, 128),
        (Ring::Z32, (0, 5), Ring::Z64, 2),
    ];
    let rows = 1500;
    let wanted: Vec<Vec<u128>> = cases
        .iter()
        .map(|(_, (row, constant), ring, bits)| {
            let of = |j: i128| {
                ring.reduce((i128::from(*row) * j + i128::from(*constant)).cast_unsigned())
            };
            let all = (0..rows).map(|j| of(j.into()) & u128::MAX >> (128 - bits));
            all.collect()
        })
        .collect();
    let any = bits(vec![0; rows as usize], 1);
    for (security, found) in everywhere(&[any], 2, |b, _| {
        let columns = cases.iter().map(|(circuit, number, ring, bits)| {
            let takes = vec![numbers(None, *number, *ring)];
            b.compute(passed_on(*circuit, *bits), rows, takes)[0]
        });
        columns.collect()
    }) {
        assert!(found == wanted, "{security}");
    }
}

/// No more bits than a number has, and none of sums of shares.
#[test]
fn bits_of_other_sums_are_refused() {
    for (takes, bits) in [
        (numbers(None, (1, 0), Ring::Z32), 33),
        (numbers(Some(ColumnId(0)), (0, 0), Ring::Z32), 32),
        (numbers(None, (1, 0), Ring::Bits), 1),
    ] {
        let [security, ..] = securities();
        let mut b = builder(security, parties(security));
        b.input(Holder::Owner(0), "x", 40, Sharing::Ring(Ring::Z32));
        let out = b.compute(passed_on(Ring::Bits, bits), 40, vec![takes]);
        b.open(&out, Audience::Recipient(0), "bits");
        let refused = PassProgram::new(&b.finish(), Options::default()).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("sums are of integers"), "{refused}");
    }
}

/// Bits of an array of the first column instead of what is made of it.
fn view(spec: &mut ProgramSpec, axes: Vec<Axis>) {
    let of = vec![ColumnId(0)];
    spec.made[0].take = Take::View { of, axes }.bits(0, 1);
    spec.made[0].rows = 20;
    spec.made[0].form = veil_job::passes::ColumnForm::Words(1);
}

/// Rules of what is made and claimed.
#[test]
fn made_columns_and_claims_that_break_a_rule_are_refused() {
    let [security, ..] = securities();
    let good = || -> ProgramSpec {
        let mut b = builder(security, parties(security));
        let key = b.input(Holder::Owner(0), "x", 40, Sharing::Bits(4));
        let valid = b.input(Holder::Owner(0), "v", 40, Sharing::Bits(1));
        let key = b.key(key, valid);
        let found = b.look_up(&[key], &[key], &[], Duplicates::Refused("once"));
        b.open(&[found.found], Audience::Recipient(0), "found");
        b.finish()
    };
    let refused = |change: &dyn Fn(&mut ProgramSpec)| {
        let mut spec = good();
        change(&mut spec);
        PassProgram::new(&spec, Options::default())
            .unwrap_err()
            .to_string()
    };
    assert!(PassProgram::new(&good(), Options::default()).is_ok());
    for (what, change) in [
        (
            "what is made between passes is rows of columns, or bits of them",
            (|spec| spec.made[0].rows = 0) as fn(&mut ProgramSpec),
        ),
        (
            "what is made between passes is rows of columns, or bits of them",
            |spec| spec.made[0].take = Take::Within { first: 0, end: 1 },
        ),
        ("a column is taken after the pass that leaves it", |spec| {
            spec.made[0].before = 0;
        }),
        (
            "what is made between passes is in the order of passes",
            |spec| {
                let mut late = spec.made[0].clone();
                late.column = ColumnId(late.column.0 + 1);
                late.before = u32::MAX;
                spec.made.push(late);
            },
        ),
        ("a column is taken in its own form", |spec| {
            spec.made[0].form = veil_job::passes::ColumnForm::Ring(Ring::Z64);
        }),
        (
            "columns that are taken by turns have the pass's rows together",
            |spec| spec.made[0].rows += 2,
        ),
        (
            "what is made between passes is rows of columns, or bits of them",
            |spec| {
                spec.made[0].take = Take::Public {
                    integers: Arc::default(),
                    ring: Ring::Z64,
                };
            },
        ),
        ("an array has one to eight axes", |spec| view(spec, vec![])),
        ("an array has one to eight axes", |spec| {
            view(
                spec,
                [&[Axis::whole(40)], &[Axis::whole(1); 8][..]].concat(),
            );
        }),
        ("an axis has places, and some are taken", |spec| {
            view(spec, vec![Axis::whole(0)]);
        }),
        ("an axis has places, and some are taken", |spec| {
            let axis = Axis::whole(40);
            view(spec, vec![Axis { count: 0, ..axis }]);
        }),
        (
            "an array has an element for each row of its columns",
            |spec| {
                view(spec, vec![Axis::whole(41)]);
            },
        ),
        (
            "an array has an element for each row of its columns",
            |spec| {
                view(spec, vec![Axis::whole(u32::MAX); 3]);
            },
        ),
        ("what is taken of an array has the pass's rows", |spec| {
            view(spec, vec![Axis::at(8, 1), Axis::whole(5)]);
        }),
        (
            "a column has whole rows of the last axis of its array",
            |spec| {
                view(spec, vec![Axis::whole(80)]);
                let Take::Bits { of, .. } = &mut spec.made[0].take else {
                    panic!("bits of an array");
                };
                let Take::View { of, .. } = &mut **of else {
                    panic!("an array");
                };
                *of = vec![ColumnId(0); 2];
            },
        ),
        ("a column is left once", |spec| {
            spec.made.last_mut().unwrap().column = spec.made[0].column;
        }),
        (
            "what is claimed is opened to the parties, and nothing else is",
            |spec| {
                for pass in &mut spec.passes {
                    if let veil_job::passes::PassSpec::Rows { claim, .. } = pass {
                        *claim = Some("all".into());
                    }
                }
            },
        ),
    ] {
        let found = refused(&change);
        assert!(found.contains(what), "{found}");
    }
    // What is made, and what is claimed, is under the hash.
    let hash = |spec: &ProgramSpec| PassProgram::new(spec, Options::default()).unwrap().hash();
    let mut other = good();
    for pass in &mut other.passes {
        if let veil_job::passes::PassSpec::Rows {
            claim: Some(claim), ..
        } = pass
        {
            claim.push('!');
        }
    }
    assert_ne!(hash(&good()), hash(&other));
}

/// A key of several words is one number, of which the last word has the highest bits.
#[test]
fn keys_of_several_words_are_sorted_as_one() {
    let rows = 300;
    let (low, high) = (random(60, rows, 5), random(61, rows, 3));
    let mut wanted: Vec<(u128, u128, u128)> = (0..300)
        .map(|row| (high[row], low[row], row as u128))
        .collect();
    wanted.sort_unstable();
    let numbers = (0..300).collect();
    let columns = [
        bits(low, 5),
        bits(high, 3),
        (numbers, Sharing::Ring(Ring::Z32)),
    ];
    for (security, found) in everywhere(&columns, 1, |b, inputs| {
        let order = b.sort(&Key::of(&inputs[..2]));
        b.apply(&order, inputs)
    }) {
        let found: Vec<_> = (0..300)
            .map(|row| (found[1][row], found[0][row], found[2][row]))
            .collect();
        assert!(found == wanted, "{security}");
    }
}
