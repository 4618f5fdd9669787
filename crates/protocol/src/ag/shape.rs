//! Sizes of a plan: what a batch has, how many cycles share one, and the counters that its draws take.

use veil_circuit::{Circuit, Gate, Per};
use veil_device::Lpn;
use veil_device::ot::Choices;
use veil_math::Ring;

use super::bounds::{self, layers};
use super::expansion::{self, Stream};
use super::inputs::{self, Taken};
use super::{GATES, batch, opening, outside, place, stock};
use crate::ot::silent;
use crate::plan::{Plan, Stock};
use crate::yao::{Group, grouped};

/// Input bits of all rows that are authenticated at once in a window of cycles, if a cycle does not have more: a megabyte of slots.
const WINDOW: u64 = 1 << 14;

/// Cycles of a batch, at most: there are commands for each.
const CYCLES: u64 = 1 << 10;

/// Sizes of a plan: of its batches and of what is staged.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Consecutive layers of a cycle whose gates are a batch.
    pub(super) groups: Vec<Group>,
    /// Cycles whose gates are a batch together: more than one only where each has one group.
    pub(super) together: u32,
    /// Cycles of the plan, and of a window.
    cycles: [u64; 2],
    /// Candidates of a layer of a batch.
    pub(super) candidates: u32,
    /// Layers of candidates.
    pub(super) layers: u32,
    /// Gates of the longest batch, in a row.
    pub(super) gates: u32,
    /// Input wires with a value per row, of a window of cycles, and with a value per job, with those that hide what owners are told.
    wires: [u32; 3],
    /// Wires that hide what one participant from outside is told: in a workspace of rows, and in that of the set-up.
    hiding: [u32; 2],
    /// Participants from outside that supply inputs of a block at once, and that are told outputs.
    pub(super) owners: u32,
    pub(super) recipients: u32,
    /// Where products come from.
    pub(super) stock: Stock,
    /// The parameters of silent transfers of batches, if they are silent.
    silent: Option<Lpn>,
    /// Rows of a full chunk.
    chunk_rows: u32,
    /// Cells of stock: of the inputs that all rows use, and of a chunk.
    pub(super) cells: (u64, Counters),
    /// Counters of leaves.
    pub(super) leaves: Counters,
    /// Counters of drawn parts.
    pub(super) parts: Counters,
    /// Counters of active labels.
    pub(super) labels: Counters,
}

/// Counters of a chunk: those of the inputs of rows, then those of windows of cycles, of batches, and of openings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    rows: u64,
    window: u64,
    windows: u64,
    batch: u64,
    opening: u64,
}

impl Counters {
    /// All of a chunk with so many batches.
    pub(super) fn all(&self, batches: u64) -> u64 {
        self.batch(batches).saturating_add(self.opening)
    }

    /// The first of inputs.
    pub(super) fn inputs(&self, taken: Taken) -> u64 {
        match taken {
            Taken::Rows | Taken::Job => 0,
            Taken::Window(number) => {
                let windows = number.saturating_mul(self.window);
                self.rows.saturating_add(windows)
            }
        }
    }

    /// The first of a batch.
    pub(super) fn batch(&self, number: u64) -> u64 {
        let batches = number.saturating_mul(self.batch);
        self.inputs(Taken::Window(self.windows))
            .saturating_add(batches)
    }
}

/// Cycles of a sequential circuit, in so many rows at once, whose inputs are taken together and whose gates are a batch: as many as fit, in batches of
/// about the same length. There is at least one.
pub(crate) fn window(circuit: &Circuit, rows: u64) -> u64 {
    let cycles = circuit.clock.cycles;
    let gates = circuit.gates.iter();
    let gates = gates.filter(|gate| matches!(gate, Gate::Mul(..))).count() as u64;
    let ports = circuit.inputs.iter().filter(|port| port.per == Per::Cycle);
    let wires: u64 = ports.map(|port| u64::from(port.width)).sum();
    let fit = |most: u64, each: u64| most / each.max(1).saturating_mul(rows.max(1));
    let most = fit(GATES, gates).min(fit(WINDOW, wires)).clamp(1, CYCLES);
    let batches = cycles.div_ceil(most).max(1);
    cycles.div_ceil(batches).max(1)
}

