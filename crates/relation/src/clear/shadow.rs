//! What columns use of their ranges, on sample rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use num_bigint::BigInt;

use super::cell::Row;
use super::double::{Doubles, nearest};
use super::{ClearError, Input, Rows, World, aggregate, cells, compare_all, key_values};
use crate::expr::Expr;
use crate::kind::{Kind, Type, Value};
use crate::plan::{Aggregate, AggregateFunction, Overflow, Plan, Program, SortKey};
use crate::shape::{Field, Shape};

/// A relation of a shadow run: a table, or a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Its name.
    pub name: String,
    /// Its valid rows.
    pub rows: u64,
    /// Its columns, in order.
    pub columns: Vec<ColumnUse>,
}

/// What a column uses of what is proved of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnUse {
    /// The column, with the type that holds of all rows whatever they are.
    pub field: Field,
    /// Rows in which it is null.
    pub nulls: u64,
    /// Its least and its greatest value; nothing for keys, whose digests have no order, and where there is none.
    pub extremes: Option<(Value, Value)>,
    /// Rows at the least and at the greatest value of the proved range, where a clip puts what is beyond; nothing where a column has no range, or one of a single value.
    pub at_ends: Option<(u64, u64)>,
    /// The largest distance of its numbers from what IEEE doubles give, of a column that functions without exact values made.
    pub error: Option<f64>,
}

/// Evaluates all steps on sample rows, of which a table may have fewer than its capacity, and gives what each column uses of its range: tables, then
/// steps, in their order in the program. Proved ranges are those of the program: no value of the sample changes them.
///
/// # Errors
/// [`ClearError`] as of [`evaluate`](super::evaluate); a table has more rows than its capacity.
pub fn observe(program: &Program, tables: &[Input]) -> Result<Vec<Observed>, ClearError> {
    let shapes = program.check()?;
    let mut all = Vec::new();
    for (at, table) in program.tables.iter().enumerate() {
        let rows = table.capacity;
        let input = tables.get(at).ok_or(ClearError::Rows { table: at, rows })?;
        if input.rows.len() as u64 > u64::from(rows) || input.valid.len() != input.rows.len() {
            return Err(ClearError::Rows { table: at, rows });
        }
    }
    cells(program, tables)?;
    for (table, input) in program.tables.iter().zip(tables) {
        let columns = table.columns.iter().map(|column| Field {
            name: column.name.clone(),
            ty: column.ty.clone(),
        });
        let rows = input.rows.iter().zip(&input.valid);
        let rows: Vec<&Vec<Value>> = rows
            .filter_map(|(row, valid)| valid.then_some(row))
            .collect();
        all.push(used(&table.name, columns.collect(), &rows, &[]));
    }
    let mut shadow = Shadow {
        world: World::new(program, tables, &shapes),
        beside: Vec::new(),
    };
    for (step, shape) in program.steps.iter().zip(&shapes) {
        all.push(shadow.step(&step.name, &step.plan, shape)?);
    }
    Ok(all)
}

/// What the columns of a relation use, some of which doubles follow.
fn used(name: &str, fields: Vec<Field>, rows: &[&Vec<Value>], errors: &[Option<f64>]) -> Observed {
    let column = |(at, field): (usize, Field)| {
        let kind = &field.ty.kind;
        let present = || {
            rows.iter()
                .map(|row| row[at])
                .filter(|cell| *cell != Value::Null)
        };
        let ordered = !matches!(kind, Kind::Key { .. });
        let least = present().min_by(|a, b| order(*a, *b));
        let greatest = present().max_by(|a, b| order(*a, *b));
        let ends = match kind {
            Kind::Integer(range) | Kind::Date(range) => Some(*range),
            Kind::Decimal { units, .. } => Some(*units),
            _ => None,
        };
        let ends = ends.filter(|range| range.min() < range.max());
        let count = |end: i128| present().filter(|cell| *cell == Value::Number(end)).count() as u64;
        ColumnUse {
            nulls: rows.len() as u64 - present().count() as u64,
            extremes: least.zip(greatest).filter(|_| ordered),
            at_ends: ends.map(|range| (count(range.min()), count(range.max()))),
            error: errors.get(at).copied().flatten(),
            field,
        }
    };
    Observed {
        name: name.to_owned(),
        rows: rows.len() as u64,
        columns: fields.into_iter().enumerate().map(column).collect(),
    }
}

