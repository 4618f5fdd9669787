//! What a program means: all steps evaluated in the clear.
//!
//! Written from the semantics of the operators alone, over lists of valid rows. It knows nothing of how parties compute, and is what their
//! results are compared with.

mod aggregate;
mod cell;
mod double;
mod forest;
mod shadow;
mod window;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::expr::Expr;
use crate::fit::number;
use crate::kind::{Type, Value};
use crate::plan::{JoinKind, Matches, Overflow, Plan, Program, SortKey};
use crate::plan_error::PlanError;
use crate::schema::ColumnId;
use crate::shape::{Field, Shape, Shapes};
use crate::typing::TypeError;
use cell::Row;

pub use shadow::{ColumnUse, Observed, observe};

/// The rows of a table, as its owner has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Whether each row is valid.
    pub valid: Vec<bool>,
    /// The cells of each row; those of rows that are not valid may be anything.
    pub rows: Vec<Vec<Value>>,
}

/// A relation that a step opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The step.
    pub step: String,
    /// The recipient.
    pub to: String,
    /// The columns.
    pub fields: Vec<Field>,
    /// The valid rows, in the order in which they are opened.
    pub rows: Vec<Vec<Value>>,
    /// Whether a bound left out rows and says so.
    pub incomplete: bool,
}

/// Why a program has no result on these rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClearError {
    /// The program is none.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Another number of tables, or of rows than a table's capacity.
    #[error("table {table} has not the {rows} rows that the program says")]
    Rows {
        /// The table, from 0.
        table: usize,
        /// Its capacity.
        rows: u32,
    },
    /// A row that is not valid, in a table each of whose rows is.
    #[error("row {row} of table {table} is not valid, and each row of the table is")]
    NotValid {
        /// The table, from 0.
        table: usize,
        /// The row, from 0.
        row: usize,
    },
    /// A cell of a valid row that is not of its column's type.
    #[error("row {row}, column {column} of table {table} is not of its type")]
    Cell {
        /// The table, from 0.
        table: usize,
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
    },
    /// A key occurs twice on the side of a join where it must not.
    #[error("a key occurs twice where a join takes it to be unique")]
    DuplicateKey,
    /// A relation has more rows than its bound.
    #[error("a relation has more than {rows} rows")]
    TooManyRows {
        /// The bound.
        rows: u32,
    },
}

/// Valid rows.
type Rows = Vec<Vec<Value>>;

/// Evaluates all steps on the rows of all tables, in their order in the program; gives the relations that steps open.
///
/// # Errors
/// [`ClearError`]: the program is none, a row is not of its type, or a relation breaks a promise that the program rests on.
pub fn evaluate(program: &Program, tables: &[Input]) -> Result<Vec<Opened>, ClearError> {
    let shapes = program.check()?;
    for (at, table) in program.tables.iter().enumerate() {
        let rows = table.capacity;
        let input = tables.get(at).ok_or(ClearError::Rows { table: at, rows })?;
        if input.rows.len() as u64 != u64::from(rows) || input.valid.len() != input.rows.len() {
            return Err(ClearError::Rows { table: at, rows });
        }
        let empty = input.valid.iter().position(|valid| !valid);
        if let Some(row) = empty.filter(|_| !table.padded) {
            return Err(ClearError::NotValid { table: at, row });
        }
    }
    cells(program, tables)?;
    let mut world = World::new(program, tables, &shapes);
    let mut opened = Vec::new();
    for (step, shape) in program.steps.iter().zip(&shapes) {
        let (plan, to) = match &step.plan {
            Plan::Open { input, to } => (&**input, Some(to)),
            plan => (plan, None),
        };
        let (mut rows, incomplete) = world.rows(plan)?;
        if let Some(to) = to {
            if !is_ordered(plan) {
                rows.sort_unstable();
            }
            opened.push(Opened {
                step: step.name.clone(),
                to: to.clone(),
                fields: shape.fields.clone(),
                rows: rows.clone(),
                incomplete,
            });
        }
        world.steps.push((rows, incomplete));
    }
    Ok(opened)
}

