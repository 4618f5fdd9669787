//! A computing party as a service: one port, many jobs, until it is asked to stop.
//!
//! The thread that calls [`Service::run`] decides: which job is made ready, whose key is no longer known, when it is over. The port has a
//! thread of its own, questions are answered in two others, and every job that is made ready gets one, which meets the participants and
//! runs the job with its own session, keys and limits. Jobs do not affect each other.

mod attempt;
mod attendance;
mod ended;
mod handler;
mod held;
mod meet;
mod ready;
mod refill;
mod run;
mod said;
mod slots;
mod strangers;
mod taking;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use veil_device::Fault;
use veil_engine::{DeviceFactory, OtCache, Room, Settings as Engine};
use veil_link::tls::{
    Fingerprint, Identity, IdentityError, Lane, Port, Reception, SetupError, Turned,
};
use veil_link::{LinkKind, shape};
use veil_runtime::Passes;
use veil_sandbox::Limits;
use veil_session::{Peer, PlanHash};
use veil_store::{SpillFile, StoreError};

use crate::admin::{Admin, Pages};
use crate::approvals::plan_of;
use crate::control::Computes;
use crate::file::FileError;
use crate::home::{Home, HomeError};
use crate::jobs::{Jobs, State, Why};
use crate::log::Event;
use crate::marks::MarkFile;
use crate::members::Members;
use crate::metrics::Metrics;
use crate::names::Role;
use crate::notify::{self, notify};
use crate::planner::{Asked, Known, Planner};
use crate::settings::Admission;
use crate::usage::Usage;

/// How often files of the home are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Filed jobs that are looked for at once.
const RECALLS: usize = 4;

/// How long jobs that were told to stop have for that: an abort is on its way in no time, and a thread looks every 50 ms.
const LAST: Duration = Duration::from_secs(5);

/// The file of the home that says which memory has last used transfers of it.
const MARKS: &str = "ot.marks";

