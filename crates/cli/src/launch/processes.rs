//! Every participant a process of its own, over TLS on loopback, with keys that live as long as the run.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use veil_job::Delivery;
use veil_node::stages::StageStore;
use veil_node::{Home, Role, Settings};
use veil_program::Job;
use veil_protocol::Plan;
use veil_runtime::{Passes, Stage};
use veil_session::Peer;

use crate::failure::{self, Code, Failure};
use crate::launch::Outcome;
use crate::launch::stores;
use crate::launch::threads::Site;
use crate::output::Folders;
use crate::prepare::{self, JobArgs};
use crate::progress::{Meter, Snapshot};
use crate::trace::gather::Gathering;

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
                self.ended = Some(Err(Failure::new(failure::code_of(code), message).help(help)));
            }
        }
    }
}

/// Runs the job.
pub(crate) fn run(
    job: &Job,
    plan: &Passes,
    args: &JobArgs,
    site: &Site<'_>,
    stores: &Path,
    verbose: bool,
) -> Result<Outcome, Failure> {
    if job.spec().security.delivery == Delivery::Guaranteed {
        let message = "the processes of one command answer only each other, and end together: output is guaranteed by parties that serve";
        return Err(Failure::new(Code::Usage, message).help(
            "`veil serve` runs a party; leave out --processes, or write `--delivery abort`, to try the job here",
        ));
    }
    let kept = prepare_stores(job, plan, stores)?;
    if kept == Some(true) {
        eprintln!(
            "the inputs are kept from a run that was interrupted: their owners are not asked again"
        );
    } else {
        // Whatever is wrong with the data is found here, where it is said best.
        for peer in veil_engine::participants(plan) {
            prepare::sources(job, peer)?;
        }
        stores::supplies(stores, job)?;
    }
    let folder = tempfile::Builder::new()
        .prefix("veil-")
        .tempdir()
        .map_err(|error| other("make a private folder for keys", &error))?;
    let mut folders = Folders::new();
    let mut parts = make_homes((job, plan), args, site, folder.path(), &mut folders)?;
    for part in &mut parts {
        if kept.is_some() {
            part.arguments.push("--stores".into());
            part.arguments.push(
                std::path::absolute(stores)
                    .map_err(|e| other("find", &e))?
                    .into(),
            );
        }
    }
    if kept == Some(true) {
        let needed = |name: &String| !plan.job.owners.contains(name) || receives(plan, name);
        parts.retain(|part| plan.job.parties.contains(&part.name) || needed(&part.name));
    }
    let trace = site.inspect.trace.as_deref();
    let mut trace = trace.map(Gathering::create).transpose()?;
    if let Some(trace) = &mut trace {
        for part in &mut parts {
            let file = trace.part(folder.path());
            part.arguments.extend(["--trace".into(), file.into()]);
        }
    }
    let (words, heard) = mpsc::channel();
    let mut players = Vec::new();
    for part in parts {
        match spawn(&part, verbose) {
            Ok(mut process) => {
                listen(players.len(), &mut process, &words);
                players.push(Player {
                    name: part.name,
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
    if let Some(trace) = trace {
        trace.finish();
    }
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

/// Makes the parties' stores, if the job needs them; then, whether all of them have kept the inputs of a durable one.
fn prepare_stores(job: &Job, plan: &Passes, root: &Path) -> Result<Option<bool>, Failure> {
    if !job.needs_stores() {
        return Ok(None);
    }
    let stages = veil_node::stages::of(job, plan)?;
    let mut kept = true;
    for party in plan.parties().iter().copied() {
        let name = &job.spec().parties[party.index()];
        let stage_store = StageStore::new(job, &stages, name, |parties, party| {
            stores::open(root, parties, party)
        })?;
        let (stage, _) = stage_store.stage()?;
        kept &= stage == Stage::Compute;
    }
    Ok(Some(kept))
}

/// A participant, and the command that plays it.
struct Part {
    name: String,
    arguments: Vec<OsString>,
}

/// Makes a home for every name of the job, all members of each other.
fn make_homes(
    (job, plan): (&Job, &Plan),
    args: &JobArgs,
    site: &Site<'_>,
    folder: &Path,
    folders: &mut Folders,
) -> Result<Vec<Part>, Failure> {
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|error| other("find the current folder", &error))
    };
    let mut roles: Vec<(String, Role)> = Vec::new();
    for peer in veil_engine::participants(plan) {
        let name = veil_engine::name_of(plan, peer);
        if !roles.iter().any(|(other, _)| other == name) {
            let role = match peer {
                Peer::Party(_) => Role::Party,
                Peer::Owner(_) => Role::Owner,
                Peer::Recipient(_) => Role::Recipient,
            };
            roles.push((name.to_owned(), role));
        }
    }
    // Ports are held until all are chosen, so that they differ; another program could take one before its party does,
    // which that party then says.
    let ports = (0..plan.parties().len())
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<Vec<_>, _>>();
    let ports = ports.and_then(|ports| {
        ports
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<Vec<_>, _>>()
    });
    let ports = ports.map_err(|error| other("find free ports on loopback", &error))?;
    let mut homes = Vec::new();
    for (index, (name, role)) in roles.iter().enumerate() {
        let mut settings = Settings::new(name, *role)
            .map_err(|error| Failure::new(Code::Input, error.to_string()))?;
        if *role == Role::Party {
            settings = settings
                .listening_on(ports[index])
                .reached_at(&ports[index].to_string());
        }
        homes.push(Home::create(&folder.join(index.to_string()), &settings)?);
    }
    for home in &homes {
        for other in &homes {
            let (settings, key) = (other.settings(), other.identity().fingerprint());
            if settings.name != home.settings().name {
                home.pin(
                    &settings.name,
                    settings.role,
                    key,
                    settings.address.as_deref(),
                )?;
            }
        }
    }
    let mut parts = Vec::new();
    for (name, _) in roles {
        let home = &homes[parts.len()];
        let mut arguments: Vec<OsString> = vec!["party".into(), absolute(&args.job)?.into()];
        let mut option = |name: &str, value: OsString| arguments.extend([name.into(), value]);
        option("--home", home.path().into());
        option("--lanes", plan.lanes.to_string().into());
        option(
            "--timeout",
            site.timeout.as_secs().max(1).to_string().into(),
        );
        option("--wait", WAIT.to_string().into());
        option(
            "--out",
            absolute(&folders.of(site.out, &name, receives(plan, &name))?)?.into(),
        );
        for replaced in args.data.iter().filter(|replaced| replaced.owner == name) {
            let mut value = OsString::from(format!("{}:{}=", replaced.owner, replaced.what));
            value.push(absolute(&replaced.file)?);
            option("--data", value);
        }
        for [_, name, word] in job.words()[1].said() {
            option(name, word.into());
        }
        if let Some(mib) = site.room.memory_mib {
            option("--memory-mib", mib.to_string().into());
        }
        if let Some(folder) = &site.room.spill {
            option("--spill", absolute(folder)?.into());
        }
        if let Some(key) = &args.align_key {
            option("--align-key", absolute(key)?.into());
        }
        let device = (veil_engine::participants(plan).into_iter())
            .filter(|peer| veil_engine::name_of(plan, *peer) == name)
            .find_map(|peer| site.devices.named(plan, peer));
        if let Some(device) = device {
            option("--device", device.into());
        }
        option("--link", site.link.to_string().into());
        if let Some(net) = site.net {
            let net = if net == veil_link::shape::Profile::LAN {
                "lan"
            } else {
                "wan"
            };
            option("--net", net.into());
        }
        // The operator that runs all roles of a job has decided for all of them.
        arguments.extend(["--yes".into(), "--child".into()]);
        parts.push(Part { name, arguments });
    }
    Ok(parts)
}

/// Whether something is opened to the participant of this name.
fn receives(plan: &Plan, name: &str) -> bool {
    let own = veil_engine::participants(plan)
        .into_iter()
        .filter(|peer| veil_engine::name_of(plan, *peer) == name);
    own.into_iter().any(|peer| prepare::receives(plan, peer))
}

fn spawn(part: &Part, verbose: bool) -> std::io::Result<Child> {
    let errors = if verbose {
        Stdio::inherit()
    } else {
        Stdio::null()
    };
    Command::new(std::env::current_exe()?)
        .args(&part.arguments)
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
            // A line that is no word comes from something else that prints, and is skipped.
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
    (plan, site): (&Passes, &Site<'_>),
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
                // A participant that was told, or lost a peer, knows less than one with a reason of its own.
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
