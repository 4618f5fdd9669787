//! Labels: a tape over wires of a garbled circuit, at the garbler and at the evaluator.

mod scalar;

use zeroize::Zeroizing;

use super::Cpu;
use super::bank::Memory;
use super::commands::fitting;
use super::exec::Mask;
use super::tape::Tape;
use crate::Fault;
use crate::command::{Command, KeyId, Op};
use crate::garble::{Garbling, NO_OFFSET};
use crate::layout::{Item, Span};

/// Everything a run of a tape over labels needs.
struct Run<'a> {
    tape: &'a Tape,
    scheme: Garbling,
    /// The garbler's offset.
    offset: Option<u128>,
    /// Start point of the hash.
    start: u128,
    /// Number of product 0.
    first: u64,
    /// Offsets in the bank of the tables of product 0.
    tables: [usize; 2],
    /// Two bits of each row of each product, if the garbler throws dice.
    dice: Option<Mask<'a>>,
    /// Counters of the dice of a product.
    stride: u64,
}

impl Cpu {
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
                scalar::encode(
                    memory,
                    offset,
                    [command.src[0], command.src[1]],
                    command.dst[0],
                );
                Ok(())
            }
            _ => {
                scalar::colour(memory, command.src[0], command.dst[0]);
                Ok(())
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
            scheme,
            offset,
            start: 0,
            first: 0,
            tables: [0; 2],
            dice: None,
            stride: scheme.dice(memory.layout.chunk_rows),
        };
        if tape.message_len[0] > 0 {
            let draw = command.draws[0];
            let start = self.mask(draw, memory.frame)?;
            run.start = scheme.start(start.key.prf(), draw.tag, memory.frame);
            run.first = draw.first;
            if offset.is_some() && run.stride > 0 {
                run.dice = Some(self.mask(command.draws[1], memory.frame)?);
            }
            let messages = if offset.is_some() {
                &command.dst
            } else {
                &command.src
            };
            for (at, span) in run.tables.iter_mut().zip(messages) {
                *at = memory.item(*span, 0).0;
            }
        }
        scalar::run(self, memory, &run);
        Ok(())
    }

    /// The dice of a product, a byte of which has those of four rows.
    fn dice(&self, run: &Run<'_>, product: u32, rows: usize) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::new());
        if let Some(mask) = run.dice {
            bytes.resize(rows.div_ceil(4), 0);
            let counter = mask.first + u64::from(product) * run.stride;
            self.random(mask, counter, &mut bytes);
        }
        bytes
    }
}

/// Labels of an item.
fn labels_of(memory: &Memory, span: Span) -> usize {
    match memory.layout.regions[span.region as usize].item {
        Item::Label => 1,
        _ => memory.frame.rows as usize,
    }
}
