//! Words of bits in circuits: numbers, their products, and sums over rows.

use veil_circuit::{
    Builder, Wire,
    generate::{Aim, add, constant_bits, less_than, sub, sum},
};

/// A number in bits, the lowest first: two's complement if it is signed.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) bits: Vec<Wire>,
    pub(crate) signed: bool,
}

impl Word {
    /// The number of bits.
    fn width(&self) -> u32 {
        self.bits.len() as u32
    }

    /// The word with the number that it is larger by than `2^(bits - 1)` below 0 if it is signed; the word itself if it is not.
    fn raised(&self, b: &mut Builder) -> Vec<Wire> {
        let mut bits = self.bits.clone();
        if let Some(sign) = bits.last_mut().filter(|_| self.signed) {
            *sign = b.not(*sign);
        }
        bits
    }

    /// By how much [`Word::raised`] is larger, as a power of two; nothing if it is the word itself.
    fn raise(&self) -> Option<u32> {
        self.signed.then(|| self.width() - 1)
    }

    /// Each bit where a condition holds, else 0.
    pub(crate) fn masked(&self, b: &mut Builder, mask: Option<Wire>) -> Self {
        let Some(mask) = mask else {
            return self.clone();
        };
        Self {
            bits: self.bits.iter().map(|&bit| b.and(bit, mask)).collect(),
            signed: self.signed,
        }
    }
}

/// A word in `width` bits: zeros or signs are added, or high bits left out.
pub(crate) fn extended(b: &mut Builder, word: &[Wire], width: u32, signed: bool) -> Vec<Wire> {
    let zero = b.constant_bit(false);
    let high = word.last().copied().filter(|_| signed).unwrap_or(zero);
    let bit = |at: u32| word.get(at as usize).copied().unwrap_or(high);
    (0..width).map(bit).collect()
}

/// A word shifted up, in `width` bits.
fn shifted(b: &mut Builder, word: &[Wire], by: u32, width: u32) -> Vec<Wire> {
    let zero = b.constant_bit(false);
    let bits = std::iter::repeat_n(zero, by as usize).chain(word.iter().copied());
    let bits = bits.chain(std::iter::repeat(zero));
    bits.take(width as usize).collect()
}

/// The product of two numbers, in as many bits as both have: `(u - 2^p)(v - 2^q)` with `u` and `v` not negative is
/// `uv - 2^p v - 2^q u + 2^(p+q)`, where a number that is not signed has no such power.
pub(crate) fn product(b: &mut Builder, x: &Word, y: &Word) -> Word {
    let width = x.width() + y.width();
    let (u, v) = (x.raised(b), y.raised(b));
    let mut rows = if u == v {
        square_rows(b, &u, width)
    } else {
        product_rows(b, &u, &v, width)
    };
    let mut constant = 0u128;
    for (power, other) in [(x.raise(), &v), (y.raise(), &u)] {
        let Some(power) = power else { continue };
        // Less a word: its complement, and 1.
        let word = shifted(b, other, power, width);
        rows.push(word.iter().map(|&bit| b.not(bit)).collect());
        constant = constant.wrapping_add(1);
    }
    if let (Some(p), Some(q)) = (x.raise(), y.raise()) {
        constant = constant.wrapping_add(power(p + q));
    }
    rows.push(constant_bits(b, constant, width));
    Word {
        bits: sum(b, &rows, Aim::Size),
        signed: x.signed || y.signed,
    }
}

/// `2^by` as a number of 128 bits, modulo `2^128`.
fn power(by: u32) -> u128 {
    1u128.checked_shl(by).unwrap_or(0)
}

fn product_rows(b: &mut Builder, u: &[Wire], v: &[Wire], width: u32) -> Vec<Vec<Wire>> {
    let mut rows = Vec::with_capacity(v.len());
    for (at, &bit) in v.iter().enumerate() {
        let row: Vec<Wire> = u.iter().map(|&other| b.and(other, bit)).collect();
        rows.push(shifted(b, &row, at as u32, width));
    }
    rows
}

