//! The plan: what all participants agree on before anything input-dependent is sent (rule R5).

mod authenticate;
mod check;
mod cycles;
mod emit;
mod hash;
mod hoist;
mod layers;
mod list;
mod make;
mod mixed;
mod net;
mod order;
mod parts;
mod rows;
mod slots;
mod small;

use std::sync::Arc;

use veil_circuit::schedule::ScheduleError;
use veil_device::{Lpn, Program};
use veil_job::{Audience, JobSpec, Schedule, Security, Word};
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};

pub use cycles::CyclesPlan;
pub use order::OrderPlan;
pub(crate) use parts::Before;
pub use parts::{
    BitsPlan, Conversion, ConversionPlan, Gives, JobPlan, LayerPlan, LiftPlan, MacPlan,
    MacsOfJobWide, OpenedPlan, OutputPlan, PortPlan, TotalsPlan, TruncationPlan,
};
pub use rows::{Chunk, WorkspaceOf};

/// Choices of a plan that are not in the job. All participants must choose alike: they are under the plan hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Logical lanes: parts of the batch that run in parallel, on as many cores.
    pub lanes: u16,
    /// Rows of a chunk; `None`: as many as the job says if memory has room, or else so many that a workspace stays within the cache.
    pub chunk_rows: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            lanes: 1,
            chunk_rows: None,
        }
    }
}

/// What a run between two parties does about authenticated products, or about transfers of inputs where neither party is malicious: they are made for it, taken from a stock, or
/// made for one. Under the plan hash: both parties choose alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stock {
    /// They are made on the way.
    #[default]
    Fresh,
    /// They come from a stock that both parties have made before.
    Used,
    /// The run makes nothing else: the job is [`stock_of`](crate::ag::stock_of), or [`transfers_of`](crate::yao::transfers_of).
    Made,
}

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The circuit breaks a rule.
    #[error("the circuit is malformed: {0}")]
    Circuit(String),
    /// Lists of the job do not fit each other.
    #[error("the job is malformed: {0}")]
    Job(&'static str),
    /// No protocol for what the job asks.
    #[error(
        "this release has no protocol for what the job asks: {0}; `veil explain` says what a job has that leaves \
         `adversary` and `delivery` out"
    )]
    NoProtocol(Security),
    /// A ring that the protocol does not compute on.
    #[error(
        "{0} computes on bits and on integers modulo 2^64: integers modulo 2^128 need four parties (rep4), or \
         `adversary = \"semi-honest\"`"
    )]
    TooWide(Security),
    /// A ring that garbled circuits do not compute on.
    #[error(
        "{0} computes on bits: integers need three parties or four; or write a circuit of bits that computes on their bits"
    )]
    BitsOnly(Security),
    /// A chunk of a garbled circuit with too many rows or labels.
    #[error(
        "a chunk of {chunk_rows} rows has {bytes} bytes of labels; at most 65536 rows and 4 GiB are garbled at once: choose shorter chunks, or \
         open outputs of the last cycle instead of every one"
    )]
    TooManyLabels {
        /// Rows of a chunk.
        chunk_rows: u32,
        /// Bytes of its labels.
        bytes: u64,
    },
    /// No order of so many gates.
    #[error("the gates have no order `{}`: {error}; or leave `schedule` out", schedule.word())]
    NoOrder {
        /// The order that was asked for.
        schedule: Schedule,
        /// Why there is none.
        error: ScheduleError,
    },
    /// A property of the job that its protocol does not support.
    #[error("{0} computes {1} only, and the job has others")]
    Fit(Security, &'static str),
    /// Stock of a protocol that has none.
    #[error(
        "{0} takes nothing from a stock: only two parties have one, with `adversary = \"malicious\"` or `\"semi-honest\"`; leave the stock out"
    )]
    NoStock(Security),
    /// Stock of transfers for a job that has none.
    #[error(
        "all values of the job are those of the garbler, the first party: a run takes no transfers from a stock; leave the stock out"
    )]
    NothingTaken,
    /// Silent transfers of a protocol that takes none.
    #[error(
        "{0}: only authenticated garbling takes silent transfers, and no intersection: leave `ot` out"
    )]
    NoSilent(Security),
    /// A job of two parties that keeps or loads shares.
    #[error("{0} keeps no shares and loads none: name three parties, or four")]
    NoShares(Security),
    /// Products that the protocol checks by MACs have none: a defect of the planner.
    #[error("layer {layer} of the plan has products without codes: report this circuit")]
    NoMacs {
        /// The layer.
        layer: usize,
    },
    /// Several runs of one job would have different results, and a participant might see more than one of them.
    #[error(
        "the circuit draws or rounds at random, and a job with `delivery = \"guaranteed\"` may take several runs, each with another \
         result: leave `delivery` out, or truncate exactly"
    )]
    Random,
    /// Too many digests of a key column.
    #[error(
        "block `{block}` compares {digests} digests of the order of its rows, and {} is the most: \
         compare every {} rows or more",
        order::MOST,
        every
    )]
    TooManyDigests {
        /// Name of the block.
        block: String,
        /// Digests that it asks for.
        digests: u64,
        /// The fewest rows per digest that would do.
        every: u64,
    },
    /// Too many keys that meet.
    #[error(
        "a party has up to {keys} keys, and up to {most} can meet: split the list by a part of the key"
    )]
    TooManyKeys {
        /// Keys of a party.
        keys: u64,
        /// The most.
        most: u64,
    },
    /// Too large for 32-bit chunk numbers.
    #[error(
        "{rows} rows in chunks of {chunk_rows} are more than 2^32 chunks: choose longer chunks"
    )]
    TooManyRows {
        /// Rows of the job.
        rows: u64,
        /// Rows of a chunk.
        chunk_rows: u32,
    },
    /// Outputs of every cycle take too much memory until they are opened.
    #[error(
        "an output of every cycle has {width} bits in each row, which are shares until the last cycle is checked: open the last cycle, or \
         run fewer cycles"
    )]
    TooManyKept {
        /// Bits of all cycles.
        width: u64,
    },
    /// A key would be used beyond its bound.
    #[error("the plan draws more than 2^40 blocks under one key: split the job")]
    TooManyPrfCalls,
}

