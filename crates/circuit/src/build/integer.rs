//! Integers of a stated size as elements of a ring: comparison, choice, bits, shifts and division; random values.

use veil_math::Ring;

use super::adder::{Aim, add, add_with_carry, carries, not};
use crate::{Builder, Wire};

/// Which integers a ring value is one of: -2^(bits - 1) to 2^(bits - 1) - 1 in two's complement if `signed`, else 0 to 2^bits - 1.
///
/// A value outside of them has a result that means nothing. Fewer bits cost less: every bit that is read takes products.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Integer {
    /// Bits, from one to the ring's.
    pub bits: u32,
    /// Whether the highest bit is a sign.
    pub signed: bool,
}

impl Integer {
    /// From 0 on.
    pub const fn unsigned(bits: u32) -> Self {
        Integer {
            bits,
            signed: false,
        }
    }

    /// Half of them negative.
    pub const fn signed(bits: u32) -> Self {
        Integer { bits, signed: true }
    }

    fn check(self, b: &Builder) {
        let fits = (1..=b.ring().bits()).contains(&self.bits);
        assert!(
            fits && b.ring() != Ring::Bits,
            "integers of {} bits are no elements of {}",
            self.bits,
            b.ring().name()
        );
    }
}

/// The lowest `len` bits of a public number.
pub fn constant_bits(b: &mut Builder, number: u128, len: u32) -> Vec<Wire> {
    let bit = |j: u32| number.checked_shr(j).unwrap_or(0) & 1 == 1;
    (0..len).map(|j| b.constant_bit(bit(j))).collect()
}

/// The bits of `x`, bit 0 first.
pub fn decompose(b: &mut Builder, x: Wire, of: Integer) -> Vec<Wire> {
    of.check(b);
    (0..of.bits).map(|j| b.bit(x, j)).collect()
}

/// The integer that has these bits, bit 0 first: Σ 2^j b_j, where the highest counts negative if `signed`.
pub fn recompose(b: &mut Builder, bits: &[Wire], signed: bool) -> Wire {
    let ring = b.ring();
    let mut sum = b.constant(0);
    for (j, &bit) in bits.iter().enumerate() {
        let weight = ring.reduce(1u128.checked_shl(j as u32).unwrap_or(0));
        let weight = if signed && j + 1 == bits.len() {
            ring.sub(0, weight)
        } else {
            weight
        };
        let lifted = b.lift(bit);
        let term = b.times(lifted, weight);
        sum = b.add(sum, term);
    }
    sum
}

/// Whether `x < y`: a bit.
///
/// The sign of `x - y`, one bit of one integer. Of integers as long as the ring, whose difference may not fit, it says so only if their own
/// highest bits are equal: three bits of three integers, and a choice.
pub fn is_less(b: &mut Builder, x: Wire, y: Wire, of: Integer) -> Wire {
    of.check(b);
    if of.bits < b.ring().bits() {
        let difference = b.sub(x, y);
        return b.bit(difference, of.bits);
    }
    let top = of.bits - 1;
    let difference = b.sub(x, y);
    let [x, y, difference] = [x, y, difference].map(|z| b.bit(z, top));
    let differ = b.xor(x, y);
    b.mux(differ, if of.signed { x } else { y }, difference)
}

/// Whether `x <= y`: a bit; costs as [`is_less`].
pub fn is_at_most(b: &mut Builder, x: Wire, y: Wire, of: Integer) -> Wire {
    let greater = is_less(b, y, x, of);
    b.not(greater)
}

/// Whether `x = 0`: a bit. It costs less than the bits of x.
pub fn is_zero(b: &mut Builder, x: Wire, of: Integer) -> Wire {
    of.check(b);
    b.is_zero(x, of.bits)
}

/// Whether `x = y`: a bit; costs as [`is_zero`], whose argument is the difference.
pub fn is_equal(b: &mut Builder, x: Wire, y: Wire, of: Integer) -> Wire {
    // Less than 2^bits apart: equal if they are equal modulo 2^bits.
    let difference = b.sub(x, y);
    is_zero(b, difference, of)
}

/// The smaller of two integers: [`is_less`], a lifted bit and a product.
pub fn min(b: &mut Builder, x: Wire, y: Wire, of: Integer) -> Wire {
    let less = is_less(b, x, y, of);
    b.mux(less, x, y)
}

/// The larger of two integers; costs as [`min`].
pub fn max(b: &mut Builder, x: Wire, y: Wire, of: Integer) -> Wire {
    let less = is_less(b, x, y, of);
    b.mux(less, y, x)
}

