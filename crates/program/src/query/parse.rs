//! Reading of tables, queries and bounds.

use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use veil_job::Holder;
use veil_query::Bound;
use veil_relation::{
    Bucket, Column, ColumnId, First, Kept, MOST_ROWS, OpenSize, Origin, Overflow, Table,
};

use super::column::column;
use super::model;
use super::networks;
use super::{NamedQuery, OwnerTable, Writing};
use crate::error::{Fault, JobProblem};
use crate::raw::{Models, RawBound, RawCapacity, RawJob, RawOpenSize, RawQuery, RawTable};
use crate::roles::{Roles, check_name, is_plain_file};
use crate::stats::notation;
use crate::table::{Count, Notation};

/// Bytes of a reason.
const MOST_WHY: usize = 200;

/// Marks between the cells of a CSV file.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];

fn number(at: &Spanned<RawCapacity>, value: i64, reason: String) -> Fault {
    let problem = JobProblem::Number {
        field: "rows",
        value: value.to_string(),
        reason,
    };
    Fault::new(at.span(), problem)
}

/// Rows that a table has room for, and how many its file may have.
fn rows(raw: &Spanned<RawCapacity>) -> Result<(u32, Count), Fault> {
    let (most, bucket) = match raw.get_ref() {
        RawCapacity::Exact(rows) => (*rows, None),
        RawCapacity::UpTo { up_to, bucket } => (*up_to, Some(bucket.as_deref())),
    };
    let capacity = u32::try_from(most)
        .ok()
        .filter(|rows| (1..=MOST_ROWS).contains(rows));
    let capacity =
        capacity.ok_or_else(|| number(raw, most, format!("a table has 1 to {MOST_ROWS} rows")))?;
    let count = match bucket {
        None => Count::Exact(capacity.into()),
        Some(None) => Count::Between(0, capacity.into()),
        Some(Some("pow2")) if capacity.is_power_of_two() => {
            // Half as many, and one more, are the fewest of which this is the next power of two.
            let least = if capacity == 1 { 0 } else { capacity / 2 + 1 };
            Count::Between(least.into(), capacity.into())
        }
        Some(Some("pow2")) => {
            let reason = "the bucket of a table is a power of two; write the next one";
            return Err(number(raw, most, reason.into()));
        }
        Some(Some(other)) => {
            let problem = JobProblem::Word {
                field: "bucket",
                value: other.to_owned(),
                reason: "write \"pow2\"".into(),
            };
            return Err(Fault::new(raw.span(), problem));
        }
    };
    Ok((capacity, count))
}

fn delimiter(raw: Option<&Spanned<String>>) -> Result<u8, Fault> {
    let Some(text) = raw else { return Ok(b',') };
    let mut characters = text.get_ref().chars();
    match (characters.next(), characters.next()) {
        (Some(mark), None) if DELIMITERS.contains(&mark) => Ok(mark as u8),
        _ => {
            let problem = JobProblem::Word {
                field: "delimiter",
                value: text.get_ref().clone(),
                reason: "it must be \",\", \";\", \"\\t\" or \"|\"".into(),
            };
            Err(Fault::new(text.span(), problem))
        }
    }
}

/// The columns of a claim.
fn claim(names: &[Spanned<String>], table: &Table) -> Result<Vec<ColumnId>, Fault> {
    let find = |name: &Spanned<String>| {
        let known = table.columns.iter().map(|column| column.name.as_str());
        let unknown = || crate::roles::unknown("column", name.get_ref(), known, name.span());
        table.column(name.get_ref()).ok_or_else(unknown)
    };
    names.iter().map(find).collect()
}

