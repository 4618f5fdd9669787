//! Reading of jobs in which keys of two parties meet.

use std::path::PathBuf;

use toml::Spanned;
use veil_job::{Audience, Holder};
use veil_relation::Kind;
use veil_session::PartyId;

use super::Intersection;
use crate::Roles;
use crate::error::{Fault, JobProblem};
use crate::query::{OwnerTable, owner_table};
use crate::raw::{RawIntersection, RawJob, RawTable};
use crate::roles::is_plain_file;

/// What such a job is called in messages.
const JOB: &str = "a job of kind `psi`";

/// The file of a result that says nothing else.
const FILE: &str = "common.csv";

impl Intersection {
    pub(crate) fn parse(
        raw: &RawJob,
        section: &Spanned<RawIntersection>,
        roles: &Roles,
    ) -> Result<Self, Fault> {
        let own = section.get_ref();
        let no_use = |span, field| {
            let what = JOB.to_owned();
            Err(Fault::new(span, JobProblem::NoUse { what, field }))
        };
        if roles.parties.len() != PartyId::TWO.len() {
            let problem = JobProblem::NotMoved(
                "keys meet between two parties: name two; three and four parties join tables by queries, which also count and sum what both have",
            );
            return Err(Fault::new(raw.parties.span(), problem));
        }
        if let Some(recipient) = raw.recipients.first() {
            return no_use(recipient.span(), "recipients");
        }
        if raw.durable {
            return no_use(raw.kind.span(), "durable");
        }
        let tables = raw.table.iter().map(|raw| table(raw, roles));
        let mut tables: Vec<OwnerTable> = tables.collect::<Result<_, _>>()?;
        tables.sort_by_key(|table| table.holder);
        let holders: Vec<Holder> = tables.iter().map(|table| table.holder).collect();
        let both = PartyId::TWO.map(Holder::Party);
        let Some(tables) = <[OwnerTable; 2]>::try_from(tables)
            .ok()
            .filter(|_| holders == both)
        else {
            let span = raw.table.last().map_or(section.span(), Spanned::span);
            return Err(Fault::new(span, JobProblem::NotTwoTables));
        };
        let [a, b] = &tables;
        if a.table.name == b.table.name {
            let name = raw.table[1].get_ref().name.clone();
            let problem = JobProblem::Duplicate {
                what: "table",
                name: name.get_ref().clone(),
            };
            return Err(Fault::new(name.span(), problem));
        }
        let Audience::Party(result) = roles.audience_at(&own.to)? else {
            let problem = JobProblem::Word {
                field: "to",
                value: own.to.get_ref().clone(),
                reason:
                    "one of the two parties learns which keys both have; for both, run two jobs"
                        .into(),
            };
            return Err(Fault::new(own.to.span(), problem));
        };
        Ok(Intersection {
            tables,
            result,
            file: file(own.file.as_ref())?,
        })
    }
}

/// A table with one key.
fn table(raw: &Spanned<RawTable>, roles: &Roles) -> Result<OwnerTable, Fault> {
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
    let [column] = &table.table.columns[..] else {
        return Err(Fault::new(raw.span(), JobProblem::NotOneKey));
    };
    if !matches!(column.ty.kind, Kind::Key { .. }) {
        return Err(Fault::new(own.column[0].span(), JobProblem::NotOneKey));
    }
    let written = own.column[0].get_ref();
    if let Some(bits) = &written.bits {
        return no_use(bits.span(), "bits");
    }
    if let Some(field) =
        (written.may.as_ref().map(|_| "may")).or(written.reveal.as_ref().map(|_| "reveal"))
    {
        return no_use(own.column[0].span(), field);
    }
    Ok(table)
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
