//! The designs in `circuits/verilog`: their counts are those of docs/verilog.md and no more than what is published, and they compute what
//! they say, against computations that share nothing with them.

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use veil_circuit::Circuit;
use veil_circuit::verilog::{Source, compile};
use veil_circuit::yosys::{Options, Synthesis};

use super::support::{Random, agrees, can_run, file, yosys_is};

/// A design, and gates and XORs of a cycle in Table 2 of Oishi et al., "FPGA-based Garbling Accelerator with
/// Parallel Pipeline Processing", 2023.
struct Design {
    file: &'static str,
    top: &'static str,
    published: Option<(u64, u64)>,
}

const DESIGNS: [Design; 16] = [
    Design {
        file: "millionaires.v",
        top: "Mill_8_8",
        published: Some((4, 3)),
    },
    Design {
        file: "addition.v",
        top: "Add_8_1",
        published: Some((37, 30)),
    },
    Design {
        file: "addition.v",
        top: "Add_8_8",
        published: Some((5, 2)),
    },
    Design {
        file: "hamming.v",
        top: "Hamm_32_1",
        published: Some((188, 157)),
    },
    Design {
        file: "hamming.v",
        top: "Hamm_32_32",
        published: Some((13, 8)),
    },
    Design {
        file: "hamming.v",
        top: "Hamm_512_512",
        published: Some((21, 12)),
    },
    Design {
        file: "multiplication.v",
        top: "Mult_256_512",
        published: Some((1699, 1186)),
    },
    Design {
        file: "mac.v",
        top: "MAC_8_1",
        published: Some((397, 231)),
    },
    Design {
        file: "mac.v",
        top: "MAC_16_1",
        published: Some((1678, 1077)),
    },
    Design {
        file: "mac.v",
        top: "MAC_32_1",
        published: Some((7036, 4805)),
    },
    Design {
        file: "cordic.v",
        top: "CORDIC_32_31",
        published: Some((2464, 1544)),
    },
    Design {
        file: "aes.v",
        top: "AES_128_11",
        published: Some((4662, 3225)),
    },
    Design {
        file: "sha256.v",
        top: "SHA_256_1",
        published: None,
    },
    Design {
        file: "matrix.v",
        top: "MatMul_1600_1600",
        published: None,
    },
    Design {
        file: "sort.v",
        top: "Sort_16_1",
        published: None,
    },
    Design {
        file: "edit.v",
        top: "Edit_8_1",
        published: None,
    },
];

/// The row of a design in the table of the documentation.
fn row(design: &Design, circuit: &Circuit) -> String {
    let stats = circuit.stats();
    let published = match design.published {
        None => "| | | |".into(),
        Some((gates, xors)) => {
            let ands = gates - xors;
            format!("| {gates} | {xors} | {ands} | {}", ands * stats.cycles)
        }
    };
    format!(
        "| `{}` | {} | {} | {} | {} | {} | {} | {} {published} |",
        design.top,
        stats.gates,
        stats.adds,
        stats.muls,
        stats.depth,
        stats.registers,
        stats.cycles,
        stats.total_muls(),
    )
}

#[test]
fn no_design_has_more_ands_than_published_and_the_table_is_true() {
    if !can_run() {
        return;
    }
    let docs = include_str!("../../../../docs/verilog.md");
    let mut wrong = Vec::new();
    for design in DESIGNS {
        let (_, made) = file(design.file, Some(design.top));
        let circuit = made.circuit;
        let stats = circuit.stats();
        if let Some((gates, xors)) = design.published {
            let ands = gates - xors;
            assert!(stats.muls <= ands, "{}: {} ANDs", design.top, stats.muls);
            assert!(stats.total_muls() <= ands * stats.cycles, "{}", design.top);
        }
        // A name says the cycles.
        let cycles = design
            .top
            .rsplit('_')
            .next()
            .and_then(|text| text.parse().ok());
        assert_eq!(Some(stats.cycles), cycles, "{}", design.top);
        let row = row(&design, &circuit);
        if !docs.contains(&row) {
            wrong.push(row);
        }
    }
    if yosys_is("0.23") {
        assert!(
            wrong.is_empty(),
            "docs/verilog.md lacks\n{}",
            wrong.join("\n")
        );
    } else {
        eprintln!(
            "SKIPPED: the table is of Yosys 0.23; this one gives, instead of some rows,\n{}",
            wrong.join("\n")
        );
    }
}

