//! Powers with a public base.

use super::polynomial::Polynomial;
use super::{Function, bits_of, slack};
use crate::curve::Curve;
use crate::exact::Enclosure;
use crate::machine::Machine;
use crate::number::{Arithmetic, On, Times, TooWide, width};
use crate::range::Range;
use crate::scale::Scale;

/// Results below 2^-FLUSH units are as good as 0: smaller arguments are raised to where they begin.
const FLUSH: i128 = 4;

/// A rounding before the last one loses no more than 2^-EARLY of what that may lose.
const EARLY: i32 = 4;

/// b^x = 2^z with z = x log2 b: a polynomial of what is behind the point of z, times a power of two.
#[derive(Clone, Debug)]
pub(super) struct Power {
    polynomial: Polynomial,
    /// Smaller arguments give no more than a small part of a unit.
    floor: Option<i128>,
    /// z = x · factor · 2^-(places + behind).
    factor: i128,
    places: u32,
    behind: u32,
    /// What is added to z, so that it is not negative.
    up: i128,
    /// Decimal places of the result as a factor.
    tens: i128,
    /// Binary places that go from the product before it is multiplied by that factor, and after.
    back: (i32, i32),
    /// The largest result, in units.
    most: Enclosure,
    /// How far z is from x log2 b at most, beside its rounding, in units of its last place.
    inexact: Enclosure,
}

impl Power {
    pub(super) fn new(function: Function, from: Scale, range: Range, to: Scale) -> Option<Self> {
        let base = match function {
            Function::Exp2 => Enclosure::from(1),
            Function::Exp => Enclosure::from(1).over(&Enclosure::ln_2())?,
            _ => Enclosure::from(10).ln()?.over(&Enclosure::ln_2())?,
        };
        let unit = &from.value(1) * &base;
        let z = |x: i128| &unit * &Enclosure::from(x);
        // 2^z of more than 127 bits fits nowhere, and neither does what is on the way.
        if !z(range.max()).at_most(&Enclosure::from(126)) {
            return None;
        }
        // The least z whose result shows: 2^-FLUSH units.
        let one = to.units(&Enclosure::from(1));
        let least = (&one.ln()?.over(&Enclosure::ln_2())? + &Enclosure::from(FLUSH))
            .ceil(0)?
            .checked_neg()?;
        let floor = if z(range.min()).at_most(&Enclosure::from(least)) {
            let floor = Enclosure::from(least).over(&unit)?.floor(0)?;
            Some(floor)
        } else {
            None
        };
        let smallest = floor.unwrap_or(range.min()).max(range.min());
        let largest = z(range.max().max(smallest));
        let most = &(&largest * &Enclosure::ln_2()).exp() * &one;
        let most = most.high();
        let bits = bits_of(&most)?;
        let polynomial = Polynomial::new(Curve::Exp2, bits)?;
        let whole = function == Function::Exp2 && from.ten == 0;
        let places = if whole {
            from.two.max(polynomial.finer() + 1)
        } else {
            (bits + 4).max(polynomial.finer() + 1)
        };
        let magnitude = width(smallest.checked_abs()?.max(range.max().checked_abs()?));
        let (behind, factor, inexact) = if whole {
            (
                0,
                1_i128.checked_shl(places - from.two)?,
                Enclosure::from(0),
            )
        } else {
            let behind = magnitude + 1;
            (
                behind,
                unit.nearest(places + behind)?,
                Enclosure::ratio(1, 2),
            )
        };
        // Rounding may leave two units less.
        let rounded = Enclosure::scaled(if whole { 0 } else { 2 }, -(places as i32));
        let lowest = (&z(smallest) - &rounded).floor(0)?;
        let tens = to.tens()?;
        let back = i128::from(polynomial.places) - lowest - i128::from(to.two);
        let back = i32::try_from(back).ok()?;
        // Places whose rounding shows in no more than a sixteenth of what the last one may lose, times the factor.
        let first = if tens > 1 {
            (back - width(tens) as i32 - EARLY).max(0)
        } else {
            0
        };
        Some(Self {
            tens,
            back: (first, back - first),
            polynomial,
            floor,
            factor,
            places,
            behind,
            up: -lowest,
            most,
            inexact,
        })
    }

    pub(super) fn errors(&self) -> [Enclosure; 2] {
        [false, true].map(|draws| {
            let polynomial = self.polynomial.error(draws, &Enclosure::ratio(7, 5));
            // |x| is below 2^(behind − 1), so that half a unit of the factor is a quarter of one of z; 2^z rises by ln 2 of it, and a little more.
            let rounding = if self.behind > 0 {
                slack(draws)
            } else {
                Enclosure::from(0)
            };
            let z = (&rounding + &self.inexact.shifted(-1)).shifted(-(self.places as i32));
            let relative = &polynomial + &(&z * &Enclosure::ratio(3, 4));
            let flushed = if self.floor.is_some() {
                Enclosure::scaled(1, -(FLUSH as i32) + 1)
            } else {
                Enclosure::from(0)
            };
            let early = if self.back.0 > 0 {
                slack(draws).shifted(-EARLY)
            } else {
                Enclosure::from(0)
            };
            &(&(&self.most * &relative) + &flushed) + &(&slack(draws) + &early)
        })
    }

    pub(super) fn on<M: Machine>(
        &self,
        on: &mut Arithmetic<'_, M>,
        x: &On<M>,
    ) -> Result<On<M>, TooWide> {
        let mut x = x.clone();
        if let Some(floor) = self.floor.filter(|floor| *floor > x.range.min()) {
            let least = on.constant(floor)?;
            let above = on.sub(&x, &least)?;
            let below = on.0.is_negative(&above.int, above.range);
            let raised = on.choose(&below, &least, &x)?;
            x = on.within(&raised, floor, x.range.max().max(floor))?;
        }
        let product = (&x, Times::Public(self.factor));
        let z = on.scaled_sum(product, self.behind as i32, None)?;
        let up = self.up.checked_shl(self.places).ok_or(TooWide {
            bits: 129,
            most: on.0.most_bits(),
        })?;
        let z = on.plus(&z, up)?;
        // A rounding may pass the end by a unit.
        let z = on.within(&z, 0, i128::MAX)?;
        let finer = self.polynomial.finer();
        let places = self.places - finer;
        let bits = on.bits(&z, places);
        let rest = on.below(&z, &bits, places)?;
        let (piece, whole) = bits.split_at(bits.len().min(finer as usize));
        let value = self.polynomial.on(on, piece, &rest, places)?;
        // Times 2^n, by the bits of n.
        let wide = TooWide {
            bits: 129,
            most: on.0.most_bits(),
        };
        let most = z.range.max() >> self.places;
        let (low, high) = (value.range.min(), value.range.max());
        let mut product = value;
        for (j, bit) in whole.iter().enumerate() {
            let factor = 1_u32
                .checked_shl(j as u32)
                .filter(|by| *by < 126)
                .ok_or(wide)?;
            let raised = on.times(&product, 1 << factor)?;
            let chosen = on.choose(bit, &raised, &product)?;
            let end = most.min((2 << j) - 1);
            let top = high
                .checked_shl(end as u32)
                .filter(|top| top >> end == high)
                .ok_or(wide)?;
            product = on.within(&chosen, low, top)?;
        }
        let product = on.scale_down(&product, self.back.0)?;
        on.scaled_sum((&product, Times::Public(self.tens)), self.back.1, None)
    }
}
