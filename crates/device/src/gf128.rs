//! GF(2^128) with the polynomial of POLYVAL: GF(2)\[X\] modulo X^128 + X^127 + X^126 + X^121 + 1, bit i of a number the coefficient of X^i (Gueron, Langley,
//! Lindell, RFC 8452, section 3).
//!
//! The product of protocols is [`dot`], a · b · X^−128, that of the RFC: POLYVAL under a of one block b is `dot(a, b)`, and the element that changes nothing is
//! [`ONE`], X^128. Powers, inverses and packed blocks are those of this product. [`times`] is a · b itself, for sums that are scaled once: it has the
//! number 1 as its own.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;

/// X^128, which [`dot`] changes nothing by.
pub(crate) const ONE: u128 = 1 << 127 | 1 << 126 | 1 << 121 | 1;

/// X^256, by which [`dot`] multiplies with X^128.
const SQUARE: u128 = {
    let (mut power, mut i) = (ONE, 0);
    while i < 128 {
        power = times_x(power);
        i += 1;
    }
    power
};

/// a · X.
const fn times_x(a: u128) -> u128 {
    a << 1 ^ (a >> 127).wrapping_neg() & ONE
}

/// a · b · X^−128.
pub(crate) fn dot(a: u128, b: u128) -> u128 {
    let mut state = Polyval::new(&b.to_le_bytes().into());
    state.update(&[a.to_le_bytes().into()]);
    let product: [u8; 16] = state.finalize().into();
    u128::from_le_bytes(product)
}

/// a · b.
pub(crate) fn times(a: u128, b: u128) -> u128 {
    dot(dot(a, b), SQUARE)
}

/// The product of `exponent` times the factor. The exponent is public.
pub(crate) fn power(factor: u128, mut exponent: u64) -> u128 {
    let (mut product, mut square) = (ONE, factor);
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = dot(product, square);
        }
        square = dot(square, square);
        exponent >>= 1;
    }
    product
}

/// The element whose product with this one is [`ONE`]; 0 of 0.
pub(crate) fn inverse(a: u128) -> u128 {
    // The power 2^128 − 2, all of whose bits but the lowest are set.
    let (mut product, mut square) = (ONE, a);
    for _ in 1..128 {
        square = dot(square, square);
        product = dot(product, square);
    }
    product
}

/// X^−1 · a, without another factor.
pub(crate) const fn over_x(a: u128) -> u128 {
    // The polynomial's constant is 1: with it a sum whose constant is 1 can be divided.
    let odd = (a & 1).wrapping_neg();
    a >> 1 ^ odd & (1 << 127 | ONE >> 1)
}

/// Σ `X^i` · block i, as products of the field, of 128 blocks.
pub(crate) fn pack(blocks: impl Iterator<Item = u128>) -> u128 {
    // Block i is divided by X as often as there are blocks from it on: 128 − i times.
    blocks.fold(0, |sum, block| over_x(sum ^ block))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> impl Iterator<Item = u128> {
        (0..64u32).map(|k| {
            let low = u128::from(k).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            low.rotate_left(k) ^ low >> 7
        })
    }

    #[test]
    fn products_have_a_factor_that_changes_nothing() {
        for x in numbers() {
            assert_eq!(dot(x, ONE), x);
            assert_eq!(times(x, 1), x);
            assert_eq!(power(x, 0), ONE);
            assert_eq!(dot(x, inverse(x)), if x == 0 { 0 } else { ONE });
            assert_eq!(power(x, 5), dot(x, dot(dot(x, x), dot(x, x))));
        }
    }

    /// Bit by bit, as the polynomials say.
    #[test]
    fn products_are_those_of_polynomials() {
        let mut numbers = numbers();
        while let (Some(a), Some(b)) = (numbers.next(), numbers.next()) {
            let (mut product, mut power) = (0, b);
            for i in 0..128 {
                product ^= (a >> i & 1).wrapping_neg() & power;
                power = times_x(power);
            }
            assert_eq!(times(a, b), product, "{a:x}, {b:x}");
            assert_eq!(times(dot(a, b), ONE), product, "{a:x}, {b:x}");
        }
    }

    #[test]
    fn packed_blocks_are_products_with_single_bits() {
        let blocks: Vec<u128> = (0..128)
            .map(|i| power(0xc0ff_ee11_dead_beef_1234_5678_9abc_def0, i + 1))
            .collect();
        let sum = blocks
            .iter()
            .enumerate()
            .fold(0, |sum, (i, block)| sum ^ dot(*block, 1 << i));
        assert_eq!(pack(blocks.into_iter()), sum);
    }
}
