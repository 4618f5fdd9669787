//! Consent: the jobs that are filed in a home, their approvals, and whether one may run.

mod bound;
mod decide;
mod index;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use veil_program::{AlignKey, AlignKeyError, Files, Job, JobError, Sent};
use veil_protocol::Plan;
use veil_session::{Peer, PlanHash};

use crate::control::Proposal;
use crate::file::{self, FileError};
use crate::home::{Home, HomeError, Lock, hex};
use crate::log::{Bound, Event};
use crate::names::Role;
use crate::time::Time;

pub use decide::{Begins, Decision, Request};
pub(crate) use index::Index;

/// The version of the file of a filed job.
const VERSION: i64 = 1;

/// Within a job's folder: what is filed, the job file as it was, and what was shown to the operator who approved.
const ENTRY: &str = "entry.toml";
const JOB: &str = "job.toml";
const EXPLAINED: &str = "explained.txt";

/// A job to file.
#[derive(Clone, Debug)]
pub struct Filing<'a> {
    /// Its plan.
    pub plan: PlanHash,
    /// The plans of its stages, if it runs in stages: an approval is good for them too.
    pub stages: &'a [PlanHash],
    /// Its name.
    pub name: &'a str,
    /// The number of lanes that it is planned for.
    pub lanes: u16,
    /// Whether its products come from the stock of the two parties.
    pub stocked: bool,
    /// The text of the job file.
    pub job: &'a str,
    /// What `veil explain` says of it.
    pub explained: &'a str,
    /// Where this participant's data are: what its own people say, whatever the job says.
    pub data: &'a [Binding],
    /// The file of the key under which this participant compares the order of rows with other owners.
    pub align_key: Option<&'a Path>,
    /// The circuit that the job names, if it names one: the simple name of its file, and its contents.
    pub files: &'a [(String, Vec<u8>)],
    /// The member who asks for it; nothing, if this participant does.
    pub asked_by: Option<&'a str>,
}

/// A data file of this participant, as its own people bind it to a block or an input port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// Whose data.
    pub owner: String,
    /// The block or the input port.
    pub what: String,
    /// Where it is: a path without links.
    pub file: PathBuf,
    /// How long it was then, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// SHA-256 of its contents then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A job that is filed in a home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filed {
    /// Its plan.
    pub plan: PlanHash,
    /// The plans of its stages.
    pub stages: Vec<PlanHash>,
    /// Its name.
    pub name: String,
    /// The number of lanes that it is planned for.
    pub lanes: u16,
    /// Whether its products come from the stock of the two parties.
    pub stocked: bool,
    /// The member who asks for it; nothing, if this participant does.
    pub asked_by: Option<String>,
    /// Since when it is filed.
    pub since: Time,
    /// Where this participant's data are, as its own people said.
    pub data: Vec<Binding>,
    /// The file of the key under which this participant compares the order of rows with other owners.
    pub align_key: Option<PathBuf>,
    /// When it was approved and how, if it was.
    pub approved: Option<Approval>,
    /// When a person refused it, if one did.
    pub refused: Option<Time>,
    /// Its folder in the home.
    pub folder: PathBuf,
    /// Whether a former release filed it, which kept the text without the job's other files.
    former: bool,
}

/// A filed job cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FiledError {
    /// A file of it cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is no job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A former release filed it.
    #[error(
        "the job `{name}` was filed by a former release, which left its files where they were: approve it again with `veil approve JOB`"
    )]
    Former {
        /// Its name.
        name: String,
    },
}

/// A person's approval of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// When.
    pub at: Time,
    /// `answered` on a terminal, or `--yes`.
    pub how: String,
    /// For how many runs; for one, if no end is said either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

impl Approval {
    /// For how long it is good.
    pub const fn term(&self) -> Term {
        Term {
            runs: self.runs,
            until: self.until,
        }
    }
}

/// For how many runs an approval is given, and until when a run may begin: for one run, if neither is said.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Term {
    /// Runs; as many as fit into the time, if that alone is said.
    pub runs: Option<u64>,
    /// The last moment at which one may begin.
    pub until: Option<Time>,
}

