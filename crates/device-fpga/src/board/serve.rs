//! The board's end: simulated cores behind a socket, a card for each client.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::card::Garbles;
use super::cores::Computes;
use super::node::Stands;
use super::socket::{self, Listener};
use super::wire::{Answer, MEMORY, Request, Stop, Wire};
use super::{Identity, Kind, NodeOf, VERSION};
use crate::node::{CLOCK_MHZ, Network, Shape, roomy};
use crate::transport::Transport;
use crate::{Absent, Simulated, Stalls, abi};

/// How long a client has for its greeting, for the rest of a message that has begun, and for what the engine fetches.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the server rests when it cannot take a client.
const REST: Duration = Duration::from_secs(1);

/// How often the server looks whether it is to stop.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Cores to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    /// Which ones.
    pub kind: Kind,
    /// How many cards of them: clients that are served at once.
    pub cards: u32,
    /// Engines of a garbler.
    pub rows: u32,
    /// Pauses of streams.
    pub stalls: Stalls,
}

impl Simulation {
    /// So many cards of this kind, with garblers of two engines.
    pub fn new(kind: Kind, cards: u32) -> Self {
        Simulation {
            kind,
            cards,
            rows: 2,
            stalls: Stalls::default(),
        }
    }
}

/// Why a board is not served.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There are no simulated cores.
    #[error(transparent)]
    Absent(#[from] Absent),
    /// The folder is open to others.
    #[error("{} belongs to user {uid} and has mode {mode:03o}: a board's folder is its user's alone, of mode 700", folder.display())]
    Open {
        /// The folder.
        folder: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner.
        uid: u32,
    },
    /// Another process serves that socket.
    #[error("{}: another process serves it", socket.display())]
    Served {
        /// The socket.
        socket: PathBuf,
    },
    /// There is something else.
    #[error("{}: there is a file that is no socket", file.display())]
    NoSocket {
        /// The file.
        file: PathBuf,
    },
    /// The operating system refuses.
    #[error("cannot listen at {}: {why}", socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// What it says.
        why: String,
    },
}

/// What stands behind a socket.
enum Stand {
    Card(Simulation),
    Node {
        network: Network,
        shape: Shape,
        number: u8,
    },
}

impl Stand {
    /// Clients that are served at once.
    fn cards(&self) -> u32 {
        match self {
            Stand::Card(simulation) => simulation.cards,
            Stand::Node { .. } => 1,
        }
    }
}

/// A board of simulated cores that listens.
pub struct Server {
    listener: Listener,
    stand: Stand,
    identity: Identity,
    in_use: AtomicU32,
    /// Of each client that is served.
    clients: Mutex<Vec<(u64, UnixStream)>>,
}

