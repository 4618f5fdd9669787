//! Random jobs: circuits, holders, audiences, blocks, values.

use std::sync::Arc;

use proptest::prelude::*;
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_job::{Audience, Block, Holder, JobSpec};
use veil_math::Ring;
use veil_protocol::Options;
use veil_session::{PartyId, Peer};

use super::job::{Results, Values};

/// A job and what it computes on.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The job.
    pub job: Arc<JobSpec>,
    /// How it is planned.
    pub options: Options,
    /// Its clear values.
    pub values: Values,
}

/// Any ring.
pub fn rings() -> impl Strategy<Value = Ring> {
    prop_oneof![Just(Ring::Bits), Just(Ring::Z64), Just(Ring::Z128)]
}

/// Valid circuits of up to `size` gates: five in twelve of them products, sums of products among them.
pub fn circuits(ring: Ring, size: usize) -> impl Strategy<Value = Circuit> {
    let constant = prop_oneof![Just(0), Just(1), Just(u128::MAX), any::<u128>()];
    let gates = prop::collection::vec((0..12u8, any::<u32>(), any::<u32>(), constant), 0..size);
    let inputs = prop::collection::vec((1..4u32, prop::bool::weighted(0.3)), 1..4);
    let wires = prop::collection::vec(any::<u32>(), 1..5);
    let outputs = prop::collection::vec((wires, any::<bool>()), 1..4);
    (inputs, gates, outputs).prop_map(move |(inputs, gates, outputs)| {
        let port = |(k, (width, job)): (usize, (u32, bool))| {
            let per = if job { Per::Job } else { Per::Row };
            InputPort {
                name: format!("in{k}"),
                width,
                per,
                bits: false,
            }
        };
        let inputs: Vec<InputPort> = inputs.into_iter().enumerate().map(port).collect();
        let mut wires: u32 = inputs.iter().map(|p| p.width).sum();
        let gate = |(kind, a, b, constant)| {
            let (a, b, constant) = (Wire(a % wires), Wire(b % wires), ring.reduce(constant));
            // Recent wires make long paths, and sums of products that no other gate reads.
            let (last, before) = (Wire(wires - 1), Wire(wires.saturating_sub(2)));
            wires += 1;
            match kind {
                0..4 => Gate::Mul(a, b),
                4 => Gate::Mul(last, b),
                5 => Gate::Add(last, before),
                6 => Gate::Add(a, last),
                7 => Gate::Add(a, b),
                8 => Gate::Sub(a, b),
                9 => Gate::Plus(a, constant),
                10 => Gate::Times(a, constant),
                _ => Gate::Constant(constant),
            }
        };
        let gates = gates.into_iter().map(gate).collect();
        let port = |(k, (ids, sum)): (usize, (Vec<u32>, bool))| {
            let reduce = if sum && ring != Ring::Bits {
                Reduce::Sum
            } else {
                Reduce::None
            };
            // The last gates first: what they compute is what the others are for.
            let pick = |id: u32| {
                Wire(if id.is_multiple_of(2) {
                    wires - 1 - id % wires.min(4)
                } else {
                    id % wires
                })
            };
            OutputPort {
                name: format!("out{k}"),
                wires: ids.into_iter().map(pick).collect(),
                reduce,
            }
        };
        let outputs = outputs.into_iter().enumerate().map(port).collect();
        Circuit {
            ring,
            inputs,
            gates,
            outputs,
            clock: veil_circuit::Clock::default(),
        }
    })
}

/// A party or one of two owners.
fn holder(k: u16) -> Holder {
    let party = PartyId::THREE.get(usize::from(k)).copied();
    party.map_or_else(|| Holder::Owner(k - 3), Holder::Party)
}

/// A party, all of them, or one of two recipients.
fn audience(k: u16) -> Audience {
    match k {
        3 => Audience::Parties,
        4.. => Audience::Recipient(k - 4),
        _ => Audience::Party(PartyId::THREE[k as usize]),
    }
}

