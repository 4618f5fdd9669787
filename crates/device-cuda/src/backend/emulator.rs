//! Kernels on the CPU: each thread a fiber, in an order that is chosen. What is right must be right in all of them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::{Arg, Backend, Buffer, Error, Host, Launch, Mark, Stream, within};
use crate::kernels::Kernel;

/// In which order the threads of a grid run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// From the first on.
    Forward,
    /// From the last on.
    Reverse,
    /// Drawn from a seed, anew whenever threads have met.
    Random(u32),
}

/// `emulator::Launch` of kernels/emulator/emulator.h.
#[repr(C)]
struct Grid {
    blocks: u32,
    threads: u32,
    shared: u32,
    cooperative: u32,
    order: u32,
    seed: u32,
}

unsafe extern "C" {
    fn veil_emulate(
        name: *const c_char,
        launch: *const Grid,
        arguments: *const *mut c_void,
        count: u32,
        message: *mut c_char,
        bytes: usize,
    ) -> c_int;
}

/// Why an emulator is of no more use that is lost, and how often it goes on before that shows.
const LOST: &str = "an illegal memory access was encountered (emulated)";
const LOOKS: u32 = 3;

/// Words of 16 bytes, as kernels need them.
type Words = Zeroizing<Vec<u128>>;

/// The emulator: slow, and all of what it is told is done when it returns.
pub struct Emulator {
    order: Order,
    buffers: BTreeMap<u64, Words>,
    hosts: BTreeMap<u64, Zeroizing<Vec<u8>>>,
    marks: BTreeMap<u64, Instant>,
    launches: u64,
    allocations: u64,
    /// The launch that ends it, if one does, and how often it was looked at since.
    last: Option<u64>,
    looks: Cell<u32>,
    /// Blocks and threads of a block that are worth launching.
    size: [u32; 2],
}

impl Emulator {
    /// An emulator whose threads run in this order.
    pub fn new(order: Order) -> Self {
        Emulator {
            order,
            buffers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            marks: BTreeMap::new(),
            launches: 0,
            allocations: 0,
            last: None,
            looks: Cell::new(0),
            size: [3, 64],
        }
    }

    /// The same, as large as this: so many blocks of so many threads.
    #[must_use]
    pub fn sized(self, blocks: u32, threads: u32) -> Self {
        Emulator {
            size: [blocks, threads],
            ..self
        }
    }

    /// The same, lost in launch `last`, from 1, as a GPU is that reaches for memory that is not there: the launch is queued, its batch goes on for some
    /// looks, and then whatever it is asked for fails.
    #[must_use]
    pub fn lost_in(self, last: u64) -> Self {
        Emulator {
            last: Some(last),
            ..self
        }
    }

    fn is_lost(&self) -> bool {
        self.last.is_some_and(|last| self.launches >= last)
    }

    fn healthy(&self) -> Result<(), Error> {
        if self.is_lost() {
            return Err(Error::Driver(LOST.into()));
        }
        Ok(())
    }

    /// The bytes from `at` on.
    fn bytes(&mut self, buffer: &Buffer, at: u64, bytes: u64) -> Result<&mut [u8], Error> {
        let missing = Error::Range {
            has: 0,
            needs: bytes,
        };
        let words = self.buffers.get_mut(&buffer.id).ok_or(missing)?;
        within(buffer.bytes, at, bytes)?;
        // SAFETY: the words are initialised, any bytes are words, and there are 16 bytes in each; the slice borrows them as they are borrowed.
        let all =
            unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 16) };
        Ok(&mut all[at as usize..][..bytes as usize])
    }

    fn of_host(&mut self, host: &Host, at: u64, bytes: u64) -> Result<&mut [u8], Error> {
        within(host.bytes, at, bytes)?;
        Ok(&mut self.host_mut(host)?[at as usize..][..bytes as usize])
    }
}

