//! Authenticated garbling: garbled circuits between two parties, secure against one that does whatever it likes.
//!
//! Functionality: a circuit of bits, evaluated on the inputs of the two parties and of outside owners, and opened to whom the job says.
//!
//! Model: two parties, of whom one may be corrupt and malicious; a pairwise key; encrypted, authenticated links; security with abort. Party 0 garbles,
//! party 1 evaluates, both with masks of which each has a part, and with MACs of these parts. A party that lies is found before anything is
//! opened, but for an error of 2^-s in each batch.
//!
//! From: Wang, Ranellucci, Katz, "Authenticated Garbling and Efficient Maliciously Secure Two-Party Computation", CCS 2017; Katz, Ranellucci,
//! Rosulek, Wang, "Optimizing Authenticated Garbling for Faster Secure Two-Party Computation", CRYPTO 2018. Transfers: Roy, "SoftSpokenOT", CRYPTO
//! 2022. Hash: Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for Half-Gates Garbling", CRYPTO 2020. What differs, and why, is in
//! `docs/protocol-ag.md`: products of random bits in the place of one of the gate's own masks, folds of MACs in the place of hashes, and an
//! order of checks in which no message depends on what is not checked.

mod batch;
mod bounds;
mod cycles;
mod expansion;
mod inputs;
mod layout;
mod opening;
mod outside;
mod passes;
mod regions;
mod shape;
mod steps;
mod stock;

use std::borrow::Cow;
use std::sync::Arc;

use veil_device::ot::Choices;
use veil_device::{KeyId, Layout, Lpn, Program, Span, Trees};
use veil_job::{Schedule, Tables};
use veil_session::{Frame, Peer};

use crate::ot::Pins;
use crate::ot::extension::{At, Challenge, Receiver, Sender};
use crate::plan::{Plan, WorkspaceOf};
use crate::round::{
    Back, Cost, Flow, Protocol, Round, Seed, Spans, StockUse, Take, Task, Transfer, Transfers,
};
use crate::yao::{EVALUATOR, GARBLER, LEAVES, OFFSET, PRIVATE, keys, list, peers};
pub use bounds::layers;
use cycles::Runs;
pub use expansion::TransferBytes;
use expansion::number_in_lane;
use inputs::Taken;
pub(crate) use shape::{Shape, window};
use steps::Party;
pub(crate) use stock::computes;
pub use stock::{CELLS_OF_ROW, stock_of};

/// Gates of a layer of a chunk with so many rows, at most: batches of several layers are nearly full then, and no layer is so thin that its commands take longer than its gates.
pub(crate) fn widest(rows: u64) -> u32 {
    (GATES / 16 / rows.max(1)).max(64) as u32
}

/// Rows of a chunk, at most, unless the job or the caller says so.
pub(crate) const ROWS: u32 = 64;

/// Gates of all rows of a batch: another layer is put into it as long as there are no more. Four layers of candidates are then enough for 2^-40.
const GATES: u64 = 1 << 14;

/// Values of 16 bytes of a wire: components of its slot.
pub(crate) const LABELS: u32 = regions::part::ALL as u32;

/// Four bits of an offset for each tree.
const TREES: Trees = match Trees::new(4) {
    Some(trees) => trees,
    None => unreachable!(),
};

/// Leaves of the trees of which the garbler has all.
const BACK_LEAVES: KeyId = KeyId(LEAVES.0 + (TREES.count() * TREES.leaves()) as u16);

/// Places of rounds in the plan. The same for both.
mod place {
    pub(super) const LIST: u32 = 0;
    pub(super) const INPUTS: u32 = 1;
    /// Seven rounds of inputs, and three of outputs. Those of other inputs are behind all others.
    pub(super) const OPEN: u32 = 8;
    pub(super) const BATCHES: u32 = 11;
}

/// What is hashed.
mod label {
    /// What both have of leaky products.
    pub(super) const EQUAL: u16 = 20;
    /// The commitment to that.
    pub(super) const PRODUCTS: u16 = 21;
    /// The commitment to a coin.
    pub(super) const COIN: u16 = 22;
    /// What the shifts follow from.
    pub(super) const SHIFTS: u16 = 23;
    /// Λ of what owners from outside have told.
    pub(super) const MASKED: u16 = 24;
    /// Sums of what participants from outside are told, two of each.
    pub(super) const OUTSIDE: u16 = 25;
}

