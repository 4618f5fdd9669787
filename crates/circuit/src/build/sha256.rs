//! The compression function of SHA-256.
//!
//! NIST FIPS 180-4. States and blocks are in the order of their bytes: byte `k` is wires `8k..8k + 8`, bit 0 first, and
//! words are big-endian, so that the state after the last block is the digest as it is printed.

use veil_math::Ring;

use super::adder::{Aim, add, sum};
use crate::{Builder, Circuit, Per, Wire};

type Word = Vec<Wire>;

/// One compression: inputs `state` (256) and `block` (512), output `out` (256), the next state.
///
/// The initial state and the padding are the caller's. [`Aim::Size`]: 22 335 ANDs. [`Aim::Depth`]: depth 456 instead
/// of 1607.
pub fn sha256(state: Per, aim: Aim) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    let state = b.input("state", 256, state);
    let block = b.input("block", 512, Per::Row);
    let out = sha256_compress(&mut b, &state, &block, aim);
    b.output("out", &out);
    b.finish()
        .expect("SHA-256 has fixed ports and far fewer gates than the limit")
}

/// Adds a compression to a circuit: the next state, 256 wires, from a state of 256 and a block of 512.
///
/// # Panics
/// If the numbers of wires are others.
pub fn sha256_compress(b: &mut Builder, state: &[Wire], block: &[Wire], aim: Aim) -> Vec<Wire> {
    assert_eq!(
        (state.len(), block.len()),
        (256, 512),
        "wires of the state and the block"
    );
    let first: Vec<Word> = state.chunks_exact(32).map(turn).collect();
    let schedule = schedule(b, block, aim);
    let mut state = first.clone();
    for (scheduled, &constant) in schedule.into_iter().zip(&K) {
        state = round(b, &state, scheduled, constant, aim);
    }
    first
        .iter()
        .zip(&state)
        .flat_map(|(first, last)| turn(&add(b, first, last, aim)))
        .collect()
}

/// The 64 words `W_t` of FIPS 180-4, 6.2.2, step 1.
fn schedule(b: &mut Builder, block: &[Wire], aim: Aim) -> Vec<Word> {
    let mut words: Vec<Word> = block.chunks_exact(32).map(turn).collect();
    for t in 16..64 {
        let early = sigma(b, &words[t - 15], [7, 18], 3);
        let late = sigma(b, &words[t - 2], [17, 19], 10);
        let terms = [words[t - 16].clone(), words[t - 7].clone(), early, late];
        words.push(sum(b, &terms, aim));
    }
    words
}

/// Step 3 of FIPS 180-4, 6.2.2, for one `t`.
fn round(b: &mut Builder, state: &[Word], scheduled: Word, constant: u32, aim: Aim) -> Vec<Word> {
    let [a, bb, c, d, e, f, g, h] = state else {
        unreachable!("a state has eight words");
    };
    let constant: Word = (0..32)
        .map(|bit| b.constant(u128::from(constant >> bit & 1)))
        .collect();
    // Ch: a choice. Maj: b, unless both others differ from it; a ⊕ b is b ⊕ c of the next round.
    let choice = zip3(e, f, g, |e, f, g| b.mux(e, f, g));
    let majority = zip3(a, bb, c, |x, y, z| {
        let (xy, yz) = (b.xor(x, y), b.xor(y, z));
        let change = b.and(xy, yz);
        b.xor(y, change)
    });
    let (sum_a, sum_e) = (rotations(b, a, [2, 13, 22]), rotations(b, e, [6, 11, 25]));

    let terms = [scheduled, constant, h.clone(), sum_e, choice];
    let (next_a, next_e) = match aim {
        Aim::Size => {
            let first = sum(b, &terms, aim);
            (
                sum(b, &[sum_a, majority, first.clone()], aim),
                add(b, d, &first, aim),
            )
        }
        // Two long sums instead of one within the other: more carry-save steps, one carry chain a round.
        Aim::Depth => {
            let with = |more: &[&Word]| {
                terms
                    .iter()
                    .chain(more.iter().copied())
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let (for_a, for_e) = (with(&[&sum_a, &majority]), with(&[d]));
            (sum(b, &for_a, aim), sum(b, &for_e, aim))
        }
    };
    vec![
        next_a,
        a.clone(),
        bb.clone(),
        c.clone(),
        next_e,
        e.clone(),
        f.clone(),
        g.clone(),
    ]
}

/// Between a word with bit 0 first and its four bytes, highest byte first.
fn turn(word: &[Wire]) -> Word {
    word.chunks_exact(8).rev().flatten().copied().collect()
}

fn rotated(word: &[Wire], by: usize, bit: usize) -> Wire {
    word[(bit + by) % 32]
}

fn rotations(b: &mut Builder, word: &[Wire], by: [usize; 3]) -> Word {
    let mut bit = |bit| {
        let first = b.xor(rotated(word, by[0], bit), rotated(word, by[1], bit));
        b.xor(first, rotated(word, by[2], bit))
    };
    (0..32).map(&mut bit).collect()
}

fn sigma(b: &mut Builder, word: &[Wire], rotate: [usize; 2], shift: usize) -> Word {
    let mut bit = |bit| {
        let turned = b.xor(rotated(word, rotate[0], bit), rotated(word, rotate[1], bit));
        word.get(bit + shift)
            .map_or(turned, |&shifted| b.xor(turned, shifted))
    };
    (0..32).map(&mut bit).collect()
}

fn zip3(x: &[Wire], y: &[Wire], z: &[Wire], mut f: impl FnMut(Wire, Wire, Wire) -> Wire) -> Word {
    x.iter()
        .zip(y)
        .zip(z)
        .map(|((&x, &y), &z)| f(x, y, z))
        .collect()
}

/// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
#[rustfmt::skip]
const K: [u32; 64] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
];
