//! Whether a program keeps to the words of owners about their columns.
//!
//! Each column of each operator is traced to the columns of tables on which it depends, and whether it shows values of single rows or
//! aggregates. A result of an operation has the strictest words of its operands.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::expr::Expr;
use crate::fit::FitKind;
use crate::place::{At, of_column};
use crate::plan::{AggregateFunction, JoinKind, Plan, Program};
use crate::schema::{ColumnId, Consent, Operation, Reveal, Table};

/// Why an owner's words forbid a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConsentError {
    /// The program does what the owner does not allow with a column.
    #[error("`{owner}` does not allow {} on column `{column}` of `{table}`", operation.word())]
    Operation {
        /// The owner.
        owner: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the program does.
        operation: Operation,
        /// Where it does so.
        at: At,
    },
    /// The program opens more of a column than the owner allows.
    #[error("`{owner}` does not allow that {} of column `{column}` of `{table}` are opened", if *reveal == Reveal::Rows { "values of rows" } else { "aggregates" })]
    Reveal {
        /// The owner.
        owner: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// What the program opens.
        reveal: Reveal,
        /// Where it is computed.
        at: At,
    },
}

impl ConsentError {
    /// Where the program does what is not allowed, if that is known.
    #[must_use]
    pub const fn at(&self) -> At {
        match self {
            Self::Operation { at, .. } | Self::Reveal { at, .. } => *at,
        }
    }

    /// The same, of what is written there.
    const fn written(mut self, of: At) -> Self {
        match &mut self {
            Self::Operation { at, .. } | Self::Reveal { at, .. } => *at = of,
        }
        self
    }
}

/// Columns of tables, by their places, and what a value shows of each.
type Origins = BTreeMap<(usize, u32), Reveal>;

impl Program {
    /// Looks whether each column with words of its owner is used and opened as they allow. The program must be one by [`Program::check`].
    ///
    /// # Errors
    /// [`ConsentError`], with the first use that is not allowed.
    pub fn check_consent(&self) -> Result<(), ConsentError> {
        self.uses().map(drop)
    }

    /// What is done with each column of a table that the program reads, in the order of tables and columns. The program must be one by
    /// [`Program::check`].
    ///
    /// # Errors
    /// [`ConsentError`], with the first use that is not allowed.
    pub fn uses(&self) -> Result<Vec<ColumnUse>, ConsentError> {
        let tracer = Tracer::over(self)?;
        let uses = tracer.uses.into_inner().into_iter();
        let uses = uses.map(|((table, column), (operations, opened))| ColumnUse {
            table,
            column: ColumnId(column),
            operations,
            opened,
        });
        Ok(uses.collect())
    }
}

impl Program {
    /// The words that go with each column of a step's relation where it is kept: the strictest of those of the columns that it is made of. An aggregate that may
    /// be opened goes without. The program must be one by [`Program::check`].
    ///
    /// # Errors
    /// [`ConsentError`], with the first use that is not allowed.
    pub fn kept_words(&self, step: &str) -> Result<Vec<Option<Consent>>, ConsentError> {
        let tracer = Tracer::over(self)?;
        let columns = tracer.steps.get(step).into_iter().flatten();
        Ok(columns.map(|origins| tracer.words(origins)).collect())
    }
}

/// What a program does with a column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnUse {
    /// The table, by its place in the program.
    pub table: usize,
    /// The column.
    pub column: ColumnId,
    /// What it decides, orders, groups or joins.
    pub operations: BTreeSet<Operation>,
    /// How much of it is opened, if something is that is made of it.
    pub opened: Option<Reveal>,
}

/// Operations, and how much is opened.
type Use = (BTreeSet<Operation>, Option<Reveal>);

struct Tracer<'a> {
    program: &'a Program,
    steps: BTreeMap<&'a str, Vec<Origins>>,
    uses: RefCell<BTreeMap<(usize, u32), Use>>,
}

/// All origins of several values; of each the most that one shows.
fn together(all: impl IntoIterator<Item = Origins>) -> Origins {
    let mut origins = Origins::new();
    for (column, reveal) in all.into_iter().flatten() {
        let most = origins.entry(column).or_insert(reveal);
        *most = reveal.max(*most);
    }
    origins
}

/// The same origins, of which aggregates alone are shown.
fn aggregated(mut of: Origins) -> Origins {
    for reveal in of.values_mut() {
        *reveal = Reveal::Aggregates;
    }
    of
}

fn table_of<'a>(program: &'a Program, name: &str) -> Option<(usize, &'a Table)> {
    let mut tables = program.tables.iter().enumerate();
    tables.find(|(_, table)| table.name == name)
}

impl<'a> Tracer<'a> {
    /// Traces all steps of a program.
    fn over(program: &'a Program) -> Result<Self, ConsentError> {
        let mut tracer = Tracer {
            program,
            steps: BTreeMap::new(),
            uses: RefCell::default(),
        };
        for step in &program.steps {
            let columns = tracer.columns(&step.plan);
            let columns = columns.map_err(|error| {
                let at = error.at().or(step.at);
                error.written(at)
            })?;
            tracer.steps.insert(&step.name, columns);
        }
        Ok(tracer)
    }

