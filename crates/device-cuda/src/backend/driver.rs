//! Kernels on a GPU, by its driver, which is found at run time.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, sys};

use super::gpu::{self, Absent, Gpu, refused};
use super::order::{Order, Stream, Streams};
use super::{Arg, Backend, Buffer, Error, Host, Launch, Mark, within};
use crate::kernels::Kernel;

/// The streams of a GPU.
struct Queues([Arc<CudaStream>; 3]);

impl Streams for Queues {
    type Event = CudaEvent;

    fn record(&mut self, on: Stream) -> Result<CudaEvent, Error> {
        self.0[on as usize].record_event(None).map_err(failed)
    }

    fn wait(&mut self, on: Stream, event: &CudaEvent) -> Result<(), Error> {
        self.0[on as usize].wait(event).map_err(failed)
    }
}

/// A GPU: three streams of it.
pub struct Driver {
    /// Behind a lock, as a reader of memory of the host waits.
    queues: Mutex<(Queues, Order<CudaEvent>)>,
    /// The stream of launches, which is one of them.
    stream: Arc<CudaStream>,
    context: Arc<CudaContext>,
    gpu: Arc<Gpu>,
    /// Threads of a block, at most.
    threads: u32,
    marks: BTreeMap<u64, CudaEvent>,
    buffers: BTreeMap<u64, (sys::CUdeviceptr, u64)>,
    hosts: BTreeMap<u64, (*mut u8, u64)>,
    launches: u64,
    allocations: u64,
}

// SAFETY: handles of the driver are for all threads of a process, each of which makes the context its own before it calls (`Driver::bound`); memory of
// the host is reached through `Driver` alone.
unsafe impl Send for Driver {}

fn failed(error: DriverError) -> Error {
    Error::Driver(error.to_string())
}

/// A host waits without a rest for so long: small copies take less, and a thread that sleeps wakes some 50 µs late.
const SOON: Duration = Duration::from_micros(100);
/// And then rests for so long between looks.
const REST: Duration = Duration::from_micros(50);

/// Waits until an event has come. The driver's own waits take all of a core.
fn ended(event: &CudaEvent) -> Result<(), Error> {
    let began = Instant::now();
    while !event.try_is_complete().map_err(failed)? {
        if began.elapsed() < SOON {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(REST);
        }
    }
    Ok(())
}

impl Driver {
    /// GPU `number` of this machine, or why there is none. `VEIL_GPU_THREADS` is how many threads a block has at most [default: 1024]: tools that
    /// instrument kernels, and so add to their registers, need fewer.
    ///
    /// # Errors
    /// [`Absent::Code`] if the build had no compiler for GPUs, [`Absent::Driver`] if no driver is installed, [`Absent::Gpu`] if
    /// there are not so many GPUs, [`Absent::Unfit`] if the kernels do not run on this one, [`Absent::Threads`] for a number of threads that no
    /// block has, [`Absent::Refused`] if the driver gives no context, stream or module.
    pub fn open(number: usize) -> Result<Self, Absent> {
        let threads = gpu::threads()?;
        let gpu = Gpu::open(number, threads)?;
        let context = Arc::clone(&gpu.context);
        context.bind_to_thread().map_err(refused)?;
        let stream = || context.new_stream().map_err(refused);
        let streams = [stream()?, stream()?, stream()?];
        Ok(Driver {
            stream: Arc::clone(&streams[Stream::Run as usize]),
            queues: Mutex::new((Queues(streams), Order::new())),
            context,
            gpu,
            threads,
            marks: BTreeMap::new(),
            buffers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            launches: 0,
            allocations: 0,
        })
    }

    /// Makes the context that of this thread.
    fn bound(&self) -> Result<(), Error> {
        self.context.bind_to_thread().map_err(failed)
    }

    fn queues(&self) -> MutexGuard<'_, (Queues, Order<CudaEvent>)> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream, which waits for what others do with this memory.
    fn tell(&self, on: Stream, memory: &[u64]) -> Result<sys::CUstream, Error> {
        self.bound()?;
        let (queues, order) = &mut *self.queues();
        order.tell(on, memory, queues)?;
        Ok(queues.0[on as usize].cu_stream())
    }

