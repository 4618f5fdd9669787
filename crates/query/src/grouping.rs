//! Binds GROUP BY of several sets of keys: ROLLUP, CUBE and GROUPING SETS.
//!
//! Each set is a group by of its own; keys that a row is not grouped by are null. What comes of all of them is one relation.

use std::collections::BTreeSet;

use sqlparser::ast::{self, GroupByExpr, Spanned};
use veil_relation::{Expr, Kind, Literal, Named, Plan};

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::group::is_window;
use crate::rel::Rel;
use crate::scalar::Scope;
use crate::select::{Finish, Item};
use crate::walk;

/// Sets of keys, at most: each is a group by.
const MOST_SETS: usize = 64;

/// Arguments of a call of `grouping`, at most: bits of an integer.
const MOST_KEYS: usize = 31;

/// The keys of a query's groups, and by which of them rows are grouped.
pub(crate) struct Groupings<'s> {
    pub(crate) keys: Vec<&'s ast::Expr>,
    /// Of each set the keys, by their places.
    pub(crate) sets: Vec<Vec<usize>>,
    /// Whether rows are grouped even without keys and aggregates.
    pub(crate) always: bool,
}

/// The parts of a SELECT that groups come before.
pub(crate) struct Listed<'a, 's> {
    pub(crate) items: &'a [Item<'s>],
    pub(crate) names: &'a [String],
    /// The items, HAVING, and keys of ORDER BY.
    pub(crate) after: &'a [&'s ast::Expr],
}

/// The sets that ROLLUP, CUBE, GROUPING SETS or one key is of.
fn alternatives(of: &ast::Expr) -> Vec<Vec<&ast::Expr>> {
    match of {
        ast::Expr::Rollup(parts) => {
            let lengths = (0..=parts.len()).rev();
            lengths
                .map(|length| parts[..length].iter().flatten().collect())
                .collect()
        }
        ast::Expr::Cube(parts) => {
            // One that is too long is refused as such.
            let all = 1usize << parts.len().min(MOST_SETS.ilog2() as usize + 1);
            let chosen = |set: usize| {
                let parts = parts.iter().enumerate();
                let parts = parts.filter(move |(at, _)| set >> at & 1 == 1);
                parts.flat_map(|(_, part)| part).collect()
            };
            (0..all).rev().map(chosen).collect()
        }
        ast::Expr::GroupingSets(sets) => {
            let sets = sets.iter().map(|set| set.iter().collect());
            sets.collect()
        }
        key => vec![vec![key]],
    }
}

