//! Types of expressions: exact ranges, places, nullability.
//!
//! A type is proved, never guessed: an operation whose result might not fit 128 bits is refused, with the expression in the message.

use std::sync::Arc;

use veil_numeric::{Applied, Function, FunctionError, Range, Scale};

use crate::calendar::{self, FIRST_DAY, LAST_DAY};
use crate::expr::{Arithmetic, Comparison, DatePart, Expr, Literal};
use crate::forest::Misfit;
use crate::kind::{Kind, MOST_PLACES, Type, Value};
use crate::schema::ColumnId;

/// Why an expression has no type. Each names the expression in its canonical text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A column that the relation does not have.
    #[error("there is no column #{} among {columns}", column.0)]
    NoColumn {
        /// The column.
        column: ColumnId,
        /// Number of columns.
        columns: usize,
    },
    /// An operand of another kind than the operation takes.
    #[error("`{expr}` takes {takes}, and not {found}")]
    Operand {
        /// The operation.
        expr: String,
        /// What it takes.
        takes: &'static str,
        /// What it was given.
        found: String,
    },
    /// Two operands that cannot stand together.
    #[error("`{expr}` takes operands of one kind, and not {left} and {right}")]
    Mixed {
        /// The operation.
        expr: String,
        /// The kind of one.
        left: String,
        /// The kind of the other.
        right: String,
    },
    /// A result that may not fit.
    #[error("`{expr}` may not fit 128 bits; declare narrower ranges, or round earlier")]
    TooWide {
        /// The operation.
        expr: String,
    },
    /// More places than a number may have.
    #[error("`{expr}` has {places} decimal places, and {MOST_PLACES} are the most; round earlier")]
    Places {
        /// The operation.
        expr: String,
        /// Its places.
        places: u32,
    },
    /// A date that may leave the calendar.
    #[error(
        "`{expr}` may be before {} or after {}",
        calendar::show(FIRST_DAY),
        calendar::show(LAST_DAY)
    )]
    Calendar {
        /// The operation.
        expr: String,
    },
    /// A divisor that may be 0.
    #[error("the divisor of `{expr}` may be 0; write `nullif(…, 0)`")]
    DivisorMayBeZero {
        /// The operation.
        expr: String,
    },
    /// A function of a number that it may have no value for.
    #[error("`{expr}` has no value for {excluded}, and its argument may be that")]
    NoValue {
        /// The function.
        expr: String,
        /// What it has no value for.
        excluded: &'static str,
    },
    /// A category with a value that a model does not know.
    #[error("model `{model}` does not know the value `{value}` of its feature `{feature}`")]
    Unknown {
        /// The model.
        model: String,
        /// The feature.
        feature: String,
        /// The value.
        value: String,
    },
    /// A public table whose length or values are not those of its kinds, or another part that does not fit.
    #[error("`{expr}` is not formed as it must be: {what}")]
    Form {
        /// The operation.
        expr: String,
        /// What is wrong.
        what: &'static str,
    },
}

/// A number or quotient: `above / below · 10^−places`.
struct Fraction {
    places: u32,
    above: Range,
    below: Option<Range>,
    integer: bool,
}

