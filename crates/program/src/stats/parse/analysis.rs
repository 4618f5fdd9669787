//! Reading of analyses.

use std::ops::Range;

use toml::Spanned;

use super::{bound, day, limit};
use crate::{
    Roles,
    error::{Fault, JobProblem},
    number::{MOST_DIGITS, Scaled},
    raw::{RawAnalysis, RawNames, RawNumber, RawStatistic},
    stats::{
        Analysis, Column, Confidence, End, Fraction, Statistic, Stats, inference::LEVEL_SCALE,
    },
};
use veil_job::Audience;

/// No job has more rows.
const MOST_MIN_COUNT: u64 = 1 << 40;
/// Regressors: the normal equations grow with the square, and the report with it.
const MOST_REGRESSORS: u64 = 32;
/// Regressors over tables: their sums of products are items of one query, whose length is limited.
const MOST_OF_TABLES: u64 = 24;
/// Quantiles of an analysis: a hundred make a distribution.
const MOST_QUANTILES: usize = 100;
/// Places where a bin begins: with the bin before them they make groups of a public list, which take no sort.
const MOST_EDGES: usize = 63;

impl Stats {
    /// Reads an analysis of these columns; of rows of tables if `tables` says so, else of rows that stay where they are.
    pub(in crate::stats) fn analysis(
        &self,
        raw: &RawAnalysis,
        span: Range<usize>,
        roles: &Roles,
        tables: bool,
    ) -> Result<Analysis, Fault> {
        if !tables {
            needs_no_tables(raw)?;
        }
        let name = raw.name.get_ref().clone();
        let who = |kind: &str| format!("{kind} `{name}`");
        let columns =
            |names: &Option<Spanned<RawNames>>| -> Result<Vec<(usize, Range<usize>)>, Fault> {
                let Some(names) = names else {
                    return Ok(Vec::new());
                };
                let find = |name: &String| Ok((self.find(name, names.span())?, names.span()));
                names.get_ref().as_slice().iter().map(find).collect()
            };
        let (of, on, by) = (columns(&raw.of)?, columns(&raw.on)?, columns(&raw.by)?);
        let wrong = |(column, span): &(usize, Range<usize>), what: String, number: bool| {
            let column = &self.columns[*column];
            let (is, needs) = match (number, column.is_date()) {
                (true, _) => ("a category", "a number"),
                (false, true) => ("a date", "a category"),
                (false, false) => ("a number", "a category"),
            };
            Fault::new(
                span.clone(),
                JobProblem::WrongType {
                    column: column.name.clone(),
                    is,
                    what,
                    needs,
                },
            )
        };
        let numeric = |count: usize, kind: &str| -> Result<Vec<usize>, Fault> {
            if of.len() != count {
                let field = if count == 1 {
                    "of = \"column\""
                } else {
                    "of = [\"column\", \"column\"]"
                };
                return Err(Fault::new(
                    span.clone(),
                    JobProblem::NoField {
                        what: who(kind),
                        field,
                    },
                ));
            }
            if let Some(column) = of
                .iter()
                .find(|(column, _)| !self.columns[*column].is_number())
            {
                return Err(wrong(column, who(kind), true));
            }
            Ok(of.iter().map(|(column, _)| *column).collect())
        };
        // A sum of dates has no meaning.
        let added = |columns: Vec<usize>, kind: &str| {
            let date = columns.iter().find(|at| self.columns[**at].is_date());
            let Some(&column) = date else {
                return Ok(columns);
            };
            let problem = JobProblem::WrongType {
                column: self.columns[column].name.clone(),
                is: "a date",
                what: who(kind),
                needs: "a number; a mean of dates has a meaning, a sum has none",
            };
            Err(Fault::new(of[0].1.clone(), problem))
        };
        let statistic = match raw.kind {
            RawStatistic::Count if of.len() > 1 => {
                let what = who("count");
                return Err(Fault::new(
                    of[0].1.clone(),
                    JobProblem::NoUse {
                        what,
                        field: "of of several columns",
                    },
                ));
            }
            RawStatistic::Count => Statistic::Count(of.first().map(|(column, _)| *column)),
            RawStatistic::Sum => Statistic::Sum(added(numeric(1, "sum")?, "sum")?[0]),
            RawStatistic::Ratio => {
                let pair = added(numeric(2, "ratio")?, "ratio")?;
                Statistic::Ratio(pair[0], pair[1])
            }
            RawStatistic::Median => Statistic::Quantiles {
                of: numeric(1, "median")?[0],
                at: vec![Fraction::HALF],
            },
            RawStatistic::Quantiles => {
                let of = numeric(1, "quantiles")?[0];
                let at = raw.at.as_ref().ok_or_else(|| {
                    let (what, field) = (who("quantiles"), "at = [\"0.25\", \"0.75\"]");
                    Fault::new(span.clone(), JobProblem::NoField { what, field })
                })?;
                Statistic::Quantiles {
                    of,
                    at: fractions(at)?,
                }
            }
            RawStatistic::Histogram => {
                let of = numeric(1, "histogram")?[0];
                let bins = raw.bins.as_ref().ok_or_else(|| {
                    let (what, field) = (who("histogram"), "bins = [\"10\", \"20\"]");
                    Fault::new(span.clone(), JobProblem::NoField { what, field })
                })?;
                Statistic::Histogram {
                    of,
                    edges: edges(bins, &self.columns[of])?,
                }
            }
            RawStatistic::Mean => Statistic::Mean(numeric(1, "mean")?[0]),
            RawStatistic::MeanOnly => {
                let of = numeric(1, "mean-only")?[0];
                let decimals = self.decimals(raw.decimals.as_ref(), of, &who("mean-only"))?;
                Statistic::MeanOnly { of, decimals }
            }
            RawStatistic::Min => Statistic::Extreme(End::Smallest, numeric(1, "min")?[0]),
            RawStatistic::Max => Statistic::Extreme(End::Largest, numeric(1, "max")?[0]),
            RawStatistic::Variance => Statistic::Variance(numeric(1, "variance")?[0]),
            RawStatistic::Covariance => {
                let pair = numeric(2, "covariance")?;
                Statistic::Covariance(pair[0], pair[1])
            }
            RawStatistic::Correlation => {
                let pair = numeric(2, "correlation")?;
                Statistic::Correlation(pair[0], pair[1])
            }
            RawStatistic::Regression => {
                let of = numeric(1, "regression")?[0];
                let on: Vec<usize> = on.iter().map(|(column, _)| *column).collect();
                if on.is_empty() {
                    let (what, field) = (who("regression"), "on = [\"column\"]");
                    return Err(Fault::new(span, JobProblem::NoField { what, field }));
                }
                let regressor =
                    |&column: &usize| (self.columns[column].categories().len() as u64).max(2) - 1;
                limit(
                    "regressors",
                    on.iter().map(regressor).sum(),
                    if tables {
                        MOST_OF_TABLES
                    } else {
                        MOST_REGRESSORS
                    },
                    || span.clone(),
                )?;
                Statistic::Regression { of, on }
            }
        };
        if let (Some(on), false) = (&raw.on, matches!(statistic, Statistic::Regression { .. })) {
            let what = who(statistic.name());
            return Err(Fault::new(
                on.span(),
                JobProblem::NoUse { what, field: "on" },
            ));
        }
        if let (Some(decimals), false) = (
            &raw.decimals,
            matches!(statistic, Statistic::MeanOnly { .. }),
        ) {
            let (what, field) = (who(statistic.name()), "decimals");
            return Err(Fault::new(
                decimals.span(),
                JobProblem::NoUse { what, field },
            ));
        }
        let useless = [
            (
                "at",
                raw.at.as_ref().map(Spanned::span),
                raw.kind == RawStatistic::Quantiles,
            ),
            (
                "bins",
                raw.bins.as_ref().map(Spanned::span),
                raw.kind == RawStatistic::Histogram,
            ),
        ];
        for (field, span, used) in useless {
            if let Some(span) = span.filter(|_| !used) {
                let what = who(statistic.name());
                return Err(Fault::new(span, JobProblem::NoUse { what, field }));
            }
        }
        let confidence = match &raw.confidence {
            None => Confidence::USUAL,
            Some(given) if !statistic.has_intervals() => {
                let (what, field) = (who(statistic.name()), "confidence");
                return Err(Fault::new(given.span(), JobProblem::NoUse { what, field }));
            }
            Some(given) => confidence(given)?,
        };
        // The bins of a histogram make groups, too.
        let most = 2 - usize::from(matches!(statistic, Statistic::Histogram { .. }));
        if by.len() > most {
            let problem = JobProblem::Groups {
                what: who(statistic.name()),
                found: by.len() + 2 - most,
            };
            return Err(Fault::new(by[most].1.clone(), problem));
        }
        if let Some(column) = by
            .iter()
            .find(|(column, _)| self.columns[*column].is_number() && !tables)
        {
            return Err(wrong(column, "`by`".into(), false));
        }
        let mut used = statistic.columns();
        used.extend(by.iter().map(|(column, _)| *column));
        used.sort_unstable();
        if let Some(pair) = used.windows(2).find(|pair| pair[0] == pair[1]) {
            let column = self.columns[pair[0]].name.clone();
            return Err(Fault::new(
                span,
                JobProblem::Repeated {
                    column,
                    what: who(statistic.name()),
                },
            ));
        }
        let by = by.into_iter().map(|(column, _)| column).collect();
        let min_count = raw.min_count.as_ref();
        if let Some(least) =
            min_count.filter(|least| !(2..=MOST_MIN_COUNT).contains(least.get_ref()))
        {
            let problem = JobProblem::Number {
                field: "min_count",
                value: least.get_ref().to_string(),
                reason: if *least.get_ref() < 2 {
                    "every group that is there has a row; write 2 or more, or leave it out, and all groups are shown"
                        .into()
                } else {
                    format!("no job has more than {MOST_MIN_COUNT} rows")
                },
            };
            return Err(Fault::new(least.span(), problem));
        }
        let categories = match &statistic {
            Statistic::Regression { on, .. } => {
                on.iter().any(|column| !self.columns[*column].is_number())
            }
            _ => false,
        };
        if let Some(least) = min_count.filter(|_| categories) {
            let problem = JobProblem::Number {
                field: "min_count",
                value: least.get_ref().to_string(),
                reason: "a regression on a category opens how many rows have each of its values, however few; leave out \
                         the category, or `min_count`"
                    .into(),
            };
            return Err(Fault::new(least.span(), problem));
        }
        let analysis = Analysis {
            name,
            statistic,
            by,
            min_count: min_count.map(|least| *least.get_ref()),
            confidence,
            to: recipient(&raw.to, roles)?,
        };
        if let Statistic::Extreme(..) = analysis.statistic {
            self.together(&analysis, roles)
                .map_err(|problem| Fault::new(span, problem))?;
        }
        Ok(analysis)
    }