/// Bits of a number, the lowest first.
fn bits(value: u128, width: usize) -> Vec<u128> {
    (0..width).map(|bit| value >> bit & 1).collect()
}

fn of_bytes(bytes: &[u8]) -> Vec<u128> {
    bytes
        .iter()
        .flat_map(|&byte| bits(byte.into(), 8))
        .collect()
}

fn number(bits: &[u128]) -> u128 {
    bits.iter().rev().fold(0, |number, bit| 2 * number + bit)
}

fn evaluate(made: &Synthesis, inputs: &[Vec<u128>]) -> Vec<Vec<u128>> {
    made.circuit.evaluate(inputs).expect("inputs of its ports")
}

/// Compares with the simulation, too.
fn checked(name: &str, top: &str, rows: usize) -> Option<Synthesis> {
    if !can_run() {
        return None;
    }
    let (source, made): (Source, Synthesis) = file(name, Some(top));
    assert_eq!(agrees(&source, &made, rows), 0, "{top}");
    Some(made)
}

#[test]
fn millionaires_and_additions() {
    for (name, top) in [
        ("millionaires.v", "Mill_8_8"),
        ("addition.v", "Add_8_1"),
        ("addition.v", "Add_8_8"),
    ] {
        let Some(made) = checked(name, top, 80) else {
            return;
        };
        for (x, y) in (0..256).flat_map(|x| (0..256).step_by(3).map(move |y| (x, y))) {
            let expected = if top == "Mill_8_8" {
                u128::from(x >= y)
            } else {
                (x + y) % 256
            };
            assert_eq!(
                number(&evaluate(&made, &[bits(x, 8), bits(y, 8)])[0]),
                expected,
                "{top} {x} {y}"
            );
        }
    }
}

#[test]
fn distances() {
    let mut random = Random(11);
    for (top, words) in [("Hamm_32_1", 1), ("Hamm_32_32", 1), ("Hamm_512_512", 16)] {
        let Some(made) = checked("hamming.v", top, 40) else {
            return;
        };
        for case in 0..50 {
            let mut word = || match case {
                0 => 0,
                1 => u32::MAX,
                _ => random.next() as u32,
            };
            let x: Vec<u32> = (0..words).map(|_| word()).collect();
            let y: Vec<u32> = (0..words)
                .map(|k| {
                    if case == 1 {
                        0
                    } else {
                        word() ^ u32::from(k == 3)
                    }
                })
                .collect();
            let expected: u32 = x.iter().zip(&y).map(|(x, y)| (x ^ y).count_ones()).sum();
            let of = |words: &[u32]| {
                words
                    .iter()
                    .flat_map(|&word| bits(word.into(), 32))
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                number(&evaluate(&made, &[of(&x), of(&y)])[0]),
                expected.into(),
                "{top}"
            );
        }
    }
}

#[test]
fn products() {
    let Some(made) = checked("multiplication.v", "Mult_256_512", 20) else {
        return;
    };
    let mut random = Random(12);
    for case in 0..20 {
        let mut word = || if case == 0 { u64::MAX } else { random.next() };
        let (x, y) = ([(); 4].map(|()| word()), [(); 4].map(|()| word()));
        // By hand: words of 64 bits.
        let mut expected = [0u64; 8];
        for (i, &x) in x.iter().enumerate() {
            let mut carry = 0;
            for (j, &y) in y.iter().enumerate() {
                let sum = u128::from(x) * u128::from(y) + u128::from(expected[i + j]) + carry;
                expected[i + j] = sum as u64;
                carry = sum >> 64;
            }
            expected[i + 4] = carry as u64;
        }
        let of = |words: &[u64]| {
            words
                .iter()
                .flat_map(|&word| bits(word.into(), 64))
                .collect::<Vec<_>>()
        };
        let mut serial = of(&x);
        serial.resize(512, 0);
        assert_eq!(evaluate(&made, &[serial, of(&y)])[0], of(&expected));
    }
}

