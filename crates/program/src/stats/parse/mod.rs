//! From the text of a statistics job to what it asks.

mod column;

use std::ops::Range;

use toml::Spanned;

use column::column;

use super::{Alignment, Analysis, Column, Keeping, Statistic, Stats, StatsBlock};
use crate::{
    Holder, Roles,
    error::{Fault, JobProblem},
    raw::{RawAlign, RawAnalysis, RawBlock, RawDelimiter, RawJob, RawNames, RawStatistic},
    roles::{check_name, distinct, unknown},
};

/// Columns of a job; each costs shared bytes per row.
const MOST_COLUMNS: u64 = 256;
/// Rows of a job: beyond this the sums of almost anything overflow.
const MOST_ROWS: u64 = 1 << 40;
/// Rows of a part whose order is compared. The index of the first part that differs is all that is learned; fewer rows
/// would say more, and more rows would need a search.
const FEWEST_ALIGNED: u32 = 16;
const MOST_ALIGNED: u32 = 1 << 24;
/// No job has more rows.
const MOST_MIN_COUNT: u64 = 1 << 40;
/// Regressors: the normal equations grow with the square, and the report with it.
const MOST_REGRESSORS: u64 = 32;

impl Stats {
    pub(crate) fn parse(raw: &RawJob, roles: &Roles) -> Result<Self, Fault> {
        let names: Vec<_> = raw
            .column
            .iter()
            .map(|column| column.get_ref().name.clone())
            .collect();
        distinct("column", &names)?;
        limit("columns", names.len() as u64, MOST_COLUMNS, || {
            raw.column[0].span()
        })?;
        let columns = raw
            .column
            .iter()
            .map(|raw| column(raw.get_ref(), raw.span()))
            .collect::<Result<_, _>>()?;

        let names: Vec<_> = raw
            .block
            .iter()
            .map(|block| block.get_ref().name.clone())
            .collect();
        distinct("block", &names)?;
        let mut stats = Self {
            columns,
            blocks: Vec::new(),
            analyses: Vec::new(),
            keep: (raw.keep.as_ref())
                .map(|keep| Keeping::parse(keep.get_ref()))
                .transpose()?,
        };
        let mut rows = 0u64;
        for raw in &raw.block {
            let block = stats.block(raw.get_ref(), raw.span(), roles)?;
            rows = rows.saturating_add(block.rows);
            limit("rows", rows, MOST_ROWS, || raw.get_ref().rows.span())?;
            stats.blocks.push(block);
        }

        let names: Vec<_> = raw
            .analysis
            .iter()
            .map(|analysis| analysis.get_ref().name.clone())
            .collect();
        distinct("analysis", &names)?;
        for raw in &raw.analysis {
            let analysis = stats.analysis(raw.get_ref(), raw.span(), roles)?;
            stats.analyses.push(analysis);
        }
        Ok(stats)
    }

    fn find(&self, name: &str, span: Range<usize>) -> Result<usize, Fault> {
        let known = || self.columns.iter().map(|column| column.name.as_str());
        known()
            .position(|known| known == name)
            .ok_or_else(|| unknown("column", name, known(), span))
    }

    fn block(
        &self,
        raw: &RawBlock,
        span: Range<usize>,
        roles: &Roles,
    ) -> Result<StatsBlock, Fault> {
        let name = raw.name.get_ref().clone();
        let rows = *raw.rows.get_ref();
        if rows == 0 {
            return Err(Fault::new(
                raw.rows.span(),
                JobProblem::NoRows {
                    what: format!("block `{name}`"),
                },
            ));
        }
        if let Some(dataset) = &raw.stored {
            return self.stored(raw, dataset);
        }
        let mut holders = vec![Vec::new(); self.columns.len()];
        for (owner, columns) in &raw.holds {
            let holder = roles.owner_at(owner)?;
            for column in distinct("column", columns)?.iter().zip(columns) {
                holders[self.find(column.0, column.1.span())?].push((holder, owner.get_ref()));
            }
        }
        let one = |(column, held): (&Column, &Vec<_>)| match held.as_slice() {
            &[(holder, _)] => Ok(holder),
            several => {
                let names: Vec<String> = several
                    .iter()
                    .map(|(_, name)| format!("`{name}`"))
                    .collect();
                let holders = if names.is_empty() {
                    "nobody".into()
                } else {
                    names.join(" and ")
                };
                let problem = JobProblem::Holders {
                    column: column.name.clone(),
                    block: name.clone(),
                    holders,
                };
                Err(Fault::new(span.clone(), problem))
            }
        };
        let holders = self
            .columns
            .iter()
            .zip(&holders)
            .map(one)
            .collect::<Result<Vec<_>, _>>()?;
        let mut files = Vec::new();
        for (owner, file) in &raw.files {
            let holder = roles.owner_at(owner)?;
            if !holders.contains(&holder) {
                let what = format!(
                    "block `{name}`, where `{}` holds no column,",
                    owner.get_ref()
                );
                return Err(Fault::new(
                    owner.span(),
                    JobProblem::NoUse {
                        what,
                        field: "files",
                    },
                ));
            }
            files.push((holder, file.clone()));
        }
        let delimiters = match &raw.delimiter {
            None => Vec::new(),
            Some(given) => delimiters(given, &name, &holders, roles)?,
        };
        let align = raw
            .align
            .as_ref()
            .map(|given| align(given.get_ref()))
            .transpose()?;
        Ok(StatsBlock {
            name,
            rows,
            holders,
            files,
            delimiters,
            align,
            stored: None,
        })
    }

