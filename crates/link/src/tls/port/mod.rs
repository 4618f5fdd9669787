//! The side that is called: one declared port for all jobs, peers, lanes and questions, and any number of strangers who get
//! nowhere.
//!
//! One thread accepts, shakes hands and reads a caller's request. A lane goes to the job that awaits it, by plan and key; a question goes
//! to the handler, in one of a few threads. No caller waits for another one: a slow caller costs its own place among the pending, one that
//! opens or asks much loses only its own, a job that fails or ends takes its own connections with it, and other callers never notice.

mod caller;
mod holders;
mod replies;
mod slots;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustls::{ServerConfig, ServerConnection};
use veil_session::{Peer, PlanHash};

use self::caller::{Outcome, Pending};
use self::holders::{Holder, PENDING, crowded, overdrawn};
use self::replies::Replies;
use self::slots::Slots;
use super::config;
use super::dial::timespec;
use super::handshake::Handshake;
use super::identity::{Fingerprint, Identity};
use super::secrets::Secrets;
use super::{Connected, Ended, Misses, SetupError, Terms};

/// Longest request that a member may send: a job and its circuit.
pub const LONGEST_REQUEST: usize = 16 << 20;

/// Longest request to a port that serves one job, and of a caller that is no member yet: an introduction.
const LONGEST_INTRODUCTION: usize = 4 << 10;

/// Longest reply.
pub(super) const LONGEST_REPLY: usize = 16 << 20;

/// The longest sleep of a port on which nothing happens; whatever does happen wakes it.
const NAP: Duration = Duration::from_secs(60);

/// A shortage on this machine (no file descriptor left, say) passes or not; looking all the time does not help.
const SHORTAGE: Duration = Duration::from_millis(100);

/// As what a key is let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// A member: its lanes reach the jobs that await them, its questions the handler.
    Member,
    /// An unknown key that may have been invited: short questions only.
    Joiner,
    /// An unknown key: the handshake ends, and tells nothing.
    Stranger,
}

/// Says as what a key is let in; asked in every handshake, so that a change takes effect at once.
pub type Admit = Arc<dyn Fn(&Fingerprint) -> Admission + Send + Sync>;

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The key that it proved to hold.
    pub key: Fingerprint,
    /// As what it was let in.
    pub admission: Admission,
}

/// Answers questions. Runs in a thread of the port; what takes long delays other questions, and nothing else.
pub type Handler = Arc<dyn Fn(Caller, &[u8]) -> Vec<u8> + Send + Sync>;

/// Where a question waits for its answer: questions of one lane never wait for questions of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// It is answered in no time.
    Quick,
    /// It comes from this participant's own commands.
    Own,
    /// Any other.
    Usual,
    /// Long questions: proposals of jobs.
    Slow,
}

impl Lane {
    const ALL: [Lane; 4] = [Lane::Quick, Lane::Own, Lane::Usual, Lane::Slow];

    const fn name(self) -> &'static str {
        match self {
            Lane::Quick => "quick",
            Lane::Own => "own",
            Lane::Usual => "control",
            Lane::Slow => "slow",
        }
    }
}

/// Says in which lane a question waits. Runs in the thread of the port.
pub type Lanes = Arc<dyn Fn(&Caller, &[u8]) -> Lane + Send + Sync>;

/// Hears of members that come for a plan which does not await them here now. Runs in the thread of the port: it must not wait.
pub type OnConnectRequest = Arc<dyn Fn(Fingerprint, PlanHash) + Send + Sync>;

/// Hears of unknown keys, and of the addresses that they came from. Runs in the thread of the port: it must not wait.
pub type Noticed = Arc<dyn Fn(&Fingerprint, SocketAddr) + Send + Sync>;

/// How a port treats its callers.
#[derive(Clone)]
pub struct Reception {
    admit: Admit,
    handler: Option<Handler>,
    lanes: Option<Lanes>,
    on_request: Option<OnConnectRequest>,
    noticed: Option<Noticed>,
    sole: bool,
}

