//! Public circuits that the repository does not contain: the sets of Bristol, in both flavours of the format, computed in the clear against other
//! implementations and known answers, and on shares by every protocol on bits.
//!
//! `VEIL_CIRCUITS=folder cargo test --test public` runs all files of a folder that are called `*.txt`. What a circuit computes is told by
//! its name; which wire has which bit is not in a file, and differs between sets, so that the usual orders are tried. A circuit whose name
//! says nothing that is known here is computed on shares all the same.

use std::path::Path;

use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use sha2::{Digest, Sha256, Sha512};
use veil_circuit::{Circuit, Limits, bristol};
use veil_device::Cpu;
use veil_job::{Audience, Holder, JobSpec};
use veil_testkit::sample::{against_malicious, among_four, between_two, job, party};
use veil_testkit::{Numbers, Seed, World};

/// Values of all input ports, and of the output: numbers, the highest byte first.
type Sample = (Vec<Vec<u8>>, Vec<u8>);

/// A function, as samples of it for ports of so many bits; `None`: it has no such ports.
type Function = fn(&[usize], &mut Numbers) -> Option<Sample>;

/// What names say: words that a name has, one that it has not, and functions of which it is one.
const KNOWN: &[(&[&str], &str, &[Function])] = &[
    (&["aes"], "expanded", &[cipher]),
    (&["aes", "non-expanded"], "", &[cipher]),
    (&["sha", "256"], "two-block", &[sha256]),
    (&["sha", "512"], "", &[sha512]),
    (&["sha", "1"], "512", &[sha1]),
    (&["md5"], "", &[md5]),
    (&["des", "non-expanded"], "", &[des]),
    (&["add"], "", &[|w, n| arithmetic(w, n, u128::wrapping_add)]),
    (&["sub"], "", &[|w, n| arithmetic(w, n, u128::wrapping_sub)]),
    (
        &["mul"],
        "",
        &[
            |w, n| arithmetic(w, n, u128::wrapping_mul),
            // The high word first.
            |w, n| arithmetic(w, n, |a, b| a.wrapping_mul(b).rotate_left(64)),
        ],
    ),
    (&["div"], "", &[signed_quotient, quotient]),
    (&["neg"], "", &[negative]),
    (&["zero"], "nan", &[is_zero]),
    (
        &["lteq"],
        "",
        &[
            |w, n| compare(w, n, |a, b| a <= b),
            |w, n| compare_signed(w, n, |a, b| a <= b),
        ],
    ),
    (
        &["lt"],
        "lteq",
        &[
            |w, n| compare(w, n, |a, b| a < b),
            |w, n| compare_signed(w, n, |a, b| a < b),
        ],
    ),
];

/// So many samples have to be right.
const SAMPLES: usize = 24;

/// Which bit of a number a wire of a port has.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// The lowest bit first.
    Lowest,
    /// The highest bit first.
    Highest,
    /// The first byte first, and the lowest bit of each.
    Bytes,
}

const ORDERS: [Order; 3] = [Order::Lowest, Order::Highest, Order::Bytes];

impl Order {
    fn wires(self, number: &[u8], width: usize) -> Vec<u128> {
        let bit = |k: usize| u128::from(number[number.len() - 1 - k / 8] >> (k % 8) & 1);
        let place = |wire: usize| match self {
            Order::Lowest => wire,
            Order::Highest => width - 1 - wire,
            Order::Bytes => width - 8 - wire / 8 * 8 + wire % 8,
        };
        (0..width).map(|wire| bit(place(wire))).collect()
    }

    /// Whether a port of so many bits has it: one of a single bit has one order, and not all have whole bytes.
    fn fits(self, width: usize) -> bool {
        match self {
            Order::Lowest => true,
            Order::Highest => width > 1,
            Order::Bytes => width > 8 && width.is_multiple_of(8),
        }
    }
}

fn random(width: usize, numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = vec![0; width.div_ceil(8)];
    numbers.fill(&mut bytes);
    bytes[0] &= 0xff >> (bytes.len() * 8 - width);
    bytes
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |n, byte| n << 8 | u128::from(*byte))
}

