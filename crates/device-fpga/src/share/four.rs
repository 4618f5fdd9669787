//! The two stages of products of four parties, simulated: `rep4_local` and `rep4_join`.

use std::ffi::c_void;

use veil_device::{Draw, Frame};
use veil_session::Secret;
use zeroize::Zeroizing;

use super::core::{Batch, Core, MESSAGES, Segment, Work};
use crate::Absent;
use crate::driver::CardError;
use crate::instance::{Free, Instance};
use crate::sim::Stalls;

/// Codes that a stage makes at once.
pub(super) const CODES: usize = 2;

/// Bytes of a code, and of a key.
pub(super) const CODE: usize = 16;

/// Which party of four a core is, and what it does with the messages of products.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setting {
    /// The opposite cross term goes to component 2, not 0.
    pub(crate) swapped: bool,
    /// There are five draws, not four.
    pub(crate) five: bool,
    /// The lowest bits of the use of each draw.
    pub(crate) subs: [u8; 5],
    /// Messages that leave, bit k of message k; of the others codes are made.
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

/// Codes that begin: the keys of two parties, and the draws of their masks.
pub(super) struct Begin<'a> {
    /// The chunk.
    pub(super) frame: Frame,
    /// Of each code its key and its draw; their counters are the same.
    pub(super) codes: &'a [(&'a Secret, Draw)],
}

/// The same, as models take it.
#[repr(C)]
struct Begins {
    keys: [u8; CODES * CODE],
    used: u32,
    lane: u16,
    counter: u64,
    chunk: u32,
}

impl Begin<'_> {
    /// Tells a model, which says whether it has begun.
    fn tell(&self, begin: impl FnOnce(*const Begins) -> bool) -> Result<(), CardError> {
        let mut keys = Zeroizing::new([0; CODES * CODE]);
        let mut used = 0;
        for (k, (key, draw)) in self.codes.iter().enumerate() {
            keys[k * CODE..][..CODE].copy_from_slice(key.expose());
            used |= u32::from(draw.tag.0) << (16 * k);
        }
        let begins = Zeroizing::new(Begins {
            keys: *keys,
            used,
            lane: self.frame.lane,
            counter: self.codes.first().map_or(0, |(_, draw)| draw.first),
            chunk: self.frame.chunk,
        });
        if begin(&raw const *begins) {
            return Ok(());
        }
        let what = "keys of codes";
        Err(CardError::Silent { what })
    }
}

impl zeroize::Zeroize for Begins {
    fn zeroize(&mut self) {
        self.keys.zeroize();
    }
}

struct LocalModel {
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    key: unsafe extern "C" fn(*mut c_void, u32, *const u8),
    set: unsafe extern "C" fn(*mut c_void, u32, u8, bool),
    begin: unsafe extern "C" fn(*mut c_void, *const Begins) -> bool,
    run: unsafe extern "C" fn(*mut c_void, *mut Work) -> u64,
    codes: unsafe extern "C" fn(*mut c_void, u32, *mut u8) -> u64,
    scrub: unsafe extern "C" fn(*mut c_void),
    ready: unsafe extern "C" fn(*mut c_void) -> bool,
}

/// The table of models, from the names of their functions.
macro_rules! rep4_local {
    ($($size:literal: $new:ident $free:ident $key:ident $set:ident $begin:ident $run:ident $codes:ident $scrub:ident $ready:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(seed: u64, rate: u32) -> *mut c_void;
                fn $free(core: *mut c_void);
                fn $key(core: *mut c_void, number: u32, key: *const u8);
                fn $set(core: *mut c_void, form: u32, sends: u8, checks: bool);
                fn $begin(core: *mut c_void, begins: *const Begins) -> bool;
                fn $run(core: *mut c_void, work: *mut Work) -> u64;
                fn $codes(core: *mut c_void, count: u32, codes: *mut u8) -> u64;
                fn $scrub(core: *mut c_void);
                fn $ready(core: *mut c_void) -> bool;
            )*
        }

        static LOCAL_MODELS: &[LocalModel] = &[$(LocalModel {
            new: $new,
            free: $free,
            key: $key,
            set: $set,
            begin: $begin,
            run: $run,
            codes: $codes,
            scrub: $scrub,
            ready: $ready,
        }),*];
    };
}

