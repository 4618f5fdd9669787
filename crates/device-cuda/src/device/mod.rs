//! A GPU, or the emulator of one, as a [`Device`].
//!
//! A workspace is one piece of device memory, packed as the host sees it: items one behind the other, rows innermost, bits in bytes; threads have
//! sixteen bytes of a column each. What the host reaches has a mirror in its own memory, which is copied before and after a batch, where either
//! wrote.
//!
//! `submit` says all of a batch in numbers, and queues its copies and launches. `poll` looks whether the first batch has ended, and never waits. A
//! check that fails stops what comes after it on the device, without the host. Once the GPU has failed, both say why.

mod ag;
mod cut;
mod labels;
mod lift;
mod matmul;
mod program;
mod proof;
mod psi;
mod queue;
mod silent;
mod transfers;
mod truncation;
mod workspace;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veil_device::{
    ColumnType, Command, Compiled, Completion, Device, Fault, Frame, KeyId, Layout, Outcome,
    Program, ProgramId, Span, Tag, Workspace,
};
use veil_math::Ring;
use veil_prss::Prf;
use veil_session::{Secret, SessionId};
use zeroize::{Zeroize, Zeroizing};

use crate::backend::{
    self, Absent, Arg, Backend, Buffer, Driver, Error, Host, Launch, Mark, Stream,
};
use crate::kernels::{AES_SCHEDULE, SCHEDULE_BYTES};
use program::Loaded;
use queue::{Argument, Queue, Step, VERDICT};
use workspace::Memory;

/// What faults name it.
const NAME: &str = "cuda";
/// Keys that there is room for at first, and a multiple of which there is room for later.
const KEYS: u32 = 64;
/// Bytes of the smallest room for what a batch is told, and how many rooms are kept.
const ROOM: u64 = 1024;
const ROOMS: usize = 16;
/// Threads that a multiprocessor has at once.
const THREADS: u64 = 2048;
/// Rows of a chunk that a GPU wishes: copies and launches cost as much for fewer, and more take memory alone.
const FEWEST_ROWS: u64 = 1 << 16;
const MOST_ROWS: u64 = 1 << 20;
/// Closed workspaces that are kept: as many as a lane has chunks in flight, or more.
const CLOSED: usize = 8;

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is what errors are mapped by"
)]
fn card(error: Error) -> Fault {
    Fault::Card {
        device: NAME,
        why: error.to_string(),
    }
}

const fn unsupported(what: &'static str) -> Fault {
    Fault::Unsupported { device: NAME, what }
}

/// What has no kernels.
const NARROW: Fault = unsupported("integers modulo 2^32 but in sums and products of matrices");

const fn too_large(bytes: u64) -> Fault {
    Fault::TooLarge { bytes }
}

/// A key: on the host, for a block or two, and the place of its round keys on the device.
struct Key {
    prf: Prf,
    /// The same key, where it is a label.
    secret: Secret,
    place: u32,
}

/// A batch that was queued.
struct Batch {
    tag: Tag,
    room: Room,
    /// When its kernels began and when they had ended, if there is a clock.
    marks: Option<[Mark; 2]>,
}

/// Where a batch is told what to do: on the device, where the verdict is in front, and on the host, which gets that back. All zero between batches.
struct Room {
    numbers: Buffer,
    host: Host,
}

impl Room {
    fn free(self, on: &mut dyn Backend) {
        on.free(self.numbers);
        on.unpin(self.host);
    }

    /// Wipes it.
    fn clear(&self, on: &mut dyn Backend) -> Result<(), Error> {
        on.clear(&self.numbers, 0, self.numbers.bytes())?;
        on.host_mut(&self.host)?.zeroize();
        Ok(())
    }
}

/// How many devices were given a GPU in turn.
static TURN: AtomicUsize = AtomicUsize::new(0);

/// What has its turn of so many, or the first one behind it that there is; else why that one is absent.
fn in_turn<T>(
    turn: usize,
    count: usize,
    mut open: impl FnMut(usize) -> Result<T, Absent>,
) -> Result<T, Absent> {
    let mut first = Err(Absent::Gpu { number: 0, count });
    for at in 0..count {
        let opened = open((turn + at) % count);
        if opened.is_ok() || at == 0 {
            first = opened;
        }
        if first.is_ok() {
            break;
        }
    }
    first
}

