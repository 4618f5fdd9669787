//! Polynomials on pieces, on a machine.

use super::slack;
use crate::coefficients::PIECES;
use crate::curve::{Curve, Pieces, UNIT};
use crate::exact::Enclosure;
use crate::machine::Machine;
use crate::number::{Arithmetic, On, Times, TooWide, hull_of};
use crate::range::Range;

/// Most binary places of the values of a polynomial.
const MOST_PLACES: u32 = 48;

/// The polynomials of a curve, with coefficients in units of 2^-places.
#[derive(Clone, Debug)]
pub(super) struct Polynomial {
    pieces: &'static Pieces,
    /// Binary places of its values.
    pub(super) places: u32,
    /// By power of the variable: the coefficient of each piece, less the limit where the power is 0, and the range of these and 0.
    coefficients: Vec<(Vec<i128>, Range)>,
    /// What the curve nears behind the last piece, in units.
    limit: i128,
    /// The values, in units.
    range: Range,
}

impl Polynomial {
    /// The polynomials whose error is small beside 2^-bits, as far as there are any; with values of `bits` + 4 places.
    pub(super) fn new(curve: Curve, bits: u32) -> Option<Self> {
        let of_curve = || PIECES.iter().filter(move |pieces| pieces.curve == curve);
        let wanted = Enclosure::scaled(1, -(bits as i32) - 3);
        let near = of_curve().find(|pieces| pieces.stated().at_most(&wanted));
        let pieces = near.or_else(|| of_curve().next_back())?;
        let places = (bits + 4).min(MOST_PLACES);
        let unit = |coefficient: &i64| {
            let drop = UNIT - places;
            (i128::from(*coefficient) + (1 << (drop - 1))) >> drop
        };
        let limit = match curve {
            Curve::Sigmoid | Curve::Erf => 1 << places,
            _ => 0,
        };
        let power = |k: usize| {
            let behind = if k == 0 { limit } else { 0 };
            let all = (0..pieces.count()).map(|piece| unit(&pieces.piece(piece)[k]) - behind);
            let all: Vec<i128> = all.collect();
            let range = hull_of(&all);
            (all, range)
        };
        let mut made = Self {
            pieces,
            places,
            coefficients: (0..=pieces.degree).map(power).collect(),
            limit,
            range: Range::point(0),
        };
        // Curves rise or fall everywhere: on [0, 1) no slope is above 3/2.
        let end = Enclosure::scaled(made.count() as i128, -(made.finer() as i32));
        let ends = curve.at(&Enclosure::from(0)).hull(&curve.at(&end));
        let error = made.error(true, &Enclosure::ratio(3, 2)).high();
        let low = (&ends.low() - &error).floor(places)?;
        let high = (&ends.high() + &error).ceil(places)?;
        made.range = Range::new(low.min(limit), high.max(limit))?;
        Some(made)
    }

    /// A piece has the width 2^-finer.
    pub(super) const fn finer(&self) -> u32 {
        self.pieces.finer
    }

    /// How many pieces there are.
    const fn count(&self) -> usize {
        self.pieces.count()
    }

    /// How far a value is from the curve at most: the polynomial's own error, what coefficients and products lose by rounding, and what the variable has lost where it has as many places as
    /// values, where the curve rises or falls by at most `steep`. Powers of the variable are at most 2^-k.
    pub(super) fn error(&self, draws: bool, steep: &Enclosure) -> Enclosure {
        let unit = Enclosure::scaled(1, -(self.places as i32));
        let rounding = &slack(draws) * &unit;
        // Σ 2^-k of halves of a unit, and of roundings.
        let coefficients = unit.clone();
        let products = rounding.shifted(1);
        let variable = &(steep * &rounding).shifted(-(self.pieces.finer as i32));
        let own = &(&self.pieces.stated() + &coefficients) + &(&products + variable);
        // Behind the last piece the limit stands for the curve.
        let behind = match self.pieces.curve {
            Curve::Sigmoid | Curve::Erf | Curve::Softplus => {
                let end = Enclosure::scaled(self.count() as i128, -(self.pieces.finer as i32));
                let limit = Enclosure::scaled(self.limit, -(self.places as i32));
                (&limit - &self.pieces.curve.at(&end)).abs()
            }
            _ => Enclosure::from(0),
        };
        if behind.at_most(&own) {
            own
        } else {
            &own + &behind
        }
    }

    /// The value where `piece` is the number of the piece in bits, and `v` is the place in it from 0 to 1 in units of 2^-v_places, of which there is one at least.
    pub(super) fn on<M: Machine>(
        &self,
        on: &mut Arithmetic<'_, M>,
        piece: &[M::Bit],
        v: &On<M>,
        v_places: u32,
    ) -> Result<On<M>, TooWide> {
        let which = on.decode(piece, self.count());
        // From −1/2 to 1/2, with no more places than values have.
        let v = on.plus(v, -(1 << (v_places - 1)))?;
        let drop = v_places.saturating_sub(self.places);
        let v = on.scale_down(&v, drop as i32)?;
        let places = v_places - drop;
        let mut value: Option<On<M>> = None;
        for (k, (coefficients, range)) in self.coefficients.iter().enumerate().rev() {
            let behind = if k == 0 { self.limit } else { 0 };
            let coefficient = on.pick_within(&which, coefficients, *range)?;
            let coefficient = on.plus(&coefficient, behind)?;
            value = Some(match value {
                None => coefficient,
                Some(value) => {
                    let product = (&value, Times::Secret(&v));
                    on.scaled_sum(product, places as i32, Some(&coefficient))?
                }
            });
        }
        // A polynomial has a coefficient; and its values are near the curve's.
        let value = value.map_or_else(|| on.constant(0), Ok)?;
        on.within(&value, self.range.min(), self.range.max())
    }
}