impl Shape {
    pub(crate) fn of(plan: &Plan) -> Self {
        let rows = u64::from(plan.longest_chunk().max(1));
        let cycles = plan.cycles.as_ref();
        let cycles = cycles.map_or([1, 1], |cycles| [cycles.count, cycles.window]);
        let groups = grouped(&plan.layers, GATES / rows);
        let together = match groups[..] {
            [_] => cycles[1] as u32,
            _ => 1,
        };
        let gates = groups.iter().map(|group| group.gates).max().unwrap_or(0) * together;
        let least = match plan.stock {
            Stock::Fresh => bounds::LEAST.into(),
            Stock::Used => 1,
            Stock::Made => GATES,
        };
        let candidates = (u64::from(gates) * rows).max(least);
        let candidates = u32::try_from(candidates.next_multiple_of(128));
        let candidates = candidates.expect("a chunk that fits into memory has fewer gates");
        let layers = match plan.stock {
            Stock::Used => 1,
            Stock::Fresh | Stock::Made => layers(plan.job.security.statistical.bits(), candidates),
        };
        let hiding = [outside::fewest_rows(plan), 1].map(|rows| outside::HIDING.div_ceil(rows));
        let kinds = [Per::Row, Per::Cycle, Per::Job];
        let owners = kinds.map(|per| outside::owners(plan, per));
        let recipients = outside::recipients(plan).len() as u32;
        let hidden = [hiding[0], hiding[0], hiding[1]];
        let wires = [0, 1, 2].map(|k| inputs::wires(plan, kinds[k]) + owners[k] * hidden[k]);
        let arrays = 3 * layers + 1;
        let windows = match wires[1] {
            0 => 0,
            _ => cycles[0].div_ceil(cycles[1]),
        };
        let counters = |of: &dyn Fn(u32) -> u64, batch| Counters {
            rows: of(wires[0]),
            window: of(wires[1]),
            windows,
            batch,
            opening: of(recipients * hiding[0]),
        };
        let leaves = |wires| Choices::Rows.blocks(wires, plan.chunk_rows);
        let parts = |wires| u64::from(wires) * plan.stride(Ring::Bits);
        let labels = |wires| u64::from(wires) * u64::from(plan.chunk_rows);
        let cells = |wires| (u64::from(wires) * rows).div_ceil(stock::BITS);
        let of_batch = if gates > 0 { candidates.into() } else { 0 };
        let cells = (
            u64::from(wires[2]).div_ceil(stock::BITS),
            counters(&cells, of_batch),
        );
        let strings = Choices::Bytes(candidates / 8).blocks(arrays, plan.chunk_rows);
        let blocks = u64::from(candidates / 8).div_ceil(16);
        Shape {
            stock: plan.stock,
            silent: plan.silent,
            chunk_rows: plan.chunk_rows,
            cells,
            leaves: counters(&leaves, strings),
            parts: counters(&parts, u64::from(arrays) * blocks),
            labels: counters(&labels, 0),
            groups,
            together,
            cycles,
            candidates,
            layers,
            gates,
            wires,
            hiding,
            owners: owners.into_iter().max().unwrap_or(0),
            recipients,
        }
    }

    /// Openings of a batch whose bits each party tells at once: of every layer but the first d, then ε and δ, if there are gates.
    pub(super) const fn openings(&self) -> u32 {
        match self.stock {
            Stock::Fresh | Stock::Used => self.layers + 1,
            Stock::Made => self.layers - 1,
        }
    }

    /// Whether products come from a stock.
    pub(super) fn is_stocked(&self) -> bool {
        self.stock == Stock::Used
    }

    /// Under the plan hash.
    pub(crate) fn sizes(&self) -> [u64; 4] {
        [
            self.candidates.into(),
            self.layers.into(),
            self.groups.len() as u64,
            self.wires[0].into(),
        ]
    }

    /// Cycles whose gates are a batch together: under the plan hash.
    pub(crate) fn cycles_together(&self) -> u32 {
        self.together
    }

    /// The stream of silent transfers of a lane of `plan`, if batches have one.
    pub(crate) fn stream(&self, plan: &Plan) -> Option<Stream> {
        Some(expansion::stream(plan, self, self.silent?))
    }

    /// The first counter of the leaves of its base: behind all others.
    pub(super) fn leaves_of_base(&self) -> u64 {
        self.leaves.all(self.batches())
    }

    /// The place of the first round of silent transfers of a group of layers.
    pub(super) fn place_of_stream(&self, stream: &Stream, group: u32) -> u32 {
        self.places_but_of_streams() + group * silent::ROUNDS * stream.most_rounds()
    }

    /// Counters that a chunk takes under one key, at most.
    pub(crate) fn calls(&self, plan: &Plan) -> u64 {
        let of = |counters: &Counters| counters.all(self.batches());
        let stream = self.stream(plan);
        let base = stream.map_or(0, |stream| stream.leaves(self.chunk_rows));
        of(&self.leaves)
            .saturating_add(base)
            .max(of(&self.parts))
            .max(of(&self.labels))
    }

