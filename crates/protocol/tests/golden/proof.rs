//! The golden vectors of proofs that products of bits are right: `vectors/dzkp.json`, written by the Python model, reproduced by the
//! planner's own rounds on every device of this machine, for provers that are honest and for one that sent a wrong bit.

use std::sync::Arc;

use crate::common::vectors::{
    PARTY_0, bytes, circuit, deal, frame, json, keys, list, number, plan,
};
use crate::common::{Kind, Mismatch, Net};
use serde_json::Value;
use veil_circuit::{Gate, Reduce, Wire};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_protocol::{Options, Plan, Task};
use veil_session::{PartyId, Peer};

const VECTORS: &str = include_str!("../../../../vectors/dzkp.json");

fn net(vectors: &Value, case: &Value, kind: Kind) -> Net {
    let inputs = list(&case["operands"]).len() as u32;
    let items = list(&case["items"]);
    let gates: Vec<Gate> = items
        .iter()
        .map(|item| Gate::Mul(Wire(number(&item[0])), Wire(number(&item[1]))))
        .collect();
    let outputs = (inputs..inputs + gates.len() as u32).map(Wire).collect();
    let circuit = circuit(Ring::Bits, inputs, gates, outputs, Reduce::None);
    let security = Security::among(3).against(Adversary::Malicious);
    let chunk_rows = number(&case["chunk_rows"]);
    let one_row = plan(circuit, security, PARTY_0, chunk_rows);
    let mut job = (*one_row.job).clone();
    job.blocks[0].rows = chunk_rows.into();
    let options = Options {
        lanes: 1,
        chunk_rows: Some(chunk_rows),
    };
    let plan = Plan::new(Arc::new(job), options).expect("a job that can be planned");
    assert_eq!(plan.products(), items.len() as u64);
    Net::new(plan, &keys(vectors), kind)
}

/// Flips the bits that the case says were sent wrong.
fn flip_wrong(net: &mut Net, case: &Value) {
    let layers = net.plan.layers.clone();
    let row_bytes = frame(case).rows.div_ceil(8) as usize;
    let wrong: Vec<[usize; 3]> = case["wrong"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|w| [0, 1, 2].map(|k| number(&w[k])))
        .collect();
    let first_place = net.nodes[0].protocol.places() as usize - proof_rounds(case) - layers.len();
    net.tap = Box::new(move |message| {
        let layer = (message.place as usize).wrapping_sub(first_place);
        if layer >= layers.len() {
            return;
        }
        let before: u32 = layers[..layer].iter().map(|l| l.products).sum();
        for [party, item, row] in &wrong {
            let at = item.wrapping_sub(before as usize);
            if message.from == party_at(*party) && at < layers[layer].products as usize {
                message.bytes[at * row_bytes + row / 8] ^= 1 << (row % 8);
            }
        }
    });
}

fn party_at(index: usize) -> Peer {
    Peer::Party(PartyId::THREE[index % 3])
}

fn proof_rounds(case: &Value) -> usize {
    2 * number::<u64>(&case["levels"]) as usize + 2
}

#[test]
fn proofs_are_those_of_the_model() {
    let vectors = json(VECTORS);
    for (case, kind) in list(&vectors["cases"])
        .iter()
        .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
    {
        let what = format!("{} on {kind:?}", case["name"]);
        let mut net = net(&vectors, case, kind);
        net.open(frame(case));
        deal(&mut net, list(&case["operands"]));
        flip_wrong(&mut net, case);
        let found = net.run(|_| Task::Layers);
        let corrupt = list(&case["proofs"])
            .iter()
            .position(|proof| proof["accepted"] == false);
        match (corrupt, found) {
            (None, found) => found.expect("an honest proof is accepted"),
            (Some(corrupt), found) => {
                let Mismatch { at, suspects, what } = found.expect_err("a wrong bit is found");
                assert_eq!(what, "the proof of a party's products");
                // Both verifiers find it, and cannot know whether the other one lies.
                assert!([1, 2].map(|by| party_at(corrupt + by)).contains(&at));
                assert_eq!(suspects[0], party_at(corrupt));
            }
        }
        let proof = net.nodes[0].protocol.places() as usize - proof_rounds(case);
        let sent = |round: usize, from: usize, to: usize| -> &[u8] {
            let (from, to) = (party_at(from), party_at(to));
            let place = (proof + round) as u32;
            let message = net
                .log
                .iter()
                .find(|m| (m.from, m.to, m.place) == (from, to, place));
            &message.expect("a message of the proof").bytes
        };
        for i in 0..3 {
            let products: Vec<u8> = (net.log.iter())
                .filter(|m| m.from == party_at(i) && (m.place as usize) < proof)
                .flat_map(|m| m.bytes.clone())
                .collect();
            assert_eq!(products, bytes(&case["messages"][i]), "{what}: products");
            let model = &case["proofs"][i];
            // The seed, then challenges, of which the last one is told to no prover.
            let challenges = list(&model["challenges"]);
            let told = std::iter::once(&model["seed"]).chain(challenges);
            for (level, (share, told)) in list(&model["shares"]).iter().zip(told).enumerate() {
                let what = format!("{what}: level {} of party {i}", level + 1);
                assert_eq!(sent(2 * level + 1, i + 1, i), bytes(told), "{what}");
                let echo = sent(2 * level + 2, i, i + 2);
                assert_eq!(echo, bytes(told), "{what}: echo");
                assert_eq!(sent(2 * level + 2, i, i + 1), bytes(share), "{what}");
            }
            assert_eq!(
                sent(0, i + 2, i + 1),
                bytes(&model["seed"]),
                "{what}: ready"
            );
            let last = proof_rounds(case) - 1;
            assert_eq!(
                sent(last, i + 1, i + 2),
                bytes(&model["right"]),
                "{what}: next"
            );
            assert_eq!(
                sent(last, i + 2, i + 1),
                bytes(&model["left"]),
                "{what}: previous"
            );
        }
        if corrupt.is_none() {
            let metered = net.meters.iter().filter(|m| m.task == Task::Layers);
            for m in metered {
                assert_eq!(m.found, m.declared, "{what}: cost of {}", m.peer);
            }
        }
    }
}
