//! Reading of jobs in which keys of two parties meet.

use std::path::PathBuf;

use toml::Spanned;
use veil_job::{Audience, Holder};
use veil_relation::Kind;
use veil_session::PartyId;

use super::bins::Cell;
use super::reading::Readings;
use super::{Intersection, MOST_COUNTED, Shows};
use crate::Roles;
use crate::error::{Fault, JobProblem};
use crate::query::{OwnerTable, owner_table};
use crate::raw::{RawIntersection, RawJob, RawTable};
use crate::roles::is_plain_file;

/// What such a job is called in messages.
const JOB: &str = "a job of kind `psi`";

/// The file of a result that says nothing else.
const FILE: &str = "common.csv";

/// What a job that counts is called in messages.
const KEYS_ONLY: &str = "a job that opens keys, of kind `psi`,";

impl Intersection {
    pub(crate) fn parse(
        raw: &RawJob,
        section: &Spanned<RawIntersection>,
        roles: &Roles,
    ) -> Result<Self, Fault> {
        let own = section.get_ref();
        let no_use = |span, what: &str, field| {
            let what = what.to_owned();
            Err(Fault::new(span, JobProblem::NoUse { what, field }))
        };
        if roles.parties.len() != PartyId::TWO.len() {
            let problem = JobProblem::NotMoved(
                "keys meet between two parties: name two; three and four parties join tables by queries, which also count and sum what both have",
            );
            return Err(Fault::new(raw.parties.span(), problem));
        }
        let opened = opened(own.opens.as_ref())?;
        if let Some(recipient) = raw.recipients.first().filter(|_| opened.names_keys()) {
            return no_use(recipient.span(), JOB, "recipients");
        }
        if raw.durable {
            return no_use(raw.kind.span(), JOB, "durable");
        }
        let tables = raw.table.iter().map(|raw| table(raw, roles, opened));
        let mut tables: Vec<(OwnerTable, &Spanned<RawTable>)> = tables.collect::<Result<_, _>>()?;
        tables.sort_by_key(|(table, _)| table.holder);
        let holders: Vec<Holder> = tables.iter().map(|(table, _)| table.holder).collect();
        let both = PartyId::TWO.map(Holder::Party);
        let Some(tables) = <[(OwnerTable, &Spanned<RawTable>); 2]>::try_from(tables)
            .ok()
            .filter(|_| holders == both)
        else {
            let span = raw.table.last().map_or(section.span(), Spanned::span);
            return Err(Fault::new(span, JobProblem::NotTwoTables));
        };
        let [(a, _), (b, _)] = &tables;
        if a.table.name == b.table.name {
            let name = raw.table[1].get_ref().name.clone();
            let problem = JobProblem::Duplicate {
                what: "table",
                name: name.get_ref().clone(),
            };
            return Err(Fault::new(name.span(), problem));
        }
        let to = roles.audience_at(&own.to)?;
        if opened.names_keys() && !matches!(to, Audience::Party(_)) {
            let problem = JobProblem::Word {
                field: "to",
                value: own.to.get_ref().clone(),
                reason:
                    "one of the two parties learns which keys both have; for both, run two jobs"
                        .into(),
            };
            return Err(Fault::new(own.to.span(), problem));
        }
        let least = match &own.min_keys {
            None => 0,
            Some(least) if opened.names_keys() => {
                return no_use(least.span(), KEYS_ONLY, "min_keys");
            }
            Some(least) => least_of(least)?,
        };
        let mut keys_at = [0; 2];
        let mut cells = [Vec::new(), Vec::new()];
        for (at, (table, raw)) in tables.iter().enumerate() {
            let columns = &table.table.columns;
            let is_key =
                |column: &veil_relation::Column| matches!(column.ty.kind, Kind::Key { .. });
            keys_at[at] = columns.iter().position(is_key).unwrap_or(0);
            let values = (0..columns.len()).filter(|column| *column != keys_at[at]);
            for column in values {
                let span = raw.get_ref().column[column].span();
                let named = to == Audience::Party(PartyId::TWO[at]);
                cells[at].push(cell(&columns[column], column, (opened, named), span)?);
            }
        }
        let none = cells.iter().all(Vec::is_empty);
        if none && matches!(opened, Shows::Sums | Shows::Columns) {
            let problem = JobProblem::NoValues(opened.word());
            return Err(Fault::new(section.span(), problem));
        }
        Ok(Intersection {
            tables: tables.map(|(table, _)| table),
            opened,
            to,
            least,
            file: file(own.file.as_ref())?,
            keys_at,
            cells,
            readings: Readings::default(),
        })
    }
}

