//! The query of an analysis, and where in the job its lines come from.

use std::ops::Range;

use toml::Spanned;
use veil_query::{Part, SqlError, check_part};
use veil_relation::Kind;

use super::{Output, part};
use crate::date;
use crate::error::{Fault, JobProblem};
use crate::raw::RawAnalysis;
use crate::stats::moments::Variable;
use crate::stats::{Analysis, Column, ColumnKind, End, Missing, Statistic};

/// A query, with the part of the job that each of its lines comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Sql {
    text: String,
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Line {
    /// Bytes of the job file.
    span: Range<usize>,
    /// The field, if the line is one of it, and which line.
    field: Option<(String, u64)>,
}

impl Sql {
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A line that is written for the analysis at this place of the job.
    pub(super) fn own(&mut self, text: &str, span: &Range<usize>) {
        self.text += text;
        self.text.push('\n');
        self.lines.push(Line {
            span: span.clone(),
            field: None,
        });
    }

    /// The lines of a field, which has to be such a part and nothing more.
    pub(super) fn field(
        &mut self,
        (analysis, field): (&str, &str),
        text: &Spanned<String>,
        kind: Part,
    ) -> Result<(), Fault> {
        let checked = check_part(analysis, text.get_ref(), kind);
        checked.map_err(|error| part(analysis, field, text.span(), error))?;
        for (line, at) in text.get_ref().lines().zip(1..) {
            self.text += line;
            self.text.push('\n');
            self.lines.push(Line {
                span: text.span(),
                field: Some((field.to_owned(), at)),
            });
        }
        Ok(())
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.text += &other.text;
        self.lines.extend(other.lines.iter().cloned());
    }

    /// An error of the query, as one of the field that it is in.
    pub(super) fn fault(&self, analysis: &str, error: &SqlError) -> Fault {
        let line = usize::try_from(error.place.line).unwrap_or(usize::MAX);
        let found = self.lines.get(line.saturating_sub(1));
        let mut error = error.clone();
        let what = match found.and_then(|line| line.field.as_ref()) {
            Some((field, at)) => {
                error.place.line = *at;
                format!("`{field}` of analysis `{analysis}`")
            }
            None => format!("analysis `{analysis}`"),
        };
        let span = found.map_or(0..0, |line| line.span.clone());
        let error = Box::new(error);
        Fault::new(span, JobProblem::Part { what, error })
    }
}

/// An identifier as SQL writes it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as SQL writes it.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The columns of an analysis, as its query reads them.
pub(super) struct Columns<'a> {
    pub(super) columns: &'a [Column],
    /// What they are in the relation: those that are true or false are 1 or 0 as numbers.
    pub(super) kinds: &'a [Kind],
}

