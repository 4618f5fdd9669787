//! From the text of a statistics job to what it asks.

use std::ops::Range;

use toml::Spanned;

use super::{Analysis, Column, ColumnKind, Missing, Statistic, Stats, StatsBlock};
use crate::{
    Roles,
    error::{Fault, JobProblem},
    number::{LARGEST, MOST_DIGITS, parse_scaled},
    raw::{
        RawAnalysis, RawBlock, RawColumn, RawJob, RawMissing, RawNames, RawNumber, RawStatistic,
        RawType,
    },
    roles::{check_name, distinct, unknown},
};

/// A category value is a byte in memory, and one byte means that it is missing.
const MOST_VALUES: u64 = 255;
/// Columns of a job; each costs shared bytes per row.
const MOST_COLUMNS: u64 = 256;
/// Rows of a job: beyond this the sums of almost anything overflow.
const MOST_ROWS: u64 = 1 << 40;
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
        Ok(StatsBlock {
            name,
            rows,
            holders,
            files,
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
            let (is, needs) = if number {
                ("a category", "a number")
            } else {
                ("a number", "a category")
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
            RawStatistic::Sum => Statistic::Sum(numeric(1, "sum")?[0]),
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
        Ok(Analysis {
            name,
            statistic,
            by,
            to: roles.audience_at(&raw.to)?,
        })
    }
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

fn column(raw: &RawColumn, span: Range<usize>) -> Result<Column, Fault> {
    let name = raw.name.get_ref().clone();
    let what = || format!("column `{name}`");
    let useless = |span: Option<Range<usize>>, field| match span {
        Some(span) => Err(Fault::new(
            span,
            JobProblem::NoUse {
                what: what(),
                field,
            },
        )),
        None => Ok(()),
    };
    let needed = |field| {
        Fault::new(
            span.clone(),
            JobProblem::NoField {
                what: what(),
                field,
            },
        )
    };
    let missing = match raw.missing {
        RawMissing::Refuse => Missing::Refuse,
        RawMissing::Skip => Missing::Skip,
    };
    if raw.kind == RawType::Category {
        useless(raw.min.as_ref().map(Spanned::span), "min")?;
        useless(raw.max.as_ref().map(Spanned::span), "max")?;
        useless(raw.scale.as_ref().map(Spanned::span), "scale")?;
        useless(raw.unit.as_ref().map(Spanned::span), "unit")?;
        let values = raw.values.as_ref().filter(|values| !values.is_empty());
        let values = distinct("value", values.ok_or_else(|| needed("values"))?)?;
        limit(
            "values in one column",
            values.len() as u64,
            MOST_VALUES,
            || span.clone(),
        )?;
        return Ok(Column {
            kind: ColumnKind::Category(values),
            name,
            missing,
        });
    }
    useless(raw.values.as_ref().map(|_| span.clone()), "values")?;
    if raw.kind == RawType::Integer {
        useless(raw.scale.as_ref().map(Spanned::span), "scale")?;
    }
    let scale = match (&raw.scale, raw.kind) {
        (_, RawType::Integer) => 0,
        (None, _) => return Err(needed("scale")),
        (Some(scale), _) if *scale.get_ref() > MOST_DIGITS => {
            let value = scale.get_ref().to_string();
            let reason = format!("at most {MOST_DIGITS} digits are kept");
            return Err(Fault::new(
                scale.span(),
                JobProblem::Number {
                    field: "scale",
                    value,
                    reason,
                },
            ));
        }
        (Some(scale), _) => *scale.get_ref(),
    };
    if let Some(unit) = &raw.unit {
        check_name("unit", unit)?;
    }
    let min = bound("min", raw.min.as_ref().ok_or_else(|| needed("min"))?, scale)?;
    let max = bound("max", raw.max.as_ref().ok_or_else(|| needed("max"))?, scale)?;
    if min > max {
        return Err(Fault::new(span, JobProblem::EmptyRange(name)));
    }
    let unit = raw.unit.as_ref().map(|unit| unit.get_ref().clone());
    Ok(Column {
        kind: ColumnKind::Number {
            scale,
            min,
            max,
            unit,
        },
        name,
        missing,
    })
}

/// A declared bound, in units of the scale.
fn bound(field: &'static str, raw: &Spanned<RawNumber>, scale: u8) -> Result<i64, Fault> {
    let fault = |value: String, reason: String| {
        Fault::new(
            raw.span(),
            JobProblem::Number {
                field,
                value,
                reason,
            },
        )
    };
    match raw.get_ref() {
        RawNumber::Text(text) => {
            parse_scaled(text, scale).map_err(|error| fault(text.clone(), error.to_string()))
        }
        RawNumber::Integer(value) => {
            let scaled = 10i64.pow(u32::from(scale)).checked_mul(*value);
            let inside = scaled.filter(|scaled| scaled.unsigned_abs() <= LARGEST.unsigned_abs());
            inside.ok_or_else(|| {
                fault(
                    value.to_string(),
                    "it is too large; numbers have at most 62 bits".into(),
                )
            })
        }
        RawNumber::Float(value) => Err(fault(
            value.to_string(),
            "write it in quotes, such as \"1.50\", so that no digit is lost".into(),
        )),
    }
}
