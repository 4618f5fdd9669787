//! Commands as launches: what a batch says is written into one block of numbers, which goes to the device before its launches do.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Fault, KeyId, Needs, Op, PrfCall, ProgramId, Span, hash, mac,
};
use veil_math::Ring;
use veil_prss::Prf;
use veil_session::SessionId;
use zeroize::Zeroizing;

use super::program::{Code, Loaded, form};
use super::workspace::Memory;
use super::{Key, NARROW, unsupported};
use crate::backend::Launch;
use crate::kernels::{
    ADD_RECEIVED, COMBINE, COMPARE, CONVERT, DECIDE, DOT, DOT_END, HASH, Kernel, MAC, MAC_END,
    PIECES, PROGRAM_BITS, PROGRAM_Z64, PROGRAM_Z128, RANDOM, SCALE, SCHEDULE_BYTES, SPLIT,
    SUMS_Z64, SUMS_Z128,
};

/// Bytes of a sum of threads.
pub(super) const PARTIAL: u64 = 32;
/// Bytes of a piece of a source, and of its digest.
const PIECE: u64 = hash::PIECE as u64;
const DIGEST: u64 = 32;
/// Blocks of a code that a thread has, at least.
const MACS: u64 = 16;

/// An argument of a launch.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    Workspace,
    /// Values that a program forgets, or packed matrices.
    Temps,
    /// Sums of all threads: zero before and after each command.
    Sums,
    /// The numbers from this one on.
    Call(usize),
    Verdict,
    Schedules,
    /// The words of a program, from this one on.
    Code(usize, u32),
    Number(u32),
    Wide(u64),
    /// What a program forgets, from this byte on.
    Apart(u64),
}

/// A launch.
pub(super) struct Step {
    pub(super) kernel: &'static Kernel,
    /// Threads that have something to do, or one block of them.
    pub(super) work: Option<u64>,
    /// Levels that threads share, if it is a program.
    pub(super) levels: Option<Levels>,
    pub(super) arguments: Vec<Argument>,
}

/// Levels of a program, and the columns that it has.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    pub(super) depth: u32,
    pub(super) columns: u64,
}

impl Levels {
    /// Whether blocks of a launch meet between levels: kernels/device/program.h.
    pub(super) fn meet(self, Launch { grid, block }: Launch) -> bool {
        let alone = self.columns >= u64::from(grid) * u64::from(block);
        grid > 1 && self.depth > 1 && !alone
    }
}

/// A batch, as it is put together.
pub(super) struct Queue<'a> {
    pub(super) session: &'a SessionId,
    pub(super) keys: &'a BTreeMap<KeyId, Key>,
    pub(super) codes: &'a [Arc<Loaded>],
    pub(super) memory: &'a Memory,
    /// Multiprocessors of the GPU.
    pub(super) blocks: u32,
    /// The verdict, then the numbers of all calls.
    pub(super) numbers: Zeroizing<Vec<u64>>,
    pub(super) steps: Vec<Step>,
    /// Bytes of values that programs forget, or of packed matrices, and of sums of threads.
    pub(super) temps: u64,
    pub(super) sums: u64,
    /// What was written.
    pub(super) written: Vec<Span>,
}

/// Numbers of the verdict.
pub(super) const VERDICT: usize = 2;

pub(super) const fn number(ring: Ring) -> u64 {
    match ring {
        Ring::Bits => 0,
        Ring::Z64 => 1,
        Ring::Z128 => 2,
        Ring::Z32 => 3,
    }
}

pub(super) const fn ring_of(item: ColumnType) -> Ring {
    match item {
        ColumnType::Rows(ring) | ColumnType::One(ring) => ring,
        // Combined as bits are.
        _ => Ring::Bits,
    }
}

/// What commands about a program need.
fn needs(codes: &[Arc<Loaded>], id: ProgramId) -> Option<&Needs> {
    Some(&codes.get(id.0 as usize)?.needs)
}