impl Columns<'_> {
    fn name(&self, column: usize) -> String {
        quoted(&self.columns[column].name)
    }

    /// A column as something that is ordered: dates stay dates.
    fn ordered(&self, column: usize) -> String {
        if self.kinds[column] == Kind::Bool {
            format!("CASE WHEN {} THEN 1 ELSE 0 END", self.name(column))
        } else {
            self.name(column)
        }
    }

    /// A variable as a number: dates are days since 1970-01-01.
    fn number(&self, variable: Variable) -> String {
        match variable {
            Variable::Value(column) if self.columns[column].is_date() => {
                format!("({} - DATE '1970-01-01')", self.name(column))
            }
            Variable::Value(column) => self.ordered(column),
            // A column of the relation, so that a query of many products is no longer than it has to be.
            Variable::Cell(..) => quoted(&variable.name(self.columns)),
        }
    }

    /// An indicator of a value of a category, and its name.
    fn indicator(&self, variable: Variable) -> Option<String> {
        let Variable::Cell(column, value) = variable else {
            return None;
        };
        let text = literal(&self.columns[column].categories()[usize::from(value)]);
        let (of, name) = (self.name(column), quoted(&variable.name(self.columns)));
        Some(format!(
            "CASE WHEN {of} = {text} THEN 1 ELSE 0 END AS {name}"
        ))
    }

    /// The bin of a value, as the text that it is called.
    fn bin(&self, of: usize, edges: &[i64]) -> String {
        let column = &self.columns[of];
        let value = self.ordered(of);
        let mut text = String::from("CASE");
        for (at, edge) in edges.iter().enumerate() {
            let edge = match column.kind {
                ColumnKind::Date { .. } => format!("DATE '{}'", date::show(*edge)),
                _ => column.show(*edge),
            };
            let bin = literal(&bin_name(column, edges, at));
            for part in [" WHEN ", &value, " < ", &edge, " THEN ", &bin] {
                text += part;
            }
        }
        text + &format!(
            " ELSE {} END",
            literal(&bin_name(column, edges, edges.len()))
        )
    }

    /// The columns that are opened of each group, behind those that make groups: what they are, their expressions, and their names.
    fn opened(&self, analysis: &Analysis) -> Vec<(Output, String, String)> {
        let of = |column: usize| self.columns[column].name.as_str();
        let answer = |sql: String, what: String| vec![(Output::Answer(0), sql, what)];
        match &analysis.statistic {
            Statistic::Extreme(end, column) => {
                let call = match end {
                    End::Smallest => "min",
                    End::Largest => "max",
                };
                let sql = format!("{call}({})", self.ordered(*column));
                answer(sql, format!("{} {}", end.adjective(), of(*column)))
            }
            Statistic::MeanOnly {
                of: column,
                decimals,
            } => answer(
                self.rounded(*column, *decimals),
                format!("mean of {}", of(*column)),
            ),
            Statistic::Quantiles { of: column, at } => {
                let value = self.ordered(*column);
                let one = |(index, fraction): (usize, &crate::stats::Fraction)| {
                    let sql =
                        format!("percentile_disc({fraction}) WITHIN GROUP (ORDER BY {value})");
                    let what = format!("quantile {fraction} of {}", of(*column));
                    (Output::Answer(index), sql, what)
                };
                at.iter().enumerate().map(one).collect()
            }
            _ => self.moments(analysis),
        }
    }

    fn moments(&self, analysis: &Analysis) -> Vec<(Output, String, String)> {
        let variables = analysis.variables(self.columns);
        let sum = |(i, j): (usize, usize)| {
            let factors: Vec<Variable> = [i, j]
                .into_iter()
                .filter_map(|index| index.checked_sub(1).map(|index| variables[index]))
                .collect();
            let output = Output::Moment(i, j);
            let name = |variable: &Variable| variable.name(self.columns);
            match factors.as_slice() {
                [] => Some((output, "count(*)".into(), "count".into())),
                // Indicators of one column: the product of two is 0, and the square is the indicator.
                [Variable::Cell(a, _), Variable::Cell(b, _)] if a == b => None,
                [one] => {
                    let sql = format!("sum({})", self.number(*one));
                    Some((output, sql, format!("sum of {}", name(one))))
                }
                several => {
                    let parts: Vec<String> =
                        several.iter().map(|part| self.number(*part)).collect();
                    let names: Vec<String> = several.iter().map(name).collect();
                    let sql = format!("sum({})", parts.join(" * "));
                    Some((output, sql, format!("sum of {}", names.join(" · "))))
                }
            }
        };
        let needs = analysis.needs(variables.len(), true);
        needs.into_iter().filter_map(sum).collect()
    }

    /// The mean of a column, rounded to the nearest, halves up; of dates the day that it is in. PostgreSQL rounds halves away from zero, so that what is rounded
    /// is the mean above an integer that no value is below.
    fn rounded(&self, column: usize, decimals: u8) -> String {
        let of = &self.columns[column];
        let least = self.kinds[column]
            .range()
            .map_or(0, veil_relation::Range::min);
        let whole = least.div_euclid(10_i128.pow(u32::from(of.scale()))) - 1;
        let value = self.number(Variable::Value(column));
        let half = if of.is_date() { " - 0.5" } else { "" };
        format!("round(avg({value} - ({whole}){half}), {decimals}) + ({whole})")
    }
}

