//! Labels: programs at the garbler and at the evaluator, gate by gate and row by row.

use veil_math::Ring;
use veil_prss::Prf;
use zeroize::{Zeroize, Zeroizing};

use super::{Memory, Reference};
use crate::Fault;
use crate::command::{Command, KeyId, NO_PROGRAM, Op, ProgramId};
use crate::garble::{Garbling, Gate, NO_OFFSET, Table, colour};
use crate::layout::{ColumnType, Span};
use crate::program::{Dst, Instr, Program, Src};
use crate::repeat::Repeat;

/// Offsets and start points: of one circuit for all rows, or of a circuit for each row.
pub(super) struct Circuits {
    /// The garbler's.
    offsets: Option<Zeroizing<Vec<u128>>>,
    starts: Vec<u128>,
    /// Whether each row is a circuit.
    each: bool,
}

impl Circuits {
    fn one(offset: Option<u128>, start: u128) -> Self {
        Circuits {
            offsets: offset.map(|offset| Zeroizing::new(vec![offset])),
            starts: vec![start],
            each: false,
        }
    }

    /// Those of rows.
    pub(super) fn each(memory: &Memory, offsets: Option<Span>, starts: Span) -> Self {
        let rows = 0..memory.frame.rows as usize;
        let labels = |span| {
            rows.clone()
                .map(move |row| memory.label(span, row))
                .collect()
        };
        Circuits {
            offsets: offsets.map(|span| Zeroizing::new(labels(span))),
            starts: labels(starts),
            each: true,
        }
    }

    /// Δ and S of a row, and what its gates' numbers have of the row.
    fn of(&self, row: usize) -> (Option<u128>, u128, u32) {
        let (at, number) = if self.each { (row, 0) } else { (0, row as u32) };
        (
            self.offsets.as_ref().map(|of| of[at]),
            self.starts[at],
            number,
        )
    }
}

/// Most labels that the temps of a program have in a workspace, 4 GiB.
const MOST_LABELS: u64 = 1 << 28;

impl Reference {
    /// The offset of the garbler.
    pub(super) fn offset(&self, key: KeyId) -> Result<u128, Fault> {
        let secret = self.secrets.get(&key).ok_or(NO_OFFSET)?;
        let offset = u128::from_le_bytes(*secret.expose());
        if offset & 1 == 1 {
            Ok(offset)
        } else {
            Err(NO_OFFSET)
        }
    }

    /// Does a command about labels.
    pub(super) fn labels(&mut self, memory: &mut Memory, command: &Command) -> Result<(), Fault> {
        match command.op {
            Op::Garble { scheme, offset } => {
                let offset = self.offset(offset)?;
                self.gates(memory, command, scheme, Some(offset))
            }
            Op::Evaluate { scheme } => self.gates(memory, command, scheme, None),
            Op::Encode { offset } => {
                let offset = self.offset(offset)?;
                memory.encode(offset, command.src[0], command.src[1], command.dst[0]);
                Ok(())
            }
            _ => {
                memory.colour(command.src[0], command.dst[0]);
                Ok(())
            }
        }
    }

    /// Clears what was repeated and does not live.
    pub(super) fn forget(&self, memory: &mut Memory, repeat: &Repeat) {
        let needs = |id: ProgramId| self.programs.get(id.0 as usize).map(|(_, needs)| needs);
        for span in repeat.dead(needs) {
            memory.bytes_mut(span).zeroize();
        }
    }

    /// Runs a program: as the garbler, who has the offset, or as the evaluator.
    fn gates(
        &mut self,
        memory: &mut Memory,
        command: &Command,
        scheme: Garbling,
        offset: Option<u128>,
    ) -> Result<(), Fault> {
        let id = command.program.ok_or(NO_PROGRAM)?;
        let program = self.programs[id.0 as usize].0.clone();
        let (products, _) = program.products();
        let (mut start, mut first, mut dice) = (0, 0, Zeroizing::new(Vec::new()));
        if products > 0 {
            let call = command.calls[0];
            let frame = memory.frame;
            // No gate has a number that another one of the chunk has: their tweaks would be the same.
            self.ledger.record_call(
                call.key.0,
                call.tag,
                frame.lane,
                frame.chunk,
                call.first,
                products.into(),
            )?;
            start = scheme.start(self.prf(call.key)?, call.tag, frame);
            first = call.first;
            if offset.is_some() && scheme.dice(1) > 0 {
                dice = self.dice(memory, command, scheme, products)?;
            }
        }
        let messages = if offset.is_some() {
            &command.dst
        } else {
            &command.src
        };
        let circuits = Circuits::one(offset, start);
        run(memory, &program, (scheme, circuits, first), messages, dice)
    }

    /// Runs a program under the offset and start point of each row, by a scheme without dice.
    pub(super) fn run_labels(
        &self,
        memory: &mut Memory,
        command: &Command,
        of: (Garbling, Circuits, u64),
        messages: &[Span],
    ) -> Result<(), Fault> {
        let id = command.program.ok_or(NO_PROGRAM)?;
        let program = &self.programs[id.0 as usize].0;
        run(memory, program, of, messages, Zeroizing::default())
    }

