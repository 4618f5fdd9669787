//! Binds SELECT: grouping, windows, the list of columns.

use std::collections::BTreeSet;

use sqlparser::ast::{self, SelectItem, SelectItemQualifiedWildcardKind, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{Aggregate, AggregateFunction, ColumnId, Domain, Expr, Kind, Named, Plan};

use crate::bind::{Binder, Level};
use crate::error::SqlError;
use crate::group::{Grouped, is_aggregate, is_grouping, is_window};
use crate::grouping::{Groupings, Listed, of_set_alone};
use crate::rel::{Found, Name, Rel, folded};
use crate::scalar::Scope;
use crate::walk;

/// An element of the list of columns.
pub(crate) enum Item<'s> {
    /// An expression with its name.
    Expr(&'s ast::Expr, String),
    /// All columns of a table, or of all.
    All(Option<String>, Span),
}

impl Binder<'_> {
    /// Refuses what no SELECT of the dialect has.
    pub(crate) fn plain(&self, of: &ast::Select) -> Result<(), SqlError> {
        let ast::Select {
            select_token: _,
            optimizer_hints: _,
            distinct: _,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection: _,
            exclude,
            into,
            from: _,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by: _,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = of;
        let clauses = [
            (top.is_some(), "TOP", Some("write LIMIT")),
            (into.is_some(), "INTO", None),
            (!lateral_views.is_empty(), "LATERAL", None),
            (prewhere.is_some(), "PREWHERE", Some("write WHERE")),
            (!connect_by.is_empty(), "CONNECT", None),
            (!cluster_by.is_empty(), "CLUSTER", None),
            (!distribute_by.is_empty(), "DISTRIBUTE", None),
            (!sort_by.is_empty(), "SORT", Some("write ORDER BY")),
            (
                !named_window.is_empty(),
                "WINDOW",
                Some("write the window after OVER"),
            ),
            (
                qualify.is_some(),
                "QUALIFY",
                Some("filter in a query over a subquery of FROM"),
            ),
            (exclude.is_some(), "EXCLUDE", Some("name the columns")),
            (
                select_modifiers.is_some() || value_table_mode.is_some(),
                "SELECT",
                None,
            ),
            (
                *flavor != ast::SelectFlavor::Standard,
                "FROM",
                Some("begin with SELECT"),
            ),
        ];
        match clauses.into_iter().find(|(there, ..)| *there) {
            Some((_, word, instead)) => {
                let what = format!("{word} is not in the dialect here");
                Err(self.source.refused(self.source.word(word), what, instead))
            }
            None => Ok(()),
        }
    }

    /// The list of columns.
    pub(crate) fn items<'s>(&self, of: &'s ast::Select) -> Result<Vec<Item<'s>>, SqlError> {
        let item = |(place, item): (usize, &'s SelectItem)| match item {
            SelectItem::UnnamedExpr(expr) => {
                Ok(Item::Expr(expr, Self::default_name(expr, place + 1)))
            }
            SelectItem::ExprWithAlias { expr, alias } => Ok(Item::Expr(expr, folded(alias))),
            SelectItem::Wildcard(options)
                if *options == ast::WildcardAdditionalOptions::default() =>
            {
                Ok(Item::All(None, item.span()))
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) if *options == ast::WildcardAdditionalOptions::default() => {
                let table = crate::rel::single(name).map(folded);
                table
                    .map(|table| Item::All(Some(table), item.span()))
                    .ok_or_else(|| {
                        self.source
                            .refused(item.span(), "a table has one name", None)
                    })
            }
            other => Err(self.source.refused(
                other.span(),
                "this form of a column list is not in the dialect",
                Some("name the columns"),
            )),
        };
        of.projection.iter().enumerate().map(item).collect()
    }

    /// Binds a SELECT with the order and limit of its query.
    pub(crate) fn select(
        &mut self,
        of: &ast::Select,
        order: &[ast::OrderByExpr],
        limit: Option<u32>,
        level: Level,
    ) -> Result<Rel, SqlError> {
        self.plain(of)?;
        let items = self.items(of)?;
        if let (Level::Opened, Some(Item::All(_, at))) = (
            level,
            items.iter().find(|item| matches!(item, Item::All(..))),
        ) {
            return Err(self.source.refused(
                *at,
                "SELECT * is not opened",
                Some("name the columns: owners consent to each"),
            ));
        }
        let (mut rel, correlations) = self.sources(of, None)?;
        debug_assert!(
            correlations.is_empty(),
            "without an outer query nothing is correlated"
        );
        let exprs = items.iter().filter_map(|item| match item {
            Item::Expr(expr, _) => Some(*expr),
            Item::All(..) => None,
        });
        let after: Vec<&ast::Expr> = exprs
            .chain(of.having.as_ref())
            .chain(order.iter().map(|key| &key.expr))
            .collect();
        let names: Vec<String> = items
            .iter()
            .filter_map(|item| match item {
                Item::Expr(_, name) => Some(name.clone()),
                Item::All(..) => None,
            })
            .collect();
        let by = self.groupings(of)?;
        if by.sets.len() > 1 {
            let all = Listed {
                items: &items,
                names: &names,
                after: &after,
            };
            let finish = Finish {
                distinct: self.is_distinct(of)?,
                limit,
                level,
                at: of.span(),
            };
            return self.by_sets(of, &rel, &by, &all, order, finish);
        }
        let set: Vec<usize> = (0..by.keys.len()).collect();
        let grouped = self.group(&by, &set, &mut rel, (&items, &names), &after)?;
        if let Some(having) = &of.having {
            self.having(&mut rel, grouped.as_ref(), having)?;
        }
        let windows = self.windows(&mut rel, grouped.as_ref(), &after)?;
        let mut columns = Vec::new();
        for item in &items {
            match item {
                Item::Expr(expr, name) => {
                    let scope = &mut Scope::select(&mut rel, grouped.as_ref(), &windows);
                    let (mut bound, ty) = self.value(scope, expr)?;
                    if level != Level::Inner || of.distinct.is_some() {
                        bound = Self::rounded(bound, &ty.kind);
                    }
                    let name = name.clone();
                    columns.push(Named { name, expr: bound });
                }
                Item::All(table, at) => {
                    self.all_columns(&rel, grouped.is_some(), table.as_deref(), *at, &mut columns)?;
                }
            }
        }
        let distinct = self.is_distinct(of)?;
        self.finished(
            rel,
            grouped.as_ref(),
            &windows,
            columns,
            order,
            Finish {
                distinct,
                limit,
                level,
                at: of.span(),
            },
        )
    }

    pub(crate) fn is_distinct(&self, of: &ast::Select) -> Result<bool, SqlError> {
        match &of.distinct {
            None | Some(ast::Distinct::All) => Ok(false),
            Some(ast::Distinct::Distinct) => Ok(true),
            Some(ast::Distinct::On(_)) => Err(self.source.refused(
                self.source.word("ON"),
                "DISTINCT ON is not in the dialect",
                Some("take row_number() in a subquery of FROM and filter by it"),
            )),
        }
    }

    fn all_columns(
        &self,
        rel: &Rel,
        grouped: bool,
        table: Option<&str>,
        at: Span,
        into: &mut Vec<Named>,
    ) -> Result<(), SqlError> {
        if grouped {
            return Err(self.source.refused(
                at,
                "* does not stand in a grouped query",
                Some("name the columns"),
            ));
        }
        let wanted = |name: &Name| match table {
            Some(table) => name.table.as_deref() == Some(table),
            None => name.table.is_some() && !name.hidden,
        };
        let before = into.len();
        for (at, name) in (0_u32..).zip(&rel.names) {
            if wanted(name) {
                let name = name.column.clone();
                into.push(Named {
                    name,
                    expr: Expr::column(at),
                });
            }
        }
        if into.len() == before {
            let name = table.unwrap_or("*").to_owned();
            return Err(self
                .source
                .error(at, crate::error::Problem::NoTable { name }));
        }
        Ok(())
    }

    /// Groups the relation, if the query does; by one of several sets of keys, if it has more than one.
    pub(crate) fn group(
        &mut self,
        by: &Groupings<'_>,
        set: &[usize],
        rel: &mut Rel,
        (items, names): (&[Item<'_>], &[String]),
        after: &[&ast::Expr],
    ) -> Result<Option<Grouped>, SqlError> {
        let keys = &by.keys;
        let mut calls = Vec::new();
        for root in after {
            walk::each(root, &mut |of| {
                if is_aggregate(of) {
                    calls.push(of);
                }
                !is_aggregate(of)
            });
        }
        if calls.is_empty() && !by.always {
            return Ok(None);
        }
        let mut bound = Vec::new();
        let mut places = Vec::new();
        for key in keys.iter().copied() {
            // As in PostgreSQL, a name is a column of FROM first, then one of SELECT.
            let item = match key {
                ast::Expr::Identifier(name) => match rel.find(None, &folded(name)) {
                    Found::None => self.output(names, key)?,
                    _ => None,
                },
                _ => self.output(names, key)?,
            };
            let key = match item.and_then(|column| items.get(column.index())) {
                Some(Item::Expr(expr, _)) => *expr,
                _ => key,
            };
            if walk::any(key, |of| {
                is_aggregate(of) || is_window(of) || walk::is_subquery(of)
            }) {
                return Err(self.source.refused(
                    key.span(),
                    "a key of groups is made of columns",
                    Some("compute it in a subquery of FROM"),
                ));
            }
            let (expr, ty) = self.value(&mut Scope::rows(rel), key)?;
            if matches!(ty.kind, Kind::Ratio { .. }) {
                return Err(self.source.refused(
                    key.span(),
                    "a quotient is no key of groups",
                    Some("round it first: round(…, 2)"),
                ));
            }
            let place = bound.iter().position(|known| *known == expr);
            places.push(place.unwrap_or(bound.len()));
            if place.is_none() {
                bound.push(expr);
            }
        }
        let mut groupings = Vec::new();
        for call in walk::found(after, &is_grouping) {
            let of = self.grouping(rel, call, &bound)?;
            if !groupings.contains(&of) {
                groupings.push(of);
            }
        }
        let mut aggregates: Vec<(AggregateFunction, Option<Expr>)> = Vec::new();
        for call in calls {
            let aggregate = self.aggregate(rel, call)?;
            if !aggregates.contains(&aggregate) {
                aggregates.push(aggregate);
            }
        }
        let named = |(at, expr): (usize, &Expr)| {
            let name = match expr {
                Expr::Column(id, _) => rel.names[id.index()].column.clone(),
                _ => format!("key{}", at + 1),
            };
            Named {
                name,
                expr: expr.clone(),
            }
        };
        let aggregate =
            |(at, (function, filter)): (usize, &(AggregateFunction, Option<Expr>))| Aggregate {
                name: format!("aggregate{}", at + 1),
                function: function.clone(),
                filter: filter.clone(),
            };
        let own: BTreeSet<usize> = set.iter().map(|key| places[*key]).collect();
        let of_set = bound.iter().enumerate().filter(|(at, _)| own.contains(at));
        let plan = Plan::GroupBy {
            input: Box::new(rel.plan.clone()),
            keys: of_set.map(named).collect(),
            aggregates: aggregates.iter().enumerate().map(aggregate).collect(),
            domain: Domain::Secret,
            min_rows: 0,
        };
        let at = after.first().map_or(Span::empty(), |of| of.span());
        let plan = if by.sets.len() == 1 && groupings.is_empty() {
            plan
        } else {
            let types = rel.types();
            let kind = |key: &Expr| key.ty(&types).map_or(Kind::Bool, |ty| ty.kind);
            let kinds: Vec<Kind> = bound.iter().map(kind).collect();
            of_set_alone(plan, &own, &kinds, &groupings)
        };
        let mut grouped = self.rel(plan, None, at)?;
        // A key that is a column keeps its name, for subqueries that are correlated with it.
        for (at, name) in grouped.names.iter_mut().enumerate() {
            *name = match bound.get(at) {
                Some(Expr::Column(id, _)) => rel.names[id.index()].clone(),
                _ => Name {
                    table: None,
                    column: String::new(),
                    hidden: true,
                },
            };
        }
        let before = std::mem::replace(rel, grouped);
        Ok(Some(Grouped {
            before,
            keys: bound,
            aggregates,
            groupings,
        }))
    }

    pub(crate) fn having(
        &mut self,
        rel: &mut Rel,
        grouped: Option<&Grouped>,
        having: &ast::Expr,
    ) -> Result<(), SqlError> {
        let width = rel.width();
        for part in walk::conjuncts(having) {
            if walk::any(part, is_window) {
                return Err(self.source.refused(
                    part.span(),
                    "a window function stands in SELECT and ORDER BY only",
                    None,
                ));
            }
            self.subquery_condition(rel, grouped, part)?;
        }
        debug_assert!(rel.width() >= width, "subqueries add columns only");
        Ok(())
    }

    /// The list of columns, distinct and ordered as the query says.
    pub(crate) fn finished(
        &mut self,
        mut rel: Rel,
        grouped: Option<&Grouped>,
        windows: &[(&ast::Expr, ColumnId)],
        mut columns: Vec<Named>,
        order: &[ast::OrderByExpr],
        finish: Finish,
    ) -> Result<Rel, SqlError> {
        let Finish {
            distinct,
            limit,
            level,
            at,
        } = finish;
        let width = columns.len();
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let mut keys = Vec::new();
        for key in order {
            let column = if let Some(column) = self.output(&names, &key.expr)? {
                column
            } else {
                let (expr, ty) =
                    self.value(&mut Scope::select(&mut rel, grouped, windows), &key.expr)?;
                let expr = Self::rounded(expr, &ty.kind);
                let place = columns.iter().position(|column| column.expr == expr);
                if place.is_none() && distinct {
                    return Err(self.source.refused(
                        key.expr.span(),
                        "distinct rows are ordered by their columns",
                        None,
                    ));
                }
                ColumnId(place.unwrap_or_else(|| {
                    let name = format!("order{}", columns.len() + 1);
                    columns.push(Named { name, expr });
                    columns.len() - 1
                }) as u32)
            };
            // A quotient that an inner query hands on is ordered as it would be opened.
            let types = rel.types();
            let kind = columns[column.index()].expr.ty(&types).map(|ty| ty.kind);
            let by = Expr::Column(column, self.source.at(key.expr.span()));
            let expr = kind.map_or(by.clone(), |kind| Self::rounded(by, &kind));
            keys.push(self.sort_key(key, expr)?);
        }
        let plan = Plan::Project {
            input: Box::new(rel.plan),
            columns,
        };
        let plan = if distinct {
            Plan::Distinct {
                input: Box::new(plan),
            }
        } else {
            plan
        };
        let rel = self.rel(plan, Some(""), at)?;
        let rel = self.ordered(rel, keys, limit, level, at)?;
        if rel.names.len() == width {
            return Ok(rel);
        }
        let column = |(at, name): (usize, String)| Named {
            name,
            expr: Expr::column(at as u32),
        };
        let columns = names.into_iter().enumerate().map(column).collect();
        let plan = Plan::Project {
            input: Box::new(rel.plan),
            columns,
        };
        self.rel(plan, Some(""), at)
    }
}

/// How the rows of a SELECT end.
#[derive(Clone, Copy)]
pub(crate) struct Finish {
    pub(crate) distinct: bool,
    pub(crate) limit: Option<u32>,
    pub(crate) level: Level,
    pub(crate) at: Span,
}
