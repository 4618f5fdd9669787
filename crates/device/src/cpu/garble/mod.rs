//! Labels: a tape over wires of a garbled circuit, at the garbler and at the evaluator.

#[cfg(target_arch = "x86_64")]
pub(super) mod aesni;
#[cfg(target_arch = "x86_64")]
pub(super) mod blocks;
#[cfg(target_arch = "x86_64")]
mod colours;
mod dice;
#[cfg(target_arch = "x86_64")]
mod gates;
#[cfg(target_arch = "x86_64")]
mod half;
mod masked;
#[cfg(target_arch = "x86_64")]
mod masks;
#[cfg(target_arch = "x86_64")]
mod narrow;
#[cfg(target_arch = "x86_64")]
mod one;
mod rate;
#[cfg(target_arch = "x86_64")]
mod run;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod three;
#[cfg(target_arch = "x86_64")]
pub(super) mod vaes;
#[cfg(target_arch = "x86_64")]
pub(super) mod x86;

pub use rate::HashRate;
use zeroize::Zeroize;

use super::commands::fitting;
use super::exec::Mask;
use super::tape::{LABEL_BATCH, Tape};
#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, Avx2Vaes, Avx512};
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::Fault;
use crate::command::{Command, KeyId, Op};
use crate::garble::{Garbling, NO_OFFSET};
use crate::layout::{ColumnType, Span};
use dice::Dice;
use masked::Masked;
#[cfg(target_arch = "x86_64")]
use {aesni::Xmm, vaes::Ymm, x86::Zmm};

/// Everything a run of a tape over labels needs.
struct Run<'a> {
    tape: &'a Tape,
    /// Component of the slots.
    part: u8,
    /// What a public 1 adds to a label, unless rows are circuits.
    one: u128,
    /// What products are, if they are no gates with tables of `scheme`.
    masked: Option<Masked>,
    /// Products whose blocks come before those of product 0, where products are masked.
    at: usize,
    scheme: Garbling,
    /// The garbler's offset.
    offset: Option<u128>,
    /// Start point of the hash.
    start: u128,
    /// Offsets and start points of rows, where each row is a circuit: the offset of all is 0 then, if there are some.
    each: Option<Each>,
    /// Number of product 0.
    first: u64,
    /// Offsets in the workspace of the tables of product 0.
    tables: [usize; 2],
    /// Two bits of each row of each product, if the garbler throws dice.
    dice: Option<Mask<'a>>,
    /// Counters of the dice of a product.
    stride: u64,
}

/// Where in the workspace offsets and start points of rows are.
struct Each {
    offsets: Option<usize>,
    starts: usize,
}

impl Cpu {
    /// Runs a tape whose rows are circuits: as the garbler if there are offsets.
    pub(super) fn circuits(
        &self,
        memory: &mut Memory,
        tape: &Tape,
        (offsets, starts): (Option<Span>, Span),
        (first, tables): (u64, &[Span]),
    ) {
        let at = |span: Span| memory.column(span, 0).0;
        let run = Run {
            tape,
            part: 0,
            one: 0,
            masked: None,
            at: 0,
            scheme: Garbling::HalfGates,
            offset: offsets.map(|_| 0),
            start: 0,
            each: Some(Each {
                offsets: offsets.map(at),
                starts: at(starts),
            }),
            first,
            tables: [tables.first().map_or(0, |span| at(*span)), 0],
            dice: None,
            stride: 0,
        };
        self.gates_of(memory, &run);
    }

    /// The offset of the garbler.
    pub(in crate::cpu) fn offset(&self, key: KeyId) -> Result<u128, Fault> {
        let key = self.keys.get(&key).ok_or(NO_OFFSET)?.key();
        let offset = u128::from_le_bytes(key);
        if offset & 1 == 1 {
            Ok(offset)
        } else {
            Err(NO_OFFSET)
        }
    }

    /// Does a command about labels, which was checked.
    pub(super) fn labels(
        &self,
        memory: &mut Memory,
        tape: Option<&Tape>,
        command: &Command,
    ) -> Result<(), Fault> {
        match command.op {
            Op::Garble { scheme, offset } => {
                let offset = self.offset(offset)?;
                self.gates(
                    memory,
                    fitting(tape, memory)?,
                    command,
                    (scheme, Some(offset)),
                )
            }
            Op::Evaluate { scheme } => {
                self.gates(memory, fitting(tape, memory)?, command, (scheme, None))
            }
            Op::Encode { offset } => {
                let offset = self.offset(offset)?;
                self.encode(
                    memory,
                    offset,
                    [command.src[0], command.src[1]],
                    command.dst[0],
                );
                Ok(())
            }
            _ => {
                self.colour(memory, command.src[0], command.dst[0]);
                Ok(())
            }
        }
    }

