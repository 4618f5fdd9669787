//! From a body and its schedule to the bundles of a core: slots of banks, rings of slots, what leaves when.

use std::collections::{BTreeMap, BTreeSet};

use veil_circuit::schedule::{self, Machine, Node, Read};

use super::body::{Body, Of, Value};
use super::bundle::{self, Bank, Bundle, Leave, Operand, Place, Started};
use super::slots::Slots;
use super::{Capacity, TooLarge};

/// A program of a core, and what a run of it needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// Bundles: those of the prologue, then those of the kernel. [`Image::words`] of 32 bits each.
    pub bundles: Vec<u32>,
    /// Words of a bundle.
    pub words: usize,
    /// Bundles of the prologue.
    pub prologue: u32,
    /// Bundles of the kernel.
    pub kernel: u32,
    /// Repetitions of the kernel beyond those of the body.
    pub stages: u32,
    /// Bundles of the last repetition of the kernel.
    pub last: u32,
    /// ANDs of a repetition.
    pub products: u32,
    /// Numbers of ANDs in a repetition, by gate of the body.
    pub numbers: Vec<u32>,
    /// Lines of tables of a repetition.
    pub lines: u32,
    /// Tables in the last line.
    pub last_line: u32,
    /// Inputs of the run that the core takes, in this order.
    pub run_inputs: Vec<u32>,
    /// Inputs of a repetition that the core takes, in this order.
    pub each_inputs: Vec<u32>,
    /// Logarithm of the slots of an input of every repetition.
    pub input_ring: u32,
    /// The latest stage that reads inputs, and 2.
    pub input_stages: u32,
    /// Labels that leave in a repetition: places in the body's list, in the order in which they leave.
    pub leaves: Vec<u32>,
    /// Slots that are used of an engine's bank of XORs, of ANDs, and of that of inputs, at most.
    pub slots: [u32; 3],
}

impl Image {
    /// Cycles of a run of so many repetitions in which nothing holds the core up, from its start to the last bundle.
    pub fn cycles(&self, repetitions: u64) -> u64 {
        let repeats = repetitions + u64::from(self.stages);
        u64::from(self.prologue) + (repeats - 1) * u64::from(self.kernel) + u64::from(self.last)
    }

    /// The program for a body that is repeated `repetitions` times, more or less: another number gives the same labels, later.
    ///
    /// # Errors
    /// [`TooLarge::Room`] if the program needs more of something than the card has, [`TooLarge::Schedule`] if its gates cannot be
    /// scheduled.
    pub fn of(body: &Body, capacity: &Capacity, repetitions: u64) -> Result<Self, TooLarge> {
        Assembler::new(body, capacity, repetitions)?.image()
    }
}

/// Everything there is to know of a body's gates before they are put into bundles.
struct Assembler<'a> {
    body: &'a Body,
    capacity: &'a Capacity,
    /// Cycles between the starts of two repetitions, and bundles of the kernel.
    interval: u32,
    machine: Machine,
    nodes: Vec<Node>,
    starts: Vec<u32>,
    engines: Vec<u32>,
    /// Numbers of ANDs, by gate.
    numbers: Vec<u32>,
    places: Vec<Place>,
    /// Slots that are used, by engine and kind.
    used: [u32; 3],
    /// When each leave is read.
    leave_at: Vec<(u32, u32)>,
    run_inputs: Vec<u32>,
    each_inputs: Vec<u32>,
    /// Place in the order of an input.
    run_place: BTreeMap<u32, u32>,
    each_place: BTreeMap<u32, u32>,
    input_ring: u32,
    input_stages: u32,
}

/// The logarithm of the smallest power of two that is no less.
fn log(n: u32) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

