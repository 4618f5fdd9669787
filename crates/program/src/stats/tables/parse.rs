//! Reading of analyses over tables.

use std::ops::Range;

use toml::Spanned;
use veil_query::{Job, Part, Query, QueryError, SortedBytes, SqlError};
use veil_relation::{Field, Kind, is_name};

use super::TableAnalysis;
use super::sql::{self, Columns, Sql, quoted};
use crate::Roles;
use crate::error::{Fault, JobProblem};
use crate::number::MOST_DIGITS;
use crate::raw::{RawAnalysis, RawJob, RawNames};
use crate::roles::{distinct, unknown};
use crate::stats::{Column, ColumnKind, Marks, Missing, Stats};

/// Groups of a list of the first ones: more are no list that people read.
const MOST_TOP: u32 = 10_000;

/// Reads the analyses of a job with these tables, named queries and bounds.
pub(crate) fn parse(raw: &RawJob, roles: &Roles, job: &Job) -> Result<Vec<TableAnalysis>, Fault> {
    let names: Vec<_> = raw
        .analysis
        .iter()
        .map(|analysis| analysis.get_ref().name.clone())
        .collect();
    distinct("analysis", &names)?;
    derived(raw, job)?;
    let relations: Vec<Sql> = raw
        .analysis
        .iter()
        .map(|analysis| relation(raw, analysis, job))
        .collect::<Result<_, _>>()?;
    let all = fields(raw, &relations, job)?;
    let parts = raw.analysis.iter().zip(relations).zip(all).enumerate();
    let one = |(at, ((raw, relation), fields))| one(at, raw, roles, &relation, fields);
    parts.map(one).collect()
}

/// Checks what derived columns are called.
fn derived(raw: &RawJob, job: &Job) -> Result<(), Fault> {
    for name in raw.derived.keys() {
        let fault = |reason: &str| {
            let problem = JobProblem::Word {
                field: "derived",
                value: name.get_ref().clone(),
                reason: reason.into(),
            };
            Fault::new(name.span(), problem)
        };
        if !is_name(name.get_ref()) {
            return Err(fault("a name has lower-case letters, digits and `_`"));
        }
        let mut analyses = raw.analysis.iter();
        if !analyses.any(|analysis| names(analysis.get_ref(), name.get_ref())) {
            return Err(fault("no analysis names this column; remove it"));
        }
        if job
            .tables
            .iter()
            .any(|table| table.column(name.get_ref()).is_some())
        {
            return Err(fault(
                "a table has a column of this name; write another one",
            ));
        }
    }
    Ok(())
}

/// The relation of an analysis: its tables, with the derived columns that it names.
fn relation(raw: &RawJob, analysis: &Spanned<RawAnalysis>, job: &Job) -> Result<Sql, Fault> {
    let span = analysis.span();
    let analysis = analysis.get_ref();
    let name = analysis.name.get_ref().as_str();
    let mut sql = Sql::default();
    sql.own("SELECT *", &span);
    for (column, expression) in &raw.derived {
        if names(analysis, column.get_ref()) {
            sql.own(", (", &span);
            let field = format!("derived.{}", column.get_ref());
            sql.field((name, &field), expression, Part::Expression)?;
            sql.own(&format!(") AS {}", quoted(column.get_ref())), &span);
        }
    }
    sql.own("FROM", &span);
    match &analysis.from {
        None => {
            let [only] = job.tables.as_slice() else {
                let what = format!("analysis `{name}` of a job with several tables");
                let field = "from = \"table\"";
                return Err(Fault::new(span, JobProblem::NoField { what, field }));
            };
            sql.own(&quoted(&only.name), &span);
        }
        Some(from) => match from.get_ref() {
            RawNames::One(text) => {
                let text = Spanned::new(from.span(), text.clone());
                sql.field((name, "from"), &text, Part::From)?;
            }
            RawNames::Several(tables) => sql.own(&stacked(tables, from.span(), job)?, &from.span()),
        },
    }
    Ok(sql)
}

/// Whether an analysis names a column somewhere.
fn names(analysis: &RawAnalysis, column: &str) -> bool {
    let lists = [&analysis.of, &analysis.on, &analysis.by];
    let lists = lists.into_iter().flatten();
    let mut listed = lists.flat_map(|list| list.get_ref().as_slice());
    let top = analysis.top.as_ref().map(|top| &top.get_ref().by);
    let texts = [analysis.condition.as_ref(), analysis.having.as_ref(), top];
    let mut words = texts.into_iter().flatten().flat_map(|text| {
        let text = text.get_ref();
        text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
    });
    listed.any(|name| name == column) || words.any(|word| word.to_lowercase() == column)
}