    /// Digits after the point of a mean of column `of`.
    fn decimals(&self, given: Option<&Spanned<u8>>, of: usize, what: &str) -> Result<u8, Fault> {
        let column = &self.columns[of];
        let Some(given) = given else {
            return Ok(column.scale());
        };
        if column.is_date() {
            let what = format!("{what}, of dates,");
            let field = "decimals";
            return Err(Fault::new(given.span(), JobProblem::NoUse { what, field }));
        }
        if *given.get_ref() > MOST_DIGITS {
            let problem = JobProblem::Number {
                field: "decimals",
                value: given.get_ref().to_string(),
                reason: format!("at most {MOST_DIGITS} digits are kept"),
            };
            return Err(Fault::new(given.span(), problem));
        }
        Ok(*given.get_ref())
    }

    /// Whether an owner sees all that an extreme needs of the rows that it holds the column of.
    fn together(&self, analysis: &Analysis, roles: &Roles) -> Result<(), JobProblem> {
        let kind = analysis.statistic.name();
        let mut needed = self.needed(analysis);
        needed.extend(&analysis.by);
        for block in &self.blocks {
            let holder = |column: &usize| block.holders[*column];
            let held = match (needed.first().map(holder), &block.stored) {
                (Some(first), None) if needed.iter().all(|column| holder(column) == first) => {
                    continue;
                }
                (_, Some(dataset)) => {
                    format!("they are shares of `{dataset}`, which no owner sees")
                }
                _ => {
                    let one = |column: &usize| {
                        format!(
                            "`{}` is held by `{}`",
                            self.columns[*column].name,
                            roles.holder_name(holder(column))
                        )
                    };
                    let all: Vec<String> = needed.iter().map(one).collect();
                    all.join(", ")
                }
            };
            return Err(JobProblem::Apart {
                kind,
                analysis: format!("{kind} `{}`", analysis.name),
                block: block.name.clone(),
                held,
            });
        }
        Ok(())
    }
}

