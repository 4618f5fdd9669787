//! What is publicly known of the relation that an operator gives: columns, capacity, keys.

use std::collections::BTreeSet;

use crate::expr::Expr;
use crate::functions::{aggregate_type, argument, condition, form, sort_keys, typed, window_type};
use crate::kind::{Kind, Type};
use crate::plan::{Domain, JoinKind, Matches, Named, Plan, Program};
use crate::plan_error::PlanError;
use crate::schema::{ColumnId, MOST_ROWS, Origin};
use veil_numeric::Range;

/// A column of a relation that a plan makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name; two fields may have one.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// What is publicly known of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The columns.
    pub fields: Vec<Field>,
    /// Rows, those that are not valid among them.
    pub capacity: u64,
    /// Sets of columns in which no two valid rows are equal, nulls being equal to no value; the empty set if there is at most one valid row.
    pub unique: Vec<BTreeSet<ColumnId>>,
    /// Of these, the sets that rest on a claim of an owner, not on an operator.
    pub claimed: Vec<BTreeSet<ColumnId>>,
}

impl Shape {
    /// The types of the columns.
    #[must_use]
    pub fn types(&self) -> Vec<Type> {
        self.fields.iter().map(|field| field.ty.clone()).collect()
    }

    /// Whether no two valid rows are equal in these columns, unless one of them is null: by an operator or by a claim.
    #[must_use]
    pub fn is_unique(&self, columns: &BTreeSet<ColumnId>) -> bool {
        let sets = || self.unique.iter().chain(&self.claimed);
        self.capacity <= 1 || sets().any(|set| set.is_subset(columns))
    }
}

impl Program {
    /// Looks whether all tables, names, types and capacities are as they must be, and gives the shape of each step.
    ///
    /// # Errors
    /// [`PlanError`], with the operator.
    pub fn check(&self) -> Result<Vec<Shape>, PlanError> {
        self.check_models()?;
        let mut names = BTreeSet::new();
        for table in &self.tables {
            table.check()?;
            if !names.insert(table.name.as_str()) {
                return Err(PlanError::TwoNames(table.name.clone()));
            }
        }
        let mut shapes = Vec::new();
        for step in &self.steps {
            if !names.insert(step.name.as_str()) {
                return Err(PlanError::TwoNames(step.name.clone()));
            }
            let plan = match &step.plan {
                Plan::Open { input, .. } => input,
                plan => plan,
            };
            shapes.push(Shapes::over(self, &shapes).of(plan)?);
        }
        Ok(shapes)
    }

    /// The shape of a plan that reads the tables and any of the steps.
    ///
    /// # Errors
    /// [`PlanError`], with the operator.
    pub fn shape(&self, plan: &Plan) -> Result<Shape, PlanError> {
        let shapes = self.check()?;
        Shapes::over(self, &shapes).of(plan)
    }
}

/// Derives shapes over the tables of a program and the steps whose shapes are known.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    program: &'a Program,
    steps: &'a [Shape],
}

impl<'a> Shapes<'a> {
    /// Over the tables of a program and its first steps, whose shapes are given in their order.
    #[must_use]
    pub const fn over(program: &'a Program, steps: &'a [Shape]) -> Self {
        Self { program, steps }
    }

    /// The shape of a plan.
    ///
    /// # Errors
    /// [`PlanError`], with the operator.
    pub fn of(&self, plan: &Plan) -> Result<Shape, PlanError> {
        let shape = self.derive(plan)?;
        if shape.capacity > u64::from(MOST_ROWS) {
            let rows = shape.capacity;
            return Err(PlanError::TooLong { rows });
        }
        Ok(shape)
    }

