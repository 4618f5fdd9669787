//! The emulator, with three streams as a GPU has them, which do what they were told as late as they may, and in an order that is drawn. Whatever is right
//! must be right so: a copy that is not waited for comes too late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::order::{Order, Stream, Streams};
use super::{Arg, Backend, Buffer, Emulator, Error, Host, Launch, Mark, within};
use crate::kernels::Kernel;

/// An argument that outlives its command.
enum Kept {
    At(Buffer, u64),
    U32(u32),
    U64(u64),
}

/// What a stream was told.
enum Told {
    Upload((Host, u64), (Buffer, u64), u64),
    Download((Buffer, u64), (Host, u64), u64),
    Copy((Buffer, u64), (Buffer, u64), u64),
    Write(Buffer, u64, Vec<u8>),
    Clear(Buffer, u64, u64),
    Free(Buffer),
    Launch(&'static Kernel, Launch, Vec<Kept>),
    Record(u64),
    Wait(u64),
    Mark(u64),
}

impl Told {
    /// Its time: that of its bytes, and of a launch more than any copies take that tests make.
    const fn takes(&self) -> Duration {
        match self {
            Told::Upload(_, _, bytes) | Told::Download(_, _, bytes) | Told::Copy(_, _, bytes) => {
                Duration::from_nanos(*bytes)
            }
            Told::Launch(..) => LAUNCH,
            _ => Duration::ZERO,
        }
    }
}

/// The time of a launch.
pub const LAUNCH: Duration = Duration::from_millis(100);

/// Streams that wait.
#[derive(Default)]
struct Waiting {
    streams: [VecDeque<Told>; 3],
    next: u64,
    done: BTreeSet<u64>,
    seed: u64,
    /// The time: what streams have done took so long, one thing after the other; and when marks were reached.
    now: Duration,
    marks: BTreeMap<u64, Duration>,
    /// How often a stream was told something while others had not done what they were told before.
    overtaken: u64,
}

impl Streams for Waiting {
    type Event = u64;

    fn record(&mut self, on: Stream) -> Result<u64, Error> {
        self.next += 1;
        self.streams[on as usize].push_back(Told::Record(self.next));
        Ok(self.next)
    }

    fn wait(&mut self, on: Stream, event: &u64) -> Result<(), Error> {
        self.streams[on as usize].push_back(Told::Wait(*event));
        Ok(())
    }
}

struct State {
    emulator: Emulator,
    waiting: Waiting,
    order: Order<u64>,
}

/// The emulator behind three streams.
pub struct Reordered {
    state: Mutex<State>,
    launches: u64,
}

const fn same(buffer: &Buffer) -> Buffer {
    Buffer {
        id: buffer.id,
        bytes: buffer.bytes,
    }
}

const fn same_host(host: &Host) -> Host {
    Host {
        id: host.id,
        bytes: host.bytes,
    }
}

impl State {
    /// Does one thing of a stream, if that waits for nothing.
    fn step(&mut self, on: Stream) -> Result<bool, Error> {
        let stream = &mut self.waiting.streams[on as usize];
        match stream.front() {
            None => return Ok(false),
            Some(Told::Wait(event)) if !self.waiting.done.contains(event) => return Ok(false),
            Some(_) => {}
        }
        let Some(told) = stream.pop_front() else {
            return Ok(false);
        };
        self.waiting.now += told.takes();
        let on = &mut self.emulator;
        match told {
            Told::Mark(mark) => {
                self.waiting.marks.insert(mark, self.waiting.now);
            }
            Told::Upload(from, to, bytes) => on.upload((&from.0, from.1), (&to.0, to.1), bytes)?,
            Told::Download(from, to, bytes) => {
                on.download((&from.0, from.1), (&to.0, to.1), bytes)?;
            }
            Told::Copy(from, to, bytes) => on.copy((&from.0, from.1), (&to.0, to.1), bytes)?,
            Told::Write(to, at, bytes) => on.write(&to, at, &bytes)?,
            Told::Clear(buffer, at, bytes) => on.clear(&buffer, at, bytes)?,
            Told::Free(buffer) => on.free(buffer),
            Told::Launch(kernel, launch, kept) => {
                let args: Vec<Arg<'_>> = (kept.iter())
                    .map(|kept| match kept {
                        Kept::At(buffer, at) => Arg::At(buffer, *at),
                        Kept::U32(number) => Arg::U32(*number),
                        Kept::U64(number) => Arg::U64(*number),
                    })
                    .collect();
                on.launch(kernel, launch, &args)?;
            }
            Told::Record(event) => {
                self.waiting.done.insert(event);
            }
            Told::Wait(_) => {}
        }
        Ok(true)
    }

