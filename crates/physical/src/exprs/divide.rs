//! Roots of unsigned words, and rounding.

use veil_circuit::generate::{Aim, add, quotient_and_rest};
use veil_circuit::{Builder, Wire};
use veil_relation::Range;

use super::columns::Columns;
use super::compare::padded;
use super::word::{Sign, Word, width};

/// x + y + carry of words of one length, modulo 2^length.
fn add_carry(b: &mut Builder, x: &[Wire], y: &[Wire], carry: Wire, aim: Aim) -> Vec<Wire> {
    // Twice the carry in a place below is the carry, without an AND.
    let with = |word: &[Wire]| [&[carry], word].concat();
    let mut sum = add(b, &with(x), &with(y), aim);
    sum.remove(0);
    sum
}

/// ⌊√x⌋, bit by bit, without restoring what is left: for k bits some k²/2 ANDs.
pub(crate) fn root(b: &mut Builder, x: &[Wire], aim: Aim) -> Vec<Wire> {
    let bits = x.len().div_ceil(2);
    let (zero, one) = (b.constant_bit(false), b.constant_bit(true));
    let x = padded(b, x, 2 * bits as u32);
    // The highest bits of the root so far, lowest first; what is left in two's complement is at least −2·root − 1 and at most 2·root.
    let (mut root, mut rest): (Vec<Wire>, Vec<Wire>) = (Vec::new(), vec![zero]);
    for place in (0..bits).rev() {
        let len = root.len() + 3;
        let negative = rest[rest.len() - 1];
        let subtract = b.not(negative);
        // 4·rest + the next two bits of x, less 4·root + 1, or and 4·root + 3.
        let mut next = vec![x[2 * place], x[2 * place + 1]];
        next.extend(&rest);
        next.resize(len, negative);
        let by: Vec<Wire> = [one, negative]
            .into_iter()
            .chain(root.iter().copied())
            .chain([zero])
            .map(|bit| b.xor(bit, subtract))
            .collect();
        rest = add_carry(b, &next, &by, subtract, aim);
        let bit = b.not(rest[len - 1]);
        root.insert(0, bit);
    }
    root
}

/// x times ten to a public power.
pub(crate) fn times_ten(b: &mut Builder, x: &[Wire], power: u32, aim: Aim) -> Vec<Wire> {
    let zero = b.constant_bit(false);
    let mut product = x.to_vec();
    for _ in 0..power {
        // 5x = x + 4x has three bits more at most.
        let len = product.len() as u32 + 3;
        let one = padded(b, &product, len);
        product.splice(0..0, [zero, zero]);
        let four = padded(b, &product, len);
        product = add(b, &one, &four, aim);
    }
    product.splice(0..0, std::iter::repeat_n(zero, power as usize));
    product
}

/// ± a number as a word, with a bit more to be added to its absolute value.
pub(crate) fn signed(
    b: &mut Builder,
    magnitude: &[Wire],
    up: Wire,
    sign: Sign,
    range: Range,
    aim: Aim,
) -> Word {
    let mut sum = Columns::new(range.bits());
    match sign {
        Sign::Plus | Sign::Minus => {
            sum.bits(b, magnitude, 0, sign == Sign::Minus);
            sum.bit(b, 0, up, sign == Sign::Minus);
        }
        Sign::Secret(sign) => {
            // −m = ¬m + 1 − 2^n, and −up = up − 2·up.
            for (j, &bit) in magnitude.iter().enumerate() {
                let flipped = b.xor(bit, sign);
                sum.bit(b, j, flipped, false);
            }
            sum.bit(b, 0, sign, false);
            sum.bit(b, magnitude.len(), sign, true);
            let back = b.and(up, sign);
            sum.bit(b, 0, up, false);
            sum.bit(b, 1, back, true);
        }
    }
    sum.word(b, range, aim)
}

/// `above / below · 10^−from` in units of `10^−to`, halves away from zero, as [`veil_relation::round_ratio`] defines it: in a range that holds
/// it.
pub(crate) fn rounded(
    b: &mut Builder,
    (above, below): (&Word, &Word),
    (from, to): (u32, u32),
    range: Range,
    aim: Aim,
) -> Word {
    let (numerator, sign) = above.magnitude(b, aim);
    let mut numerator = times_ten(b, &numerator, to.saturating_sub(from), aim);
    let divisor = below.unsigned(b, aim);
    let divisor = times_ten(b, &divisor, from.saturating_sub(to), aim);
    // ⌊2x / y⌋: its lowest bit says whether the rest is half of the divisor at least.
    numerator.insert(0, b.constant_bit(false));
    let most = range.min().unsigned_abs().max(range.max().unsigned_abs());
    let bits = width(most) as usize + 1;
    let (quotient, _) = quotient_and_rest(b, &numerator, &divisor, bits, aim);
    signed(b, &quotient[1..], quotient[0], sign, range, aim)
}
