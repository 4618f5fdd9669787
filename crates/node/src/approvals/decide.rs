//! Whether a job may run: what a person approved, what the policy says, and what the log counts.

use std::collections::BTreeSet;
use std::time::Duration;

use sha2::{Digest, Sha256};
use veil_session::PlanHash;

use super::Approval;
use crate::home::{Home, HomeError, Lock, hex};
use crate::log::{Decided, Event, Run};
use crate::names::Role;
use crate::policy::{Asked, Effect, Facts, Policy, Runs};
use crate::time::Time;
use veil_runtime::Stage;

/// Who asks for what.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The plan that would run: that of the job, or of one of its stages.
    pub plan: PlanHash,
    /// The public facts of the job.
    pub facts: &'a Facts,
    /// The member who asks; nothing, if this participant does.
    pub asked_by: Option<&'a str>,
    /// As what this participant takes part: [`roles_of`](crate::roles_of).
    pub roles: BTreeSet<String>,
    /// Whether it is another run on the same checkpointed inputs, of which one was counted: rules that count runs count them once, and approvals are
    /// used once.
    pub repeats: bool,
}

impl Request<'_> {
    /// Whether this participant computes nothing and receives nothing: its part of a durable job is over when the parties have its data.
    pub fn brings_only(&self) -> bool {
        self.roles.iter().all(|role| role == Role::Owner.name())
    }
}

/// The run that begins.
#[derive(Clone, Copy, Default, Debug)]
pub struct Begins<'a> {
    /// The name of the stage, if it is another one than that of the job.
    pub stage: Option<&'a str>,
    /// Whether it runs without approval: `--yes`.
    pub yes: bool,
    /// Which stage it is. Rules that count runs count the stage that opens something, and at a participant that only brings data the stage
    /// that takes them.
    pub at: Stage,
}

/// Whether a job may run here.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// It may: a person approved it.
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
    /// It may: this process was started with `--yes`, and no person was asked.
    Unasked,
    /// Not yet: a person has to approve it.
    Pending {
        /// Why no rule allows it.
        why: Vec<String>,
    },
    /// Not yet: a file that decides cannot be read, or the decision cannot be logged.
    Held {
        /// The sentence that any participant of the job may read.
        all: &'static str,
        /// The obstacle, in full.
        here: String,
    },
    /// It may not: a person of this participant refused it.
    Declined {
        /// When.
        at: Time,
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
        matches!(
            self,
            Decision::Approved { .. } | Decision::Policy { .. } | Decision::Unasked
        )
    }

    /// Whether the job may not run, whatever is waited for.
    pub const fn refuses(&self) -> bool {
        matches!(self, Decision::Declined { .. } | Decision::Refused { .. })
    }

    /// The same, where what waits for a person may run without one.
    #[must_use]
    pub fn or_yes(self, yes: bool) -> Self {
        match self {
            Decision::Pending { .. } if yes => Decision::Unasked,
            decision => decision,
        }
    }
}

impl std::fmt::Display for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Decision::Approved { at, how } => write!(f, "approved at {at} ({how})"),
            Decision::Policy { rule } => write!(f, "allowed by rule `{rule}` of the policy"),
            Decision::Unasked => f.write_str("allowed by `--yes`: the operator was not asked"),
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
            Decision::Held { here, .. } => write!(f, "waits: {here}"),
            Decision::Declined { at } => write!(f, "refused at {at} by a person here"),
            Decision::Refused { rule, why } => {
                write!(f, "refused by rule `{rule}` of the policy: {why}")
            }
        }
    }
}

impl Home {
    /// The policy; nothing, if there is none.
    ///
    /// # Errors
    /// [`HomeError::File`] if `policy.toml` is there and cannot be read or understood.
    pub fn policy(&self) -> Result<Option<Policy>, HomeError> {
        let loaded = Policy::load(&self.path().join("policy.toml"))?;
        Ok(loaded.map(|(policy, _)| policy))
    }

    /// Decides whether a job may run, and changes nothing.
    ///
    /// # Errors
    /// [`HomeError::File`] if the policy or the filed job cannot be read; [`HomeError::LogFault`] if the runs of an approval cannot be
    /// counted.
    pub fn decide(&self, request: &Request<'_>) -> Result<Decision, HomeError> {
        let policy = self.policy()?.unwrap_or_default();
        self.decide_by(&policy, request, None, None)
    }