/// ⌊x / 2^by⌋, exactly. Of signed integers this rounds down as well.
///
/// A few bits that are left are taken one by one; otherwise they are never looked at ([`Builder::shift_right`]).
pub fn shift_right(b: &mut Builder, x: Wire, by: u32, of: Integer) -> Wire {
    of.check(b);
    let by = if of.signed { by.min(of.bits - 1) } else { by };
    if by + FEW_BITS >= of.bits {
        let bits: Vec<Wire> = (by..of.bits).map(|j| b.bit(x, j)).collect();
        return recompose(b, &bits, of.signed);
    }
    if !of.signed {
        return b.shift_right(x, by, of.bits);
    }
    // As an unsigned integer, by a multiple of 2^by.
    let half = 1u128 << (of.bits - 1);
    let positive = b.plus(x, half);
    let shifted = b.shift_right(positive, by, of.bits);
    let ring = b.ring();
    b.plus(shifted, ring.sub(0, half >> by))
}

/// ⌊x / 2^by⌋ or, with a probability that is the fraction that goes, one more: [`crate::Gate::TruncatePr`], of signed integers as well.
///
/// Among three parties it costs half of [`shift_right`] and takes three rounds. Among four it costs more, and takes one round where that takes a dozen: what it draws and computes
/// beforehand does not wait for x.
///
/// # Panics
/// If the integers are as long as the ring, or `by` is not less than their bits.
pub fn truncate_pr(b: &mut Builder, x: Wire, by: u32, of: Integer) -> Wire {
    of.check(b);
    if !of.signed {
        return b.truncate_pr(x, by, of.bits);
    }
    let half = 1u128 << (of.bits - 1);
    let positive = b.plus(x, half);
    let shifted = b.truncate_pr(positive, by, of.bits);
    let ring = b.ring();
    b.plus(shifted, ring.sub(0, half >> by))
}

/// The integer that has these bits, as [`recompose`] makes it, in another way: by the bits of one masked sum, which is opened, instead of
/// products of integers for every bit ([`crate::Gate::Append`]).
pub fn compose(b: &mut Builder, bits: &[Wire], signed: bool) -> Wire {
    let mut word = bits.to_vec();
    if let (true, Some(&top)) = (signed, bits.last()) {
        word.resize(word.len().max(b.ring().bits() as usize), top);
    }
    let zero = b.constant(0);
    word.iter()
        .rev()
        .fold(zero, |high, &bit| b.append(high, bit))
}

/// A random bit, which no party knows, and the same as an integer.
pub fn dabit(b: &mut Builder) -> (Wire, Wire) {
    let bit = b.random_bit();
    (bit, b.lift(bit))
}

/// A random integer, which no party knows, uniform in the ring, and all of its bits.
pub fn edabit(b: &mut Builder) -> (Wire, Vec<Wire>) {
    let x = b.random();
    let bits = (0..b.ring().bits()).map(|j| b.bit(x, j)).collect();
    (x, bits)
}

/// `bit · x`: the integer where the bit is 1, else 0. A lifted bit and a product.
pub fn inject(b: &mut Builder, bit: Wire, x: Wire) -> Wire {
    let lifted = b.lift(bit);
    b.mul(lifted, x)
}

/// As many bits as the carries of a shift.
const FEW_BITS: u32 = 4;

/// x / y, rounded towards zero, of any two integers; of y = 0 it is 2^bits - 1 with the sign of x.
///
/// Long division: for every bit of the result a subtraction and a choice, in `3 + ⌈log2 bits⌉` rounds at most.
pub fn divide(b: &mut Builder, x: Wire, y: Wire, of: Integer) -> Wire {
    let (mut x, mut y) = (decompose(b, x, of), decompose(b, y, of));
    if !of.signed {
        let quotient = divide_bits(b, &x, &y);
        return recompose(b, &quotient, false);
    }
    let sign = |word: &[Wire]| word[word.len() - 1];
    let negative = b.xor(sign(&x), sign(&y));
    for word in [&mut x, &mut y] {
        *word = absolute(b, word);
    }
    let quotient = divide_bits(b, &x, &y);
    let quotient = recompose(b, &quotient, false);
    let minus = b.times(quotient, u128::MAX);
    b.mux(negative, minus, quotient)
}

/// |x| of a word in two's complement, as an unsigned word of the same length.
fn absolute(b: &mut Builder, x: &[Wire]) -> Vec<Wire> {
    let sign = x[x.len() - 1];
    let flipped: Vec<Wire> = x.iter().map(|&bit| b.xor(bit, sign)).collect();
    let mut one = vec![b.constant_bit(false); x.len()];
    one[0] = sign;
    add(b, &flipped, &one, Aim::Depth)
}

/// ⌊x / y⌋ of unsigned words of one width; all ones if y is zero.
///
/// # Panics
/// If the words have different widths.
pub fn divide_bits(b: &mut Builder, x: &[Wire], y: &[Wire]) -> Vec<Wire> {
    assert_eq!(x.len(), y.len(), "words of one width");
    long_division(b, x, y, Aim::Depth).0
}