impl Term {
    /// How many runs it allows; nothing if that is any number.
    pub const fn most(self) -> Option<u64> {
        match self {
            Term {
                runs: None,
                until: None,
            } => Some(1),
            Term { runs, .. } => runs,
        }
    }
}

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.most() {
            None => f.write_str("any number of runs")?,
            Some(1) => f.write_str("one run")?,
            Some(runs) => write!(f, "{runs} runs")?,
        }
        match self.until {
            Some(until) => write!(f, " until {until}"),
            None => Ok(()),
        }
    }
}

/// How a person approves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// By an answer on a terminal.
    Answered,
    /// By `--yes`, without being asked.
    Yes,
}

impl How {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            How::Answered => "answered",
            How::Yes => "--yes",
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    version: i64,
    plan: String,
    job: String,
    lanes: u16,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    stocked: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stages: Vec<String>,
    /// The folder of the job file, to which paths in it were relative, as former releases wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align_key: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    since: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    data: Vec<Binding>,
}

impl Filed {
    /// The text of the job file.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read.
    pub fn job(&self) -> Result<String, FileError> {
        file::read(&self.folder.join(JOB))
    }

    /// Whether the text of the job file names a participant as owner, party or recipient: known before the job is planned.
    pub fn names(&self, name: &str) -> bool {
        let table = self
            .job()
            .ok()
            .and_then(|text| text.parse::<toml::Table>().ok());
        let lists = ["owners", "parties", "recipients"].into_iter();
        let lists = lists.filter_map(|key| table.as_ref()?.get(key)?.as_array());
        lists.flatten().any(|named| named.as_str() == Some(name))
    }

    /// The explanation that was shown for the approval.
    ///
    /// # Errors
    /// [`FileError`] if the file cannot be read.
    pub fn explained(&self) -> Result<String, FileError> {
        file::read(&self.folder.join(EXPLAINED))
    }

    /// Where the text of the job is.
    pub fn path(&self) -> PathBuf {
        self.folder.join(JOB)
    }

    /// Where this participant's data are, as jobs take it.
    pub fn files(&self) -> Files {
        let binding = |b: &Binding| ((b.owner.clone(), b.what.clone()), b.file.clone());
        self.data.iter().map(binding).collect()
    }

    /// The text of the job and the parsed job, from its filed copy alone: with the circuit that was sent along with it, and data at the
    /// paths that this participant's own people gave, in the approval or, before that, in `more`.
    ///
    /// # Errors
    /// [`FiledError::Former`] if a former release filed the job, [`FiledError::File`] if one of its files cannot be read,
    /// [`FiledError::Job`] if the text is no job.
    pub fn read(&self, more: Files) -> Result<(String, Job), FiledError> {
        if self.former {
            let name = self.name.clone();
            return Err(FiledError::Former { name });
        }
        let text = self.job()?;
        let mut given = self.files();
        given.extend(more);
        let job = Job::kept(&text, &self.beside(&text)?, given)?;
        Ok((text, job))
    }

    /// The files that are filed with the text of the job.
    fn beside(&self, text: &str) -> Result<Sent, FileError> {
        let mut files = Sent::new();
        for path in Job::named_files(text) {
            let Some(name) = filed_as(&path) else {
                continue;
            };
            let from = self.folder.join(name);
            let read = fs::read(&from).map_err(FileError::io("read", &from))?;
            files.insert(path, read);
        }
        Ok(files)
    }

    /// What would propose it: its text, and the circuit or models that go with it.
    pub(crate) fn proposal(&self) -> Result<Proposal, FileError> {
        let text = self.job()?;
        let files = self.beside(&text)?;
        let file =
            |(name, bytes): (String, Vec<u8>)| (name, String::from_utf8_lossy(&bytes).into_owned());
        Ok(Proposal {
            job: text,
            lanes: self.lanes,
            stocked: self.stocked,
            files: files.into_iter().map(file).collect(),
        })
    }

    /// The key under which this participant compares the order of rows, if the approval says where it is.
    ///
    /// # Errors
    /// [`AlignKeyError`] as of [`AlignKey::read`].
    pub fn align_key(&self) -> Result<Option<AlignKey>, AlignKeyError> {
        self.align_key.as_deref().map(AlignKey::read).transpose()
    }

