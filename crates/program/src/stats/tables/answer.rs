//! From the rows that the query of an analysis opened to its statistics.

use veil_relation::{Field, Kind, Value};

use super::sql::bin_name;
use super::{Output, TableAnalysis};
use crate::number::Scaled;
use crate::query::cell;
use crate::stats::derive::{Context, NO_ROWS, SUPPRESSED, figure};
use crate::stats::moments::{Moments, Variable};
use crate::stats::{
    AnalysisResult, Estimate, Figure, Group, Opened, Statistic, StatsResult, alone,
};
use veil_job::Guarantee;

/// A relation that was opened.
pub(crate) struct Relation<'a> {
    pub(crate) fields: &'a [Field],
    pub(crate) rows: &'a [Vec<Value>],
    /// Whether a bound has left out rows, where one says so.
    pub(crate) incomplete: Option<bool>,
}

impl TableAnalysis {
    /// The answer, from what its query opened.
    fn answer(&self, of: &Relation<'_>) -> AnalysisResult {
        let analysis = &self.analysis;
        let context = Context::new(&self.columns, analysis, true);
        let by = analysis.by.iter();
        let mut by: Vec<String> = by
            .map(|column| self.columns[*column].name.clone())
            .collect();
        let mut groups: Vec<Group> = match &analysis.statistic {
            Statistic::Histogram { of: column, edges } => {
                by.push(self.columns[*column].name.clone());
                self.bins(*column, edges, of, &context)
            }
            _ => of
                .rows
                .iter()
                .map(|row| self.group(of, row, &context))
                .collect(),
        };
        let counted = |row: &Vec<Value>| {
            let place = self
                .outputs
                .iter()
                .position(|one| *one == Output::Moment(0, 0))?;
            number(row[self.keys() + place])
        };
        let used = of.rows.iter().filter_map(counted).sum::<i128>();
        let used = (!analysis.statistic.is_alone()).then_some(used);
        if groups.is_empty() && by.is_empty() {
            // One group of all rows, which has too few.
            groups.push(self.group(of, &vec![Value::Null; of.fields.len()], &context));
        }
        AnalysisResult {
            name: analysis.name.clone(),
            statistic: analysis.statistic.name(),
            about: context.about(),
            by,
            min_count: analysis.min_count,
            rows_used: used.and_then(|used| u64::try_from(used).ok()),
            groups,
            incomplete: of.incomplete,
        }
    }

    /// How many columns of its query make groups.
    fn keys(&self) -> usize {
        let bins = matches!(self.analysis.statistic, Statistic::Histogram { .. });
        self.analysis.by.len() + usize::from(bins)
    }

    fn group(&self, of: &Relation<'_>, row: &[Value], context: &Context<'_>) -> Group {
        let keys = of.fields.iter().zip(row).take(self.analysis.by.len());
        let values = keys
            .map(|(field, value)| cell(&field.ty.kind, *value))
            .collect();
        let opened = of.fields.iter().zip(row).skip(self.keys());
        let figures = if self.analysis.statistic.is_alone() {
            let opened = opened.enumerate();
            opened
                .map(|(at, (field, value))| self.figure(at, &field.ty.kind, *value))
                .collect()
        } else {
            let opened: Vec<Value> = opened.map(|(_, value)| *value).collect();
            context.shown(&self.moments(&opened))
        };
        Group { values, figures }
    }

    /// An answer that the parties computed.
    fn figure(&self, at: usize, kind: &Kind, value: Value) -> Figure {
        let statistic = &self.analysis.statistic;
        let name = match statistic {
            Statistic::Quantiles { at: all, .. } if statistic.name() != "median" => {
                format!("quantile {}", all[at])
            }
            Statistic::Quantiles { .. } => "median".to_owned(),
            _ => alone::name(statistic).to_owned(),
        };
        let date = self.columns[statistic.columns()[0]].is_date();
        let estimate = match number(value) {
            Some(day) if date => Estimate::Date(day as f64),
            Some(value) => Estimate::Exact(Scaled {
                value,
                scale: scale(kind),
            }),
            None if self.analysis.min_count.is_some() => Estimate::Undefined(SUPPRESSED),
            None => Estimate::Undefined(NO_ROWS),
        };
        figure(&name, estimate)
    }

