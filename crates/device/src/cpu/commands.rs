//! What the CPU device does for each command.

use sha2::Digest;
use subtle::ConstantTimeEq;
use veil_session::Frame;

use super::bank::Memory;
use super::exec::{self, Mask, Run};
use super::tape::Tape;
use super::vector::{self, Domain, Portable};
use super::{Cpu, Isa};
use crate::command::{Command, Draw, Op};
use crate::layout::{Item, Place, Span};
use crate::{Fault, hash};

impl Cpu {
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

    pub(super) fn run(
        &self,
        memory: &mut Memory,
        index: usize,
        command: &Command,
    ) -> Result<bool, Fault> {
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

    pub(super) fn tape_of(&self, command: &Command) -> Result<&Tape, Fault> {
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