impl Reception {
    /// Lets in whom `admit` knows. A caller whose job is not awaited is told to come again later.
    pub fn new(admit: Admit) -> Self {
        Reception {
            admit,
            handler: None,
            lanes: None,
            on_request: None,
            noticed: None,
            sole: false,
        }
    }

    /// Lets in the holders of `keys`, for the one job at a time that the port is made for: a peer that is awaited and comes with another
    /// plan ends the meeting at once, with an error on both sides.
    pub fn sole(keys: impl IntoIterator<Item = Fingerprint>) -> Self {
        let keys: Vec<Fingerprint> = keys.into_iter().collect();
        let admit = move |key: &Fingerprint| {
            if keys.contains(key) {
                Admission::Member
            } else {
                Admission::Stranger
            }
        };
        Reception {
            sole: true,
            ..Reception::new(Arc::new(admit))
        }
    }

    /// Answers questions with `handler`; questions to a port for one job are short.
    #[must_use]
    pub fn with_handler(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Answers questions in the lanes that `lanes` says; without it, they are all alike.
    #[must_use]
    pub fn with_lanes(mut self, lanes: Lanes) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// Tells `on_request` which members come for a plan that is not awaited: a service may then prepare it.
    #[must_use]
    pub fn on_connect_request(mut self, on_request: OnConnectRequest) -> Self {
        self.on_request = Some(on_request);
        self
    }

    /// Tells `noticed` of every key that was refused because it is unknown.
    #[must_use]
    pub fn with_noticed(mut self, noticed: Noticed) -> Self {
        self.noticed = Some(noticed);
        self
    }
}

/// How many callers were turned away since the port was bound, and why.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Turned {
    /// Unknown keys, and connections that never finished a handshake.
    pub strangers: u64,
    /// Members that were refused for good: another name, plan, version or lane.
    pub refused: u64,
    /// Members that were told to come again, or cut off: they had more connections open than their share.
    pub later: u64,
}