/// Refuses what only rows of tables can be asked, which move among parties.
fn needs_no_tables(raw: &RawAnalysis) -> Result<(), Fault> {
    let kind = match raw.kind {
        RawStatistic::Median => Some("kind = \"median\""),
        RawStatistic::Quantiles => Some("kind = \"quantiles\""),
        RawStatistic::Histogram => Some("kind = \"histogram\""),
        _ => None,
    };
    let fields = [
        ("from", raw.from.as_ref().map(Spanned::span)),
        ("where", raw.condition.as_ref().map(Spanned::span)),
        ("having", raw.having.as_ref().map(Spanned::span)),
        ("top", raw.top.as_ref().map(Spanned::span)),
    ];
    let field = fields
        .into_iter()
        .find_map(|(field, span)| Some((field, span?)));
    let found = kind.map(|kind| (kind, raw.name.span())).or(field);
    found.map_or(Ok(()), |(field, span)| {
        let analysis = raw.name.get_ref().clone();
        Err(Fault::new(
            span,
            JobProblem::NeedsTables { analysis, field },
        ))
    })
}

/// The fractions of quantiles: one or more, none twice.
fn fractions(raw: &Spanned<Vec<Spanned<RawNumber>>>) -> Result<Vec<Fraction>, Fault> {
    let mut all: Vec<Fraction> = Vec::new();
    for one in raw.get_ref() {
        let units = bound("at", one, Fraction::SCALE)?;
        let fraction = Fraction::new(units).filter(|fraction| !all.contains(fraction));
        all.push(fraction.ok_or_else(|| {
            let value = Scaled {
                value: units.into(),
                scale: Fraction::SCALE,
            };
            let problem = JobProblem::Number {
                field: "at",
                value: value.to_string(),
                reason: "a fraction is from 0 to 1, and none stands twice".into(),
            };
            Fault::new(one.span(), problem)
        })?);
    }
    if all.is_empty() || all.len() > MOST_QUANTILES {
        let problem = JobProblem::Number {
            field: "at",
            value: all.len().to_string(),
            reason: format!("an analysis has 1 to {MOST_QUANTILES} quantiles"),
        };
        return Err(Fault::new(raw.span(), problem));
    }
    Ok(all)
}