impl Backend for Emulator {
    fn name(&self) -> &'static str {
        "cuda-sim"
    }

    fn blocks(&self) -> u32 {
        self.size[0]
    }

    fn threads(&self) -> u32 {
        self.size[1]
    }

    fn allocate(&mut self, bytes: u64) -> Result<Buffer, Error> {
        let mut words = Words::default();
        let count = usize::try_from(bytes.div_ceil(16)).map_err(|_| Error::Memory { bytes })?;
        words
            .try_reserve_exact(count)
            .map_err(|_| Error::Memory { bytes })?;
        words.resize(count, 0);
        let buffer = Buffer::new(bytes);
        self.allocations += 1;
        self.buffers.insert(buffer.id, words);
        Ok(buffer)
    }

    fn free(&mut self, buffer: Buffer) {
        self.buffers.remove(&buffer.id);
    }

    fn pin(&mut self, bytes: u64) -> Result<Host, Error> {
        let count = usize::try_from(bytes).map_err(|_| Error::Memory { bytes })?;
        let host = Host::new(bytes);
        self.allocations += 1;
        self.hosts.insert(host.id, Zeroizing::new(vec![0; count]));
        Ok(host)
    }

    fn unpin(&mut self, host: Host) {
        self.hosts.remove(&host.id);
    }

    fn host(&self, host: &Host) -> Result<&[u8], Error> {
        self.healthy()?;
        let missing = Error::Range {
            has: 0,
            needs: host.bytes,
        };
        Ok(self.hosts.get(&host.id).ok_or(missing)?)
    }

    fn host_mut(&mut self, host: &Host) -> Result<&mut [u8], Error> {
        let missing = Error::Range {
            has: 0,
            needs: host.bytes,
        };
        Ok(self.hosts.get_mut(&host.id).ok_or(missing)?)
    }

    fn upload(&mut self, from: (&Host, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error> {
        let from = Zeroizing::new(self.of_host(from.0, from.1, bytes)?.to_vec());
        self.write(to.0, to.1, &from)
    }

    fn download(
        &mut self,
        from: (&Buffer, u64),
        to: (&Host, u64),
        bytes: u64,
    ) -> Result<(), Error> {
        let from = Zeroizing::new(self.bytes(from.0, from.1, bytes)?.to_vec());
        self.of_host(to.0, to.1, bytes)?.copy_from_slice(&from);
        Ok(())
    }

    fn copy(&mut self, from: (&Buffer, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error> {
        let from = Zeroizing::new(self.bytes(from.0, from.1, bytes)?.to_vec());
        self.write(to.0, to.1, &from)
    }

    fn write(&mut self, to: &Buffer, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.bytes(to, at, bytes.len() as u64)?
            .copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, from: &Buffer, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        bytes.copy_from_slice(self.bytes(from, at, bytes.len() as u64)?);
        Ok(())
    }

    fn clear(&mut self, buffer: &Buffer, at: u64, bytes: u64) -> Result<(), Error> {
        self.bytes(buffer, at, bytes)?.fill(0);
        Ok(())
    }

    fn launch(
        &mut self,
        kernel: &'static Kernel,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), Error> {
        kernel.check(launch, args)?;
        if self.last == Some(self.launches + 1) {
            self.launches += 1;
            return Ok(());
        }
        self.healthy()?;
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(match arg {
                Arg::U32(value) => u64::from(*value),
                Arg::U64(value) => *value,
                // Memory outlives the launch, which is the only one to touch it.
                Arg::At(buffer, at) => {
                    let (has, needs) = (0, buffer.bytes);
                    let words = self.buffers.get_mut(&buffer.id);
                    let words = words.ok_or(Error::Range { has, needs })?;
                    words.as_mut_ptr().expose_provenance() as u64 + at
                }
            });
        }
        let pointers: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| std::ptr::from_mut(value).cast())
            .collect();
        let (order, seed) = match self.order {
            Order::Forward => (0, 0),
            Order::Reverse => (1, 0),
            Order::Random(seed) => (2, seed),
        };
        let grid = Grid {
            blocks: launch.grid,
            threads: launch.block,
            shared: kernel.shared,
            cooperative: u32::from(kernel.cooperative),
            order,
            seed,
        };
        let wrong = |why: String| Error::Kernel {
            kernel: kernel.name,
            why,
        };
        let name = CString::new(kernel.name).map_err(|error| wrong(error.to_string()))?;
        let mut message = [0u8; 512];
        self.launches += 1;
        // SAFETY: the name and the message are of C; there are as many arguments as are said, each is as wide as the kernel takes it (a machine with
        // the lowest byte first), and memory reaches as far as the kernel does, by `Kernel::check`.
        let failed = unsafe {
            veil_emulate(
                name.as_ptr(),
                &raw const grid,
                pointers.as_ptr(),
                pointers.len() as u32,
                message.as_mut_ptr().cast(),
                message.len(),
            )
        };
        if failed == 0 {
            return Ok(());
        }
        let end = message.iter().position(|byte| *byte == 0);
        let said = &message[..end.unwrap_or(message.len())];
        Err(wrong(String::from_utf8_lossy(said).into_owned()))
    }

    fn launches(&self) -> u64 {
        self.launches
    }

    fn allocations(&self) -> u64 {
        self.allocations
    }

    fn seal(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn busy(&self, _: &Host) -> Result<bool, Error> {
        if self.is_lost() && self.looks.get() < LOOKS {
            self.looks.set(self.looks.get() + 1);
            return Ok(true);
        }
        self.healthy().map(|()| false)
    }

    fn after(&mut self, _: Stream, buffers: &[&Buffer]) -> Result<(), Error> {
        for buffer in buffers {
            self.bytes(buffer, 0, 0)?;
        }
        Ok(())
    }

    fn mark(&mut self, _: Stream) -> Result<Mark, Error> {
        let mark = Mark::new();
        self.marks.insert(mark.0, Instant::now());
        Ok(mark)
    }

    fn elapsed(&mut self, from: &Mark, to: &Mark) -> Result<Duration, Error> {
        let missing = || Error::Driver("a mark of another device".into());
        let from = self.marks.get(&from.0).ok_or_else(missing)?;
        let to = self.marks.get(&to.0).ok_or_else(missing)?;
        Ok(to.saturating_duration_since(*from))
    }

    fn unmark(&mut self, mark: Mark) {
        self.marks.remove(&mark.0);
    }

    fn finish(&self) -> Result<(), Error> {
        self.healthy()
    }
}
