//! Commands of a node and their completions, as the unit's stream has them.

use veil_math::Ring;
use veil_prss::DomainTag;

use super::Limits;
use crate::lookaside as abi;

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Words from the sources to the destinations.
    Move,
    /// The sum modulo 2^128, word by word, of two columns.
    Add,
    /// The same bit by bit.
    Xor,
    /// The second of two columns, which has to be equal to the first.
    Check,
    /// The own component of the product of two columns of shares of three parties, twice (`docs/protocol-rep3.md`). Sources: own and
    /// previous component of the first factor, then of the second.
    Product(Ring),
    /// The own component of the sum of all products of such columns, masked once: one element in a beat whose other bytes are zero, twice.
    /// Not of bits, of which no unit knows it. What is no part of the sum is zero in a factor.
    Sum(Ring),
    /// Shares of random values: own components, then previous ones. No sources.
    Random,
    /// The first stage of products of shares of four parties (`docs/protocol-rep4.md`). Sources: the three components of the first factor, then
    /// of the second. Destinations: messages that are sent, MACs of the others, the three columns of shares that are not complete.
    Local(Stage),
    /// The second. Sources: these three columns, the messages that came, their MACs. Destinations: three columns of shares.
    Join(Stage),
    /// Gives out the commands of a [`List`] that lies in this node's memory: [`Command::list`].
    List,
    /// Waits for tells that are counted: [`Command::awaits`].
    Await,
}

/// Tags of tells from here on are counted at the node that is told, for [`Op::Await`], and its host hears nothing of them.
pub const COUNTED: u16 = 0x8000;

/// The MAC of a message: what its mask is drawn for, and whom this party makes it for, or has it from: the next party (0), the one opposite (1),
/// the previous one (2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mac {
    /// Use of the mask.
    pub tag: DomainTag,
    /// The other party.
    pub with: u8,
}

/// What a stage of a product of four parties does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Ring.
    pub ring: Ring,
    /// Products are added up over the rows: what leaves the first stage are single elements, which the second joins. Not of bits.
    pub sum: bool,
    /// Bytes of the last word that hold rows, less than 16; 0 if all do. Of a first stage of what comes, of a second one of what leaves.
    pub tail: u8,
    /// Of a first stage: bit k if message k leaves, in the order of cross terms. One or two do.
    pub sends: u8,
    /// Of a second stage: the component that each message is added to; there are one or two.
    pub to: [Option<u8>; 2],
    /// Whether there are MACs, and of which messages: in their order those that do not leave, or those that came.
    pub macs: Option<[Option<Mac>; 2]>,
    /// Counter of the masks of MACs: the number of the layer. Lane and chunk are those of the command's draws.
    pub counter: u64,
}

impl Stage {
    fn word(self) -> u128 {
        let macs = self.macs.unwrap_or_default();
        let mac = |k: usize, used: u32, with: u32| {
            macs[k].map_or(0, |mac| at(mac.tag.0, used) | at(mac.with & 3, with))
        };
        let ring = match self.ring {
            Ring::Bits => 0,
            Ring::Z64 => 1,
            // No program over Z_2^32 is loaded.
            Ring::Z128 | Ring::Z32 => 2u8,
        };
        let to = |k: usize, bit| at(self.to[k].unwrap_or(0) & 3, bit);
        at(self.counter, abi::STAGE_COUNTER_AT)
            | mac(0, abi::STAGE_USED_0_AT, abi::STAGE_WITH_0_AT)
            | mac(1, abi::STAGE_USED_1_AT, abi::STAGE_WITH_1_AT)
            | to(0, abi::STAGE_TO_0_AT)
            | to(1, abi::STAGE_TO_1_AT)
            | at(self.to[1].is_some(), abi::STAGE_TWO_AT)
            | at(self.sends & 7, abi::STAGE_SENDS_AT)
            | at(self.macs.is_some(), abi::STAGE_CHECKS_AT)
            | at(self.sum, abi::STAGE_SUM_AT)
            | at(ring, abi::STAGE_RING_AT)
            | at(self.tail & 15, abi::STAGE_TAIL_AT)
    }
}

/// An operation that no unit knows.
const NO_OP: u32 = 0xff;