    /// Runs of cycles whose gates are computed together; one, of a circuit without cycles. None goes beyond the end of a window.
    pub(super) fn runs(&self) -> u64 {
        self.cycles[0].div_ceil(self.together.into())
    }

    /// The first cycle of a run, and how many it has.
    pub(super) fn run(&self, run: u64) -> (u64, u32) {
        let first = run * u64::from(self.together);
        let left = self.cycles[0] - first;
        (first, left.min(self.together.into()) as u32)
    }

    /// The window that begins with a cycle, if one does.
    pub(super) fn window(&self, cycle: u64) -> Option<u64> {
        let window = self.cycles[1];
        cycle.is_multiple_of(window).then_some(cycle / window)
    }

    /// Runs of a window.
    pub(super) fn runs_of_window(&self) -> u64 {
        self.cycles[1].div_ceil(self.together.into())
    }

    /// Batches of a chunk.
    pub(super) fn batches(&self) -> u64 {
        self.runs().saturating_mul(self.groups.len() as u64)
    }

    /// Input wires that are staged at once.
    pub(super) fn wires(&self, taken: Taken) -> u32 {
        let [rows, cycles, job] = self.wires;
        match taken {
            Taken::Rows => rows,
            Taken::Window(_) => cycles,
            Taken::Job => job,
        }
    }

    /// Wires that hide what one owner from outside is told.
    pub(super) fn hiding(&self, taken: Taken) -> u32 {
        let [rows, job] = self.hiding;
        match taken {
            Taken::Rows | Taken::Window(_) => rows,
            Taken::Job => job,
        }
    }

    /// Wires that hide what one recipient from outside is told.
    pub(super) fn hiding_outputs(&self) -> u32 {
        self.hiding(Taken::Rows)
    }

    /// The place of the first round in which owners from outside are told masks.
    pub(super) fn place_of_owners(&self, taken: Taken) -> u32 {
        let number = match taken {
            Taken::Rows => 0,
            Taken::Window(_) => 1,
            Taken::Job => 2,
        };
        self.places_of_inputs() + number * inputs::ROUNDS_OUTSIDE
    }

    /// The place of the first round in which recipients from outside are told outputs.
    pub(super) fn place_of_recipients(&self) -> u32 {
        let kinds = if self.owners > 0 { 3 } else { 0 };
        self.places_of_inputs() + kinds * inputs::ROUNDS_OUTSIDE
    }

    /// The place of the first round of inputs.
    pub(super) fn place(&self, taken: Taken) -> u32 {
        let behind = place::BATCHES + batch::ROUNDS * self.groups.len() as u32;
        let of_windows = if self.wires[1] > 0 { inputs::ROUNDS } else { 0 };
        match taken {
            Taken::Rows => place::INPUTS,
            Taken::Window(_) => behind,
            Taken::Job => behind + of_windows,
        }
    }

    /// What parties say of inputs has places below this.
    pub(super) fn places_of_inputs(&self) -> u32 {
        let of_job = if self.wires[2] > 0 { inputs::ROUNDS } else { 0 };
        self.place(Taken::Job) + of_job
    }

    /// Rounds of the plan have places below this.
    pub(super) fn places(&self, plan: &Plan) -> u32 {
        let groups = self.groups.len() as u32;
        let stream = self.stream(plan);
        stream.map_or(self.places_but_of_streams(), |stream| {
            self.place_of_stream(&stream, groups)
        })
    }

    /// The same without rounds of silent transfers, which are behind all others.
    fn places_but_of_streams(&self) -> u32 {
        let told = match self.recipients {
            0 => 0,
            _ => opening::ROUNDS_OUTSIDE,
        };
        self.place_of_recipients() + told
    }

    /// The number of the first challenge of a batch.
    pub(super) const fn challenges(batch: u64) -> u64 {
        1 + batch::CHALLENGES * batch
    }

    /// The number of the challenge of the opening of outputs: behind those of inputs and of all batches.
    pub(super) fn challenge_of_outputs(&self) -> u64 {
        Self::challenges(self.batches())
    }

    /// The number of the challenge of inputs.
    pub(super) fn challenge_of_inputs(&self, taken: Taken) -> u64 {
        match taken {
            Taken::Rows | Taken::Job => 0,
            Taken::Window(number) => self.challenge_of_outputs() + 1 + number,
        }
    }
}