/// Spans that have the same items and do not touch, so that each is copied at once.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|s| (s.region, s.component, s.first));
    let mut all: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match all.last_mut() {
            Some(last)
                if (last.region, last.component) == (span.region, span.component)
                    && span.first <= last.first + last.count =>
            {
                last.count = last.count.max(span.first + span.count - last.first);
            }
            _ => all.push(span),
        }
    }
    all
}

/// Seconds that kernels took, of those who share it.
pub type Seconds = Arc<Mutex<f64>>;

/// A device of kernels.
pub struct Cuda {
    backend: Box<dyn Backend>,
    session: SessionId,
    keys: BTreeMap<KeyId, Key>,
    /// Round keys, and for how many there is room.
    schedules: Option<(Buffer, u32)>,
    /// Keys whose round keys are to be made, by their places: all at once, before the next batch.
    fresh: BTreeMap<u32, Secret>,
    /// Programs, and their words on the device.
    codes: Vec<Arc<Loaded>>,
    words: Vec<Buffer>,
    workspaces: Vec<Option<Memory>>,
    /// Workspaces that were closed, all zero: for others of their layout and as many rows, as pinned memory takes long to get and to give back.
    closed: Vec<Memory>,
    batches: VecDeque<Batch>,
    /// Rooms for batches to come.
    spare: Vec<Room>,
    /// Seconds that kernels of batches took, if the caller wants to know.
    clock: Option<Seconds>,
    /// Why the GPU is of no more use.
    broken: Option<Fault>,
}

impl Cuda {
    /// GPU `number` of this machine, or why there is none.
    ///
    /// # Errors
    /// [`Absent`] as of [`Driver::open`].
    pub fn open(number: usize) -> Result<Self, Absent> {
        Ok(Cuda::on(Box::new(Driver::open(number)?)))
    }

    /// The GPU that is next in turn: lanes, and parties of one process, are spread over those of this machine that run the kernels.
    ///
    /// # Errors
    /// [`Absent`] as of [`Driver::open`], of the GPU whose turn it is, if there is none.
    pub fn next() -> Result<Self, Absent> {
        let count = backend::count()?.max(1);
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        in_turn(turn, count, Cuda::open)
    }

    /// A device whose kernels run there.
    pub fn on(backend: Box<dyn Backend>) -> Self {
        Cuda {
            backend,
            session: SessionId([0; 32]),
            keys: BTreeMap::new(),
            schedules: None,
            fresh: BTreeMap::new(),
            codes: Vec::new(),
            words: Vec::new(),
            workspaces: Vec::new(),
            closed: Vec::new(),
            batches: VecDeque::new(),
            spare: Vec::new(),
            clock: None,
            broken: None,
        }
    }

    /// How many kernels it launched.
    pub fn launches(&self) -> u64 {
        self.backend.launches()
    }

    /// How many buffers it allocated, on the device and on the host.
    pub fn allocations(&self) -> u64 {
        self.backend.allocations()
    }

    /// Looks at the clock of the GPU from now on, and adds to it how long kernels of batches that end have taken. Several devices may have one.
    #[must_use]
    pub fn timed(mut self, seconds: &Seconds) -> Self {
        self.clock = Some(Arc::clone(seconds));
        self
    }

    /// Refuses to go on after a failure.
    fn healthy(&self) -> Result<(), Fault> {
        self.broken.clone().map_or(Ok(()), Err)
    }

    /// What it runs on: for measurements beside its own work.
    pub(crate) fn backend(&mut self) -> &mut dyn Backend {
        &mut *self.backend
    }

    /// Room for so many bytes that a batch is told.
    fn place(&mut self, bytes: u64) -> Result<Room, Error> {
        let bytes = bytes.max(ROOM).next_power_of_two();
        let fits = |room: &Room| room.numbers.bytes() == bytes;
        if let Some(at) = self.spare.iter().position(fits) {
            return Ok(self.spare.swap_remove(at));
        }
        let numbers = self.backend.allocate(bytes)?;
        match self.backend.pin(bytes) {
            Ok(host) => Ok(Room { numbers, host }),
            Err(error) => {
                self.backend.free(numbers);
                Err(error)
            }
        }
    }