impl Op {
    const fn number(self) -> u32 {
        match self {
            Op::Move => abi::OP_MOVE,
            Op::Add => abi::OP_ADD,
            Op::Xor => abi::OP_XOR,
            Op::Check => abi::OP_CHECK,
            Op::Product(Ring::Bits) => abi::OP_PRODUCT_BITS,
            Op::Product(Ring::Z64) => abi::OP_PRODUCT_64,
            Op::Product(Ring::Z128) => abi::OP_PRODUCT_128,
            Op::Sum(Ring::Bits | Ring::Z32) | Op::Product(Ring::Z32) => NO_OP,
            Op::Sum(Ring::Z64) => abi::OP_SUM_64,
            Op::Sum(Ring::Z128) => abi::OP_SUM_128,
            Op::Random => abi::OP_RANDOM,
            Op::Local(_) => abi::OP_LOCAL,
            Op::Join(_) => abi::OP_JOIN,
            Op::List => abi::OP_LIST,
            Op::Await => abi::OP_AWAIT,
        }
    }

    /// The word that says more, behind the draws.
    fn stage(self) -> Option<u128> {
        match self {
            Op::Local(stage) | Op::Join(stage) => Some(stage.word()),
            _ => None,
        }
    }
}

/// Words of 16 bytes behind one another, at a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Node.
    pub node: u8,
    /// Address of its first byte in that node's memory, where a beat begins.
    pub address: u64,
    /// Words: of whole beats ([`super::Limits::lanes`]).
    pub words: u32,
    /// Of a destination at another node: that node's host is told with this tag when the words are there; from [`COUNTED`] on the node counts it.
    pub tell: Option<u16>,
}

impl Segment {
    /// Words at a node, of which no node is told.
    pub const fn new(node: u8, address: u64, words: u32) -> Self {
        Segment {
            node,
            address,
            words,
            tell: None,
        }
    }

    fn word(self) -> u128 {
        let (tag, tells) = self.tell.map_or((0, 0), |tag| (tag, 1u8));
        at(tag, abi::SEGMENT_TAG_AT)
            | at(tells, abi::SEGMENT_TELLS_AT)
            | at(self.node, abi::SEGMENT_NODE_AT)
            | at(self.words, abi::SEGMENT_WORDS_AT)
            | at(self.address, abi::SEGMENT_ADDRESS_AT)
    }
}

/// What the PRF is told for the first word that a command draws; the counter goes on by one for each further word.
///
/// A tuple is used once under a key: of a command that failed as well, since others may have seen what it masked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuple {
    /// What it is used for.
    pub tag: DomainTag,
    /// Lane.
    pub lane: u16,
    /// Counter of the first word.
    pub counter: u64,
    /// Chunk.
    pub chunk: u32,
}

/// A command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// What it does.
    pub op: Op,
    /// Comes back with its completion.
    pub tag: u32,
    /// Words of a column, of whole beats.
    pub words: u32,
    /// What it draws; operations without randomness have none.
    pub call: Option<Tuple>,
    /// Where its columns come from, in the order in which they are read.
    pub from: Vec<Segment>,
    /// Where results go, in order.
    pub to: Vec<Segment>,
}

impl Command {
    /// A command that draws nothing.
    pub fn new(op: Op, tag: u32, words: u32, from: Vec<Segment>, to: Vec<Segment>) -> Self {
        Command {
            op,
            tag,
            words,
            call: None,
            from,
            to,
        }
    }

    /// The commands of a list that lies in these segments of this node's memory. It ends when they have ended.
    pub fn list(tag: u32, from: Vec<Segment>) -> Self {
        let words = from.iter().map(|segment| segment.words).sum();
        Command::new(Op::List, tag, words, from, Vec::new())
    }

    /// Waits until each of these nodes has told of so many puts with tags that are [`COUNTED`], and takes them off its count. It cannot be armed.
    pub fn awaits(tag: u32, tells: &[(u8, u16)]) -> Self {
        let segments = tells.iter();
        let segments = segments.map(|&(node, count)| Segment::new(node, 0, count.into()));
        Command::new(Op::Await, tag, 0, Vec::new(), segments.collect())
    }

    /// As it goes to the unit; armed, it waits in a slot until another node invokes it.
    pub(super) fn encode(&self, slot: Option<u8>) -> Vec<u128> {
        let armed = slot.map_or(0, |slot| {
            at(1u8, abi::COMMAND_ARMED_AT) | at(slot & 15, abi::COMMAND_SLOT_AT)
        });
        let head = at(self.tag, abi::COMMAND_TAG_AT)
            | at(self.words, abi::COMMAND_WORDS_AT)
            | armed
            | head(self.op.number(), self.from.len(), self.to.len());
        let call = self.call.map_or(0, |call| {
            at(call.tag.0, abi::DRAW_USED_AT)
                | at(call.lane, abi::DRAW_LANE_AT)
                | at(call.counter, abi::DRAW_COUNTER_AT)
                | at(call.chunk, abi::DRAW_CHUNK_AT)
        });
        let segments = self.from.iter().chain(&self.to);
        [head, call]
            .into_iter()
            .chain(self.op.stage())
            .chain(segments.map(|segment| segment.word()))
            .collect()
    }
}

