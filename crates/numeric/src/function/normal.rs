//! Functions of the mantissa and of the place of the leading one.

use super::polynomial::Polynomial;
use super::{Function, bits_of, slack};
use crate::curve::Curve;
use crate::exact::Enclosure;
use crate::machine::Machine;
use crate::number::{Arithmetic, On, Times, TooWide, width};
use crate::range::Range;
use crate::scale::Scale;

/// Binary places that public factors have beyond units of the result.
const MORE: u32 = 3;

/// Bits of an argument: one that is longer has no room beside the power of two that brings it to the front.
const MOST_LENGTH: u32 = 120;

/// x = 2^i · m, with m from 1 to 2: a polynomial of m − 1, times a public factor for i, or plus a public number for i.
#[derive(Clone, Debug)]
pub(super) struct Normal {
    polynomial: Polynomial,
    /// Whether the argument is negative, and the result with it.
    negative: bool,
    /// The lowest place that the leading one may have.
    first: u32,
    /// Places of the mantissa: beyond `first` and below, no fewer than one more than pieces need.
    mantissa: u32,
    /// For each place of the leading one from `first` on, in units of 2^-back.
    by_place: Vec<i128>,
    back: u32,
    /// The factor of the mantissa's logarithm; `None` if the polynomial is multiplied by the factor of the place.
    logarithm: Option<i128>,
    /// The largest factor of a polynomial, in units of the result.
    most: Enclosure,
    steep: Enclosure,
}

impl Normal {
    pub(super) fn new(function: Function, from: Scale, range: Range, to: Scale) -> Option<Self> {
        let negative = range.max() < 0;
        let (low, high) = if negative {
            (range.max().checked_neg()?, range.min().checked_neg()?)
        } else {
            (range.min(), range.max())
        };
        let length = width(high.max(1));
        if length > MOST_LENGTH {
            return None;
        }
        let first = width(low.max(1)) - 1;
        let unit = from.value(1);
        let one = to.units(&Enclosure::from(1));
        let (curve, steep) = match function {
            Function::Reciprocal => (Curve::Reciprocal, Enclosure::from(1)),
            Function::Root => (Curve::Root, Enclosure::ratio(1, 2)),
            Function::InverseRoot => (Curve::InverseRoot, Enclosure::ratio(1, 2)),
            _ => (Curve::Log2, Enclosure::ratio(3, 2)),
        };
        // What the place i of the leading one contributes, in units of the result.
        let base = match function {
            Function::Ln => Enclosure::ln_2(),
            Function::Log10 => Enclosure::ln_2().over(&Enclosure::from(10).ln()?)?,
            _ => Enclosure::from(1),
        };
        let factor = &base * &one;
        let place = |i: u32| {
            let x = unit.shifted(i as i32);
            Some(match function {
                Function::Reciprocal => one.over(&x)?,
                Function::Root => &x.sqrt()? * &one,
                Function::InverseRoot => one.over(&x.sqrt()?)?,
                _ => &x.ln()?.over(&Enclosure::ln_2())? * &factor,
            })
        };
        let logarithm = curve == Curve::Log2;
        let mut most = if logarithm {
            factor.clone()
        } else {
            Enclosure::from(0)
        };
        let mut places = Vec::new();
        for i in first..length {
            let place = place(i)?;
            if !logarithm {
                most = most.hull(&place).high();
            }
            places.push(place);
        }
        let polynomial = Polynomial::new(curve, bits_of(&most)?)?;
        let back = if logarithm {
            polynomial.places + MORE
        } else {
            MORE
        };
        let by_place = places
            .iter()
            .map(|place| place.nearest(back))
            .collect::<Option<_>>()?;
        let logarithm = if logarithm {
            Some(factor.nearest(MORE)?)
        } else {
            None
        };
        Some(Self {
            mantissa: (length - 1).max(polynomial.finer() + 1),
            polynomial,
            negative,
            first,
            by_place,
            back,
            logarithm,
            most,
            steep,
        })
    }

    pub(super) fn errors(&self) -> [Enclosure; 2] {
        [false, true].map(|draws| {
            let polynomial = self.polynomial.error(draws, &self.steep);
            // Half a unit of a factor, times a value of at most √2; of a logarithm also half a unit of the number of the place.
            let factor = Enclosure::scaled(3, -(MORE as i32) - 2);
            let scaled = &self.most * &polynomial;
            &(&scaled + &factor) + &slack(draws)
        })
    }

    pub(super) fn on<M: Machine>(
        &self,
        on: &mut Arithmetic<'_, M>,
        x: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let x = if self.negative {
            on.times(x, -1)?
        } else {
            x.clone()
        };
        let bits = on.bits(&x, 0);
        let leading = on.leading(&bits);
        // No leading one is below the least number's.
        let first = self.first as usize;
        let leading = &leading[first..];
        let finer = self.polynomial.finer();
        let up: Vec<u32> = (0..leading.len())
            .map(|i| self.mantissa - self.first - i as u32)
            .collect();
        let top = 1_i128 << self.mantissa;
        let product = on.raise(&x, &bits, leading, &up, 2 * top - 1)?;
        let least = if x.range.min() > 0 { top } else { 0 };
        let product = on.within(&product, least, 2 * top - 1)?;
        // Which piece: the bits behind the leading one.
        let mut piece = Vec::new();
        for behind in (1..=finer as usize).rev() {
            let pairs: Vec<(M::Bit, M::Bit)> = (leading.iter().enumerate())
                .filter_map(|(i, one)| {
                    let place = (first + i).checked_sub(behind)?;
                    Some((one.clone(), bits[place].clone()))
                })
                .collect();
            piece.push(on.0.inner(&pairs));
        }
        let rest = if least > 0 {
            on.plus(&product, -top)?
        } else {
            // Of 0 there is no leading one: nothing is left of it.
            let any: Vec<i128> = vec![top; leading.len()];
            let any = on.pick(leading, &any)?;
            on.sub(&product, &any)?
        };
        let places = self.mantissa - finer;
        let rest = on.below(&rest, &piece, places)?;
        let value = self.polynomial.on(on, &piece, &rest, places)?;
        let by_place = on.pick(leading, &self.by_place)?;
        let result = if let Some(factor) = self.logarithm {
            let value = on.times(&value, factor)?;
            let sum = on.add(&value, &by_place)?;
            on.scale_down(&sum, self.back as i32)?
        } else {
            let back = self.polynomial.places + self.back;
            on.scaled_sum((&value, Times::Secret(&by_place)), back as i32, None)?
        };
        if self.negative {
            on.times(&result, -1)
        } else {
            Ok(result)
        }
    }
}
