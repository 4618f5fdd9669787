//! One participant of a deployment, in each role that it has in the job.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use veil_engine::{Binding, Progress, Settings, party};
use veil_link::tls::{self, Connected, Identity, Meeting, Port, Reception, Terms, TlsLink};
use veil_link::{Link, shape};
use veil_program::{AlignKey, Files, Job, Output, Source};
use veil_protocol::rep3::Rep3;
use veil_protocol::{Plan, Protocol};
use veil_session::{PartyId, Peer};

use crate::failure::{Code, Failure};
use crate::launch::party_file::{Neighbours, PartyFile};
use crate::launch::{Answer, Outcome, Took};
use crate::output::Folders;
use crate::prepare;
use crate::signals::Stop;

/// Label of the secret that a TLS connection gives to the key schedule.
const EXPORTER: &[u8] = b"EXPORTER-veilworks-pair-1";

/// How often a participant that waits for others looks whether it was told to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// What a participant brings, ready to connect.
struct Role {
    me: Peer,
    neighbours: Neighbours,
    source: Option<Arc<dyn Source>>,
    sink: Option<Arc<Output>>,
}

/// What all roles of a participant share.
struct Common<'a> {
    plan: &'a Arc<Plan>,
    identity: Arc<Identity>,
    listener: Option<Arc<Port>>,
    settings: Settings,
    wait: Duration,
    net: Option<shape::Profile>,
    stop: &'a Stop,
    progress: &'a (dyn Fn(Progress) + Sync),
    say: &'a (dyn Fn(&str) + Sync),
}

/// Runs what `file` says. Everything that can be checked on this machine is checked before anybody is called.
pub(crate) fn run(
    file: &PartyFile,
    net: Option<shape::Profile>,
    stop: &Stop,
    progress: &(dyn Fn(Progress) + Sync),
    say: &(dyn Fn(&str) + Sync),
) -> Result<Outcome, Failure> {
    let raw = file.raw();
    let job = load(file)?;
    let plan = prepare::plan(&job, Some(*raw.lanes.get_ref()))?;
    let roles = file.roles(&plan)?;
    let identity = Arc::new(Identity::load(&file.at(&raw.identity))?);
    let out = file.at(&raw.out);
    let mut folders = Folders::new();
    let mut ready = Vec::new();
    for &me in &roles {
        let neighbours = file.neighbours(&plan, me)?;
        let source = prepare::source(&job, me)?;
        ready.push(Role {
            me,
            neighbours,
            source,
            sink: None,
        });
    }
    let known = ready.iter().flat_map(|role| role.neighbours.pins.values());
    let reception = Reception::sole(known.copied());
    let listener = listener(file, &plan, &roles, &identity, reception)?;
    for role in &mut ready {
        role.sink = if prepare::receives(&plan, role.me) {
            Some(sink(&job, role.me, &out, &mut folders)?)
        } else {
            None
        };
    }
    if let Some(port) = &listener {
        say(&format!("listening on {}", port.address()));
    }
    say(&format!("plan {}, waiting for the others", plan.hash));
    let common = Common {
        plan: &plan,
        identity,
        listener,
        settings: Settings {
            timeout: Duration::from_secs(raw.timeout),
            ..Settings::default()
        },
        wait: Duration::from_secs(raw.wait),
        net,
        stop,
        progress,
        say,
    };
    let mut outcome = Outcome::default();
    for (role, took) in ready.iter().zip(all_roles(&common, &ready)?) {
        outcome.participants.push(took);
        if let Some(sink) = &role.sink {
            outcome
                .answers
                .push(Answer::new(&plan, role.me, Some(out.clone()), sink));
        }
    }
    folders.keep();
    Ok(outcome)
}

fn load(file: &PartyFile) -> Result<Job, Failure> {
    let raw = file.raw();
    let me = raw.me.get_ref();
    let files: Files = raw
        .data
        .iter()
        .map(|(what, path)| ((me.clone(), what.clone()), file.at(path)))
        .collect();
    let mut job = Job::load(&file.at(&raw.job), files)?;
    if let Some(key) = &raw.align_key {
        job.set_align_key(AlignKey::read(&file.at(key))?);
    }
    Ok(job)
}

fn sink(job: &Job, me: Peer, out: &Path, folders: &mut Folders) -> Result<Arc<Output>, Failure> {
    folders.make(out)?;
    prepare::sink(job, me, out)
}

