//! Cut-and-choose: hashes of sixteen circuits side by side, programs with the kernels of labels, and everything else as it is defined.

use subtle::{Choice, ConstantTimeEq};
use veil_session::Frame;
use zeroize::Zeroizing;

use super::commands::fitting;
#[cfg(target_arch = "x86_64")]
use super::sha;
use super::tape::Tape;
use super::workspace::Memory;
use super::{Cpu, Isa};
use crate::Fault;
use crate::command::Command;
use crate::cut::{self, By, Columns, Cut, DIGEST, MARKS};
use crate::layout::{ColumnType, Span};

impl Columns for Memory {
    fn frame(&self) -> Frame {
        self.frame
    }

    fn kind(&self, region: u16) -> ColumnType {
        self.layout.regions[region as usize].column
    }

    fn get(&self, span: Span, k: u32) -> &[u8] {
        self.column_bytes(span, k)
    }

    fn get_mut(&mut self, span: Span, k: u32) -> &mut [u8] {
        self.column_bytes_mut(span, k)
    }
}

impl Cpu {
    /// Does a step, which was checked, and says what a comparison found.
    pub(super) fn cut(
        &self,
        memory: &mut Memory,
        tape: Option<&Tape>,
        step: Cut,
        command: &Command,
    ) -> Result<bool, Fault> {
        let tables = || cut::tables(step, command);
        match step {
            Cut::Garble { first } => {
                let [offsets, starts] = [command.src[0], command.src[1]];
                let tape = fitting(tape, memory)?;
                self.circuits(memory, tape, (Some(offsets), starts), (first, tables()));
            }
            Cut::Evaluate { first } => {
                let tape = fitting(tape, memory)?;
                self.circuits(memory, tape, (None, command.src[0]), (first, tables()));
            }
            #[cfg(target_arch = "x86_64")]
            _ if self.isa == Isa::Avx512 && self.hashes(memory, step, command) => {}
            #[cfg(target_arch = "x86_64")]
            Cut::Member { label } if self.isa == Isa::Avx512 => {
                let mut all = Choice::from(1);
                self.votes(memory, label, &command.src, |_, [zero, one]| {
                    all &= zero | one;
                });
                return Ok(all.into());
            }
            #[cfg(target_arch = "x86_64")]
            Cut::Majority { label } if self.isa == Isa::Avx512 => {
                let mut ones = vec![0u32; command.src[0].count as usize];
                self.votes(memory, label, &command.src, |wire, [_, one]| {
                    ones[wire as usize] += u32::from(one.unwrap_u8());
                });
                let rows = memory.frame.rows;
                for (wire, ones) in (0..).zip(ones) {
                    memory.column_bytes_mut(command.dst[0], wire)[0] = u8::from(2 * ones > rows);
                }
            }
            _ => return Ok(cut::step(memory, &self.session, step, command)),
        }
        Ok(true)
    }

    /// Digests and marks; says whether it was one of these, in an order of sources that is made here.
    #[cfg(target_arch = "x86_64")]
    fn hashes(&self, memory: &mut Memory, step: Cut, command: &Command) -> bool {
        let rows = memory.frame.rows as usize;
        match step {
            Cut::Digest { label } => {
                let Some(message) = sha::Message::of(memory, &command.src) else {
                    return false;
                };
                let head = cut::head(&self.session, label, memory.frame);
                let to = command.dst[0];
                let mut digests = Zeroizing::new(vec![0; 16 * DIGEST as usize * rows]);
                // SAFETY: the instruction set was checked; the units of the message have `rows` labels each.
                unsafe { sha::digests(&head, &message, rows, &mut digests) };
                put(memory, to, 0, &digests);
            }
            Cut::Marks { label, by } => {
                let (of, frame) = (&command.src[..], memory.frame);
                let numbers = numbers(memory, of[2]);
                let offsets = Zeroizing::new(memory.column_bytes(of[1], 0).to_vec());
                let mut labels = Zeroizing::new(vec![0; 16 * rows]);
                let mut digests = Zeroizing::new(vec![0; 16 * DIGEST as usize * rows]);
                for wire in 0..of[0].count {
                    labels.copy_from_slice(memory.column_bytes(of[0], wire));
                    if by == By::Colour {
                        for (x, offset) in pairs(&mut labels, &offsets) {
                            let swap = u128::from(std::hint::black_box(x[0] & 1)).wrapping_neg();
                            *x = (word(x) ^ (word(offset) & swap)).to_ne_bytes();
                        }
                    }
                    let bytes = cut::marked((&self.session, frame), label, wire, 0);
                    for k in 0..2 {
                        // SAFETY: the instruction set was checked.
                        unsafe { sha::marks(&bytes, &numbers, &labels, &mut digests) };
                        put(memory, command.dst[0], MARKS * wire + DIGEST * k, &digests);
                        for (x, offset) in pairs(&mut labels, &offsets) {
                            *x = (word(x) ^ word(offset)).to_ne_bytes();
                        }
                    }
                }
            }
            _ => return false,
        }
        true
    }

