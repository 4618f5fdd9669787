//! Repeated commands on a core: the repetitions overlap, as netlist cycles do.

use veil_device::{Gates, Repeat, Step};
use zeroize::Zeroizing;

use crate::driver::{CardError, Garbler, Run, Streams};
use crate::garble::body::{Of, Value};
use crate::garble::circuit::Each;
use crate::garble::cycles::{Cycle, Source};
use crate::garble::{Capacity, Image};

/// Bytes of labels that wait for the host to colour them, at most.
const MOST_COLOURED: u64 = 64 << 20;

/// Clock cycles of a run from its start to its first bundle, and from its last one until all of it has left, at least.
const AROUND: u64 = 8;

/// Clock cycles of a run, about: labels of its first repetition come one by one before that begins.
pub(crate) fn clock(image: &Image, repetitions: u32) -> u64 {
    let labels = image.run_inputs.len() + image.each_inputs.len();
    AROUND + labels as u64 + image.cycles(repetitions.into())
}

/// A body that the core runs as a loop.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) cycle: Cycle,
    pub(crate) image: Image,
}

/// Labels of outputs: of each row those of each repetition that was asked for, output by output.
pub(crate) struct Leaving {
    labels: Zeroizing<Vec<[u8; 16]>>,
    /// The first repetition that is here, and how many there are.
    from: u32,
    repetitions: u32,
    outputs: usize,
}

/// The same commands, wherever in a run of a circuit they are: the body but for what moves on.
pub(crate) fn shape(repeat: &Repeat) -> Repeat {
    let counter = repeat.body.iter().flat_map(|step| &step.command.calls);
    let least = counter.map(|call| call.first).min().unwrap_or(0);
    let mut shape = repeat.clone();
    shape.count = 1;
    for Step {
        command, src, dst, ..
    } in &mut shape.body
    {
        let moving = |spans: &mut [veil_device::Span], steps: &[u32]| {
            for (span, step) in spans.iter_mut().zip(steps) {
                if *step > 0 && command.program.is_none() {
                    span.first = 0;
                }
            }
        };
        moving(&mut command.src, src);
        moving(&mut command.dst, dst);
        for call in &mut command.calls {
            call.first -= least;
        }
    }
    shape
}

impl Loop {
    /// The loop for a body that is repeated `repetitions` times, more or less; nothing if the core has no room for it.
    pub(crate) fn of(cycle: Cycle, capacity: &Capacity, repetitions: u32) -> Option<Self> {
        let image = Image::of(&cycle.sequential.body, capacity, repetitions.into()).ok()?;
        Some(Loop { cycle, image })
    }

    /// Whether these commands are what the core does: each repetition has tables and numbers of its own, one behind the other, and what it
    /// reads of a window no command writes.
    pub(crate) fn takes(&self, repeat: &Repeat, rows: u32) -> bool {
        let products = self.image.products;
        let steps = repeat.body.iter();
        let goes_on = |step: &Step| match step.command.program {
            Some(_) => {
                let tables = step.dst.first().is_none_or(|by| *by == 2 * products);
                let call = step
                    .calls
                    .first()
                    .is_none_or(|by| *by == u64::from(products));
                tables && call
            }
            None => true,
        };
        let reads = |step: usize| {
            let Step { command, src, .. } = &repeat.body[step];
            let (from, by) = (command.src[0], src[0]);
            let last = u64::from(from.first) + u64::from(by) * u64::from(repeat.count - 1);
            let end = u32::try_from(last + u64::from(from.count)).unwrap_or(u32::MAX);
            self.cycle.written.range(from.first..end).next().is_none()
        };
        let windows = self.cycle.each.iter().all(|(step, _)| reads(*step));
        let outputs = self.cycle.outputs.len() as u64;
        let coloured = 16 * outputs * u64::from(rows) * u64::from(repeat.count);
        repeat.count > 1
            && steps.clone().all(goes_on)
            && windows
            && (self.cycle.colours.is_empty() || coloured <= MOST_COLOURED)
    }

    /// Clock cycles that the core takes for as many repetitions in as many rows, about.
    pub(crate) fn clock(&self, repetitions: u32, rows: u32) -> u64 {
        u64::from(rows) * clock(&self.image, repetitions)
    }

    /// Garbles all repetitions, row by row.
    pub(crate) fn run(
        &self,
        garbler: &mut Garbler,
        gates: &mut Gates<'_>,
        repeat: &Repeat,
    ) -> Result<Leaving, CardError> {
        let (rows, count) = (gates.frame().rows, repeat.count);
        let from = if self.cycle.colours.is_empty() {
            count - 1
        } else {
            0
        };
        let outputs = self.cycle.outputs.len();
        let kept = (count - from) as usize;
        let mut leaving = Leaving {
            labels: Zeroizing::new(vec![[0; 16]; outputs * kept * rows as usize]),
            from,
            repetitions: count - from,
            outputs,
        };
        let tables = repeat.body[self.cycle.garbles].command.dst[0];
        let halves = 2 * self.image.products;
        for row in 0..rows {
            let inputs = Inputs::new(self, gates, repeat, row as usize);
            let labels = inputs.labels(self, count);
            let mut made = Vec::new();
            let mut leaves = Zeroizing::new(Vec::new());
            let run = Run {
                repetitions: count,
                first: gates.first,
                instance: row as u16,
                rows: false,
                leave_from: from,
            };
            let mut streams = Streams {
                labels: labels.as_flattened(),
                tables: &mut made,
                leaves: &mut leaves,
            };
            let secrets = (*gates.offset, *gates.start);
            garbler.run(&self.image, &run, secrets, &mut streams)?;
            let of_row = &mut leaving.labels[outputs * kept * row as usize..][..outputs * kept];
            let leaves = leaves.as_chunks::<16>().0;
            for (repetition, to) in (from..).zip(of_row.chunks_exact_mut(outputs.max(1))) {
                let at = (repetition - from) as usize * self.image.leaves.len();
                let left = &leaves[at..][..self.image.leaves.len()];
                for (to, value) in to.iter_mut().zip(&self.cycle.sequential.outputs) {
                    *to = self.output(&inputs, *value, repetition, left);
                }
            }
            drop(inputs);
            for (item, half) in (0..halves * count).zip(made.as_chunks::<16>().0) {
                gates.labels_mut(tables.region, tables.first + item)[row as usize] = *half;
            }
        }
        Ok(leaving)
    }

