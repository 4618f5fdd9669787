//! Which files a service opens, by strace.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::deployment::Place;

/// Whatever a program opens to start, and what it reads of the machine: its libraries, its own program and limits, the processors. None of it
/// belongs to a participant.
const OF_THE_MACHINE: [&str; 12] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/lib",
    "/usr/lib",
    "/proc/self/exe",
    "/proc/self/maps",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/sys/vm/overcommit_memory",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/dev/null",
];

/// A file with all calls about files of a service and of its children.
pub(crate) struct Trace(PathBuf);

impl Trace {
    pub(crate) fn new(file: PathBuf) -> Self {
        Trace(file)
    }

    /// Where a service runs that is traced.
    pub(crate) fn place(&self) -> Place {
        let file = self.0.display().to_string();
        let calls = "trace=open,openat,openat2,creat,truncate,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat";
        // Where cargo has the loader look for libraries, an installed program does not.
        Place::through(&[
            "env",
            "-u",
            "LD_LIBRARY_PATH",
            "strace",
            "-D",
            "-f",
            "--seccomp-bpf",
            "-qq",
            "-e",
            calls,
            "-o",
            &file,
        ])
    }

    /// Whether this machine can trace.
    pub(crate) fn works(&self, test: &str) -> bool {
        self.place().works(test)
    }

    /// How many calls there were, once the service has ended, and the paths that are neither in this home nor of the machine, with the calls.
    pub(crate) fn opened(&self, folder: &Path, home: &str) -> (usize, BTreeMap<PathBuf, String>) {
        let text = std::fs::read_to_string(&self.0).unwrap();
        let folder = folder.canonicalize().unwrap();
        let program = Path::new(crate::PROGRAM).to_owned();
        let (mut calls, mut outside) = (0, BTreeMap::new());
        for line in text.lines() {
            // `PID call(AT_FDCWD, "path", …`; what a call of two paths changes is the last.
            let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            for path in quoted {
                calls += 1;
                let path = plain(&folder.join(path));
                let inside = path.starts_with(folder.join(home));
                let known = OF_THE_MACHINE.iter().any(|known| path.starts_with(known));
                if !inside && !known && path != program {
                    outside.entry(path).or_insert_with(|| line.to_owned());
                }
            }
        }
        (calls, outside)
    }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
