//! The programs.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tempfile::TempDir;

use super::error::VerilogError;

/// Bytes that a program may print: as much as the longest file of a circuit has.
const PRINTED: u64 = 1 << 30;

/// Bytes that it may complain.
const COMPLAINED: u64 = 16 << 20;

/// How often a program that has closed its output is looked after.
const GLANCE: Duration = Duration::from_millis(5);

/// Sets limits for a program and all that it starts: seconds of CPU time, and blocks of 512 bytes in a file that it writes. All of them
/// are a group of processes, and end if standard input does: with the process that is on its other end, however that ends.
const LIMITED: &str = "ulimit -t \"$1\" 2>/dev/null; ulimit -f \"$2\" 2>/dev/null; shift 2; command -v \"$1\" >/dev/null || exit 127; \
     exec 3<&0; { read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec \"$@\" </dev/null 3<&-";

/// Where programs look for the folder of their scratch files.
const SCRATCH: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// What [`LIMITED`] says of a program that is not there.
const NOT_THERE: i32 = 127;

/// A program that is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tool {
    /// Synthesis.
    Yosys,
    /// The compiler of Icarus Verilog.
    Icarus,
    /// The runner of its programs.
    Vvp,
}

impl Tool {
    fn program(self) -> &'static str {
        match self {
            Tool::Yosys => "yosys",
            Tool::Icarus => "iverilog",
            Tool::Vvp => "vvp",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Tool::Yosys => "yosys",
            Tool::Icarus | Tool::Vvp => "iverilog",
        }
    }

    /// Whether it can be started.
    pub(super) fn is_installed(self) -> bool {
        Command::new(self.program()).arg("-V").output().is_ok()
    }

    /// Runs it for so long at most, in a folder if there is one; returns what it printed, or what it complained about.
    pub(super) fn run(
        self,
        arguments: &[OsString],
        time: Duration,
        folder: Option<&Path>,
    ) -> Result<Vec<u8>, VerilogError> {
        let program = self.program();
        let output = supervise(program, arguments, time, folder, PRINTED)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let silent = output.stderr.is_empty() && output.stdout.is_empty();
        if output.status.code() == Some(NOT_THERE) && silent {
            let package = self.package();
            return Err(VerilogError::Missing { program, package });
        }
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Err(VerilogError::Refused {
            program,
            message: complaint(&said)
                .unwrap_or_else(|| format!("{program} failed: {}", output.status)),
        })
    }
}

/// Runs a program that has no input, and ends it if it takes longer or prints more than it may. Nothing that it has started outlives it,
/// and its scratch files go with it.
fn supervise(
    program: &'static str,
    arguments: &[OsString],
    time: Duration,
    folder: Option<&Path>,
    printed: u64,
) -> Result<Output, VerilogError> {
    let until = Instant::now() + time;
    let failed = |error| VerilogError::Run { program, error };
    let mut running = Running::start(program, arguments, time, folder).map_err(failed)?;
    let (sender, texts) = channel();
    if let Some(stdout) = running.child.stdout.take() {
        read(stdout, printed, 0, sender.clone());
    }
    if let Some(stderr) = running.child.stderr.take() {
        read(stderr, COMPLAINED, 1, sender);
    }
    let too_long = || VerilogError::TooLong { program, time };
    let [stdout, stderr] = both(&texts, until).ok_or_else(too_long)?;
    for (text, most) in [(&stdout, printed), (&stderr, COMPLAINED)] {
        if text.len() as u64 > most {
            let bytes = most;
            return Err(VerilogError::TooMuch { program, bytes });
        }
    }
    if !running.ends(until).map_err(failed)? {
        return Err(too_long());
    }
    let status = running.end().map_err(failed)?;
    // What it has started may have run into the limit, and it complains about that.
    if !status.success() && Instant::now() >= until {
        return Err(too_long());
    }
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Reads all of it and at most one byte more than `most`, in a thread: what the program has started may hold the other end for longer.
fn read(
    from: impl Read + Send + 'static,
    most: u64,
    which: usize,
    sender: Sender<(usize, Vec<u8>)>,
) {
    thread::spawn(move || {
        let mut text = Vec::new();
        // What cannot be read is not there.
        let _ = from.take(most + 1).read_to_end(&mut text);
        // The receiver that waited for it may have gone.
        let _ = sender.send((which, text));
    });
}

/// What two threads have read; nothing, if it takes longer than it may.
fn both(texts: &Receiver<(usize, Vec<u8>)>, until: Instant) -> Option<[Vec<u8>; 2]> {
    let mut both = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let left = until.saturating_duration_since(Instant::now());
        let (which, text) = texts.recv_timeout(left).ok()?;
        both[which] = text;
    }
    Some(both)
}