/// The lowest bits of a number.
fn low(number: u128, width: usize) -> Vec<u8> {
    let number = number & u128::MAX >> (128 - width.min(128));
    let bytes = number.to_be_bytes();
    bytes[16 - width.div_ceil(8).min(16)..].to_vec()
}

fn cipher(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    fn with<C: KeyInit + BlockCipherEncrypt>(key: &[u8], block: &[u8]) -> Vec<u8> {
        let mut out = Array::<u8, C::BlockSize>::try_from(block).expect("a block");
        C::new_from_slice(key)
            .expect("a key")
            .encrypt_block(&mut out);
        out.to_vec()
    }
    let [bits, 128, 128] = *widths else {
        return None;
    };
    let (key, block) = (random(bits, numbers), random(128, numbers));
    let out = match bits {
        128 => with::<aes::Aes128>(&key, &block),
        192 => with::<aes::Aes192>(&key, &block),
        256 => with::<aes::Aes256>(&key, &block),
        _ => return None,
    };
    Some((vec![key, block], out))
}

/// A message that fills one block with its padding, whose length is in so many bytes.
fn padded(block: usize, length: usize, numbers: &mut Numbers) -> (Vec<u8>, Vec<u8>) {
    let room = block - length - 1;
    let message = random(
        8 * (1 + (numbers.next_u128() % room as u128) as usize),
        numbers,
    );
    let mut bytes = message.clone();
    bytes.push(0x80);
    bytes.resize(block - 8, 0);
    bytes.extend((8 * message.len() as u64).to_be_bytes());
    (message, bytes)
}

/// FIPS 180-4, 5.3.3: what SHA-256 begins with.
const SHA256: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// FIPS 180-4, 5.3.5: what SHA-512 begins with.
const SHA512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// One block, or its halves, or with the state before it.
fn sha256(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    let (message, block) = padded(64, 8, numbers);
    let inputs = match widths {
        [512, 256] => vec![block],
        [512, 256, 256] => vec![block, SHA256.iter().flat_map(|w| w.to_be_bytes()).collect()],
        [256, 256, 256] => block.chunks(32).map(<[u8]>::to_vec).collect(),
        _ => return None,
    };
    Some((inputs, Sha256::digest(message).to_vec()))
}

fn sha512(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    let (message, block) = padded(128, 16, numbers);
    let inputs = match widths {
        [1024, 512] => vec![block],
        [1024, 512, 512] => vec![block, SHA512.iter().flat_map(|w| w.to_be_bytes()).collect()],
        _ => return None,
    };
    Some((inputs, Sha512::digest(message).to_vec()))
}

fn hex(text: &str) -> Vec<u8> {
    let pair = |k| u8::from_str_radix(&text[k..k + 2], 16).expect("hex digits");
    (0..text.len()).step_by(2).map(pair).collect()
}

/// FIPS 180: "abc".
fn sha1(widths: &[usize], _: &mut Numbers) -> Option<Sample> {
    let block = hex("61626380").into_iter().chain([0; 59]).chain([24]);
    let digest = hex("a9993e364706816aba3e25717850c26c9cd0d89d");
    (widths == [512, 160]).then(|| (vec![block.collect()], digest))
}

/// RFC 1321: "abc". Its length has the lowest byte first.
fn md5(widths: &[usize], _: &mut Numbers) -> Option<Sample> {
    let block = hex("61626380")
        .into_iter()
        .chain([0; 52])
        .chain([24])
        .chain([0; 7]);
    let digest = hex("900150983cd24fb0d6963f7d28e17f72");
    (widths == [512, 128]).then(|| (vec![block.collect()], digest))
}

/// The example of J. O. Grabbe, "The DES Algorithm Illustrated".
fn des(widths: &[usize], _: &mut Numbers) -> Option<Sample> {
    let [key, block, out] = ["133457799bbcdff1", "0123456789abcdef", "85e813540f0ab405"].map(hex);
    (widths == [64, 64, 64]).then(|| (vec![key, block], out))
}

