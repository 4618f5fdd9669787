//! Positions of rows by a digit, as they are defined.

use veil_math::Ring;

use super::memory::element;
use super::{Memory, Reference};
use crate::command::Command;
use crate::layout::ColumnType;
use crate::rank;
use crate::{Fault, Form};

const RING: Ring = Ring::Z32;

impl Reference {
    /// The positions of a command, which was checked.
    pub(super) fn rank(
        &mut self,
        memory: &mut Memory,
        form: &Form,
        command: &Command,
    ) -> Result<(), Fault> {
        let mut drawn = Vec::with_capacity(command.calls.len());
        for call in &command.calls {
            drawn.push(self.pseudorandom(memory, *call, ColumnType::Rows(RING), 1)?);
        }
        let parts = rank::parts(form);
        let begins = (0..parts).map(|part| Begins::of(memory, command, (part, parts)));
        let mut begins: Vec<Begins> = begins.collect();
        for row in 0..memory.frame.rows as usize {
            let mask = |call: u8| element(RING, &drawn[usize::from(call)], row);
            let indicator = |digit: usize, part: usize| {
                memory.get(command.src[(digit - 1) * parts + part], RING, row)
            };
            let cross = |terms: &[(u8, u8)]| {
                let digits = 1..=command.src.len() / parts;
                let all = digits.flat_map(|digit| terms.iter().map(move |(a, b)| (digit, *a, *b)));
                all.fold(0, |sum, (digit, a, b)| {
                    let of = &begins[usize::from(b)].next;
                    let behind = RING.sub(of[digit], of[0]);
                    RING.add(sum, RING.mul(indicator(digit, a.into()), behind))
                })
            };
            let mut components: Vec<u128> = begins.iter().map(|of| of.next[0]).collect();
            let mut terms = Vec::new();
            for of in form.crosses {
                let masks = of.masks.iter();
                let term = masks.fold(cross(of.terms), |sum, (call, minus)| {
                    let step = if *minus { Ring::sub } else { Ring::add };
                    step(RING, sum, mask(*call))
                });
                terms.push(term);
                let component = &mut components[usize::from(of.to)];
                *component = RING.add(*component, term);
            }
            for (call, to) in form.keeps {
                let component = &mut components[usize::from(*to)];
                *component = RING.add(*component, mask(*call));
            }
            for (part, of) in begins.iter_mut().enumerate() {
                of.pass((1..of.next.len()).map(|digit| indicator(digit, part)));
            }
            let written = rank::written(form).map(|part| components[part]);
            let messages = rank::messages(form).map(|cross| terms[cross]);
            for (to, value) in command.dst.iter().zip(written.chain(messages)) {
                memory.set(*to, RING, row, value);
            }
        }
        Ok(())
    }
}

/// Of a component, what the next row of each digit is at: S_t of digit t, from 0 on.
struct Begins {
    one: u128,
    next: Vec<u128>,
}

impl Begins {
    /// Before the first row: of each digit, how many rows have smaller ones.
    fn of(memory: &Memory, command: &Command, (part, parts): (usize, usize)) -> Self {
        let one = u128::from(command.constants >> part & 1);
        let rows = memory.frame.rows as usize;
        let totals = command.src.chunks(parts).map(|digit| {
            let cells = (0..rows).map(|row| memory.get(digit[part], RING, row));
            cells.fold(0, |sum, x| RING.add(sum, x))
        });
        let totals: Vec<u128> = totals.collect();
        let all = RING.mul(one, rows as u128);
        let zero = totals.iter().fold(all, |left, of| RING.sub(left, *of));
        let mut next = vec![0, zero];
        for of in &totals[..totals.len() - 1] {
            next.push(RING.add(next[next.len() - 1], *of));
        }
        Begins { one, next }
    }

    /// Behind a row of these indicators.
    fn pass(&mut self, indicators: impl Iterator<Item = u128>) {
        let mut zero = self.one;
        for (next, indicator) in self.next[1..].iter_mut().zip(indicators) {
            *next = RING.add(*next, indicator);
            zero = RING.sub(zero, indicator);
        }
        self.next[0] = RING.add(self.next[0], zero);
    }
}
