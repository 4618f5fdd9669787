//! The scalar device: every operation element by element, as it is defined, with the ledger of draws always on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sha2::Digest;
use subtle::ConstantTimeEq;
use veil_math::Ring;
use veil_prss::{Ledger, Prf};
use veil_session::{Frame, Secret, SessionId};
use zeroize::Zeroize;

mod proof;

use crate::command::{Command, Completion, Draw, KeyId, NO_PROGRAM, Op, Outcome, ProgramId, Tag};
use crate::layout::{Item, Layout, Place, Span};
use crate::program::{Dst, Instr, Needs, Program, Src};
use crate::{Bank, Cross, Device, Fault, hash, mac};

/// The reference device.
pub struct Reference {
    session: SessionId,
    keys: BTreeMap<KeyId, Prf>,
    programs: Vec<(Arc<Program>, Needs)>,
    banks: BTreeMap<u32, Memory>,
    opened: u32,
    done: VecDeque<Completion>,
    ledger: Ledger,
}

/// Most values that the temps of a program have in a bank, 4 GiB: more is no plan of this planner.
const MOST_VALUES: u64 = 1 << 28;

/// A bank: packed bytes `[part][item][row]` per region.
struct Memory {
    layout: Layout,
    frame: Frame,
    regions: Vec<Vec<u8>>,
}

impl Default for Reference {
    fn default() -> Self {
        Reference {
            session: SessionId([0; 32]),
            keys: BTreeMap::new(),
            programs: Vec::new(),
            banks: BTreeMap::new(),
            opened: 0,
            done: VecDeque::new(),
            ledger: Ledger::default(),
        }
    }
}