    fn derive(&self, plan: &Plan) -> Result<Shape, PlanError> {
        match plan {
            Plan::Scan { table, columns } => self.scan(table, columns),
            Plan::Step { name } => {
                let steps = self.program.steps.iter().zip(self.steps);
                let mut found = steps.filter(|(step, _)| step.name == *name);
                match found.next() {
                    Some((step, shape)) if !matches!(step.plan, Plan::Open { .. }) => {
                        Ok(shape.clone())
                    }
                    _ => Err(PlanError::NoStep(name.clone())),
                }
            }
            Plan::Filter { input, predicate } => {
                let shape = self.of(input)?;
                condition("filter", predicate, &shape.types())?;
                Ok(shape)
            }
            Plan::Project { input, columns } => project(&self.of(input)?, columns),
            Plan::UnionAll { inputs } => self.union(inputs),
            Plan::Join {
                kind,
                left,
                right,
                on,
                condition,
                matches,
            } => join(
                *kind,
                self.of(left)?,
                self.of(right)?,
                on,
                condition.as_ref(),
                *matches,
            ),
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                domain,
                min_rows: _,
            } => {
                let input = self.of(input)?;
                let types = input.types();
                let mut fields = Vec::new();
                // Of public lists, and of the ranges of numbers and dates: no group has a key outside.
                let (mut product, mut most) = (Some(1_u64), Some(1_u64));
                for key in keys {
                    let ty = typed("group by", &key.expr, &types)?;
                    if matches!(ty.kind, Kind::Ratio { .. }) {
                        return Err(argument("group by", &ty.kind));
                    }
                    let values = ty
                        .kind
                        .domain()
                        .map(|values| values + u64::from(ty.nullable));
                    product = product.zip(values).and_then(|(a, b)| a.checked_mul(b));
                    let width = |range: Range| {
                        let width = range.max().checked_sub(range.min())?;
                        u64::try_from(width)
                            .ok()?
                            .checked_add(1 + u64::from(ty.nullable))
                    };
                    let values = ty.kind.range().and_then(width);
                    most = most.zip(values).and_then(|(a, b)| a.checked_mul(b));
                    let name = key.name.clone();
                    fields.push(Field { name, ty });
                }
                for aggregate in aggregates {
                    if let Some(filter) = &aggregate.filter {
                        condition("filter of an aggregate", filter, &types)?;
                    }
                    let maybe_none = keys.is_empty() || aggregate.filter.is_some();
                    let ty =
                        aggregate_type(&aggregate.function, maybe_none, &types, input.capacity)?;
                    let name = aggregate.name.clone();
                    fields.push(Field { name, ty });
                }
                let mut capacity = if keys.is_empty() { 1 } else { input.capacity };
                if let Some(most) = most {
                    capacity = capacity.min(most);
                }
                match (*domain, product) {
                    (Domain::Secret, _) => {}
                    (Domain::Public(groups), Some(product)) if u64::from(groups) == product => {}
                    (Domain::Public(_), _) => {
                        return Err(form(
                            "group by",
                            "a public domain is the product of those of its keys",
                        ));
                    }
                }
                let unique = vec![(0..keys.len() as u32).map(ColumnId).collect()];
                Ok(Shape {
                    fields,
                    capacity,
                    unique,
                    claimed: Vec::new(),
                })
            }
            Plan::Distinct { input } => {
                let mut shape = self.of(input)?;
                if let Some(field) = shape
                    .fields
                    .iter()
                    .find(|field| matches!(field.ty.kind, Kind::Ratio { .. }))
                {
                    return Err(argument("distinct", &field.ty.kind));
                }
                shape
                    .unique
                    .push((0..shape.fields.len() as u32).map(ColumnId).collect());
                Ok(shape)
            }
            Plan::Sort { input, keys } => {
                let shape = self.of(input)?;
                sort_keys("sort", keys, &shape.types())?;
                Ok(shape)
            }
            Plan::TopK { input, keys, rows } => {
                let mut shape = self.of(input)?;
                sort_keys("top k", keys, &shape.types())?;
                shape.capacity = shape.capacity.min(u64::from(*rows));
                Ok(shape)
            }
            Plan::Window {
                input,
                partition,
                order,
                functions,
            } => {
                let mut shape = self.of(input)?;
                let types = shape.types();
                for key in partition {
                    let ty = typed("window", key, &types)?;
                    if matches!(ty.kind, Kind::Ratio { .. }) {
                        return Err(argument("window", &ty.kind));
                    }
                }
                sort_keys("window", order, &types)?;
                for windowed in functions {
                    let ty = window_type(
                        &windowed.function,
                        !order.is_empty(),
                        &types,
                        shape.capacity,
                    )?;
                    let name = windowed.name.clone();
                    shape.fields.push(Field { name, ty });
                }
                Ok(shape)
            }
            Plan::Trim { input, rows, .. } => {
                let mut shape = self.of(input)?;
                shape.capacity = shape.capacity.min(u64::from(*rows));
                Ok(shape)
            }
            Plan::Fit { input, model } => model.shape(&self.of(input)?),
            Plan::Apply {
                input,
                model,
                weights,
            } => {
                model.check_weights(weights.as_deref(), self.program)?;
                model.shape(self.of(input)?)
            }
            Plan::Open { .. } => Err(form(
                "open",
                "a relation is opened at the root of a step only",
            )),
        }
    }

    fn scan(&self, name: &str, columns: &[ColumnId]) -> Result<Shape, PlanError> {
        let tables = &self.program.tables;
        let table = tables.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| PlanError::NoTable(name.to_owned()))?;
        let mut fields = Vec::new();
        for column in columns {
            let found = table.columns.get(column.index());
            let found = found.ok_or(form("scan", "a column that the table does not have"))?;
            fields.push(Field {
                name: found.name.clone(),
                ty: found.ty.clone(),
            });
        }
        let distinct: BTreeSet<_> = columns.iter().collect();
        if distinct.len() != columns.len() {
            return Err(form("scan", "a column twice"));
        }
        let place = |column: &ColumnId| columns.iter().position(|wanted| wanted == column);
        let claim = |set: &Vec<ColumnId>| {
            let places = set
                .iter()
                .map(|column| place(column).map(|at| ColumnId(at as u32)));
            places.collect::<Option<BTreeSet<_>>>()
        };
        let sets = table.unique.iter().filter_map(claim).collect();
        // What parties have kept was proved in the job that kept it.
        let (unique, claimed) = match table.origin {
            Origin::Owner(_) => (Vec::new(), sets),
            Origin::Stored(_) | Origin::First(_) => (sets, Vec::new()),
        };
        Ok(Shape {
            fields,
            capacity: u64::from(table.capacity),
            unique,
            claimed,
        })
    }

    fn union(&self, inputs: &[Plan]) -> Result<Shape, PlanError> {
        let shapes = inputs
            .iter()
            .map(|input| self.of(input))
            .collect::<Result<Vec<_>, _>>()?;
        let Some((first, rest)) = shapes.split_first() else {
            return Err(form("union", "at least one relation"));
        };
        let mut all = first.clone();
        for other in rest {
            if other.fields.len() != all.fields.len() {
                return Err(form("union", "relations of as many columns"));
            }
            for (column, (field, added)) in all.fields.iter_mut().zip(&other.fields).enumerate() {
                let kind = field
                    .ty
                    .kind
                    .hull(&added.ty.kind)
                    .ok_or_else(|| PlanError::Union {
                        column: column + 1,
                        left: field.ty.kind.to_string(),
                        right: added.ty.kind.to_string(),
                    })?;
                field.ty = Type::of(kind).or_null(field.ty.nullable || added.ty.nullable);
            }
            all.capacity += other.capacity;
        }
        if rest.is_empty() {
            return Ok(all);
        }
        (all.unique, all.claimed) = (Vec::new(), Vec::new());
        Ok(all)
    }
}

