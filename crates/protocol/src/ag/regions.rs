//! Where a participant's values are in its workspace, and where the host reaches in.

use veil_circuit::Per;
use veil_device::Span;
use veil_session::{PartyId, Peer};

use super::{AgMessage, Shape, outside, stock};
use crate::plan::{OutputPlan, Plan, PortPlan, Stock};
use crate::round::Spans;

pub(super) use crate::plan::{JOB_WIDE, SLOTS};

const INPUT: u16 = 3;
const PARTS: u16 = 4;
const STAGED: u16 = 5;
const SAID: u16 = 6;
const PUBLIC: u16 = 7;
const CHALLENGES: u16 = 8;
const FOLDS: u16 = 9;
const FLAT_PARTS: u16 = 10;
const MACS: u16 = 11;
const KEYS: u16 = 12;
const OFFERS: u16 = 13;
const SUMS: u16 = 14;
const BITS: u16 = 15;
const COINS: u16 = 16;
const DIGESTS: u16 = 17;
const OPENED_BITS: u16 = 18;
const MASKS: u16 = 19;
const TABLES: u16 = 20;
const Z: u16 = 21;
const WORK: u16 = 22;
const LAMBDA: u16 = 23;
const OUTPUT: u16 = 24;
const OPENED: u16 = 25;
const LISTS: u16 = 26;
const JOB_INPUT: u16 = 27;
const ASKED: u16 = 28;
const TOLD_SUMS: u16 = 29;
const ANSWERS: u16 = 30;
const AGREED: u16 = 31;
const HIDING_PARTS: u16 = 32;
const HIDING: u16 = 33;
const OUTSIDE_STAGED: u16 = 34;
const OUTSIDE_SAID: u16 = 35;
pub(super) const OUTSIDE_PUBLIC: u16 = 36;

/// Components of the slots: the label, the MAC and the key of the mask; at the garbler Λ, as a number in a label.
pub(super) mod part {
    pub(in crate::ag) const LABEL: u8 = 0;
    pub(in crate::ag) const MAC: u8 = 1;
    pub(in crate::ag) const KEY: u8 = 2;
    pub(in crate::ag) const PUBLIC: u8 = 3;
    /// How many there are.
    pub(in crate::ag) const ALL: u8 = 4;
}

/// Who said it: this party, or the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Me,
    Them,
}

impl By {
    const fn component(self) -> u8 {
        match self {
            By::Me => 0,
            By::Them => 1,
        }
    }
}

fn span(region: u16, component: u8, first: u32, count: u32) -> Span {
    Span {
        region,
        component,
        first,
        count,
    }
}

/// Items of a span, from number `first` of it on.
pub(super) fn items(of: Span, first: u32, count: u32) -> Span {
    Span {
        first: of.first + first,
        count,
        ..of
    }
}

/// What a challenge is for.
#[derive(Clone, Copy)]
pub(super) enum Use {
    Products,
    Opening,
    Gates,
}

/// The challenge that a party has sent.
pub(super) fn challenge(by: By, of: Use) -> Span {
    span(CHALLENGES, by.component(), of as u32, 1)
}

/// Folds from number `first` on: what a party has sent.
pub(super) fn folds(by: By, first: u32, count: u32) -> Span {
    span(FOLDS, by.component(), first, count)
}

/// The same, as this party computes them to compare.
pub(super) fn own_folds(first: u32, count: u32) -> Span {
    span(FOLDS, 2, first, count)
}

/// The clear values of an input port: ports of the same workspace side by side, in order.
pub(super) fn input(plan: &Plan, port: usize) -> Span {
    let of_job = |port: &PortPlan| port.per == Per::Job;
    let of = &plan.inputs[port];
    let before = plan.inputs[..port].iter();
    let before = before.filter(|port| of_job(port) == of_job(of));
    let region = if of_job(of) { JOB_INPUT } else { INPUT };
    span(region, 0, before.map(|port| port.width).sum(), of.width)
}

