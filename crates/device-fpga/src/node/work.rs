//! Products of a run's parties at their nodes: what a host gives to its node, and what comes of it there and at the others.
//!
//! A product of columns is cut into pieces that a worker keeps. Each piece has a place in the memory of its node, and one of the same number in those
//! of the nodes that its messages go to. Three parties: the own component stays, and the same words go to the next party. Four: messages and MACs go
//! out, and when those of the others are there, a second command joins them. A host reads what is complete, and then the slot is free.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use veil_device::KeyId;
use veil_math::Ring;
use veil_session::Secret;
use zeroize::Zeroizing;

use super::carrier::{self, Inner, SLOT_WORDS};
use super::four::{self, JOINT};
use super::trio::next;
use super::{Command, Completion, Event, Failure, Node, NodeError, Op, Segment, Tuple};

/// Slots of a node, for as many pieces on their way.
pub const SLOTS: u32 = 16;
/// Slots that are left for products of which no piece has one: so many products that are not waited for in the same order at all parties
/// cannot wait for each other's slots.
const SPARE: usize = 12;
/// Columns of a slot: six of factors, over which the result is written, and three of shares that are not complete.
const COLUMNS: u32 = 9;
const FACTORS: u32 = 6;
/// Words of a MAC's slot, and of a sum's.
const BEAT: u32 = 4;
/// Messages, and MACs, of one sender to one receiver.
const MESSAGES: u32 = 2;

/// Bytes of a place in the memory of the own node.
pub(super) const OWN: u64 = 16 * (COLUMNS * SLOT_WORDS) as u64;
/// Bytes of a slot for what another node sends.
pub(super) const SENT: u64 = 16 * (MESSAGES * (SLOT_WORDS + BEAT)) as u64;

/// Bit of a command's tag: it is of a piece.
const OF_PIECE: u32 = 1 << 31;
/// Of a doorbell's: words of a piece came.
const CAME: u16 = 1 << 14;

/// A product of a run, by a name that all its parties have for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Name {
    /// Lane and chunk.
    pub(crate) at: (u16, u32),
    /// Place and cycle of its round.
    pub(crate) round: (u32, u64),
    /// Which of the round.
    pub(crate) number: u32,
}

/// A key under which a party draws, if a product needs it.
pub(crate) type Key = Option<(KeyId, Secret)>;

/// Keys of a party. Three parties: with the next one, and with the previous one. Four: of components; then of MACs with the next party, the one
/// opposite, the previous one.
pub(crate) type Keys = Vec<Key>;

/// What a party multiplies.
pub(crate) struct Product {
    pub(crate) name: Name,
    pub(crate) ring: Ring,
    /// Products are added up over the rows; padding is zero then.
    pub(crate) sums: bool,
    /// All components of the first factor, then of the second: whole words, as many in each.
    pub(crate) columns: Components,
    /// Of the first word's mask.
    pub(crate) call: Tuple,
    /// Of four parties: the number of the layer, if messages have MACs.
    pub(crate) checks: Option<u64>,
}

/// Components of a column, as whole words.
pub(crate) type Components = Vec<Zeroizing<Vec<u8>>>;

/// Which joint message of a product is not what its MAC says: its place among those that the party gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Differs(pub(crate) usize);

/// A product, until the host asks for what came of it.
struct Job {
    left: usize,
    pieces: Vec<Components>,
    differs: Option<Differs>,
    ring: Ring,
    sums: bool,
}

/// A part of a product that is one command of each stage.
struct Piece {
    name: Name,
    number: u32,
    ring: Ring,
    sums: bool,
    words: u32,
    columns: Components,
    call: Tuple,
    checks: Option<u64>,
    keys: Arc<Keys>,
}

/// How far a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Its first command goes on, or messages of others are missing.
    First,
    /// The second one goes on.
    Join,
    /// A MAC differed: which of the messages is looked at by itself.
    Asks(usize),
    /// What came of it was read.
    Over,
}

/// A piece that has a slot.
struct Placed {
    piece: Piece,
    stage: Stage,
    /// The first command has ended.
    sent: bool,
    /// Doorbells that each node has to hear, and those that it has heard.
    rings: [(u8, u8); 4],
    /// Nodes that have not yet read what came to them.
    readers: u8,
}

