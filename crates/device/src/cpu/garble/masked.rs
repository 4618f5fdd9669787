//! Products of authenticated garbling: where their arrays are, and each as it is defined.

use zeroize::Zeroizing;

use super::super::Cpu;
use super::super::commands::fitting;
use super::super::tape::{Product, Tape};
use super::super::workspace::Memory;
use super::Run;
use super::scalar::{Wires, label};
use crate::Fault;
use crate::ag::gate::{Gate, all};
use crate::ag::{Ag, One, clear, clear_bits};
use crate::command::Command;
use crate::garble::{Garbling, NO_OFFSET, ROW_BITS};
use crate::layout::Span;

/// Offsets in the workspace of the arrays of a step with a program: a block, or a bit, for each row of each product. Tables are where
/// [`Run::tables`] says.
pub(super) enum Masked {
    /// Results, first and second operands.
    Masks {
        results: usize,
        operands: [usize; 2],
    },
    /// MACs and keys of masks; z, and labels of results.
    Garbler {
        masks: [usize; 6],
        z: usize,
        labels: usize,
    },
    /// MACs of masks; z, labels of results, Λ of operands and of results.
    Evaluator {
        masks: [usize; 3],
        z: usize,
        labels: usize,
        public: [usize; 3],
    },
}

impl Cpu {
    /// Runs a tape over one component of the slots, by a step that was checked.
    pub(in crate::cpu) fn gates_with_masks(
        &self,
        memory: &mut Memory,
        tape: Option<&Tape>,
        step: Ag,
        command: &Command,
    ) -> Result<(), Fault> {
        let tape = fitting(tape, memory)?;
        let place = |memory: &Memory, span: &Span| memory.column(*span, 0).0;
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let of = |spans: &[Span], k: usize| place(memory, &spans[k]);
        let (mut one, mut offset) = (Zeroizing::new(0), Zeroizing::new(None));
        let (part, at, masked, tables) = match step {
            Ag::Masks {
                part,
                at,
                one: public,
            } => {
                *one = match public {
                    One::Nothing => 0,
                    One::Unit => 1,
                    One::Offset(key) => self.offset(key)? ^ 1,
                };
                let masks = Masked::Masks {
                    results: of(src, 0),
                    operands: [of(dst, 0), of(dst, 1)],
                };
                (part, at, masks, 0)
            }
            Ag::Garble { at, offset: key } => {
                let key = self.offset(key)?;
                if key & 3 != 3 {
                    return Err(NO_OFFSET);
                }
                *offset = Some(key);
                let garbler = Masked::Garbler {
                    masks: std::array::from_fn(|k| of(src, k)),
                    z: of(dst, 1),
                    labels: of(dst, 2),
                };
                (0, at, garbler, of(dst, 0))
            }
            Ag::Evaluate { at } => {
                let evaluator = Masked::Evaluator {
                    masks: std::array::from_fn(|k| of(src, 2 + k)),
                    z: of(src, 1),
                    labels: of(dst, 0),
                    public: std::array::from_fn(|k| of(dst, 1 + k)),
                };
                (0, at, evaluator, of(src, 0))
            }
            _ => unreachable!("this step has no program"),
        };
        let (mut start, mut first) = (0, 0);
        if let (false, Some(call)) = (matches!(step, Ag::Masks { .. }), command.calls.first()) {
            let key = self.mask(*call, memory.frame)?;
            start = Garbling::HalfGates.start(key.key.prf(), call.tag, memory.frame);
            first = call.first;
        }
        let block = at as usize * memory.frame.rows as usize;
        let (arrays, bits) = match step {
            Ag::Masks { .. } => (dst, &[][..]),
            Ag::Garble { .. } => (&dst[2..], &dst[1..2]),
            _ => dst.split_at(1),
        };
        // Once for all programs of a batch: there may be thousands.
        if at == 0 {
            for to in arrays {
                clear(memory, *to, 0);
            }
        }
        for to in bits {
            clear_bits(memory, *to, block);
        }
        let run = Run {
            tape,
            part,
            one: *one,
            masked: Some(masked),
            at: at as usize,
            scheme: Garbling::HalfGates,
            offset: *offset,
            start,
            each: None,
            first,
            tables: [tables, 0],
            dice: None,
            stride: 0,
        };
        let run = Zeroizing::new(run);
        self.gates_of(memory, &run);
        Ok(())
    }
}

impl zeroize::Zeroize for Run<'_> {
    fn zeroize(&mut self) {
        self.one.zeroize();
        self.offset.zeroize();
    }
}

impl Masked {
    /// All rows of a product.
    pub(super) fn product(&self, wires: &mut Wires<'_>, run: &Run<'_>, product: &Product) {
        let (a, b) = run.tape.pairs[product.start as usize];
        for row in 0..wires.rows {
            let operands = [a, b].map(|wire| wires.get(wire, row));
            let at = (run.at + product.index as usize) * wires.rows + row;
            let number = (run.first + u64::from(product.index)) << ROW_BITS;
            let gate = Gate {
                start: run.start,
                number: number + row as u64,
            };
            // Tables of a product are a label for each row, and once more.
            let table = |k: usize| {
                let entry = 2 * product.index as usize + k;
                run.tables[0] + 16 * (entry * wires.rows + row)
            };
            let out = match self {
                Masked::Masks {
                    results,
                    operands: to,
                } => {
                    for (to, operand) in to.iter().zip(operands) {
                        put(wires.bytes, to + 16 * at, operand);
                    }
                    label(wires.bytes, results + 16 * at)
                }
                Masked::Garbler { masks, z, labels } => {
                    let of = |k: usize| label(wires.bytes, masks[k] + 16 * at);
                    let masks = [0, 2, 4].map(|k| [of(k), of(k + 1)]);
                    let offset = run.offset.unwrap_or(0);
                    let (out, tables, bit) = gate.garble(offset, operands, masks);
                    let [first, second] = [table(0), table(1)];
                    put(wires.bytes, first, tables[0]);
                    put(wires.bytes, second, tables[1]);
                    put_bit(wires.bytes, *z, at, bit);
                    put(wires.bytes, labels + 16 * at, out);
                    out
                }
                Masked::Evaluator {
                    masks,
                    z,
                    labels,
                    public,
                } => {
                    let masks = masks.map(|from| label(wires.bytes, from + 16 * at));
                    let tables = [table(0), table(1)].map(|from| label(wires.bytes, from));
                    let z = u128::from(wires.bytes[z + at / 8] >> (at % 8) & 1);
                    let out = gate.evaluate(operands, tables, z, masks);
                    put(wires.bytes, labels + 16 * at, out);
                    for (to, of) in public.iter().zip([operands[0], operands[1], out]) {
                        put_bit(wires.bytes, *to, at, all(of >> 1));
                    }
                    out
                }
            };
            wires.set(product.out, row, out);
        }
    }
}

fn put(bytes: &mut [u8], at: usize, block: u128) {
    bytes[at..][..16].copy_from_slice(&block.to_le_bytes());
}

/// Sets a bit of bits that were 0.
fn put_bit(bytes: &mut [u8], to: usize, at: usize, bit: u128) {
    bytes[to + at / 8] |= ((bit & 1) as u8) << (at % 8);
}