    /// The label of an output in a repetition, of which these labels have left.
    fn output(
        &self,
        inputs: &Inputs<'_, '_>,
        value: Value,
        repetition: u32,
        left: &[[u8; 16]],
    ) -> [u8; 16] {
        let of = match value.of {
            Of::Gate { .. } => {
                let leaves = &self.cycle.sequential.body.leaves;
                let leave = leaves.iter().position(|of| *of == value.of);
                let places = self.image.leaves.iter();
                let place = leave.and_then(|leave| {
                    let mut places = places.clone();
                    places.position(|other| *other as usize == leave)
                });
                left[place.expect("outputs that gates make leave")]
            }
            Of::Each { input, .. } => inputs.each(self, input, repetition),
            of => inputs.known(Value::plain(of)),
        };
        inputs.inverted(of, value.not)
    }
}

/// Labels that go into a run, of one row.
struct Inputs<'a, 'b> {
    offset: Zeroizing<[u8; 16]>,
    run: Zeroizing<Vec<[u8; 16]>>,
    gates: &'a Gates<'b>,
    repeat: &'a Repeat,
    row: usize,
    region: u16,
}

impl<'a, 'b> Inputs<'a, 'b> {
    fn new(of: &Loop, gates: &'a Gates<'b>, repeat: &'a Repeat, row: usize) -> Self {
        let [slots, job_wide] = of.cycle.regions;
        let run = of.cycle.run.iter().map(|source| match source {
            Source::Slot(slot) => gates.labels(slots, *slot)[row],
            Source::JobWide(job_value) => gates.labels(job_wide, *job_value)[0],
        });
        Inputs {
            offset: Zeroizing::new(gates.offset.to_le_bytes()),
            run: Zeroizing::new(run.collect()),
            gates,
            repeat,
            row,
            region: slots,
        }
    }

    fn inverted(&self, mut label: [u8; 16], not: bool) -> [u8; 16] {
        if not {
            label
                .iter_mut()
                .zip(*self.offset)
                .for_each(|(byte, one)| *byte ^= one);
        }
        label
    }

    /// A constant, or an input of the run.
    fn known(&self, value: Value) -> [u8; 16] {
        let label = match value.of {
            Of::Run(input) => self.run[input as usize],
            _ => [0; 16],
        };
        self.inverted(label, value.not)
    }

    /// An input of every repetition, as the core takes it.
    fn each(&self, of: &Loop, input: u32, repetition: u32) -> [u8; 16] {
        let Each { first, then } = &of.cycle.sequential.each[input as usize];
        if let Some(first) = first.get(repetition as usize) {
            return self.known(*first);
        }
        let Of::Each { input, .. } = then.of else {
            return self.known(*then);
        };
        let (step, item) = of.cycle.each[input as usize];
        let Step { command, src, .. } = &self.repeat.body[step];
        let at = src[0] * (repetition - first.len() as u32) + item;
        let label = self.gates.labels(self.region, command.src[0].first + at)[self.row];
        self.inverted(label, then.not)
    }

    /// All labels of a run, in the order in which the core takes them.
    fn labels(&self, of: &Loop, repetitions: u32) -> Zeroizing<Vec<[u8; 16]>> {
        let image = &of.image;
        let count = image.run_inputs.len() + image.each_inputs.len() * repetitions as usize;
        let mut labels = Zeroizing::new(Vec::with_capacity(count));
        labels.extend(
            image
                .run_inputs
                .iter()
                .map(|input| self.run[*input as usize]),
        );
        for repetition in 0..repetitions {
            let each = image.each_inputs.iter();
            labels.extend(each.map(|input| self.each(of, *input, repetition)));
        }
        labels
    }
}

impl Leaving {
    /// Puts the labels of a repetition into their slots.
    pub(crate) fn put(&self, of: &Loop, gates: &mut Gates<'_>, repetition: u32) {
        let kept = self.outputs * self.repetitions as usize;
        let place = self.outputs * (repetition - self.from) as usize;
        for (number, slot) in of.cycle.outputs.iter().enumerate() {
            let column = gates.labels_mut(of.cycle.regions[0], *slot);
            let rows = self.labels.chunks_exact(kept.max(1));
            for (to, row) in column.iter_mut().zip(rows) {
                *to = row[place + number];
            }
        }
    }

    /// Repetitions whose labels are here.
    pub(crate) fn repetitions(&self) -> std::ops::Range<u32> {
        self.from..self.from + self.repetitions
    }
}