/// The products of a node.
#[derive(Default)]
pub(super) struct Station {
    /// Devices that compute there.
    pub(super) users: u32,
    queue: VecDeque<Piece>,
    places: [Option<Placed>; SLOTS as usize],
    /// Keys that the node has.
    pub(super) keys: Keys,
    jobs: BTreeMap<Name, Job>,
    /// Of three parties: what came, and how many pieces of it are missing.
    came: BTreeMap<(Name, u32), Zeroizing<Vec<u8>>>,
}

impl Station {
    /// Whether products are under way.
    pub(super) fn works(&self) -> bool {
        !self.queue.is_empty()
            || self
                .places
                .iter()
                .flatten()
                .any(|at| at.stage != Stage::Over)
    }

    /// Whether the node is to be left alone, so that it can take keys.
    pub(super) fn waits_for_keys(&self) -> bool {
        self.queue
            .front()
            .is_some_and(|piece| !has(&self.keys, &piece.keys))
    }

    /// Whether a piece may have a slot now.
    fn room(&self, name: &Name) -> Option<usize> {
        let free = self.places.iter().filter(|at| at.is_none()).count();
        let first = !self.placed().any(|(_, at)| at.piece.name == *name);
        let may = first || free > SPARE;
        (self.places.iter().position(Option::is_none)).filter(|_| may)
    }

    fn placed(&self) -> impl Iterator<Item = (u32, &Placed)> {
        (0..)
            .zip(&self.places)
            .filter_map(|(k, at)| Some((k, at.as_ref()?)))
    }

    fn find(&self, name: &Name, number: u32) -> Option<(u32, &Placed)> {
        self.placed()
            .find(|(_, at)| at.piece.name == *name && at.piece.number == number)
    }
}

impl Job {
    /// Its pieces behind one another; sums added up.
    fn whole(self) -> Components {
        let (ring, sums) = (self.ring, self.sums);
        let mut pieces = self.pieces.into_iter();
        let mut whole = pieces.next().unwrap_or_default();
        for piece in pieces {
            for (all, part) in whole.iter_mut().zip(&piece) {
                if sums {
                    let sum = ring.add(element(all), element(part));
                    all[..16].copy_from_slice(&sum.to_le_bytes());
                } else {
                    all.extend_from_slice(part);
                }
            }
        }
        whole
    }
}

/// The first element of some words.
fn element(words: &[u8]) -> u128 {
    let (first, _) = words.as_chunks();
    first.first().map_or(0, |word| u128::from_le_bytes(*word))
}

impl Piece {
    /// Words of a column that leaves.
    fn leaving(&self, lanes: u32) -> u32 {
        if self.sums { lanes } else { self.words }
    }

    /// The command of three parties.
    fn three(&self, me: u8, place: u32, lanes: u32) -> Command {
        let words = self.leaving(lanes);
        let op = if self.sums {
            Op::Sum(self.ring)
        } else {
            Op::Product(self.ring)
        };
        let from = (0..4).map(|k| Segment::new(me, column_of(place, k), self.words));
        let to = vec![
            Segment::new(next(me), carrier::sent(me, place), words),
            Segment::new(me, column_of(place, FACTORS), words),
        ];
        Command {
            call: Some(self.call),
            ..Command::new(op, tag(place), self.words, from.collect(), to)
        }
    }

    /// The commands of four parties, where the piece has these slots at the nodes.
    fn four(&self, me: u8, lanes: u32, places: [u32; 4]) -> four::Piece {
        let own = places[usize::from(me)];
        let columns = |first| [0, 1, 2].map(|part| column_of(own, first + part));
        let sent = |offset: u32, step: u32| {
            let at = |from: u8| carrier::sent(from, places[usize::from(from)]);
            let k = |k: u32| 16 * u64::from(offset + k * step);
            [0, 1, 2, 3].map(|from| [0, 1].map(|message| at(from) + k(message)))
        };
        four::Piece {
            ring: self.ring,
            sums: self.sums,
            words: self.words,
            lanes,
            lane: self.call.lane,
            counter: self.call.counter,
            number: self.checks.unwrap_or(0),
            chunk: self.call.chunk,
            checks: self.checks.is_some(),
            from: [columns(0), columns(3)],
            left: columns(FACTORS),
            out: columns(0),
            message: sent(0, SLOT_WORDS),
            mac: sent(MESSAGES * SLOT_WORDS, BEAT),
        }
    }
}

