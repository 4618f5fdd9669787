//! Numbers and quotients as fractions: what exact arithmetic makes of their ranges, and what does not fit.

use std::sync::Arc;

use veil_numeric::{Applied, Function, FunctionError, Range, Scale, Wide};

use crate::calendar::{FIRST_DAY, LAST_DAY};
use crate::expr::{Arithmetic, Expr};
use crate::kind::{Kind, MOST_PLACES};
use crate::range_error::{MOST_BITS, Unfit, too_wide};

/// A number or quotient: `above / below · 10^−places`.
#[derive(Clone, Copy)]
pub(crate) struct Fraction {
    places: u32,
    above: Range,
    below: Option<Range>,
    integer: bool,
}

impl Fraction {
    /// Nothing for what is no number.
    pub(crate) fn of(kind: &Kind) -> Option<Self> {
        let (places, above, below) = match kind {
            Kind::Integer(range) => (0, *range, None),
            Kind::Decimal { places, units } => (*places, *units, None),
            Kind::Ratio {
                places,
                above,
                below,
            } => (*places, *above, Some(*below)),
            _ => return None,
        };
        let integer = matches!(kind, Kind::Integer(_));
        Some(Self {
            places,
            above,
            below,
            integer,
        })
    }

    /// The denominator's range: 1 for numbers.
    fn under(&self) -> Range {
        self.below.unwrap_or(Range::point(1))
    }

    /// Units of a number or quotient after rounding: at most the numerator over the least denominator, rounded up.
    fn rounded(&self, places: u32) -> Option<Range> {
        let below = self.under();
        let end = |above: i128| {
            // Between the values over the least and the greatest denominator.
            let over = |below: i128| round_ratio(above, below, self.places, places);
            Some((over(below.min())?, over(below.max())?))
        };
        let (low, high) = (end(self.above.min())?, end(self.above.max())?);
        // What an evaluation computes on the way has to fit as well.
        if places > self.places {
            self.above.shifted(places - self.places)?;
        }
        Range::new(low.0.min(low.1), high.0.max(high.1))
    }
}

/// Units of a number of this kind that is rounded to so many places; nothing if it is none, or may not fit.
pub(crate) fn rounded(kind: &Kind, places: u32) -> Option<Range> {
    Fraction::of(kind)?.rounded(places)
}

/// Both as fractions: those of 0 where one is no number, which is looked at before.
fn pair([one, other]: [&Kind; 2]) -> [Fraction; 2] {
    let of = |kind: &Kind| {
        Fraction::of(kind).unwrap_or(Fraction {
            places: 0,
            above: Range::point(0),
            below: None,
            integer: true,
        })
    };
    [of(one), of(other)]
}

fn places_fit(places: u32) -> Result<(), Unfit> {
    if places > MOST_PLACES {
        return Err(Unfit::Places { places });
    }
    Ok(())
}

/// The sum, difference or product of two numbers or quotients.
pub(crate) fn arithmetic(sign: Arithmetic, kinds: [&Kind; 2]) -> Result<Kind, Unfit> {
    let [a, b] = pair(kinds);
    let places = match sign {
        Arithmetic::Mul => a.places + b.places,
        Arithmetic::Add | Arithmetic::Sub => a.places.max(b.places),
    };
    places_fit(places)?;
    let exact = || {
        let below = a.under().times(b.under())?;
        let above = if sign == Arithmetic::Mul {
            a.above.times(b.above)?
        } else {
            let x = a.above.shifted(places - a.places)?.times(b.under())?;
            let y = b.above.shifted(places - b.places)?.times(a.under())?;
            if sign == Arithmetic::Sub {
                x.minus(y)?
            } else {
                x.plus(y)?
            }
        };
        Some((above, below))
    };
    let (above, below) = exact().ok_or_else(|| {
        let [u, v] = [a, b].map(|of| Wide::from(of.under()));
        let [x, y] = [a, b].map(|of| Wide::from(of.above));
        let above = if sign == Arithmetic::Mul {
            x.times(&y)
        } else {
            let x = x.shifted(places - a.places).times(&v);
            let y = y.shifted(places - b.places).times(&u);
            if sign == Arithmetic::Sub {
                x.minus(&y)
            } else {
                x.plus(&y)
            }
        };
        too_wide(above.bits().max(u.times(&v).bits()))
    })?;
    Ok(if a.below.is_some() || b.below.is_some() {
        Kind::Ratio {
            places,
            above,
            below,
        }
    } else if a.integer && b.integer {
        Kind::Integer(above)
    } else {
        Kind::Decimal {
            places,
            units: above,
        }
    })
}

