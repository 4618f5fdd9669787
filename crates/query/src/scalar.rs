//! Binds expressions over the columns of a relation.

use sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, DateTimeField, ExactNumberInfo, InTarget, Spanned,
    UnaryOperator,
};
use sqlparser::tokenizer::Span;
use veil_relation::{Arithmetic, ColumnId, Comparison, DatePart, Expr, Kind, Literal, Type, Value};

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::group::Grouped;
use crate::rel::{Found, Rel, folded};
use crate::term::{Term, Terms, decided, like};
use crate::walk;

/// Deepest nesting of operators that is bound; chains of AND and OR count once.
const MOST_DEPTH: usize = 100;

/// What names of an expression stand for.
pub(crate) struct Scope<'s> {
    /// The relation over whose rows the expression is; scalar subqueries are joined to it.
    pub(crate) rel: &'s mut Rel,
    /// After grouping: what its columns are.
    pub(crate) grouped: Option<&'s Grouped>,
    /// Calls of window functions, and the columns with their values.
    pub(crate) windows: &'s [(&'s ast::Expr, ColumnId)],
    /// Whether scalar subqueries may be joined here.
    pub(crate) subqueries: bool,
    depth: usize,
}

impl<'s> Scope<'s> {
    /// Over the columns of a relation alone.
    pub(crate) const fn rows(rel: &'s mut Rel) -> Self {
        Self {
            rel,
            grouped: None,
            windows: &[],
            subqueries: false,
            depth: 0,
        }
    }

    /// Over what a SELECT has made so far.
    pub(crate) const fn select(
        rel: &'s mut Rel,
        grouped: Option<&'s Grouped>,
        windows: &'s [(&'s ast::Expr, ColumnId)],
    ) -> Self {
        Self {
            rel,
            grouped,
            windows,
            subqueries: true,
            depth: 0,
        }
    }
}

