//! Cards that are simulated: what Verilator made of the RTL.

use std::ffi::c_void;
use std::ptr::NonNull;

use zeroize::Zeroize;

use crate::Absent;
use crate::garble::{Capacity, Image};

/// What a run of a garbler is.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Repetitions of the body: netlist cycles, or rows.
    pub repetitions: u32,
    /// Number of the first product.
    pub first: u64,
    /// The low bits of the first gate's number.
    pub instance: u16,
    /// Whether repetitions are rows: each has the next instance, instead of products of its own.
    pub rows: bool,
    /// The first repetition of which labels leave.
    pub leave_from: u32,
}

/// Bytes that move in a run.
#[derive(Debug)]
pub struct Streams<'a> {
    /// Labels of inputs: those of the run, then those of each repetition, in the order of the program's image.
    pub labels: &'a [u8],
    /// Tables, in order.
    pub tables: &'a mut Vec<u8>,
    /// Labels that leave.
    pub leaves: &'a mut Vec<u8>,
}

/// Random pauses of every stream: in so many of 256 cycles, by a seed. Nothing that is computed depends on them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Stalls {
    /// Seed.
    pub seed: u64,
    /// Of 256 cycles.
    pub rate: u8,
}

#[repr(C)]
struct RawRun {
    offset: [u8; 16],
    hash_start: [u8; 16],
    first: u64,
    instance: u32,
    step_instance: u32,
    step_first: u32,
    prologue: u32,
    kernel: u32,
    cycles: u32,
    repeats: u32,
    last: u32,
    leave_from: u32,
    lines: u32,
    last_keep: u32,
    of_run: u32,
    of_cycle: u32,
    input_ring: u32,
    input_stages: u32,
}

#[repr(C)]
struct RawStreams {
    labels: *const u8,
    labels_len: usize,
    labels_at: usize,
    tables: *mut u8,
    tables_len: usize,
    tables_at: usize,
    leaves: *mut u8,
    leaves_len: usize,
    leaves_at: usize,
}

/// The functions of one model.
struct Model {
    rows: u32,
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    program: unsafe extern "C" fn(*mut c_void, *const u32, usize, usize),
    start: unsafe extern "C" fn(*mut c_void, *const RawRun),
    step: unsafe extern "C" fn(*mut c_void, *mut RawStreams, u64, *mut bool) -> u64,
    scrub: unsafe extern "C" fn(*mut c_void),
}

