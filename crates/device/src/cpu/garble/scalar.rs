//! Any machine: gate by gate, by the formulas.

use super::super::tape::{NO_JOB_WIDE, NO_ROW, Product, Row, TapeOp};
use super::super::vector::Portable;
use super::super::workspace::Memory;
use super::dice::Dice;
use super::{Run, labels_of};
use crate::garble::{Gate, Table};
use crate::layout::{ColumnType, Span};

/// Labels of a workspace by row of the tape.
pub(super) struct Wires<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Offset of slot 0, and bytes from a slot to the next.
    slots: (usize, usize),
    /// The same of job-wide values.
    job_wide: (usize, usize),
    pub(super) rows: usize,
}

impl Wires<'_> {
    pub(super) fn get(&self, row: Row, k: usize) -> u128 {
        label(
            self.bytes,
            self.slots.0 + row as usize * self.slots.1 + 16 * k,
        )
    }

    pub(super) fn set(&mut self, row: Row, k: usize, value: u128) {
        let at = self.slots.0 + row as usize * self.slots.1 + 16 * k;
        self.bytes[at..][..16].copy_from_slice(&value.to_le_bytes());
    }

    fn job_value(&self, job_value: u32) -> u128 {
        if job_value == NO_JOB_WIDE {
            return 0;
        }
        label(
            self.bytes,
            self.job_wide.0 + job_value as usize * self.job_wide.1,
        )
    }

    /// A public 1 where each row has its own offset.
    fn add_offsets(&mut self, run: &Run<'_>, out: Row) {
        let Some(at) = run.each.as_ref().and_then(|each| each.offsets) else {
            return;
        };
        for k in 0..self.rows {
            self.set(out, k, self.get(out, k) ^ label(self.bytes, at + 16 * k));
        }
    }

    /// Δ and S of a row, and what its gates' numbers have of the row.
    fn circuit(&self, run: &Run<'_>, k: usize) -> (Option<u128>, u128, u32) {
        let Some(each) = &run.each else {
            return (run.offset, run.start, k as u32);
        };
        let own = |at: usize| label(self.bytes, at + 16 * k);
        (each.offsets.map(own), own(each.starts), 0)
    }

    /// out = the XOR of rows and of a label that all have.
    fn xor(&mut self, rows: &[Row], constant: u128, out: Row) {
        for k in 0..self.rows {
            let sum = rows
                .iter()
                .fold(constant, |sum, row| sum ^ self.get(*row, k));
            self.set(out, k, sum);
        }
    }
}

pub(super) fn label(bytes: &[u8], at: usize) -> u128 {
    let mut label = [0; 16];
    label.copy_from_slice(&bytes[at..at + 16]);
    u128::from_le_bytes(label)
}

/// Runs the tape.
pub(super) fn run(memory: &mut Memory, run: &Run<'_>, dice: &mut Dice) {
    let tape = run.tape;
    let of = |region: u16| {
        let strides = memory.all_strides[region as usize];
        let part = usize::from(run.part) * strides.component;
        (strides.offset + part, strides.column)
    };
    let mut wires = Wires {
        slots: of(tape.slots),
        job_wide: of(tape.job_wide),
        rows: memory.frame.rows as usize,
        bytes: memory.all_mut(),
    };
    for op in &tape.ops {
        match *op {
            TapeOp::Xors { start, len } => {
                for x in &tape.xors[start as usize..][..len as usize] {
                    let rows = [x.a, x.b, x.c];
                    let len = if x.c == NO_ROW { 2 } else { 3 };
                    wires.xor(&rows[..len], 0, x.out);
                }
            }
            TapeOp::Xor {
                start,
                len,
                one: bit,
                job_value,
                out,
            } => {
                let one = u128::from(bit).wrapping_neg() & run.one;
                let rows = &tape.srcs[start as usize..][..len as usize];
                wires.xor(rows, one ^ wires.job_value(job_value), out);
                if bit {
                    wires.add_offsets(run, out);
                }
            }
            TapeOp::Spread { job_value, out } => wires.xor(&[], wires.job_value(job_value), out),
            TapeOp::Products { start, len } => {
                let products = &tape.products[start as usize..][..len as usize];
                if let Some(masked) = &run.masked {
                    for product in products {
                        masked.product(&mut wires, run, product);
                    }
                    continue;
                }
                // SAFETY: every machine has these instructions.
                unsafe { dice.throw::<Portable>(run, products) };
                for (k, product) in products.iter().enumerate() {
                    gates(&mut wires, run, product, |row| dice.gate(k, row));
                }
            }
            // Of rings alone.
            _ => {}
        }
    }
}