/// A program and all that it has started, which end when it is dropped.
struct Running {
    child: Child,
    ended: bool,
    /// Of its scratch files: it goes when they cannot write any more.
    _scratch: TempDir,
}

impl Running {
    fn start(
        program: &str,
        arguments: &[OsString],
        time: Duration,
        folder: Option<&Path>,
    ) -> io::Result<Self> {
        let scratch = tempfile::tempdir()?;
        let seconds = (time.as_secs() + 1).to_string();
        let blocks = (PRINTED / 512).to_string();
        let mut command = Command::new("sh");
        command
            .args(["-c", LIMITED, "sh", &seconds, &blocks, program])
            .args(arguments)
            .envs(SCRATCH.map(|name| (name, scratch.path())))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        Ok(Running {
            child: command.spawn()?,
            ended: false,
            _scratch: scratch,
        })
    }

    /// Whether it ends in time. Its number stays its own until [`Running::end`], and so does that of its group.
    fn ends(&self, until: Instant) -> io::Result<bool> {
        let id = WaitId::Pid(Pid::from_child(&self.child));
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(id.clone(), look) {
                Ok(Some(_)) => return Ok(true),
                Ok(None) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            thread::sleep(GLANCE);
        }
    }

    /// Ends what is left of it; how it ended itself.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if !std::mem::replace(&mut self.ended, true) {
            // What leads the group is not waited for yet, so it is no other's.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.end();
    }
}

/// The first error in what a program says, or else its first line, with a small beginning.
fn complaint(said: &str) -> Option<String> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| line.to_ascii_lowercase().contains("error"));
    let line = error.or_else(|| lines().next())?;
    Some(line.replacen("ERROR: ", "", 1).replacen("error: ", "", 1))
}

/// The same where the argument is a pattern of file names, as Yosys has it: one that only this file fits.
pub(super) fn as_pattern(file: &Path) -> OsString {
    let operand = as_operand(file);
    let Some(text) = operand.to_str() else {
        return operand;
    };
    let special = |letter: char| ['*', '?', '[', '\\'].contains(&letter);
    let escaped = text
        .chars()
        .flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter]));
    escaped.collect::<String>().into()
}