    /// The stream that goes on next.
    fn drawn(&mut self) -> Stream {
        // Knuth's constants; the upper bits are the ones that look random.
        let seed = &mut self.waiting.seed;
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        Stream::ALL[(*seed >> 33) as usize % 3]
    }

    /// Goes on, with whichever stream is drawn, until an event has come.
    fn until(&mut self, event: u64) -> Result<(), Error> {
        let mut stuck = 0;
        while !self.waiting.done.contains(&event) {
            let on = self.drawn();
            stuck = if self.step(on)? { 0 } else { stuck + 1 };
            if stuck > 1000 {
                return Err(Error::Driver("streams wait for each other".into()));
            }
        }
        Ok(())
    }

    fn settle(&mut self, name: u64) -> Result<(), Error> {
        let mut events = Vec::new();
        let all = |event: &u64| {
            events.push(*event);
            Ok(())
        };
        self.order.settle(name, &mut self.waiting, all)?;
        events.into_iter().try_for_each(|event| self.until(event))
    }

    fn tell(&mut self, on: Stream, memory: &[u64], told: Told) -> Result<(), Error> {
        let others = Stream::ALL.into_iter().filter(|other| *other != on);
        let mut others = others.map(|other| self.waiting.streams[other as usize].len());
        self.waiting.overtaken += u64::from(others.any(|left| left > 0));
        self.order.tell(on, memory, &mut self.waiting)?;
        self.waiting.streams[on as usize].push_back(told);
        Ok(())
    }
}

impl Reordered {
    /// Streams over an emulator, drawn by a seed.
    pub fn new(emulator: Emulator, seed: u64) -> Self {
        let waiting = Waiting {
            seed,
            ..Waiting::default()
        };
        Reordered {
            state: Mutex::new(State {
                emulator,
                waiting,
                order: Order::new(),
            }),
            launches: 0,
        }
    }

