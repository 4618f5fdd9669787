//! Costs of tasks, by formula: see "Cost" in the protocols' documentation.

use veil_circuit::Per;
use veil_job::{Audience, Holder};
use veil_math::Ring;
use veil_session::{PartyId, Peer};

use super::{Frame, Scheme};
use crate::plan::{Gives, LayerPlan, Plan};
use crate::round::{Cost, Task};

/// Bytes of a digest.
pub(super) const DIGEST: u64 = 32;

/// What `task` costs `me` in `frame`.
pub(super) fn of(
    scheme: &Scheme,
    plan: &Plan,
    me: Peer,
    task: Task,
    frame: veil_session::Frame,
) -> Cost {
    let costs = Costs {
        scheme,
        plan,
        frame,
    };
    match me {
        Peer::Party(me) => costs.party(me, task),
        Peer::Owner(me) => costs.owner(me, task),
        Peer::Recipient(me) => {
            let sees = |totals| {
                let audience = Audience::Recipient(me);
                u64::from(costs.outputs(totals).any(|(a, _)| a == audience))
            };
            Cost {
                rounds: match task {
                    Task::Open(_) => sees(false),
                    Task::OpenTotals(_) => sees(true),
                    _ => 0,
                },
                ..Cost::default()
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Costs<'a> {
    scheme: &'a Scheme,
    plan: &'a Plan,
    frame: veil_session::Frame,
}

impl<'a> Costs<'a> {
    /// Audience and width of the outputs that are opened per chunk, or in the end.
    fn outputs(self, totals: bool) -> impl Iterator<Item = (Audience, u32)> + 'a {
        let gives = if totals { Gives::Sum } else { Gives::Row };
        let outputs = self.plan.outputs.iter().zip(&self.plan.job.audiences);
        outputs
            .filter(move |(o, a)| {
                o.gives == gives && !matches!(a, Audience::Stored | Audience::Column)
            })
            .map(|(o, a)| (*a, o.width))
    }

    fn party(self, me: PartyId, task: Task) -> Cost {
        let plan = self.plan;
        let element = plan.ring.bytes(u64::from(self.frame.rows));
        let one = plan.ring.bytes(1);
        let [word, one_word] = [u64::from(self.frame.rows), 1].map(|rows| plan.words.bytes(rows));
        let bit = Ring::Bits.bytes(u64::from(self.frame.rows));
        let others = self.scheme.parties.len() as u64 - 1;
        match task {
            Task::Layers => {
                let layers = self.layers(me, &plan.layers, [word, one_word, bit]);
                let holders = &plan.job.blocks[plan.block_of(self.frame) as usize].holders;
                let inputs = self.inputs(me, holders, Per::Cycle, element) * windows(plan);
                inputs + layers * plan.cycle_count() + self.proof(Frame::Rows)
            }
            Task::Agree => digests(others),
            Task::Inputs { block } => self.inputs(
                me,
                &plan.job.blocks[block as usize].holders,
                Per::Row,
                element,
            ),
            Task::SetUp => {
                let seeds = self.scheme.seeded();
                let seeds = seeds.map(|seed| self.scheme.other_holders(me, seed).count() as u64);
                let seeds = seeds.sum::<u64>() * plan.job.owners.len() as u64;
                let keys = self.scheme.components();
                let keys = keys.map(|c| self.scheme.dealt_with(me, c).count() as u64);
                let list = digests(others + seeds + keys.sum::<u64>());
                let derived = plan.job_plan.as_ref();
                let derived = derived.map_or(Cost::default(), |job| {
                    self.layers(me, &job.layers, [one_word, one_word, 1]) + self.proof(Frame::SetUp)
                });
                list + self.inputs(me, &plan.job.blocks[0].holders, Per::Job, one) + derived
            }
            Task::Totals => plan.totals_plan.as_ref().map_or(Cost::default(), |totals| {
                let layers = self.layers(me, &totals.layers, [one_word, one_word, 1]);
                layers + self.proof(Frame::Totals)
            }),
            Task::Open(_) => self.opening(me, false, element),
            Task::OpenTotals(_) => self.opening(me, true, one),
        }
    }

    fn layers(self, me: PartyId, layers: &[LayerPlan], sizes: [u64; 3]) -> Cost {
        let layers = layers.iter();
        layers.fold(Cost::default(), |cost, layer| {
            let odd = super::is_odd(self.frame);
            let products = (self.scheme.products.cost)(me, layer, sizes, odd);
            let masked = super::masked::cost(layer, sizes);
            let both = products + masked;
            // They go in one round.
            let rounds = products.rounds.max(masked.rounds);
            cost + Cost { rounds, ..both }
        })
    }

    /// Proofs and checks of products, where there are any.
    fn proof(self, of: Frame) -> Cost {
        let layers = of.layers(self.plan);
        let batches = super::batches(self.scheme, self.plan).into_iter();
        let batches = batches.filter(|b| layers.contains(&b.layers.start));
        let proof = self.scheme.products.proof.as_ref();
        let proofs = proof.map_or(Cost::default(), |proof| {
            batches.fold(Cost::default(), |cost, batch| {
                let cycles = match of {
                    Frame::Rows => self.plan.cycle_count(),
                    Frame::SetUp | Frame::Totals => 1,
                };
                let [whole, rest] = [cycles / batch.cycles, cycles % batch.cycles];
                let rest = (rest > 0).then(|| (proof.cost)(&batch.of_cycles(rest)));
                cost + (proof.cost)(&batch) * whole + rest.unwrap_or_default()
            })
        });
        let check = self.scheme.products.check.as_ref();
        let check = check.filter(|_| self.plan.has_macs());
        proofs + check.map_or(Cost::default(), |check| (check.cost)(self.plan, of))
    }

    /// Ports whose elements have `size` bytes. All are opened in one round.
    fn opening(self, me: PartyId, totals: bool, size: u64) -> Cost {
        let scheme = self.scheme;
        let mut cost = Cost::default();
        for (audience, width) in self.outputs(totals) {
            let value = u64::from(width) * size;
            let (values, vouched) = match audience {
                Audience::Parties => (1, 1),
                Audience::Party(party) => (
                    u64::from(scheme.next(me) == party),
                    u64::from(scheme.previous(me) == party),
                ),
                // Of every component the first holder sends the value, and the others vouch for it.
                Audience::Recipient(_) => {
                    let components = scheme.components();
                    let first = |c: &_| scheme.holders(*c).next() == Some(me);
                    let values = components.filter(first).count() as u64;
                    (values, scheme.parts.len() as u64 - values)
                }
                Audience::Stored | Audience::Column => (0, 0),
            };
            let receives = matches!(audience, Audience::Parties) || audience == Audience::Party(me);
            cost.rounds = cost.rounds.max(u64::from(receives));
            cost.messages += values + vouched;
            cost.bytes += values * value + vouched * DIGEST;
        }
        cost
    }

    fn inputs(self, me: PartyId, holders: &[Holder], per: Per, size: u64) -> Cost {
        let scheme = self.scheme;
        let mut cost = Cost::default();
        let mut waits = false;
        let mut suppliers: Vec<Holder> = Vec::new();
        let ports = self.plan.inputs.iter().zip(holders);
        for (port, holder) in ports.filter(|(p, _)| p.per == per) {
            match *holder {
                Holder::Party(p) if p == me => {
                    let to = scheme.other_holders(me, scheme.explicit(me)).count() as u64;
                    cost.messages += to;
                    cost.bytes += to * u64::from(port.width) * size;
                }
                Holder::Party(p) => waits |= scheme.part_of(me, scheme.explicit(p)).is_some(),
                Holder::Owner(_) => {
                    waits |= scheme.part_of(me, scheme.owners_explicit()).is_some();
                }
                Holder::Stored | Holder::Column => {}
            }
            if !suppliers.contains(holder) {
                suppliers.push(*holder);
            }
        }
        let compared = suppliers.iter().map(|supplier| match *supplier {
            // Those who got the explicit components compare digests of them.
            Holder::Party(p) if p == me => 0,
            Holder::Party(p) => {
                let others = scheme.other_holders(me, scheme.explicit(p));
                others.filter(|other| *other != p).count()
            }
            Holder::Owner(_) => scheme.other_holders(me, scheme.owners_explicit()).count(),
            // Of every component that is loaded, all holders.
            Holder::Stored => scheme.parts.len() * (scheme.parts.len() - 1),
            Holder::Column => 0,
        });
        let compared = compared.sum::<usize>() as u64;
        cost.rounds = u64::from(waits);
        cost + digests(compared)
    }

    fn owner(self, me: u16, task: Task) -> Cost {
        let plan = self.plan;
        let (holders, per, size) = match task {
            Task::Inputs { block } => (
                &plan.job.blocks[block as usize].holders,
                Per::Row,
                plan.ring.bytes(u64::from(self.frame.rows)),
            ),
            Task::Layers => (
                &plan.job.blocks[plan.block_of(self.frame) as usize].holders,
                Per::Cycle,
                plan.ring.bytes(u64::from(self.frame.rows)),
            ),
            Task::SetUp => (&plan.job.blocks[0].holders, Per::Job, plan.ring.bytes(1)),
            _ => return Cost::default(),
        };
        let to = self.scheme.holders(self.scheme.owners_explicit()).count() as u64;
        let ports = plan.inputs.iter().zip(holders);
        let ports = ports.filter(|(p, h)| p.per == per && **h == Holder::Owner(me));
        let once = ports.fold(Cost::default(), |cost, (port, _)| {
            cost + Cost {
                rounds: 0,
                messages: to,
                bytes: to * u64::from(port.width) * size,
            }
        });
        once * if per == Per::Cycle { windows(plan) } else { 1 }
    }
}

/// How often inputs of cycles are shared.
fn windows(plan: &Plan) -> u64 {
    let cycles = plan.cycles.as_ref();
    cycles.map_or(0, |cycles| cycles.count.div_ceil(cycles.window))
}

/// Digests that are sent, while as many are awaited.
fn digests(count: u64) -> Cost {
    Cost {
        rounds: u64::from(count > 0),
        messages: count,
        bytes: DIGEST * count,
    }
}
