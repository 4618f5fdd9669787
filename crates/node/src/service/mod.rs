//! A computing party as a service: one port, many jobs, until it is asked to stop.
//!
//! The thread that calls [`Service::run`] decides: which job is made ready, whose key is no longer known, when it is over. The
//! port has a thread of its own, questions are answered in two others, and every job that is made ready gets one, which meets
//! the participants and runs the job with its own session, keys and limits. What happens to one job happens to no other.

mod attempt;
mod door;
mod ended;
mod meet;
mod places;
mod roll;
mod run;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use veil_engine::{DeviceFactory, Kept, Settings as Engine};
use veil_link::tls::{
    Fingerprint, Identity, IdentityError, Lane, Port, Reception, SetupError, Turned,
};
use veil_link::{LinkKind, shape};
use veil_sandbox::Limits;
use veil_session::PlanHash;

use crate::admin::{Admin, Pages};
use crate::file::FileError;
use crate::home::{Home, HomeError};
use crate::jobs::{Jobs, State};
use crate::log::Event;
use crate::members::Members;
use crate::metrics::Metrics;
use crate::names::Role;
use crate::notify::{self, notify};
use crate::planner::{Asked, Planner};
use crate::settings::Admission;
use crate::usage::Usage;

/// How often files of the home are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// How long jobs that were told to stop have for that: an abort is on its way in no time, and a thread looks every 50 ms.
const LAST: Duration = Duration::from_secs(5);

/// Certificates carry a date that nobody checks; fresh ones keep monitoring quiet.
const RENEW: Duration = Duration::from_secs(24 * 3600);

/// Choices for one process, over what the home's settings say.
#[derive(Clone, Default)]
pub struct Options {
    /// Where it listens.
    pub listen: Option<SocketAddr>,
    /// Where health and metrics are served.
    pub admin: Option<SocketAddr>,
    /// How long running jobs have when it is asked to stop.
    pub grace: Option<Duration>,
    /// How long others have to turn up.
    pub wait: Option<Duration>,
    /// Without any progress for so long, a run is given up.
    pub timeout: Option<Duration>,
    /// What carries the bytes of jobs.
    pub link: LinkKind,
    /// The network to imitate.
    pub net: Option<shape::Profile>,
    /// Approves every job of a member without asking anybody.
    pub yes: bool,
    /// The program that plans proposals, started as `PROGRAM inner plan`, where it calls [`inner`](crate::planner::inner); this one, if
    /// nothing is said.
    pub planner: Option<PathBuf>,
}

/// A service cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Its home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// One of its files cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its port cannot be had.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Its certificate cannot be renewed.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Owners and recipients have no service.
    #[error(
        "`{name}` is an {role}: only a party serves; an owner or recipient takes part with `veil party JOB`"
    )]
    NoParty {
        /// Its name.
        name: String,
        /// What it is.
        role: Role,
    },
    /// It does not know where to listen.
    #[error("no address to listen on: set `listen` in {}, or give `--listen 0.0.0.0:7000`", .0.display())]
    NoListen(PathBuf),
    /// The page for health and metrics cannot be served.
    #[error("cannot serve health and metrics on {address}: {source}")]
    Admin {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// How a service ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Jobs that were given up because the grace was over.
    pub given_up: usize,
}

/// What the threads of a service share.
struct Desk {
    home: Home,
    options: Options,
    jobs: Jobs,
    places: places::Places,
    planner: Planner,
    usage: Usage,
    /// What was not said of each member's proposals.
    unsaid: Mutex<BTreeMap<String, door::Unsaid>>,
    metrics: Arc<Metrics>,
    rolls: roll::Rolls,
    device: DeviceFactory,
    kept: Arc<Kept>,
    port: OnceLock<Arc<Port>>,
    events: SyncSender<News>,
    stopping: AtomicBool,
}

