//! Services of three parties, and owners and recipients that take part: on loopback, or each in a network of its own.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use veil_node::control::{self, Reply, Request};
use veil_node::{Filing, Home, How, Member, Term, Time, plan_of};

use super::Folder;

/// One deployment at a time, of those that do more than wait: five processes are enough for a small machine.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    // Another test that failed is no reason to fail.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has not come to pass for so many seconds will not: a machine that is loaded or stands still for a while is no reason to fail. Only
/// what a test is about takes less.
pub(crate) const PATIENCE: u64 = 180;

/// So many seconds a party that is there has to say how a job is, even if it stands still for a while.
const ANSWER: u64 = 30;

/// Options of services and of participants, where a test does not wait for a time-out to expire.
pub(crate) const PATIENT: [&str; 4] = ["--wait", "180", "--timeout", "60"];

/// Where a participant runs.
#[derive(Clone, Default, Debug)]
pub(crate) struct Place {
    /// A command that becomes the one whose words follow it, so that signals arrive there; none, to run as the test does.
    pub(crate) through: Vec<String>,
}

impl Place {
    /// As the test runs.
    pub(crate) const HERE: Place = Place {
        through: Vec::new(),
    };

    /// By way of these words.
    pub(crate) fn through(words: &[&str]) -> Self {
        let through = words.iter().map(|&word| word.to_owned()).collect();
        Place { through }
    }

    /// With a folder on a disk of its own, of so many kilobytes, that begins as a copy of the folder `from`. Needs root.
    pub(crate) fn small_disk(folder: &Path, kilobytes: u32, from: Option<&Path>) -> Self {
        let folder = folder.display();
        let copy = from.map(|from| format!("cp -a {}/. {folder} &&", from.display()));
        let script = format!(
            "mount -t tmpfs -o size={kilobytes}k,mode=700 none {folder} && {} exec \"$@\"",
            copy.unwrap_or_default()
        );
        Self::through(&["unshare", "-m", "sh", "-c", &script, "sh"])
    }

    /// Whether commands can be run there; why not, on standard error.
    pub(crate) fn works(&self, test: &str) -> bool {
        let ran = self.command("true").output();
        let why = match ran {
            Ok(output) if output.status.success() => return true,
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        let how = self.through.first().map_or("", String::as_str);
        eprintln!("SKIPPED {test}: `{how}` does not work here: {}", why.trim());
        false
    }

    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        match self.through.split_first() {
            None => Command::new(program),
            Some((first, others)) => {
                let mut command = Command::new(first);
                command.args(others).arg(program);
                command
            }
        }
    }

    /// `veil` there, in this folder.
    pub(crate) fn veil(&self, folder: &Path) -> Command {
        let mut command = self.command(crate::PROGRAM);
        command.current_dir(folder);
        command
    }
}

/// A party's service.
pub(crate) struct Service {
    name: String,
    process: Child,
    said: Arc<Mutex<String>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Service {
    /// One on loopback.
    pub(crate) fn start(folder: &Path, name: &str, more: &[&str]) -> Self {
        let usual = ["--admin", "127.0.0.1:0"];
        let options = [&usual, &PATIENT[..], more].concat();
        Self::start_at(&Place::HERE, folder, name, &options)
    }

    /// One wherever it is to be, with these options and no others.
    pub(crate) fn start_at(place: &Place, folder: &Path, name: &str, options: &[&str]) -> Self {
        let mut process = place
            .veil(folder)
            .args(["serve", "--home", name, "--log", "json"])
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(process.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let reader = thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                *heard.lock().unwrap() += &(line + "\n");
            }
        });
        let service = Service {
            name: name.to_owned(),
            process,
            said,
            reader: Some(reader),
        };
        wait(name, || service.said().contains("\"serving\""));
        service
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// A page of the admin address.
    pub(crate) fn page(&self, path: &str) -> String {
        let said = self.said();
        let (_, rest) = said.split_once("health and metrics on http://").unwrap();
        let address = rest.lines().next().unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: veil\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut page = String::new();
        socket.read_to_string(&mut page).unwrap();
        page
    }

    pub(crate) fn metric(&self, name: &str) -> f64 {
        let page = self.page("/metrics");
        let line = page.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// A line of its memory, such as `VmRSS:` now or `VmHWM:` at most.
    pub(crate) fn kilobytes(&self, of: &str) -> u64 {
        let status = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with(of));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Asks it to stop: its exit code, and all that it said.
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        self.signal(Signal::TERM);
        self.ended()
    }

    /// Waits for its end: its exit code, and all that it said.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let until = Instant::now() + Duration::from_secs(PATIENCE);
        let status = loop {
            match self.process.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > until => panic!("it does not stop: {}", self.said()),
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        self.reader.take().unwrap().join().unwrap();
        (status.code(), self.said())
    }
}

impl Drop for Service {
    /// By force, as a machine that loses power. A test that fails shows what it has said.
    fn drop(&mut self) {
        // One that was stopped is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            eprintln!("{} said:\n{}", self.name, self.said());
        }
    }
}

/// Waits until something holds.
pub(crate) fn wait(what: &str, mut done: impl FnMut() -> bool) {
    wait_for(what, &mut done, |done| *done);
}

