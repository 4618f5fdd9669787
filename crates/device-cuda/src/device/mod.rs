//! A GPU, or the emulator of one, as a [`Device`].
//!
//! A bank is one piece of device memory, packed as the host sees it: items one behind the other, rows innermost, bits in bytes; threads have sixteen
//! bytes of a column each. What the host reaches has a mirror in its own memory, which is copied before and after a batch, where either wrote.
//!
//! `submit` says all of a batch in numbers, and queues its copies and launches; `poll` waits. A check that fails stops what comes after it on the
//! device, without the host.

mod bank;
mod cut;
mod labels;
mod program;
mod proof;
mod queue;
mod transfers;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use veil_device::{
    Bank, Command, Completion, Device, Fault, Frame, KeyId, Layout, Needs, Outcome, Program,
    ProgramId, Span, Tag,
};
use veil_prss::Prf;
use veil_session::{Secret, SessionId};
use zeroize::Zeroizing;

use crate::backend::{Absent, Arg, Backend, Buffer, Driver, Error, Host, Launch};
use crate::kernels::{AES_SCHEDULE, SCHEDULE_BYTES};
use bank::Memory;
use program::Code;
use queue::{Place, Queue, Step, VERDICT};

/// What faults name it.
const NAME: &str = "cuda";
/// Keys that it keeps at first; there is room for twice as many when it is full.
const KEYS: u32 = 64;

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
    /// What it was told: the verdict is in front.
    numbers: Buffer,
    verdict: Host,
}

/// A device of kernels.
pub struct Cuda {
    backend: Box<dyn Backend>,
    session: SessionId,
    keys: BTreeMap<KeyId, Key>,
    /// Round keys, and for how many there is room.
    schedules: Option<(Buffer, u32)>,
    /// Programs: what they need, what they are made to, and that on the device.
    needs: Vec<Needs>,
    codes: Vec<Code>,
    words: Vec<Buffer>,
    banks: Vec<Option<Memory>>,
    batches: VecDeque<Batch>,
    /// Memory of the host for verdicts to come.
    spare: Vec<Host>,
    /// What went wrong while nobody asked.
    broken: Option<Fault>,
}

impl Cuda {
    /// GPU `number` of this machine, or why there is none.
    pub fn open(number: usize) -> Result<Self, Absent> {
        Ok(Cuda::on(Box::new(Driver::open(number)?)))
    }

    /// A device whose kernels run there.
    pub fn on(backend: Box<dyn Backend>) -> Self {
        Cuda {
            backend,
            session: SessionId([0; 32]),
            keys: BTreeMap::new(),
            schedules: None,
            needs: Vec::new(),
            codes: Vec::new(),
            words: Vec::new(),
            banks: Vec::new(),
            batches: VecDeque::new(),
            spare: Vec::new(),
            broken: None,
        }
    }

    /// How many kernels it launched.
    pub fn launches(&self) -> u64 {
        self.backend.launches()
    }

    /// Makes room for the round keys of one more key, and says where they go.
    fn room(&mut self) -> Result<u32, Fault> {
        let place = self.keys.len() as u32;
        let (old, has) = match self.schedules.take() {
            Some((buffer, has)) if place < has => {
                self.schedules = Some((buffer, has));
                return Ok(place);
            }
            Some((buffer, has)) => (Some(buffer), has),
            None => (None, KEYS / 2),
        };
        let has = 2 * has;
        let new = self.backend.allocate(u64::from(has) * SCHEDULE_BYTES);
        let new = new.map_err(card)?;
        if let Some(old) = old {
            let copied = self.backend.copy((&old, 0), (&new, 0), old.bytes());
            self.backend.free(old);
            copied.map_err(card)?;
        }
        self.schedules = Some((new, has));
        Ok(place)
    }

    /// Queues the launches of a batch.
    fn launch(&mut self, memory: &Memory, numbers: &Buffer, steps: &[Step]) -> Result<(), Fault> {
        for step in steps {
            let Step {
                kernel,
                work,
                places,
            } = step;
            let mut args = Vec::with_capacity(places.len());
            for place in places {
                args.push(match *place {
                    Place::Bank => Arg::all(&memory.buffer),
                    // What has none looks at none.
                    Place::Temps => Arg::all(memory.temps.as_ref().unwrap_or(numbers)),
                    Place::Sums => Arg::all(memory.sums.as_ref().unwrap_or(numbers)),
                    Place::Call(at) => Arg::At(numbers, 8 * at as u64),
                    Place::Verdict => Arg::all(numbers),
                    // Whoever draws nothing looks at no round keys.
                    Place::Schedules => {
                        let schedules = self.schedules.as_ref().map(|(buffer, _)| buffer);
                        Arg::all(schedules.unwrap_or(numbers))
                    }
                    Place::Code(program, word) => {
                        Arg::At(&self.words[program], 4 * u64::from(word))
                    }
                    Place::Number(number) => Arg::U32(number),
                    Place::Wide(number) => Arg::U64(number),
                    Place::Apart(at) => Arg::At(memory.temps.as_ref().unwrap_or(numbers), at),
                });
            }
            let block = self.backend.threads().min(kernel.block);
            let grid = match work {
                None => 1,
                Some(work) => {
                    // Tables of AES take all the shared memory there is: a block of them at a time.
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
            self.backend.launch(kernel, launch, &args).map_err(card)?;
        }
        Ok(())
    }

    /// Puts a batch together and queues it.
    fn queue(&mut self, memory: &mut Memory, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let mut queue = Queue {
            session: &self.session,
            keys: &self.keys,
            needs: &self.needs,
            codes: &self.codes,
            memory,
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
            mut written,
            ..
        } = queue;
        memory.room(&mut *self.backend, temps, sums)?;
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 * numbers.len()));
        bytes.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        let buffer = self.backend.allocate(bytes.len() as u64).map_err(card)?;
        let verdict = match self.spare.pop().map_or_else(|| self.backend.pin(16), Ok) {
            Ok(verdict) => verdict,
            Err(error) => {
                self.backend.free(buffer);
                return Err(card(error));
            }
        };
        written.sort_unstable_by_key(|s| (s.region, s.part, s.first, s.count));
        written.dedup();
        let mut send = || {
            memory.upload(&mut *self.backend)?;
            self.backend.write(&buffer, 0, &bytes).map_err(card)?;
            self.launch(memory, &buffer, &steps)?;
            for span in &written {
                memory.download(&mut *self.backend, *span)?;
            }
            self.backend
                .download((&buffer, 0), (&verdict, 0), 16)
                .and_then(|()| self.backend.seal())
                .map_err(card)
        };
        let sent = send();
        // It is wiped with the batch, or now.
        if sent.is_err() {
            self.backend.free(buffer);
            self.spare.push(verdict);
            return sent;
        }
        self.batches.push_back(Batch {
            tag,
            numbers: buffer,
            verdict,
        });
        Ok(())
    }

