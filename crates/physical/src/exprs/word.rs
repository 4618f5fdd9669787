//! Numbers on wires.

use veil_circuit::generate::{Aim, constant_bits};
use veil_circuit::{Builder, Wire};
use veil_relation::Range;

use super::columns::Columns;

/// A number of a public range: `offset + Σ 2^j bits_j`.
///
/// There are as many bits as the range needs, none for one value. The offset is not above the least value, and may be below it where the bits
/// allow it: so many sums need no constant added. As wrapping integers both may leave 128 bits; their difference, which is all that counts, is
/// right modulo 2^128.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Word {
    /// What is added to the bits.
    pub(crate) offset: i128,
    /// The bits, lowest first.
    pub(crate) bits: Vec<Wire>,
    /// The values that it may have.
    pub(crate) range: Range,
}

/// The lowest `bits` bits, at most 128.
pub(crate) const fn ones(bits: u32) -> u128 {
    match bits {
        0 => 0,
        _ => u128::MAX >> (128 - bits),
    }
}

/// Bits of an unsigned number.
pub(crate) const fn width(number: u128) -> u32 {
    128 - number.leading_zeros()
}

impl Word {
    /// A public number.
    pub(crate) fn constant(b: &mut Builder, value: i128, range: Range) -> Self {
        let bits = (value as u128).wrapping_sub(range.min() as u128);
        Self {
            offset: range.min(),
            bits: constant_bits(b, bits, range.bits()),
            range,
        }
    }

    /// Bits that are a number less the least of its range.
    pub(crate) fn of_bits(bits: Vec<Wire>, range: Range) -> Self {
        Self {
            offset: range.min(),
            bits,
            range,
        }
    }

    /// The offset of words of a range that ends in the most zero bits: 0 or a power of two, where one of them does, so that sums and factors take the bits as they are.
    pub(crate) fn offset_of(range: Range) -> i128 {
        let (high, slack) = (
            range.min(),
            ones(range.bits()).wrapping_sub(range.max().wrapping_sub(range.min()) as u128),
        );
        let down = |zeros: u32| (high >> zeros) << zeros;
        let fits = |offset: &i128| high.wrapping_sub(*offset) as u128 <= slack;
        (0..127).map(down).take_while(fits).last().unwrap_or(high)
    }

    /// The number, if it is public.
    pub(crate) fn known(&self, b: &mut Builder) -> Option<i128> {
        let (zero, one) = (b.constant_bit(false), b.constant_bit(true));
        let mut value = 0_u128;
        for (j, &bit) in self.bits.iter().enumerate() {
            match bit {
                bit if bit == one => value |= 1 << j,
                bit if bit == zero => {}
                _ => return None,
            }
        }
        Some(self.offset.wrapping_add(value as i128))
    }

    /// The bits of `value − offset` in `len` bits, which must hold it.
    pub(crate) fn at(&self, b: &mut Builder, offset: i128, len: u32, aim: Aim) -> Vec<Wire> {
        let up = self.offset.wrapping_sub(offset) as u128;
        if let Some(value) = self.known(b) {
            let value = value.wrapping_sub(offset) as u128;
            return constant_bits(b, value, len);
        }
        let mut sum = Columns::new(len);
        sum.bits(b, &self.bits, 0, false);
        sum.constant(up);
        sum.total(b, aim)
    }

    /// The same with the least value of its range as offset.
    pub(crate) fn normal(&self, b: &mut Builder, aim: Aim) -> Vec<Wire> {
        self.at(b, self.range.min(), self.range.bits(), aim)
    }

    /// The bits of a number that is not negative.
    pub(crate) fn unsigned(&self, b: &mut Builder, aim: Aim) -> Vec<Wire> {
        self.at(b, 0, width(self.range.max() as u128), aim)
    }