    /// Wipes a room, and keeps it for another batch.
    fn keep(&mut self, room: Room) {
        if self.spare.len() < ROOMS && room.clear(&mut *self.backend).is_ok() {
            self.spare.push(room);
        } else {
            room.free(&mut *self.backend);
        }
    }

    /// Memory for a workspace, all zero.
    fn memory(&mut self, layout: &Layout, frame: Frame) -> Result<Memory, Fault> {
        let mut columns = layout.regions.iter().map(|r| r.column);
        if columns.any(|column| matches!(column, ColumnType::Words(_))) {
            return Err(unsupported("words in each row, which moves of rows have"));
        }
        let same = |memory: &Memory| memory.is_of(layout, frame.rows);
        if let Some(at) = self.closed.iter().position(same) {
            let mut memory = self.closed.swap_remove(at);
            memory.frame = frame;
            return Ok(memory);
        }
        let new = Memory::new(&mut *self.backend, layout, frame);
        if new.is_ok() || self.closed.is_empty() {
            return new;
        }
        // Memory that is kept may be what is missing.
        self.free_closed();
        Memory::new(&mut *self.backend, layout, frame)
    }

    fn free_closed(&mut self) {
        for memory in std::mem::take(&mut self.closed) {
            memory.free(&mut *self.backend);
        }
    }

    /// Makes room for the round keys of all keys.
    fn room(&mut self) -> Result<&Buffer, Fault> {
        let keys = self.keys.len() as u32;
        let old = self.schedules.take_if(|(_, has)| *has < keys);
        if self.schedules.is_none() {
            let has = keys.next_multiple_of(KEYS).max(KEYS);
            let new = self.backend.allocate(u64::from(has) * SCHEDULE_BYTES);
            let new = match (new, old) {
                (Ok(new), Some((old, _))) => {
                    let copied = self.backend.copy((&old, 0), (&new, 0), old.bytes());
                    self.backend.free(old);
                    copied.map(|()| new)
                }
                (new, old) => {
                    // Without its round keys nothing is done any more.
                    if let Some((old, _)) = old {
                        self.backend.free(old);
                    }
                    new
                }
            };
            self.schedules = Some((new.map_err(card)?, has));
        }
        let schedules = self.schedules.as_ref();
        schedules
            .map(|(buffer, _)| buffer)
            .ok_or(Fault::Unknown("room for keys"))
    }