/// Whether an operation takes integers modulo 2^32: sums, products of matrices, and operations on bytes.
const fn is_narrow(op: &Op) -> bool {
    let bytes = matches!(op, Op::Hash { .. } | Op::Mac | Op::CheckEqual | Op::Random);
    // Of a repetition each command is looked at.
    let integers = matches!(op, Op::Combine { .. } | Op::MatMul(_));
    bytes || integers || matches!(op, Op::Publish | Op::Repeat(_))
}

impl Queue<'_> {
    pub(super) fn item(&self, span: Span) -> ColumnType {
        self.memory.layout.regions[span.region as usize].column
    }

    pub(super) fn bytes(&self, span: Span) -> u64 {
        self.memory.item(span.region) * u64::from(span.count)
    }

    /// Integers of an item.
    pub(super) fn cells(&self, span: Span) -> u64 {
        match self.item(span) {
            ColumnType::Rows(_) => u64::from(self.memory.frame.rows),
            _ => 1,
        }
    }

    fn shared(&self, span: Span) -> u64 {
        u64::from(matches!(self.item(span), ColumnType::One(_)))
    }

    /// Numbers of a call: where they are.
    pub(super) fn call(&mut self, numbers: &[u64]) -> Argument {
        let at = self.numbers.len();
        // Each at a whole block.
        let all = (at + numbers.len()).next_multiple_of(2);
        if all > self.numbers.capacity() {
            // Keys are among them: what is left behind is wiped.
            let mut more = Zeroizing::new(Vec::with_capacity(2 * all));
            more.extend_from_slice(&self.numbers);
            self.numbers = more;
        }
        self.numbers.extend(numbers);
        self.numbers.resize(all, 0);
        Argument::Call(at)
    }

    pub(super) fn step(
        &mut self,
        kernel: &'static Kernel,
        work: Option<u64>,
        arguments: &[Argument],
    ) {
        self.steps.push(Step {
            kernel,
            work,
            levels: None,
            arguments: arguments.to_vec(),
        });
    }

    /// A launch that does a program in so many columns.
    pub(super) fn levels(
        &mut self,
        kernel: &'static Kernel,
        (code, columns): (&Code, u64),
        arguments: &[Argument],
    ) {
        self.steps.push(Step {
            kernel,
            work: Some(code.work(columns)),
            levels: Some(Levels {
                depth: code.depth,
                columns,
            }),
            arguments: arguments.to_vec(),
        });
    }

    /// A launch whose arguments are the workspace, numbers, and the verdict.
    pub(super) fn plain(&mut self, kernel: &'static Kernel, work: Option<u64>, numbers: &[u64]) {
        let call = self.call(numbers);
        self.step(
            kernel,
            work,
            &[Argument::Workspace, call, Argument::Verdict],
        );
    }

    /// A step on the workspace and on what lies apart.
    pub(super) fn with_temps(
        &mut self,
        kernel: &'static Kernel,
        work: Option<u64>,
        numbers: &[u64],
    ) {
        let call = self.call(numbers);
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
        ];
        self.step(kernel, work, &arguments);
    }

    /// A step that draws.
    pub(super) fn drawing(&mut self, kernel: &'static Kernel, work: u64, numbers: &[u64]) {
        let call = self.call(numbers);
        let arguments = [
            Argument::Workspace,
            call,
            Argument::Verdict,
            Argument::Schedules,
        ];
        self.step(kernel, Some(work), &arguments);
    }

    pub(super) fn key(&self, prf_call: PrfCall) -> Result<&Key, Fault> {
        let key = self.keys.get(&prf_call.key);
        key.ok_or(Fault::Unknown("the key of a draw"))
    }

    /// A draw: the word of its schedule, its first counter, the first and last words of the cipher's input.
    pub(super) fn prf_call(&self, prf_call: PrfCall) -> Result<[u64; 3], Fault> {
        let schedule = u64::from(self.key(prf_call)?.place) * (SCHEDULE_BYTES / 4);
        let [head, tail] = self.ends(prf_call).map(u64::from);
        Ok([schedule, prf_call.first, head | tail << 32])
    }

    /// The first and the last word of the cipher's input.
    pub(super) fn ends(&self, prf_call: PrfCall) -> [u32; 2] {
        let frame = self.memory.frame;
        let input = Prf::input(prf_call.tag, frame.lane, 0, frame.chunk);
        [0, 12].map(|at: usize| {
            u32::from_le_bytes([input[at], input[at + 1], input[at + 2], input[at + 3]])
        })
    }

    /// Counters of an item of a draw.
    pub(super) fn stride(&self, item: ColumnType) -> u64 {
        item.bytes(self.memory.layout.chunk_rows).div_ceil(16)
    }

    /// A program of a command, and its number.
    pub(super) fn code(&self, command: &Command) -> Result<(usize, Arc<Loaded>), Fault> {
        let id = command.program.map_or(usize::MAX, |id| id.0 as usize);
        let compiled = self.codes.get(id).ok_or(Fault::Unknown("a program"))?;
        Ok((id, Arc::clone(compiled)))
    }

    /// Queues command `index` of the batch, if it can be done.
    pub(super) fn checked(&mut self, index: usize, command: &Command) -> Result<(), Fault> {
        let needs = command.program.and_then(|id| needs(self.codes, id));
        let workspace = (&self.memory.layout, self.memory.frame.rows);
        command.check(index, workspace, needs)?;
        let mut spans = command.src.iter().chain(&command.dst);
        let narrow = spans.any(|span| ring_of(self.item(*span)) == Ring::Z32);
        if narrow && !is_narrow(&command.op) {
            return Err(NARROW);
        }
        self.command(index, command)
    }

    /// The same of one that was checked.
    fn command(&mut self, index: usize, command: &Command) -> Result<(), Fault> {
        let at = |span: Span| self.memory.at(span);
        let (src, dst) = (&command.src, &command.dst);
        match &command.op {
            Op::Linear | Op::Product(_) => return self.program(command),
            Op::Publish => {
                self.written.extend(src);
                return Ok(());
            }
            Op::AddReceived { component } => return self.add_received(command, *component),
            Op::Random => {
                let item = self.item(dst[0]);
                let [schedule, first, ends] = self.prf_call(command.calls[0])?;
                let bytes = self.memory.item(dst[0].region);
                let count = u64::from(dst[0].count);
                let stride = self.stride(item);
                let call = [
                    self.memory.at(dst[0]),
                    bytes,
                    count,
                    schedule,
                    first,
                    stride,
                    ends,
                ];
                self.drawing(&RANDOM, count * bytes.div_ceil(16), &call);
            }
            Op::Combine { .. } if !command.calls.is_empty() => {
                return Err(unsupported("sums with draws"));
            }
            Op::Combine { ring, minus } => {
                let keep = self.item(dst[0]).padding(self.memory.frame.rows);
                let (mut bytes, mut count) = (self.memory.item(dst[0].region), dst[0].count.into());
                if keep == 0xff {
                    (bytes, count) = (bytes * count, 1);
                }
                let mut call = vec![
                    at(dst[0]),
                    bytes,
                    count,
                    number(*ring),
                    u64::from(*minus),
                    u64::from(keep),
                    src.len() as u64,
                ];
                call.extend(src.iter().map(|from| at(*from)));
                self.plain(&COMBINE, Some(count * bytes.div_ceil(16)), &call);
            }
            Op::Hash { label } => self.hash(*label, command),
            Op::Mac => self.mac(command)?,
            Op::Split { first } => {
                let bytes = self.memory.item(dst[0].region);
                let ring = number(ring_of(self.item(src[0])));
                let count = u64::from(dst[0].count);
                let call = [
                    at(dst[0]),
                    bytes,
                    count,
                    u64::from(self.memory.frame.rows),
                    at(src[0]),
                    ring,
                    self.shared(src[0]),
                    u64::from(*first),
                ];
                self.plain(&SPLIT, Some(count * bytes), &call);
            }
            Op::Shift { by } => self.convert(src[0], dst[0], *by),
            Op::Lift | Op::Resize => self.convert(src[0], dst[0], 0),
            Op::Lifting(step) => self.lifting(*step, command)?,
            Op::Truncation(step) => self.truncation(*step, command)?,
            Op::Permutation => return Err(unsupported("permutations that are drawn")),
            Op::Permute { .. } => return Err(unsupported("moves of rows")),
            Op::Invert => return Err(unsupported("inverses of permutations")),
            Op::Rank(_) => return Err(unsupported("positions by a digit")),
            Op::MatMul(of) => self.matmul(*of, command)?,
            Op::Scale => {
                let all = u64::from(dst[0].count) * self.cells(dst[0]);
                let ring = number(ring_of(self.item(dst[0])));
                let call = [at(dst[0]), all, ring, at(src[0]), at(src[1])];
                self.plain(&SCALE, Some(all), &call);
            }
            Op::Dot => {
                let all = u64::from(src[0].count) * self.cells(src[0]);
                let [small, ring] = [0, 2].map(|k: usize| number(ring_of(self.item(src[k]))));
                let [a, b, c, d] = [0, 1, 2, 3].map(|k: usize| at(src[k]));
                let end = [at(dst[0]), ring];
                let call = self.call(&[a, b, c, d, all, small, ring]);
                let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
                self.step(&DOT, Some(all), &arguments);
                let call = self.call(&end);
                let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
                self.step(&DOT_END, None, &arguments);
                self.sums = self.sums.max(PARTIAL);
            }
            Op::CheckEqual => {
                let bytes = self.bytes(src[0]);
                let call = [at(src[0]), at(src[1]), bytes];
                self.plain(&COMPARE, Some(bytes.div_ceil(16)), &call);
                let command = Argument::Number(index as u32);
                self.step(&DECIDE, None, &[Argument::Verdict, command]);
            }
            Op::Proof(step) => self.proof(index, *step, command)?,
            Op::Ot(step) => self.transfer(index, *step, command)?,
            Op::Garble { scheme, offset } => self.gates(*scheme, Some(*offset), command)?,
            Op::Evaluate { scheme } => self.gates(*scheme, None, command)?,
            Op::Encode { offset } => self.encode(*offset, command)?,
            Op::Colour => self.colour(command),
            Op::Cut(step) => self.cut(index, *step, command)?,
            Op::Ag(step) => self.authenticated(*step, command)?,
            Op::Silent(step) => self.silent(*step, command)?,
            Op::Psi(step) => self.intersection(index, *step, command)?,
            Op::Repeat(repeat) => {
                for command in repeat.commands() {
                    self.checked(index, &command)?;
                }
                let codes = self.codes;
                for dead in repeat.dead(|id| needs(codes, id)) {
                    self.clear(dead)?;
                }
            }
            _ => return Err(unsupported("an operation that it does not know")),
        }
        self.written.extend(dst);
        Ok(())
    }

    /// Zeros: a sum of nothing.
    pub(super) fn clear(&mut self, to: Span) -> Result<(), Fault> {
        let nothing = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        self.command(0, &Command::new(nothing, vec![], vec![to]))
    }

    /// Of long sources the digests of pieces, level by level; then one of all.
    fn hash(&mut self, label: u16, command: &Command) {
        let (mut sources, mut used, mut bytes) = (Vec::new(), 0, 0);
        for from in &command.src {
            let mut source = [0, self.memory.at(*from), self.bytes(*from)];
            while source[2] > PIECE {
                let pieces = source[2].div_ceil(PIECE);
                self.with_temps(&PIECES, Some(pieces), &[&source[..], &[used]].concat());
                source = [1, used, DIGEST * pieces];
                used += DIGEST * pieces;
            }
            bytes += source[2];
            sources.extend(source);
        }
        self.temps = self.temps.max(used);
        let head = hash::head(self.session, label, self.memory.frame, &command.calls);
        let bytes = head.len() as u64 + bytes;
        let mut call = vec![self.memory.at(command.dst[0]), bytes];
        call.extend([command.src.len() as u64, head.len() as u64]);
        call.extend(sources);
        for bytes in head.chunks(8) {
            let bytes = bytes.iter().rev();
            call.push(bytes.fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        self.with_temps(&HASH, None, &call);
    }

    fn mac(&mut self, command: &Command) -> Result<(), Fault> {
        let prf_call = command.calls[0];
        let prf = &self.key(prf_call)?.prf;
        let frame = self.memory.frame;
        let mask = prf.block(prf_call.tag, frame.lane, prf_call.first, frame.chunk);
        let key = mac::hash_key(prf);
        let src = &command.src;
        let mut call = Zeroizing::new(Vec::with_capacity(7 + 2 * src.len()));
        call.extend([self.memory.at(command.dst[0]), src.len() as u64]);
        for block in [&*key, &mask] {
            let block = u128::from_le_bytes(*block);
            call.extend([block as u64, (block >> 64) as u64]);
        }
        call.push(src.iter().map(|from| self.bytes(*from)).sum());
        let mut blocks = 1;
        for from in src {
            call.extend([self.memory.at(*from), self.bytes(*from)]);
            blocks += self.bytes(*from).div_ceil(16);
        }
        let call = self.call(&call);
        let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
        // A thread has several blocks, as its powers of the key take as long as many of them.
        self.step(&MAC, Some(blocks / MACS), &arguments);
        self.step(&MAC_END, None, &arguments);
        self.sums = self.sums.max(PARTIAL);
        Ok(())
    }

    fn convert(&mut self, from: Span, to: Span, by: u32) {
        let [of, into] = [from, to].map(|span| number(ring_of(self.item(span))));
        let (count, cells) = (u64::from(to.count), self.cells(to));
        let call = [
            self.memory.at(to),
            self.memory.item(to.region),
            count,
            cells,
            into,
            self.memory.at(from),
            self.memory.item(from.region),
            of,
            self.shared(from),
            u64::from(by),
        ];
        self.plain(&CONVERT, Some(count * cells), &call);
    }

    /// All of a component of a region.
    pub(super) fn component(&self, region: u16, part: u8) -> Span {
        self.memory.layout.all(region, part)
    }

    fn program(&mut self, command: &Command) -> Result<(), Fault> {
        let (id, compiled) = self.code(command)?;
        let code = &compiled.code;
        let memory = self.memory;
        let [slots, job_wide, sums] = code.regions;
        let rows = memory.layout.regions[slots as usize].column;
        let bytes = memory.item(slots);
        let partial = u64::from(code.partial.max(1)) * PARTIAL;
        let start = |region| memory.at(self.component(region, 0));
        let trace = command.trace();
        let mut call = vec![
            u64::from(code.levels),
            u64::from(code.depth),
            bytes,
            memory.item(sums),
            start(slots),
            memory.part(slots),
            start(job_wide),
            memory.part(job_wide),
            start(sums),
            memory.part(sums),
            u64::from(code.parts),
            u64::from(command.constants),
            self.stride(rows),
            u64::from(code.pairs),
            u64::from(code.products + 4 * code.counts[0]),
            u64::from(code.counts[1]),
            trace.map_or(u64::MAX, |to| memory.at(to)),
            trace.map_or(0, |to| memory.part(to.region)),
        ];
        let mut messages = [0; 6];
        let mut drawn = [0; 36];
        if let Op::Product(product) = command.op {
            call.extend(form(product)?);
            let crosses = product.crosses.len();
            let with_sums = code.product_sums > 0;
            for (k, message) in command.dst.iter().take(2 * crosses).enumerate() {
                // A message that no product is for may be anything.
                let needed = if k < crosses {
                    code.counts[0] > 0
                } else {
                    with_sums
                };
                // A component of the slots is its own message.
                if needed && message.count == 0 {
                    messages[k / crosses * 3 + k % crosses] = u64::MAX;
                } else if needed {
                    messages[k / crosses * 3 + k % crosses] = memory.at(*message);
                    if message.region == job_wide || message.region == sums {
                        return Err(unsupported(
                            "messages among sums, or values that rows share",
                        ));
                    }
                }
            }
            let prf_calls = product.calls();
            for (k, prf_call) in command.calls.iter().enumerate() {
                let needed = if k < prf_calls {
                    code.counts[0] > 0
                } else {
                    with_sums
                };
                if needed {
                    let place = k / prf_calls * 18 + k % prf_calls * 3;
                    drawn[place..place + 3].copy_from_slice(&self.prf_call(*prf_call)?);
                }
            }
        } else {
            call.extend([0; 14]);
        }
        call.extend(messages);
        call.extend(drawn);
        let call = self.call(&call);
        let (run, end) = match code.ring {
            Ring::Bits => (&PROGRAM_BITS, None),
            Ring::Z64 => (&PROGRAM_Z64, Some(&SUMS_Z64)),
            // No program over Z_2^32 is loaded.
            Ring::Z128 | Ring::Z32 => (&PROGRAM_Z128, Some(&SUMS_Z128)),
        };
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            Argument::Sums,
            call,
            Argument::Verdict,
            Argument::Schedules,
            Argument::Code(id, 0),
        ];
        self.levels(run, (code, bytes.div_ceil(16)), &arguments);
        if let Some(end) = end.filter(|_| code.counts[1] > 0) {
            let arguments = [&arguments[..1], &arguments[2..]].concat();
            self.step(end, Some(u64::from(code.counts[1])), &arguments);
        }
        let temps = u64::from(code.temps) * u64::from(code.parts);
        let temps = temps.saturating_mul(bytes.next_multiple_of(16));
        self.temps = self.temps.max(temps);
        self.sums = self.sums.max(partial);
        if let Op::Product(_) = command.op {
            self.written.extend(&command.dst);
        }
        for part in 0..code.parts {
            let span = self.component(sums, part);
            self.written.push(span);
        }
        Ok(())
    }

    fn add_received(&mut self, command: &Command, part: u8) -> Result<(), Fault> {
        let (id, compiled) = self.code(command)?;
        let code = &compiled.code;
        let memory = self.memory;
        let [slots, _, sums] = code.regions;
        let rows = u64::from(code.counts[0]);
        let all = rows + u64::from(code.product_sums);
        let message = |k: usize| command.src.get(k).map_or(0, |from| memory.at(*from));
        let bytes = memory.item(slots);
        let call = self.call(&[
            rows,
            all,
            bytes,
            memory.item(sums),
            memory.at(self.component(slots, part)),
            message(0),
            memory.at(self.component(sums, part)),
            message(1),
            number(code.ring),
        ]);
        let products = Argument::Code(id, code.products);
        let work = rows * bytes.div_ceil(16) + (all - rows);
        let arguments = [Argument::Workspace, call, Argument::Verdict, products];
        self.step(&ADD_RECEIVED, Some(work), &arguments);
        let span = self.component(sums, part);
        self.written.push(span);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_meet_only_between_levels_that_they_share() {
        let (grid, block) = (132, 512);
        let meet = |depth, columns, grid| Levels { depth, columns }.meet(Launch { grid, block });
        assert!(meet(2, 67_583, grid));
        assert!(!meet(1, 32, grid), "a single level");
        assert!(!meet(2, 32, 1), "a single block");
        assert!(!meet(2, 67_584, grid), "each thread has columns of its own");
    }
}
