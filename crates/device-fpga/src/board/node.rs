//! A node behind a socket, and the host's way to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use zeroize::Zeroizing;

use super::host::Board;
use super::serve::{Answered, Wrong};
use super::wire::{Answer, PAYLOAD, Request};
use super::{BOARD, BoardError, BoardFault, Identity};
use crate::node::{CYCLES_PER_POLL, MOST_NODES, Medium, Network, Port, Simulated};

/// Bytes of a command, at most: a head, and segments of all nodes.
const COMMAND: usize = 4 << 10;

/// Bytes of zeros that memory is wiped with at once.
const ZEROS: usize = 1 << 16;

/// A node of a simulated network, for a client.
pub(super) struct Stands {
    network: Network,
    node: u8,
    port: Simulated,
    /// Bytes of its memory.
    memory: u64,
}

impl Stands {
    pub(super) fn new(network: &Network, node: u8, memory: u64) -> Self {
        Stands {
            network: network.clone(),
            node,
            port: network.port(node),
            memory,
        }
    }

    /// Does what a client asks for. What is not answered has no answer here.
    pub(super) fn does(
        &mut self,
        request: &Request,
        payload: &[u8],
    ) -> Result<Option<Answered>, Wrong> {
        let gone = |_| Wrong::Order("a node that is gone");
        let mut bytes = Zeroizing::new(Vec::new());
        let answer = match *request {
            Request::Read(register) => match self.port.read(register).map_err(gone)? {
                Some(value) => Answer::Value(value),
                None => Answer::Done(false),
            },
            Request::Set(register, value) => {
                Answer::Done(self.port.write(register, value).map_err(gone)?)
            }
            Request::Command => {
                let (words, []) = payload.as_chunks::<16>() else {
                    return Err(Wrong::Order("a command that is no whole words"));
                };
                if words.is_empty() || payload.len() > COMMAND {
                    return Err(Wrong::Order("a command of other lengths than there are"));
                }
                let words: Vec<u128> = words
                    .iter()
                    .map(|word| u128::from_le_bytes(*word))
                    .collect();
                self.port.command(&words);
                return Ok(None);
            }
            Request::Completion => {
                let mut word = self.port.completion().map_err(gone)?;
                if word.is_none() {
                    // Time goes on while a host looks.
                    self.network.run(CYCLES_PER_POLL);
                    word = self.port.completion().map_err(gone)?;
                }
                Answer::Completion(word.map(u128::to_le_bytes))
            }
            Request::Pause => Answer::Done(self.port.wait().map_err(gone)?),
            Request::Load {
                address,
                bytes: length,
            } => {
                if length as usize > PAYLOAD {
                    return Err(Wrong::Order("more memory than a message has"));
                }
                bytes.resize(length as usize, 0);
                let there = self.port.load(address, &mut bytes).map_err(gone)?;
                if !there {
                    bytes.clear();
                }
                Answer::Done(there)
            }
            Request::Store { address } => {
                Answer::Done(self.port.store(address, payload).map_err(gone)?)
            }
            Request::Meters => Answer::Meters {
                cycle: self.network.cycle(),
                sent: self.network.sent(self.node),
            },
            _ => return Err(Wrong::Order("cores that this board does not have")),
        };
        Ok(Some((answer, bytes)))
    }

    /// Switches it off and on, and wipes its memory, when its client is gone.
    pub(super) fn scrub(&mut self) {
        self.network.reset(self.node);
        let zeros = vec![0; ZEROS];
        let mut address = 0;
        while address < self.memory {
            let some = (self.memory - address).min(ZEROS as u64);
            let _ = self.port.store(address, &zeros[..some as usize]);
            address += some;
        }
    }
}

impl Board {
    /// The way to the node of a party: number `node` of a network of `nodes`.
    pub(crate) fn node(&self, node: u8, nodes: u8) -> Result<Box<dyn Port>, BoardError> {
        let is = |identity: &Identity| {
            let of = identity.node.as_ref();
            of.is_some_and(|of| of.number == node && of.nodes == nodes)
        };
        self.has("that is the node of that party", is)?;
        Ok(Box::new(Remote(self.clone())))
    }

