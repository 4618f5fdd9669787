//! Three-party replicated sharing, secure against one semi-honest party.
//!
//! Functionality: the arithmetic black box over Z_2, Z_2^64 or Z_2^128: input, linear gates, products, sums, opening.
//!
//! Model: three parties, at most one corrupt and following the protocol; pairwise keys; encrypted, authenticated links. One message
//! per party and product, one round per layer.
//!
//! From: Araki, Furukawa, Lindell, Nof, Ohara, "High-Throughput Semi-Honest Secure Three-Party Computation with an Honest Majority",
//! CCS 2016 (proof: section 3 there). Where we differ: shares are in the CNF form (u_i, u_{i-1}), a change of basis (see `veil_share`);
//! bits use the product of Wolfe, Patel, Munafo, Varia, Herbordt, "Secret Sharing MPC on FPGAs in the Datacenter" (2020), whose message
//! is bit-exact with theirs; openings and outside owners' shares are cross-checked, beyond what semi-honest security needs.
//!
//! `docs/protocol-rep3.md` tells it in full.

mod layers;
mod opening;
mod regions;
mod sharing;

use std::sync::Arc;

use veil_device::{Command, Draw, Form, KeyId, Layout, Op, Program, Span};
use veil_math::Ring;
use veil_program::{Audience, Holder};
use veil_session::{PartyId, Peer};

use crate::plan::{Gives, LayerPlan, Plan};
use crate::round::{Check, Cost, Flow, Meaning, Protocol, Round, Seed, Spans, Task, Transfer};

/// Product of replicated bits: r = u w' + u' w + u' w', with (u, u') = (own, previous). With x = u ⊕ u' and a = u it is x y ⊕ a b.
pub static BITS: Form = Form {
    ring: Ring::Bits,
    terms: &[(0, 1), (1, 0), (1, 1)],
    own: OWN,
};

/// Product of replicated elements of Z_2^64: r = u (w + w') + u' w.
pub static Z64: Form = Form {
    ring: Ring::Z64,
    terms: &[(0, 0), (0, 1), (1, 0)],
    own: OWN,
};

/// Product of replicated elements of Z_2^128.
pub static Z128: Form = Form {
    ring: Ring::Z128,
    terms: &[(0, 0), (0, 1), (1, 0)],
    own: OWN,
};

/// Component u_i.
pub const OWN: u8 = 0;
/// Component u_{i-1}.
pub const PREVIOUS: u8 = 1;

/// κ_i, shared with the next party.
pub const KEY_OWN: KeyId = KeyId(0);
/// κ_{i-1}, shared with the previous party.
pub const KEY_PREVIOUS: KeyId = KeyId(1);

/// Number of an owner's seed at whoever holds it.
pub const fn seed_key(owner: u16, index: u8) -> KeyId {
    KeyId(2 + 2 * owner + index as u16)
}

/// Places of rounds in the plan. The same for every participant.
mod place {
    pub(super) const LIST: u32 = 0;
    pub(super) const JOB_INPUTS: u32 = 1;
    pub(super) const JOB_CHECK: u32 = 2;
    pub(super) const INPUTS: u32 = 3;
    pub(super) const INPUT_CHECK: u32 = 4;
    pub(super) const AGREE: u32 = 5;
    pub(super) const OPEN: u32 = 6;
    pub(super) const OPEN_TOTALS: u32 = 7;
    pub(super) const LAYERS: u32 = 8;
}

/// Labels of hashes: one per use, equal at both ends.
mod label {
    pub(super) const AGREE: u16 = 1;
    pub(super) const OWNER_ROWS: u16 = 0x1000; // + owner, of whom there are at most 1024
    pub(super) const OWNER_JOB: u16 = 0x2000;
    pub(super) const OPEN: u16 = 0x3000; // + component
    pub(super) const OPEN_TOTALS: u16 = 0x4000;
    pub(super) const STORED_ROWS: u16 = 0x5000; // + component
    pub(super) const STORED_JOB: u16 = 0x6000;
}

