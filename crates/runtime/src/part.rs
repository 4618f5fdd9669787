//! One participant's part in one job: whom it meets, and the run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use veil_engine::{
    Abort, Acts, Binding, Data, Progress, Report, Settings, name_of, participants, party,
};
use veil_link::tls::{
    self, Around, Connected, Fingerprint, Identity, Meeting, OtherStage, Port, SetupError, Terms,
};
use veil_link::{Link, LinkKind, shape};
use veil_protocol::Plan;
use veil_session::{PartyId, Peer};

use crate::passes::Passes;

/// The keys and addresses of a job's participants, by name: whom a participant trusts to be who.
pub trait Roster {
    /// The key of a participant; nothing of one that is not known.
    fn key(&self, name: &str) -> Option<Fingerprint>;

    /// Where it is called, if that is known.
    fn address(&self, name: &str) -> Option<String>;
}

/// Label of the secret that a TLS connection gives to the key schedule.
const EXPORTER: &[u8] = b"EXPORTER-veilworks-pair-1";

/// This participant cannot take part in a job as things are.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartError {
    /// The job does not name it.
    #[error("`{name}` has no part in the job; its participants are {}", others.join(", "))]
    NoPart {
        /// This participant.
        name: String,
        /// Who has one.
        others: Vec<String>,
    },
    /// The job names a participant that is no member of this home.
    #[error(
        "{peer} of the job, `{name}`, is no member here: `veil invite {name} --role {}` makes an invitation, and `veil members` lists who is known",
        word(*peer)
    )]
    NoMember {
        /// As what.
        peer: Peer,
        /// Who.
        name: String,
    },
    /// A party that is dialled from here has no address.
    #[error(
        "{peer} of the job, `{name}`, is dialled from here, and its address is not known: invite it again, or add `address` to it in members.toml"
    )]
    NoAddress {
        /// As what.
        peer: Peer,
        /// Who.
        name: String,
    },
}

/// A role as commands take it.
const fn word(peer: Peer) -> &'static str {
    match peer {
        Peer::Party(_) => "party",
        Peer::Owner(_) => "owner",
        Peer::Recipient(_) => "recipient",
    }
}

/// A run at one participant failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RunError {
    /// The others could not be met.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The run was given up.
    #[error(transparent)]
    Abort(Abort),
}

impl From<Abort> for RunError {
    /// Who came too late for the others was not met, wherever that shows.
    fn from(abort: Abort) -> Self {
        match abort {
            Abort::Unmet { peers } => RunError::Setup(SetupError::TimedOut {
                peers,
                hint: String::new(),
            }),
            abort => RunError::Abort(abort),
        }
    }
}

/// As whom the participant of this name takes part: once, or as owner and as recipient.
///
/// # Errors
/// [`PartError::NoPart`], with all names of the job, if this one is none of them.
pub fn roles(plan: &Plan, name: &str) -> Result<Vec<Peer>, PartError> {
    let all = participants(plan);
    let mine: Vec<Peer> = all
        .iter()
        .copied()
        .filter(|peer| name_of(plan, *peer) == name)
        .collect();
    if !mine.is_empty() {
        return Ok(mine);
    }
    let mut others: Vec<String> = all
        .iter()
        .map(|peer| format!("`{}`", name_of(plan, *peer)))
        .collect();
    others.dedup();
    Err(PartError::NoPart {
        name: name.to_owned(),
        others,
    })
}

/// The others as one role of a participant meets them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Neighbours {
    /// Whose key is which.
    pub pins: BTreeMap<Peer, Fingerprint>,
    /// Whom this side dials, and where.
    pub dial: Vec<(Peer, String)>,
    /// Whom it awaits.
    pub from: Vec<Peer>,
    /// The other stages of the job, and who takes part in them, if the job runs in several.
    pub others: Vec<OtherStage>,
}

impl Neighbours {
    /// The peers that `me` meets, by its roster: every party dials the parties of lower number, owners and recipients dial all
    /// parties.
    ///
    /// # Errors
    /// [`PartError::NoMember`] if the roster has no key for a peer's name, [`PartError::NoAddress`] if a party that is dialled has none.
    pub fn find(plan: &Plan, me: Peer, members: &dyn Roster) -> Result<Self, PartError> {
        let mut neighbours = Neighbours {
            pins: BTreeMap::new(),
            dial: Vec::new(),
            from: Vec::new(),
            others: Vec::new(),
        };
        let linked = |peer: &Peer| *peer != me && (peer.party().is_some() || me.party().is_some());
        for peer in participants(plan).into_iter().filter(linked) {
            let name = name_of(plan, peer);
            let key = members.key(name).ok_or_else(|| PartError::NoMember {
                peer,
                name: name.to_owned(),
            })?;
            neighbours.pins.insert(peer, key);
            if peer.party().is_some() && peer < me {
                let address = members.address(name);
                let address = address.ok_or_else(|| PartError::NoAddress {
                    peer,
                    name: name.to_owned(),
                })?;
                neighbours.dial.push((peer, address));
            } else {
                neighbours.from.push(peer);
            }
        }
        Ok(neighbours)
    }

