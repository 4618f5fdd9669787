//! The field of POLYVAL: GF(2)\[X\] modulo X^128 + X^127 + X^126 + X^121 + 1, bit i of a number the coefficient of X^i, with the product a · b · X^−128 (Gueron,
//! Langley, Lindell, RFC 8452, section 3).

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;

/// X^128, the factor that changes nothing.
pub(super) const ONE: u128 = 1 << 127 | 1 << 126 | 1 << 121 | 1;

/// a · b · X^−128.
pub(crate) fn dot(a: u128, b: u128) -> u128 {
    let mut state = Polyval::new(&b.to_le_bytes().into());
    state.update(&[a.to_le_bytes().into()]);
    let product: [u8; 16] = state.finalize().into();
    u128::from_le_bytes(product)
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

/// Σ `X^i` · block i, as products of the field.
pub(super) fn pack(blocks: impl DoubleEndedIterator<Item = u128>) -> u128 {
    let sum = blocks.rev().fold(0, |sum: u128, block| {
        let carry = (sum >> 127).wrapping_neg();
        sum << 1 ^ carry & ONE ^ block
    });
    dot(sum, 1)
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