/// The plan. Made once per circuit; its size does not depend on the number of rows.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job.
    pub job: Arc<JobSpec>,
    /// Ring of all values.
    pub ring: Ring,
    /// Ring that integers are computed in: a larger one where values have MACs.
    pub words: Ring,
    /// Where products of authenticated garbling come from.
    pub stock: Stock,
    /// The parameters by which transfers of its batches are silent, if they are.
    pub silent: Option<Lpn>,
    /// Lanes.
    pub lanes: u16,
    /// Rows of a full chunk.
    pub chunk_rows: u32,
    /// Slots of the workspace of a chunk.
    pub slots: u32,
    /// Slots of bits of the same, in a circuit of integers.
    pub bit_slots: u32,
    /// Slots of the workspace of the set-up, and of the workspace of the totals: of the circuit's ring, and of bits in addition to it.
    pub job_slots: [u32; 2],
    /// Values that all rows use: supplied values, then values derived from them.
    pub job_wide: u32,
    /// Which of these have MACs, in the rows.
    pub macs_of_job_wide: MacsOfJobWide,
    /// Sums over rows.
    pub sums: u32,
    /// Input ports, in order.
    pub inputs: Vec<PortPlan>,
    /// Output ports, in order.
    pub outputs: Vec<OutputPlan>,
    /// Programs, one per layer, then the set-up's; then the programs over bits in a circuit of integers.
    pub programs: Vec<Arc<Program>>,
    /// Computation on the values that all rows use.
    pub job_plan: Option<JobPlan>,
    /// Computation on the sums over all rows.
    pub totals_plan: Option<TotalsPlan>,
    /// Layers in order, of one cycle; the last one has no products and computes the linear gates after the others.
    pub layers: Vec<LayerPlan>,
    /// How often the layers are computed, and the copies in between, if the circuit is sequential.
    pub cycles: Option<CyclesPlan>,
    /// Multiplicative depth, of one cycle.
    pub depth: u32,
    /// Blocks whose holders compare the order of a key column.
    pub orders: Vec<OrderPlan>,
    /// SHA-256 over all of the above.
    pub hash: PlanHash,
}

/// Products times rows that are proved together, unless a single layer has more: a party keeps nine bytes of each until they are.
pub(crate) const PROVED_GATES: u64 = 1 << 19;

/// Regions of programs, as in [`crate::rep3`]'s layout.
pub(crate) const SLOTS: u16 = 0;
pub(crate) const JOB_WIDE: u16 = 1;
pub(crate) const SUMS: u16 = 2;
pub(crate) const BIT_SLOTS: u16 = 23;
pub(crate) const BIT_JOB_WIDE: u16 = 24;
pub(crate) const BIT_SUMS: u16 = 25;

/// Slots, job-wide values and sums: of the circuit's ring, and of bits in a circuit of integers, which has no job-wide values and sums of them.
const REGIONS: [[u16; 3]; 2] = [[SLOTS, JOB_WIDE, SUMS], [BIT_SLOTS, BIT_JOB_WIDE, BIT_SUMS]];

