//! Cores of `rtl/share` that take commands, and the models that Verilator made of them.

use std::ffi::c_void;

use veil_session::Secret;
use zeroize::Zeroizing;

use super::command::{COMMAND, CoreCommand};
use crate::Absent;
use crate::driver::CardError;
use crate::instance::{Free, Instance};
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
    /// Words of a beat, of each component.
    fn words(&self) -> usize;

    /// Messages of products that leave beside the results, bit k of message k; nothing, where the result is the message.
    fn sends(&self) -> Option<u8>;

    /// Runs commands.
    fn run(&mut self, batch: &mut Batch) -> Result<(), CardError>;
}

/// A stream of a model, in memory.
#[repr(C)]
pub(super) struct Segment {
    data: *mut u8,
    len: usize,
    /// Bytes that have moved.
    at: usize,
}

impl Segment {
    /// What a model reads.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Segment {
            data: bytes.as_ptr().cast_mut(),
            len: bytes.len(),
            at: 0,
        }
    }

    /// What it writes.
    pub(super) fn into(bytes: &mut [u8]) -> Self {
        Segment {
            data: bytes.as_mut_ptr(),
            len: bytes.len(),
            at: 0,
        }
    }

    /// All of it has to have moved.
    pub(super) fn whole(&self, what: &'static str) -> Result<(), CardError> {
        if self.at == self.len {
            return Ok(());
        }
        Err(CardError::Amount {
            what,
            got: self.at as u64,
            expected: self.len as u64,
        })
    }
}

/// Streams of a core: what it takes, and what it makes.
#[repr(C)]
pub(super) struct Work {
    commands: Segment,
    operands: Segment,
    results: Segment,
    messages: [Segment; MESSAGES],
}

impl Work {
    /// Those of a batch, whose commands are these bytes, while `run` has them.
    pub(super) fn of(
        batch: &mut Batch,
        run: impl FnOnce(*mut Work) -> u64,
    ) -> (u64, Result<(), CardError>) {
        let commands: Vec<[u8; COMMAND]> = batch.commands.iter().map(|c| c.to_bytes()).collect();
        let mut work = Work {
            commands: Segment::of(commands.as_flattened()),
            operands: Segment::of(&batch.operands),
            results: Segment::into(&mut batch.results),
            messages: batch.messages.each_mut().map(|m| Segment::into(m)),
        };
        let cycles = run(&raw mut work);
        let moved = work.results.whole("results");
        let moved = (work.messages.iter()).fold(moved, |all, m| all.and(m.whole("messages")));
        (cycles, moved)
    }
}

/// Words of a beat of the simulated core, as `build.rs` has it.
const WORDS: usize = 2;

struct Model {
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    key: unsafe extern "C" fn(*mut c_void, u32, *const u8),
    run: unsafe extern "C" fn(*mut c_void, *mut Work) -> u64,
    scrub: unsafe extern "C" fn(*mut c_void),
    ready: unsafe extern "C" fn(*mut c_void) -> bool,
}

/// The table of models, from the names of their functions.
macro_rules! rep3 {
    ($($size:literal: $new:ident $free:ident $key:ident $run:ident $scrub:ident $ready:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(seed: u64, rate: u32) -> *mut c_void;
                fn $free(core: *mut c_void);
                fn $key(core: *mut c_void, number: u32, key: *const u8);
                fn $run(core: *mut c_void, work: *mut Work) -> u64;
                fn $scrub(core: *mut c_void);
                fn $ready(core: *mut c_void) -> bool;
            )*
        }

        static MODELS: &[Model] = &[$(Model {
            new: $new,
            free: $free,
            key: $key,
            run: $run,
            scrub: $scrub,
            ready: $ready,
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/rep3.rs"));

/// The core of three parties, simulated: `rep3_core`.
pub(super) struct Rep3Core {
    model: &'static Model,
    core: Instance,
    cycles: u64,
}

impl Rep3Core {
    /// The core of this build, just switched on.
    pub(super) fn new(stalls: Stalls) -> Result<Self, Absent> {
        let model = MODELS.first().ok_or(crate::NONE)?;
        // SAFETY: the function has these arguments, and makes a core, which is freed by no other.
        let core = unsafe {
            let core = (model.new)(stalls.seed, stalls.rate.into());
            Instance::new(core, model.free)
        };
        Ok(Rep3Core {
            model,
            core,
            cycles: 0,
        })
    }

    /// Gives it the keys under which masks are drawn: its own, and the one of the party before it. All else is wiped.
    pub(super) fn keys(&mut self, keys: &[Secret; 2]) {
        self.scrub();
        for (number, key) in (0..).zip(keys) {
            // SAFETY: the core is there, and a key has 16 bytes.
            unsafe { (self.model.key)(self.core.as_ptr(), number, key.expose().as_ptr()) };
        }
    }

    /// Wipes keys and all that it computed.
    pub(super) fn scrub(&mut self) {
        // SAFETY: the core is there.
        unsafe { (self.model.scrub)(self.core.as_ptr()) };
    }

    /// Whether it has its keys.
    pub(super) fn ready(&self) -> bool {
        // SAFETY: the core is there.
        unsafe { (self.model.ready)(self.core.as_ptr()) }
    }

    /// Cycles that it has run commands so far.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }
}

impl Core for Rep3Core {
    fn words(&self) -> usize {
        WORDS
    }

    fn sends(&self) -> Option<u8> {
        None
    }

    fn run(&mut self, batch: &mut Batch) -> Result<(), CardError> {
        // SAFETY: the core is there, and `work` names memory that outlives the call.
        let (cycles, moved) = Work::of(batch, |work| unsafe {
            (self.model.run)(self.core.as_ptr(), work)
        });
        self.cycles += cycles;
        moved
    }
}