impl Binder<'_> {
    /// The sets of keys of a GROUP BY: all combinations of one of each of its parts.
    pub(crate) fn groupings<'s>(&self, of: &'s ast::Select) -> Result<Groupings<'s>, SqlError> {
        let parts = match &of.group_by {
            GroupByExpr::Expressions(parts, modifiers) if modifiers.is_empty() => parts,
            _ => {
                let instead = "name the keys; or write ROLLUP (…), CUBE (…) or GROUPING SETS (…)";
                return Err(self.source.refused(
                    self.source.word("GROUP"),
                    "this GROUP BY is not in the dialect",
                    Some(instead),
                ));
            }
        };
        let mut keys: Vec<&ast::Expr> = Vec::new();
        let mut sets: Vec<Vec<usize>> = vec![vec![]];
        for part in parts {
            let mut further = Vec::new();
            for alternative in alternatives(part) {
                let mut own = Vec::new();
                for key in alternative {
                    let known = keys.iter().position(|known| *known == key);
                    own.push(known.unwrap_or(keys.len()));
                    if known.is_none() {
                        keys.push(key);
                    }
                }
                further.push(own);
            }
            if sets.len() * further.len() > MOST_SETS {
                let (most, of) = (MOST_SETS, "sets of keys of groups");
                return Err(self
                    .source
                    .error(part.span(), Problem::TooLarge { most, of }));
            }
            let all = sets.iter().flat_map(|set| {
                let both = further.iter().map(|own| [&set[..], own].concat());
                both.collect::<Vec<_>>()
            });
            sets = all.collect();
        }
        Ok(Groupings {
            keys,
            sets,
            always: !parts.is_empty() || of.having.is_some(),
        })
    }

    /// The keys of a call of `grouping`, by their places among those of groups.
    pub(crate) fn grouping(
        &mut self,
        rel: &mut Rel,
        of: &ast::Expr,
        keys: &[Expr],
    ) -> Result<Vec<usize>, SqlError> {
        let at = of.span();
        let ast::Expr::Function(call) = of else {
            return Err(self.source.refused(at, "grouping is a call", None));
        };
        let call = self.parts(call, at)?;
        let plain = !call.distinct
            && call.within.is_empty()
            && call.filter.is_none()
            && call.over.is_none();
        if !plain || call.args.is_empty() || call.args.len() > MOST_KEYS {
            let what = "grouping takes one to 31 keys of GROUP BY, and nothing else";
            return Err(self.source.refused(at, what, None));
        }
        let mut places = Vec::new();
        for arg in call.args {
            let place = match arg {
                None => None,
                Some(arg) => {
                    let (expr, _) = self.value(&mut Scope::rows(rel), arg)?;
                    keys.iter().position(|key| *key == expr)
                }
            };
            places.push(place.ok_or_else(|| {
                let what = "an argument of grouping is a key of GROUP BY";
                self.source.refused(at, what, None)
            })?);
        }
        Ok(places)
    }

    /// A SELECT whose rows are grouped by several sets of keys.
    pub(crate) fn by_sets(
        &mut self,
        of: &ast::Select,
        rel: &Rel,
        by: &Groupings<'_>,
        listed: &Listed<'_, '_>,
        order: &[ast::OrderByExpr],
        finish: Finish,
    ) -> Result<Rel, SqlError> {
        let Listed {
            items,
            names,
            after,
        } = listed;
        if let Some(call) = after.iter().find(|of| walk::any(of, is_window)) {
            return Err(self.source.refused(
                call.span(),
                "a window is over no sets of groups",
                Some("group in a subquery of FROM"),
            ));
        }
        // Keys of the order that are no items are columns of each set, too.
        let mut further = Vec::new();
        let mut keys = order.to_vec();
        for key in &mut keys {
            if self.output(names, &key.expr)?.is_some() {
                continue;
            }
            if finish.distinct {
                return Err(self.source.refused(
                    key.expr.span(),
                    "distinct rows are ordered by their columns",
                    None,
                ));
            }
            further.push(key.expr.clone());
            let place = names.len() + further.len();
            key.expr = ast::Expr::Value(ast::ValueWithSpan {
                value: ast::Value::Number(place.to_string(), false),
                span: key.expr.span(),
            });
        }
        let mut parts = Vec::new();
        for set in &by.sets {
            let mut rel = rel.clone();
            let grouped = self.group(by, set, &mut rel, (items, names), after)?;
            if let Some(having) = &of.having {
                self.having(&mut rel, grouped.as_ref(), having)?;
            }
            let items = items.iter().filter_map(|item| match item {
                Item::Expr(expr, name) => Some((*expr, name.clone())),
                Item::All(..) => None,
            });
            let more = further.iter().enumerate();
            let more = more.map(|(at, expr)| (expr, format!("order{}", at + 1)));
            let mut columns = Vec::new();
            for (expr, name) in items.chain(more) {
                let scope = &mut Scope::select(&mut rel, grouped.as_ref(), &[]);
                let (bound, ty) = self.value(scope, expr)?;
                // What rows of several sets are is no quotient.
                let expr = Self::rounded(bound, &ty.kind);
                columns.push(Named { name, expr });
            }
            let plan = Plan::Project {
                input: Box::new(rel.plan),
                columns,
            };
            parts.push(self.rel(plan, Some(""), finish.at)?);
        }
        let all = self.union(parts, false, finish.at)?;
        let column = |(at, name): (u32, &String)| Named {
            name: name.clone(),
            expr: Expr::column(at),
        };
        let own: Vec<Named> = (0..).zip(names.iter()).map(column).collect();
        let columns = (0..).zip(&all.names);
        let columns = columns.map(|(at, name)| Named {
            name: name.column.clone(),
            expr: Expr::column(at),
        });
        let columns = columns.collect();
        let rel = self.finished(all, None, &[], columns, &keys, finish)?;
        if further.is_empty() {
            return Ok(rel);
        }
        let plan = Plan::Project {
            input: Box::new(rel.plan),
            columns: own,
        };
        self.rel(plan, Some(""), finish.at)
    }
}

/// The groups of one set of keys as rows that have all keys, then aggregates, then what each call of `grouping` is.
pub(crate) fn of_set_alone(
    groups: Plan,
    own: &BTreeSet<usize>,
    kinds: &[Kind],
    groupings: &[Vec<usize>],
) -> Plan {
    let Plan::GroupBy {
        keys, aggregates, ..
    } = &groups
    else {
        return groups;
    };
    let mut place = 0;
    let of_keys = kinds.iter().enumerate().map(|(at, kind)| {
        let expr = if own.contains(&at) {
            place += 1;
            Expr::column(place - 1)
        } else {
            Expr::Literal(Literal::Null(kind.clone()))
        };
        let name = match &expr {
            Expr::Column(column, _) => keys[column.index()].name.clone(),
            _ => format!("key{}", at + 1),
        };
        Named { name, expr }
    });
    let mut columns: Vec<Named> = of_keys.collect();
    let first = keys.len() as u32;
    columns.extend((first..).zip(aggregates).map(|(at, aggregate)| Named {
        name: aggregate.name.clone(),
        expr: Expr::column(at),
    }));
    // The last key is the lowest bit, which is 1 where rows are not grouped by it.
    columns.extend(groupings.iter().enumerate().map(|(at, keys)| {
        let bits = keys.iter().fold(0_i128, |bits, key| {
            bits << 1 | i128::from(!own.contains(key))
        });
        Named {
            name: format!("grouping{}", at + 1),
            expr: Expr::integer(bits),
        }
    }));
    Plan::Project {
        input: Box::new(groups),
        columns,
    }
}
