//! How fast a GPU is: first what it can do at most, then what devices do by it, each as three rates.
//!
//! The *kernel* rate is that of the launches alone, by the clock of the GPU. *Pinned* has messages copied from and to pinned memory of the host as well,
//! two workspaces in turn, so that copies overlap with kernels. *End to end* has the host fill and read that memory besides, as a link would.
//! Everything runs on the emulator too, for tests; its rates mean nothing.

mod cases;
mod limits;

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use veil_device::{Device, Fault, Outcome, Tag, Workspace, completion};

pub use limits::Limits;

use crate::{Cuda, Seconds};
use cases::Case;

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// Rows of a workspace, a multiple of 32.
    pub rows: u32,
    /// Items of each kind, about.
    pub items: u32,
    /// Bytes that are copied at a time.
    pub bytes: u64,
    /// Rounds of chains of instructions.
    pub rounds: u32,
    /// Seconds that a measurement takes, at least.
    pub seconds: f64,
}

impl Effort {
    /// What fills a GPU.
    pub const GPU: Effort = Effort {
        rows: 1 << 15,
        items: 1 << 8,
        bytes: 1 << 28,
        rounds: 1 << 12,
        seconds: 0.5,
    };
    /// As little as there can be.
    pub const EMULATOR: Effort = Effort {
        rows: 64,
        items: 2,
        bytes: 1 << 12,
        rounds: 1,
        seconds: 0.0,
    };
}

