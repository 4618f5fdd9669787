//! Integers with proved ranges on a machine, and what is made of them.

use crate::machine::{Choice, Factor, Machine, Scaled};
use crate::range::Range;

/// An integer on a machine, and the range that it is proved to be in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number<I> {
    /// The integer.
    pub int: I,
    /// Its range.
    pub range: Range,
}

/// An integer that may not fit the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an integer on the way may need {bits} bits, and {most} are there")]
pub struct TooWide {
    /// Bits that it may need, more than 128 of them if 129.
    pub bits: u32,
    /// Bits at hand.
    pub most: u32,
}

/// Bits that an integer of a range needs, with its sign.
const fn signed_bits(range: Range) -> u32 {
    const fn of(end: i128) -> u32 {
        129 - (if end < 0 { !end } else { end }).leading_zeros()
    }
    let (low, high) = (of(range.min()), of(range.max()));
    if low > high { low } else { high }
}

/// Bits of an integer that is not negative.
pub(crate) const fn width(number: i128) -> u32 {
    128 - number.leading_zeros()
}

/// From the least to the largest of these numbers and 0.
pub(crate) fn hull_of(values: &[i128]) -> Range {
    let hull = |range: Range, value: &i128| range.hull(Range::point(*value));
    values.iter().fold(Range::point(0), hull)
}

/// A number on a machine.
pub type On<M> = Number<<M as Machine>::Int>;

/// Arithmetic of numbers on a machine: each result has a range that is derived, and is refused if it does not fit.
#[derive(Debug)]
pub struct Arithmetic<'m, M>(pub &'m mut M);

/// What a number is multiplied by.
#[expect(
    missing_debug_implementations,
    reason = "integers of a machine may be secrets"
)]
pub enum Times<'a, M: Machine> {
    /// A number of the machine.
    Secret(&'a On<M>),
    /// A public number.
    Public(i128),
}

/// A rounding: the multiple of 2^by that is added before it and comes off behind it, in units of 2^by; bits before it; and the range behind it, with that multiple.
struct Down {
    below: i128,
    bits: u32,
    range: Range,
}

/// A range that fits 128 bits and the machine.
fn fits(range: Option<Range>, most: u32) -> Result<Range, TooWide> {
    let range = range.ok_or(TooWide { bits: 129, most })?;
    let bits = signed_bits(range);
    if bits > most {
        return Err(TooWide { bits, most });
    }
    Ok(range)
}

