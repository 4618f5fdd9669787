//! Aggregates before joins: groups by a key that one side of a join has once are what each of its rows finds of the other side.
//!
//! The joins below a group by are taken apart into the relation whose rows they repeat and the relations that those look up. If the keys of the groups have the key
//! of one of these, its *pivot*, in them, every group is a row of the pivot: what is looked up from the pivot on makes one relation, all else another, whose rows
//! the aggregates are of.

use veil_relation::{
    Aggregate, ColumnId, Domain, Expr, JoinKind, Literal, Matches, Named, Plan, Value, clear,
};

use super::apart::{Leaves, Tree, all_columns, is_once, placed};
use super::text;
use super::{PhysicalError, Planner};

/// A group by as rows that find groups.
pub(super) struct Early {
    /// Rows of which each is a group.
    pub(super) upper: Plan,
    /// The groups that they find.
    pub(super) groups: Plan,
    /// Keys of the upper rows, and of the groups.
    pub(super) on: Vec<(Expr, Expr)>,
    /// The keys of the query, over the upper rows.
    pub(super) keys: Vec<Expr>,
    /// Rows that find no group are groups too, whose aggregates are these.
    pub(super) alone: Option<Vec<Alone>>,
    /// The relation whose keys are there once, in words.
    pub(super) words: String,
}

