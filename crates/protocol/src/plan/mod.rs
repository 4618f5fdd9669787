//! The plan: what all participants agree on before anything input-dependent is sent (rule R5).

mod emit;
mod hash;
mod hoist;
mod layers;
mod mixed;
mod order;

use std::sync::Arc;

use veil_circuit::{Circuit, OutputPort, Per, Reduce};
use veil_device::Program;
use veil_math::Ring;
use veil_program::{Audience, Block, Holder, Lowered, Security};
use veil_session::{Frame, PartyId, PlanHash};

use mixed::Net;
pub use order::OrderPlan;

use crate::replicated::scheme_of;

/// Choices of a plan that are not in the job. All participants must choose alike: they are under the plan hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Logical lanes: parts of the batch that run in parallel, on as many cores.
    pub lanes: u16,
    /// Rows of a chunk; `None`: chosen from the circuit's width so that a bank stays within the cache.
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
    /// What the protocol does not compute on.
    #[error(
        "{0} computes on bits: a circuit over integers needs four parties, or `adversary = \"semi-honest\"`"
    )]
    OnlyBits(Security),
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
    /// A key would be used beyond its bound.
    #[error("the plan draws more than 2^40 blocks under one key: split the job")]
    TooManyDraws,
}

/// Slots or uniforms of an input port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortPlan {
    /// How often there is a value.
    pub per: Per,
    /// First slot (a value per row) or first uniform (one per job).
    pub first: u32,
    /// Wires.
    pub width: u32,
}

/// A layer: its program, its messages, its draws.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayerPlan {
    /// Index in [`Plan::programs`].
    pub program: usize,
    /// Products with one element per row.
    pub products: u32,
    /// Products with one element in all.
    pub sums: u32,
    /// Counter of product 0 among the draws of row products.
    pub first_draw: u64,
    /// Counter of sum 0 among the draws of sums.
    pub first_sum_draw: u64,
    /// What is converted between integers and bits before anything else, in order.
    pub conversions: Vec<ConversionPlan>,
    /// What it computes on bits in a circuit of integers.
    pub bits: Option<BitsPlan>,
}

/// What a layer computes on bits, beside integers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitsPlan {
    /// Index in [`Plan::programs`].
    pub program: usize,
    /// Products, one bit per row each.
    pub products: u32,
    /// Counter of product 0 among the draws of row products.
    pub first_draw: u64,
}

/// Conversions of components. Of one component they make what is shared with zeros for all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConversionPlan {
    /// What is done.
    pub how: Conversion,
    /// First slot of bits that are lifted, or the slot or uniform of the integer that is split or shifted.
    pub from: u32,
    /// Whether the integer is one that all rows share.
    pub shared: bool,
    /// First slot of the results, of bits or of integers.
    pub to: u32,
    /// How many there are.
    pub count: u32,
}

/// What is done to components.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// Bits of one component are taken.
    Split {
        /// The component.
        component: u8,
        /// The first of the bits.
        bit: u32,
    },
    /// One component of bits becomes integers.
    Lift {
        /// The component.
        component: u8,
    },
    /// Every component is divided by 2^by and rounded down.
    Shift {
        /// Bits that go.
        by: u32,
    },
}

impl ConversionPlan {
    /// The conversion that continues this one by `count`, if there is one.
    fn after(self, count: u32) -> Option<Self> {
        let (how, from) = match self.how {
            Conversion::Split { component, bit } => {
                let bit = bit + count;
                (Conversion::Split { component, bit }, self.from)
            }
            Conversion::Lift { .. } => (self.how, self.from + count),
            Conversion::Shift { .. } => return None,
        };
        Some(ConversionPlan { how, from, ..self })
    }
}

/// How often an output port has a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gives {
    /// In every row.
    Row,
    /// Once: the sum over the rows.
    Sum,
    /// Once: a value that all rows use, which is only kept.
    Once,
}

