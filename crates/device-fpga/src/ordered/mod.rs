//! The core of the published design, simulated: gates start in the order of the netlist as soon as their operands are there.
//!
//! It is there for comparison with the cards, whose programs are scheduled, and garbles for no party. It takes netlists of SCD files as they
//! stand, since how long it takes depends on what is one gate and what is two.
//!
//! ```
//! use veil_circuit::{Limits, scd};
//! use veil_device_fpga::Stalls;
//! use veil_device_fpga::ordered::{Entries, Job, Ordered, rule};
//!
//! // A serial adder, with a register for the carry.
//! let text = b"0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n-2\n";
//! let entries = Entries::of(&scd::netlist(text, &Limits::default())?)?;
//! assert_eq!(rule::count(&entries, 2).run(8), 172);
//! match Ordered::new(2, Stalls::default()) {
//!     Ok(mut core) => {
//!         let labels: Vec<u8> = (0..16 * 16).map(|k| k as u8).collect();
//!         let job = Job { cycles: 8, first: 0, instance: 0, keys: (1, 2), labels: &labels };
//!         assert_eq!(core.run(&entries, &job)?.cycles, 172);
//!     }
//!     Err(absent) => println!("{absent}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod entries;
pub mod rule;

use std::ffi::c_void;

use zeroize::{Zeroize, Zeroizing};

pub use entries::Entries;

use crate::instance::{Free, Instance};
use crate::{Absent, CardError, Stalls};

#[repr(C)]
struct Stream {
    data: *mut u8,
    len: usize,
    at: usize,
}

impl Stream {
    /// Room to write into.
    fn into(bytes: &mut [u8]) -> Self {
        Stream {
            data: bytes.as_mut_ptr(),
            len: bytes.len(),
            at: 0,
        }
    }
}

#[repr(C)]
struct OrderedRun {
    offset: [u8; 16],
    hash_start: [u8; 16],
    first: u64,
    instance: u32,
    entries: u32,
    cycles: u32,
    of_run: u32,
    of_cycle: u32,
    of_later: u32,
    end: u64,
    source: Stream,
    labels: Stream,
    tables: Stream,
    masks: Stream,
}

/// The functions of one model.
struct Model {
    rows: u32,
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    write: unsafe extern "C" fn(*mut c_void, *const u64, usize),
    run: unsafe extern "C" fn(*mut c_void, *mut OrderedRun) -> u64,
    state: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> usize,
}

