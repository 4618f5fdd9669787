//! Columns that nothing reads are not read: those of tables are not shared at all.

use std::collections::{BTreeMap, BTreeSet};

use veil_relation::{
    ColumnId, Expr, FitKind, JoinKind, Named, Plan, PlanError, Program, Shape, Shapes,
};

/// Columns of an operator, by their places.
type Columns = BTreeSet<u32>;

/// Removes columns that no operator above reads, and aggregates, window functions and networks with them; over all steps.
///
/// Right, since an operator's other columns do not depend on them. Keys of groups and columns of distinct rows are never removed.
///
/// # Errors
/// [`PlanError`], if the program is none.
pub fn prune(program: &mut Program) -> Result<(), PlanError> {
    let shapes = program.check()?;
    let mut reads: BTreeMap<String, Columns> = BTreeMap::new();
    let mut kept: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for at in (0..program.steps.len()).rev() {
        let step = program.steps[at].clone();
        // What a job names and opens, or may store, keeps its columns.
        let needed = match reads.remove(&step.name) {
            Some(needed) if step.name.contains('.') && step.keep.is_none() => needed,
            _ => (0..shapes[at].fields.len() as u32).collect(),
        };
        let mut pruner = Pruner {
            shapes: Shapes::over(program, &shapes),
            reads: &mut reads,
        };
        let plan = match step.plan {
            Plan::Open { input, to } => {
                let input = Box::new(pruner.exactly(*input, &needed)?);
                Plan::Open { input, to }
            }
            plan => pruner.exactly(plan, &needed)?,
        };
        kept.insert(step.name, needed.into_iter().collect());
        program.steps[at].plan = plan;
    }
    let name = |(step, shape): (&veil_relation::Step, &Shape)| {
        let names = kept.get(&step.name).into_iter().flatten();
        let names = names.map(|at| shape.fields[*at as usize].name.clone());
        (step.name.clone(), names.collect())
    };
    let names: BTreeMap<String, Vec<String>> =
        program.steps.iter().zip(&shapes).map(name).collect();
    for step in &mut program.steps {
        replaced(&mut step.plan, &kept, &names);
    }
    Ok(())
}

struct Pruner<'a> {
    shapes: Shapes<'a>,
    reads: &'a mut BTreeMap<String, Columns>,
}

fn columns(of: &Expr, into: &mut Columns) {
    of.columns(&mut |id| {
        into.insert(id.0);
    });
}

/// The expression over the columns that are kept.
fn placed(of: Expr, kept: &[u32]) -> Expr {
    let place = |id: ColumnId| kept.iter().position(|column| *column == id.0);
    of.substitute(&|id| Expr::column(place(id).expect("what is read is kept") as u32))
}