impl<'a> Assembler<'a> {
    fn new(body: &'a Body, capacity: &'a Capacity, repetitions: u64) -> Result<Self, TooLarge> {
        capacity.fits_at_all(body)?;
        let machine = Machine {
            // A label leaves in a cycle, at most.
            least: if repetitions > 1 {
                body.leaves.len() as u32
            } else {
                1
            },
            ..capacity.machine()
        };
        let nodes = nodes(body);
        let schedule = match &body.numbers {
            Some(numbers) => schedule::schedule_numbered(&nodes, &machine, repetitions, numbers),
            None => schedule::schedule(&nodes, &machine, repetitions),
        };
        let schedule = schedule.map_err(|error| TooLarge::Schedule(error.to_string()))?;
        let mut assembler = Assembler {
            body,
            capacity,
            interval: schedule.interval.max(1),
            machine,
            nodes,
            starts: schedule.starts,
            engines: schedule.engines,
            numbers: schedule.numbers,
            places: Vec::new(),
            used: [0; 3],
            leave_at: Vec::new(),
            run_inputs: Vec::new(),
            each_inputs: Vec::new(),
            run_place: BTreeMap::new(),
            each_place: BTreeMap::new(),
            input_ring: 0,
            input_stages: 0,
        };
        assembler.leave(repetitions);
        assembler.place();
        assembler.inputs();
        Ok(assembler)
    }

    fn latency(&self, gate: u32) -> u32 {
        self.machine.latency(&self.nodes[gate as usize])
    }

    fn stage(&self, gate: usize) -> u32 {
        self.starts[gate] / self.interval
    }

    /// Says when labels leave: one per cycle, the first when it is there.
    fn leave(&mut self, repetitions: u64) {
        let there = |of: &Of| match *of {
            Of::Gate { gate, back } => {
                let done = self.starts[gate as usize] + self.latency(gate);
                done.saturating_sub(self.interval * back)
            }
            _ => 0,
        };
        let mut order: Vec<(u32, u32)> = (0..)
            .zip(&self.body.leaves)
            .map(|(k, of)| (there(of), k))
            .collect();
        order.sort_unstable();
        let mut next = 0;
        for (at, _) in &mut order {
            *at = (*at).max(next);
            next = *at + 1;
        }
        if repetitions > 1 {
            // No two of them in the same bundle of the kernel: the early ones wait.
            let spread = next.saturating_sub(self.interval);
            for (k, (at, _)) in (0..).zip(&mut order) {
                *at = (*at).max(spread + k);
            }
        } else {
            // One repetition, which nothing follows: the kernel is as long as it takes.
            let ends =
                (0..self.starts.len()).map(|gate| self.starts[gate] + self.latency(gate as u32));
            self.interval = ends.chain([next, self.interval]).max().unwrap_or(1);
        }
        self.leave_at = order;
    }

    /// Gives every result its slots.
    fn place(&mut self) {
        let interval = self.interval;
        let mut ends: Vec<u32> = self.starts.clone();
        let mut read = |of: Of, at: u32| {
            if let Of::Gate { gate, back } = of {
                let end = &mut ends[gate as usize];
                *end = (*end).max(at + interval * back);
            }
        };
        for (gate, at) in self.body.gates.iter().zip(&self.starts) {
            gate.operands.iter().for_each(|value| read(value.of, *at));
        }
        for &(at, k) in &self.leave_at {
            read(self.body.leaves[k as usize], at);
        }
        let mut firsts = BTreeMap::new();
        for first in &self.body.firsts {
            let back = firsts.entry(first.gate).or_insert(0);
            *back = first.back.max(*back);
        }
        let mut banks: BTreeMap<(u32, bool), Slots> = BTreeMap::new();
        let mut order: Vec<usize> = (0..self.starts.len()).collect();
        order.sort_unstable_by_key(|gate| (self.starts[*gate] % interval, *gate));
        self.places = vec![Place::default(); self.starts.len()];
        // Rings first, for they begin at multiples of their size; the longest ones first of all.
        let mut rings = Vec::new();
        let mut alone = Vec::new();
        for gate in order {
            let life = ends[gate] - self.starts[gate];
            let back = firsts.get(&(gate as u32)).copied();
            let ring = log(life.div_ceil(interval).max(back.unwrap_or(1)));
            if ring > 0 || back.is_some() {
                rings.push((std::cmp::Reverse(ring), gate));
            } else {
                alone.push(gate);
            }
        }
        rings.sort_unstable();
        let key = |gate: usize| (self.engines[gate], self.body.gates[gate].is_and);
        for (std::cmp::Reverse(ring), gate) in rings {
            let slot = banks.entry(key(gate)).or_default().ring(ring);
            self.places[gate] = Place { ring, slot };
        }
        // What lives into the next repetition has its slot before anything else is given one.
        let wraps = |gate: &usize| {
            self.starts[*gate] % interval + (ends[*gate] - self.starts[*gate]) > interval
        };
        let (wrapping, within): (Vec<usize>, Vec<usize>) = alone.into_iter().partition(wraps);
        for gate in wrapping.into_iter().chain(within) {
            let from = self.starts[gate] % interval;
            let life = (from, from + (ends[gate] - self.starts[gate]));
            let slot = banks.entry(key(gate)).or_default().one(life, interval);
            self.places[gate] = Place { ring: 0, slot };
        }
        for ((_, is_and), slots) in banks {
            let used = &mut self.used[usize::from(is_and)];
            *used = (*used).max(slots.used());
        }
    }