/// Where the bins of a histogram begin: one place or more, ascending.
fn edges(raw: &Spanned<Vec<Spanned<RawNumber>>>, of: &Column) -> Result<Vec<i64>, Fault> {
    let mut all: Vec<i64> = Vec::new();
    for one in raw.get_ref() {
        let edge = if of.is_date() {
            day("bins", one)?
        } else {
            bound("bins", one, of.scale())?
        };
        if all.last().is_some_and(|last| *last >= edge) {
            let problem = JobProblem::Word {
                field: "bins",
                value: of.show(edge),
                reason: "each bin begins above the one before".into(),
            };
            return Err(Fault::new(one.span(), problem));
        }
        all.push(edge);
    }
    if all.is_empty() || all.len() > MOST_EDGES {
        let problem = JobProblem::Number {
            field: "bins",
            value: all.len().to_string(),
            reason: format!("a histogram has 1 to {MOST_EDGES} places where a bin begins"),
        };
        return Err(Fault::new(raw.span(), problem));
    }
    Ok(all)
}

/// How likely an interval contains what is estimated.
fn confidence(raw: &Spanned<RawNumber>) -> Result<Confidence, Fault> {
    let units = bound("confidence", raw, LEVEL_SCALE)?;
    Confidence::new(units).ok_or_else(|| {
        let problem = JobProblem::Number {
            field: "confidence",
            value: Scaled {
                value: units.into(),
                scale: LEVEL_SCALE,
            }
            .to_string(),
            reason: "it is a probability of at least one half and below 1, such as \"0.95\"".into(),
        };
        Fault::new(raw.span(), problem)
    })
}

/// For whom an analysis is.
fn recipient(to: &Spanned<RawNames>, roles: &Roles) -> Result<Audience, Fault> {
    match to.get_ref().as_slice() {
        [name] => roles.audience_at(&Spanned::new(to.span(), name.clone())),
        several => {
            let problem = JobProblem::Word {
                field: "to",
                value: several.join(", "),
                reason: "an analysis is for one recipient, or for \"parties\"; write it once for each, under names of their own"
                    .into(),
            };
            Err(Fault::new(to.span(), problem))
        }
    }
}
