//! From the text of a statistics job to what it asks.

mod analysis;
mod column;

use std::ops::Range;

use toml::Spanned;

use column::column;
pub(crate) use column::{bound, day, marks, notation};

use super::{Alignment, Column, Keeping, Missing, Pairing, Stats, StatsBlock};
use crate::{
    Roles,
    error::{Fault, JobProblem},
    raw::{RawAlign, RawBlock, RawCapacity, RawDelimiter, RawJob},
    roles::{check_name, distinct, unknown},
};
use veil_circuit::Limits;
use veil_job::Holder;

/// Columns of a job; each costs shared bytes per row.
const MOST_COLUMNS: u64 = 256;
/// Rows of a job: beyond this the sums of almost anything overflow.
const MOST_ROWS: u64 = 1 << 40;
/// Numbers that a job opens where it states no limit: more than people read, and few beside the rows that they are of.
const USUALLY_OPENED: u64 = 1024;
/// Rows of a part whose order is compared. The index of the first part that differs is all that is learned; fewer rows
/// would say more, and more rows would need a search.
const FEWEST_ALIGNED: u32 = 16;
const MOST_ALIGNED: u32 = 1 << 24;

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
            most_opened: most_opened(raw, Limits::default().ports)?,
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
            let analysis = stats.analysis(raw.get_ref(), raw.span(), roles, false)?;
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
        let (rows, padded) = rows(raw)?;
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
                    "no owner".into()
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
            files.push((holder, file.get_ref().clone()));
        }
        let delimiters = match &raw.delimiter {
            None => Vec::new(),
            Some(given) => delimiters(given, &name, &holders, roles)?,
        };
        let mut notations = Vec::new();
        for (owner, written) in &raw.written {
            let holder = roles.owner_at(owner)?;
            if !holders.contains(&holder) {
                let what = format!(
                    "block `{name}`, where `{}` holds no column,",
                    owner.get_ref()
                );
                let field = "written";
                return Err(Fault::new(owner.span(), JobProblem::NoUse { what, field }));
            }
            notations.push((holder, notation(written.get_ref())?));
        }
        let mut owners: Vec<&str> = Vec::new();
        for (owner, columns) in &raw.holds {
            let name = owner.get_ref().as_str();
            if !columns.is_empty() && !owners.contains(&name) {
                owners.push(name);
            }
        }
        if padded {
            self.may_be_padded(raw, &owners)?;
        }
        let pairing = pairing(raw, span, &owners)?;
        Ok(StatsBlock {
            name,
            rows,
            fewest_rows: if padded { 0 } else { rows },
            holders,
            files,
            delimiters,
            notations,
            pairing,
            stored: None,
        })
    }

    /// Looks whether rows behind the last of a file count nowhere: one owner has all columns, and rows without a value in one of them are left out.
    fn may_be_padded(&self, raw: &RawBlock, owners: &[&str]) -> Result<(), Fault> {
        if owners.len() > 1 {
            let reason = "rows of several owners are paired, and all of them must have as many; write their number";
            return Err(not_padded(raw, reason));
        }
        let drops = |column: &Column| column.missing == Missing::DropRow;
        if !self.columns.iter().any(drops) {
            let reason = "rows behind the last have no values, and rows without one count; give a column that every row has `missing = \"drop-row\"`";
            return Err(not_padded(raw, reason));
        }
        Ok(())
    }

    /// A block whose columns all come from the parties' stores.
    fn stored(&self, raw: &RawBlock, dataset: &Spanned<String>) -> Result<StatsBlock, Fault> {
        check_name("dataset", dataset)?;
        let name = raw.name.get_ref().clone();
        let (rows, padded) = rows(raw)?;
        if padded {
            let reason = "a stored block has as many rows as its dataset; write their number";
            return Err(not_padded(raw, reason));
        }
        let holds = raw.holds.keys().next().map(Spanned::span);
        let useless = [
            ("holds", holds),
            ("files", raw.files.keys().next().map(Spanned::span)),
            ("delimiter", raw.delimiter.as_ref().map(Spanned::span)),
            ("written", raw.written.keys().next().map(Spanned::span)),
            ("align", raw.align.as_ref().map(Spanned::span)),
            ("order", raw.order.as_ref().map(Spanned::span)),
        ];
        for (field, span) in useless {
            if let Some(span) = span {
                let what = format!("block `{name}`, which is stored,");
                return Err(Fault::new(span, JobProblem::NoUse { what, field }));
            }
        }
        Ok(StatsBlock {
            name,
            rows,
            fewest_rows: rows,
            holders: vec![Holder::Stored; self.columns.len()],
            files: Vec::new(),
            delimiters: Vec::new(),
            notations: Vec::new(),
            pairing: Pairing::Unsaid,
            stored: Some(dataset.get_ref().clone()),
        })
    }
}

