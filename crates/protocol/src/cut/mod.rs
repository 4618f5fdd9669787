//! Cut-and-choose: garbled circuits between two parties, secure against one that does whatever it likes.
//!
//! Functionality: a circuit of bits, evaluated on the inputs of the two parties and opened to the second.
//!
//! Model: two parties, of whom one may be corrupt and malicious; encrypted, authenticated links; security with abort. Party 0, the garbler,
//! garbles many circuits, half of which are opened and checked; party 1, the evaluator, evaluates the others and takes what most of them
//! say. An error has probability 2^-s at most of each of three kinds: too many wrong circuits escape, two inputs of the garbler
//! have one sum, the encoding of the evaluator's inputs is too light.
//!
//! From: Frederiksen, Nielsen, "Fast and Maliciously Secure Two-Party Computation Using the GPU", ACNS 2013, which is not sound as it is
//! printed. The differences are in `docs/protocol-cut.md`.
//!
//! A chunk is one row of the job. Its workspace has a row for each circuit of a half ([`veil_device::cut`]).

pub(crate) mod bounds;
mod circuit;
mod evaluator;
mod garbler;
mod regions;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use veil_circuit::{Circuit, Per};
use veil_device::{Check, Command, Cut, KeyId, Layout, Op, Program, Span};
use veil_job::{Audience, Holder, Schedule, Statistical, Tables};
use veil_prss::DomainTag;
use veil_session::{Frame, Peer};

use crate::plan::{Plan, WorkspaceOf};
use crate::round::{Cost, Flow, Protocol, Round, Seed, Spans, Task, Transfer, Transfers};
use crate::yao::{EVALUATOR, Ends, GARBLER, PRIVATE, keys, list, other};
use regions::Shape;

/// The key of the matrix that encodes the evaluator's inputs: a constant, which no party has chosen. The first 16 bytes of SHA-256 of
/// "veilworks cut-and-choose: encoding of inputs".
pub(crate) const ENCODING: [u8; 16] = [
    0x08, 0x80, 0x38, 0xd5, 0x9f, 0x04, 0xbf, 0xb0, 0x94, 0x08, 0xcf, 0x28, 0x95, 0xf7, 0x39, 0x48,
];

/// Gates of a layer, at most: messages of many circuits stay below a megabyte.
pub(crate) const WIDEST: u32 = 128;

/// Places of rounds in the plan. The same for both.
mod place {
    pub(super) const LIST: u32 = 0;
    pub(super) const COMMIT: u32 = 1;
    pub(super) const TRANSFER: u32 = 2;
    pub(super) const ANSWER: u32 = 3;
    pub(super) const TOSS: u32 = 4;
    pub(super) const SHOW: u32 = 5;
    pub(super) const OPEN: u32 = 6;
    pub(super) const TABLES: u32 = 7;
}

/// What is hashed.
mod label {
    // The challenge of transfers has label 1.
    /// Commitment to the evaluator's coin.
    pub(super) const COIN: u16 = 2;
    /// What the order of circuits follows from.
    pub(super) const ORDER: u16 = 3;
    /// Commitment to a seed.
    pub(super) const SEED: u16 = 4;
    /// Commitment to active labels of the garbler's inputs.
    pub(super) const ACTIVE: u16 = 5;
    /// Marks of inputs.
    pub(super) const INPUTS: u16 = 6;
    /// Tables.
    pub(super) const TABLES: u16 = 7;
    /// A circuit.
    pub(super) const CIRCUIT: u16 = 8;
    /// A mark of an input.
    pub(super) const INPUT: u16 = 9;
    /// A mark of an output.
    pub(super) const OUTPUT: u16 = 10;
}

/// What checks compare, in errors.
const COIN: &str = "the coin that the evaluator committed to";
const SEED: &str = "the seed of a circuit";
const INPUTS: &str = "labels of inputs";
const CIRCUIT: &str = "a circuit that was opened";
const MASKED: &str = "labels of the evaluator's inputs in circuits that were opened";
const ACTIVE: &str = "labels of the garbler's inputs";
const MEMBER: &str = "labels of inputs in circuits that are evaluated";
const TABLES: &str = "a circuit that is evaluated";
const SUMS: &str = "the garbler's inputs in all circuits";

/// The kind of a message, except for tables and transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutMessage {
    /// The garbler's commitments.
    Commitments,
    /// The key of the sum over the garbler's inputs.
    Matrix,
    /// The commitment to the evaluator's coin.
    Committed,
    /// Labels of the evaluator's inputs, masked.
    Masked,
    /// Digests of circuits.
    Digests,
    /// The garbler's coin.
    Coin,
    /// The evaluator's coin.
    Opened,
    /// The nonce that hid it.
    Nonce,
    /// Seeds of the circuits that are opened.
    Seeds,
    /// The labels for the evaluation of the other circuits.
    Shown,
    /// Colours of the sums over the garbler's inputs.
    Colours,
}