/// The port of a computing party; others have none.
fn listener(
    file: &PartyFile,
    plan: &Plan,
    roles: &[Peer],
    identity: &Identity,
    reception: Reception,
) -> Result<Option<Arc<Port>>, Failure> {
    let party = roles.iter().any(|peer| peer.party().is_some());
    match (&file.raw().listen, party) {
        (Some(address), true) => {
            let port = Port::bind(identity, address.get_ref(), reception)
                .map_err(|error| Failure::setup(plan, &error))?;
            Ok(Some(Arc::new(port)))
        }
        (None, true) => Err(file.wrong(
            0..0,
            "a computing party needs `listen`, such as \"0.0.0.0:7000\"",
        )),
        (Some(address), false) => Err(file.wrong(
            address.span(),
            "only computing parties listen; remove `listen`",
        )),
        (None, false) => Ok(None),
    }
}

/// Runs every role in a thread of its own. The first failure ends the others.
fn all_roles(common: &Common<'_>, roles: &[Role]) -> Result<Vec<Took>, Failure> {
    let first = Mutex::new(None);
    let one = |role| {
        let fail = |failure| {
            first
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(failure);
            common.stop.flag().store(true, Ordering::Relaxed);
        };
        one_role(common, role).map_err(fail).ok()
    };
    let took: Vec<Option<Took>> = thread::scope(|scope| {
        let threads: Vec<_> = roles.iter().map(|role| scope.spawn(|| one(role))).collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(took.into_iter().flatten().collect()),
    }
}

fn one_role(common: &Common<'_>, role: &Role) -> Result<Took, Failure> {
    let plan = common.plan;
    let connections = meet(common, role)?;
    (common.say)(&format!("connected as {}", prepare::role(role.me)));
    let protocol: Arc<dyn Protocol> = Arc::new(Rep3::new(Arc::clone(plan), role.me));
    let bounds = veil_engine::bounds(plan, &*protocol);
    let binding = binding(common, role, &connections[0]);
    let links = connections.into_iter().map(|lane| {
        let link = TlsLink::new(lane, bounds);
        match common.net {
            Some(profile) => Box::new(shape::Shaped::new(link, profile)) as Box<dyn Link>,
            None => Box::new(link),
        }
    });
    let data = prepare::data(role.source.clone(), role.sink.as_ref());
    let (flag, progress) = (common.stop.flag(), common.progress);
    match party::run(
        plan,
        &protocol,
        &common.settings,
        (data, binding),
        links.collect(),
        flag,
        progress,
    ) {
        Ok(report) => Ok(Took::new(plan, role.me, &report)),
        Err(_) if common.stop.asked() => Err(Failure::stopped()),
        Err(abort) => Err(Failure::abort(plan, role.me, &abort)),
    }
}

/// Connects with everybody. Nothing is at stake yet: a signal ends the wait at once.
fn meet(common: &Common<'_>, role: &Role) -> Result<Vec<Vec<Connected>>, Failure> {
    let terms = Terms {
        me: role.me,
        plan: common.plan.hash,
        pins: role.neighbours.pins.clone(),
    };
    let (dial, from) = (role.neighbours.dial.clone(), role.neighbours.from.clone());
    let (identity, listener) = (Arc::clone(&common.identity), common.listener.clone());
    let (lanes, until) = (common.plan.lanes, Instant::now() + common.wait);
    let (done, met) = mpsc::channel();
    thread::spawn(move || {
        // Nobody takes the result if the run was stopped meanwhile.
        let meeting = Meeting {
            dial: &dial,
            from: &from,
            lanes,
            until,
        };
        let go = AtomicBool::new(false);
        let _ = done.send(tls::meet(
            &identity,
            &terms,
            listener.as_deref(),
            &meeting,
            &go,
        ));
    });
    loop {
        match met.recv_timeout(GLANCE) {
            Ok(connections) => {
                return connections.map_err(|error| Failure::setup(common.plan, &error));
            }
            Err(mpsc::RecvTimeoutError::Timeout) if common.stop.asked() => {
                return Err(Failure::stopped());
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(Failure::new(
                    Code::Other,
                    "connecting ended without a result; please report this as a bug",
                ));
            }
        }
    }
}

/// What TLS knows of the ends of the connections of the first lane.
fn binding(common: &Common<'_>, role: &Role, connections: &[Connected]) -> Binding {
    let fingerprint = |party: PartyId| match role.neighbours.pins.get(&Peer::Party(party)) {
        Some(pin) => *pin.as_bytes(),
        None => *common.identity.fingerprint().as_bytes(),
    };
    let exporter = |connection: &Connected| {
        (
            connection.peer(),
            connection.exporter(EXPORTER, &common.plan.hash.0).to_vec(),
        )
    };
    Binding {
        identities: PartyId::ALL.map(fingerprint),
        exporters: connections.iter().map(exporter).collect(),
    }
}