/// What is opened: which keys both have, if nothing is said.
fn opened(word: Option<&Spanned<String>>) -> Result<Shows, Fault> {
    let Some(word) = word else {
        return Ok(Shows::Keys);
    };
    let mut all = Shows::ALL.into_iter();
    let found = all.find(|opened| opened.word() == word.get_ref());
    found.ok_or_else(|| {
        let words = Shows::ALL.map(|opened| format!("\"{}\"", opened.word()));
        let problem = JobProblem::Word {
            field: "opens",
            value: word.get_ref().clone(),
            reason: format!("write {}", words.join(", ")),
        };
        Fault::new(word.span(), problem)
    })
}

/// The fewest keys of which something is opened.
fn least_of(least: &Spanned<i64>) -> Result<u32, Fault> {
    let fits = u32::try_from(*least.get_ref()).ok();
    fits.filter(|least| (1..=MOST_COUNTED).contains(least))
        .ok_or_else(|| {
            let problem = JobProblem::Number {
                field: "min_keys",
                value: least.get_ref().to_string(),
                reason: format!("write a number of keys, 1 to {MOST_COUNTED}"),
            };
            Fault::new(least.span(), problem)
        })
}

/// A column of values, where the job has a use for it.
fn cell(
    of: &veil_relation::Column,
    column: usize,
    (opened, named): (Shows, bool),
    span: std::ops::Range<usize>,
) -> Result<Cell, Fault> {
    let fault = |problem| Fault::new(span.clone(), problem);
    let is_number = of.ty.kind.number().is_some();
    match opened {
        Shows::Keys | Shows::Size => return Err(fault(JobProblem::NotOneKey)),
        Shows::Columns if named => return Err(fault(JobProblem::OwnValues(of.name.clone()))),
        Shows::Sums if !is_number => return Err(fault(JobProblem::NotAdded(of.name.clone()))),
        Shows::Sums | Shows::Columns => {}
    }
    let no_number = || fault(JobProblem::NotAdded(of.name.clone()));
    Cell::of(column, &of.ty).ok_or_else(no_number)
}

/// A table with one key, and columns of values where there are any.
fn table<'a>(
    raw: &'a Spanned<RawTable>,
    roles: &Roles,
    opened: Shows,
) -> Result<(OwnerTable, &'a Spanned<RawTable>), Fault> {
    let own = raw.get_ref();
    let no_use = |span, field| {
        let what = format!("table `{}` of {JOB}", own.name.get_ref());
        Err(Fault::new(span, JobProblem::NoUse { what, field }))
    };
    if let Some(stored) = &own.stored {
        return no_use(stored.span(), "stored");
    }
    if let Some(sorted) = own.sorted_by.first() {
        return no_use(sorted.span(), "sorted_by");
    }
    if let Some(unique) = own.unique.first() {
        return no_use(unique.span(), "unique");
    }
    let table = owner_table(raw, roles, Some(128))?;
    let columns = table.table.columns.iter();
    let keys = columns.filter(|column| matches!(column.ty.kind, Kind::Key { .. }));
    if keys.count() != 1 {
        return Err(Fault::new(raw.span(), JobProblem::NotOneKey));
    }
    for column in &own.column {
        let written = column.get_ref();
        if let Some(bits) = &written.bits {
            return no_use(bits.span(), "bits");
        }
        if let Some(field) =
            (written.may.as_ref().map(|_| "may")).or(written.reveal.as_ref().map(|_| "reveal"))
        {
            return no_use(column.span(), field);
        }
    }
    let keys = table.table.capacity;
    if opened != Shows::Keys && keys > MOST_COUNTED {
        return Err(Fault::new(own.rows.span(), JobProblem::ManyKeys { keys }));
    }
    Ok((table, raw))
}

/// The file of the result: a plain name that ends in `.csv`.
fn file(named: Option<&Spanned<String>>) -> Result<PathBuf, Fault> {
    let Some(named) = named else {
        return Ok(PathBuf::from(FILE));
    };
    let text = named.get_ref();
    let path = PathBuf::from(text);
    let is_csv = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    if is_plain_file(text) && is_csv {
        return Ok(path);
    }
    let problem = JobProblem::Word {
        field: "file",
        value: text.clone(),
        reason: "a result has a plain name that ends in `.csv`, in the folder of its recipient"
            .into(),
    };
    Err(Fault::new(named.span(), problem))
}