/// A table that parties load from a dataset.
pub(super) fn stored(raw: &Spanned<RawTable>) -> Result<Table, Fault> {
    let span = raw.span();
    let raw = raw.get_ref();
    let what = || {
        format!(
            "table `{}`, whose rows come from a dataset,",
            raw.name.get_ref()
        )
    };
    let no_use = |span, field| {
        Err(Fault::new(
            span,
            JobProblem::NoUse {
                what: what(),
                field,
            },
        ))
    };
    let Some(dataset) = &raw.stored else {
        let (what, field) = (what(), "stored");
        return Err(Fault::new(span, JobProblem::NoField { what, field }));
    };
    check_name("dataset", dataset)?;
    if let Some(file) = &raw.file {
        return no_use(file.span(), "file");
    }
    if let Some(delimiter) = &raw.delimiter {
        return no_use(delimiter.span(), "delimiter");
    }
    if let Some(written) = &raw.written {
        return no_use(written.span(), "written");
    }
    if let RawCapacity::UpTo {
        bucket: Some(_), ..
    } = raw.rows.get_ref()
    {
        return no_use(raw.rows.span(), "bucket");
    }
    let (capacity, count) = rows(&raw.rows)?;
    let mut columns = Vec::new();
    for one in &raw.column {
        let of = one.get_ref();
        let given = [
            ("of", of.of.as_ref().map(Spanned::span)),
            ("decimal", of.decimal.as_ref().map(Spanned::span)),
            ("thousands", of.thousands.as_ref().map(Spanned::span)),
            ("format", of.format.as_ref().map(Spanned::span)),
        ];
        if let Some((field, span)) = given
            .into_iter()
            .find_map(|(field, span)| Some((field, span?)))
        {
            return no_use(span, field);
        }
        columns.push(column(of, one.span(), None)?.0);
    }
    let dataset = dataset.get_ref().clone();
    let (origin, capacity) = match (&raw.opened_size, &raw.first_rows) {
        (None, None) => (Origin::Stored(dataset), capacity),
        (None, Some(first)) => {
            let problem = JobProblem::Unsized {
                table: raw.name.get_ref().clone(),
            };
            return Err(Fault::new(first.span(), problem));
        }
        (Some(opened), first) => {
            if matches!(count, Count::Exact(_)) {
                return no_use(opened.span(), "opened_size");
            }
            let within = |at: &Spanned<i64>, field, least: u32, reason: &str| {
                let fits = u32::try_from(*at.get_ref()).ok();
                let fits = fits.filter(|rows| (least..=capacity).contains(rows));
                let problem = || JobProblem::Number {
                    field,
                    value: at.get_ref().to_string(),
                    reason: format!("{reason}, and at most {capacity} rows are kept"),
                };
                fits.ok_or_else(|| Fault::new(at.span(), problem()))
            };
            let size = within(
                opened,
                "opened_size",
                0,
                "it is what the parties have opened",
            )?;
            let least = size.max(1);
            let reason = format!("up to {size} rows count, which all are loaded");
            let rows = first
                .as_ref()
                .map(|first| within(first, "first_rows", least, &reason));
            let first = First {
                dataset,
                of: capacity,
                opened: size,
            };
            (Origin::First(first), rows.transpose()?.unwrap_or(least))
        }
    };
    claimed(raw, (origin, capacity, count), columns, span)
}

/// A table with what is said of its rows.
fn claimed(
    raw: &RawTable,
    (origin, capacity, count): (Origin, u32, Count),
    columns: Vec<Column>,
    span: Range<usize>,
) -> Result<Table, Fault> {
    let mut table = Table {
        name: raw.name.get_ref().clone(),
        origin,
        capacity,
        padded: !matches!(count, Count::Exact(_)),
        columns,
        sorted_by: Vec::new(),
        unique: Vec::new(),
    };
    table.sorted_by = claim(&raw.sorted_by, &table)?;
    let unique = raw.unique.iter();
    table.unique = unique
        .map(|names| claim(names.get_ref(), &table))
        .collect::<Result<_, _>>()?;
    let checked = table.check();
    checked.map_err(|error| Fault::new(span, JobProblem::Query(Box::new(error.into()))))?;
    Ok(table)
}