impl Planner<'_> {
    /// A group by whose rows are those of one side of a join, or none.
    pub(super) fn early(&self, plan: &Plan) -> Result<Option<Early>, PhysicalError> {
        let Plan::GroupBy {
            input,
            keys,
            aggregates,
            domain: Domain::Secret,
            min_rows,
        } = plan
        else {
            return Ok(None);
        };
        if keys.is_empty() || aggregates.iter().any(Self::is_rewritten) {
            return Ok(None);
        }
        let names = |columns: Vec<Expr>| -> Vec<Named> {
            let named = keys.iter().map(|key| key.name.clone()).zip(columns);
            named.map(|(name, expr)| Named { name, expr }).collect()
        };
        let mut of_keys: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
        let mut aggregates = aggregates.clone();
        // Projections and conditions between the group by and the join.
        let mut at = &**input;
        let mut conditions: Vec<Expr> = Vec::new();
        let mut over = |by: &dyn Fn(ColumnId) -> Expr, conditions: &mut Vec<Expr>| {
            for of in of_keys.iter_mut().chain(conditions) {
                *of = of.clone().substitute(by);
            }
            for of in &mut aggregates {
                *of = substituted(of.clone(), by);
            }
        };
        loop {
            match at {
                Plan::Project { input, columns } => {
                    let by = |column: ColumnId| columns[column.index()].expr.clone();
                    over(&by, &mut conditions);
                    at = input;
                }
                Plan::Filter { input, predicate } => {
                    predicate.clone().conjuncts(&mut conditions);
                    at = input;
                }
                _ => break,
            }
        }
        let of = Wanted {
            keys: of_keys,
            aggregates,
            conditions,
            min_rows: *min_rows,
        };
        match at {
            Plan::Join {
                kind: JoinKind::Left,
                ..
            } => self.early_left(at, of, &names),
            Plan::Join {
                kind: JoinKind::Inner,
                ..
            } => self.early_inner(at, of, &names),
            _ => Ok(None),
        }
    }

    /// Over a left join whose left has each key once: every row of the left is a group.
    fn early_left(
        &self,
        join: &Plan,
        of: Wanted,
        names: &dyn Fn(Vec<Expr>) -> Vec<Named>,
    ) -> Result<Option<Early>, PhysicalError> {
        let Plan::Join {
            left,
            right,
            on,
            condition: None,
            matches: Matches::UniqueLeft,
            ..
        } = join
        else {
            return Ok(None);
        };
        let (of_left, of_right) = (self.shape(left)?, self.shape(right)?);
        let width = of_left.fields.len() as u32;
        let on_left = |of: &Expr| all_columns(of, &|column| column.0 < width);
        let types = of_left.types();
        // Rows whose key is null find nothing, and would be one group.
        let whole = on.iter().all(|(key, _)| {
            let there = key.ty(&types).is_ok_and(|ty| !ty.nullable);
            there && of.keys.contains(key)
        });
        let right_alone = |of: &Expr| all_columns(of, &|column| column.0 >= width);
        let fits = whole
            && !on.is_empty()
            && of.min_rows <= 1
            && of.keys.iter().all(on_left)
            && of.conditions.iter().all(on_left)
            && of.aggregates.iter().all(|one| each(one, &right_alone))
            && is_once(&of_left, on.iter().map(|(key, _)| key));
        if !fits {
            return Ok(None);
        }
        let types: Vec<_> = of_right.fields.iter().map(|field| &field.ty.kind).collect();
        let null = |column: ColumnId| {
            let kind = types[(column.0 - width) as usize].clone();
            Expr::Literal(Literal::Null(kind))
        };
        let alone: Option<Vec<Alone>> = of
            .aggregates
            .iter()
            .map(|one| of_nulls(one, &null))
            .collect();
        let Some(alone) = alone else { return Ok(None) };
        let local = |column: ColumnId| Expr::column(column.0 - width);
        let aggregates = of.aggregates.iter().cloned();
        let group = Plan::GroupBy {
            input: right.clone(),
            keys: names(on.iter().map(|(_, key)| key.clone()).collect()),
            aggregates: aggregates.map(|one| substituted(one, &local)).collect(),
            domain: Domain::Secret,
            min_rows: 0,
        };
        let Plan::GroupBy { keys, .. } = &group else {
            return Ok(None);
        };
        if keys.len() != on.len() {
            return Ok(None);
        }
        let upper = if of.conditions.is_empty() {
            (**left).clone()
        } else {
            Plan::Filter {
                input: left.clone(),
                predicate: Expr::all(of.conditions),
            }
        };
        let keys_of = on.iter().map(|(key, _)| key.clone());
        Ok(Some(Early {
            upper,
            groups: group,
            on: keys_of.zip((0..).map(Expr::column)).collect(),
            keys: of.keys,
            alone: Some(alone),
            words: text::relation(left),
        }))
    }

    /// Over inner joins, one of whose relations is the pivot.
    fn early_inner(
        &self,
        join: &Plan,
        of: Wanted,
        names: &dyn Fn(Vec<Expr>) -> Vec<Named>,
    ) -> Result<Option<Early>, PhysicalError> {
        let mut tree = Tree::default();
        let Some(columns) = self.apart(join, vec![], &mut tree)? else {
            return Ok(None);
        };
        let by = |column: ColumnId| columns[column.index()].clone();
        let over = |of: &Expr| of.clone().substitute(&by);
        let keys: Vec<Expr> = of.keys.iter().map(over).collect();
        let aggregates = of.aggregates.into_iter();
        let aggregates: Vec<Aggregate> = aggregates.map(|one| substituted(one, &by)).collect();
        let mut conditions: Vec<Expr> = of.conditions.iter().map(over).collect();
        conditions.append(&mut tree.conditions);
        for pivot in 1..tree.leaves.len() {
            let wanted = Wanted {
                keys: keys.clone(),
                aggregates: aggregates.clone(),
                conditions: conditions.clone(),
                min_rows: of.min_rows,
            };
            if let Some(early) = around(&tree, pivot, wanted, names) {
                let rows = |plan: &Plan| Ok::<_, PhysicalError>(self.shape(plan)?.capacity);
                let Plan::GroupBy { input, .. } = &early.groups else {
                    continue;
                };
                // Groups are in no fewer places than the pivot has rows.
                if rows(&early.upper)? <= rows(input)? {
                    return Ok(Some(early));
                }
            }
        }
        Ok(None)
    }
}

/// What an aggregate is of a row that finds no group.
#[derive(Clone, Copy)]
pub(super) enum Alone {
    Null,
    Number(i128),
}

/// What is asked of the rows of joins.
struct Wanted {
    keys: Vec<Expr>,
    aggregates: Vec<Aggregate>,
    conditions: Vec<Expr>,
    min_rows: u32,
}

