//! The round, and what protocols make of it.

use std::borrow::Cow;
use std::sync::Arc;

pub use veil_device::{Check, Round, Transfer};
use veil_device::{Layout, Program, Span, Trees};
use veil_job::StockKind;
use veil_session::{Frame, Peer, Secret};

use crate::ot::Pins;
use crate::plan::WorkspaceOf;

/// A task that the engine asks of a protocol, in the order in which the security argument needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Agree on the list of accepted inputs and on owners' seeds; share the values that all rows use.
    SetUp,
    /// Share the values of the rows of a chunk.
    Inputs {
        /// Index of the chunk's block.
        block: u32,
    },
    /// Compute: all cycles of a sequential circuit, whose inputs are shared on the way.
    Layers,
    /// Compute the circuit on totals from the sums over all rows, in the place of the sums.
    Totals,
    /// Tell each other that everything so far was checked. Ends with [`Cleared`].
    Agree,
    /// Open the chunk's outputs.
    Open(Cleared),
    /// Open the sums over all rows.
    OpenTotals(Cleared),
}

/// Permission to open: every check in the cone of the value has passed and every party has said so (rule R2). Only a finished
/// agreement makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cleared(());

/// One task on one chunk, pulled round by round.
pub struct Flow {
    rounds: Arc<[Arc<Round>]>,
    next: usize,
    /// Rounds before this one take no inputs on the way.
    unfed: usize,
    clears: bool,
    further: Option<Further>,
}

/// Makes the rounds of a cycle, or of a piece.
pub(crate) type Making = Arc<dyn Fn(u64) -> Arc<[Arc<Round>]> + Send + Sync>;

/// The cycles that come after the present one, or the pieces.
struct Further {
    next: u64,
    count: u64,
    rounds: Making,
    /// Pieces: all of them are what a cycle is.
    pieces: bool,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow")
            .field("rounds", &self.rounds)
            .field("next", &self.next)
            .field("further", &self.further.as_ref().map(|f| f.next..f.count))
            .finish_non_exhaustive()
    }
}

impl Flow {
    pub(crate) fn new(rounds: Arc<[Arc<Round>]>, clears: bool) -> Self {
        Flow {
            rounds,
            next: 0,
            unfed: 0,
            clears,
            further: None,
        }
    }

    /// A flow of `count` cycles, at least one, of which no more than one is in memory: `rounds` makes those of each.
    pub(crate) fn cycles(count: u64, rounds: Making) -> Self {
        Self::further(count, rounds, false)
    }

    /// A flow of `count` pieces, at least one, of which no more than one is in memory: `rounds` makes those of each.
    pub(crate) fn pieces(count: u64, rounds: Making) -> Self {
        Self::further(count, rounds, true)
    }

    fn further(count: u64, rounds: Making, pieces: bool) -> Self {
        let mut flow = Flow::new(rounds(0), false);
        flow.further = Some(Further {
            next: 1,
            count,
            rounds,
            pieces,
        });
        flow
    }

    /// A flow of these rounds, which gives no permission to open: for protocols that are made of others.
    pub fn of(rounds: Vec<Round>) -> Self {
        Flow::new(rounds.into_iter().map(Arc::new).collect(), false)
    }

