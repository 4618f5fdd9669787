//! Families: queries that differ in literals alone.
//!
//! Answers to one question with other literals each time have differences, which say more than each of them. So a limit on questions counts families. The text
//! of a family is that of the bound plan, in which
//!
//! - a literal is its type, and so is what is made of literals alone; numbers of all scales are of one type;
//! - conditions that are the same then stand once, in an order of their own: `IN` lists of any length are one;
//! - numbers of rows (`LIMIT`, bounds, frames of windows, a least count of groups), fractions and places are left out;
//! - names that a query gives, in which order a table has its columns, how many rows and which ranges it has, and who gets the result, are left out.
//!
//! Tables are named as the job names them, with their owners; columns by their names.

use std::collections::{BTreeMap, BTreeSet};

use veil_relation::{
    Aggregate, ColumnId, DatePart, Expr, FitKind, Kind, Named, Plan, Program, SortKey, Table,
    Windowed,
};

use crate::error::QueryError;
use crate::job::{Job, bind};
use crate::order::JoinCost;
use crate::rules;

/// Rows of every table and bound, where plans of families are made: which are declared says nothing of a family.
const ROWS: u32 = 1 << 10;

/// The families of a job: the text of each of its queries that opens something, or is kept. Two queries of one text differ in literals, and in what the
/// job says of rows and names.
///
/// # Errors
/// As [`compile`](crate::compile).
pub fn families(job: &Job, cost: &dyn JoinCost) -> Result<BTreeSet<String>, QueryError> {
    let mut job = job.clone();
    let applied = job.queries.iter().filter_map(|query| query.apply.as_ref());
    let weights: BTreeSet<&String> = applied.filter_map(|of| of.weights.as_ref()).collect();
    for table in &mut job.tables {
        by_names(table);
        // How many weights there are follows from a network.
        if table.origin.owner().is_some() && !weights.contains(&table.name) {
            table.capacity = ROWS;
        }
    }
    for bound in &mut job.bounds {
        bound.rows = ROWS;
    }
    // Nor do the fewest rows of a model, which may be more than these.
    for query in job.queries.iter_mut().filter(|query| query.fit.is_some()) {
        query.min_count = 1;
    }
    let mut program = bind(&job, cost)?;
    rules::inline(&mut program);
    rules::prune(&mut program)?;
    let steps = program.steps.iter();
    let give = steps.filter(|step| matches!(step.plan, Plan::Open { .. }) || step.keep.is_some());
    Ok(give
        .map(|step| Writer::text(&program, &step.plan))
        .collect())
}

/// Puts the columns of a table in the order of their names.
fn by_names(table: &mut Table) {
    let mut order: Vec<usize> = (0..table.columns.len()).collect();
    order.sort_by(|a, b| table.columns[*a].name.cmp(&table.columns[*b].name));
    let moved = |column: &mut ColumnId| {
        let to = order.iter().position(|from| *from == column.index());
        *column = ColumnId(to.unwrap_or_default() as u32);
    };
    table.sorted_by.iter_mut().for_each(moved);
    table.unique.iter_mut().flatten().for_each(moved);
    table.columns = order.iter().map(|at| table.columns[*at].clone()).collect();
}

/// A list with a head.
fn list(head: &str, parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().collect();
    format!("({head} {})", parts.join(" "))
}

/// The type of a value, without ranges, scales and lists.
const fn kind(of: &Kind) -> &'static str {
    match of {
        Kind::Integer(_) | Kind::Decimal { .. } | Kind::Ratio { .. } => "number",
        Kind::Date(_) => "date",
        Kind::Category(_) => "text",
        Kind::Bool => "bool",
        Kind::Key { .. } => "key",
    }
}

/// The type of an expression that is made of literals alone; nothing if it reads a column.
fn of_literals(of: &Expr) -> Option<&'static str> {
    let mut reads = false;
    of.columns(&mut |_| reads = true);
    let ty = (!reads).then(|| of.ty(&[]).ok()).flatten()?;
    Some(kind(&ty.kind))
}

/// Operands that are the same stand once, in the order of their texts.
fn set(head: &str, operands: &[Expr]) -> String {
    let texts: BTreeSet<String> = operands.iter().map(expr).collect();
    match texts.len() {
        1 => texts.into_iter().collect(),
        _ => list(head, texts),
    }
}

fn expr(of: &Expr) -> String {
    if let Some(kind) = of_literals(of) {
        return format!("?{kind}");
    }
    let all = |head: &str| list(head, of.operands().into_iter().map(expr));
    match of {
        Expr::Column(id, _) => format!("#{}", id.0),
        Expr::Literal(literal) => format!("?{}", kind(&literal.kind())),
        Expr::Not(_) => all("not"),
        Expr::And(operands) => set("and", operands),
        Expr::Or(operands) => set("or", operands),
        Expr::Compare(sign, ..) => all(sign.sign()),
        Expr::IsNull(_) => all("is-null"),
        Expr::Arithmetic(sign, ..) => all(sign.sign()),
        Expr::Divide(..) => all("/"),
        Expr::Modulo(..) => all("%"),
        Expr::Round(..) => all("round"),
        Expr::Real(function, ..) => all(function.name()),
        // It is there because of the scale of something else, which may be a literal.
        Expr::Rescale(of, _) => expr(of),
        Expr::AddDays(..) => all("add-days"),
        Expr::DaysBetween(..) => all("days-between"),
        Expr::Extract(DatePart::Year, _) => all("year"),
        Expr::Extract(DatePart::Month, _) => all("month"),
        Expr::Lookup { kind: to, .. } => all(&format!("lookup {}", kind(to))),
        Expr::Case { .. } => all("case"),
        Expr::Coalesce(_) => all("coalesce"),
        Expr::NullIf(..) => all("nullif"),
        // Thresholds and leaves are as literals.
        Expr::Predict { .. } => all("predict"),
    }
}

