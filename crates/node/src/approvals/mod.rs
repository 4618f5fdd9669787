//! Consent: the jobs that are filed in a home, which of them somebody approved, and whether one may run.

mod decide;

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
use crate::log::Event;
use crate::names::Role;
use crate::time::Time;

pub use decide::{Decision, Request};

/// The version of the file of a filed job.
const VERSION: i64 = 1;

/// Within a job's folder: what is filed, the job file as it was, and what was shown to whoever approved.
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
    /// The text of the job file.
    pub job: &'a str,
    /// The folder that paths in it are relative to; its own one in the home, if that is `None`.
    pub base: Option<&'a Path>,
    /// What `veil explain` says of it.
    pub explained: &'a str,
    /// Data files that are elsewhere than the job says.
    pub data: &'a [Binding],
    /// The file of the key under which this participant compares the order of rows with other owners.
    pub align_key: Option<&'a Path>,
    /// Files beside the job file that it names: simple names, and what is in them.
    pub files: &'a [(String, Vec<u8>)],
    /// The member who asks for it; nobody, if this participant does.
    pub asked_by: Option<&'a str>,
}

/// A data file that is elsewhere than the job says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// Whose data.
    pub owner: String,
    /// The block or the input port.
    pub what: String,
    /// Where it is.
    pub file: PathBuf,
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
    /// Who asks for it; nobody, if this participant does.
    pub asked_by: Option<String>,
    /// Since when it is filed.
    pub since: Time,
    /// Data files that are elsewhere than the job says.
    pub data: Vec<Binding>,
    /// The file of the key under which this participant compares the order of rows with other owners.
    pub align_key: Option<PathBuf>,
    /// When it was approved and how, if it was.
    pub approved: Option<Approval>,
    /// Its folder in the home.
    pub folder: PathBuf,
    base: Option<PathBuf>,
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
}

/// That somebody approved a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// When.
    pub at: Time,
    /// `answered` on a terminal, or `--yes`.
    pub how: String,
}

/// How somebody approves.
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stages: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align_key: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_by: Option<String>,
    since: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<Approval>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    data: Vec<Binding>,
}

impl Filed {
    /// The text of the job file.
    pub fn job(&self) -> Result<String, FileError> {
        file::read(&self.folder.join(JOB))
    }

    /// Whether the text of the job file names somebody as owner, party or recipient: what can be said before it is planned.
    pub fn names(&self, name: &str) -> bool {
        let table = self
            .job()
            .ok()
            .and_then(|text| text.parse::<toml::Table>().ok());
        let lists = ["owners", "parties", "recipients"].into_iter();
        let lists = lists.filter_map(|key| table.as_ref()?.get(key)?.as_array());
        lists.flatten().any(|named| named.as_str() == Some(name))
    }

    /// What was shown to whoever approved it.
    pub fn explained(&self) -> Result<String, FileError> {
        file::read(&self.folder.join(EXPLAINED))
    }

    /// Where the job file is, or was: paths in it are relative to its folder.
    pub fn path(&self) -> PathBuf {
        self.base.as_ref().unwrap_or(&self.folder).join(JOB)
    }

    /// Data files that are elsewhere than the job says, as jobs take them.
    pub fn files(&self) -> Files {
        let binding = |b: &Binding| ((b.owner.clone(), b.what.clone()), b.file.clone());
        self.data.iter().map(binding).collect()
    }

    /// The text of the job and what it says, from what is filed of it alone: with the circuit that was sent along with it, and data where
    /// this participant's own people said that they are, in the approval or, before that, in `more`.
    pub fn read(&self, more: Files) -> Result<(String, Job), FiledError> {
        let text = self.job()?;
        let mut given = self.files();
        given.extend(more);
        let job = match &self.base {
            Some(_) => Job::parse(&text, &self.path(), given)?,
            None => Job::kept(&text, &self.beside(&text)?, given)?,
        };
        Ok((text, job))
    }

    /// The files that are filed with the text of the job.
    fn beside(&self, text: &str) -> Result<Sent, FileError> {
        let mut files = Sent::new();
        if let Some(name) = Job::circuit_file(text).filter(|name| is_simple(name)) {
            let path = self.folder.join(&name);
            let read = fs::read(&path).map_err(FileError::io("read", &path))?;
            files.insert(name, read);
        }
        Ok(files)
    }

    /// What would propose it: its text, and the circuit that goes with it.
    pub(crate) fn proposal(&self) -> Result<Proposal, FileError> {
        let text = self.job()?;
        let files = match &self.base {
            None => self.beside(&text)?,
            // What its own people filed from elsewhere is read where they filed it from.
            Some(base) => match Job::circuit_file(&text) {
                Some(name) => {
                    let path = base.join(&name);
                    let read = fs::read(&path).map_err(FileError::io("read", &path))?;
                    Sent::from([(name, read)])
                }
                None => Sent::new(),
            },
        };
        let file =
            |(name, bytes): (String, Vec<u8>)| (name, String::from_utf8_lossy(&bytes).into_owned());
        Ok(Proposal {
            job: text,
            lanes: self.lanes,
            files: files.into_iter().map(file).collect(),
        })
    }