    /// Says in which order inputs come: that in which they are first read.
    fn inputs(&mut self) {
        let mut read: BTreeSet<(u32, Of)> = BTreeSet::new();
        let mut latest = 0;
        for first in &self.body.firsts {
            read.insert((0, first.value.of));
        }
        let reads = (self.body.gates.iter().zip(&self.starts))
            .flat_map(|(gate, at)| gate.operands.map(|value| (value.of, *at)));
        for (of, at) in reads {
            read.insert((at + 1, of));
            if let Of::Each { back, .. } = of {
                latest = latest.max(at / self.interval + back);
            }
        }
        let mut seen = BTreeSet::new();
        for (_, of) in read {
            match of {
                Of::Run(input) if seen.insert((0, input)) => {
                    self.run_place.insert(input, self.run_inputs.len() as u32);
                    self.run_inputs.push(input);
                }
                Of::Each { input, .. } if seen.insert((1, input)) => {
                    self.each_place.insert(input, self.each_inputs.len() as u32);
                    self.each_inputs.push(input);
                }
                _ => {}
            }
        }
        self.input_stages = latest + 2;
        self.input_ring = if self.each_inputs.is_empty() {
            0
        } else {
            log(latest + 2)
        };
        let each = self.beats(&self.each_inputs) << self.input_ring;
        self.used[2] = (self.first_of_each() + each) * self.capacity.labels_in;
    }

    /// Beats in which labels of so many inputs come: slots of an engine of the bank.
    fn beats(&self, inputs: &[u32]) -> u32 {
        (inputs.len() as u32).div_ceil(self.capacity.labels_in)
    }

    /// The slot at which inputs of every repetition begin.
    fn first_of_each(&self) -> u32 {
        self.beats(&self.run_inputs)
            .next_multiple_of(1 << self.input_ring)
    }

    /// Where a label is read by something of stage `stage`.
    fn operand(&self, of: Of, stage: u32) -> Operand {
        match of {
            Of::Zero => Operand::default(),
            Of::Run(input) => Operand {
                bank: Bank::Input,
                engine: self.run_place[&input] % self.capacity.labels_in,
                place: Place {
                    ring: 0,
                    slot: self.run_place[&input] / self.capacity.labels_in,
                },
            },
            Of::Each { input, back } => {
                let ring = self.input_ring;
                let place = self.each_place[&input];
                let first = self.first_of_each() + ((place / self.capacity.labels_in) << ring);
                Operand {
                    bank: Bank::Input,
                    engine: place % self.capacity.labels_in,
                    place: Place {
                        ring,
                        slot: first + (stage + back).wrapping_neg() % (1 << ring),
                    },
                }
            }
            Of::Gate { gate, back } => {
                let (gate, place) = (gate as usize, self.places[gate as usize]);
                let turn = self.stage(gate).wrapping_sub(back).wrapping_sub(stage);
                Operand {
                    bank: if self.body.gates[gate].is_and {
                        Bank::And
                    } else {
                        Bank::Xor
                    },
                    engine: self.engines[gate],
                    place: Place {
                        slot: place.slot + turn % (1 << place.ring),
                        ..place
                    },
                }
            }
        }
    }

    /// Inputs that have to be there for a bundle: of the run, and of the repetition that begins.
    fn needs(&self, of: Of, stage: u32, needs: &mut [u32; 2]) {
        match of {
            Of::Run(input) => needs[0] = needs[0].max(self.run_place[&input] + 1),
            Of::Each { input, back } if stage + back == 0 => {
                needs[1] = needs[1].max(self.each_place[&input] + 1);
            }
            _ => {}
        }
    }