    pub(super) fn prf(&self, key: KeyId) -> Result<&Prf, Fault> {
        let prf = self.keys.get(&key);
        prf.ok_or(Fault::Unknown("the key of a draw"))
    }

    /// Two bits of each row of each product, in bits 0 and 1: `[product][row]`.
    fn dice(
        &mut self,
        memory: &Memory,
        command: &Command,
        scheme: Garbling,
        products: u32,
    ) -> Result<Zeroizing<Vec<u8>>, Fault> {
        let (call, frame) = (command.calls[1], memory.frame);
        let stride = scheme.dice(memory.layout.chunk_rows);
        let rows = frame.rows as usize;
        let mut dice = Zeroizing::new(Vec::with_capacity(products as usize * rows));
        let mut bytes = Zeroizing::new(vec![0; rows.div_ceil(4)]);
        for product in 0..u64::from(products) {
            let counter = call.first + product * stride;
            self.ledger.record_call(
                call.key.0,
                call.tag,
                frame.lane,
                frame.chunk,
                counter,
                stride,
            )?;
            self.prf(call.key)?
                .stream(call.tag, frame.lane, counter, frame.chunk, &mut bytes);
            dice.extend((0..rows).map(|row| bytes[row / 4] >> (row % 4 * 2) & 3));
        }
        Ok(dice)
    }
}

/// Runs a program whose product 0 is gate `first`.
fn run(
    memory: &mut Memory,
    program: &Program,
    (scheme, circuits, first): (Garbling, Circuits, u64),
    messages: &[Span],
    dice: Zeroizing<Vec<u8>>,
) -> Result<(), Fault> {
    let tables = Tables {
        rows: memory.frame.rows as usize,
        messages,
        circuits,
        scheme,
        first,
        dice,
    };
    walk(memory, program, 0, tables)
}

/// What a program over labels makes of its products and of a public 1.
pub(super) trait Products {
    /// What a public 1 adds to a value of row `row`.
    fn one(&self, row: usize) -> u128;
    /// The result of product `index` in row `row`.
    fn product(&mut self, memory: &mut Memory, index: u32, row: usize, operands: [u128; 2])
    -> u128;
}

/// Runs a program over labels on component `part` of its slots.
pub(super) fn walk(
    memory: &mut Memory,
    program: &Program,
    part: u8,
    products: impl Products,
) -> Result<(), Fault> {
    let rows = memory.frame.rows as usize;
    let temps = u64::from(program.temps).saturating_mul(rows as u64);
    if temps > MOST_LABELS {
        return Err(Fault::TooLarge { bytes: 16 * temps });
    }
    let mut running = Running {
        temps: vec![0; temps as usize],
        memory,
        program,
        part,
        products,
        rows,
    };
    for instr in &program.code {
        running.instr(instr);
    }
    Ok(())
}

/// A program over labels that runs.
struct Running<'a, P> {
    memory: &'a mut Memory,
    program: &'a Program,
    part: u8,
    products: P,
    rows: usize,
    /// `[temp][row]`.
    temps: Vec<u128>,
}

impl<P> Drop for Running<'_, P> {
    fn drop(&mut self) {
        self.temps.zeroize();
    }
}

impl<P: Products> Running<'_, P> {
    fn column(&self, region: u16, first: u32) -> Span {
        Span {
            region,
            component: self.part,
            first,
            count: 1,
        }
    }

    fn read(&self, src: Src, row: usize) -> u128 {
        match src {
            Src::Slot(s) => self.memory.label(self.column(self.program.slots, s), row),
            Src::Temp(t) => self.temps[t as usize * self.rows + row],
            Src::JobWide(u) => self.memory.label(self.column(self.program.job_wide, u), 0),
        }
    }

    fn write(&mut self, dst: Dst, row: usize, label: u128) {
        match dst {
            Dst::Slot(s) => {
                let to = self.column(self.program.slots, s);
                self.memory.set_label(to, row, label);
            }
            Dst::Temp(t) => self.temps[t as usize * self.rows + row] = label,
        }
    }

    fn instr(&mut self, instr: &Instr) {
        for row in 0..self.rows {
            let offset = self.products.one(row);
            let one = |c: u128| (c & 1).wrapping_neg() & offset;
            let (label, out) = match *instr {
                Instr::Add(a, b, out) | Instr::Sub(a, b, out) => {
                    (self.read(a, row) ^ self.read(b, row), out)
                }
                Instr::Plus(a, c, out) => (self.read(a, row) ^ one(c), out),
                Instr::Times(a, c, out) => (self.read(a, row) & colour(c), out),
                Instr::Copy(a, out) => (self.read(a, row), out),
                Instr::Constant(c, out) => (one(c), out),
                Instr::Product {
                    ref pairs,
                    out,
                    index,
                } => {
                    let (a, b) = self.program.pairs[pairs.start as usize];
                    let operands = [a, b].map(|src| self.read(src, row));
                    let made = self.products.product(self.memory, index, row, operands);
                    (made, Dst::Slot(out))
                }
                // Bits have no sums; this was checked.
                Instr::ProductSum { .. } | Instr::Sum(..) => continue,
            };
            self.write(out, row, label);
        }
    }
}