fn project(input: &Shape, columns: &[Named]) -> Result<Shape, PlanError> {
    let types = input.types();
    let mut fields = Vec::new();
    for column in columns {
        let ty = typed("project", &column.expr, &types)?;
        let name = column.name.clone();
        fields.push(Field { name, ty });
    }
    let place = |wanted: &ColumnId| {
        let copy = |column: &Named| column.expr == Expr::column(wanted.0);
        columns.iter().position(copy).map(|at| ColumnId(at as u32))
    };
    let kept = |sets: &[BTreeSet<ColumnId>]| {
        let kept = sets
            .iter()
            .filter_map(|set| set.iter().map(place).collect::<Option<BTreeSet<_>>>());
        kept.collect::<Vec<_>>()
    };
    Ok(Shape {
        fields,
        capacity: input.capacity,
        unique: kept(&input.unique),
        claimed: kept(&input.claimed),
    })
}

/// The shape of a join of relations with these shapes: what [`Shapes::of`] derives for [`Plan::Join`].
///
/// # Errors
/// [`PlanError`], if keys or condition are not as they must be.
pub fn join(
    kind: JoinKind,
    left: Shape,
    right: Shape,
    on: &[(Expr, Expr)],
    further: Option<&Expr>,
    matches: Matches,
) -> Result<Shape, PlanError> {
    let (lefts, rights) = (left.types(), right.types());
    for (one, other) in on {
        let (one, other) = (typed("join", one, &lefts)?, typed("join", other, &rights)?);
        if one.kind.hull(&other.kind).is_none() {
            return Err(PlanError::JoinKeys {
                left: one.kind.to_string(),
                right: other.kind.to_string(),
            });
        }
    }
    let width = left.fields.len() as u32;
    if let Some(further) = further {
        let both: Vec<Type> = lefts.into_iter().chain(rights).collect();
        condition("join", further, &both)?;
    }
    let (mut unique, mut claimed) = (left.unique, left.claimed);
    if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
        return Ok(Shape {
            fields: left.fields,
            capacity: left.capacity,
            unique,
            claimed,
        });
    }
    let moved = |sets: Vec<BTreeSet<ColumnId>>| {
        let moved = sets
            .into_iter()
            .map(|set| set.into_iter().map(|c| ColumnId(c.0 + width)).collect());
        moved.collect::<Vec<BTreeSet<ColumnId>>>()
    };
    let (right_unique, right_claimed) = (moved(right.unique), moved(right.claimed));
    let unmatched = if kind == JoinKind::Left {
        left.capacity
    } else {
        0
    };
    // A set that is unique in the side whose rows are repeated is not unique in the result; together with one of the other side it is.
    let capacity = match matches {
        Matches::UniqueRight => left.capacity,
        Matches::UniqueLeft => right.capacity + unmatched,
        Matches::AtMost(rows) => u64::from(rows) + unmatched,
        Matches::Any => {
            return Err(form(
                "join",
                "a join that gives pairs says how many there may be",
            ));
        }
    };
    match (matches, kind) {
        (Matches::UniqueRight, _) => {}
        (Matches::UniqueLeft, JoinKind::Inner) => (unique, claimed) = (right_unique, right_claimed),
        _ => (unique, claimed) = (Vec::new(), Vec::new()),
    }
    let nulls = kind == JoinKind::Left;
    let added = right.fields.into_iter().map(|field| Field {
        name: field.name,
        ty: field.ty.or_null(nulls),
    });
    Ok(Shape {
        fields: left.fields.into_iter().chain(added).collect(),
        capacity,
        unique,
        claimed,
    })
}