impl Pruner<'_> {
    fn shape(&self, plan: &Plan) -> Result<Shape, PlanError> {
        self.shapes.of(plan)
    }

    /// The plan with these columns alone.
    fn exactly(&mut self, plan: Plan, needed: &Columns) -> Result<Plan, PlanError> {
        let names: Vec<String> = self
            .shape(&plan)?
            .fields
            .into_iter()
            .map(|field| field.name)
            .collect();
        let (plan, kept) = self.pruned(plan, needed)?;
        if kept.iter().eq(needed) {
            return Ok(plan);
        }
        let column = |id: &u32| Named {
            name: names[*id as usize].clone(),
            expr: placed(Expr::column(*id), &kept),
        };
        Ok(Plan::Project {
            input: Box::new(plan),
            columns: needed.iter().map(column).collect(),
        })
    }

    fn below(&mut self, plan: Plan, needed: &Columns) -> Result<(Box<Plan>, Vec<u32>), PlanError> {
        let (plan, kept) = self.pruned(plan, needed)?;
        Ok((Box::new(plan), kept))
    }

    /// The plan with these columns and perhaps others; gives the columns that it has.
    fn pruned(&mut self, plan: Plan, needed: &Columns) -> Result<(Plan, Vec<u32>), PlanError> {
        let exact = || needed.iter().copied().collect::<Vec<u32>>();
        Ok(match plan {
            Plan::Scan { table, columns } => {
                let columns = needed.iter().map(|at| columns[*at as usize]).collect();
                (Plan::Scan { table, columns }, exact())
            }
            Plan::Step { name } => {
                let fields = self.shape(&Plan::Step { name: name.clone() })?.fields;
                self.reads.entry(name.clone()).or_default().extend(needed);
                let column = |at: &u32| Named {
                    name: fields[*at as usize].name.clone(),
                    expr: Expr::column(*at),
                };
                let columns = needed.iter().map(column).collect();
                let input = Box::new(Plan::Step { name });
                (Plan::Project { input, columns }, exact())
            }
            Plan::Filter { input, predicate } => {
                let mut wanted = needed.clone();
                columns(&predicate, &mut wanted);
                let (input, kept) = self.below(*input, &wanted)?;
                let predicate = placed(predicate, &kept);
                (Plan::Filter { input, predicate }, kept)
            }
            Plan::Project {
                input,
                columns: all,
            } => {
                let mut wanted = Columns::new();
                let chosen: Vec<Named> =
                    needed.iter().map(|at| all[*at as usize].clone()).collect();
                for column in &chosen {
                    columns(&column.expr, &mut wanted);
                }
                // Over a step stands one projection, whose columns are placed when all reads of the step are known.
                if let Plan::Step { name } = &*input {
                    self.reads.entry(name.clone()).or_default().extend(wanted);
                    let columns = chosen;
                    return Ok((Plan::Project { input, columns }, exact()));
                }
                let (input, kept) = self.below(*input, &wanted)?;
                let place = |column: Named| Named {
                    name: column.name,
                    expr: placed(column.expr, &kept),
                };
                let columns = chosen.into_iter().map(place).collect();
                (Plan::Project { input, columns }, exact())
            }
            Plan::UnionAll { inputs } => {
                let inputs = inputs.into_iter().map(|input| self.exactly(input, needed));
                let inputs = inputs.collect::<Result<_, _>>()?;
                (Plan::UnionAll { inputs }, exact())
            }
            plan @ Plan::Join { .. } => self.join(plan, needed)?,
            plan @ Plan::GroupBy { .. } => self.group(plan, needed)?,
            Plan::Distinct { input } => {
                let all = 0..self.shape(&input)?.fields.len() as u32;
                let input = Box::new(self.exactly(*input, &all.clone().collect())?);
                (Plan::Distinct { input }, all.collect())
            }
            Plan::Sort { input, mut keys } => {
                let mut wanted = needed.clone();
                for key in &keys {
                    columns(&key.expr, &mut wanted);
                }
                let (input, kept) = self.below(*input, &wanted)?;
                for key in &mut keys {
                    key.expr = placed(key.expr.clone(), &kept);
                }
                (Plan::Sort { input, keys }, kept)
            }
            Plan::TopK {
                input,
                mut keys,
                rows,
            } => {
                let mut wanted = needed.clone();
                for key in &keys {
                    columns(&key.expr, &mut wanted);
                }
                let (input, kept) = self.below(*input, &wanted)?;
                for key in &mut keys {
                    key.expr = placed(key.expr.clone(), &kept);
                }
                (Plan::TopK { input, keys, rows }, kept)
            }
            plan @ Plan::Window { .. } => self.window(plan, needed)?,
            Plan::Trim {
                input,
                rows,
                overflow,
            } => {
                let (input, kept) = self.below(*input, needed)?;
                (
                    Plan::Trim {
                        input,
                        rows,
                        overflow,
                    },
                    kept,
                )
            }
            Plan::Fit { input, mut model } => {
                let fit = Plan::Fit {
                    input: input.clone(),
                    model: model.clone(),
                };
                let width = self.shape(&fit)?.fields.len() as u32;
                let mut wanted = Columns::new();
                for expr in model.exprs() {
                    columns(expr, &mut wanted);
                }
                let (input, kept) = self.below(*input, &wanted)?;
                for expr in model.exprs_mut() {
                    *expr = placed(expr.clone(), &kept);
                }
                let columns = match &mut model.kind {
                    FitKind::Regression { errors, .. } => {
                        *errors &= needed.contains(&2);
                        2 + u32::from(*errors)
                    }
                    FitKind::Clusters { .. }
                    | FitKind::Components { .. }
                    | FitKind::Tree { .. } => width,
                };
                (Plan::Fit { input, model }, (0..columns).collect())
            }
            plan @ Plan::Apply { .. } => self.apply(plan, needed)?,
            Plan::Open { input, to } => {
                let (input, kept) = self.below(*input, needed)?;
                (Plan::Open { input, to }, kept)
            }
        })
    }

    fn join(&mut self, plan: Plan, needed: &Columns) -> Result<(Plan, Vec<u32>), PlanError> {
        let Plan::Join {
            kind,
            left,
            right,
            on,
            condition,
            matches,
        } = plan
        else {
            return Ok((plan, needed.iter().copied().collect()));
        };
        let width = self.shape(&left)?.fields.len() as u32;
        let mut wanted = needed.clone();
        if let Some(condition) = &condition {
            columns(condition, &mut wanted);
        }
        let mut of_left: Columns = wanted.iter().copied().filter(|id| *id < width).collect();
        let mut of_right: Columns = wanted
            .iter()
            .filter(|id| **id >= width)
            .map(|id| id - width)
            .collect();
        for (one, other) in &on {
            columns(one, &mut of_left);
            columns(other, &mut of_right);
        }
        let (left, lefts) = self.below(*left, &of_left)?;
        let (right, rights) = self.below(*right, &of_right)?;
        let on = on
            .into_iter()
            .map(|(one, other)| (placed(one, &lefts), placed(other, &rights)));
        let on = on.collect();
        let mut kept = lefts.clone();
        kept.extend(rights.iter().map(|id| id + width));
        let condition = condition.map(|condition| placed(condition, &kept));
        if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
            kept = lefts;
        }
        let plan = Plan::Join {
            kind,
            left,
            right,
            on,
            condition,
            matches,
        };
        Ok((plan, kept))
    }

    fn group(&mut self, plan: Plan, needed: &Columns) -> Result<(Plan, Vec<u32>), PlanError> {
        let Plan::GroupBy {
            input,
            mut keys,
            aggregates,
            domain,
            min_rows,
        } = plan
        else {
            return Ok((plan, needed.iter().copied().collect()));
        };
        let mut kept: Vec<u32> = (0..keys.len() as u32).collect();
        let mut wanted = Columns::new();
        for key in &keys {
            columns(&key.expr, &mut wanted);
        }
        let mut chosen = Vec::new();
        for (at, aggregate) in (keys.len() as u32..).zip(aggregates) {
            if needed.contains(&at) {
                let parts = aggregate
                    .function
                    .argument()
                    .into_iter()
                    .chain(&aggregate.filter);
                for part in parts {
                    columns(part, &mut wanted);
                }
                kept.push(at);
                chosen.push(aggregate);
            }
        }
        let (input, below) = self.below(*input, &wanted)?;
        for key in &mut keys {
            key.expr = placed(key.expr.clone(), &below);
        }
        for aggregate in &mut chosen {
            let function = aggregate.function.clone();
            aggregate.function = function.try_map::<PlanError>(&mut |of| Ok(placed(of, &below)))?;
            aggregate.filter = aggregate.filter.take().map(|filter| placed(filter, &below));
        }
        let plan = Plan::GroupBy {
            input,
            keys,
            aggregates: chosen,
            domain,
            min_rows,
        };
        Ok((plan, kept))
    }

    fn apply(&mut self, plan: Plan, needed: &Columns) -> Result<(Plan, Vec<u32>), PlanError> {
        let Plan::Apply {
            input,
            mut model,
            weights,
        } = plan
        else {
            return Ok((plan, needed.iter().copied().collect()));
        };
        let width = self.shape(&input)?.fields.len() as u32;
        let mut wanted: Columns = needed.iter().copied().filter(|id| *id < width).collect();
        if wanted.len() == needed.len() {
            return self.pruned(*input, &wanted);
        }
        for feature in &model.features {
            columns(feature, &mut wanted);
        }
        let (input, mut kept) = self.below(*input, &wanted)?;
        for feature in &mut model.features {
            *feature = placed(feature.clone(), &kept);
        }
        // Scores come after the class.
        model.scores &= needed.range(width + 1..).next().is_some();
        let given = model.names().len() as u32;
        kept.extend(width..width + given);
        let applied = Plan::Apply {
            input,
            model,
            weights,
        };
        Ok((applied, kept))
    }

    fn window(&mut self, plan: Plan, needed: &Columns) -> Result<(Plan, Vec<u32>), PlanError> {
        let Plan::Window {
            input,
            mut partition,
            mut order,
            functions,
        } = plan
        else {
            return Ok((plan, needed.iter().copied().collect()));
        };
        let width = self.shape(&input)?.fields.len() as u32;
        let mut wanted: Columns = needed.iter().copied().filter(|id| *id < width).collect();
        let chosen = (width..)
            .zip(functions)
            .filter(|(at, _)| needed.contains(at));
        let mut chosen: Vec<_> = chosen.collect();
        if chosen.is_empty() {
            return self.pruned(*input, &wanted);
        }
        let arguments = chosen.iter().filter_map(|(_, of)| of.function.argument());
        let keys = partition
            .iter()
            .chain(order.iter().map(|key| &key.expr))
            .chain(arguments);
        for key in keys {
            columns(key, &mut wanted);
        }
        let (input, mut kept) = self.below(*input, &wanted)?;
        for key in &mut partition {
            *key = placed(key.clone(), &kept);
        }
        for key in &mut order {
            key.expr = placed(key.expr.clone(), &kept);
        }
        for (_, of) in &mut chosen {
            let function = of.function.clone();
            of.function = function.try_map::<PlanError>(&mut |of| Ok(placed(of, &kept)))?;
        }
        kept.extend(chosen.iter().map(|(at, _)| at));
        let plan = Plan::Window {
            input,
            partition,
            order,
            functions: chosen.into_iter().map(|(_, of)| of).collect(),
        };
        Ok((plan, kept))
    }
}

/// Projections of steps over the columns that the steps have kept; those of all columns go.
fn replaced(
    plan: &mut Plan,
    kept: &BTreeMap<String, Vec<u32>>,
    names: &BTreeMap<String, Vec<String>>,
) {
    if let Plan::Project { input, columns } = plan
        && let Plan::Step { name } = &**input
        && let Some(of_step) = kept.get(name)
    {
        for column in columns.iter_mut() {
            column.expr = placed(column.expr.clone(), of_step);
        }
        let same = columns
            .iter()
            .zip(0..)
            .all(|(column, at)| column.expr == Expr::column(at));
        let own = columns.iter().map(|column| &column.name);
        if same && names.get(name).is_some_and(|names| own.eq(names)) {
            *plan = Plan::Step { name: name.clone() };
        }
        return;
    }
    for input in plan.inputs_mut() {
        replaced(input, kept, names);
    }
}