/// A table; its keys that do not say their bits have these.
pub(crate) fn table(
    at: &Spanned<RawTable>,
    roles: &Roles,
    bits: Option<u16>,
) -> Result<OwnerTable, Fault> {
    let span = at.span();
    let raw = at.get_ref();
    check_name("table", &raw.name)?;
    let (origin, holder) = match (&raw.owner, &raw.stored) {
        (Some(owner), None) => {
            let holder = roles.owner_at(owner)?;
            (Origin::Owner(owner.get_ref().clone()), holder)
        }
        (None, Some(_)) => {
            let table = stored(at)?;
            let capacity = table.capacity.into();
            let count = if table.padded {
                Count::Between(0, capacity)
            } else {
                Count::Exact(capacity)
            };
            return Ok(OwnerTable {
                columns: Vec::new(),
                table,
                holder: Holder::Stored,
                rows: count,
                file: None,
                delimiter: b',',
                notation: Notation::default(),
            });
        }
        (owner, _) => {
            let what = format!("table `{}`", raw.name.get_ref());
            let problem = match owner {
                None => JobProblem::NoField {
                    what,
                    field: "owner",
                },
                Some(_) => JobProblem::NoUse {
                    what: format!("{what} of an owner"),
                    field: "stored",
                },
            };
            let stored = raw.stored.as_ref().map_or(span, Spanned::span);
            return Err(Fault::new(stored, problem));
        }
    };
    let of_dataset = [
        ("opened_size", &raw.opened_size),
        ("first_rows", &raw.first_rows),
    ];
    for (field, given) in of_dataset {
        if let Some(at) = given {
            let what = format!("table `{}` of an owner", raw.name.get_ref());
            return Err(Fault::new(at.span(), JobProblem::NoUse { what, field }));
        }
    }
    let (capacity, count) = rows(&raw.rows)?;
    let (mut columns, mut written) = (Vec::new(), Vec::new());
    for one in &raw.column {
        let (column, how) = column(one.get_ref(), one.span(), bits)?;
        columns.push(column);
        written.push(how);
    }
    Ok(OwnerTable {
        table: claimed(raw, (origin, capacity, count), columns, span)?,
        holder,
        rows: count,
        file: raw.file.as_ref().map(|file| file.get_ref().clone()),
        delimiter: delimiter(raw.delimiter.as_ref())?,
        notation: match &raw.written {
            Some(written) => notation(written.get_ref())?,
            None => Notation::default(),
        },
        columns: written,
    })
}

/// The files of a result: plain names with endings that are known.
fn files(raw: &RawQuery) -> Result<Vec<PathBuf>, Fault> {
    let name = raw.name.get_ref();
    let Some(named) = &raw.file else {
        let ending = |writing: &Writing| PathBuf::from(format!("{name}.{}", writing.ending()));
        return Ok(Writing::DEFAULT.iter().map(ending).collect());
    };
    let mut files = Vec::new();
    for text in named.get_ref().as_slice() {
        let path = PathBuf::from(text);
        let reason = if !is_plain_file(text) {
            Some("a result has a plain name, in the folder of its recipient".to_owned())
        } else if text.eq_ignore_ascii_case("receipt.json") || files.contains(&path) {
            Some("this name is taken".to_owned())
        } else {
            Writing::of(&path).err()
        };
        if let Some(reason) = reason {
            let problem = JobProblem::Word {
                field: "file",
                value: text.clone(),
                reason,
            };
            return Err(Fault::new(named.span(), problem));
        }
        files.push(path);
    }
    Ok(files)
}

pub(super) fn query(raw: &RawQuery, models: &Models, roles: &Roles) -> Result<NamedQuery, Fault> {
    check_name("query", &raw.name)?;
    if let Some(to) = &raw.to {
        if to.get_ref() == "parties" {
            let problem = JobProblem::Word {
                field: "to",
                value: to.get_ref().clone(),
                reason: "a query is opened to one participant; name it".into(),
            };
            return Err(Fault::new(to.span(), problem));
        }
        let known = roles.recipients.iter().chain(&roles.parties);
        if !known.clone().any(|name| name == to.get_ref()) {
            let known = known.map(String::as_str);
            return Err(crate::roles::unknown(
                "recipient",
                to.get_ref(),
                known,
                to.span(),
            ));
        }
    }
    let no_use = |span, field| {
        let what = format!(
            "query `{}`, which is opened to no participant,",
            raw.name.get_ref()
        );
        Err(Fault::new(span, JobProblem::NoUse { what, field }))
    };
    match (&raw.to, &raw.file, &raw.min_count) {
        (None, Some(file), _) => return no_use(file.span(), "file"),
        (None, _, Some(count)) if raw.keep.is_none() && raw.fit.is_none() => {
            return no_use(count.span(), "min_count");
        }
        _ => {}
    }
    if let Some(dataset) = &raw.keep {
        check_name("dataset", dataset)?;
    }
    let size = raw.open_size.as_ref().map(size).transpose()?;
    if let (Some(size), None) = (&raw.open_size, &raw.keep) {
        let what = format!("query `{}`, which is not kept,", raw.name.get_ref());
        let field = "open_size";
        return Err(Fault::new(size.span(), JobProblem::NoUse { what, field }));
    }
    let kept = |dataset: &Spanned<String>| Kept {
        dataset: dataset.get_ref().clone(),
        size: size.clone(),
    };
    Ok(NamedQuery {
        name: raw.name.get_ref().clone(),
        sql: raw.sql.get_ref().clone(),
        to: raw.to.as_ref().map(|to| to.get_ref().clone()),
        keep: raw.keep.as_ref().map(kept),
        min_count: raw.min_count.as_ref().map_or(0, |count| *count.get_ref()),
        fit: raw.fit.as_ref().map(model::model).transpose()?,
        apply: (raw.apply.as_ref())
            .map(|apply| networks::application(apply, models))
            .transpose()?,
        files: if raw.to.is_some() {
            files(raw)?
        } else {
            Vec::new()
        },
    })
}