/// What checks compare, in errors.
mod what {
    pub(super) const INPUTS: &str = "parts of masks of inputs";
    pub(super) const OUTPUTS: &str = "parts of masks of outputs";
    pub(super) const PRODUCTS: &str = "leaky products of authenticated bits";
    pub(super) const COMMITMENT: &str = "what the other party committed to";
    pub(super) const BITS: &str = "bits that are opened of a batch";
    pub(super) const LABELS: &str = "labels of results";
    pub(super) const GATES: &str = "masks of gates";
    pub(super) const MASKED: &str = "masked inputs from outside";
    pub(super) const TOLD: &str = "parts of masks that are told outside";
    pub(super) const RESULTS: &str = "masked results that are told outside";
}

/// The kind of a message, except for tables and transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AgMessage {
    /// Parts of masks of inputs.
    InputParts,
    /// A challenge to leaky products.
    ProductChallenge,
    /// A challenge to MACs of bits that are opened: of masks of inputs, of a batch, of masks of outputs.
    OpeningChallenge,
    /// A challenge to labels of results, or to masks of gates.
    GateChallenge,
    /// Folds of MACs, or of labels.
    Folds,
    /// Λ of inputs.
    Public,
    /// G of leaky products.
    Offers,
    /// Bits d of leaky products.
    Differences,
    /// The garbler's commitment to its digest of leaky products.
    DigestCommitment,
    /// A digest of leaky products.
    Digest,
    /// What hides the garbler's.
    DigestNonce,
    /// The evaluator's commitment to its coin.
    CoinCommitment,
    /// The garbler's coin.
    GarblerCoin,
    /// The evaluator's coin.
    EvaluatorCoin,
    /// What hides it.
    CoinNonce,
    /// Bits that are opened of a batch.
    Opened,
    /// Bits z of tables.
    Colours,
    /// Λ of results.
    Results,
    /// Parts of masks of outputs.
    OutputParts,
    /// The digest of Λ of what owners from outside have told.
    MaskedDigest,
    /// Parts of masks of outputs, to a recipient from outside; those of inputs to an owner are [`InputParts`](Self::InputParts).
    OutsideParts,
    /// Λ of outputs, to a recipient from outside.
    OutsideResults,
    /// A challenge from outside.
    OutsideChallenge,
    /// The sum of the other party's parts, from outside.
    OutsideSum,
    /// Digests of sums, to a participant from outside.
    OutsideAnswers,
}

/// The kind of a message of this protocol.
pub fn ag_message(of: &Transfer) -> Option<AgMessage> {
    regions::message(of.span)
}

/// Whether inputs are taken in the round at a place: those of rows, of a window of cycles, or of the job, of parties or from outside.
pub fn takes_inputs(plan: &Plan, place: u32) -> bool {
    let shape = Shape::of(plan);
    let of_rows = place::INPUTS..place::OPEN;
    of_rows.contains(&place)
        || (shape.place(Taken::Window(0))..shape.place_of_recipients()).contains(&place)
}

/// Which of the three rounds of silent transfers is at a place, if one is.
pub fn silent_round(plan: &Plan, place: u32) -> Option<u32> {
    let shape = Shape::of(plan);
    let first = shape.place_of_stream(&shape.stream(plan)?, 0);
    let round = place.checked_sub(first)?;
    Some(round % crate::ot::silent::ROUNDS)
}

/// Both ends of the transfers of a party, of some items of choices.
#[derive(Clone, Copy, Debug)]
struct Ends {
    sender: Sender,
    receiver: Receiver,
}

impl Ends {
    fn new(layout: &mut Layout, me: Party, items: (u32, Choices)) -> Self {
        let (some, all) = if me.garbles() {
            (LEAVES, BACK_LEAVES)
        } else {
            (BACK_LEAVES, LEAVES)
        };
        let challenge = Challenge::Coin(PRIVATE);
        let peer = me.peer();
        Ends {
            sender: Sender::new(layout, peer, (TREES, items), challenge, (some, OFFSET)).pinned(),
            receiver: Receiver::new(layout, peer, (TREES, items), challenge, all).pinned(),
        }
    }

    /// The rounds in which parts become MACs, and the other party's parts keys.
    fn rounds(&self, at: At, parts: Span, [macs, keys]: [Span; 2]) -> [Vec<Round>; 2] {
        [
            self.receiver.rounds(at, parts, macs),
            self.sender.rounds(at, keys),
        ]
    }
}

/// Authenticated garbling, as one participant runs it.
#[derive(Debug)]
pub struct Authenticated {
    plan: Arc<Plan>,
    me: Peer,
    shape: Arc<Shape>,
    /// Of the workspaces of chunks, and of that of the set-up.
    layouts: [Layout; 2],
    spans: Spans,
    set_up: Arc<[Arc<Round>]>,
    inputs: Vec<Arc<[Arc<Round>]>>,
    open: Arc<[Arc<Round>]>,
    /// All batches, and the inputs of cycles.
    runs: Arc<Runs>,
}