/// Parts of masks of inputs that this party has drawn, of so many wires that are taken at once.
pub(super) fn parts(wires: u32) -> Span {
    span(PARTS, 0, 0, wires)
}

/// A component of inputs on their way in.
pub(super) fn staged(wires: u32, component: u8) -> Span {
    span(STAGED, component, 0, wires)
}

/// Parts of masks of inputs that a party has sent.
pub(super) fn said(wires: u32, by: By) -> Span {
    span(SAID, by.component(), 0, wires)
}

/// Λ of inputs.
pub(super) fn public(wires: u32) -> Span {
    span(PUBLIC, 0, 0, wires)
}

/// A component of slots.
pub(super) fn slots(component: u8, first: u32, count: u32) -> Span {
    span(SLOTS, component, first, count)
}

/// A component of an input port, where it is computed with: in slots, or where all rows have it.
pub(super) fn values(port: &PortPlan, component: u8) -> Span {
    let region = match port.per {
        Per::Job => JOB_WIDE,
        Per::Row | Per::Cycle => SLOTS,
    };
    span(region, component, port.first, port.width)
}

/// What an array holds of each candidate of a batch.
#[derive(Clone, Copy)]
pub(super) enum Of {
    A,
    B,
    C,
}

impl Shape {
    /// Arrays of authenticated bits of a batch: three of each layer, and masks of results.
    pub(super) const fn arrays(&self) -> u32 {
        3 * self.layers + 1
    }

    /// Folds that a party sends at once, at most.
    pub(super) fn folds(&self, plan: &Plan) -> u32 {
        self.openings().max(plan.outputs.len() as u32).max(2)
    }
}

/// All parts that this party has drawn for a batch.
pub(super) fn flat_parts(shape: &Shape) -> Span {
    span(FLAT_PARTS, 0, 0, shape.arrays())
}

/// All MACs of a batch, and all keys.
pub(super) fn authenticated(shape: &Shape) -> [Span; 2] {
    [MACS, KEYS].map(|region| span(region, 0, 0, shape.arrays()))
}

/// MACs and keys of the candidates of all layers.
pub(super) fn candidates(shape: &Shape, of: Of) -> [Span; 2] {
    authenticated(shape).map(|all| items(all, of as u32 * shape.layers, shape.layers))
}

/// The same of one layer.
pub(super) fn layer(shape: &Shape, of: Of, layer: u32) -> [Span; 2] {
    candidates(shape, of).map(|all| items(all, layer, 1))
}

/// MACs and keys of masks of results.
pub(super) fn fresh(shape: &Shape) -> [Span; 2] {
    authenticated(shape).map(|all| items(all, 3 * shape.layers, 1))
}

/// G of a party, of all layers.
pub(super) fn offers(shape: &Shape, by: By) -> Span {
    span(OFFERS, by.component(), 0, shape.layers)
}

/// S, then L, of all layers.
pub(super) fn sums(shape: &Shape) -> Span {
    span(SUMS, 0, 0, shape.layers)
}

/// Bits d of a party, of all layers.
pub(super) fn bits(shape: &Shape, by: By) -> Span {
    span(BITS, by.component(), 0, shape.layers)
}

/// What the parties say while they toss coins.
#[derive(Clone, Copy)]
pub(super) enum Said {
    /// The garbler's digest of leaky products, what hides it, and the commitment to it.
    Digest,
    Nonce,
    Commitment,
    /// The evaluator's digest.
    Other,
    /// The garbler's coin.
    Coin,
    /// The evaluator's coin, what hides it, and the commitment to it.
    OtherCoin,
    OtherNonce,
    OtherCommitment,
}

pub(super) fn coin(said: Said) -> Span {
    span(COINS, 0, said as u32, 1)
}

/// Digests that this party computes: to compare, and of the shifts.
pub(super) fn digest() -> Span {
    span(DIGESTS, 0, 0, 1)
}

