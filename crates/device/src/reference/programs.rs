//! Programs: every instruction over all rows, component by component.

use std::ops::Range;

use veil_math::Ring;
use zeroize::{Zeroize, Zeroizing};

use super::memory::element;
use super::{Memory, Reference};
use crate::command::{Command, Op};
use crate::layout::{ColumnType, Span};
use crate::program::{Dst, Instr, Program, Src};
use crate::{Cross, Fault, Form};

/// Most values that the temps of a program have in a workspace, 4 GiB: more is no plan of this planner.
const MOST_VALUES: u64 = 1 << 28;

impl Reference {
    /// Runs the program of a command.
    pub(super) fn program(
        &mut self,
        memory: &mut Memory,
        program: &Program,
        command: &Command,
    ) -> Result<(), Fault> {
        let ring = program.ring;
        let (rows, sums) = program.products();
        // Per kind of product, the packed bytes of each call.
        let mut drawn: [Vec<Zeroizing<Vec<u8>>>; 2] = [Vec::new(), Vec::new()];
        if let Op::Product(form) = command.op {
            for (k, call) in command.calls.iter().enumerate() {
                // There are calls for rows, and as many for sums; this was checked.
                let kind = usize::from(k >= form.calls());
                let (column, count) = [
                    (ColumnType::Rows(ring), rows),
                    (ColumnType::One(ring), sums),
                ][kind];
                drawn[kind].push(self.pseudorandom(memory, *call, column, count)?.into());
            }
        }
        let mut running = Running::new(memory, program, command, drawn)?;
        for instr in &program.code {
            running.instr(instr);
        }
        Ok(())
    }
}

/// A program that runs.
struct Running<'a> {
    memory: &'a mut Memory,
    program: &'a Program,
    command: &'a Command,
    ring: Ring,
    /// Components of every value.
    parts: u8,
    /// Elements of every component.
    cells: usize,
    /// `[temp][part][cell]`.
    temps: Vec<u128>,
    /// Drawn for products of rows, and for summed products: packed, `[call][column][row]`.
    drawn: [Vec<Zeroizing<Vec<u8>>>; 2],
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.temps.zeroize();
    }
}

/// A product that runs.
struct Product<'a> {
    form: &'static Form,
    pairs: &'a [(Src, Src)],
    /// Place in the messages and the calls.
    index: u32,
    /// Component 0 of the result.
    out: Span,
    /// Whether it is summed over the rows.
    summed: bool,
    /// Its column of each message that is none of its components.
    messages: Vec<Option<Span>>,
}

impl<'a> Running<'a> {
    fn new(
        memory: &'a mut Memory,
        program: &'a Program,
        command: &'a Command,
        drawn: [Vec<Zeroizing<Vec<u8>>>; 2],
    ) -> Result<Self, Fault> {
        let parts = memory.layout.regions[program.slots as usize].components;
        let cells = memory.cells(program.slots);
        let values = u64::from(program.temps) * u64::from(parts);
        let values = values.saturating_mul(cells as u64);
        if values > MOST_VALUES {
            let bytes = values.saturating_mul(16);
            return Err(Fault::TooLarge { bytes });
        }
        Ok(Running {
            ring: program.ring,
            parts,
            cells,
            temps: vec![0; values as usize],
            drawn,
            memory,
            program,
            command,
        })
    }

    fn slot(&self, first: u32, part: u8) -> Span {
        one(self.program.slots, part, first)
    }

    fn sum(&self, first: u32, part: u8) -> Span {
        one(self.program.sums, part, first)
    }

    fn at(&self, temp: u32, part: u8, cell: usize) -> usize {
        (temp as usize * self.parts as usize + part as usize) * self.cells + cell
    }

    fn read(&self, src: Src, part: u8, cell: usize) -> u128 {
        match src {
            Src::Slot(s) => self.memory.get(self.slot(s, part), self.ring, cell),
            Src::Temp(t) => self.temps[self.at(t, part, cell)],
            Src::JobWide(u) => {
                let from = one(self.program.job_wide, part, u);
                self.memory.get(from, self.ring, 0)
            }
        }
    }

    fn write(&mut self, dst: Dst, part: u8, cell: usize, value: u128) {
        match dst {
            Dst::Slot(s) => self.memory.set(self.slot(s, part), self.ring, cell, value),
            Dst::Temp(t) => {
                let at = self.at(t, part, cell);
                self.temps[at] = value;
            }
        }
    }

    fn instr(&mut self, instr: &Instr) {
        let ring = self.ring;
        match instr {
            Instr::Product { pairs, out, index } => {
                self.product(pairs, self.slot(*out, 0), *index, false);
            }
            Instr::ProductSum { pairs, out, index } => {
                self.product(pairs, self.sum(*out, 0), *index, true);
            }
            Instr::Sum(a, out) => {
                for part in 0..self.parts {
                    let cells = 0..self.cells;
                    let total = cells.fold(0, |t, cell| ring.add(t, self.read(*a, part, cell)));
                    self.memory.set(self.sum(*out, part), ring, 0, total);
                }
            }
            Instr::Add(a, b, out) => self.linear(*out, |of| ring.add(of.get(*a), of.get(*b))),
            Instr::Sub(a, b, out) => self.linear(*out, |of| ring.sub(of.get(*a), of.get(*b))),
            Instr::Plus(a, c, out) => {
                self.linear(*out, |of| ring.add(of.get(*a), of.constant(*c)));
            }
            Instr::Times(a, c, out) => {
                self.linear(*out, |of| ring.mul(of.get(*a), ring.reduce(*c)));
            }
            Instr::Copy(a, out) => self.linear(*out, |of| of.get(*a)),
            Instr::Constant(c, out) => self.linear(*out, |of| of.constant(*c)),
        }
    }