/// An output port: where its values are when all layers are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutputPlan {
    /// Per row, summed, or once.
    pub gives: Gives,
    /// First slot, first item of the sums, or first uniform.
    pub first: u32,
    /// Wires.
    pub width: u32,
}

/// What is computed once, in the set-up, from values that all rows share: on one row, over the same slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobPlan {
    /// First uniform, first slot and width of each port with a value per job.
    pub inputs: Vec<(u32, u32, u32)>,
    /// First slot of the results.
    pub slot: u32,
    /// First uniform of the results.
    pub uniform: u32,
    /// Number of results.
    pub width: u32,
    /// Layers, as [`Plan::layers`].
    pub layers: Vec<LayerPlan>,
}

/// What is computed once of the sums over all rows, before they are opened: on one row, over the same slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TotalsPlan {
    /// First slot of the sums.
    pub slot: u32,
    /// First item of the sums, first slot and width of each result, which takes the place of the sums there.
    pub results: Vec<(u32, u32, u32)>,
    /// Layers, as [`Plan::layers`].
    pub layers: Vec<LayerPlan>,
}

/// A chunk of the batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Names the chunk in messages and draws.
    pub frame: Frame,
    /// Block that its rows belong to.
    pub block: u32,
    /// First row, within the block.
    pub first: u64,
}

/// The plan. Made once per circuit; its size does not depend on the number of rows.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job.
    pub job: Arc<Lowered>,
    /// Ring of all values.
    pub ring: Ring,
    /// Lanes.
    pub lanes: u16,
    /// Rows of a full chunk.
    pub chunk_rows: u32,
    /// Slots of a bank.
    pub slots: u32,
    /// Slots of bits in a circuit of integers.
    pub bit_slots: u32,
    /// Values that all rows use: those that are supplied, then those that are derived from them.
    pub uniforms: u32,
    /// Sums over rows.
    pub sums: u32,
    /// Input ports, in order.
    pub inputs: Vec<PortPlan>,
    /// Output ports, in order.
    pub outputs: Vec<OutputPlan>,
    /// Programs, one per layer, then those of the set-up; then those over bits in a circuit of integers.
    pub programs: Vec<Arc<Program>>,
    /// What is derived from values that all rows use.
    pub job_plan: Option<JobPlan>,
    /// What is derived from the sums.
    pub totals_plan: Option<TotalsPlan>,
    /// Layers in order; the last one has no products and computes what is linear after the others.
    pub layers: Vec<LayerPlan>,
    /// Multiplicative depth.
    pub depth: u32,
    /// Blocks whose holders compare the order of a key column.
    pub orders: Vec<OrderPlan>,
    /// SHA-256 over all of the above.
    pub hash: PlanHash,
}

/// Bytes that the live slots of a chunk may take: a share of a 1 MiB level-2 cache, beside messages and the other banks of the core.
const BANK_BYTES: u64 = 512 * 1024;

/// The shortest and the longest chunk chosen by itself. Shorter ones are all overhead; longer ones only add latency.
const CHUNK_ROWS: (u64, u64) = (512, 16 * 1024);

/// Products times rows that are proved together, unless a single layer has more: a party keeps nine bytes of each until they are.
pub(crate) const PROVED_GATES: u64 = 1 << 19;

/// The shortest chunk of a plan that proves its products, however wide its layers are.
const FEWEST_PROVED_ROWS: u64 = 64;

/// Regions of programs, as in [`crate::rep3`]'s layout.
pub(crate) const SLOTS: u16 = 0;
pub(crate) const UNIFORMS: u16 = 1;
pub(crate) const SUMS: u16 = 2;
pub(crate) const BIT_SLOTS: u16 = 24;
pub(crate) const BIT_UNIFORMS: u16 = 25;
pub(crate) const BIT_SUMS: u16 = 26;

