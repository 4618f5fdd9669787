//! The device: banks of the host, and garbling commands on a core.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use veil_device::{
    Bank, Command, Completion, Cpu, Device, Fault, Garbling, Gates, Instr, Layout, Op, Outcome,
    Program, ProgramId, Repeat, Span, Tag,
};
use zeroize::Zeroizing;

use crate::Absent;
use crate::assembled::{Assembled, Loaded, ROWS};
use crate::cycles::{self, Loop};
use crate::driver::{CardError, Garbler, Run, Streams};
use crate::garble::body::Of;
use crate::garble::cycles::{Cycle, Programs};
use crate::sim::Stalls;

/// Name of the simulated device.
const SIMULATED: &str = "fpga-sim";

/// Bodies of which it is known how the core runs them, at most.
const LOOPS: usize = 16;

/// What the card was given last.
enum OnCard {
    Program(ProgramId),
    Loop(Arc<Loop>),
}

/// A host with a garbler on a card.
pub struct Fpga {
    host: Cpu,
    garbler: Garbler,
    /// Programs with products.
    programs: BTreeMap<ProgramId, Arc<Loaded>>,
    assembled: Assembled,
    /// All programs over labels.
    labels: Programs,
    /// Bodies that were repeated, and how the core runs them, if it does.
    loops: Vec<(Repeat, Option<Arc<Loop>>)>,
    overlapped: u64,
    /// The program that the card has.
    on_card: Option<OnCard>,
    done: VecDeque<Completion>,
}

impl Fpga {
    /// A simulated card whose garbler has two rows.
    pub fn simulated() -> Result<Self, Absent> {
        Ok(Self::with(Garbler::simulated(2, Stalls::default())?))
    }

    /// The same, taking programs that others have assembled.
    #[must_use]
    pub fn sharing(self, assembled: &Assembled) -> Self {
        Fpga {
            assembled: assembled.clone(),
            ..self
        }
    }

    /// With this garbler.
    pub fn with(garbler: Garbler) -> Self {
        Fpga {
            host: Cpu::detect(),
            garbler,
            programs: BTreeMap::new(),
            assembled: Assembled::default(),
            labels: Programs::new(),
            loops: Vec::new(),
            overlapped: 0,
            on_card: None,
            done: VecDeque::new(),
        }
    }

    /// Repetitions that were parts of one run with others.
    pub fn overlapped(&self) -> u64 {
        self.overlapped
    }

    /// Cycles that the core has run so far.
    pub fn cycles(&self) -> u64 {
        self.garbler.cycles()
    }

    /// Whether the core does a command.
    fn takes(&self, command: &Command) -> bool {
        matches!(
            command.op,
            Op::Garble {
                scheme: Garbling::HalfGates,
                ..
            }
        ) && command
            .program
            .is_some_and(|id| self.programs.contains_key(&id))
    }

    /// Does a garbling command on the core.
    fn garble(&mut self, bank: Bank, index: usize, command: &Command) -> Result<(), Fault> {
        let mut gates = self.host.gates_beside(bank, index, command)?;
        let found = command
            .program
            .and_then(|id| Some((id, self.programs.get(&id)?)));
        let (id, loaded) = found.ok_or(Fault::Unknown("the program of a command"))?;
        if !matches!(self.on_card, Some(OnCard::Program(there)) if there == id) {
            self.on_card = None;
            self.garbler
                .load(&loaded.image)
                .map_err(|error| failed(&error))?;
            self.on_card = Some(OnCard::Program(id));
        }
        let rows = gates.frame().rows;
        let mut from = 0;
        while from < rows {
            let until = rows.min(from + ROWS);
            loaded.run(&mut self.garbler, &mut gates, (from, until), command.dst[0])?;
            from = until;
        }
        Ok(())
    }
}

impl Fpga {
    /// How the core runs these commands as a loop, if that takes it no longer than one after the other.
    fn looped(&mut self, repeat: &Repeat, rows: u32) -> Option<Arc<Loop>> {
        let shape = cycles::shape(repeat);
        let known = self.loops.iter().position(|(other, _)| *other == shape);
        let at = known.unwrap_or_else(|| {
            let found = Cycle::of(repeat, &self.labels)
                .and_then(|cycle| Loop::of(cycle, self.garbler.capacity(), repeat.count.max(2)));
            if self.loops.len() == LOOPS {
                self.loops.remove(0);
            }
            self.loops.push((shape, found.map(Arc::new)));
            self.loops.len() - 1
        });
        let found = self.loops[at].1.as_ref()?;
        let ids = repeat.body.iter().filter_map(|step| step.command.program);
        let images = ids.filter_map(|id| self.programs.get(&id));
        let alone: u64 = images
            .map(|loaded| cycles::clock(&loaded.image, rows))
            .sum();
        let together = found.clock(repeat.count, rows);
        let worth = together <= alone.saturating_mul(repeat.count.into());
        (worth && found.takes(repeat, rows)).then(|| Arc::clone(found))
    }