    /// Decides, and if the job may run, logs that a run begins and what decided it: together, so that two runs cannot both be the last
    /// one that a rule allows, and none begins that is not in the log. A refusal is logged too. Call it once for every run of every
    /// stage, when its participants have met.
    ///
    /// # Errors
    /// [`HomeError`] as of [`Home::decide`]; [`HomeError::Unlogged`] if the home cannot be locked or the decision not be logged:
    /// then nothing may run.
    pub fn start(&self, request: &Request<'_>, begins: Begins<'_>) -> Result<Decision, HomeError> {
        let unlogged = |error| HomeError::Unlogged(Box::new(error));
        let lock = self.lock().map_err(unlogged)?;
        let loaded = Policy::load(&self.path().join("policy.toml"))?;
        self.note_policy(&lock, loaded.as_ref()).map_err(unlogged)?;
        let policy = loaded.map(|(policy, _)| policy).unwrap_or_default();
        let begins_at = Some(begins.at);
        let decision = self.decide_by(&policy, request, begins_at, Some(&lock))?;
        let decision = decision.or_yes(begins.yes);
        let (plan, job) = (hex(&request.plan.0), request.facts.job.clone());
        let asked_by = request.asked_by.map(str::to_owned);
        let counts = begins.at != Stage::Input || request.brings_only();
        let started = |decided, rule: Option<&String>| Event::RunStarted {
            plan: plan.clone(),
            job: begins.stage.map_or_else(|| job.clone(), str::to_owned),
            asked_by: asked_by.clone(),
            rule: rule.filter(|_| counts && !request.repeats).cloned(),
            families: rule.map(|_| request.facts.families.clone()),
            decided,
            stage: begins.at.name().to_owned(),
        };
        let event = match &decision {
            Decision::Approved { at, how } => {
                let (at, how) = (*at, how.clone());
                started(Decided::Person { how, at }, None)
            }
            Decision::Policy { rule } => started(Decided::Rule { rule: rule.clone() }, Some(rule)),
            Decision::Unasked => started(Decided::Yes, None),
            Decision::Refused { rule, why } => Event::Refusal {
                plan,
                job,
                asked_by,
                rule: Some(rule.clone()),
                why: why.clone(),
            },
            // A person's refusal is in the log since it was said.
            Decision::Pending { .. } | Decision::Held { .. } | Decision::Declined { .. } => {
                return Ok(decision);
            }
        };
        self.log().append_under(&lock, event).map_err(unlogged)?;
        Ok(decision)
    }

    fn decide_by(
        &self,
        policy: &Policy,
        request: &Request<'_>,
        at: Option<Stage>,
        lock: Option<&Lock>,
    ) -> Result<Decision, HomeError> {
        let same_job = |run: &Run| *run.job == *request.facts.job;
        let mut runs = if policy.counts_runs() {
            // Rules that count decide nothing by a log that is not in order; a person still may.
            self.counted(lock).map_err(|error| {
                tracing::error!(%error, "runs cannot be counted");
            })
        } else {
            Ok(Vec::new())
        };
        if let (true, Ok(runs)) = (request.repeats, &mut runs)
            && let Some(last) = runs.iter().rposition(same_job)
        {
            runs.remove(last);
        }
        let day_ago = Time::now().seconds() - DAY.as_secs() as i64;
        let count = |rule: &str| {
            let mine = runs.as_ref().ok()?.iter().filter(|run| *run.rule == *rule);
            let today = mine.clone().filter(|run| run.time.seconds() > day_ago);
            let ever = mine.clone().filter(|run| same_job(run));
            let families = request.facts.families.iter();
            let of_each = families.map(|family| {
                let same = |run: &&Run| run.is_of(family, request.asked_by);
                mine.clone().filter(same).count() as u64
            });
            Some(Runs {
                today: today.count() as u64,
                of_job: ever.count() as u64,
                of_family: of_each.max().unwrap_or(0),
            })
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
        let filed = self.filed(request.plan)?;
        if let Some(at) = filed.as_ref().and_then(|filed| filed.refused) {
            return Ok(Decision::Declined { at });
        }
        let approved = filed.and_then(|filed| Some((filed.plan, filed.approved?)));
        let used = match &approved {
            None => Ok(None),
            Some((plan, approval)) => self.used(lock, *plan, approval, (request, at)),
        };
        if let (Some((_, Approval { at, how, .. })), Ok(None)) = (&approved, &used) {
            let (at, how) = (*at, how.clone());
            return Ok(Decision::Approved { at, how });
        }
        let why = match judged.decided {
            Some((rule, Effect::Allow)) => return Ok(Decision::Policy { rule }),
            Some((rule, _)) => vec![format!("rule `{rule}` asks a person")],
            None => judged.reasons,
        };
        let why = used?.into_iter().chain(why).collect();
        Ok(Decision::Pending { why })
    }

    /// Why an approval is not good any more, if it is not: `at` is what begins, or nothing where it is asked whether anything may. A run that
    /// was allowed goes on, on the inputs that it kept, also when its approval has ended meanwhile. An approval is good for nothing by a log
    /// that is not in order.
    fn used(
        &self,
        lock: Option<&Lock>,
        plan: PlanHash,
        approval: &Approval,
        (request, at): (&Request<'_>, Option<Stage>),
    ) -> Result<Option<String>, HomeError> {
        // Inputs that are brought again make another run of those who compute on them.
        let other_inputs = matches!(at, Some(Stage::Whole | Stage::Input));
        if request.repeats && (!other_inputs || request.brings_only()) {
            return Ok(None);
        }
        let uses = self.uses(lock, plan)?;
        if uses.goes_on() && !other_inputs {
            return Ok(None);
        }
        let (given, term) = (approval.at, approval.term());
        if term.until.is_some_and(|until| until < Time::now()) {
            return Ok(Some(format!(
                "the approval of {given} was for {term}, and that is over"
            )));
        }
        let runs = uses.runs(request.brings_only());
        let used = term.most().filter(|most| runs >= *most);
        Ok(used.map(|most| {
            let are = if most == 1 { "is" } else { "are" };
            format!("the approval of {given} was for {term}, and {are} used")
        }))
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

/// A day, as rules count it.
const DAY: Duration = Duration::from_secs(24 * 3600);