    /// Tells of each label of src 0 whether it has the first and the second of the marks in src 1.
    #[cfg(target_arch = "x86_64")]
    fn votes(
        &self,
        memory: &Memory,
        label: u16,
        src: &[Span],
        mut tell: impl FnMut(u32, [Choice; 2]),
    ) {
        let frame = memory.frame;
        let rows = frame.rows as usize;
        let numbers = numbers(memory, src[2]);
        let mut digests = vec![0; 16 * DIGEST as usize * rows];
        for wire in 0..src[0].count {
            let bytes = cut::marked((&self.session, frame), label, wire, 0);
            let labels = memory.column_bytes(src[0], wire);
            // SAFETY: the instruction set was checked.
            unsafe { sha::marks(&bytes, &numbers, labels, &mut digests) };
            let (low, high) = digests.split_at(16 * rows);
            let of = [low, high].map(words);
            let marks = [0, 1, 2, 3].map(|k| words(memory.column_bytes(src[1], MARKS * wire + k)));
            for row in 0..rows {
                let equal = [0, 2].map(|k| {
                    let differ = [0, 1].map(|half| of[half][row] ^ marks[k + half][row]);
                    zero(differ[0] | differ[1])
                });
                tell(wire, equal);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn word(x: &[u8; 16]) -> u128 {
    u128::from_ne_bytes(*x)
}

/// Whether no bit is set.
#[cfg(target_arch = "x86_64")]
fn zero(x: u128) -> Choice {
    let x = (x as u64) | (x >> 64) as u64;
    x.ct_eq(&0)
}

/// Labels as numbers.
#[cfg(target_arch = "x86_64")]
fn words(labels: &[u8]) -> Vec<u128> {
    let labels = labels.as_chunks().0.iter();
    labels.map(|x| u128::from_ne_bytes(*x)).collect()
}

/// Labels of rows, and what belongs to them.
#[cfg(target_arch = "x86_64")]
fn pairs<'a>(
    labels: &'a mut [u8],
    offsets: &'a [u8],
) -> impl Iterator<Item = (&'a mut [u8; 16], &'a [u8; 16])> {
    let labels = labels.as_chunks_mut().0.iter_mut();
    labels.zip(offsets.as_chunks().0)
}

/// The number of each row's circuit.
#[cfg(target_arch = "x86_64")]
fn numbers(memory: &Memory, span: Span) -> Vec<u32> {
    let labels = memory.column_bytes(span, 0).as_chunks::<16>().0;
    let number = |x: &[u8; 16]| u128::from_le_bytes(*x) as u32;
    labels.iter().map(number).collect()
}

/// Writes two labels of each row from column `k` on.
#[cfg(target_arch = "x86_64")]
fn put(memory: &mut Memory, to: Span, k: u32, digests: &[u8]) {
    let halves = digests.chunks_exact(digests.len() / DIGEST as usize);
    for (k, half) in (k..).zip(halves) {
        memory.column_bytes_mut(to, k).copy_from_slice(half);
    }
}