    /// The same, and who takes part in another stage of the job, whose plan is `other`; without parties if not `parties`.
    #[must_use]
    pub fn with_other(
        mut self,
        other: &Plan,
        members: &dyn Roster,
        over: bool,
        parties: bool,
    ) -> Self {
        let pin = |peer| Some((peer, members.key(name_of(other, peer))?));
        let told = participants(other).into_iter();
        let told = told.filter(|peer| parties || peer.party().is_none());
        self.others.push(OtherStage {
            plan: other.hash,
            pins: told.filter_map(pin).collect(),
            over,
        });
        self
    }
}

/// A participant's part in a run, except for its data.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// What runs.
    pub plan: &'a Passes,
    /// As whom.
    pub me: Peer,
    /// By which key.
    pub identity: &'a Identity,
    /// Where it is called, if it is.
    pub port: Option<&'a Port>,
    /// With whom.
    pub neighbours: &'a Neighbours,
    /// The kind of link that carries the bytes once all have met: the same at all participants.
    pub link: LinkKind,
    /// The network to imitate, if any.
    pub net: Option<shape::Profile>,
    /// Ends it.
    pub stop: &'a AtomicBool,
}

/// Connections with all peers, per lane.
pub type Connections = Vec<Vec<Connected>>;

impl Part<'_> {
    /// Connects with all peers, which have so long to turn up. Nothing is at stake yet.
    ///
    /// # Errors
    /// [`SetupError`] as of [`tls::meet`].
    pub fn meet(&self, wait: Duration) -> Result<Connections, SetupError> {
        let around = Around {
            moved: &|_| None,
            missing: &|_| (),
        };
        self.meet_at(wait, &around)
    }

    /// The same, with peers that may move to other addresses meanwhile, and a function that hears which of them are missing.
    ///
    /// # Errors
    /// [`SetupError`] as of [`tls::meet`].
    pub fn meet_at(&self, wait: Duration, around: &Around<'_>) -> Result<Connections, SetupError> {
        let terms = Terms {
            me: self.me,
            plan: self.plan.hash,
            pins: self.neighbours.pins.clone(),
            link: self.link,
            others: self.neighbours.others.clone(),
        };
        let meeting = Meeting {
            dial: &self.neighbours.dial,
            from: &self.neighbours.from,
            lanes: self.plan.lanes,
            until: Instant::now() + wait,
        };
        tls::meet_at(
            self.identity,
            &terms,
            self.port,
            &meeting,
            self.stop,
            around,
        )
    }

    /// Runs all passes over the connections, with what this participant brings to each.
    ///
    /// # Errors
    /// [`Abort::Link`] if a link cannot be opened, else as of [`party::run_program`].
    pub fn run(
        &self,
        connections: Connections,
        settings: &Settings,
        data: Arc<[Data]>,
        wrap: &dyn Fn(Box<dyn Link>) -> Box<dyn Link>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Report, Abort> {
        let acts = Arc::new(Acts::new(Arc::clone(self.plan.program()), self.me));
        let bounds = veil_engine::program_bounds(&acts);
        let binding = self.binding(&connections[0]);
        let links = connections.into_iter().map(|lane| {
            let link = self.link.open(lane, bounds).map_err(Abort::Link)?;
            let link: Box<dyn Link> = match self.net {
                Some(profile) => Box::new(shape::Shaped::new(link, profile)),
                None => link,
            };
            Ok(wrap(link))
        });
        let links = links.collect::<Result<_, Abort>>()?;
        party::run_program(&acts, settings, (data, binding), links, self.stop, progress)
    }

    /// What TLS knows of the ends of the connections of the first lane.
    fn binding(&self, connections: &[Connected]) -> Binding {
        let fingerprint = |party: PartyId| match self.neighbours.pins.get(&Peer::Party(party)) {
            Some(pin) => *pin.as_bytes(),
            None => *self.identity.fingerprint().as_bytes(),
        };
        let exporter = |connection: &Connected| {
            let secret = connection.exporter(EXPORTER, &self.plan.hash.0);
            (connection.peer(), secret.to_vec())
        };
        Binding {
            identities: self
                .plan
                .parties()
                .iter()
                .copied()
                .map(fingerprint)
                .collect(),
            exporters: connections.iter().map(exporter).collect(),
        }
    }
}

/// Says which names are behind the numbered participants of a message.
pub fn who_is_who(plan: &Plan, message: &str) -> String {
    let names: Vec<String> = participants(plan)
        .into_iter()
        .filter(|peer| mentions(message, &peer.to_string()))
        .map(|peer| format!("{peer} is `{}`", name_of(plan, peer)))
        .collect();
    names.join(", ")
}

/// Whether `text` has `phrase`, not as the beginning of a longer number.
fn mentions(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase)
        .any(|(at, _)| !text[at + phrase.len()..].starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_mistaken_for_longer_ones() {
        assert!(mentions("waiting for owner 1 for step 3", "owner 1"));
        assert!(mentions("owner 12; owner 1", "owner 1"));
        assert!(!mentions("waiting for owner 12", "owner 1"));
    }
}
