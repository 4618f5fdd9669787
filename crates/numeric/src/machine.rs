//! What arithmetic is done on: integers in the clear, or wires of a circuit.

use crate::range::Range;

/// Integers and bits of one way to compute, and the operations on them. All that this crate computes is written once, over this trait: in the clear by [`Clear`], on shares by machines
/// whose integers are wires.
///
/// Each operation is told the range of its result, or the bits of its operand, that have been proved: a machine may rest on them, and one in the clear looks.
pub trait Machine {
    /// An integer.
    type Int: Clone;
    /// A bit.
    type Bit: Clone;

    /// Integers from −2^(bits−1) to 2^(bits−1) − 1 fit, with so many bits.
    fn most_bits(&self) -> u32;

    /// A public integer.
    fn constant(&mut self, value: i128) -> Self::Int;
    /// A sum.
    fn add(&mut self, a: &Self::Int, b: &Self::Int, range: Range) -> Self::Int;
    /// The product with a public factor.
    fn times(&mut self, a: &Self::Int, by: i128, range: Range) -> Self::Int;
    /// A product.
    fn multiply(&mut self, a: &Self::Int, b: &Self::Int, range: Range) -> Self::Int;
    /// `yes` where the bit is 1, else `no`; their difference fits as well.
    fn choose(
        &mut self,
        bit: &Self::Bit,
        yes: &Self::Int,
        no: &Self::Int,
        ranges: Choice,
    ) -> Self::Int {
        let minus = self.times(no, -1, ranges.minus);
        let difference = self.add(yes, &minus, ranges.difference);
        let bit = self.lift(bit);
        let part = self.multiply(&bit, &difference, ranges.part);
        self.add(no, &part, ranges.hull)
    }
    /// −a where the bit is 1, else `a`, if the machine has a cheaper way than a choice.
    fn negate_if(&mut self, bit: &Self::Bit, a: &Self::Int, range: Range) -> Option<Self::Int> {
        let _ = (bit, a, range);
        None
    }
    /// The value whose bit is 1, of which at most one is, else 0.
    fn pick(&mut self, bits: &[Self::Bit], values: &[i128], range: Range) -> Self::Int {
        self.pick_lifted(bits, values, range)
    }
    /// [`Machine::pick`] by a sum of lifted bits, each times its value.
    fn pick_lifted(&mut self, bits: &[Self::Bit], values: &[i128], range: Range) -> Self::Int {
        let mut sum = self.constant(0);
        for (bit, &value) in bits.iter().zip(values).filter(|(_, value)| **value != 0) {
            let bit = self.lift(bit);
            let part = self.times(&bit, value, range);
            sum = self.add(&sum, &part, range);
        }
        sum
    }
    /// The bits of what [`Machine::pick`] picks, less the least of the range, lowest first: each an exclusive or.
    fn pick_bits(&mut self, which: &[Self::Bit], values: &[i128], range: Range) -> Vec<Self::Bit> {
        let less = |value: i128| value.wrapping_sub(range.min()) as u128;
        let none = less(0);
        let places = 0..range.bits();
        let mut bits: Vec<Self::Bit> = places.map(|j| self.truth(none >> j & 1 == 1)).collect();
        for (one, &value) in which.iter().zip(values) {
            let change = less(value) ^ none;
            for (j, bit) in bits.iter_mut().enumerate() {
                if change >> j & 1 == 1 {
                    *bit = self.xor(bit, one);
                }
            }
        }
        bits
    }
    /// The integer from 0 on of these bits, lowest first, times 2^by of the bit of `which` that is 1, of which at most one is; else 0.
    fn raise(
        &mut self,
        a: &Self::Int,
        bits: &[Self::Bit],
        which: &[Self::Bit],
        by: &[u32],
        range: Range,
    ) -> Self::Int {
        let _ = bits;
        let powers: Vec<i128> = by.iter().map(|by| 1 << by).collect();
        let most = powers.iter().copied().max().unwrap_or(0);
        let factor = self.pick(which, &powers, Range::new(0, most).unwrap_or(range));
        self.multiply(a, &factor, range)
    }
    /// ⌊(a + R) / 2^by⌋ of an integer from 0 to 2^bits − 2^by. R is 2^(by−1), so that the quotient is rounded to nearest; or, where [`Machine::draws`], uniform from 0 to
    /// 2^by − 1 in each row.
    fn round(&mut self, a: &Self::Int, by: u32, bits: u32, range: Range) -> Self::Int;
    /// ⌊(a · by + R) / 2^down⌋ + plus with R = 2^(down−1) and `down` from 1 on, if the machine has a cheaper way than a product, a rounding and a sum, which give the same.
    fn scaled_sum(
        &mut self,
        of: Scaled<'_, Self::Int>,
        down: u32,
        range: Range,
    ) -> Option<Self::Int> {
        let _ = (of, down, range);
        None
    }
    /// Whether rounding is probabilistic.
    fn draws(&self) -> bool {
        false
    }
    /// The bits from place `from` on, lowest first, of an integer from 0 to 2^bits − 1.
    fn bits(&mut self, a: &Self::Int, from: u32, bits: u32) -> Vec<Self::Bit>;
    /// Whether an integer of the range is negative.
    fn is_negative(&mut self, a: &Self::Int, range: Range) -> Self::Bit;

