//! What runs kernels: memory of a device, copies, launches.
//!
//! All of it takes effect as if in order: copies and launches are queued, and what hands bytes to the host waits for all that was queued about
//! them, and for nothing else. So copies of one workspace go on while another one computes ([`Stream`]). Device memory is zero when it is
//! allocated, and wiped before it is free.
//!
//! ```
//! # #[cfg(feature = "emulator")] {
//! use veil_device_cuda::backend::{Arg, Backend, Emulator, Launch, Order};
//! use veil_device_cuda::kernels::AES_SCHEDULE;
//!
//! let mut emulator = Emulator::new(Order::Forward);
//! let keys = emulator.allocate(16)?;
//! let schedule = emulator.allocate(176)?;
//! let launch = Launch { grid: 1, block: 32 };
//! emulator.launch(&AES_SCHEDULE, launch, &[Arg::all(&keys), Arg::all(&schedule), Arg::U32(1)])?;
//! let mut words = [0; 176];
//! emulator.read(&schedule, 0, &mut words)?;
//! assert_eq!(words[16], 0x62); // the first round key of the key of zeros (FIPS 197)
//! # }
//! # Ok::<(), veil_device_cuda::backend::Error>(())
//! ```

mod driver;
#[cfg(feature = "emulator")]
mod emulator;
mod gpu;
mod order;
#[cfg(feature = "probes")]
mod reordered;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub use driver::Driver;
#[cfg(feature = "emulator")]
pub use emulator::{Emulator, Order};
pub use gpu::{Absent, Facts, Lack, count, facts, prepare};
pub use order::Stream;
#[cfg(feature = "probes")]
pub use reordered::{LAUNCH, Reordered};

use crate::kernels::Kernel;

/// Why a backend did not do what it was told.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No kernel is launched so.
    #[error("{kernel} is not launched so: {why}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// What does not fit.
        why: String,
    },
    /// Bytes beyond the end of a buffer, or a buffer of another backend.
    #[error("a buffer has {has} bytes, and {needs} are needed")]
    Range {
        /// Its bytes: none, if the backend does not have it.
        has: u64,
        /// Those that are needed.
        needs: u64,
    },
    /// No memory for it.
    #[error("a buffer of {bytes} bytes does not fit")]
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// A kernel went wrong.
    #[error("{kernel}: {why}")]
    Kernel {
        /// The kernel.
        kernel: &'static str,
        /// What it did.
        why: String,
    },
    /// The driver of the GPU reports an error.
    #[error("the driver of the GPU: {0}")]
    Driver(String),
}

/// Memory of a device. Belongs to one backend, which frees it when it is told to, and all of it when it ends.
#[derive(PartialEq, Eq, Debug)]
pub struct Buffer {
    id: u64,
    bytes: u64,
}

impl Buffer {
    fn new(bytes: u64) -> Self {
        Buffer { id: next(), bytes }
    }

    /// Its length.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Memory of the host that a device copies from and to while the host does something else: pinned, where that matters. Zero at first, and wiped
/// before it is free.
#[derive(PartialEq, Eq, Debug)]
pub struct Host {
    id: u64,
    bytes: u64,
}

impl Host {
    fn new(bytes: u64) -> Self {
        Host { id: next(), bytes }
    }

    /// Its length.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A name that nothing else in the process has: memory of one backend is unknown to all others.
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A moment in a stream.
#[derive(PartialEq, Eq, Debug)]
pub struct Mark(u64);

impl Mark {
    fn new() -> Self {
        Mark(next())
    }
}

/// How many threads: blocks, and threads of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Device memory from this byte on, a multiple of 16.
    At(&'a Buffer, u64),
    /// A number of 32 bits.
    U32(u32),
    /// A number of 64 bits.
    U64(u64),
}

impl<'a> Arg<'a> {
    /// The name of its memory, if it is some.
    const fn memory(&self) -> Option<u64> {
        match self {
            Arg::At(buffer, _) => Some(buffer.id),
            Arg::U32(_) | Arg::U64(_) => None,
        }
    }

    /// All of a buffer.
    pub const fn all(buffer: &'a Buffer) -> Self {
        Arg::At(buffer, 0)
    }
}

/// A machine for kernels.
pub trait Backend: Send {
    /// Name for reports, such as `cuda`.
    fn name(&self) -> &'static str;

    /// Blocks that are worth launching: a kernel goes on in steps of the grid.
    fn blocks(&self) -> u32;

    /// Threads of a block that are worth launching, at most those of the kernel.
    fn threads(&self) -> u32;

