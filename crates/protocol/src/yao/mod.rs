//! Garbled circuits between two parties, secure against one that is semi-honest.
//!
//! Functionality: a circuit of bits, evaluated on the inputs of both parties and of outside owners, and opened to whom the job says.
//!
//! Model: two parties, of whom one may be corrupt and follows the protocol; a pairwise key; encrypted, authenticated links. Party 0
//! garbles, party 1 evaluates. Two labels per AND gate go from the garbler to the evaluator, and nothing back, so that rounds do not grow with
//! the depth of the circuit.
//!
//! From: Yao, "How to Generate and Exchange Secrets", FOCS 1986; Zahur, Rosulek, Evans, "Two Halves Make a Whole", EUROCRYPT 2015
//! (half-gates); Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for Half-Gates Garbling", CRYPTO 2020 (the hash; proof: section 6
//! there). Labels of the evaluator's inputs are what its oblivious transfers give it ([`ot`](crate::ot)). Where we differ: labels of the garbler's
//! inputs are drawn by both from their common key, and the garbler puts its value into the other label, so that they cost no message; an
//! outside owner shares its values among the two.
//!
//! `docs/protocol-yao.md` tells it in full.

mod cost;
mod cycles;
mod inputs;
mod layers;
mod making;
mod opening;
mod regions;
mod stock;
mod transfers;

pub(crate) use cost::table;
pub(crate) use inputs::list;
pub(crate) use layers::{Group, cycles_together, grouped};
pub use making::{CHECKED, TRANSFERS_OF_ROW, transfers_of};
pub(crate) use making::{Making, making};
pub(crate) use regions::is_transferred;
pub use stock::masks_offset;
pub(crate) use transfers::Ends;

use std::borrow::Cow;
use std::sync::Arc;

use veil_device::{Command, KeyId, Layout, Op, PrfCall, Program, Span};
use veil_job::JobSpec;
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, PartyId, Peer};

use crate::ot::Pins;
use crate::plan::{Plan, Stock, WorkspaceOf};
use crate::round::{
    Cost, Flow, Protocol, Round, Seed, Spans, StockUse, Take, Task, Transfer, Transfers,
};

/// Who garbles.
pub const GARBLER: PartyId = PartyId::TWO[0];
/// Who evaluates.
pub const EVALUATOR: PartyId = PartyId::TWO[1];

/// The key of the two parties' common draws: active labels of the garbler's inputs, and the start point of a chunk's hash.
pub const COMMON: KeyId = KeyId(0);
/// The offset between the two labels of a wire, at the garbler.
pub const OFFSET: KeyId = KeyId(1);
/// The key of the garbler's own draws.
pub const PRIVATE: KeyId = KeyId(2);
/// The seed of owner 0, at the owner and at the evaluator; those of others follow.
const FIRST_SEED: u16 = 16;
/// The first leaf of the trees of oblivious transfer; those of others follow.
pub(crate) const LEAVES: KeyId = KeyId(FIRST_SEED + MOST_OWNERS);
/// As many owners as a job has.
const MOST_OWNERS: u16 = 1024;

/// Places of rounds in the plan. The same for every participant.
mod place {
    pub(super) const LIST: u32 = 0;
    pub(super) const JOB_INPUTS: u32 = 1;
    pub(super) const INPUTS: u32 = 2;
    pub(super) const OPEN: u32 = 3;
    pub(super) const CYCLE_INPUTS: u32 = 4;
    pub(super) const LAYERS: u32 = 5;
}

/// Garbled circuits, as one participant runs them.
#[derive(Debug)]
pub struct Yao {
    plan: Arc<Plan>,
    me: Peer,
    /// Layouts of the workspaces of chunks, and of the workspaces of one row.
    layouts: [Layout; 2],
    spans: Spans,
    messages: layers::Messages,
    set_up: Arc<[Arc<Round>]>,
    inputs: Vec<Arc<[Arc<Round>]>>,
    layers: Arc<[Arc<Round>]>,
    /// The layers of a sequential circuit, in the place of `layers`.
    cycles: Option<Arc<cycles::Cycles>>,
    open: Arc<[Arc<Round>]>,
    /// Transfers that it takes from a stock, and the ends of them in the workspace of a chunk and in that of the set-up, at a party.
    counts: stock::Counts,
    stocked: Option<[stock::End; 2]>,
}