/// Whether all keys that are needed are there.
fn has(there: &Keys, needed: &Keys) -> bool {
    let id = |key: &Key| key.as_ref().map(|(id, _)| *id);
    (0..)
        .zip(needed)
        .all(|(k, key)| key.is_none() || there.get(k).and_then(id) == id(key))
}

/// Gives a node the keys of a piece, beside those that it has: pieces that are under way need these. Not while commands go on, or words of others come:
/// then it has to be tried again.
pub(super) fn keyed(
    node: &mut Node,
    me: u8,
    there: &mut Keys,
    needed: &Keys,
) -> Result<bool, NodeError> {
    if node.is_busy()? {
        return Ok(false);
    }
    let known = |k: usize| {
        needed[k]
            .clone()
            .or_else(|| there.get(k).cloned().flatten())
    };
    let all: Keys = (0..needed.len()).map(known).collect();
    // A pair that has had no code yet has no key.
    let none = Secret::new([0; 16]);
    let secret = |key: &Key| key.as_ref().map_or(&none, |(_, key)| key).clone();
    let secrets: Vec<Secret> = all.iter().map(secret).collect();
    let given = match &secrets[..] {
        [own, previous] => node.share_keys(own, previous),
        [a, b, c, pairs @ ..] => {
            let components = [a, b, c].map(Secret::clone);
            let pair = |k: usize| pairs.get(k).unwrap_or(&none).clone();
            node.four_keys(me, &components, &[0, 1, 2].map(pair))
        }
        _ => Ok(()),
    };
    match given {
        Err(NodeError::Register { .. }) => Ok(false),
        given => {
            given?;
            *there = all;
            Ok(true)
        }
    }
}

/// Where a column of a slot lies.
fn column_of(place: u32, column: u32) -> u64 {
    carrier::own(place) + 16 * u64::from(column * SLOT_WORDS)
}

/// The tag of the commands of a slot.
fn tag(place: u32) -> u32 {
    OF_PIECE | place
}

/// Whether a completion is of a piece.
pub(super) fn is_of_piece(completion: Completion) -> bool {
    match completion.event {
        Event::Arrived(_) => completion.tag & u32::from(CAME) != 0,
        Event::Command => completion.tag & OF_PIECE != 0,
        Event::Invoked(_) | Event::Packet(_) => false,
    }
}

/// MACs differed, and no message differs from its MAC any more: the sender of one has written again. No party is named then, as those who send
/// another one may have done nothing.
pub(super) fn changed() -> NodeError {
    NodeError::Host {
        why: "messages of a product were not what their codes say, and were changed before they could be told apart".to_owned(),
    }
}

impl Product {
    /// Its pieces, of at most so many words.
    fn pieces(self, longest: u32, keys: &Arc<Keys>) -> Vec<Piece> {
        let words = (self.columns[0].len() / 16) as u32;
        (0..words.div_ceil(longest))
            .map(|number| {
                let first = number * longest;
                let words = longest.min(words - first);
                let of = |column: &Zeroizing<Vec<u8>>| {
                    let bytes = &column[16 * first as usize..][..16 * words as usize];
                    Zeroizing::new(bytes.to_vec())
                };
                // Of sums each piece has a mask of its own, by a counter that no plan comes to.
                let counter = if self.sums {
                    self.call.counter + (u64::from(number) << 48)
                } else {
                    self.call.counter + u64::from(first)
                };
                Piece {
                    name: self.name,
                    number,
                    ring: self.ring,
                    sums: self.sums,
                    words,
                    columns: self.columns.iter().map(of).collect(),
                    call: Tuple {
                        counter,
                        ..self.call
                    },
                    // So has each MAC.
                    checks: self.checks.map(|layer| {
                        let piece = u64::from(self.name.number) << 16 | u64::from(number);
                        layer + ((piece + 1) << 32)
                    }),
                    keys: Arc::clone(keys),
                }
            })
            .collect()
    }
}