/// Products as gates with tables.
struct Tables<'a> {
    circuits: Circuits,
    scheme: Garbling,
    /// Number of product 0.
    first: u64,
    rows: usize,
    messages: &'a [Span],
    /// `[product][row]`.
    dice: Zeroizing<Vec<u8>>,
}

impl Products for Tables<'_> {
    fn one(&self, row: usize) -> u128 {
        // Nothing at the evaluator.
        self.circuits.of(row).0.unwrap_or(0)
    }

    fn product(&mut self, memory: &mut Memory, index: u32, row: usize, labels: [u128; 2]) -> u128 {
        let product = self.first + u64::from(index);
        let (offset, start, number) = self.circuits.of(row);
        let gate = Gate::new(self.scheme, start, product, number);
        let Some(offset) = offset else {
            return gate.evaluate(labels, &self.table(memory, index, row));
        };
        let at = index as usize * self.rows + row;
        let dice = self.dice.get(at).copied().unwrap_or(0);
        let (out, table) = gate.garble(offset, labels, dice);
        self.put_table(memory, index, row, &table);
        out
    }
}

impl Tables<'_> {
    /// Where entry `k` of kind `kind` of a product's table is.
    fn entry(&self, kind: usize, index: u32, k: u32) -> Span {
        let (_, count) = self.scheme.tables()[kind];
        self.messages[kind].column(index * count + k)
    }

    fn put_table(&self, memory: &mut Memory, index: u32, row: usize, table: &Table) {
        let (kind, count) = self.scheme.tables()[0];
        for k in 0..count {
            let (to, label) = (self.entry(0, index, k), table.labels[k as usize]);
            match kind {
                ColumnType::Halves => memory.set(to, Ring::Z64, row, label),
                _ => memory.set_label(to, row, label),
            }
        }
        if let Some((_, count)) = self.scheme.tables().get(1) {
            for k in 0..*count {
                let to = self.entry(1, index, k);
                let bit = u128::from(table.bits >> k & 1);
                memory.set(to, Ring::Bits, row, bit);
                memory.clear_padding(to);
            }
        }
    }

    fn table(&self, memory: &Memory, index: u32, row: usize) -> Table {
        let mut table = Table::default();
        let (kind, count) = self.scheme.tables()[0];
        for k in 0..count {
            let from = self.entry(0, index, k);
            table.labels[k as usize] = match kind {
                ColumnType::Halves => memory.get(from, Ring::Z64, row),
                _ => memory.label(from, row),
            };
        }
        if let Some((_, count)) = self.scheme.tables().get(1) {
            for k in 0..*count {
                let bit = memory.get(self.entry(1, index, k), Ring::Bits, row);
                table.bits |= (bit as u8) << k;
            }
        }
        table
    }
}

impl Memory {
    pub(super) fn label(&self, span: Span, row: usize) -> u128 {
        self.get(span, Ring::Z128, row)
    }

    pub(super) fn set_label(&mut self, span: Span, row: usize, label: u128) {
        self.set(span, Ring::Z128, row, label);
    }

    /// Clears the bits beyond the last row of a column.
    fn clear_padding(&mut self, span: Span) {
        let keep = self.column(span).padding(self.frame.rows);
        if let Some(last) = self.bytes_mut(span).last_mut() {
            *last &= keep;
        }
    }

    /// Labels of a column.
    fn labels_of(&self, span: Span) -> usize {
        match self.column(span) {
            ColumnType::Label => 1,
            _ => self.frame.rows as usize,
        }
    }

    fn encode(&mut self, offset: u128, labels: Span, bits: Span, to: Span) {
        for k in 0..to.count {
            for row in 0..self.labels_of(to) {
                let bit = self.get(bits.column(k), Ring::Bits, row);
                let label = self.label(labels.column(k), row) ^ (bit.wrapping_neg() & offset);
                self.set_label(to.column(k), row, label);
            }
        }
    }

    fn colour(&mut self, labels: Span, to: Span) {
        for k in 0..to.count {
            for row in 0..self.labels_of(labels) {
                let label = self.label(labels.column(k), row);
                self.set(to.column(k), Ring::Bits, row, label & 1);
            }
            self.clear_padding(to.column(k));
        }
    }

    /// XOR of labels.
    pub(super) fn combine_labels(&mut self, command: &Command) {
        let all = command.dst[0];
        for k in 0..all.count {
            for row in 0..self.labels_of(all) {
                let sources = command.src.iter();
                let sum = sources.fold(0, |sum, from| sum ^ self.label(from.column(k), row));
                self.set_label(all.column(k), row, sum);
            }
        }
    }
}
