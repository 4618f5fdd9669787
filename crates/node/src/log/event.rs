//! Logged events.

use std::collections::BTreeSet;

use serde::Serialize;
use veil_session::PlanHash;

use crate::approvals::Binding;
use crate::names::Role;
use crate::time::Time;

/// Something that happened at this participant. Its fields are public to its own people: names, numbers of rows and files, keys'
/// fingerprints, plan hashes, and of its own data files where they are, how long, and their digests. There is no place here for values,
/// shares, tokens, keys, or hashes of any of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", content = "fields", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The home was made; the first entry of every log.
    Init {
        /// Name of this participant.
        name: String,
        /// Its role.
        role: Role,
        /// Its key's fingerprint.
        fingerprint: String,
        /// Its public key, whose signatures follow: SubjectPublicKeyInfo in hexadecimal digits.
        key: String,
    },
    /// A participant was invited.
    Invitation {
        /// Who.
        name: String,
        /// As what.
        role: Role,
        /// Until when.
        expires: Time,
    },
    /// A participant became a member.
    Member {
        /// Who.
        name: String,
        /// As what.
        role: Role,
        /// By which key.
        fingerprint: String,
        /// `invited` by us, `joined` by us at their invitation, or `pinned` by hand.
        how: &'static str,
    },
    /// A member was revoked.
    Revocation {
        /// Who.
        name: String,
        /// Its key.
        fingerprint: String,
        /// The reason, in the words of the person who revoked it.
        reason: String,
    },
    /// A member that was revoked is let in again.
    Readmission {
        /// Who.
        name: String,
        /// The key that was revoked.
        old: String,
        /// The key that it has now: only the person who gave it here vouches for it.
        new: String,
    },
    /// A member has a new key.
    Rotation {
        /// Who.
        name: String,
        /// Its old key.
        old: String,
        /// Its new one.
        new: String,
    },
    /// This participant has a new key; entries after this one are signed by it.
    KeyRotated {
        /// The old key's fingerprint.
        old: String,
        /// The new one's.
        new: String,
        /// The new public key, as in [`Event::Init`].
        key: String,
    },
    /// The policy is another one than before.
    PolicyChanged {
        /// SHA-256 of the file; empty if there is none any more.
        sha256: String,
        /// Names of its rules, in order.
        rules: Vec<String>,
    },
    /// A party of a job was found missing by all the others, who finish the job without it.
    PartyOut {
        /// The plan of the job, all digits.
        plan: String,
        /// Its name.
        job: String,
        /// The party.
        party: String,
    },
    /// A check failed in a job that goes on all the same: one of these participants lied.
    Suspected {
        /// The plan of the job, all digits.
        plan: String,
        /// Its name.
        job: String,
        /// The participants whose messages contradict each other.
        one_of: Vec<String>,
        /// The compared values, in words.
        what: String,
    },
    /// A job was approved.
    Approval {
        /// Its plan.
        plan: String,
        /// Its name.
        job: String,
        /// `answered` on a terminal, or `--yes`.
        how: &'static str,
        /// For how many runs; nothing if only time ends it.
        runs: Option<u64>,
        /// The last moment at which one may begin, if there is one.
        until: Option<Time>,
        /// This participant's data files, as they were bound to the job.
        data: Vec<Bound>,
    },
    /// A data file of this participant was read for a run that begins.
    DataRead {
        /// The plan.
        plan: String,
        /// The job's name.
        job: String,
        /// The file, and its length and digest when it was read.
        #[serde(flatten)]
        read: Bound,
        /// SHA-256 of its contents at the approval, if they were others.
        approved_sha256: Option<String>,
    },
    /// An approval was taken back.
    Withdrawal {
        /// The plan.
        plan: String,
        /// The job's name.
        job: String,
    },
    /// A job was refused.
    Refusal {
        /// Its plan.
        plan: String,
        /// Its name.
        job: String,
        /// The member who asked; nothing, if this participant did.
        asked_by: Option<String>,
        /// The rule that refused it, if one did.
        rule: Option<String>,
        /// Why.
        why: String,
    },
    /// A run began.
    RunStarted {
        /// The plan.
        plan: String,
        /// The job's name.
        job: String,
        /// The member who asked; nothing, if this participant did.
        asked_by: Option<String>,
        /// The rule that allowed it, if rules that count runs are to count this one.
        rule: Option<String>,
        /// The families of its queries, if a rule allowed it.
        #[serde(skip_serializing_if = "Option::is_none")]
        families: Option<BTreeSet<String>>,
        /// The decision by which it may run.
        decided: Decided,
        /// The stage of the job: `run`, if it has one alone.
        stage: String,
    },
    /// A run ended.
    RunEnded {
        /// The plan.
        plan: String,
        /// The job's name.
        job: String,
        /// The run's trace id, if it got as far as having one.
        trace: Option<String>,
        /// The stage of the job.
        stage: String,
        /// Whether something may have been opened: a run that ended before uses no approval.
        opened: bool,
        /// `done`, or the code of the cause.
        cause: String,
        /// How long it took.
        seconds: u64,
    },
    /// A result was written for a role of this participant.
    ResultPublished {
        /// The plan.
        plan: String,
        /// The job's name.
        job: String,
        /// The run's trace id.
        trace: Option<String>,
        /// How many files. Their hashes are in the receipt in their folder, not here: a hash of few bits tells them.
        files: u64,
    },
}

/// A data file of this participant: the log stays in its home.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Bound {
    /// Whose data.
    pub owner: String,
    /// The block or the input port.
    pub what: String,
    /// Where it is: a path without links.
    pub file: String,
    /// How long it is, in bytes.
    pub bytes: Option<u64>,
    /// SHA-256 of its contents.
    pub sha256: Option<String>,
}

impl From<&Binding> for Bound {
    fn from(binding: &Binding) -> Self {
        Bound {
            owner: binding.owner.clone(),
            what: binding.what.clone(),
            file: binding.file.display().to_string(),
            bytes: binding.bytes,
            sha256: binding.sha256.clone(),
        }
    }
}

/// The decision by which a run may begin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decided {
    /// A person approved it.
    Person {
        /// `answered` on a terminal, or `--yes` of `veil approve`.
        how: String,
        /// When.
        at: Time,
    },
    /// A rule of the policy.
    Rule {
        /// Its name.
        rule: String,
    },
    /// This process was started with `--yes`: no person looked at the job.
    Yes,
}

/// Longest free text that is logged.
const LONGEST: usize = 500;

impl Event {
    /// The name of a plan in logs, folders and receipts: all of its digits.
    pub fn plan(hash: PlanHash) -> String {
        crate::home::hex(&hash.0)
    }

    /// The same with texts cut to a length that a log bears.
    pub(super) fn cut(mut self) -> Self {
        let short = |text: &mut String| {
            if let Some((at, _)) = text.char_indices().nth(LONGEST) {
                text.truncate(at);
                text.push('…');
            }
        };
        match &mut self {
            Event::Revocation { reason, .. } => short(reason),
            Event::Refusal { why, .. } => short(why),
            Event::RunEnded { cause, .. } => short(cause),
            Event::PolicyChanged { rules, .. } => rules.iter_mut().for_each(short),
            _ => {}
        }
        self
    }
}