    /// Device memory, all zero.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not so much.
    fn allocate(&mut self, bytes: u64) -> Result<Buffer, Error>;

    /// Wipes and frees it, after all that was queued.
    fn free(&mut self, buffer: Buffer);

    /// Memory of the host.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not so much.
    fn pin(&mut self, bytes: u64) -> Result<Host, Error>;

    /// Wipes and frees it, after all that was queued.
    fn unpin(&mut self, host: Host);

    /// Its bytes, after all that was queued about them.
    ///
    /// # Errors
    /// [`Error::Range`] if the memory is another backend's; [`Error::Driver`] if something that was queued about it failed.
    fn host(&self, host: &Host) -> Result<&[u8], Error>;

    /// See [`Backend::host`].
    ///
    /// # Errors
    /// As of [`Backend::host`].
    fn host_mut(&mut self, host: &Host) -> Result<&mut [u8], Error>;

    /// Queues a copy of `bytes` to a device.
    ///
    /// # Errors
    /// [`Error::Range`] beyond the end of either memory, or if one is another backend's; [`Error::Driver`] if the driver refuses.
    fn upload(&mut self, from: (&Host, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error>;

    /// Queues a copy of `bytes` from a device.
    ///
    /// # Errors
    /// As of [`Backend::upload`].
    fn download(&mut self, from: (&Buffer, u64), to: (&Host, u64), bytes: u64)
    -> Result<(), Error>;

    /// Queues a copy of `bytes` within a device. Both lie apart.
    ///
    /// # Errors
    /// As of [`Backend::upload`].
    fn copy(&mut self, from: (&Buffer, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error>;

    /// Queues that these bytes are written; they are taken over at once.
    ///
    /// # Errors
    /// [`Error::Range`] beyond the end of the buffer, or if it is another backend's; [`Error::Driver`] if the driver refuses.
    fn write(&mut self, to: &Buffer, at: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Reads bytes, after all that was queued.
    ///
    /// # Errors
    /// As of [`Backend::write`]; [`Error::Driver`] also if something that was queued before failed.
    fn read(&mut self, from: &Buffer, at: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Queues that bytes become zero.
    ///
    /// # Errors
    /// As of [`Backend::write`].
    fn clear(&mut self, buffer: &Buffer, at: u64, bytes: u64) -> Result<(), Error>;

    /// Queues a launch. What the arguments do not reach is refused.
    ///
    /// # Errors
    /// [`Error::Launch`] if grid, block or arguments are not the kernel's, or reach beyond their buffers; [`Error::Range`] for
    /// another backend's buffer; [`Error::Kernel`] if an emulated kernel goes wrong; [`Error::Driver`] if the driver refuses.
    fn launch(
        &mut self,
        kernel: &'static Kernel,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), Error>;

    /// How many launches there were.
    fn launches(&self) -> u64;

    /// How many buffers were allocated, of devices and of hosts.
    fn allocations(&self) -> u64;

    /// Ends what belongs together: who waits for it need not wait for what is queued afterwards.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses.
    fn seal(&mut self) -> Result<(), Error>;

    /// Whether something that was queued about this memory has not ended.
    ///
    /// # Errors
    /// [`Error::Driver`] if something that was queued about this memory failed.
    fn busy(&self, host: &Host) -> Result<bool, Error>;

    /// What a stream gets from now on waits for all that was queued about these buffers.
    ///
    /// # Errors
    /// [`Error::Range`] if one is another backend's; [`Error::Driver`] if the driver refuses.
    fn after(&mut self, on: Stream, buffers: &[&Buffer]) -> Result<(), Error>;

    /// The moment at which a stream has done all that it was told.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses.
    fn mark(&mut self, on: Stream) -> Result<Mark, Error>;

    /// The time between two of them, after both.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses, or something that was queued before the marks failed.
    fn elapsed(&mut self, from: &Mark, to: &Mark) -> Result<Duration, Error>;

    /// Forgets it.
    fn unmark(&mut self, mark: Mark);

    /// Waits for all that was queued.
    ///
    /// # Errors
    /// [`Error::Driver`] if something that was queued failed.
    fn finish(&self) -> Result<(), Error>;
}

/// Refuses bytes beyond the end.
fn within(has: u64, at: u64, bytes: u64) -> Result<(), Error> {
    match at.checked_add(bytes) {
        Some(end) if end <= has => Ok(()),
        end => Err(Error::Range {
            has,
            needs: end.unwrap_or(u64::MAX),
        }),
    }
}
