//! Nodes: the driver of a lookaside unit behind its inline path, over any port, and nodes in simulation on a modelled network.
//!
//! `docs/lookaside.md` says what a unit does, and `docs/node.md` how parties use it. A host writes windows and keys, queues commands and reads
//! completions; words of shares move between memories, cores and nodes without it. With armed commands a host does so beforehand, and the host of
//! another node starts each round at all of them.
//!
//! Promises: every command has one completion, or the unit is [`NodeError::Silent`]. Keys are wiped by [`Node::scrub`], which also ends all
//! commands, and when a node is dropped. Does not promise that a tuple is drawn from once: that is for who plans commands.

mod carrier;
pub(crate) mod circuit;
mod command;
mod four;
mod headless;
mod host;
mod link;
mod loopback;
mod measure;
mod parties;
mod quartet;
mod simulated;
mod trio;
pub(crate) mod work;

use veil_session::Secret;

use crate::board::BoardError;
use crate::lookaside as abi;

pub(crate) use carrier::{CYCLES_PER_POLL, Medium, roomy};
pub use carrier::{Carrier, PartyNode, User};
pub use circuit::{Circuits, Parties, Plan, PrfCounters, Site, Unfit};
pub use command::{
    COUNTED, Command, Completion, Event, Failure, Layer, List, Mac, Op, Sealing, Segment, Stage,
    Tuple,
};
pub(crate) use four::part;
pub use four::{JOINT, Joint, crosses, received};
pub use headless::Headless;
pub(crate) use headless::Task;
pub use host::Host;
pub use link::Carried;
pub use loopback::Loopback;
pub use measure::{Accesses, Throughput, accesses, latency, throughput, throughput_of_four};
pub use parties::{Armed, Start, link_key};
pub use quartet::{Products, Quartet, code_key, component_key};
pub use simulated::{CLOCK_MHZ, Fault, LANES, Network, Shape, Simulated};
pub use trio::{Trio, pair_key};
pub use work::SLOTS;

/// Most nodes of a network.
pub const MOST_NODES: u8 = 4;

/// How often a unit is asked whether it has ended what goes on, before it is silent. It takes a key, or scrubs, in some thousand cycles.
const LOOKS: u32 = 1 << 14;

/// A node does not do what it should.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// It is no lookaside unit, or one of another version.
    #[error("it says that it is {ident:#010x} of version {version:#010x}; the driver is of lookaside units {}.x from {0}.{1} on",
        abi::VERSION_VALUE >> 16, abi::VERSION_VALUE & 0xffff)]
    Other {
        /// What it says it is.
        ident: u32,
        /// Its version.
        version: u32,
    },
    /// It answered an access to a register with an error: it is busy, or there is no such register.
    #[error("register {address:#05x} was refused: commands go on, or it is not there")]
    Register {
        /// Address.
        address: u32,
    },
    /// It says nothing.
    #[error("it was given {what}, and has been silent since")]
    Silent {
        /// What it was given.
        what: &'static str,
    },
    /// A completion that the registers do not describe.
    #[error("it gave a completion of no known kind: {word:#034x}")]
    Completion {
        /// The completion.
        word: u128,
    },
    /// Bytes outside its memory.
    #[error("bytes at {address:#x} are not in its memory")]
    Memory {
        /// First address.
        address: u64,
    },
    /// What came of a product is of no use to the host.
    #[error("its host cannot go on: {why}")]
    Host {
        /// Why.
        why: String,
    },
    /// Its board is gone, or is none.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// Something ended in another way than it should.
    #[error("{what}: {failure}")]
    Failed {
        /// What.
        what: &'static str,
        /// Why.
        failure: Failure,
    },
}

/// How a driver reaches a node: registers, the stream of commands, that of completions, and the memory that the unit works on.
///
/// A node that is gone answers nothing any more: whatever is asked of it has the same [`BoardError`], at once. Simulated nodes of this process are never
/// gone.
pub trait Port: Send {
    /// Name of the kind, for reports.
    fn name(&self) -> &'static str;

    /// Reads a register; none if it was answered with an error.
    ///
    /// # Errors
    /// [`BoardError`] if the node is gone.
    fn read(&mut self, register: u32) -> Result<Option<u32>, BoardError>;

    /// Writes a register; whether it was not answered with an error.
    ///
    /// # Errors
    /// [`BoardError`] if the node is gone.
    fn write(&mut self, register: u32, value: u32) -> Result<bool, BoardError>;

    /// Queues the words of a command, the last of which ends its packet, and rings the doorbell. That the node is gone says what is asked next.
    fn command(&mut self, words: &[u128]);

    /// The next completion, if there is one.
    ///
    /// # Errors
    /// [`BoardError`] if the node is gone.
    fn completion(&mut self) -> Result<Option<u128>, BoardError>;