    /// Does commands that are repeated: as one run of the core, or one after the other.
    fn repeat(
        &mut self,
        bank: Bank,
        (index, command): (usize, &Command),
        repeat: &Repeat,
        tag: Tag,
    ) -> Result<(), Fault> {
        let rows = self.host.repeats_beside(bank, index, command)?;
        let Some(found) = self.looped(repeat, rows) else {
            for repetition in 0..repeat.count {
                let commands = repeat.body.iter().map(|step| step.at(repetition));
                let commands: Vec<Command> = commands.collect();
                self.batch(bank, &commands, tag)?;
            }
            return self.host.clear_beside(bank, repeat);
        };
        if !matches!(&self.on_card, Some(OnCard::Loop(there)) if Arc::ptr_eq(there, &found)) {
            self.on_card = None;
            let loaded = self.garbler.load(&found.image);
            loaded.map_err(|error| failed(&error))?;
            self.on_card = Some(OnCard::Loop(Arc::clone(&found)));
        }
        let garbles = &repeat.body[found.cycle.garbles].command;
        let mut gates = self.host.gates_beside(bank, index, garbles)?;
        let leaving = found.run(&mut self.garbler, &mut gates, repeat);
        let leaving = leaving.map_err(|error| failed(&error))?;
        self.overlapped += u64::from(repeat.count);
        for repetition in leaving.repetitions() {
            let mut gates = self.host.gates_beside(bank, index, garbles)?;
            leaving.put(&found, &mut gates, repetition);
            let colours = found.cycle.colours.iter();
            let colours = colours.map(|step| repeat.body[*step].at(repetition));
            let colours: Vec<Command> = colours.collect();
            self.batch(bank, &colours, tag)?;
        }
        self.host.clear_beside(bank, repeat)
    }

    /// Does commands, those of the core and those of the host; says which comparison failed, if one did.
    fn batch(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<Outcome, Fault> {
        let mut at = 0;
        while at < batch.len() {
            if let Op::Repeat(repeat) = &batch[at].op {
                self.repeat(bank, (at, &batch[at]), &Arc::clone(repeat), tag)?;
                at += 1;
                continue;
            }
            if self.takes(&batch[at]) {
                self.garble(bank, at, &batch[at])?;
                at += 1;
                continue;
            }
            let rest = &batch[at..];
            let own =
                |command: &Command| self.takes(command) || matches!(command.op, Op::Repeat(_));
            let count = rest.iter().position(own).unwrap_or(rest.len());
            self.host.submit(bank, &rest[..count], tag)?;
            match self.host.poll().map(|ended| ended.outcome) {
                Some(Outcome::Mismatch { command }) => {
                    return Ok(Outcome::Mismatch {
                        command: at + command,
                    });
                }
                Some(Outcome::Done) => at += count,
                None => return Err(Fault::Unknown("the completion of a batch")),
            }
        }
        Ok(Outcome::Done)
    }
}

impl Loaded {
    /// Garbles rows `from` to `until`.
    fn run(
        &self,
        garbler: &mut Garbler,
        gates: &mut Gates<'_>,
        (from, until): (u32, u32),
        tables: Span,
    ) -> Result<(), Fault> {
        let rows = from as usize..until as usize;
        let labels = self.labels(gates, rows.clone());
        let mut made = Vec::new();
        let mut leaves = Zeroizing::new(Vec::new());
        let run = Run {
            repetitions: until - from,
            first: gates.first,
            instance: from as u16,
            rows: true,
            leave_from: 0,
        };
        let mut streams = Streams {
            labels: labels.as_flattened(),
            tables: &mut made,
            leaves: &mut leaves,
        };
        let secrets = (*gates.offset, *gates.start);
        garbler
            .run(&self.image, &run, secrets, &mut streams)
            .map_err(|error| failed(&error))?;
        // The tables of a row come one after the other; a message has those of a product side by side.
        let halves = made.as_chunks::<16>().0;
        let of_row = 2 * self.image.products as usize;
        for half in 0..of_row {
            let column = gates.labels_mut(tables.region, tables.first + half as u32);
            for (to, row) in column[rows.clone()]
                .iter_mut()
                .zip(halves.chunks_exact(of_row))
            {
                *to = row[half];
            }
        }
        self.write(gates, rows, leaves.as_chunks().0);
        Ok(())
    }

