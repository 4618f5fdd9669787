//! Who takes part: names, and what each of them is.

use std::ops::Range;
use std::path::{Component, Path};

use toml::Spanned;
use veil_session::{PartyId, Peer};

use crate::{
    error::{Fault, JobProblem},
    raw::RawJob,
};
use veil_job::{Audience, Holder};

/// The word for all parties, as an audience.
const ALL_PARTIES: &str = "parties";

/// Where shares are at rest, in sentences.
const STORES: &str = "the parties' stores";
/// Longest name; two of them and a verb still fit a line of a terminal.
const LONGEST_NAME: usize = 64;
/// Names are numbered with 16 bits on the wire.
const MOST_NAMES: u64 = 1 << 16;

/// The names of a job. An owner or a recipient may also be one of the parties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roles {
    /// Data owners, as the job lists them.
    pub owners: Vec<String>,
    /// The computing parties: two, three or four.
    pub parties: Vec<String>,
    /// Recipients, as the job lists them.
    pub recipients: Vec<String>,
}

impl Roles {
    pub(crate) fn parse(raw: &RawJob) -> Result<Self, Fault> {
        let owners = distinct("owner", &raw.owners)?;
        let parties = distinct("party", raw.parties.get_ref())?;
        let recipients = distinct("recipient", &raw.recipients)?;
        if !(PartyId::TWO.len()..=PartyId::FOUR.len()).contains(&parties.len()) {
            let problem = JobProblem::Parties(parties.len());
            return Err(Fault::new(raw.parties.span(), problem));
        }
        for name in raw
            .owners
            .iter()
            .chain(raw.parties.get_ref())
            .chain(&raw.recipients)
        {
            if name.get_ref() == ALL_PARTIES {
                return Err(Fault::new(
                    name.span(),
                    JobProblem::Reserved(ALL_PARTIES.into()),
                ));
            }
        }
        Ok(Self {
            owners,
            parties,
            recipients,
        })
    }

    /// Owners that are not parties, in order.
    pub fn outside_owners(&self) -> Vec<String> {
        self.outside(&self.owners)
    }

    /// Recipients that are not parties, in order.
    pub fn outside_recipients(&self) -> Vec<String> {
        self.outside(&self.recipients)
    }

    fn outside(&self, names: &[String]) -> Vec<String> {
        names
            .iter()
            .filter(|name| !self.parties.contains(name))
            .cloned()
            .collect()
    }

    /// The party of this name, if it is one.
    pub fn party(&self, name: &str) -> Option<PartyId> {
        let index = self.parties.iter().position(|party| party == name)?;
        PartyId::new(index as u8)
    }

    /// As whom the owner of this name takes part; nothing if there is no such owner.
    pub fn holder(&self, name: &str) -> Option<Holder> {
        if !self.owners.iter().any(|owner| owner == name) {
            return None;
        }
        Some(match self.party(name) {
            Some(party) => Holder::Party(party),
            None => Holder::Owner(position(&self.outside_owners(), name)?),
        })
    }

    /// The audience of values opened to `name`: a recipient, a party, or `parties`.
    pub fn audience(&self, name: &str) -> Option<Audience> {
        if name == ALL_PARTIES {
            return Some(Audience::Parties);
        }
        match self.party(name) {
            Some(party) => Some(Audience::Party(party)),
            None => position(&self.outside_recipients(), name).map(Audience::Recipient),
        }
    }

    pub(crate) fn audience_at(&self, name: &Spanned<String>) -> Result<Audience, Fault> {
        self.audience(name.get_ref()).ok_or_else(|| {
            let known = self
                .recipients
                .iter()
                .chain(&self.parties)
                .map(String::as_str)
                .chain([ALL_PARTIES]);
            unknown("recipient", name.get_ref(), known, name.span())
        })
    }

    pub(crate) fn owner_at(&self, name: &Spanned<String>) -> Result<Holder, Fault> {
        let known = self.owners.iter().map(String::as_str);
        self.holder(name.get_ref())
            .ok_or_else(|| unknown("owner", name.get_ref(), known, name.span()))
    }

    /// The name behind a holder.
    pub fn holder_name(&self, holder: Holder) -> String {
        match holder {
            Holder::Party(party) => self.parties[party.index()].clone(),
            Holder::Owner(owner) => self
                .outside_owners()
                .get(usize::from(owner))
                .cloned()
                .unwrap_or_default(),
            Holder::Stored | Holder::Column => STORES.into(),
        }
    }

    /// The name behind the end of a link.
    pub fn peer_name(&self, peer: Peer) -> String {
        match peer {
            Peer::Party(party) => self.audience_name(Audience::Party(party)),
            Peer::Owner(owner) => self.holder_name(Holder::Owner(owner)),
            Peer::Recipient(recipient) => self.audience_name(Audience::Recipient(recipient)),
        }
    }

    /// The name behind an audience.
    pub fn audience_name(&self, audience: Audience) -> String {
        match audience {
            Audience::Parties => ALL_PARTIES.into(),
            Audience::Party(party) => self.parties[party.index()].clone(),
            Audience::Recipient(recipient) => self
                .outside_recipients()
                .get(usize::from(recipient))
                .cloned()
                .unwrap_or_default(),
            Audience::Stored | Audience::Column => STORES.into(),
        }
    }
}

fn position(names: &[String], name: &str) -> Option<u16> {
    let index = names.iter().position(|other| other == name)?;
    u16::try_from(index).ok()
}

/// Checks one name.
pub(crate) fn check_name(what: &'static str, name: &Spanned<String>) -> Result<(), Fault> {
    let text = name.get_ref();
    let bad = text.is_empty()
        || text.chars().count() > LONGEST_NAME
        || text.chars().any(char::is_control)
        || text.trim() != text;
    if bad {
        Err(Fault::new(
            name.span(),
            JobProblem::BadName {
                what,
                name: text.clone(),
            },
        ))
    } else {
        Ok(())
    }
}

/// Whether a file of a result has a plain name, which leads nowhere and is not hidden.
pub(crate) fn is_plain_file(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    );
    plain && !name.starts_with('.')
}

/// Checks a list of names: each printable, none twice.
pub(crate) fn distinct(
    what: &'static str,
    names: &[Spanned<String>],
) -> Result<Vec<String>, Fault> {
    let mut seen: Vec<String> = Vec::new();
    let mut set = std::collections::HashSet::new();
    for name in names {
        check_name(what, name)?;
        if !set.insert(name.get_ref()) {
            let problem = JobProblem::Duplicate {
                what,
                name: name.get_ref().clone(),
            };
            return Err(Fault::new(name.span(), problem));
        }
        seen.push(name.get_ref().clone());
        if seen.len() as u64 > MOST_NAMES {
            let problem = JobProblem::TooMany {
                what: "names in one list",
                found: names.len() as u64,
                limit: MOST_NAMES,
            };
            return Err(Fault::new(name.span(), problem));
        }
    }
    Ok(seen)
}

pub(crate) fn unknown<'a>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
    span: Range<usize>,
) -> Fault {
    let mut names: Vec<String> = known.map(str::to_owned).collect();
    names.dedup();
    Fault::new(
        span,
        JobProblem::Unknown {
            what,
            name: name.to_owned(),
            known: names,
        },
    )
}