    /// Queues that round keys are made of keys that are new: a launch for all that lie side by side.
    fn schedule(&mut self) -> Result<(), Fault> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        self.room()?;
        let mut fresh = std::mem::take(&mut self.fresh).into_iter().peekable();
        while let Some((first, key)) = fresh.next() {
            let mut run = vec![key];
            while let Some((_, key)) = fresh.next_if(|(at, _)| *at == first + run.len() as u32) {
                run.push(key);
            }
            let mut bytes = Zeroizing::new(Vec::with_capacity(16 * run.len()));
            for key in &run {
                bytes.extend_from_slice(key.expose());
            }
            self.round_keys(first, &bytes).map_err(card)?;
        }
        Ok(())
    }

    /// Queues that round keys are made of these keys, for places from `first` on.
    fn round_keys(&mut self, first: u32, keys: &[u8]) -> Result<(), Error> {
        let Some((schedules, _)) = &self.schedules else {
            return Ok(());
        };
        let count = keys.len() as u32 / 16;
        let from = self.backend.allocate(keys.len() as u64)?;
        let written = self.backend.write(&from, 0, keys);
        let to = Arg::At(schedules, u64::from(first) * SCHEDULE_BYTES);
        let args = [Arg::all(&from), to, Arg::U32(count)];
        let block = self.backend.threads().min(KEYS);
        let grid = count.div_ceil(block);
        let launch = Launch { grid, block };
        let made = written.and_then(|()| self.backend.launch(&AES_SCHEDULE, launch, &args));
        self.backend.free(from);
        made
    }

    /// Queues the launches of a batch.
    fn launch(&mut self, memory: &Memory, numbers: &Buffer, steps: &[Step]) -> Result<(), Fault> {
        for step in steps {
            let Step {
                kernel,
                work,
                levels,
                arguments,
            } = step;
            let mut args = Vec::with_capacity(arguments.len());
            for argument in arguments {
                args.push(match *argument {
                    Argument::Workspace => Arg::all(&memory.buffer),
                    // What has none looks at none.
                    Argument::Temps => Arg::all(memory.temps.as_ref().unwrap_or(numbers)),
                    Argument::Sums => Arg::all(memory.sums.as_ref().unwrap_or(numbers)),
                    Argument::Call(at) => Arg::At(numbers, 8 * at as u64),
                    Argument::Verdict => Arg::all(numbers),
                    // A kernel that draws nothing looks at no round keys.
                    Argument::Schedules => {
                        let schedules = self.schedules.as_ref().map(|(buffer, _)| buffer);
                        Arg::all(schedules.unwrap_or(numbers))
                    }
                    Argument::Code(program, word) => {
                        Arg::At(&self.words[program], 4 * u64::from(word))
                    }
                    Argument::Number(number) => Arg::U32(number),
                    Argument::Wide(number) => Arg::U64(number),
                    Argument::Apart(at) => Arg::At(memory.temps.as_ref().unwrap_or(numbers), at),
                });
            }
            let block = self.backend.threads().min(kernel.block);
            let grid = match work {
                None => 1,
                Some(work) => {
                    // Tables of AES take all the shared memory there is, and tiles of matrices all registers: a block of them at a time.
                    let each = if kernel.shared > 0 {
                        1
                    } else {
                        (2048 / block).max(1)
                    };
                    let most = u64::from(self.backend.blocks().saturating_mul(each));
                    work.div_ceil(u64::from(block)).clamp(1, most) as u32
                }
            };
            let launch = Launch { grid, block };
            let apart = levels.is_some_and(|levels| !levels.meet(launch));
            let kernel = kernel.apart.filter(|_| apart).unwrap_or(kernel);
            self.backend.launch(kernel, launch, &args).map_err(card)?;
        }
        Ok(())
    }

    /// Puts a batch together and queues it.
    fn queue(&mut self, memory: &mut Memory, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let blocks = self.backend.blocks();
        let mut queue = Queue {
            session: &self.session,
            keys: &self.keys,
            codes: &self.codes,
            memory,
            blocks,
            numbers: Zeroizing::new(vec![0; VERDICT]),
            steps: Vec::new(),
            temps: 0,
            sums: 0,
            written: Vec::new(),
        };
        for (index, command) in batch.iter().enumerate() {
            queue.checked(index, command)?;
        }
        let Queue {
            numbers,
            steps,
            temps,
            sums,
            written,
            ..
        } = queue;
        memory.room(&mut *self.backend, temps, sums)?;
        let bytes = 8 * numbers.len() as u64;
        let room = self.place(bytes).map_err(card)?;
        let written = merged(written);
        let sent = self.send(memory, &room, &numbers, &steps, &written);
        match sent {
            Ok(marks) => {
                self.batches.push_back(Batch { tag, room, marks });
                Ok(())
            }
            Err(fault) => {
                self.keep(room);
                Err(fault)
            }
        }
    }

    /// Queues the copies and launches of a batch.
    fn send(
        &mut self,
        memory: &mut Memory,
        room: &Room,
        told: &[u64],
        steps: &[Step],
        written: &[Span],
    ) -> Result<Option<[Mark; 2]>, Fault> {
        memory.upload(&mut *self.backend)?;
        let bytes = self.backend.host_mut(&room.host).map_err(card)?;
        for (to, number) in bytes.chunks_exact_mut(8).zip(told) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        let (from, to) = ((&room.host, 0), (&room.numbers, 0));
        let length = 8 * told.len() as u64;
        self.backend.upload(from, to, length).map_err(card)?;
        let began = self.mark(Some([&memory.buffer, &room.numbers]))?;
        self.launch(memory, &room.numbers, steps)?;
        let ended = self.mark(None)?;
        for span in written {
            memory.download(&mut *self.backend, *span)?;
        }
        let (from, to) = ((&room.numbers, 0), (&room.host, 0));
        self.backend.download(from, to, 16).map_err(card)?;
        self.backend.seal().map_err(card)?;
        Ok(began.zip(ended).map(|(began, ended)| [began, ended]))
    }

    /// The moment, if there is a clock: after the copies to these.
    fn mark(&mut self, after: Option<[&Buffer; 2]>) -> Result<Option<Mark>, Fault> {
        if self.clock.is_none() {
            return Ok(None);
        }
        if let Some(after) = after {
            self.backend.after(Stream::Run, &after).map_err(card)?;
        }
        self.backend.mark(Stream::Run).map(Some).map_err(card)
    }

    /// Ends the first batch.
    fn end(&mut self, batch: Batch) -> Result<Completion, Fault> {
        // The first word, and the third.
        let verdict = self.backend.host(&batch.room.host).map(|bytes| {
            let (words, _) = bytes.as_chunks::<4>();
            [0, 2].map(|k: usize| words.get(k).map_or(0, |word| u32::from_le_bytes(*word)))
        });
        self.keep(batch.room);
        if let Some([from, to]) = batch.marks {
            let took = self.backend.elapsed(&from, &to).map_err(card);
            self.backend.unmark(from);
            self.backend.unmark(to);
            if let Some(clock) = &self.clock {
                *clock.lock().unwrap_or_else(PoisonError::into_inner) += took?.as_secs_f64();
            }
        }
        let [stopped, why] = verdict.map_err(card)?;
        let outcome = match (stopped.checked_sub(1), why) {
            (None, _) => Outcome::Done,
            (Some(command), 0) => Outcome::Mismatch {
                command: command as usize,
            },
            (Some(command), why) => {
                let (command, what) = (command as usize, psi::impossible(why));
                return Err(Fault::Shape { command, what });
            }
        };
        Ok(Completion {
            tag: batch.tag,
            outcome,
        })
    }
}

