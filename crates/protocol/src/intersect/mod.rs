//! Private set intersection between two parties, secure against one that does whatever it likes.
//!
//! Functionality: one of two parties, the *receiver*, learns which of its keys the other one, the *sender*, has too.
//!
//! Model: two parties, of whom one may be corrupt and malicious; a pairwise key; encrypted, authenticated links; SHA-256 is a random oracle. The
//! sender learns nothing but the number of keys that the job declares for both. A malicious receiver learns of more keys than it has declared whether
//! the sender has them ([`Intersection::most_keys_asked`](veil_job::Intersection::most_keys_asked)).
//!
//! From: Rindal, Schoppmann, "VOLE-PSI: Fast OPRF and Circuit-PSI from Vector-OLE", EUROCRYPT 2021; Raghuraman, Rindal, "Blazing Fast PSI from
//! Improved OKVS and Subfield VOLE", CCS 2022; Han, Kim, Lee, Son, "Revisiting OKVS-based OPRF and PSI: Cryptanalysis and Better Construction",
//! ASIACRYPT 2024. What differs, and why, is in `docs/protocol-psi.md`.
//!
//! The receiver encodes its keys as a vector P with ⟨row(x), P⟩ = V(x) for each of them. Both have a vector correlation A = B ⊕ C δ, of which the receiver has A
//! and C, the sender B and δ. The receiver sends P ⊕ C, so that the sender has B ⊕ (P ⊕ C) δ = A ⊕ P δ, and for any key y
//!
//! ```text
//! ⟨row(y), A ⊕ P δ⟩ ⊕ V(y) δ  =  ⟨row(y), A⟩  if y is a key of the receiver, else random to it
//! ```
//!
//! The sender sends digests of these for all of its keys, in ascending order.

mod regions;
mod rounds;

use std::borrow::Cow;
use std::sync::Arc;

use veil_circuit::{Circuit, Gate, Wire};
use veil_device::{KeyId, Layout, Okvs, Program, Transfer};
use veil_job::Intersection;
use veil_session::{Frame, PartyId, Peer};

use crate::ot::Pins;
use crate::ot::vole::Shape;
use crate::plan::{Plan, WorkspaceOf};
use crate::round::{Cost, Flow, Protocol, Round, Seed, Spans, Task, Transfers};
use crate::yao::{LEAVES, OFFSET, PRIVATE, keys, peers};

/// Keys of a list, at most.
pub const MOST_KEYS: u64 = 1 << 24;

/// Bits of an offset for each tree of transfers.
const TREES: veil_device::Trees = match veil_device::Trees::new(4) {
    Some(trees) => trees,
    None => unreachable!(),
};

/// Places of rounds in the plan. The same for both.
mod place {
    pub(super) const LIST: u32 = 0;
    pub(super) const COMMIT: u32 = 1;
    pub(super) const CORRELATIONS: u32 = 2;
}

/// What is hashed.
mod label {
    /// The sender's commitment to its coin.
    pub(super) const COIN: u16 = 40;
    /// Both coins.
    pub(super) const COINS: u16 = 41;
}

/// The kind of a message, except for those of the correlation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntersectMessage {
    /// The sender's commitment to its coin.
    Commitment,
    /// The seed of the receiver's encoding.
    Seed,
    /// The encoding, masked.
    Encoding,
    /// The receiver's coin.
    ReceiverCoin,
    /// The sender's coin, and what hid it.
    SenderCoin,
    /// Digests of the sender's keys.
    Tags,
}

/// The kind of a message of this protocol.
pub fn intersect_message(of: &Transfer) -> Option<IntersectMessage> {
    regions::message(of.span)
}

/// The ports of a job whose keys meet, as a circuit that multiplies nothing: what its output is in a row is not for one row to say.
pub(crate) fn ports(circuit: &Circuit) -> Circuit {
    let wires: u32 = circuit.inputs.iter().map(|port| port.width).sum();
    let mut of_ports = circuit.clone();
    of_ports.gates.clear();
    let nothing = Wire(wires);
    of_ports.gates.push(Gate::Constant(0));
    for output in &mut of_ports.outputs {
        output.wires.fill(nothing);
    }
    of_ports
}