    /// The same at every cell of every component.
    fn linear(&mut self, out: Dst, value: impl Fn(At<'_, '_>) -> u128) {
        for part in 0..self.parts {
            for cell in 0..self.cells {
                let value = value(At {
                    running: self,
                    part,
                    cell,
                });
                self.write(out, part, cell, value);
            }
        }
    }

    /// A product with its trace, if there is one: of its operands as they are before the result is written.
    fn product(&mut self, pairs: &Range<u32>, out: Span, index: u32, summed: bool) {
        // A program with products runs as one; this was checked.
        let Op::Product(form) = self.command.op else {
            return;
        };
        let crosses = form.crosses.len();
        let messages = &self.command.dst[usize::from(summed) * crosses..][..crosses];
        let product = Product {
            form,
            pairs: &self.program.pairs[pairs.start as usize..pairs.end as usize],
            index,
            out,
            summed,
            messages: (messages.iter())
                .map(|m| (m.count > 0).then(|| m.column(index)))
                .collect(),
        };
        if let Some(trace) = self.command.trace() {
            self.trace(&product, trace);
        }
        if summed {
            let mut totals = vec![0; crosses];
            for cell in 0..self.cells {
                for (total, term) in totals.iter_mut().zip(self.crossed(&product, cell)) {
                    *total = self.ring.add(*total, term);
                }
            }
            self.result(&product, totals, 0, 1);
        } else {
            let packed = self.memory.cells(self.program.slots);
            for cell in 0..self.cells {
                let terms = self.crossed(&product, cell);
                self.result(&product, terms, cell, packed);
            }
        }
    }

    /// Cross terms at a cell, before they are masked.
    fn crossed(&self, product: &Product<'_>, cell: usize) -> Vec<u128> {
        let ring = self.ring;
        let cross = |cross: &Cross| {
            let terms = product.pairs.iter();
            let terms =
                terms.flat_map(|(a, b)| cross.terms.iter().map(move |(i, j)| (*a, *i, *b, *j)));
            terms.fold(0, |sum, (a, i, b, j)| {
                let (x, y) = (self.read(a, i, cell), self.read(b, j, cell));
                ring.add(sum, ring.mul(x, y))
            })
        };
        product.form.crosses.iter().map(cross).collect()
    }

    /// Masks cross terms, and writes messages and components of the result. Drawn columns have `cells` elements each.
    fn result(&mut self, product: &Product<'_>, mut terms: Vec<u128>, cell: usize, cells: usize) {
        let (ring, form) = (self.ring, product.form);
        let drawn = &self.drawn[usize::from(product.summed)];
        let call = |d: u8| drawn_at(ring, &drawn[usize::from(d)], product.index, cell, cells);
        let mut components = vec![0; self.parts as usize];
        for (k, cross) in form.crosses.iter().enumerate() {
            for &(d, minus) in cross.masks {
                terms[k] = if minus {
                    ring.sub(terms[k], call(d))
                } else {
                    ring.add(terms[k], call(d))
                };
            }
            if let Some(message) = product.messages[k] {
                self.memory.set(message, ring, cell, terms[k]);
            }
            let component = &mut components[usize::from(cross.to)];
            *component = ring.add(*component, terms[k]);
        }
        for &(d, component) in form.keeps {
            let component = &mut components[usize::from(component)];
            *component = ring.add(*component, call(d));
        }
        for part in (0..self.parts).filter(|part| form.writes() >> part & 1 == 1) {
            let to = Span {
                component: part,
                ..product.out
            };
            self.memory
                .set(to, ring, cell, components[usize::from(part)]);
        }
    }

    /// Keeps operands and masks of a product.
    fn trace(&mut self, product: &Product<'_>, trace: Span) {
        let ring = self.ring;
        let (a, b) = product.pairs[0];
        let to = |part| Span {
            component: part,
            ..trace.column(product.index)
        };
        let packed = self.memory.cells(trace.region);
        for cell in 0..self.cells {
            for (part, (src, component)) in (0..).zip([(a, 0), (a, 1), (b, 0), (b, 1)]) {
                let value = self.read(src, component, cell);
                self.memory.set(to(part), ring, cell, value);
            }
            for (part, drawn) in (4..).zip(&self.drawn[0]) {
                let mask = drawn_at(ring, drawn, product.index, cell, packed);
                self.memory.set(to(part), ring, cell, mask);
            }
        }
    }
}

/// A cell of a component, while a program runs.
struct At<'r, 'a> {
    running: &'r Running<'a>,
    part: u8,
    cell: usize,
}

impl At<'_, '_> {
    fn get(&self, src: Src) -> u128 {
        self.running.read(src, self.part, self.cell)
    }

    /// A public constant: on the components that the command names.
    fn constant(&self, c: u128) -> u128 {
        if self.running.command.constants >> self.part & 1 == 1 {
            self.running.ring.reduce(c)
        } else {
            0
        }
    }
}

fn one(region: u16, part: u8, first: u32) -> Span {
    Span {
        region,
        component: part,
        first,
        count: 1,
    }
}

/// Element `cell` of column `p` among drawn bytes, whose columns have `cells` elements each.
fn drawn_at(ring: Ring, bytes: &[u8], p: u32, cell: usize, cells: usize) -> u128 {
    let column = match ring {
        Ring::Bits => cells / 8,
        Ring::Z32 => cells * 4,
        Ring::Z64 => cells * 8,
        Ring::Z128 => cells * 16,
    };
    element(ring, &bytes[p as usize * column..][..column], cell)
}