    /// A bit as the integer 0 or 1.
    fn lift(&mut self, bit: &Self::Bit) -> Self::Int;
    /// A public bit.
    fn truth(&mut self, value: bool) -> Self::Bit;
    /// Exclusive or.
    fn xor(&mut self, a: &Self::Bit, b: &Self::Bit) -> Self::Bit;
    /// And.
    fn and(&mut self, a: &Self::Bit, b: &Self::Bit) -> Self::Bit;
    /// Σ_i a_i ∧ b_i modulo 2.
    fn inner(&mut self, pairs: &[(Self::Bit, Self::Bit)]) -> Self::Bit {
        let mut sum = self.truth(false);
        for (a, b) in pairs {
            let both = self.and(a, b);
            sum = self.xor(&sum, &both);
        }
        sum
    }
}

/// A product that loses places, and what is added to it.
#[derive(Clone, Copy, Debug)]
pub struct Scaled<'a, I> {
    /// A factor.
    pub a: &'a I,
    /// The other one.
    pub by: Factor<'a, I>,
    /// What is added behind the rounding.
    pub plus: Option<&'a I>,
}

/// What an integer is multiplied by.
#[derive(Clone, Copy, Debug)]
pub enum Factor<'a, I> {
    /// An integer of the machine.
    Secret(&'a I),
    /// A public integer.
    Public(i128),
}

/// The ranges of a choice.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Of the result.
    pub hull: Range,
    /// Of the second with the other sign.
    pub minus: Range,
    /// Of the first less the second.
    pub difference: Range,
    /// Of the difference, or 0.
    pub part: Range,
}

/// No integers at all, of so many bits: what is computed on it are ranges.
#[derive(Clone, Copy, Debug)]
pub struct Ranges(pub u32);

impl Machine for Ranges {
    type Int = ();
    type Bit = ();

    fn most_bits(&self) -> u32 {
        self.0
    }

    fn constant(&mut self, _: i128) {}
    fn add(&mut self, (): &(), (): &(), _: Range) {}
    fn times(&mut self, (): &(), _: i128, _: Range) {}
    fn multiply(&mut self, (): &(), (): &(), _: Range) {}
    fn round(&mut self, (): &(), _: u32, _: u32, _: Range) {}
    fn bits(&mut self, (): &(), from: u32, bits: u32) -> Vec<()> {
        (from..bits).map(|_| ()).collect()
    }
    fn is_negative(&mut self, (): &(), _: Range) {}
    fn lift(&mut self, (): &()) {}
    fn truth(&mut self, _: bool) {}
    fn xor(&mut self, (): &(), (): &()) {}
    fn and(&mut self, (): &(), (): &()) {}
}

/// Integers in the clear, rounded to nearest: what other machines compute, in other forms.
///
/// # Panics
/// Its operations panic where an integer is not in the range that it was proved to be in: a defect of the proof.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clear;

impl Clear {
    fn within(value: Option<i128>, range: Range) -> i128 {
        let value = value.filter(|value| range.contains(*value));
        value.expect("an integer is in the range that it was proved to be in")
    }

    /// The place of the bit that is 1, if one is.
    fn only(bits: &[bool]) -> Option<usize> {
        let only = bits.iter().position(|bit| *bit)?;
        assert!(
            !bits[only + 1..].contains(&true),
            "of these bits one is 1 at most"
        );
        Some(only)
    }
}

impl Machine for Clear {
    type Int = i128;
    type Bit = bool;

    fn most_bits(&self) -> u32 {
        128
    }

    fn constant(&mut self, value: i128) -> i128 {
        value
    }

    fn add(&mut self, a: &i128, b: &i128, range: Range) -> i128 {
        Self::within(a.checked_add(*b), range)
    }

    fn times(&mut self, a: &i128, by: i128, range: Range) -> i128 {
        Self::within(a.checked_mul(by), range)
    }

    fn multiply(&mut self, a: &i128, b: &i128, range: Range) -> i128 {
        Self::within(a.checked_mul(*b), range)
    }

    fn pick(&mut self, bits: &[bool], values: &[i128], range: Range) -> i128 {
        let only = Self::only(bits).and_then(|only| values.get(only));
        Self::within(Some(only.copied().unwrap_or(0)), range)
    }

    fn raise(&mut self, a: &i128, _: &[bool], which: &[bool], by: &[u32], range: Range) -> i128 {
        let by = Self::only(which).and_then(|only| by.get(only));
        let raised = by.map_or(Some(0), |by| a.checked_mul(1 << by));
        Self::within(raised, range)
    }

    fn round(&mut self, a: &i128, by: u32, bits: u32, range: Range) -> i128 {
        let half = if by == 0 { 0 } else { 1 << (by - 1) };
        assert!(
            *a >= 0 && *a >> bits == 0,
            "an integer has the bits that it was proved to have"
        );
        Self::within(a.checked_add(half).map(|sum| sum >> by), range)
    }

    fn bits(&mut self, a: &i128, from: u32, bits: u32) -> Vec<bool> {
        assert!(
            *a >= 0 && *a >> bits == 0,
            "an integer has the bits that it was proved to have"
        );
        (from..bits).map(|place| a >> place & 1 == 1).collect()
    }

    fn is_negative(&mut self, a: &i128, range: Range) -> bool {
        Self::within(Some(*a), range) < 0
    }

    fn lift(&mut self, bit: &bool) -> i128 {
        i128::from(*bit)
    }

    fn truth(&mut self, value: bool) -> bool {
        value
    }

    fn xor(&mut self, a: &bool, b: &bool) -> bool {
        a ^ b
    }

    fn and(&mut self, a: &bool, b: &bool) -> bool {
        *a && *b
    }
}
