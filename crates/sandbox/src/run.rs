//! The side that starts a confined process: gives it its input, takes its reply, and says what ended it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::Signal;

use crate::Limits;

/// What is kept of what a process says on standard error.
const LONGEST_WORDS: usize = 4 << 10;

/// What the allocator of a Rust program says before it aborts.
const NO_MEMORY: &str = "memory allocation of ";

/// Which limit ended a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// It wanted more memory.
    Memory,
    /// It wanted more time of the processor.
    Cpu,
    /// It was not done in time.
    Wall,
    /// Its reply was longer.
    Reply,
    /// It made a system call that a computation has no use for.
    Call,
}

impl Limit {
    /// A word for it, as metrics have it.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::Memory => "memory",
            Limit::Cpu => "cpu",
            Limit::Wall => "time",
            Limit::Reply => "reply",
            Limit::Call => "call",
        }
    }
}

/// A process that gave no reply.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ended {
    /// A limit ended it.
    #[error("it reached its limit of {}", .0.name())]
    Limit(Limit),
    /// It ended by itself without a reply, or a signal ended it.
    #[error("it ended by {status}: {said}")]
    Crashed {
        /// How.
        status: ExitStatus,
        /// The beginning of what it said on standard error.
        said: String,
    },
    /// It cannot be started or talked to.
    #[error("it cannot be started: {0}")]
    Io(#[from] io::Error),
}

/// Starts `program` with `args`, which calls [`enter`](crate::enter()) before it reads `input` from its standard input, and returns what it
/// writes to its standard output. It has no environment and no folder.
///
/// # Errors
///
/// If it does not end by itself, with success and within its limits.
pub fn run(
    program: &OsStr,
    args: &[&str],
    input: &[u8],
    limits: &Limits,
) -> Result<Vec<u8>, Ended> {
    let until = Instant::now() + limits.wall;
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut child = Killed(child);
    let heard = talk(&mut child.0, input, limits.reply, until)?;
    let status = match heard.over {
        Some(limit) => return Err(Ended::Limit(limit)),
        None => wait(&mut child.0, until)?,
    };
    let Some(status) = status else {
        return Err(Ended::Limit(Limit::Wall));
    };
    if status.success() {
        return Ok(heard.reply);
    }
    let said = String::from_utf8_lossy(&heard.words).into_owned();
    let is = |signal: Signal| status.signal() == Some(signal.as_raw());
    Err(if is(Signal::XCPU) {
        Ended::Limit(Limit::Cpu)
    } else if is(Signal::SYS) {
        Ended::Limit(Limit::Call)
    } else if is(Signal::ABORT) && said.contains(NO_MEMORY) {
        Ended::Limit(Limit::Memory)
    } else {
        Ended::Crashed { status, said }
    })
}

/// A child that does not outlive its caller.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // One that is gone already is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What came of talking to a process.
#[derive(Default)]
struct Heard {
    reply: Vec<u8>,
    words: Vec<u8>,
    over: Option<Limit>,
}

/// Writes `input` and reads both outputs until they end, without ever waiting for one of them alone.
fn talk(child: &mut Child, input: &[u8], longest: u64, until: Instant) -> io::Result<Heard> {
    let mut stdin = child.stdin.take();
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    for fd in [
        stdin.as_ref().map(AsFd::as_fd),
        stdout.as_ref().map(AsFd::as_fd),
        stderr.as_ref().map(AsFd::as_fd),
    ] {
        let fd = fd.expect("all three are pipes");
        fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
    }
    let mut heard = Heard::default();
    let mut left = input;
    let mut buffer = vec![0; 64 << 10];
    while stdin.is_some() || stdout.is_some() || stderr.is_some() {
        let wait = until.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            heard.over = Some(Limit::Wall);
            return Ok(heard);
        }
        {
            let mut fds = Vec::with_capacity(3);
            fds.extend(stdin.as_ref().map(|fd| PollFd::new(fd, PollFlags::OUT)));
            fds.extend(stdout.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            fds.extend(stderr.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
            match poll(&mut fds, Some(&timespec(wait))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(pipe) = &stdin {
            match rustix::io::write(pipe, left) {
                Ok(written) => left = &left[written..],
                Err(Errno::AGAIN | Errno::INTR) => {}
                // It has heard enough, or has ended: its outputs say which.
                Err(Errno::PIPE) => left = &[],
                Err(error) => return Err(error.into()),
            }
            if left.is_empty() {
                stdin = None;
            }
        }
        if let Some(pipe) = &stdout {
            match rustix::io::read(pipe, &mut buffer[..]) {
                Ok(0) => stdout = None,
                Ok(read) if (heard.reply.len() + read) as u64 > longest => {
                    heard.over = Some(Limit::Reply);
                    return Ok(heard);
                }
                Ok(read) => heard.reply.extend_from_slice(&buffer[..read]),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(pipe) = &stderr {
            match rustix::io::read(pipe, &mut buffer[..]) {
                Ok(0) => stderr = None,
                Ok(read) => {
                    let room = LONGEST_WORDS - heard.words.len();
                    heard.words.extend_from_slice(&buffer[..read.min(room)]);
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(heard)
}

/// Waits for the end of a process that has closed its outputs; nothing if it takes too long.
fn wait(child: &mut Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs() as i64,
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
