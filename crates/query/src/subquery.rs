//! Decorrelates subqueries: IN and EXISTS become semi and anti joins, scalar subqueries left joins with at most one match.

use sqlparser::ast::{self, InTarget, SetExpr, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{Aggregate, Domain, Expr, JoinKind, Literal, Matches, Named, Plan, join_shape};

use crate::bind::{Binder, Level};
use crate::error::SqlError;
use crate::from::Correlation;
use crate::group::{Grouped, is_aggregate, is_window, name_of};
use crate::rel::{Name, Rel};
use crate::scalar::Scope;
use crate::select::Item;
use crate::term::Term;
use crate::walk;

impl Binder<'_> {
    /// A conjunct of WHERE that has subqueries: it becomes a semi or anti join, or a filter after joins with scalar subqueries.
    pub(crate) fn subquery_condition(
        &mut self,
        rel: &mut Rel,
        grouped: Option<&Grouped>,
        of: &ast::Expr,
    ) -> Result<(), SqlError> {
        match of {
            ast::Expr::Nested(inner) => self.subquery_condition(rel, grouped, inner),
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Not,
                expr,
            } if exists(expr).is_some() => {
                let (query, negated) = exists(expr).expect("the guard has seen it");
                self.exists(rel, query, !negated)
            }
            ast::Expr::Exists { subquery, negated } => self.exists(rel, subquery, *negated),
            ast::Expr::In {
                expr,
                target: InTarget::Subquery(query),
                negated,
                global: false,
            } => self.in_subquery(rel, grouped, expr, query, *negated),
            _ => {
                let predicate = self.condition(&mut Scope::select(rel, grouped, &[]), of)?;
                let filtered = self.filtered(rel.clone(), vec![predicate], of.span())?;
                *rel = filtered;
                Ok(())
            }
        }
    }

    /// The rows of a subquery, and its equalities with the outer query. A subquery with groups, order or limit is not correlated.
    fn rows(&mut self, of: &ast::Query, outer: &Rel) -> Result<(Rel, Vec<Correlation>), SqlError> {
        match simple(of) {
            Some(select) if !is_grouped(select) => {
                self.plain(select)?;
                self.sources(select, Some(outer))
            }
            _ => Ok((self.query(of, Level::Inner)?, Vec::new())),
        }
    }

    fn exists(&mut self, rel: &mut Rel, of: &ast::Query, negated: bool) -> Result<(), SqlError> {
        let at = of.span();
        let (inner, on) = self.rows(of, rel)?;
        if on.is_empty() {
            let what = "EXISTS of a subquery without an equality with the outer query is not in the dialect";
            return Err(self.source.refused(at, what, Some("write an equality with a column of the outer query in its WHERE, or compare (SELECT count(*) …) with 0")));
        }
        self.semi(rel, inner, on, negated, at)
    }

    fn in_subquery(
        &mut self,
        rel: &mut Rel,
        grouped: Option<&Grouped>,
        of: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<(), SqlError> {
        let at = of.span();
        let mine = self.value(&mut Scope::select(rel, grouped, &[]), of)?;
        let (mut inner, correlations) = self.rows(query, rel)?;
        let theirs = match simple(query) {
            Some(select) if !is_grouped(select) => match self.items(select)?.as_slice() {
                [Item::Expr(expr, _)] => self.value(&mut Scope::rows(&mut inner), expr)?,
                _ => {
                    return Err(self
                        .source
                        .refused(at, "the subquery of IN has one column", None));
                }
            },
            _ if inner.names.len() == 1 => (Expr::column(0), inner.shape.fields[0].ty.clone()),
            _ => {
                return Err(self
                    .source
                    .refused(at, "the subquery of IN has one column", None));
            }
        };
        if negated && (mine.1.nullable || theirs.1.nullable) {
            let what = "NOT IN is null for all rows as soon as one value is null";
            return Err(self.source.refused(
                at,
                what,
                Some("write NOT EXISTS with an equality, or leave nulls out by a NOT NULL column"),
            ));
        }
        let (theirs, mine) = self.key_pair(theirs, mine, at)?;
        let on = correlations.into_iter().chain([(theirs, mine)]).collect();
        self.semi(rel, inner, on, negated, at)
    }

    /// Keeps the rows that have a match, or those that have none.
    fn semi(
        &mut self,
        rel: &mut Rel,
        inner: Rel,
        on: Vec<Correlation>,
        negated: bool,
        at: Span,
    ) -> Result<(), SqlError> {
        let kind = if negated {
            JoinKind::Anti
        } else {
            JoinKind::Semi
        };
        let on = on
            .into_iter()
            .map(|(inner, outer)| (outer, inner))
            .collect();
        *rel = self.outer_join(kind, rel.clone(), inner, on, None, at)?;
        Ok(())
    }

    /// A subquery that is a value: a column that is joined to the relation.
    pub(crate) fn scalar_subquery(
        &mut self,
        scope: &mut Scope<'_>,
        of: &ast::Query,
        at: Span,
    ) -> Result<Term, SqlError> {
        if !scope.subqueries {
            return Err(self.source.refused(
                at,
                "a scalar subquery does not stand here",
                Some("write it in WHERE, HAVING or SELECT, or join a subquery of FROM"),
            ));
        }
        // After grouping, the columns of the outer query are the keys alone: correlation there is refused by the names.
        let (inner, on, empty) = match simple(of) {
            Some(select) if is_plain_aggregate(select) => {
                self.aggregate_subquery(scope.rel, select, at)?
            }
            _ => (self.query(of, Level::Inner)?, Vec::new(), None),
        };
        let value = inner.width() - 1;
        if on.len() as u32 + 1 != inner.width() {
            return Err(self
                .source
                .refused(at, "a scalar subquery has one column", None));
        }
        if on.is_empty() && inner.shape.capacity > 1 {
            return Err(self.source.refused(
                at,
                "a scalar subquery has one row: an aggregate without GROUP BY",
                None,
            ));
        }
        let width = scope.rel.width();
        let rel = scope.rel.clone();
        let on: Vec<(Expr, Expr)> = on
            .into_iter()
            .map(|(inner, outer)| (outer, inner))
            .collect();
        let shape = join_shape(
            JoinKind::Left,
            rel.shape,
            inner.shape,
            &on,
            None,
            Matches::UniqueRight,
        );
        let shape = shape.map_err(|wrong| self.wrong(wrong, at))?;
        let plan = Plan::Join {
            kind: JoinKind::Left,
            left: Box::new(rel.plan),
            right: Box::new(inner.plan),
            on,
            condition: None,
            matches: Matches::UniqueRight,
        };
        let hidden = Name {
            table: None,
            column: String::new(),
            hidden: true,
        };
        let mut names = rel.names;
        names.resize(shape.fields.len(), hidden);
        *scope.rel = Rel { plan, shape, names };
        let column = Expr::Column(veil_relation::ColumnId(width + value), self.source.at(at));
        let expr = match empty {
            Some(empty) => Expr::Coalesce(vec![column, Expr::Literal(empty)]),
            None => column,
        };
        self.checked(expr, scope, at)
    }

    /// An aggregate of the rows of a subquery for each value of its equalities with the outer query: columns of those, then the value. Also
    /// the value over no rows, if it is not null.
    fn aggregate_subquery(
        &mut self,
        outer: &Rel,
        of: &ast::Select,
        at: Span,
    ) -> Result<(Rel, Vec<Correlation>, Option<Literal>), SqlError> {
        self.plain(of)?;
        let items = self.items(of)?;
        let [Item::Expr(expr, name)] = items.as_slice() else {
            return Err(self
                .source
                .refused(at, "a scalar subquery has one column", None));
        };
        let (mut rel, correlations) = self.sources(of, Some(outer))?;
        let mut calls = Vec::new();
        walk::each(expr, &mut |of| {
            if is_aggregate(of) {
                calls.push(of);
            }
            !is_aggregate(of)
        });
        let mut aggregates = Vec::new();
        for call in &calls {
            let aggregate = self.aggregate(&mut rel, call)?;
            if !aggregates.contains(&aggregate) {
                aggregates.push(aggregate);
            }
        }
        let is_count =
            |of: &ast::Expr| matches!(of, ast::Expr::Function(call) if name_of(call) == "count");
        let empty = if correlations.is_empty() || !calls.iter().any(|call| is_count(call)) {
            None
        } else if is_count(expr) {
            Some(Literal::Integer(0))
        } else {
            return Err(self.source.refused(
                expr.span(),
                "a correlated count stands alone in its subquery",
                Some("compute with it outside of the subquery"),
            ));
        };
        // Keys may occur twice: each equality has its own.
        let key = |(at, (inner, _)): (usize, &Correlation)| Named {
            name: format!("key{}", at + 1),
            expr: inner.clone(),
        };
        let aggregate = |(at, (function, filter)): (usize, &(_, Option<Expr>))| Aggregate {
            name: format!("aggregate{}", at + 1),
            function: Clone::clone(function),
            filter: filter.clone(),
        };
        let plan = Plan::GroupBy {
            input: Box::new(rel.plan.clone()),
            keys: correlations.iter().enumerate().map(key).collect(),
            aggregates: aggregates.iter().enumerate().map(aggregate).collect(),
            domain: Domain::Secret,
            min_rows: 0,
        };
        let mut made = self.rel(plan, None, at)?;
        let grouped = Grouped {
            before: rel,
            keys: correlations
                .iter()
                .map(|(inner, _)| inner.clone())
                .collect(),
            aggregates,
            groupings: Vec::new(),
        };
        if walk::any(expr, walk::is_subquery) {
            return Err(self.source.refused(
                expr.span(),
                "a subquery stands in no scalar subquery",
                None,
            ));
        }
        let (value, _) = self.value(&mut Scope::select(&mut made, Some(&grouped), &[]), expr)?;
        let key = |at: usize| Named {
            name: format!("key{}", at + 1),
            expr: Expr::column(at as u32),
        };
        let value = Named {
            name: name.clone(),
            expr: value,
        };
        let columns = (0..correlations.len()).map(key).chain([value]).collect();
        let plan = Plan::Project {
            input: Box::new(made.plan),
            columns,
        };
        let made = self.rel(plan, None, at)?;
        let on = correlations
            .into_iter()
            .enumerate()
            .map(|(at, (_, outer))| (Expr::column(at as u32), outer));
        Ok((made, on.collect(), empty))
    }
}