/// The declared port of this participant. Closed when dropped.
pub struct Port {
    shared: Arc<PortState>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

/// What the thread of a port shares with its owners.
struct PortState {
    slots: Slots,
    /// Whether requests are short.
    short: bool,
    admit: Admit,
    on_request: Option<OnConnectRequest>,
    noticed: Option<Noticed>,
    config: Mutex<Arc<ServerConfig>>,
    wake: OwnedFd,
    closed: AtomicBool,
    turned: [AtomicU64; 3],
}

/// Kinds of [`PortState::turned`].
#[derive(Clone, Copy)]
enum Away {
    Stranger,
    Refused,
    Later,
}

impl Port {
    /// Listens on `address`, such as `0.0.0.0:7000`; port 0 lets the system choose.
    ///
    /// # Errors
    /// [`SetupError::Listen`] if the address cannot be bound, [`SetupError::Local`] if this machine has no certificate, event or
    /// thread for the port.
    pub fn bind(
        identity: &Identity,
        address: &str,
        reception: Reception,
    ) -> Result<Self, SetupError> {
        let err = |e: &io::Error| SetupError::Listen {
            address: address.to_owned(),
            why: format!("{e}{}", advice(e.kind())),
        };
        let local = |e: &dyn std::fmt::Display| SetupError::Local(e.to_string());
        let socket = TcpListener::bind(address).map_err(|e| err(&e))?;
        socket.set_nonblocking(true).map_err(|e| err(&e))?;
        let bound = socket.local_addr().map_err(|e| err(&e))?;
        let wake =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|e| local(&e))?;
        let config = server_config(identity, &reception.admit).map_err(|e| local(&e))?;
        let shared = Arc::new(PortState {
            slots: Slots::new(reception.sole),
            short: reception.sole,
            admit: reception.admit,
            on_request: reception.on_request,
            noticed: reception.noticed,
            config: Mutex::new(config),
            wake,
            closed: AtomicBool::new(false),
            turned: Default::default(),
        });
        let replies = match reception.handler {
            Some(handler) => {
                Some(Replies::start(&handler, reception.lanes).map_err(|e| local(&e))?)
            }
            None => None,
        };
        let thread = {
            let shared = Arc::clone(&shared);
            // Parsing certificates is the deepest that it gets.
            let thread = thread::Builder::new()
                .name("port".into())
                .stack_size(512 << 10);
            let serve = move || serve(&shared, &socket, replies.as_ref());
            thread.spawn(serve).map_err(|e| local(&e))?
        };
        Ok(Port {
            shared,
            address: bound,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts `lanes` connections from each of `peers`. Strangers are turned away and change nothing; a peer of the job that
    /// proved its key and calls wrongly (another name or version, a lane twice) ends the wait at once, with an error on both
    /// sides.
    ///
    /// # Errors
    /// [`SetupError::NoPin`] if `terms` lack the key of a peer; [`SetupError::Twice`] if the plan already waits on this port;
    /// [`SetupError::TimedOut`] with the missing peers; [`SetupError::Version`], [`SetupError::Plan`], [`SetupError::Link`] and
    /// [`SetupError::Refused`] if a peer calls with other terms; [`SetupError::Dropped`] if a peer's key was revoked meanwhile.
    pub fn accept(
        &self,
        terms: &Terms,
        peers: &[Peer],
        lanes: u16,
        until: Instant,
    ) -> Result<Vec<Connected>, SetupError> {
        let never = AtomicBool::new(false);
        let ended = Ended {
            asked: &never,
            failed: &never,
        };
        self.gather(terms, peers, lanes, (until, &ended), &|_| ())
    }

    pub(super) fn gather(
        &self,
        terms: &Terms,
        peers: &[Peer],
        lanes: u16,
        within: (Instant, &Ended<'_>),
        lacks: &Misses<'_>,
    ) -> Result<Vec<Connected>, SetupError> {
        self.shared.slots.gather(terms, peers, lanes, within, lacks)
    }

    /// Ends every meeting that awaits the holder of `key`, which was revoked or replaced. Runs that have met are ended by their own engine;
    /// new calls of the key are refused by the admission that forgot it.
    pub fn drop_key(&self, key: &Fingerprint) {
        self.shared.slots.drop_key(key);
    }

    /// Shows `identity` to callers from here on: a new certificate, or a new key.
    ///
    /// # Errors
    /// [`SetupError::Local`] if TLS refuses the certificate. The port keeps the former one then.
    pub fn renew(&self, identity: &Identity) -> Result<(), SetupError> {
        let config = server_config(identity, &self.shared.admit)
            .map_err(|e| SetupError::Local(e.to_string()))?;
        *lock(&self.shared.config) = config;
        Ok(())
    }

    /// Who was turned away.
    pub fn turned(&self) -> Turned {
        let count = |away: Away| self.shared.turned[away as usize].load(Ordering::Relaxed);
        Turned {
            strangers: count(Away::Stranger),
            refused: count(Away::Refused),
            later: count(Away::Later),
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // The counter of an eventfd is full only if no thread reads it, and then it wakes all the same.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        // The last who holds a port may be a callback in its own thread, which ends by itself.
        let own = |thread: &JoinHandle<()>| thread.thread().id() == thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| !own(thread)) {
            // A panic in the thread was printed there, and the port is gone either way.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Port({})", self.address)
    }
}

impl PortState {
    /// Bytes of the longest request that a caller may send.
    fn longest_request(&self, admission: Admission) -> usize {
        match admission {
            Admission::Member if !self.short => LONGEST_REQUEST,
            _ => LONGEST_INTRODUCTION,
        }
    }

    /// A caller showed a key that is unknown here.
    fn noticed(&self, key: &Fingerprint, from: SocketAddr) {
        if let Some(noticed) = &self.noticed {
            noticed(key, from);
        }
    }

    fn count(&self, away: Away) {
        self.turned[away as usize].fetch_add(1, Ordering::Relaxed);
    }
}

fn server_config(identity: &Identity, admit: &Admit) -> Result<Arc<ServerConfig>, rustls::Error> {
    let admit = Arc::clone(admit);
    config::server(identity, move |key| admit(key) != Admission::Stranger)
}

fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => {
            ": the port is in use; stop the other program (`ss -ltnp` shows it) or declare another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            ": this machine has no such address; 0.0.0.0 means all of them"
        }
        io::ErrorKind::PermissionDenied => {
            ": ports below 1024 need privileges; declare a higher one"
        }
        _ => "",
    }
}

/// The thread of a port.
fn serve(shared: &PortState, socket: &TcpListener, replies: Option<&Replies>) {
    let mut pending: Vec<Pending> = Vec::new();
    while !shared.closed.load(Ordering::Relaxed) {
        let short = !take_in(shared, socket, &mut pending);
        let (mut index, mut more) = (0, false);
        while index < pending.len() {
            match pending[index].step(shared, replies) {
                outcome @ (Outcome::Waiting | Outcome::More) => {
                    more |= matches!(outcome, Outcome::More);
                    index += 1;
                    continue;
                }
                Outcome::Lane(promise) => {
                    promise.keep(pending.swap_remove(index).handshake);
                    continue;
                }
                Outcome::Question(caller, request) => {
                    let handshake = pending.swap_remove(index).handshake;
                    if let Some(replies) = replies {
                        replies.ask(handshake, caller, request);
                    }
                    continue;
                }
                Outcome::Away(away, why) => {
                    shared.count(away);
                    if !why.is_empty() {
                        let hint = format!("{} was turned away: {why}", pending[index].from);
                        shared.slots.hint(&hint);
                    }
                }
            }
            pending.swap_remove(index);
        }
        while let Some(victim) = overdrawn(&pending) {
            cut_off(shared, &mut pending, victim);
        }
        // Polling only fails for want of memory, which the next round may have.
        if !more {
            let _ = sleep(shared, socket, &pending, short);
        }
    }
}

/// Takes in new connections. `false` if the machine is short of something.
fn take_in(shared: &PortState, socket: &TcpListener, pending: &mut Vec<Pending>) -> bool {
    loop {
        let (socket, from) = match socket.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                // An error of the caller's connection is no shortage of ours.
                return matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                );
            }
        };
        if pending.len() >= PENDING {
            match crowded(pending) {
                Some(victim) => cut_off(shared, pending, victim),
                None => continue,
            }
        }
        let (secrets, config) = Secrets::server(&lock(&shared.config));
        let Ok(tls) = ServerConnection::new(config) else {
            return false;
        };
        // A socket that cannot be prepared was closed already.
        if let Ok(handshake) = Handshake::new(socket, tls.into(), secrets) {
            pending.push(Pending::new(handshake, from));
        }
    }
}

