//! Cores of shares that are simulated: the models that Verilator made of them.

use std::ffi::c_void;
use std::ptr;

use zeroize::Zeroizing;

use super::command::{COMMAND, WORD};
use super::core::{MESSAGES, WORDS};
use super::four::{FOLDED, MAC_BYTES, MACS, RECORD};
use super::port::{Begins, MADE, Order, Port, Ran, Said};
use crate::Absent;
use crate::driver::CardError;
use crate::instance::{Free, Instance};
use crate::sim::Stalls;

/// Name of the kind of port.
const SIMULATED: &str = "fpga-sim";

/// The simulated cores of this build, just switched on: that of three parties, and both stages of four.
pub(crate) fn simulated(stalls: Stalls) -> Result<[Box<dyn Port>; 3], Absent> {
    let rep3 = MODELS.first().ok_or(crate::NONE)?;
    let join = JOIN_MODELS.first().ok_or(crate::NONE)?;
    // SAFETY: both functions have these arguments, and make cores, which are freed by no others.
    let (three, second) = unsafe {
        let three = Instance::new((rep3.new)(stalls.seed, stalls.rate.into()), rep3.free);
        let second = Instance::new((join.new)(stalls.seed, stalls.rate.into()), join.free);
        (three, second)
    };
    Ok([
        Box::new(Three {
            model: rep3,
            core: three,
        }),
        folded(1, stalls)?,
        Box::new(Join {
            model: join,
            core: second,
        }),
    ])
}

/// The first stage of four parties in which a product starts in so many cycles: 1, or [`FOLDED`].
pub(super) fn folded(fold: u32, stalls: Stalls) -> Result<Box<dyn Port>, Absent> {
    let models = match fold {
        1 => LOCAL_MODELS,
        FOLDED => folded_cores::models(),
        _ => &[],
    };
    let model = models.first().ok_or(crate::NONE)?;
    // SAFETY: the function has these arguments, and makes a core, which is freed by no other.
    let core = unsafe {
        let core = (model.new)(stalls.seed, stalls.rate.into());
        Instance::new(core, model.free)
    };
    Ok(Box::new(Local { model, core }))
}

/// A stream of a model, in memory.
#[repr(C)]
struct Segment {
    data: *mut u8,
    len: usize,
    /// Bytes that have moved.
    at: usize,
}

impl Segment {
    /// Stream `at` of those that a model reads; an empty one if there is none.
    fn of(given: &[&[u8]], at: usize) -> Self {
        given.get(at).map_or_else(Self::none, |bytes| Segment {
            data: bytes.as_ptr().cast_mut(),
            len: bytes.len(),
            at: 0,
        })
    }

    /// The same of those that it writes.
    fn into(made: &mut [&mut [u8]], at: usize) -> Self {
        made.get_mut(at).map_or_else(Self::none, |bytes| Segment {
            data: bytes.as_mut_ptr(),
            len: bytes.len(),
            at: 0,
        })
    }

    fn none() -> Self {
        Segment {
            data: ptr::null_mut(),
            len: 0,
            at: 0,
        }
    }
}

