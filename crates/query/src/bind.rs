//! Binds queries: common table expressions, unions, order and limit.

use std::collections::BTreeSet;

use sqlparser::ast::{self, SetExpr, Spanned};
use sqlparser::tokenizer::Span;
use veil_relation::{
    Expr, Named, Overflow, Plan, PlanError, Program, Shape, Shapes, Step, Trained,
};

use crate::error::{Problem, SqlError};
use crate::functions::TableFunction;
use crate::job::Bound;
use crate::order::JoinCost;
use crate::rel::{Rel, folded};
use crate::source::Source;

/// What a query's result is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// It is opened: columns are named one by one, rows are in an order that says nothing.
    Opened,
    /// It is kept, and read by other queries or none.
    Kept,
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
    pub(crate) models: &'a [Trained],
    pub(crate) functions: &'a [TableFunction],
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
        let written = wrong.range().and_then(|range| range.at.0);
        let problem = match wrong {
            PlanError::Type { source, .. } => Problem::Type(source),
            other => Problem::Plan(other),
        };
        match written {
            Some(place) => self.source.error_near(place, at, problem),
            None => self.source.error(at, problem),
        }
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
                keep: None,
                name: step.clone(),
                plan,
                at: self.source.at(at),
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
}