#[test]
fn accumulated_products() {
    let mut random = Random(13);
    for n in [8, 16, 32] {
        let top = format!("MAC_{n}_1");
        let Some(made) = checked("mac.v", &top, 100) else {
            return;
        };
        for case in 0..300u32 {
            let least = -(1i64 << (n - 1));
            let mut fraction = |edge: u32| match edge {
                0 => least,
                1 => -1 - least,
                _ => (random.next() as i64) >> (64 - n),
            };
            let (x, y) = (fraction(case & 3), fraction(case >> 2 & 3));
            let expected = (x * y + (1 << (n - 2))) >> (n - 1);
            let of = |value: i64| bits(value as u64 as u128, n);
            assert_eq!(
                evaluate(&made, &[of(x), of(y)])[0],
                of(expected),
                "{top} {x} {y}"
            );
        }
    }
}

#[test]
fn totals_of_accumulated_products() {
    if !can_run() {
        return;
    }
    // The same unit over more cycles keeps its total.
    let (source, single) = file("mac.v", Some("MAC_16_1"));
    let options = Options {
        cycles: Some(9),
        ..Options::default()
    };
    let made = compile(&source, &options).unwrap();
    // The total comes in where half adders were: no AND more than in one cycle.
    assert_eq!(made.circuit.stats().muls, single.circuit.stats().muls);
    let mut random = Random(14);
    let mut of = || (random.next() as i64) >> 48;
    let pairs: Vec<(i64, i64)> = (0..9).map(|_| (of(), of())).collect();
    let expected: i64 = pairs.iter().map(|(x, y)| (x * y + (1 << 14)) >> 15).sum();
    let words = |of: fn(&(i64, i64)) -> i64| {
        pairs
            .iter()
            .flat_map(|pair| bits(of(pair) as u64 as u128, 16))
            .collect::<Vec<_>>()
    };
    let out = evaluate(&made, &[words(|pair| pair.0), words(|pair| pair.1)]);
    assert_eq!(out[0], bits(expected as u64 as u128, 16));
}