/// The rows of several tables one behind the other, with the columns that all of them have.
fn stacked(names: &[String], span: Range<usize>, job: &Job) -> Result<String, Fault> {
    let find = |name: &String| {
        let known = job.tables.iter().map(|table| table.name.as_str());
        let found = job.tables.iter().find(|table| table.name == *name);
        found.ok_or_else(|| unknown("table", name, known, span.clone()))
    };
    let tables = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let Some((first, others)) = tables.split_first() else {
        let what = "an analysis".to_owned();
        let field = "from = [\"table\"]";
        return Err(Fault::new(span, JobProblem::NoField { what, field }));
    };
    let columns = first.columns.iter().map(|column| column.name.as_str());
    let common = columns.filter(|name| others.iter().all(|table| table.column(name).is_some()));
    let columns: Vec<String> = common.map(quoted).collect();
    if columns.is_empty() {
        let problem = JobProblem::Word {
            field: "from",
            value: names.join(", "),
            reason: "no column has one name in all of these tables; rows are stacked by names"
                .into(),
        };
        return Err(Fault::new(span, problem));
    }
    let select = |table: &&veil_relation::Table| {
        format!("SELECT {} FROM {}", columns.join(", "), quoted(&table.name))
    };
    let parts: Vec<String> = tables.iter().map(select).collect();
    Ok(format!("({}) AS stacked", parts.join(" UNION ALL ")))
}

/// The columns of the relation of each analysis.
fn fields(raw: &RawJob, relations: &[Sql], job: &Job) -> Result<Vec<Vec<Field>>, Fault> {
    let mut asked = job.clone();
    let queries = relations.iter().enumerate().map(|(at, relation)| Query {
        keep: None,
        name: step(at),
        sql: relation.text().to_owned(),
        to: None,
        min_count: 0,
        fit: None,
        apply: None,
    });
    let before = asked.queries.len();
    asked.queries.extend(queries);
    let mut all = veil_query::fields(&asked, &SortedBytes).map_err(|error| match error {
        QueryError::Sql(error) => at(raw, relations, *error),
        error => crate::query::fault(raw, error, &[]),
    })?;
    Ok(all.split_off(before))
}

/// The name of the query of an analysis.
fn step(at: usize) -> String {
    format!("analysis_{}", at + 1)
}

/// A problem of the relation of an analysis, or of a named query.
fn at(raw: &RawJob, relations: &[Sql], error: SqlError) -> Fault {
    let mut all = relations.iter().zip(&raw.analysis).enumerate();
    match all.find(|(at, _)| step(*at) == error.query) {
        Some((_, (sql, analysis))) => sql.fault(analysis.get_ref().name.get_ref(), &error),
        None => crate::query::fault(raw, error.into(), &[]),
    }
}

/// One analysis over a relation with these columns.
fn one(
    at: usize,
    raw: &Spanned<RawAnalysis>,
    roles: &Roles,
    relation: &Sql,
    fields: Vec<Field>,
) -> Result<TableAnalysis, Fault> {
    let span = raw.span();
    let raw = raw.get_ref();
    let name = raw.name.get_ref().as_str();
    let used = [&raw.of, &raw.on, &raw.by];
    for list in used.into_iter().flatten() {
        for column in list.get_ref().as_slice() {
            statistical(name, column, &fields, list.span())?;
        }
    }
    let kinds: Vec<Kind> = fields.iter().map(|field| field.ty.kind.clone()).collect();
    let columns: Vec<Column> = fields.into_iter().map(column).collect();
    let stats = Stats {
        columns,
        blocks: Vec::new(),
        analyses: Vec::new(),
        keep: None,
        most_opened: 0,
    };
    let analysis = stats.analysis(raw, span.clone(), roles, true)?;
    groups(raw, name, analysis.by.is_empty())?;
    let to = to(raw)?;
    let columns = Columns {
        columns: &stats.columns,
        kinds: &kinds,
    };
    let (sql, outputs) = sql::write(&analysis, &columns, (raw, &span), relation)?;
    Ok(TableAnalysis {
        step: step(at),
        analysis,
        columns: stats.columns,
        to,
        sql,
        outputs,
    })
}

