//! Products of matrices, as they are defined.

use veil_math::Ring;

use super::memory::element;
use super::{Memory, Reference};
use crate::command::Command;
use crate::layout::Span;
use crate::matmul::{MatMul, Matrices};
use crate::{Fault, rank};

impl Reference {
    /// The product of a command, which was checked.
    pub(super) fn matmul(
        &mut self,
        memory: &mut Memory,
        of: MatMul,
        command: &Command,
    ) -> Result<(), Fault> {
        let (form, ring) = (of.form, of.form.ring);
        let matrices = Matrices::of(of, command);
        let all = memory.frame.rows;
        let (rows, inner) = (matrices.rows(all), matrices.inner(all));
        let to = command.dst[0];
        let items = if of.transposed {
            to.count
        } else {
            matrices.columns as u32
        };
        let mut drawn = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            drawn.push(self.pseudorandom(memory, *call, memory.column(to), items)?);
        }
        for column in 0..matrices.columns {
            for row in 0..rows {
                let mask = |call: u8| element(ring, &drawn[usize::from(call)], column * rows + row);
                let mut components = [0; 8];
                let mut terms = Vec::new();
                for cross in form.crosses {
                    let mut term = 0;
                    for k in 0..inner {
                        let (at, in_row) = if of.transposed { (row, k) } else { (k, row) };
                        for (a, b) in cross.terms {
                            let left = matrices.left(at, (*a).into());
                            let right = matrices.right(column, (*b).into());
                            let left = memory.get(left, ring, in_row);
                            let right = memory.nth(right, ring, k);
                            term = ring.add(term, ring.mul(left, right));
                        }
                    }
                    for (call, minus) in cross.masks {
                        let step = if *minus { Ring::sub } else { Ring::add };
                        term = step(ring, term, mask(*call));
                    }
                    terms.push(term);
                    let component = &mut components[usize::from(cross.to)];
                    *component = ring.add(*component, term);
                }
                for (call, to) in form.keeps {
                    let component = &mut components[usize::from(*to)];
                    *component = ring.add(*component, mask(*call));
                }
                let written = rank::written(form).map(|part| components[part]);
                let messages = rank::messages(form).map(|cross| terms[cross]);
                for (k, value) in written.chain(messages).enumerate() {
                    memory.set_nth(matrices.product(k, column), ring, row, value);
                }
            }
        }
        Ok(())
    }
}

impl Memory {
    /// Element `k` of a column of rows, or of items that all rows share.
    fn nth(&self, span: Span, ring: Ring, k: usize) -> u128 {
        element(ring, self.bytes(span), k)
    }

    fn set_nth(&mut self, span: Span, ring: Ring, k: usize, value: u128) {
        let bytes = ring.bytes(1) as usize;
        self.bytes_mut(span)[k * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}
