//! Types of expressions: exact ranges, places, nullability.
//!
//! A type is proved, never guessed: an operation whose result might not fit 128 bits is refused, with the expression in the message.

use veil_numeric::Range;

use crate::calendar::{self, FIRST_DAY, LAST_DAY};
use crate::expr::{Arithmetic, Comparison, DatePart, Expr, Literal, MOST_POINTS};
use crate::forest::Misfit;
use crate::fraction::{self, Fraction};
use crate::kind::{Kind, MOST_PLACES, Type, Value};
use crate::range_error::{Attempt, Operand, RangeError, Unfit, fewer_places};
use crate::schema::ColumnId;

/// Why an expression has no type. Each names the operation: by its canonical text, or with what its operands may be.
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
    /// An operation that is refused for the ranges of its operands.
    #[error("{0}")]
    Range(Box<RangeError>),
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

/// Most decimal places of a function that has no exact values: polynomials are near it to some 14 digits.
pub const MOST_REAL_PLACES: u32 = 12;

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
                let kind = self.arithmetic_kind(*sign, [&a.kind, &b.kind])?;
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
                // Neither end is beyond the other: both are 0 or of the divisor.
                let range = Range::new(low, high).unwrap_or(Range::point(0));
                Ok(Type::of(Kind::Integer(range)).or_null(ty.nullable))
            }
            Self::Round(a, places) => {
                let ty = kind_of(a)?;
                if Fraction::of(&ty.kind).is_none() {
                    return Err(operand("a number", &ty.kind));
                }
                let rounded = |kind: &Kind| fraction::round(kind, *places);
                let written = format!("round(x, {places})");
                let kind = self.of_one("round", written, &ty.kind, &rounded);
                let kind = kind.map_err(|error| match error {
                    TypeError::Range(range) => {
                        TypeError::Range(fewer_places(range, (&ty.kind, *places)))
                    }
                    other => other,
                })?;
                Ok(Type::of(kind).or_null(ty.nullable))
            }
            Self::Real(function, a, places) => {
                let ty = kind_of(a)?;
                if *places > MOST_REAL_PLACES {
                    return Err(self.form("a function has at most 12 decimal places"));
                }
                if ty.kind.number().is_none() {
                    return Err(operand("a number", &ty.kind));
                }
                let name = function.name();
                let applied = |kind: &Kind| fraction::applied(*function, a, kind, *places);
                let kind = applied(&ty.kind).map_err(|unfit| {
                    let attempt = Attempt {
                        operation: name,
                        written: format!("{name}(x)"),
                        operands: vec![rounded_operand(a, &ty.kind, columns)],
                        at: self.written(),
                        fits: &|kinds| kinds.first().is_some_and(|kind| applied(kind).is_ok()),
                    };
                    TypeError::Range(attempt.refused(unfit))
                })?;
                Ok(Type::of(kind).or_null(ty.nullable))
            }
            Self::Rescale(a, places) => {
                let ty = kind_of(a)?;
                let (from, _) = ty
                    .kind
                    .number()
                    .ok_or_else(|| operand("a number", &ty.kind))?;
                if *places < from {
                    return Err(self.form("places only become more"));
                }
                let written = format!("x with {places} places");
                let kind = self.of_one("cast", written, &ty.kind, &|kind| {
                    fraction::round(kind, *places)
                })?;
                Ok(Type::of(kind).or_null(ty.nullable))
            }
            Self::AddDays(a, b) => {
                let (date, days) = (kind_of(a)?, kind_of(b)?);
                let Kind::Date(from) = date.kind else {
                    return Err(operand("a date", &date.kind));
                };
                let Kind::Integer(_) = days.kind else {
                    return Err(operand("an integer of days", &days.kind));
                };
                let kinds = [&date.kind, &days.kind];
                let written = "x + y days".to_owned();
                let kind = self.of_two("+", written, kinds, &|kinds| match kinds {
                    [Kind::Date(_), Kind::Integer(by)] => {
                        fraction::later(from, *by).ok_or(Unfit::Calendar)
                    }
                    _ => Err(Unfit::Calendar),
                })?;
                Ok(Type::of(kind).or_null(date.nullable || days.nullable))
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
                    let range = to.minus(from).ok_or_else(|| self.form("dates"))?;
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
                let range = range.ok_or_else(|| self.form("a date"))?;
                Ok(Type::of(Kind::Integer(range)).or_null(ty.nullable))
            }
            Self::Lookup {
                of,
                first,
                kind,
                table,
            } => {
                let ty = kind_of(of)?;
                let fits = |value: &Value| *value == Value::Null || kind.holds(value);
                match (&ty.kind, ty.kind.number()) {
                    (Kind::Category(values), _) => {
                        let whole = *first == 0 && table.len() == values.texts().len();
                        if !whole || !table.iter().all(fits) {
                            return Err(self.form(
                                "a result for each value of the category, of the kind that it says",
                            ));
                        }
                    }
                    (_, Some((_, range))) => {
                        let end = first.checked_add(table.len() as i128);
                        let within =
                            *first <= range.min() && end.is_some_and(|end| range.max() < end);
                        if table.len() > MOST_POINTS || !within || !table.iter().all(fits) {
                            return Err(self.form(
                                "a result for each number of the operand's range, of the kind that it says, and 4096 at most",
                            ));
                        }
                    }
                    _ => return Err(operand("a category or a number", &ty.kind)),
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

    /// The type that holds cells of both.
    fn either(&self, one: &Type, other: &Type) -> Result<Type, TypeError> {
        let kind = one.kind.hull(&other.kind);
        let kind = kind.ok_or_else(|| self.mixed(&one.kind, &other.kind))?;
        Ok(Type::of(kind).or_null(one.nullable || other.nullable))
    }

    /// Looks whether two kinds compare, and whether what is compared fits: numbers at the places of both, numerators times denominators.
    fn comparable(&self, one: &Kind, other: &Kind) -> Result<(), TypeError> {
        if let (Some(_), Some(_)) = (Fraction::of(one), Fraction::of(other)) {
            let sign = match self {
                Self::Compare(sign, ..) => sign.sign(),
                _ => Comparison::Eq.sign(),
            };
            let written = self.binary_text(sign);
            let compared = |kinds: [&Kind; 2]| fraction::compared(kinds).map(|()| Kind::Bool);
            return self
                .of_two(sign, written, [one, other], &compared)
                .map(|_| ());
        }
        match (one, other) {
            (Kind::Key { .. }, _) | (_, Kind::Key { .. }) => {
                Err(self.form("a key is compared by joins only"))
            }
            _ if one.hull(other).is_some() => Ok(()),
            _ => Err(self.mixed(one, other)),
        }
    }

    fn arithmetic_kind(&self, sign: Arithmetic, kinds: [&Kind; 2]) -> Result<Kind, TypeError> {
        self.numbers(kinds)?;
        let written = self.binary_text(sign.sign());
        self.of_two(sign.sign(), written, kinds, &|kinds| {
            fraction::arithmetic(sign, kinds)
        })
    }

    fn quotient(&self, one: &Kind, other: &Kind, divisor: &Self) -> Result<Kind, TypeError> {
        self.numbers([one, other])?;
        let nullif = matches!(divisor, Self::NullIf(_, zero) if **zero == Self::integer(0));
        let quotient = |kinds: [&Kind; 2], nullif: bool| {
            if !nullif && fraction::may_be_zero(kinds[1]) {
                return Err(Unfit::DivisorMayBeZero);
            }
            fraction::quotient(kinds)
        };
        let unfit = match quotient([one, other], nullif) {
            Ok(kind) => return Ok(kind),
            Err(unfit) => unfit,
        };
        // What keeps the divisor from 0 by a null has no other range, and what is cut leaves 0 out.
        let cut = |kind: &Kind| unfit == Unfit::DivisorMayBeZero && kind == other;
        let fits = |kinds: &[Kind]| match kinds {
            [a, b] => quotient([a, b], nullif || cut(b)).is_ok(),
            [a] => quotient([a, a], nullif || cut(a)).is_ok(),
            _ => false,
        };
        let attempt = Attempt {
            operation: "/",
            written: self.binary_text("/"),
            operands: self.operands_of([one, other]),
            at: self.written(),
            fits: &fits,
        };
        Err(TypeError::Range(attempt.refused(unfit.clone())))
    }

    fn numbers(&self, kinds: [&Kind; 2]) -> Result<(), TypeError> {
        let wrong = kinds.into_iter().find(|kind| Fraction::of(kind).is_none());
        wrong.map_or(Ok(()), |kind| {
            Err(TypeError::Operand {
                expr: self.to_string(),
                takes: "numbers",
                found: kind.to_string(),
            })
        })
    }

    /// Whether both operands are one expression, so that a message has one range of both.
    fn is_of_one(&self) -> bool {
        matches!(self.operands().as_slice(), [a, b] if a == b)
    }

    fn binary_text(&self, sign: &str) -> String {
        let second = if self.is_of_one() { "x" } else { "y" };
        format!("x {sign} {second}")
    }

    fn operands_of(&self, kinds: [&Kind; 2]) -> Vec<Operand> {
        let shown = if self.is_of_one() { 1 } else { 2 };
        kinds.into_iter().take(shown).map(Operand::from).collect()
    }

    /// The kind of an operation of one operand, or its refusal.
    fn of_one(
        &self,
        operation: &'static str,
        written: String,
        kind: &Kind,
        of: &dyn Fn(&Kind) -> Result<Kind, Unfit>,
    ) -> Result<Kind, TypeError> {
        of(kind).map_err(|unfit| {
            let attempt = Attempt {
                operation,
                written,
                operands: vec![kind.into()],
                at: self.written(),
                fits: &|kinds| kinds.first().is_some_and(|kind| of(kind).is_ok()),
            };
            TypeError::Range(attempt.refused(unfit))
        })
    }

    /// The same of two operands.
    fn of_two(
        &self,
        operation: &'static str,
        written: String,
        kinds: [&Kind; 2],
        of: &dyn Fn([&Kind; 2]) -> Result<Kind, Unfit>,
    ) -> Result<Kind, TypeError> {
        of(kinds).map_err(|unfit| {
            let fits = |kinds: &[Kind]| match kinds {
                [a, b] => of([a, b]).is_ok(),
                [a] => of([a, a]).is_ok(),
                _ => false,
            };
            let attempt = Attempt {
                operation,
                written,
                operands: self.operands_of(kinds),
                at: self.written(),
                fits: &fits,
            };
            TypeError::Range(attempt.refused(unfit))
        })
    }
}

/// The argument of a function: of a quotient that was rounded before, with the places.
fn rounded_operand(of: &Expr, kind: &Kind, columns: &[Type]) -> Operand {
    let rounded = match of {
        Expr::Round(inner, places) => {
            let quotient = inner
                .ty(columns)
                .map(|ty| matches!(ty.kind, Kind::Ratio { .. }));
            quotient.unwrap_or(false).then_some(*places)
        }
        _ => None,
    };
    let kind = kind.clone();
    Operand { kind, rounded }
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
        _ if a == b => true,
        (Some((x, p)), Some((y, q))) => {
            let (x, y) = (scaled(x, q), scaled(y, p));
            x.is_some() && x == y
        }
        _ => false,
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