fn gates(wires: &mut Wires<'_>, run: &Run<'_>, product: &Product, dice: impl Fn(usize) -> u8) {
    let (a, b) = run.tape.pairs[product.start as usize];
    for row in 0..wires.rows {
        let labels = [a, b].map(|wire| wires.get(wire, row));
        let number = run.first + u64::from(product.index);
        let (offset, start, of_row) = wires.circuit(run, row);
        let gate = Gate::new(run.scheme, start, number, of_row);
        let out = match offset {
            None => gate.evaluate(labels, &table(wires, run, product.index, row)),
            Some(offset) => {
                let (out, table) = gate.garble(offset, labels, dice(row));
                put_table(wires, run, product.index, row, &table);
                out
            }
        };
        wires.set(product.out, row, out);
    }
}

/// Offset of entry `k` of the table of a product, of kind `kind`, and its bytes.
fn entry(wires: &Wires<'_>, run: &Run<'_>, kind: usize, index: u32, k: u32) -> (usize, usize) {
    let (gates, count) = run.scheme.tables()[kind];
    let bytes = gates.bytes(wires.rows as u32) as usize;
    let number = index as usize * count as usize + k as usize;
    (run.tables[kind] + number * bytes, bytes)
}

/// Bytes of a label in a table.
fn label_bytes(run: &Run<'_>) -> usize {
    if run.scheme.tables()[0].0 == ColumnType::Halves {
        8
    } else {
        16
    }
}

fn put_table(wires: &mut Wires<'_>, run: &Run<'_>, index: u32, row: usize, table: &Table) {
    let size = label_bytes(run);
    for k in 0..run.scheme.tables()[0].1 {
        let at = entry(wires, run, 0, index, k).0 + row * size;
        let label = table.labels[k as usize].to_le_bytes();
        wires.bytes[at..][..size].copy_from_slice(&label[..size]);
    }
    let bits = run.scheme.tables().get(1).map_or(0, |(_, count)| *count);
    for k in 0..bits {
        let at = entry(wires, run, 1, index, k).0 + row / 8;
        // The first row of a byte clears the others, which do not all exist.
        let before = if row.is_multiple_of(8) {
            0
        } else {
            wires.bytes[at]
        };
        wires.bytes[at] = before | (table.bits >> k & 1) << (row % 8);
    }
}

fn table(wires: &Wires<'_>, run: &Run<'_>, index: u32, row: usize) -> Table {
    let (mut table, size) = (Table::default(), label_bytes(run));
    for k in 0..run.scheme.tables()[0].1 {
        let at = entry(wires, run, 0, index, k).0 + row * size;
        let mut label = [0; 16];
        label[..size].copy_from_slice(&wires.bytes[at..at + size]);
        table.labels[k as usize] = u128::from_le_bytes(label);
    }
    let bits = run.scheme.tables().get(1).map_or(0, |(_, count)| *count);
    for k in 0..bits {
        let at = entry(wires, run, 1, index, k).0 + row / 8;
        table.bits |= (wires.bytes[at] >> (row % 8) & 1) << k;
    }
    table
}

/// to = labels ⊕ bits · offset.
pub(super) fn encode(memory: &mut Memory, offset: u128, [labels, bits]: [Span; 2], to: Span) {
    let rows = labels_of(memory, to);
    for k in 0..to.count {
        let [(from, _), (bits, _), (to, _)] = [labels, bits, to].map(|span| memory.column(span, k));
        let bytes = memory.all_mut();
        for row in 0..rows {
            let bit = u128::from(bytes[bits + row / 8] >> (row % 8) & 1);
            let active = label(bytes, from + 16 * row) ^ (bit.wrapping_neg() & offset);
            bytes[to + 16 * row..][..16].copy_from_slice(&active.to_le_bytes());
        }
    }
}

/// to = bit 0 of every label.
pub(super) fn colour(memory: &mut Memory, labels: Span, to: Span) {
    let rows = labels_of(memory, labels);
    for k in 0..to.count {
        let [(from, _), (to, len)] = [labels, to].map(|span| memory.column(span, k));
        let bytes = memory.all_mut();
        for byte in 0..len {
            let rows = 8 * byte..rows.min(8 * byte + 8);
            bytes[to + byte] = rows.fold(0, |bits, row| {
                bits | (bytes[from + 16 * row] & 1) << (row % 8)
            });
        }
    }
}