fn arithmetic(
    widths: &[usize],
    numbers: &mut Numbers,
    of: fn(u128, u128) -> u128,
) -> Option<Sample> {
    let [a, b, out] = *widths else { return None };
    let inputs = vec![random(a, numbers), random(b, numbers)];
    (a <= 64 && b <= 64).then(|| {
        let result = low(of(number(&inputs[0]), number(&inputs[1])), out);
        (inputs, result)
    })
}

fn quotient(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    let [64, 64, 64] = *widths else { return None };
    let inputs = vec![
        random(64, numbers),
        random(1 + numbers.below(64) as usize, numbers),
    ];
    let inputs = inputs.into_iter().map(|n| low(number(&n).max(1), 64));
    let inputs: Vec<Vec<u8>> = inputs.collect();
    let result = low(number(&inputs[0]) / number(&inputs[1]), 64);
    Some((inputs, result))
}

/// Rounded towards zero.
fn signed_quotient(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    let [64, 64, 64] = *widths else { return None };
    let a = numbers.next_u128() as i64;
    let b = (numbers.next_u128() as i64) >> numbers.below(63);
    let b = if b == 0 { 1 } else { b };
    let bytes = |n: i64| n.to_be_bytes().to_vec();
    Some((vec![bytes(a), bytes(b)], bytes(a.wrapping_div(b))))
}

fn negative(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    let [64, 64] = *widths else { return None };
    let n = numbers.next_u128() as i64;
    let bytes = |n: i64| n.to_be_bytes().to_vec();
    Some((vec![bytes(n)], bytes(n.wrapping_neg())))
}

fn is_zero(widths: &[usize], numbers: &mut Numbers) -> Option<Sample> {
    let (1, inputs) = (*widths.last()?, &widths[..widths.len() - 1]) else {
        return None;
    };
    let zero = numbers.below(2) == 0;
    let port = |width: &usize| {
        if zero {
            vec![0; width.div_ceil(8)]
        } else {
            random(*width, numbers)
        }
    };
    let inputs: Vec<Vec<u8>> = inputs.iter().map(port).collect();
    let zero = inputs.iter().flatten().all(|byte| *byte == 0);
    Some((inputs, vec![u8::from(zero)]))
}

/// Numbers, of which every other two are equal.
fn pair(widths: &[usize], numbers: &mut Numbers) -> Option<[u64; 2]> {
    let [32, 32, 1] = *widths else { return None };
    let a = numbers.next_u128() as u32;
    let b = if numbers.below(2) == 0 {
        a
    } else {
        numbers.next_u128() as u32
    };
    Some([a, b].map(u64::from))
}

fn compare(widths: &[usize], numbers: &mut Numbers, is: fn(u64, u64) -> bool) -> Option<Sample> {
    let [a, b] = pair(widths, numbers)?;
    Some((
        [a, b].map(|n| low(n.into(), 32)).into(),
        vec![u8::from(is(a, b))],
    ))
}

fn compare_signed(
    widths: &[usize],
    numbers: &mut Numbers,
    is: fn(i32, i32) -> bool,
) -> Option<Sample> {
    let [a, b] = pair(widths, numbers)?;
    let right = is(a as i32, b as i32);
    Some((
        [a, b].map(|n| low(n.into(), 32)).into(),
        vec![u8::from(right)],
    ))
}

/// How a circuit computes one of these functions, if it does: the order of bits of each port, and last that of all outputs, one after the
/// other; and whether the inputs are exchanged.
fn found(circuit: &Circuit, functions: &[Function]) -> Option<(Vec<Order>, bool)> {
    let outputs: usize = circuit.outputs.iter().map(|port| port.wires.len()).sum();
    let inputs = circuit.inputs.iter().map(|port| port.width as usize);
    let widths: Vec<usize> = inputs.chain([outputs]).collect();
    let every = widths.iter().fold(vec![vec![]], |before, width| {
        let orders = ORDERS.into_iter().filter(|order| order.fits(*width));
        let each = |order| before.iter().map(move |all| [&all[..], &[order]].concat());
        orders.flat_map(each).collect::<Vec<Vec<Order>>>()
    });
    let ways = every
        .into_iter()
        .flat_map(|orders| [(orders.clone(), false), (orders, true)]);
    let mut ways = ways.collect::<Vec<_>>().into_iter();
    ways.find(|(orders, exchanged)| {
        let computes = |function: &Function| {
            let mut numbers = Seed(11).numbers("public");
            (0..SAMPLES).all(|_| {
                is_sample(
                    circuit,
                    *function,
                    (&widths, orders, *exchanged),
                    &mut numbers,
                )
            })
        };
        functions.iter().any(computes)
    })
}

