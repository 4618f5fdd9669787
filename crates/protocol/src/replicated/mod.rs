//! The common part of all protocols over replicated sharing: inputs, openings, agreement, stored shares, and their order. The protocols
//! differ in the holders of components, and in how they multiply: [`Scheme`].

mod checks;
mod convert;
mod cost;
mod cycles;
mod digests;
pub(crate) mod lifts;
mod masked;
mod opening;
mod pieces;
pub(crate) mod regions;
mod scheme;
mod sharing;
mod work;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use veil_device::{Ahead, Command, KeyId, Layout, Op, PrfCall, Program, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

pub(crate) use checks::{
    Authenticated, Batch, CheckOf, Frame, ProofOf, batches, count_before, look,
};
use checks::{CHECK_PLACES, place_of_checks, with_proofs};
pub(crate) use convert::conversions;
pub use masked::is_masked;
pub(crate) use opening::Exchange;
pub(crate) use scheme::{Component, Products, Scheme};
use sharing::Inputs;
pub(crate) use work::{Work, within};

use crate::choose::Choice;
use crate::plan::{Gives, JOB_WIDE, LayerPlan, Plan, SLOTS, SUMS, WorkspaceOf};
use crate::round::{Check, Cost, Flow, Meaning, Protocol, Round, Seed, Spans, Task, Transfer};

/// Places of rounds in the plan. The same for every participant.
pub(crate) mod place {
    pub(crate) const LIST: u32 = 0;
    pub(crate) const JOB_INPUTS: u32 = 1;
    pub(crate) const JOB_CHECK: u32 = 2;
    pub(crate) const INPUTS: u32 = 3;
    pub(crate) const INPUT_CHECK: u32 = 4;
    pub(crate) const AGREE: u32 = 5;
    pub(crate) const OPEN: u32 = 6;
    pub(crate) const OPEN_TOTALS: u32 = 7;
    pub(crate) const LAYERS: u32 = 8;
}

/// Labels of hashes: one per use, equal at both ends.
pub(crate) mod label {
    pub(super) const AGREE: u16 = 1;
    pub(super) const OWNER_ROWS: u16 = 0x1000; // + owner, of whom there are at most 1024
    pub(super) const OWNER_JOB: u16 = 0x2000;
    pub(super) const OPEN: u16 = 0x3000; // + component
    pub(super) const OPEN_TOTALS: u16 = 0x4000;
    pub(super) const STORED_ROWS: u16 = 0x5000; // + component
    pub(super) const STORED_JOB: u16 = 0x6000;
    pub(super) const PARTY_ROWS: u16 = 0x7000; // + party
    pub(super) const PARTY_JOB: u16 = 0x8000;
    pub(super) const MASKED: u16 = 0x9000; // + component
    pub(super) const OWNER_CYCLES: u16 = 0xa000; // + owner
    pub(super) const PARTY_CYCLES: u16 = 0xb000; // + party
    pub(crate) const MOVED: u16 = 0xc000; // + component
}

/// A protocol over replicated sharing, as one participant runs it.
#[derive(Debug)]
pub struct Replicated {
    scheme: &'static Scheme,
    plan: Arc<Plan>,
    me: Peer,
    /// Of chunks, and of the set-up and the totals.
    layouts: [Layout; 2],
    spans: Spans,
    set_up: Arc<[Arc<Round>]>,
    inputs: Vec<Arc<[Arc<Round>]>>,
    /// Of circuits without cycles.
    layers: pieces::Layers,
    agree: Arc<[Arc<Round>]>,
    open: Arc<[Arc<Round>]>,
    totals: Arc<[Arc<Round>]>,
    open_totals: Arc<[Arc<Round>]>,
    /// The layers of a sequential circuit, in the place of `layers`.
    cycles: Option<Arc<cycles::Cycles>>,
}

impl Replicated {
    /// The protocol that the job of a plan asks for, as participant `me` runs it: [`rep3`](crate::rep3) or [`rep4`](crate::rep4).
    pub fn new(plan: Arc<Plan>, me: Peer) -> Self {
        match Choice::of(plan.job.security) {
            Some(Choice::Shared(scheme)) => Self::with(scheme, plan, me),
            _ => unreachable!("a plan of shares"),
        }
    }

