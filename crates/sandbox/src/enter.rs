//! The confined side: what a process gives up before it reads anything.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError,
    RulesetStatus, Scope,
};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getpriority_process, set_dumpable_behavior,
    set_parent_process_death_signal, setpriority_process, setrlimit,
};
use rustix::thread::set_no_new_privs;

use crate::{Limits, filter};

/// How a process is confined, in addition to its limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confinement {
    /// Landlock denies all files and ports, and a filter all system calls that a computation does not need.
    Landlock,
    /// The filter alone: the kernel has no Landlock (5.13 or later has).
    Filter,
}

impl Confinement {
    /// A word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Confinement::Landlock => "landlock and seccomp",
            Confinement::Filter => "seccomp",
        }
    }
}

/// The least confinement that a caller accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Require {
    /// Landlock and the filter.
    Landlock,
    /// The filter; Landlock too where the kernel has it.
    Filter,
}

/// A process cannot be confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnterError {
    /// The kernel has no Landlock, and it is required.
    #[error("this kernel has no Landlock, which Linux 5.13 or later has")]
    NoLandlock,
    /// The kernel refused a step.
    #[error("{step}: {why}")]
    Refused {
        /// Which.
        step: &'static str,
        /// The kernel's error.
        why: String,
    },
}

fn refused(step: &'static str) -> impl FnOnce(rustix::io::Errno) -> EnterError {
    move |errno| EnterError::Refused {
        step,
        why: errno.to_string(),
    }
}

/// Takes from this process, which must have one thread, all that a computation does not need. There is no way back. Called before the
/// process reads anything that another participant wrote.
///
/// # Errors
///
/// If the kernel cannot confine it: the process must end then.
pub fn enter(limits: &Limits, require: Require) -> Result<Confinement, EnterError> {
    // A process that outlives its service would have no parent to answer to.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(refused("the end of a parent"))?;
    // No core dump that another process could read, and no process traces it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(refused("no dumps"))?;
    set_no_new_privs(true).map_err(refused("no new privileges"))?;
    // A service that is nice itself has no right to start a process that is less so.
    let own = getpriority_process(None).map_err(refused("its priority"))?;
    let nice = limits.nice.clamp(0, 19).max(own);
    setpriority_process(None, nice).map_err(refused("a low priority"))?;
    let seconds = limits.cpu.as_secs().max(1);
    for (resource, current, maximum) in [
        (Resource::As, limits.memory, limits.memory),
        (Resource::Data, limits.memory, limits.memory),
        // The first limit is told apart from another process's SIGKILL by its signal.
        (Resource::Cpu, seconds, seconds + 1),
        (Resource::Core, 0, 0),
        (Resource::Fsize, 0, 0),
        (Resource::Nofile, 0, 0),
        (Resource::Memlock, 0, 0),
    ] {
        // Landlock's own ruleset is a descriptor.
        if resource != Resource::Nofile {
            limit(resource, current, maximum)?;
        }
    }
    let confinement = match landlock().map_err(|error| EnterError::Refused {
        step: "Landlock",
        why: error.to_string(),
    })? {
        RulesetStatus::NotEnforced if require == Require::Landlock => {
            return Err(EnterError::NoLandlock);
        }
        RulesetStatus::NotEnforced => Confinement::Filter,
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Confinement::Landlock,
    };
    limit(Resource::Nofile, 0, 0)?;
    filter::apply().map_err(|why| EnterError::Refused {
        step: "the filter of system calls",
        why,
    })?;
    Ok(confinement)
}

fn limit(resource: Resource, current: u64, maximum: u64) -> Result<(), EnterError> {
    let limit = Rlimit {
        current: Some(current),
        maximum: Some(maximum),
    };
    setrlimit(resource, limit).map_err(refused("a limit of resources"))
}

/// Denies all files, all ports, and signals and sockets of others, as far as the kernel can.
fn landlock() -> Result<RulesetStatus, RulesetError> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Without the filter: one of the two is enough. Landlock is of a thread, and this one ends.
    #[test]
    fn landlock_alone_denies_files_and_ports() {
        let there = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = there.local_addr().unwrap();
        let confined = std::thread::spawn(move || {
            if landlock().unwrap() == RulesetStatus::NotEnforced {
                eprintln!("SKIPPED: this kernel has no Landlock");
                return;
            }
            let denied = |kind| assert_eq!(kind, ErrorKind::PermissionDenied);
            denied(fs::read("/etc/passwd").unwrap_err().kind());
            denied(fs::write("/tmp/veil-denied", "x").unwrap_err().kind());
            denied(fs::read_dir("/").unwrap_err().kind());
            denied(TcpStream::connect(address).unwrap_err().kind());
            denied(TcpListener::bind("127.0.0.1:0").unwrap_err().kind());
        });
        confined.join().unwrap();
        drop(there);
    }
}