impl Inner {
    /// Takes a product of a party.
    pub(crate) fn multiply(&mut self, me: u8, product: Product, keys: &Arc<Keys>) {
        let longest = self.nodes[usize::from(me)].limits().longest.min(SLOT_WORDS);
        let (name, ring, sums) = (product.name, product.ring, product.sums);
        let pieces = product.pieces(longest, keys);
        let job = Job {
            left: pieces.len(),
            pieces: pieces.iter().map(|_| Vec::new()).collect(),
            differs: None,
            ring,
            sums,
        };
        let station = &mut self.stations[usize::from(me)];
        station.jobs.insert(name, job);
        station.queue.extend(pieces);
    }

    /// What came of a product, once all of it is there: all components; of sums single elements.
    pub(crate) fn take(&mut self, me: u8, name: &Name) -> Option<Result<Components, Differs>> {
        let jobs = &mut self.stations[usize::from(me)].jobs;
        let job = jobs.get(name)?;
        if let Some(differs) = job.differs {
            jobs.remove(name);
            return Some(Err(differs));
        }
        if job.left > 0 {
            return None;
        }
        jobs.remove(name).map(|job| Ok(job.whole()))
    }

    /// A device does not compute at a node any more.
    pub(super) fn leave(&mut self, me: u8) {
        let users = &mut self.stations[usize::from(me)].users;
        *users = users.saturating_sub(1);
        if *users == 0 {
            self.forget(me);
        }
    }

    /// Forgets the products of a party, and the keys under which it drew, and writes zeros over what its node has of them.
    fn forget(&mut self, me: u8) {
        let at = usize::from(me);
        self.stations[at] = Station::default();
        let zeros = Secret::new([0; 16]);
        let node = &mut self.nodes[at];
        let places = u64::from(SLOTS);
        // What goes on ends with zeros, and a node that takes no keys now is scrubbed in the end.
        let _ = node.store(carrier::own(0), &vec![0; (places * OWN) as usize]);
        let keys = [(); 3].map(|()| zeros.clone());
        let _ = node.share_keys(&zeros, &zeros);
        if node.limits().locals > 0 {
            let _ = node.four_keys(me, &keys, &keys);
        }
        for from in (0..self.nodes.len() as u8).filter(|from| *from != me) {
            let zeros = vec![0; (places * SENT) as usize];
            let _ = self.nodes[at].store(carrier::sent(from, 0), &zeros);
        }
        let _ = self.forget_circuits(me);
    }

    /// Starts what can be started, and takes what has come. Whether anything moved.
    pub(super) fn work(&mut self, me: u8) -> Result<bool, NodeError> {
        let mut moved = self.begin(me)?;
        for place in 0..SLOTS {
            moved |= if self.stations.len() == 4 {
                self.join(me, place)?
            } else {
                self.read(me, place)?
            };
        }
        Ok(moved)
    }

    /// Gives pieces slots, and their first commands to the node.
    fn begin(&mut self, me: u8) -> Result<bool, NodeError> {
        let at = usize::from(me);
        let mut moved = false;
        loop {
            if self.circuits.holds() {
                return Ok(moved);
            }
            let (node, station) = (&mut self.nodes[at], &mut self.stations[at]);
            let waits = station.waits_for_keys();
            let Some(piece) = station.queue.front() else {
                return Ok(moved);
            };
            if waits && !keyed(node, me, &mut station.keys, &piece.keys)? {
                return Ok(moved);
            }
            let name = piece.name;
            let Some(place) = self.stations[at].room(&name) else {
                return Ok(moved);
            };
            let Some(mut piece) = self.stations[at].queue.pop_front() else {
                return Ok(moved);
            };
            let node = &mut self.nodes[at];
            let place = place as u32;
            let columns = std::mem::take(&mut piece.columns);
            for (k, column) in (0..).zip(&columns) {
                node.store(column_of(place, k), column)?;
            }
            let lanes = node.limits().lanes;
            piece.words = piece.words.next_multiple_of(lanes);
            let mut command = match columns.len() {
                4 => piece.three(me, place, lanes),
                _ => piece.four(me, lanes, [place; 4]).local(me, tag(place)),
            };
            let mut rings = [(0, 0); 4];
            for to in command.to.iter_mut().filter(|to| to.node != me) {
                to.tell = Some(CAME | place as u16);
                rings[usize::from(to.node)].0 += 1;
            }
            node.submit(&command);
            let heard = (0..4).filter(|to| rings[*to].0 > 0);
            self.stations[at].places[place as usize] = Some(Placed {
                piece,
                stage: Stage::First,
                sent: false,
                rings,
                readers: heard.fold(0, |bits, to| bits | 1 << to),
            });
            moved = true;
        }
    }