/// Jobs of up to two blocks on circuits of up to `size` gates.
pub fn samples(size: usize) -> impl Strategy<Value = Sample> {
    let circuit = rings().prop_flat_map(move |ring| circuits(ring, size));
    circuit.prop_flat_map(|circuit| {
        let holders = prop::collection::vec(0..5u16, circuit.inputs.len());
        let blocks = prop::collection::vec((1..40u64, holders), 1..3);
        let audiences = prop::collection::vec(0..6u16, circuit.outputs.len());
        let options = (1..4u16, 1..20u32);
        (Just(circuit), blocks, audiences, options).prop_flat_map(|(circuit, blocks, audiences, (lanes, chunk_rows))| {
            let job = spec(circuit, &blocks, &audiences);
            let options = Options { lanes, chunk_rows: Some(chunk_rows) };
            let count = job.rows() as usize * job.circuit.input_wires() as usize;
            let element = prop_oneof![1 => Just(0), 1 => Just(1), 1 => Just(u128::MAX), 5 => any::<u128>()];
            prop::collection::vec(element, count).prop_map(move |elements| {
                let values = values(&job, &elements);
                Sample { job: Arc::new(job.clone()), options, values }
            })
        })
    })
}

fn spec(circuit: Circuit, blocks: &[(u64, Vec<u16>)], audiences: &[u16]) -> JobSpec {
    let first = &blocks[0].1;
    let block = |(k, (rows, holders)): (usize, &(u64, Vec<u16>))| {
        // A value per job has one holder.
        let ports = circuit.inputs.iter().zip(holders).zip(first);
        let holders = ports
            .map(|((port, own), first)| holder(if port.per == Per::Job { *first } else { *own }));
        Block {
            name: format!("block{k}"),
            rows: *rows,
            holders: holders.collect(),
            stored: None,
            order: veil_job::Order::Unsaid,
        }
    };
    JobSpec {
        name: "sample".into(),
        schema: String::new(),
        owners: vec!["ann".into(), "bob".into()],
        parties: ["p0", "p1", "p2"].map(String::from).into(),
        recipients: vec!["eve".into(), "fay".into()],
        security: veil_job::Security::among(3),
        totals: None,
        blocks: blocks.iter().enumerate().map(block).collect(),
        audiences: audiences.iter().map(|a| audience(*a)).collect(),
        opened: circuit
            .outputs
            .iter()
            .map(|o| format!("{} of the sample", o.name))
            .collect(),
        circuit,
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

fn values(job: &JobSpec, elements: &[u128]) -> Values {
    let ring = job.circuit.ring;
    let wires = job.circuit.input_wires() as usize;
    let row = |own: &[u128], first: &[u128]| {
        let mut at = 0;
        let port = |port: &InputPort| {
            let range = at..at + port.width as usize;
            at = range.end;
            let from = if port.per == Per::Job {
                &first[range]
            } else {
                &own[range]
            };
            from.iter().map(|v| ring.reduce(*v)).collect()
        };
        job.circuit.inputs.iter().map(port).collect()
    };
    let mut rows = elements.chunks(wires);
    let mut block = |block: &Block| -> Vec<Vec<Vec<u128>>> {
        let rows = rows.by_ref().take(block.rows as usize);
        rows.map(|own| row(own, &elements[..wires])).collect()
    };
    job.blocks.iter().map(&mut block).collect()
}

/// What `peer` is to learn: the circuit in the clear.
pub fn expected(sample: &Sample, peer: Peer) -> Results {
    let circuit = &sample.job.circuit;
    let mut results = Results::new();
    for row in sample.values.iter().flatten() {
        let outputs = circuit
            .evaluate(row)
            .expect("values of the circuit's ports");
        for (port, values) in outputs.into_iter().enumerate() {
            let learns = match sample.job.audiences[port] {
                Audience::Parties => peer.party().is_some(),
                Audience::Party(p) => peer == Peer::Party(p),
                Audience::Recipient(r) => peer == Peer::Recipient(r),
                Audience::Stored | Audience::Column => false,
            };
            if !learns {
                continue;
            }
            let known = results.entry(port).or_default();
            match circuit.outputs[port].reduce {
                Reduce::None | Reduce::EveryCycle => known.push(values),
                Reduce::Sum if known.is_empty() => known.push(values),
                Reduce::Sum => {
                    known[0]
                        .iter_mut()
                        .zip(values)
                        .for_each(|(sum, v)| *sum = circuit.ring.add(*sum, v));
                }
            }
        }
    }
    results
}
