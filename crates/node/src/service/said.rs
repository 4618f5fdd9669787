//! The sentences that others read of why a job waits, was refused or failed here: they say nothing of this machine, its files and its rules
//! (rule R3). This participant's people read the full reason with `veil jobs` here.

use veil_engine::Abort;
use veil_job::StockError;
use veil_link::tls::SetupError;
use veil_link::{LinkError, LinkFault};
use veil_protocol::Plan;

use crate::approvals::Decision;
use crate::home::HomeError;
use crate::jobs::Why;
use crate::pairing::JoinError;
use crate::renewal::RotationError;
use veil_runtime::{RunError, who_is_who};

pub(super) use crate::meeting::OWN_FILES;

/// Of one whose log takes no entry: what is not logged does not happen.
pub(super) const NO_LOG: &str = "this party's log cannot be written: the job waits until it can; its operator reads why with `veil jobs` there";

/// Of one whose policy or approvals cannot be read.
const NO_POLICY: &str = "this party's policy or approvals cannot be read: the job waits until they can; its operator reads why with `veil jobs` there";

/// Of one that cannot run a job, or go on with it, for a reason of its own.
pub(super) const NOT_HERE: &str =
    "this party cannot run it now; its operator reads why with `veil jobs` there";

/// Of one whose other jobs ran all the time.
pub(super) const FULL: &str = "other jobs ran all the time at this party: ask again later";

/// Of one whose memory others have: the job is met when there is some for it.
pub(super) const NO_MEMORY: &str =
    "jobs that run or wait at this party leave no memory for it yet: it is met when there is some";

/// Of one at which the member that asked for the job has used up a quota. The party's operator and the next proposer read which one.
pub(super) const QUOTA: &str =
    "a quota of the member who asked for it is used up at this party: ask again later";

/// Of one that could not write into its home what a caller asked of it.
pub(super) const NOT_KEPT: &str =
    "this party cannot keep it: its operator finds the reason in its log lines";

/// To a member that proposes a job where the disk is kept for those that run.
pub(super) const NO_ROOM: &str =
    "no room: this party keeps what is left of its disk for jobs that run; its operator is told";

/// What is said of a run that failed: whom the job names, and what they did. Addresses, keys and what this machine's system says are
/// for this participant's people.
pub(super) fn of_run(plan: &Plan, error: &RunError) -> String {
    let text = match error {
        RunError::Setup(error) => of_setup(error),
        RunError::Abort(Abort::Link(LinkError { peer, at, fault })) => {
            let (peer, at, fault) = (*peer, *at, of_fault(fault));
            LinkError { peer, at, fault }.to_string()
        }
        RunError::Abort(Abort::Device(_)) => "this party's device failed".to_owned(),
        RunError::Abort(Abort::Data(error)) if error.is_own() => OWN_FILES.to_owned(),
        RunError::Abort(Abort::Missing(_)) => NOT_HERE.to_owned(),
        RunError::Abort(Abort::Stock(error)) => match &**error {
            // Files of this machine.
            StockError::Damaged { .. } | StockError::Data(_) => NOT_HERE.to_owned(),
            error => error.to_string(),
        },
        RunError::Abort(abort) => abort.to_string(),
    };
    with_names(plan, text)
}

/// A text, with the names of those whom it numbers.
pub(super) fn with_names(plan: &Plan, text: String) -> String {
    let names = who_is_who(plan, &text);
    if names.is_empty() {
        text
    } else {
        format!("{text} ({names})")
    }
}

fn of_setup(error: &SetupError) -> String {
    match error {
        SetupError::TimedOut { peers, .. } => {
            let (peers, hint) = (peers.clone(), String::new());
            SetupError::TimedOut { peers, hint }.to_string()
        }
        SetupError::WrongKey { peer, .. } => {
            format!("{peer} shows another key than this party has pinned for it")
        }
        SetupError::OurKey { peer, .. } => format!("{peer} does not accept this party's key"),
        SetupError::Tls { peer, .. } => format!("TLS with {peer} failed"),
        SetupError::Plan { .. }
        | SetupError::Link { .. }
        | SetupError::Version { .. }
        // Of this program's own sentences.
        | SetupError::Refused { .. }
        | SetupError::NoPin { .. }
        | SetupError::Dropped { .. }
        | SetupError::Twice { .. }
        | SetupError::Stopped { .. } => error.to_string(),
        _ => NOT_HERE.to_owned(),
    }
}