impl Authenticated {
    /// The rounds of participant `me`.
    pub fn new(plan: Arc<Plan>, me: Peer) -> Self {
        let shape = Arc::new(Shape::of(&plan));
        let [mut rows, mut job] =
            [WorkspaceOf::Rows, WorkspaceOf::Job].map(|of| layout::of(&plan, &shape, me, of));
        let shared = |rounds: Vec<Round>| -> Arc<[Arc<Round>]> {
            rounds.into_iter().map(Arc::new).collect()
        };
        let party = me.party().map(Party);
        let fresh = party.filter(|_| !shape.is_stocked());
        let ends = |layout: &mut Layout, wires| {
            let party = fresh.filter(|_| wires > 0);
            party.map(|me| Ends::new(layout, me, (wires, Choices::Rows)))
        };
        let of_rows = ends(&mut rows, shape.wires(Taken::Rows));
        let packed = (shape.arrays(), Choices::Bytes(shape.candidates / 8));
        let of_batches = fresh.map(|me| Ends::new(&mut rows, me, packed));
        let silent = plan.silent.zip(fresh);
        let of_streams = silent.map(|(set, me)| expansion::Ends::new(&mut rows, me, set));
        let of_windows = ends(&mut rows, shape.wires(Taken::Window(0)));
        let of_outputs = ends(&mut rows, shape.recipients * shape.hiding_outputs());
        let of_job = ends(&mut job, shape.wires(Taken::Job));
        let taken = |block: usize, taken, ends: Option<&Ends>| {
            inputs::rounds((&plan, &shape), (me, block), taken, ends)
        };
        let blocks = 0..plan.job.blocks.len();
        let inputs = blocks.map(|block| shared(taken(block, Taken::Rows, of_rows.as_ref())));
        let lists = [true, false].map(regions::list);
        let set_up = me.party().map(|me| list(me, place::LIST, lists));
        let of_job = taken(0, Taken::Job, of_job.as_ref());
        let set_up = set_up.into_iter().chain(of_job).collect();
        let mut open = match me {
            Peer::Party(me) => opening::rounds(&plan, &shape, Party(me)),
            Peer::Recipient(me) => opening::hear(&plan, &shape, me),
            Peer::Owner(_) => vec![],
        };
        if let Some(me) = party.filter(|_| shape.recipients > 0) {
            open.extend(opening::tell(&plan, &shape, me, of_outputs.as_ref()));
        }
        let runs = Runs {
            plan: Arc::clone(&plan),
            shape: Arc::clone(&shape),
            me,
            of_batches,
            of_streams,
            of_windows,
        };
        let mut spans = regions::spans(&plan, &shape, me);
        if let Some(ends) = &of_streams {
            spans.kept = ends.kept();
            spans.zeros = Some(zeros(&rows, &spans.kept));
        }
        Authenticated {
            spans,
            set_up: shared(set_up),
            inputs: inputs.collect(),
            open: shared(open),
            runs: Arc::new(runs),
            layouts: [rows, job],
            shape,
            plan,
            me,
        }
    }

    /// What rounds cost in a frame.
    fn cost_of(
        &self,
        of: WorkspaceOf,
        rounds: impl Iterator<Item = Arc<Round>>,
        frame: Frame,
    ) -> Cost {
        Cost::of_rounds(self.layout(of), rounds, frame)
    }
}

/// All columns of a workspace but those of regions that are kept: a chunk finds what it would find in a new one.
fn zeros(layout: &Layout, kept: &[Span]) -> Vec<Span> {
    let regions = (0..).zip(&layout.regions);
    let others = regions.filter(|(region, _)| kept.iter().all(|span| span.region != *region));
    let all = others.flat_map(|(region, of)| {
        (0..of.components).map(move |component| layout.all(region, component))
    });
    all.filter(|span| span.count > 0).collect()
}

/// The set by which silent transfers of a plan's batches send the fewest bytes, if these are fewer than those of the extension.
pub(crate) fn saving(plan: &Plan) -> Option<Lpn> {
    let (set, bytes) = expansion::best(plan)?;
    (bytes.silent < bytes.extension).then_some(set)
}

/// What transfers of a plan's batches send, where it has batches that take some.
pub fn transfer_bytes(plan: &Plan) -> Option<TransferBytes> {
    let (_, bytes) = expansion::best(plan)?;
    Some(bytes)
}

