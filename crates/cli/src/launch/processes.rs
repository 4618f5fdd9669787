//! Every participant a process of its own, over TLS on loopback, with keys that live as long as the run.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use toml::Spanned;
use veil_link::tls::Identity;
use veil_program::Job;
use veil_protocol::Plan;

use crate::failure::{Code, Failure};
use crate::launch::Outcome;
use crate::launch::party_file::{Raw, RawPeer};
use crate::launch::threads::Site;
use crate::output::Folders;
use crate::prepare::{self, JobArgs};
use crate::progress::{Meter, Snapshot};

/// How long processes of this machine have to find each other.
const WAIT: u64 = 60;
/// How long a process that was told to stop has for that.
const GRACE: Duration = Duration::from_secs(10);

/// What a child says on its standard output, one JSON object per line.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Word {
    /// How far it is.
    Progress(Snapshot),
    /// The run succeeded.
    Done(Outcome),
    /// The run failed.
    Failed {
        code: u8,
        message: String,
        help: String,
    },
}

/// A child, and whom it plays.
struct Player {
    name: String,
    process: Child,
    status: Option<ExitStatus>,
    ended: Option<Result<Outcome, Failure>>,
}

impl Player {
    fn hear(&mut self, word: Word, meter: &Meter) {
        match word {
            Word::Progress(snapshot) => meter.show(&snapshot),
            Word::Done(outcome) => self.ended = Some(Ok(outcome)),
            Word::Failed {
                code,
                message,
                help,
            } => {
                self.ended = Some(Err(
                    Failure::new(Code::from_number(code), message).help(help)
                ));
            }
        }
    }
}

/// Runs the job.
pub(crate) fn run(
    job: &Job,
    plan: &Plan,
    args: &JobArgs,
    site: &Site<'_>,
    verbose: bool,
) -> Result<Outcome, Failure> {
    // Whatever is wrong with the data is found here, where it is said best.
    for peer in veil_engine::participants(plan) {
        prepare::source(job, peer)?;
    }
    let folder = tempfile::Builder::new()
        .prefix("veil-")
        .tempdir()
        .map_err(|error| other("make a private folder for keys", &error))?;
    let mut folders = Folders::new();
    let files = write_party_files(plan, args, site, folder.path(), &mut folders)?;
    let (words, heard) = mpsc::channel();
    let mut players = Vec::new();
    for (name, file) in files {
        match spawn(&file, site, verbose) {
            Ok(mut process) => {
                listen(players.len(), &mut process, &words);
                players.push(Player {
                    name,
                    process,
                    status: None,
                    ended: None,
                });
            }
            Err(error) => {
                stop(&mut players);
                return Err(other("start a process", &error));
            }
        }
    }
    drop(words);
    let outcome = watch(&mut players, &heard, (plan, site));
    stop(&mut players);
    let mut outcome = outcome?;
    folders.keep();
    if !site.kept {
        outcome
            .answers
            .iter_mut()
            .for_each(|answer| answer.folder = None);
    }
    Ok(outcome)
}

fn other(doing: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Other, format!("cannot {doing}: {error}"))
}

/// Makes a key and a party file for every name of the job.
fn write_party_files(
    plan: &Plan,
    args: &JobArgs,
    site: &Site<'_>,
    folder: &Path,
    folders: &mut Folders,
) -> Result<Vec<(String, PathBuf)>, Failure> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| other("find the current folder", &error))
    };
    let mut names: Vec<String> = Vec::new();
    for peer in veil_engine::participants(plan) {
        let name = veil_engine::name_of(plan, peer);
        if !names.iter().any(|other| other == name) {
            names.push(name.to_owned());
        }
    }
    let mut prints = Vec::new();
    for index in 0..names.len() {
        let identity = Identity::generate()?;
        identity.save(&folder.join(format!("{index}.key")))?;
        prints.push(identity.fingerprint().to_string());
    }
    // Ports are held until all are chosen, so that they differ; another program could take one before its party does,
    // which that party then says.
    let ports = (0..3)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<Vec<_>, _>>();
    let ports = ports.and_then(|ports| {
        ports
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<Vec<_>, _>>()
    });
    let ports: Vec<String> = ports
        .map_err(|error| other("find free ports on loopback", &error))?
        .iter()
        .map(ToString::to_string)
        .collect();
    let address = |name: &str| {
        plan.job
            .parties
            .iter()
            .position(|party| party == name)
            .map(|index| ports[index].clone())
    };
    let plain = |text: &str| Spanned::new(0..0, text.to_owned());
    let mut files = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let peers = names
            .iter()
            .zip(&prints)
            .filter(|(other, _)| *other != name);
        let peer = peers.map(|(other, print)| RawPeer {
            name: plain(other),
            address: address(other),
            fingerprint: plain(print),
        });
        let mut data = BTreeMap::new();
        for replaced in args.data.iter().filter(|replaced| replaced.owner == *name) {
            data.insert(replaced.what.clone(), absolute(&replaced.file)?);
        }
        let raw = Raw {
            job: absolute(&args.job)?,
            me: plain(name),
            identity: folder.join(format!("{index}.key")),
            listen: address(name).map(|address| plain(&address)),
            lanes: Spanned::new(0..0, plan.lanes),
            timeout: site.timeout.as_secs(),
            wait: WAIT,
            out: absolute(&folders.of(site.out, name, receives(plan, name))?)?,
            data,
            align_key: match &args.align_key {
                Some(file) => Some(absolute(file)?),
                None => None,
            },
            peer: peer.collect(),
        };
        let file = folder.join(format!("{index}.toml"));
        let text = toml::to_string(&raw).map_err(|error| other("write a party file", &error))?;
        std::fs::write(&file, text).map_err(|error| other("write a party file", &error))?;
        files.push((name.clone(), file));
    }
    Ok(files)
}

