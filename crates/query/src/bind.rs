//! Binds queries: common table expressions, unions, order and limit.

use std::collections::BTreeSet;

use sqlparser::ast::{
    self, LimitClause, OrderByKind, OrderByOptions, SetExpr, SetOperator, SetQuantifier, Spanned,
};
use sqlparser::tokenizer::Span;
use veil_relation::{
    ColumnId, Expr, Kind, Named, Overflow, Plan, PlanError, Program, Shape, Shapes, SortKey, Step,
};

use crate::error::{Problem, SqlError};
use crate::job::Bound;
use crate::order::JoinCost;
use crate::rel::{Rel, folded};
use crate::source::Source;
use crate::term::{Term, Terms};

/// Most parts of a union.
const MOST_PARTS: usize = 100;

/// What a query's result is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// It is opened: columns are named one by one, rows are in an order that says nothing.
    Opened,
    /// It is read by another query.
    Inner,
}

/// Binds one query of a job.
pub(crate) struct Binder<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) program: &'a mut Program,
    /// Shapes of the steps so far.
    pub(crate) shapes: &'a mut Vec<Shape>,
    pub(crate) cost: &'a dyn JoinCost,
    pub(crate) bounds: &'a [Bound],
    /// Names of common table expressions in scope, each with its step; later ones hide earlier ones.
    pub(crate) ctes: Vec<(String, String)>,
    /// The bound on what is being bound, if it has a name with one.
    pub(crate) bound: Option<Bound>,
    /// The query's name, which is the beginning of those of its steps.
    pub(crate) name: &'a str,
    /// Names that a bound may be of.
    pub(crate) named: &'a mut BTreeSet<String>,
}