    /// The rounds of participant `me`.
    fn with(scheme: &'static Scheme, plan: Arc<Plan>, me: Peer) -> Self {
        let layouts =
            [WorkspaceOf::Rows, WorkspaceOf::Job].map(|of| regions::layout(scheme, &plan, me, of));
        let inputs = Inputs {
            scheme,
            plan: &plan,
            me,
        };
        let blocks = 0..plan.job.blocks.len();
        Replicated {
            spans: regions::spans(scheme, &plan, me, &layouts[0]),
            set_up: list(inputs.set_up()),
            inputs: blocks.map(|block| list(inputs.rows(block))).collect(),
            cycles: cycles::Cycles::of(scheme, &plan, me).map(Arc::new),
            layers: if plan.cycles.is_some() {
                pieces::Layers::Made(Default::default())
            } else {
                pieces::Layers::of(scheme, &plan, me)
            },
            agree: list(opening::agree(scheme, me)),
            open: list(opening::open(scheme, &plan, me, false)),
            totals: list(totals_layers(scheme, &plan, me)),
            open_totals: list(opening::open(scheme, &plan, me, true)),
            scheme,
            plan,
            me,
            layouts,
        }
    }
}

impl Protocol for Replicated {
    fn name(&self) -> &'static str {
        self.scheme.name
    }

    fn guarantee(&self) -> Cow<'static, str> {
        self.scheme.guarantee.into()
    }

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self, of: WorkspaceOf) -> &Layout {
        let [chunk, job] = &self.layouts;
        match of {
            WorkspaceOf::Rows => chunk,
            WorkspaceOf::Job => job,
        }
    }

    fn programs(&self) -> &[Arc<Program>] {
        match self.me {
            Peer::Party(_) => &self.plan.programs,
            Peer::Owner(_) | Peer::Recipient(_) => &[],
        }
    }

    fn flow(&self, task: Task, frame: veil_session::Frame) -> Flow {
        if let (Task::Layers, Some(cycles)) = (task, &self.cycles) {
            let cycles = Arc::clone(cycles);
            let block = self.plan.block_of(frame) as usize;
            if cycles.rests(block) {
                return Flow::of(vec![]);
            }
            let odd = is_odd(frame);
            let rounds = move |cycle| cycles.rounds(cycle, block, odd);
            return Flow::cycles(self.plan.cycle_count(), Arc::new(rounds));
        }
        let (rounds, clears) = match task {
            Task::SetUp => (&self.set_up, false),
            Task::Inputs { block } => (&self.inputs[block as usize], false),
            Task::Layers => return self.layers.flow(is_odd(frame)),
            Task::Agree => (&self.agree, true),
            Task::Open(_) => (&self.open, false),
            Task::Totals => (&self.totals, false),
            Task::OpenTotals(_) => (&self.open_totals, false),
        };
        Flow::new(Arc::clone(rounds), clears)
    }

    fn cost(&self, task: Task, frame: veil_session::Frame) -> Cost {
        cost::of(self.scheme, &self.plan, self.me, task, frame)
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        let checks = CHECK_PLACES * Frame::ALL.len() as u32;
        let checks = if self.plan.has_macs() { checks } else { 0 };
        let cycles = if self.plan.cycles.is_some() { 2 } else { 0 };
        place_of_checks(self.scheme, &self.plan) + checks + cycles
    }

    fn peers(&self) -> Vec<Peer> {
        let job = &self.plan.job;
        match self.me {
            Peer::Party(p) => {
                let owners = (0..job.owners.len() as u16).map(Peer::Owner);
                let recipients = (0..job.recipients.len() as u16).map(Peer::Recipient);
                let others = self.scheme.others(p).map(Peer::Party);
                others.chain(owners).chain(recipients).collect()
            }
            Peer::Owner(_) | Peer::Recipient(_) => self
                .scheme
                .parties
                .iter()
                .copied()
                .map(Peer::Party)
                .collect(),
        }
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        match (self.me, peer) {
            (Peer::Party(me), Peer::Party(other)) => (self.scheme.pair_keys)(me, other),
            _ => vec![],
        }
    }

    fn meaning(&self, place: u32, part: u16) -> Option<Meaning> {
        let layer = place.checked_sub(place::LAYERS)? as usize;
        match part {
            _ if layer >= self.plan.all_layers().count() || !self.scheme.products.are_shares => {
                None
            }
            0 => Some(Meaning::Products { layer }),
            1 => Some(Meaning::Sums { layer }),
            _ => None,
        }
    }

    fn dealt(&self, by: Peer) -> Vec<Seed> {
        let (scheme, me) = (self.scheme, self.me);
        let digests = digests::Digests::of(scheme, &self.plan);
        let mut seeds = Vec::new();
        match by {
            Peer::Owner(owner) => {
                for seed in scheme.seeded() {
                    seeds.push(Seed {
                        index: seed.number() as u8,
                        key: scheme.seed_key(owner, seed),
                        holders: scheme.holders(seed).map(Peer::Party).collect(),
                        digest: me.party().map(|_| digests.seed(owner, seed, 0)),
                    });
                }
            }
            Peer::Party(dealer) => {
                for component in scheme.dealt_by(dealer) {
                    let part = me.party().and_then(|me| scheme.part_of(me, component));
                    let Some(part) = part else { continue };
                    let holders = scheme.other_holders(dealer, component);
                    seeds.push(Seed {
                        index: component.number() as u8,
                        key: Scheme::key(part),
                        holders: holders.map(Peer::Party).collect(),
                        digest: (me != by).then(|| digests.dealt(component, 0)),
                    });
                }
            }
            Peer::Recipient(_) => {}
        }
        seeds.retain(|seed| me == by || seed.holders.contains(&me));
        seeds
    }
}