    /// The labels that the core takes: those that all rows share, then those of each row.
    fn labels(&self, gates: &Gates<'_>, rows: std::ops::Range<usize>) -> Zeroizing<Vec<[u8; 16]>> {
        let (image, layer) = (&self.image, &self.layer);
        let shared = image.run_inputs.len();
        let each = image.each_inputs.len();
        let mut labels = Zeroizing::new(vec![[0; 16]; shared + each * rows.len()]);
        for (to, input) in labels.iter_mut().zip(&image.run_inputs) {
            *to = gates.labels(self.program.uniforms, layer.uniforms[*input as usize])[0];
        }
        for (k, input) in image.each_inputs.iter().enumerate() {
            let column = gates.labels(self.program.slots, layer.reads[*input as usize]);
            let places = labels[shared..].iter_mut().skip(k).step_by(each);
            for (to, label) in places.zip(&column[rows.clone()]) {
                *to = *label;
            }
        }
        labels
    }

    /// Writes the slots that the program writes.
    fn write(&self, gates: &mut Gates<'_>, rows: std::ops::Range<usize>, leaves: &[[u8; 16]]) {
        let (image, layer) = (&self.image, &self.layer);
        // Read before anything is written: a slot may get what another one had.
        let mut columns: Vec<(u32, Zeroizing<Vec<[u8; 16]>>)> =
            Vec::with_capacity(layer.writes.len());
        let offset = gates.offset.to_le_bytes();
        // Places in the order in which labels leave, by number in the body.
        let mut places = vec![0; image.leaves.len()];
        for (place, leave) in image.leaves.iter().enumerate() {
            places[*leave as usize] = place;
        }
        for (slot, of, not) in &layer.writes {
            let mut column = Zeroizing::new(vec![[0; 16]; rows.len()]);
            match of {
                Ok(leave) => {
                    let at = places[*leave as usize];
                    for (to, row) in column
                        .iter_mut()
                        .zip(leaves.chunks_exact(image.leaves.len()))
                    {
                        *to = row[at];
                    }
                }
                Err(Of::Run(input)) => {
                    column.fill(
                        gates.labels(self.program.uniforms, layer.uniforms[*input as usize])[0],
                    );
                }
                Err(Of::Each { input, .. }) => {
                    let from = gates.labels(self.program.slots, layer.reads[*input as usize]);
                    column.copy_from_slice(&from[rows.clone()]);
                }
                Err(_) => {}
            }
            if *not {
                for label in column.iter_mut() {
                    label
                        .iter_mut()
                        .zip(offset)
                        .for_each(|(byte, one)| *byte ^= one);
                }
            }
            columns.push((*slot, column));
        }
        for (slot, column) in columns {
            gates.labels_mut(self.program.slots, slot)[rows.clone()].copy_from_slice(&column);
        }
    }
}

/// A card that does not do what it should.
fn failed(error: &CardError) -> Fault {
    Fault::Card {
        device: SIMULATED,
        why: error.to_string(),
    }
}

impl Device for Fpga {
    fn name(&self) -> &'static str {
        SIMULATED
    }

    fn rows(&self) -> Option<u32> {
        Some(self.garbler.capacity().rows)
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let id = self.host.load(program, layout)?;
        let slots = &layout.regions[program.slots as usize];
        let has_products = program
            .code
            .iter()
            .any(|instr| matches!(instr, Instr::Product { .. }));
        let labels = slots.item == veil_device::Item::Labels;
        if labels {
            self.labels.insert(id, Arc::clone(program));
        }
        if labels && has_products {
            let capacity = self.garbler.capacity();
            let loaded = self.assembled.program(program, layout, capacity);
            let loaded = loaded.map_err(|why| Fault::NoRoom {
                device: SIMULATED,
                why: why.to_string(),
            })?;
            self.programs.insert(id, loaded);
        }
        Ok(id)
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let outcome = self.batch(bank, batch, tag)?;
        self.done.push_back(Completion { tag, outcome });
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    fn wipe(&mut self) {
        // A card that does not answer is of no more use, and is told no secret any more.
        if self.garbler.scrub().is_err() {
            self.programs.clear();
            self.loops.clear();
        }
        self.host.wipe();
    }

    veil_device::forward!(self, self.host, bind load_key open close write map view);
}