impl Binder<'_> {
    fn terms(&self, at: Span) -> Terms<'_> {
        let source = self.source;
        Terms { source, at }
    }

    /// An expression with its type, or a refusal at its place.
    pub(crate) fn checked(
        &self,
        expr: Expr,
        scope: &Scope<'_>,
        at: Span,
    ) -> Result<Term, SqlError> {
        match expr.ty(&scope.rel.types()) {
            Ok(ty) => Ok(Term::Expr(expr, ty)),
            Err(wrong) => Err(self.source.error(at, Problem::Type(wrong))),
        }
    }

    /// Binds an expression that is a value.
    pub(crate) fn value(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
    ) -> Result<(Expr, Type), SqlError> {
        let term = self.term(scope, of)?;
        self.terms(of.span()).typed(term)
    }

    /// Binds a condition.
    pub(crate) fn condition(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
    ) -> Result<Expr, SqlError> {
        let term = self.term(scope, of)?;
        self.terms(of.span()).condition(term)
    }

    /// Binds an expression.
    pub(crate) fn term(&mut self, scope: &mut Scope<'_>, of: &ast::Expr) -> Result<Term, SqlError> {
        scope.depth += 1;
        if scope.depth > MOST_DEPTH {
            let (most, of) = (MOST_DEPTH, "operators within each other");
            return Err(self
                .source
                .error(Span::empty(), Problem::TooLarge { most, of }));
        }
        let term = match self.known(scope, of)? {
            Some(term) => term,
            None => self.operator(scope, of)?,
        };
        scope.depth -= 1;
        Ok(term)
    }

    /// The column that already has the values of an expression: of a window, a key of groups, an aggregate.
    fn known(&mut self, scope: &mut Scope<'_>, of: &ast::Expr) -> Result<Option<Term>, SqlError> {
        if let Some((_, column)) = scope.windows.iter().find(|(call, _)| *call == of) {
            let column = Expr::Column(*column);
            return self.checked(column, scope, of.span()).map(Some);
        }
        let Some(grouped) = scope.grouped else {
            return Ok(None);
        };
        match self.grouped_column(grouped, of)? {
            Some(column) => self
                .checked(Expr::Column(column), scope, of.span())
                .map(Some),
            None => Ok(None),
        }
    }

    fn operator(&mut self, scope: &mut Scope<'_>, of: &ast::Expr) -> Result<Term, SqlError> {
        let at = of.span();
        let expr = match of {
            ast::Expr::Nested(inner) => return self.term(scope, inner),
            ast::Expr::Identifier(name) => return self.column(scope, None, name, at),
            ast::Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] => return self.column(scope, Some(table), name, at),
                _ => {
                    return Err(self.source.refused(
                        at,
                        "a column has at most a table before it",
                        None,
                    ));
                }
            },
            ast::Expr::Value(value) => return self.terms(value.span).written(&value.value),
            ast::Expr::TypedString(typed) => return self.typed_string(typed, at),
            ast::Expr::Interval(interval) => return self.interval(interval, at),
            ast::Expr::UnaryOp { op, expr } => match op {
                UnaryOperator::Not => Expr::Not(Box::new(self.condition(scope, expr)?)),
                UnaryOperator::Plus => {
                    return self
                        .number(scope, expr)
                        .map(|(expr, ty)| Term::Expr(expr, ty));
                }
                UnaryOperator::Minus => self.negated(scope, expr)?,
                other => return Err(self.sign(other, at)),
            },
            ast::Expr::BinaryOp { left, op, right } => {
                return self.binary(scope, of, [left, right], op);
            }
            ast::Expr::IsNull(a) => Expr::IsNull(Box::new(self.nullness(scope, a)?)),
            ast::Expr::IsNotNull(a) => {
                Expr::Not(Box::new(Expr::IsNull(Box::new(self.nullness(scope, a)?))))
            }
            ast::Expr::IsTrue(a) => known_true(self.condition(scope, a)?),
            ast::Expr::IsNotTrue(a) => Expr::Not(Box::new(known_true(self.condition(scope, a)?))),
            ast::Expr::IsFalse(a) => known_true(Expr::Not(Box::new(self.condition(scope, a)?))),
            ast::Expr::IsNotFalse(a) => {
                let not = Expr::Not(Box::new(self.condition(scope, a)?));
                Expr::Not(Box::new(known_true(not)))
            }
            ast::Expr::IsUnknown(a) => Expr::IsNull(Box::new(self.condition(scope, a)?)),
            ast::Expr::IsNotUnknown(a) => {
                Expr::Not(Box::new(Expr::IsNull(Box::new(self.condition(scope, a)?))))
            }
            ast::Expr::IsDistinctFrom(a, b) => Expr::Not(Box::new(self.same(scope, a, b, at)?)),
            ast::Expr::IsNotDistinctFrom(a, b) => self.same(scope, a, b, at)?,
            ast::Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let [of, low, high] = [
                    self.term(scope, expr)?,
                    self.term(scope, low)?,
                    self.term(scope, high)?,
                ];
                let terms = self.terms(at);
                let above = terms.compare(Comparison::Ge, of.clone(), low)?;
                let below = terms.compare(Comparison::Le, of, high)?;
                negate(Expr::all(vec![above, below]), *negated)
            }
            ast::Expr::In {
                expr,
                target: InTarget::List(list),
                negated,
                global: false,
            } => negate(self.in_list(scope, expr, list, at)?, *negated),
            ast::Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => negate(self.like(scope, expr, pattern, at)?, *negated),
            ast::Expr::Case {
                case_token: _,
                end_token: _,
                operand,
                conditions,
                else_result,
            } => self.case(
                scope,
                operand.as_deref(),
                conditions,
                else_result.as_deref(),
                at,
            )?,
            ast::Expr::Extract {
                field,
                syntax: _,
                expr,
            } => {
                let part = match field {
                    DateTimeField::Year => DatePart::Year,
                    DateTimeField::Month => DatePart::Month,
                    other => {
                        let what = format!("EXTRACT({other} …) is not in the dialect");
                        return Err(self.source.refused(at, what, Some("YEAR and MONTH are")));
                    }
                };
                Expr::Extract(part, Box::new(self.value(scope, expr)?.0))
            }
            ast::Expr::Substring {
                expr,
                substring_from,
                substring_for,
                special: _,
                shorthand: _,
            } => self.substring(
                scope,
                expr,
                [substring_from.as_deref(), substring_for.as_deref()],
                at,
            )?,
            ast::Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                format: None,
            } => return self.cast(scope, expr, data_type, at),
            ast::Expr::Function(call) => return self.call(scope, call, at),
            ast::Expr::Subquery(query) => return self.scalar_subquery(scope, query, at),
            ast::Expr::Exists { .. }
            | ast::Expr::In {
                target: InTarget::Subquery(_),
                ..
            } => {
                return Err(self.source.refused(
                    self.place(of),
                    "IN and EXISTS of a subquery are conditions of their own",
                    Some("join them by AND in WHERE or HAVING; say OR as UNION of two queries, or as a LEFT JOIN"),
                ));
            }
            other => {
                let name = kind_of(other);
                return Err(self.source.refused(
                    self.place(of),
                    format!("{name} is not in the dialect"),
                    instead(other),
                ));
            }
        };
        self.checked(expr, scope, at)
    }

    /// The place of an expression; that of its first operand that has one, if its own is unknown.
    fn place(&self, of: &ast::Expr) -> Span {
        let at = of.span();
        if at.start.line > 0 {
            return at;
        }
        match of {
            ast::Expr::Exists { .. } => self.source.word("EXISTS"),
            _ => at,
        }
    }

    fn sign(&self, sign: impl std::fmt::Display, at: Span) -> SqlError {
        self.source.refused(
            at,
            format!("the operator {sign} is not in the dialect"),
            None,
        )
    }

    fn column(
        &mut self,
        scope: &Scope<'_>,
        table: Option<&ast::Ident>,
        name: &ast::Ident,
        at: Span,
    ) -> Result<Term, SqlError> {
        let (table, name) = (table.map(folded), folded(name));
        let whole = table
            .as_ref()
            .map_or_else(|| name.clone(), |table| format!("{table}.{name}"));
        let before = scope.grouped.map(|grouped| &grouped.before);
        let found = before.unwrap_or(scope.rel).find(table.as_deref(), &name);
        let problem = match found {
            Found::Column(id) if before.is_none() => {
                return self.checked(Expr::Column(id), scope, at);
            }
            Found::Column(_) => Problem::NotGrouped { name: whole },
            Found::None => Problem::NoColumn { name: whole },
            Found::Several => Problem::Ambiguous { name: whole },
        };
        Err(self.source.error(at, problem))
    }

    fn typed_string(&self, typed: &ast::TypedString, at: Span) -> Result<Term, SqlError> {
        let ast::TypedString {
            data_type,
            value,
            uses_odbc_syntax,
        } = typed;
        match (data_type, &value.value, uses_odbc_syntax) {
            (DataType::Date, ast::Value::SingleQuotedString(text), false) => {
                let expr = self.terms(value.span).date(text)?;
                let ty = expr
                    .ty(&[])
                    .map_err(|wrong| self.source.error(at, Problem::Type(wrong)))?;
                Ok(Term::Expr(expr, ty))
            }
            _ => {
                let what = format!("a literal of type {data_type} is not in the dialect");
                Err(self.source.refused(at, what, Some("DATE '2025-03-14' is")))
            }
        }
    }

    fn interval(&self, interval: &ast::Interval, at: Span) -> Result<Term, SqlError> {
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
        let count: i32 = count.parse().map_err(|_| refused())?;
        match unit.trim_end_matches('S') {
            "DAY" => Ok(Term::Days(count.into())),
            "WEEK" => Ok(Term::Days(i128::from(count) * 7)),
            "MONTH" => Ok(Term::Months(count)),
            "YEAR" => count.checked_mul(12).map(Term::Months).ok_or_else(refused),
            _ => Err(refused()),
        }
    }

    fn number(&mut self, scope: &mut Scope<'_>, of: &ast::Expr) -> Result<(Expr, Type), SqlError> {
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

    fn negated(&mut self, scope: &mut Scope<'_>, of: &ast::Expr) -> Result<Expr, SqlError> {
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

    /// The operand of IS NULL, which may be anything but a bare literal.
    fn nullness(&mut self, scope: &mut Scope<'_>, of: &ast::Expr) -> Result<Expr, SqlError> {
        match self.term(scope, of)? {
            Term::Null => Ok(Expr::Literal(Literal::Null(Kind::Bool))),
            other => self.terms(of.span()).typed(other).map(|(expr, _)| expr),
        }
    }

    /// Equal, or both null; never null.
    fn same(
        &mut self,
        scope: &mut Scope<'_>,
        a: &ast::Expr,
        b: &ast::Expr,
        at: Span,
    ) -> Result<Expr, SqlError> {
        let null = |expr: Expr| Expr::IsNull(Box::new(expr));
        let both = Expr::And(vec![
            null(self.nullness(scope, a)?),
            null(self.nullness(scope, b)?),
        ]);
        let [a, b] = [self.term(scope, a)?, self.term(scope, b)?];
        let equal = self.terms(at).compare(Comparison::Eq, a, b)?;
        Ok(Expr::Or(vec![both, known_true(equal)]))
    }

    fn binary(
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
    fn sum(&self, a: Term, b: Term, minus: bool, at: Span) -> Result<Expr, SqlError> {
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

    fn months(&self, of: i32, by: i32, at: Span) -> Result<Expr, SqlError> {
        let day = veil_relation::calendar::plus_months(of, by);
        let day = day.ok_or_else(|| {
            self.source
                .refused(at, "this date leaves the calendar", None)
        })?;
        Ok(Expr::Literal(Literal::Date(day)))
    }

    fn in_list(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        list: &[ast::Expr],
        at: Span,
    ) -> Result<Expr, SqlError> {
        let of = self.term(scope, of)?;
        let items = list.iter().map(|item| self.term(scope, item));
        let items = items.collect::<Result<Vec<_>, _>>()?;
        let texts = items.iter().map(|item| match item {
            Term::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Option<Vec<&str>> = texts.collect();
        if let (
            Term::Expr(
                category,
                Type {
                    kind: Kind::Category(values),
                    ..
                },
            ),
            Some(texts),
        ) = (&of, texts)
        {
            return Ok(decided(category.clone(), values, |value| {
                texts.contains(&value)
            }));
        }
        let terms = self.terms(at);
        let equal = items
            .into_iter()
            .map(|item| terms.compare(Comparison::Eq, of.clone(), item));
        Ok(Expr::Or(equal.collect::<Result<_, _>>()?))
    }

    fn like(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        pattern: &ast::Expr,
        at: Span,
    ) -> Result<Expr, SqlError> {
        let term = self.term(scope, pattern)?;
        let Term::Text(pattern) = term else {
            return Err(self.source.refused(
                pattern.span(),
                "the pattern of LIKE is a quoted text",
                None,
            ));
        };
        let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
        if escapes % 2 == 1 {
            return Err(self
                .source
                .refused(at, "the pattern of LIKE ends with an escape", None));
        }
        match self.value(scope, of)? {
            (
                of,
                Type {
                    kind: Kind::Category(values),
                    ..
                },
            ) => Ok(decided(of, &values, |text| like(text, &pattern))),
            (_, other) => Err(self.source.refused(
                at,
                format!("LIKE stands on a category, and not on a {}", other.kind),
                Some("owners prepare texts as categories with a public list"),
            )),
        }
    }

    fn case(
        &mut self,
        scope: &mut Scope<'_>,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
        at: Span,
    ) -> Result<Expr, SqlError> {
        let operand = operand.map(|of| self.term(scope, of)).transpose()?;
        let (mut whens, mut values) = (Vec::new(), Vec::new());
        for ast::CaseWhen { condition, result } in conditions {
            whens.push(match &operand {
                Some(operand) => {
                    let with = self.term(scope, condition)?;
                    self.terms(condition.span())
                        .compare(Comparison::Eq, operand.clone(), with)?
                }
                None => self.condition(scope, condition)?,
            });
            values.push(self.term(scope, result)?);
        }
        values.push(otherwise.map_or(Ok(Term::Null), |of| self.term(scope, of))?);
        let mut values: Vec<Expr> = self
            .terms(at)
            .unified(values)?
            .into_iter()
            .map(|(expr, _)| expr)
            .collect();
        let otherwise = Box::new(values.pop().expect("the value otherwise was put last"));
        let branches = whens.into_iter().zip(values).collect();
        Ok(Expr::Case {
            branches,
            otherwise,
        })
    }

    /// A part of the texts of a category, from a public place on, of a public length.
    fn substring(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Expr,
        bounds: [Option<&ast::Expr>; 2],
        at: Span,
    ) -> Result<Expr, SqlError> {
        let mut numbers = [1, i128::from(u32::MAX)];
        for (bound, number) in bounds.into_iter().zip(&mut numbers) {
            let Some(bound) = bound else { continue };
            match self.value(scope, bound)?.0 {
                Expr::Literal(Literal::Integer(value))
                    if (0..=i128::from(u32::MAX)).contains(&value) =>
                {
                    *number = value
                }
                _ => {
                    return Err(self.source.refused(
                        bound.span(),
                        "SUBSTRING takes public integers from 0 on",
                        None,
                    ));
                }
            }
        }
        let (from, length) = (numbers[0], numbers[1]);
        let (of, ty) = self.value(scope, of)?;
        let Kind::Category(values) = ty.kind else {
            return Err(self.source.refused(
                at,
                format!("SUBSTRING stands on a category, and not on a {}", ty.kind),
                None,
            ));
        };
        // Characters from `from` on; those before the first count, as in PostgreSQL.
        let cut = |text: &String| {
            let places = text.chars().zip(1_i128..);
            places
                .filter(|(_, place)| from <= *place && *place < from + length)
                .map(|(c, _)| c)
                .collect::<String>()
        };
        let parts: Vec<String> = values.texts().iter().map(cut).collect();
        let to = self.terms(at).merged(&parts)?;
        let index = |part: &String| {
            to.index(part)
                .map_or(Value::Null, |index| Value::Number(index.into()))
        };
        Ok(Expr::Lookup {
            of: Box::new(of),
            kind: Kind::Category(to.clone()),
            table: parts.iter().map(index).collect(),
        })
    }

    fn cast(
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

/// True where a condition is, else false.
fn known_true(of: Expr) -> Expr {
    Expr::Coalesce(vec![of, Expr::bool(false)])
}

fn negate(of: Expr, negated: bool) -> Expr {
    if negated { Expr::Not(Box::new(of)) } else { of }
}

/// The name of an expression that is refused.
fn kind_of(of: &ast::Expr) -> &'static str {
    match of {
        ast::Expr::ILike { .. } => "ILIKE",
        ast::Expr::SimilarTo { .. } => "SIMILAR TO",
        ast::Expr::Like { .. } => "LIKE with ANY or ESCAPE",
        ast::Expr::In { .. } => "IN of this list",
        ast::Expr::AnyOp { .. } => "ANY",
        ast::Expr::AllOp { .. } => "ALL",
        ast::Expr::Ceil { .. } => "CEIL",
        ast::Expr::Floor { .. } => "FLOOR",
        ast::Expr::Position { .. } => "POSITION",
        ast::Expr::Trim { .. } => "TRIM",
        ast::Expr::Collate { .. } => "COLLATE",
        ast::Expr::Cast { .. } => "this form of CAST",
        ast::Expr::Tuple(_) => "a row of several values",
        ast::Expr::Array(_) => "ARRAY",
        ast::Expr::AtTimeZone { .. } => "AT TIME ZONE",
        ast::Expr::GroupingSets(_) => "GROUPING SETS",
        ast::Expr::Cube(_) => "CUBE",
        ast::Expr::Rollup(_) => "ROLLUP",
        _ => "this expression",
    }
}

/// How to say what is refused.
fn instead(of: &ast::Expr) -> Option<&'static str> {
    match of {
        ast::Expr::ILike { .. } | ast::Expr::SimilarTo { .. } => {
            Some("write LIKE, or IN with the values")
        }
        ast::Expr::AnyOp { .. } => Some("write IN"),
        ast::Expr::AllOp { .. } => Some("compare with (SELECT max(…) …) or (SELECT min(…) …)"),
        ast::Expr::Ceil { .. } | ast::Expr::Floor { .. } => {
            Some("round(…, places) is in the dialect")
        }
        ast::Expr::Tuple(_) => Some("write one condition for each value, joined by AND"),
        ast::Expr::GroupingSets(_) | ast::Expr::Cube(_) | ast::Expr::Rollup(_) => {
            Some("write one query for each grouping, joined by UNION ALL")
        }
        _ => None,
    }
}
