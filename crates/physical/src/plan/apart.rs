//! Trees of inner joins, taken apart: the relation whose rows they repeat, and those that it looks up.

use std::collections::{BTreeMap, BTreeSet};

use veil_relation::{ColumnId, Expr, JoinKind, Matches, Named, Plan, Shape};

use super::{PhysicalError, Planner};

/// A relation of a tree of joins.
pub(super) struct Leaf<'p> {
    pub(super) plan: &'p Plan,
    pub(super) shape: Shape,
    /// Its first column among those of all leaves.
    pub(super) first: u32,
    /// What the others look it up by, and its keys; nothing of the relation whose rows are repeated. Both over the columns of all leaves.
    pub(super) on: Vec<(Expr, Expr)>,
}

impl Leaf<'_> {
    pub(super) fn has(&self, column: ColumnId) -> bool {
        let width = self.shape.fields.len() as u32;
        (self.first..self.first + width).contains(&column.0)
    }
}

/// A tree of inner joins, taken apart.
#[derive(Default)]
pub(super) struct Tree<'p> {
    pub(super) leaves: Vec<Leaf<'p>>,
    pub(super) columns: u32,
    pub(super) conditions: Vec<Expr>,
}

/// Leaves, by their places.
pub(super) type Leaves = BTreeSet<usize>;

impl Tree<'_> {
    /// The leaves whose columns an expression has.
    pub(super) fn of(&self, expr: &Expr) -> Leaves {
        let mut found = Leaves::new();
        expr.columns(&mut |column| {
            found.extend(self.leaves.iter().position(|leaf| leaf.has(column)));
        });
        found
    }

    /// Some leaves as one relation, the first of which looks up the others; and where each of their columns is in it.
    pub(super) fn plan(
        &self,
        leaves: &Leaves,
        conditions: &[Expr],
    ) -> Option<(Plan, BTreeMap<u32, u32>)> {
        let mut places = BTreeMap::new();
        let mut made: Option<Plan> = None;
        for leaf in leaves.iter().map(|at| &self.leaves[*at]) {
            let on = leaf.on.iter().map(|(by, key)| {
                let local = |column: ColumnId| Expr::column(column.0 - leaf.first);
                Some((placed(by, &places)?, key.clone().substitute(&local)))
            });
            made = Some(match made {
                None => leaf.plan.clone(),
                Some(left) => Plan::Join {
                    kind: JoinKind::Inner,
                    left: Box::new(left),
                    right: Box::new(leaf.plan.clone()),
                    on: on.collect::<Option<_>>()?,
                    condition: None,
                    matches: Matches::UniqueRight,
                },
            });
            let so_far = places.len() as u32;
            let width = leaf.shape.fields.len() as u32;
            places.extend((0..width).map(|k| (leaf.first + k, so_far + k)));
        }
        let mut made = made?;
        if !conditions.is_empty() {
            let placed: Option<Vec<Expr>> =
                conditions.iter().map(|of| placed(of, &places)).collect();
            made = Plan::Filter {
                input: Box::new(made),
                predicate: Expr::all(placed?),
            };
        }
        Some((made, places))
    }
}

/// An expression over the columns of all leaves as one over those of a relation; none if it has others.
pub(super) fn placed(of: &Expr, places: &BTreeMap<u32, u32>) -> Option<Expr> {
    let mut all = true;
    of.columns(&mut |column| all &= places.contains_key(&column.0));
    all.then(|| {
        let place = |column: ColumnId| Expr::column(places[&column.0]);
        of.clone().substitute(&place)
    })
}