/// The protocol as one participant runs it.
#[derive(Debug)]
pub struct Rep3 {
    plan: Arc<Plan>,
    me: Peer,
    layout: Layout,
    spans: Spans,
    set_up: Arc<[Arc<Round>]>,
    inputs: Vec<Arc<[Arc<Round>]>>,
    layers: Arc<[Arc<Round>]>,
    agree: Arc<[Arc<Round>]>,
    open: Arc<[Arc<Round>]>,
    open_totals: Arc<[Arc<Round>]>,
}

impl Rep3 {
    /// The rounds of participant `me`.
    pub fn new(plan: Arc<Plan>, me: Peer) -> Self {
        let layout = regions::layout(&plan, me);
        let list = |rounds: Vec<Round>| -> Arc<[Arc<Round>]> {
            rounds.into_iter().map(Arc::new).collect()
        };
        let blocks = 0..plan.job.blocks.len();
        let spans = regions::spans(&plan, me, &layout);
        Rep3 {
            set_up: list(sharing::set_up(&plan, me)),
            inputs: blocks
                .map(|b| list(sharing::inputs(&plan, me, b)))
                .collect(),
            layers: list(layers::rounds(&plan, me)),
            agree: list(opening::agree(me)),
            open: list(opening::open(&plan, me, false)),
            open_totals: list(opening::open(&plan, me, true)),
            plan,
            me,
            layout,
            spans,
        }
    }
}

impl Protocol for Rep3 {
    fn name(&self) -> &'static str {
        "rep3"
    }

    fn guarantee(&self) -> &'static str {
        "semi-honest: private against any one party that follows the protocol; inputs of outside owners and openings are cross-checked"
    }

    fn me(&self) -> Peer {
        self.me
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn programs(&self) -> &[Arc<Program>] {
        match self.me {
            Peer::Party(_) => &self.plan.programs,
            Peer::Owner(_) | Peer::Recipient(_) => &[],
        }
    }

    fn flow(&self, task: Task) -> Flow {
        let (rounds, clears) = match task {
            Task::SetUp => (&self.set_up, false),
            Task::Inputs { block } => (&self.inputs[block as usize], false),
            Task::Layers => (&self.layers, false),
            Task::Agree => (&self.agree, true),
            Task::Open(_) => (&self.open, false),
            Task::OpenTotals(_) => (&self.open_totals, false),
        };
        Flow::new(Arc::clone(rounds), clears)
    }

    fn cost(&self, task: Task, rows: u32) -> Cost {
        match self.me {
            Peer::Party(p) => self.party_cost(p, task, rows),
            Peer::Owner(o) => self.owner_cost(o, task, rows),
            Peer::Recipient(r) => Cost {
                rounds: match task {
                    Task::Open(_) => u64::from(self.opens_to(Audience::Recipient(r), false)),
                    Task::OpenTotals(_) => u64::from(self.opens_to(Audience::Recipient(r), true)),
                    _ => 0,
                },
                ..Cost::default()
            },
        }
    }

    fn spans(&self) -> &Spans {
        &self.spans
    }

    fn places(&self) -> u32 {
        place::LAYERS + self.plan.all_layers().count() as u32
    }

    fn peers(&self) -> Vec<Peer> {
        let job = &self.plan.job;
        match self.me {
            Peer::Party(p) => {
                let owners = (0..job.owners.len() as u16).map(Peer::Owner);
                let recipients = (0..job.recipients.len() as u16).map(Peer::Recipient);
                [p.next(), p.previous()]
                    .map(Peer::Party)
                    .into_iter()
                    .chain(owners)
                    .chain(recipients)
                    .collect()
            }
            Peer::Owner(_) | Peer::Recipient(_) => PartyId::ALL.map(Peer::Party).to_vec(),
        }
    }

    fn keys(&self, peer: Peer) -> Vec<(&'static str, KeyId)> {
        match (self.me, peer) {
            (Peer::Party(p), Peer::Party(q)) if q == p.next() => vec![("pair", KEY_OWN)],
            (Peer::Party(p), Peer::Party(q)) if q == p.previous() => vec![("pair", KEY_PREVIOUS)],
            _ => vec![],
        }
    }

    fn meaning(&self, place: u32, part: u16) -> Option<Meaning> {
        let layer = place.checked_sub(place::LAYERS)? as usize;
        match part {
            _ if place >= self.places() => None,
            0 => Some(Meaning::Products { layer }),
            1 => Some(Meaning::Sums { layer }),
            _ => None,
        }
    }

    fn seeds(&self, owner: u16) -> Vec<Seed> {
        let seed = |index: u8| {
            // s_0 makes u_0, held by parties 0 and 1; s_1 makes u_1, held by parties 1 and 2.
            let first = PartyId::ALL[index as usize];
            let holders = [Peer::Party(first), Peer::Party(first.next())];
            let digest = self.me.party().map(|_| regions::seed_digest(owner, index));
            Seed {
                index,
                key: seed_key(owner, index),
                holders,
                digest,
            }
        };
        let all = [seed(0), seed(1)];
        let mine = |s: &Seed| self.me == Peer::Owner(owner) || s.holders.contains(&self.me);
        all.into_iter().filter(mine).collect()
    }
}

