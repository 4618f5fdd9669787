//! The body of commands that are repeated: a netlist cycle, in which slots that are read before they are written are registers.
//!
//! What the commands of a repetition do to labels is followed slot by slot, and becomes a sequential circuit, which is
//! [renamed](super::circuit) as netlists are. Copies of labels are names then, and take no gate.

use std::collections::{BTreeMap, BTreeSet};

use veil_circuit::schedule::NO_NUMBER;
use veil_circuit::{
    Circuit, Clock, Gate, Initial, InputPort, OutputPort, Per, Reduce, Register, Wire,
};
use veil_device::{
    Command, Dst, Garbling, Instr, Op, PrfCall, Program, ProgramId, Repeat, Span, Src, Step,
};
use veil_math::Ring;

use super::circuit::Sequential;

/// Programs over labels that were loaded.
pub(crate) type Programs = BTreeMap<ProgramId, std::sync::Arc<Program>>;

/// A label that is there before the first repetition, and the same in all of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Source {
    Slot(u32),
    JobWide(u32),
}

/// A repetition, as a core runs it.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) sequential: Sequential,
    /// Inputs of the run.
    pub(crate) run: Vec<Source>,
    /// Inputs of every repetition: the step that copies them, and which of its items.
    pub(crate) each: Vec<(usize, u32)>,
    /// Slots that the outputs of the circuit are written to.
    pub(crate) outputs: Vec<u32>,
    /// Slots that a repetition writes.
    pub(crate) written: BTreeSet<u32>,
    /// The first step with products.
    pub(crate) garbles: usize,
    /// Regions of slots and of job-wide values.
    pub(crate) regions: [u16; 2],
    /// Steps that colour labels, in order.
    pub(crate) colours: Vec<usize>,
}

/// What a label is, before wires have numbers.
#[derive(Clone, Copy)]
enum Label {
    Run(u32),
    Each(u32),
    Register(u32),
    Gate(u32),
}

/// A gate, before wires have numbers.
enum Made {
    Xor([Label; 2]),
    And([Label; 2]),
    Not(Label),
    Constant(bool),
}

/// The first of the garbling steps that have products: what the others continue.
struct First {
    step: usize,
    op: Op,
    call: PrfCall,
    tables: Span,
}

struct Follower<'a> {
    programs: &'a Programs,
    written: BTreeSet<u32>,
    slots: BTreeMap<u32, Label>,
    run: Vec<Source>,
    each: Vec<(usize, u32)>,
    registers: Vec<u32>,
    gates: Vec<Made>,
    numbers: Vec<u32>,
    first: Option<First>,
    products: u64,
}

impl Cycle {
    /// The body of these commands; nothing if a core does not run it as a loop.
    pub(crate) fn of(repeat: &Repeat, programs: &Programs) -> Option<Self> {
        let garbled = repeat.body.iter().find_map(|step| match step.command.op {
            Op::Garble { .. } => programs.get(&step.command.program?),
            _ => None,
        })?;
        let regions = [garbled.slots, garbled.job_wide];
        let mut follower = Follower {
            programs,
            written: written(repeat, programs, regions)?,
            slots: BTreeMap::new(),
            run: Vec::new(),
            each: Vec::new(),
            registers: Vec::new(),
            gates: Vec::new(),
            numbers: Vec::new(),
            first: None,
            products: 0,
        };
        let mut colours = Vec::new();
        for (number, step) in repeat.body.iter().enumerate() {
            match step.command.op {
                // Of what is there when all is computed.
                Op::Colour => colours.push(number),
                _ if !colours.is_empty() => return None,
                Op::Combine { .. } => follower.copy(number, step, regions[0])?,
                Op::Garble { .. } => follower.garble(number, step, regions)?,
                _ => return None,
            }
        }
        let coloured = colours.iter().map(|number| &repeat.body[*number].command);
        let coloured: Vec<&Span> = coloured.flat_map(|command| &command.src).collect();
        let mut outputs = BTreeSet::new();
        for span in coloured.iter().copied().chain(&repeat.live) {
            if span.region == regions[0] {
                let slots = span.first..span.first + span.count;
                outputs.extend(slots.filter(|slot| follower.written.contains(slot)));
            }
        }
        if coloured.iter().any(|span| span.region != regions[0]) {
            return None;
        }
        follower.finish(outputs.into_iter().collect(), regions, colours)
    }
}