/// Rounds that stay in memory as long as the protocol.
fn list(mut rounds: Vec<Round>) -> Arc<[Arc<Round>]> {
    rounds.iter_mut().for_each(Round::shrink);
    rounds.into_iter().map(Arc::new).collect()
}

/// Whether the chunk of a frame is one in which roles have changed places.
fn is_odd(frame: veil_session::Frame) -> bool {
    frame.chunk % 2 == 1
}

/// These layers of the rows, at a party, in chunks that are odd or even, without proofs. With the last of all, shares are kept.
fn layers(
    scheme: &Scheme,
    plan: &Plan,
    me: PartyId,
    layers: Range<usize>,
    odd: bool,
) -> impl Iterator<Item = Round> {
    layers.map(move |index| {
        let mut round = round_of(scheme, plan, me, (index, &plan.layers[index]), odd);
        if index + 1 == plan.layers.len() {
            round.finish.extend(opening::keep(scheme, plan, Gives::Row));
        }
        round
    })
}

/// The round of a layer: its products, and what it opens behind masks.
fn round_of(
    scheme: &Scheme,
    plan: &Plan,
    me: PartyId,
    (index, layer): (usize, &LayerPlan),
    odd: bool,
) -> Round {
    let mut round = (scheme.products.layer)(plan, me, index, layer, odd);
    masked::open(scheme, plan, me, index, &mut round);
    round
}

/// Says of a round that it is products, by these of its local commands, of which there are some.
pub(crate) fn says_products(
    scheme: &Scheme,
    me: PartyId,
    round: &mut Round,
    programs: Range<usize>,
    [macs, vouched]: [Vec<(usize, PartyId)>; 2],
) {
    round.products = Some(Arc::new(veil_device::Products {
        me,
        parties: scheme.parties.len() as u8,
        programs,
        macs,
        vouched,
        finish: round.finish.len(),
        ahead: Ahead::default(),
    }));
    ahead(round);
}

/// The counters of a layer of products for circuits that devices make of several layers: in the order of those of its commands, so that no two layers
/// have one in common. Nothing of a layer whose counters have no room there.
pub(crate) fn ahead(round: &mut Round) {
    let Some(mut products) = round.products.take() else {
        return;
    };
    let multiplies = |command: &&Command| matches!(command.op, Op::Product(_));
    let programs = &round.local[products.programs.clone()];
    let calls = programs.iter().find(multiplies).map(|run| &run.calls);
    let masks = calls.and_then(|calls| Some(calls.first()?.first));
    let macs = products.macs.first();
    let macs = macs.and_then(|(mac, _)| Some(round.local[*mac].calls.first()?.first));
    let (masks, macs) = (masks.unwrap_or(0), macs.unwrap_or(0));
    if masks.max(macs) < Ahead::FIRST / Ahead::OF_LAYER {
        Arc::make_mut(&mut products).ahead = Ahead {
            masks: Ahead::FIRST + masks * Ahead::OF_BLOCK,
            macs: Ahead::FIRST + macs * Ahead::OF_LAYER,
        };
        round.products = Some(products);
    }
}