    /// Three parties: reads the own component when it is there, and lets the next party have what came to it.
    fn read(&mut self, me: u8, place: u32) -> Result<bool, NodeError> {
        let at = usize::from(me);
        let Some(placed) = &self.stations[at].places[place as usize] else {
            return Ok(false);
        };
        let to = next(me);
        let (needed, heard) = placed.rings[usize::from(to)];
        if !placed.sent || heard < needed {
            return Ok(false);
        }
        let (name, number) = (placed.piece.name, placed.piece.number);
        let words = placed.piece.leaving(self.nodes[at].limits().lanes);
        let own = self.load(me, column_of(place, FACTORS), words)?;
        let sent = self.load(to, carrier::sent(me, place), words)?;
        self.free(me, place)?;
        self.stations[usize::from(to)]
            .came
            .insert((name, number), sent);
        if let Some(job) = self.stations[at].jobs.get_mut(&name) {
            job.pieces[number as usize].insert(0, own);
        }
        self.complete(me, (name, number));
        self.complete(to, (name, number));
        Ok(true)
    }

    /// Three parties: a piece is complete when the own component was read and the other one came.
    fn complete(&mut self, me: u8, (name, number): (Name, u32)) {
        let station = &mut self.stations[usize::from(me)];
        let Some(job) = station.jobs.get_mut(&name) else {
            return;
        };
        let parts = &mut job.pieces[number as usize];
        if parts.len() == 1
            && let Some(came) = station.came.remove(&(name, number))
        {
            parts.push(came);
            job.left -= 1;
        }
    }

    /// Four parties: joins messages when all of them and their MACs are there, and reads what came of it.
    fn join(&mut self, me: u8, place: u32) -> Result<bool, NodeError> {
        let at = usize::from(me);
        let Some(placed) = &self.stations[at].places[place as usize] else {
            return Ok(false);
        };
        if placed.stage == Stage::Over && placed.readers == 0 {
            self.free(me, place)?;
            return Ok(true);
        }
        if placed.stage != Stage::First || !placed.sent || self.circuits.holds() {
            return Ok(false);
        }
        let Some(places) = self.givers(me, placed) else {
            return Ok(false);
        };
        let lanes = self.nodes[at].limits().lanes;
        let command = placed.piece.four(me, lanes, places).join(me, tag(place));
        self.nodes[at].submit(&command);
        if let Some(placed) = &mut self.stations[at].places[place as usize] {
            placed.stage = Stage::Join;
        }
        Ok(true)
    }

    /// The slots of a piece at the nodes that give something to it, once all of that is there.
    fn givers(&self, me: u8, placed: &Placed) -> Option<[u32; 4]> {
        let (own, _) =
            self.stations[usize::from(me)].find(&placed.piece.name, placed.piece.number)?;
        let mut places = [own; 4];
        for k in four::received(me) {
            let joint = JOINT[usize::from(k)];
            let chunk = placed.piece.call.chunk;
            let voucher = placed.piece.checks.map(|_| joint.voucher(chunk));
            for giver in [Some(joint.sender(chunk)), voucher].into_iter().flatten() {
                let station = &self.stations[usize::from(giver)];
                let (place, theirs) = station.find(&placed.piece.name, placed.piece.number)?;
                let (needed, heard) = theirs.rings[usize::from(me)];
                if heard < needed {
                    return None;
                }
                places[usize::from(giver)] = place;
            }
        }
        Some(places)
    }