/// A path between the quotes of a string of Verilog.
pub(super) fn quoted(path: &OsStr) -> String {
    let text = path.to_string_lossy();
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A file as an argument that is not taken for an option, for standard input or for a command.
pub(super) fn as_operand(file: &Path) -> OsString {
    let text = file.to_string_lossy();
    match text.chars().next() {
        Some('/' | '.') => file.into(),
        _ => Path::new(".").join(file).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_so_much_time_and_output() {
        let run = |program, arguments: &[&str], milliseconds, most| {
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            let began = Instant::now();
            let time = Duration::from_millis(milliseconds);
            let ran = supervise(program, &arguments, time, None, most);
            assert!(began.elapsed() < Duration::from_secs(20));
            ran
        };
        let ran = run("echo", &["a"], 60_000, 2).unwrap();
        assert_eq!((ran.stdout, ran.status.success()), (b"a\n".to_vec(), true));
        let over = run("echo", &["ab"], 60_000, 2).unwrap_err();
        assert!(matches!(over, VerilogError::TooMuch { bytes: 2, .. }));
        let over = run("yes", &[], 60_000, 1 << 20).unwrap_err();
        assert!(matches!(over, VerilogError::TooMuch { .. }));
        for arguments in [["60"].as_slice(), &["-c", "sleep 60 & exit 1"]] {
            let program = if arguments.len() == 1 { "sleep" } else { "sh" };
            let late = run(program, arguments, 300, 2).unwrap_err();
            let expected = format!(
                "{program} ran for more than 0.3 s and was ended: allow it more, or ask for less"
            );
            assert_eq!(late.to_string(), expected);
        }
        // What it starts is limited, too.
        let limits = run("sh", &["-c", "ulimit -t; ulimit -f"], 60_000, 100).unwrap();
        assert_eq!(limits.stdout, b"61\n2097152\n");
        let none = run("no-such-program", &[], 60_000, 100).unwrap();
        assert_eq!(none.status.code(), Some(NOT_THERE));
    }

    /// What a program has started holds a pipe, and that ends with it: how a shell ends that starts it and goes on with `then`.
    fn leaves(then: &str, time: Duration, lost: bool) -> Option<i32> {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let (sender, over) = channel();
        let far = pipe.clone();
        thread::spawn(move || {
            let mut held = std::fs::File::open(far).unwrap();
            let mut said = [0; 5];
            held.read_exact(&mut said).unwrap();
            sender.send(said.to_vec()).unwrap();
            let mut rest = Vec::new();
            held.read_to_end(&mut rest).unwrap();
            sender.send(rest).unwrap();
        });
        let hear = || over.recv_timeout(Duration::from_secs(60));
        let script = "exec 9>\"$1\"; sleep 1000 >/dev/null 2>&1 & echo held >&9; eval \"$2\"";
        let arguments = ["-c", script, "sh", pipe.to_str().unwrap(), then].map(OsString::from);
        let code = if lost {
            let mut running = Running::start("sh", &arguments, time, None).unwrap();
            assert_eq!(hear().unwrap(), b"held\n");
            drop(running.child.stdin.take());
            assert!(
                running
                    .ends(Instant::now() + Duration::from_secs(60))
                    .unwrap()
            );
            running.end().unwrap().code()
        } else {
            let ran = supervise("sh", &arguments, time, None, 100);
            assert_eq!(hear().unwrap(), b"held\n");
            ran.map_or(None, |ran| ran.status.code())
        };
        let rest = hear().expect("what the program has started goes on without it");
        assert!(rest.is_empty());
        code
    }

    #[test]
    fn what_a_program_has_started_ends_with_it() {
        let long = Duration::from_secs(600);
        assert_eq!(leaves("exit 3", long, false), Some(3));
        assert_eq!(leaves("wait", Duration::from_secs(2), false), None);
        // No caller ends it: the one that would has ended.
        assert_eq!(leaves("wait", long, true), None);
    }

    #[test]
    fn scratch_files_go_with_the_program() {
        let script = "touch \"$TMPDIR/a\" && printf %s \"$TMPDIR\" && [ \"$TMP\" = \"$TMPDIR\" ]";
        let arguments = ["-c", script].map(OsString::from);
        let ran = supervise("sh", &arguments, Duration::from_secs(60), None, 1000).unwrap();
        assert!(ran.status.success());
        let folder = Path::new(std::str::from_utf8(&ran.stdout).unwrap());
        assert!(folder.is_absolute() && folder != std::env::temp_dir());
        assert!(!folder.exists());
    }

    #[test]
    fn a_pattern_fits_one_file_alone() {
        let pattern = |file: &str| as_pattern(Path::new(file));
        assert_eq!(pattern("a.v"), "./a.v");
        assert_eq!(pattern("/tmp/a[1].v"), "/tmp/a\\[1].v");
        assert_eq!(pattern("a*?\\.v"), "./a\\*\\?\\\\.v");
    }
}
