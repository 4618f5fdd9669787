//! Rounds as a circuit: products of bits, one round behind the other, and what is linear between them, as what nodes compute without their hosts.
//!
//! Programs say which item of a workspace becomes what. Followed through all rounds that say is a circuit: its inputs are the items that are read
//! before anything is written to them, and its outputs those that have another value in the end. What a round leaves in the workspace on the way,
//! to send it or to be overwritten, is nowhere then.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{Command, Cpu, Fault, Round, Workspace};
use veil_math::Ring;
use zeroize::Zeroizing;

use super::Cores;
use super::columns::Bytes;
use super::command::Kind;
use super::loaded::Loaded;
use super::rounds::{Party, Whole};
use super::steps::{Destination, Step, Value};
use super::tasks::Known;
use crate::node::Tuple;
use crate::node::circuit::{self, Graph, Parties, PrfCounters};
use crate::node::work::{Components, Keys};

/// Values of a circuit to which no further round is added. So lists have a length that memory is there for, whatever is computed.
const LONGEST: usize = 1 << 16;
/// An item of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Item {
    region: u16,
    number: u32,
    /// One bit, which all rows have.
    job_value: bool,
}

/// Rounds that are a circuit.
pub(crate) struct Traced {
    /// How many.
    pub(crate) rounds: usize,
    pub(crate) graph: Arc<Graph>,
    /// What the first of them is, beside its programs.
    pub(crate) whole: Whole,
    inputs: Vec<Item>,
    outputs: Vec<Item>,
    /// Of the first mask, as the rounds say it.
    tag: veil_prss::DomainTag,
}

/// Rounds as they are followed.
#[derive(Default)]
struct Tracing {
    graph: Graph,
    inputs: Vec<(Item, circuit::Value)>,
    /// What items have now, those that were read or written.
    now: BTreeMap<Item, circuit::Value>,
}

impl Known {
    /// The circuit that the first of these rounds are, if they are more than one.
    pub(crate) fn traced(&self, party: Party, rounds: &[Arc<Round>]) -> Option<Traced> {
        let mut tracing = Tracing::default();
        let mut all: Option<Whole> = None;
        let mut tag = None;
        let mut count = 0;
        for round in rounds {
            let Some(whole) = self.bits(party, round) else {
                break;
            };
            let same = |first: &Whole| {
                whole.before == 0 && whole.keys() == first.keys() && whole.pairs() == first.pairs()
            };
            if !all.as_ref().is_none_or(same) || tracing.graph.len() > LONGEST {
                break;
            }
            for command in &round.local[whole.before..] {
                if let Some(loaded) = self.program(command) {
                    tracing.command(loaded);
                }
                tag = tag.or(command.calls.first().map(|call| call.tag));
            }
            all.get_or_insert(whole);
            count += 1;
        }
        if count < 2 {
            return None;
        }
        let Tracing {
            mut graph,
            inputs,
            now,
        } = tracing;
        let began: BTreeMap<Item, circuit::Value> = inputs.iter().copied().collect();
        let changed = now
            .iter()
            .filter(|(item, value)| began.get(item) != Some(value));
        let outputs = changed.map(|(item, value)| {
            graph.output(*value);
            *item
        });
        Some(Traced {
            rounds: count,
            outputs: outputs.collect(),
            graph: Arc::new(graph),
            whole: all?,
            inputs: inputs.into_iter().map(|(item, _)| item).collect(),
            tag: tag?,
        })
    }

    /// What a round is, if it is products of bits and nothing else.
    fn bits(&self, party: Party, round: &Round) -> Option<Whole> {
        let whole = self.whole(party, round)?;
        let parties = match party.of {
            3 => Parties::Three,
            _ => Parties::Four {
                checks: whole.pairs().is_some(),
            },
        };
        let public = parties.public_parts(party.me);
        let fits = |(command, loaded): (&Command, &Loaded)| {
            let mut steps = loaded.steps.all.iter();
            let bits = loaded.ring == Ring::Bits && command.constants == public;
            bits && !steps.any(Step::sums)
        };
        let commands = round.local[whole.before..].iter();
        let mut programs = commands.filter_map(|of| Some((of, self.program(of)?)));
        (programs.all(fits) && whole.finished == round.finish.len()).then_some(whole)
    }
}

