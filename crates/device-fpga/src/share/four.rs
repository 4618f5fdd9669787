//! The two stages of products of four parties: drivers of `rep4_local` and `rep4_join`, over any port.

use veil_device::{Frame, PrfCall};
use veil_session::Secret;
use zeroize::Zeroizing;

use super::core::{self, Batch, Core, MESSAGES};
use super::port::{self, Begins, Order, Port, Said};
use crate::Absent;
use crate::driver::CardError;
use crate::sim::Stalls;

/// MACs that a stage makes at once.
pub(super) const MACS: usize = 2;

/// Bytes of a MAC, and of a key.
pub(super) const MAC_BYTES: usize = 16;

/// Which party of four a core is, and what it does with the messages of products.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setting {
    /// The opposite cross term goes to component 2, not 0.
    pub(crate) swapped: bool,
    /// There are five draws, not four.
    pub(crate) five: bool,
    /// The lowest bits of the use of each draw.
    pub(crate) subs: [u8; 5],
    /// Messages that leave, bit k of message k; of the others MACs are made.
    pub(crate) sends: u8,
}

impl Setting {
    /// All messages.
    pub(crate) const ALL: u8 = (1 << MESSAGES) - 1;

    /// As the core takes it, `share_pkg::form_t`.
    pub(crate) fn form(self) -> u32 {
        let subs = self.subs.iter().rev();
        let subs = subs.fold(0, |bits, sub| bits << 3 | u32::from(*sub));
        u32::from(self.swapped) << 16 | u32::from(self.five) << 15 | subs
    }
}

/// MACs that begin: the keys of two parties, and the draws of their masks.
pub(super) struct Begin<'a> {
    /// The chunk.
    pub(super) frame: Frame,
    /// Of each MAC its key and its draw; their counters are the same.
    pub(super) macs: &'a [(&'a Secret, PrfCall)],
}

impl Begin<'_> {
    /// Tells a core, which says whether it has begun.
    fn tell(&self, port: &mut dyn Port) -> Result<(), CardError> {
        let mut begins = Begins {
            keys: [0; MACS * MAC_BYTES],
            used: 0,
            lane: self.frame.lane,
            counter: self.macs.first().map_or(0, |(_, call)| call.first),
            chunk: self.frame.chunk,
        };
        for (k, (key, call)) in self.macs.iter().enumerate() {
            begins.keys[k * MAC_BYTES..][..MAC_BYTES].copy_from_slice(key.expose());
            begins.used |= u32::from(call.tag.0) << (16 * k);
        }
        let what = "keys of codes";
        match port.order(&Order::Begin(begins))? {
            Said::Yes => Ok(()),
            _ => Err(CardError::Silent { what }),
        }
    }
}

/// In how many cycles a product starts on the folded core, which `build.rs` makes where it is asked for it.
pub const FOLDED: u32 = 6;

/// The first stage: `rep4_local`.
pub(super) struct Rep4Local {
    port: Box<dyn Port>,
    setting: Setting,
    cycles: u64,
}

impl Rep4Local {
    /// The simulated core in which a product starts in so many cycles: 1, or [`FOLDED`].
    pub(super) fn folded(fold: u32, stalls: Stalls) -> Result<Self, Absent> {
        Ok(Self::with(port::folded(fold, stalls)?))
    }

    /// The core behind a port.
    pub(super) fn with(port: Box<dyn Port>) -> Self {
        Rep4Local {
            port,
            setting: Setting::default(),
            cycles: 0,
        }
    }

    /// Gives it the keys of components 0, 1, 2. All else is wiped.
    pub(super) fn keys(&mut self, keys: &[Secret; 3]) -> Result<(), CardError> {
        self.scrub()?;
        for (number, key) in (0..).zip(keys) {
            self.port.order(&Order::key(number, key))?;
        }
        Ok(())
    }

    /// Says which party it is. If it `checks`, MACs of the messages that do not leave are made from [`begin`](Self::begin) on.
    pub(super) fn set(&mut self, setting: Setting, checks: bool) -> Result<(), CardError> {
        self.setting = setting;
        let (form, sends) = (setting.form(), setting.sends);
        let order = Order::Form {
            form,
            sends,
            checks,
        };
        self.port.order(&order).map(|_| ())
    }