/// The table of models, from the names of their functions.
macro_rules! ordered {
    ($($rows:literal: $new:ident $free:ident $write:ident $run:ident $state:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(seed: u64, rate: u32) -> *mut c_void;
                fn $free(core: *mut c_void);
                fn $write(core: *mut c_void, words: *const u64, count: usize);
                fn $run(core: *mut c_void, run: *mut OrderedRun) -> u64;
                fn $state(core: *mut c_void, into: *mut u8, room: usize) -> usize;
            )*
        }

        static MODELS: &[Model] = &[$(Model {
            rows: $rows,
            new: $new,
            free: $free,
            write: $write,
            run: $run,
            state: $state,
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/ordered.rs"));

/// Bytes of the masks of a netlist cycle.
const MASKS: usize = Ordered::OUTPUTS as usize / 8;

/// What a run is.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Netlist cycles, one at least.
    pub cycles: u32,
    /// Number of the first product, below 2^47.
    pub first: u64,
    /// Low bits of the gates' numbers.
    pub instance: u16,
    /// The offset, whose lowest bit is 1, and the start of the hash.
    pub keys: (u128, u128),
    /// Where the core takes the labels of inputs from, in the order in which they are read first: [`Entries::labels`] of them.
    pub labels: &'a [u8],
}

/// What a run gave.
#[derive(Clone, PartialEq, Eq)]
pub struct Garbled {
    /// Clock cycles, as table 3 of the published design counts them.
    pub cycles: u64,
    /// Zero-labels of inputs, in the order of [`Entries::inputs`].
    pub labels: Zeroizing<Vec<u8>>,
    /// Tables in the order of their gates.
    pub tables: Vec<u8>,
    /// Of every netlist cycle 32 bytes: bit k is the colour of the zero-label of its k-th output, in the order of the entries.
    pub masks: Vec<u8>,
}

/// A simulated core that takes gates in the order of the netlist.
pub struct Ordered {
    model: &'static Model,
    core: Instance,
}

impl Ordered {
    /// Entries that a core keeps; registers count twice.
    pub const ENTRIES: u64 = 1 << 14;
    /// Inputs that it keeps labels of.
    pub const INPUTS: u64 = 1 << 10;
    /// Outputs of a netlist cycle.
    pub const OUTPUTS: u64 = 256;

    /// Numbers of rows of the cores that are in this build.
    pub fn built() -> Vec<u32> {
        MODELS.iter().map(|model| model.rows).collect()
    }

    /// A core of `rows` rows, just switched on.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no cores were built in, [`Absent::NotBuilt`] if none of `rows` rows was.
    pub fn new(rows: u32, stalls: Stalls) -> Result<Self, Absent> {
        if MODELS.is_empty() && crate::Simulated::built().is_empty() {
            return Err(crate::NONE);
        }
        let model = MODELS.iter().find(|model| model.rows == rows);
        let model = model.ok_or(Absent::NotBuilt { engines: rows })?;
        // SAFETY: the function has these arguments, and makes a core, which is freed by no other.
        let core = unsafe {
            let core = (model.new)(stalls.seed, stalls.rate.into());
            Instance::new(core, model.free)
        };
        Ok(Ordered { model, core })
    }

    /// Garbles a netlist.
    ///
    /// # Panics
    /// If there are not the labels that the run takes, or the job is no such job.
    ///
    /// # Errors
    /// [`CardError::Silent`] if the core does not end the run.
    pub fn run(&mut self, entries: &Entries, job: &Job<'_>) -> Result<Garbled, CardError> {
        self.start(entries, job, 0)
            .ok_or(CardError::Silent { what: "a run" })
    }

    /// Begins to garble, and after so many cycles ends the run and wipes all labels. `false`: the run had ended by itself.
    ///
    /// # Panics
    /// If there are not the labels that the run takes, or the job is no such job.
    pub fn end(&mut self, entries: &Entries, job: &Job<'_>, after: u64) -> bool {
        self.start(entries, job, after.max(1)).is_none()
    }

    /// All that the core holds: every register and every memory of it.
    pub fn state(&mut self) -> Zeroizing<Vec<u8>> {
        let core = self.core.as_ptr();
        let mut state = Zeroizing::new(Vec::new());
        // SAFETY: the core is there, and nothing is written where there is no room.
        let bytes = unsafe { (self.model.state)(core, state.as_mut_ptr(), 0) };
        state.resize(bytes, 0);
        // SAFETY: the core is there, and so many bytes are.
        unsafe { (self.model.state)(core, state.as_mut_ptr(), bytes) };
        state
    }

    fn start(&mut self, entries: &Entries, job: &Job<'_>, end: u64) -> Option<Garbled> {
        let labels = entries.labels(job.cycles) as usize;
        assert_eq!(job.labels.len(), 16 * labels, "the labels of all inputs");
        assert!(
            job.cycles > 0 && job.first < 1 << 47 && job.keys.0 & 1 == 1,
            "cycles, a number of 47 bits and an offset that is odd"
        );
        let words = entries.words();
        let [of_run, of_cycle, of_later] = [0, 1, 2].map(|k| entries.inputs()[k].len() as u32);
        let cycles = job.cycles as usize;
        let mut source = Zeroizing::new(job.labels.to_vec());
        let mut out = Garbled {
            cycles: 0,
            labels: Zeroizing::new(vec![0; 16 * labels]),
            tables: vec![0; 32 * entries.ands() as usize * cycles],
            masks: vec![0; MASKS * cycles],
        };
        let mut run = OrderedRun {
            offset: job.keys.0.to_le_bytes(),
            hash_start: job.keys.1.to_le_bytes(),
            first: job.first,
            instance: job.instance.into(),
            entries: words.len() as u32,
            cycles: job.cycles,
            of_run,
            of_cycle,
            of_later,
            end,
            source: Stream::into(&mut source),
            labels: Stream::into(&mut out.labels),
            tables: Stream::into(&mut out.tables),
            masks: Stream::into(&mut out.masks),
        };
        // SAFETY: the core is there, and so are the words.
        unsafe { (self.model.write)(self.core.as_ptr(), words.as_ptr(), words.len()) };
        // SAFETY: the streams are parts of vectors that no other code touches meanwhile, and the core writes no more than they hold.
        out.cycles = unsafe { (self.model.run)(self.core.as_ptr(), &raw mut run) };
        run.offset.zeroize();
        run.hash_start.zeroize();
        let came = [&run.labels, &run.tables, &run.masks];
        (out.cycles > 0 && came.iter().all(|stream| stream.at == stream.len)).then_some(out)
    }
}
