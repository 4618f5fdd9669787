//! Consent: the jobs that are filed in a home, which of them somebody approved, and whether one may run.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use veil_program::{AlignKey, AlignKeyError, Files};
use veil_protocol::Plan;
use veil_session::{Peer, PlanHash};

use crate::file::{self, FileError};
use crate::home::{Home, HomeError, Lock, hex};
use crate::log::Event;
use crate::names::Role;
use crate::policy::{Asked, Effect, Facts, Policy};
use crate::time::Time;

/// The version of the file of a filed job.
const VERSION: i64 = 1;

/// Within a job's folder: what is filed, the job file as it was, and what was shown to whoever approved.
const ENTRY: &str = "entry.toml";
const JOB: &str = "job.toml";
const EXPLAINED: &str = "explained.txt";

/// Who asks for what.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The plan that would run: that of the job, or of one of its stages.
    pub plan: PlanHash,
    /// What the job does.
    pub facts: &'a Facts,
    /// The member who asks; nobody, if this participant does.
    pub asked_by: Option<&'a str>,
    /// As what this participant takes part: [`roles_of`].
    pub roles: BTreeSet<String>,
}

/// Whether a job may run here.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// It may: somebody approved it.
    Approved {
        /// When.
        at: Time,
        /// `answered` on a terminal, or `--yes`.
        how: String,
    },
    /// It may: a rule of the policy allows it.
    Policy {
        /// The rule.
        rule: String,
    },
    /// Not yet: somebody has to approve it.
    Pending {
        /// Why no rule allows it.
        why: Vec<String>,
    },
    /// It may not.
    Refused {
        /// The rule.
        rule: String,
        /// Why.
        why: String,
    },
}