/// Commands for a node's memory, which its unit runs by itself: [`Command::list`].
///
/// Those of a kind begin in their order, and several go on at once, as those of a host. A command that ends well has no completion. After one that
/// fails, which has, no further one begins; the list's own completion has the first failure.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct List {
    words: Vec<u128>,
}

impl List {
    /// An empty list, which no unit takes.
    pub fn new() -> Self {
        List::default()
    }

    /// Puts a command behind the others. `after`: it begins when all before it have ended.
    pub fn push(&mut self, command: &Command, after: bool) {
        self.extend(command.encode(None), after);
    }

    /// The same of a command that starts armed ones: slots of other nodes.
    pub fn invoke(&mut self, tag: u32, slots: &[(u8, u8)], after: bool) {
        self.extend(invocation(tag, slots), after);
    }

    /// Its words of 16 bytes, up to a whole beat of so many.
    pub fn words(&self, lanes: u32) -> u32 {
        (self.words.len() as u32).next_multiple_of(lanes.max(1))
    }

    /// Its bytes, up to a whole beat of so many words.
    pub fn bytes(&self, lanes: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = self
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        bytes.resize(16 * self.words(lanes) as usize, 0);
        bytes
    }

    fn extend(&mut self, mut command: Vec<u128>, after: bool) {
        if let Some(head) = command.first_mut() {
            *head |= at(after, abi::COMMAND_AFTER_AT);
        }
        self.words.extend(command);
    }
}

/// A command that starts armed ones: slots of nodes.
pub(super) fn invocation(tag: u32, slots: &[(u8, u8)]) -> Vec<u128> {
    let head = at(tag, abi::COMMAND_TAG_AT) | head(abi::OP_INVOKE, 0, slots.len());
    let slots = slots
        .iter()
        .map(|&(node, slot)| Segment::new(node, slot.into(), 0).word());
    [head, 0].into_iter().chain(slots).collect()
}

fn head(op: u32, from: usize, to: usize) -> u128 {
    // More than the unit takes is `malformed`; more than fits its fields must not become something else.
    let count = |some: usize| u8::try_from(some).unwrap_or(u8::MAX);
    at(count(from), abi::COMMAND_SOURCES_AT)
        | at(count(to), abi::COMMAND_DESTINATIONS_AT)
        | at(op, abi::COMMAND_OP_AT)
}

fn at(value: impl Into<u128>, bit: u32) -> u128 {
    value.into() << bit
}

/// Words of a command below which it mostly waits for its answers.
const SHORTEST: u32 = 256;

/// A layer of products of three parties: two columns of shares of any length, cut into commands that the unit's sharers keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Ring.
    pub ring: Ring,
    /// Words of a column.
    pub words: u32,
    /// Addresses of own and previous component of the first factor, and of the second.
    pub from: [[u64; 2]; 2],
    /// Address of the own component of the product.
    pub own: u64,
    /// The next party, and the address there that the same words go to, as that party's previous component.
    pub next: (u8, u64),
    /// The next party's host is told with this tag when the last of them are there.
    pub tell: Option<u16>,
    /// What masks are drawn from.
    pub call: Tuple,
}

impl Layer {
    /// Its commands for node `me`, whose unit has `limits`, with tags from `tag` on. The message leaves before the own copy is written.
    ///
    /// Each sharer has one of them, where they are neither longer than it keeps nor too short: one loads while another one computes.
    pub fn commands(self, me: u8, limits: Limits, tag: u32) -> impl Iterator<Item = Command> {
        let step = self.words.div_ceil(limits.sharers.max(1)).max(SHORTEST);
        let step = step
            .next_multiple_of(limits.lanes)
            .min(limits.longest)
            .max(1);
        (0..self.words.div_ceil(step)).map(move |k| {
            let first = k * step;
            let words = step.min(self.words - first);
            let place = |address: u64| address + 16 * u64::from(first);
            let from = self.from.iter().flatten();
            let last = first + words == self.words;
            let message = Segment {
                tell: self.tell.filter(|_| last),
                ..Segment::new(self.next.0, place(self.next.1), words)
            };
            Command {
                op: Op::Product(self.ring),
                tag: tag + k,
                words,
                call: Some(Tuple {
                    counter: self.call.counter + u64::from(first),
                    ..self.call
                }),
                from: (from.map(|&address| Segment::new(me, place(address), words))).collect(),
                to: vec![message, Segment::new(me, place(self.own), words)],
            }
        })
    }
}

