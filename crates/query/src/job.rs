//! The queries of a job, and the program that they are.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::Spanned;
use veil_relation::{
    At, ConsentError, Expr, Family, Field, Fit, FitKind, JoinKind, Kept, Matches, Named, Overflow,
    Plan, Program, Step, Stepping, Table, Trained, is_name,
};

use crate::apply::{Application, ApplyError, applied};
use crate::bind::{Binder, Level};
use crate::cuts::{Cuts, cuts_of, in_units};
use crate::error::{Problem, QueryError};
use crate::functions::TableFunction;
use crate::order::JoinCost;
use crate::rules;
use crate::source::{Source, error_in, range_at};

/// A named query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Its name, by which later queries read its relation.
    pub name: String,
    /// Its text.
    pub sql: String,
    /// To whom its relation is opened; a query without a recipient opens nothing.
    pub to: Option<String>,
    /// As which dataset the parties keep its relation, if they do, and whether its size is opened.
    pub keep: Option<Kept>,
    /// Groups of fewer rows are left out of what is opened. 0 leaves out nothing. A model of fewer rows is left out, and 0 stands for [`ROWS_A_TERM`] rows for each of its terms; so is a cluster, and 0 stands for as many.
    pub min_count: u32,
    /// A model that is fitted to the rows: its terms are the relation of the query.
    pub fit: Option<Model>,
    /// A network that is applied to the rows: what it gives stands in the place of its features.
    pub apply: Option<Application>,
}

/// A model that is fitted to the rows of a query, whose columns are the features and the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// What is fitted.
    pub kind: ModelKind,
    /// Steps, or epochs.
    pub iterations: u32,
    /// Decimal places of the result.
    pub places: u32,
}

/// What is fitted to the rows of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// A regression: its terms are the relation.
    Regression {
        /// How the mean of a row follows.
        family: Family,
        /// The column of the target.
        target: String,
        /// The penalty of ridge regression, units and decimal places.
        ridge: (u64, u32),
        /// How batches of rows move coefficients, if it is not fitted by Newton's method.
        stepping: Option<Stepping>,
    },
    /// k-means: its clusters are the relation.
    Clusters {
        /// The first centres: of each a number, units and decimal places, for every column.
        start: Vec<Vec<(i128, u32)>>,
    },
    /// Principal components of the standardised columns: they are the relation.
    Components {
        /// How many.
        count: u32,
    },
    /// A decision tree: its nodes are the relation, and the levels of its splits are the steps.
    Tree {
        /// The column of the target.
        target: String,
        /// What columns of numbers are compared with; [`EVEN_CUTS`](crate::EVEN_CUTS) numbers where it is not said.
        cuts: BTreeMap<String, Cuts>,
    },
}

/// The fewest rows for each term of a model, and of a cluster or a node of a tree, whose job does not say.
pub const ROWS_A_TERM: u32 = 20;

/// A public bound on the rows of a named relation: a query, a common table expression, or a subquery of FROM by its alias. A join of keys that
/// are unique on neither side, directly in a relation whose bound refuses, has at most that many pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The relation's name.
    pub of: String,
    /// The most rows.
    pub rows: u32,
    /// What happens if there are more.
    pub overflow: Overflow,
}

/// What a job says about its queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The tables of owners, with their claims.
    pub tables: Vec<Table>,
    /// The queries; each reads tables and earlier queries that open nothing.
    pub queries: Vec<Query>,
    /// Bounds.
    pub bounds: Vec<Bound>,
    /// Models that were trained elsewhere, which queries apply by their names.
    pub models: Vec<Trained>,
    /// Functions that are given by their values, which queries call by their names.
    pub functions: Vec<TableFunction>,
}