/// PRF calls of silent transfers under the common key.
pub(crate) fn expanded(plan: &Plan) -> u64 {
    let stream = Shape::of(plan).stream(plan);
    stream.map_or(0, |stream| stream.calls(plan))
}

/// What the protocol does not compute, if the job asks for it.
pub(crate) fn unfit(job: &veil_job::JobSpec) -> Option<&'static str> {
    if job.security.tables != Tables::HalfGates {
        Some("half-gates")
    } else if job.security.schedule != Schedule::Layers {
        Some("gates in the order of layers")
    } else {
        None
    }
}

impl Protocol for Authenticated {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn guarantee(&self) -> Cow<'static, str> {
        let bits = self.plan.job.security.statistical.bits();
        format!(
            "malicious, with abort: private and right against either party, but for an error of 2^-{bits} in each batch of {} gates, by authenticated garbling",
            self.shape.candidates
        )
        .into()
    }

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self, of: WorkspaceOf) -> &Layout {
        let [rows, job] = &self.layouts;
        match of {
            WorkspaceOf::Rows => rows,
            WorkspaceOf::Job => job,
        }
    }

    fn programs(&self) -> &[Arc<Program>] {
        match self.me {
            Peer::Party(_) => &self.plan.programs,
            Peer::Owner(_) | Peer::Recipient(_) => &[],
        }
    }

    fn flow(&self, task: Task, frame: Frame) -> Flow {
        let (rounds, clears) = match task {
            Task::SetUp => (Arc::clone(&self.set_up), false),
            Task::Inputs { block } => (Arc::clone(&self.inputs[block as usize]), false),
            Task::Layers => {
                return Arc::clone(&self.runs).flow(frame);
            }
            // Each party has checked what the other one said of every batch, and opens nothing to a party that it has not checked.
            Task::Agree => (Arc::from([]), true),
            Task::Open(_) => (Arc::clone(&self.open), false),
            Task::Totals | Task::OpenTotals(_) => (Arc::from([]), false),
        };
        Flow::new(rounds, clears)
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        let of = match task {
            Task::SetUp => WorkspaceOf::Job,
            Task::Inputs { .. } | Task::Layers | Task::Open(_) => WorkspaceOf::Rows,
            Task::Agree | Task::Totals | Task::OpenTotals(_) => return Cost::default(),
        };
        match task {
            Task::Layers => self.runs.cost(frame, |rounds| {
                self.cost_of(of, rounds.iter().cloned(), frame)
            }),
            _ => self.cost_of(of, self.flow(task, frame).all(), frame),
        }
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        self.shape.places(&self.plan)
    }

    fn goes_on(&self, frame: Frame) -> bool {
        let carries = !self.spans.kept.is_empty();
        carries && number_in_lane(&self.plan, frame).is_some_and(|number| number > 0)
    }

    fn carried(&self) -> Cost {
        let frame = Frame {
            rows: self.plan.longest_chunk(),
            ..self.plan.set_up_frame()
        };
        self.runs.carried(|rounds| {
            let rounds = rounds.into_iter().map(Arc::new);
            self.cost_of(WorkspaceOf::Rows, rounds, frame)
        })
    }

    fn stock(&self) -> Option<StockUse> {
        self.stock_use()
    }

    fn feeds_inputs(&self, place: u32) -> bool {
        // The one round of an owner that feeds takes its inputs.
        let window = Taken::Window(0);
        let takes = self.shape.wires(window) > 0 && place == self.shape.place(window);
        takes || self.me.party().is_none()
    }

    fn takes(&self, place: u32, cycle: u64, frame: Frame) -> Option<Take> {
        self.cells_of(place, cycle, frame)
    }

    fn peers(&self) -> Vec<Peer> {
        peers(&self.plan.job, self.me)
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        keys(self.me, peer)
    }

    fn transfers(&self) -> Option<Transfers> {
        // Bit 1 of the garbler's offset is 1, that of the evaluator's 0.
        let pins = |value| Pins::new(3, value);
        let party = self.me.party().filter(|_| !self.shape.is_stocked());
        party.map(|_| Transfers {
            sender: Peer::Party(GARBLER),
            receiver: Peer::Party(EVALUATOR),
            trees: TREES,
            offset: OFFSET,
            leaves: LEAVES,
            pins: pins(3),
            back: Some(Back {
                offset: OFFSET,
                leaves: BACK_LEAVES,
                pins: pins(1),
            }),
        })
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        Seed::own(self.me, by, PRIVATE)
    }
}
