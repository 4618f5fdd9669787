//! The system calls of a computation; any other ends the process.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// Memory, clocks, randomness, and the end: these take no descriptor, no path and no other process.
const FREE: [libc::c_long; 15] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_munmap,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

/// Installs the filter for this thread, the only one of its process.
pub(crate) fn apply() -> Result<(), String> {
    let program = program(std::process::id()).map_err(|error| error.to_string())?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

fn program(pid: u32) -> Result<BpfProgram, seccompiler::BackendError> {
    let is = |argument, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let without = |argument, bit: u64| {
        let none = SeccompCmpOp::MaskedEq(bit);
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, none, 0)
    };
    let one = |condition| SeccompRule::new(vec![condition]);
    let executable = libc::PROT_EXEC as u64;
    let anonymous = libc::MAP_ANONYMOUS as u64;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in FREE {
        rules.insert(call, Vec::new());
    }
    // Standard input is read, the other two are written; whatever else was left open by the caller stays out of reach.
    rules.insert(libc::SYS_read, vec![one(is(0, 0)?)?]);
    let outputs = || Ok::<_, seccompiler::BackendError>(vec![one(is(0, 1)?)?, one(is(0, 2)?)?]);
    rules.insert(libc::SYS_write, outputs()?);
    rules.insert(libc::SYS_writev, outputs()?);
    // Memory is never executable, and never that of a file.
    let anonymous = SeccompCmpOp::MaskedEq(anonymous);
    let anonymous = SeccompCondition::new(
        3,
        SeccompCmpArgLen::Dword,
        anonymous,
        libc::MAP_ANONYMOUS as u64,
    )?;
    let mapped = SeccompRule::new(vec![without(2, executable)?, anonymous])?;
    rules.insert(libc::SYS_mmap, vec![mapped]);
    rules.insert(libc::SYS_mprotect, vec![one(without(2, executable)?)?]);
    rules.insert(libc::SYS_mremap, Vec::new());
    // `abort` signals its own process, so that running out of memory is told from a forbidden call.
    rules.insert(libc::SYS_tgkill, vec![one(is(0, u64::from(pid))?)?]);
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        arch,
    )?;
    filter.try_into()
}