impl<M: Machine> Arithmetic<'_, M> {
    fn fits(&self, range: Option<Range>) -> Result<Range, TooWide> {
        fits(range, self.0.most_bits())
    }

    /// A public number.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn constant(&mut self, value: i128) -> Result<On<M>, TooWide> {
        let range = self.fits(Some(Range::point(value)))?;
        let int = self.0.constant(value);
        Ok(Number { int, range })
    }

    /// The same number in a range that is proved elsewhere: both ranges hold.
    ///
    /// # Errors
    /// [`TooWide`] if they have no number in common, which is a proof that is wrong.
    pub fn within(&mut self, a: &On<M>, min: i128, max: i128) -> Result<On<M>, TooWide> {
        let range = Range::new(a.range.min().max(min), a.range.max().min(max));
        let range = self.fits(range)?;
        let zero = self.0.constant(0);
        let int = self.0.add(&a.int, &zero, range);
        Ok(Number { int, range })
    }

    /// A sum.
    ///
    /// # Errors
    /// [`TooWide`], as all below.
    pub fn add(&mut self, a: &On<M>, b: &On<M>) -> Result<On<M>, TooWide> {
        let range = self.fits(a.range.plus(b.range))?;
        let int = self.0.add(&a.int, &b.int, range);
        Ok(Number { int, range })
    }

    /// A difference.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn sub(&mut self, a: &On<M>, b: &On<M>) -> Result<On<M>, TooWide> {
        let minus = self.times(b, -1)?;
        self.add(a, &minus)
    }

    /// The sum with a public number.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn plus(&mut self, a: &On<M>, by: i128) -> Result<On<M>, TooWide> {
        if by == 0 {
            return Ok(a.clone());
        }
        let by = self.constant(by)?;
        self.add(a, &by)
    }

    /// The product with a public number.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn times(&mut self, a: &On<M>, by: i128) -> Result<On<M>, TooWide> {
        if by == 1 {
            return Ok(a.clone());
        }
        let range = self.fits(a.range.times(Range::point(by)))?;
        let int = self.0.times(&a.int, by, range);
        Ok(Number { int, range })
    }

    /// A product.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn multiply(&mut self, a: &On<M>, b: &On<M>) -> Result<On<M>, TooWide> {
        let range = self.fits(a.range.times(b.range))?;
        let int = self.0.multiply(&a.int, &b.int, range);
        Ok(Number { int, range })
    }

    /// A number that is 0 or 1.
    pub fn lift(&mut self, bit: &M::Bit) -> On<M> {
        let int = self.0.lift(bit);
        let range = Range::new(0, 1).unwrap_or(Range::point(0));
        Number { int, range }
    }

    /// `yes` where the bit is 1, else `no`.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn choose(&mut self, bit: &M::Bit, yes: &On<M>, no: &On<M>) -> Result<On<M>, TooWide> {
        let minus = self.fits(no.range.times(Range::point(-1)))?;
        let difference = self.fits(yes.range.minus(no.range))?;
        let ranges = Choice {
            hull: yes.range.hull(no.range),
            minus,
            difference,
            part: difference.hull(Range::point(0)),
        };
        let int = self.0.choose(bit, &yes.int, &no.int, ranges);
        let range = ranges.hull;
        Ok(Number { int, range })
    }

    /// −a where the bit is 1, else `a`.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn negate_if(&mut self, bit: &M::Bit, a: &On<M>) -> Result<On<M>, TooWide> {
        let minus = self.fits(a.range.times(Range::point(-1)))?;
        let range = minus.hull(a.range);
        if let Some(int) = self.0.negate_if(bit, &a.int, range) {
            return Ok(Number { int, range });
        }
        let minus = self.times(a, -1)?;
        self.choose(bit, &minus, a)
    }

    /// The number of a range that is nearest.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn clip(&mut self, a: &On<M>, to: Range) -> Result<On<M>, TooWide> {
        let mut clipped = a.clone();
        if a.range.min() < to.min() {
            let less = self.plus(&clipped, to.min().checked_neg().unwrap_or(i128::MAX))?;
            let below = self.0.is_negative(&less.int, less.range);
            let least = self.constant(to.min())?;
            clipped = self.choose(&below, &least, &clipped)?;
            clipped = self.within(&clipped, to.min(), i128::MAX)?;
        }
        if a.range.max() > to.max() {
            let rest = self.constant(to.max())?;
            let rest = self.sub(&rest, &clipped)?;
            let above = self.0.is_negative(&rest.int, rest.range);
            let most = self.constant(to.max())?;
            clipped = self.choose(&above, &most, &clipped)?;
            clipped = self.within(&clipped, i128::MIN, to.max())?;
        }
        Ok(clipped)
    }

    /// a · 2^-by, rounded to nearest, halves up; where the machine draws, to one of the two neighbours, with the number itself as its mean. A negative `by` multiplies.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn scale_down(&mut self, a: &On<M>, by: i32) -> Result<On<M>, TooWide> {
        let most = self.0.most_bits();
        if by <= 0 {
            let factor = 1_i128.checked_shl(by.unsigned_abs()).filter(|f| *f > 0);
            let factor = factor.ok_or(TooWide { bits: 129, most })?;
            return self.times(a, factor);
        }
        let by = by.unsigned_abs();
        let Down { below, bits, range } = self.down(a.range, by)?;
        let positive = self.plus(a, below << by)?;
        let int = self.0.round(&positive.int, by, bits, range);
        self.plus(&Number { int, range }, -below)
    }

    /// What [`Arithmetic::scale_down`] does with a number of a range that loses `by` places, of which there is one at least.
    fn down(&self, range: Range, by: u32) -> Result<Down, TooWide> {
        let most = self.0.most_bits();
        let wide = TooWide { bits: 129, most };
        if by > 125 {
            return Err(wide);
        }
        let one = 1_i128 << by;
        // Negative numbers are made positive by a multiple of 2^by, which comes off again behind it.
        let below = match range.min() {
            0.. => 0,
            min => {
                min.checked_neg()
                    .and_then(|size| size.checked_add(one - 1))
                    .ok_or(wide)?
                    >> by
            }
        };
        let up = below.checked_mul(one).ok_or(wide)?;
        let positive = self.fits(range.plus(Range::point(up)))?;
        // What is added before bits go may be up to 2^by − 1.
        let top = self.fits(positive.plus(Range::point(one - 1)))?;
        let bits = width(top.max()).max(by);
        let draws = self.0.draws();
        let least = |x: i128| (x + if draws { 0 } else { one / 2 }) >> by;
        let largest = |x: i128| (x + if draws { one - 1 } else { one / 2 }) >> by;
        let range = Range::new(least(positive.min()), largest(positive.max()));
        let range = self.fits(range)?;
        Ok(Down { below, bits, range })
    }

    /// a · factor · 2^-by + plus, the product rounded as [`Arithmetic::scale_down`] rounds: what a product, a rounding and a sum give, in one step where the machine has one.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn scaled_sum(
        &mut self,
        (a, factor): (&On<M>, Times<'_, M>),
        by: i32,
        plus: Option<&On<M>>,
    ) -> Result<On<M>, TooWide> {
        let of_factor = match factor {
            Times::Secret(b) => b.range,
            Times::Public(by) => Range::point(by),
        };
        let product = self.fits(a.range.times(of_factor))?;
        if by > 0 {
            let by = by.unsigned_abs();
            let Down { below, range, .. } = self.down(product, by)?;
            let rounded = self.fits(range.plus(Range::point(-below)))?;
            let range = match plus {
                Some(plus) => self.fits(rounded.plus(plus.range))?,
                None => rounded,
            };
            let of = Scaled {
                a: &a.int,
                by: match factor {
                    Times::Secret(b) => Factor::Secret(&b.int),
                    Times::Public(by) => Factor::Public(by),
                },
                plus: plus.map(|plus| &plus.int),
            };
            if let Some(int) = self.0.scaled_sum(of, by, range) {
                return Ok(Number { int, range });
            }
        }
        let product = match factor {
            Times::Secret(b) => self.multiply(a, b)?,
            Times::Public(by) => self.times(a, by)?,
        };
        let rounded = self.scale_down(&product, by)?;
        match plus {
            Some(plus) => self.add(&rounded, plus),
            None => Ok(rounded),
        }
    }

    /// The bits of a number that is not negative, from place `from` on, lowest first.
    pub fn bits(&mut self, a: &On<M>, from: u32) -> Vec<M::Bit> {
        let bits = width(a.range.max().max(0));
        if bits <= from {
            return Vec::new();
        }
        self.0.bits(&a.int, from, bits)
    }

    /// What is left of a number from 0 on without its bits from place `from` on, which these are.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn below(&mut self, a: &On<M>, bits: &[M::Bit], from: u32) -> Result<On<M>, TooWide> {
        let mut rest = a.clone();
        for (j, bit) in bits.iter().enumerate() {
            let bit = self.lift(bit);
            let bit = self.times(&bit, 1 << (from + j as u32))?;
            rest = self.sub(&rest, &bit)?;
        }
        self.within(&rest, 0, (1 << from) - 1)
    }

    /// The public value whose bit is 1, of which at most one is, else 0.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn pick(&mut self, bits: &[M::Bit], values: &[i128]) -> Result<On<M>, TooWide> {
        self.pick_within(bits, values, hull_of(values))
    }

    /// [`Arithmetic::pick`] of values whose range with 0 is known.
    pub(crate) fn pick_within(
        &mut self,
        bits: &[M::Bit],
        values: &[i128],
        range: Range,
    ) -> Result<On<M>, TooWide> {
        let range = self.fits(Some(range))?;
        let int = self.0.pick(bits, values, range);
        Ok(Number { int, range })
    }

    /// A number from 0 on, whose bits these are, times 2^by of the bit of `which` that is 1, of which at most one is; else 0. The product is proved elsewhere to be at most `most`.
    ///
    /// # Errors
    /// [`TooWide`].
    pub fn raise(
        &mut self,
        a: &On<M>,
        bits: &[M::Bit],
        which: &[M::Bit],
        by: &[u32],
        most: i128,
    ) -> Result<On<M>, TooWide> {
        let range = self.fits(Range::new(0, most))?;
        let int = self.0.raise(&a.int, bits, which, by, range);
        Ok(Number { int, range })
    }

    /// Or of two bits.
    pub fn or(&mut self, a: &M::Bit, b: &M::Bit) -> M::Bit {
        let both = self.0.and(a, b);
        let either = self.0.xor(a, b);
        self.0.xor(&either, &both)
    }

    /// Not of a bit.
    pub fn not(&mut self, a: &M::Bit) -> M::Bit {
        let one = self.0.truth(true);
        self.0.xor(a, &one)
    }

    /// Which of the first `count` numbers the bits are, lowest first: a bit for each, none of them 1 if it is another.
    pub fn decode(&mut self, bits: &[M::Bit], count: usize) -> Vec<M::Bit> {
        let low = bits
            .len()
            .min(usize::BITS as usize - count.saturating_sub(1).leading_zeros() as usize);
        let mut all = vec![self.0.truth(true)];
        // The highest bit first: each half of the numbers is split by the next bit below.
        for bit in bits[..low].iter().rev() {
            let mut next = Vec::with_capacity(2 * all.len());
            for of in &all {
                let one = self.0.and(of, bit);
                next.push(self.0.xor(of, &one));
                next.push(one);
            }
            all = next;
        }
        all.truncate(count);
        if let Some((first, rest)) = bits[low..].split_first() {
            let mut beyond = first.clone();
            for bit in rest {
                beyond = self.or(&beyond, bit);
            }
            let within = self.not(&beyond);
            all = all.iter().map(|bit| self.0.and(bit, &within)).collect();
        }
        let zero = self.0.truth(false);
        all.resize(count, zero);
        all
    }

    /// Which bit is the first 1 from the highest down: a bit for each place, lowest first.
    pub fn leading(&mut self, bits: &[M::Bit]) -> Vec<M::Bit> {
        // Whether there is a 1 at a place or above, by doubling steps.
        let mut above = bits.to_vec();
        let mut step = 1;
        while step < bits.len() {
            for at in 0..bits.len() - step {
                above[at] = self.or(&above[at].clone(), &above[at + step].clone());
            }
            step *= 2;
        }
        let next = |at: usize| above.get(at + 1).cloned();
        let nexts: Vec<Option<M::Bit>> = (0..bits.len()).map(next).collect();
        let firsts = above.iter().zip(nexts).map(|(here, next)| match next {
            Some(next) => self.0.xor(here, &next),
            None => here.clone(),
        });
        firsts.collect()
    }
}