/// The program of a job's queries, rewritten by the rules of [`crate::rules`].
///
/// # Errors
/// [`QueryError`]: a query is refused, with its place; a table, a name or a bound is not as it must be.
pub fn compile(job: &Job, cost: &dyn JoinCost) -> Result<Program, QueryError> {
    let mut program = bind(job, cost)?;
    let rewritten = rewrite(&mut program);
    rewritten.map_err(|error| placed(job, error))?;
    program
        .check_consent()
        .map_err(|error| forbidden(job, cost, error))?;
    Ok(program)
}

/// The rules, in their order.
fn rewrite(program: &mut Program) -> Result<(), QueryError> {
    rules::inline(program);
    rules::fold(program)?;
    rules::push(program)?;
    rules::fold(program)?;
    rules::prune(program)?;
    rules::domains(program)?;
    program.check()?;
    Ok(())
}

/// The refusal of a range at the place of a query's text that the plan has kept, if there is one.
fn placed(job: &Job, error: QueryError) -> QueryError {
    let range = error.range().cloned();
    let place = range.as_ref().and_then(|range| range.at.0);
    let query = place.and_then(|place| job.queries.get(place.query as usize));
    match (range, place, query) {
        (Some(range), Some(place), Some(query)) => range_at(query, place, Box::new(range)).into(),
        _ => error,
    }
}

/// What an owner forbids, at its place: rules drop projections that say where columns are named, and before them the program has all places.
fn forbidden(job: &Job, cost: &dyn JoinCost, error: ConsentError) -> QueryError {
    let bound = bind(job, cost).ok();
    let before = bound.and_then(|program| program.check_consent().err());
    let before = before.filter(|before| *before == error);
    let At(place) = before.map_or(At(None), |before| before.at()).or(error.at());
    let query = place.and_then(|place| Some((place, job.queries.get(place.query as usize)?)));
    match query {
        Some((place, query)) => error_in(query, place, Problem::Consent(error)).into(),
        None => QueryError::Consent(error),
    }
}

/// The columns of each query's relation, in the order of the job: what a query over them can be made of. Consent is not looked at, since nothing is computed.
///
/// # Errors
/// As [`compile`].
pub fn fields(job: &Job, cost: &dyn JoinCost) -> Result<Vec<Vec<Field>>, QueryError> {
    let program = bind(job, cost)?;
    let shapes = program.check()?;
    let named = |query: &Query| {
        let mut steps = program.steps.iter().zip(&shapes);
        let found = steps.find(|(step, _)| step.name == query.name);
        found.map_or_else(Vec::new, |(_, shape)| shape.fields.clone())
    };
    Ok(job.queries.iter().map(named).collect())
}

