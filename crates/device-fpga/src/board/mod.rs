//! Boards that are processes: the boundary between a host and a board, over a socket of this machine.
//!
//! A board offers what the driver of a card offers to a program: registers, doorbells, an engine that reads and writes memory that the host has
//! registered, and completions. [`Board`] is the host's end: drivers reach a card ([`Transport`](crate::transport::Transport)) and cores of shares
//! through it as they reach simulated ones of their own process. [`Server`] is the board's end; behind it stand simulated cores, and
//! `docs/boards.md` describes all messages, so that another program can stand there.
//!
//! Promises: whatever a board answers, or does not, is a [`BoardError`] within [`Patience`], and no byte outside of the registered memory is read
//! or written. Whatever a host says, the server serves the next one. Does not promise that a board computes right: its host trusts it with labels
//! and shares, as it trusts a card.

mod card;
mod cores;
mod host;
mod node;
mod serve;
mod socket;
mod wire;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use host::{Board, fuzz_messages};
pub use serve::{Refusal, Server, Simulation, socket_of};

/// Name of the device, for reports.
pub(crate) const BOARD: &str = "fpga";

/// Version of the messages. A board and a host of different versions refuse each other.
pub const VERSION: u32 = 1;

/// How long a host waits for a board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For the greeting, and for a card while all are in use.
    pub greeting: Duration,
    /// For an answer, and for a card to get any further in what it was told.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            // A card that another device of the same run has just given back is free within milliseconds.
            greeting: Duration::from_secs(5),
            // Longer than a simulation takes to find out that its core is silent; shorter than the time after which other participants give a
            // silent party up, so that they hear the reason.
            answer: Duration::from_secs(20),
        }
    }
}

/// What a board has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// A garbler.
    Garbler,
    /// Cores of shares, of three parties and of four.
    Shares,
    /// Both.
    Both,
    /// A node of a network.
    Node,
}

impl Kind {
    /// Kinds of cards.
    pub const CARDS: [Kind; 3] = [Kind::Garbler, Kind::Shares, Kind::Both];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Garbler => "garbler",
            Kind::Shares => "shares",
            Kind::Both => "both",
            Kind::Node => "node",
        }
    }

    /// Whether it has a garbler.
    pub fn garbles(self) -> bool {
        matches!(self, Kind::Garbler | Kind::Both)
    }

    /// Whether it has cores of shares.
    pub fn shares(self) -> bool {
        matches!(self, Kind::Shares | Kind::Both)
    }
}

/// What a board says that it is. These are its own words: a driver goes by the identity registers.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// What it has.
    pub kind: Kind,
    /// What it was built from.
    pub build: String,
    /// The clock of its cores, in kHz.
    pub clock_khz: u32,
    /// Registers `ident` and `version` of its garbler, if it has one.
    pub registers: Option<[u32; 2]>,
    /// Which node it is, if it is one.
    pub node: Option<NodeOf>,
}

/// Which node of a network a board is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct NodeOf {
    /// Its number.
    pub number: u8,
    /// How many there are.
    pub nodes: u8,
    /// Whether it has workers for products of four parties.
    pub four: bool,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Bytes of another process: no control characters get to a terminal.
        let build = self.build.escape_debug();
        let mhz = f64::from(self.clock_khz) / 1000.0;
        write!(f, "{}, {build}, {mhz} MHz", self.kind.name())?;
        if let Some([ident, version]) = self.registers {
            write!(f, ", garbler {ident:#010x} of version {version:#010x}")?;
        }
        if let Some(NodeOf { number, nodes, .. }) = self.node {
            write!(f, ", number {number} of {nodes}")?;
        }
        Ok(())
    }
}

/// A board does not do what it should.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the board at {}: {fault}", socket.display())]
pub struct BoardError {
    /// Its socket.
    pub socket: PathBuf,
    /// What is wrong.
    pub fault: BoardFault,
}

impl BoardError {
    pub(crate) fn new(socket: &Path, fault: BoardFault) -> Self {
        BoardError {
            socket: socket.to_owned(),
            fault,
        }
    }
}

/// What is wrong with a board.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardFault {
    /// No process listens there.
    #[error(
        "no process serves it ({why}); `veil-lab card --socket PATH` does with simulated cores"
    )]
    Absent {
        /// What the operating system says.
        why: String,
    },
    /// The process belongs to another user.
    #[error("its process belongs to user {uid}, and this one to user {own}")]
    Stranger {
        /// The user.
        uid: u32,
        /// The user of this process.
        own: u32,
    },
    /// The process speaks another language.
    #[error("its process is no board: it greets with other bytes")]
    NoBoard,
    /// The board is of another version.
    #[error(
        "it speaks version {theirs} of the board's protocol, and this program version {VERSION}: use programs of one release"
    )]
    Version {
        /// Its version.
        theirs: u32,
    },
    /// It has no such cores.
    #[error("it is of kind {}, and a board {wanted} is wanted", got.name())]
    Kind {
        /// What it should have.
        wanted: &'static str,
        /// What it is.
        got: Kind,
    },
    /// All its cards are in use.
    #[error("all its cards, {cards} in number, are in use")]
    Busy {
        /// How many it has.
        cards: u32,
    },
    /// Nothing came, or nothing that leads any further.
    #[error("it got no further with {what} within {seconds} seconds")]
    Late {
        /// What it was told.
        what: &'static str,
        /// How long the host waited.
        seconds: u64,
    },
    /// Its process has ended, or has closed the connection.
    #[error("its process has closed the connection while the host waited for {what}")]
    Gone {
        /// What it was told.
        what: &'static str,
    },
    /// The connection does not work.
    #[error("the connection fails: {why}")]
    Connection {
        /// What the operating system says.
        why: String,
    },
    /// Bytes that are no message.
    #[error("it sent bytes that are no message of version {VERSION}")]
    Garbled,
    /// A message that is longer than any.
    #[error("it announces a message of {bytes} bytes, and {most} are the most")]
    TooLong {
        /// Announced bytes.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// A message that does not belong here.
    #[error("it sent a message of another kind in answer to {what}")]
    Unexpected {
        /// What it was told.
        what: &'static str,
    },
    /// Memory that the host has not registered.
    #[error(
        "its engine reaches for {bytes} bytes at {address:#x}, outside of the {memory} bytes of memory that the host registered"
    )]
    Memory {
        /// First address.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// Bytes that are registered.
        memory: u64,
    },
    /// More descriptors than it was given.
    #[error("it claims to be done with descriptor {head} of stream {stream}, and was given {tail}")]
    Descriptors {
        /// Number of the stream.
        stream: u8,
        /// How many it claims.
        head: u32,
        /// How many it was given.
        tail: u32,
    },
    /// An amount of bytes that the message cannot have.
    #[error("it sent {got} bytes of {what} in place of {expected}")]
    Amount {
        /// Of what.
        what: &'static str,
        /// Bytes that came.
        got: u64,
        /// Bytes that should have.
        expected: u64,
    },
}