impl Rep3 {
    fn opens_to(&self, audience: Audience, totals: bool) -> bool {
        self.outputs_to(totals).any(|(a, _)| a == audience)
    }

    /// Audience and width of the outputs that are opened per chunk, or in the end.
    fn outputs_to(&self, totals: bool) -> impl Iterator<Item = (Audience, u32)> + '_ {
        let outputs = self.plan.outputs.iter().zip(&self.plan.job.audiences);
        outputs
            .filter(move |(o, a)| {
                o.gives == if totals { Gives::Sum } else { Gives::Row } && **a != Audience::Stored
            })
            .map(|(o, a)| (*a, o.width))
    }

    /// What party `me` sends, by formula: see "Cost" in the protocol's documentation.
    fn party_cost(&self, me: PartyId, task: Task, rows: u32) -> Cost {
        let plan = &self.plan;
        let element = plan.ring.bytes(u64::from(rows));
        let one = plan.ring.bytes(1);
        match task {
            Task::Layers => layers_cost(&plan.layers, element, one),
            Task::Agree => Cost {
                rounds: 1,
                messages: 2,
                bytes: 64,
            },
            Task::Inputs { block } => self.input_cost(
                me,
                &plan.job.blocks[block as usize].holders,
                veil_circuit::Per::Row,
                element,
            ),
            Task::SetUp => {
                let owners = plan.job.owners.len() as u64;
                // The list to both, and the digests of one or two seeds per owner to their other holders.
                let seeds = if me.index() == 1 { 2 } else { 1 } * owners;
                let list = Cost {
                    rounds: 1,
                    messages: 2 + seeds,
                    bytes: 32 * (2 + seeds),
                };
                let derived = plan
                    .job_plan
                    .as_ref()
                    .map_or(Cost::default(), |j| layers_cost(&j.layers, one, one));
                list + self.input_cost(me, &plan.job.blocks[0].holders, veil_circuit::Per::Job, one)
                    + derived
            }
            Task::Open(_) | Task::OpenTotals(_) => {
                let totals = matches!(task, Task::OpenTotals(_));
                let size = if totals { one } else { element };
                self.outputs_to(totals)
                    .fold(Cost::default(), |cost, (audience, width)| {
                        let value = (1, u64::from(width) * size);
                        let digest = (1, 32);
                        let (rounds, sent) = match audience {
                            // The value to the next, the digest to the previous.
                            Audience::Parties => (1, vec![value, digest]),
                            Audience::Party(p) if p == me => (1, vec![]),
                            Audience::Party(p) if p == me.next() => (0, vec![value]),
                            Audience::Party(_) => (0, vec![digest]),
                            Audience::Recipient(_) => (0, vec![value, digest]),
                            Audience::Stored => unreachable!("filtered out by outputs_to"),
                        };
                        // All ports are opened in one round.
                        let rounds = u64::from(cost.rounds + rounds > 0);
                        let sum = cost
                            + sent.iter().fold(Cost::default(), |c, (m, b)| {
                                c + Cost {
                                    rounds: 0,
                                    messages: *m,
                                    bytes: *b,
                                }
                            });
                        Cost { rounds, ..sum }
                    })
            }
        }
    }

    fn input_cost(
        &self,
        me: PartyId,
        holders: &[Holder],
        per: veil_circuit::Per,
        size: u64,
    ) -> Cost {
        let mut cost = Cost::default();
        let (mut waits, mut loads) = (false, false);
        let mut checked: Vec<u16> = Vec::new();
        for (port, holder) in self
            .plan
            .inputs
            .iter()
            .zip(holders)
            .filter(|(p, _)| p.per == per)
        {
            match *holder {
                Holder::Party(p) if p == me => {
                    cost = cost
                        + Cost {
                            rounds: 0,
                            messages: 1,
                            bytes: u64::from(port.width) * size,
                        };
                }
                Holder::Party(p) => waits |= me == p.previous(),
                // Digests of both components, to their other holders.
                Holder::Stored => loads = true,
                // The explicit component goes to parties 2 and 0, which compare digests.
                Holder::Owner(o) => {
                    if me.index() != 1 {
                        waits = true;
                        if !checked.contains(&o) {
                            checked.push(o);
                        }
                    }
                }
            }
        }
        let checks = checked.len() as u64 + if loads { 2 } else { 0 };
        cost + Cost {
            rounds: u64::from(waits) + u64::from(checks > 0),
            messages: checks,
            bytes: 32 * checks,
        }
    }

    fn owner_cost(&self, me: u16, task: Task, rows: u32) -> Cost {
        let (holders, per, size) = match task {
            Task::Inputs { block } => (
                &self.plan.job.blocks[block as usize].holders,
                veil_circuit::Per::Row,
                self.plan.ring.bytes(u64::from(rows)),
            ),
            Task::SetUp => (
                &self.plan.job.blocks[0].holders,
                veil_circuit::Per::Job,
                self.plan.ring.bytes(1),
            ),
            _ => return Cost::default(),
        };
        let ports = self
            .plan
            .inputs
            .iter()
            .zip(holders)
            .filter(|(p, h)| p.per == per && **h == Holder::Owner(me));
        ports.fold(Cost::default(), |c, (p, _)| {
            c + Cost {
                rounds: 0,
                messages: 2,
                bytes: 2 * u64::from(p.width) * size,
            }
        })
    }
}