/// Looks whether each cell of a valid row is of its column's type.
fn cells(program: &Program, tables: &[Input]) -> Result<(), ClearError> {
    for (at, (table, input)) in program.tables.iter().zip(tables).enumerate() {
        let valid = input
            .rows
            .iter()
            .zip(&input.valid)
            .enumerate()
            .filter(|(_, (_, valid))| **valid);
        for (row, (cells, _)) in valid {
            let wrong =
                table.columns.iter().enumerate().position(|(column, of)| {
                    !cells.get(column).is_some_and(|cell| of.ty.holds(cell))
                });
            if let Some(column) = wrong {
                let table = at;
                return Err(ClearError::Cell { table, row, column });
            }
        }
    }
    Ok(())
}

/// The value of an expression without columns.
///
/// # Errors
/// [`TypeError`] if it has no type, or has columns.
pub fn constant(expr: &Expr) -> Result<Value, TypeError> {
    expr.ty(&[])?;
    Ok(Row::new(&[], &[]).value(expr))
}

/// Whether a plan gives its rows in an order of its own.
fn is_ordered(plan: &Plan) -> bool {
    match plan {
        Plan::Sort { .. } | Plan::TopK { .. } => true,
        Plan::Project { input, .. } | Plan::Apply { input, .. } | Plan::Trim { input, .. } => {
            is_ordered(input)
        }
        _ => false,
    }
}

struct World<'a> {
    program: &'a Program,
    tables: &'a [Input],
    shapes: &'a [Shape],
    steps: Vec<(Rows, bool)>,
}

impl<'a> World<'a> {
    const fn new(program: &'a Program, tables: &'a [Input], shapes: &'a [Shape]) -> Self {
        Self {
            program,
            tables,
            shapes,
            steps: Vec::new(),
        }
    }

    fn types(&self, plan: &Plan) -> Result<Vec<Type>, PlanError> {
        Ok(Shapes::over(self.program, self.shapes).of(plan)?.types())
    }

    fn capacity(&self, plan: &Plan) -> Result<u64, PlanError> {
        Ok(Shapes::over(self.program, self.shapes).of(plan)?.capacity)
    }