    /// The strictest words of all origins of a value, for whom it is a value of a row from then on.
    fn words(&self, origins: &Origins) -> Option<Consent> {
        let words = origins.iter().filter_map(|(&(table, column), &reveal)| {
            let of = self.program.tables[table].columns[column as usize]
                .consent
                .as_ref()?;
            let open = reveal == Reveal::Aggregates && of.reveal >= Reveal::Aggregates;
            (!open).then(|| of.clone())
        });
        words.reduce(|a, b| Consent {
            may: a.may.intersection(&b.may).copied().collect(),
            reveal: a.reveal.min(b.reveal),
        })
    }

    /// The origins of an expression over columns; conditions of `CASE` are filters.
    fn expr(&self, of: &Expr, columns: &[Origins]) -> Result<Origins, ConsentError> {
        if let Expr::Case { branches, .. } = of {
            for (when, _) in branches {
                self.used(Operation::Filter, when, columns)?;
            }
        }
        if let Expr::Column(ColumnId(id), _) = of {
            return Ok(columns.get(*id as usize).cloned().unwrap_or_default());
        }
        let operands = of
            .operands()
            .into_iter()
            .map(|operand| self.expr(operand, columns));
        Ok(together(operands.collect::<Result<Vec<_>, _>>()?))
    }

    /// The origins of an expression that is used so, if its owners allow it.
    fn used(
        &self,
        operation: Operation,
        of: &Expr,
        columns: &[Origins],
    ) -> Result<Origins, ConsentError> {
        let origins = self.expr(of, columns)?;
        let allowed = self.allowed(operation, &origins);
        allowed.map_err(|error| {
            let forbidden = |id: ColumnId| {
                let origins = columns.get(id.index());
                origins.is_some_and(|origins| self.allowed(operation, origins).is_err())
            };
            error.written(of.first_of(&forbidden).or(of.written()))
        })?;
        Ok(origins)
    }

    fn allowed(&self, operation: Operation, origins: &Origins) -> Result<(), ConsentError> {
        for (&(table, column), &reveal) in origins {
            let mut uses = self.uses.borrow_mut();
            let (operations, _) = uses.entry((table, column)).or_default();
            operations.insert(operation);
            let of = &self.program.tables[table];
            let column = &of.columns[column as usize];
            let Some(consent) = &column.consent else {
                continue;
            };
            // An aggregate that may be opened may be used.
            let open = reveal == Reveal::Aggregates && consent.reveal >= Reveal::Aggregates;
            if !open && !consent.may.contains(&operation) {
                return Err(ConsentError::Operation {
                    owner: of.origin.to_string(),
                    table: of.name.clone(),
                    column: column.name.clone(),
                    operation,
                    at: At(None),
                });
            }
        }
        Ok(())
    }

    fn opened(&self, origins: &Origins) -> Result<(), ConsentError> {
        for (&(table, column), &reveal) in origins {
            let mut uses = self.uses.borrow_mut();
            let (_, opened) = uses.entry((table, column)).or_default();
            *opened = (*opened).max(Some(reveal));
            let of = &self.program.tables[table];
            let column = &of.columns[column as usize];
            if column
                .consent
                .as_ref()
                .is_some_and(|consent| consent.reveal < reveal)
            {
                return Err(ConsentError::Reveal {
                    owner: of.origin.to_string(),
                    table: of.name.clone(),
                    column: column.name.clone(),
                    reveal,
                    at: At(None),
                });
            }
        }
        Ok(())
    }