impl Memory {
    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let region = &self.layout.regions[span.region as usize];
        let item = region.item.bytes(self.frame.rows) as usize;
        let start = (span.part as usize * region.count as usize + span.first as usize) * item;
        start..start + span.count as usize * item
    }

    fn bytes(&self, span: Span) -> &[u8] {
        &self.regions[span.region as usize][self.range(span)]
    }

    fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        let range = self.range(span);
        &mut self.regions[span.region as usize][range]
    }

    fn item(&self, span: Span) -> Item {
        self.layout.regions[span.region as usize].item
    }

    /// Elements of an item: for bits whole bytes, so that padding bits of messages are defined too.
    fn cells(&self, region: u16) -> usize {
        match self.layout.regions[region as usize].item {
            Item::Rows(Ring::Bits) => self.frame.rows.div_ceil(8) as usize * 8,
            Item::Rows(_) => self.frame.rows as usize,
            Item::One(Ring::Bits) => 8,
            Item::One(_) => 1,
            Item::Bytes(n) => n as usize,
        }
    }

    fn get(&self, span: Span, ring: Ring, cell: usize) -> u128 {
        element(ring, self.bytes(Span { count: 1, ..span }), cell)
    }

    fn set(&mut self, span: Span, ring: Ring, cell: usize, value: u128) {
        let bytes = self.bytes_mut(Span { count: 1, ..span });
        match ring {
            Ring::Bits => {
                let bit = 1 << (cell % 8);
                bytes[cell / 8] = if value & 1 == 1 {
                    bytes[cell / 8] | bit
                } else {
                    bytes[cell / 8] & !bit
                };
            }
            Ring::Z64 => bytes[cell * 8..][..8].copy_from_slice(&(value as u64).to_le_bytes()),
            Ring::Z128 => bytes[cell * 16..][..16].copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// Element `cell` of a packed item.
fn element(ring: Ring, bytes: &[u8], cell: usize) -> u128 {
    match ring {
        Ring::Bits => u128::from(bytes[cell / 8] >> (cell % 8) & 1),
        Ring::Z64 => u64::from_le_bytes(bytes[cell * 8..][..8].try_into().expect("8 bytes")).into(),
        Ring::Z128 => u128::from_le_bytes(bytes[cell * 16..][..16].try_into().expect("16 bytes")),
    }
}

impl Reference {
    /// Packed bytes of items `0..count` of a draw.
    fn draw(
        &mut self,
        memory: &Memory,
        draw: Draw,
        item: Item,
        count: u32,
    ) -> Result<Vec<u8>, Fault> {
        let Frame {
            lane, chunk, rows, ..
        } = memory.frame;
        let bytes = item.bytes(rows) as usize;
        let stride = item.bytes(memory.layout.chunk_rows).div_ceil(16);
        let prf = self
            .keys
            .get(&draw.key)
            .ok_or(Fault::Unknown("the key of a draw"))?;
        let mut out = vec![0; bytes * count as usize];
        if bytes > 0 {
            for (p, piece) in out.chunks_mut(bytes).enumerate() {
                let ctr = draw.first + p as u64 * stride;
                self.ledger
                    .draw(draw.key.0, draw.tag, lane, chunk, ctr, stride)?;
                prf.stream(draw.tag, lane, ctr, chunk, piece);
            }
        }
        Ok(out)
    }

    fn run(&mut self, memory: &mut Memory, index: usize, command: &Command) -> Result<bool, Fault> {
        let program = command
            .program
            .and_then(|id| self.programs.get(id.0 as usize));
        let bank = (&memory.layout, memory.frame.rows);
        command.check(index, bank, program.map(|(_, needs)| needs))?;
        let program = program.map(|(program, _)| Arc::clone(program));
        match &command.op {
            Op::Linear | Op::Product(_) => {
                let program = program.ok_or(NO_PROGRAM)?;
                self.program(memory, &program, command)?;
            }
            Op::Scatter { part, add } => {
                let program = program.ok_or(NO_PROGRAM)?;
                let ring = program.ring;
                for instr in &program.code {
                    let (message, to, index) = match *instr {
                        Instr::Product { out, index, .. } => (0, (program.slots, out), index),
                        Instr::ProductSum { out, index, .. } => (1, (program.sums, out), index),
                        _ => continue,
                    };
                    let from = command.src[message];
                    let from = Span {
                        first: from.first + index,
                        count: 1,
                        ..from
                    };
                    let to = Span {
                        region: to.0,
                        part: *part,
                        first: to.1,
                        count: 1,
                    };
                    for cell in 0..memory.cells(to.region) {
                        let mut value = memory.get(from, ring, cell);
                        if *add {
                            value = ring.add(value, memory.get(to, ring, cell));
                        }
                        memory.set(to, ring, cell, value);
                    }
                }
            }
            Op::Random => {
                let (to, draw) = (command.dst[0], command.draws[0]);
                let item = memory.layout.regions[to.region as usize].item;
                let bytes = self.draw(memory, draw, item, to.count)?;
                memory.bytes_mut(to).copy_from_slice(&bytes);
            }
            Op::Combine { ring, minus } => {
                let to = command.dst[0];
                for item in 0..to.count {
                    for cell in 0..memory.cells(to.region) {
                        let mut sum = 0;
                        for (k, s) in command.src.iter().enumerate() {
                            let x = memory.get(
                                Span {
                                    first: s.first + item,
                                    ..*s
                                },
                                *ring,
                                cell,
                            );
                            sum = if minus >> k & 1 == 1 {
                                ring.sub(sum, x)
                            } else {
                                ring.add(sum, x)
                            };
                        }
                        memory.set(
                            Span {
                                first: to.first + item,
                                ..to
                            },
                            *ring,
                            cell,
                            sum,
                        );
                    }
                    let keep = memory.layout.regions[to.region as usize]
                        .item
                        .padding(memory.frame.rows);
                    if let Some(last) = memory
                        .bytes_mut(Span {
                            first: to.first + item,
                            count: 1,
                            ..to
                        })
                        .last_mut()
                    {
                        *last &= keep;
                    }
                }
            }
            Op::Hash { label } => {
                let mut digest = hash::start(&self.session, *label, memory.frame);
                command
                    .src
                    .iter()
                    .for_each(|s| digest.update(memory.bytes(*s)));
                memory
                    .bytes_mut(command.dst[0])
                    .copy_from_slice(&digest.finalize());
            }
            Op::Mac => {
                let (to, draw) = (command.dst[0], command.draws[0]);
                let mask = self.draw(memory, draw, Item::Bytes(mac::BLOCK as u32), 1)?;
                let prf = self.keys.get(&draw.key);
                let prf = prf.ok_or(Fault::Unknown("the key of a draw"))?;
                let mut hash = mac::Hash::new(&mac::hash_key(prf));
                command
                    .src
                    .iter()
                    .for_each(|s| hash.source(memory.bytes(*s)));
                let code = hash.finish();
                let to = memory.bytes_mut(to);
                for (k, byte) in to.iter_mut().enumerate() {
                    *byte = code[k] ^ mask[k];
                }
            }
            Op::Split { first } => {
                let (from, to) = (command.src[0], command.dst[0]);
                let (Item::Rows(ring) | Item::One(ring)) = memory.item(from) else {
                    unreachable!("it was checked")
                };
                let shared = matches!(memory.item(from), Item::One(_));
                for k in 0..to.count {
                    let to = Span {
                        first: to.first + k,
                        ..to
                    };
                    for cell in 0..memory.cells(to.region) {
                        let row = cell < memory.frame.rows as usize;
                        let from_cell = if shared || !row { 0 } else { cell };
                        let bit = memory.get(from, ring, from_cell) >> (first + k) & 1;
                        memory.set(to, Ring::Bits, cell, if row { bit } else { 0 });
                    }
                }
            }
            Op::Shift { by } => {
                let (from, to) = (command.src[0], command.dst[0]);
                let Item::Rows(ring) = memory.item(to) else {
                    unreachable!("it was checked")
                };
                let shared = matches!(memory.item(from), Item::One(_));
                for cell in 0..memory.cells(to.region) {
                    let value = memory.get(from, ring, if shared { 0 } else { cell });
                    memory.set(to, ring, cell, value >> by);
                }
            }
            Op::Lift => {
                let (from, to) = (command.src[0], command.dst[0]);
                let Item::Rows(ring) = memory.item(to) else {
                    unreachable!("it was checked")
                };
                for k in 0..to.count {
                    let at = |span: Span| Span {
                        first: span.first + k,
                        ..span
                    };
                    for cell in 0..memory.cells(to.region) {
                        let bit = memory.get(at(from), Ring::Bits, cell);
                        memory.set(at(to), ring, cell, bit);
                    }
                }
            }
            Op::CheckEqual => {
                let (a, b) = (command.src[0], command.src[1]);
                return Ok(bool::from(memory.bytes(a).ct_eq(memory.bytes(b))));
            }
            Op::Proof(step) => return self.proof(memory, *step, command),
        }
        Ok(true)
    }

    fn program(
        &mut self,
        memory: &mut Memory,
        program: &Program,
        command: &Command,
    ) -> Result<(), Fault> {
        let ring = program.ring;
        let (rows, sums) = program.products();
        // Per kind of product, the packed bytes of each draw.
        let mut drawn: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
        if let Op::Product(form) = command.op {
            for (k, draw) in command.draws.iter().enumerate() {
                // There are draws for rows, and as many for sums; this was checked.
                let kind = usize::from(k >= form.draws());
                let (item, count) = [(Item::Rows(ring), rows), (Item::One(ring), sums)][kind];
                drawn[kind].push(self.draw(memory, *draw, item, count)?);
            }
        }
        let parts = memory.layout.regions[program.slots as usize].parts;
        let cells = memory.cells(program.slots);
        let values = u64::from(program.temps) * u64::from(parts);
        let values = values.saturating_mul(cells as u64);
        if values > MOST_VALUES {
            let bytes = values.saturating_mul(16);
            return Err(Fault::TooLarge { bytes });
        }
        let mut temps = vec![0u128; values as usize];
        let at =
            |t: u32, part: u8, cell| (t as usize * parts as usize + part as usize) * cells + cell;
        let slot = |first, part| Span {
            region: program.slots,
            part,
            first,
            count: 1,
        };
        let sum = |first, part| Span {
            region: program.sums,
            part,
            first,
            count: 1,
        };
        let read = |memory: &Memory, temps: &[u128], src, part, cell| match src {
            Src::Slot(s) => memory.get(slot(s, part), ring, cell),
            Src::Temp(t) => temps[at(t, part, cell)],
            Src::Uniform(u) => memory.get(
                Span {
                    region: program.uniforms,
                    part,
                    first: u,
                    count: 1,
                },
                ring,
                0,
            ),
        };
        for instr in &program.code {
            match instr {
                Instr::Product { pairs, out, .. } | Instr::ProductSum { pairs, out, .. } => {
                    // A program with products runs as one; this was checked.
                    let Op::Product(form) = command.op else {
                        continue;
                    };
                    let row_product = matches!(instr, Instr::Product { .. });
                    let (Instr::Product { index: p, .. } | Instr::ProductSum { index: p, .. }) =
                        *instr
                    else {
                        unreachable!("matched above")
                    };
                    let kind = usize::from(!row_product);
                    let mut messages = Vec::with_capacity(form.crosses.len());
                    for k in 0..form.crosses.len() {
                        let message = command.dst[kind * form.crosses.len() + k];
                        messages.push(Span {
                            first: message.first + p,
                            count: 1,
                            ..message
                        });
                    }
                    // Cross terms at a cell, before they are masked.
                    let crossed = |memory: &Memory, cell| -> Vec<u128> {
                        let pairs = &program.pairs[pairs.start as usize..pairs.end as usize];
                        let cross = |cross: &Cross| {
                            let terms = pairs.iter().flat_map(|(a, b)| {
                                cross.terms.iter().map(move |(i, j)| (*a, *i, *b, *j))
                            });
                            terms.fold(0, |sum, (a, i, b, j)| {
                                let x = read(memory, &temps, a, i, cell);
                                let y = read(memory, &temps, b, j, cell);
                                ring.add(sum, ring.mul(x, y))
                            })
                        };
                        form.crosses.iter().map(cross).collect()
                    };
                    // Masks them, and gives messages and components of the result.
                    let result = |memory: &mut Memory, mut terms: Vec<u128>, cell, cells| {
                        let to = if row_product {
                            slot(*out, 0)
                        } else {
                            sum(*out, 0)
                        };
                        let draw =
                            |d: u8| drawn_at(ring, &drawn[kind][usize::from(d)], p, cell, cells);
                        let mut components = vec![0; parts as usize];
                        for (k, cross) in form.crosses.iter().enumerate() {
                            for &(d, minus) in cross.masks {
                                terms[k] = if minus {
                                    ring.sub(terms[k], draw(d))
                                } else {
                                    ring.add(terms[k], draw(d))
                                };
                            }
                            memory.set(messages[k], ring, cell, terms[k]);
                            let component = &mut components[usize::from(cross.to)];
                            *component = ring.add(*component, terms[k]);
                        }
                        for &(d, component) in form.keeps {
                            let component = &mut components[usize::from(component)];
                            *component = ring.add(*component, draw(d));
                        }
                        for part in (0..parts).filter(|part| form.writes() >> part & 1 == 1) {
                            memory.set(
                                Span { part, ..to },
                                ring,
                                cell,
                                components[usize::from(part)],
                            );
                        }
                    };
                    if let Some(trace) = command.trace() {
                        let (a, b) = program.pairs[pairs.start as usize];
                        let item = |part| Span {
                            first: trace.first + p,
                            count: 1,
                            part,
                            ..trace
                        };
                        let packed = memory.cells(trace.region);
                        for cell in 0..cells {
                            let parts = [(a, 0), (a, 1), (b, 0), (b, 1)];
                            for (to, (src, part)) in (0..).zip(parts) {
                                let value = read(memory, &temps, src, part, cell);
                                memory.set(item(to), ring, cell, value);
                            }
                            for (to, drawn) in (4..).zip(&drawn[0]) {
                                let mask = drawn_at(ring, drawn, p, cell, packed);
                                memory.set(item(to), ring, cell, mask);
                            }
                        }
                    }
                    if row_product {
                        let packed = memory.cells(messages[0].region);
                        for cell in 0..cells {
                            let terms = crossed(memory, cell);
                            result(memory, terms, cell, packed);
                        }
                    } else {
                        let mut totals = vec![0; form.crosses.len()];
                        for cell in 0..cells {
                            for (total, term) in totals.iter_mut().zip(crossed(memory, cell)) {
                                *total = ring.add(*total, term);
                            }
                        }
                        result(memory, totals, 0, 1);
                    }
                }
                Instr::Sum(a, out) => {
                    for part in 0..parts {
                        let total = (0..cells)
                            .fold(0, |t, c| ring.add(t, read(memory, &temps, *a, part, c)));
                        memory.set(sum(*out, part), ring, 0, total);
                    }
                }
                Instr::Add(..)
                | Instr::Sub(..)
                | Instr::Plus(..)
                | Instr::Times(..)
                | Instr::Copy(..)
                | Instr::Constant(..) => {
                    for part in 0..parts {
                        let constant = |c: u128| {
                            if command.constants >> part & 1 == 1 {
                                ring.reduce(c)
                            } else {
                                0
                            }
                        };
                        for cell in 0..cells {
                            let get = |src| read(memory, &temps, src, part, cell);
                            let (value, out) = match *instr {
                                Instr::Add(a, b, out) => (ring.add(get(a), get(b)), out),
                                Instr::Sub(a, b, out) => (ring.sub(get(a), get(b)), out),
                                Instr::Plus(a, c, out) => (ring.add(get(a), constant(c)), out),
                                Instr::Times(a, c, out) => (ring.mul(get(a), ring.reduce(c)), out),
                                Instr::Copy(a, out) => (get(a), out),
                                Instr::Constant(c, out) => (constant(c), out),
                                _ => unreachable!("matched above"),
                            };
                            match out {
                                Dst::Slot(s) => memory.set(slot(s, part), ring, cell, value),
                                Dst::Temp(t) => temps[at(t, part, cell)] = value,
                            }
                        }
                    }
                }
            }
        }
        temps.zeroize();
        Ok(())
    }
}

/// Element `cell` of item `p` among drawn bytes, whose items have `cells` elements each.
fn drawn_at(ring: Ring, bytes: &[u8], p: u32, cell: usize, cells: usize) -> u128 {
    let item = match ring {
        Ring::Bits => cells / 8,
        Ring::Z64 => cells * 8,
        Ring::Z128 => cells * 16,
    };
    element(ring, &bytes[p as usize * item..][..item], cell)
}

impl Device for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn bind(&mut self, session: SessionId) {
        self.session = session;
        self.ledger = Ledger::default();
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        self.keys.insert(id, Prf::new(key));
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let needs = Needs::of(program, layout)?;
        self.programs.push((Arc::clone(program), needs));
        Ok(ProgramId(self.programs.len() as u32 - 1))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault> {
        let size = |r: &crate::Region| {
            r.item.bytes(frame.rows) as usize * r.parts as usize * r.count as usize
        };
        let regions = layout.regions.iter().map(|r| vec![0; size(r)]).collect();
        let bank = self.opened;
        self.opened += 1;
        self.banks.insert(
            bank,
            Memory {
                layout: layout.clone(),
                frame,
                regions,
            },
        );
        Ok(Bank(bank))
    }

    fn close(&mut self, bank: Bank) {
        if let Some(mut memory) = self.banks.remove(&bank.0) {
            memory.regions.zeroize();
        }
    }

    fn write(&mut self, bank: Bank, to: Span, bytes: &[u8]) -> Result<(), Fault> {
        let into = self.map(bank, to)?;
        if into.len() != bytes.len() {
            return Err(Fault::Shape {
                command: 0,
                what: "written bytes do not fill the span",
            });
        }
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn map(&mut self, bank: Bank, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self
            .banks
            .get_mut(&bank.0)
            .ok_or(Fault::Unknown("the bank"))?;
        if !memory.layout.contains(to)
            || memory.layout.regions[to.region as usize].place != Place::Mapped
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes_mut(to))
    }

    fn view(&self, bank: Bank, from: Span) -> Result<&[u8], Fault> {
        let memory = self.banks.get(&bank.0).ok_or(Fault::Unknown("the bank"))?;
        if !memory.layout.contains(from)
            || memory.layout.regions[from.region as usize].place == Place::Resident
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes(from))
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let mut memory = self
            .banks
            .remove(&bank.0)
            .ok_or(Fault::Unknown("the bank"))?;
        let mut outcome = Ok(Outcome::Done);
        for (index, command) in batch.iter().enumerate() {
            match self.run(&mut memory, index, command) {
                Ok(true) => {}
                Ok(false) => outcome = Ok(Outcome::Mismatch { command: index }),
                Err(fault) => outcome = Err(fault),
            }
            if outcome != Ok(Outcome::Done) {
                break;
            }
        }
        self.banks.insert(bank.0, memory);
        self.done.push_back(Completion {
            tag,
            outcome: outcome?,
        });
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    fn wipe(&mut self) {
        self.banks.values_mut().for_each(|m| m.regions.zeroize());
        self.banks.clear();
        self.keys.clear();
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.wipe();
    }
}
