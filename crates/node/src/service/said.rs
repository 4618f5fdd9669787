//! What others read of why a job waits, was refused or failed here: sentences that say nothing of this machine, its files and its rules
//! (rule R3). What is behind them, this participant's people read with `veil jobs` here.

use crate::approvals::Decision;
use crate::home::HomeError;
use crate::jobs::Why;

/// Of a party whose own files are in the way.
pub(super) const OWN_FILES: &str =
    "this party's own files do not allow it; its operator reads why with `veil jobs` there";

/// Of one whose log takes no entry: what is not logged does not happen.
pub(super) const NO_LOG: &str = "this party's log cannot be written: the job waits until it can; its operator reads why with `veil jobs` there";

/// Of one whose policy or approvals cannot be read.
const NO_POLICY: &str = "this party's policy or approvals cannot be read: the job waits until they can; its operator reads why with `veil jobs` there";

/// What is said of a job that may not run, or not yet.
pub(super) fn public_reason(decision: &Decision) -> Why {
    let all = match decision {
        Decision::Approved { .. } | Decision::Policy { .. } | Decision::Unasked => {
            return Why::all(decision.to_string());
        }
        Decision::Pending { .. } => "it waits for approval at this party",
        Decision::Refused { .. } => "this party's policy refuses it",
        Decision::Held { all, .. } => all,
    };
    Why::apart(all, decision.to_string())
}

/// A job that waits, since nobody can say whether it may run, or write down that it does.
pub(super) fn held(error: &HomeError) -> Decision {
    let all = match error {
        HomeError::Unlogged(_) => NO_LOG,
        _ => NO_POLICY,
    };
    let here = error.to_string();
    Decision::Held { all, here }
}