/// Layers whose products have `element` bytes, and sums `one`.
fn layers_cost(layers: &[LayerPlan], element: u64, one: u64) -> Cost {
    layers.iter().fold(Cost::default(), |cost, l| {
        let messages = u64::from(l.products > 0) + u64::from(l.sums > 0);
        let bytes = u64::from(l.products) * element + u64::from(l.sums) * one;
        cost + Cost {
            rounds: u64::from(messages > 0),
            messages,
            bytes,
        }
    })
}

/// dst 0 = Σ ± src.
fn combine(ring: Ring, src: Vec<Span>, minus: u32, to: Span) -> Command {
    Command::new(Op::Combine { ring, minus }, src, vec![to])
}

/// dst 0 = pseudorandom elements.
fn random(to: Span, key: KeyId, tag: veil_prss::Use, first: u64) -> Command {
    let mut command = Command::new(Op::Random, vec![], vec![to]);
    command.draws = vec![Draw {
        key,
        tag,
        first,
        minus: false,
    }];
    command
}

/// Adds a comparison to a round.
fn check(round: &mut Round, a: Span, b: Span, suspects: Vec<Peer>, what: &'static str) {
    round.checks.push(Check {
        command: round.finish.len(),
        suspects,
        what,
    });
    round
        .finish
        .push(Command::new(Op::CheckEqual, vec![a, b], vec![]));
}

fn transfer(span: Span, peer: Peer, part: u16) -> Transfer {
    Transfer { span, peer, part }
}
