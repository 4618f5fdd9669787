//! The field of POLYVAL: GF(2)\[X\] modulo X^128 + X^127 + X^126 + X^121 + 1, bit i of a number the coefficient of X^i, with the product a · b · X^−128 of
//! the standard (Gueron, Langley, Lindell, RFC 8452, section 3). It is the common product where a number stands for itself times
//! X^−128.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;

/// X^128, the factor that changes nothing.
pub(crate) const ONE: u128 = 1 << 127 | 1 << 126 | 1 << 121 | 1;

/// X^256, the factor that makes the standard's product the common one.
const SQUARE: u128 = {
    let (mut power, mut i) = (ONE, 0);
    while i < 128 {
        power = by_x(power);
        i += 1;
    }
    power
};

/// X · a.
const fn by_x(a: u128) -> u128 {
    let carry = (a >> 127).wrapping_neg();
    a << 1 ^ carry & ONE
}

/// a · b · X^−128.
pub(crate) fn dot(a: u128, b: u128) -> u128 {
    let mut state = Polyval::new(&b.to_le_bytes().into());
    state.update(&[a.to_le_bytes().into()]);
    let product: [u8; 16] = state.finalize().into();
    u128::from_le_bytes(product)
}

/// a · b, without another factor.
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

    #[test]
    fn products_have_a_factor_that_changes_nothing() {
        let mut x = 0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978;
        for _ in 0..20 {
            assert_eq!(dot(x, ONE), x);
            assert_eq!(power(x, 0), ONE);
            assert_eq!(power(x, 5), dot(x, dot(dot(x, x), dot(x, x))));
            x = dot(x, 3) ^ 7;
        }
    }

    /// Bit by bit.
    #[test]
    fn common_products_are_those_of_polynomials() {
        let (mut a, mut b) = (0x0123_4567_89ab_cdef_0f1e_2d3c_4b5a_6978, 5);
        for _ in 0..20 {
            let (mut product, mut power) = (0, b);
            for i in 0..128 {
                product ^= (a >> i & 1u128).wrapping_neg() & power;
                power = by_x(power);
            }
            assert_eq!(times(a, b), product, "{a:x}, {b:x}");
            assert_eq!(times(a, 1), a);
            (a, b) = (dot(a, 3) ^ 7, dot(b, a));
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