    fn load(folder: PathBuf) -> Result<Option<Self>, FileError> {
        let path = folder.join(ENTRY);
        let text = match file::read(&path) {
            Ok(text) => text,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error),
        };
        let raw: Raw = file::parse(&path, &text, VERSION)?;
        let hash = |digits: &str| {
            plan_of(digits).ok_or_else(|| {
                let what = format!("`{digits}` is no plan hash: one has 64 hexadecimal digits");
                FileError::at(&path, &text, 0..0, what)
            })
        };
        let plan = hash(&raw.plan)?;
        // The folder is named by what is approved in it; moving one must not approve another plan.
        if folder
            .file_name()
            .is_none_or(|name| name != raw.plan.as_str())
        {
            let what =
                "the folder has another name than the plan: remove it, and approve the job again";
            return Err(FileError::at(&path, &text, 0..0, what));
        }
        let stages = raw.stages.iter().map(|digits| hash(digits));
        Ok(Some(Filed {
            plan,
            stages: stages.collect::<Result<_, _>>()?,
            name: raw.job,
            lanes: raw.lanes,
            stocked: raw.stocked,
            asked_by: raw.asked_by,
            since: raw.since,
            data: raw.data,
            align_key: raw.align_key,
            approved: raw.approved,
            refused: raw.refused,
            folder,
            former: raw.base.is_some(),
        }))
    }

    fn save(&self) -> Result<(), FileError> {
        let raw = Raw {
            version: VERSION,
            plan: hex(&self.plan.0),
            job: self.name.clone(),
            lanes: self.lanes,
            stocked: self.stocked,
            stages: self.stages.iter().map(|stage| hex(&stage.0)).collect(),
            base: None,
            align_key: self.align_key.clone(),
            asked_by: self.asked_by.clone(),
            since: self.since,
            approved: self.approved.clone(),
            refused: self.refused,
            data: self.data.clone(),
        };
        let text = toml::to_string(&raw).map_err(|error| FileError::Io {
            doing: "write",
            path: self.folder.join(ENTRY),
            source: std::io::Error::other(error),
        })?;
        file::write(&self.folder.join(ENTRY), text.as_bytes())
    }
}

/// As what the participant `name` takes part in `plan`.
pub fn roles_of(plan: &Plan, name: &str) -> BTreeSet<String> {
    let role = |peer| match peer {
        Peer::Party(_) => Role::Party,
        Peer::Owner(_) => Role::Owner,
        Peer::Recipient(_) => Role::Recipient,
    };
    (veil_engine::participants(plan).into_iter())
        .filter(|peer| veil_engine::name_of(plan, *peer) == name)
        .map(|peer| role(peer).name().to_owned())
        .collect()
}

/// The plan hash of 64 hexadecimal digits.
pub fn plan_of(digits: &str) -> Option<PlanHash> {
    let bytes = data_encoding::HEXLOWER.decode(digits.as_bytes()).ok()?;
    Some(PlanHash(bytes.try_into().ok()?))
}

impl Home {
    /// Files a job, so that it can be looked at and approved. A filed plan stands when any member asks for it again: only this
    /// participant's own people replace its text, which says the same, by theirs.
    ///
    /// # Errors
    /// [`HomeError::Busy`] if another process holds the home's lock; [`HomeError::File`] if a file cannot be written, or a file of `filing`
    /// has a name with a folder in it, or one that the home uses.
    pub fn file_job(&self, filing: &Filing<'_>) -> Result<Filed, HomeError> {
        let lock = self.lock()?;
        self.file_under(&lock, filing)
    }

    fn file_under(&self, _lock: &Lock, filing: &Filing<'_>) -> Result<Filed, HomeError> {
        let folder = self.job_folder(filing.plan);
        let before = Filed::load(folder.clone()).ok().flatten();
        if !folder.exists() {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(&folder)
                .map_err(FileError::io("create the folder", &folder))?;
        }
        let mut filed = Filed {
            plan: filing.plan,
            stages: filing.stages.to_vec(),
            name: filing.name.to_owned(),
            lanes: filing.lanes,
            stocked: filing.stocked,
            asked_by: filing.asked_by.map(str::to_owned),
            since: Time::now(),
            data: filing.data.to_vec(),
            align_key: filing.align_key.map(Path::to_owned),
            approved: None,
            refused: None,
            folder: folder.clone(),
            former: false,
        };
        if let Some(mut before) = before.filter(|before| !before.former) {
            // A repeated request, by any member, takes nothing away, and changes nothing that the operator may be looking at.
            if filing.asked_by.is_some() {
                if before.approved.is_none() && before.asked_by != filed.asked_by {
                    before.asked_by = filed.asked_by;
                    before.save()?;
                }
                return Ok(before);
            }
            let same_data = (&before.data, &before.align_key) == (&filed.data, &filed.align_key);
            (filed.since, filed.refused) = (before.since, before.refused);
            filed.approved = before.approved.filter(|_| same_data);
        }
        for (name, bytes) in filing.files {
            if !is_simple(name) {
                let path = folder.join(name);
                let source = std::io::Error::other(
                    "a file beside a job has no folders in its name, and none that the home uses",
                );
                return Err(FileError::Io {
                    doing: "write",
                    path,
                    source,
                }
                .into());
            }
            file::write(&folder.join(name), bytes)?;
        }
        file::write(&folder.join(JOB), filing.job.as_bytes())?;
        file::write(&folder.join(EXPLAINED), filing.explained.as_bytes())?;
        filed.save()?;
        Ok(filed)
    }