/// The order of two values of one kind: of quotients, which are over different numbers, by cross multiplication.
fn order(a: Value, b: Value) -> Ordering {
    match (a, b) {
        (Value::Ratio(a, below), Value::Ratio(b, under)) => {
            (BigInt::from(a) * under).cmp(&(BigInt::from(b) * below))
        }
        _ => a.cmp(&b),
    }
}

/// A relation with doubles beside its cells.
#[derive(Clone, Default)]
struct Beside {
    rows: Rows,
    /// The doubles of each row.
    doubles: Vec<Vec<Option<f64>>>,
    /// Which columns a function without exact values made: only these may differ.
    inexact: Vec<bool>,
}

struct Shadow<'a> {
    world: World<'a>,
    /// The steps with doubles; nothing of one whose columns are all exact.
    beside: Vec<Option<Beside>>,
}

impl Shadow<'_> {
    fn step(&mut self, name: &str, plan: &Plan, shape: &Shape) -> Result<Observed, ClearError> {
        let plan = match plan {
            Plan::Open { input, .. } => input,
            plan => plan,
        };
        let fields = shape.fields.clone();
        if !self.inexact(plan)?.contains(&true) {
            let (rows, incomplete) = self.world.rows(plan)?;
            let observed = used(name, fields, &rows.iter().collect::<Vec<_>>(), &[]);
            self.world.steps.push((rows, incomplete));
            self.beside.push(None);
            return Ok(observed);
        }
        let beside = self.rows(plan)?;
        let errors: Vec<_> = (0..fields.len())
            .map(|at| beside.error(at, &fields[at].ty))
            .collect();
        let rows: Vec<&Vec<Value>> = beside.rows.iter().collect();
        let observed = used(name, fields, &rows, &errors);
        // Whether a bound left out rows is no part of what is observed.
        self.world.steps.push((beside.rows.clone(), false));
        self.beside.push(Some(beside));
        Ok(observed)
    }

    /// Which columns of a plan a function without exact values made, as far as doubles follow them.
    fn inexact(&self, plan: &Plan) -> Result<Vec<bool>, ClearError> {
        Ok(match plan {
            Plan::Project { input, columns } => {
                let of = self.inexact(input)?;
                columns
                    .iter()
                    .map(|one| is_inexact(&one.expr, &of))
                    .collect()
            }
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                ..
            } => {
                let of = self.inexact(input)?;
                let followed = |aggregate: &Aggregate| follows(aggregate, &of);
                let keys = keys.iter().map(|_| false);
                keys.chain(aggregates.iter().map(followed)).collect()
            }
            Plan::Filter { input, .. }
            | Plan::Sort { input, .. }
            | Plan::TopK { input, .. }
            | Plan::Trim { input, .. }
            | Plan::Open { input, .. } => self.inexact(input)?,
            Plan::UnionAll { inputs } => {
                let mut all = vec![false; self.world.types(plan)?.len()];
                for input in inputs {
                    let of = self.inexact(input)?;
                    all.iter_mut().zip(of).for_each(|(all, of)| *all |= of);
                }
                all
            }
            Plan::Step { name } => {
                let mut steps = self.world.program.steps.iter();
                let at = steps.position(|step| step.name == *name);
                match at.and_then(|at| self.beside.get(at)) {
                    Some(Some(beside)) => beside.inexact.clone(),
                    _ => vec![false; self.world.types(plan)?.len()],
                }
            }
            _ => vec![false; self.world.types(plan)?.len()],
        })
    }

    /// The rows of a plan with their doubles, which start anew from exact cells behind joins, windows and models.
    fn rows(&self, plan: &Plan) -> Result<Beside, ClearError> {
        let inexact = self.inexact(plan)?;
        if !inexact.contains(&true) {
            return self.exact(plan);
        }
        let (rows, doubles) = match plan {
            Plan::Project { input, columns } => {
                let (types, of) = (self.world.types(input)?, self.rows(input)?);
                let project = |row: Doubles<'_>| {
                    let exact = columns.iter().map(|one| row.row.value(&one.expr)).collect();
                    let doubles = columns.iter().map(|one| row.value(&one.expr)).collect();
                    (exact, doubles)
                };
                of.each(&types).map(project).unzip()
            }
            Plan::Filter { input, predicate } => {
                let (types, of) = (self.world.types(input)?, self.rows(input)?);
                let kept: Vec<bool> = of
                    .each(&types)
                    .map(|one| one.row.is_true(predicate))
                    .collect();
                let all = of.rows.into_iter().zip(of.doubles).zip(kept);
                all.filter_map(|(row, kept)| kept.then_some(row)).unzip()
            }
            Plan::Sort { input, keys } => self.sorted(input, keys, usize::MAX)?,
            Plan::TopK { input, keys, rows } => self.sorted(input, keys, *rows as usize)?,
            Plan::Trim {
                input,
                rows: bound,
                overflow,
            } => {
                let of = self.rows(input)?;
                if of.rows.len() as u64 > u64::from(*bound) && *overflow == Overflow::Refuse {
                    return Err(ClearError::TooManyRows { rows: *bound });
                }
                let all = of.rows.into_iter().zip(of.doubles);
                all.take(*bound as usize).unzip()
            }
            Plan::UnionAll { inputs } => {
                let (mut rows, mut doubles) = (Vec::new(), Vec::new());
                for input in inputs {
                    let of = self.rows(input)?;
                    rows.extend(of.rows);
                    doubles.extend(of.doubles);
                }
                (rows, doubles)
            }
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                min_rows,
                ..
            } => {
                let (types, of) = (self.world.types(input)?, self.rows(input)?);
                let mut groups: BTreeMap<Vec<Value>, Vec<Doubles<'_>>> = BTreeMap::new();
                if keys.is_empty() {
                    groups.insert(Vec::new(), Vec::new());
                }
                for row in of.each(&types) {
                    let key = keys.iter().map(|key| row.row.value(&key.expr)).collect();
                    groups.entry(key).or_default().push(row);
                }
                groups.retain(|_, rows| rows.len() as u64 >= u64::from(*min_rows));
                let group = |(mut exact, rows): (Vec<Value>, Vec<Doubles<'_>>)| {
                    let own: Vec<Row<'_>> = rows.iter().map(|row| row.row).collect();
                    let mut doubles = vec![None; keys.len()];
                    doubles.extend(aggregates.iter().map(|one| of_group(one, &rows)));
                    exact.extend(aggregates.iter().map(|one| aggregate::of_group(one, &own)));
                    (exact, doubles)
                };
                // What doubles do not follow starts anew from the exact cell.
                let (rows, doubles): (Rows, Vec<_>) = groups.into_iter().map(group).unzip();
                let types = self.world.types(plan)?;
                let anew = |(row, doubles): (&Vec<Value>, Vec<Option<f64>>)| {
                    let exact = cells_of(row, &types).into_iter();
                    let all = exact.zip(doubles).zip(&inexact);
                    all.map(|((exact, double), inexact)| if *inexact { double } else { exact })
                        .collect()
                };
                let doubles = rows.iter().zip(doubles).map(anew).collect();
                (rows, doubles)
            }
            Plan::Open { input, .. } => return self.rows(input),
            Plan::Step { name } => {
                let mut steps = self.world.program.steps.iter();
                let at = steps.position(|step| step.name == *name);
                let found = at.and_then(|at| self.beside.get(at)).cloned().flatten();
                return found.map_or_else(|| self.exact(plan), Ok);
            }
            _ => return self.exact(plan),
        };
        Ok(Beside {
            rows,
            doubles,
            inexact,
        })
    }

    /// Exact rows, from which doubles start.
    fn exact(&self, plan: &Plan) -> Result<Beside, ClearError> {
        let types = self.world.types(plan)?;
        let (rows, _) = self.world.rows(plan)?;
        Ok(Beside {
            doubles: rows.iter().map(|row| cells_of(row, &types)).collect(),
            inexact: vec![false; types.len()],
            rows,
        })
    }

    /// The first rows of a plan in an order.
    #[allow(clippy::type_complexity, reason = "rows, and the doubles of each")]
    fn sorted(
        &self,
        input: &Plan,
        keys: &[SortKey],
        first: usize,
    ) -> Result<(Rows, Vec<Vec<Option<f64>>>), ClearError> {
        let (types, of) = (self.world.types(input)?, self.rows(input)?);
        let keyed: Vec<_> = of
            .each(&types)
            .map(|one| key_values(keys, &one.row))
            .collect();
        let mut all: Vec<_> = keyed
            .into_iter()
            .zip(of.rows.into_iter().zip(of.doubles))
            .collect();
        all.sort_by(|(one, _), (other, _)| compare_all(keys, one, other));
        Ok(all.into_iter().take(first).map(|(_, row)| row).unzip())
    }
}