/// The table of models, from the names of their functions.
macro_rules! garblers {
    ($($rows:literal: $new:ident $free:ident $program:ident $start:ident $step:ident $scrub:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(seed: u64, rate: u32) -> *mut c_void;
                fn $free(card: *mut c_void);
                fn $program(card: *mut c_void, bundles: *const u32, count: usize, words: usize);
                fn $start(card: *mut c_void, run: *const RawRun);
                fn $step(card: *mut c_void, streams: *mut RawStreams, most: u64, done: *mut bool) -> u64;
                fn $scrub(card: *mut c_void);
            )*
        }

        static MODELS: &[Model] = &[$(Model {
            rows: $rows,
            new: $new,
            free: $free,
            program: $program,
            start: $start,
            step: $step,
            scrub: $scrub,
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/models.rs"));

/// A simulated garbler.
pub struct Garbler {
    model: &'static Model,
    card: NonNull<c_void>,
    capacity: Capacity,
    /// Cycles of runs so far.
    cycles: u64,
}

// SAFETY: a model is reached through its owner alone, and keeps to no thread.
unsafe impl Send for Garbler {}

impl Drop for Garbler {
    fn drop(&mut self) {
        self.scrub();
        // SAFETY: `card` was made by the model's `new`, and is freed once.
        unsafe { (self.model.free)(self.card.as_ptr()) };
    }
}

impl Garbler {
    /// Numbers of rows of the garblers that are in this build.
    pub fn built() -> Vec<u32> {
        MODELS.iter().map(|model| model.rows).collect()
    }

    /// A garbler of `rows` rows, just switched on.
    pub fn new(rows: u32, stalls: Stalls) -> Result<Self, Absent> {
        if MODELS.is_empty() {
            return Err(Absent::NoVerilator);
        }
        let model = MODELS.iter().find(|model| model.rows == rows);
        let model = model.ok_or(Absent::NotBuilt { rows })?;
        // SAFETY: the function has these arguments, and makes a card.
        let card = unsafe { (model.new)(stalls.seed, stalls.rate.into()) };
        Ok(Garbler {
            model,
            card: NonNull::new(card).expect("a model is made or the process ends"),
            capacity: Capacity {
                rows,
                bundles: 1 << 14,
                xor_slots: 1 << 12,
                and_slots: 1 << 12,
                input_slots: 1 << 12,
                lines: 1 << 10,
            },
            cycles: 0,
        })
    }

    /// What it has room for.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Cycles of all runs so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Writes a program.
    ///
    /// # Panics
    /// If it was made for another core.
    pub fn load(&mut self, image: &Image) {
        let count = image.bundles.len() / image.words;
        assert!(
            count <= self.capacity.bundles as usize,
            "an image of another core"
        );
        // SAFETY: `bundles` has `count` times `words` words, and the core has room for them.
        unsafe {
            (self.model.program)(
                self.card.as_ptr(),
                image.bundles.as_ptr(),
                count,
                image.words,
            );
        };
    }

    /// Runs the program that was written last; says how many cycles that took. `offset` is the garbler's, `start` the start point of the hash.
    ///
    /// # Panics
    /// If there are not the labels that the run takes.
    pub fn run(
        &mut self,
        image: &Image,
        run: &Run,
        offset: u128,
        start: u128,
        streams: &mut Streams<'_>,
    ) -> u64 {
        let repetitions = u64::from(run.repetitions);
        if repetitions == 0 {
            return 0;
        }
        let inputs = image.run_inputs.len() as u64 + image.each_inputs.len() as u64 * repetitions;
        assert_eq!(
            streams.labels.len() as u64,
            16 * inputs,
            "the labels of all inputs"
        );
        let tables = u64::from(image.products) * repetitions * 32;
        let leaving = repetitions.saturating_sub(run.leave_from.into());
        let leaves = image.leaves.len() as u64 * leaving * 16;
        // A line is taken when there is room for a whole one.
        let line = 32 * u64::from(self.capacity.rows);
        streams.tables.resize((tables + line) as usize, 0);
        streams.leaves.resize((leaves) as usize, 0);
        let mut raw = RawRun {
            offset: offset.to_le_bytes(),
            hash_start: start.to_le_bytes(),
            first: run.first,
            instance: run.instance.into(),
            step_instance: run.rows.into(),
            step_first: if run.rows { 0 } else { image.products },
            prologue: image.prologue,
            kernel: image.kernel,
            cycles: run.repetitions,
            repeats: run.repetitions + image.stages,
            last: image.last,
            leave_from: run.leave_from,
            lines: image.lines,
            last_keep: (1 << image.last_line) - 1,
            of_run: image.run_inputs.len() as u32,
            of_cycle: image.each_inputs.len() as u32,
            input_ring: image.input_ring,
            input_stages: image.input_stages,
        };
        let mut moved = RawStreams {
            labels: streams.labels.as_ptr(),
            labels_len: streams.labels.len(),
            labels_at: 0,
            tables: streams.tables.as_mut_ptr(),
            tables_len: streams.tables.len(),
            tables_at: 0,
            leaves: streams.leaves.as_mut_ptr(),
            leaves_len: streams.leaves.len(),
            leaves_at: 0,
        };
        let mut done = false;
        // SAFETY: the structures are those that the model expects, and their buffers have the lengths that are said.
        let cycles = unsafe {
            (self.model.start)(self.card.as_ptr(), &raw const raw);
            (self.model.step)(self.card.as_ptr(), &raw mut moved, u64::MAX, &raw mut done)
        };
        raw.offset.zeroize();
        raw.hash_start.zeroize();
        assert!(
            done && moved.tables_at as u64 == tables && moved.leaves_at as u64 == leaves,
            "a run gives what its image says"
        );
        streams.tables.truncate(tables as usize);
        self.cycles += cycles;
        cycles
    }

    /// Wipes all labels and tables.
    pub fn scrub(&mut self) {
        // SAFETY: the card is there.
        unsafe { (self.model.scrub)(self.card.as_ptr()) };
    }
}
