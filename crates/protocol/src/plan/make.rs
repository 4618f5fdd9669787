//! How a plan is made of a job: schedules of the rows, the set-up and the totals, whose programs and draws follow each other.

use std::sync::Arc;

use veil_circuit::{Circuit, Per, Reduce, Wire};
use veil_device::{Lpn, Program};
use veil_job::{Audience, JobSpec, Ot};
use veil_math::Ring;
use veil_session::PlanHash;

use super::authenticate::authenticated;
use super::cycles::{CyclesPlan, Step};
use super::layers::{self, How, Layer, Schedule};
use super::list::List;
use super::net::Net;
use super::{
    Before, BitsPlan, Conversion, Gives, JobPlan, LayerPlan, MacsOfJobWide, Options, Plan,
    PlanError, PortPlan, Stock, TotalsPlan, check, hash, hoist, order, rows,
};
use crate::choose::Choice;
use crate::replicated::{Authenticated, count_before};

/// Blocks that one key may encrypt (protocol documentation, "PRF").
const MOST_PRF_CALLS: u64 = 1 << 40;

/// Cycles whose proofs have numbers of 32 bits: but for the last one of each kind of workspace, a batch takes 2^12 counters at least, so that
/// `MOST_PRF_CALLS` bounds the numbers of all others.
const MOST_PROVED_CYCLES: u64 = 1 << 29;

impl Plan {
    /// Plans `job`.
    ///
    /// # Errors
    /// [`PlanError::Circuit`] and [`PlanError::Job`] if circuit or job break a rule; [`PlanError::NoProtocol`],
    /// [`PlanError::TooWide`], [`PlanError::BitsOnly`], [`PlanError::NoShares`], [`PlanError::Fit`] and [`PlanError::Random`] if
    /// no protocol computes this job as its security asks; [`PlanError::NoOrder`] if its gates cannot be scheduled;
    /// [`PlanError::TooManyRows`], [`PlanError::TooManyKeys`], [`PlanError::TooManyLabels`], [`PlanError::TooManyDigests`], [`PlanError::TooManyKept`] and
    /// [`PlanError::TooManyPrfCalls`] if it exceeds a bound.
    pub fn new(job: Arc<JobSpec>, options: Options) -> Result<Plan, PlanError> {
        Self::stocked(job, options, Stock::Fresh)
    }

