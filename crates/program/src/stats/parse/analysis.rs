//! Reading of analyses.

use std::ops::Range;

use toml::Spanned;

use super::{bound, limit};
use crate::{
    Roles,
    error::{Fault, JobProblem},
    number::{MOST_DIGITS, Scaled},
    raw::{RawAnalysis, RawNames, RawNumber, RawStatistic},
    stats::{Analysis, Confidence, End, Statistic, Stats, inference::LEVEL_SCALE},
};
use veil_job::Audience;

/// No job has more rows.
const MOST_MIN_COUNT: u64 = 1 << 40;
/// Regressors: the normal equations grow with the square, and the report with it.
const MOST_REGRESSORS: u64 = 32;

impl Stats {
    pub(super) fn analysis(
        &self,
        raw: &RawAnalysis,
        span: Range<usize>,
        roles: &Roles,
    ) -> Result<Analysis, Fault> {
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
            RawStatistic::Sum => {
                let column = numeric(1, "sum")?[0];
                if self.columns[column].is_date() {
                    let problem = JobProblem::WrongType {
                        column: self.columns[column].name.clone(),
                        is: "a date",
                        what: who("sum"),
                        needs: "a number; a mean of dates has a meaning, a sum has none",
                    };
                    return Err(Fault::new(of[0].1.clone(), problem));
                }
                Statistic::Sum(column)
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
                    MOST_REGRESSORS,
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
        let confidence = match &raw.confidence {
            None => Confidence::USUAL,
            Some(given) if !statistic.has_intervals() => {
                let (what, field) = (who(statistic.name()), "confidence");
                return Err(Fault::new(given.span(), JobProblem::NoUse { what, field }));
            }
            Some(given) => confidence(given)?,
        };
        if by.len() > 2 {
            let problem = JobProblem::Groups {
                what: who(statistic.name()),
                found: by.len(),
            };
            return Err(Fault::new(by[2].1.clone(), problem));
        }
        if let Some(column) = by
            .iter()
            .find(|(column, _)| self.columns[*column].is_number())
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