/// What a bin is called: that of the values below the first edge, those between two, those from the last one on.
pub(super) fn bin_name(column: &Column, edges: &[i64], at: usize) -> String {
    let show = |edge: &i64| column.show(*edge);
    match (
        at.checked_sub(1).and_then(|at| edges.get(at)),
        edges.get(at),
    ) {
        (None, Some(to)) => format!("below {}", show(to)),
        (Some(from), Some(to)) => format!("{} to below {}", show(from), show(to)),
        (Some(from), None) => format!("{} and above", show(from)),
        (None, None) => String::new(),
    }
}

/// Writes the query of an analysis over a relation that is written already; and what its columns are, behind those that make groups.
pub(super) fn write(
    analysis: &Analysis,
    columns: &Columns<'_>,
    (raw, span): (&RawAnalysis, &Range<usize>),
    relation: &Sql,
) -> Result<(Sql, Vec<Output>), Fault> {
    let name = analysis.name.as_str();
    let mut sql = Sql::default();
    let mut keys: Vec<(String, String)> = (analysis.by.iter())
        .map(|&column| (columns.name(column), columns.columns[column].name.clone()))
        .collect();
    if let Statistic::Histogram { of, edges } = &analysis.statistic {
        keys.push((
            columns.bin(*of, edges),
            format!("bin of {}", columns.columns[*of].name),
        ));
    }
    let opened = columns.opened(analysis);
    let mut items: Vec<String> = Vec::new();
    let outputs = opened.iter().map(|(output, ..)| *output).collect();
    let named = keys.iter().map(|(sql, name)| (sql, name));
    let named = named.chain(opened.iter().map(|(_, sql, name)| (sql, name)));
    for (text, name) in named {
        items.push(format!("{text} AS {}", quoted(name)));
    }
    sql.own(&format!("SELECT {}", items.join(", ")), span);
    let variables = analysis.variables(columns.columns).into_iter();
    let indicators = variables.filter_map(|variable| columns.indicator(variable));
    let indicators: Vec<String> = indicators.collect();
    if !indicators.is_empty() {
        sql.own(&format!("FROM (SELECT *, {}", indicators.join(", ")), span);
    }
    sql.own("FROM (", span);
    sql.append(relation);
    sql.own(") AS rows_of_it", span);
    if !indicators.is_empty() {
        sql.own(") AS rows_with_indicators", span);
    }
    let mut used = analysis.statistic.columns();
    used.extend(&analysis.by);
    used.retain(|column| columns.columns[*column].missing != Missing::Refuse);
    let mut conditions: Vec<String> = used
        .iter()
        .map(|column| format!("{} IS NOT NULL", columns.name(*column)))
        .collect();
    match &raw.condition {
        Some(condition) => {
            sql.own("WHERE (", span);
            sql.field((name, "where"), condition, Part::Expression)?;
            conditions.insert(0, ")".into());
            sql.own(&conditions.join(" AND "), span);
        }
        None if conditions.is_empty() => {}
        None => sql.own(&format!("WHERE {}", conditions.join(" AND ")), span),
    }
    if !keys.is_empty() {
        let keys: Vec<&str> = keys.iter().map(|(sql, _)| sql.as_str()).collect();
        sql.own(&format!("GROUP BY {}", keys.join(", ")), span);
    }
    if let Some(having) = &raw.having {
        sql.own("HAVING (", span);
        sql.field((name, "having"), having, Part::Expression)?;
        sql.own(")", span);
    }
    if let Some(top) = &raw.top {
        let top = top.get_ref();
        sql.own("ORDER BY (", span);
        sql.field((name, "top.by"), &top.by, Part::Expression)?;
        let descending = match top.order.as_ref().map(|order| order.get_ref().as_str()) {
            Some("smallest") => "ASC",
            _ => "DESC",
        };
        sql.own(
            &format!(") {descending} NULLS LAST LIMIT {}", top.groups.get_ref()),
            span,
        );
    }
    Ok((sql, outputs))
}
