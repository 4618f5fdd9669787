//! Functions that near a limit on both sides, and are what they are on one side by what they are on the other.

use super::polynomial::Polynomial;
use super::{Function, bits_of, slack};
use crate::curve::Curve;
use crate::exact::Enclosure;
use crate::machine::Machine;
use crate::number::{Arithmetic, On, Times, TooWide, width};
use crate::range::Range;
use crate::scale::Scale;

/// A polynomial of |x| on pieces up to where the function is near its limit, and the sign.
#[derive(Clone, Debug)]
pub(super) struct Symmetric {
    function: Function,
    polynomial: Polynomial,
    /// |z| = |x| · factor · 2^-behind, with `places` places.
    factor: i128,
    behind: u32,
    places: u32,
    /// Whether the factor is exact.
    exact: bool,
    tens: i128,
    /// Binary places that go at the end.
    back: i32,
    /// A value of the polynomial, in units of the result.
    most: Enclosure,
}

impl Symmetric {
    pub(super) fn new(function: Function, from: Scale, range: Range, to: Scale) -> Option<Self> {
        let curve = match function {
            Function::Sigmoid | Function::Tanh => Curve::Sigmoid,
            Function::Softplus => Curve::Softplus,
            _ => Curve::Erf,
        };
        // tanh x = 2 sigmoid(2x) − 1.
        let twice = i32::from(function == Function::Tanh);
        let most = to.units(&Enclosure::from(1)).shifted(twice).high();
        let bits = bits_of(&most)?;
        let polynomial = Polynomial::new(curve, bits)?;
        let magnitude = width(range.min().checked_abs()?.max(range.max().checked_abs()?));
        // The argument itself is part of a result of softplus, so that it has the places of the polynomial there.
        let places = if function == Function::Softplus {
            polynomial.places
        } else {
            (bits + 4).max(polynomial.finer() + 1)
        };
        let unit = from.value(1).shifted(twice);
        let whole = from.ten == 0 && i64::from(from.two) - i64::from(twice) <= i64::from(places);
        let (factor, behind) = if whole {
            let up = places as i32 + twice - from.two as i32;
            (1_i128.checked_shl(u32::try_from(up).ok()?)?, 0)
        } else {
            let behind = magnitude + 1;
            (unit.nearest(places + behind)?, behind)
        };
        Some(Self {
            tens: to.tens()?,
            back: polynomial.places as i32 - to.two as i32 - twice,
            function,
            polynomial,
            factor,
            behind,
            places,
            exact: whole,
            most,
        })
    }

    /// The largest slope.
    fn steep(&self) -> Enclosure {
        match self.function {
            Function::Sigmoid | Function::Tanh => Enclosure::ratio(1, 4),
            Function::Softplus => Enclosure::ratio(1, 2),
            _ => Enclosure::ratio(8, 7),
        }
    }

    pub(super) fn errors(&self) -> [Enclosure; 2] {
        [false, true].map(|draws| {
            let polynomial = self.polynomial.error(draws, &self.steep());
            let argument = if self.exact {
                Enclosure::from(0)
            } else {
                // Half a unit of the factor times |x| is a quarter of one of the argument.
                (&slack(draws) + &Enclosure::ratio(1, 4)).shifted(-(self.places as i32))
            };
            let steep = match self.function {
                Function::Softplus => Enclosure::from(1),
                _ => self.steep(),
            };
            let before = &(&argument * &steep) + &polynomial;
            &(&self.most * &before) + &slack(draws)
        })
    }

    pub(super) fn on<M: Machine>(
        &self,
        on: &mut Arithmetic<'_, M>,
        x: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let negative = on.0.is_negative(&x.int, x.range);
        let size = on.negate_if(&negative, x)?;
        let largest = x.range.max().max(-x.range.min());
        let size = on.within(&size, 0, largest)?;
        let product = (&size, Times::Public(self.factor));
        let z = on.scaled_sum(product, self.behind as i32, None)?;
        let z = on.within(&z, 0, i128::MAX)?;
        let finer = self.polynomial.finer();
        let places = self.places - finer;
        let bits = on.bits(&z, places);
        let rest = on.below(&z, &bits, places)?;
        let value = self.polynomial.on(on, &bits, &rest, places)?;
        let one = 1_i128 << self.polynomial.places;
        let result = match self.function {
            Function::Softplus => {
                let zero = on.constant(0)?;
                let positive = on.choose(&negative, &zero, &z)?;
                on.add(&positive, &value)?
            }
            Function::Sigmoid | Function::Tanh => {
                // The sigmoid above its middle, which is half of tanh.
                let above = on.plus(&value, -one / 2)?;
                let above = on.negate_if(&negative, &above)?;
                let middle = if self.function == Function::Sigmoid {
                    one / 2
                } else {
                    0
                };
                on.plus(&above, middle)?
            }
            _ => on.negate_if(&negative, &value)?,
        };
        on.scaled_sum((&result, Times::Public(self.tens)), self.back, None)
    }
}