/// What was measured of something that devices do.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What.
    pub name: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// How many a second: kernels alone, to pinned memory, end to end.
    pub rates: [f64; 3],
    /// How many a second the kernels could do at most, and what they would wait for then.
    pub kernel_bound: (f64, &'static str),
    /// The same with copies.
    pub pinned_bound: (f64, &'static str),
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device.
    #[error(transparent)]
    Device(#[from] Fault),
    /// What it runs on.
    #[error(transparent)]
    Backend(#[from] crate::backend::Error),
    /// A check failed, or nothing came of a batch.
    #[error("{0}: a batch ended as it should not")]
    Ended(&'static str),
}

/// Measures what the GPU of a device can do at most.
///
/// # Errors
/// [`Error::Backend`] if a buffer or a launch fails.
pub fn limits(device: &mut Cuda, effort: Effort) -> Result<Limits, Error> {
    limits::measure(device.backend(), effort)
}

/// Measures all that there is, one after the other, and hands out each figure as soon as it is known.
///
/// # Errors
/// [`Error::Device`] and [`Error::Backend`] if the device or its backend refuses something, [`Error::Ended`] if a batch does not
/// complete or a check in it fails. Figures that were handed out stand.
pub fn figures(
    device: Cuda,
    limits: &Limits,
    effort: Effort,
    mut each: impl FnMut(Figure),
) -> Result<(), Error> {
    let clock = Seconds::default();
    let device = &mut device.timed(&clock);
    for make in cases::ALL {
        let case = make(device, effort)?;
        each(measure(device, &case, limits, effort, &clock)?);
    }
    Ok(())
}

/// What the clock says, which is zero then.
fn read(clock: &Mutex<f64>) -> f64 {
    std::mem::take(&mut *clock.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Two workspaces of a case, and what the host has of them.
struct Workspaces<'a> {
    case: &'a Case,
    both: [Workspace; 2],
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Workspaces<'_> {
    /// Queues a batch on one of them. Its input goes to the device, and is written first if it is said so.
    fn submit(&mut self, device: &mut Cuda, turn: usize, writes: bool) -> Result<(), Error> {
        let workspace = self.both[turn];
        let mut at = 0;
        for span in &self.case.input {
            let to = device.map(workspace, *span)?;
            if writes {
                to.copy_from_slice(&self.input[at..][..to.len()]);
                at += to.len();
            }
        }
        Ok(device.submit(workspace, &self.case.commands, Tag(turn as u64))?)
    }

    /// Waits for the batch of one of them, and reads what came of it if it is said so.
    fn end(&mut self, device: &mut Cuda, turn: usize, reads: bool) -> Result<(), Error> {
        let end = completion(device)?;
        if end.tag != Tag(turn as u64) || end.outcome != Outcome::Done {
            return Err(Error::Ended(self.case.name));
        }
        if reads {
            let mut at = 0;
            for span in &self.case.output {
                let from = device.view(self.both[turn], *span)?;
                self.output[at..][..from.len()].copy_from_slice(from);
                at += from.len();
            }
        }
        Ok(())
    }

    /// Seconds of a batch, with two in flight.
    fn seconds(&mut self, device: &mut Cuda, host: bool, least: f64) -> Result<f64, Error> {
        // What is made once is made before.
        for turn in [0, 1] {
            self.submit(device, turn, host)?;
            self.end(device, turn, host)?;
        }
        let (start, mut batches) = (Instant::now(), 0);
        self.submit(device, 0, host)?;
        loop {
            self.submit(device, 1, host)?;
            self.end(device, 0, host)?;
            batches += 2;
            if start.elapsed().as_secs_f64() >= least {
                self.end(device, 1, host)?;
                return Ok(start.elapsed().as_secs_f64() / f64::from(batches));
            }
            self.submit(device, 0, host)?;
            self.end(device, 1, host)?;
        }
    }
}

fn measure(
    device: &mut Cuda,
    case: &Case,
    limits: &Limits,
    effort: Effort,
    clock: &Mutex<f64>,
) -> Result<Figure, Error> {
    let [a, b] = [0, 1].map(|chunk| device.open(&case.layout, case.frame(chunk)));
    let bytes = |spans: &[veil_device::Span]| {
        let all = spans.iter();
        let all = all
            .map(|span| case.layout.bytes(*span, case.rows))
            .sum::<u64>();
        vec![0x5a; all as usize]
    };
    let mut workspaces = Workspaces {
        case,
        both: [a?, b?],
        input: bytes(&case.input),
        output: bytes(&case.output),
    };
    let pinned = workspaces.seconds(device, false, effort.seconds)?;
    // The clock of the kernels, of one workspace alone: nothing else is on the GPU.
    read(clock);
    let mut rounds = 0;
    let start = Instant::now();
    while rounds == 0 || start.elapsed().as_secs_f64() < effort.seconds {
        workspaces.submit(device, 0, false)?;
        workspaces.end(device, 0, false)?;
        rounds += 1;
    }
    let kernels = read(clock) / f64::from(rounds);
    let whole = workspaces.seconds(device, true, effort.seconds)?;
    for workspace in workspaces.both {
        device.close(workspace);
    }
    let units = case.units;
    let [up, down] =
        [&workspaces.input, &workspaces.output].map(|bytes| bytes.len() as f64 / units);
    let least = |bounds: &[(f64, &'static str)]| {
        let all = bounds.iter().copied();
        all.fold(
            (f64::INFINITY, "nothing"),
            |a, b| if b.0 < a.0 { b } else { a },
        )
    };
    let kernel_bound = least(&[
        (limits.lop3.min(limits.prmt) / case.alu, "PRMT and LOP3"),
        (limits.lds / case.words, "loads and stores"),
        (limits.copy / case.near, "memory"),
        (limits.mma / case.bytes, "tensor cores"),
    ]);
    let pinned_bound = least(&[
        kernel_bound,
        (limits.up / up, "copies to it"),
        (limits.down / down, "copies from it"),
    ]);
    Ok(Figure {
        name: case.name,
        unit: case.unit,
        rates: [kernels, pinned, whole].map(|seconds| units / seconds),
        kernel_bound,
        pinned_bound,
    })
}

impl Limits {
    /// A table of them.
    pub fn table(&self) -> String {
        let mut text = String::new();
        for (name, unit, rate) in self.rows() {
            let _ = writeln!(text, "{name:<32} {:>10} {unit}", short(rate));
        }
        text
    }

    /// A line of JSON for each.
    pub fn json(&self, device: &str) -> String {
        let mut text = String::new();
        for (name, unit, rate) in self.rows() {
            let _ = writeln!(
                text,
                r#"{{"bench":"gpu-limit","device":"{device}","what":"{name}","unit":"{unit}","per_s":{rate:.6e}}}"#
            );
        }
        text
    }
}

impl Figure {
    /// Names of the columns of [`Figure::row`].
    pub const HEADER: &str = "what                 unit               kernel/s   of bound   pinned/s   of bound   end to end/s   the kernel waits for";

    /// A row of a table.
    pub fn row(&self) -> String {
        let [kernel, pinned, whole] = self.rates;
        format!(
            "{:<20} {:<16} {:>10} {:>9.0}% {:>10} {:>9.0}% {:>14}   {}",
            self.name,
            self.unit,
            short(kernel),
            100.0 * kernel / self.kernel_bound.0,
            short(pinned),
            100.0 * pinned / self.pinned_bound.0,
            short(whole),
            self.kernel_bound.1,
        )
    }

    /// A line of JSON.
    pub fn json(&self, device: &str) -> String {
        let [kernel, pinned, whole] = self.rates;
        format!(
            r#"{{"bench":"gpu","device":"{device}","what":"{}","unit":"{}","kernel_per_s":{kernel:.6e},"pinned_per_s":{pinned:.6e},"end_to_end_per_s":{whole:.6e},"kernel_bound_per_s":{:.6e},"kernel_bound_by":"{}","pinned_bound_per_s":{:.6e},"pinned_bound_by":"{}"}}"#,
            self.name,
            self.unit,
            self.kernel_bound.0,
            self.kernel_bound.1,
            self.pinned_bound.0,
            self.pinned_bound.1,
        )
    }
}

/// Three digits and a unit.
fn short(x: f64) -> String {
    match x {
        x if x >= 1e12 => format!("{:.2} T", x / 1e12),
        x if x >= 1e9 => format!("{:.2} G", x / 1e9),
        x if x >= 1e6 => format!("{:.2} M", x / 1e6),
        x if x >= 1e3 => format!("{:.2} k", x / 1e3),
        x => format!("{x:.2}"),
    }
}