/// The layers of the set-up: on one row, from job-wide values to others that they all share.
fn job_layers(scheme: &Scheme, plan: &Plan, me: Peer) -> Vec<Round> {
    let (Peer::Party(me), Some(job)) = (me, &plan.job_plan) else {
        return Vec::new();
    };
    let before = plan.layers.len();
    let odd = is_odd(plan.set_up_frame());
    let mut rounds: Vec<Round> = job
        .layers
        .iter()
        .enumerate()
        .map(|(k, layer)| round_of(scheme, plan, me, (before + k, layer), odd))
        .collect();
    let copy = |from: (u16, u32), to: (u16, u32), count, part| {
        let span = |(region, first)| Span {
            region,
            component: part,
            first,
            count,
        };
        combine(plan.words, vec![span(from)], 0, span(to))
    };
    for part in scheme.parts() {
        for &(job_value, slot, width) in &job.inputs {
            // Before everything else of the first layer.
            rounds[0]
                .local
                .insert(0, copy((JOB_WIDE, job_value), (SLOTS, slot), width, part));
        }
        let last = rounds
            .last_mut()
            .expect("the last layer computes what is linear");
        last.finish.push(copy(
            (SLOTS, job.slot),
            (JOB_WIDE, job.job_value),
            job.width,
            part,
        ));
    }
    with_proofs(scheme, plan, me, before, rounds)
}

/// The layers of the totals: on one row, from the sums over all rows to what is opened in their place.
fn totals_layers(scheme: &Scheme, plan: &Plan, me: Peer) -> Vec<Round> {
    let Peer::Party(me) = me else {
        return Vec::new();
    };
    // Without MACs they are where the host finds them.
    let kept = opening::keep(scheme, plan, Gives::Sum);
    let kept = (plan.has_macs() && !kept.is_empty()).then(|| Round {
        place: place::OPEN_TOTALS,
        local: kept,
        ..Round::default()
    });
    let mut rounds = of_totals(scheme, plan, me);
    rounds.extend(kept);
    rounds
}

/// The layers of the totals, and their proofs.
fn of_totals(scheme: &Scheme, plan: &Plan, me: PartyId) -> Vec<Round> {
    let Some(totals) = &plan.totals_plan else {
        return Vec::new();
    };
    let before = plan.all_layers().count() - totals.layers.len();
    let odd = is_odd(plan.totals_frame());
    let mut rounds: Vec<Round> = (totals.layers.iter().enumerate())
        .map(|(k, layer)| round_of(scheme, plan, me, (before + k, layer), odd))
        .collect();
    for part in scheme.parts() {
        let span = |region, first, count| Span {
            region,
            component: part,
            first,
            count,
        };
        let (from, to) = (
            span(SUMS, 0, totals.width),
            span(SLOTS, totals.slot, totals.width),
        );
        let shared = totals.inputs.iter();
        let shared = shared.map(|&(job_value, slot, width)| {
            let (from, to) = (span(JOB_WIDE, job_value, width), span(SLOTS, slot, width));
            combine(plan.words, vec![from], 0, to)
        });
        let first: Vec<Command> = std::iter::once(combine(plan.words, vec![from], 0, to))
            .chain(shared)
            .collect();
        // Before everything else of the first layer.
        rounds[0].begin_with(first);
        let last = rounds
            .last_mut()
            .expect("the last layer computes what is linear");
        for &(sum, slot, width) in &totals.results {
            let (from, to) = (span(SLOTS, slot, width), span(SUMS, sum, width));
            last.finish.push(combine(plan.words, vec![from], 0, to));
        }
    }
    with_proofs(scheme, plan, me, before, rounds)
}

/// dst 0 = src 0: elements of the plan's ring as those that are computed with, or the other way.
fn convert(plan: &Plan, from: Span, to: Span) -> Command {
    if plan.has_macs() {
        Command::new(Op::Resize, vec![from], vec![to])
    } else {
        combine(plan.ring, vec![from], 0, to)
    }
}

/// dst 0 = Σ ± src.
pub(crate) fn combine(ring: Ring, src: Vec<Span>, minus: u32, to: Span) -> Command {
    Command::new(Op::Combine { ring, minus }, src, vec![to])
}

/// dst 0 = pseudorandom elements.
pub(crate) fn random(to: Span, key: KeyId, tag: DomainTag, first: u64) -> Command {
    let mut command = Command::new(Op::Random, vec![], vec![to]);
    command.calls = vec![PrfCall { key, tag, first }];
    command
}

/// Adds a comparison to a round.
pub(crate) fn check(round: &mut Round, a: Span, b: Span, suspects: Vec<Peer>, what: &'static str) {
    round.checks.push(Check {
        command: round.finish.len(),
        suspects,
        what,
    });
    round
        .finish
        .push(Command::new(Op::CheckEqual, vec![a, b], vec![]));
}

pub(crate) fn transfer(span: Span, peer: Peer, part: u16) -> Transfer {
    Transfer::new(span, peer, part)
}

/// A message of these spans, of which there is at least one.
pub(crate) fn in_pieces(pieces: &[Span], peer: Peer, part: u16) -> Transfer {
    Transfer {
        span: pieces[0],
        more: pieces[1..].to_vec(),
        peer,
        part,
    }
}