pub(super) fn shifts() -> Span {
    span(DIGESTS, 0, 1, 1)
}

/// Bits that a party opens of a batch: of every layer but the first d, then ε and δ, if there are gates.
pub(super) fn opened_bits(shape: &Shape, by: By) -> Span {
    span(OPENED_BITS, by.component(), 0, shape.openings())
}

/// MACs and keys of masks of first operands, of second operands, and of σ ⊕ λ_γ.
pub(super) fn masks() -> [[Span; 2]; 3] {
    [0, 2, 4].map(|first| [0, 1].map(|k| span(MASKS, 0, first + k, 1)))
}

/// Tables of `gates` gates from number `first` of the message on.
pub(super) fn tables(first: u32, gates: u32) -> Span {
    span(TABLES, 0, 2 * first, 2 * gates)
}

pub(super) fn z() -> Span {
    span(Z, 0, 0, 1)
}

/// Labels of results; three arrays of work.
pub(super) fn results() -> Span {
    span(WORK, 0, 0, 1)
}

pub(super) fn work(k: u32) -> Span {
    span(WORK, 0, 1 + k, 1)
}

/// Bits Λ of first operands, of second operands and of results.
pub(super) fn lambda() -> [Span; 3] {
    [0, 1, 2].map(|k| span(LAMBDA, 0, k, 1))
}

/// Bits of outputs: parts of masks that a party opens; Λ; the own part.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Opened(By),
    Public,
    Own,
}

/// Bits of an output port.
pub(super) fn output(plan: &Plan, port: usize, of: Part) -> Span {
    let component = match of {
        Part::Opened(by) => by.component(),
        Part::Public => 2,
        Part::Own => 3,
    };
    let before = plan.outputs[..port].iter().map(|output| output.width).sum();
    span(OUTPUT, component, before, plan.outputs[port].width)
}

/// A component of an output when it is computed.
pub(super) fn result(output: &OutputPlan, component: u8) -> Span {
    slots(component, output.first, output.width)
}

/// The opened values of an output.
pub(super) fn opened(plan: &Plan, port: usize) -> Span {
    Span {
        region: OPENED,
        component: 0,
        ..output(plan, port, Part::Own)
    }
}

/// What participants from outside ask a party: of each a challenge, and the sum of the other party's parts. At one of them: its challenge, and the
/// sums of both parties' parts.
pub(super) fn asked() -> Span {
    span(ASKED, 0, 0, 0)
}

/// Sums of a party that is asked: of its own MACs, of its keys, of these with the sum of the parts.
pub(super) fn told_sums(k: u32) -> Span {
    span(TOLD_SUMS, 0, k, 1)
}

/// Digests that a party answers to participants from outside: of its own sum, and of what the other party's must be. At one of them: those of both parties.
pub(super) fn answers() -> Span {
    span(ANSWERS, 0, 0, 0)
}

/// The digest of Λ of what owners from outside have told.
pub(super) fn agreed(by: By) -> Span {
    span(AGREED, by.component(), 0, 1)
}

/// Parts that hide what recipients from outside are told.
pub(super) fn hiding_parts(wires: u32) -> Span {
    span(HIDING_PARTS, 0, 0, wires)
}

/// Their MACs (0) and keys (1).
pub(super) fn hiding(wires: u32, component: u8) -> Span {
    span(HIDING, component, 0, wires)
}

/// Wires of outputs of recipients from outside, with those that hide them.
pub(super) fn outside_wires(plan: &Plan, shape: &Shape) -> u32 {
    let recipients = outside::recipients(plan).into_iter();
    let ports = recipients.flat_map(|(_, ports)| ports);
    let wires: u32 = ports.map(|port| plan.outputs[port].width).sum();
    wires + shape.recipients * shape.hiding_outputs()
}