    /// What joins nodes.
    pub(crate) fn medium(boards: &[Board]) -> Box<dyn Medium> {
        Box::new(Meters {
            boards: boards.to_vec(),
            cycle: AtomicU64::new(0),
            sent: Default::default(),
        })
    }
}

/// A node of a board.
struct Remote(Board);

impl Remote {
    fn ask(
        &self,
        what: &'static str,
        request: &Request,
        payload: &[u8],
    ) -> Result<(Answer, Zeroizing<Vec<u8>>), BoardError> {
        self.0.lock().ask(what, request, payload)
    }

    /// The same of what is done, or refused.
    fn done(
        &self,
        what: &'static str,
        request: &Request,
        payload: &[u8],
    ) -> Result<bool, BoardError> {
        match self.ask(what, request, payload)? {
            (Answer::Done(done), _) => Ok(done),
            _ => Err(self.0.lock().unexpected(what)),
        }
    }
}

impl Port for Remote {
    fn name(&self) -> &'static str {
        BOARD
    }

    fn read(&mut self, register: u32) -> Result<Option<u32>, BoardError> {
        let what = "a read of a register";
        match self.ask(what, &Request::Read(register), &[])? {
            (Answer::Value(value), _) => Ok(Some(value)),
            (Answer::Done(false), _) => Ok(None),
            _ => Err(self.0.lock().unexpected(what)),
        }
    }

    fn write(&mut self, register: u32, value: u32) -> Result<bool, BoardError> {
        let request = Request::Set(register, value);
        self.done("a write of a register", &request, &[])
    }

    fn command(&mut self, words: &[u128]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // That it did not work is kept, and said when something is asked.
        let _ = self.0.lock().post("a command", &Request::Command, &bytes);
    }

    fn completion(&mut self) -> Result<Option<u128>, BoardError> {
        let what = "a completion";
        match self.ask(what, &Request::Completion, &[])? {
            (Answer::Completion(word), _) => Ok(word.map(u128::from_le_bytes)),
            _ => Err(self.0.lock().unexpected(what)),
        }
    }

    fn wait(&mut self) -> Result<bool, BoardError> {
        self.done("its commands", &Request::Pause, &[])
    }

    fn load(&mut self, address: u64, bytes: &mut [u8]) -> Result<bool, BoardError> {
        let what = "a read of its memory";
        let length = bytes.len() as u32;
        let request = Request::Load {
            address,
            bytes: length,
        };
        match self.ask(what, &request, &[])? {
            (Answer::Done(false), _) => Ok(false),
            (Answer::Done(true), payload) if payload.len() == bytes.len() => {
                bytes.copy_from_slice(&payload);
                Ok(true)
            }
            (Answer::Done(true), payload) => {
                let fault = BoardFault::Amount {
                    what: "memory",
                    got: payload.len() as u64,
                    expected: bytes.len() as u64,
                };
                Err(self.0.lock().lose(fault))
            }
            _ => Err(self.0.lock().unexpected(what)),
        }
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<bool, BoardError> {
        self.done("a write of its memory", &Request::Store { address }, bytes)
    }

    fn anew(&mut self) {
        self.0.lock().since = Instant::now();
    }
}

/// What boards say of the network between them. Of boards that are gone it is what they said last.
struct Meters {
    boards: Vec<Board>,
    cycle: AtomicU64,
    sent: [AtomicU64; MOST_NODES as usize],
}

impl Meters {
    fn ask(&self, node: u8) {
        let at = usize::from(node);
        let (Some(board), Some(to)) = (self.boards.get(at), self.sent.get(at)) else {
            return;
        };
        let mut line = board.lock();
        line.since = Instant::now();
        if let Ok((Answer::Meters { cycle, sent }, _)) =
            line.ask("the meters", &Request::Meters, &[])
        {
            self.cycle.store(cycle, Ordering::Relaxed);
            to.store(sent, Ordering::Relaxed);
        }
    }
}

impl Medium for Meters {
    fn cycle(&self) -> u64 {
        self.ask(0);
        self.cycle.load(Ordering::Relaxed)
    }

    /// Time goes on by itself.
    fn run(&self, _: u64) {}

    fn sent(&self, node: u8) -> u64 {
        self.ask(node);
        let sent = self.sent.get(usize::from(node));
        sent.map_or(0, |sent| sent.load(Ordering::Relaxed))
    }
}