    /// The valid rows of a plan, and whether a bound that says so left out some.
    fn rows(&self, plan: &Plan) -> Result<(Rows, bool), ClearError> {
        match plan {
            Plan::Scan { table, columns } => Ok((self.scan(table, columns)?, false)),
            Plan::Step { name } => {
                let found = self
                    .program
                    .steps
                    .iter()
                    .position(|step| step.name == *name);
                let rows = found.and_then(|at| self.steps.get(at)).cloned();
                Ok(rows.ok_or_else(|| PlanError::NoStep(name.clone()))?)
            }
            Plan::Filter { input, predicate } => {
                let types = self.types(input)?;
                let (mut rows, incomplete) = self.rows(input)?;
                rows.retain(|row| Row::new(row, &types).is_true(predicate));
                Ok((rows, incomplete))
            }
            Plan::Project { input, columns } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                let project = |row: Vec<Value>| {
                    let row = Row::new(&row, &types);
                    columns
                        .iter()
                        .map(|column| row.value(&column.expr))
                        .collect()
                };
                Ok((rows.into_iter().map(project).collect(), incomplete))
            }
            Plan::UnionAll { inputs } => {
                let (mut all, mut any) = (Vec::new(), false);
                for input in inputs {
                    let (rows, incomplete) = self.rows(input)?;
                    all.extend(rows);
                    any |= incomplete;
                }
                Ok((all, any))
            }
            Plan::Join {
                kind,
                left,
                right,
                on,
                condition,
                matches,
            } => {
                let types = (self.types(left)?, self.types(right)?);
                let (lefts, one) = self.rows(left)?;
                let (rights, other) = self.rows(right)?;
                let join = Join {
                    kind: *kind,
                    on,
                    condition: condition.as_ref(),
                    matches: *matches,
                    types,
                };
                Ok((join.rows(&lefts, &rights)?, one || other))
            }
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                domain: _,
                min_rows,
            } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                let mut groups: BTreeMap<Vec<Value>, Vec<Row<'_>>> = BTreeMap::new();
                if keys.is_empty() {
                    groups.insert(Vec::new(), Vec::new());
                }
                for row in &rows {
                    let row = Row::new(row, &types);
                    let key = keys.iter().map(|key| row.value(&key.expr)).collect();
                    groups.entry(key).or_default().push(row);
                }
                groups.retain(|_, rows| rows.len() as u64 >= u64::from(*min_rows));
                let result = groups.into_iter().map(|(mut key, rows)| {
                    key.extend(aggregates.iter().map(|of| aggregate::of_group(of, &rows)));
                    key
                });
                Ok((result.collect(), incomplete))
            }
            Plan::Distinct { input } => {
                let (rows, incomplete) = self.rows(input)?;
                let distinct: BTreeSet<_> = rows.into_iter().collect();
                Ok((distinct.into_iter().collect(), incomplete))
            }
            Plan::Sort { input, keys } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                Ok((sorted(rows, keys, &types), incomplete))
            }
            Plan::TopK {
                input,
                keys,
                rows: first,
            } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                let mut rows = sorted(rows, keys, &types);
                rows.truncate(*first as usize);
                Ok((rows, incomplete))
            }
            Plan::Window {
                input,
                partition,
                order,
                functions,
            } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                Ok((
                    window::rows(rows, &types, partition, order, functions),
                    incomplete,
                ))
            }
            Plan::Trim {
                input,
                rows: bound,
                overflow,
            } => {
                let (mut rows, incomplete) = self.rows(input)?;
                let over = rows.len() as u64 > u64::from(*bound);
                if over && *overflow == Overflow::Refuse {
                    return Err(ClearError::TooManyRows { rows: *bound });
                }
                rows.truncate(*bound as usize);
                Ok((rows, incomplete || over && *overflow == Overflow::Flag))
            }
            Plan::Fit { input, model } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                let fitting = model.fitting(&types, self.capacity(input)?)?;
                let exprs = model.exprs();
                let numbers = rows.iter().filter_map(|row| {
                    let row = Row::new(row, &types);
                    let numbers = exprs.iter().map(|of| number(row.value(of)));
                    numbers.collect::<Option<Vec<_>>>()
                });
                Ok((model.rows(&fitting, numbers.collect())?, incomplete))
            }
            Plan::Apply {
                input,
                model,
                weights,
            } => {
                let types = self.types(input)?;
                let (rows, incomplete) = self.rows(input)?;
                let mut inference = model.inference(&types)?;
                if let Some(weights) = weights {
                    let (numbers, _) = self.rows(weights)?;
                    let numbers = numbers.iter().filter_map(|row| number(*row.first()?));
                    let numbers: Vec<i128> = numbers.collect();
                    inference = inference.with_weights(&numbers).map_err(PlanError::from)?;
                }
                let classes = model.classes()?.map(|(_, indices)| indices);
                let applied = rows.into_iter().map(|mut row| {
                    let numbers = {
                        let row = Row::new(&row, &types);
                        let numbers = model.features.iter().map(|of| number(row.value(of)));
                        numbers.collect::<Option<Vec<_>>>()
                    };
                    let given = model.values(&inference, classes.as_deref(), numbers.as_deref());
                    row.extend(given.map_err(PlanError::from)?);
                    Ok(row)
                });
                let applied = applied.collect::<Result<Rows, PlanError>>()?;
                Ok((applied, incomplete))
            }
            Plan::Open { input, .. } => self.rows(input),
        }
    }

    fn scan(&self, table: &str, columns: &[ColumnId]) -> Result<Rows, PlanError> {
        let found = self.program.tables.iter().position(|of| of.name == table);
        let input = found.and_then(|at| self.tables.get(at));
        let input = input.ok_or_else(|| PlanError::NoTable(table.to_owned()))?;
        let valid = input
            .rows
            .iter()
            .zip(&input.valid)
            .filter(|(_, valid)| **valid);
        let pick = |row: &Vec<Value>| columns.iter().map(|column| row[column.index()]).collect();
        Ok(valid.map(|(row, _)| pick(row)).collect())
    }
}

/// The order of two values under a key.
fn compare(key: &SortKey, one: Value, other: Value) -> Ordering {
    match (one == Value::Null, other == Value::Null) {
        (true, true) => Ordering::Equal,
        (true, false) if key.nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if key.nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if key.descending => other.cmp(&one),
        (false, false) => one.cmp(&other),
    }
}