    /// How often something was queued while another stream had something left to do.
    pub fn overtaken(&self) -> u64 {
        self.state().waiting.overtaken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Reordered {
    fn name(&self) -> &'static str {
        "cuda-reordered"
    }

    fn blocks(&self) -> u32 {
        self.state().emulator.blocks()
    }

    fn threads(&self) -> u32 {
        self.state().emulator.threads()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Buffer, Error> {
        self.state().emulator.allocate(bytes)
    }

    fn free(&mut self, buffer: Buffer) {
        let mut state = self.state();
        let name = buffer.id;
        // Nothing is lost if it is not freed: the emulator ends with its memory.
        let _ = state.tell(Stream::Run, &[name], Told::Free(buffer));
        state.order.forget(name);
    }

    fn pin(&mut self, bytes: u64) -> Result<Host, Error> {
        self.state().emulator.pin(bytes)
    }

    fn unpin(&mut self, host: Host) {
        let mut state = self.state();
        if state.settle(host.id).is_ok() {
            state.emulator.unpin(host);
        }
    }

    fn host(&self, host: &Host) -> Result<&[u8], Error> {
        let mut state = self.state();
        state.settle(host.id)?;
        let bytes = state.emulator.host(host)?;
        // SAFETY: the bytes lie on the heap until `unpin`, and no code writes them while `self` is borrowed: what was queued about them is done, and
        // a caller that queues more, or writes to them, borrows `self` alone.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) })
    }

    fn host_mut(&mut self, host: &Host) -> Result<&mut [u8], Error> {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.settle(host.id)?;
        state.emulator.host_mut(host)
    }

    fn upload(&mut self, from: (&Host, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error> {
        within(from.0.bytes, from.1, bytes)?;
        within(to.0.bytes, to.1, bytes)?;
        let memory = [from.0.id, to.0.id];
        let (from, to) = ((same_host(from.0), from.1), (same(to.0), to.1));
        let told = Told::Upload(from, to, bytes);
        self.state().tell(Stream::Up, &memory, told)
    }

    fn download(
        &mut self,
        from: (&Buffer, u64),
        to: (&Host, u64),
        bytes: u64,
    ) -> Result<(), Error> {
        within(from.0.bytes, from.1, bytes)?;
        within(to.0.bytes, to.1, bytes)?;
        let memory = [from.0.id, to.0.id];
        let (from, to) = ((same(from.0), from.1), (same_host(to.0), to.1));
        let told = Told::Download(from, to, bytes);
        self.state().tell(Stream::Down, &memory, told)
    }

    fn copy(&mut self, from: (&Buffer, u64), to: (&Buffer, u64), bytes: u64) -> Result<(), Error> {
        let memory = [from.0.id, to.0.id];
        let (from, to) = ((same(from.0), from.1), (same(to.0), to.1));
        let told = Told::Copy(from, to, bytes);
        self.state().tell(Stream::Run, &memory, told)
    }

    fn write(&mut self, to: &Buffer, at: u64, bytes: &[u8]) -> Result<(), Error> {
        within(to.bytes, at, bytes.len() as u64)?;
        let told = Told::Write(same(to), at, bytes.to_vec());
        self.state().tell(Stream::Run, &[to.id], told)
    }

    fn read(&mut self, from: &Buffer, at: u64, bytes: &mut [u8]) -> Result<(), Error> {
        let mut state = self.state();
        state.settle(from.id)?;
        state.emulator.read(from, at, bytes)
    }

    fn clear(&mut self, buffer: &Buffer, at: u64, bytes: u64) -> Result<(), Error> {
        within(buffer.bytes, at, bytes)?;
        let told = Told::Clear(same(buffer), at, bytes);
        self.state().tell(Stream::Run, &[buffer.id], told)
    }

    fn launch(
        &mut self,
        kernel: &'static Kernel,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), Error> {
        kernel.check(launch, args)?;
        let memory: Vec<u64> = args.iter().filter_map(Arg::memory).collect();
        let kept = args.iter().map(|arg| match arg {
            Arg::At(buffer, at) => Kept::At(same(buffer), *at),
            Arg::U32(number) => Kept::U32(*number),
            Arg::U64(number) => Kept::U64(*number),
        });
        let told = Told::Launch(kernel, launch, kept.collect());
        self.launches += 1;
        self.state().tell(Stream::Run, &memory, told)
    }

    fn launches(&self) -> u64 {
        self.launches
    }

    fn allocations(&self) -> u64 {
        self.state().emulator.allocations()
    }

    fn seal(&mut self) -> Result<(), Error> {
        let State { waiting, order, .. } = &mut *self.state();
        order.seal(Stream::Down, waiting)
    }

    /// Time goes on while a caller looks, if only by one thing.
    fn busy(&self, host: &Host) -> Result<bool, Error> {
        let mut state = self.state();
        let on = state.drawn();
        state.step(on)?;
        let State { waiting, order, .. } = &mut *state;
        let done = waiting.done.clone();
        order.busy(host.id, waiting, |event| Ok(!done.contains(event)))
    }

    fn after(&mut self, on: Stream, buffers: &[&Buffer]) -> Result<(), Error> {
        let mut state = self.state();
        state.emulator.after(on, buffers)?;
        let State { waiting, order, .. } = &mut *state;
        let memory: Vec<u64> = buffers.iter().map(|buffer| buffer.id).collect();
        order.tell(on, &memory, waiting)
    }

    fn mark(&mut self, on: Stream) -> Result<Mark, Error> {
        let mark = Mark::new();
        self.state().waiting.streams[on as usize].push_back(Told::Mark(mark.0));
        Ok(mark)
    }

    fn elapsed(&mut self, from: &Mark, to: &Mark) -> Result<Duration, Error> {
        self.finish()?;
        let missing = || Error::Driver("a mark of another device".into());
        let marks = &self.state().waiting.marks;
        let from = marks.get(&from.0).ok_or_else(missing)?;
        let to = marks.get(&to.0).ok_or_else(missing)?;
        Ok(to.saturating_sub(*from))
    }

    fn unmark(&mut self, mark: Mark) {
        self.state().waiting.marks.remove(&mark.0);
    }

    fn finish(&self) -> Result<(), Error> {
        let mut state = self.state();
        for on in Stream::ALL {
            let event = state.waiting.record(on)?;
            state.until(event)?;
        }
        Ok(())
    }
}