    fn moments(&self, opened: &[Value]) -> Moments {
        let variables = self.analysis.variables(&self.columns);
        let mut moments = Moments::zero(variables.len());
        for (output, value) in self.outputs.iter().zip(opened) {
            if let Output::Moment(i, j) = *output {
                moments.set(i, j, number(*value).unwrap_or(0));
            }
        }
        for (at, variable) in (1..).zip(&variables) {
            if let Variable::Cell(..) = variable {
                moments.set(at, at, moments.at(0, at));
            }
        }
        moments
    }

    /// All bins of all groups that are there: one without rows is not in the relation.
    fn bins(
        &self,
        column: usize,
        edges: &[i64],
        of: &Relation<'_>,
        context: &Context<'_>,
    ) -> Vec<Group> {
        let column = &self.columns[column];
        let keys = self.keys();
        let mut all: Vec<(Vec<String>, Vec<Value>)> = Vec::new();
        for row in of.rows {
            let texts = of.fields.iter().zip(row).take(keys);
            let texts = texts.map(|(field, value)| cell(&field.ty.kind, *value));
            all.push((texts.collect(), row[keys..].to_vec()));
        }
        let mut outer: Vec<Vec<String>> = Vec::new();
        for (texts, _) in &all {
            let group = texts[..keys - 1].to_vec();
            if !outer.contains(&group) {
                outer.push(group);
            }
        }
        if outer.is_empty() && keys == 1 {
            outer.push(Vec::new());
        }
        let bin = |group: &Vec<String>, at: usize| {
            let mut values = group.clone();
            values.push(bin_name(column, edges, at));
            let found = all.iter().find(|(texts, _)| *texts == values);
            let opened = found.map_or(&[][..], |(_, opened)| opened);
            let figures = context.shown(&self.moments(opened));
            Group { values, figures }
        };
        let bins = outer.iter().flat_map(|group| {
            let bin = &bin;
            (0..=edges.len()).map(move |at| bin(group, at))
        });
        bins.collect()
    }

    /// Every number that was opened, in words.
    fn opened(&self, of: &Relation<'_>) -> Vec<Opened> {
        let keys = self.keys();
        let one = |row: &Vec<Value>| {
            let named = of.fields.iter().zip(row).take(keys);
            let named: Vec<String> = named
                .map(|(field, value)| format!("{} = {}", field.name, cell(&field.ty.kind, *value)))
                .collect();
            let whose = if named.is_empty() {
                "all rows".to_owned()
            } else {
                format!("rows where {}", named.join(" and "))
            };
            let opened = of.fields.iter().zip(row).skip(keys);
            let opened = opened.map(|(field, value)| Opened {
                what: format!("`{}`: {} over {whose}", self.analysis.name, field.name),
                value: number(*value).map(|value| Scaled {
                    value,
                    scale: scale(&field.ty.kind),
                }),
            });
            opened.collect::<Vec<_>>()
        };
        let flag = of.incomplete.map(|incomplete| Opened {
            what: format!(
                "`{}`: whether a bound of the job has left out rows (1 if so)",
                self.analysis.name
            ),
            value: Some(Scaled {
                value: incomplete.into(),
                scale: 0,
            }),
        });
        of.rows.iter().flat_map(one).chain(flag).collect()
    }
}

/// The result of a recipient, from what the queries of its analyses opened.
pub(crate) fn result(
    (job, recipient): (&str, &str),
    analyses: &[(&TableAnalysis, Relation<'_>)],
    security: Option<Guarantee>,
) -> StatsResult {
    let answers = analyses.iter();
    let opened = analyses.iter();
    StatsResult {
        job: job.to_owned(),
        recipient: recipient.to_owned(),
        rows: None,
        analyses: answers.map(|(analysis, of)| analysis.answer(of)).collect(),
        opened: opened
            .flat_map(|(analysis, of)| analysis.opened(of))
            .collect(),
        paired: Vec::new(),
        security,
    }
}

/// A number, if it is one.
const fn number(value: Value) -> Option<i128> {
    match value {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// Digits behind the point of a number of this kind.
fn scale(kind: &Kind) -> u8 {
    let places = kind.number().map_or(0, |(places, _)| places);
    u8::try_from(places).unwrap_or(u8::MAX)
}