    /// Files a job and approves it. A rule of the policy that refuses the job stands above any approval: [`Home::decide`] names it.
    ///
    /// # Errors
    /// [`HomeError`] as of [`Home::file_job`], and as of [`Log::append`](crate::log::Log::append) if the approval cannot be
    /// logged: then it does not count.
    pub fn approve(&self, filing: &Filing<'_>, how: How, term: Term) -> Result<Filed, HomeError> {
        let lock = self.lock()?;
        let mut filed = self.file_under(&lock, filing)?;
        filed.data = filing.data.to_vec();
        filed.align_key = filing.align_key.map(Path::to_owned);
        filed.approved = Some(Approval {
            at: Time::now(),
            how: how.name().to_owned(),
            runs: term.most(),
            until: term.until,
        });
        filed.refused = None;
        // The log first: an approval that is not logged is none.
        let event = Event::Approval {
            plan: hex(&filed.plan.0),
            job: filed.name.clone(),
            how: how.name(),
            runs: term.most(),
            until: term.until,
            data: filed.data.iter().map(Bound::from).collect(),
        };
        self.log().append_under(&lock, event)?;
        filed.save()?;
        Ok(filed)
    }

    /// Refuses a filed job, until a person approves it: no rule and no `--yes` stands above that. Whether there is such a job.
    ///
    /// # Errors
    /// [`HomeError`] as of [`Home::withdraw`]. The job is refused even if that cannot be logged.
    pub fn decline(&self, plan: PlanHash) -> Result<bool, HomeError> {
        let lock = self.lock()?;
        let Some(mut filed) = Filed::load(self.job_folder(plan))? else {
            return Ok(false);
        };
        if filed.refused.is_some() {
            return Ok(true);
        }
        (filed.approved, filed.refused) = (None, Some(Time::now()));
        filed.save()?;
        let event = Event::Refusal {
            plan: hex(&plan.0),
            job: filed.name,
            asked_by: filed.asked_by,
            rule: None,
            why: "a person refused it".into(),
        };
        self.log().append_under(&lock, event)?;
        Ok(true)
    }

    /// Takes an approval back. Whether there was one.
    ///
    /// # Errors
    /// [`HomeError::Busy`] if another process holds the home's lock, [`HomeError::File`] if the filed job cannot be read or written, else
    /// as of [`Log::append`](crate::log::Log::append). The approval is gone even if that cannot be logged.
    pub fn withdraw(&self, plan: PlanHash) -> Result<bool, HomeError> {
        let lock = self.lock()?;
        let Some(mut filed) = Filed::load(self.job_folder(plan))? else {
            return Ok(false);
        };
        if filed.approved.take().is_none() {
            return Ok(false);
        }
        filed.save()?;
        let event = Event::Withdrawal {
            plan: hex(&plan.0),
            job: filed.name,
        };
        self.log().append_under(&lock, event)?;
        Ok(true)
    }
}

/// Whether a name is that of a file in the same folder, and none of ours.
fn is_simple(name: &str) -> bool {
    let ours = [ENTRY, JOB, EXPLAINED, "results", "kept.json"].contains(&name);
    !name.is_empty() && !ours && !name.starts_with('.') && !name.contains(['/', '\0'])
}

/// Under which name the circuit of a job is filed that has it at this path: the last part of it.
pub fn filed_as(path: &str) -> Option<&str> {
    let name = Path::new(path).file_name()?.to_str()?;
    Some(name).filter(|name| is_simple(name))
}
