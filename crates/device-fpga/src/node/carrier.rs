//! Nodes of the parties of a run, and the bytes under way between them.
//!
//! What a party sends to another one is stored in the memory of its node, which puts it into that of the other node: sealed, at the rate and
//! after the latency of the network. The other node's doorbell says that it lies there, and what lies there is what arrives.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use veil_link::Link;
use veil_session::{Peer, Secret};

use super::headless::{self, Circuits, Headless};
use super::work::{self, Components, Differs, Keys, Name, Product, Station};
use super::{
    Carried, Command, Direction, Event, MOST_NODES, Network, Node, NodeConfig, NodeError, Op, Port,
    Segment, Shape, Window,
};
use crate::Absent;
use crate::board::Board;
use crate::share::rounds::Party;

/// Words of a slot: what goes as one command.
pub(super) const SLOT_WORDS: u32 = 1 << 10;
/// Slots per direction between two nodes.
const SLOTS: u32 = 4;
/// Bytes of the slots of a direction.
const AREA: u64 = 16 * (SLOT_WORDS * SLOTS) as u64;
/// Bytes of what another node may write: its messages, those of its products, and those of circuits.
const INCOMING: u64 = AREA + work::SLOTS as u64 * work::SENT + headless::SENT;
/// Bytes of all areas.
const ALL: u64 = columns() + headless::OWN;
/// Numbers of doorbells of messages; those of products have a bit above.
const NUMBERS: u32 = 1 << 14;
/// Bytes that may wait for a slot, per direction.
pub(super) const ROOM: usize = 1 << 20;
/// Cycles for which time goes on when a host looks.
pub(crate) const CYCLES_PER_POLL: u64 = 256;
/// Cycles after which a node that owes an answer is gone.
const TIMEOUT: u32 = 1 << 15;

/// Completions that are taken from a node before the others have their turn.
const COMPLETIONS: u32 = 1 << 10;

/// What joins nodes, and what it says beside them.
pub(crate) trait Medium: Send {
    /// Cycles since the beginning.
    fn cycle(&self) -> u64;

    /// Lets time go on, where it does not by itself.
    fn run(&self, cycles: u64);

    /// Words of 16 bytes that a node has sent.
    fn sent(&self, node: u8) -> u64;
}

/// A part of a message, in a slot.
struct Piece {
    /// The link that it is of.
    of: u64,
    bytes: usize,
    /// The doorbell was heard.
    here: bool,
    /// The command has ended.
    done: bool,
}

/// What is under way from a node to another one.
#[derive(Default)]
pub(super) struct Line {
    /// Waits for a slot: the link that it is of, and bytes.
    pub(super) waiting: VecDeque<(u64, Vec<u8>)>,
    /// Bytes of those.
    pub(super) bytes: usize,
    /// In slots, one after the other.
    pieces: VecDeque<Piece>,
    /// Number of the first of them, as doorbells have it.
    first: u32,
    /// What has arrived, for each link.
    pub(super) landed: BTreeMap<u64, VecDeque<Vec<u8>>>,
}

pub(super) struct Inner {
    medium: Box<dyn Medium>,
    /// The medium, if it is of this process.
    network: Option<Network>,
    pub(super) nodes: Vec<Node>,
    /// From a node to a node.
    lines: Vec<Vec<Line>>,
    /// Products of each node.
    pub(super) stations: Vec<Station>,
    pub(super) circuits: Circuits,
    /// The cycle in which all nodes were set up.
    begin: u64,
    /// Links so far.
    links: u64,
    failed: Option<(u8, NodeError)>,
}

/// The nodes of a run's parties, and the messages between them.
#[derive(Clone)]
pub struct Carrier(Arc<Mutex<Inner>>);

/// Where messages to a node have their slots, in the memory of the one that they are put from.
const fn outgoing(to: u8) -> u64 {
    to as u64 * AREA
}

/// Where a product of this node has its slot.
pub(super) const fn own(place: u32) -> u64 {
    outgoing(MOST_NODES) + place as u64 * work::OWN
}

/// Where messages of a node have their slots, in the memory of the one that they are put to.
const fn incoming(from: u8) -> u64 {
    own(work::SLOTS) + from as u64 * INCOMING
}

/// Where a product of another node has its slot.
pub(super) const fn sent(from: u8, place: u32) -> u64 {
    incoming(from) + AREA + place as u64 * work::SENT
}