/// ⌊x / y⌋ of unsigned words, where it is known to have no more than `bits` bits; otherwise, and where y is 0, the result means nothing.
pub fn quotient_bits(b: &mut Builder, x: &[Wire], y: &[Wire], bits: usize) -> Vec<Wire> {
    quotient_and_rest(b, x, y, bits, Aim::Depth).0
}

/// [`quotient_bits`], and what is left of x, in as many bits as y has.
///
/// For each bit of the quotient no more than an addition of as many bits as y has without zeros at its ends that are public; what is left takes one more.
pub fn quotient_and_rest(
    b: &mut Builder,
    x: &[Wire],
    y: &[Wire],
    bits: usize,
    aim: Aim,
) -> (Vec<Wire>, Vec<Wire>) {
    let zero = b.constant_bit(false);
    let end = y
        .iter()
        .rposition(|bit| *bit != zero)
        .map_or(0, |last| last + 1);
    let start = y[..end].iter().take_while(|bit| **bit == zero).count();
    let start = start.min(x.len());
    let (low, high) = x.split_at(start);
    let (quotient, left) = divided(b, high, &y[start..end], bits, aim);
    let mut rest = [low, &left].concat();
    rest.resize(y.len(), zero);
    (quotient, rest)
}

/// [`quotient_and_rest`] of words of one width, in whole; of y = 0 the quotient is all ones, and x is left.
pub(crate) fn long_division(
    b: &mut Builder,
    x: &[Wire],
    y: &[Wire],
    aim: Aim,
) -> (Vec<Wire>, Vec<Wire>) {
    let one = b.constant_bit(true);
    if y.contains(&one) {
        return quotient_and_rest(b, x, y, x.len(), aim);
    }
    // 0 is subtracted in each step only if there is a bit above for what is left: so y keeps all of its bits.
    divided(b, x, y, x.len(), aim)
}

/// As long as what is left has few bits beside the divisor, it is replaced where the divisor fits: by a subtraction and a choice of as many bits. From then on
/// without restoring: in each step the divisor is subtracted from what is left, or added if that is negative, with no choice.
fn divided(
    b: &mut Builder,
    x: &[Wire],
    y: &[Wire],
    bits: usize,
    aim: Aim,
) -> (Vec<Wire>, Vec<Wire>) {
    let (zero, one) = (b.constant_bit(false), b.constant_bit(true));
    let sign = y.len();
    // A choice costs as many ANDs as a carry that runs along, and few beside a tree of carries.
    let few = match aim {
        Aim::Size => sign / 2,
        Aim::Depth => sign.saturating_sub(1),
    };
    let (mut place, mut quotient) = (bits.min(x.len()), vec![zero; bits]);
    // What is left: at first the bits above those of the quotient, which are less than y.
    let mut rest = x.get(bits..).unwrap_or_default().to_vec();
    rest.truncate(sign);
    let not_y = not(b, y);
    let zero_from = if rest.len() < few {
        ones_from(b, &not_y, aim)
    } else {
        vec![]
    };
    while place > 0 && rest.len() < few {
        place -= 1;
        rest.insert(0, x[place]);
        let carries = carries(b, &rest, &not_y[..rest.len()], one, aim);
        let fits = b.and(carries[rest.len()], zero_from[rest.len()]);
        for (k, bit) in rest.iter_mut().enumerate() {
            let less = b.xor(*bit, not_y[k]);
            let less = b.xor(less, carries[k]);
            *bit = b.mux(fits, less, *bit);
        }
        quotient[place] = fits;
    }
    // From here on in two's complement.
    rest.resize(sign + 1, zero);
    while place > 0 {
        place -= 1;
        let subtract = b.not(rest[sign]);
        // Twice what is left, and the next bit of x.
        rest.insert(0, x[place]);
        rest.pop();
        let by = y.iter().chain([&zero]).map(|&bit| b.xor(bit, subtract));
        let by: Vec<Wire> = by.collect();
        rest = add_with_carry(b, &rest, &by, subtract, aim);
        quotient[place] = b.not(rest[sign]);
    }
    // A rest that is negative lacks one divisor.
    let negative = rest[sign];
    let back: Vec<Wire> = y.iter().map(|&bit| b.and(bit, negative)).collect();
    let rest = add(b, &rest[..sign], &back, aim);
    (quotient, rest)
}

/// Of each place whether all bits from it on are 1, and of the place behind the last.
fn ones_from(b: &mut Builder, bits: &[Wire], aim: Aim) -> Vec<Wire> {
    let mut ones = bits.to_vec();
    ones.push(b.constant_bit(true));
    let (width, mut step) = (bits.len(), 1);
    while aim == Aim::Depth && step < width {
        for j in 0..width - step {
            ones[j] = b.and(ones[j], ones[j + step]);
        }
        step *= 2;
    }
    for j in (1..width).rev().filter(|_| aim == Aim::Size) {
        ones[j - 1] = b.and(ones[j - 1], ones[j]);
    }
    ones
}