fn exprs(of: &[Expr]) -> impl Iterator<Item = String> {
    of.iter().map(expr)
}

fn named(of: &[Named]) -> impl Iterator<Item = String> {
    of.iter().map(|named| expr(&named.expr))
}

fn keys(of: &[SortKey]) -> String {
    let key = |key: &SortKey| {
        let nulls = if key.nulls_first { " first" } else { "" };
        let way = if key.descending { "desc" } else { "asc" };
        list(&format!("{way}{nulls}"), [expr(&key.expr)])
    };
    list("keys", of.iter().map(key))
}

fn aggregate(of: &Aggregate) -> String {
    let filter = of.filter.as_ref().map(|of| list("where", [expr(of)]));
    let argument = of.function.argument().map(expr);
    list(of.function.name(), argument.into_iter().chain(filter))
}

fn windowed(of: &Windowed) -> String {
    list(of.function.name(), of.function.argument().map(expr))
}

/// Writes one query. A step that it reads is written once, and has a number.
struct Writer<'a> {
    program: &'a Program,
    numbers: BTreeMap<&'a str, usize>,
    texts: Vec<String>,
}

impl<'a> Writer<'a> {
    fn text(program: &'a Program, of: &'a Plan) -> String {
        let mut writer = Writer {
            program,
            numbers: BTreeMap::new(),
            texts: Vec::new(),
        };
        let own = writer.plan(of);
        list("query", writer.texts.into_iter().chain([own]))
    }

    fn step(&mut self, name: &'a str) -> String {
        if !self.numbers.contains_key(name) {
            let mut steps = self.program.steps.iter();
            let step = steps.find(|step| step.name == name);
            let text = step.map_or_else(String::new, |step| self.plan(&step.plan));
            self.numbers.insert(name, self.texts.len());
            self.texts.push(text);
        }
        format!("(read {})", self.numbers[name])
    }

    fn scan(&self, name: &str, columns: &[ColumnId]) -> String {
        let mut tables = self.program.tables.iter();
        let table = tables.find(|table| table.name == *name);
        let column = |id: &ColumnId| {
            let column = table.and_then(|table| table.columns.get(id.index()));
            column.map_or_else(String::new, |column| format!("{:?}", column.name))
        };
        let origin = table.map_or_else(String::new, |table| {
            format!("{:?}", table.origin.to_string())
        });
        let head = [format!("{name:?}"), origin].into_iter();
        list("scan", head.chain(columns.iter().map(column)))
    }

    fn plan(&mut self, of: &'a Plan) -> String {
        match of {
            Plan::Scan { table, columns } => self.scan(table, columns),
            Plan::Step { name } => self.step(name),
            Plan::Filter { input, predicate } => {
                list("filter", [expr(predicate), self.plan(input)])
            }
            Plan::Project { input, columns } => {
                list("project", named(columns).chain([self.plan(input)]))
            }
            Plan::UnionAll { inputs } => list("union-all", inputs.iter().map(|of| self.plan(of))),
            Plan::Join {
                kind,
                left,
                right,
                on,
                condition,
                matches,
            } => {
                let on = on.iter().map(|(a, b)| list("on", [expr(a), expr(b)]));
                let condition = condition.as_ref().map(|of| list("where", [expr(of)]));
                let inputs = [self.plan(left), self.plan(right)];
                let parts = on.chain(condition).chain(inputs);
                list(&format!("join {} {}", kind.name(), matches.name()), parts)
            }
            Plan::GroupBy {
                input,
                keys,
                aggregates,
                domain,
                min_rows: _,
            } => {
                let keys = list("keys", named(keys));
                let aggregates = list("aggregates", aggregates.iter().map(aggregate));
                list(
                    &format!("group-by {}", domain.name()),
                    [keys, aggregates, self.plan(input)],
                )
            }
            Plan::Distinct { input } => list("distinct", [self.plan(input)]),
            Plan::Sort { input, keys: by } => list("sort", [keys(by), self.plan(input)]),
            Plan::TopK {
                input,
                keys: by,
                rows: _,
            } => list("top", [keys(by), self.plan(input)]),
            Plan::Window {
                input,
                partition,
                order,
                functions,
            } => {
                let partition = list("partition", exprs(partition));
                let functions = list("functions", functions.iter().map(windowed));
                list(
                    "window",
                    [partition, keys(order), functions, self.plan(input)],
                )
            }
            Plan::Trim {
                input,
                rows: _,
                overflow: _,
            } => list("trim", [self.plan(input)]),
            Plan::Fit { input, model } => {
                let target = match &model.kind {
                    FitKind::Regression { target, .. } | FitKind::Tree { target, .. } => {
                        Some(list("target", [expr(target)]))
                    }
                    FitKind::Clusters { .. } | FitKind::Components { .. } => None,
                };
                let features = list("features", named(&model.features));
                let parts = [features].into_iter().chain(target);
                let by = match &model.kind {
                    FitKind::Regression {
                        stepping: Some(_), ..
                    } => " by gradient",
                    _ => "",
                };
                let head = format!("fit {}{by}", model.kind.name());
                list(&head, parts.chain([self.plan(input)]))
            }
            // Weights are as literals.
            Plan::Apply {
                input,
                model,
                weights,
            } => {
                let features = list("features", exprs(&model.features));
                let weights = weights.as_ref().map(|of| list("weights", [self.plan(of)]));
                let parts = std::iter::once(features).chain(weights);
                let parts: Vec<_> = parts.collect();
                list("apply", parts.into_iter().chain([self.plan(input)]))
            }
            Plan::Open { input, to: _ } => self.plan(input),
        }
    }
}