/// The same of folded cores.
macro_rules! rep4_folded {
    ($($models:tt)*) => {
        mod folded {
            use super::*;

            rep4_local! { $($models)* }

            /// Those of this build.
            pub(super) fn models() -> &'static [LocalModel] {
                LOCAL_MODELS
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/rep4_local.rs"));
include!(concat!(env!("OUT_DIR"), "/rep4_folded.rs"));

/// In how many cycles a product starts on the folded core, which `build.rs` makes where it is asked for it.
pub const FOLDED: u32 = 6;

/// The first stage: `rep4_local`.
pub(super) struct Rep4Local {
    model: &'static LocalModel,
    core: Instance,
    setting: Setting,
    cycles: u64,
}

impl Rep4Local {
    /// The core of this build, just switched on.
    pub(super) fn new(stalls: Stalls) -> Result<Self, Absent> {
        Self::folded(1, stalls)
    }

    /// The core in which a product starts in so many cycles: 1, or [`FOLDED`].
    pub(super) fn folded(fold: u32, stalls: Stalls) -> Result<Self, Absent> {
        let models = match fold {
            1 => LOCAL_MODELS,
            FOLDED => folded::models(),
            _ => &[],
        };
        let model = models.first().ok_or(crate::NONE)?;
        // SAFETY: the function has these arguments, and makes a core, which is freed by no other.
        let core = unsafe {
            let core = (model.new)(stalls.seed, stalls.rate.into());
            Instance::new(core, model.free)
        };
        Ok(Rep4Local {
            model,
            core,
            setting: Setting::default(),
            cycles: 0,
        })
    }

    /// Gives it the keys of components 0, 1, 2. All else is wiped.
    pub(super) fn keys(&mut self, keys: &[Secret; 3]) {
        self.scrub();
        for (number, key) in (0..).zip(keys) {
            // SAFETY: the core is there, and a key has 16 bytes.
            unsafe { (self.model.key)(self.core.as_ptr(), number, key.expose().as_ptr()) };
        }
    }

    /// Says which party it is. If it `checks`, codes of the messages that do not leave are made from [`begin`](Self::begin) on.
    pub(super) fn set(&mut self, setting: Setting, checks: bool) {
        self.setting = setting;
        // SAFETY: the core is there.
        unsafe { (self.model.set)(self.core.as_ptr(), setting.form(), setting.sends, checks) };
    }

    /// Begins codes of the messages that do not leave, in the order of these messages.
    pub(super) fn begin(&mut self, begin: &Begin<'_>) -> Result<(), CardError> {
        // SAFETY: the core is there.
        begin.tell(|begins| unsafe { (self.model.begin)(self.core.as_ptr(), begins) })
    }

    /// The codes, after the column that closes them.
    pub(super) fn codes(&mut self, count: usize) -> Result<[[u8; CODE]; CODES], CardError> {
        let mut codes = [[0; CODE]; CODES];
        let into = codes.as_flattened_mut().as_mut_ptr();
        // SAFETY: the core is there, and `into` has room for both codes.
        let cycles = unsafe { (self.model.codes)(self.core.as_ptr(), count as u32, into) };
        self.cycles += cycles;
        let what = "columns of a code";
        (cycles > 0)
            .then_some(codes)
            .ok_or(CardError::Silent { what })
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

impl Core for Rep4Local {
    fn words(&self) -> usize {
        1
    }

    fn sends(&self) -> Option<u8> {
        Some(self.setting.sends)
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

/// What the second stage is given, and what it makes.
#[derive(Default)]
pub(super) struct Joining {
    /// Records of words: three components, ring, bytes that hold rows, whether it is the last of its column, what that closes.
    pub(super) shares: Zeroizing<Vec<u8>>,
    /// Words of each message, as many.
    pub(super) messages: [Vec<u8>; CODES],
    /// Words of complete shares.
    pub(super) results: Zeroizing<Vec<u8>>,
}

/// Bytes of a record.
pub(super) const RECORD: usize = MESSAGES * CODE + 4;

#[repr(C)]
struct JoinWork {
    shares: Segment,
    messages: [Segment; CODES],
    results: Segment,
}

struct JoinModel {
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    set: unsafe extern "C" fn(*mut c_void, bool, u8, bool),
    begin: unsafe extern "C" fn(*mut c_void, *const Begins) -> bool,
    run: unsafe extern "C" fn(*mut c_void, *mut JoinWork) -> u64,
    verdict: unsafe extern "C" fn(*mut c_void, *const u8, *mut u64) -> u32,
    scrub: unsafe extern "C" fn(*mut c_void),
}

/// The table of models, from the names of their functions.
macro_rules! rep4_join {
    ($($size:literal: $new:ident $free:ident $set:ident $begin:ident $run:ident $verdict:ident $scrub:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(seed: u64, rate: u32) -> *mut c_void;
                fn $free(core: *mut c_void);
                fn $set(core: *mut c_void, two: bool, to: u8, checks: bool);
                fn $begin(core: *mut c_void, begins: *const Begins) -> bool;
                fn $run(core: *mut c_void, work: *mut JoinWork) -> u64;
                fn $verdict(core: *mut c_void, codes: *const u8, cycles: *mut u64) -> u32;
                fn $scrub(core: *mut c_void);
            )*
        }

        static JOIN_MODELS: &[JoinModel] = &[$(JoinModel {
            new: $new,
            free: $free,
            set: $set,
            begin: $begin,
            run: $run,
            verdict: $verdict,
            scrub: $scrub,
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/rep4_join.rs"));

/// The second stage: `rep4_join`.
pub(super) struct Rep4Join {
    model: &'static JoinModel,
    core: Instance,
    cycles: u64,
}

impl Rep4Join {
    /// The core of this build, just switched on.
    pub(super) fn new(stalls: Stalls) -> Result<Self, Absent> {
        let model = JOIN_MODELS.first().ok_or(crate::NONE)?;
        // SAFETY: the function has these arguments, and makes a core, which is freed by no other.
        let core = unsafe {
            let core = (model.new)(stalls.seed, stalls.rate.into());
            Instance::new(core, model.free)
        };
        Ok(Rep4Join {
            model,
            core,
            cycles: 0,
        })
    }

    /// Says to which components the messages are added, one or two of them, and whether there are codes of them.
    pub(super) fn set(&mut self, to: &[u8], checks: bool) {
        let two = to.len() == CODES;
        let to = to.iter().rev().fold(0, |bits, part| bits << 2 | part);
        // SAFETY: the core is there.
        unsafe { (self.model.set)(self.core.as_ptr(), two, to, checks) };
    }

    /// Begins codes of the messages.
    pub(super) fn begin(&mut self, begin: &Begin<'_>) -> Result<(), CardError> {
        // SAFETY: the core is there.
        begin.tell(|begins| unsafe { (self.model.begin)(self.core.as_ptr(), begins) })
    }

    /// Adds messages to shares. Nobody may use these before the [verdict](Self::verdict).
    pub(super) fn run(&mut self, joining: &mut Joining) -> Result<(), CardError> {
        let [one, two] = &joining.messages;
        let mut work = JoinWork {
            shares: Segment::of(&joining.shares),
            messages: [Segment::of(one), Segment::of(two)],
            results: Segment::into(&mut joining.results),
        };
        // SAFETY: the core is there, and `work` names memory that outlives the call.
        self.cycles += unsafe { (self.model.run)(self.core.as_ptr(), &raw mut work) };
        work.results.whole("complete shares")
    }

    /// Whether these are the codes of the messages.
    pub(super) fn verdict(&mut self, codes: &[[u8; CODE]; CODES]) -> Result<bool, CardError> {
        let mut cycles = 0;
        let codes = codes.as_flattened().as_ptr();
        // SAFETY: the core is there, and `codes` are two.
        let said = unsafe { (self.model.verdict)(self.core.as_ptr(), codes, &raw mut cycles) };
        self.cycles += cycles;
        match said {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(CardError::Silent { what: "codes" }),
        }
    }

    /// Wipes all that it computed.
    pub(super) fn scrub(&mut self) {
        // SAFETY: the core is there.
        unsafe { (self.model.scrub)(self.core.as_ptr()) };
    }

    /// Cycles that it has run so far.
    pub(super) fn cycles(&self) -> u64 {
        self.cycles
    }
}