    /// A block whose columns all come from the parties' stores.
    fn stored(&self, raw: &RawBlock, dataset: &Spanned<String>) -> Result<StatsBlock, Fault> {
        check_name("dataset", dataset)?;
        let name = raw.name.get_ref().clone();
        let holds = raw.holds.keys().next().map(Spanned::span);
        let useless = [
            ("holds", holds),
            ("files", raw.files.keys().next().map(Spanned::span)),
            ("delimiter", raw.delimiter.as_ref().map(Spanned::span)),
            ("align", raw.align.as_ref().map(Spanned::span)),
        ];
        for (field, span) in useless {
            if let Some(span) = span {
                let what = format!("block `{name}`, which is stored,");
                return Err(Fault::new(span, JobProblem::NoUse { what, field }));
            }
        }
        Ok(StatsBlock {
            name,
            rows: *raw.rows.get_ref(),
            holders: vec![Holder::Stored; self.columns.len()],
            files: Vec::new(),
            delimiters: Vec::new(),
            align: None,
            stored: Some(dataset.get_ref().clone()),
        })
    }

    fn analysis(
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
        if by.len() > 2 {
            let (what, field) = (who(statistic.name()), "by of more than two columns");
            return Err(Fault::new(
                by[2].1.clone(),
                JobProblem::NoUse { what, field },
            ));
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
                reason: format!(
                    "it is 2 rows to {MOST_MIN_COUNT}; without it, all groups are shown"
                ),
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
        Ok(Analysis {
            name,
            statistic,
            by,
            min_count: min_count.map(|least| *least.get_ref()),
            to: roles.audience_at(&raw.to)?,
        })
    }
}

/// Marks between cells, by holder.
fn delimiters(
    raw: &Spanned<RawDelimiter>,
    block: &str,
    holders: &[crate::Holder],
    roles: &Roles,
) -> Result<Vec<(crate::Holder, u8)>, Fault> {
    let one = |text: &str| match text.as_bytes() {
        &[mark]
            if !mark.is_ascii_alphanumeric()
                && !matches!(mark, b'"' | b'\n' | b'\r' | b'.' | b'-') =>
        {
            Ok(mark)
        }
        _ => Err(Fault::new(
            raw.span(),
            JobProblem::Word {
                field: "delimiter",
                value: text.to_owned(),
                reason: "it must be one character between cells, such as `,`, `;` or `\\t`".into(),
            },
        )),
    };
    match raw.get_ref() {
        RawDelimiter::All(text) => {
            let mark = one(text)?;
            Ok(holders.iter().map(|&holder| (holder, mark)).collect())
        }
        RawDelimiter::Each(each) => (each.iter())
            .map(|(owner, text)| {
                let owner = Spanned::new(raw.span(), owner.clone());
                let holder = roles.owner_at(&owner)?;
                if !holders.contains(&holder) {
                    let what = format!(
                        "block `{block}`, where `{}` holds no column,",
                        owner.get_ref()
                    );
                    let field = "delimiter";
                    return Err(Fault::new(raw.span(), JobProblem::NoUse { what, field }));
                }
                Ok((holder, one(text)?))
            })
            .collect(),
    }
}

fn align(raw: &RawAlign) -> Result<Alignment, Fault> {
    check_name("column", &raw.column)?;
    let every = *raw.every.get_ref();
    if !(FEWEST_ALIGNED..=MOST_ALIGNED).contains(&every) {
        return Err(Fault::new(
            raw.every.span(),
            JobProblem::Number {
                field: "every",
                value: every.to_string(),
                reason: format!(
                    "a compared part has {FEWEST_ALIGNED} to {MOST_ALIGNED} rows; 65536 is a good choice"
                ),
            },
        ));
    }
    Ok(Alignment {
        column: raw.column.get_ref().clone(),
        every,
    })
}

fn limit(
    what: &'static str,
    found: u64,
    limit: u64,
    span: impl FnOnce() -> Range<usize>,
) -> Result<(), Fault> {
    if found > limit {
        Err(Fault::new(
            span(),
            JobProblem::TooMany { what, found, limit },
        ))
    } else {
        Ok(())
    }
}