/// The program of a job's queries as they are bound, before any rule.
///
/// # Errors
/// As [`compile`].
pub fn bind(job: &Job, cost: &dyn JoinCost) -> Result<Program, QueryError> {
    let wrong = |name: &str, what| {
        let name = name.to_owned();
        Err(QueryError::Job { name, what })
    };
    let mut names = BTreeSet::new();
    for table in &job.tables {
        table.check()?;
    }
    let all = job
        .tables
        .iter()
        .map(|table| &table.name)
        .chain(job.queries.iter().map(|query| &query.name));
    for name in all {
        if !is_name(name) {
            return wrong(name, "a name has lower-case letters, digits and `_`");
        }
        if !names.insert(name.as_str()) {
            return wrong(name, "two tables or queries have this name");
        }
    }
    let models: BTreeSet<&str> = job.models.iter().map(Trained::name).collect();
    if models.len() != job.models.len() {
        return wrong(job.models[0].name(), "two models have one name");
    }
    let mut functions = BTreeSet::new();
    for function in &job.functions {
        if let Err(what) = function.check() {
            return wrong(&function.name, what);
        }
        if !functions.insert(function.name.as_str()) {
            return wrong(&function.name, "two functions have this name");
        }
    }
    let bounded: BTreeSet<&str> = job.bounds.iter().map(|bound| bound.of.as_str()).collect();
    if bounded.len() != job.bounds.len() {
        return wrong(&job.bounds[0].of, "a relation has one bound");
    }
    let mut kept = BTreeSet::new();
    for query in &job.queries {
        let Some(Kept { dataset, size }) = &query.keep else {
            continue;
        };
        if size.as_ref().is_some_and(|size| !size.bucket.hides()) {
            return wrong(
                dataset,
                "a size is rounded up to two rows or more: else the number of rows itself would be opened",
            );
        }
        let loaded = |table: &Table| table.origin.dataset() == Some(dataset);
        if !kept.insert(dataset) || job.tables.iter().any(loaded) {
            return wrong(
                dataset,
                "a dataset is kept by one query, and not where a table is loaded from it; choose another name",
            );
        }
    }
    let mut program = Program {
        tables: job.tables.clone(),
        steps: Vec::new(),
    };
    let mut shapes = Vec::new();
    let mut used: BTreeSet<String> = job.queries.iter().map(|query| query.name.clone()).collect();
    for (number, query) in (0..).zip(&job.queries) {
        let (source, tree) = Source::parse(&query.name, &query.sql)?;
        let source = source.numbered(number);
        let bound = job
            .bounds
            .iter()
            .find(|bound| bound.of == query.name)
            .cloned();
        let mut binder = Binder {
            source: &source,
            program: &mut program,
            shapes: &mut shapes,
            cost,
            bounds: &job.bounds,
            models: &job.models,
            functions: &job.functions,
            ctes: Vec::new(),
            bound,
            name: &query.name,
            named: &mut used,
        };
        let level = match (&query.to, &query.keep) {
            _ if query.fit.is_some() => Level::Inner,
            (Some(_), _) => Level::Opened,
            (None, Some(_)) => Level::Kept,
            (None, None) => Level::Inner,
        };
        let rel = binder.query(&tree, level)?;
        let at = source.word("SELECT");
        let rel = binder.trimmed(rel, at)?;
        let mut plan = rel.plan;
        if let Some(model) = &query.fit {
            let fitted = match fitted(plan, &rel.shape.fields, model) {
                Ok(fitted) => fitted,
                Err(what) => return wrong(&query.name, what),
            };
            plan = fitted;
        }
        if let Some(application) = &query.apply {
            let known = (&job.models[..], &job.tables[..]);
            let applied = match query.fit {
                Some(_) => Err(ApplyError::Fitted),
                None => applied(plan, &rel.shape.fields, known, application),
            };
            plan = applied.map_err(|why| QueryError::Apply {
                name: query.name.clone(),
                why,
            })?;
        }
        if query.min_count > 1 || query.fit.is_some() && query.min_count > 0 {
            if level == Level::Inner && query.fit.is_none() {
                return wrong(
                    &query.name,
                    "a minimal count is of a query that opens, or is kept",
                );
            }
            if !least(&mut plan, query.min_count) {
                return wrong(
                    &query.name,
                    "a minimal count is of groups, and this query has none",
                );
            }
        }
        let shape = binder.shape(&plan, at)?;
        shapes.push(shape);
        if let Some(to) = &query.to {
            let (input, to) = (Box::new(plan), to.clone());
            plan = Plan::Open { input, to };
        }
        program.steps.push(Step {
            name: query.name.clone(),
            plan,
            keep: query.keep.clone(),
            at: source.at(tree.body.span()),
        });
    }
    if let Some(bound) = job
        .bounds
        .iter()
        .find(|bound| !used.contains(bound.of.as_str()))
    {
        return wrong(
            &bound.of,
            "no query, common table expression or subquery of FROM has this name",
        );
    }
    Ok(program)
}

