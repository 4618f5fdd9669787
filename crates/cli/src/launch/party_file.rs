//! The party file: which participant of a job runs here, and where the others are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;
use veil_link::tls::Fingerprint;
use veil_protocol::Plan;
use veil_session::Peer;

use crate::failure::{Code, Failure};

/// A party file, read and checked as far as that goes without the job. Paths are relative to its folder.
#[derive(Debug)]
pub(crate) struct PartyFile {
    /// The file itself, for messages.
    path: PathBuf,
    text: String,
    raw: Raw,
}

/// What is written in a party file.
#[derive(Deserialize, Serialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    /// The job file.
    pub(crate) job: PathBuf,
    /// Name of this participant in the job.
    pub(crate) me: Spanned<String>,
    /// Private key, from `veil identity new`.
    pub(crate) identity: PathBuf,
    /// Where a computing party listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<Spanned<String>>,
    /// Lanes; the same number at every participant.
    #[serde(default = "one_lane")]
    pub(crate) lanes: Spanned<u16>,
    /// Without any progress for so many seconds, the run is given up.
    #[serde(default = "half_a_minute")]
    pub(crate) timeout: u64,
    /// How many seconds others have to turn up.
    #[serde(default = "five_minutes")]
    pub(crate) wait: u64,
    /// Folder for results.
    #[serde(default = "results")]
    pub(crate) out: PathBuf,
    /// Key under which the owners of a block compare the order of its rows, from `veil data key new`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) align_key: Option<PathBuf>,
    /// Data files that are elsewhere than the job says: block or input port, and path.
    #[serde(default)]
    pub(crate) data: BTreeMap<String, PathBuf>,
    /// The others.
    pub(crate) peer: Vec<RawPeer>,
}

/// Another participant.
#[derive(Deserialize, Serialize, Debug)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPeer {
    /// Its name in the job.
    pub(crate) name: Spanned<String>,
    /// Where a computing party is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// What `veil identity show` prints there.
    pub(crate) fingerprint: Spanned<String>,
}

fn one_lane() -> Spanned<u16> {
    Spanned::new(0..0, 1)
}

fn half_a_minute() -> u64 {
    30
}

fn five_minutes() -> u64 {
    300
}

fn results() -> PathBuf {
    "results".into()
}

/// Longest party file: a line for each of a thousand participants.
const LONGEST: u64 = 1 << 20;

/// The others as one role of this participant meets them.
#[derive(Debug)]
pub(crate) struct Neighbours {
    /// Whose key is which.
    pub(crate) pins: BTreeMap<Peer, Fingerprint>,
    /// Whom this side dials, and where.
    pub(crate) dial: Vec<(Peer, String)>,
    /// Whom it awaits.
    pub(crate) from: Vec<Peer>,
}