impl Beside {
    /// Its rows.
    fn each<'a>(&'a self, types: &'a [Type]) -> impl Iterator<Item = Doubles<'a>> {
        let all = self.rows.iter().zip(&self.doubles);
        all.map(|(row, cells)| Doubles {
            row: Row::new(row, types),
            cells,
        })
    }

    /// The largest distance of a column from its doubles, if it is one that may differ. What is no number in doubles is as far as can be.
    fn error(&self, at: usize, ty: &Type) -> Option<f64> {
        if !self.inexact[at] {
            return None;
        }
        let pairs = self.rows.iter().zip(&self.doubles);
        let distance = |(row, doubles): (&Vec<Value>, &Vec<Option<f64>>)| {
            let exact = cells_of(&row[at..=at], std::slice::from_ref(ty))[0]?;
            let distance = (exact - doubles[at]?).abs();
            Some(if distance.is_finite() {
                distance
            } else {
                f64::MAX
            })
        };
        pairs.filter_map(distance).reduce(f64::max)
    }
}

/// The doubles of exact cells.
fn cells_of(row: &[Value], types: &[Type]) -> Vec<Option<f64>> {
    let of = Row::new(row, types);
    let column = |at| nearest(of.cell(&Expr::column(at as u32)));
    (0..row.len()).map(column).collect()
}