/// Slots that commands write in every repetition alike.
fn written(repeat: &Repeat, programs: &Programs, [region, _]: [u16; 2]) -> Option<BTreeSet<u32>> {
    let mut written = BTreeSet::new();
    for step in &repeat.body {
        match step.command.op {
            Op::Combine { .. } => {
                for to in step.command.dst.iter().filter(|to| to.region == region) {
                    written.extend(to.first..to.first + to.count);
                }
            }
            Op::Garble { .. } => {
                let program = programs.get(&step.command.program?)?;
                for instr in &program.code {
                    if let Some(Dst::Slot(slot)) = instr.to() {
                        written.insert(slot);
                    }
                }
            }
            _ => {}
        }
    }
    Some(written)
}

impl Follower<'_> {
    /// What is in a slot.
    fn slot(&mut self, slot: u32) -> Label {
        if let Some(label) = self.slots.get(&slot) {
            return *label;
        }
        let label = if self.written.contains(&slot) {
            self.registers.push(slot);
            Label::Register(self.registers.len() as u32 - 1)
        } else {
            self.source(Source::Slot(slot))
        };
        self.slots.insert(slot, label);
        label
    }

    fn source(&mut self, source: Source) -> Label {
        let at = self.run.iter().position(|other| *other == source);
        let at = at.unwrap_or_else(|| {
            self.run.push(source);
            self.run.len() - 1
        });
        Label::Run(at as u32)
    }

    fn copy(&mut self, number: usize, step: &Step, region: u16) -> Option<()> {
        let ([from], [to]) = (&step.command.src[..], &step.command.dst[..]) else {
            return None;
        };
        if (from.region, to.region, step.dst[0]) != (region, region, 0) {
            return None;
        }
        for item in 0..to.count {
            let label = if step.src[0] == 0 {
                self.slot(from.first + item)
            } else {
                self.each.push((number, item));
                Label::Each(self.each.len() as u32 - 1)
            };
            self.slots.insert(to.first + item, label);
        }
        Some(())
    }

    fn garble(&mut self, number: usize, step: &Step, regions: [u16; 2]) -> Option<()> {
        let program = self.programs.get(&step.command.program?)?;
        if [program.slots, program.job_wide] != regions {
            return None;
        }
        let program = std::sync::Arc::clone(program);
        let (products, _) = program.products();
        let mut base = 0;
        if products > 0 {
            base = self.continues(number, step)?;
            self.products += u64::from(products);
        }
        let mut temps: Vec<Option<Label>> = vec![None; program.temps as usize];
        let read = |follower: &mut Self, temps: &[Option<Label>], src: Src| match src {
            Src::Temp(temp) => temps[temp as usize],
            Src::Slot(slot) => Some(follower.slot(slot)),
            Src::JobWide(job_value) => Some(follower.source(Source::JobWide(job_value))),
        };
        for instr in &program.code {
            let label = match *instr {
                Instr::Add(a, b, _) | Instr::Sub(a, b, _) => {
                    let operands = [read(self, &temps, a)?, read(self, &temps, b)?];
                    self.make(Made::Xor(operands), NO_NUMBER)
                }
                Instr::Plus(a, c, _) => {
                    let value = read(self, &temps, a)?;
                    if c & 1 == 1 {
                        self.make(Made::Not(value), NO_NUMBER)
                    } else {
                        value
                    }
                }
                Instr::Times(a, c, _) if c & 1 == 1 => read(self, &temps, a)?,
                Instr::Times(..) => self.make(Made::Constant(false), NO_NUMBER),
                Instr::Copy(a, _) => read(self, &temps, a)?,
                Instr::Constant(c, _) => self.make(Made::Constant(c & 1 == 1), NO_NUMBER),
                Instr::Product {
                    ref pairs, index, ..
                } => {
                    let (a, b) = program.pairs[pairs.start as usize];
                    let operands = [read(self, &temps, a)?, read(self, &temps, b)?];
                    self.make(Made::And(operands), base + index)
                }
                // Bits have no sums.
                Instr::ProductSum { .. } | Instr::Sum(..) => return None,
            };
            match instr.to()? {
                Dst::Temp(temp) => temps[temp as usize] = Some(label),
                Dst::Slot(slot) => {
                    self.slots.insert(slot, label);
                }
            }
        }
        Some(())
    }

    /// Which number the products of a step begin with, if they and their tables follow those of the first step that has some.
    fn continues(&mut self, number: usize, step: &Step) -> Option<u32> {
        let Command { op, dst, calls, .. } = &step.command;
        let (tables, call) = (*dst.first()?, calls.first()?);
        let half_gates = matches!(
            op,
            Op::Garble {
                scheme: Garbling::HalfGates,
                ..
            }
        );
        let first = self.first.get_or_insert_with(|| First {
            step: number,
            op: op.clone(),
            call: *call,
            tables,
        });
        let base = call.first.checked_sub(first.call.first)?;
        let place = tables.first.checked_sub(first.tables.first)?;
        let start = (first.call.key, first.call.tag) == (call.key, call.tag);
        let same = first.op == *op && first.tables.region == tables.region && start;
        let base = u32::try_from(base).ok()?;
        (half_gates && same && Some(place) == base.checked_mul(2)).then_some(base)
    }

    fn make(&mut self, gate: Made, number: u32) -> Label {
        if matches!(gate, Made::Xor(_) | Made::And(_)) {
            self.numbers.push(number);
        }
        self.gates.push(gate);
        Label::Gate(self.gates.len() as u32 - 1)
    }

    fn finish(
        mut self,
        outputs: Vec<u32>,
        regions: [u16; 2],
        colours: Vec<usize>,
    ) -> Option<Cycle> {
        let garbles = self.first.as_ref()?.step;
        let mut numbers: Vec<u32> = self.numbers.clone();
        numbers.retain(|number| *number != NO_NUMBER);
        numbers.sort_unstable();
        if !numbers
            .iter()
            .map(|number| u64::from(*number))
            .eq(0..self.products)
        {
            return None;
        }
        let results: Vec<Label> = outputs.iter().map(|slot| self.slot(*slot)).collect();
        // What outputs read may be registers, too. Their first values are labels of the run.
        let slots = self.registers.clone();
        let initial: Vec<Label> = (slots.iter())
            .map(|slot| self.source(Source::Slot(*slot)))
            .collect();
        let next: Vec<Label> = slots.iter().map(|slot| self.slots[slot]).collect();
        let [run, each] = [self.run.len() as u32, self.each.len() as u32];
        let behind = run + each;
        let wire = |label: Label| {
            Wire(match label {
                Label::Run(input) => input,
                Label::Each(input) => run + input,
                Label::Register(register) => behind + register,
                Label::Gate(gate) => behind + slots.len() as u32 + gate,
            })
        };
        let gates = self.gates.iter().map(|gate| match *gate {
            Made::Xor([a, b]) => Gate::Add(wire(a), wire(b)),
            Made::And([a, b]) => Gate::Mul(wire(a), wire(b)),
            Made::Not(a) => Gate::Plus(wire(a), 1),
            Made::Constant(bit) => Gate::Constant(bit.into()),
        });
        let registers = initial.iter().zip(&next).map(|(initial, next)| Register {
            initial: Initial::Wire(wire(*initial)),
            next: wire(*next),
        });
        let port = |name: &str, width, per| InputPort {
            name: name.into(),
            width,
            per,
            bits: false,
        };
        let circuit = Circuit {
            ring: Ring::Bits,
            inputs: vec![port("run", run, Per::Row), port("each", each, Per::Cycle)],
            gates: gates.collect(),
            outputs: vec![OutputPort {
                name: "out".into(),
                wires: results.iter().map(|label| wire(*label)).collect(),
                reduce: Reduce::EveryCycle,
            }],
            clock: Clock {
                registers: registers.collect(),
                // Any number but one: what a core does does not depend on it.
                cycles: 2,
            },
        };
        let mut sequential = Sequential::of(&circuit).ok()?;
        self.numbers.resize(sequential.body.gates.len(), NO_NUMBER);
        sequential.body.numbers = Some(self.numbers);
        Some(Cycle {
            sequential,
            run: self.run,
            each: self.each,
            outputs,
            written: self.written,
            garbles,
            regions,
            colours,
        })
    }
}