    /// Plans `job`, whose products or transfers come from a stock, or are made for one.
    ///
    /// # Errors
    /// [`PlanError`] as of [`Plan::new`]; [`PlanError::NoStock`] if the job's protocol has none, [`PlanError::NothingTaken`] if it would take nothing from it.
    pub fn stocked(job: Arc<JobSpec>, options: Options, stock: Stock) -> Result<Plan, PlanError> {
        check::job(&job, stock)?;
        let orders = order::of(&job)?;
        let choice = Choice::of_job(&job).ok_or(PlanError::NoProtocol(job.security))?;
        let of_one_row;
        let of_ports;
        let whole = match choice {
            Choice::Intersected => {
                of_ports = crate::intersect::ports(&job.circuit);
                &of_ports
            }
            Choice::Cut | Choice::Authenticated if job.rows() == 1 => {
                of_one_row = crate::cut::of_one_row(&job.circuit);
                &of_one_row
            }
            _ => &job.circuit,
        };
        let authenticates = matches!(choice, Choice::Authenticated);
        check::stock(&job, choice, stock)?;
        let rows = {
            let longest = job.blocks.iter().map(|block| block.rows).max();
            let most = options.chunk_rows.unwrap_or(crate::ag::ROWS);
            longest.unwrap_or(1).min(most.into())
        };
        let window = authenticates.then(|| crate::ag::window(whole, rows));
        let step = Step::of(whole, window);
        let circuit = step.as_ref().map_or(whole, |step| &step.circuit);
        let proves = choice.proves();
        let how = How {
            singly: choice.multiplies_singly(),
            most: match choice {
                Choice::Garbled(_) => rows::WIDEST_GARBLED,
                Choice::Cut => crate::cut::WIDEST,
                Choice::Authenticated => crate::ag::widest(rows),
                Choice::Shared(_) | Choice::Intersected => u32::MAX,
            },
            side_by_side: matches!(choice, Choice::Shared(_)),
            list: list(&job, step.as_ref()).filter(|_| choice.garbles()),
        };
        let unordered = |error| PlanError::NoOrder {
            schedule: job.security.schedule,
            error,
        };
        let has_macs = proves && circuit.ring != Ring::Bits;
        let words = if has_macs { Ring::Z128 } else { circuit.ring };
        let components = job.parties.len();
        let lowered = |circuit: &Circuit| {
            let net = Net::of(circuit, components, !has_macs);
            if has_macs { authenticated(&net) } else { net }
        };
        // With MACs their key is the first input port.
        let key = usize::from(has_macs);
        let once: Vec<Option<usize>> = (job.audiences.iter().enumerate())
            .map(|(port, audience)| match audience {
                Audience::Stored => job.passes_through(port).map(|input| input + key),
                _ => None,
            })
            .collect();
        // What all rows have in common is computed in each, where it has masks.
        let split = if authenticates {
            None
        } else {
            hoist::split(circuit)
        };
        let rows = lowered(split.as_ref().map_or(circuit, |split| &split.rows));
        let held = step.as_ref().map_or(0, |step| step.held);
        let schedule = layers::schedule(&rows, &once, how.clone(), held);
        let mut schedule = schedule.map_err(unordered)?;
        let macs_of_job_wide = macs_of_job_wide(&mut schedule, &rows.macs.of_inputs);
        let derived = split.as_ref().map(|_| {
            let ports = &mut schedule.inputs;
            ports.pop().expect("the derived values are the last port")
        });
        let cycles = step
            .as_ref()
            .map(|step| step.plan(whole, matches!(choice, Choice::Garbled(_)), &mut schedule));
        let cycles = cycles.transpose()?;
        let every_cycle = job.circuit.outputs.iter();
        let every_cycle = every_cycle.filter(|port| port.reduce == Reduce::EveryCycle);
        let kept = every_cycle
            .map(|port| port.value_width(job.circuit.clock.cycles))
            .sum();
        let wish = job.security.chunk_rows;
        let whole_job = matches!(choice, Choice::Intersected).then(|| job.rows() as u32);
        let chunk_rows = whole_job.or(options.chunk_rows).unwrap_or_else(|| {
            if let Choice::Cut = choice {
                return 1;
            }
            if stock == Stock::Made {
                // A batch of stock is a row.
                return 1;
            }
            if let Choice::Authenticated = choice {
                return crate::ag::ROWS;
            }
            if let Choice::Garbled(garbling) = choice {
                let gates = schedule.layers.iter().map(|l| l.program.products().0);
                let table = crate::yao::table(garbling, 1);
                let widest = gates.max().unwrap_or(0);
                return rows::of_garbled_chunk(schedule.slots, kept, (widest, table), wish);
            }
            // The products of bits that are proved.
            let programs = schedule.layers.iter().filter_map(|l| match circuit.ring {
                Ring::Bits => Some(&l.program),
                Ring::Z32 | Ring::Z64 | Ring::Z128 => l.bits.as_ref(),
            });
            let products = programs.map(|program| u64::from(program.products().0));
            let widest = products.max().filter(|_| proves).unwrap_or(0);
            // Messages of products with MACs, and the weights of their pairs, take as much as slots.
            let authenticated = schedule
                .layers
                .iter()
                .map(|l| Authenticated::of(&l.authenticated));
            let beside = authenticated
                .map(|c| c.messages() + c.pairs())
                .max()
                .unwrap_or(0);
            let slots = schedule.slots.saturating_add(beside);
            let of_layers = schedule.layers.iter().map(|l| {
                let of_bits = l.bits.as_ref().map_or(0, |bits| bits.products().0);
                let of_ring = u64::from(l.program.products().0) * u64::from(words.bits());
                of_ring + u64::from(of_bits)
            });
            let layers: Vec<u64> = of_layers.filter(|bits| *bits > 0).collect();
            let width = layers.iter().sum::<u64>() / layers.len().max(1) as u64;
            rows::of_chunk(words, [slots, schedule.bit_slots], (width, widest), wish)
        });
        if let (Choice::Cut, 2..) = (choice, chunk_rows) {
            return Err(PlanError::Fit(job.security, "chunks of one row"));
        }
        let chunks = rows::chunks(&job, chunk_rows)?;
        if choice.garbles() {
            let labels = if authenticates { crate::ag::LABELS } else { 1 };
            rows::check_garbled(schedule.slots.saturating_mul(labels), kept, chunk_rows)?;
        }
        let mut making = Making::new(words, chunk_rows);
        let layers = making.layers(&mut schedule);
        let once_only = How {
            list: how.list.as_ref().map(List::once),
            ..how
        };
        let alone = |circuit: &Circuit| {
            let schedule = layers::schedule(&lowered(circuit), &[], once_only.clone(), 0);
            schedule.map_err(unordered)
        };
        let job_plan = match split.zip(derived) {
            Some((split, derived)) => {
                let inputs = &schedule.inputs[key..];
                let set_up = alone(&split.job)?;
                Some(making.job(set_up, inputs, derived.first, split.derived))
            }
            None => None,
        };
        schedule.inputs.drain(..key);
        let totals_plan = match &job.totals {
            Some(totals) => Some(making.totals(alone(totals)?, &mut schedule)),
            None => None,
        };
        // A pair of a value and its MAC draws no more for its check than for itself.
        let calls = making.calls_of_chunk(circuit) * (1 + u64::from(has_macs));
        // A label is a block, where a block is otherwise 128 bits of rows.
        let calls = if choice.garbles() { 128 * calls } else { calls };
        let repeated = job.circuit.clock.cycles.saturating_mul(chunks);
        let numbered = !proves || job.circuit.clock.cycles <= MOST_PROVED_CYCLES;
        if !numbered || calls.saturating_mul(repeated.saturating_add(2)) > MOST_PRF_CALLS {
            return Err(PlanError::TooManyPrfCalls);
        }
        let cycles = cycles.map(|(cycles, initial)| CyclesPlan {
            initial: making.add(0, initial),
            // A layer counts as a draw too: so a MAC for each is one.
            counters: calls + layers.len() as u64,
            ..cycles
        });
        let of_ring = making.programs[0].len();
        let mut plan = Plan {
            ring: circuit.ring,
            words,
            stock,
            silent: None,
            lanes: options.lanes.max(1),
            chunk_rows,
            slots: schedule.slots,
            bit_slots: schedule.bit_slots,
            job_slots: making.job_slots,
            job_wide: schedule.job_wide,
            macs_of_job_wide,
            sums: schedule.sums,
            inputs: schedule.inputs,
            outputs: schedule.outputs,
            programs: making.programs.concat(),
            job_plan,
            totals_plan,
            layers,
            cycles,
            depth: schedule.depth,
            orders,
            hash: PlanHash([0; 32]),
            job,
        };
        plan.number_bits(of_ring);
        if let Choice::Shared(scheme) = choice {
            count_before(scheme, &mut plan);
        }
        plan.check_macs()?;
        if authenticates {
            if plan.job.security.ot == Ot::Silent {
                plan.silent = crate::ag::saving(&plan);
            }
            let calls = crate::ag::Shape::of(&plan).calls(&plan);
            let calls = calls.saturating_mul(chunks.saturating_add(2));
            if calls.saturating_add(crate::ag::expanded(&plan)) > MOST_PRF_CALLS {
                return Err(PlanError::TooManyPrfCalls);
            }
        }
        plan.hash = hash::of(&plan);
        Ok(plan)
    }