    /// Begins MACs of the messages that do not leave, in the order of these messages.
    pub(super) fn begin(&mut self, begin: &Begin<'_>) -> Result<(), CardError> {
        begin.tell(&mut *self.port)
    }

    /// The MACs, after the column that closes them.
    pub(super) fn macs(&mut self, count: usize) -> Result<[[u8; MAC_BYTES]; MACS], CardError> {
        let what = "columns of a code";
        let count = count as u32;
        let Said::Codes {
            cycles,
            codes: macs,
        } = self.port.order(&Order::Codes { count })?
        else {
            return Err(CardError::Silent { what });
        };
        self.cycles += cycles;
        let (macs, _) = macs.as_chunks();
        match macs {
            [one, two] if cycles > 0 => Ok([*one, *two]),
            _ => Err(CardError::Silent { what }),
        }
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

impl Core for Rep4Local {
    fn name(&self) -> &'static str {
        self.port.name()
    }

    fn words(&self) -> usize {
        1
    }

    fn sends(&self) -> Option<u8> {
        Some(self.setting.sends)
    }

    fn run(&mut self, batch: &mut Batch) -> Result<(), CardError> {
        let (cycles, moved) = core::run(&mut *self.port, batch)?;
        self.cycles += cycles;
        moved
    }
}

/// What the second stage is given, and what it makes.
#[derive(Default)]
pub(super) struct Joining {
    /// Records of words: three components, ring, bytes that hold rows, whether it is the last of its column, what that closes.
    pub(super) shares: Zeroizing<Vec<u8>>,
    /// Words of each message, as many.
    pub(super) messages: [Vec<u8>; MACS],
    /// Words of complete shares.
    pub(super) results: Zeroizing<Vec<u8>>,
}

/// Bytes of a record.
pub(super) const RECORD: usize = MESSAGES * MAC_BYTES + 4;

/// The second stage: `rep4_join`.
pub(super) struct Rep4Join {
    port: Box<dyn Port>,
    cycles: u64,
}

impl Rep4Join {
    /// The core behind a port.
    pub(super) fn with(port: Box<dyn Port>) -> Self {
        Rep4Join { port, cycles: 0 }
    }

    /// Name of the kind of port, for reports.
    pub(super) fn name(&self) -> &'static str {
        self.port.name()
    }

    /// Says to which components the messages are added, one or two of them, and whether there are MACs of them.
    pub(super) fn set(&mut self, to: &[u8], checks: bool) -> Result<(), CardError> {
        let two = to.len() == MACS;
        let to = to.iter().rev().fold(0, |bits, part| bits << 2 | part);
        let order = Order::Parts { two, to, checks };
        self.port.order(&order).map(|_| ())
    }

    /// Begins MACs of the messages.
    pub(super) fn begin(&mut self, begin: &Begin<'_>) -> Result<(), CardError> {
        begin.tell(&mut *self.port)
    }

    /// Adds messages to shares. The caller must not use these before the [verdict](Self::verdict).
    pub(super) fn run(&mut self, joining: &mut Joining) -> Result<(), CardError> {
        let [one, two] = &joining.messages;
        let given: [&[u8]; 3] = [&joining.shares, one, two];
        let ran = self.port.run(&given, &mut [&mut joining.results])?;
        self.cycles += ran.cycles;
        core::whole("complete shares", ran.moved[0], &joining.results)
    }

    /// Whether these are the MACs of the messages.
    pub(super) fn verdict(&mut self, macs: &[[u8; MAC_BYTES]; MACS]) -> Result<bool, CardError> {
        let mut both = [0; MACS * MAC_BYTES];
        both.copy_from_slice(macs.as_flattened());
        let silent = CardError::Silent { what: "codes" };
        let Said::Verdict { cycles, said } = self.port.order(&Order::Verdict(both))? else {
            return Err(silent);
        };
        self.cycles += cycles;
        match said {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(silent),
        }
    }

    /// Wipes all that it computed.
    pub(super) fn scrub(&mut self) -> Result<(), CardError> {
        self.port.order(&Order::Scrub).map(|_| ())
    }

    /// Cycles that it has run so far.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }
}