    /// Waits until there is a completion. `false`: none came in all the time that a unit may take.
    ///
    /// # Errors
    /// [`BoardError`] if the node is gone.
    fn wait(&mut self) -> Result<bool, BoardError>;

    /// Reads memory; whether it is there.
    ///
    /// # Errors
    /// [`BoardError`] if the node is gone.
    fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<bool, BoardError>;

    /// Writes memory; whether it is there.
    ///
    /// # Errors
    /// [`BoardError`] if the node is gone.
    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<bool, BoardError>;

    /// Something else begins: the time that the node may take begins anew. A node that is asked again and again, and gets no further, is gone when that
    /// time is over.
    fn anew(&mut self) {}
}

/// What a unit has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Workers that move words and invoke.
    pub movers: u32,
    /// Workers that add columns.
    pub adders: u32,
    /// Workers that compute on shares of three parties.
    pub sharers: u32,
    /// Workers for the first stage of products of four parties.
    pub locals: u32,
    /// Workers for the second.
    pub joins: u32,
    /// Words of a column that is kept: of all commands but moves.
    pub longest: u32,
    /// Commands that may be armed.
    pub slots: u32,
    /// Words in a beat of memory: addresses are multiples of so many, and so are words.
    pub lanes: u32,
}

/// A part of a memory: where it begins, a multiple of 16, and how many words of 16 bytes it has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Window {
    /// Address.
    pub address: u64,
    /// Words; 0 allows nothing.
    pub words: u32,
}

/// Parameters of a node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NodeConfig {
    /// Its number.
    pub node: u8,
    /// Cycles after which a node that owes an answer is gone. 0 waits for ever, and is only for a host that trusts the network.
    pub timeout: u32,
    /// What its own commands use.
    pub own: Window,
    /// What each node may write.
    pub put: [Window; MOST_NODES as usize],
    /// What each node may read.
    pub get: [Window; MOST_NODES as usize],
    /// Nodes that may start armed commands: bit n is node n.
    pub invoke_from: u8,
}

/// A direction of packets between a node and another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the other node.
    Seal,
    /// From it.
    Open,
}

/// A node and its driver.
pub struct Node {
    port: Box<dyn Port>,
    /// Whether what is asked belongs to one thing that is waited for.
    waits: bool,
    limits: Limits,
    accesses: Accesses,
}

impl Drop for Node {
    fn drop(&mut self) {
        // A unit that does not answer any more keeps what it has until it is switched off.
        let _ = self.scrub();
    }
}

impl Node {
    /// Takes a unit into use: it is reset, so that it has neither keys nor windows nor commands.
    ///
    /// # Errors
    /// [`NodeError::Other`] if the unit is no lookaside unit, or of another major or an older minor version;
    /// [`NodeError::Register`] if it refuses a register; [`NodeError::Silent`] if it does not end its reset.
    pub fn open(mut port: Box<dyn Port>) -> Result<Self, NodeError> {
        let refused = |address| NodeError::Register { address };
        port.anew();
        let mut read = |at| port.read(at)?.ok_or(refused(at));
        let (ident, version) = (read(abi::IDENT)?, read(abi::VERSION)?);
        let (major, minor) = (abi::VERSION_VALUE >> 16, abi::VERSION_VALUE & 0xffff);
        if ident != abi::IDENT_VALUE || version >> 16 != major || version & 0xffff < minor {
            return Err(NodeError::Other { ident, version });
        }
        let limits = Limits {
            movers: read(abi::MOVERS)?,
            adders: read(abi::ADDERS)?,
            sharers: read(abi::SHARERS)?,
            locals: read(abi::LOCALS)?,
            joins: read(abi::JOINS)?,
            longest: read(abi::LONGEST)?,
            slots: read(abi::SLOTS)?,
            lanes: read(abi::LANES)?.max(1),
        };
        let mut node = Node {
            port,
            waits: false,
            limits,
            accesses: Accesses::default(),
        };
        node.end(abi::CONTROL_RESET)?;
        Ok(node)
    }