/// Numbers that both ends have to choose alike: those of the encoding, and of the correlation.
pub(crate) fn sizes(of: Intersection) -> Vec<u64> {
    let okvs = encoding(of);
    let shape = shape(of);
    let (rounds, expansions) = shape.rounds();
    vec![
        okvs.bins.into(),
        okvs.sparse.into(),
        okvs.dense.into(),
        shape.entries().into(),
        rounds.into(),
        expansions.into(),
    ]
}

/// The encoding of the receiver's keys.
fn encoding(of: Intersection) -> Okvs {
    Okvs::of(of.keys(of.result) as u32)
}

/// The correlation that it takes.
fn shape(of: Intersection) -> Shape {
    Shape::of(encoding(of).columns() as u32)
}

/// An intersection, as one of the two parties runs it.
#[derive(Debug)]
pub struct Intersected {
    plan: Arc<Plan>,
    me: PartyId,
    of: Intersection,
    /// Of the workspace of all keys, and of that of the set-up.
    layouts: [Layout; 2],
    spans: Spans,
    set_up: Arc<[Arc<Round>]>,
    rounds: Arc<[Arc<Round>]>,
    places: u32,
}

impl Intersected {
    /// The rounds of party `me`.
    ///
    /// # Panics
    /// If the plan's job is no intersection, or `me` is none of its two parties: the planner refuses such jobs.
    pub fn new(plan: Arc<Plan>, me: Peer) -> Self {
        let me = me.party().expect("keys meet between two parties");
        let of = plan.job.intersection().expect("the job is an intersection");
        let [mut rows, job] =
            [WorkspaceOf::Rows, WorkspaceOf::Job].map(|of_| regions::layout(of, me, of_));
        let shared = |rounds: Vec<Round>| -> Arc<[Arc<Round>]> {
            rounds.into_iter().map(Arc::new).collect()
        };
        let lists = [true, false].map(regions::list);
        let list = crate::yao::list(me, place::LIST, lists);
        let (made, places) = rounds::of(of, me, &mut rows);
        Intersected {
            me,
            of,
            layouts: [rows, job],
            spans: regions::spans(of, me),
            set_up: shared(vec![list]),
            rounds: shared(made),
            places,
            plan,
        }
    }

    /// The party that does not learn the result.
    fn sender(&self) -> PartyId {
        self.of.result.after(1, PartyId::TWO.len())
    }
}

impl Protocol for Intersected {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn guarantee(&self) -> Cow<'static, str> {
        "malicious, with abort: private against either party, and right against either; one that lies about its keys asks for others, for how many the \
         sentence of the result says"
            .into()
    }

    fn me(&self) -> Peer {
        Peer::Party(self.me)
    }

    fn layout(&self, of: WorkspaceOf) -> &Layout {
        let [rows, job] = &self.layouts;
        match of {
            WorkspaceOf::Rows => rows,
            WorkspaceOf::Job => job,
        }
    }

    fn programs(&self) -> &[Arc<Program>] {
        &[]
    }

    fn flow(&self, task: Task, _: Frame) -> Flow {
        let (rounds, clears) = match task {
            Task::SetUp => (Arc::clone(&self.set_up), false),
            Task::Layers => (Arc::clone(&self.rounds), false),
            // The receiver has checked all that its result is made of, and no message of the sender waits for it.
            Task::Agree => (Arc::from([]), true),
            Task::Inputs { .. } | Task::Totals | Task::Open(_) | Task::OpenTotals(_) => {
                (Arc::from([]), false)
            }
        };
        Flow::new(rounds, clears)
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        let (of, rounds) = match task {
            Task::SetUp => (WorkspaceOf::Job, &self.set_up),
            Task::Layers => (WorkspaceOf::Rows, &self.rounds),
            _ => return Cost::default(),
        };
        Cost::of_rounds(self.layout(of), rounds.iter().cloned(), frame)
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        self.places
    }

    fn peers(&self) -> Vec<Peer> {
        peers(&self.plan.job, self.me())
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        keys(self.me(), peer)
    }

    fn transfers(&self) -> Option<Transfers> {
        Some(Transfers {
            sender: Peer::Party(self.sender()),
            receiver: Peer::Party(self.of.result),
            trees: TREES,
            offset: OFFSET,
            leaves: LEAVES,
            // Bit 0 of the offset is 1.
            pins: Pins::new(1, 1),
            back: None,
        })
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        Seed::own(self.me(), by, PRIVATE)
    }
}