impl Device for Cuda {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn chunk_rows(&self, ring: Ring) -> Option<u64> {
        // As many threads as fit all multiprocessors, each with sixteen bytes of a column: more rows only take more memory.
        let columns = u64::from(self.backend.blocks()) * THREADS;
        Some((columns * u64::from(128 / ring.bits())).clamp(FEWEST_ROWS, MOST_ROWS))
    }

    fn window(&self) -> usize {
        // One chunk goes up, one is computed, one comes down, and one is with the link.
        4
    }

    fn bind(&mut self, session: SessionId) {
        self.session = session;
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        let old = self.keys.get(&id).map(|old| old.place);
        let place = old.unwrap_or(self.keys.len() as u32);
        self.fresh.insert(place, key.clone());
        let (prf, secret) = (Prf::new(key), key.clone());
        self.keys.insert(id, Key { prf, secret, place });
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        static CODES: Compiled<Loaded> = Compiled::new();
        let compiled = CODES.of(program, layout, || Loaded::of(program, layout))?;
        let words = compiled.code.words.iter();
        let bytes: Vec<u8> = words.flat_map(|w| w.to_le_bytes()).collect();
        let words = self.backend.allocate(bytes.len() as u64).map_err(card)?;
        self.backend.write(&words, 0, &bytes).map_err(card)?;
        self.codes.push(compiled);
        self.words.push(words);
        Ok(ProgramId(self.codes.len() as u32 - 1))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let memory = self.memory(layout, frame)?;
        let free = self.workspaces.iter().position(Option::is_none);
        let workspace = free.unwrap_or(self.workspaces.len());
        if workspace == self.workspaces.len() {
            self.workspaces.push(None);
        }
        self.workspaces[workspace] = Some(memory);
        Ok(Workspace(workspace as u32))
    }