    /// Bits whose weighted sum the number is; of one that may be negative the highest weighs negatively.
    pub(crate) fn weighted(&self, b: &mut Builder, aim: Aim) -> Vec<(Wire, bool)> {
        if self.range.min() >= 0 {
            let bits = self.unsigned(b, aim);
            return bits.into_iter().map(|bit| (bit, false)).collect();
        }
        let bits = self.signed(b, aim);
        let last = bits.len() - 1;
        let mark = |(j, bit)| (bit, j == last);
        bits.into_iter().enumerate().map(mark).collect()
    }

    /// The bits in two's complement, of a number that may be negative: as few as hold its range.
    pub(crate) fn signed(&self, b: &mut Builder, aim: Aim) -> Vec<Wire> {
        // The highest bit says which half of the numbers from −2^(len−1) on it is in.
        let of = |end: i128| width(if end < 0 { !end } else { end } as u128);
        let len = of(self.range.min()).max(of(self.range.max())) + 1;
        self.at(b, 0, len, aim)
    }

    /// The absolute value, and whether the number is negative if that is not public.
    pub(crate) fn magnitude(&self, b: &mut Builder, aim: Aim) -> (Vec<Wire>, Sign) {
        let (least, most) = (self.range.min(), self.range.max());
        if least >= 0 {
            return (self.unsigned(b, aim), Sign::Plus);
        }
        let len = width(least.unsigned_abs().max(most.unsigned_abs()));
        let mut sum = Columns::new(len);
        if most <= 0 {
            sum.constant(self.offset.wrapping_neg() as u128);
            sum.bits(b, &self.bits, 0, true);
            return (sum.total(b, aim), Sign::Minus);
        }
        let mut bits = self.signed(b, aim);
        let sign = bits[bits.len() - 1];
        for bit in &mut bits {
            *bit = b.xor(*bit, sign);
        }
        sum.bits(b, &bits, 0, false);
        sum.bit(b, 0, sign, false);
        (sum.total(b, aim), Sign::Secret(sign))
    }

    /// The number times a public one, in a range that holds it.
    pub(crate) fn times(&self, b: &mut Builder, factor: i128, range: Range, aim: Aim) -> Self {
        if factor == 1 && range == self.range {
            return self.clone();
        }
        let mut sum = Columns::new(range.bits());
        sum.scaled(b, self, factor);
        sum.word(b, range, aim)
    }

    /// The product of two, in a range that holds it.
    pub(crate) fn product(b: &mut Builder, x: &Self, y: &Self, range: Range, aim: Aim) -> Self {
        let mut sum = Columns::new(range.bits());
        sum.product(b, x, y, false, aim);
        sum.word(b, range, aim)
    }
}

/// Whether a number is negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    /// Never.
    Plus,
    /// Always, but where it is 0.
    Minus,
    /// Where the bit is 1.
    Secret(Wire),
}

/// Words of one offset and length, which hold all values of a range that has theirs.
///
/// The offset is one of theirs, or the least value, whichever takes the fewest ANDs.
pub(crate) fn aligned(
    b: &mut Builder,
    words: &[&Word],
    hull: Range,
    aim: Aim,
) -> (i128, Vec<Vec<Wire>>) {
    let len = hull.bits();
    let widest = (hull.max() as u128).wrapping_sub(hull.min() as u128);
    let slack = ones(len) - widest;
    let moving: Vec<&&Word> = words
        .iter()
        .filter(|word| word.known(b).is_none())
        .collect();
    let cost = |offset: i128| {
        let of = |word: &&&Word| {
            let up = word.offset.wrapping_sub(offset) as u128;
            len.saturating_sub(up.trailing_zeros())
        };
        moving.iter().map(of).sum::<u32>()
    };
    let fits = |offset: &i128| hull.min().wrapping_sub(*offset) as u128 <= slack;
    let theirs = moving.iter().map(|word| word.offset).filter(fits);
    let offset = theirs
        .chain([hull.min()])
        .min_by_key(|&offset| cost(offset))
        .unwrap_or(hull.min());
    let bits = words.iter().map(|word| word.at(b, offset, len, aim));
    (offset, bits.collect())
}