/// Slots, uniforms and sums: of the circuit's ring, and of bits in a circuit of integers, which has no uniforms and sums of them.
const REGIONS: [[u16; 3]; 2] = [[SLOTS, UNIFORMS, SUMS], [BIT_SLOTS, BIT_UNIFORMS, BIT_SUMS]];

/// Blocks that one key may encrypt (protocol documentation, "PRF").
const MOST_DRAWS: u64 = 1 << 40;

impl Plan {
    /// Plans `job`.
    pub fn new(job: Arc<Lowered>, options: Options) -> Result<Plan, PlanError> {
        let circuit = &job.circuit;
        circuit
            .validate()
            .map_err(|e| PlanError::Circuit(e.to_string()))?;
        if job.blocks.is_empty() || job.blocks.iter().any(|b| b.rows == 0) {
            return Err(PlanError::Job("every block needs at least one row"));
        }
        if job
            .blocks
            .iter()
            .any(|b| b.holders.len() != circuit.inputs.len())
        {
            return Err(PlanError::Job(
                "every block needs one holder per input port",
            ));
        }
        if job.audiences.len() != circuit.outputs.len() || job.opened.len() != circuit.outputs.len()
        {
            return Err(PlanError::Job(
                "every output port needs an audience and a description",
            ));
        }
        if !(PartyId::THREE.len()..=PartyId::FOUR.len()).contains(&job.parties.len()) {
            return Err(PlanError::Job("three parties compute, or four"));
        }
        if job.security.sharing.parties() != job.parties.len() {
            return Err(PlanError::Job(
                "the protocol is of as many parties as the job names",
            ));
        }
        if scheme_of(job.security).is_none() {
            return Err(PlanError::NoProtocol(job.security));
        }
        let names_dataset = |b: &Block| b.stored.is_some() == b.holders.contains(&Holder::Stored);
        if !job.blocks.iter().all(names_dataset) {
            return Err(PlanError::Job(
                "a block names a dataset exactly if it loads a port from one",
            ));
        }
        let orders = order::of(&job)?;
        if circuit.ring == Ring::Bits && circuit.outputs.iter().any(|o| o.reduce == Reduce::Sum) {
            return Err(PlanError::Job("bits cannot be summed over rows"));
        }
        for (k, port) in circuit.inputs.iter().enumerate() {
            let first = job.blocks[0].holders[k];
            if port.per == Per::Job && job.blocks.iter().any(|b| b.holders[k] != first) {
                return Err(PlanError::Job(
                    "a value per job has the same holder in every block",
                ));
            }
        }
        let has = |party: &PartyId| party.index() < job.parties.len();
        let reads = |a: &Audience| !matches!(a, Audience::Party(p) if !has(p));
        if !job.audiences.iter().all(reads) {
            return Err(PlanError::Job("audiences name parties of the job"));
        }
        let known = |h: &Holder| match h {
            Holder::Party(party) => has(party),
            Holder::Owner(owner) => usize::from(*owner) < job.owners.len(),
            Holder::Stored => true,
        };
        if !job.blocks.iter().flat_map(|b| &b.holders).all(known)
            || job.owners.len() > 1024
            || job.recipients.len() > 1024
        {
            return Err(PlanError::Job(
                "holders name parties and owners of the job, and there are at most 1024 owners",
            ));
        }
        let proves = scheme_of(job.security).is_some_and(|scheme| scheme.products.proof.is_some());
        if proves && circuit.ring != Ring::Bits {
            return Err(PlanError::OnlyBits(job.security));
        }
        let split = hoist::split(circuit);
        let once: Vec<Option<usize>> = (job.audiences.iter().enumerate())
            .map(|(port, audience)| match audience {
                Audience::Stored => job.passes_through(port),
                _ => None,
            })
            .collect();
        let components = job.parties.len();
        let net = Net::of(split.as_ref().map_or(circuit, |s| &s.rows), components);
        let mut schedule = layers::schedule(&net, &once, proves);
        let chunk_rows = options.chunk_rows.unwrap_or_else(|| {
            let products = schedule
                .layers
                .iter()
                .map(|l| u64::from(l.program.products().0));
            let widest = products.max().filter(|_| proves).unwrap_or(0);
            chunk_rows(circuit.ring, [schedule.slots, schedule.bit_slots], widest)
        });
        let most = |rows: u64| rows.div_ceil(u64::from(chunk_rows.max(1)));
        let chunks: u64 = job
            .blocks
            .iter()
            .map(|b| most(b.rows))
            .fold(0, u64::saturating_add);
        // Set-up and totals are chunks too, and a frame's rows are 32 bits.
        if chunk_rows == 0 || chunks >= u64::from(u32::MAX) - 2 {
            return Err(PlanError::TooManyRows {
                rows: job.rows(),
                chunk_rows,
            });
        }
        let stride = circuit.ring.bytes(u64::from(chunk_rows)).div_ceil(16);
        let bit_stride = Ring::Bits.bytes(u64::from(chunk_rows)).div_ceil(16);
        let strides = [stride, bit_stride];
        let (mut layers, mut programs, draws) = layer_plans(schedule.layers, 0, strides);
        let mut slots = schedule.slots;
        let mut job_draws = 0;
        let job_plan = split.map(|split| {
            let derived = schedule
                .inputs
                .pop()
                .expect("the derived values are the last port");
            let net = Net::of(&split.job, components);
            let job = layers::schedule(&net, &[], proves);
            let before = programs[0].len();
            let (layers, own, draws) = layer_plans(job.layers, before, strides);
            job_draws = draws;
            slots = slots.max(job.slots);
            for (all, own) in programs.iter_mut().zip(own) {
                all.extend(own);
            }
            let supplied = schedule.inputs.iter().filter(|p| p.per == Per::Job);
            let inputs = supplied
                .zip(&job.inputs)
                .map(|(p, j)| (p.first, j.first, p.width))
                .collect();
            JobPlan {
                inputs,
                slot: job.outputs[0].first,
                uniform: derived.first,
                width: split.derived,
                layers,
            }
        });
        let mut bit_slots = schedule.bit_slots;
        let mut totals_draws = 0;
        let mut totals_plan = match &job.totals {
            None => None,
            Some(totals) => {
                check_totals(circuit, totals)?;
                let net = Net::of(totals, components);
                let own = layers::schedule(&net, &[], proves);
                let before = [programs[0].len(), programs[1].len()];
                let (mut layers, made, draws) = layer_plans(own.layers, before[0], strides);
                for bits in layers.iter_mut().filter_map(|l| l.bits.as_mut()) {
                    bits.program += before[1];
                }
                totals_draws = draws;
                slots = slots.max(own.slots);
                bit_slots = bit_slots.max(own.bit_slots);
                for (all, made) in programs.iter_mut().zip(made) {
                    all.extend(made);
                }
                let summed = schedule.outputs.iter().filter(|o| o.gives == Gives::Sum);
                Some(TotalsPlan {
                    slot: own.inputs[0].first,
                    results: summed
                        .zip(&own.outputs)
                        .map(|(sum, result)| (sum.first, result.first, sum.width))
                        .collect(),
                    layers,
                })
            }
        };
        let of_ring = programs[0].len();
        let of_totals = totals_plan.iter_mut().flat_map(|t| &mut t.layers);
        for bits in layers
            .iter_mut()
            .chain(of_totals)
            .filter_map(|l| l.bits.as_mut())
        {
            bits.program += of_ring;
        }
        let inputs = u64::from(circuit.input_wires()) * stride;
        if (draws + job_draws + totals_draws + inputs).saturating_mul(chunks + 2) > MOST_DRAWS {
            return Err(PlanError::TooManyDraws);
        }
        let mut plan = Plan {
            ring: circuit.ring,
            lanes: options.lanes.max(1),
            chunk_rows,
            slots,
            bit_slots,
            uniforms: schedule.uniforms,
            sums: schedule.sums,
            inputs: schedule.inputs,
            outputs: schedule.outputs,
            programs: programs.into_iter().flatten().map(Arc::new).collect(),
            job_plan,
            totals_plan,
            layers,
            depth: schedule.depth,
            orders,
            hash: PlanHash([0; 32]),
            job,
        };
        plan.hash = hash::of(&plan);
        Ok(plan)
    }