    /// Ends the first batch.
    fn end(&mut self, batch: Batch) -> Result<Completion, Fault> {
        let stopped = self.backend.host(&batch.verdict).map(|bytes| {
            let [a, b, c, d, ..] = *bytes else { return 0 };
            u32::from_le_bytes([a, b, c, d])
        });
        self.backend.free(batch.numbers);
        self.spare.push(batch.verdict);
        let outcome = match stopped.map_err(card)?.checked_sub(1) {
            None => Outcome::Done,
            Some(command) => Outcome::Mismatch {
                command: command as usize,
            },
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

    fn bind(&mut self, session: SessionId) {
        self.session = session;
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        let place = match self.keys.get(&id) {
            Some(old) => old.place,
            None => self.room()?,
        };
        let Some((schedules, _)) = &self.schedules else {
            return Err(Fault::Unknown("room for a key"));
        };
        let from = self.backend.allocate(16).map_err(card)?;
        let written = self.backend.write(&from, 0, key.expose());
        let to = Arg::At(schedules, u64::from(place) * SCHEDULE_BYTES);
        let args = [Arg::all(&from), to, Arg::U32(1)];
        let launch = Launch { grid: 1, block: 32 };
        let made = written.and_then(|()| self.backend.launch(&AES_SCHEDULE, launch, &args));
        self.backend.free(from);
        made.map_err(card)?;
        let (prf, secret) = (Prf::new(key), key.clone());
        self.keys.insert(id, Key { prf, secret, place });
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let needs = Needs::of(program, layout)?;
        let code = Code::of(program, layout)?;
        let bytes: Vec<u8> = code.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let words = self.backend.allocate(bytes.len() as u64).map_err(card)?;
        self.backend.write(&words, 0, &bytes).map_err(card)?;
        self.needs.push(needs);
        self.codes.push(code);
        self.words.push(words);
        Ok(ProgramId(self.codes.len() as u32 - 1))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault> {
        let memory = Memory::new(&mut *self.backend, layout, frame)?;
        let free = self.banks.iter().position(Option::is_none);
        let bank = free.unwrap_or(self.banks.len());
        if bank == self.banks.len() {
            self.banks.push(None);
        }
        self.banks[bank] = Some(memory);
        Ok(Bank(bank as u32))
    }

    fn close(&mut self, bank: Bank) {
        let slot = self.banks.get_mut(bank.0 as usize);
        if let Some(memory) = slot.and_then(Option::take) {
            memory.free(&mut *self.backend);
        }
    }

    fn map(&mut self, bank: Bank, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self.banks.get_mut(bank.0 as usize).and_then(Option::as_mut);
        let memory = memory.ok_or(Fault::Unknown("the bank"))?;
        memory.map(&mut *self.backend, to)
    }

    fn view(&self, bank: Bank, from: Span) -> Result<&[u8], Fault> {
        let memory = self.banks.get(bank.0 as usize).and_then(Option::as_ref);
        let memory = memory.ok_or(Fault::Unknown("the bank"))?;
        memory.view(&*self.backend, from)
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        if let Some(fault) = &self.broken {
            return Err(fault.clone());
        }
        let slot = self.banks.get_mut(bank.0 as usize);
        let mut memory = slot
            .and_then(Option::take)
            .ok_or(Fault::Unknown("the bank"))?;
        let queued = self.queue(&mut memory, batch, tag);
        self.banks[bank.0 as usize] = Some(memory);
        queued
    }

    fn poll(&mut self) -> Option<Completion> {
        let batch = self.batches.pop_front()?;
        match self.end(batch) {
            Ok(completion) => Some(completion),
            Err(fault) => {
                self.broken = Some(fault);
                None
            }
        }
    }

    fn wipe(&mut self) {
        for batch in std::mem::take(&mut self.batches) {
            self.backend.free(batch.numbers);
            self.spare.push(batch.verdict);
        }
        for memory in std::mem::take(&mut self.banks).into_iter().flatten() {
            memory.free(&mut *self.backend);
        }
        if let Some((schedules, _)) = self.schedules.take() {
            self.backend.free(schedules);
        }
        self.keys.clear();
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        self.wipe();
    }
}