/// Whether a circuit computes a sample of a function, with ports of these widths and orders.
fn is_sample(
    circuit: &Circuit,
    function: Function,
    (widths, orders, exchanged): (&[usize], &[Order], bool),
    numbers: &mut Numbers,
) -> bool {
    let (out, inputs) = widths.split_last().expect("an output");
    let (order, of_inputs) = orders.split_last().expect("that of the output");
    let mut named = inputs.to_vec();
    if exchanged {
        named.reverse();
    }
    named.push(*out);
    let Some((mut values, result)) = function(&named, numbers) else {
        return false;
    };
    if exchanged {
        values.reverse();
    }
    let ports = values.iter().zip(inputs).zip(of_inputs);
    let wires = ports.map(|((n, width), order)| order.wires(n, *width));
    let got = circuit.evaluate(&wires.collect::<Vec<_>>()).expect("bits");
    got.concat() == order.wires(&result, *out)
}

/// The functions that a name tells.
fn named(name: &str) -> Option<&'static [Function]> {
    let has = |(words, other, _): &&(&[&str], &str, &[Function])| {
        words.iter().all(|word| name.contains(word)) && (other.is_empty() || !name.contains(other))
    };
    let more = |(words, ..): &&(&[&str], &str, &[Function])| words.len();
    let known = KNOWN.iter().filter(has).max_by_key(more)?;
    Some(known.2)
}

type Protocol = (&'static str, fn(JobSpec) -> JobSpec);

const PROTOCOLS: [Protocol; 4] = [
    ("yao", between_two),
    ("rep3", |job| job),
    ("rep3, malicious", against_malicious),
    ("rep4", among_four),
];

#[test]
fn public_circuits_compute_what_their_names_say_in_the_clear_and_on_shares() {
    let Some(folder) = std::env::var_os("VEIL_CIRCUITS") else {
        println!("skipped: VEIL_CIRCUITS names no folder of circuits");
        return;
    };
    let files = std::fs::read_dir(folder).expect("the folder of circuits");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "txt"));
    files.sort();
    assert!(!files.is_empty(), "the folder has circuits");
    for file in files {
        public(&file);
    }
}

fn public(file: &Path) {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let text = std::fs::read(file).expect("a file");
    let circuit = bristol::read(&text, &Limits::default());
    let circuit = circuit.unwrap_or_else(|error| panic!("{name}: {error}"));
    let how = match named(&name.to_lowercase().replace('_', "-")) {
        None => "unknown".into(),
        Some(functions) => {
            let found = found(&circuit, functions);
            let (orders, exchanged) =
                found.unwrap_or_else(|| panic!("{name}: it computes something else"));
            let ports = if exchanged { ", inputs exchanged" } else { "" };
            format!("as its name says, bits of its ports {orders:?}{ports}")
        }
    };
    println!("{name}: {}; {how}", circuit.stats());
    let holders = (0..circuit.inputs.len()).map(|k| Holder::Party(party(k as u8 % 2)));
    let holders: Vec<Holder> = holders.collect();
    let audiences = vec![Audience::Parties; circuit.outputs.len()];
    for (protocol, of) in PROTOCOLS {
        let job = of(job(circuit.clone(), &[(3, &holders)], &audiences));
        let world = World::new(job).devices(|_| Box::new(Cpu::detect()));
        let outcome = world.run();
        outcome.assert_right();
        println!("{name}: {protocol}: {:?}", outcome.elapsed);
    }
}
