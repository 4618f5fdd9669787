//! Ranges that are refused: what an operation would need, what its operands may be, and what to write instead.
//!
//! A remedy is offered only if the operation has a type with it: each was tried on the kinds of the operands.

use std::fmt;

use num_bigint::BigInt;

use crate::calendar::{self, FIRST_DAY, LAST_DAY};
use crate::kind::{Kind, MOST_PLACES, Type};
use crate::place::At;
use crate::remedy::{Change, Remedy};
use veil_numeric::Range;

/// Bits of an integer that a number may take.
pub const MOST_BITS: u32 = 128;

/// An operation that is refused for the ranges of its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeError {
    /// The operation, as SQL writes it: `*`, `ln`, `sum`.
    pub operation: &'static str,
    /// The same with its operands, which are `x` and `y`.
    pub written: String,
    /// What the operands may be, in their order; one for both if they are the same.
    pub operands: Vec<Operand>,
    /// What is wrong.
    pub unfit: Unfit,
    /// What to do, each alone, the gentlest first.
    pub remedies: Vec<Remedy>,
    /// Where it is written, if that is known.
    pub at: At,
}

/// What an operand may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its kind, with the range.
    pub kind: Kind,
    /// Decimal places to which a quotient was rounded before.
    pub rounded: Option<u32>,
}

impl From<&Kind> for Operand {
    fn from(kind: &Kind) -> Self {
        Self {
            kind: kind.clone(),
            rounded: None,
        }
    }
}

/// Why an operation is refused for the ranges of its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// The result, or a number on the way to it, may not fit.
    TooWide {
        /// Bits that it may take, if they are known.
        needed: Option<u32>,
        /// Bits that there are.
        most: u32,
    },
    /// The result has more decimal places than a number has.
    Places {
        /// Its places.
        places: u32,
    },
    /// The divisor may be 0.
    DivisorMayBeZero,
    /// The function has no value for a number that the argument may be.
    NoValue {
        /// What it has no value for.
        excluded: &'static str,
    },
    /// A date may leave the calendar.
    Calendar,
}

/// Names of operands.
pub(crate) const NAMES: [&str; 2] = ["x", "y"];

impl fmt::Display for RangeError {
    /// What is refused, and for which ranges; not what to write instead.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = &self.written;
        match &self.unfit {
            Unfit::TooWide {
                needed: Some(needed),
                most,
            } => write!(
                f,
                "`{written}` may take {needed} bits, and there are {most}"
            )?,
            Unfit::TooWide { needed: None, most } => {
                write!(
                    f,
                    "`{written}` may take more than the {most} bits that there are"
                )?;
            }
            Unfit::Places { places } => write!(
                f,
                "`{written}` has {places} decimal places, and {MOST_PLACES} are the most"
            )?,
            Unfit::DivisorMayBeZero => write!(
                f,
                "`{written}` has no value where {} is 0",
                NAMES[self.operands.len().saturating_sub(1).min(1)]
            )?,
            Unfit::NoValue { excluded } => write!(f, "`{written}` has no value for {excluded}")?,
            Unfit::Calendar => write!(
                f,
                "`{written}` may be before {} or after {}",
                calendar::show(FIRST_DAY),
                calendar::show(LAST_DAY)
            )?,
        }
        for (at, operand) in self.operands.iter().enumerate() {
            let before = if at == 0 { ';' } else { ',' };
            let name = NAMES[at.min(1)];
            write!(f, "{before} {name} is {}", Bounds(&operand.kind))?;
        }
        Ok(())
    }
}

impl std::error::Error for RangeError {}

impl RangeError {
    /// What to write instead, in a sentence of SQL; empty if nothing is known to help.
    #[must_use]
    pub fn instead(&self) -> String {
        self.sentence(&|remedy| remedy.sql(&self.operands))
    }

