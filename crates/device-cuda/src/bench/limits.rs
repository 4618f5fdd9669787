//! What a GPU can do at most.

use super::{Effort, Error};
use crate::backend::{Arg, Backend, Launch, Stream};
use crate::kernels::{Kernel, RATE_LDS, RATE_LOP3, RATE_MMA, RATE_PRMT, RATE_ROUND};

/// A second's worth: instructions of threads, words of 32 bits, products of bytes, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// PRMT, of all threads.
    pub prmt: f64,
    /// LOP3, of all threads.
    pub lop3: f64,
    /// Words from shared memory, without conflicts.
    pub lds: f64,
    /// Products of bytes by tensor cores.
    pub mma: f64,
    /// Bytes of device memory, read and written.
    pub copy: f64,
    /// Bytes from pinned memory of the host.
    pub up: f64,
    /// Bytes to it.
    pub down: f64,
    /// Bytes in both directions, at the same time.
    pub both: f64,
    /// Launches, one after the other.
    pub launches: f64,
}

impl Limits {
    /// All of them: what, the unit, how many.
    pub fn rows(&self) -> [(&'static str, &'static str, f64); 9] {
        [
            ("PRMT", "instructions/s", self.prmt),
            ("LOP3", "instructions/s", self.lop3),
            ("LDS", "words/s", self.lds),
            ("MMA of bytes", "products/s", self.mma),
            ("device memory, read and written", "B/s", self.copy),
            ("from pinned memory", "B/s", self.up),
            ("to pinned memory", "B/s", self.down),
            ("both at the same time", "B/s", self.both),
            ("launches in a row", "/s", self.launches),
        ]
    }
}

pub(super) fn measure(on: &mut dyn Backend, effort: Effort) -> Result<Limits, Error> {
    let rate = |on: &mut dyn Backend, kernel: &'static Kernel| instructions(on, kernel, effort);
    let (prmt, lop3) = (rate(on, &RATE_PRMT)?, rate(on, &RATE_LOP3)?);
    let (lds, launches) = (rate(on, &RATE_LDS)?, launches(on)?);
    let mma = rate(on, &RATE_MMA)? * MMA;
    let (bytes, times) = (effort.bytes, if effort.rounds > 1 { 10 } else { 1 });
    let [a, b] = [on.allocate(bytes)?, on.allocate(bytes)?];
    let [x, y] = [on.pin(bytes)?, on.pin(bytes)?];
    let all = bytes as f64 * f64::from(times);
    let copy = clocked(on, &mut |on| {
        (0..times).try_for_each(|_| on.copy((&a, 0), (&b, 0), bytes))
    })?;
    let up = waited(on, &mut |on| {
        (0..times).try_for_each(|_| on.upload((&x, 0), (&a, 0), bytes))
    })?;
    let down = waited(on, &mut |on| {
        (0..times).try_for_each(|_| on.download((&b, 0), (&y, 0), bytes))
    })?;
    let both = waited(on, &mut |on| {
        (0..times).try_for_each(|_| {
            on.upload((&x, 0), (&a, 0), bytes)?;
            on.download((&b, 0), (&y, 0), bytes)
        })
    })?;
    for buffer in [a, b] {
        on.free(buffer);
    }
    for host in [x, y] {
        on.unpin(host);
    }
    Ok(Limits {
        prmt,
        lop3,
        lds,
        mma,
        copy: 2.0 * all / copy,
        up: all / up,
        down: all / down,
        both: 2.0 * all / both,
        launches,
    })
}

/// Products of bytes of a thread in an MMA: 16 by 8 by 32 are those of a warp.
const MMA: f64 = 4096.0 / 32.0;
/// No clock is finer.
const LEAST: f64 = 1e-9;

type Does<'a> = &'a mut dyn FnMut(&mut dyn Backend) -> Result<(), crate::backend::Error>;

/// Seconds by the clock of the GPU, the second time.
fn clocked(on: &mut dyn Backend, does: Does<'_>) -> Result<f64, Error> {
    does(on)?;
    let from = on.mark(Stream::Run)?;
    does(on)?;
    let to = on.mark(Stream::Run)?;
    let took = on.elapsed(&from, &to)?;
    on.unmark(from);
    on.unmark(to);
    Ok(took.as_secs_f64().max(LEAST))
}

/// Seconds by the clock of the host, the second time.
fn waited(on: &mut dyn Backend, does: Does<'_>) -> Result<f64, Error> {
    does(on)?;
    on.finish()?;
    let start = std::time::Instant::now();
    does(on)?;
    on.finish()?;
    Ok(start.elapsed().as_secs_f64().max(LEAST))
}

/// Instructions of all threads in a second.
fn instructions(
    on: &mut dyn Backend,
    kernel: &'static Kernel,
    effort: Effort,
) -> Result<f64, Error> {
    let launch = Launch {
        grid: 2 * on.blocks(),
        block: on.threads(),
    };
    let threads = u64::from(launch.grid) * u64::from(launch.block);
    let out = on.allocate(4 * threads)?;
    // A PRMT that mixes both of its words; a step between rows that comes to all of them.
    let by = if kernel.name == RATE_LDS.name {
        5
    } else {
        0x6142
    };
    let args = [Arg::all(&out), Arg::U32(effort.rounds), Arg::U32(by)];
    let took = clocked(on, &mut |on| on.launch(kernel, launch, &args));
    on.free(out);
    Ok((threads * RATE_ROUND * u64::from(effort.rounds)) as f64 / took?)
}

/// Launches that do next to nothing in a second, one after the other.
fn launches(on: &mut dyn Backend) -> Result<f64, Error> {
    const TIMES: u32 = 256;
    let launch = Launch { grid: 1, block: 32 };
    let out = on.allocate(128)?;
    let args = [Arg::all(&out), Arg::U32(0), Arg::U32(0)];
    let took = clocked(on, &mut |on| {
        (0..TIMES).try_for_each(|_| on.launch(&RATE_PRMT, launch, &args))
    });
    on.free(out);
    Ok(f64::from(TIMES) / took?)
}