impl Plan {
    /// The computing parties, in order.
    pub fn parties(&self) -> &'static [PartyId] {
        parties(&self.job)
    }

    /// Layers of the rows, then of the set-up, then of the totals.
    pub fn all_layers(&self) -> impl Iterator<Item = &LayerPlan> {
        self.layers_of(WorkspaceOf::Rows)
            .chain(self.layers_of(WorkspaceOf::Job))
    }

    /// The same, to be changed.
    pub(crate) fn all_layers_mut(&mut self) -> impl Iterator<Item = &mut LayerPlan> {
        let of_set_up = self.job_plan.iter_mut().flat_map(|j| &mut j.layers);
        let of_totals = self.totals_plan.iter_mut().flat_map(|t| &mut t.layers);
        self.layers.iter_mut().chain(of_set_up).chain(of_totals)
    }

    /// Layers of the rows, or the layers on one row: of the set-up, then of the totals.
    pub fn layers_of(&self, of: WorkspaceOf) -> impl Iterator<Item = &LayerPlan> {
        let of_set_up = self.job_plan.as_ref().map_or(&[][..], |j| &j.layers);
        let of_totals = self.totals_plan.as_ref().map_or(&[][..], |t| &t.layers);
        match of {
            WorkspaceOf::Rows => self.layers.iter().chain(&[]),
            WorkspaceOf::Job => of_set_up.iter().chain(of_totals),
        }
    }

    /// In which workspaces each program runs: workspaces of chunks, or workspaces of the set-up and the totals.
    pub fn workspaces_of_programs(&self) -> Vec<WorkspaceOf> {
        let mut workspaces = vec![WorkspaceOf::Job; self.programs.len()];
        for layer in &self.layers {
            let bits = layer.bits.as_ref().map(|bits| bits.program);
            for program in [layer.program].into_iter().chain(bits) {
                workspaces[program] = WorkspaceOf::Rows;
            }
        }
        if let Some(cycles) = &self.cycles {
            workspaces[cycles.initial] = WorkspaceOf::Rows;
        }
        workspaces
    }

    /// Whether something is opened in every row.
    pub fn opens_rows(&self) -> bool {
        let mut outputs = self.outputs.iter().zip(&self.job.audiences);
        let opened = |a: &Audience| !matches!(a, Audience::Stored | Audience::Column);
        outputs.any(|(o, a)| o.gives == Gives::Row && opened(a))
    }

    /// Whether parties keep shares.
    pub fn keeps(&self) -> bool {
        self.job.audiences.contains(&Audience::Stored)
    }

    /// Whether sums over rows are columns of one row.
    pub fn leaves_sums(&self) -> bool {
        let mut outputs = self.outputs.iter().zip(&self.job.audiences);
        outputs.any(|(o, a)| o.gives == Gives::Sum && *a == Audience::Column)
    }

    /// Whether the run ends with an agreement of its own, after the last chunk of all lanes: for sums to be opened, and for
    /// shares to be kept.
    pub fn has_totals(&self) -> bool {
        self.sums > 0 && !self.leaves_sums() || self.keeps()
    }

    /// How often the layers are computed in every row.
    pub fn cycle_count(&self) -> u64 {
        self.cycles.as_ref().map_or(1, |cycles| cycles.count)
    }

    /// Products per row, over all layers and cycles, of the circuit's ring.
    pub fn products(&self) -> u64 {
        let of_cycle: u64 = self.layers.iter().map(|l| u64::from(l.products)).sum();
        of_cycle.saturating_mul(self.cycle_count())
    }

    /// Products of bits per row in a circuit of integers, over all layers.
    pub fn bit_products(&self) -> u64 {
        let of = |l: &LayerPlan| l.bits.as_ref().map_or(0, |bits| bits.products);
        self.layers.iter().map(|l| u64::from(of(l))).sum()
    }

    /// Bits per row that are lifted to integers by messages of their own, over all layers.
    pub fn lifts(&self) -> u64 {
        let of = |l: &LayerPlan| u64::from(l.lifts[0].count());
        self.layers.iter().map(of).sum()
    }

    /// Integers per row that are truncated by messages of their own, over all layers.
    pub fn truncations(&self) -> u64 {
        let of = self.layers.iter().flat_map(|l| &l.truncations[0]);
        of.map(|truncations| u64::from(truncations.count())).sum()
    }

    /// Counters that the draws of a column of this ring take: those of a full chunk, whatever rows there are.
    pub(crate) fn stride(&self, ring: Ring) -> u64 {
        rows::stride(ring, self.chunk_rows)
    }

    /// Whether parties draw random values, or open something behind them, while they compute.
    pub fn is_random(&self) -> bool {
        let randoms = |c: &ConversionPlan| matches!(c.how, Conversion::Random { .. });
        self.all_layers()
            .any(|layer| layer.conversions.iter().any(randoms))
    }

    /// Whether integers have MACs, which are checked before anything is opened.
    pub fn has_macs(&self) -> bool {
        self.words != self.ring
    }

    /// Products of bits of a layer: of the circuit's ring, or beside its integers.
    pub(crate) fn products_of_bits(&self, layer: &LayerPlan) -> u32 {
        match self.ring {
            Ring::Bits => layer.products,
            Ring::Z32 | Ring::Z64 | Ring::Z128 => {
                layer.bits.as_ref().map_or(0, |bits| bits.products)
            }
        }
    }

    /// Whether the circuit has both integers and bits, which are converted on shares.
    pub fn is_mixed(&self) -> bool {
        self.bit_slots > 0 || self.job_slots[1] > 0
    }
}

/// The computing parties of a job.
fn parties(job: &JobSpec) -> &'static [PartyId] {
    match job.parties.len() {
        2 => &PartyId::TWO,
        4 => &PartyId::FOUR,
        _ => &PartyId::THREE,
    }
}