/// MACs (0) and keys (1) of these.
pub(super) fn outside_staged(wires: u32, component: u8) -> Span {
    span(OUTSIDE_STAGED, component, 0, wires)
}

/// Their parts that a party tells.
pub(super) fn outside_said(wires: u32, by: By) -> Span {
    span(OUTSIDE_SAID, by.component(), 0, wires)
}

/// Λ that a party tells.
pub(super) fn outside_public(wires: u32, by: By) -> Span {
    span(OUTSIDE_PUBLIC, by.component(), 0, wires)
}

/// The digest of the list of accepted inputs, of this party or of the other.
pub(super) fn list(mine: bool) -> Span {
    span(LISTS, 0, u32::from(!mine), 1)
}

pub(super) fn spans(plan: &Plan, shape: &Shape, me: Peer) -> Spans {
    let blocks = &plan.job.blocks;
    let supplies = |k: usize| blocks.iter().any(|b| b.holders[k].peer() == Some(me));
    let ports = |per: Per| {
        let ports = (0..plan.inputs.len()).filter(|k| plan.inputs[*k].per == per && supplies(*k));
        ports.map(|k| (k, input(plan, k))).collect()
    };
    let sees = |k: &usize| plan.job.audiences[*k].includes(me);
    let job_wide = (0..part::ALL).map(|component| span(JOB_WIDE, component, 0, plan.job_wide));
    let party = me.party();
    Spans {
        inputs: ports(Per::Row),
        cycle_inputs: ports(Per::Cycle),
        job_inputs: ports(Per::Job),
        job_wide: party.map_or(vec![], |_| job_wide.collect()),
        list: party.map(|_: PartyId| list(true)),
        stock: match (party, shape.stock) {
            (Some(_), Stock::Made) => stock::fields(shape),
            _ => vec![],
        },
        opened: (0..plan.outputs.len())
            .filter(sees)
            .map(|k| (k, opened(plan, k)))
            .collect(),
        ..Spans::default()
    }
}

/// The kind of a message whose bytes are a span.
pub(super) fn message(of: Span) -> Option<AgMessage> {
    let is = |all: &[Span]| all.iter().any(|one| one.first == of.first);
    Some(match of.region {
        SAID => AgMessage::InputParts,
        CHALLENGES => match of.first {
            n if n == Use::Products as u32 => AgMessage::ProductChallenge,
            n if n == Use::Opening as u32 => AgMessage::OpeningChallenge,
            _ => AgMessage::GateChallenge,
        },
        FOLDS => AgMessage::Folds,
        PUBLIC => AgMessage::Public,
        OFFERS => AgMessage::Offers,
        BITS => AgMessage::Differences,
        COINS if is(&[coin(Said::Commitment)]) => AgMessage::DigestCommitment,
        COINS if is(&[coin(Said::Digest), coin(Said::Other)]) => AgMessage::Digest,
        COINS if is(&[coin(Said::Nonce)]) => AgMessage::DigestNonce,
        COINS if is(&[coin(Said::OtherCommitment)]) => AgMessage::CoinCommitment,
        COINS if is(&[coin(Said::Coin)]) => AgMessage::GarblerCoin,
        COINS if is(&[coin(Said::OtherCoin)]) => AgMessage::EvaluatorCoin,
        COINS => AgMessage::CoinNonce,
        OPENED_BITS => AgMessage::Opened,
        Z => AgMessage::Colours,
        LAMBDA => AgMessage::Results,
        OUTPUT => AgMessage::OutputParts,
        ASKED if of.first.is_multiple_of(2) => AgMessage::OutsideChallenge,
        ASKED => AgMessage::OutsideSum,
        ANSWERS => AgMessage::OutsideAnswers,
        AGREED => AgMessage::MaskedDigest,
        OUTSIDE_SAID => AgMessage::OutsideParts,
        OUTSIDE_PUBLIC => AgMessage::OutsideResults,
        _ => return None,
    })
}