/// Waits until what is seen is as wanted, and gives it.
pub(crate) fn wait_for<T: std::fmt::Debug>(
    what: &str,
    mut look: impl FnMut() -> T,
    wanted: impl Fn(&T) -> bool,
) -> T {
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    loop {
        let seen = look();
        if wanted(&seen) {
            return seen;
        }
        assert!(Instant::now() < until, "waited in vain: {what}: {seen:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Approves a job that was proposed, as `veil approve` does.
pub(crate) fn approve(home: &Home, plan: &str) {
    let filed = home.filed(plan_of(plan).unwrap()).unwrap().unwrap();
    let filing = Filing {
        plan: filed.plan,
        stages: &[],
        name: &filed.name,
        lanes: filed.lanes,
        stocked: false,
        job: &filed.job().unwrap(),
        explained: &filed.explained().unwrap(),
        data: &[],
        align_key: None,
        files: &[],
        asked_by: filed.asked_by.as_deref(),
    };
    let term = Term {
        runs: Some(1000),
        until: None,
    };
    home.approve(&filing, How::Yes, term).unwrap();
}

/// A participant in the foreground.
pub(crate) fn take_part(folder: &Folder, job: &str, home: &str) -> Child {
    take_part_at(&Place::HERE, folder, job, home, &PATIENT[2..])
}

/// The same, wherever it is to be. Results go to `out-JOB`.
pub(crate) fn take_part_at(
    place: &Place,
    folder: &Folder,
    job: &str,
    home: &str,
    more: &[&str],
) -> Child {
    place
        .veil(folder.path())
        .args(["party", job, "--home", home, "--out", &format!("out-{job}")])
        .args(["--yes", "--wait", &PATIENCE.to_string()])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How a participant ended, and what it said; with the signal, if one ended it.
pub(crate) fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    let said = super::text(&output.stderr);
    match output.status.signal() {
        Some(signal) => (None, format!("{said}\nended by signal {signal}")),
        None => (output.status.code(), said),
    }
}

/// A participant ends well, and says this.
pub(crate) fn succeed(child: Child) -> String {
    let (code, said) = end(child);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Ends a participant by force.
pub(crate) fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// What a party says of a job.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct At {
    pub(crate) state: String,
    pub(crate) phase: String,
    pub(crate) why: String,
    pub(crate) trace: String,
    pub(crate) waits_for: Vec<String>,
    /// Payload bytes that it has taken in the run.
    pub(crate) received: u64,
}

/// How a job is at a party, as it says to `home`: to a participant of the job, or to itself; `None` if the party cannot be asked. What
/// `veil jobs` prints, without a process for every look.
pub(crate) fn at(folder: &Folder, home: &str, party: &str, plan: &str) -> Option<At> {
    let home = Home::open(&folder.at(home)).unwrap();
    let members = home.members();
    let asked = match members.by_name(party) {
        Some(member) => member.clone(),
        None => itself(&home),
    };
    let until = Instant::now() + Duration::from_secs(ANSWER);
    let reply = control::ask(&home.identity(), &asked, &Request::Jobs {}, until);
    let Ok(Reply::Jobs { jobs }) = reply else {
        return None;
    };
    let job = jobs.into_iter().find(|job| job.plan == plan)?;
    Some(At {
        state: job.state.name().to_owned(),
        phase: job.phase.unwrap_or_default(),
        why: job.why.unwrap_or_default(),
        trace: job.trace.unwrap_or_default(),
        waits_for: job.waits_for,
        received: job.received,
    })
}

/// A party's own service, as if it were a member.
fn itself(home: &Home) -> Member {
    let settings = home.settings();
    Member {
        name: settings.name.clone(),
        role: settings.role,
        fingerprint: home.identity().fingerprint(),
        address: settings.listen.map(|listen| listen.to_string()),
        since: Time::now(),
        former: Vec::new(),
        rotations: 0,
        revoked: None,
    }
}

/// The states of a job at the three parties.
pub(crate) fn states(folder: &Folder, plan: &str) -> Vec<String> {
    let state = |party| at(folder, "eve", party, plan);
    let state = |party| state(party).map_or_else(|| "none".into(), |at| at.state);
    ["a", "b", "c"].map(state).into()
}

/// Proposes a job: its plan hash, and what each party said.
pub(crate) fn submit(folder: &Folder, job: &str) -> (String, Vec<String>) {
    submit_at(&Place::HERE, folder, job)
}

/// The same, from where `eve` is.
pub(crate) fn submit_at(place: &Place, folder: &Folder, job: &str) -> (String, Vec<String>) {
    let output = place
        .veil(folder.path())
        .args(["submit", job, "--home", "eve", "--json"])
        .args(["--wait", &PATIENCE.to_string()])
        .output()
        .unwrap();
    let said = super::text(&output.stderr);
    assert!(output.status.success(), "veil submit {job}: {said}");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = all.as_array().unwrap();
    let said = all
        .iter()
        .map(|said| said["reply"].as_str().unwrap().to_owned());
    (all[0]["plan"].as_str().unwrap().to_owned(), said.collect())
}

/// What the job of many rounds opens, by another implementation.
pub(crate) fn expected() -> Vec<u8> {
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    let cipher = aes::Aes128::new(&Array::from(std::array::from_fn::<u8, 16, _>(|i| i as u8)));
    let block = |counter: u128| {
        let mut block = Array::from(counter.to_be_bytes());
        cipher.encrypt_block(&mut block);
        block
    };
    (0..4096).flat_map(block).collect()
}