    /// The same plan by silent transfers of other parameters, whether they send less or not; nothing changes where a plan has no batches that take transfers. For measurements.
    #[must_use]
    pub fn expanding(mut self, set: Lpn) -> Plan {
        if crate::ag::transfer_bytes(&self).is_some() {
            self.silent = Some(set);
        }
        self.hash = hash::of(&self);
        self
    }

    /// The same plan for another number of lanes, which is all that differs but for the hash.
    #[must_use]
    pub fn on_lanes(mut self, lanes: u16) -> Plan {
        self.lanes = lanes.max(1);
        if self.silent.is_some() {
            self.silent = crate::ag::saving(&self);
        }
        self.hash = hash::of(&self);
        self
    }

    /// Every message of products of integers is that of a value and a MAC, or of a MAC of what is kept, if there are MACs.
    fn check_macs(&self) -> Result<(), PlanError> {
        let authenticated = |layer: &LayerPlan| {
            let authenticated = Authenticated::of(&layer.authenticated);
            (layer.products, layer.sums) == (authenticated.messages(), 2 * authenticated.sums)
        };
        match self.all_layers().position(|layer| !authenticated(layer)) {
            Some(layer) if self.has_macs() => Err(PlanError::NoMacs { layer }),
            _ => Ok(()),
        }
    }