impl Binder<'_> {
    /// The shape of a plan, or a refusal at a place.
    pub(crate) fn shape(&self, plan: &Plan, at: Span) -> Result<Shape, SqlError> {
        let shape = Shapes::over(self.program, self.shapes).of(plan);
        shape.map_err(|wrong| self.wrong(wrong, at))
    }

    /// A plan that is none, as a refusal at a place.
    pub(crate) fn wrong(&self, wrong: PlanError, at: Span) -> SqlError {
        let problem = match wrong {
            PlanError::Type { source, .. } => Problem::Type(source),
            other => Problem::Plan(other),
        };
        self.source.error(at, problem)
    }

    /// A relation of a plan whose columns have no names.
    pub(crate) fn rel(&self, plan: Plan, table: Option<&str>, at: Span) -> Result<Rel, SqlError> {
        let shape = self.shape(&plan, at)?;
        Ok(Rel::named(plan, shape, table))
    }

    /// Binds a query with all its clauses.
    pub(crate) fn query(&mut self, of: &ast::Query, level: Level) -> Result<Rel, SqlError> {
        let ast::Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = of;
        let refused = |what: &str, word: &str, instead| {
            Err(self.source.refused(self.source.word(word), what, instead))
        };
        if fetch.is_some() {
            return refused("FETCH is not in the dialect", "FETCH", Some("write LIMIT"));
        }
        if !locks.is_empty()
            || for_clause.is_some()
            || settings.is_some()
            || format_clause.is_some()
            || !pipe_operators.is_empty()
        {
            return refused(
                "a clause after the query is not in the dialect",
                "FOR",
                None,
            );
        }
        let outer = self.ctes.len();
        if let Some(with) = with {
            self.with(with)?;
        }
        let order = order_by
            .as_ref()
            .map_or(Ok(&[][..]), |order| self.order_by(order))?;
        let limit = limit_clause
            .as_ref()
            .map_or(Ok(None), |limit| self.limit(limit))?;
        if let Some(key) = order.first()
            && limit.is_none()
            && level == Level::Inner
        {
            let what = "the order of a relation that is read by a query says nothing";
            return Err(self.source.refused(
                key.expr.span(),
                what,
                Some("leave ORDER BY out, or say how many rows by LIMIT"),
            ));
        }
        if limit.is_some() && order.is_empty() {
            return refused(
                "LIMIT without ORDER BY does not say which rows",
                "LIMIT",
                Some("add ORDER BY"),
            );
        }
        let rel = match &**body {
            SetExpr::Select(select) => self.select(select, order, limit, level)?,
            SetExpr::Query(inner) if order.is_empty() => self.query(inner, level)?,
            other => {
                let rel = self.set(other, level)?;
                let keys = self.output_keys(&rel, order)?;
                self.ordered(rel, keys, limit, level, other.span())?
            }
        };
        self.ctes.truncate(outer);
        Ok(rel)
    }

    fn with(&mut self, with: &ast::With) -> Result<(), SqlError> {
        let ast::With {
            with_token: _,
            recursive,
            cte_tables,
        } = with;
        if *recursive {
            return Err(self.source.refused(
                self.source.word("RECURSIVE"),
                "WITH RECURSIVE is not in the dialect",
                None,
            ));
        }
        for cte in cte_tables {
            let ast::Cte {
                alias,
                query,
                from,
                materialized,
                closing_paren_token: _,
            } = cte;
            let at = alias.name.span;
            if from.is_some() || materialized.is_some() {
                return Err(self.source.refused(
                    at,
                    "MATERIALIZED and FROM of WITH are not in the dialect",
                    Some("leave it out"),
                ));
            }
            let name = folded(&alias.name);
            let step = self.free_name(&format!("{}.{name}", self.name));
            let outer = std::mem::replace(
                &mut self.bound,
                self.bounds.iter().find(|bound| bound.of == name).cloned(),
            );
            self.named.insert(name.clone());
            let rel = self.query(query, Level::Inner)?;
            let rel = self.alias(rel, alias)?;
            let rel = self.trimmed(rel, at)?;
            self.bound = outer;
            self.shapes.push(rel.shape);
            let plan = rel.plan;
            self.program.steps.push(Step {
                name: step.clone(),
                plan,
            });
            self.ctes.push((name, step));
        }
        Ok(())
    }

    fn free_name(&self, wanted: &str) -> String {
        let taken = |name: &str| self.program.steps.iter().any(|step| step.name == name);
        let numbered = (2..).map(|number| format!("{wanted}.{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
        names
            .find(|name| !taken(name))
            .expect("there are more numbers than steps")
    }

    /// The relation in as many rows as its bound says.
    pub(crate) fn trimmed(&self, rel: Rel, at: Span) -> Result<Rel, SqlError> {
        match &self.bound {
            Some(Bound {
                of: _,
                rows,
                overflow,
            }) if u64::from(*rows) < rel.shape.capacity => {
                let plan = Plan::Trim {
                    input: Box::new(rel.plan),
                    rows: *rows,
                    overflow: *overflow,
                };
                let shape = self.shape(&plan, at)?;
                Ok(Rel {
                    plan,
                    shape,
                    names: rel.names,
                })
            }
            _ => Ok(rel),
        }
    }

    /// How many pairs a join may find whose keys are unique on neither side.
    pub(crate) fn most_pairs(&self) -> Option<u32> {
        let refusing = self
            .bound
            .as_ref()
            .filter(|bound| bound.overflow == Overflow::Refuse);
        refusing.map(|bound| bound.rows)
    }

    /// The relation under the names of an alias.
    pub(crate) fn alias(&self, mut rel: Rel, alias: &ast::TableAlias) -> Result<Rel, SqlError> {
        let ast::TableAlias {
            explicit: _,
            name,
            columns,
            at,
        } = alias;
        if at.is_some() {
            return Err(self.source.refused(
                name.span,
                "AT in an alias is not in the dialect",
                None,
            ));
        }
        if !columns.is_empty() && columns.len() != rel.names.len() {
            let what = format!("{} columns have {} names", rel.names.len(), columns.len());
            return Err(self.source.refused(name.span, what, None));
        }
        let table = folded(name);
        for (at, of) in rel.names.iter_mut().enumerate() {
            of.table = Some(table.clone());
            of.hidden = false;
            if let Some(column) = columns.get(at) {
                if column.data_type.is_some() {
                    return Err(self.source.refused(
                        column.name.span,
                        "types in an alias are not in the dialect",
                        None,
                    ));
                }
                of.column = folded(&column.name);
            }
        }
        // The names of a step are those of its plan.
        let same = rel
            .names
            .iter()
            .zip(&rel.shape.fields)
            .all(|(name, field)| name.column == field.name);
        if !same {
            let name = |at: usize| rel.names[at].column.clone();
            let expr = |at: usize| Named {
                name: name(at),
                expr: Expr::column(at as u32),
            };
            let columns = (0..rel.names.len()).map(expr).collect();
            rel.plan = Plan::Project {
                input: Box::new(rel.plan),
                columns,
            };
            rel.shape = self.shape(&rel.plan, alias.name.span)?;
        }
        Ok(rel)
    }

    fn order_by<'o>(&self, order: &'o ast::OrderBy) -> Result<&'o [ast::OrderByExpr], SqlError> {
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

    fn limit(&self, limit: &LimitClause) -> Result<Option<u32>, SqlError> {
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

    fn output_keys(&self, rel: &Rel, order: &[ast::OrderByExpr]) -> Result<Vec<SortKey>, SqlError> {
        let names: Vec<String> = rel.names.iter().map(|name| name.column.clone()).collect();
        let key = |key: &ast::OrderByExpr| match self.output(&names, &key.expr)? {
            Some(column) => self.sort_key(key, Expr::Column(column)),
            None => Err(self.source.refused(
                key.expr.span(),
                "a union is ordered by its columns",
                Some("write the name or the place of one"),
            )),
        };
        order.iter().map(key).collect()
    }

    /// The relation in an order, or its first rows. What ties is ordered by all columns, so that the order of input rows decides nothing.
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
                Expr::Column(id) => Some(id),
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
            let sets = rel.shape.unique.iter().filter(|set| !nullable(set));
            rel.shape.capacity <= 1 || sets.into_iter().any(|set| set.is_subset(&named))
        };
        for (at, field) in (0_u32..).zip(&rel.shape.fields) {
            let sortable = !matches!(field.ty.kind, Kind::Key { .. } | Kind::Ratio { .. });
            if sortable && !proved(&keys) && !columns(&keys).contains(&ColumnId(at)) {
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

    fn set(&mut self, of: &SetExpr, level: Level) -> Result<Rel, SqlError> {
        let at = of.span();
        match of {
            SetExpr::Select(select) => self.select(select, &[], None, level),
            SetExpr::Query(query) => self.query(query, level),
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier,
                ..
            } => {
                let distinct = match set_quantifier {
                    SetQuantifier::All => false,
                    SetQuantifier::None | SetQuantifier::Distinct => true,
                    _ => {
                        return Err(self.source.refused(
                            at,
                            "UNION BY NAME is not in the dialect",
                            None,
                        ));
                    }
                };
                let mut parts = Vec::new();
                self.union_parts(of, *set_quantifier, &mut parts)?;
                let rels = parts
                    .into_iter()
                    .map(|part| self.set(part, level))
                    .collect::<Result<Vec<_>, _>>()?;
                self.union(rels, distinct, at)
            }
            SetExpr::SetOperation { op, .. } => {
                let what = format!("{op} is not in the dialect");
                Err(self.source.refused(
                    self.source.word(&op.to_string()),
                    what,
                    Some("write a SEMI JOIN or ANTI JOIN, or IN or NOT EXISTS of a subquery"),
                ))
            }
            SetExpr::Values(_) => Err(self.source.refused(
                self.source.word("VALUES"),
                "VALUES is not in the dialect",
                None,
            )),
            _ => Err(self
                .source
                .refused(at, "only SELECT and UNION make relations", None)),
        }
    }

    /// The parts of a chain of unions of one kind, in order.
    fn union_parts<'s>(
        &self,
        of: &'s SetExpr,
        same: SetQuantifier,
        into: &mut Vec<&'s SetExpr>,
    ) -> Result<(), SqlError> {
        let mut stack = vec![of];
        while let Some(part) = stack.pop() {
            match part {
                SetExpr::SetOperation {
                    op: SetOperator::Union,
                    set_quantifier,
                    left,
                    right,
                } if *set_quantifier == same => stack.extend([&**right, &**left]),
                other => into.push(other),
            }
        }
        if into.len() > MOST_PARTS {
            let (most, of) = (MOST_PARTS, "parts of a union");
            return Err(self
                .source
                .error(into[MOST_PARTS].span(), Problem::TooLarge { most, of }));
        }
        Ok(())
    }

    fn union(&self, rels: Vec<Rel>, distinct: bool, at: Span) -> Result<Rel, SqlError> {
        let width = rels[0].names.len();
        let names = rels[0].names.clone();
        if rels.iter().any(|rel| rel.names.len() != width) {
            return Err(self.source.refused(
                at,
                "the parts of a union have different numbers of columns",
                None,
            ));
        }
        let mut columns: Vec<Vec<Named>> = vec![Vec::new(); rels.len()];
        for column in 0..width {
            let term = |rel: &Rel| {
                Term::Expr(
                    Expr::column(column as u32),
                    rel.shape.fields[column].ty.clone(),
                )
            };
            let terms = Terms {
                source: self.source,
                at,
            };
            let unified = terms.unified(rels.iter().map(term).collect())?;
            for (part, (expr, _)) in columns.iter_mut().zip(unified) {
                let name = names[column].column.clone();
                part.push(Named { name, expr });
            }
        }
        let inputs = rels.into_iter().zip(columns).map(|(rel, columns)| {
            let same = columns
                .iter()
                .zip(0..)
                .all(|(column, at)| column.expr == Expr::column(at));
            let input = Box::new(rel.plan);
            if same {
                *input
            } else {
                Plan::Project { input, columns }
            }
        });
        let plan = Plan::UnionAll {
            inputs: inputs.collect(),
        };
        let plan = if distinct {
            Plan::Distinct {
                input: Box::new(plan),
            }
        } else {
            plan
        };
        let mut rel = self.rel(plan, None, at)?;
        rel.names = names;
        Ok(rel)
    }
}