impl Fraction {
    fn of(kind: &Kind) -> Option<Self> {
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

/// Most decimal places of a function that has no exact values: polynomials are near it to some 14 digits.
pub const MOST_REAL_PLACES: u32 = 12;

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

impl Expr {
    /// The type of the expression over rows with columns of these types.
    ///
    /// # Errors
    /// [`TypeError`], with the smallest expression that has no type.
    pub fn ty(&self, columns: &[Type]) -> Result<Type, TypeError> {
        let kind_of = |expr: &Self| expr.ty(columns);
        let operand = |takes, found: &Kind| TypeError::Operand {
            expr: self.to_string(),
            takes,
            found: found.to_string(),
        };
        let too_wide = || TypeError::TooWide {
            expr: self.to_string(),
        };
        let condition = |expr: &Self| match kind_of(expr)? {
            Type {
                kind: Kind::Bool,
                nullable,
            } => Ok(nullable),
            other => Err(operand("conditions", &other.kind)),
        };
        match self {
            Self::Column(column, _) => {
                let found = columns.get(column.index()).cloned();
                found.ok_or(TypeError::NoColumn {
                    column: *column,
                    columns: columns.len(),
                })
            }
            Self::Literal(literal) => self.literal(literal),
            Self::Not(a) => Ok(Type::of(Kind::Bool).or_null(condition(a)?)),
            Self::And(all) | Self::Or(all) => {
                let mut ty = Type::of(Kind::Bool);
                for part in all {
                    ty = ty.or_null(condition(part)?);
                }
                Ok(ty)
            }
            Self::Compare(_, a, b) => {
                let (a, b) = (kind_of(a)?, kind_of(b)?);
                self.comparable(&a.kind, &b.kind)?;
                Ok(Type::of(Kind::Bool).or_null(a.nullable || b.nullable))
            }
            Self::IsNull(a) => kind_of(a).map(|_| Type::of(Kind::Bool)),
            Self::Arithmetic(sign, a, b) => {
                let (a, b) = (kind_of(a)?, kind_of(b)?);
                let kind = self.arithmetic_kind(*sign, &a.kind, &b.kind)?;
                Ok(Type::of(kind).or_null(a.nullable || b.nullable))
            }
            Self::Divide(a, b) => {
                let (above, below) = (kind_of(a)?, kind_of(b)?);
                let kind = self.quotient(&above.kind, &below.kind, b)?;
                Ok(Type::of(kind).or_null(above.nullable || below.nullable))
            }
            Self::Modulo(a, by) => {
                let ty = kind_of(a)?;
                let Kind::Integer(range) = ty.kind else {
                    return Err(operand("an integer", &ty.kind));
                };
                if *by < 1 {
                    return Err(self.form("the divisor of a remainder is at least 1"));
                }
                let low = range.min().min(0).max(1 - *by);
                let high = range.max().max(0).min(*by - 1);
                let range = Range::new(low, high).ok_or_else(too_wide)?;
                Ok(Type::of(Kind::Integer(range)).or_null(ty.nullable))
            }
            Self::Round(a, places) => {
                let ty = kind_of(a)?;
                let number = Fraction::of(&ty.kind).ok_or_else(|| operand("a number", &ty.kind))?;
                let units = number.rounded(*places).ok_or_else(too_wide)?;
                self.places(*places)?;
                let places = *places;
                Ok(Type::of(Kind::Decimal { places, units }).or_null(ty.nullable))
            }
            Self::Real(function, a, places) => {
                let ty = kind_of(a)?;
                if *places > MOST_REAL_PLACES {
                    return Err(self.form("a function has at most 12 decimal places"));
                }
                let applied = real(*function, a, &ty.kind, *places);
                let units = match applied {
                    Some(Ok(applied)) => applied.result(false),
                    Some(Err(FunctionError::Domain { excluded, .. })) => {
                        let expr = self.to_string();
                        return Err(TypeError::NoValue { expr, excluded });
                    }
                    Some(Err(_)) => return Err(too_wide()),
                    None => return Err(operand("a number", &ty.kind)),
                };
                let places = *places;
                Ok(Type::of(Kind::Decimal { places, units }).or_null(ty.nullable))
            }
            Self::Rescale(a, places) => {
                let ty = kind_of(a)?;
                let (from, units) = ty
                    .kind
                    .number()
                    .ok_or_else(|| operand("a number", &ty.kind))?;
                let more = places
                    .checked_sub(from)
                    .ok_or_else(|| self.form("places only become more"))?;
                self.places(*places)?;
                let units = units.shifted(more).ok_or_else(too_wide)?;
                let places = *places;
                Ok(Type::of(Kind::Decimal { places, units }).or_null(ty.nullable))
            }
            Self::AddDays(a, b) => {
                let (date, days) = (kind_of(a)?, kind_of(b)?);
                let Kind::Date(from) = date.kind else {
                    return Err(operand("a date", &date.kind));
                };
                let Kind::Integer(by) = days.kind else {
                    return Err(operand("an integer of days", &days.kind));
                };
                let range = from.plus(by).ok_or_else(too_wide)?;
                if range.min() < FIRST_DAY.into() || range.max() > LAST_DAY.into() {
                    let expr = self.to_string();
                    return Err(TypeError::Calendar { expr });
                }
                Ok(Type::of(Kind::Date(range)).or_null(date.nullable || days.nullable))
            }
            Self::DaysBetween(a, b) => match (kind_of(a)?, kind_of(b)?) {
                (
                    Type {
                        kind: Kind::Date(to),
                        nullable: one,
                    },
                    Type {
                        kind: Kind::Date(from),
                        nullable: other,
                    },
                ) => {
                    let range = to.minus(from).ok_or_else(too_wide)?;
                    Ok(Type::of(Kind::Integer(range)).or_null(one || other))
                }
                (a, b) => Err(self.mixed(&a.kind, &b.kind)),
            },
            Self::Extract(part, a) => {
                let ty = kind_of(a)?;
                let Kind::Date(range) = ty.kind else {
                    return Err(operand("a date", &ty.kind));
                };
                let (first, last) = (range.min() as i32, range.max() as i32);
                let (first, last) = (calendar::civil(first), calendar::civil(last));
                let range = match part {
                    DatePart::Year => Range::new(first.0.into(), last.0.into()),
                    DatePart::Month if first.0 == last.0 => {
                        Range::new(first.1.into(), last.1.into())
                    }
                    DatePart::Month => Range::new(1, 12),
                };
                Ok(Type::of(Kind::Integer(range.ok_or_else(too_wide)?)).or_null(ty.nullable))
            }
            Self::Lookup { of, kind, table } => {
                let ty = kind_of(of)?;
                let Kind::Category(values) = ty.kind else {
                    return Err(operand("a category", &ty.kind));
                };
                let fits = |value: &Value| *value == Value::Null || kind.holds(value);
                if table.len() != values.texts().len() || !table.iter().all(fits) {
                    return Err(self.form(
                        "a result for each value of the category, of the kind that it says",
                    ));
                }
                if matches!(kind, Kind::Ratio { .. } | Kind::Key { .. }) {
                    return Err(self.form("results are numbers, dates, categories or bools"));
                }
                let nulls = table.contains(&Value::Null);
                Ok(Type::of(kind.clone()).or_null(ty.nullable || nulls))
            }
            Self::Case {
                branches,
                otherwise,
            } => {
                let mut ty = kind_of(otherwise)?;
                for (when, then) in branches {
                    condition(when)?;
                    ty = self.either(&ty, &kind_of(then)?)?;
                }
                let ty = self.either(&ty, &ty)?;
                match extreme(branches, otherwise) {
                    Some((greatest, parts)) => {
                        let parts = [kind_of(parts[0])?, kind_of(parts[1])?];
                        Ok(narrowed(ty, greatest, &parts))
                    }
                    None => Ok(ty),
                }
            }
            Self::Coalesce(all) => {
                let Some((first, rest)) = all.split_first() else {
                    return Err(self.form("at least one operand"));
                };
                let mut ty = kind_of(first)?;
                let mut nullable = ty.nullable;
                for part in rest {
                    let other = kind_of(part)?;
                    nullable &= other.nullable;
                    ty = self.either(&ty, &other)?;
                }
                let kind = self.either(&ty, &ty)?.kind;
                Ok(Type { kind, nullable })
            }
            Self::NullIf(a, b) => {
                let (a, b) = (kind_of(a)?, kind_of(b)?);
                self.comparable(&a.kind, &b.kind)?;
                Ok(a.or_null(true))
            }
            Self::Predict { model, output, of } => {
                let types = of.iter().map(kind_of).collect::<Result<Vec<_>, _>>()?;
                model
                    .applied(*output, &types)
                    .map_err(|misfit| match misfit {
                        Misfit::Form(what) => self.form(what),
                        Misfit::Operand(takes, found) => operand(takes, &found),
                        Misfit::Value(feature, value) => TypeError::Unknown {
                            model: model.name().to_owned(),
                            feature,
                            value,
                        },
                    })
            }
        }
    }

    fn literal(&self, literal: &Literal) -> Result<Type, TypeError> {
        let kind = literal.kind();
        let well = match literal {
            Literal::Date(day) => (FIRST_DAY..=LAST_DAY).contains(day),
            Literal::Category { index, values } => usize::from(*index) < values.texts().len(),
            Literal::Decimal { places, .. } => *places <= MOST_PLACES,
            Literal::Integer(_) | Literal::Bool(_) | Literal::Null(_) => true,
        };
        if !well {
            return Err(self.form("a value of its kind"));
        }
        let null = matches!(literal, Literal::Null(_));
        Ok(Type::of(kind).or_null(null))
    }

    fn form(&self, what: &'static str) -> TypeError {
        let expr = self.to_string();
        TypeError::Form { expr, what }
    }

    fn mixed(&self, left: &Kind, right: &Kind) -> TypeError {
        TypeError::Mixed {
            expr: self.to_string(),
            left: left.to_string(),
            right: right.to_string(),
        }
    }

    fn places(&self, places: u32) -> Result<(), TypeError> {
        if places > MOST_PLACES {
            let expr = self.to_string();
            return Err(TypeError::Places { expr, places });
        }
        Ok(())
    }

    /// The type that holds cells of both.
    fn either(&self, one: &Type, other: &Type) -> Result<Type, TypeError> {
        let kind = one.kind.hull(&other.kind);
        let kind = kind.ok_or_else(|| self.mixed(&one.kind, &other.kind))?;
        Ok(Type::of(kind).or_null(one.nullable || other.nullable))
    }

    /// Looks whether two kinds compare, and whether what is compared fits: numbers at the places of both, numerators times denominators.
    fn comparable(&self, one: &Kind, other: &Kind) -> Result<(), TypeError> {
        if let (Some(a), Some(b)) = (Fraction::of(one), Fraction::of(other)) {
            let places = a.places.max(b.places);
            let crossed = |x: &Fraction, y: &Fraction| {
                let scaled = x.above.shifted(places - x.places)?;
                scaled.times(y.under())
            };
            return match (crossed(&a, &b), crossed(&b, &a)) {
                (Some(_), Some(_)) => Ok(()),
                _ => Err(TypeError::TooWide {
                    expr: self.to_string(),
                }),
            };
        }
        match (one, other) {
            (Kind::Key { .. }, _) | (_, Kind::Key { .. }) => {
                Err(self.form("a key is compared by joins only"))
            }
            _ if one.hull(other).is_some() => Ok(()),
            _ => Err(self.mixed(one, other)),
        }
    }

    fn arithmetic_kind(
        &self,
        sign: Arithmetic,
        one: &Kind,
        other: &Kind,
    ) -> Result<Kind, TypeError> {
        let number = |kind: &Kind| {
            Fraction::of(kind).ok_or_else(|| TypeError::Operand {
                expr: self.to_string(),
                takes: "numbers",
                found: kind.to_string(),
            })
        };
        let (a, b) = (number(one)?, number(other)?);
        let places = match sign {
            Arithmetic::Mul => a.places + b.places,
            Arithmetic::Add | Arithmetic::Sub => a.places.max(b.places),
        };
        self.places(places)?;
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
        let (above, below) = exact().ok_or_else(|| TypeError::TooWide {
            expr: self.to_string(),
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

    /// `(a/b · 10^−p) / (c/d · 10^−q) = (a·d·10^q) / (b·c) · 10^−p`, the sign moved above.
    fn quotient(&self, one: &Kind, other: &Kind, divisor: &Self) -> Result<Kind, TypeError> {
        let number = |kind: &Kind| {
            Fraction::of(kind).ok_or_else(|| TypeError::Operand {
                expr: self.to_string(),
                takes: "numbers",
                found: kind.to_string(),
            })
        };
        let (a, c) = (number(one)?, number(other)?);
        let never_zero = match divisor {
            Self::NullIf(_, zero) => **zero == Self::integer(0),
            _ => !c.above.contains(0),
        };
        if !never_zero {
            let expr = self.to_string();
            return Err(TypeError::DivisorMayBeZero { expr });
        }
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
        exact().ok_or_else(|| TypeError::TooWide {
            expr: self.to_string(),
        })
    }
}

/// The two operands of which a choice takes the larger one, or the smaller one: `case when a >= b then a else b`, where the second may also stand in the place of a null.
fn extreme<'e>(branches: &'e [(Expr, Expr)], otherwise: &'e Expr) -> Option<(bool, [&'e Expr; 2])> {
    let [(Expr::Compare(sign, x, y), then)] = branches else {
        return None;
    };
    let other = match otherwise {
        Expr::Coalesce(parts) => match parts.as_slice() {
            [other, again] if same(again, then) => other,
            _ => return None,
        },
        other => other,
    };
    let first = same(then, x) && same(other, y);
    let second = same(then, y) && same(other, x);
    let greatest = match sign {
        Comparison::Ge | Comparison::Gt => first,
        Comparison::Le | Comparison::Lt => second,
        Comparison::Eq | Comparison::Ne => return None,
    };
    (first || second).then_some((greatest, [then, other]))
}

/// Whether two expressions have one value, whatever places they have it with.
fn same(a: &Expr, b: &Expr) -> bool {
    fn bare(of: &Expr) -> &Expr {
        match of {
            Expr::Rescale(inner, _) => bare(inner),
            other => other,
        }
    }
    let (a, b) = (bare(a), bare(b));
    let number = |of: &Expr| match of {
        Expr::Literal(Literal::Integer(number)) => Some((*number, 0)),
        Expr::Literal(Literal::Decimal { units, places }) => Some((*units, *places)),
        _ => None,
    };
    let scaled = |units: i128, by: u32| units.checked_mul(10_i128.checked_pow(by)?);
    match (number(a), number(b)) {
        (Some((x, p)), Some((y, q))) => {
            let (x, y) = (scaled(x, q), scaled(y, p));
            x.is_some() && x == y
        }
        _ => a == b,
    }
}

/// The larger of two numbers is at least the least of each that is never null; the smaller likewise.
fn narrowed(ty: Type, greatest: bool, parts: &[Type]) -> Type {
    let of = |range: Range| {
        let there = parts.iter().filter(|part| !part.nullable);
        let ends = there.filter_map(|part| part.kind.range());
        let (mut min, mut max) = (range.min(), range.max());
        for end in ends {
            if greatest {
                min = min.max(end.min());
            } else {
                max = max.min(end.max());
            }
        }
        Range::new(min, max).unwrap_or(range)
    };
    let kind = match ty.kind {
        Kind::Integer(range) => Kind::Integer(of(range)),
        Kind::Decimal { places, units } => Kind::Decimal {
            places,
            units: of(units),
        },
        Kind::Date(range) => Kind::Date(of(range)),
        other => other,
    };
    Type { kind, ..ty }
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
