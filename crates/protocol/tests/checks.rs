//! What is changed on its way is noticed before it is used: every message that a check covers, of a job that has one of each kind.

use std::sync::Arc;

use crate::common::{Keys, Kind, Message, Mismatch, Net};
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_job::{Audience, Block, Holder, JobSpec};
use veil_math::Ring;
use veil_protocol::{Options, Plan, Task};
use veil_session::{PartyId, Peer};

/// Inputs per row by an owner and a party, an input per job by the owner; a product to each audience, and its sum to all.
fn plan() -> Plan {
    let port = |name: &str, per| InputPort {
        name: name.into(),
        width: 1,
        per,
        bits: false,
    };
    let output = |name: &str, reduce| OutputPort {
        name: name.into(),
        wires: vec![Wire(4)],
        reduce,
    };
    let circuit = Circuit {
        ring: Ring::Z64,
        inputs: vec![
            port("x", Per::Row),
            port("y", Per::Row),
            port("k", Per::Job),
        ],
        gates: vec![Gate::Mul(Wire(0), Wire(1)), Gate::Mul(Wire(3), Wire(2))],
        outputs: vec![
            output("all", Reduce::None),
            output("one", Reduce::None),
            output("eve", Reduce::None),
            output("sum", Reduce::Sum),
            output("total", Reduce::Sum),
        ],
        clock: veil_circuit::Clock::default(),
    };
    let party = PartyId::THREE[1];
    let job = JobSpec {
        name: "checked".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: ["p0", "p1", "p2"].map(String::from).into(),
        recipients: vec!["eve".into()],
        security: veil_job::Security::among(3),
        totals: None,
        opened: circuit.outputs.iter().map(|o| o.name.clone()).collect(),
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: 5,
            holders: vec![Holder::Owner(0), Holder::Party(party), Holder::Owner(0)],
            stored: None,
            order: veil_job::Order::Unsaid,
        }],
        audiences: vec![
            Audience::Parties,
            Audience::Party(party),
            Audience::Recipient(0),
            Audience::Parties,
            Audience::Recipient(0),
        ],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    };
    Plan::new(
        Arc::new(job),
        Options {
            lanes: 1,
            chunk_rows: Some(5),
        },
    )
    .expect("a job that can be planned")
}

/// Runs the job with the lowest bit of byte `byte` of message `index` flipped.
fn flipped(index: usize, byte: usize) -> (Vec<Message>, Option<Mismatch>) {
    let mut net = Net::new(plan(), &Keys::from_seed(3, 1), Kind::Reference);
    let mut count = 0;
    net.tap = Box::new(move |message: &mut Message| {
        if count == index {
            message.bytes[byte] ^= 1;
        }
        count += 1;
    });
    let row = |t: u128| vec![vec![t], vec![10 + t], vec![7]];
    let result = net.job(&vec![(0..5).map(row).collect()]);
    (net.log, result.err())
}

/// Messages that semi-honest security leaves unchecked: products, and what the computing party inputs.
fn unchecked(message: &Message) -> bool {
    match message.task {
        Task::Layers => true,
        Task::Inputs { .. } => message.from == Peer::Party(PartyId::THREE[1]),
        _ => false,
    }
}

#[test]
fn every_checked_message_is_checked() {
    let (honest, none) = flipped(usize::MAX, 0);
    assert_eq!(none, None);
    let mut noticed = 0;
    for (index, message) in honest.iter().enumerate() {
        if unchecked(message) {
            continue;
        }
        for byte in [0, message.bytes.len() - 1] {
            let (_, found) = flipped(index, byte);
            let found = found.unwrap_or_else(|| panic!("no party noticed a change of {message:?}"));
            assert!(
                found.suspects.contains(&message.from),
                "{message:?} was changed, and {found:?}"
            );
            noticed += 1;
        }
    }
    assert!(noticed > 60, "the job has only {noticed} checked messages");
}