/// A model of a relation with these columns; or what is wrong with it.
fn fitted(input: Plan, fields: &[Field], model: &Model) -> Result<Plan, &'static str> {
    let column = |at: usize| Expr::column(at as u32);
    let target = match &model.kind {
        ModelKind::Regression { target, .. } | ModelKind::Tree { target, .. } => {
            let found = fields.iter().position(|field| field.name == *target);
            Some(found.ok_or("the target of a model is a column of its query")?)
        }
        ModelKind::Clusters { .. } | ModelKind::Components { .. } => None,
    };
    let of_features = || {
        fields
            .iter()
            .enumerate()
            .filter(|(at, _)| Some(*at) != target)
    };
    let features = of_features().map(|(at, field)| Named {
        name: field.name.clone(),
        expr: column(at),
    });
    let kind = match &model.kind {
        ModelKind::Regression {
            family,
            target: _,
            ridge,
            stepping,
        } => FitKind::Regression {
            family: *family,
            target: column(target.unwrap_or(0)),
            ridge: *ridge,
            errors: ridge.0 == 0 && stepping.is_none(),
            stepping: stepping.clone(),
        },
        ModelKind::Components { count } => FitKind::Components { count: *count },
        ModelKind::Clusters { start } => {
            let places = of_features()
                .map(|(_, field)| field.ty.kind.number().map_or(0, |(places, _)| places));
            let places: Vec<u32> = places.collect();
            let units = |centre: &Vec<(i128, u32)>| {
                if centre.len() != places.len() {
                    return Err(
                        "each centre of `start` has a number for every column of the query",
                    );
                }
                let cells = centre.iter().zip(&places).map(|(number, places)| {
                    let units = in_units(*number, *places);
                    units.ok_or("a number of `start` has no more decimal places than its column")
                });
                cells.collect()
            };
            FitKind::Clusters {
                start: start.iter().map(units).collect::<Result<_, _>>()?,
            }
        }
        ModelKind::Tree { cuts, .. } => {
            let is_feature = |name: &String| of_features().any(|(_, field)| field.name == *name);
            if !cuts.keys().all(is_feature) {
                return Err("`cuts` are of columns of the query but the target");
            }
            let of = |(_, field): (_, &Field)| cuts_of(field, cuts.get(&field.name));
            FitKind::Tree {
                target: column(target.unwrap_or(0)),
                cuts: of_features().map(of).collect::<Result<_, _>>()?,
            }
        }
    };
    let fit = Fit {
        min_rows: match &kind {
            FitKind::Regression { .. } | FitKind::Components { .. } => {
                ROWS_A_TERM * fields.len() as u32
            }
            FitKind::Clusters { .. } | FitKind::Tree { .. } => ROWS_A_TERM,
        },
        kind,
        features: features.collect(),
        iterations: model.iterations,
        places: model.places,
    };
    Ok(Plan::Fit {
        input: Box::new(input),
        model: Box::new(fit),
    })
}

/// Leaves out groups of fewer rows, in the last grouping before a relation is opened; whether there is one.
fn least(plan: &mut Plan, rows: u32) -> bool {
    match plan {
        Plan::GroupBy { min_rows, .. } => {
            *min_rows = rows;
            true
        }
        Plan::Fit { model, .. } => {
            model.min_rows = rows;
            true
        }
        // Both sides are marked; those whose rows are the rows of the result have to be grouped.
        Plan::Join {
            left,
            right,
            kind,
            matches,
            ..
        } => {
            let left = least(left, rows);
            match (kind, matches) {
                (JoinKind::Semi | JoinKind::Anti, _) => left,
                (_, Matches::UniqueRight | Matches::Any) => {
                    least(right, rows);
                    left
                }
                (_, Matches::UniqueLeft | Matches::AtMost(_)) => left & least(right, rows),
            }
        }
        Plan::UnionAll { inputs } => inputs
            .iter_mut()
            .map(|input| least(input, rows))
            .fold(true, |all, one| all & one),
        Plan::Distinct { .. } | Plan::Scan { .. } | Plan::Step { .. } => false,
        Plan::Filter { input, .. }
        | Plan::Project { input, .. }
        | Plan::Sort { input, .. }
        | Plan::TopK { input, .. }
        | Plan::Window { input, .. }
        | Plan::Trim { input, .. }
        | Plan::Apply { input, .. }
        | Plan::Open { input, .. } => least(input, rows),
    }
}
