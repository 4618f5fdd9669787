//! Generated circuits against integer arithmetic and `RustCrypto`.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;
use sha2::Digest;
use veil_circuit::{Builder, Circuit, Per, catalogue, generate};
use veil_math::Ring;

type Pair = (Vec<u8>, Vec<u8>);

fn make(specification: &str) -> Circuit {
    veil_circuit::make(specification).expect(specification)
}

fn evaluate(circuit: &Circuit, rows: usize, inputs: &[&[u8]]) -> Vec<u8> {
    circuit
        .evaluate_batch(rows as u64, inputs)
        .expect("inputs of the right size")
        .remove(0)
}

/// Runs a circuit of two words on many pairs at once; words are little-endian bytes.
fn run(circuit: &Circuit, width: usize, pairs: &[Pair], out_width: usize) -> Vec<Vec<u8>> {
    let rows = pairs.len();
    let columns = |pick: fn(&Pair) -> &Vec<u8>| {
        let packed: Vec<u8> = pairs.iter().flat_map(|pair| pick(pair).clone()).collect();
        to_columns(&packed, rows, width)
    };
    let (x, y) = (columns(|pair| &pair.0), columns(|pair| &pair.1));
    let out = evaluate(circuit, rows, &[&x, &y]);
    let bytes = to_rows(&out, rows, out_width);
    bytes
        .chunks(out_width.div_ceil(8))
        .map(<[u8]>::to_vec)
        .collect()
}

fn to_columns(rows_packed: &[u8], rows: usize, width: usize) -> Vec<u8> {
    let mut columns = vec![0; width * rows.div_ceil(8)];
    veil_math::bits_from_rows(rows_packed, rows, width, &mut columns);
    columns
}

fn to_rows(columns: &[u8], rows: usize, width: usize) -> Vec<u8> {
    let mut packed = vec![0; rows * width.div_ceil(8)];
    veil_math::bits_to_rows(columns, rows, width, &mut packed);
    packed
}

fn signed(value: u64, width: u32) -> i64 {
    (value << (64 - width)) as i64 >> (64 - width)
}

/// What each circuit of two words computes, on words of at most 64 bits.
fn expected(name: &str, x: u64, y: u64, width: u32) -> u64 {
    let modulus = u64::MAX >> (64 - width);
    let name = name.strip_suffix("-fast").unwrap_or(name);
    match name {
        "adder" => x.wrapping_add(y) & modulus,
        "sub" => x.wrapping_sub(y) & modulus,
        "mul" => x.wrapping_mul(y) & modulus,
        "eq" => u64::from(x == y),
        "lt" => u64::from(x < y),
        "lt-signed" => u64::from(signed(x, width) < signed(y, width)),
        other => panic!("no expectation for {other}: write one"),
    }
}

fn out_width(name: &str, width: u32) -> u32 {
    if name.starts_with("eq") || name.starts_with("lt") {
        1
    } else {
        width
    }
}

fn check(name: &str, width: u32, pairs: &[(u64, u64)]) {
    let circuit = make(&format!("{name}:{width}"));
    let bytes = |value: u64| value.to_le_bytes()[..width.div_ceil(8) as usize].to_vec();
    let rows: Vec<_> = pairs.iter().map(|&(x, y)| (bytes(x), bytes(y))).collect();
    let out = run(
        &circuit,
        width as usize,
        &rows,
        out_width(name, width) as usize,
    );
    for (&(x, y), out) in pairs.iter().zip(out) {
        let mut word = [0; 8];
        word[..out.len()].copy_from_slice(&out);
        assert_eq!(
            u64::from_le_bytes(word),
            expected(name, x, y, width),
            "{name}:{width} of {x} and {y}"
        );
    }
}

fn words() -> impl Iterator<Item = &'static str> {
    catalogue()
        .iter()
        .filter(|entry| entry.takes_width && !entry.name.starts_with("int-"))
        .map(|entry| entry.name)
}

