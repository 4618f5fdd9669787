//! Kinds of messages: found in the rounds of the plan, not by their number.

mod authenticated;
mod intersect;
mod stocked;

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::ColumnType;
use veil_engine::participants;
use veil_job::{Adversary, ProtocolKind};
use veil_protocol::ag::{silent_round, takes_inputs};
use veil_protocol::cut::{CutMessage, cut_message};
use veil_protocol::rep3::{self, CheckMessage, ProofMessage};
use veil_protocol::yao;
use veil_protocol::{
    Cleared, Plan, Protocol, Round, Stock, Task, Transfer, WorkspaceOf, is_masked,
};
use veil_session::{Channel, Frame, Peer};

/// The kinds, and the list of all of them, from one text: no new kind is missing in the list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident,)*) => {
        /// The purpose of a message.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)*];
        }
    };
}

kinds! {
    /// Nonce, key share and plan hash.
    Hello,
    /// Session id and proof of the keys.
    Proof,
    /// Keys that an owner or a party chooses for others.
    Seeds,
    /// Digests of the order of a key column.
    Order,
    /// The first digest that differs, or none.
    OrderAnswer,
    /// A holder says that it was told of a difference.
    OrderHeard,
    /// A participant says that what it receives or keeps is written.
    Written,
    /// Points of base transfers.
    Points,
    /// Trees of keys of oblivious transfers.
    Trees,
    /// A party's marks of its stock.
    StockMarks,
    /// A party whose marks were one session behind says that it has caught up.
    StockCaughtUp,
    /// A party says that it has marked the cells of the run.
    StockMarked,
    /// The offset of the garbler's labels, masked for each transfer that comes from a stock.
    MaskedOffset,
    /// The same of values per job.
    JobMaskedOffset,
    /// A party's corrections of its bits: the evaluator's for their labels, or those of masks of inputs for their MACs.
    Correction,
    /// The same of values per job.
    JobCorrection,
    /// Tables of garbled gates.
    Table,
    /// Tables of garbled gates that compute what all rows share.
    JobTable,
    /// The commitments of the garbler in cut-and-choose.
    Commitments,
    /// The key of the sum over its inputs.
    MatrixKey,
    /// The commitment to the evaluator's coin.
    CoinCommitment,
    /// Both labels of the evaluator's inputs, masked.
    MaskedLabels,
    /// Digests of all circuits.
    CircuitDigests,
    /// The garbler's coin.
    GarblerCoin,
    /// The evaluator's coin.
    EvaluatorCoin,
    /// The nonce of the commitment to it.
    CoinNonce,
    /// Seeds of the circuits that are opened.
    OpenedSeeds,
    /// The labels for the evaluation of the other circuits.
    ShownLabels,
    /// Colours of the sums over the garbler's inputs.
    ShownColours,
    /// The challenge to corrections.
    TransferChallenge,
    /// Folds of columns that answer it.
    TransferFolds,
    /// A party's parts of masks of inputs that the other one owns.
    InputParts,
    /// The challenge to their MACs.
    InputChallenge,
    /// The fold of their MACs.
    InputFold,
    /// Masked inputs of a party.
    MaskedInput,
    /// Corrections of the bits of a batch.
    BatchCorrection,
    /// The challenge to them.
    BatchTransferChallenge,
    /// Folds of columns that answer it.
    BatchTransferFolds,
    /// What a party offers for leaky products.
    LeakyOffer,
    /// Bits that make leaky products right.
    LeakyBits,
    /// A challenge to leaky products.
    LeakyChallenge,
    /// The garbler's commitment to its digest of leaky products.
    LeakyCommitment,
    /// A digest of leaky products.
    LeakyDigest,
    /// The nonce of the commitment to it.
    LeakyNonce,
    /// Bits of a batch that are opened.
    OpenedBits,
    /// The challenge to their MACs.
    BitChallenge,
    /// Folds of their MACs.
    BitFolds,
    /// Colours of results at the garbler.
    TableColours,
    /// Masked results.
    MaskedResults,
    /// The challenge to labels of results, or to masks of gates.
    GateChallenge,
    /// The fold of labels of results.
    LabelFold,
    /// The fold of MACs of gates.
    GateFold,
    /// A party's parts of masks of outputs.
    OutputParts,
    /// The challenge to their MACs.
    OutputChallenge,
    /// Folds of their MACs.
    OutputFolds,
    /// A digest of masked inputs of owners from outside.
    MaskedInputDigest,
    /// A party's parts of masks, to a participant from outside.
    OutsideParts,
    /// Masked results, to a recipient from outside.
    OutsideResults,
    /// A challenge to parts that were told outside.
    OutsideChallenge,
    /// The sum of the other party's parts under it.
    OutsideSum,
    /// Digests that answer both.
    OutsideAnswers,
    /// Sums of levels of trees of silent transfers, and of their leaves.
    SilentSums,
    /// What a receiver of silent transfers asks with.
    SilentQuestion,
    /// The sender's answer.
    SilentAnswer,
    /// The sender's commitment to its coin, where keys meet.
    KeysCommitment,
    /// The seed of the receiver's encoding.
    EncodingSeed,
    /// The encoding of its keys, masked.
    Encoding,
    /// Its coin.
    ReceiverCoin,
    /// The sender's coin, and what hid it.
    SenderCoin,
    /// Digests of the sender's keys.
    KeyTags,
    /// Digest of the list of accepted inputs.
    List,
    /// Digest of an owner's seed, or of a key that a party deals.
    SeedDigest,
    /// A party's share of its input per job.
    PartyJobInput,
    /// An owner's explicit component of its input per job.
    OwnerJobInput,
    /// Digest of an owner's explicit components per job.
    OwnerJobDigest,
    /// Digest of a loaded component of values per job.
    LoadedJobDigest,
    /// A party's part of products of values per job.
    JobProduct,
    /// The MAC of a message of products of values per job, by who vouches for it.
    JobMac,
    /// The seed of the weights in the proof that products of values per job are right, between its verifiers.
    JobProofReady,
    /// The seed, to the prover.
    JobProofSeed,
    /// The seed that the prover was told, to its other verifier.
    JobProofSeedEcho,
    /// A level's share of the proof that products of values per job are right.
    JobProofShare,
    /// The challenge to a level of it.
    JobChallenge,
    /// The challenge that its prover was told, to its other verifier.
    JobEcho,
    /// A verifier's findings about it.
    JobFindings,
    /// A party's part of the weighted sums of values per job and their MACs.
    JobCheckSums,
    /// A party's part of the key of the MACs times one of them.
    JobCheckProduct,
    /// A component of their difference.
    JobDifference,
    /// Digest of a party's explicit components per job.
    PartyJobDigest,
    /// A party's share of its rows.
    PartyInput,
    /// An owner's explicit component of its rows.
    OwnerInput,
    /// Digest of an owner's explicit components.
    OwnerDigest,
    /// Digest of a party's explicit components.
    PartyDigest,
    /// Digest of a loaded component of rows.
    LoadedDigest,
    /// A party's part of products.
    Product,
    /// A party's part of sums of products over the rows.
    SumProduct,
    /// The MAC of a message of products, by who vouches for it.
    Mac,
    /// The seed of the weights in the proof that products are right, to the verifier who tells it, from the one who has computed the batch.
    ProofReady,
    /// The seed, to the prover.
    ProofSeed,
    /// The seed that the prover was told, to its other verifier.
    ProofSeedEcho,
    /// A level's share of the proof that products are right.
    ProofShare,
    /// The challenge to a level of a proof.
    Challenge,
    /// The challenge that its prover was told, to its other verifier.
    Echo,
    /// A verifier's findings about a proof.
    Findings,
    /// A component of masked values that are opened while the parties compute.
    Masked,
    /// The digest of it that its other holder sends.
    MaskedDigest,
    /// A party's part of the weighted sums of values and their MACs.
    CheckSums,
    /// A party's part of the key of the MACs times one of them.
    CheckProduct,
    /// A component of their difference.
    Difference,
    /// A party's part of MACs of job-wide values.
    JobWideMac,
    /// A party says that all its checks have passed.
    Agreement,
    /// A component of opened rows.
    Opened,
    /// The digest of it that its other holder sends.
    OpenedDigest,
    /// A component of opened sums.
    Total,
    /// The digest of it that its other holder sends.
    TotalDigest,
}