/// Rows of a block, and whether that is a bound.
fn rows(raw: &RawBlock) -> Result<(u64, bool), Fault> {
    let (rows, padded) = match raw.rows.get_ref() {
        RawCapacity::Exact(rows) => (*rows, false),
        RawCapacity::UpTo {
            bucket: Some(_), ..
        } => {
            return Err(not_padded(
                raw,
                "a bound of a block is no `bucket`; leave that out",
            ));
        }
        RawCapacity::UpTo { up_to, .. } => (*up_to, true),
    };
    match u64::try_from(rows) {
        Ok(1..) => Ok((rows.cast_unsigned(), padded)),
        Ok(0) => Err(Fault::new(
            raw.rows.span(),
            JobProblem::NoRows {
                what: format!("block `{}`", raw.name.get_ref()),
            },
        )),
        Err(_) => {
            let problem = JobProblem::Number {
                field: "rows",
                value: rows.to_string(),
                reason: "it is 1 or more".into(),
            };
            Err(Fault::new(raw.rows.span(), problem))
        }
    }
}

/// Why a block has no bound instead of a number of rows.
fn not_padded(raw: &RawBlock, reason: &'static str) -> Fault {
    let problem = JobProblem::NotPadded {
        block: raw.name.get_ref().clone(),
        reason,
    };
    Fault::new(raw.rows.span(), problem)
}

/// Marks between cells, by holder.
fn delimiters(
    raw: &Spanned<RawDelimiter>,
    block: &str,
    holders: &[veil_job::Holder],
    roles: &Roles,
) -> Result<Vec<(veil_job::Holder, u8)>, Fault> {
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

/// Why the rows of a block are rows of the same people, which has to be said where several owners hold its columns.
fn pairing(raw: &RawBlock, span: Range<usize>, owners: &[&str]) -> Result<Pairing, Fault> {
    let block = raw.name.get_ref();
    match (&raw.align, &raw.order) {
        (Some(_), Some(order)) => {
            let problem = JobProblem::OneOf {
                one: "align",
                other: "order",
                both: true,
            };
            Err(Fault::new(order.span(), problem))
        }
        (Some(given), None) => align(given.get_ref()).map(Pairing::Compared),
        (None, Some(order)) if order.get_ref() != "agreed" => {
            let problem = JobProblem::Word {
                field: "order",
                value: order.get_ref().clone(),
                reason: "write \"agreed\", or `align` in its place".into(),
            };
            Err(Fault::new(order.span(), problem))
        }
        (None, Some(order)) if owners.len() < 2 => {
            let what = format!("block `{block}`, whose columns one owner holds,");
            let field = "order";
            Err(Fault::new(order.span(), JobProblem::NoUse { what, field }))
        }
        (None, Some(_)) => Ok(Pairing::Agreed),
        (None, None) if owners.len() < 2 => Ok(Pairing::Unsaid),
        (None, None) => {
            let problem = JobProblem::Unordered {
                block: block.clone(),
                owners: format!("`{}`", owners.join("` and `")),
            };
            Err(Fault::new(span, problem))
        }
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
        duplicates: match &raw.duplicates {
            None => false,
            Some(word) => allowed(word)?,
        },
    })
}

/// The word of several rows with one key.
fn allowed(word: &Spanned<String>) -> Result<bool, Fault> {
    if word.get_ref() == "allowed" {
        return Ok(true);
    }
    let problem = JobProblem::Word {
        field: "duplicates",
        value: word.get_ref().clone(),
        reason:
            "write \"allowed\", if several rows of an owner may have the same key, or leave it out"
                .into(),
    };
    Err(Fault::new(word.span(), problem))
}

/// The most numbers that a job with analyses opens, of which there may be `most`.
pub(crate) fn most_opened(raw: &RawJob, most: u64) -> Result<u64, Fault> {
    let Some(given) = &raw.most_opened else {
        return Ok(USUALLY_OPENED);
    };
    let limit = *given.get_ref();
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    let problem = JobProblem::Number {
        field: "most_opened",
        value: limit.to_string(),
        reason: format!("a job like this opens 1 to {most} numbers"),
    };
    Err(Fault::new(given.span(), problem))
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