/// Whether the value of an expression comes from a function without exact values, in it or in a column, and doubles follow it from there.
fn is_inexact(expr: &Expr, of: &[bool]) -> bool {
    match expr {
        Expr::Column(id, _) => of[id.index()],
        Expr::Real(..) => true,
        Expr::Arithmetic(..)
        | Expr::Divide(..)
        | Expr::Round(..)
        | Expr::Rescale(..)
        | Expr::Coalesce(_) => expr.operands().into_iter().any(|part| is_inexact(part, of)),
        Expr::NullIf(a, _) => is_inexact(a, of),
        Expr::Case {
            branches,
            otherwise,
        } => {
            let mut values = branches.iter().map(|(_, then)| then).chain([&**otherwise]);
            values.any(|part| is_inexact(part, of))
        }
        _ => false,
    }
}

/// Whether doubles follow an aggregate of inexact numbers.
fn follows(aggregate: &Aggregate, of: &[bool]) -> bool {
    match &aggregate.function {
        AggregateFunction::Sum(argument)
        | AggregateFunction::Avg(argument)
        | AggregateFunction::Min(argument)
        | AggregateFunction::Max(argument) => is_inexact(argument, of),
        _ => false,
    }
}

/// An aggregate of doubles; nothing for one that they do not follow.
fn of_group(aggregate: &Aggregate, rows: &[Doubles<'_>]) -> Option<f64> {
    let argument = aggregate.function.argument()?;
    let filter = aggregate.filter.as_ref();
    let chosen = rows
        .iter()
        .filter(|one| filter.is_none_or(|filter| one.row.is_true(filter)));
    let values: Vec<f64> = chosen.filter_map(|one| one.value(argument)).collect();
    let sum = || values.iter().sum::<f64>();
    match &aggregate.function {
        _ if values.is_empty() => None,
        AggregateFunction::Sum(_) => Some(sum()),
        AggregateFunction::Avg(_) => Some(sum() / values.len() as f64),
        AggregateFunction::Min(_) => values.iter().copied().reduce(f64::min),
        AggregateFunction::Max(_) => values.iter().copied().reduce(f64::max),
        _ => None,
    }
}
