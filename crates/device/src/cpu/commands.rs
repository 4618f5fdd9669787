//! The CPU device's implementation of each command.

use subtle::ConstantTimeEq;
use veil_math::Ring;
use veil_session::Frame;

use super::convert;
use super::exec::columns::{Columns, MOST_SOURCES, Sum};
use super::exec::{self, Mask, Offsets, Run, Shape, Traced};
use super::hash::digest;
use super::mac::MacKey;
use super::tape::{Product, Tape};
use super::vector::{self, Domain, Portable};
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::command::{Command, NO_PROGRAM, Op, PrfCall, ProgramId};
use crate::hash::head;
use crate::layout::Span;
use crate::repeat::Repeat;
use crate::{Fault, Form};

impl Cpu {
    pub(super) fn mask(&self, call: PrfCall, frame: Frame) -> Result<Mask<'_>, Fault> {
        let key = self
            .keys
            .get(&call.key)
            .ok_or(Fault::Unknown("the key of a draw"))?;
        let domain = Domain {
            tag: call.tag,
            lane: frame.lane,
            j: frame.chunk,
        };
        Ok(Mask {
            key,
            domain,
            first: call.first,
        })
    }

    pub(super) fn run(
        &self,
        memory: &mut Memory,
        index: usize,
        command: &Command,
    ) -> Result<bool, Fault> {
        let tape = command.program.and_then(|id| self.tapes.get(id.0 as usize));
        let workspace = (&memory.layout, memory.frame.rows);
        command.check(index, workspace, tape.map(|of| &of.1))?;
        let tape = tape.map(|of| &of.0);
        match &command.op {
            Op::Linear | Op::Product(_) => self.program(memory, fitting(tape, memory)?, command)?,
            Op::Publish => command.src.iter().for_each(|span| memory.publish(*span)),
            Op::AddReceived { component } => {
                self.add_received(memory, tape, *component, command)?;
            }
            Op::Random => {
                let (to, call) = (command.dst[0], command.calls[0]);
                self.write_random(memory, self.mask(call, memory.frame)?, to);
            }
            Op::Combine { ring, minus } if command.calls.is_empty() => {
                self.combine(memory, (*ring, *minus), command);
            }
            Op::Combine { ring, minus } => self.masked(memory, (*ring, *minus), command)?,
            Op::Hash { label } => {
                let head = head(&self.session, *label, memory.frame, &command.calls);
                let digest = digest(self.isa, &head, memory, &command.src);
                memory
                    .column_bytes_mut(command.dst[0], 0)
                    .copy_from_slice(&digest);
            }
            Op::Mac => {
                let (to, call) = (command.dst[0], &command.calls[0]);
                let mask = self.mask(*call, memory.frame)?;
                let key = self.macs.get(&call.key);
                let key = key.ok_or(Fault::Unknown("the key of a draw"))?;
                let key = key.get_or_init(|| MacKey::new(self.isa, mask.key.prf()));
                let code = key.hash(self.isa, command.src.iter().map(|s| memory.bytes(*s)));
                let into = memory.column_bytes_mut(to, 0);
                self.random(mask, call.first, into);
                for (byte, code) in into.iter_mut().zip(code.iter()) {
                    *byte ^= code;
                }
            }
            Op::Split { first } => {
                convert::split(memory, self.isa, *first, (command.src[0], command.dst[0]));
            }
            Op::Shift { by } => {
                convert::shift(memory, self.isa, *by, (command.src[0], command.dst[0]));
            }
            Op::Lift => convert::lift(memory, self.isa, command.src[0], command.dst[0]),
            Op::Scale => {
                let from = [command.src[0], command.src[1]];
                convert::scale(memory, self.isa, from, command.dst[0]);
            }
            Op::Resize => convert::resize(memory, self.isa, command.src[0], command.dst[0]),
            Op::Dot => convert::dot(memory, self.isa, &command.src, command.dst[0]),
            Op::CheckEqual => {
                let (a, b) = (command.src[0], command.src[1]);
                let equal = (0..a.count).fold(subtle::Choice::from(1), |equal, k| {
                    equal & memory.column_bytes(a, k).ct_eq(memory.column_bytes(b, k))
                });
                return Ok(bool::from(equal));
            }
            Op::Lifting(step) => self.lifting(memory, *step, command)?,
            Op::Truncation(step) => self.truncation(memory, *step, command)?,
            Op::Permutation => self.permutation(memory, command)?,
            Op::Permute { back } => self.permute(memory, index, *back, command)?,
            Op::Rank(form) => self.rank(memory, form, command)?,
            Op::MatMul(of) => self.matmul(memory, *of, command)?,
            Op::Invert => {
                let from = command.src[0];
                return Ok(match command.dst.first() {
                    Some(to) => self.invert(memory, from, *to),
                    None => self.is_permutation(memory, from),
                });
            }
            Op::Proof(step) => return self.proof(memory, index, *step, command),
            Op::Ot(step) => return self.transfer(memory, *step, command),
            Op::Silent(step) => self.silent(memory, *step, command)?,
            Op::Psi(step) => return self.intersection(memory, index, *step, command),
            Op::Cut(step) => return self.cut(memory, tape, *step, command),
            Op::Ag(step) => self.authenticated(memory, tape, *step, command)?,
            Op::Garble { .. } | Op::Evaluate { .. } | Op::Encode { .. } | Op::Colour => {
                self.labels(memory, tape, command)?;
            }
            Op::Repeat(repeat) => {
                for command in repeat.commands() {
                    self.run(memory, index, &command)?;
                }
                self.forget(memory, repeat);
            }
        }
        Ok(true)
    }

    /// Clears what was repeated and does not live.
    pub(super) fn forget(&self, memory: &mut Memory, repeat: &Repeat) {
        let needs = |id: ProgramId| self.tapes.get(id.0 as usize).map(|of| &of.1);
        for span in repeat.dead(needs) {
            memory.column_bytes_mut(span, 0).fill(0);
        }
    }

    fn program(&self, memory: &mut Memory, tape: &Tape, command: &Command) -> Result<(), Fault> {
        let (form, calls) = match command.op {
            Op::Product(form) => (Some(form), &command.calls[..]),
            _ => (None, &[][..]),
        };
        let mut masks = Vec::with_capacity(calls.len());
        for call in calls {
            masks.push(self.mask(*call, memory.frame)?);
        }
        let (rows, sums) = masks.split_at(form.map_or(0, Form::calls));
        let crosses = form.map_or(0, |form| form.crosses.len());
        let run = Run {
            tape,
            constants: command.constants,
            form,
            shape: form.map_or(Shape::Any, exec::shape_of),
            writes: form.map_or(0, Form::writes),
            calls: [rows, sums],
            messages: messages(memory, tape, &command.dst, crosses),
            stride: stride(memory, tape.slots),
            trace: command.trace().map(|span| Traced::at(memory, span)),
        };
        // SAFETY: `with` checked the instruction set; `load` checked the program against its layout; `run` checked that the workspace
        // has the same regions and room for the scratch rows, and that form and messages fit them.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => run_avx512(memory, &run),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => run_avx2_vaes(memory, &run),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => run_avx2(memory, &run),
                _ => exec::run::<Portable>(memory, &run),
            }
        }
        Ok(())
    }

    /// Adds messages of products to a component of their results.
    fn add_received(
        &self,
        memory: &mut Memory,
        tape: Option<&Tape>,
        component: u8,
        command: &Command,
    ) -> Result<(), Fault> {
        let tape = tape.ok_or(NO_PROGRAM)?;
        let kinds = [(&tape.products, tape.slots), (&tape.sums, tape.sums_region)];
        for ((products, region), from) in kinds.into_iter().zip(&command.src) {
            let follows = |a: &Product, b: &Product| {
                (a.out.wrapping_add(1), a.index.wrapping_add(1)) == (b.out, b.index)
            };
            for run in products.chunk_by(follows) {
                let count = run.len() as u32;
                let to = Span {
                    region,
                    component,
                    first: run[0].out,
                    count,
                };
                let from = Span {
                    first: from.first + run[0].index,
                    count,
                    ..*from
                };
                let sources = [(to, false), (from, false)];
                self.sum(memory, tape.ring, sources.into_iter(), (to, 0xff));
            }
        }
        Ok(())
    }

    pub(super) fn random(&self, mask: Mask<'_>, ctr: u64, out: &mut [u8]) {
        // SAFETY: `with` checked the instruction set.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => random_avx512(mask, ctr, out),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => random_avx2_vaes(mask, ctr, out),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => random_avx2(mask, ctr, out),
                _ => exec::random::<Portable>(mask, ctr, out),
            }
        }
    }

    /// Pseudorandom elements of every column of a span.
    fn write_random(&self, memory: &mut Memory, mask: Mask<'_>, to: Span) {
        let stride = stride(memory, to.region);
        let length = memory.packed(to.region);
        if let Some(run) = memory.run(to)
            && stride * 16 == length as u64
        {
            // The blocks of a column follow those of the one before.
            self.random(mask, mask.first, &mut memory.all_mut()[run]);
            return;
        }
        for k in 0..to.count {
            let ctr = mask.first + u64::from(k) * stride;
            self.random(mask, ctr, memory.column_bytes_mut(to, k));
        }
    }

    /// The sum of the sources of a command.
    fn combine(&self, memory: &mut Memory, (ring, minus): (Ring, u32), command: &Command) {
        let to = command.dst[0];
        let column = memory.layout.regions[to.region as usize].column;
        let keep = column.padding(memory.frame.rows);
        let src = command.src.iter().enumerate();
        let sources = src.map(|(i, span)| (*span, minus >> i & 1 == 1));
        self.sum(memory, ring, sources, (to, keep));
    }

    /// The sum of spans, each of which is added or taken away, with the bits of last bytes that `keep` has. Their number and shapes were checked,
    /// and that the destination overlaps no source but the first one, in place.
    fn sum(
        &self,
        memory: &mut Memory,
        ring: Ring,
        from: impl Iterator<Item = (Span, bool)>,
        (to, keep): (Span, u8),
    ) {
        if to.count == 0 {
            return;
        }
        let mut sources = [(Columns::NONE, false); MOST_SOURCES];
        // Columns without gaps and padding are as good as one.
        let mut whole = keep == 0xff && memory.is_whole(to);
        let mut count = 0;
        for (source, (span, minus)) in sources.iter_mut().zip(from) {
            *source = (convert::columns(memory, span), minus);
            whole = whole && memory.is_whole(span);
            count += 1;
        }
        let (columns, times) = if whole { (1, to.count) } else { (to.count, 1) };
        let sum = Sum {
            ring,
            sources: &sources[..count],
            to: convert::columns(memory, to),
            columns: columns as usize,
            bytes: memory.packed(to.region) * times as usize,
            keep,
        };
        // SAFETY: `with` checked the instruction set; spans were checked (caller): all have as many columns of the same bytes.
        unsafe { vector::run(self.isa, sum) }
    }
}