    /// The key under which this participant compares the order of rows, if the approval says where it is.
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
            asked_by: raw.asked_by,
            since: raw.since,
            data: raw.data,
            align_key: raw.align_key,
            approved: raw.approved,
            folder,
            base: raw.base,
        }))
    }

    fn save(&self) -> Result<(), FileError> {
        let raw = Raw {
            version: VERSION,
            plan: hex(&self.plan.0),
            job: self.name.clone(),
            lanes: self.lanes,
            stages: self.stages.iter().map(|stage| hex(&stage.0)).collect(),
            base: self.base.clone(),
            align_key: self.align_key.clone(),
            asked_by: self.asked_by.clone(),
            since: self.since,
            approved: self.approved.clone(),
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
    /// Files a job, so that it can be looked at and approved. One that is filed already keeps its approval only if
    /// nothing of it changes.
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
            asked_by: filing.asked_by.map(str::to_owned),
            since: Time::now(),
            data: filing.data.to_vec(),
            align_key: filing.align_key.map(Path::to_owned),
            approved: None,
            folder: folder.clone(),
            base: filing.base.map(Path::to_owned),
        };
        if let Some(before) = before {
            // Asking again, by whomever, takes nothing away: the plan is the same, and it is what was approved.
            let same_data = (&before.data, &before.base, &before.align_key)
                == (&filed.data, &filed.base, &filed.align_key);
            if before.approved.is_some() && filing.asked_by.is_some() {
                return Ok(before);
            }
            filed.since = before.since;
            filed.approved = before.approved.filter(|_| same_data);
        }
        for (name, bytes) in filing.files {
            if !is_simple(name) {
                let path = folder.join(name);
                let source =
                    std::io::Error::other("the name of a file beside a job has no folders in it");
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

    /// Files a job and approves it. A rule of the policy that refuses it stands above any approval, and is named by the
    /// error.
    pub fn approve(&self, filing: &Filing<'_>, how: How) -> Result<Filed, HomeError> {
        let lock = self.lock()?;
        let mut filed = self.file_under(&lock, filing)?;
        filed.data = filing.data.to_vec();
        filed.align_key = filing.align_key.map(Path::to_owned);
        filed.approved = Some(Approval {
            at: Time::now(),
            how: how.name().to_owned(),
        });
        // The log first: an approval that is not logged is none.
        let event = Event::Approval {
            plan: hex(&filed.plan.0),
            job: filed.name.clone(),
            how: how.name(),
        };
        self.log().append_under(&lock, event)?;
        filed.save()?;
        Ok(filed)
    }

    /// Takes an approval back. Whether there was one.
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

    /// The filed job with this plan, or with a stage of this plan.
    pub fn filed(&self, plan: PlanHash) -> Result<Option<Filed>, HomeError> {
        if let Some(filed) = Filed::load(self.job_folder(plan))? {
            return Ok(Some(filed));
        }
        let all = self.all_filed()?;
        Ok(all.into_iter().find(|filed| filed.stages.contains(&plan)))
    }

    /// Bytes that the filed jobs of a member take, but for what was published of them.
    pub(crate) fn filed_bytes(&self, asked_by: &str) -> Result<u64, HomeError> {
        let mut bytes = 0;
        for filed in self.all_filed()? {
            if filed.asked_by.as_deref() != Some(asked_by) {
                continue;
            }
            let entries = fs::read_dir(&filed.folder);
            let entries = entries.map_err(FileError::io("list", &filed.folder))?;
            bytes += entries
                .filter_map(|entry| entry.ok()?.metadata().ok())
                .filter(fs::Metadata::is_file)
                .map(|file| file.len())
                .sum::<u64>();
        }
        Ok(bytes)
    }

    /// All filed jobs, the oldest first. Folders that hold none are passed over.
    pub fn all_filed(&self) -> Result<Vec<Filed>, HomeError> {
        let jobs = self.path().join("jobs");
        let entries = fs::read_dir(&jobs).map_err(FileError::io("list", &jobs))?;
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry.map_err(FileError::io("list", &jobs))?;
            if entry.file_name().to_str().and_then(plan_of).is_some() {
                all.extend(Filed::load(entry.path())?);
            }
        }
        all.sort_by_key(|filed| (filed.since, filed.plan.0));
        Ok(all)
    }
}

/// Whether a name is that of a file in the same folder, and none of ours.
fn is_simple(name: &str) -> bool {
    let ours = [ENTRY, JOB, EXPLAINED].contains(&name) || name.starts_with('.');
    !name.is_empty() && !ours && !name.contains(['/', '\0'])
}