    fn encode(&self, memory: &mut Memory, offset: u128, src: [Span; 2], to: Span) {
        // SAFETY: `with` checked the instruction set, and the command was checked.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => encode_zmm(memory, offset, src, to),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => encode_ymm(memory, offset, src, to),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => encode_xmm(memory, offset, src, to),
                _ => scalar::encode(memory, offset, src, to),
            }
        }
    }

    fn colour(&self, memory: &mut Memory, labels: Span, to: Span) {
        // SAFETY: as in `encode`.
        unsafe {
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => colour_zmm(memory, labels, to),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => colour_ymm(memory, labels, to),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => colour_xmm(memory, labels, to),
                _ => scalar::colour(memory, labels, to),
            }
        }
    }

    fn gates(
        &self,
        memory: &mut Memory,
        tape: &Tape,
        command: &Command,
        (scheme, offset): (Garbling, Option<u128>),
    ) -> Result<(), Fault> {
        let mut run = Run {
            tape,
            part: 0,
            one: offset.unwrap_or(0),
            masked: None,
            at: 0,
            scheme,
            offset,
            start: 0,
            each: None,
            first: 0,
            tables: [0; 2],
            dice: None,
            stride: scheme.dice(memory.layout.chunk_rows),
        };
        if tape.message_len[0] > 0 {
            let call = command.calls[0];
            let start = self.mask(call, memory.frame)?;
            run.start = scheme.start(start.key.prf(), call.tag, memory.frame);
            run.first = call.first;
            if offset.is_some() && run.stride > 0 {
                run.dice = Some(self.mask(command.calls[1], memory.frame)?);
            }
            let messages = if offset.is_some() {
                &command.dst
            } else {
                &command.src
            };
            for (at, span) in run.tables.iter_mut().zip(messages) {
                *at = memory.column(*span, 0).0;
            }
        }
        self.gates_of(memory, &run);
        run.offset.zeroize();
        run.one.zeroize();
        Ok(())
    }

    /// Runs the tape with the fastest kernel.
    fn gates_of(&self, memory: &mut Memory, run: &Run<'_>) {
        let rows = memory.frame.rows as usize;
        let mut dice = Dice::new(run, LABEL_BATCH, rows);
        // SAFETY: `with` checked the instruction set, or it is asked for here; `load` checked the program against its layout; `run` checked
        // that the workspace has the same regions and room for the scratch rows, and that the tables fit them.
        unsafe {
            match self.isa {
                // Vectors are of rows of one gate there.
                _ if run.each.is_some() && rows < LANES => scalar::run(memory, run, &mut dice),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => run_zmm(memory, run, &mut dice),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2Vaes => run_ymm(memory, run, &mut dice),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => run_xmm(memory, run, &mut dice),
                _ => scalar::run(memory, run, &mut dice),
            }
        }
    }
}

/// Rows that a vector of labels has.
const LANES: usize = 4;

/// The kernels once per instruction set: everything below them is inlined into these functions, but for what is outlined again.
#[cfg(target_arch = "x86_64")]
macro_rules! kernel {
    ($name:ident, $encode:ident, $colour:ident, $features:literal, $vector:ty, $blocks:ty, $half:literal, $three:literal) => {
        #[target_feature(enable = $features)]
        unsafe fn $encode(memory: &mut Memory, offset: u128, src: [Span; 2], to: Span) {
            let rows = labels_of(memory, to);
            // SAFETY: the caller's.
            unsafe { colours::encode::<$blocks>(memory, offset, src, to, rows) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $colour(memory: &mut Memory, labels: Span, to: Span) {
            let rows = labels_of(memory, labels);
            // SAFETY: the caller's.
            unsafe { colours::colour::<$blocks>(memory, labels, to, rows) }
        }
        #[target_feature(enable = $features)]
        unsafe fn $name(memory: &mut Memory, run: &Run<'_>, dice: &mut Dice) {
            // SAFETY: the caller's.
            unsafe { run::run::<$vector, $blocks, $half, $three>(memory, run, dice) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
kernel!(
    run_zmm,
    encode_zmm,
    colour_zmm,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    Avx512,
    Zmm,
    4,
    2
);
#[cfg(target_arch = "x86_64")]
kernel!(
    run_ymm,
    encode_ymm,
    colour_ymm,
    "avx2,aes,vaes,bmi2",
    Avx2Vaes,
    Ymm,
    1,
    1
);
#[cfg(target_arch = "x86_64")]
kernel!(run_xmm, encode_xmm, colour_xmm, "avx2,aes", Avx2, Xmm, 1, 1);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx")]
unsafe fn rate_zmm<const K: usize, const X: usize>(round: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { rate::round::<Zmm, 4, K, X>(round) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes,vaes,bmi2")]
unsafe fn rate_ymm<const K: usize, const X: usize>(round: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { rate::round::<Ymm, 1, K, X>(round) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes")]
unsafe fn rate_xmm<const K: usize, const X: usize>(round: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { rate::round::<Xmm, 1, K, X>(round) }
}

/// Labels of an item.
fn labels_of(memory: &Memory, span: Span) -> usize {
    match memory.layout.regions[span.region as usize].column {
        ColumnType::Label => 1,
        _ => memory.frame.rows as usize,
    }
}