#[test]
fn rotations() {
    let Some(made) = checked("cordic.v", "CORDIC_32_31", 60) else {
        return;
    };
    let mut random = Random(15);
    let one = f64::from(1 << 30);
    // The length that 31 turns give.
    let length: f64 = (0..31).map(|k| (1.0 + 0.25f64.powi(k)).sqrt()).product();
    for case in 0..100 {
        let mut part = |most: f64| (random.next() as f64 / u64::MAX as f64 * 2.0 - 1.0) * most;
        let (x, y, z) = match case {
            0 => (1.0 / length, 0.0, std::f64::consts::FRAC_PI_2),
            1 => (1.0 / length, 0.0, 0.0),
            _ => (part(0.7), part(0.7), part(1.7)),
        };
        let of = |value: f64| bits((value * one).round() as i64 as u64 as u128, 32);
        let out = evaluate(&made, &[of(x), of(y), of(z)]);
        let value = |bits: &[u128]| f64::from(number(bits) as u32 as i32) / one;
        let expected = [
            length * (x * z.cos() - y * z.sin()),
            length * (y * z.cos() + x * z.sin()),
            0.0,
        ];
        for (out, expected) in out.iter().zip(expected) {
            assert!(
                (value(out) - expected).abs() < 2e-7 / 2.0,
                "{x} {y} {z}: {} for {expected}",
                value(out)
            );
        }
    }
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn aes_is_aes() {
    let Some(made) = checked("aes.v", "AES_128_11", 40) else {
        return;
    };
    let mut random = Random(16);
    for case in 0..40 {
        // The example of FIPS 197 first.
        let mut byte = |k: usize, step: usize| match case {
            0 => (k * step) as u8,
            _ => random.next() as u8,
        };
        let key: [u8; 16] = std::array::from_fn(|k| byte(k, 1));
        let text: [u8; 16] = std::array::from_fn(|k| byte(k, 0x11));
        let mut block = text.into();
        Aes128::new(&key.into()).encrypt_block(&mut block);
        assert_eq!(
            evaluate(&made, &[of_bytes(&key), of_bytes(&text)])[0],
            of_bytes(&block)
        );
    }
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn sha256_is_sha256() {
    let Some(made) = checked("sha256.v", "SHA_256_1", 20) else {
        return;
    };
    let mut random = Random(17);
    for case in 0..10 {
        let block: [u8; 64] =
            std::array::from_fn(|_| if case == 0 { 0 } else { random.next() as u8 });
        let mut state: [u32; 8] = std::array::from_fn(|_| random.next() as u32);
        let start: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
        sha2::block_api::compress256(&mut state, &[block]);
        let digest: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(
            evaluate(&made, &[of_bytes(&block), of_bytes(&start)])[0],
            of_bytes(&digest)
        );
    }
}

#[test]
fn a_row_of_a_product_of_matrices() {
    let Some(made) = checked("matrix.v", "MatMul_1600_1600", 3) else {
        return;
    };
    let mut random = Random(18);
    let row: Vec<u128> = (0..1600).map(|_| u128::from(random.next() & 1)).collect();
    let columns: Vec<u128> = (0..1600 * 1600)
        .map(|_| u128::from(random.next() & 1))
        .collect();
    let product = |column: &[u128]| row.iter().zip(column).fold(0, |sum, (x, y)| sum ^ x & y);
    let expected: Vec<u128> = columns.chunks(1600).map(product).collect();
    assert_eq!(evaluate(&made, &[row, columns])[0], expected);
}

#[test]
fn sorted_numbers() {
    let Some(made) = checked("sort.v", "Sort_16_1", 70) else {
        return;
    };
    let mut random = Random(19);
    for case in 0..200 {
        let mut numbers: Vec<u16> = (0..16)
            .map(|_| random.next() as u16 >> (case % 16))
            .collect();
        let of = |numbers: &[u16]| {
            numbers
                .iter()
                .flat_map(|&n| bits(n.into(), 16))
                .collect::<Vec<_>>()
        };
        let out = evaluate(&made, &[of(&numbers)]);
        numbers.sort_unstable();
        assert_eq!(out[0], of(&numbers));
    }
    // By the principle of zeros and ones, a network sorts everything if it sorts these: all 2^16 of them, in a batch.
    let rows = 1u64 << 16;
    let mut column = vec![0u8; 256 * rows as usize / 8];
    for place in 0..16 {
        for row in (0..rows as usize).filter(|row| row >> place & 1 == 1) {
            column[16 * place * rows as usize / 8 + row / 8] |= 1 << (row % 8);
        }
    }
    let out = made.circuit.evaluate_batch(rows, &[&column]).unwrap();
    for row in 0..rows as usize {
        for place in 0..16 {
            let bit = out[0][16 * place * rows as usize / 8 + row / 8] >> (row % 8) & 1;
            assert_eq!(
                u32::from(bit),
                u32::from(place as u32 + (row as u32).count_ones() >= 16),
                "{row:b}"
            );
        }
    }
}

/// The edit distance of two texts, by its definition.
fn distance(x: &[u8], y: &[u8]) -> usize {
    match (x, y) {
        ([], rest) | (rest, []) => rest.len(),
        ([x @ .., a], [y @ .., b]) if a == b => distance(x, y),
        ([x_rest @ .., _], [y_rest @ .., _]) => {
            1 + distance(x_rest, y_rest)
                .min(distance(x, y_rest))
                .min(distance(x_rest, y))
        }
    }
}

#[test]
fn edit_distances() {
    let Some(made) = checked("edit.v", "Edit_8_1", 100) else {
        return;
    };
    // The whole table of two texts, by the cell, and by the recursion of the definition.
    for (x, y) in [
        ("kitten", "sitting"),
        ("saturday", "sundays"),
        ("aaaa", "bbb"),
        ("", "abc"),
        ("garble", "garbled"),
    ] {
        let mut table: Vec<Vec<u128>> = vec![(0..=y.len() as u128).collect()];
        for (i, &a) in x.as_bytes().iter().enumerate() {
            let mut row = vec![i as u128 + 1];
            for (j, &b) in y.as_bytes().iter().enumerate() {
                let [both, left, up] = [table[i][j], row[j], table[i][j + 1]].map(|d| bits(d, 16));
                let out = evaluate(
                    &made,
                    &[bits(a.into(), 8), bits(b.into(), 8), both, left, up],
                );
                row.push(number(&out[0]));
            }
            table.push(row);
        }
        assert_eq!(
            table[x.len()][y.len()],
            distance(x.as_bytes(), y.as_bytes()) as u128,
            "{x} {y}"
        );
    }
}
