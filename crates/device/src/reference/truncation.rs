//! Steps of truncations, as they are defined.

use veil_math::Ring;

use super::memory::element;
use super::{Memory, Reference};
use crate::Fault;
use crate::command::Command;
use crate::layout::Span;
use crate::truncation::Truncation;

impl Reference {
    pub(super) fn truncation(
        &mut self,
        memory: &mut Memory,
        step: Truncation,
        command: &Command,
    ) -> Result<(), Fault> {
        let (from, to) = (command.src[0], &command.dst[..]);
        let (ring, drawn) = self.drawn(memory, command)?;
        let rows = memory.frame.rows as usize;
        let size = ring.bytes(1) as usize;
        let highest = ring.bits() - 1;
        for k in 0..to[0].count {
            let at = |span: Span| span.column(k);
            for row in 0..rows {
                let call = |d: usize| {
                    let of_column = &drawn[d][k as usize * rows * size..][..rows * size];
                    element(ring, of_column, row)
                };
                let turned = |bit: u128, x: u128| ring.mul(ring.sub(1, 2 * bit), x);
                let up = |by: u32, x: u128| ring.mul(1 << (ring.bits() - by), x);
                match step {
                    Truncation::Hide { by } => {
                        let [x, r] = [from, to[2]].map(|span| memory.get(at(span), ring, row));
                        let both = (call(0) & 1) & (r >> highest);
                        memory.set(at(to[0]), ring, row, ring.add(x, r));
                        memory.set(at(to[1]), ring, row, ring.add(both, call(1)));
                        memory.set(at(to[2]), ring, row, ring.sub(0, r >> by));
                    }
                    Truncation::Take { by } => {
                        let [sum, x] = [to[0], from].map(|span| memory.get(at(span), ring, row));
                        let c = ring.add(sum, x);
                        let bit = (call(1) & 1) ^ 1 ^ (c >> highest);
                        let low = c & !(1 << highest);
                        let masks = ring.add(turned(bit, call(2)), call(3));
                        let rest = ring.sub(ring.sub(c >> by, up(by, masks)), call(0));
                        memory.set(at(to[0]), ring, row, low | bit << highest);
                        memory.set(at(to[1]), ring, row, call(0));
                        memory.set(at(to[2]), ring, row, rest);
                    }
                    Truncation::Answer { by } => {
                        let bit = memory.get(at(from), Ring::Bits, row);
                        let [x, r] = [0, 1].map(|k| memory.get(at(to[k]), ring, row));
                        let own = bit & (r >> highest);
                        let told = ring.add(ring.add(turned(bit, x), own), call(0));
                        memory.set(at(to[0]), ring, row, told);
                        let result = ring.sub(up(by, told), r >> by);
                        memory.set(at(to[1]), ring, row, result);
                    }
                    Truncation::Settle { by } => {
                        let [told, own] = [from, to[0]].map(|span| memory.get(at(span), ring, row));
                        let result = ring.add(own, up(by, told));
                        memory.set(at(to[0]), ring, row, result);
                    }
                }
            }
        }
        Ok(())
    }
}