/// The subquery of EXISTS behind parentheses, and whether it is NOT EXISTS.
fn exists(of: &ast::Expr) -> Option<(&ast::Query, bool)> {
    match of {
        ast::Expr::Nested(inner) => exists(inner),
        ast::Expr::Exists { subquery, negated } => Some((subquery, *negated)),
        _ => None,
    }
}

/// The SELECT of a query that has nothing else.
fn simple(of: &ast::Query) -> Option<&ast::Select> {
    let ast::Query {
        with: None,
        body,
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks,
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators,
    } = of
    else {
        return None;
    };
    match &**body {
        SetExpr::Select(select) if locks.is_empty() && pipe_operators.is_empty() => Some(select),
        _ => None,
    }
}

/// Whether a SELECT groups, or has windows, which are over its own rows.
fn is_grouped(of: &ast::Select) -> bool {
    let keys = !matches!(&of.group_by, ast::GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    keys || of.having.is_some() || has(of, |of| is_aggregate(of) || is_window(of))
}

/// Whether a SELECT is an aggregate over all its rows.
fn is_plain_aggregate(of: &ast::Select) -> bool {
    let keys = matches!(&of.group_by, ast::GroupByExpr::Expressions(keys, modifiers) if keys.is_empty() && modifiers.is_empty());
    keys && of.having.is_none()
        && of.distinct.is_none()
        && has(of, is_aggregate)
        && !has(of, is_window)
}

fn has(of: &ast::Select, is: impl Fn(&ast::Expr) -> bool + Copy) -> bool {
    of.projection.iter().any(|item| match item {
        ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
            walk::any(expr, is)
        }
        _ => false,
    })
}