impl Server {
    /// Listens at a socket, for processes of this user. The socket's folder is made if it is not there; the socket is removed when this is dropped.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn bind(path: &Path, simulation: Simulation) -> Result<Self, Refusal> {
        let mut registers = None;
        if simulation.kind.garbles() {
            let mut card = Simulated::new(simulation.rows, simulation.stalls)?;
            let mut read = |at| card.read(at).unwrap_or_default();
            registers = Some([read(abi::IDENT), read(abi::VERSION)]);
        }
        if simulation.kind.shares() {
            Computes::new(simulation.stalls)?;
        }
        let identity = Identity {
            kind: simulation.kind,
            build: format!("simulated cores of veil {}", env!("CARGO_PKG_VERSION")),
            clock_khz: (CLOCK_MHZ * 1000.0) as u32,
            registers,
            node: None,
        };
        Self::listen(path, Stand::Card(simulation), identity)
    }

    /// Listens for the hosts of the nodes of a simulated network: at `path` with the number of the node behind it, for each. The network has one
    /// clock, which goes on while a host looks for completions, or waits.
    ///
    /// # Panics
    /// If there are not two to four nodes.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn bind_nodes(path: &Path, shape: Shape) -> Result<Vec<Self>, Refusal> {
        let shape = roomy(shape);
        let network = Network::new(shape)?;
        let node = |number| {
            let identity = Identity {
                kind: Kind::Node,
                build: format!("simulated nodes of veil {}", env!("CARGO_PKG_VERSION")),
                clock_khz: (CLOCK_MHZ * 1000.0) as u32,
                registers: None,
                node: Some(NodeOf {
                    number,
                    nodes: shape.nodes,
                    four: shape.four,
                }),
            };
            let stand = Stand::Node {
                network: network.clone(),
                shape,
                number,
            };
            Self::listen(&socket_of(path, number), stand, identity)
        };
        (0..shape.nodes).map(node).collect()
    }

    fn listen(path: &Path, stand: Stand, identity: Identity) -> Result<Self, Refusal> {
        Ok(Server {
            listener: socket::listen(path)?,
            stand,
            identity,
            in_use: AtomicU32::new(0),
            clients: Mutex::default(),
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        self.listener.path()
    }

    /// What it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Serves clients until it is to stop, and `say`s of each when it has a card, and how it ended. One whose connection ends leaves nothing behind on its card.
    pub fn serve(&self, stop: &AtomicBool, say: &(dyn Fn(&str) + Sync)) {
        let listener = &self.listener.socket;
        thread::scope(|scope| {
            for number in 0.. {
                while !stop.load(Ordering::Relaxed) {
                    let mut wanted = [PollFd::new(listener, PollFlags::IN)];
                    if matches!(rustix::event::poll(&mut wanted, Some(&LOOK)), Ok(1..)) {
                        break;
                    }
                }
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let accepted = listener.accept();
                let accepted = accepted.and_then(|(stream, _)| Ok((stream.try_clone()?, stream)));
                let (own, stream) = match accepted {
                    Ok(both) => both,
                    Err(why) => {
                        // For want of descriptors of files, say: clients that end give theirs back.
                        say(&format!("cannot take a client: {why}"));
                        thread::sleep(REST);
                        continue;
                    }
                };
                self.clients().push((number, own));
                scope.spawn(move || {
                    let ended = self.client(stream, say);
                    self.clients().retain(|(other, _)| *other != number);
                    say(&ended);
                });
            }
            for (_, stream) in self.clients().iter() {
                let _ = stream.shutdown(std::net::Shutdown::Both);
            }
        });
    }

    fn clients(&self) -> std::sync::MutexGuard<'_, Vec<(u64, UnixStream)>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a client. How that ended.
    fn client(&self, stream: UnixStream, say: &(dyn Fn(&str) + Sync)) -> String {
        let who = match socket::same_user(&stream) {
            Ok(process) => format!("process {process}"),
            Err(fault) => return format!("refused a client: {fault}"),
        };
        let mut wire = Wire::new(stream);
        let until = Instant::now() + PATIENCE;
        let version = match wire.greeted(until) {
            Ok(Some([version, memory])) if version == VERSION && memory as usize > MEMORY => {
                return format!(
                    "refused {who}: it registers {memory} bytes, and {MEMORY} are the most"
                );
            }
            Ok(Some([version, _])) => version,
            Ok(None) => return format!("refused {who}: it greets with other bytes"),
            Err(stop) => return format!("refused {who}: {stop}"),
        };
        let Some(_card) = InUse::take(self).filter(|_| version == VERSION) else {
            // So that the client can say what it has met.
            let _ = wire.greet(VERSION, self.stand.cards(), until);
            return if version == VERSION {
                format!("refused {who}: all cards are in use")
            } else {
                format!("refused {who}: it speaks version {version}")
            };
        };
        say(&format!("{who} has a card"));
        match self.serves(&mut wire, until) {
            Ok(()) | Err(Wrong::Stop(Stop::Closed)) => format!("{who} has ended"),
            Err(wrong) => format!("{who} was sent away: {wrong}"),
        }
    }

    fn serves(&self, wire: &mut Wire, until: Instant) -> Result<(), Wrong> {
        match &self.stand {
            Stand::Card(simulation) => self.serves_card(simulation, wire, until),
            Stand::Node {
                network,
                shape,
                number,
            } => {
                let mut node = Stands::new(network, *number, shape.bytes);
                wire.greet(VERSION, 0, until)?;
                wire.send(&self.identity, &[], until)?;
                let served = each(wire, |request, payload, wire, until| {
                    if let Some((answer, payload)) = node.does(&request, payload)? {
                        wire.send(&answer, &payload, until)?;
                    }
                    Ok(())
                });
                node.scrub();
                served
            }
        }
    }

    fn serves_card(
        &self,
        simulation: &Simulation,
        wire: &mut Wire,
        until: Instant,
    ) -> Result<(), Wrong> {
        let Simulation {
            kind, rows, stalls, ..
        } = *simulation;
        let garbler = || Simulated::new(rows, stalls).map(|card| Garbles::new(Box::new(card)));
        let mut garbles = kind.garbles().then(garbler).transpose()?;
        let cores = || Computes::new(stalls);
        let mut computes = kind.shares().then(cores).transpose()?;
        wire.greet(VERSION, 0, until)?;
        wire.send(&self.identity, &[], until)?;
        let served = each(wire, |request, payload, wire, until| {
            let for_cores = matches!(request, Request::Order(..) | Request::Run { .. });
            match (&mut garbles, &mut computes) {
                (_, Some(computes)) if for_cores => {
                    let (answer, payload) = computes.does(request, payload)?;
                    Ok(wire.send(&answer, &payload, until)?)
                }
                (Some(garbles), _) => garbles.does(&request, wire),
                _ => Err(Wrong::Order("cores that this board does not have")),
            }
        });
        if let Some(garbles) = &mut garbles {
            garbles.scrub();
        }
        if let Some(computes) = &mut computes {
            computes.scrub();
        }
        served
    }
}

/// The socket of a node, among those of a network at `path`.
pub fn socket_of(path: &Path, node: u8) -> PathBuf {
    let mut socket = path.as_os_str().to_owned();
    socket.push(node.to_string());
    socket.into()
}

/// Takes requests, one after the other, until the client has none any more.
fn each(
    wire: &mut Wire,
    mut does: impl FnMut(Request, &[u8], &mut Wire, Instant) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    while wire.is_next() {
        let until = Instant::now() + PATIENCE;
        let (request, payload) = wire.receive::<Request>(until)?;
        does(request, &payload, wire, until)?;
    }
    Ok(())
}

/// A card that a client has.
struct InUse<'a>(&'a Server);

impl<'a> InUse<'a> {
    fn take(server: &'a Server) -> Option<Self> {
        let most = server.stand.cards();
        let more = |in_use: u32| (in_use < most).then(|| in_use + 1);
        let taken = server
            .in_use
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| InUse(server))
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a client is served no longer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Wrong {
    /// The connection ends.
    #[error("{0}")]
    Stop(#[from] Stop),
    /// There are no cores.
    #[error("{0}")]
    Absent(#[from] Absent),
    /// What a driver does not do.
    #[error("it asks for {0}")]
    Order(&'static str),
}

impl Wrong {
    /// A message of another kind than was due.
    pub(super) fn unexpected() -> Self {
        Wrong::Order("something else than the engine waits for")
    }
}

/// An answer and its payload.
pub(super) type Answered = (Answer, zeroize::Zeroizing<Vec<u8>>);

/// When what a client is asked for now has to be there.
pub(super) fn until() -> Instant {
    Instant::now() + PATIENCE
}