/// What the deciding thread hears of.
enum News {
    /// A member proposed a job, which is allowed or waits to be.
    Asked(PlanHash),
    /// The holder of a key came for a plan.
    Knock(Fingerprint, PlanHash),
    /// A job's thread is over.
    Over,
}

/// The service of a party, bound to its port.
pub struct Service {
    desk: Arc<Desk>,
    news: Receiver<News>,
    admin: Option<Admin>,
    threads: Vec<JoinHandle<()>>,
    /// When the certificate was made, for which key.
    renewed: (Instant, Fingerprint),
    /// The members as they were when this thread last looked. Other threads may read them again before it does.
    members: Arc<Members>,
    /// Why the home could not be read again, when this thread last looked.
    unread: String,
}

impl Service {
    /// Binds the port of a party's home. Jobs are taken when [`Service::run`] is called.
    pub fn start(
        home: Home,
        options: Options,
        device: DeviceFactory,
    ) -> Result<Self, ServiceError> {
        let settings = home.settings();
        if settings.role != Role::Party {
            return Err(ServiceError::NoParty {
                name: settings.name.clone(),
                role: settings.role,
            });
        }
        let listen = options.listen.or(settings.listen);
        let listen = listen.ok_or_else(|| ServiceError::NoListen(home.path().join("veil.toml")))?;
        let admin = options.admin.or(settings.admin);
        let metrics = Arc::new(Metrics::new(device().name().to_owned()));
        let (events, news) = sync_channel(256);
        let desk = Arc::new(Desk {
            jobs: Jobs::new(Arc::clone(&metrics)),
            places: places::Places::new(settings.limits),
            planner: planner(&settings.admission, options.planner.as_deref()),
            usage: Usage::open(home.path())?,
            unsaid: Mutex::default(),
            home,
            options,
            metrics,
            rolls: roll::Rolls::default(),
            device,
            kept: Arc::default(),
            port: OnceLock::new(),
            events,
            stopping: AtomicBool::new(false),
        });
        let port = Port::bind(&desk.home.identity(), &listen.to_string(), reception(&desk))?;
        let _ = desk.port.set(Arc::new(port));
        let admin = match admin {
            None => None,
            Some(address) => {
                let pages = Arc::clone(&desk) as Arc<dyn Pages>;
                let admin = Admin::start(address, pages);
                Some(admin.map_err(|source| ServiceError::Admin { address, source })?)
            }
        };
        Ok(Service {
            news,
            admin,
            threads: Vec::new(),
            renewed: (Instant::now(), desk.home.identity().fingerprint()),
            members: desk.home.members(),
            unread: String::new(),
            desk,
        })
    }

    /// Where it is called.
    pub fn address(&self) -> SocketAddr {
        self.desk.port().address()
    }