/// Where what another node sends in a circuit has its slot.
pub(super) const fn arriving(from: u8) -> u64 {
    sent(from, work::SLOTS)
}

/// Where columns and lists of circuits have their slot.
pub(super) const fn columns() -> u64 {
    incoming(MOST_NODES)
}

/// Nodes of this shape, whose memories have room for all areas.
pub(crate) fn roomy(shape: Shape) -> Shape {
    Shape {
        bytes: shape.bytes.max(ALL),
        ..shape
    }
}

impl Carrier {
    /// Nodes of `shape`, a party each, with keys of their packets from `random`.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no nodes were built in. The inner [`NodeError`] is that of a node that does not come up.
    ///
    /// # Panics
    /// If there are not two to four nodes.
    pub fn new(
        shape: Shape,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Result<Self, NodeError>, Absent> {
        let shape = roomy(shape);
        let network = Network::new(shape)?;
        let ports = (0..shape.nodes).map(|node| -> Box<dyn Port> { Box::new(network.port(node)) });
        let (ports, medium) = (ports.collect(), Box::new(network.clone()));
        let carrier = Self::with(ports, medium, random);
        Ok(carrier.inspect(|carrier| carrier.lock().network = Some(network)))
    }

    /// The same of nodes that are boards, in the order of parties.
    ///
    /// # Errors
    /// [`NodeError`] of a board that is no node, or another one, or does not come up.
    ///
    /// # Panics
    /// If there are not two to four boards.
    pub fn of_boards(
        boards: &[Board],
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Self, NodeError> {
        assert!(
            (2..=usize::from(MOST_NODES)).contains(&boards.len()),
            "two to four nodes"
        );
        let ports = (0..).zip(boards);
        let ports = ports.map(|(node, board)| board.node(node, boards.len() as u8));
        let ports: Result<Vec<_>, _> = ports.collect();
        Self::with(ports?, Board::medium(boards), random)
    }

    fn with(
        ports: Vec<Box<dyn Port>>,
        medium: Box<dyn Medium>,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Self, NodeError> {
        let count = ports.len() as u8;
        let nodes = ports.into_iter().map(Node::open);
        let mut nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        for (me, node) in (0..).zip(&mut nodes) {
            let mut put = [Window::default(); 4];
            for other in (0..count).filter(|other| *other != me) {
                put[usize::from(other)] = Window {
                    address: incoming(other),
                    words: (INCOMING / 16) as u32,
                };
            }
            node.set_up(&NodeConfig {
                node: me,
                timeout: TIMEOUT,
                own: Window {
                    address: 0,
                    words: (ALL / 16) as u32,
                },
                put,
                get: [Window::default(); 4],
                invoke_from: u8::from(me != 0),
            })?;
        }
        for from in 0..count {
            for to in (0..count).filter(|to| *to != from) {
                let (mut key, mut salt) = ([0; 16], [0; 4]);
                random(&mut key);
                random(&mut salt);
                let (key, salt) = (Secret::new(key), u32::from_le_bytes(salt));
                nodes[usize::from(from)].link_key(to, Direction::Seal, &key, salt)?;
                nodes[usize::from(to)].link_key(from, Direction::Open, &key, salt)?;
            }
        }
        let lines = || (0..count).map(|_| Line::default()).collect();
        Ok(Carrier(Arc::new(Mutex::new(Inner {
            nodes,
            lines: (0..count).map(|_| lines()).collect(),
            stations: (0..count).map(|_| Station::default()).collect(),
            circuits: Circuits::default(),
            begin: medium.cycle(),
            links: 0,
            failed: None,
            medium,
            network: None,
        }))))
    }

    /// The same, whose nodes compute circuits of bits without their hosts, where the parties compute on shares there.
    #[must_use]
    pub fn compute_headless(self) -> Self {
        self.lock().circuits.wanted = true;
        self
    }

    /// The link of a participant, beside those of the others. Messages from and to a participant that is no party go as they did.
    pub fn link<L: Link>(&self, me: Peer, inner: L) -> Carried<L> {
        let mut all = self.lock();
        all.links += 1;
        Carried::new(me, inner, self.clone(), all.links)
    }

    /// The node of a party, whose host has it compute on shares.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, me: u8) -> PartyNode {
        assert!(
            usize::from(me) < self.lock().nodes.len(),
            "a node of the run"
        );
        PartyNode {
            carrier: self.clone(),
            me,
        }
    }

    /// The network, to make it fail.
    ///
    /// # Panics
    /// If the nodes are boards of other processes.
    pub fn network(&self) -> Network {
        let network = self.lock().network.clone();
        network.expect("nodes in this process")
    }

    /// Cycles that went by since all nodes were set up: time stands still while no message is under way.
    pub fn cycles(&self) -> u64 {
        let all = self.lock();
        all.medium.cycle() - all.begin
    }

    /// Words of 16 bytes that a node has sent: messages, headers, seals and answers.
    pub fn sent(&self, node: u8) -> u64 {
        self.lock().medium.sent(node)
    }

    /// Circuits that the nodes computed without their hosts.
    pub fn headless(&self) -> Headless {
        self.lock().circuits.done
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The node of a party of a run.
pub struct PartyNode {
    carrier: Carrier,
    me: u8,
}

/// The same, as one of the devices that compute there has it. When the last of them is gone the node forgets keys and shares.
pub struct User(PartyNode);

impl Drop for User {
    fn drop(&mut self) {
        self.0.carrier.lock().leave(self.0.me);
    }
}

impl PartyNode {
    /// For a device.
    pub fn user(&self) -> User {
        self.carrier.lock().stations[usize::from(self.me)].users += 1;
        User(PartyNode {
            carrier: self.carrier.clone(),
            me: self.me,
        })
    }
}

impl User {
    pub(crate) fn party(&self) -> Party {
        Party {
            me: self.me(),
            of: self.all().nodes.len() as u8,
        }
    }

    pub(super) fn me(&self) -> u8 {
        self.0.me
    }

    pub(super) fn all(&self) -> MutexGuard<'_, Inner> {
        self.0.carrier.lock()
    }

    /// Takes products, under these keys.
    pub(crate) fn multiply(&self, products: Vec<Product>, keys: &Arc<Keys>) {
        let mut all = self.all();
        for product in products {
            all.multiply(self.me(), product, keys);
        }
    }

    /// Lets time go on.
    ///
    /// # Errors
    /// [`NodeError`] if this party's node has failed. That another one has, the links of nodes say.
    pub(crate) fn advance(&self) -> Result<(), NodeError> {
        match self.all().advance() {
            Err((at, error)) if at == self.me() => Err(error),
            _ => Ok(()),
        }
    }

    /// What came of a product, once all of it is there.
    pub(crate) fn take(&self, name: &Name) -> Option<Result<Components, Differs>> {
        self.all().take(self.me(), name)
    }

    /// The run cannot go on.
    pub(crate) fn fail(&self, why: &str) {
        self.all().fail(self.me(), why.to_owned());
    }
}

/// The node of a party.
pub(super) fn node_of(peer: Peer) -> Option<u8> {
    match peer {
        Peer::Party(party) => Some(party.index() as u8),
        _ => None,
    }
}

impl Inner {
    pub(super) fn line(&mut self, from: u8, to: u8) -> Option<&mut Line> {
        self.lines
            .get_mut(usize::from(from))?
            .get_mut(usize::from(to))
    }

    /// Puts as many pieces as there are slots for.
    pub(super) fn start(&mut self, from: u8, to: u8) -> Result<(), NodeError> {
        if self.stations[usize::from(from)].waits_for_keys() || self.circuits.holds() {
            return Ok(());
        }
        let line = &mut self.lines[usize::from(from)][usize::from(to)];
        while line.pieces.len() < SLOTS as usize
            && let Some((of, bytes)) = line.waiting.pop_front()
        {
            line.bytes -= bytes.len();
            let number = (line.first + line.pieces.len() as u32) % NUMBERS;
            let offset = u64::from(number % SLOTS) * u64::from(SLOT_WORDS) * 16;
            let node = &mut self.nodes[usize::from(from)];
            let words = (bytes.len().div_ceil(16) as u32).next_multiple_of(node.limits().lanes);
            let own = outgoing(to) + offset;
            node.store(own, &bytes)?;
            let there = Segment {
                tell: Some(number as u16),
                ..Segment::new(to, incoming(from) + offset, words)
            };
            let tag = u32::from(to) << 16 | number;
            node.submit(&Command::new(
                Op::Move,
                tag,
                words,
                vec![Segment::new(from, own, words)],
                vec![there],
            ));
            line.pieces.push_back(Piece {
                of,
                bytes: bytes.len(),
                here: false,
                done: false,
            });
        }
        Ok(())
    }

    /// Whether a party waits for its node.
    pub(super) fn works(&self, me: u8) -> bool {
        let station = self.stations.get(usize::from(me));
        station.is_some_and(|station| station.works() || self.circuits.works(me))
    }

    /// Whether anything is under way: else time stands still.
    pub(super) fn goes_on(&self) -> bool {
        let mut lines = self.lines.iter().flatten();
        self.circuits.goes_on()
            || self.stations.iter().any(Station::works)
            || lines.any(|line| !line.pieces.is_empty() || !line.waiting.is_empty())
    }

    pub(super) fn cycle(&self) -> u64 {
        self.medium.cycle()
    }

    /// Whether the nodes have failed for that reason.
    pub(super) fn has_failed(&self, me: u8) -> bool {
        self.failed.as_ref().is_some_and(|(at, _)| *at == me)
    }

    /// A host cannot go on with what came of a product: its run ends as if its node had failed.
    pub(super) fn fail(&mut self, me: u8, why: String) {
        self.failed.get_or_insert((me, NodeError::Host { why }));
    }

    /// Lets time go on, and takes what nodes say. Whether anything arrived or ended.
    pub(super) fn advance(&mut self) -> Result<bool, (u8, NodeError)> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let advanced = self.moves();
        if let Err(failed) = &advanced {
            self.failed = Some(failed.clone());
        }
        advanced
    }

    fn moves(&mut self) -> Result<bool, (u8, NodeError)> {
        if self.goes_on() {
            self.medium.run(CYCLES_PER_POLL);
        }
        let mut moved = self.circuits()?;
        for at in 0..self.nodes.len() as u8 {
            let named = |error| (at, error);
            for _ in 0..COMPLETIONS {
                let completion = self.nodes[usize::from(at)].poll().map_err(named)?;
                let Some(completion) = completion else { break };
                if work::is_of_piece(completion) {
                    moved = true;
                    match completion.event {
                        Event::Arrived(from) => self.heard(at, from, completion.tag as u16),
                        _ => self.ended(at, completion).map_err(named)?,
                    }
                    continue;
                }
                if headless::is_of_list(completion) {
                    moved = true;
                    self.list_ended(at, completion)?;
                    continue;
                }
                let what = "a message";
                completion
                    .result
                    .map_err(|failure| named(NodeError::Failed { what, failure }))?;
                let number = completion.tag as u16;
                let (from, to) = match completion.event {
                    Event::Command => (at, (completion.tag >> 16) as u8),
                    Event::Arrived(from) => (from, at),
                    _ => continue,
                };
                if let Some(piece) = self.piece(from, to, number) {
                    // The doorbell, or the end of the command.
                    piece.here |= completion.event == Event::Arrived(from);
                    piece.done |= completion.event == Event::Command;
                    moved |= self.freed(from, to).map_err(named)?;
                }
            }
        }
        for from in 0..self.nodes.len() as u8 {
            moved |= self.work(from).map_err(|error| (from, error))?;
            for to in 0..self.nodes.len() as u8 {
                self.start(from, to).map_err(|error| (from, error))?;
            }
        }
        Ok(moved)
    }

    fn piece(&mut self, from: u8, to: u8, number: u16) -> Option<&mut Piece> {
        let line = self.line(from, to)?;
        let at = (u32::from(number) + NUMBERS - line.first) % NUMBERS;
        line.pieces.get_mut(at as usize)
    }

    /// Gives slots back, in their order, and takes from them what arrived.
    fn freed(&mut self, from: u8, to: u8) -> Result<bool, NodeError> {
        let line = &mut self.lines[usize::from(from)][usize::from(to)];
        let mut moved = false;
        while let Some(piece) = line.pieces.front()
            && piece.here
            && piece.done
        {
            let offset = u64::from(line.first % SLOTS) * u64::from(SLOT_WORDS) * 16;
            let mut bytes = vec![0; piece.bytes];
            self.nodes[usize::from(to)].load(incoming(from) + offset, &mut bytes)?;
            line.landed.entry(piece.of).or_default().push_back(bytes);
            line.pieces.pop_front();
            line.first = (line.first + 1) % NUMBERS;
            moved = true;
        }
        Ok(moved)
    }
}
