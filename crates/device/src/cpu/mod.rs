//! The CPU device: programs become tapes, tapes run 512 bits at a time.

mod bank;
mod exec;
mod tape;
mod vector;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sha2::Digest;
use subtle::ConstantTimeEq;
use veil_session::{Frame, Secret, SessionId};

use bank::Memory;
use exec::{Mask, Run};
use tape::Tape;
use vector::{Domain, Portable, RoundKeys};

use crate::command::{Command, Completion, Draw, KeyId, Op, Outcome, ProgramId, Tag};
use crate::layout::{Item, Layout, Place, Span};
use crate::program::Program;
use crate::{Bank, Device, Fault, hash};

/// The instruction set that a [`Cpu`] uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isa {
    /// 512-bit vectors, VAES.
    Avx512,
    /// 256-bit vectors, AES-NI.
    Avx2,
    /// 64-bit words and the `aes` crate.
    Portable,
}

impl Isa {
    /// Those that this machine has, fastest first.
    pub fn available() -> Vec<Isa> {
        let mut list = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("vaes")
            {
                list.push(Isa::Avx512);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("aes") {
                list.push(Isa::Avx2);
            }
        }
        list.push(Isa::Portable);
        list
    }
}

/// The CPU device of one lane.
pub struct Cpu {
    isa: Isa,
    session: SessionId,
    keys: BTreeMap<KeyId, RoundKeys>,
    tapes: Vec<Tape>,
    /// Scratch rows that loaded tapes need behind each region.
    scratch: Vec<u32>,
    /// Open banks by number; numbers are used again.
    banks: Vec<Option<Memory>>,
    pool: Vec<Memory>,
    done: VecDeque<Completion>,
}

/// Largest bank: 4 GiB. A plan that needs more has a chunk too long; the planner keeps banks within the cache.
const LARGEST_BANK: u64 = 1 << 32;

impl Cpu {
    /// The device with the fastest instruction set of this machine.
    pub fn detect() -> Self {
        Cpu::with(Isa::available()[0])
    }

    /// The device with a given instruction set, for tests and comparisons.
    ///
    /// # Panics
    /// If this machine does not have it.
    pub fn with(isa: Isa) -> Self {
        assert!(
            Isa::available().contains(&isa),
            "this machine has no {isa:?}"
        );
        Cpu {
            isa,
            session: SessionId([0; 32]),
            keys: BTreeMap::new(),
            tapes: Vec::new(),
            scratch: Vec::new(),
            banks: Vec::new(),
            pool: Vec::new(),
            done: VecDeque::new(),
        }
    }

    /// Items that a program needs behind a region of `slots` slots, for its temps. The program must be a valid one.
    pub fn scratch(program: &Program, slots: u32) -> u32 {
        tape::compile(program, slots).scratch
    }