/// Certificates carry a date that no peer checks; fresh ones keep monitoring quiet.
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
    /// The kind of link that carries the bytes of jobs.
    pub link: LinkKind,
    /// The network to imitate.
    pub net: Option<shape::Profile>,
    /// Approves every job of a member without asking a person.
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
    /// Its device does not start.
    #[error(transparent)]
    Device(#[from] Fault),
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
        /// Its role.
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
struct ServiceState {
    home: Home,
    options: Options,
    jobs: Jobs,
    slots: slots::Slots,
    planner: Planner,
    known: Known,
    usage: Usage,
    /// Log lines about each member's proposals that were held back.
    unsaid: Mutex<BTreeMap<String, handler::Unsaid>>,
    /// Plans that are looked for among the filed jobs.
    recalling: Mutex<BTreeSet<PlanHash>>,
    metrics: Arc<Metrics>,
    attendances: attendance::Attendances,
    strangers: strangers::Strangers,
    refills: refill::Refills,
    device: DeviceFactory,
    /// What members are told of it.
    computes: Computes,
    /// The chunks in flight that it wants.
    window: usize,
    /// Transfers for the next runs; nothing where they are not to be kept.
    ot_cache: Option<Arc<OtCache>>,
    port: OnceLock<Arc<Port>>,
    events: SyncSender<News>,
    stopping: AtomicBool,
}

/// What the deciding thread hears of.
enum News {
    /// A member proposed a job, which is allowed or waits to be.
    Asked(PlanHash),
    /// The holder of a key came for a plan.
    ConnectRequest(Fingerprint, PlanHash),
    /// A party asked for stock, and this one has agreed.
    Refill(Box<refill::Agreed>),
    /// A job's thread is over.
    Over,
}

/// The service of a party, bound to its port.
pub struct Service {
    shared: Arc<ServiceState>,
    news: Receiver<News>,
    admin: Option<Admin>,
    threads: Vec<JoinHandle<()>>,
    /// When the certificate was made, for which key.
    renewed: (Instant, Fingerprint),
    /// The members as they were when this thread last looked. Other threads may read them again before it does.
    members: Arc<Members>,
    /// Why the home could not be read again, when this thread last looked.
    unread: String,
    /// The obstacles to jobs at the last look.
    unready: ready::Said,
}

impl Service {
    /// Binds the port of a party's home. Jobs are taken when [`Service::run`] is called.
    ///
    /// # Errors
    /// [`ServiceError::NoParty`] if the home is an owner's or a recipient's, [`ServiceError::NoListen`] if neither options nor settings say
    /// where to listen, [`ServiceError::Device`] if the device does not start, [`ServiceError::File`] if the record of used quotas cannot
    /// be read, [`ServiceError::Setup`] and [`ServiceError::Admin`] if a port cannot be bound.
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
        let own = device()?;
        let (computes, window) = (Computes::of(&*own), own.window());
        drop(own);
        let metrics = Arc::new(Metrics::new(computes.device.clone()));
        let ot_cache = ot_cache(&home, &metrics);
        let (events, news) = sync_channel(256);
        let shared = Arc::new(ServiceState {
            jobs: Jobs::new(Arc::clone(&metrics)),
            slots: slots::Slots::new(settings.limits),
            known: Known::default(),
            planner: planner(&settings.admission, options.planner.as_deref()),
            usage: Usage::open(home.path())?,
            unsaid: Mutex::default(),
            recalling: Mutex::default(),
            home,
            options,
            metrics,
            attendances: attendance::Attendances::default(),
            strangers: strangers::Strangers::default(),
            refills: refill::Refills::default(),
            device,
            computes,
            window,
            ot_cache,
            port: OnceLock::new(),
            events,
            stopping: AtomicBool::new(false),
        });
        // What is made from here on is counted, whichever party asks first.
        refill::count(&shared);
        let port = Port::bind(
            &shared.home.identity(),
            &listen.to_string(),
            reception(&shared),
        )?;
        let _ = shared.port.set(Arc::new(port));
        let admin = match admin {
            None => None,
            Some(address) => {
                let pages = Arc::clone(&shared) as Arc<dyn Pages>;
                let admin = Admin::start(address, pages);
                Some(admin.map_err(|source| ServiceError::Admin { address, source })?)
            }
        };
        Ok(Service {
            news,
            admin,
            threads: Vec::new(),
            renewed: (Instant::now(), shared.home.identity().fingerprint()),
            members: shared.home.members(),
            unread: String::new(),
            unready: ready::Said::default(),
            shared,
        })
    }

    /// Where it is called.
    pub fn address(&self) -> SocketAddr {
        self.shared.port().address()
    }

    /// Where health and metrics are served.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Takes jobs until `stop`; then running jobs have their grace.
    pub fn run(mut self, stop: &AtomicBool) -> Ended {
        let name = self.shared.home.settings().name.clone();
        tracing::info!(%name, address = %self.address(), key = %self.shared.home.identity().fingerprint(), "serving");
        notify(notify::State::Ready);
        self.end_what_was_killed();
        self.resume();
        let mut looked = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            match self.news.recv_timeout(Duration::from_millis(100)) {
                Ok(News::Asked(plan)) => self.consider(plan),
                Ok(News::ConnectRequest(key, plan)) => self.connect_requested(key, plan),
                Ok(News::Refill(agreed)) => {
                    self.threads.extend(refill::begin(&self.shared, *agreed));
                }
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

    /// Ends in the log the runs that the last process left in their middle, and says so of their jobs.
    fn end_what_was_killed(&self) {
        let shared = &self.shared;
        let begun = shared.home.log().begun();
        let begun = begun.unwrap_or_else(|error| {
            tracing::error!(%error, "it cannot be read which runs were interrupted");
            Vec::new()
        });
        for [digits, job, stage] in begun {
            tracing::warn!(plan = %digits, name = %job, "a run was in its middle when the last process of this service ended");
            shared.record(Event::RunEnded {
                plan: digits.clone(),
                job,
                trace: None,
                stage,
                opened: true,
                cause: "killed".into(),
                seconds: 0,
            });
            let own = &shared.home.settings().name;
            let known = plan_of(&digits).and_then(|plan| shared.recall(plan, own));
            if let Some(plan) = known {
                let why = "this party's service ended in the middle of the run: propose the job again, or come for it";
                shared
                    .jobs
                    .set(plan, State::Interrupted, Some(Why::all(why)));
            }
        }
    }

    /// Goes on with the durable jobs that the last process left.
    fn resume(&mut self) {
        let shared = Arc::clone(&self.shared);
        let interrupted = shared.home.interrupted().unwrap_or_else(|error| {
            tracing::error!(%error, "it cannot be read which jobs were interrupted");
            Vec::new()
        });
        for plan in interrupted {
            tracing::info!(%plan, "a durable job was interrupted here");
            let own = &shared.home.settings().name;
            if shared.recall(plan, own).is_some() {
                self.consider(plan);
            }
        }
    }

    /// Makes a job ready, if it may run.
    fn consider(&mut self, plan: PlanHash) {
        let active = self.shared.jobs.in_state(State::active);
        if active.contains(&plan) {
            return;
        }
        let shared = Arc::clone(&self.shared);
        if let Some(thread) = run::make_ready(&shared, plan) {
            self.threads.push(thread);
        }
    }

    /// A member came for a job that is not being met: makes it ready, if it knows of it and the member has a part in it.
    fn connect_requested(&mut self, key: Fingerprint, plan: PlanHash) {
        let members = self.shared.home.members();
        let Some(member) = members.by_fingerprint(&key) else {
            return;
        };
        if self.shared.jobs.find(plan).is_none() {
            self.recall_beside(key, plan, &member.name);
            return;
        }
        let Some(plan) = self.shared.recall(plan, &member.name) else {
            return;
        };
        let jobs = &self.shared.jobs;
        if jobs.wakes(plan, &member.name) && !jobs.ended_lately(plan) {
            self.consider(plan);
        }
    }

    /// Looks for a job among those that are filed, and plans it, in a thread of its own: that may take as long as planning may. A caller that came
    /// for it is heard again then.
    fn recall_beside(&mut self, key: Fingerprint, plan: PlanHash, by: &str) {
        let shared = Arc::clone(&self.shared);
        let recalling = || {
            let recalling = &shared.recalling;
            recalling.lock().unwrap_or_else(PoisonError::into_inner)
        };
        if recalling().len() >= RECALLS || !recalling().insert(plan) {
            return;
        }
        let (beside, by) = (Arc::clone(&shared), by.to_owned());
        let thread = thread::Builder::new()
            .name(format!("recall {plan}"))
            .spawn(move || {
                let found = beside.recall(plan, &by).is_some();
                let mut recalling = beside
                    .recalling
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                recalling.remove(&plan);
                drop(recalling);
                if found {
                    // A caller that is not heard now sends its connect request again.
                    let _ = beside.events.try_send(News::ConnectRequest(key, plan));
                }
            });
        match thread {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                recalling().remove(&plan);
                tracing::error!(%error, "no thread can be started");
            }
        }
    }

    /// Reads again what may have changed.
    fn look(&mut self) {
        let shared = Arc::clone(&self.shared);
        let unread = shared.home.reload_if_changed().err();
        let unread = unread.map_or_else(String::new, |error| error.to_string());
        if unread != self.unread {
            // Said once: a file that is being edited is looked at all the time.
            if !unread.is_empty() {
                let error = &unread;
                tracing::error!(%error, "the home cannot be read again: what was read before still holds");
            }
            self.unread = unread;
        }
        if self.unready.is_due() {
            self.unready.say(shared.unready());
        }
        let identity = shared.home.identity();
        if self.renewed.1 != identity.fingerprint() || self.renewed.0.elapsed() > RENEW {
            self.renewed = (Instant::now(), identity.fingerprint());
            match renew(&identity, shared.port()) {
                Ok(()) => tracing::info!(key = %self.renewed.1, "the certificate is renewed"),
                Err(error) => tracing::error!(%error, "the certificate cannot be renewed"),
            }
        }
        if let Some(cache) = &shared.ot_cache {
            cache.sweep();
        }
        // First: a job that is met meanwhile is then found by the other.
        shared.jobs.meet_anew(&shared.home);
        let members = shared.home.members();
        if *members != *self.members {
            self.members = members;
            self.members_changed();
        }
        self.threads.extend(refill::look(&shared));
        // The operator may have approved what waits.
        for plan in shared.jobs.in_state(|state| state == State::Pending) {
            self.consider(plan);
        }
    }

    fn members_changed(&self) {
        let members = &self.members;
        let mine = self.shared.home.identity().fingerprint();
        let gone = |key: &Fingerprint| *key != mine && members.by_fingerprint(key).is_none();
        tracing::info!(members = members.iter().count(), "members were read again");
        for member in members.all() {
            let keys = member.former.iter().map(|former| former.fingerprint);
            for key in keys.chain([member.fingerprint]).filter(|key| gone(key)) {
                self.shared.port().drop_key(&key);
            }
        }
        let unknown = |key: &[u8; 32]| gone(&Fingerprint::from_bytes(*key));
        if let Some(cache) = &self.shared.ot_cache {
            cache.forget(unknown);
        }
        let why = "a participant's key was revoked or replaced while the job was under way";
        let stopped = self
            .shared
            .jobs
            .rekey(|entry| entry.is_met() && entry.keys.iter().any(gone), why);
        if stopped > 0 {
            tracing::warn!(jobs = stopped, "{why}");
        }
    }

    /// Takes no more jobs, and gives those that run some time.
    fn stop(mut self) -> Ended {
        let shared = Arc::clone(&self.shared);
        notify(notify::State::Stopping);
        shared.stopping.store(true, Ordering::Relaxed);
        shared.refills.stop();
        let grace = shared
            .options
            .grace
            .unwrap_or(shared.home.settings().timeouts.grace);
        shared.jobs.stop(
            |entry| entry.status.state != State::Running,
            "the service is stopping",
        );
        let running = shared.jobs.in_state(State::active).len();
        tracing::info!(
            running,
            seconds = grace.as_secs(),
            "stopping: running jobs have some time to end"
        );
        self.join(grace);
        let given_up = shared.jobs.stop(
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

/// The planner of a service. How its processes are confined is said: without, no proposals are taken.
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

fn reception(shared: &Arc<ServiceState>) -> Reception {
    let [admits, answers, lanes, requests, notices] = [(); 5].map(|()| Arc::downgrade(shared));
    Reception::new(Arc::new(move |key| {
        admits
            .upgrade()
            .map_or(veil_link::tls::Admission::Stranger, |shared| {
                shared.admit(key)
            })
    }))
    .with_handler(Arc::new(move |caller, request| {
        answers
            .upgrade()
            .map_or_else(Vec::new, |shared| shared.answer(caller, request))
    }))
    .with_lanes(Arc::new(move |caller, request| {
        lanes
            .upgrade()
            .map_or(Lane::Usual, |shared| shared.lane(caller, request))
    }))
    .on_connect_request(Arc::new(move |key, plan| {
        if let Some(shared) = requests.upgrade() {
            // A caller that is not heard now sends its connect request again.
            let _ = shared.events.try_send(News::ConnectRequest(key, plan));
        }
    }))
    .with_noticed(Arc::new(move |key, _| {
        if let Some(shared) = notices.upgrade() {
            shared.strangers.notice(key, &shared.home.members());
        }
    }))
}

/// Where transfers are kept, if they are to be: not without a file that says what was used.
fn ot_cache(home: &Home, metrics: &Arc<Metrics>) -> Option<Arc<OtCache>> {
    if !home.settings().transfers.keep {
        return None;
    }
    let path = home.path().join(MARKS);
    match MarkFile::open(&path, Arc::clone(metrics)) {
        Ok(marks) => Some(Arc::new(OtCache::default().marked(marks))),
        Err(error) => {
            let path = path.display();
            tracing::warn!(%error, %path, "no transfers are kept: what is used cannot be written down");
            None
        }
    }
}

impl ServiceState {
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
        let usual = Engine::default();
        Engine {
            window: usual.window.max(self.window),
            timeout: self.options.timeout.unwrap_or(stall),
            device: Arc::clone(&self.device),
            trace: Some(Arc::clone(&self.metrics) as Arc<dyn veil_engine::Recorder>),
            ot_cache: self.ot_cache.clone(),
            ..usual
        }
    }

    /// The room for columns of a run that was given so many bytes, if some have to wait on the disk.
    fn room(&self, plan: &Passes, me: Peer, need: u64) -> Result<Option<Room>, StoreError> {
        if !self.home.settings().admission.spill {
            return Ok(None);
        }
        let how = (self.engine().window, self.options.link);
        let Ok(Some(bytes)) = plan.room(me, how, (need, true)) else {
            return Ok(None);
        };
        let spill = SpillFile::create(self.home.path())?;
        let spill = Arc::new(spill);
        Ok(Some(Room { bytes, spill }))
    }

    /// Writes into the home's log. A log that cannot be written makes the service not ready, and is said.
    fn record(&self, event: Event) {
        if let Err(error) = self.home.log().append(event) {
            tracing::error!(%error, "the log cannot be written");
        }
    }
}

impl Pages for ServiceState {
    fn ready(&self) -> Result<(), String> {
        let unready = self.unready();
        if unready.is_empty() {
            return Ok(());
        }
        Err(ready::in_a_line(&unready))
    }

    fn metrics(&self) -> String {
        let turned = self
            .port
            .get()
            .map_or(Turned::default(), |port| port.turned());
        let strangers = turned.strangers + self.strangers.asked();
        self.metrics.text(Turned {
            strangers,
            ..turned
        })
    }
}