impl Yao {
    /// The rounds of participant `me`.
    pub fn new(plan: Arc<Plan>, me: Peer) -> Self {
        let messages = layers::Messages::of(&plan);
        let blocks = 0..plan.job.blocks.len();
        let of_rows = blocks.map(|block| inputs::Inputs::of_rows(&plan, me, block));
        let of_rows: Vec<_> = of_rows.collect();
        let blocks = 0..plan.job.blocks.len();
        let of_cycles = blocks.map(|block| inputs::Inputs::of_cycles(&plan, me, block));
        let in_chunks: Vec<_> = of_rows.iter().cloned().chain(of_cycles).collect();
        let of_job = vec![inputs::Inputs::of_job(&plan, me)];
        let workspace = |of, inputs: &[inputs::Inputs<'_>]| {
            let mut layout = regions::layout(&plan, &messages, me, of, inputs);
            let wires = inputs.iter().map(inputs::Inputs::transferred).collect();
            let ends = match plan.stock {
                Stock::Used => transfers::Ends::of_stock(&mut layout, me, &wires),
                Stock::Fresh | Stock::Made => transfers::Ends::new(&mut layout, me, &wires),
            };
            (layout, ends)
        };
        let (rows, row_ends) = workspace(WorkspaceOf::Rows, &in_chunks);
        let (job, job_ends) = workspace(WorkspaceOf::Job, &of_job);
        let list = |rounds: Vec<Round>| -> Arc<[Arc<Round>]> {
            rounds.into_iter().map(Arc::new).collect()
        };
        let inputs = of_rows.iter().map(|inputs| list(inputs.rounds(&row_ends)));
        let inputs = inputs.collect();
        let set_up = list(set_up(&plan, &messages, me, of_job[0].rounds(&job_ends)));
        Yao {
            spans: regions::spans(&plan, me),
            set_up,
            inputs,
            cycles: cycles::Cycles::of(&plan, &messages, me, &row_ends).map(Arc::new),
            layers: match plan.cycles {
                Some(_) => Arc::from([]),
                None => list(layers::of_rows(&plan, &messages, me)),
            },
            open: list(opening::open(&plan, me)),
            counts: stock::Counts::of(&plan, me),
            stocked: row_ends
                .stocked()
                .zip(job_ends.stocked())
                .map(<[_; 2]>::from),
            messages,
            plan,
            me,
            layouts: [rows, job],
        }
    }
}

/// Agreement on the list of inputs, then the job-wide inputs, and what follows from them.
fn set_up(plan: &Plan, messages: &layers::Messages, me: Peer, inputs: Vec<Round>) -> Vec<Round> {
    let mut rounds = Vec::new();
    let lists = [true, false].map(regions::list);
    rounds.extend(me.party().map(|me| list(me, place::LIST, lists)));
    rounds.extend(inputs);
    rounds.extend(layers::of_job(plan, messages, me));
    rounds
}

