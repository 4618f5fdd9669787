//! AES-128.
//!
//! NIST FIPS 197. Byte `k` of a key, a round key or a block is wires `8k..8k + 8`, bit 0 first.

use veil_math::Ring;

use super::adder::Aim;
use super::linear::{SBOX_OUTPUT, SBOX_OUTPUT_MIXED};
use super::sbox::{AFFINE, flip, products, sub_byte};
use crate::{Builder, Circuit, Per, Wire};

const ROUNDS: usize = 10;
/// Bits of a block, a key and a round key.
const BLOCK: usize = 128;

/// AES-128 of one block, key schedule included: inputs `key` (128) and `block` (128), output `out` (128).
///
/// [`Aim::Size`]: 6400 ANDs, depth 60. [`Aim::Depth`]: 6600 ANDs, depth 40. With a key per job, 5120 (5280) of them
/// are computed per row.
pub fn aes128(key: Per, aim: Aim) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    let key = b.input("key", BLOCK as u32, key);
    let block = b.input("block", BLOCK as u32, Per::Row);
    let round_keys = aes128_expand_key(&mut b, &key, aim);
    let out = aes128_encrypt(&mut b, &round_keys, &block, aim);
    b.output("out", &out);
    b.finish()
        .expect("AES has fixed ports and far fewer gates than the limit")
}

/// AES-128 of one block under round keys: inputs `round_keys` (11 · 128) and `block` (128), output `out` (128).
///
/// [`Aim::Size`]: 5120 ANDs, depth 60. [`Aim::Depth`]: 5280 ANDs, depth 40.
pub fn aes128_expanded(round_keys: Per, aim: Aim) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    let round_keys = b.input("round_keys", (BLOCK * (ROUNDS + 1)) as u32, round_keys);
    let block = b.input("block", BLOCK as u32, Per::Row);
    let out = aes128_encrypt(&mut b, &round_keys, &block, aim);
    b.output("out", &out);
    b.finish()
        .expect("AES has fixed ports and far fewer gates than the limit")
}

/// The eleven round keys, 11 · 128 wires, of a key of 128 wires. FIPS 197, 5.2.
///
/// # Panics
/// If `key` is not 128 wires.
pub fn aes128_expand_key(b: &mut Builder, key: &[Wire], aim: Aim) -> Vec<Wire> {
    assert_eq!(key.len(), BLOCK, "wires of the key");
    let mut expanded = key.to_vec();
    let mut round_constant = 1;
    for word in 4..4 * (ROUNDS + 1) {
        let mut change = expanded[32 * (word - 1)..].to_vec();
        if word % 4 == 0 {
            change.rotate_left(8);
            change = bytes(&change)
                .flat_map(|byte| sub_byte(b, byte, aim))
                .collect();
            flip(b, &mut change[..8], round_constant);
            round_constant = double(round_constant);
        }
        for (bit, change) in change.into_iter().enumerate() {
            let before = expanded[32 * (word - 4) + bit];
            expanded.push(b.xor(before, change));
        }
    }
    expanded
}

/// Encrypts a block of 128 wires under 11 · 128 wires of round keys. FIPS 197, 5.1.
///
/// # Panics
/// If the numbers of wires are others.
pub fn aes128_encrypt(b: &mut Builder, round_keys: &[Wire], block: &[Wire], aim: Aim) -> Vec<Wire> {
    assert_eq!(
        round_keys.len(),
        BLOCK * (ROUNDS + 1),
        "wires of the round keys"
    );
    assert_eq!(block.len(), BLOCK, "wires of the block");
    let mut keys = round_keys.chunks_exact(BLOCK);
    let mut state = block.to_vec();
    add_key(b, &mut state, keys.next().expect("eleven round keys"));
    for (round, key) in keys.enumerate() {
        let bytes: Vec<_> = bytes(&state).map(|byte| products(b, byte, aim)).collect();
        state.clear();
        for column in 0..4 {
            // ShiftRows: row r of a column comes from r columns on.
            let rows: Vec<_> = (0..4)
                .flat_map(|row| bytes[row + 4 * ((column + row) % 4)])
                .collect();
            if round + 1 < ROUNDS {
                state.extend(SBOX_OUTPUT_MIXED.apply(b, &rows));
            } else {
                state.extend(
                    rows.chunks_exact(18)
                        .flat_map(|byte| SBOX_OUTPUT.apply(b, byte)),
                );
            }
        }
        // The affine constant of the S-box goes with the key: once per job where the key is.
        let mut key = key.to_vec();
        key.chunks_exact_mut(8)
            .for_each(|byte| flip(b, byte, AFFINE));
        add_key(b, &mut state, &key);
    }
    state
}

fn add_key(b: &mut Builder, state: &mut [Wire], key: &[Wire]) {
    for (wire, &key) in state.iter_mut().zip(key) {
        *wire = b.xor(*wire, key);
    }
}

fn bytes(wires: &[Wire]) -> impl Iterator<Item = [Wire; 8]> {
    wires.as_chunks().0.iter().copied()
}

/// Multiplication by x in the field of AES.
fn double(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 == 0 { 0 } else { 0x1b }
}