    /// Numbers the programs over bits from `first`, after those over the circuit's ring.
    fn number_bits(&mut self, first: usize) {
        for bits in self.all_layers_mut().filter_map(|l| l.bits.as_mut()) {
            bits.program += first;
        }
    }
}

/// The order of products that a job asks for, where it is not that of layers.
fn list(job: &JobSpec, step: Option<&Step>) -> Option<List> {
    match job.security.schedule {
        veil_job::Schedule::Layers => None,
        veil_job::Schedule::List(rows) => Some(List {
            rows: rows.count(),
            cycles: job.circuit.clock.cycles,
            registers: step.map_or(0..0, Step::registers),
        }),
    }
}

/// Which job-wide values have MACs, and where; the port of these MACs, the last one, is taken out of the schedule.
fn macs_of_job_wide(schedule: &mut Schedule, of: &[Wire]) -> MacsOfJobWide {
    if of.is_empty() {
        return MacsOfJobWide::default();
    }
    let macs = schedule.inputs.pop().expect("codes are the last port");
    let ports = schedule.inputs.iter();
    let job_wide = ports.flat_map(|port| (0..port.width).map(|k| port.first + k));
    let job_wide: Vec<u32> = job_wide.collect();
    MacsOfJobWide {
        of: of.iter().map(|wire| job_wide[wire.0 as usize]).collect(),
        first: macs.first,
    }
}

/// What the schedules of a plan have taken so far.
struct Making {
    /// The ring that integers are computed in.
    words: Ring,
    /// Counters that a product of the circuit's ring takes, and one of bits.
    strides: [u64; 2],
    /// Programs over the circuit's ring, and over bits in a circuit of integers.
    programs: [Vec<Arc<Program>>; 2],
    /// Counters that a frame takes, over all schedules.
    calls: u64,
    /// Slots of the set-up and the totals, whichever has more.
    job_slots: [u32; 2],
}

impl Making {
    fn new(words: Ring, chunk_rows: u32) -> Self {
        let stride = |ring: Ring| rows::stride(ring, chunk_rows);
        Making {
            words,
            strides: [stride(words), stride(Ring::Bits)],
            programs: [vec![], vec![]],
            calls: 0,
            job_slots: [0; 2],
        }
    }

    /// The layers of a schedule, whose programs are numbered after those that there are. Every program's draws follow those of the
    /// one before it: of row products under one tag, of sums under another, of random values under a third, of lifts under those of lifts. Draws of
    /// bits follow those of integers.
    fn layers(&mut self, schedule: &mut Schedule) -> Vec<LayerPlan> {
        let (mut calls, mut sum_calls, mut randoms, mut lifted) = (0u64, 0u64, 0u64, 0u64);
        let mut truncated = 0u64;
        let mut layers = Vec::with_capacity(schedule.layers.len());
        for mut layer in schedule.layers.drain(..) {
            let (products, sums) = layer.program.products();
            for conversion in &mut layer.conversions {
                // A stride of integers for each, for random bits as well.
                if let Conversion::Random { first } = &mut conversion.how {
                    *first = randoms;
                    randoms += u64::from(conversion.count) * self.strides[0];
                }
            }
            for lifts in &mut layer.lifts {
                // The number of a lift; a stride of integers for each.
                lifts.first *= self.strides[0];
            }
            lifted += u64::from(layer.lifts[0].count()) * self.strides[0];
            for plan in layer.truncations.iter_mut().flatten() {
                plan.first = [0, 1].map(|of| plan.first[of] * self.strides[of]);
            }
            for plan in &layer.truncations[0] {
                let digits = if plan.digits { plan.by } else { 0 };
                // Of each, a key is called for three elements at most, and for digits.
                truncated += u64::from(plan.count())
                    * (3 * self.strides[0] + u64::from(digits) * self.strides[1]);
            }
            layers.push(self.layer(layer, calls, sum_calls));
            calls += u64::from(products) * self.strides[0];
            sum_calls += u64::from(sums);
        }
        for bits in layers.iter_mut().filter_map(|l| l.bits.as_mut()) {
            bits.first_call = calls;
            calls += u64::from(bits.products) * self.strides[1];
        }
        // Of each lift, a key is called for two elements at most.
        self.calls += calls + sum_calls + randoms + 2 * lifted + truncated;
        layers
    }

