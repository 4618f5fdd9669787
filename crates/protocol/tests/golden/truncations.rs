//! The golden vectors of truncations among three parties: `vectors/truncations3.json`, written by the Python model, reproduced by every device.

use std::sync::Arc;

use serde_json::Value;
use veil_circuit::{Gate, Reduce, Wire};
use veil_job::Security;
use veil_protocol::Task;
use veil_session::{PartyId, Peer};

use crate::common::vectors::{
    PARTY_0, bytes, circuit, elements, frame, json, keys, list, number, plan, results, ring, shares,
};
use crate::common::{Kind, Net};
use crate::conversions::{component, reproduced};

const FILE: &str = include_str!("../../../../vectors/truncations3.json");

/// Numbers of messages of truncations.
const NUMBERS: std::ops::Range<u16> = 0x200..0x205;

#[test]
fn truncations_and_what_they_give_are_those_of_the_model() {
    let of = |case: &Value| {
        let count = list(&case["x"]).len() as u32;
        let truncated = (0..count).map(|k| Gate::TruncatePr {
            of: Wire(k),
            by: number(&case["by"]),
            bits: number(&case["bits"]),
        });
        let outputs = (0..count).map(|k| Wire(count + k)).collect();
        circuit(
            ring(case),
            count,
            truncated.collect(),
            outputs,
            Reduce::None,
        )
    };
    reproduced((3, FILE), of, |case| {
        [&case["x"], &case["results"]].map(|x| list(x).to_vec())
    });
}

#[test]
fn rounded_down_they_send_the_bits_of_the_model() {
    let vectors = json(FILE);
    for (case, kind) in list(&vectors["exact"])
        .iter()
        .flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
    {
        let what = format!(
            "{} by {}, {} rows on {kind:?}",
            case["ring"], case["by"], case["rows"]
        );
        let x = list(&case["x"]);
        let count = x.len() as u32;
        let shifted = (0..count).map(|k| Gate::ShiftRight {
            of: Wire(k),
            by: number(&case["by"]),
            bits: number(&case["bits"]),
        });
        let outputs = (0..count).map(|k| Wire(count + k)).collect();
        let circuit = circuit(ring(case), count, shifted.collect(), outputs, Reduce::None);
        let security = Security::among(3);
        let plan = plan(circuit, security, PARTY_0, number(&case["chunk_rows"]));
        let mut net = Net::of(plan, &PartyId::THREE, Arc::new(keys(&vectors)), kind);
        net.open(frame(case));
        for i in 0..3 {
            for part in 0..2 {
                let columns = x.iter();
                let columns = columns.map(|x| bytes(&x["components"][component(3, i, part)]));
                let to = shares(&net, part);
                net.nodes[i].poke(to, &columns.collect::<Vec<_>>().concat());
            }
        }
        net.run(|_| Task::Layers).expect("honest parties");
        let first = net.log.iter().map(|m| m.place).min().expect("messages");
        let found = net.log.iter().filter(|m| NUMBERS.contains(&m.part));
        let wanted = list(&case["messages"]);
        assert_eq!(found.count(), wanted.len(), "{what}: number of messages");
        for message in wanted {
            let peer = |name: &str| Peer::Party(PartyId::THREE[number::<usize>(&message[name])]);
            let layer: u32 = number(&message["layer"]);
            let part: u16 = number(&message["part"]);
            let name = (peer("from"), peer("to"), first + layer, part);
            let found = (net.log.iter()).find(|m| (m.from, m.to, m.place, m.part) == name);
            let found = found.unwrap_or_else(|| panic!("{what}: no message {name:?}"));
            assert_eq!(found.bytes, bytes(&message["bytes"]), "{what}: {name:?}");
        }
        // Whose components of the result these are is a matter of products.
        let ring = ring(case);
        let mut sum = vec![0; x.len() * number::<usize>(&case["rows"])];
        for (i, part) in [(0, 0), (0, 1), (1, 0)] {
            let from = results(&net, part);
            let column = net.nodes[i].peek(from);
            for (sum, x) in sum.iter_mut().zip(elements(ring, &column)) {
                *sum = ring.add(*sum, x);
            }
        }
        let floors = list(&case["floors"]).iter();
        let floors: Vec<u128> = floors
            .flat_map(|floor| elements(ring, &bytes(floor)))
            .collect();
        assert_eq!(sum, floors, "{what}");
    }
}