/// The order of two rows of key values.
fn compare_all(keys: &[SortKey], one: &[Value], other: &[Value]) -> Ordering {
    let pairs = keys.iter().zip(one.iter().zip(other));
    pairs.fold(Ordering::Equal, |order, (key, (a, b))| {
        order.then_with(|| compare(key, *a, *b))
    })
}

/// The values of keys of a row.
fn key_values(keys: &[SortKey], row: &Row<'_>) -> Vec<Value> {
    keys.iter().map(|key| row.value(&key.expr)).collect()
}

fn sorted(rows: Rows, keys: &[SortKey], types: &[Type]) -> Rows {
    let mut with_keys: Vec<_> = rows
        .into_iter()
        .map(|row| (key_values(keys, &Row::new(&row, types)), row))
        .collect();
    with_keys.sort_by(|(one, _), (other, _)| compare_all(keys, one, other));
    with_keys.into_iter().map(|(_, row)| row).collect()
}

struct Join<'a> {
    kind: JoinKind,
    on: &'a [(Expr, Expr)],
    condition: Option<&'a Expr>,
    matches: Matches,
    /// Types of the columns of the left and of the right.
    types: (Vec<Type>, Vec<Type>),
}

impl Join<'_> {
    fn rows(&self, lefts: &Rows, rights: &Rows) -> Result<Rows, ClearError> {
        // A row with a null key is in no list: it matches nothing.
        let keyed = |rows: &Rows, types: &[Type], side: fn(&(Expr, Expr)) -> &Expr| {
            let mut keyed: HashMap<Vec<Value>, Vec<usize>> = HashMap::new();
            for (at, row) in rows.iter().enumerate() {
                let row = Row::new(row, types);
                let key: Vec<Value> = self.on.iter().map(|pair| row.value(side(pair))).collect();
                if !key.contains(&Value::Null) {
                    keyed.entry(key).or_default().push(at);
                }
            }
            keyed
        };
        let left_keys = keyed(lefts, &self.types.0, |pair| &pair.0);
        let right_keys = keyed(rights, &self.types.1, |pair| &pair.1);
        let twice = |keys: &HashMap<_, Vec<usize>>| keys.values().any(|rows| rows.len() > 1);
        let broken = match self.matches {
            Matches::UniqueRight => twice(&right_keys),
            Matches::UniqueLeft => twice(&left_keys),
            Matches::AtMost(_) | Matches::Any => false,
        };
        if broken {
            return Err(ClearError::DuplicateKey);
        }
        let mut partners: Vec<&[usize]> = vec![&[]; lefts.len()];
        for (key, rows) in &left_keys {
            for &row in rows {
                partners[row] = right_keys.get(key).map_or(&[], Vec::as_slice);
            }
        }
        let both: Vec<Type> = self.types.0.iter().chain(&self.types.1).cloned().collect();
        let (mut result, mut pairs) = (Vec::new(), 0_u64);
        for (left, partners) in lefts.iter().zip(partners) {
            let joined = partners
                .iter()
                .map(|&at| [left.as_slice(), &rights[at]].concat());
            let mut matched: Rows = joined
                .filter(|row| {
                    self.condition
                        .is_none_or(|c| Row::new(row, &both).is_true(c))
                })
                .collect();
            pairs += matched.len() as u64;
            match self.kind {
                JoinKind::Left if matched.is_empty() => {
                    let mut row = left.clone();
                    row.resize(both.len(), Value::Null);
                    result.push(row);
                }
                JoinKind::Inner | JoinKind::Left => result.append(&mut matched),
                JoinKind::Semi if !matched.is_empty() => result.push(left.clone()),
                JoinKind::Anti if matched.is_empty() => result.push(left.clone()),
                JoinKind::Semi | JoinKind::Anti => {}
            }
        }
        match (self.matches, self.kind) {
            (Matches::AtMost(rows), JoinKind::Inner | JoinKind::Left)
                if pairs > u64::from(rows) =>
            {
                Err(ClearError::TooManyRows { rows })
            }
            _ => Ok(result),
        }
    }
}