type Name = (Peer, Peer, u32, u16);

/// The kinds of all messages of a plan.
#[derive(Clone, Debug)]
pub struct Kinds {
    named: BTreeMap<Name, Kind>,
    handshake: u32,
    /// Products come from a stock, and there are no transfers.
    stocked: bool,
}

impl Kinds {
    /// Looks through the rounds of every participant.
    pub fn of(plan: &Arc<Plan>) -> Self {
        let mut named = BTreeMap::new();
        let mut handshake = 0;
        let security = plan.job.security;
        let cuts = security.adversary == Adversary::CutAndChoose;
        let authenticates =
            (security.protocol, security.adversary) == (ProtocolKind::Yao, Adversary::Malicious);
        let meets = plan.job.intersection().is_some();
        for me in participants(plan) {
            let protocol = veil_protocol::protocol(Arc::clone(plan), me);
            handshake = protocol.places();
            // Of even and of odd chunks, where roles may alternate.
            let even = plan.set_up_frame();
            let odd = Frame { chunk: 1, ..even };
            // Of all chunks, where they differ.
            let chunks = (0..).map_while(|index| plan.chunk(index));
            let chunks = chunks.filter(|_| plan.silent.is_some());
            let frames: Vec<Frame> = chunks.map(|chunk| chunk.frame).chain([even, odd]).collect();
            let of_all = tasks(plan, &*protocol).into_iter();
            for (task, round) in of_all.flat_map(|task| {
                let of_task = |frame: &Frame| rounds(&*protocol, task, *frame);
                frames.iter().flat_map(of_task).collect::<Vec<_>>()
            }) {
                for send in &round.sends {
                    let name = (me, send.peer, round.place, send.part);
                    let own = match (cuts, authenticates) {
                        (_, true) if meets => intersect::kind(&*protocol, task, send),
                        (true, _) => of_cut(task, send),
                        (_, true) if let Some(round) = silent_round(plan, round.place) => {
                            Some(authenticated::of_silent(round))
                        }
                        (_, true) => {
                            let inputs = takes_inputs(plan, round.place);
                            authenticated::kind(&*protocol, (task, inputs), send)
                        }
                        _ => stocked::kind(&*protocol, plan, (task, round.place), send),
                    };
                    let kind = || kind(&*protocol, task, send);
                    named.insert(name, own.unwrap_or_else(kind));
                }
            }
        }
        Kinds {
            named,
            handshake,
            stocked: plan.stock == Stock::Used,
        }
    }