/// A model moves whole beats, and so does not look where the last one ends.
fn beats(streams: &[(&'static str, usize, usize)]) -> Result<(), CardError> {
    let ragged = streams.iter().find(|(_, bytes, beat)| bytes % beat != 0);
    ragged.map_or(Ok(()), |&(what, bytes, beat)| {
        Err(CardError::Amount {
            what,
            got: bytes as u64,
            expected: bytes.next_multiple_of(beat) as u64,
        })
    })
}

/// The same of a core of commands, whose beats have so many bytes.
fn beats_of_work(given: &[&[u8]], made: &[&mut [u8]], beat: usize) -> Result<(), CardError> {
    let given = |at: usize| given.get(at).map_or(0, |bytes| bytes.len());
    let made = |at: usize| made.get(at).map_or(0, |bytes| bytes.len());
    beats(&[
        ("commands", given(0), COMMAND),
        ("operands", given(1), 2 * beat),
        ("results", made(0), beat),
        ("messages", made(1), WORD),
        ("messages", made(2), WORD),
        ("messages", made(3), WORD),
    ])
}

/// Streams of a core of commands: what it takes, and what it makes.
#[repr(C)]
struct Work {
    commands: Segment,
    operands: Segment,
    results: Segment,
    messages: [Segment; MESSAGES],
}

impl Work {
    /// These, while `run` has them.
    fn of(given: &[&[u8]], made: &mut [&mut [u8]], run: impl FnOnce(*mut Work) -> u64) -> Ran {
        let mut work = Work {
            commands: Segment::of(given, 0),
            operands: Segment::of(given, 1),
            results: Segment::into(made, 0),
            messages: [1, 2, 3].map(|at| Segment::into(made, at)),
        };
        let cycles = run(&raw mut work);
        let [one, two, three] = work.messages.map(|message| message.at as u64);
        Ran {
            cycles,
            moved: [work.results.at as u64, one, two, three],
        }
    }
}

/// MACs that begin, as models take them.
#[repr(C)]
struct NewCodes {
    keys: [u8; MACS * MAC_BYTES],
    used: u32,
    lane: u16,
    counter: u64,
    chunk: u32,
}

impl zeroize::Zeroize for NewCodes {
    fn zeroize(&mut self) {
        self.keys.zeroize();
    }
}

impl NewCodes {
    fn of(begins: &Begins) -> Zeroizing<Self> {
        Zeroizing::new(NewCodes {
            keys: begins.keys,
            used: begins.used,
            lane: begins.lane,
            counter: begins.counter,
            chunk: begins.chunk,
        })
    }
}

/// The answer of a core that has done something, or has not.
fn said(done: bool) -> Said {
    if done { Said::Yes } else { Said::No }
}

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

/// The core of three parties: `rep3_core`.
struct Three {
    model: &'static Model,
    core: Instance,
}

impl Port for Three {
    fn name(&self) -> &'static str {
        SIMULATED
    }

    fn order(&mut self, order: &Order) -> Result<Said, CardError> {
        let core = self.core.as_ptr();
        // SAFETY: the core is there, takes keys of 16 bytes, and has two.
        unsafe {
            match order {
                Order::Key { number, key } if *number < 2 => {
                    (self.model.key)(core, *number, key.0.as_ptr());
                }
                Order::Scrub => (self.model.scrub)(core),
                Order::Ready => return Ok(said((self.model.ready)(core))),
                _ => return Ok(Said::No),
            }
        }
        Ok(Said::Yes)
    }

    fn run(&mut self, given: &[&[u8]], made: &mut [&mut [u8]]) -> Result<Ran, CardError> {
        beats_of_work(given, made, WORDS * 2 * WORD)?;
        let (model, core) = (self.model, self.core.as_ptr());
        // SAFETY: the core is there, and `work` names memory that outlives the call.
        Ok(Work::of(given, made, |work| unsafe {
            (model.run)(core, work)
        }))
    }
}

struct LocalModel {
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    key: unsafe extern "C" fn(*mut c_void, u32, *const u8),
    set: unsafe extern "C" fn(*mut c_void, u32, u8, bool),
    begin: unsafe extern "C" fn(*mut c_void, *const NewCodes) -> bool,
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
                fn $begin(core: *mut c_void, begins: *const NewCodes) -> bool;
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
        mod folded_cores {
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

/// The first stage: `rep4_local`.
struct Local {
    model: &'static LocalModel,
    core: Instance,
}

impl Port for Local {
    fn name(&self) -> &'static str {
        SIMULATED
    }

    fn order(&mut self, order: &Order) -> Result<Said, CardError> {
        let core = self.core.as_ptr();
        // SAFETY: the core is there, takes keys of 16 bytes, of which it has three, and writes no more than two MACs.
        unsafe {
            match order {
                Order::Key { number, key } if *number < 3 => {
                    (self.model.key)(core, *number, key.0.as_ptr());
                }
                Order::Form {
                    form,
                    sends,
                    checks,
                } => (self.model.set)(core, *form, *sends, *checks),
                Order::Begin(begins) => {
                    let begins = NewCodes::of(begins);
                    return Ok(said((self.model.begin)(core, &raw const *begins)));
                }
                Order::Codes { count } if *count as usize <= MACS => {
                    let mut codes = [0; MACS * MAC_BYTES];
                    let cycles = (self.model.codes)(core, *count, codes.as_mut_ptr());
                    return Ok(Said::Codes { cycles, codes });
                }
                Order::Scrub => (self.model.scrub)(core),
                Order::Ready => return Ok(said((self.model.ready)(core))),
                _ => return Ok(Said::No),
            }
        }
        Ok(Said::Yes)
    }

    fn run(&mut self, given: &[&[u8]], made: &mut [&mut [u8]]) -> Result<Ran, CardError> {
        beats_of_work(given, made, MESSAGES * WORD)?;
        let (model, core) = (self.model, self.core.as_ptr());
        // SAFETY: the core is there, and `work` names memory that outlives the call.
        Ok(Work::of(given, made, |work| unsafe {
            (model.run)(core, work)
        }))
    }
}

#[repr(C)]
struct JoinWork {
    shares: Segment,
    messages: [Segment; MACS],
    results: Segment,
}

struct JoinModel {
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    set: unsafe extern "C" fn(*mut c_void, bool, u8, bool),
    begin: unsafe extern "C" fn(*mut c_void, *const NewCodes) -> bool,
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
                fn $begin(core: *mut c_void, begins: *const NewCodes) -> bool;
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
struct Join {
    model: &'static JoinModel,
    core: Instance,
}

impl Port for Join {
    fn name(&self) -> &'static str {
        SIMULATED
    }

    fn order(&mut self, order: &Order) -> Result<Said, CardError> {
        let core = self.core.as_ptr();
        // SAFETY: the core is there, and MACs are two.
        unsafe {
            match order {
                Order::Parts { two, to, checks } => (self.model.set)(core, *two, *to, *checks),
                Order::Begin(begins) => {
                    let begins = NewCodes::of(begins);
                    return Ok(said((self.model.begin)(core, &raw const *begins)));
                }
                Order::Verdict(codes) => {
                    let mut cycles = 0;
                    let said = (self.model.verdict)(core, codes.as_ptr(), &raw mut cycles);
                    return Ok(Said::Verdict { cycles, said });
                }
                Order::Scrub => (self.model.scrub)(core),
                _ => return Ok(Said::No),
            }
        }
        Ok(Said::Yes)
    }

    fn run(&mut self, given: &[&[u8]], made: &mut [&mut [u8]]) -> Result<Ran, CardError> {
        let bytes = |at: usize| given.get(at).map_or(0, |bytes| bytes.len());
        beats(&[
            ("shares", bytes(0), RECORD),
            ("messages", bytes(1), WORD),
            ("messages", bytes(2), WORD),
            (
                "complete shares",
                made.first().map_or(0, |bytes| bytes.len()),
                MESSAGES * WORD,
            ),
        ])?;
        let mut work = JoinWork {
            shares: Segment::of(given, 0),
            messages: [1, 2].map(|at| Segment::of(given, at)),
            results: Segment::into(made, 0),
        };
        // SAFETY: the core is there, and `work` names memory that outlives the call.
        let cycles = unsafe { (self.model.run)(self.core.as_ptr(), &raw mut work) };
        let mut moved = [0; MADE];
        moved[0] = work.results.at as u64;
        Ok(Ran { cycles, moved })
    }
}