/// Whether what is compared fits: numbers at the places of both, numerators times denominators.
pub(crate) fn compared(kinds: [&Kind; 2]) -> Result<(), Unfit> {
    let [a, b] = pair(kinds);
    let places = a.places.max(b.places);
    let crossed = |x: &Fraction, y: &Fraction| {
        let scaled = x.above.shifted(places - x.places)?;
        scaled.times(y.under())
    };
    if crossed(&a, &b).is_some() && crossed(&b, &a).is_some() {
        return Ok(());
    }
    let wide = |x: &Fraction, y: &Fraction| {
        let scaled = Wide::from(x.above).shifted(places - x.places);
        scaled.times(&y.under().into()).bits()
    };
    Err(too_wide(wide(&a, &b).max(wide(&b, &a))))
}

/// Whether a divisor of this kind may be 0.
pub(crate) fn may_be_zero(divisor: &Kind) -> bool {
    Fraction::of(divisor).is_none_or(|of| of.above.contains(0))
}

/// `(a/b · 10^−p) / (c/d · 10^−q) = (a·d·10^q) / (b·c) · 10^−p`, the sign moved above.
pub(crate) fn quotient(kinds: [&Kind; 2]) -> Result<Kind, Unfit> {
    let [a, c] = pair(kinds);
    let exact = || {
        let above = a.above.times(c.under())?.shifted(c.places)?;
        let below = a.under().times(c.above)?;
        let above = if below.min() >= 1 {
            above
        } else {
            Range::new(
                above.min().min(above.max().checked_neg()?),
                above.max().max(above.min().checked_neg()?),
            )?
        };
        let least = if below.contains(0) {
            1
        } else {
            below.min().checked_abs()?.min(below.max().checked_abs()?)
        };
        // A divisor that is 0 alone makes no value: the range is that of 1.
        let below = Range::new(least, below.magnitude()?.max(1))?;
        Some(Kind::Ratio {
            places: a.places,
            above,
            below,
        })
    };
    exact().ok_or_else(|| {
        let above = Wide::from(a.above).times(&c.under().into());
        let below = Wide::from(a.under()).times(&c.above.into());
        too_wide(above.shifted(c.places).bits().max(below.bits()))
    })
}

/// A number or quotient rounded to so many places.
pub(crate) fn round(kind: &Kind, places: u32) -> Result<Kind, Unfit> {
    places_fit(places)?;
    let [of, _] = pair([kind, kind]);
    let units = of.rounded(places).ok_or_else(|| {
        let above = Wide::from(of.above).shifted(places.saturating_sub(of.places));
        let below = Wide::from(of.under()).shifted(of.places.saturating_sub(places));
        too_wide(above.bits().max(below.bits()))
    })?;
    Ok(Kind::Decimal { places, units })
}

/// So many days after a date, if all are in the calendar.
pub(crate) fn later(from: Range, by: Range) -> Option<Kind> {
    let range = from.plus(by)?;
    let calendar = i128::from(FIRST_DAY) <= range.min() && range.max() <= i128::from(LAST_DAY);
    calendar.then_some(Kind::Date(range))
}

/// How a function of a number of this kind is computed, to so many places; nothing if it is no number. Where the number is null the result is, so that a number that is null instead of 0 is
/// none that the function has no value for.
#[must_use]
pub fn real(
    function: Function,
    of: &Expr,
    kind: &Kind,
    places: u32,
) -> Option<Result<Arc<Applied>, FunctionError>> {
    let (from, mut units) = kind.number()?;
    if let Expr::NullIf(_, zero) = of
        && **zero == Expr::integer(0)
        && units.min() == 0
    {
        units = Range::new(1, units.max().max(1))?;
    }
    let (from, to) = (Scale::decimal(from), Scale::decimal(places));
    Some(Applied::of(function, from, units, to))
}

/// The kind of a function of a number, to so many places.
pub(crate) fn applied(
    function: Function,
    of: &Expr,
    kind: &Kind,
    places: u32,
) -> Result<Kind, Unfit> {
    match real(function, of, kind, places) {
        Some(Ok(applied)) => Ok(Kind::Decimal {
            places,
            units: applied.result(false),
        }),
        Some(Err(FunctionError::Domain { excluded, .. })) => Err(Unfit::NoValue { excluded }),
        Some(Err(_)) | None => Err(Unfit::TooWide {
            needed: None,
            most: MOST_BITS,
        }),
    }
}

/// `above / below · 10^−from` in units of `10^−to`, rounded, halves away from zero; `None` if it does not fit. `below` is at least 1.
#[must_use]
pub fn round_ratio(above: i128, below: i128, from: u32, to: u32) -> Option<i128> {
    let (above, below) = if to >= from {
        (above.checked_mul(10_i128.checked_pow(to - from)?)?, below)
    } else {
        (above, below.checked_mul(10_i128.checked_pow(from - to)?)?)
    };
    let (whole, rest) = (above.checked_div(below)?, above.checked_rem(below)?);
    // Twice the rest may not fit: compare with what is missing to the divisor.
    let up = rest.unsigned_abs() >= below.unsigned_abs() - rest.unsigned_abs();
    whole.checked_add(if up { above.signum() } else { 0 })
}