    /// A command of a piece has ended.
    pub(super) fn ended(&mut self, me: u8, completion: Completion) -> Result<(), NodeError> {
        let at = usize::from(me);
        let place = completion.tag & 0xff;
        let what = "a product";
        let known = self.stations[at]
            .places
            .get_mut(place as usize)
            .and_then(Option::as_mut);
        // Nothing of products that were forgotten.
        let Some(placed) = known else { return Ok(()) };
        match (placed.stage, completion.result) {
            (Stage::First, Ok(())) => placed.sent = true,
            (Stage::Join, Ok(())) => return self.joined(me, place),
            (Stage::Join, Err(Failure::Mismatch)) => self.ask(me, place, 0),
            (Stage::Asks(k), Ok(())) if k + 1 < four::received(me).len() => {
                self.ask(me, place, k + 1);
            }
            (Stage::Asks(_), Ok(())) => return Err(changed()),
            (Stage::Asks(k), Err(Failure::Mismatch)) => {
                placed.stage = Stage::Over;
                let name = placed.piece.name;
                if let Some(job) = self.stations[at].jobs.get_mut(&name) {
                    job.differs.get_or_insert(Differs(k));
                }
            }
            (_, Err(failure)) => return Err(NodeError::Failed { what, failure }),
            (Stage::Over, Ok(())) => {}
        }
        Ok(())
    }

    /// Compares one message of those that came with its MAC alone.
    fn ask(&mut self, me: u8, place: u32, k: usize) {
        let at = usize::from(me);
        let placed = &self.stations[at].places[place as usize];
        let Some((placed, places)) = placed
            .as_ref()
            .and_then(|at| Some((at, self.givers(me, at)?)))
        else {
            return;
        };
        let lanes = self.nodes[at].limits().lanes;
        let piece = placed.piece.four(me, lanes, places);
        let command = piece.only(me, tag(place), k);
        self.nodes[at].submit(&command);
        if let Some(placed) = &mut self.stations[at].places[place as usize] {
            placed.stage = Stage::Asks(k);
        }
    }

    /// A piece is joined: its result is read, and those who gave something to it may have their slots back.
    fn joined(&mut self, me: u8, place: u32) -> Result<(), NodeError> {
        let at = usize::from(me);
        let lanes = self.nodes[at].limits().lanes;
        let Some(placed) = &mut self.stations[at].places[place as usize] else {
            return Ok(());
        };
        placed.stage = Stage::Over;
        let (name, number) = (placed.piece.name, placed.piece.number);
        let words = placed.piece.leaving(lanes);
        let parts = [0, 1, 2].map(|part| self.load(me, column_of(place, part), words));
        let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
        if let Some(job) = self.stations[at].jobs.get_mut(&name) {
            job.pieces[number as usize] = parts;
            job.left -= 1;
        }
        for station in &mut self.stations {
            let places = station.places.iter_mut().flatten();
            for theirs in places.filter(|at| at.piece.name == name && at.piece.number == number) {
                theirs.readers &= !(1 << me);
            }
        }
        Ok(())
    }

    /// A doorbell: words of a piece came from a node.
    pub(super) fn heard(&mut self, me: u8, from: u8, tag: u16) {
        let place = self.stations[usize::from(from)]
            .places
            .get_mut(usize::from(tag & !CAME));
        if let Some(placed) = place.and_then(Option::as_mut) {
            placed.rings[usize::from(me)].1 += 1;
        }
    }

    /// A slot is free, and has nothing any more, here and where its messages went.
    fn free(&mut self, me: u8, place: u32) -> Result<(), NodeError> {
        let at = usize::from(me);
        self.nodes[at].store(column_of(place, 0), &vec![0; OWN as usize])?;
        for to in (0..self.nodes.len() as u8).filter(|to| *to != me) {
            let sent = carrier::sent(me, place);
            self.nodes[usize::from(to)].store(sent, &vec![0; SENT as usize])?;
        }
        self.stations[at].places[place as usize] = None;
        Ok(())
    }

    pub(super) fn load(
        &mut self,
        node: u8,
        address: u64,
        words: u32,
    ) -> Result<Zeroizing<Vec<u8>>, NodeError> {
        let mut bytes = Zeroizing::new(vec![0; 16 * words as usize]);
        self.nodes[usize::from(node)].load(address, &mut bytes)?;
        Ok(bytes)
    }
}