/// The tape of a command, if the workspace has room for its temps.
pub(super) fn fitting<'a>(tape: Option<&'a Tape>, memory: &Memory) -> Result<&'a Tape, Fault> {
    let tape = tape.ok_or(NO_PROGRAM)?;
    if memory.all_strides[tape.slots as usize].scratch < tape.scratch {
        return Err(Fault::Program(
            "it was loaded after the workspace was opened",
        ));
    }
    Ok(tape)
}

/// Counters that a column of a full chunk takes.
pub(super) fn stride(memory: &Memory, region: u16) -> u64 {
    memory.layout.regions[region as usize]
        .column
        .bytes(memory.layout.chunk_rows)
        .div_ceil(16)
}

/// Offsets of the messages of row products and of sums, `crosses` of each, as far as the program has them and they are no components of its
/// results; they were checked.
fn messages(memory: &Memory, tape: &Tape, spans: &[Span], crosses: usize) -> [Offsets; 2] {
    let mut messages = [Offsets::default(); 2];
    for (kind, offsets) in messages.iter_mut().enumerate() {
        if tape.message_len[kind] > 0 {
            for (cross, offset) in offsets.iter_mut().enumerate().take(crosses) {
                let span = spans[kind * crosses + cross];
                *offset = (span.count > 0).then(|| memory.column(span, 0).0);
            }
        }
    }
    messages
}

/// The kernels once per instruction set: everything below them is inlined into these functions, but for what is outlined again.
#[cfg(target_arch = "x86_64")]
macro_rules! kernels {
    ($vector:ty, $features:literal, $run:ident, $random:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $run(memory: &mut Memory, run: &Run<'_>) {
            // SAFETY: the caller's.
            unsafe { exec::run::<$vector>(memory, run) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $random(mask: Mask<'_>, ctr: u64, out: &mut [u8]) {
            // SAFETY: the caller's.
            unsafe { exec::random::<$vector>(mask, ctr, out) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx512,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    run_avx512,
    random_avx512
);
#[cfg(target_arch = "x86_64")]
kernels!(
    vector::Avx2Vaes,
    "avx2,aes,vaes,bmi2",
    run_avx2_vaes,
    random_avx2_vaes
);
#[cfg(target_arch = "x86_64")]
kernels!(vector::Avx2, "avx2,aes", run_avx2, random_avx2);