/// The kind of a message of this protocol.
pub fn cut_message(of: &Transfer) -> Option<CutMessage> {
    let shape = |span: Span| (span.region, span.first);
    let coins = regions::coins();
    let known = [
        (
            regions::span(regions::COMMITTED, 0, 0),
            CutMessage::Commitments,
        ),
        (coins[3], CutMessage::Matrix),
        (regions::span(regions::HASHES, 0, 0), CutMessage::Committed),
        (regions::span(regions::MASKED, 0, 0), CutMessage::Masked),
        (regions::span(regions::DIGESTS, 0, 0), CutMessage::Digests),
        (coins[2], CutMessage::Coin),
        (coins[0], CutMessage::Opened),
        (coins[1], CutMessage::Nonce),
        (regions::span(regions::SEEDS, 0, 0), CutMessage::Seeds),
        (regions::span(regions::SHOWN, 0, 0), CutMessage::Shown),
        (
            regions::span(regions::SHOWN_COLOURS, 0, 0),
            CutMessage::Colours,
        ),
    ];
    let found = known.iter().find(|(at, _)| shape(*at) == shape(of.span));
    found.map(|(_, message)| *message)
}

/// Cut-and-choose, as one participant runs it.
#[derive(Debug)]
pub struct CutAndChoose {
    plan: Arc<Plan>,
    me: Peer,
    shape: Shape,
    /// Of the workspaces of chunks, and of that of the set-up.
    layouts: [Layout; 2],
    spans: Spans,
    places: u32,
    set_up: Arc<[Arc<Round>]>,
    inputs: Arc<[Arc<Round>]>,
    tables: Arc<[Arc<Round>]>,
    open: Arc<[Arc<Round>]>,
}

impl CutAndChoose {
    /// The rounds of participant `me`.
    pub fn new(plan: Arc<Plan>, me: Peer) -> Self {
        let mut shape = Shape::of(&plan);
        let groups = circuit::groups(&plan, shape.half);
        shape.gates = groups.iter().map(|group| group.gates).max().unwrap_or(0);
        let [mut rows, job] = [WorkspaceOf::Rows, WorkspaceOf::Job]
            .map(|workspace| regions::layout(&shape, &plan, me, workspace));
        let ends = Ends::new(&mut rows, me, &BTreeSet::from([shape.transfers()]));
        let rounds = match me {
            Peer::Party(GARBLER) => garbler::rounds(&plan, &shape, &groups, &ends),
            Peer::Party(_) => evaluator::rounds(&plan, &shape, &groups, &ends),
            Peer::Owner(_) | Peer::Recipient(_) => Default::default(),
        };
        let shared = |rounds: Vec<Round>| -> Arc<[Arc<Round>]> {
            rounds.into_iter().map(Arc::new).collect()
        };
        let [inputs, tables] = rounds.map(shared);
        let opens = me == Peer::Party(EVALUATOR);
        let lists = [true, false].map(regions::list);
        CutAndChoose {
            spans: regions::spans(&plan, me),
            places: place::TABLES + groups.len() as u32,
            set_up: shared(
                me.party()
                    .map(|me| list(me, place::LIST, lists))
                    .into_iter()
                    .collect(),
            ),
            inputs,
            tables,
            open: shared(opens.then(|| evaluator::open(&shape)).into_iter().collect()),
            layouts: [rows, job],
            shape,
            plan,
            me,
        }
    }
}

/// The round of the transfers of the encoded inputs; an empty one if there are none.
fn transfers(ends: &Ends, shape: &Shape) -> Round {
    let [labels, _, _] = shape.keys();
    ends.round((place::TRANSFER, 0), [shape.choices(), labels])
}

/// Random values of a party's own, from counter 0 of their use on.
fn random(key: KeyId, to: Span, tag: DomainTag) -> Command {
    crate::yao::random(key, tag, 0, to)
}

/// The commitment to a coin, with what hides it.
fn commit_coin(coin: [Span; 2], to: Span) -> Command {
    Command::new(Op::Hash { label: label::COIN }, coin.to_vec(), vec![to])
}

/// The order of all circuits: it follows from both coins, and from everything that was said before they were known.
fn order() -> Vec<Command> {
    let ([evaluator, _, garbler, key], [committed, _, from]) =
        (regions::coins(), regions::hashes());
    let said = vec![
        evaluator,
        garbler,
        key,
        committed,
        regions::all_commitments(),
        regions::all_digests(),
    ];
    let hash = Op::Hash {
        label: label::ORDER,
    };
    vec![
        Command::new(hash, said, vec![from]),
        circuit::cut(Cut::Shuffle, &[from], &[regions::order()]),
    ]
}

/// A comparison of two spans at the end of a round.
fn checked(round: &mut Round, compared: [Span; 2], suspect: Peer, what: &'static str) {
    let compare = Command::new(Op::CheckEqual, compared.to_vec(), vec![]);
    check(round, compare, suspect, what);
}

/// A command that compares, at the end of a round.
fn check(round: &mut Round, command: Command, suspect: Peer, what: &'static str) {
    round.checks.push(Check {
        command: round.finish.len(),
        suspects: vec![suspect],
        what,
    });
    round.finish.push(command);
}