    fn mask(&self, draw: Draw, frame: Frame) -> Result<Mask<'_>, Fault> {
        let key = self
            .keys
            .get(&draw.key)
            .ok_or(Fault::Unknown("the key of a draw"))?;
        let domain = Domain {
            tag: draw.tag,
            lane: frame.lane,
            j: frame.chunk,
        };
        Ok(Mask {
            key,
            domain,
            first: draw.first,
            minus: draw.minus,
        })
    }

    fn run(&self, memory: &mut Memory, index: usize, command: &Command) -> Result<bool, Fault> {
        let shape = |what| Fault::Shape {
            command: index,
            what,
        };
        command.check_spans(index, &memory.layout)?;
        match &command.op {
            Op::Linear | Op::Product(_) => self.program(memory, index, command)?,
            Op::Scatter { part } => {
                let tape = self.tape_of(command)?;
                let messages = messages(memory, index, tape, &command.src)?;
                if *part >= memory.layout.regions[tape.slots as usize].parts {
                    return Err(shape("a component that the slots do not have"));
                }
                self.scatter(memory, tape, *part, messages[0]);
                for p in &tape.sums {
                    let to = Span {
                        region: tape.sums_region,
                        part: *part,
                        first: p.out,
                        count: 1,
                    };
                    memory.copy_item((command.src[1], p.index), (to, 0));
                }
            }
            Op::Random => {
                let (Some(&to), Some(&draw)) = (command.dst.first(), command.draws.first()) else {
                    return Err(shape("one destination and one draw are needed"));
                };
                let mask = self.mask(draw, memory.frame)?;
                let stride = stride(memory, to.region);
                for k in 0..to.count {
                    let ctr = draw.first + u64::from(k) * stride;
                    self.random(mask, ctr, memory.item_bytes_mut(to, k));
                }
            }
            Op::Combine { ring, minus } => {
                let to = *command
                    .dst
                    .first()
                    .ok_or_else(|| shape("one destination is needed"))?;
                let packed = memory.places[to.region as usize].packed;
                if command.src.iter().any(|s| {
                    s.count != to.count || memory.places[s.region as usize].packed != packed
                }) {
                    return Err(shape("sources and destination differ in length"));
                }
                command.check_overlap(index)?;
                for k in 0..to.count {
                    let copied = usize::from(!command.src.is_empty() && minus & 1 == 0);
                    match command.src.first() {
                        Some(first) if copied == 1 => memory.copy_item((*first, k), (to, k)),
                        _ => memory.item_bytes_mut(to, k).fill(0),
                    }
                    for (i, s) in command.src.iter().enumerate().skip(copied) {
                        self.accumulate(memory, *ring, minus >> i & 1 == 1, (*s, k), (to, k));
                    }
                    memory.clear_padding(to, k);
                }
            }
            Op::Hash { label } => {
                let to = *command
                    .dst
                    .first()
                    .ok_or_else(|| shape("one destination is needed"))?;
                if memory.places[to.region as usize].packed != 32 {
                    return Err(shape("a digest has 32 bytes"));
                }
                let mut digest = hash::start(&self.session, *label, memory.frame);
                for s in &command.src {
                    (0..s.count).for_each(|k| digest.update(memory.item_bytes(*s, k)));
                }
                memory
                    .item_bytes_mut(to, 0)
                    .copy_from_slice(&digest.finalize());
            }
            Op::CheckEqual => {
                let [a, b] = command.src[..] else {
                    return Err(shape("two sources are needed"));
                };
                if a.count != b.count {
                    return Err(shape("sources differ in length"));
                }
                let equal = (0..a.count).fold(subtle::Choice::from(1), |equal, k| {
                    equal & memory.item_bytes(a, k).ct_eq(memory.item_bytes(b, k))
                });
                return Ok(bool::from(equal));
            }
        }
        Ok(true)
    }

    fn tape_of(&self, command: &Command) -> Result<&Tape, Fault> {
        let id = command
            .program
            .ok_or(Fault::Unknown("the program of a command"))?;
        self.tapes
            .get(id.0 as usize)
            .ok_or(Fault::Unknown("the program of a command"))
    }

    fn program(&self, memory: &mut Memory, index: usize, command: &Command) -> Result<(), Fault> {
        let shape = |what| Fault::Shape {
            command: index,
            what,
        };
        let tape = self.tape_of(command)?;
        let mut masks = Vec::with_capacity(4);
        for draw in &command.draws {
            masks.push(self.mask(*draw, memory.frame)?);
        }
        let (rows, sums) = masks.split_at(masks.len().min(2));
        let messages = messages(memory, index, tape, &command.dst)?;
        let form = match command.op {
            Op::Product(form) => Some(form),
            _ if tape.products.is_empty() && tape.sums.is_empty() => None,
            _ => return Err(shape("a linear command whose program has products")),
        };
        let parts = memory.layout.regions[tape.slots as usize].parts;
        if form.is_some_and(|f| {
            f.own >= parts || f.terms.iter().any(|(i, j)| *i >= parts || *j >= parts)
        }) {
            return Err(shape("a form of components that the slots do not have"));
        }
        let run = Run {
            tape,
            constants: command.constants,
            form,
            replicated: form.is_some_and(exec::is_replicated),
            masks: [rows, sums],
            messages,
            stride: stride(memory, tape.slots),
        };
        // SAFETY: `with` checked the instruction set; `load` checked the program against the layout, `open` made room for
        // scratch rows of every loaded tape, and messages and form were checked above.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => run_avx512(memory, &run),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => run_avx2(memory, &run),
                _ => exec::run::<Portable>(memory, &run),
            }
        }
        Ok(())
    }

    fn scatter(&self, memory: &mut Memory, tape: &Tape, part: u8, message: usize) {
        // SAFETY: as in `program`.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => scatter_avx512(memory, tape, part, message),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => scatter_avx2(memory, tape, part, message),
                _ => exec::scatter::<Portable>(memory, tape, part, message),
            }
        }
    }

    fn random(&self, mask: Mask<'_>, ctr: u64, out: &mut [u8]) {
        // SAFETY: `with` checked the instruction set.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => random_avx512(mask, ctr, out),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => random_avx2(mask, ctr, out),
                _ => exec::random::<Portable>(mask, ctr, out),
            }
        }
    }

    fn accumulate(
        &self,
        memory: &mut Memory,
        ring: veil_math::Ring,
        minus: bool,
        from: (Span, u32),
        to: (Span, u32),
    ) {
        let (a, len) = memory.item(from.0, from.1);
        let (b, _) = memory.item(to.0, to.1);
        let base = memory.base();
        // SAFETY: `with` checked the instruction set; both items lie in the bank and have `len` bytes (checked by `run`).
        unsafe {
            let (from, to) = (base.add(a), base.add(b));
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => accumulate_avx512(ring, minus, from, to, len),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => accumulate_avx2(ring, minus, from, to, len),
                _ => exec::accumulate::<Portable>(ring, minus, from, to, len),
            }
        }
    }
}