    /// Where health and metrics are served.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Takes jobs until `stop`; then running jobs have their grace.
    pub fn run(mut self, stop: &AtomicBool) -> Ended {
        let name = self.desk.home.settings().name.clone();
        tracing::info!(%name, address = %self.address(), key = %self.desk.home.identity().fingerprint(), "serving");
        notify(notify::State::Ready);
        self.resume();
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            match self.news.recv_timeout(Duration::from_millis(100)) {
                Ok(News::Asked(plan)) => self.consider(plan),
                Ok(News::Knock(key, plan)) => self.knocked(key, plan),
                Ok(News::Over) | Err(RecvTimeoutError::Timeout) => {}
                // The desk holds a sender.
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.threads.retain(|thread| !thread.is_finished());
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.look();
            }
        }
        self.stop()
    }

    /// Goes on with the durable jobs that the last process left.
    fn resume(&mut self) {
        let desk = Arc::clone(&self.desk);
        let interrupted = desk.home.interrupted().unwrap_or_else(|error| {
            tracing::error!(%error, "nobody can say which jobs were interrupted");
            Vec::new()
        });
        for plan in interrupted {
            tracing::info!(%plan, "a durable job was interrupted here");
            let own = &desk.home.settings().name;
            if desk.recall(plan, own).is_some() {
                self.consider(plan);
            }
        }
    }

    /// Makes a job ready, if it may run.
    fn consider(&mut self, plan: PlanHash) {
        let active = self.desk.jobs.in_state(State::active);
        if active.contains(&plan) {
            return;
        }
        let desk = Arc::clone(&self.desk);
        if let Some(thread) = run::make_ready(&desk, plan) {
            self.threads.push(thread);
        }
    }

    /// A member came for a job that is not being met: makes it ready, if it knows of it and the member has a part in it.
    fn knocked(&mut self, key: Fingerprint, plan: PlanHash) {
        let members = self.desk.home.members();
        let Some(member) = members.by_fingerprint(&key) else {
            return;
        };
        let Some(plan) = self.desk.recall(plan, &member.name) else {
            return;
        };
        let jobs = &self.desk.jobs;
        if jobs.wakes(plan, &member.name) && !jobs.ended_lately(plan) {
            self.consider(plan);
        }
    }

    /// Reads again what may have changed.
    fn look(&mut self) {
        let desk = Arc::clone(&self.desk);
        let unread = desk.home.reload_if_changed().err();
        let unread = unread.map_or_else(String::new, |error| error.to_string());
        if unread != self.unread {
            // Said once: a file that is being edited is looked at all the time.
            if !unread.is_empty() {
                let error = &unread;
                tracing::error!(%error, "the home cannot be read again: what was read before still holds");
            }
            self.unread = unread;
        }
        let identity = desk.home.identity();
        if self.renewed.1 != identity.fingerprint() || self.renewed.0.elapsed() > RENEW {
            self.renewed = (Instant::now(), identity.fingerprint());
            match renew(&identity, desk.port()) {
                Ok(()) => tracing::info!(key = %self.renewed.1, "the certificate is renewed"),
                Err(error) => tracing::error!(%error, "the certificate cannot be renewed"),
            }
        }
        desk.kept.sweep();
        // First: a job that is met meanwhile is then found by the other.
        desk.jobs.meet_anew(&desk.home);
        let members = desk.home.members();
        if *members != *self.members {
            self.members = members;
            self.members_changed();
        }
        // Somebody may have approved what waits.
        for plan in desk.jobs.in_state(|state| state == State::Pending) {
            self.consider(plan);
        }
    }

    fn members_changed(&self) {
        let members = &self.members;
        let mine = self.desk.home.identity().fingerprint();
        let gone = |key: &Fingerprint| *key != mine && members.by_fingerprint(key).is_none();
        tracing::info!(members = members.iter().count(), "members were read again");
        for member in members.all() {
            let keys = member.former.iter().map(|former| former.fingerprint);
            for key in keys.chain([member.fingerprint]).filter(|key| gone(key)) {
                self.desk.port().drop_key(&key);
            }
        }
        let unknown = |key: &[u8; 32]| gone(&Fingerprint::from_bytes(*key));
        self.desk.kept.forget(unknown);
        let why = "a participant's key was revoked or replaced while the job was under way";
        let stopped = self
            .desk
            .jobs
            .rekey(|entry| entry.is_met() && entry.keys.iter().any(gone), why);
        if stopped > 0 {
            tracing::warn!(jobs = stopped, "{why}");
        }
    }

    /// Takes no more jobs, and gives those that run some time.
    fn stop(mut self) -> Ended {
        let desk = Arc::clone(&self.desk);
        notify(notify::State::Stopping);
        desk.stopping.store(true, Ordering::Relaxed);
        let grace = desk
            .options
            .grace
            .unwrap_or(desk.home.settings().timeouts.grace);
        desk.jobs.stop(
            |entry| entry.status.state != State::Running,
            "the service is stopping",
        );
        let running = desk.jobs.in_state(State::active).len();
        tracing::info!(
            running,
            seconds = grace.as_secs(),
            "stopping: running jobs have some time to end"
        );
        self.join(grace);
        let given_up = desk.jobs.stop(
            |_| true,
            "the service is stopping, and the time for running jobs is over",
        );
        if given_up > 0 {
            tracing::warn!(jobs = given_up, "jobs are given up");
            self.join(LAST);
        }
        tracing::info!("stopped");
        Ended { given_up }
    }

    fn join(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        while Instant::now() < until && self.threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The planner of a service. How its processes are confined is said: without, nobody's proposals are taken.
fn planner(admission: &Admission, program: Option<&Path>) -> Planner {
    let limits = Limits {
        memory: admission.planning_mib << 20,
        cpu: Duration::from_secs(admission.planning_seconds),
        wall: Duration::from_secs(admission.planning_seconds * 3 / 2),
        ..Limits::default()
    };
    let asked = Asked {
        require: admission.sandbox,
        limits,
    };
    // The program that runs, also when another one has taken its place on the disk.
    let program = program.unwrap_or(Path::new("/proc/self/exe"));
    let planner = Planner::new(program.into(), asked, admission.planners as usize);
    match planner.confinement() {
        Ok(by) => tracing::info!(by, "planning is confined"),
        Err(why) => tracing::error!(why, "proposals of others are refused"),
    }
    planner
}

fn renew(identity: &Identity, port: &Port) -> Result<(), ServiceError> {
    Ok(port.renew(&identity.renewed()?)?)
}

fn reception(desk: &Arc<Desk>) -> Reception {
    let [admits, answers, lanes, knocks] = [(); 4].map(|()| Arc::downgrade(desk));
    Reception::new(Arc::new(move |key| {
        admits
            .upgrade()
            .map_or(veil_link::tls::Admission::Stranger, |desk| desk.admit(key))
    }))
    .with_handler(Arc::new(move |caller, request| {
        answers
            .upgrade()
            .map_or_else(Vec::new, |desk| desk.answer(caller, request))
    }))
    .with_lanes(Arc::new(move |caller, request| {
        lanes
            .upgrade()
            .map_or(Lane::Usual, |desk| desk.lane(caller, request))
    }))
    .with_knock(Arc::new(move |key, plan| {
        if let Some(desk) = knocks.upgrade() {
            // Whoever is not heard now knocks again.
            let _ = desk.events.try_send(News::Knock(key, plan));
        }
    }))
}

impl Desk {
    fn port(&self) -> &Arc<Port> {
        self.port.get().expect("set before anything uses it")
    }

    /// How long others have to turn up.
    fn wait(&self) -> Duration {
        self.options
            .wait
            .unwrap_or(self.home.settings().timeouts.meet)
    }

    fn engine(&self) -> Engine {
        let stall = self.home.settings().timeouts.stall;
        Engine {
            timeout: self.options.timeout.unwrap_or(stall),
            device: Arc::clone(&self.device),
            trace: Some(Arc::clone(&self.metrics) as Arc<dyn veil_engine::Recorder>),
            kept: Some(Arc::clone(&self.kept)),
            ..Engine::default()
        }
    }

    /// Writes into the home's log. A log that cannot be written makes the service not ready, and is said.
    fn record(&self, event: Event) {
        if let Err(error) = self.home.log().append(event) {
            tracing::error!(%error, "the log cannot be written");
        }
    }
}

impl Pages for Desk {
    fn ready(&self) -> Result<(), String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err("it is stopping".into());
        }
        self.planner.confinement().map_err(str::to_owned)?;
        let log = self.home.log().path();
        let opened = std::fs::OpenOptions::new().append(true).open(&log);
        opened
            .map(|_| ())
            .map_err(|error| format!("{}: {error}", log.display()))
    }

    fn metrics(&self) -> String {
        let turned = self
            .port
            .get()
            .map_or(Turned::default(), |port| port.turned());
        self.metrics.text(turned)
    }
}