    /// The computing parties, in order.
    pub fn parties(&self) -> &'static [PartyId] {
        parties(&self.job)
    }

    /// Layers of the rows, then those of the set-up, then those of the totals.
    pub fn all_layers(&self) -> impl Iterator<Item = &LayerPlan> {
        let of_totals = self.totals_plan.iter().flat_map(|t| &t.layers);
        self.layers
            .iter()
            .chain(self.job_plan.iter().flat_map(|j| &j.layers))
            .chain(of_totals)
    }

    /// Number of chunks that hold rows.
    pub fn chunks(&self) -> u32 {
        let of = |rows: u64| rows.div_ceil(u64::from(self.chunk_rows)) as u32;
        self.job.blocks.iter().map(|b| of(b.rows)).sum()
    }

    /// The frame of the set-up: chunk 0.
    pub fn set_up_frame(&self) -> Frame {
        Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 1,
        }
    }

    /// The frame in which totals are opened: the chunk after the last.
    pub fn totals_frame(&self) -> Frame {
        Frame {
            epoch: 0,
            lane: 0,
            chunk: self.chunks() + 1,
            rows: 1,
        }
    }

    /// Chunk `index`, from 0: it belongs to lane `index mod lanes`, and is number `index + 1` in frames. Nothing beyond the last.
    pub fn chunk(&self, index: u32) -> Option<Chunk> {
        let mut before = 0u32;
        for (block, b) in self.job.blocks.iter().enumerate() {
            let count = b.rows.div_ceil(u64::from(self.chunk_rows)) as u32;
            if index - before < count {
                let first = u64::from(index - before) * u64::from(self.chunk_rows);
                let rows = (b.rows - first).min(u64::from(self.chunk_rows)) as u32;
                let lane = (index % u32::from(self.lanes)) as u16;
                let frame = Frame {
                    epoch: 0,
                    lane,
                    chunk: 1 + index,
                    rows,
                };
                return Some(Chunk {
                    frame,
                    block: block as u32,
                    first,
                });
            }
            before += count;
        }
        None
    }

    /// Whether something is opened in every row.
    pub fn opens_rows(&self) -> bool {
        let mut outputs = self.outputs.iter().zip(&self.job.audiences);
        outputs.any(|(o, a)| o.gives == Gives::Row && *a != Audience::Stored)
    }

    /// Whether parties keep shares.
    pub fn keeps(&self) -> bool {
        self.job.audiences.contains(&Audience::Stored)
    }

    /// Whether the run ends with an agreement of its own, after the last chunk of all lanes: for sums to be opened, and for
    /// shares to be kept.
    pub fn has_totals(&self) -> bool {
        self.sums > 0 || self.keeps()
    }

    /// Rows of the longest chunk: what is proved of products is proved of so many.
    pub(crate) fn proved_rows(&self) -> u32 {
        let longest = self.job.blocks.iter().map(|b| b.rows).max().unwrap_or(0);
        longest.min(u64::from(self.chunk_rows)) as u32
    }

    /// Products per row, over all layers, of the circuit's ring.
    pub fn products(&self) -> u64 {
        self.layers.iter().map(|l| u64::from(l.products)).sum()
    }

    /// Products of bits per row in a circuit of integers, over all layers.
    pub fn bit_products(&self) -> u64 {
        let of = |l: &LayerPlan| l.bits.as_ref().map_or(0, |bits| bits.products);
        self.layers.iter().map(|l| u64::from(of(l))).sum()
    }

    /// Whether the circuit has both integers and bits, which are converted on shares.
    pub fn is_mixed(&self) -> bool {
        self.bit_slots > 0
    }
}