impl Planner<'_> {
    /// Takes inner joins apart: the columns of the plan over those of all leaves. None, if one of them cannot be.
    pub(super) fn apart<'p>(
        &self,
        plan: &'p Plan,
        on: Vec<(Expr, ColumnsOf)>,
        tree: &mut Tree<'p>,
    ) -> Result<Option<Vec<Expr>>, PhysicalError> {
        match plan {
            Plan::Project { input, columns } => {
                let below = on.into_iter().map(|(by, key)| {
                    let key = key
                        .0
                        .substitute(&|column| columns[column.index()].expr.clone());
                    (by, ColumnsOf(key))
                });
                let Some(fields) = self.apart(input, below.collect(), tree)? else {
                    return Ok(None);
                };
                let over = |of: &Named| {
                    let field = |column: ColumnId| fields[column.index()].clone();
                    of.expr.clone().substitute(&field)
                };
                Ok(Some(columns.iter().map(over).collect()))
            }
            Plan::Filter { input, predicate } => {
                let Some(fields) = self.apart(input, on, tree)? else {
                    return Ok(None);
                };
                let field = |column: ColumnId| fields[column.index()].clone();
                let over = predicate.clone().substitute(&field);
                over.conjuncts(&mut tree.conditions);
                Ok(Some(fields))
            }
            Plan::Join {
                kind: JoinKind::Inner,
                left,
                right,
                on: pairs,
                condition,
                matches: matches @ (Matches::UniqueRight | Matches::UniqueLeft),
            } if !pairs.is_empty() => {
                let turned = *matches == Matches::UniqueLeft;
                let (many, once) = if turned { (right, left) } else { (left, right) };
                let widths = (
                    self.shape(left)?.fields.len(),
                    self.shape(right)?.fields.len(),
                );
                // Who looks up the join looks up the rows that it repeats.
                let first = if turned { widths.0 as u32 } else { 0 };
                let width = if turned { widths.1 } else { widths.0 } as u32;
                let mut above = Vec::new();
                for (by, key) in on {
                    let within = |column: ColumnId| (first..first + width).contains(&column.0);
                    if !all_columns(&key.0, &within) {
                        return Ok(None);
                    }
                    let key = key.0.substitute(&|column| Expr::column(column.0 - first));
                    above.push((by, ColumnsOf(key)));
                }
                let Some(of_many) = self.apart(many, above, tree)? else {
                    return Ok(None);
                };
                let pairs = pairs.iter().map(|(l, r)| {
                    let (by, key) = if turned { (r, l) } else { (l, r) };
                    let field = |column: ColumnId| of_many[column.index()].clone();
                    (by.clone().substitute(&field), ColumnsOf(key.clone()))
                });
                let Some(of_once) = self.apart(once, pairs.collect(), tree)? else {
                    return Ok(None);
                };
                let both = if turned {
                    [of_once, of_many].concat()
                } else {
                    [of_many, of_once].concat()
                };
                if let Some(condition) = condition {
                    let field = |column: ColumnId| both[column.index()].clone();
                    let over = condition.clone().substitute(&field);
                    over.conjuncts(&mut tree.conditions);
                }
                Ok(Some(both))
            }
            leaf => {
                let shape = self.shape(leaf)?;
                let keys = on.iter().map(|(_, key)| &key.0);
                // What was proved of a join has to be so of the relation alone.
                if !on.is_empty() && !is_once(&shape, keys) {
                    return Ok(None);
                }
                let first = tree.columns;
                let width = shape.fields.len() as u32;
                tree.columns += width;
                let on = on.into_iter().map(|(by, key)| {
                    let key = key.0.substitute(&|column| Expr::column(column.0 + first));
                    (by, key)
                });
                let on = on.collect();
                tree.leaves.push(Leaf {
                    plan: leaf,
                    shape,
                    first,
                    on,
                });
                Ok(Some((first..first + width).map(Expr::column).collect()))
            }
        }
    }
}

/// A key over the columns of the plan that is taken apart.
pub(super) struct ColumnsOf(pub(super) Expr);

/// Whether no two rows of a relation are equal in these keys, by an operator or by a claim.
pub(super) fn is_once<'k>(shape: &Shape, keys: impl Iterator<Item = &'k Expr>) -> bool {
    let columns = keys.filter_map(Expr::copied);
    shape.is_unique(&columns.collect())
}

pub(super) fn all_columns(of: &Expr, fit: &dyn Fn(ColumnId) -> bool) -> bool {
    let mut fitting = true;
    of.columns(&mut |column| fitting &= fit(column));
    fitting
}
