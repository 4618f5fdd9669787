//! Cores of `rtl/share` that take commands: their driver, over any port.

use veil_session::Secret;
use zeroize::Zeroizing;

use super::command::{COMMAND, CoreCommand};
use super::port::{Order, Port, Said};
use crate::Absent;
use crate::driver::CardError;
use crate::sim::Stalls;

/// Messages of a product, at most.
pub(super) const MESSAGES: usize = 3;

/// Commands that a core is given at once, what they are about, and what comes of them.
#[derive(Default)]
pub(super) struct Batch {
    /// Commands.
    pub(super) commands: Vec<CoreCommand>,
    /// Beats {a, b} of each.
    pub(super) operands: Zeroizing<Vec<u8>>,
    /// Beats of results: as long as it has to become.
    pub(super) results: Zeroizing<Vec<u8>>,
    /// Words of messages, the same.
    pub(super) messages: [Vec<u8>; MESSAGES],
}

impl Batch {
    /// With room for so many bytes of operands.
    pub(super) fn with_operands(bytes: usize) -> Self {
        Batch {
            operands: Zeroizing::new(Vec::with_capacity(bytes)),
            ..Batch::default()
        }
    }

    /// Makes room for what comes: bytes of results, and of each message that leaves.
    pub(super) fn room(&mut self, results: usize, message: usize, sends: Option<u8>) {
        self.results.resize(results, 0);
        for (k, bytes) in self.messages.iter_mut().enumerate() {
            if sends.unwrap_or(0) >> k & 1 == 1 {
                bytes.resize(message, 0);
            }
        }
    }
}

/// A core that runs commands of replicated sharing.
pub(super) trait Core {
    /// Name of the kind of port, for reports.
    fn name(&self) -> &'static str;

    /// Words of a beat, of each component.
    fn words(&self) -> usize;

    /// Messages of products that leave beside the results, bit k of message k; nothing, where the result is the message.
    fn sends(&self) -> Option<u8>;

    /// Runs commands.
    fn run(&mut self, batch: &mut Batch) -> Result<(), CardError>;
}

/// All of a stream has to have moved.
pub(super) fn whole(what: &'static str, moved: u64, bytes: &[u8]) -> Result<(), CardError> {
    let expected = bytes.len() as u64;
    if moved == expected {
        return Ok(());
    }
    Err(CardError::Amount {
        what,
        got: moved,
        expected,
    })
}

/// Runs the commands of a batch behind a port. Gives the cycles that it took.
pub(super) fn run(
    port: &mut dyn Port,
    batch: &mut Batch,
) -> Result<(u64, Result<(), CardError>), CardError> {
    let commands: Vec<[u8; COMMAND]> = batch.commands.iter().map(|c| c.to_bytes()).collect();
    let given: [&[u8]; 2] = [commands.as_flattened(), &batch.operands];
    let [one, two, three] = &mut batch.messages;
    let mut made: [&mut [u8]; 1 + MESSAGES] = [&mut batch.results, one, two, three];
    let ran = port.run(&given, &mut made)?;
    let names = ["results", "messages", "messages", "messages"];
    let mut all = Ok(());
    for ((what, moved), bytes) in names.into_iter().zip(ran.moved).zip(&made) {
        all = all.and(whole(what, moved, bytes));
    }
    Ok((ran.cycles, all))
}

/// Words of a beat of the core of three parties, as `build.rs` has it.
pub(super) const WORDS: usize = 2;

/// The core of three parties: `rep3_core`.
pub(super) struct Rep3Core {
    port: Box<dyn Port>,
    cycles: u64,
}

impl Rep3Core {
    /// The simulated core of this build, just switched on.
    pub(super) fn new(stalls: Stalls) -> Result<Self, Absent> {
        let [rep3, ..] = super::port::simulated(stalls)?;
        Ok(Self::with(rep3))
    }

    /// The core behind a port.
    pub(super) fn with(port: Box<dyn Port>) -> Self {
        Rep3Core { port, cycles: 0 }
    }

    /// Gives it the keys under which masks are drawn: its own, and the one of the party before it. All else is wiped.
    pub(super) fn keys(&mut self, keys: &[Secret; 2]) -> Result<(), CardError> {
        self.scrub()?;
        for (number, key) in (0..).zip(keys) {
            self.port.order(&Order::key(number, key))?;
        }
        Ok(())
    }

    /// Wipes keys and all that it computed.
    pub(super) fn scrub(&mut self) -> Result<(), CardError> {
        self.port.order(&Order::Scrub).map(|_| ())
    }

    /// Whether it has its keys.
    pub(super) fn ready(&mut self) -> bool {
        matches!(self.port.order(&Order::Ready), Ok(Said::Yes))
    }

    /// Cycles that it has run commands so far.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }
}

impl Core for Rep3Core {
    fn name(&self) -> &'static str {
        self.port.name()
    }

    fn words(&self) -> usize {
        WORDS
    }

    fn sends(&self) -> Option<u8> {
        None
    }

    fn run(&mut self, batch: &mut Batch) -> Result<(), CardError> {
        let (cycles, moved) = run(&mut *self.port, batch)?;
        self.cycles += cycles;
        moved
    }
}