    fn layer(&mut self, layer: Layer, first_call: u64, first_sum_call: u64) -> LayerPlan {
        let (products, sums) = layer.program.products();
        let bits = layer.bits.map(|program| BitsPlan {
            products: program.products().0,
            program: self.add(1, program),
            first_call: 0,
        });
        let program = Program {
            ring: self.words,
            ..layer.program
        };
        LayerPlan {
            program: self.add(0, program),
            products,
            sums,
            first_call,
            first_sum_call,
            conversions: layer.conversions,
            bits,
            opened: layer.opened,
            lifts: layer.lifts,
            truncations: layer.truncations,
            authenticated: layer.authenticated,
            before: Before::default(),
        }
    }

    fn add(&mut self, kind: usize, mut program: Program) -> usize {
        // A long circuit has as many programs as layers, of a few instructions each.
        program.pairs.shrink_to_fit();
        program.code.shrink_to_fit();
        self.programs[kind].push(Arc::new(program));
        self.programs[kind].len() - 1
    }

    /// The layers of a schedule of one row, whose slots share a workspace with those of the others.
    fn job_layers(&mut self, schedule: &mut Schedule) -> Vec<LayerPlan> {
        let [slots, bit_slots] = self.job_slots;
        self.job_slots = [slots.max(schedule.slots), bit_slots.max(schedule.bit_slots)];
        self.layers(schedule)
    }

    /// The set-up, which computes `width` values into the job-wide values from `job_value` on. `inputs` are the ports of the rows.
    fn job(
        &mut self,
        mut set_up: Schedule,
        inputs: &[PortPlan],
        job_value: u32,
        width: u32,
    ) -> JobPlan {
        let layers = self.job_layers(&mut set_up);
        let supplied = inputs.iter().filter(|p| p.per == Per::Job);
        JobPlan {
            inputs: supplied
                .zip(set_up.inputs.iter().filter(|p| p.per == Per::Row))
                .map(|(p, j)| (p.first, j.first, p.width))
                .collect(),
            slot: set_up.outputs[0].first,
            job_value,
            width,
            layers,
        }
    }

    /// What is computed of the sums that `rows` makes, whose outputs become as wide as its results: less may be opened than was summed.
    fn totals(&mut self, mut totals: Schedule, rows: &mut Schedule) -> TotalsPlan {
        let layers = self.job_layers(&mut totals);
        let shared = rows.inputs.iter().filter(|p| p.per == Per::Job);
        let summed = rows.outputs.iter_mut().filter(|o| o.gives == Gives::Sum);
        // With MACs their key is a job-wide value.
        let ports = totals.inputs.iter().filter(|p| p.per == Per::Row);
        let ports: Vec<&PortPlan> = ports.collect();
        TotalsPlan {
            slot: ports[0].first,
            width: ports[0].width,
            inputs: shared
                .zip(&ports[1..])
                .map(|(port, own)| (port.first, own.first, own.width))
                .collect(),
            results: summed
                .zip(&totals.outputs)
                .map(|(sum, result)| {
                    sum.width = result.width;
                    (sum.first, result.first, result.width)
                })
                .collect(),
            layers,
        }
    }

    /// Counters that a chunk may take under one key.
    fn calls_of_chunk(&self, circuit: &Circuit) -> u64 {
        self.calls + u64::from(circuit.input_wires()) * self.strides[0]
    }
}