/// What is computed of the sums reads all of them, and puts a value in the place of each.
fn check_totals(circuit: &Circuit, totals: &Circuit) -> Result<(), PlanError> {
    totals
        .validate()
        .map_err(|e| PlanError::Circuit(e.to_string()))?;
    let widths = |outputs: &[OutputPort], of: fn(&&OutputPort) -> bool| -> Vec<usize> {
        let outputs = outputs.iter().filter(of);
        outputs.map(|o| o.wires.len()).collect()
    };
    let sums = widths(&circuit.outputs, |o| o.reduce == Reduce::Sum);
    let fits = totals.ring == circuit.ring
        && matches!(&totals.inputs[..], [port] if port.per == Per::Row)
        && u64::from(totals.input_wires()) == sums.iter().sum::<usize>() as u64
        && widths(&totals.outputs, |_| true) == sums
        && totals.outputs.iter().all(|o| o.reduce == Reduce::None);
    if fits {
        Ok(())
    } else {
        Err(PlanError::Job(
            "what is computed of sums reads all of them, and puts a value in the place of each",
        ))
    }
}

/// The computing parties of a job.
fn parties(job: &Lowered) -> &'static [PartyId] {
    match job.parties.len() {
        4 => &PartyId::FOUR,
        _ => &PartyId::THREE,
    }
}