    /// The kind of the message `at`. `None`: the plan has no such message.
    pub fn find(&self, from: Peer, to: Peer, at: Channel) -> Option<Kind> {
        match at.step.place.checked_sub(self.handshake) {
            Some(0) => Some(Kind::Hello),
            Some(1) => Some(Kind::Proof),
            Some(2) => Some(Kind::Seeds),
            Some(3) => Some(Kind::Order),
            Some(4) => Some(Kind::OrderAnswer),
            Some(5) => Some(Kind::OrderHeard),
            Some(6) => Some(Kind::Written),
            // Of the first party, and of the second.
            Some(7 | 8) if self.stocked => Some(Kind::StockMarks),
            Some(9) if self.stocked => Some(Kind::StockCaughtUp),
            Some(10) if self.stocked => Some(Kind::StockMarked),
            Some(7) => Some(Kind::Points),
            // Of the first direction, and of the second.
            Some(8 | 9) => Some(Kind::Trees),
            Some(_) => None,
            None => self.named.get(&(from, to, at.step.place, at.part)).copied(),
        }
    }
}

/// Every task of a plan once, with the inputs of every block.
pub fn tasks(plan: &Plan, protocol: &dyn Protocol) -> Vec<Task> {
    let blocks = 0..plan.job.blocks.len() as u32;
    let cleared = cleared(plan, protocol);
    let mut tasks = vec![Task::SetUp];
    tasks.extend(blocks.map(|block| Task::Inputs { block }));
    tasks.extend([
        Task::Layers,
        Task::Totals,
        Task::Agree,
        Task::Open(cleared),
        Task::OpenTotals(cleared),
    ]);
    tasks
}

/// The permission to open that a finished agreement gives: here without any message, to look at the rounds after it.
fn cleared(plan: &Plan, protocol: &dyn Protocol) -> Cleared {
    let mut flow = protocol.flow(Task::Agree, plan.set_up_frame());
    while flow.next().is_some() {}
    flow.cleared().expect("the agreement is over")
}

fn rounds(protocol: &dyn Protocol, task: Task, frame: Frame) -> Vec<(Task, Arc<Round>)> {
    let all = protocol.flow(task, frame).all();
    all.map(|round| (task, round)).collect()
}