    /// The same in Python.
    #[must_use]
    pub fn instead_in_python(&self) -> String {
        self.sentence(&|remedy| remedy.python(&self.operands))
    }

    fn sentence(&self, text: &dyn Fn(&Remedy) -> String) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut before: Option<usize> = None;
        for (at, remedy) in self.remedies.iter().enumerate() {
            let word = if matches!(remedy, Remedy::Change { .. }) {
                "write "
            } else {
                ""
            };
            let word = if before.is_some() && before == remedy.operand() {
                ""
            } else {
                word
            };
            before = remedy.operand();
            let next = self.remedies.get(at + 1).and_then(Remedy::operand);
            let of = match before {
                Some(operand) if next != Some(operand) => {
                    format!(" in the place of {}", NAMES[operand.min(1)])
                }
                _ => String::new(),
            };
            parts.push(format!("{word}{}{of}", text(remedy)));
        }
        parts.join(", or ")
    }

    /// The range of each operand: kind, least and greatest value in words.
    #[must_use]
    pub fn ranges(&self) -> Vec<(&'static str, String, String)> {
        let of = |operand: &Operand| {
            let (least, greatest) = ends(&operand.kind);
            let kind = match operand.kind {
                Kind::Integer(_) => "integer",
                Kind::Date(_) => "date",
                _ => "decimal",
            };
            (kind, least, greatest)
        };
        self.operands.iter().map(of).collect()
    }
}

/// The range of a kind in the units of people: decimals, dates.
pub struct Bounds<'k>(pub &'k Kind);

impl fmt::Display for Bounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Category(_) | Kind::Bool | Kind::Key { .. } => return self.0.fmt(f),
            Kind::Ratio { .. } => f.write_str("a quotient from ")?,
            Kind::Integer(_) | Kind::Decimal { .. } | Kind::Date(_) => {}
        }
        let (least, greatest) = ends(self.0);
        if least == greatest {
            f.write_str(&least)
        } else {
            write!(f, "{least} to {greatest}")
        }
    }
}

/// Decimal places by which the ends of a quotient are shown, rounded outwards.
const SHOWN_PLACES: u32 = 6;

/// The least and the greatest value of a number or date, in words.
fn ends(kind: &Kind) -> (String, String) {
    let both = |range: Range, of: &dyn Fn(i128) -> String| (of(range.min()), of(range.max()));
    match kind {
        Kind::Integer(range) => both(*range, &|end| end.to_string()),
        Kind::Decimal { places, units } => both(*units, &|end| decimal(&end.into(), *places)),
        Kind::Date(days) => both(*days, &|day| {
            calendar::show(i32::try_from(day).unwrap_or(LAST_DAY))
        }),
        Kind::Ratio {
            places,
            above,
            below,
        } => {
            let over = |above: i128, down: bool| {
                let ends = [below.min(), below.max()].map(|below| {
                    let (above, below) = (BigInt::from(above), BigInt::from(below));
                    let above = above * BigInt::from(10).pow(SHOWN_PLACES);
                    let below = below * BigInt::from(10).pow(*places);
                    floor(&if down { above } else { -above }, &below)
                });
                let [one, other] = ends;
                let least = one.min(other);
                decimal(&if down { least } else { -least }, SHOWN_PLACES)
            };
            (over(above.min(), true), over(above.max(), false))
        }
        Kind::Category(_) | Kind::Bool | Kind::Key { .. } => (String::new(), String::new()),
    }
}

/// The quotient by a positive number, rounded down.
fn floor(above: &BigInt, below: &BigInt) -> BigInt {
    let quotient = above / below;
    if above < &(&quotient * below) {
        quotient - 1
    } else {
        quotient
    }
}

/// `units · 10^−places` in words.
pub(crate) fn decimal(units: &BigInt, places: u32) -> String {
    let (sign, digits) = (units.sign(), units.magnitude().to_string());
    let places = places as usize;
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, rest) = digits.split_at(digits.len() - places);
    let sign = if sign == num_bigint::Sign::Minus {
        "-"
    } else {
        ""
    };
    let point = if places == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{rest}")
}