#[test]
fn small_words_exhaustively() {
    for width in 1..=6 {
        let all: Vec<_> = (0..1 << width)
            .flat_map(|x| (0..1 << width).map(move |y| (x, y)))
            .collect();
        words().for_each(|name| check(name, width, &all));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn large_words_at_random(width in 7u32..=64, seeds in prop::collection::vec(any::<(u64, u64, u8)>(), 70)) {
        let modulus = u64::MAX >> (64 - width);
        let near = |(x, y, kind): (u64, u64, u8)| match kind % 4 {
            // Equal, off by one, and long carries, which random words hardly ever have.
            0 => (x & modulus, x & modulus),
            1 => (x & modulus, x.wrapping_add(1) & modulus),
            2 => (x & modulus, !x & modulus),
            _ => (x & modulus, y & modulus),
        };
        let pairs: Vec<_> = seeds.into_iter().map(near).collect();
        words().for_each(|name| check(name, width, &pairs));
    }

    #[test]
    fn wide_words_by_limbs(x in any::<[u64; 4]>(), y in any::<[u64; 4]>()) {
        let bytes = |limbs: [u64; 4]| limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect::<Vec<_>>();
        let mut sum = [0; 4];
        let mut difference = [0; 4];
        let mut product = [0u64; 4];
        let (mut carry, mut borrow) = (0, false);
        for i in 0..4 {
            let total = u128::from(x[i]) + u128::from(y[i]) + carry;
            (sum[i], carry) = (total as u64, total >> 64);
            let (first, b0) = x[i].overflowing_sub(y[i]);
            let (second, b1) = first.overflowing_sub(u64::from(borrow));
            (difference[i], borrow) = (second, b0 | b1);
            let mut high = 0;
            for j in 0..4 - i {
                let total = u128::from(x[i]) * u128::from(y[j]) + u128::from(product[i + j]) + high;
                (product[i + j], high) = (total as u64, total >> 64);
            }
        }
        let pair = [(bytes(x), bytes(y))];
        for (name, want) in [("adder", sum), ("sub", difference), ("mul", product)] {
            for name in [name.to_owned(), format!("{name}-fast")] {
                let circuit = make(&format!("{name}:256"));
                prop_assert_eq!(&run(&circuit, 256, &pair, 256)[0], &bytes(want), "{}", name);
            }
        }
        for name in ["lt:256", "lt-fast:256"] {
            prop_assert_eq!(run(&make(name), 256, &pair, 1)[0][0], u8::from(borrow), "{}", name);
        }
    }
}

/// Rows of several words, all pairs of small ones and ends of large ones: the last word counts first.
#[test]
fn rows_precede_each_other_by_all_words() {
    let columns = |words: &[u128], width: u32| {
        let bytes = width.div_ceil(8) as usize;
        let packed: Vec<u8> = words
            .iter()
            .flat_map(|word| word.to_le_bytes()[..bytes].to_vec())
            .collect();
        to_columns(&packed, words.len(), width as usize)
    };
    for widths in [
        &[1][..],
        &[3],
        &[5],
        &[2, 3],
        &[1, 1, 4],
        &[52],
        &[128, 7],
        &[64, 64],
    ] {
        let circuit = generate::precedes(widths);
        let n: u32 = widths.iter().sum();
        let ands = circuit.stats().muls;
        assert!(ands <= u64::from(n) * 5 / 2, "{ands} ANDs of {n} bits");
        // All values of few bits; else ends, and words that differ in one bit.
        let values: Vec<Vec<u128>> = widths
            .iter()
            .map(|width| {
                let top = u128::MAX >> (128 - width);
                if *width <= 5 {
                    (0..=top).collect()
                } else {
                    let bits = (0..*width).map(|bit| top ^ 1 << bit);
                    bits.chain([0, 1, top]).collect()
                }
            })
            .collect();
        let mut rows: Vec<Vec<u128>> = vec![vec![]];
        for of in &values {
            let longer = rows
                .iter()
                .flat_map(|row| of.iter().map(move |word| [&row[..], &[*word]].concat()));
            rows = longer.collect();
        }
        let step = (rows.len() * rows.len() / 20_000).max(1);
        let pairs: Vec<(&Vec<u128>, &Vec<u128>)> = rows
            .iter()
            .flat_map(|x| rows.iter().map(move |y| (x, y)))
            .step_by(step)
            .collect();
        let ports = (0..2 * widths.len()).map(|port| {
            let word = port % widths.len();
            let of = |pair: &(&Vec<u128>, &Vec<u128>)| [pair.0, pair.1][port / widths.len()][word];
            let words: Vec<u128> = pairs.iter().map(of).collect();
            columns(&words, widths[word])
        });
        let ports: Vec<Vec<u8>> = ports.collect();
        let ports: Vec<&[u8]> = ports.iter().map(Vec::as_slice).collect();
        let out = evaluate(&circuit, pairs.len(), &ports);
        for (at, (x, y)) in pairs.iter().enumerate() {
            let wanted = x.iter().rev().lt(y.iter().rev());
            let found = out[at / 8] >> (at % 8) & 1 == 1;
            assert_eq!(found, wanted, "{widths:?}: {x:?} {y:?}");
        }
    }
}

#[test]
fn counts_are_as_documented() {
    for n in [1, 2, 3, 8, 31, 64, 256] {
        let stats = |name: &str| make(&format!("{name}:{n}")).stats();
        let log = u64::from(u32::try_from(n).unwrap().next_power_of_two().ilog2());
        let log_less_1 = u64::from(u32::try_from(n - 1).unwrap().next_power_of_two().ilog2());
        for name in ["adder", "sub"] {
            let small = stats(name);
            assert_eq!((small.muls, small.depth), (n - 1, n - 1), "{name}:{n}");
            let fast = stats(&format!("{name}-fast"));
            assert_eq!(
                fast.depth,
                if n == 1 { 0 } else { 1 + log_less_1 },
                "{name}-fast:{n}"
            );
        }
        for name in ["lt", "lt-signed"] {
            assert_eq!((stats(name).muls, stats(name).depth), (n, n), "{name}:{n}");
            let fast = stats(&format!("{name}-fast"));
            assert_eq!(fast.depth, 1 + log, "{name}-fast:{n}");
            assert!(fast.muls < 3 * n, "{name}-fast:{n}");
        }
        assert_eq!(
            (stats("eq").muls, stats("eq").depth),
            (n - 1, log),
            "eq:{n}"
        );
        assert_eq!(stats("mul").muls, n * n - n + 1, "mul:{n}");
    }
    // The size of mult64 in circulation: 4033 ANDs.
    assert_eq!(make("mul:64").stats().muls, 4033);
    for n in [2, 3, 5, 8, 16, 33, 64, 100] {
        let log = u64::from(u32::try_from(n).expect("small").next_power_of_two().ilog2());
        assert!(
            make(&format!("mul-fast:{n}")).stats().depth <= 2 + 2 * log,
            "mul-fast:{n}"
        );
    }
    let aes = |name: &str| {
        let stats = make(name).stats();
        (stats.muls, stats.job_muls, stats.depth)
    };
    assert_eq!(aes("aes128"), (6400, 1280, 60));
    assert_eq!(aes("aes128-shallow"), (6600, 1320, 40));
    assert_eq!(aes("aes128-expanded"), (5120, 0, 60));
    assert_eq!(aes("aes128-expanded-shallow"), (5280, 0, 40));
    let sha256 = |name: &str| (make(name).stats().muls, make(name).stats().depth);
    assert_eq!(sha256("sha256"), (22_335, 1607));
    assert_eq!(sha256("sha256-shallow").1, 456);
}

fn aes_key_schedule(key: [u8; 16]) -> Vec<u8> {
    // FIPS 197, 5.2, with the S-box from its definition.
    let times = |a: u8, b: u8| {
        (0..8)
            .filter(|bit| b >> bit & 1 == 1)
            .fold(0u32, |sum, bit| sum ^ u32::from(a) << bit)
    };
    let reduce = |mut value: u32| {
        for bit in (8..15).rev() {
            if value >> bit & 1 == 1 {
                value ^= 0x11b << (bit - 8);
            }
        }
        value as u8
    };
    let sbox = |x: u8| {
        let inverse = (0..=255).find(|&y| reduce(times(x, y)) == 1).unwrap_or(0);
        (1..5).fold(0x63 ^ inverse, |sum, by| sum ^ u8::rotate_left(inverse, by))
    };
    let mut bytes = key.to_vec();
    let mut constant = 1;
    while bytes.len() < 176 {
        let at = bytes.len();
        let mut word: Vec<u8> = bytes[at - 4..].to_vec();
        if at.is_multiple_of(16) {
            word.rotate_left(1);
            word = word.into_iter().map(sbox).collect();
            word[0] ^= constant;
            constant = reduce(times(constant, 2));
        }
        for (k, byte) in word.into_iter().enumerate() {
            bytes.push(bytes[at - 16 + k] ^ byte);
        }
    }
    bytes
}

#[test]
fn aes_of_fips_197() {
    let key: [u8; 16] = std::array::from_fn(|k| k as u8);
    let block: Vec<u8> = (0..16).map(|k| k * 0x11).collect();
    let want = [
        0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5,
        0x5a,
    ];
    let schedule = aes_key_schedule(key);
    // The last round key of FIPS 197, C.1.
    assert_eq!(schedule[160..164], [0x13, 0x11, 0x1d, 0x7f]);
    for name in [
        "aes128",
        "aes128-shallow",
        "aes128-expanded",
        "aes128-expanded-shallow",
    ] {
        let key = if name.contains("expanded") {
            &schedule[..]
        } else {
            &key
        };
        let inputs = [
            to_columns(key, 1, 8 * key.len()),
            to_columns(&block, 1, 128),
        ];
        let out = evaluate(&make(name), 1, &[&inputs[0], &inputs[1]]);
        assert_eq!(to_rows(&out, 1, 128), want, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn aes_as_rustcrypto(key in any::<[u8; 16]>(), blocks in prop::collection::vec(any::<[u8; 16]>(), 1..600)) {
        let cipher = aes::Aes128::new(&key.into());
        let want: Vec<u8> = blocks
            .iter()
            .flat_map(|&block| {
                let mut block = block.into();
                cipher.encrypt_block(&mut block);
                block
            })
            .collect();
        let rows = blocks.len();
        let blocks = to_columns(&blocks.concat(), rows, 128);
        let schedule = aes_key_schedule(key);
        for name in ["aes128", "aes128-shallow", "aes128-expanded", "aes128-expanded-shallow"] {
            let key = if name.contains("expanded") { &schedule[..] } else { &key };
            let key = to_columns(key, 1, 8 * key.len());
            let out = evaluate(&make(name), rows, &[&key, &blocks]);
            prop_assert_eq!(&to_rows(&out, rows, 128), &want, "{}", name);
        }
    }

    #[test]
    fn sha256_as_rustcrypto(message in prop::collection::vec(any::<u8>(), 0..300)) {
        for name in ["sha256", "sha256-shallow"] {
            prop_assert_eq!(sha256_by_circuit(&make(name), &message), sha2::Sha256::digest(&message).to_vec());
        }
    }
}

fn sha256_by_circuit(circuit: &Circuit, message: &[u8]) -> Vec<u8> {
    // FIPS 180-4, 5.1.1 and 5.3.3.
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((8 * message.len() as u64).to_be_bytes());
    let initial: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    let mut state = to_columns(&initial.map(u32::to_be_bytes).concat(), 1, 256);
    for block in padded.chunks_exact(64) {
        state = evaluate(circuit, 1, &[&state, &to_columns(block, 1, 512)]);
    }
    to_rows(&state, 1, 256)
}

#[test]
fn sha256_of_fips_180() {
    let digest = sha256_by_circuit(&make("sha256"), b"abc");
    assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
    assert_eq!(digest[28..], [0xf2, 0x00, 0x15, 0xad]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Words of different lengths, with exactly as many bits of the quotient as it needs, and with more.
    #[test]
    fn quotients_of_known_length(x in 0u64..1 << 40, y in 1u64..1 << 20, more in 0usize..4, shift in 0u32..40) {
        let x = x >> shift;
        let (quotient, need) = (x / y, (x / y).checked_ilog2().map_or(0, |top| top as usize + 1));
        let length = |value: u64| value.checked_ilog2().map_or(1, |top| top + 1) + more as u32;
        let mut b = Builder::new(Ring::Bits);
        let dividend = b.input("x", length(x), Per::Row);
        let divisor = b.input("y", length(y), Per::Row);
        let (bits, rest) = generate::quotient_and_rest(&mut b, &dividend, &divisor, need.max(1) + more, generate::Aim::Size);
        b.output("quotient", &bits);
        b.output("rest", &rest);
        let circuit = b.finish().expect("a valid circuit");
        let word = |value: u64, bits: u32| (0..bits).map(|k| u128::from(value >> k & 1)).collect();
        let found = circuit.evaluate(&[word(x, length(x)), word(y, length(y))]).expect("two ports");
        let number = |at: usize| found[at].iter().rev().fold(0u64, |sum, bit| sum << 1 | *bit as u64);
        prop_assert_eq!((number(0), number(1)), (quotient, x % y), "{} / {}", x, y);
    }
}

#[test]
fn bad_specifications_say_what_to_do() {
    let message = |specification: &str| veil_circuit::make(specification).unwrap_err().to_string();
    assert!(message("aes").starts_with("no circuit is called `aes`; known are: aes128, "));
    assert_eq!(
        message("adder"),
        "`adder` needs a width of 1 to 256 bits; write for example `adder:64`"
    );
    for width in ["0", "257", "-1", "x", "", "99999999999999999999"] {
        assert_eq!(
            message(&format!("mul:{width}")),
            format!(
                "`{width}` is not a width for `mul`; give a number of bits from 1 to 256, for example `mul:64`"
            )
        );
    }
    assert_eq!(
        message("sha256:8"),
        "`sha256` takes no width; leave out `:` and what follows"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Against sums of products of integers.
    #[test]
    fn matrices_are_multiplied(
        shape in [1..=4usize, 1..=5usize, 1..=4usize],
        words in proptest::collection::vec(any::<u128>(), 40),
        wide in any::<bool>(),
    ) {
        let [rows, inner, columns] = shape;
        let ring = if wide { "128" } else { "64" };
        let circuit = make(&format!("matmul{ring}:{rows}x{inner}x{columns}"));
        let reduce = |value: u128| if wide { value } else { u128::from(value as u64) };
        let x: Vec<u128> = (0..rows * inner).map(|k| reduce(words[k])).collect();
        let y: Vec<u128> = (0..inner * columns).map(|k| reduce(words[20 + k])).collect();
        let out = circuit.evaluate(&[x.clone(), y.clone()]).expect("inputs of the right size");
        let element = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            let terms = (0..inner).map(|k| x[i * inner + k].wrapping_mul(y[k * columns + j]));
            reduce(terms.fold(0, u128::wrapping_add))
        };
        let expected: Vec<u128> = (0..rows * columns).map(element).collect();
        prop_assert_eq!(&out[0], &expected);
        prop_assert_eq!(circuit.stats().depth, 1);
    }
}

#[test]
fn shapes_that_are_none_are_refused() {
    for shape in [
        "",
        ":",
        ":2x3",
        ":2x3x4x5",
        ":0x3x4",
        ":2x65x4",
        ":2x-3x4",
        ":twoxtwoxtwo",
    ] {
        let error = veil_circuit::make(&format!("matmul64{shape}")).expect_err(shape);
        assert!(
            error.to_string().contains("for example `matmul64:2x3x4`"),
            "{error}"
        );
    }
}