/// The groups as rows of what is looked up from a pivot on.
fn around(
    tree: &Tree<'_>,
    pivot: usize,
    mut of: Wanted,
    names: &dyn Fn(Vec<Expr>) -> Vec<Named>,
) -> Option<Early> {
    let mut upper = Leaves::from([pivot]);
    for (at, leaf) in tree.leaves.iter().enumerate().skip(pivot + 1) {
        let mut asks = leaf.on.iter().flat_map(|(by, _)| tree.of(by));
        if asks.all(|of| upper.contains(&of)) {
            upper.insert(at);
        }
    }
    let lower: Leaves = (0..tree.leaves.len())
        .filter(|at| !upper.contains(at))
        .collect();
    let pairs = &tree.leaves[pivot].on;
    // A key is the same on both sides.
    for key in &mut of.keys {
        if let Some((_, same)) = pairs.iter().find(|(by, _)| by == key) {
            *key = same.clone();
        }
    }
    let down = |column: ColumnId| {
        let column = Expr::column(column.0);
        let same = pairs.iter().find(|(_, key)| *key == column);
        same.map_or(column, |(by, _)| by.clone())
    };
    let of_upper = |expr: &Expr| tree.of(expr).is_subset(&upper);
    if !of.keys.iter().all(of_upper) || !pairs.iter().all(|(_, key)| of.keys.contains(key)) {
        return None;
    }
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for condition in of.conditions {
        if of_upper(&condition) {
            above.push(condition);
        } else {
            below.push(condition.substitute(&down));
        }
    }
    let aggregates = of.aggregates.into_iter().map(|one| substituted(one, &down));
    let aggregates: Vec<Aggregate> = aggregates.collect();
    let (upper_plan, of_upper) = tree.plan(&upper, &above)?;
    let (lower_plan, of_lower) = tree.plan(&lower, &below)?;
    let on = pairs
        .iter()
        .map(|(by, key)| Some((placed(key, &of_upper)?, placed(by, &of_lower)?)));
    let on: Vec<(Expr, Expr)> = on.collect::<Option<_>>()?;
    let keys = of.keys.iter().map(|key| placed(key, &of_upper));
    let keys: Vec<Expr> = keys.collect::<Option<_>>()?;
    let local =
        |column: ColumnId| Expr::column(of_lower.get(&column.0).copied().unwrap_or(u32::MAX));
    let fits = |one: &Aggregate| each(one, &|of| placed(of, &of_lower).is_some());
    if !aggregates.iter().all(fits) || keys.len() < on.len() {
        return None;
    }
    let aggregates = aggregates.into_iter().map(|one| substituted(one, &local));
    let groups = Plan::GroupBy {
        input: Box::new(lower_plan),
        keys: names(on.iter().map(|(_, key)| key.clone()).collect()),
        aggregates: aggregates.collect(),
        domain: Domain::Secret,
        min_rows: of.min_rows,
    };
    Some(Early {
        upper: upper_plan,
        groups,
        on: on
            .into_iter()
            .map(|(key, _)| key)
            .zip((0..).map(Expr::column))
            .collect(),
        keys,
        alone: None,
        words: text::relation(tree.leaves[pivot].plan),
    })
}

/// Whether the argument and the filter of an aggregate both are such.
fn each(of: &Aggregate, such: &dyn Fn(&Expr) -> bool) -> bool {
    let mut parts = of.function.argument().into_iter().chain(&of.filter);
    parts.all(such)
}

fn substituted(of: Aggregate, by: &dyn Fn(ColumnId) -> Expr) -> Aggregate {
    let function = of.function;
    let Ok(function) =
        function.try_map::<std::convert::Infallible>(&mut |of| Ok(of.substitute(by)));
    Aggregate {
        name: of.name,
        function,
        filter: of.filter.map(|filter| filter.substitute(by)),
    }
}

/// What an aggregate is of one row in which all columns are null: null, or a number. Nothing, if it is anything else.
fn of_nulls(of: &Aggregate, null: &dyn Fn(ColumnId) -> Expr) -> Option<Alone> {
    use veil_relation::AggregateFunction::{Count, CountRows};
    let value = |expr: &Expr| clear::constant(&expr.clone().substitute(null)).ok();
    let counted = match &of.filter {
        None => true,
        Some(filter) => value(filter)? == Value::Bool(true),
    };
    let argument = match of.function.argument() {
        None => None,
        Some(argument) => Some(value(argument)?),
    };
    let some = counted && argument != Some(Value::Null);
    match &of.function {
        CountRows | Count(_) => Some(Alone::Number(i128::from(some))),
        _ => (!some).then_some(Alone::Null),
    }
}