/// Gives the place of a connection to a newcomer.
fn cut_off(shared: &PortState, pending: &mut Vec<Pending>, victim: usize) {
    shared.count(match pending.swap_remove(victim).holder() {
        Holder::Member(_) => Away::Later,
        Holder::Unknown(_) => Away::Stranger,
    });
}

fn sleep(
    shared: &PortState,
    socket: &TcpListener,
    pending: &[Pending],
    short: bool,
) -> io::Result<()> {
    let mut fds = Vec::with_capacity(pending.len() + 2);
    fds.push(PollFd::from_borrowed_fd(shared.wake.as_fd(), PollFlags::IN));
    if !short {
        fds.push(PollFd::new(socket, PollFlags::IN));
    }
    let now = Instant::now();
    let mut at_most = if short { SHORTAGE } else { NAP };
    for one in pending {
        let mut flags = PollFlags::IN;
        flags.set(PollFlags::OUT, one.handshake.tls.wants_write());
        fds.push(PollFd::new(&one.handshake.socket, flags));
        at_most = at_most.min(one.expires().saturating_duration_since(now));
    }
    // A little later than the first that expires, not a little earlier.
    let at_most = at_most + Duration::from_millis(1);
    super::settle(poll(&mut fds, Some(&timespec(at_most))))
}

/// Nothing here leaves a lock's content half changed, so one that a panic poisoned is as good as any.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