impl Protocol for Yao {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn guarantee(&self) -> Cow<'static, str> {
        "semi-honest: private against either party that follows the protocol; transfers of inputs are checked".into()
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
        if let (Task::Layers, Some(cycles)) = (task, &self.cycles) {
            let cycles = Arc::clone(cycles);
            let block = self.plan.block_of(frame) as usize;
            if cycles.rests(block) {
                return Flow::of(vec![]);
            }
            let runs = self.messages.runs(&self.plan);
            return Flow::cycles(runs, Arc::new(move |run| cycles.rounds(run, block)));
        }
        let (rounds, clears) = match task {
            Task::SetUp => (Arc::clone(&self.set_up), false),
            Task::Inputs { block } => (Arc::clone(&self.inputs[block as usize]), false),
            Task::Layers => (Arc::clone(&self.layers), false),
            // Nothing is left to check: what was transferred was checked before a table left, and tables are not.
            Task::Agree => (Arc::from([]), true),
            Task::Open(_) => (Arc::clone(&self.open), false),
            // Bits have no sums over rows.
            Task::Totals | Task::OpenTotals(_) => (Arc::from([]), false),
        };
        Flow::new(rounds, clears)
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        cost::of(&self.plan, &self.messages, self.me, task, frame)
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        let of_stock = match self.plan.stock {
            Stock::Used => stock::PLACES,
            Stock::Fresh | Stock::Made => 0,
        };
        self.messages.places() + of_stock
    }

    fn stock(&self) -> Option<StockUse> {
        self.stock_use()
    }

    fn takes(&self, place: u32, cycle: u64, frame: Frame) -> Option<Take> {
        self.transfers_of(place, cycle, frame)
    }

    fn feeds_inputs(&self, place: u32) -> bool {
        place == place::CYCLE_INPUTS
    }

    fn own_offset(&self) -> Option<KeyId> {
        // Without a set-up of transfers, which makes one.
        let garbles = self.me == Peer::Party(GARBLER);
        (garbles && self.plan.stock == Stock::Used).then_some(OFFSET)
    }

    fn peers(&self) -> Vec<Peer> {
        peers(&self.plan.job, self.me)
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        keys(self.me, peer)
    }

    fn transfers(&self) -> Option<Transfers> {
        transfers(self.me).filter(|_| self.plan.stock != Stock::Used)
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        let seed = |key, holders| Seed {
            index: 0,
            key,
            holders,
            digest: None,
        };
        let evaluator = Peer::Party(EVALUATOR);
        match by {
            Peer::Owner(owner) if [by, evaluator].contains(&self.me) => {
                vec![seed(seed_key(owner), vec![evaluator])]
            }
            Peer::Party(GARBLER) if self.me == by => vec![seed(PRIVATE, vec![])],
            _ => vec![],
        }
    }
}

/// Whom `me` has links to: the parties all others, and these the parties.
pub(crate) fn peers(job: &JobSpec, me: Peer) -> Vec<Peer> {
    match me {
        Peer::Party(me) => {
            let owners = (0..job.owners.len() as u16).map(Peer::Owner);
            let recipients = (0..job.recipients.len() as u16).map(Peer::Recipient);
            [other(me)]
                .into_iter()
                .chain(owners)
                .chain(recipients)
                .collect()
        }
        Peer::Owner(_) | Peer::Recipient(_) => PartyId::TWO.map(Peer::Party).into(),
    }
}

/// Keys of `me` that it has in common with `peer`.
pub(crate) fn keys(me: Peer, peer: Peer) -> Vec<(&'static str, KeyId)> {
    match (me, peer) {
        (Peer::Party(_), Peer::Party(_)) => vec![("common", COMMON)],
        _ => vec![],
    }
}

/// The transfers between garbler and evaluator, at either.
pub(crate) fn transfers(me: Peer) -> Option<Transfers> {
    me.party().map(|_| Transfers {
        sender: Peer::Party(GARBLER),
        receiver: Peer::Party(EVALUATOR),
        trees: transfers::TREES,
        offset: OFFSET,
        leaves: LEAVES,
        pins: Pins::default(),
        back: None,
    })
}

/// Number of an owner's seed at a participant that has it.
fn seed_key(owner: u16) -> KeyId {
    KeyId(FIRST_SEED + owner)
}

/// The other party.
pub(crate) fn other(me: PartyId) -> Peer {
    Peer::Party(me.after(1, PartyId::TWO.len()))
}

/// dst 0 = the XOR of the sources, which are bits or labels.
pub(crate) fn combine(src: Vec<Span>, to: Span) -> Command {
    let op = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    Command::new(op, src, vec![to])
}

/// Random values of a party, from counter `first` of their use on.
pub(crate) fn random(key: KeyId, tag: DomainTag, first: u64, to: Span) -> Command {
    let mut command = Command::new(Op::Random, vec![], vec![to]);
    command.calls = vec![PrfCall { key, tag, first }];
    command
}

pub(crate) fn transfer(span: Span, peer: Peer, part: u16) -> Transfer {
    Transfer::new(span, peer, part)
}