/// The same, without what the system says.
fn of_fault(fault: &LinkFault) -> LinkFault {
    match fault {
        LinkFault::Closed(_) => LinkFault::Closed("its process or the network ended".into()),
        LinkFault::Cipher(_) => LinkFault::Cipher("it was changed on the way".into()),
        LinkFault::Local(_) => LinkFault::Local("its operator reads why there".into()),
        fault => fault.clone(),
    }
}

/// What a caller reads whose invitation or token is not taken.
pub(super) fn of_join(error: &JoinError) -> String {
    match error {
        JoinError::Home(_) => NOT_KEPT.to_owned(),
        error => error.to_string(),
    }
}

/// The same of a statement of a new key.
pub(super) fn of_rotation(error: &RotationError) -> String {
    match error {
        RotationError::Home(_) => NOT_KEPT.to_owned(),
        error => error.to_string(),
    }
}

/// What is said of a job that may not run, or not yet.
pub(super) fn public_reason(decision: &Decision) -> Why {
    let all = match decision {
        Decision::Approved { .. } | Decision::Policy { .. } | Decision::Unasked => {
            return Why::all(decision.to_string());
        }
        Decision::Pending { .. } => "it waits for approval at this party",
        Decision::Declined { .. } => "this party's operator refuses it",
        Decision::Refused { .. } => "this party's policy refuses it",
        Decision::Held { all, .. } => all,
    };
    Why::apart(all, decision.to_string())
}

/// A job that waits, since the party cannot say whether it may run, or write down that it does.
pub(super) fn held(error: &HomeError) -> Decision {
    let all = match error {
        HomeError::Unlogged(_) => NO_LOG,
        _ => NO_POLICY,
    };
    let here = error.to_string();
    Decision::Held { all, here }
}

#[cfg(test)]
mod tests {
    use veil_session::{PartyId, Peer};

    use super::*;

    /// What only this machine knows, in every error that may hold it.
    #[test]
    fn nothing_of_this_machine_is_said_to_others() {
        const SECRET: &str = "/data/mill/pay.csv at 10.0.0.7: rule `closed`, 64 MiB";
        let peer = Peer::Party(PartyId::THREE[1]);
        let own = || SECRET.to_owned();
        let setup = [
            SetupError::Listen {
                address: own(),
                why: own(),
            },
            SetupError::TimedOut {
                peers: vec![peer],
                hint: own(),
            },
            SetupError::Tls { peer, why: own() },
            SetupError::Local(own()),
        ];
        for error in &setup {
            assert!(error.to_string().contains("10.0.0.7"));
            assert!(!of_setup(error).contains("10.0.0.7"), "{error}");
        }
        assert_eq!(
            of_setup(&setup[1]),
            "waited for party 1 until the time was over"
        );
        for fault in [
            LinkFault::Closed(own()),
            LinkFault::Cipher(own()),
            LinkFault::Local(own()),
        ] {
            assert!(
                !of_fault(&fault).to_string().contains("10.0.0.7"),
                "{fault}"
            );
        }
        let decisions = [
            Decision::Pending { why: vec![own()] },
            Decision::Refused {
                rule: own(),
                why: own(),
            },
            held(&HomeError::Random(own())),
            held(&HomeError::Unlogged(Box::new(HomeError::Random(own())))),
        ];
        for decision in decisions {
            let (all, here) = public_reason(&decision).into_parts();
            assert!(!all.contains("10.0.0.7"), "{all}");
            assert!(here.unwrap().contains("10.0.0.7"));
        }
    }
}