impl Tracing {
    /// What a command of a program makes of what there is.
    fn command(&mut self, loaded: &Loaded) {
        let [slots, ..] = loaded.regions;
        let slot = |number| Item {
            region: slots,
            number,
            job_value: false,
        };
        let mut made: Vec<circuit::Value> = Vec::new();
        for step in &loaded.steps.all {
            let mut of = [circuit::Value::Constant(false); 2];
            if let Some((a, b)) = step.operands.first() {
                of = [a, b].map(|value| self.value(loaded, &made, *value));
            }
            let [a, b] = of;
            made.push(match step.kind {
                Kind::Scale | Kind::Product => self.graph.product(a, b),
                Kind::Add | Kind::Sub | Kind::Random => self.graph.sum(a, b),
            });
        }
        // Read before anything is written: a slot may get what another one had.
        let values = loaded.steps.slots.iter();
        let values: Vec<_> = values
            .map(|(item, value)| (slot(*item), self.value(loaded, &made, *value)))
            .collect();
        self.now.extend(values);
        for (step, value) in loaded.steps.all.iter().zip(made) {
            if let Destination::Product { slot: item, .. } = step.place {
                self.now.insert(slot(item), value);
            }
        }
    }

    fn value(&mut self, loaded: &Loaded, made: &[circuit::Value], value: Value) -> circuit::Value {
        let [slots, job_wide, _] = loaded.regions;
        let (region, number, job_value) = match value {
            Value::Slot(item) => (slots, item, false),
            Value::JobWide(item) => (job_wide, item, true),
            Value::Public(c) | Value::Factor(c) => return circuit::Value::Constant(c & 1 == 1),
            Value::Step(step) => return made[step as usize],
        };
        let item = Item {
            region,
            number,
            job_value,
        };
        *self.now.entry(item).or_insert_with(|| {
            let value = self.graph.input();
            self.inputs.push((item, value));
            value
        })
    }
}

impl Traced {
    /// What its products draw in a lane and chunk.
    pub(crate) fn counters(&self, (lane, chunk): (u16, u32)) -> PrfCounters {
        let ahead = self.whole.ahead;
        PrfCounters {
            masks: Tuple {
                tag: self.tag,
                lane,
                counter: ahead.masks,
                chunk,
            },
            layer: ahead.macs,
        }
    }

    /// Whether its messages have MACs.
    pub(crate) fn checks(&self) -> bool {
        self.whole.pairs().is_some()
    }
}

impl Cores {
    /// The circuit that the first of these rounds are, if nodes do it without their hosts.
    pub(crate) fn traced(&self, party: Party, rounds: &[Arc<Round>]) -> Option<Traced> {
        self.known.traced(party, rounds)
    }

    /// The components of its inputs, and the keys of its masks.
    pub(crate) fn inputs(
        &self,
        host: &mut Cpu,
        workspace: Workspace,
        traced: &Traced,
        rounds: &[Arc<Round>],
    ) -> Result<(Vec<Components>, Arc<Keys>), Fault> {
        for (number, round) in rounds.iter().enumerate() {
            let before = if number == 0 { traced.whole.before } else { 0 };
            host.offload_shares(workspace, before, &round.local[before..])?;
            host.offload_shares(workspace, 0, &round.finish)?;
        }
        let shares = host.offload_shares(workspace, 0, &[])?;
        let rows = Ring::Bits.bytes(shares.frame().rows.into()) as usize;
        let inputs = traced.inputs.iter().map(|of| {
            let component = |part| {
                let bytes = shares.column(of.region, part, of.number);
                if of.job_value {
                    let bit = bytes.first().copied().unwrap_or(0);
                    return Bytes::repeated(Ring::Bits, bit.into()).packed(rows);
                }
                bytes.to_vec()
            };
            let parts = 0..traced.whole.parts() as u8;
            parts.map(|part| Zeroizing::new(component(part))).collect()
        });
        let inputs = inputs.collect();
        Ok((inputs, self.known.keys_of(&traced.whole)?))
    }
}

impl Traced {
    /// Puts its outputs where they go.
    pub(crate) fn put(
        &self,
        host: &mut Cpu,
        workspace: Workspace,
        made: &[Components],
    ) -> Result<(), Fault> {
        let mut shares = host.offload_shares(workspace, 0, &[])?;
        for (of, parts) in self.outputs.iter().zip(made) {
            for (part, bytes) in (0..).zip(parts) {
                let to = shares.column_mut(of.region, part, of.number);
                let bytes = &bytes[..to.len()];
                to.copy_from_slice(bytes);
            }
        }
        Ok(())
    }
}