/// Circuits that are opened, and as many that are evaluated, for an error of 2^-s.
pub fn half(s: Statistical) -> u32 {
    bounds::half(s.bits())
}

/// Circuits of a half, bits of the encoding and of the sum: under the plan hash.
pub(crate) fn sizes(plan: &Plan) -> [u64; 3] {
    let shape = Shape::of(plan);
    [shape.half, shape.encoded, shape.check].map(u64::from)
}

/// The circuit of a job with one row, whose values per job are values of the row: nothing is derived from them beforehand.
pub(crate) fn of_one_row(circuit: &Circuit) -> Circuit {
    let mut circuit = circuit.clone();
    let ports = circuit.inputs.iter_mut();
    let ports = ports.filter(|port| port.per == Per::Job);
    ports.for_each(|port| port.per = Per::Row);
    circuit
}

/// What the protocol does not compute, if the job asks for it.
pub(crate) fn unfit(job: &veil_job::JobSpec) -> Option<&'static str> {
    let circuit = &job.circuit;
    let by_parties = |holders: &[Holder]| {
        let first = &job.blocks[0].holders[..];
        holders == first && holders.iter().all(|h| matches!(h, Holder::Party(_)))
    };
    if circuit.is_sequential() {
        Some("circuits without cycles")
    } else if circuit.inputs.iter().any(|port| port.per == Per::Job) && job.rows() > 1 {
        Some("inputs with a value in every row, where there are several rows,")
    } else if !job.blocks.iter().all(|block| by_parties(&block.holders)) {
        Some("inputs of the two parties, the same in all blocks")
    } else if !job
        .audiences
        .iter()
        .all(|a| *a == Audience::Party(EVALUATOR))
    {
        Some("outputs to the second party")
    } else if job.security.tables != Tables::HalfGates {
        Some("half-gates")
    } else if job.security.schedule != Schedule::Layers {
        Some("gates in the order of layers")
    } else {
        None
    }
}

impl Protocol for CutAndChoose {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn guarantee(&self) -> Cow<'static, str> {
        let bits = self.plan.job.security.statistical.bits();
        format!("malicious, with abort: private and right against either party, but for an error of 2^-{bits} in each row, by cut-and-choose").into()
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

    fn rows(&self, of: WorkspaceOf, _: u32) -> u32 {
        match of {
            WorkspaceOf::Rows => self.shape.half,
            WorkspaceOf::Job => 1,
        }
    }

    fn programs(&self) -> &[Arc<Program>] {
        match self.me {
            Peer::Party(_) => &self.plan.programs,
            Peer::Owner(_) | Peer::Recipient(_) => &[],
        }
    }

    fn flow(&self, task: Task, _: Frame) -> Flow {
        let (rounds, clears) = match task {
            Task::SetUp => (Arc::clone(&self.set_up), false),
            Task::Inputs { .. } => (Arc::clone(&self.inputs), false),
            Task::Layers => (Arc::clone(&self.tables), false),
            // All checks are the evaluator's, and the last one ends its last round of tables; no other participant is shown anything.
            Task::Agree => (Arc::from([]), true),
            Task::Open(_) => (Arc::clone(&self.open), false),
            Task::Totals | Task::OpenTotals(_) => (Arc::from([]), false),
        };
        Flow::new(rounds, clears)
    }

    fn cost(&self, task: Task, frame: Frame) -> Cost {
        let workspace = match task {
            Task::SetUp => WorkspaceOf::Job,
            _ => WorkspaceOf::Rows,
        };
        let (layout, rows) = (self.layout(workspace), self.rows(workspace, frame.rows));
        let rounds = match task {
            Task::SetUp => &self.set_up,
            Task::Inputs { .. } => &self.inputs,
            Task::Layers => &self.tables,
            _ => return Cost::default(),
        };
        let bytes = |t: &Transfer| t.bytes(layout, rows);
        let of = |round: &Arc<Round>| {
            let sent = round.sends.iter().map(bytes).filter(|bytes| *bytes > 0);
            // The evaluator waits for the first tables, and gets the others as fast as they come.
            let first = round.place <= place::TABLES;
            Cost {
                rounds: u64::from(first && round.recvs.iter().any(|t| bytes(t) > 0)),
                messages: sent.clone().count() as u64,
                bytes: sent.sum(),
            }
        };
        rounds.iter().map(of).fold(Cost::default(), |a, b| a + b)
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        self.places
    }

    fn peers(&self) -> Vec<Peer> {
        match self.me {
            Peer::Party(me) => vec![other(me)],
            Peer::Owner(_) | Peer::Recipient(_) => vec![],
        }
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        keys(self.me, peer)
    }

    fn transfers(&self) -> Option<Transfers> {
        crate::yao::transfers(self.me)
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        match by {
            Peer::Party(_) => Seed::own(self.me, by, PRIVATE),
            Peer::Owner(_) | Peer::Recipient(_) => vec![],
        }
    }
}