impl PartyFile {
    /// Reads a party file.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let read = |error: &dyn std::fmt::Display| {
            Failure::new(
                Code::Input,
                format!("cannot read the party file {}: {error}", path.display()),
            )
        };
        let size = std::fs::metadata(path).map_err(|error| read(&error))?.len();
        if size > LONGEST {
            return Err(read(&format!(
                "it has {size} bytes, and the limit is {LONGEST}"
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| read(&error))?;
        match toml::from_str(&text) {
            Ok(raw) => {
                let file = PartyFile {
                    path: path.to_owned(),
                    text,
                    raw,
                };
                file.check()?;
                Ok(file)
            }
            Err(error) => {
                let message = format!("{}: {}", place(path, &text, error.span()), error.message());
                Err(Failure::new(Code::Input, message).showing(
                    &path.display().to_string(),
                    text,
                    error.span().unwrap_or(0..0),
                ))
            }
        }
    }

    /// What is written.
    pub(crate) fn raw(&self) -> &Raw {
        &self.raw
    }

    /// A path of the file, as seen from here.
    pub(crate) fn at(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    fn check(&self) -> Result<(), Failure> {
        let raw = &self.raw;
        if !(1..=1024).contains(raw.lanes.get_ref()) {
            return Err(self.wrong(
                raw.lanes.span(),
                "`lanes` must be 1 to 1024, the same number at every participant",
            ));
        }
        let longest = 7 * 24 * 3600;
        if !(1..=longest).contains(&raw.timeout) || !(1..=longest).contains(&raw.wait) {
            return Err(self.wrong(
                0..0,
                &format!("`timeout` and `wait` must be 1 to {longest} seconds"),
            ));
        }
        let mut seen: Vec<&str> = vec![raw.me.get_ref()];
        for peer in &raw.peer {
            let name = peer.name.get_ref();
            if seen.contains(&name.as_str()) {
                return Err(self.wrong(
                    peer.name.span(),
                    &format!(
                        "`{name}` is there twice; a participant has one [[peer]], and `me` has none"
                    ),
                ));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// A failure at a place of this file.
    pub(crate) fn wrong(&self, span: Range<usize>, what: &str) -> Failure {
        let message = format!(
            "{}: {what}",
            place(&self.path, &self.text, Some(span.clone()))
        );
        Failure::new(Code::Input, message).showing(
            &self.path.display().to_string(),
            self.text.clone(),
            span,
        )
    }

    /// As whom this participant takes part in `plan`: once, or as owner and as recipient.
    pub(crate) fn roles(&self, plan: &Plan) -> Result<Vec<Peer>, Failure> {
        let me = &self.raw.me;
        let all = veil_engine::participants(plan);
        let mine: Vec<Peer> = all
            .iter()
            .copied()
            .filter(|peer| veil_engine::name_of(plan, *peer) == me.get_ref())
            .collect();
        if mine.is_empty() {
            let mut names: Vec<&str> = all
                .iter()
                .map(|peer| veil_engine::name_of(plan, *peer))
                .collect();
            names.dedup();
            let what = format!(
                "`me` is `{}`, who has no part in the job; its participants are {}",
                me.get_ref(),
                names.join(", ")
            );
            return Err(self.wrong(me.span(), &what));
        }
        Ok(mine)
    }

    /// Whom the role `me` of this participant meets: every party dials those of lower number, everybody else dials all
    /// three.
    pub(crate) fn neighbours(&self, plan: &Plan, me: Peer) -> Result<Neighbours, Failure> {
        let all = veil_engine::participants(plan);
        for peer in &self.raw.peer {
            if !all
                .iter()
                .any(|other| veil_engine::name_of(plan, *other) == peer.name.get_ref())
            {
                let what = format!(
                    "`{}` has no part in the job; remove it, or correct the name",
                    peer.name.get_ref()
                );
                return Err(self.wrong(peer.name.span(), &what));
            }
        }
        let mut neighbours = Neighbours {
            pins: BTreeMap::new(),
            dial: Vec::new(),
            from: Vec::new(),
        };
        for other in all
            .into_iter()
            .filter(|other| *other != me && (other.party().is_some() || me.party().is_some()))
        {
            let name = veil_engine::name_of(plan, other);
            let peer = self.raw.peer.iter().find(|peer| peer.name.get_ref() == name).ok_or_else(|| {
                self.wrong(0..0, &format!("nothing is said of {other}, `{name}`: add [[peer]] with its name, fingerprint and, for a party, address"))
            })?;
            let fingerprint = peer.fingerprint.get_ref().parse().map_err(
                |error: veil_link::tls::FingerprintError| {
                    self.wrong(peer.fingerprint.span(), &error.to_string())
                },
            )?;
            neighbours.pins.insert(other, fingerprint);
            if other.party().is_some() && other < me {
                let address = peer.address.clone().ok_or_else(|| {
                    self.wrong(peer.name.span(), &format!("`{name}` is dialled from here: add its `address`, such as \"host:7000\""))
                })?;
                neighbours.dial.push((other, address));
            } else {
                neighbours.from.push(other);
            }
        }
        Ok(neighbours)
    }
}

/// File, line and column of a span.
fn place(path: &Path, text: &str, span: Option<Range<usize>>) -> String {
    match span.filter(|span| *span != (0..0)) {
        None => path.display().to_string(),
        Some(span) => {
            let before = text.get(..span.start).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
            format!("{}:{line}:{column}", path.display())
        }
    }
}
