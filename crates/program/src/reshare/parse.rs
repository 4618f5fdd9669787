//! From the text of a job that shares a dataset again to what it says.

use std::ops::RangeInclusive;

use toml::Spanned;
use veil_session::{PartyId, PlanHash};

use super::Resharing;
use crate::{
    Roles,
    error::{Fault, JobProblem},
    raw::{RawJob, RawReshare},
    roles::{check_name, distinct},
    stats::ring_of,
};

/// What such a job is called in messages.
const JOB: &str = "a job that shares a dataset again";
/// Elements that a row has, all ports together: more than 256 columns of 255 values each.
const MOST_ELEMENTS: u64 = 1 << 16;
/// As many parties may keep shares.
const KEEP: RangeInclusive<usize> = PartyId::THREE.len()..=PartyId::FOUR.len();
/// Rows of a job, as of one that keeps columns.
const MOST_ROWS: u64 = 1 << 40;

impl Resharing {
    pub(crate) fn parse(
        raw: &RawJob,
        section: &Spanned<RawReshare>,
        roles: &Roles,
    ) -> Result<Self, Fault> {
        let own = section.get_ref();
        let no_use = |span, field| {
            let what = JOB.to_owned();
            Err(Fault::new(span, JobProblem::NoUse { what, field }))
        };
        if let Some(recipient) = raw.recipients.first() {
            return no_use(recipient.span(), "recipients");
        }
        if raw.durable {
            return no_use(raw.kind.span(), "durable");
        }
        check_name("dataset", &own.dataset)?;
        let name = own.name.as_ref().unwrap_or(&own.dataset);
        check_name("dataset", name)?;
        let resharing = Resharing {
            dataset: own.dataset.get_ref().clone(),
            made_by: plan(&own.plan)?,
            name: name.get_ref().clone(),
            ring: ring_of(&own.ring)?,
            ports: ports(own)?,
            blocks: blocks(own)?,
            schema: schema(&own.schema)?,
            old: old(raw, section)?,
        };
        resharing.check_sets(raw, name, roles)?;
        Ok(resharing)
    }

    /// The dataset goes to other parties, and no party has two datasets of one name.
    fn check_sets(&self, raw: &RawJob, name: &Spanned<String>, roles: &Roles) -> Result<(), Fault> {
        if !KEEP.contains(&roles.parties.len()) {
            let problem = JobProblem::NewParties(roles.parties.len());
            return Err(Fault::new(raw.parties.span(), problem));
        }
        let is_old = |party: &&String| self.old.contains(party);
        let both: Vec<&String> = roles.parties.iter().filter(is_old).collect();
        if both.len() == self.old.len() && both.len() == roles.parties.len() {
            let problem = JobProblem::SameParties {
                dataset: self.dataset.clone(),
                parties: self.old.join(", "),
            };
            return Err(Fault::new(raw.parties.span(), problem));
        }
        match both.first() {
            Some(party) if self.name == self.dataset => Err(Fault::new(
                name.span(),
                JobProblem::KeptTwice {
                    party: (*party).clone(),
                    dataset: self.dataset.clone(),
                },
            )),
            _ => Ok(()),
        }
    }
}

/// The parties that have it.
fn old(raw: &RawJob, section: &Spanned<RawReshare>) -> Result<Vec<String>, Fault> {
    let names = raw.owners.iter().map(|name| name.get_ref().clone());
    let names: Vec<String> = names.collect();
    if KEEP.contains(&names.len()) {
        return Ok(names);
    }
    let last = raw.owners.last().map_or(section.span(), Spanned::span);
    Err(Fault::new(last, JobProblem::OldParties(names.len())))
}

fn plan(digits: &Spanned<String>) -> Result<PlanHash, Fault> {
    let bytes = data_encoding::HEXLOWER.decode(digits.get_ref().as_bytes());
    let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
    bytes.map(PlanHash).ok_or_else(|| {
        word(
            digits,
            "plan",
            "write all 64 digits of the plan that made the dataset, as `veil shares show` prints them",
        )
    })
}

fn ports(own: &RawReshare) -> Result<Vec<(String, u32)>, Fault> {
    let names: Vec<_> = own.port.iter().map(|port| port.name.clone()).collect();
    let names = distinct("port", &names)?;
    let mut found = 0;
    for port in &own.port {
        let (width, span) = (*port.width.get_ref(), port.width.span());
        if width == 0 {
            let problem = JobProblem::Number {
                field: "width",
                value: width.to_string(),
                reason: "a port has at least 1 element in each row".into(),
            };
            return Err(Fault::new(span, problem));
        }
        found += u64::from(width);
        if found > MOST_ELEMENTS {
            let problem = JobProblem::TooMany {
                what: "elements in each row",
                found,
                limit: MOST_ELEMENTS,
            };
            return Err(Fault::new(span, problem));
        }
    }
    let widths = own.port.iter().map(|port| *port.width.get_ref());
    Ok(names.into_iter().zip(widths).collect())
}

fn blocks(own: &RawReshare) -> Result<Vec<(String, u64)>, Fault> {
    let names: Vec<_> = own.block.iter().map(|block| block.name.clone()).collect();
    let names = distinct("block", &names)?;
    let mut found = 0_u64;
    for (block, name) in own.block.iter().zip(&names) {
        let (rows, span) = (*block.rows.get_ref(), block.rows.span());
        if rows == 0 {
            let what = format!("block `{name}`");
            return Err(Fault::new(span, JobProblem::NoRows { what }));
        }
        found = found.saturating_add(rows);
        if found > MOST_ROWS {
            let problem = JobProblem::TooMany {
                what: "rows",
                found,
                limit: MOST_ROWS,
            };
            return Err(Fault::new(span, problem));
        }
    }
    let rows = own.block.iter().map(|block| *block.rows.get_ref());
    Ok(names.into_iter().zip(rows).collect())
}

/// It is kept, compared and shown as it is.
fn schema(text: &Spanned<String>) -> Result<String, Fault> {
    let words = text.get_ref();
    if words.is_empty() || words.chars().any(char::is_control) {
        let reason = "write the line that `veil shares show` prints; without it, no job could load what is kept";
        return Err(word(text, "schema", reason));
    }
    Ok(words.clone())
}

fn word(text: &Spanned<String>, field: &'static str, reason: &str) -> Fault {
    let problem = JobProblem::Word {
        field,
        value: text.get_ref().chars().take(80).collect(),
        reason: reason.to_owned(),
    };
    Fault::new(text.span(), problem)
}
