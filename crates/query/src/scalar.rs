//! Binds expressions over the columns of a relation.

use sqlparser::ast::{self, CastKind, DateTimeField, InTarget, Spanned, UnaryOperator};
use sqlparser::tokenizer::Span;
use veil_relation::{ColumnId, Comparison, DatePart, Expr, Kind, Literal, Type};

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::group::Grouped;
use crate::rel::{Found, Rel, folded};
use crate::term::{Term, Terms};

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
    pub(crate) fn terms(&self, at: Span) -> Terms<'_> {
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
            let at = of.span();
            let (most, of) = (MOST_DEPTH, "operators within each other");
            return Err(self.source.error(at, Problem::TooLarge { most, of }));
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
            let column = Expr::Column(*column, self.source.at(of.span()));
            return self.checked(column, scope, of.span()).map(Some);
        }
        let Some(grouped) = scope.grouped else {
            return Ok(None);
        };
        match self.grouped_column(grouped, of)? {
            Some(column) => {
                let column = Expr::Column(column, self.source.at(of.span()));
                self.checked(column, scope, of.span()).map(Some)
            }
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

    pub(crate) fn sign(&self, sign: impl std::fmt::Display, at: Span) -> SqlError {
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
                return self.checked(Expr::Column(id, self.source.at(at)), scope, at);
            }
            Found::Column(_) => Problem::NotGrouped { name: whole },
            Found::None => {
                let of_model = |of: &str| {
                    let found = before.unwrap_or(scope.rel).find(table.as_deref(), of);
                    !matches!(found, Found::None)
                };
                let terms = of_model("term") && of_model("coefficient");
                if name == "standard_error" && terms {
                    Problem::NoStandardErrors
                } else {
                    Problem::NoColumn { name: whole }
                }
            }
            Found::Several => Problem::Ambiguous { name: whole },
        };
        Err(self.source.error(at, problem))
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
}

/// True where a condition is, else false.
pub(crate) fn known_true(of: Expr) -> Expr {
    Expr::Coalesce(vec![of, Expr::bool(false)])
}

pub(crate) fn negate(of: Expr, negated: bool) -> Expr {
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