    /// What it has.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Name of the kind of port.
    pub fn name(&self) -> &'static str {
        self.port.name()
    }

    /// What its host has done so far.
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// Writes all parameters. Refused while commands go on.
    ///
    /// # Errors
    /// [`NodeError::Register`] if commands go on.
    pub fn set_up(&mut self, config: &NodeConfig) -> Result<(), NodeError> {
        self.write(abi::NODE, config.node.into())?;
        self.set_timeout(config.timeout)?;
        self.write_two(abi::OWN_BASE, config.own.address)?;
        self.write(abi::OWN_WORDS, config.own.words)?;
        let windows = [
            (abi::PUT_BASE, abi::PUT_WORDS, config.put),
            (abi::GET_BASE, abi::GET_WORDS, config.get),
        ];
        for (base, words, windows) in windows {
            for (k, window) in (0..).zip(windows) {
                self.write_two(base + 8 * k, window.address)?;
                self.write(words + 4 * k, window.words)?;
            }
        }
        self.write(abi::INVOKE_FROM, config.invoke_from.into())
    }

    /// Says after how many cycles a node that owes an answer is gone. Refused while commands go on.
    ///
    /// # Errors
    /// [`NodeError::Register`] if commands go on.
    pub fn set_timeout(&mut self, cycles: u32) -> Result<(), NodeError> {
        self.write(abi::TIMEOUT, cycles)
    }

    /// Gives the inline path the key of a direction, which is used for nothing else, and not again. Refused while commands go on.
    ///
    /// # Errors
    /// [`NodeError::Register`] if commands go on, [`NodeError::Silent`] if the unit does not take the key.
    pub fn link_key(
        &mut self,
        other: u8,
        direction: Direction,
        key: &Secret,
        salt: u32,
    ) -> Result<(), NodeError> {
        self.write_key(abi::KEY, key)?;
        self.write(abi::SALT, salt)?;
        self.write(abi::KEY_NODE, other.into())?;
        let load = match direction {
            Direction::Seal => abi::LOAD_SEAL,
            Direction::Open => abi::LOAD_OPEN,
        };
        self.write(abi::LOAD, load)?;
        self.until("a key", |node| {
            Ok(node.read(abi::KEYS)? & abi::KEYS_WAITS == 0)
        })
    }

    /// Gives the sharers the keys that this party has with the next one, and with the previous one. Refused while commands go on.
    ///
    /// # Errors
    /// [`NodeError::Register`] if commands go on.
    pub fn share_keys(&mut self, own: &Secret, previous: &Secret) -> Result<(), NodeError> {
        self.write_key(abi::OWN_KEY, own)?;
        self.write_key(abi::PREVIOUS_KEY, previous)
    }

    /// Says which party of four this is, and gives the workers its keys: of components 0, 1, 2, and of MACs with the next party, the one
    /// opposite, the previous one. Refused while commands go on.
    ///
    /// # Errors
    /// [`NodeError::Register`] if commands go on.
    pub fn four_keys(
        &mut self,
        me: u8,
        components: &[Secret; 3],
        pairs: &[Secret; 3],
    ) -> Result<(), NodeError> {
        self.write(abi::FORM, four::form(me))?;
        let registers = [
            abi::COMPONENT_0,
            abi::COMPONENT_1,
            abi::COMPONENT_2,
            abi::PAIR_NEXT,
            abi::PAIR_OPPOSITE,
            abi::PAIR_PREVIOUS,
        ];
        for (address, key) in registers.into_iter().zip(components.iter().chain(pairs)) {
            self.write_key(address, key)?;
        }
        Ok(())
    }

    /// Queues a command.
    pub fn submit(&mut self, command: &Command) {
        self.give(&command.encode(None));
    }

    /// Leaves a command in a slot, for another node to start. Only what is wrong with it has a completion before that.
    pub fn arm(&mut self, slot: u8, command: &Command) {
        self.give(&command.encode(Some(slot)));
    }

    /// Queues the invocation of armed commands: slots of other nodes. It ends when they have ended.
    pub fn invoke(&mut self, tag: u32, slots: &[(u8, u8)]) {
        self.give(&command::invocation(tag, slots));
    }

    /// The next completion, if there is one.
    ///
    /// # Errors
    /// [`NodeError::Completion`] if the registers do not describe it.
    pub fn poll(&mut self) -> Result<Option<Completion>, NodeError> {
        self.anew();
        let Some(word) = self.port.completion()? else {
            return Ok(None);
        };
        self.accesses.completions += 1;
        let completion = Completion::decode(word);
        completion.map(Some).ok_or(NodeError::Completion { word })
    }

    /// Waits for the next completion.
    ///
    /// # Errors
    /// [`NodeError::Completion`] as of [`Node::poll`]; [`NodeError::Silent`], with `what` was asked, if none comes.
    pub fn next(&mut self, what: &'static str) -> Result<Completion, NodeError> {
        self.waiting(|node| {
            loop {
                if let Some(completion) = node.poll()? {
                    return Ok(completion);
                }
                if !node.port.wait()? {
                    return Err(NodeError::Silent { what });
                }
            }
        })
    }

    /// Asks as often as it takes for one thing, in the time that there is for one.
    fn waiting<T>(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<T, NodeError>,
    ) -> Result<T, NodeError> {
        self.anew();
        let before = std::mem::replace(&mut self.waits, true);
        let came = f(self);
        self.waits = before;
        came
    }

    fn anew(&mut self) {
        if !self.waits {
            self.port.anew();
        }
    }

    /// Waits until commands have ended, those of `tags`. The first failure of anything, whatever it is of, ends the waiting.
    ///
    /// # Errors
    /// [`NodeError::Failed`] with the first failure, else [`NodeError`] as of [`Node::next`].
    pub fn finish(&mut self, what: &'static str, tags: &[u32]) -> Result<(), NodeError> {
        let mut left = tags.to_vec();
        while !left.is_empty() {
            let completion = self.next(what)?;
            if let Err(failure) = completion.result {
                return Err(NodeError::Failed { what, failure });
            }
            if matches!(completion.event, Event::Command | Event::Invoked(_)) {
                left.retain(|tag| *tag != completion.tag);
            }
        }
        Ok(())
    }

    /// Whether commands go on, or a scrub.
    ///
    /// # Errors
    /// [`NodeError::Register`] if the unit refuses the register.
    pub fn is_busy(&mut self) -> Result<bool, NodeError> {
        Ok(self.read(abi::STATUS)? & abi::STATUS_BUSY != 0)
    }

    /// Packets that were thrown away since the last reset because no command waited for them, or they were too many.
    ///
    /// # Errors
    /// [`NodeError::Register`] if the unit refuses the register.
    pub fn dropped(&mut self) -> Result<u32, NodeError> {
        self.read(abi::DROPPED)
    }

    /// Ends all commands, armed ones too, and wipes keys and all words that are under way. Completions that waited are dropped.
    ///
    /// # Errors
    /// [`NodeError::Register`] if the unit refuses the register, [`NodeError::Silent`] if it does not end the scrub.
    pub fn scrub(&mut self) -> Result<(), NodeError> {
        self.end(abi::CONTROL_SCRUB)
    }

    /// Scrubs, and writes zeros over a window of the memory: after it nothing is left of what was computed there.
    ///
    /// # Errors
    /// [`NodeError`] as of [`Node::scrub`]; [`NodeError::Memory`] if the window is not in the memory.
    pub fn abort(&mut self, window: Window) -> Result<(), NodeError> {
        self.scrub()?;
        let zeros = [0; 1 << 12];
        let mut address = window.address;
        let mut left = 16 * u64::from(window.words);
        while left > 0 {
            let some = left.min(zeros.len() as u64);
            self.store(address, &zeros[..some as usize])?;
            (address, left) = (address + some, left - some);
        }
        Ok(())
    }

    /// Reads its memory.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the bytes are not in it.
    pub fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), NodeError> {
        self.anew();
        if self.port.load(address, bytes)? {
            Ok(())
        } else {
            Err(NodeError::Memory { address })
        }
    }

    /// Writes its memory.
    ///
    /// # Errors
    /// [`NodeError::Memory`] if the bytes are not in it.
    pub fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), NodeError> {
        self.anew();
        if self.port.store(address, bytes)? {
            Ok(())
        } else {
            Err(NodeError::Memory { address })
        }
    }

    fn end(&mut self, how: u32) -> Result<(), NodeError> {
        self.write(abi::CONTROL, how)?;
        self.until("a scrub", |node| Ok(!node.is_busy()?))?;
        self.waiting(|node| {
            for _ in 0..LOOKS {
                if node.port.completion()?.is_none() {
                    return Ok(());
                }
            }
            let what = "a scrub";
            Err(NodeError::Silent { what })
        })
    }

    fn until(
        &mut self,
        what: &'static str,
        mut ends: impl FnMut(&mut Self) -> Result<bool, NodeError>,
    ) -> Result<(), NodeError> {
        self.waiting(|node| {
            for _ in 0..LOOKS {
                if ends(node)? {
                    return Ok(());
                }
            }
            Err(NodeError::Silent { what })
        })
    }

    fn give(&mut self, words: &[u128]) {
        self.anew();
        self.accesses.commands += 1;
        self.port.command(words);
    }

    fn read(&mut self, address: u32) -> Result<u32, NodeError> {
        self.accesses.reads += 1;
        self.anew();
        let value = self.port.read(address)?;
        value.ok_or(NodeError::Register { address })
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), NodeError> {
        self.accesses.writes += 1;
        self.anew();
        if self.port.write(address, value)? {
            Ok(())
        } else {
            Err(NodeError::Register { address })
        }
    }

    fn write_two(&mut self, address: u32, value: u64) -> Result<(), NodeError> {
        self.write(address, value as u32)?;
        self.write(address + 4, (value >> 32) as u32)
    }

    fn write_key(&mut self, address: u32, key: &Secret) -> Result<(), NodeError> {
        for (k, word) in (0..).zip(key.expose().as_chunks().0) {
            self.write(address + 4 * k, u32::from_le_bytes(*word))?;
        }
        Ok(())
    }
}