/// The layers of a schedule, whose programs over the circuit's ring are numbered from `first`; these programs, and those over bits, which
/// are numbered from 0; and how many counters they draw. Every program's draws follow those of the one before it: of row products under one
/// tag, of sums under another. Draws of bits follow those of integers; `strides` are the counters that a product of each takes.
fn layer_plans(
    schedule: Vec<layers::Layer>,
    first: usize,
    strides: [u64; 2],
) -> (Vec<LayerPlan>, [Vec<Program>; 2], u64) {
    let (mut draws, mut sum_draws) = (0u64, 0u64);
    let mut layers = Vec::with_capacity(schedule.len());
    let mut programs = [Vec::new(), Vec::new()];
    for (k, layer) in schedule.into_iter().enumerate() {
        let (products, sums) = layer.program.products();
        programs[0].push(layer.program);
        layers.push(LayerPlan {
            program: first + k,
            products,
            sums,
            first_draw: draws,
            first_sum_draw: sum_draws,
            conversions: layer.conversions,
            bits: layer.bits.map(|program| {
                let (products, _) = program.products();
                programs[1].push(program);
                BitsPlan {
                    program: programs[1].len() - 1,
                    products,
                    first_draw: 0,
                }
            }),
        });
        draws += u64::from(products) * strides[0];
        sum_draws += u64::from(sums);
    }
    for bits in layers.iter_mut().filter_map(|l| l.bits.as_mut()) {
        bits.first_draw = draws;
        draws += u64::from(bits.products) * strides[1];
    }
    (layers, programs, draws + sum_draws)
}

/// Rows such that the slots of a bank, of the circuit's ring and of bits beside it, two components each, fit the budget, and the products of a layer of
/// `widest` that are proved fit one batch: a power of two, whole vectors but of very wide layers.
fn chunk_rows(ring: Ring, [slots, bit_slots]: [u32; 2], widest: u64) -> u32 {
    let bits = 2 * (u64::from(slots.max(1)) * u64::from(ring.bits()) + u64::from(bit_slots));
    let rows = (BANK_BYTES * 8 / bits).clamp(CHUNK_ROWS.0, CHUNK_ROWS.1);
    let most = (PROVED_GATES / widest.max(1)).max(FEWEST_PROVED_ROWS);
    1 << rows.min(most).ilog2()
}