    /// The next round. Asking for it says that the one before is finished and checked.
    #[expect(
        clippy::should_implement_trait,
        reason = "a flow is pulled by the engine, not iterated"
    )]
    pub fn next(&mut self) -> Option<Arc<Round>> {
        while let Some(further) = self.further.as_mut().filter(|f| f.next < f.count)
            && self.next >= self.rounds.len()
        {
            self.rounds = (further.rounds)(further.next);
            (self.next, self.unfed) = (0, 0);
            further.next += 1;
        }
        let round = self.rounds.get(self.next).cloned();
        self.next += 1;
        round
    }

    /// The rounds that come next in the present cycle or piece, up to one that takes inputs.
    pub fn until_fed(&mut self) -> &[Arc<Round>] {
        // Every round is looked at once.
        self.unfed = self.unfed.max(self.next);
        while self
            .rounds
            .get(self.unfed)
            .is_some_and(|round| !round.feeds)
        {
            self.unfed += 1;
        }
        self.rounds.get(self.next..self.unfed).unwrap_or_default()
    }

    /// The permission that a finished agreement gives.
    pub fn cleared(&self) -> Option<Cleared> {
        (self.clears && self.next > self.rounds.len()).then_some(Cleared(()))
    }

    /// The rounds that are in memory: all, but of a sequential circuit those of the present cycle, and of a very deep one those of the present
    /// piece.
    pub fn rounds(&self) -> &[Arc<Round>] {
        &self.rounds
    }

    /// All rounds of a flow that has not begun, to sum what they do; of a sequential circuit those of the first cycle.
    pub fn all(self) -> impl Iterator<Item = Arc<Round>> {
        let more = self.further.filter(|further| further.pieces);
        let more = more.into_iter().flat_map(|further| {
            let numbers = further.next..further.count;
            numbers.map(move |piece| (further.rounds)(piece))
        });
        let of_piece =
            |rounds: Arc<[Arc<Round>]>| (0..rounds.len()).map(move |at| Arc::clone(&rounds[at]));
        std::iter::once(self.rounds).chain(more).flat_map(of_piece)
    }
}

/// The cost of a task for one participant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Rounds in which something is received, here or by a party that is waited for next: each waits for the network once.
    pub rounds: u64,
    /// Messages sent.
    pub messages: u64,
    /// Payload bytes sent.
    pub bytes: u64,
}

impl Cost {
    /// What rounds cost in a frame: messages without bytes are none.
    pub(crate) fn of_rounds(
        layout: &Layout,
        rounds: impl Iterator<Item = Arc<Round>>,
        frame: Frame,
    ) -> Self {
        let bytes = |t: &Transfer| t.bytes(layout, frame.rows);
        let of = |round: Arc<Round>| {
            let sent = round.sends.iter().map(bytes).filter(|bytes| *bytes > 0);
            Cost {
                rounds: u64::from(round.recvs.iter().any(|t| bytes(t) > 0)),
                messages: sent.clone().count() as u64,
                bytes: sent.sum(),
            }
        };
        rounds.map(of).fold(Cost::default(), |a, b| a + b)
    }
}