    /// Waits until no stream touches memory.
    fn settle(&self, name: u64) -> Result<(), Error> {
        self.bound()?;
        let (queues, order) = &mut *self.queues();
        order.settle(name, queues, ended)
    }

    /// Where bytes of a buffer are.
    fn at(&self, buffer: &Buffer, at: u64, bytes: u64) -> Result<(sys::CUdeviceptr, usize), Error> {
        self.bound()?;
        let missing = Error::Range {
            has: 0,
            needs: bytes,
        };
        let (start, _) = self.buffers.get(&buffer.id).ok_or(missing)?;
        within(buffer.bytes, at, bytes)?;
        Ok((start + at, bytes as usize))
    }

    /// Where bytes of memory of the host are.
    fn of_host(&self, host: &Host, at: u64, bytes: u64) -> Result<*mut u8, Error> {
        let missing = Error::Range {
            has: 0,
            needs: bytes,
        };
        let (start, _) = self.hosts.get(&host.id).ok_or(missing)?;
        within(host.bytes, at, bytes)?;
        Ok(start.wrapping_add(at as usize))
    }
}

impl Backend for Driver {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn blocks(&self) -> u32 {
        self.gpu.facts.units.max(1)
    }

    fn threads(&self) -> u32 {
        self.threads
    }

    fn allocate(&mut self, bytes: u64) -> Result<Buffer, Error> {
        self.bound()?;
        let full = |_| Error::Memory { bytes };
        let length = usize::try_from(bytes).map_err(|_| Error::Memory { bytes })?;
        // Nothing is of no bytes.
        let length = length.max(1);
        let start = if self.context.has_async_alloc() {
            // SAFETY: the context is that of this thread, and the stream is there.
            unsafe { result::malloc_async(self.stream.cu_stream(), length) }
        } else {
            // SAFETY: as above.
            unsafe { result::malloc_sync(length) }
        }
        .map_err(full)?;
        let buffer = Buffer::new(bytes);
        self.allocations += 1;
        self.buffers.insert(buffer.id, (start, bytes));
        self.clear(&buffer, 0, bytes)?;
        Ok(buffer)
    }

    fn free(&mut self, buffer: Buffer) {
        let _ = self.clear(&buffer, 0, buffer.bytes);
        self.queues().1.forget(buffer.id);
        let Some((start, _)) = self.buffers.remove(&buffer.id) else {
            return;
        };
        let _ = if self.context.has_async_alloc() {
            // SAFETY: it was allocated so, and is free when the stream has come so far: no command names it any more.
            unsafe { result::free_async(start, self.stream.cu_stream()) }
        } else {
            let _ = self.finish();
            // SAFETY: it was allocated so, and no command has it any more: the stream is at its end.
            unsafe { result::free_sync(start) }
        };
    }

    fn pin(&mut self, bytes: u64) -> Result<Host, Error> {
        self.bound()?;
        let full = |_| Error::Memory { bytes };
        let length = usize::try_from(bytes).map_err(|_| Error::Memory { bytes })?;
        // SAFETY: the context is that of this thread.
        let start = unsafe { result::malloc_host(length.max(1), 0) }.map_err(full)?;
        // SAFETY: so many bytes were allocated.
        unsafe { start.cast::<u8>().write_bytes(0, length) };
        let host = Host::new(bytes);
        self.allocations += 1;
        self.hosts.insert(host.id, (start.cast(), bytes));
        Ok(host)
    }

    fn unpin(&mut self, host: Host) {
        match self.host_mut(&host) {
            Ok(bytes) => zeroize::Zeroize::zeroize(bytes),
            // What the driver may still write to is not given back.
            Err(_) => return,
        }
        if let Some((start, _)) = self.hosts.remove(&host.id) {
            // SAFETY: it was allocated so, and no command has it any more: `host_mut` has waited for all copies.
            let _ = unsafe { result::free_host(start.cast()) };
        }
    }

