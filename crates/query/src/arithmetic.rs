//! Binds arithmetic of numbers and dates, and casts.

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::scalar::Scope;
use crate::term::Term;
use crate::walk;
use sqlparser::ast::{self, BinaryOperator, DataType, ExactNumberInfo, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{Arithmetic, Comparison, Expr, Kind, Literal, Type};

impl Binder<'_> {
    pub(crate) fn typed_string(
        &self,
        typed: &ast::TypedString,
        at: Span,
    ) -> Result<Term, SqlError> {
        let ast::TypedString {
            data_type,
            value,
            uses_odbc_syntax,
        } = typed;
        if let (DataType::Date, ast::Value::SingleQuotedString(text), false) =
            (data_type, &value.value, uses_odbc_syntax)
        {
            let expr = self.terms(value.span).date(text)?;
            let ty = expr.ty(&[]);
            let ty = ty.map_err(|wrong| self.source.error(at, Problem::Type(wrong)))?;
            return Ok(Term::Expr(expr, ty));
        }
        let what = format!("a literal of type {data_type} is not in the dialect");
        Err(self.source.refused(at, what, Some("DATE '2025-03-14' is")))
    }

    pub(crate) fn interval(&self, interval: &ast::Interval, at: Span) -> Result<Term, SqlError> {
        let ast::Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let at = if at.start.line == 0 { value.span() } else { at };
        let refused = || {
            let instead = "write INTERVAL '30' DAY, MONTH or YEAR";
            self.source
                .refused(at, "this interval is not in the dialect", Some(instead))
        };
        if leading_precision.is_some()
            || last_field.is_some()
            || fractional_seconds_precision.is_some()
        {
            return Err(refused());
        }
        let text = match &**value {
            ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::SingleQuotedString(text),
                ..
            }) => text.trim(),
            _ => return Err(refused()),
        };
        let (count, unit) = match (leading_field, text.split_once(' ')) {
            (Some(field), None) => (text, field.to_string()),
            (None, Some((count, unit))) => (count, unit.trim().to_uppercase()),
            _ => return Err(refused()),
        };
        // More than the calendar has days would leave it anyway.
        let count: i32 = count.parse().map_err(|_| refused())?;
        if count.unsigned_abs() > 4_000_000 {
            return Err(refused());
        }
        match unit.trim_end_matches('S') {
            "DAY" => Ok(Term::Days(count.into())),
            "WEEK" => Ok(Term::Days(i128::from(count) * 7)),
            "MONTH" => Ok(Term::Months(count)),
            "YEAR" => count.checked_mul(12).map(Term::Months).ok_or_else(refused),
            _ => Err(refused()),
        }
    }

    pub(crate) fn number(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
    ) -> Result<(Expr, Type), SqlError> {
        let (expr, ty) = self.value(scope, of)?;
        match ty.kind {
            Kind::Integer(_) | Kind::Decimal { .. } | Kind::Ratio { .. } => Ok((expr, ty)),
            other => Err(self.source.refused(
                of.span(),
                format!("a number stands here, and no {other}"),
                None,
            )),
        }
    }

    pub(crate) fn negated(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        let (expr, _) = self.number(scope, of)?;
        Ok(match expr {
            Expr::Literal(Literal::Integer(value)) => Expr::integer(-value),
            Expr::Literal(Literal::Decimal { units, places }) => Expr::Literal(Literal::Decimal {
                units: -units,
                places,
            }),
            other => Expr::arithmetic(Arithmetic::Sub, Expr::integer(0), other),
        })
    }

    pub(crate) fn binary(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        [left, right]: [&ast::Expr; 2],
        sign: &BinaryOperator,
    ) -> Result<Term, SqlError> {
        let at = of.span();
        let comparison = match sign {
            BinaryOperator::And | BinaryOperator::Or => {
                let parts = walk::chain(of, sign);
                let parts = parts.into_iter().map(|part| self.condition(scope, part));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let expr = if *sign == BinaryOperator::And {
                    Expr::And(parts)
                } else {
                    Expr::Or(parts)
                };
                return self.checked(expr, scope, at);
            }
            BinaryOperator::Eq => Some(Comparison::Eq),
            BinaryOperator::NotEq => Some(Comparison::Ne),
            BinaryOperator::Lt => Some(Comparison::Lt),
            BinaryOperator::LtEq => Some(Comparison::Le),
            BinaryOperator::Gt => Some(Comparison::Gt),
            BinaryOperator::GtEq => Some(Comparison::Ge),
            _ => None,
        };
        let [a, b] = [self.term(scope, left)?, self.term(scope, right)?];
        let expr = match (comparison, sign) {
            (Some(comparison), _) => self.terms(at).compare(comparison, a, b)?,
            (_, BinaryOperator::Plus) => self.sum(a, b, false, at)?,
            (_, BinaryOperator::Minus) => self.sum(a, b, true, at)?,
            (_, BinaryOperator::Multiply) => {
                let [(a, _), (b, _)] = [
                    self.terms(left.span()).typed(a)?,
                    self.terms(right.span()).typed(b)?,
                ];
                Expr::arithmetic(Arithmetic::Mul, a, b)
            }
            (_, BinaryOperator::Divide) => {
                let [(a, x), (b, y)] = [
                    self.terms(left.span()).typed(a)?,
                    self.terms(right.span()).typed(b)?,
                ];
                if matches!((&x.kind, &y.kind), (Kind::Integer(_), Kind::Integer(_))) {
                    return Err(self.source.refused(
                        at,
                        "a quotient of integers would be cut to an integer",
                        Some("write CAST(… AS decimal(18, 0)) / … for the exact quotient"),
                    ));
                }
                Expr::Divide(Box::new(a), Box::new(b))
            }
            (_, BinaryOperator::Modulo) => match self.terms(right.span()).typed(b)?.0 {
                Expr::Literal(Literal::Integer(by)) if by >= 1 => {
                    Expr::Modulo(Box::new(self.terms(left.span()).typed(a)?.0), by)
                }
                _ => {
                    return Err(self.source.refused(
                        right.span(),
                        "% takes a public integer from 1 on",
                        None,
                    ));
                }
            },
            (_, other) => return Err(self.sign(other, at)),
        };
        self.checked(expr, scope, at)
    }

    /// A sum or difference of numbers, dates, days and intervals.
    pub(crate) fn sum(&self, a: Term, b: Term, minus: bool, at: Span) -> Result<Expr, SqlError> {
        let terms = self.terms(at);
        let days = |date: Expr, days: i128| {
            Expr::AddDays(
                Box::new(date),
                Box::new(Expr::integer(if minus { -days } else { days })),
            )
        };
        match (a, b) {
            (Term::Days(by), other) if !minus => {
                let (date, _) = terms.typed(other)?;
                Ok(days(date, by))
            }
            (other, Term::Days(by)) => {
                let (date, _) = terms.typed(other)?;
                Ok(days(date, by))
            }
            (Term::Months(by), Term::Expr(Expr::Literal(Literal::Date(of)), _)) if !minus => {
                self.months(of, by, at)
            }
            (Term::Expr(Expr::Literal(Literal::Date(of)), _), Term::Months(by)) => {
                self.months(of, if minus { -by } else { by }, at)
            }
            (Term::Months(_), _) | (_, Term::Months(_)) => Err(self.source.refused(
                at,
                "months and years are added to public dates only",
                Some("write a number of days: INTERVAL '90' DAY"),
            )),
            (a, b) => {
                let [(a, x), (b, y)] = [terms.typed(a)?, terms.typed(b)?];
                Ok(match (&x.kind, &y.kind) {
                    (Kind::Date(_), Kind::Date(_)) if minus => {
                        Expr::DaysBetween(Box::new(a), Box::new(b))
                    }
                    (Kind::Date(_), Kind::Integer(_)) if minus => {
                        let back = Expr::arithmetic(Arithmetic::Sub, Expr::integer(0), b);
                        Expr::AddDays(Box::new(a), Box::new(back))
                    }
                    (Kind::Date(_), Kind::Integer(_)) => Expr::AddDays(Box::new(a), Box::new(b)),
                    (Kind::Integer(_), Kind::Date(_)) if !minus => {
                        Expr::AddDays(Box::new(b), Box::new(a))
                    }
                    _ => Expr::arithmetic(
                        if minus {
                            Arithmetic::Sub
                        } else {
                            Arithmetic::Add
                        },
                        a,
                        b,
                    ),
                })
            }
        }
    }

    pub(crate) fn months(&self, of: i32, by: i32, at: Span) -> Result<Expr, SqlError> {
        let day = veil_relation::calendar::plus_months(of, by);
        let day = day.ok_or_else(|| {
            self.source
                .refused(at, "this date leaves the calendar", None)
        })?;
        Ok(Expr::Literal(Literal::Date(day)))
    }

    pub(crate) fn cast(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        to: &DataType,
        at: Span,
    ) -> Result<Term, SqlError> {
        let term = self.term(scope, of)?;
        let lossy = |this: &Self, what: String| {
            Err(this.source.refused(
                at,
                what,
                Some("casts that may lose are not in the dialect; round(…, places) is"),
            ))
        };
        if let (Term::Text(text), DataType::Date) = (&term, to) {
            let date = self.terms(at).date(text)?;
            return self.checked(date, scope, at);
        }
        let (expr, ty) = self.terms(of.span()).typed(term)?;
        match (to, &ty.kind) {
            (DataType::Date, Kind::Date(_)) | (DataType::Boolean | DataType::Bool, Kind::Bool) => {
                Ok(Term::Expr(expr, ty))
            }
            (
                DataType::Int(None) | DataType::Integer(None) | DataType::BigInt(None),
                Kind::Integer(range),
            ) => {
                let bits = if matches!(to, DataType::BigInt(_)) {
                    63
                } else {
                    31
                };
                if range.min() < -(1_i128 << bits) || range.max() >= 1_i128 << bits {
                    return lossy(self, format!("this integer may not fit {to}"));
                }
                Ok(Term::Expr(expr, ty))
            }
            (
                DataType::Numeric(info) | DataType::Decimal(info) | DataType::Dec(info),
                Kind::Integer(_) | Kind::Decimal { .. },
            ) => {
                let Some((from, units)) = ty.kind.number() else {
                    return lossy(self, format!("a {} is not cast to {to}", ty.kind));
                };
                let (digits, places) = match *info {
                    ExactNumberInfo::None => (None, from),
                    ExactNumberInfo::Precision(digits) => (Some(digits), 0),
                    ExactNumberInfo::PrecisionAndScale(digits, places) => {
                        (Some(digits), u32::try_from(places).unwrap_or(0))
                    }
                };
                let fits = |digits: u64| {
                    let most = u32::try_from(digits)
                        .ok()
                        .and_then(|digits| 10_i128.checked_pow(digits));
                    let widest = units
                        .shifted(places - from)
                        .and_then(veil_relation::Range::magnitude);
                    most.is_none_or(|most| widest.is_some_and(|widest| widest < most))
                };
                if places < from || !digits.is_none_or(fits) {
                    return lossy(self, format!("this number may not fit {to}"));
                }
                self.checked(Expr::Rescale(Box::new(expr), places), scope, at)
            }
            (_, kind) => lossy(
                self,
                format!("a cast of a {kind} to {to} is not in the dialect"),
            ),
        }
    }
}
