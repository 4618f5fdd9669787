//! What tests of cores have in common: an evaluator of half-gates, and the published numbers.

#![allow(dead_code, reason = "no test uses all of it")]

use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// The netlists of R. Oishi, J. Kadomoto, H. Irie, S. Sakai, "FPGA-based Garbling Accelerator with Parallel Pipeline Processing": name,
/// netlist cycles, and clock cycles with two rows (table 3, "Proposal").
pub(crate) const PUBLISHED: [(&str, u32, u64); 12] = [
    ("Mill_8_8", 8, 252),
    ("Add_8_1", 1, 133),
    ("Add_8_8", 8, 172),
    ("Hamm_32_1", 1, 262),
    ("Hamm_32_32", 32, 2884),
    ("Hamm_512_512", 512, 75_780),
    ("Mult_256_512", 512, 901_124),
    ("MAC_8_1", 1, 588),
    ("MAC_16_1", 1, 2241),
    ("MAC_32_1", 1, 8133),
    ("CORDIC_32_31", 31, 97_003),
    ("AES_128_11", 11, 55_664),
];

/// (hi ⊕ lo) ‖ hi.
pub(crate) fn sigma(label: u128) -> u128 {
    (label >> 64 ^ label & u128::from(u64::MAX)) << 64 | label >> 64
}

/// AES-128 under S + (i << 64) of sigma(X), plus sigma(X).
pub(crate) fn hash(start: u128, tweak: u64, label: u128) -> u128 {
    let key = start ^ u128::from(tweak) << 64;
    let cipher = Aes128::new(&Array::from(key.to_le_bytes()));
    let mut block = Array::from(sigma(label).to_le_bytes());
    cipher.encrypt_block(&mut block);
    u128::from_le_bytes(block.into()) ^ sigma(label)
}

/// The active label of an AND, gate number `gate`, from those of its operands and its table.
pub(crate) fn product(
    start: u128,
    gate: u64,
    [a, b]: [u128; 2],
    [garbler, evaluator]: [u128; 2],
) -> u128 {
    let choose = |of: u128, label: u128| if of & 1 == 1 { label } else { 0 };
    hash(start, 2 * gate, a)
        ^ choose(a, garbler)
        ^ hash(start, 2 * gate + 1, b)
        ^ choose(b, evaluator ^ a)
}