/// Whether something is opened to the participant of this name.
fn receives(plan: &Plan, name: &str) -> bool {
    let own = veil_engine::participants(plan)
        .into_iter()
        .filter(|peer| veil_engine::name_of(plan, *peer) == name);
    own.into_iter().any(|peer| prepare::receives(plan, peer))
}

fn spawn(file: &Path, site: &Site<'_>, verbose: bool) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("party").arg(file).arg("--child");
    if let Some(net) = site.net {
        command
            .arg("--net")
            .arg(if net == veil_link::shape::Profile::LAN {
                "lan"
            } else {
                "wan"
            });
    }
    let errors = if verbose {
        Stdio::inherit()
    } else {
        Stdio::null()
    };
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
}

/// Hears what a child says, in a thread that ends with the child.
fn listen(index: usize, process: &mut Child, words: &Sender<(usize, Word)>) {
    let Some(output) = process.stdout.take() else {
        return;
    };
    let words = words.clone();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // A line that is no word comes from something else that prints, and matters to nobody.
            if let Ok(word) = serde_json::from_str(&line)
                && words.send((index, word)).is_err()
            {
                return;
            }
        }
    });
}

/// Waits for all children, and joins what they say.
fn watch(
    players: &mut [Player],
    heard: &Receiver<(usize, Word)>,
    (plan, site): (&Plan, &Site<'_>),
) -> Result<Outcome, Failure> {
    let meter = site.meter(plan);
    loop {
        match heard.recv_timeout(Duration::from_millis(50)) {
            Ok((index, word)) => players[index].hear(word, &meter),
            Err(RecvTimeoutError::Timeout) => {}
            // All outputs are closed: all children have ended, or are about to.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(Duration::from_millis(5)),
        }
        if site.stop.asked() {
            return Err(Failure::stopped());
        }
        for player in players.iter_mut().filter(|player| player.status.is_none()) {
            player.status = player
                .process
                .try_wait()
                .map_err(|error| other("wait for a process", &error))?;
        }
        if players.iter().all(|player| player.status.is_some()) {
            break;
        }
    }
    // What was said last may still be on its way through the threads.
    while let Ok((index, word)) = heard.recv() {
        players[index].hear(word, &meter);
    }
    drop(meter);
    join(players)
}

/// One outcome of all, or the failure that explains the others.
fn join(players: &mut [Player]) -> Result<Outcome, Failure> {
    let mut all = Outcome::default();
    let mut failures = Vec::new();
    for player in players {
        match player.ended.take() {
            Some(Ok(mut outcome)) => {
                all.answers.append(&mut outcome.answers);
                all.participants.append(&mut outcome.participants);
            }
            Some(Err(failure)) => {
                // Who was told, or lost somebody, knows less than who failed for a reason of its own.
                let told = failure.to_string().contains("gave up the run");
                failures.push((
                    if told {
                        3
                    } else if failure.code() == Code::Link {
                        2
                    } else {
                        0
                    },
                    failure,
                ));
            }
            None => {
                let status = player
                    .status
                    .map(|status| status.to_string())
                    .unwrap_or_default();
                let message = format!(
                    "the process of `{}` ended before the run did ({status})",
                    player.name
                );
                failures.push((1, Failure::new(Code::Link, message)));
            }
        }
    }
    failures.sort_by_key(|(rank, _)| *rank);
    match failures.into_iter().next() {
        Some((_, failure)) => Err(failure),
        None => Ok(all),
    }
}

/// Ends all children that still run: in order first, by force if that takes too long.
fn stop(players: &mut [Player]) {
    let running = |player: &mut Player| {
        player.status.is_none() && !matches!(player.process.try_wait(), Ok(Some(_)))
    };
    for player in players.iter_mut() {
        if running(player) {
            // A process that ended meanwhile needs no signal.
            let _ = kill_process(Pid::from_child(&player.process), Signal::TERM);
        }
    }
    let until = Instant::now() + GRACE;
    while Instant::now() < until && players.iter_mut().any(running) {
        thread::sleep(Duration::from_millis(10));
    }
    for player in players.iter_mut() {
        if running(player) {
            let _ = player.process.kill();
            let _ = player.process.wait();
        }
    }
}