    /// The bundles that write what results are before the first repetition.
    fn prologue(&self) -> Vec<Bundle> {
        let mut engines: Vec<Vec<_>> = vec![Vec::new(); self.capacity.engines as usize];
        for first in &self.body.firsts {
            engines[self.engines[first.gate as usize] as usize].push(first);
        }
        let bundles = engines.iter().map(Vec::len).max().unwrap_or(0);
        let mut prologue = vec![Bundle::of(self.capacity.engines); bundles];
        for (engine, firsts) in engines.into_iter().enumerate() {
            for (bundle, first) in prologue.iter_mut().zip(firsts) {
                let gate = first.gate as usize;
                let place = self.places[gate];
                let turn = self.stage(gate).wrapping_sub(first.back);
                bundle.engines[engine] = Some(Started {
                    is_and: self.body.gates[gate].is_and,
                    not: [false, false, first.value.not],
                    operands: [self.operand(first.value.of, 0), Operand::default()],
                    to: Place {
                        slot: place.slot + turn % (1 << place.ring),
                        ring: place.ring,
                    },
                    stage: 0,
                    number: 0,
                });
                self.needs(first.value.of, 0, &mut bundle.needs);
            }
        }
        // Until what the last bundle writes can be read.
        if bundles > 0 {
            let empty = self.capacity.xor_latency as usize - 1;
            prologue.resize(bundles + empty, Bundle::of(self.capacity.engines));
        }
        prologue
    }

    fn kernel(&self) -> Vec<Bundle> {
        let mut kernel = vec![Bundle::of(self.capacity.engines); self.interval as usize];
        for (k, gate) in self.body.gates.iter().enumerate() {
            let bundle = &mut kernel[(self.starts[k] % self.interval) as usize];
            let stage = self.stage(k);
            let [a, b] = gate.operands;
            let mut number = 0;
            let not = if gate.is_and {
                number = self.numbers[k];
                [a.not, b.not, false]
            } else {
                [false, false, a.not != b.not]
            };
            for Value { of, .. } in gate.operands {
                self.needs(of, stage, &mut bundle.needs);
            }
            bundle.engines[self.engines[k] as usize] = Some(Started {
                is_and: gate.is_and,
                not,
                operands: [self.operand(a.of, stage), self.operand(b.of, stage)],
                to: self.places[k],
                stage,
                number,
            });
        }
        for &(at, k) in &self.leave_at {
            let of = self.body.leaves[k as usize];
            let stage = at / self.interval;
            let bundle = &mut kernel[(at % self.interval) as usize];
            self.needs(of, stage, &mut bundle.needs);
            bundle.leave = Some(Leave {
                from: self.operand(of, stage),
                stage,
            });
        }
        kernel
    }

    fn image(self) -> Result<Image, TooLarge> {
        let [prologue, kernel] = [self.prologue(), self.kernel()];
        let leaves = self.leave_at.iter().map(|(at, _)| *at);
        let times: Vec<u32> = self.starts.iter().copied().chain(leaves).collect();
        let latest = times.iter().max().copied().unwrap_or(0);
        let stages = latest / self.interval;
        let products = self.body.ands();
        let lines = products.div_ceil(self.capacity.engines);
        let rings = self.places.iter().map(|place| place.ring);
        let ring = rings.max().unwrap_or(0).max(self.input_ring);
        let mut image = Image {
            bundles: Vec::new(),
            words: bundle::words(self.capacity.engines),
            prologue: prologue.len() as u32,
            kernel: self.interval,
            stages,
            last: latest - stages * self.interval + 1,
            products,
            numbers: self.numbers,
            lines,
            last_line: products - lines.saturating_sub(1) * self.capacity.engines,
            run_inputs: self.run_inputs,
            each_inputs: self.each_inputs,
            input_ring: self.input_ring,
            input_stages: self.input_stages,
            leaves: self.leave_at.iter().map(|(_, k)| *k).collect(),
            slots: self.used,
        };
        // Fields of bundles are wide enough for what fits.
        self.capacity.fits(&image, ring)?;
        image.bundles = bundle::pack(prologue.iter().chain(&kernel));
        Ok(image)
    }
}

/// The gates, as the scheduler sees them.
fn nodes(body: &Body) -> Vec<Node> {
    let read = |value: Value| match value.of {
        Of::Gate { gate, back } => Some(Read {
            node: gate,
            distance: back,
        }),
        _ => None,
    };
    let node = |gate: &super::body::Gate| Node {
        product: gate.is_and,
        reads: gate.operands.map(read),
    };
    body.gates.iter().map(node).collect()
}