impl std::ops::Add for Cost {
    type Output = Cost;
    fn add(self, other: Cost) -> Cost {
        Cost {
            rounds: self.rounds + other.rounds,
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl std::ops::Mul<u64> for Cost {
    type Output = Cost;
    fn mul(self, times: u64) -> Cost {
        Cost {
            rounds: self.rounds.saturating_mul(times),
            messages: self.messages.saturating_mul(times),
            bytes: self.bytes.saturating_mul(times),
        }
    }
}

/// The joint meaning of the messages of all parties at one place of the plan: the value whose shares they are, which is their sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// Products of a layer, one element per row.
    Products {
        /// The layer: layers of the set-up follow layers of the rows.
        layer: usize,
    },
    /// Sums of products of a layer.
    Sums {
        /// The layer.
        layer: usize,
    },
}

impl Meaning {
    /// How many messages it takes: one from each of the three parties.
    pub const fn messages(self) -> usize {
        veil_session::PartyId::THREE.len()
    }
}

/// A protocol, as one participant of one plan runs it.
pub trait Protocol: Send + Sync {
    /// Name in commands and reports.
    fn name(&self) -> &'static str;

    /// The guarantee in one line, for `explain` and results.
    fn guarantee(&self) -> Cow<'static, str>;

    /// The participant.
    fn me(&self) -> Peer;

    /// Regions of the workspace of a chunk, or of that of the set-up and of the totals, which have one row. Both have the same regions, and
    /// what the host reaches between tasks is in the same places of both.
    fn layout(&self, of: WorkspaceOf) -> &Layout;

    /// Rows of the workspace of a frame that has so many: a workspace may have rows for something else than those of the job.
    fn rows(&self, of: WorkspaceOf, frame: u32) -> u32 {
        let _ = of;
        frame
    }

    /// Programs to load, in order: their ids are 0, 1, ….
    fn programs(&self) -> &[Arc<Program>];

    /// The flow of a task in a frame: roles may alternate from chunk to chunk.
    fn flow(&self, task: Task, frame: Frame) -> Flow;

    /// What a task costs in a frame, by formula. Tests compare it with the sum over the rounds and with the meters.
    fn cost(&self, task: Task, frame: Frame) -> Cost;

    /// The region where the host puts or finds bytes of a kind.
    fn spans(&self) -> &Spans;

    /// Rounds of the plan have places below this number.
    fn places(&self) -> u32;

    /// Peers that this participant has links to.
    fn peers(&self) -> Vec<Peer>;

    /// Keys of the pair with `peer`: label of the schedule and number of the key at this participant.
    fn keys(&self, peer: Peer) -> Vec<(&'static str, veil_device::KeyId)>;

    /// Keys that `by` chooses for others and that this participant has: all of them if it is `by` itself.
    fn dealt(&self, by: Peer) -> Vec<Seed>;

    /// The oblivious transfers that this participant sets up in the handshake; nothing if it takes part in none.
    fn transfers(&self) -> Option<Transfers> {
        None
    }

    /// The number of an offset that this participant draws, where no set-up of transfers makes it: 128 bits, of which bit 0 is 1.
    fn own_offset(&self) -> Option<veil_device::KeyId> {
        None
    }

    /// The stock that this party's run takes from, or makes; nothing if it has to do with none.
    fn stock(&self) -> Option<StockUse> {
        None
    }

    /// The items of stock that the host puts into the workspace of a frame before the round at `place` in a cycle, which feeds.
    fn takes(&self, place: u32, cycle: u64, frame: Frame) -> Option<Take> {
        let _ = (place, cycle, frame);
        None
    }

    /// Whether the chunk of a frame goes on with what the one before of as many rows has left in its lane's workspace ([`Spans::kept`]).
    fn goes_on(&self, frame: Frame) -> bool {
        let _ = frame;
        false
    }

    /// What participants send between chunks, in all lanes: it is in the rounds of some of them, and in no [`cost`](Protocol::cost).
    fn carried(&self) -> Cost {
        Cost::default()
    }

    /// Whether the host puts inputs of cycles into the workspace before a round at `place` that feeds.
    fn feeds_inputs(&self, place: u32) -> bool {
        let _ = place;
        true
    }

    /// What the parties' messages at `place` add up to, for a caller that holds them all: a test, or a shadow of a run in one process. Nothing
    /// for messages that are no additive shares.
    fn meaning(&self, place: u32, part: u16) -> Option<Meaning> {
        let _ = (place, part);
        None
    }
}

/// What a run has to do with a stock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StockUse {
    /// Whether it makes the stock, in the place of using it.
    pub makes: bool,
    /// What it is of.
    pub kind: StockKind,
    /// The party that has the other half.
    pub peer: Peer,
    /// Items that the run takes or makes.
    pub cells: u64,
    /// Number of this party's offset in the stock, if it has one there.
    pub offset: Option<veil_device::KeyId>,
}

/// Items of stock, and where their fields go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Take {
    /// The first cell, of those of the run.
    pub first: u64,
    /// How many.
    pub cells: u64,
    /// Of each part of a span its field, 16 bytes of each item, below [`StockKind::fields`]. What is beyond the end of the span is not used.
    pub into: Vec<Put>,
    /// Bits that become 1 in all rows, if some do.
    pub ones: Option<Span>,
}

/// Where a field of cells goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Put {
    /// The field.
    pub field: u8,
    /// The span of blocks.
    pub span: Span,
    /// The first block.
    pub at: u64,
}

/// Oblivious transfers between two parties, which draw on trees of keys ([`ot`](crate::ot)). The numbers of all keys that a participant gets are
/// different.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfers {
    /// Who has the offset.
    pub sender: Peer,
    /// Who chooses.
    pub receiver: Peer,
    /// The trees.
    pub trees: Trees,
    /// Number of the offset, at the sender.
    pub offset: veil_device::KeyId,
    /// Number of the first leaf; others follow as [`Trees::index`] says.
    pub leaves: veil_device::KeyId,
    /// Bits of the offset that are fixed.
    pub pins: Pins,
    /// Transfers of the opposite direction, if there are any.
    pub back: Option<Back>,
}

