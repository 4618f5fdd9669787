//! Steps of lifts, as they are defined.

use veil_math::Ring;

use super::memory::element;
use super::{Memory, Reference};
use crate::Fault;
use crate::command::Command;
use crate::layout::{ColumnType, Span};
use crate::lift::{Lifting, PARTS};

impl Reference {
    /// The ring of the integers that a checked step of lifts or of truncations is about, and its draws, column by column.
    pub(super) fn drawn(
        &mut self,
        memory: &Memory,
        command: &Command,
    ) -> Result<(Ring, Vec<Vec<u8>>), Fault> {
        let to = command.dst[0];
        let column = memory.layout.regions[to.region as usize].column;
        let ColumnType::Rows(ring) = column else {
            unreachable!("it was checked")
        };
        let calls = command.calls.iter();
        let drawn = calls.map(|call| self.pseudorandom(memory, *call, column, to.count));
        Ok((ring, drawn.collect::<Result<_, _>>()?))
    }

    pub(super) fn lifting(
        &mut self,
        memory: &mut Memory,
        step: Lifting,
        command: &Command,
    ) -> Result<(), Fault> {
        let to = command.dst[0];
        let (ring, drawn) = self.drawn(memory, command)?;
        let rows = memory.frame.rows as usize;
        let size = ring.bytes(1) as usize;
        for k in 0..to.count {
            let at = |span: Span| span.column(k);
            for row in 0..rows {
                let call = |d: usize| {
                    let of_column = &drawn[d][k as usize * rows * size..][..rows * size];
                    element(ring, of_column, row)
                };
                match step {
                    Lifting::Share => {
                        let bit = memory.get(at(command.src[0]), Ring::Bits, row);
                        memory.set(at(command.dst[0]), ring, row, call(0));
                        memory.set(at(command.dst[1]), ring, row, ring.sub(bit, call(0)));
                    }
                    Lifting::Turn => {
                        let bit = memory.get(at(command.src[0]), Ring::Bits, row);
                        let x = memory.get(at(command.dst[0]), ring, row);
                        let turned = ring.mul(x, ring.sub(1, 2 * bit));
                        let rest = ring.sub(ring.sub(bit, call(0)), call(1));
                        memory.set(at(command.dst[0]), ring, row, ring.add(turned, call(0)));
                        memory.set(at(command.dst[1]), ring, row, rest);
                    }
                    Lifting::Terms { terms, keeps } => {
                        let (messages, parts) = command.dst.split_at(terms.len());
                        let x: Vec<u128> = (0..PARTS)
                            .map(|p| memory.get(at(parts[p]), ring, row))
                            .collect();
                        let mut result = x.clone();
                        let mut grow = |part: u8, by: u128| {
                            let x = &mut result[usize::from(part)];
                            *x = ring.add(*x, by);
                        };
                        for (d, (r, o)) in terms.into_iter().enumerate() {
                            let product = ring.mul(x[usize::from(r)], x[usize::from(o)]);
                            let term = ring.sub(0, ring.mul(2, product));
                            let message = ring.sub(term, call(d));
                            memory.set(at(messages[d]), ring, row, message);
                            grow(o, message);
                            grow(r, call(d));
                        }
                        for (d, part) in keeps.into_iter().flatten().enumerate() {
                            grow(part, call(terms.len() + d));
                        }
                        for (part, value) in parts.iter().zip(result) {
                            memory.set(at(*part), ring, row, value);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