/// What is opened of how many rows count.
fn size(raw: &Spanned<RawOpenSize>) -> Result<OpenSize, Fault> {
    let span = raw.span();
    let raw = raw.get_ref();
    let word = |at: &Spanned<String>, field, reason: &str| {
        let problem = JobProblem::Word {
            field,
            value: at.get_ref().clone(),
            reason: reason.into(),
        };
        Err(Fault::new(at.span(), problem))
    };
    let bucket = match (&raw.round_up_to, &raw.bucket) {
        (Some(rows), None) => {
            let fits = u32::try_from(*rows.get_ref()).ok();
            let bucket = fits.map(Bucket::RoundUpTo).filter(|bucket| bucket.hides());
            let problem = || {
                JobProblem::Number {
                field: "round_up_to",
                value: rows.get_ref().to_string(),
                reason: "a size is rounded up to two rows or more: else the number of rows itself would be opened".into(),
            }
            };
            bucket.ok_or_else(|| Fault::new(rows.span(), problem()))?
        }
        (None, Some(bucket)) if bucket.get_ref() == "pow2" => Bucket::PowerOfTwo,
        (None, Some(bucket)) => return word(bucket, "bucket", "write \"pow2\""),
        (None, None) => {
            let (what, field) = ("`open_size`".into(), "round_up_to");
            return Err(Fault::new(span, JobProblem::NoField { what, field }));
        }
        (Some(_), Some(bucket)) => {
            let what = "`open_size` with `round_up_to`".into();
            let field = "bucket";
            return Err(Fault::new(bucket.span(), JobProblem::NoUse { what, field }));
        }
    };
    let why = raw.why.get_ref().trim();
    if why.is_empty() || why.len() > MOST_WHY || why.chars().any(char::is_control) {
        return word(
            &raw.why,
            "why",
            "say in one line, of up to 200 bytes, what the size is opened for",
        );
    }
    let why = why.to_owned();
    Ok(OpenSize { bucket, why })
}

pub(super) fn bound(raw: &RawBound) -> Result<Bound, Fault> {
    let overflow = match raw.overflow.get_ref().as_str() {
        "refuse" => Overflow::Refuse,
        "flag" => Overflow::Flag,
        "drop" => Overflow::Drop,
        other => {
            let problem = JobProblem::Word {
                field: "overflow",
                value: other.to_owned(),
                reason: "write \"refuse\", \"flag\" or \"drop\"".into(),
            };
            return Err(Fault::new(raw.overflow.span(), problem));
        }
    };
    if *raw.rows.get_ref() == 0 {
        let problem = JobProblem::Number {
            field: "rows",
            value: "0".into(),
            reason: "a bound has at least one row".into(),
        };
        return Err(Fault::new(raw.rows.span(), problem));
    }
    Ok(Bound {
        of: raw.of.get_ref().clone(),
        rows: *raw.rows.get_ref(),
        overflow,
    })
}

/// The word under which keys are digests: the job's name, if it says none.
pub(super) fn salt(raw: &RawJob) -> Result<String, Fault> {
    match &raw.salt {
        Some(salt) => check_name("salt", salt).map(|()| salt.get_ref().clone()),
        None => Ok(raw.name.get_ref().clone()),
    }
}