/// Transfers whose sender is the receiver of others, and whose receiver is their sender, over trees of the same size. Keys of one direction tell
/// nothing about those of the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Back {
    /// Number of the offset, at the receiver of the others.
    pub offset: veil_device::KeyId,
    /// Number of the first leaf; others follow as [`Trees::index`] says.
    pub leaves: veil_device::KeyId,
    /// Bits of the offset that are fixed.
    pub pins: Pins,
}

/// A key that one participant chooses and sends to the parties that hold the values drawn from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seed {
    /// Which of the keys that it chooses.
    pub index: u8,
    /// Number of the key at this participant.
    pub key: veil_device::KeyId,
    /// The parties that get it.
    pub holders: Vec<Peer>,
    /// Where the party puts the digest that it compares with the other holders.
    pub digest: Option<Span>,
}

impl Seed {
    /// The key of a participant's own draws, at `me`, of those that `by` chooses: no other participant has it.
    pub(crate) fn own(me: Peer, by: Peer, key: veil_device::KeyId) -> Vec<Seed> {
        let private = Seed {
            index: 0,
            key,
            holders: vec![],
            digest: None,
        };
        if me == by { vec![private] } else { vec![] }
    }
}

/// The components of a port that a party holds, on their way from or to its store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The input or output port.
    pub port: usize,
    /// Each of them, in the order of the party's parts.
    pub components: Vec<Span>,
}

/// Where the host writes and reads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spans {
    /// Per input port that is a column of a relation: where its components go before a chunk begins.
    pub takes: Vec<Stored>,
    /// Components that public constants of the circuit's integers act on: bit p for part p.
    pub constants: u8,
    /// Per output port that is a column: where its components are after the layers.
    pub leaves: Vec<Stored>,
    /// Per input port that this participant supplies and that has a value per row: where its clear values go.
    pub inputs: Vec<(usize, Span)>,
    /// Per input port that this participant supplies and that has a value in every cycle: where the clear values of a window of cycles go.
    pub cycle_inputs: Vec<(usize, Span)>,
    /// Per input port that this participant supplies once per job: where its clear values go.
    pub job_inputs: Vec<(usize, Span)>,
    /// Input ports with a value per row that some block loads, at parties: where the host puts them.
    pub loads: Vec<Stored>,
    /// Input ports with a value per job that are loaded.
    pub job_loads: Vec<Stored>,
    /// Output ports with a value per row that are kept, at parties: where the host finds them after the layers.
    pub keeps: Vec<Stored>,
    /// Output ports with a job-wide value that are kept: where the host finds them after the set-up.
    pub job_keeps: Vec<Stored>,
    /// Summed output ports that are kept: where the host finds them in the workspace of totals.
    pub keeps_sums: Vec<Stored>,
    /// Shared values that all rows use: out of the set-up workspace, into every other.
    pub job_wide: Vec<Span>,
    /// Shared sums: out of every chunk, added up, into the workspace of totals.
    pub sums: Vec<Span>,
    /// What has to be zero where a chunk of rows begins in the workspace of another one, with all else as that has left it; nothing if the whole workspace has to be.
    pub zeros: Option<Vec<Span>>,
    /// Columns that the next chunk of a lane finds as they are ([`Protocol::goes_on`]). Where there are any, a lane has one chunk after the other, all of them in one workspace if they
    /// have as many rows.
    pub kept: Vec<Span>,
    /// Items of stock that a chunk has made, after the layers, field by field.
    pub stock: Vec<Span>,
    /// Digest of the list of accepted inputs, at parties.
    pub list: Option<Span>,
    /// Per output port opened to this participant: its values.
    pub opened: Vec<(usize, Span)>,
    /// Per summed output port opened to this participant: its values.
    pub opened_sums: Vec<(usize, Span)>,
}

/// The digest of a seed that its holders compare.
pub fn seed_digest(
    session: &veil_session::SessionId,
    by: Peer,
    index: u8,
    seed: &Secret,
) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    hash.update(b"veilworks seed");
    hash.update(session.0);
    hash.update(by.to_bytes());
    hash.update([index]);
    hash.update(seed.expose());
    hash.finalize().into()
}