/// What a completion is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A command of this node.
    Command,
    /// An armed command, which that node started.
    Invoked(u8),
    /// Words that that node put here.
    Arrived(u8),
    /// A packet to or from that node.
    Packet(u8),
}

/// Why something failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The command is none.
    #[error(
        "it has other segments than it says, or too many, or there is no such stage, or a list holds no commands"
    )]
    Malformed,
    /// No worker does it.
    #[error("no worker knows the operation")]
    Unknown,
    /// Words do not add up.
    #[error(
        "sources or destinations have not the words of the operation, no whole beats, or more than a worker keeps"
    )]
    Length,
    /// Out of a window.
    #[error("a segment lies outside its window, or does not begin with a beat")]
    Address,
    /// There is no such node.
    #[error("a segment is at a node that there is not")]
    Node,
    /// Memory failed.
    #[error("memory answered with an error")]
    Memory,
    /// A node is silent.
    #[error("another node did not answer in time, or tell of what is awaited")]
    Gone,
    /// The accelerator refused what it was given.
    #[error("columns or codes that should be equal differ")]
    Mismatch,
    /// The slot was not free, or not armed for the node that invoked it; or the command may not be where it is.
    #[error(
        "the slot is armed already, or is not armed for this node, or the command may not be armed or in a list, or too many lists wait"
    )]
    Refused,
    /// Keys are missing.
    #[error("keys of shares were not written")]
    NoKey,
    /// A packet did not leave.
    #[error("a packet was not sent: {0}")]
    Unsent(Sealing),
    /// A packet that came was not given out.
    #[error("a packet was thrown away: {0}")]
    Unopened(Sealing),
}

/// What the inline path says of a packet (`docs/inline.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Sealing {
    /// Its length.
    #[error("its length is wrong")]
    Length,
    /// Its nodes.
    #[error("it is of another version or between other nodes")]
    Node,
    /// No key.
    #[error("there is no key for this direction")]
    NoKey,
    /// The key is used up.
    #[error("the key has sealed all its packets")]
    Spent,
    /// The tag is wrong.
    #[error("its tag is wrong")]
    Forged,
    /// The counter is wrong.
    #[error("packets before it are missing, or it came before")]
    Order,
}

impl Sealing {
    fn of(number: u32) -> Option<Self> {
        Some(match number {
            1 => Sealing::Length,
            2 => Sealing::Node,
            3 => Sealing::NoKey,
            4 => Sealing::Spent,
            5 => Sealing::Forged,
            6 => Sealing::Order,
            _ => return None,
        })
    }
}

/// How something ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What it is of.
    pub event: Event,
    /// Tag of the command, or of the words; 0 of packets.
    pub tag: u32,
    /// What went wrong, if anything did.
    pub result: Result<(), Failure>,
}

impl Completion {
    /// From a word of the stream; none if it is not one that the registers describe.
    pub(super) fn decode(word: u128) -> Option<Self> {
        let field = |bit: u32| (word >> bit) as u8;
        let node = field(abi::COMPLETION_NODE_AT);
        let event = match field(abi::COMPLETION_KIND_AT).into() {
            abi::EVENT_COMMAND => Event::Command,
            abi::EVENT_INVOKED => Event::Invoked(node),
            abi::EVENT_ARRIVED => Event::Arrived(node),
            abi::EVENT_PACKET => Event::Packet(node),
            _ => return None,
        };
        let tag = (word >> abi::COMPLETION_TAG_AT) as u32;
        let failure = match field(abi::COMPLETION_STATUS_AT).into() {
            abi::STATUS_OK => None,
            abi::STATUS_MALFORMED => Some(Failure::Malformed),
            abi::STATUS_UNKNOWN => Some(Failure::Unknown),
            abi::STATUS_LENGTH => Some(Failure::Length),
            abi::STATUS_ADDRESS => Some(Failure::Address),
            abi::STATUS_NODE => Some(Failure::Node),
            abi::STATUS_MEMORY => Some(Failure::Memory),
            abi::STATUS_GONE => Some(Failure::Gone),
            abi::STATUS_MISMATCH => Some(Failure::Mismatch),
            abi::STATUS_REFUSED => Some(Failure::Refused),
            abi::STATUS_NO_KEY => Some(Failure::NoKey),
            abi::STATUS_PACKET => {
                let sealing = Sealing::of(tag & 0xff)?;
                Some(if tag >> 8 == 0 {
                    Failure::Unsent(sealing)
                } else {
                    Failure::Unopened(sealing)
                })
            }
            _ => return None,
        };
        Some(Completion {
            event,
            tag: if matches!(event, Event::Packet(_)) {
                0
            } else {
                tag
            },
            result: failure.map_or(Ok(()), Err),
        })
    }
}