/// Of a square every product of two different bits counts twice.
fn square_rows(b: &mut Builder, u: &[Wire], width: u32) -> Vec<Vec<Wire>> {
    let zero = b.constant_bit(false);
    let mut diagonal = vec![zero; width as usize];
    let mut rows = Vec::with_capacity(u.len());
    for (at, &bit) in u.iter().enumerate() {
        diagonal[2 * at] = bit;
        let above = &u[at + 1..];
        let row: Vec<Wire> = above.iter().map(|&other| b.and(other, bit)).collect();
        rows.push(shifted(b, &row, 2 * at as u32 + 2, width));
    }
    rows.push(diagonal);
    rows
}

/// The sum of words and of `first`, modulo `2^width`, where `width` is that of `first`.
///
/// A signed word costs no more than another: its raised form is added, and the powers are taken off all at once.
pub(crate) fn total(b: &mut Builder, first: Vec<Wire>, words: &[Word]) -> Vec<Wire> {
    let width = first.len() as u32;
    let mut rows = vec![first];
    let mut raised = 0u128;
    for word in words {
        let narrow = word.width() < width;
        let bits = if narrow {
            raised = raised.wrapping_add(word.raise().map_or(0, power));
            word.raised(b)
        } else {
            word.bits.clone()
        };
        rows.push(extended(b, &bits, width, false));
    }
    if raised != 0 {
        rows.push(constant_bits(b, raised.wrapping_neg(), width));
    }
    sum(b, &rows, Aim::Size)
}

/// A word times a constant, modulo `2^width`.
pub(crate) fn times(b: &mut Builder, word: &[Wire], by: i128, width: u32) -> Vec<Wire> {
    let size = by.unsigned_abs();
    let places = (0..width.min(u128::BITS)).filter(|at| size >> at & 1 == 1);
    let rows: Vec<Vec<Wire>> = places.map(|at| shifted(b, word, at, width)).collect();
    let zero = constant_bits(b, 0, width);
    let product = match rows.as_slice() {
        [] => return zero,
        [one] => one.clone(),
        _ => sum(b, &rows, Aim::Size),
    };
    if by < 0 {
        sub(b, &zero, &product, Aim::Size)
    } else {
        product
    }
}

/// The sum of two words, modulo `2^width`.
pub(crate) fn plus(b: &mut Builder, x: &[Wire], y: &[Wire]) -> Vec<Wire> {
    add(b, x, y, Aim::Size)
}

/// Whether a number is from `least` to `most`; nothing if every word of its bits is.
pub(crate) fn within(b: &mut Builder, word: &Word, least: i128, most: i128) -> Option<Wire> {
    let width = word.width();
    let (lowest, highest) = if word.signed {
        let less = i128::BITS - width;
        (i128::MIN >> less, i128::MAX >> less)
    } else {
        (0, (i128::MAX as u128 >> (u128::BITS - 1 - width)) as i128)
    };
    let raise = word.raise().map_or(0, power);
    let raised = word.raised(b);
    let mut checks = Vec::new();
    if least > lowest {
        let bound = constant_bits(b, (least as u128).wrapping_add(raise), width);
        let below = less_than(b, &raised, &bound, Aim::Size);
        checks.push(b.not(below));
    }
    if most < highest {
        let bound = constant_bits(b, (most as u128).wrapping_add(raise), width);
        let above = less_than(b, &bound, &raised, Aim::Size);
        checks.push(b.not(above));
    }
    checks.into_iter().reduce(|one, other| b.and(one, other))
}

/// Writes a number in two's complement, a byte for each bit, as ports with one row have them.
pub(crate) fn write(number: i128, into: &mut [u8]) {
    for (at, bit) in into.iter_mut().enumerate() {
        *bit = (number >> at.min(127) & 1) as u8;
    }
}