    /// The origins of each column of a plan, if all that is done below is allowed.
    fn columns(&self, plan: &'a Plan) -> Result<Vec<Origins>, ConsentError> {
        Ok(match plan {
            Plan::Scan { table, columns } => {
                let place = table_of(self.program, table).map(|(place, _)| place);
                for (place, id) in place
                    .into_iter()
                    .flat_map(|at| columns.iter().map(move |id| (at, id)))
                {
                    self.uses.borrow_mut().entry((place, id.0)).or_default();
                }
                let origin = |id: &ColumnId| place.map(|place| ((place, id.0), Reveal::Rows));
                columns
                    .iter()
                    .map(|id| origin(id).into_iter().collect())
                    .collect()
            }
            Plan::Step { name } => self.steps.get(name.as_str()).cloned().unwrap_or_default(),
            Plan::Filter { input, predicate } => {
                let columns = self.columns(input)?;
                self.used(Operation::Filter, predicate, &columns)?;
                columns
            }
            Plan::Project { input, columns } => {
                let below = self.columns(input)?;
                let each = columns.iter().map(|column| self.expr(&column.expr, &below));
                each.collect::<Result<_, _>>()?
            }
            Plan::UnionAll { inputs } => {
                let parts = inputs
                    .iter()
                    .map(|input| self.columns(input))
                    .collect::<Result<Vec<_>, _>>()?;
                let width = parts.first().map_or(0, Vec::len);
                let column =
                    |at: usize| together(parts.iter().filter_map(|part| part.get(at).cloned()));
                (0..width).map(column).collect()
            }
            Plan::Join {
                kind,
                left,
                right,
                on,
                condition,
                ..
            } => {
                let (lefts, rights) = (self.columns(left)?, self.columns(right)?);
                for (one, other) in on {
                    self.used(Operation::Join, one, &lefts)?;
                    self.used(Operation::Join, other, &rights)?;
                }
                let both = [lefts.clone(), rights].concat();
                if let Some(condition) = condition {
                    self.used(Operation::Filter, condition, &both)?;
                }
                match kind {
                    JoinKind::Inner | JoinKind::Left => both,
                    JoinKind::Semi | JoinKind::Anti => lefts,
                }
            }
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                ..
            } => {
                let below = self.columns(input)?;
                let mut columns = Vec::new();
                for key in keys {
                    columns.push(aggregated(self.used(
                        Operation::GroupBy,
                        &key.expr,
                        &below,
                    )?));
                }
                for aggregate in aggregates {
                    let argument = aggregate.function.argument();
                    let argument = argument
                        .map(|of| self.expr(of, &below))
                        .transpose()?
                        .unwrap_or_default();
                    let shown = match &aggregate.function {
                        AggregateFunction::Min(_)
                        | AggregateFunction::Max(_)
                        | AggregateFunction::PercentileDisc { .. } => argument,
                        _ => aggregated(argument),
                    };
                    let filter = aggregate.filter.as_ref();
                    let filter = filter
                        .map(|of| self.used(Operation::Filter, of, &below))
                        .transpose()?;
                    columns.push(together([shown, aggregated(filter.unwrap_or_default())]));
                }
                columns
            }
            Plan::Distinct { input } => {
                let columns = self.columns(input)?;
                for (at, origins) in columns.iter().enumerate() {
                    let allowed = self.allowed(Operation::GroupBy, origins);
                    allowed.map_err(|error| error.written(of_column(input, at)))?;
                }
                columns.into_iter().map(aggregated).collect()
            }
            Plan::Sort { input, keys } | Plan::TopK { input, keys, .. } => {
                let columns = self.columns(input)?;
                for key in keys {
                    self.used(Operation::Sort, &key.expr, &columns)?;
                }
                columns
            }
            Plan::Window {
                input,
                partition,
                order,
                functions,
            } => {
                let mut columns = self.columns(input)?;
                let keys = partition.iter().chain(order.iter().map(|key| &key.expr));
                let keys = keys.map(|key| self.used(Operation::Window, key, &columns));
                let keys = together(keys.collect::<Result<Vec<_>, _>>()?);
                let mut added = Vec::new();
                // A frame may have one row, and places in an order are those of rows: nothing is an aggregate here.
                for windowed in functions {
                    let argument = windowed.function.argument();
                    let argument = argument
                        .map(|of| self.used(Operation::Window, of, &columns))
                        .transpose()?;
                    added.push(together([keys.clone(), argument.unwrap_or_default()]));
                }
                columns.extend(added);
                columns
            }
            Plan::Trim { input, .. } => self.columns(input)?,
            Plan::Fit { input, model } => {
                let below = self.columns(input)?;
                let all = model.exprs().into_iter().map(|of| self.expr(of, &below));
                let all = together(all.collect::<Result<Vec<_>, _>>()?);
                let shown = aggregated(all);
                let values = match &model.kind {
                    FitKind::Regression { errors, .. } => 1 + usize::from(*errors),
                    FitKind::Clusters { .. } | FitKind::Components { .. } => {
                        1 + model.features.len()
                    }
                    FitKind::Tree { .. } => {
                        let shape = self.program.shape(plan);
                        shape.map_or(0, |shape| shape.fields.len().saturating_sub(1))
                    }
                };
                let names = std::iter::once(Origins::new());
                names.chain(std::iter::repeat_n(shown, values)).collect()
            }
            // A row of the result is that of one row: nothing is an aggregate here.
            Plan::Apply {
                input,
                model,
                weights,
            } => {
                let mut columns = self.columns(input)?;
                let features = model.features.iter().map(|of| self.expr(of, &columns));
                let mut all = features.collect::<Result<Vec<_>, _>>()?;
                if let Some(weights) = weights {
                    all.extend(self.columns(weights)?);
                }
                let given = together(all);
                columns.extend(std::iter::repeat_n(given, model.names().len()));
                columns
            }
            Plan::Open { input, .. } => {
                let columns = self.columns(input)?;
                for (at, origins) in columns.iter().enumerate() {
                    let opened = self.opened(origins);
                    opened.map_err(|error| error.written(of_column(input, at)))?;
                }
                columns
            }
        })
    }
}