fn kind(protocol: &dyn Protocol, task: Task, send: &Transfer) -> Kind {
    if protocol.name() == "yao"
        && let Some(kind) = of_garbled(protocol, task, send)
    {
        return kind;
    }
    let item = protocol.layout(WorkspaceOf::Rows).regions[send.span.region as usize].column;
    let digest = matches!(item, ColumnType::Bytes(_));
    let party = protocol.me().party().is_some();
    if let Some(message) = rep3::proof_message(send) {
        let set_up = task == Task::SetUp;
        return match (message, set_up) {
            (ProofMessage::Ready, false) => Kind::ProofReady,
            (ProofMessage::Ready, true) => Kind::JobProofReady,
            (ProofMessage::Seed, false) => Kind::ProofSeed,
            (ProofMessage::Seed, true) => Kind::JobProofSeed,
            (ProofMessage::SeedEcho, false) => Kind::ProofSeedEcho,
            (ProofMessage::SeedEcho, true) => Kind::JobProofSeedEcho,
            (ProofMessage::Share, false) => Kind::ProofShare,
            (ProofMessage::Share, true) => Kind::JobProofShare,
            (ProofMessage::Challenge, false) => Kind::Challenge,
            (ProofMessage::Challenge, true) => Kind::JobChallenge,
            (ProofMessage::Echo, false) => Kind::Echo,
            (ProofMessage::Echo, true) => Kind::JobEcho,
            (ProofMessage::Findings, false) => Kind::Findings,
            (ProofMessage::Findings, true) => Kind::JobFindings,
        };
    }
    if let Some(message) = rep3::check_message(send) {
        let set_up = task == Task::SetUp;
        return match (message, set_up) {
            (CheckMessage::Sums, false) => Kind::CheckSums,
            (CheckMessage::Sums, true) => Kind::JobCheckSums,
            (CheckMessage::Product, false) => Kind::CheckProduct,
            (CheckMessage::Product, true) => Kind::JobCheckProduct,
            (CheckMessage::Difference, false) => Kind::Difference,
            (CheckMessage::Difference, true) => Kind::JobDifference,
            // The values of the set-up are its rows.
            (CheckMessage::Macs, _) => Kind::JobWideMac,
        };
    }
    match task {
        Task::SetUp if protocol.spans().list == Some(send.span) => Kind::List,
        Task::SetUp => match (digest, party) {
            (true, _) if item == CODE => Kind::JobMac,
            (true, _) if is_seed(protocol, send) => Kind::SeedDigest,
            (true, _) if send.part >= PARTY => Kind::PartyJobDigest,
            (true, _) if send.part >= LOADED => Kind::LoadedJobDigest,
            (true, _) => Kind::OwnerJobDigest,
            // Values per job are one element each; products are computed in the place of rows.
            (false, true) if matches!(item, ColumnType::Rows(_)) => Kind::JobProduct,
            (false, true) => Kind::PartyJobInput,
            (false, false) => Kind::OwnerJobInput,
        },
        Task::Inputs { .. } => match (digest, party) {
            (true, _) if send.part >= PARTY => Kind::PartyDigest,
            (true, _) if send.part >= LOADED => Kind::LoadedDigest,
            (true, _) => Kind::OwnerDigest,
            (false, true) => Kind::PartyInput,
            (false, false) => Kind::OwnerInput,
        },
        Task::Layers | Task::Totals if is_masked(send.part) => {
            if digest {
                Kind::MaskedDigest
            } else {
                Kind::Masked
            }
        }
        Task::Layers | Task::Totals if digest => Kind::Mac,
        Task::Layers | Task::Totals if matches!(item, ColumnType::One(_)) => Kind::SumProduct,
        Task::Layers | Task::Totals => Kind::Product,
        Task::Agree => Kind::Agreement,
        Task::Open(_) if digest => Kind::OpenedDigest,
        Task::Open(_) => Kind::Opened,
        Task::OpenTotals(_) if digest => Kind::TotalDigest,
        Task::OpenTotals(_) => Kind::Total,
    }
}

/// The kind of a message that only cut-and-choose has.
fn of_cut(task: Task, send: &Transfer) -> Option<Kind> {
    if task == Task::SetUp {
        return None;
    }
    Some(match cut_message(send)? {
        CutMessage::Commitments => Kind::Commitments,
        CutMessage::Matrix => Kind::MatrixKey,
        CutMessage::Committed => Kind::CoinCommitment,
        CutMessage::Masked => Kind::MaskedLabels,
        CutMessage::Digests => Kind::CircuitDigests,
        CutMessage::Coin => Kind::GarblerCoin,
        CutMessage::Opened => Kind::EvaluatorCoin,
        CutMessage::Nonce => Kind::CoinNonce,
        CutMessage::Seeds => Kind::OpenedSeeds,
        CutMessage::Shown => Kind::ShownLabels,
        CutMessage::Colours => Kind::ShownColours,
    })
}

/// The kind of a message that only garbled circuits have.
fn of_garbled(protocol: &dyn Protocol, task: Task, send: &Transfer) -> Option<Kind> {
    let from = protocol.me().party()?;
    match (task, from == yao::GARBLER) {
        (Task::SetUp, _) if protocol.spans().list == Some(send.span) => None,
        (Task::SetUp, true) => Some(Kind::JobTable),
        (Task::SetUp, false) => Some(Kind::JobCorrection),
        (Task::Layers, true) => Some(Kind::Table),
        (Task::Inputs { .. }, false) => Some(Kind::Correction),
        _ => None,
    }
}

/// Digests of loaded components have numbers behind those of owners, of whom there are at most 1024.
const LOADED: u16 = 1024;
/// Then come those of what parties supply.
const PARTY: u16 = LOADED + 16;

/// An authentication code.
const CODE: ColumnType = ColumnType::Bytes(16);

fn is_seed(protocol: &dyn Protocol, send: &Transfer) -> bool {
    let others = protocol.peers().into_iter();
    others
        .flat_map(|peer| protocol.dealt(peer))
        .any(|seed| seed.digest == Some(send.span))
}