impl Decision {
    /// Whether the job may run.
    pub const fn allows(&self) -> bool {
        matches!(self, Decision::Approved { .. } | Decision::Policy { .. })
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Decision::Approved { at, how } => write!(f, "approved at {at} ({how})"),
            Decision::Policy { rule } => write!(f, "allowed by rule `{rule}` of the policy"),
            Decision::Pending { why } if why.is_empty() => f.write_str(
                "waits for approval: there is no policy; `veil approve` shows the job and asks",
            ),
            Decision::Pending { why } => {
                write!(
                    f,
                    "waits for approval: {}; `veil approve` shows the job and asks",
                    why.join("; ")
                )
            }
            Decision::Refused { rule, why } => {
                write!(f, "refused by rule `{rule}` of the policy: {why}")
            }
        }
    }
}

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

    /// The policy; nothing, if there is none.
    pub fn policy(&self) -> Result<Option<Policy>, HomeError> {
        let loaded = Policy::load(&self.path().join("policy.toml"))?;
        Ok(loaded.map(|(policy, _)| policy))
    }

    /// Decides whether a job may run, and changes nothing.
    pub fn decide(&self, request: &Request<'_>) -> Result<Decision, HomeError> {
        let policy = self.policy()?.unwrap_or_default();
        self.decide_by(&policy, request)
    }

    /// Decides, and if the job may run, logs that a run begins: together, so that two runs cannot both be the last one
    /// that a rule allows. A refusal is logged too. Call it once for every run, when its participants have met.
    pub fn start(&self, request: &Request<'_>) -> Result<Decision, HomeError> {
        let lock = self.lock()?;
        let loaded = Policy::load(&self.path().join("policy.toml"))?;
        self.note_policy(&lock, loaded.as_ref())?;
        let policy = loaded.map(|(policy, _)| policy).unwrap_or_default();
        let decision = self.decide_by(&policy, request)?;
        let (plan, job) = (hex(&request.plan.0), request.facts.job.clone());
        let asked_by = request.asked_by.map(str::to_owned);
        let event = match &decision {
            Decision::Approved { .. } => Event::RunStarted {
                plan,
                job,
                asked_by,
                rule: None,
            },
            Decision::Policy { rule } => Event::RunStarted {
                plan,
                job,
                asked_by,
                rule: Some(rule.clone()),
            },
            Decision::Refused { rule, why } => Event::Refusal {
                plan,
                job,
                asked_by,
                rule: Some(rule.clone()),
                why: why.clone(),
            },
            Decision::Pending { .. } => return Ok(decision),
        };
        self.log().append_under(&lock, event)?;
        Ok(decision)
    }

    fn decide_by(&self, policy: &Policy, request: &Request<'_>) -> Result<Decision, HomeError> {
        let runs = if policy.counts_runs() {
            self.runs(&request.facts.job)?
        } else {
            Vec::new()
        };
        let day_ago = Time::now().seconds() - DAY.as_secs() as i64;
        let count = |rule: &str| {
            let mine = runs.iter().filter(|run| run.rule == rule);
            let today = mine.clone().filter(|run| run.time.seconds() > day_ago);
            let ever = mine.filter(|run| run.same_job);
            (today.count() as u64, ever.count() as u64)
        };
        let judged = policy.judge(&Asked {
            facts: request.facts,
            by: request.asked_by,
            roles: &request.roles,
            runs: &count,
        });
        if let Some((rule, Effect::Refuse)) = judged.decided {
            return Ok(Decision::Refused {
                rule,
                why: judged.reasons.last().map_or_else(String::new, |_| {
                    let refused = judged
                        .reasons
                        .iter()
                        .filter(|why| !why.starts_with("rule `"));
                    refused.cloned().collect::<Vec<_>>().join(", and ")
                }),
            });
        }
        let approval = self.filed(request.plan)?.and_then(|filed| filed.approved);
        if let Some(Approval { at, how }) = approval {
            return Ok(Decision::Approved { at, how });
        }
        Ok(match judged.decided {
            Some((rule, Effect::Allow)) => Decision::Policy { rule },
            Some((rule, _)) => Decision::Pending {
                why: vec![format!("rule `{rule}` asks a person")],
            },
            None => Decision::Pending {
                why: judged.reasons,
            },
        })
    }

    /// Runs that rules allowed, from the log.
    fn runs(&self, job: &str) -> Result<Vec<Run>, HomeError> {
        let mut runs = Vec::new();
        self.log()
            .for_each(|entry| {
                if let (true, Some(rule)) = (entry.kind == "run_started", entry.text("rule")) {
                    runs.push(Run {
                        rule: rule.to_owned(),
                        same_job: entry.text("job") == Some(job),
                        time: entry.time,
                    });
                }
            })
            .map_err(|_| HomeError::LogDamaged(self.log().path()))?;
        Ok(runs)
    }

    /// Logs that the policy is another one than when it was last used.
    fn note_policy(&self, lock: &Lock, loaded: Option<&(Policy, String)>) -> Result<(), HomeError> {
        let sha256 = loaded.map_or_else(String::new, |(_, text)| hex(&Sha256::digest(text)));
        let mut known = String::new();
        self.log()
            .for_each(|entry| {
                if entry.kind == "policy_changed" {
                    entry
                        .text("sha256")
                        .unwrap_or_default()
                        .clone_into(&mut known);
                }
            })
            .map_err(|_| HomeError::LogDamaged(self.log().path()))?;
        if known == sha256 {
            return Ok(());
        }
        let rules = loaded
            .map(|(policy, _)| &policy.rules)
            .into_iter()
            .flatten();
        let rules = rules.map(|rule| rule.name.clone()).collect();
        self.log()
            .append_under(lock, Event::PolicyChanged { sha256, rules })
    }
}

/// A run that a rule allowed.
struct Run {
    rule: String,
    same_job: bool,
    time: Time,
}

/// A day, as rules count it.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Whether a name is that of a file in the same folder, and none of ours.
fn is_simple(name: &str) -> bool {
    let ours = [ENTRY, JOB, EXPLAINED].contains(&name) || name.starts_with('.');
    !name.is_empty() && !ours && !name.contains(['/', '\0'])
}