    fn host(&self, host: &Host) -> Result<&[u8], Error> {
        let start = self.of_host(host, 0, host.bytes)?;
        self.settle(host.id)?;
        // SAFETY: so many bytes were allocated and written, and no copy of them is queued: a caller that queues one borrows `self` alone.
        Ok(unsafe { std::slice::from_raw_parts(start, host.bytes as usize) })
    }

    fn host_mut(&mut self, host: &Host) -> Result<&mut [u8], Error> {
        let start = self.of_host(host, 0, host.bytes)?;
        self.settle(host.id)?;
        // SAFETY: as in `host`.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, host.bytes as usize) })
    }

    fn upload(&mut self, from: (&Host, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error> {
        let memory = [from.0.id, to.0.id];
        let from = self.of_host(from.0, from.1, bytes)?;
        let (to, length) = self.at(to.0, to.1, bytes)?;
        let stream = self.tell(Stream::Up, &memory)?;
        // SAFETY: both reach so far. The host's memory is pinned, lives until it is unpinned, which waits for all copies of it, and is not written
        // before: `host_mut` waits.
        let from = unsafe { std::slice::from_raw_parts(from, length) };
        // SAFETY: as above.
        unsafe { result::memcpy_htod_async(to, from, stream) }.map_err(failed)
    }

    fn download(
        &mut self,
        from: (&Buffer, u64),
        to: (&Host, u64),
        bytes: u64,
    ) -> Result<(), Error> {
        let memory = [from.0.id, to.0.id];
        let to = self.of_host(to.0, to.1, bytes)?;
        let (from, length) = self.at(from.0, from.1, bytes)?;
        let stream = self.tell(Stream::Down, &memory)?;
        // SAFETY: as in `upload`; it is not read before, either.
        let to = unsafe { std::slice::from_raw_parts_mut(to, length) };
        // SAFETY: as above.
        unsafe { result::memcpy_dtoh_async(to, from, stream) }.map_err(failed)
    }

    fn copy(&mut self, from: (&Buffer, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error> {
        let memory = [from.0.id, to.0.id];
        let (from, length) = self.at(from.0, from.1, bytes)?;
        let (to, _) = self.at(to.0, to.1, bytes)?;
        let stream = self.tell(Stream::Run, &memory)?;
        // SAFETY: both reach so far.
        unsafe { result::memcpy_dtod_async(to, from, length, stream) }.map_err(failed)
    }

    fn write(&mut self, to: &Buffer, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let name = to.id;
        let (to, _) = self.at(to, at, bytes.len() as u64)?;
        let stream = self.tell(Stream::Run, &[name])?;
        // SAFETY: it reaches so far. The driver takes bytes that are not pinned over before it returns.
        unsafe { result::memcpy_htod_async(to, bytes, stream) }.map_err(failed)
    }

    fn read(&mut self, from: &Buffer, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let name = from.id;
        let (from, _) = self.at(from, at, bytes.len() as u64)?;
        let stream = self.tell(Stream::Run, &[name])?;
        // SAFETY: it reaches so far; the bytes are there until the copy has ended.
        unsafe { result::memcpy_dtoh_async(bytes, from, stream) }.map_err(failed)?;
        let done = self.stream.record_event(None).map_err(failed);
        let done = done.and_then(|event| ended(&event));
        if done.is_err() {
            // The driver writes to these bytes no more when it has said so, even of a failure.
            let _ = self.stream.synchronize();
        }
        done
    }

    fn clear(&mut self, buffer: &Buffer, at: u64, bytes: u64) -> Result<(), Error> {
        let (start, length) = self.at(buffer, at, bytes)?;
        if length == 0 {
            return Ok(());
        }
        let stream = self.tell(Stream::Run, &[buffer.id])?;
        // SAFETY: it reaches so far.
        unsafe { result::memset_d8_async(start, 0, length, stream) }.map_err(failed)
    }

    fn launch(
        &mut self,
        kernel: &'static Kernel,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), Error> {
        kernel.check(launch, args)?;
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(match arg {
                Arg::U32(value) => u64::from(*value),
                Arg::U64(value) => *value,
                Arg::At(buffer, at) => self.at(buffer, *at, buffer.bytes - at)?.0,
            });
        }
        let mut pointers: Vec<*mut c_void> = values
            .iter_mut()
            .map(|value| std::ptr::from_mut(value).cast())
            .collect();
        self.bound()?;
        let function = self.gpu.function(kernel)?;
        let (grid, block) = ((launch.grid, 1, 1), (launch.block, 1, 1));
        let memory: Vec<u64> = args.iter().filter_map(Arg::memory).collect();
        let stream = self.tell(Stream::Run, &memory)?;
        self.launches += 1;
        let launched = if kernel.cooperative {
            // SAFETY: the function is of a module that is loaded, and takes these arguments, which reach as far as it does, by `Kernel::check`.
            unsafe {
                result::launch_cooperative_kernel(
                    function,
                    grid,
                    block,
                    kernel.shared,
                    stream,
                    &mut pointers,
                )
            }
        } else {
            // SAFETY: as above.
            unsafe {
                result::launch_kernel(function, grid, block, kernel.shared, stream, &mut pointers)
            }
        };
        launched.map_err(|error| Error::Kernel {
            kernel: kernel.name,
            why: error.to_string(),
        })
    }

    fn launches(&self) -> u64 {
        self.launches
    }

    fn allocations(&self) -> u64 {
        self.allocations
    }

    fn seal(&mut self) -> Result<(), Error> {
        self.bound()?;
        let (queues, order) = &mut *self.queues();
        order.seal(Stream::Down, queues)
    }

    fn busy(&self, host: &Host) -> Result<bool, Error> {
        self.bound()?;
        let (queues, order) = &mut *self.queues();
        order.busy(host.id, queues, |event| {
            event.try_is_complete().map(|done| !done).map_err(failed)
        })
    }

    fn after(&mut self, on: Stream, buffers: &[&Buffer]) -> Result<(), Error> {
        for buffer in buffers {
            self.at(buffer, 0, 0)?;
        }
        let memory: Vec<u64> = buffers.iter().map(|buffer| buffer.id).collect();
        self.tell(on, &memory).map(|_| ())
    }

    fn mark(&mut self, on: Stream) -> Result<Mark, Error> {
        let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
        let stream = Arc::clone(&self.queues().0.0[on as usize]);
        let event = stream.record_event(timed).map_err(failed)?;
        let mark = Mark::new();
        self.marks.insert(mark.0, event);
        Ok(mark)
    }

    fn elapsed(&mut self, from: &Mark, to: &Mark) -> Result<Duration, Error> {
        let missing = || Error::Driver("a mark of another GPU".into());
        let from = self.marks.get(&from.0).ok_or_else(missing)?;
        let to = self.marks.get(&to.0).ok_or_else(missing)?;
        self.bound()?;
        ended(to)?;
        let ms = from.elapsed_ms(to).map_err(failed)?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }

    fn unmark(&mut self, mark: Mark) {
        self.marks.remove(&mark.0);
    }

    fn finish(&self) -> Result<(), Error> {
        self.bound()?;
        for stream in &self.queues().0.0 {
            ended(&stream.record_event(None).map_err(failed)?)?;
        }
        Ok(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let buffers = self.buffers.iter();
        let buffers: Vec<_> = buffers.map(|(id, (_, bytes))| (*id, *bytes)).collect();
        for (id, bytes) in buffers {
            self.free(Buffer { id, bytes });
        }
        let hosts = self.hosts.iter();
        let hosts: Vec<_> = hosts.map(|(id, (_, bytes))| (*id, *bytes)).collect();
        for (id, bytes) in hosts {
            self.unpin(Host { id, bytes });
        }
        let _ = self.finish();
    }
}
