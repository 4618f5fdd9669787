//! Binds ORDER BY and LIMIT.

use crate::bind::{Binder, Level};
use crate::error::{Problem, SqlError};
use crate::rel::{Rel, folded};
use sqlparser::ast::{self, LimitClause, OrderByKind, OrderByOptions, Spanned};
use sqlparser::tokenizer::Span;
use std::collections::BTreeSet;
use veil_relation::{ColumnId, Expr, Kind, Plan, SortKey};

impl Binder<'_> {
    pub(crate) fn order_by<'o>(
        &self,
        order: &'o ast::OrderBy,
    ) -> Result<&'o [ast::OrderByExpr], SqlError> {
        let ast::OrderBy { kind, interpolate } = order;
        match (kind, interpolate) {
            (OrderByKind::Expressions(keys), None) => Ok(keys),
            _ => Err(self.source.refused(
                self.source.word("ORDER"),
                "this ORDER BY is not in the dialect",
                Some("name the columns"),
            )),
        }
    }

    pub(crate) fn limit(&self, limit: &LimitClause) -> Result<Option<u32>, SqlError> {
        let LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        } = limit
        else {
            return Err(self.source.refused(
                self.source.word("LIMIT"),
                "LIMIT with two numbers is not in the dialect",
                None,
            ));
        };
        if let Some(offset) = offset {
            let at = self.source.word("OFFSET");
            let at = if at.start.line == 0 {
                offset.value.span()
            } else {
                at
            };
            return Err(self.source.refused(
                at,
                "OFFSET, paging through rows, is not in the dialect",
                None,
            ));
        }
        if !limit_by.is_empty() {
            return Err(self.source.refused(
                self.source.word("LIMIT"),
                "LIMIT … BY is not in the dialect",
                None,
            ));
        }
        let Some(limit) = limit else { return Ok(None) };
        let rows = match limit {
            ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::Number(digits, false),
                ..
            }) => digits.parse().ok(),
            _ => None,
        };
        let rows: Option<u32> = rows;
        rows.map(Some).ok_or_else(|| {
            self.source
                .refused(limit.span(), "LIMIT takes a public number of rows", None)
        })
    }

    /// The options of a key of an order.
    pub(crate) fn sort_key(&self, key: &ast::OrderByExpr, expr: Expr) -> Result<SortKey, SqlError> {
        let ast::OrderByExpr {
            expr: of,
            options: OrderByOptions { sort, nulls_first },
            with_fill,
        } = key;
        if with_fill.is_some() {
            return Err(self
                .source
                .refused(of.span(), "WITH FILL is not in the dialect", None));
        }
        let descending = match sort {
            None | Some(ast::OrderBySort::Asc) => false,
            Some(ast::OrderBySort::Desc) => true,
            Some(ast::OrderBySort::Using(_)) => {
                return Err(self.source.refused(
                    of.span(),
                    "ORDER BY … USING is not in the dialect",
                    None,
                ));
            }
        };
        Ok(SortKey {
            expr,
            descending,
            nulls_first: nulls_first.unwrap_or(descending),
        })
    }

    /// The output column that a key of an order names: by its place or its name.
    pub(crate) fn output(
        &self,
        names: &[String],
        key: &ast::Expr,
    ) -> Result<Option<ColumnId>, SqlError> {
        match key {
            ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::Number(digits, false),
                ..
            }) => {
                let place = digits
                    .parse()
                    .ok()
                    .filter(|place| (1..=names.len()).contains(place));
                let column = place.map(|place: usize| ColumnId(place as u32 - 1));
                let column = column.ok_or_else(|| {
                    self.source
                        .refused(key.span(), "there is no such column in SELECT", None)
                });
                column.map(Some)
            }
            ast::Expr::Identifier(ident) => {
                let name = folded(ident);
                let mut found = (0_u32..).zip(names).filter(|(_, known)| **known == name);
                match (found.next(), found.next()) {
                    (Some((at, _)), None) => Ok(Some(ColumnId(at))),
                    (Some(_), Some(_)) => {
                        Err(self.source.error(ident.span, Problem::Ambiguous { name }))
                    }
                    (None, _) => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn output_keys(
        &self,
        rel: &Rel,
        order: &[ast::OrderByExpr],
    ) -> Result<Vec<SortKey>, SqlError> {
        let names: Vec<String> = rel.names.iter().map(|name| name.column.clone()).collect();
        let key = |key: &ast::OrderByExpr| match self.output(&names, &key.expr)? {
            Some(column) => {
                let at = self.source.at(key.expr.span());
                self.sort_key(key, Expr::Column(column, at))
            }
            None => Err(self.source.refused(
                key.expr.span(),
                "a union is ordered by its columns",
                Some("write the name or the place of one"),
            )),
        };
        order.iter().map(key).collect()
    }

    /// The relation in an order, or its first rows. What ties is ordered by all columns, so that the order of input rows decides nothing; no rows tie in columns
    /// that are unique, by an operator or because an owner says so, at which the parties look.
    pub(crate) fn ordered(
        &self,
        rel: Rel,
        mut keys: Vec<SortKey>,
        limit: Option<u32>,
        level: Level,
        at: Span,
    ) -> Result<Rel, SqlError> {
        if level == Level::Opened
            && let Some(field) = rel
                .shape
                .fields
                .iter()
                .find(|field| matches!(field.ty.kind, Kind::Key { .. }))
        {
            let what = format!("`{}` is a key, which is never opened", field.name);
            return Err(self.source.refused(at, what, None));
        }
        if keys.is_empty() {
            return Ok(rel);
        }
        let columns = |keys: &[SortKey]| {
            let column = |key: &SortKey| match key.expr {
                Expr::Column(id, _) => Some(id),
                _ => None,
            };
            keys.iter().filter_map(column).collect()
        };
        let nullable = |set: &BTreeSet<ColumnId>| {
            set.iter()
                .any(|id| rel.shape.fields[id.index()].ty.nullable)
        };
        let proved = |keys: &[SortKey]| {
            let named = columns(keys);
            let sets = rel.shape.unique.iter().chain(&rel.shape.claimed);
            let mut sets = sets.filter(|set| !nullable(set));
            rel.shape.capacity <= 1 || sets.any(|set| set.is_subset(&named))
        };
        for (at, field) in (0_u32..).zip(&rel.shape.fields) {
            if field.ty.kind.has_order()
                && !proved(&keys)
                && !columns(&keys).contains(&ColumnId(at))
            {
                keys.push(SortKey::ascending(Expr::column(at)));
            }
        }
        let input = Box::new(rel.plan);
        let plan = match limit {
            Some(rows) => Plan::TopK { input, keys, rows },
            None => Plan::Sort { input, keys },
        };
        let shape = self.shape(&plan, at)?;
        Ok(Rel {
            plan,
            shape,
            names: rel.names,
        })
    }
}