/// Refuses columns of which there is no statistic, or several.
fn statistical(
    analysis: &str,
    column: &str,
    fields: &[Field],
    span: Range<usize>,
) -> Result<(), Fault> {
    let mut found = fields.iter().filter(|field| field.name == column);
    let why = match (found.next(), found.next()) {
        (Some(_), Some(_)) => {
            "a name of several columns of its tables; give one of them a name in `[derived]`"
        }
        (Some(field), None) => match field.ty.kind {
            Kind::Ratio { .. } => {
                "a quotient in each row, and parties have exact numbers alone; round it, as in `round(a / b, 4)`, or let `kind = \"ratio\"` divide sums"
            }
            Kind::Decimal { places, .. } if places > MOST_DIGITS.into() => {
                "a number of more than 18 digits after the point; round it, as in `round(a * b, 4)`"
            }
            Kind::Key { .. } => "a key, of which parties have a digest that is never opened",
            _ => return Ok(()),
        },
        // The reader of analyses says which names there are.
        (None, _) => return Ok(()),
    };
    let problem = JobProblem::NoStatistic {
        column: column.to_owned(),
        what: format!("analysis `{analysis}`"),
        why,
    };
    Err(Fault::new(span, problem))
}

/// A column of a relation, as statistics know it.
fn column(field: Field) -> Column {
    // The reader of tables and the sums that are bound look at ranges of more than 64 bits.
    let end = |end: i128| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let number = |scale: u32, range: veil_relation::Range| ColumnKind::Number {
        scale: u8::try_from(scale).unwrap_or(u8::MAX),
        min: end(range.min()),
        max: end(range.max()),
        unit: None,
        marks: Marks::default(),
    };
    let kind = match &field.ty.kind {
        Kind::Integer(range) => number(0, *range),
        Kind::Decimal { places, units } => number(*places, *units),
        Kind::Bool => ColumnKind::Number {
            scale: 0,
            min: 0,
            max: 1,
            unit: None,
            marks: Marks::default(),
        },
        Kind::Date(range) => ColumnKind::Date {
            min: end(range.min()),
            max: end(range.max()),
            format: None,
        },
        Kind::Category(values) => ColumnKind::Category(values.texts().to_vec()),
        Kind::Ratio { .. } | Kind::Key { .. } => ColumnKind::Category(Vec::new()),
    };
    Column {
        name: field.name,
        kind,
        missing: if field.ty.nullable {
            Missing::DropPair
        } else {
            Missing::Refuse
        },
    }
}

/// Refuses what is of groups where there are none, and lists of groups that are none.
fn groups(raw: &RawAnalysis, name: &str, none: bool) -> Result<(), Fault> {
    if let Some(having) = raw.having.as_ref().filter(|_| none) {
        let what = format!("analysis `{name}`, which has no `by`,");
        let field = "having";
        return Err(Fault::new(having.span(), JobProblem::NoUse { what, field }));
    }
    if let Some(top) = &raw.top {
        let (span, top) = (top.span(), top.get_ref());
        if none {
            let what = format!("analysis `{name}`, which has no `by`,");
            return Err(Fault::new(span, JobProblem::NoUse { what, field: "top" }));
        }
        if raw.kind == crate::raw::RawStatistic::Histogram {
            let what = format!("histogram `{name}`");
            return Err(Fault::new(span, JobProblem::NoUse { what, field: "top" }));
        }
        if !(1..=MOST_TOP).contains(top.groups.get_ref()) {
            let problem = JobProblem::Number {
                field: "groups",
                value: top.groups.get_ref().to_string(),
                reason: format!("the first groups are 1 to {MOST_TOP}"),
            };
            return Err(Fault::new(top.groups.span(), problem));
        }
        if let Some(order) = &top.order
            && !["largest", "smallest"].contains(&order.get_ref().as_str())
        {
            let problem = JobProblem::Word {
                field: "order",
                value: order.get_ref().clone(),
                reason: "write \"largest\" or \"smallest\"".into(),
            };
            return Err(Fault::new(order.span(), problem));
        }
    }
    Ok(())
}

/// To whom an analysis is opened: one participant, by its name.
fn to(raw: &RawAnalysis) -> Result<String, Fault> {
    match raw.to.get_ref().as_slice() {
        [name] if name != "parties" => Ok(name.clone()),
        names => {
            let problem = JobProblem::Word {
                field: "to",
                value: names.join(", "),
                reason: "what is computed of tables is opened to one participant; name it".into(),
            };
            Err(Fault::new(raw.to.span(), problem))
        }
    }
}