/// An operation whose operands are known, before it is known what helps.
pub(crate) struct Attempt<'a> {
    pub(crate) operation: &'static str,
    pub(crate) written: String,
    pub(crate) operands: Vec<Operand>,
    pub(crate) at: At,
    /// Whether the operation has a type for operands of these kinds.
    pub(crate) fits: &'a dyn Fn(&[Kind]) -> bool,
}

impl Attempt<'_> {
    /// The refusal, with what helps.
    pub(crate) fn refused(self, unfit: Unfit) -> Box<RangeError> {
        let remedies = crate::remedy::remedies(&self.operands, &unfit, self.fits);
        Box::new(RangeError {
            operation: self.operation,
            written: self.written,
            operands: self.operands,
            unfit,
            remedies,
            at: self.at,
        })
    }
}

/// Bits that are more than there are.
pub(crate) fn too_wide(needed: u32) -> Unfit {
    Unfit::TooWide {
        needed: (needed > MOST_BITS).then_some(needed),
        most: MOST_BITS,
    }
}

/// A rounding that may not fit, of a number that may be fit for fewer places.
pub(crate) fn fewer_places(
    mut refused: Box<RangeError>,
    (kind, places): (&Kind, u32),
) -> Box<RangeError> {
    let fits = |places: &u32| crate::fraction::round(kind, *places).is_ok();
    if let Some(places) = (0..places.min(MOST_PLACES + 1)).rev().find(fits) {
        refused.remedies.insert(0, Remedy::Fewer(places));
    }
    refused
}

/// An aggregate over so many rows that may not fit.
pub(crate) fn over_rows(
    (operation, needed): (&'static str, u32),
    (ty, at): (&Type, At),
    rows: u64,
    fits: &dyn Fn(&Kind, u64) -> bool,
) -> Box<RangeError> {
    let kinds = |kinds: &[Kind]| kinds.first().is_some_and(|kind| fits(kind, rows));
    let attempt = Attempt {
        operation,
        written: format!("{operation}(x) over {rows} rows"),
        operands: vec![(&ty.kind).into()],
        at,
        fits: &kinds,
    };
    let mut refused = attempt.refused(too_wide(needed));
    let most = crate::remedy::most(rows, &|rows| fits(&ty.kind, rows));
    if let Some(most) = most {
        // Before what is always left.
        let last = refused.remedies.len().saturating_sub(1);
        refused.remedies.insert(last, Remedy::Rows(most));
    }
    refused
}

impl Change {
    /// The kind of an operand with the change; nothing if it has none.
    pub(crate) fn of(&self, kind: &Kind) -> Option<Kind> {
        let within = |low: Option<i128>, high: Option<i128>| {
            let cut = |range: Range| {
                let low = low.map_or(range.min(), |low| low.max(range.min()));
                let high = high.map_or(range.max(), |high| high.min(range.max()));
                Range::new(low, high)
            };
            Some(match kind {
                Kind::Integer(range) => Kind::Integer(cut(*range)?),
                Kind::Decimal { places, units } => Kind::Decimal {
                    places: *places,
                    units: cut(*units)?,
                },
                _ => return None,
            })
        };
        match self {
            Self::Round(places) => {
                let units = crate::fraction::rounded(kind, *places)?;
                let places = *places;
                Some(Kind::Decimal { places, units })
            }
            Self::AtLeast(low) => within(low.in_units(kind), None),
            Self::AtMost(high) => within(None, high.in_units(kind)),
            Self::Between(low, high) => within(low.in_units(kind), high.in_units(kind)),
            Self::NotZero => match kind.number() {
                Some((_, units)) if units.min() == 0 => within(Some(1), None),
                _ => Some(kind.clone()),
            },
        }
    }
}