    fn reuse(
        &mut self,
        workspace: Workspace,
        frame: Frame,
        (zeros, kept): (&[Span], &[Span]),
    ) -> Result<bool, Fault> {
        self.healthy()?;
        let memory = self
            .workspaces
            .get_mut(workspace.0 as usize)
            .and_then(Option::as_mut);
        let memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        veil_device::fits_reuse(&memory.layout, memory.frame, (frame, zeros, kept))?;
        let reused = memory.reuse(&mut *self.backend, frame, zeros);
        reused.map(|()| true).map_err(card)
    }

    fn close(&mut self, workspace: Workspace) {
        let slot = self.workspaces.get_mut(workspace.0 as usize);
        if let Some(mut memory) = slot.and_then(Option::take) {
            if self.closed.len() < CLOSED && memory.wipe(&mut *self.backend).is_ok() {
                self.closed.push(memory);
            } else {
                memory.free(&mut *self.backend);
            }
        }
    }

    fn map(&mut self, workspace: Workspace, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self
            .workspaces
            .get_mut(workspace.0 as usize)
            .and_then(Option::as_mut);
        let memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        memory.map(&mut *self.backend, to)
    }

    fn view(&self, workspace: Workspace, from: Span) -> Result<&[u8], Fault> {
        let memory = self
            .workspaces
            .get(workspace.0 as usize)
            .and_then(Option::as_ref);
        let memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        memory.view(&*self.backend, from)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.healthy()?;
        self.schedule()?;
        let slot = self.workspaces.get_mut(workspace.0 as usize);
        let mut memory = slot
            .and_then(Option::take)
            .ok_or(Fault::Unknown("the workspace"))?;
        let queued = self.queue(&mut memory, batch, tag);
        self.workspaces[workspace.0 as usize] = Some(memory);
        queued
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        self.healthy()?;
        let Some(first) = self.batches.front() else {
            return Ok(None);
        };
        let ended = match self.backend.busy(&first.room.host) {
            Ok(true) => return Ok(None),
            Ok(false) => match self.batches.pop_front() {
                Some(batch) => self.end(batch).map(Some),
                None => Ok(None),
            },
            Err(error) => Err(card(error)),
        };
        // What is wrong with a command is nothing of the GPU.
        ended.inspect_err(|fault| {
            if matches!(fault, Fault::Card { .. }) {
                self.broken = Some(fault.clone());
            }
        })
    }

    fn wipe(&mut self) {
        let batches = std::mem::take(&mut self.batches);
        let rooms = batches.into_iter().map(|batch| batch.room);
        for room in rooms.chain(std::mem::take(&mut self.spare)) {
            room.free(&mut *self.backend);
        }
        for memory in std::mem::take(&mut self.workspaces).into_iter().flatten() {
            memory.free(&mut *self.backend);
        }
        self.free_closed();
        if let Some((schedules, _)) = self.schedules.take() {
            self.backend.free(schedules);
        }
        self.fresh.clear();
        self.keys.clear();
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_take_turns_and_one_that_is_unfit_is_left_out() {
        let absent = |number| Absent::Gpu { number, count: 3 };
        let open = |number| {
            if number == 1 {
                Err(absent(1))
            } else {
                Ok(number)
            }
        };
        let got: Vec<_> = (0..6).map(|turn| in_turn(turn, 3, open)).collect();
        assert_eq!(got, [Ok(0), Ok(2), Ok(2), Ok(0), Ok(2), Ok(2)]);
        let none = |number| Err::<(), _>(absent(number));
        assert_eq!(in_turn(5, 3, none), Err(absent(2)));
    }

    #[test]
    fn spans_that_touch_are_copied_at_once() {
        let span = |region, component, first, count| Span {
            region,
            component,
            first,
            count,
        };
        let all = [
            span(1, 0, 4, 1),
            span(0, 1, 0, 2),
            span(1, 0, 2, 2),
            span(1, 0, 6, 3),
            span(1, 0, 7, 1),
            span(0, 0, 0, 2),
            span(1, 1, 5, 1),
            span(1, 0, 4, 1),
        ];
        let want = [
            span(0, 0, 0, 2),
            span(0, 1, 0, 2),
            span(1, 0, 2, 3),
            span(1, 0, 6, 3),
            span(1, 1, 5, 1),
        ];
        assert_eq!(merged(all.to_vec()), want);
    }
}