/// Counters that an item of a full chunk takes.
fn stride(memory: &Memory, region: u16) -> u64 {
    memory.layout.regions[region as usize]
        .item
        .bytes(memory.layout.chunk_rows)
        .div_ceil(16)
}

/// Offsets of the messages of row products and of sums, which are long enough for all products.
fn messages(
    memory: &Memory,
    index: usize,
    tape: &Tape,
    spans: &[Span],
) -> Result<[usize; 2], Fault> {
    let shape = |what| Fault::Shape {
        command: index,
        what,
    };
    let mut messages = [0; 2];
    for m in 0..2 {
        if tape.message_len[m] == 0 {
            continue;
        }
        let span = *spans.get(m).ok_or_else(|| shape("a message is missing"))?;
        let want = [Item::Rows(tape.ring), Item::One(tape.ring)][m];
        let region = &memory.layout.regions[span.region as usize];
        if region.item != want
            || region.place == Place::Resident
            || tape.message_len[m] > span.count
        {
            return Err(shape("a message is too short for its products"));
        }
        messages[m] = memory.item(span, 0).0;
    }
    Ok(messages)
}

/// The kernels once per instruction set: everything below them is inlined into these functions.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($vector:ty, $features:literal, $run:ident, $scatter:ident, $random:ident, $accumulate:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $run(memory: &mut Memory, run: &Run<'_>) {
            // SAFETY: the caller's.
            unsafe { exec::run::<$vector>(memory, run) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $scatter(memory: &mut Memory, tape: &Tape, part: u8, message: usize) {
            // SAFETY: the caller's.
            unsafe { exec::scatter::<$vector>(memory, tape, part, message) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $random(mask: Mask<'_>, ctr: u64, out: &mut [u8]) {
            // SAFETY: the caller's.
            unsafe { exec::random::<$vector>(mask, ctr, out) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $accumulate(
            ring: veil_math::Ring,
            minus: bool,
            from: *const u8,
            to: *mut u8,
            bytes: usize,
        ) {
            // SAFETY: the caller's.
            unsafe { exec::accumulate::<$vector>(ring, minus, from, to, bytes) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx512,
    "avx512f,avx512bw,avx512dq,vaes,bmi2,adx",
    run_avx512,
    scatter_avx512,
    random_avx512,
    accumulate_avx512
);
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx2,
    "avx2,aes",
    run_avx2,
    scatter_avx2,
    random_avx2,
    accumulate_avx2
);

impl Device for Cpu {
    fn name(&self) -> &'static str {
        match self.isa {
            Isa::Avx512 => "cpu-avx512",
            Isa::Avx2 => "cpu-avx2",
            Isa::Portable => "cpu-portable",
        }
    }

    fn bind(&mut self, session: SessionId) {
        self.session = session;
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        self.keys.insert(id, RoundKeys::new(key));
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        crate::check_program(program, layout)?;
        let slots = program.slots as usize;
        let tape = tape::compile(program, layout.regions[slots].count);
        if self.scratch.len() <= slots {
            self.scratch.resize(slots + 1, 0);
        }
        self.scratch[slots] = self.scratch[slots].max(tape.scratch);
        self.tapes.push(tape);
        Ok(ProgramId(self.tapes.len() as u32 - 1))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault> {
        let bytes: u64 = layout
            .regions
            .iter()
            .map(|r| {
                (r.item.bytes(frame.rows) + 64)
                    .saturating_mul(u64::from(r.parts))
                    .saturating_mul(u64::from(r.count))
            })
            .fold(0, u64::saturating_add);
        if bytes > LARGEST_BANK {
            return Err(Fault::TooLarge { bytes });
        }
        let memory = Memory::new(self.pool.pop(), layout, frame, &self.scratch);
        let bank = self
            .banks
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.banks.len());
        if bank == self.banks.len() {
            self.banks.push(None);
        }
        self.banks[bank] = Some(memory);
        Ok(Bank(bank as u32))
    }

    fn close(&mut self, bank: Bank) {
        if let Some(mut memory) = self.banks.get_mut(bank.0 as usize).and_then(Option::take) {
            memory.scrub();
            self.pool.push(memory);
        }
    }

    fn write(&mut self, bank: Bank, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        let into = self.map(bank, to)?;
        if into.len() != bytes.len() {
            return Err(Fault::Shape {
                command: 0,
                what: "written bytes do not fill the span",
            });
        }
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn map(&mut self, bank: Bank, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self
            .banks
            .get_mut(bank.0 as usize)
            .and_then(Option::as_mut)
            .ok_or(Fault::Unknown("the bank"))?;
        if !memory.layout.contains(to)
            || memory.layout.regions[to.region as usize].place != Place::Mapped
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes_mut(to))
    }

    fn view(&self, bank: Bank, from: Span) -> Result<&[u8], Fault> {
        let memory = self
            .banks
            .get(bank.0 as usize)
            .and_then(Option::as_ref)
            .ok_or(Fault::Unknown("the bank"))?;
        if !memory.layout.contains(from)
            || memory.layout.regions[from.region as usize].place == Place::Resident
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes(from))
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        // Out of the list while the commands run: they read keys and tapes of the device.
        let slot = self.banks.get_mut(bank.0 as usize);
        let mut memory = slot
            .and_then(Option::take)
            .ok_or(Fault::Unknown("the bank"))?;
        let mut outcome = Ok(Outcome::Done);
        for (index, command) in batch.iter().enumerate() {
            match self.run(&mut memory, index, command) {
                Ok(true) => {}
                Ok(false) => outcome = Ok(Outcome::Mismatch { command: index }),
                Err(fault) => outcome = Err(fault),
            }
            if outcome != Ok(Outcome::Done) {
                break;
            }
        }
        self.banks[bank.0 as usize] = Some(memory);
        self.done.push_back(Completion {
            tag,
            outcome: outcome?,
        });
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    fn wipe(&mut self) {
        self.banks.iter_mut().flatten().for_each(Memory::scrub);
        self.banks.clear();
        self.pool.clear();
        self.keys.clear();
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Cpu {
    /// Blocks of the PRF that this device makes per CPU-second on one core when it does nothing else: what bounds every protocol whose
    /// masks it makes. Measured for about `budget`.
    pub fn prf_rate(&self, budget: std::time::Duration) -> f64 {
        let keys = [0u8, 1].map(|k| RoundKeys::new(&Secret::new([k; 16])));
        let domain = Domain {
            tag: veil_prss::Use::RAND3,
            lane: 0,
            j: 0,
        };
        let start = std::time::Instant::now();
        let (mut best, mut ctr, mut sink) = (0f64, 0u64, 0u8);
        while start.elapsed() < budget {
            let round = std::time::Instant::now();
            // SAFETY: `with` checked the instruction set.
            sink ^= unsafe {
                match self.isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => rate_avx512(&keys, domain, ctr),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => rate_avx2(&keys, domain, ctr),
                    _ => exec::rate::<Portable>(&keys, domain, ctr),
                }
            };
            ctr += exec::RATE_BLOCKS;
            // The best round of many: the others were interrupted.
            best = best.max(exec::RATE_BLOCKS as f64 / round.elapsed().as_secs_f64());
        }
        std::hint::black_box(sink);
        best
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,vaes")]
unsafe fn rate_avx512(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { exec::rate::<vector::Avx512>(keys, domain, ctr) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes")]
unsafe fn rate_avx2(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { exec::rate::<vector::Avx2>(keys, domain, ctr) }
}
