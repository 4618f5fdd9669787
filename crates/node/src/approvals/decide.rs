//! Whether a job may run: what a person approved, what the policy says, and what the log counts.

use std::collections::BTreeSet;
use std::time::Duration;

use sha2::{Digest, Sha256};
use veil_session::PlanHash;

use super::Approval;
use crate::home::{Home, HomeError, Lock, hex};
use crate::log::Event;
use crate::policy::{Asked, Effect, Facts, Policy};
use crate::time::Time;

/// Who asks for what.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The plan that would run: that of the job, or of one of its stages.
    pub plan: PlanHash,
    /// What the job does.
    pub facts: &'a Facts,
    /// The member who asks; nobody, if this participant does.
    pub asked_by: Option<&'a str>,
    /// As what this participant takes part: [`roles_of`](crate::roles_of).
    pub roles: BTreeSet<String>,
    /// Whether it is another run on the same kept inputs, of which one was counted: rules that count runs count them once.
    pub repeats: bool,
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

impl Home {
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
                rule: (!request.repeats).then(|| rule.clone()),
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
        let mut runs = if policy.counts_runs() {
            self.runs(&request.facts.job)?
        } else {
            Vec::new()
        };
        if request.repeats
            && let Some(last) = runs.iter().rposition(|run| run.same_job)
        {
            runs.remove(last);
        }
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
        if let Some(Approval { at, how, .. }) = approval {
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
