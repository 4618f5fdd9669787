//! The golden vectors of lifts of bits: `vectors/lifts*.json`, written by the Python model, reproduced by every device.

use std::sync::Arc;

use crate::common::vectors::json;
use crate::common::vectors::{
    FourKeys, PARTY_0, bytes, circuit, frame, keys, list, number, plan, results, ring, shares,
};
use crate::common::{Keyring, Kind, Net};
use crate::conversions::component;
use veil_circuit::{Gate, Reduce, Wire};
use veil_job::Security;
use veil_protocol::Task;
use veil_session::{PartyId, Peer};

const FILES: [(usize, &str); 2] = [
    (3, include_str!("../../../../vectors/lifts3.json")),
    (4, include_str!("../../../../vectors/lifts4.json")),
];

#[test]
fn lowest_bits_as_integers_are_those_of_the_model() {
    for (parties, text) in FILES {
        let vectors = json(text);
        for (case, kind) in list(&vectors["cases"])
            .iter()
            .flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
        {
            let ring = ring(case);
            let what = format!(
                "{parties} parties, {ring:?}, {} rows on {kind:?}",
                case["rows"]
            );
            let inputs = list(&case["x"]);
            let count = inputs.len() as u32;
            let bits = (0..count).map(|k| Gate::Bit(Wire(k), 0));
            let lifted = (0..count).map(|k| Gate::Lift(Wire(count + k)));
            let outputs = (0..count).map(|k| Wire(2 * count + k)).collect();
            let circuit = circuit(
                ring,
                count,
                bits.chain(lifted).collect(),
                outputs,
                Reduce::None,
            );
            let security = Security::among(parties);
            let plan = plan(circuit, security, PARTY_0, number(&case["chunk_rows"]));
            let all = &PartyId::FOUR[..parties];
            let keyring: Arc<dyn Keyring> = match parties {
                3 => Arc::new(keys(&vectors)),
                _ => Arc::new(FourKeys(vectors.clone())),
            };
            let mut net = Net::of(plan, all, keyring, kind);
            net.open(frame(case));
            let joined = |of: &[serde_json::Value], component: usize| -> Vec<u8> {
                let columns = of.iter().map(|x| bytes(&x["components"][component]));
                columns.collect::<Vec<_>>().concat()
            };
            let parts = 0..parties as u8 - 1;
            for i in 0..parties {
                for part in parts.clone() {
                    let to = shares(&net, part);
                    net.nodes[i].poke(to, &joined(inputs, component(parties, i, part)));
                }
            }
            net.run(|_| Task::Layers).expect("codes that are right");
            let first = net.log.iter().map(|m| m.place).min().expect("messages");
            let peer = |index: usize| Peer::Party(all[index]);
            let wanted = list(&case["messages"]);
            assert_eq!(net.log.len(), wanted.len(), "{what}: number of messages");
            for message in wanted {
                let layer: u32 = number(&message["layer"]);
                let name = (
                    peer(number(&message["from"])),
                    peer(number(&message["to"])),
                    first + layer,
                    number::<u16>(&message["part"]),
                );
                let found = (net.log.iter()).find(|m| (m.from, m.to, m.place, m.part) == name);
                let found = found.unwrap_or_else(|| panic!("{what}: no message {name:?}"));
                assert_eq!(found.bytes, bytes(&message["bytes"]), "{what}: {name:?}");
            }
            let wanted = list(&case["results"]);
            for i in 0..parties {
                for part in parts.clone() {
                    let from = results(&net, part);
                    let want = joined(wanted, component(parties, i, part));
                    assert_eq!(
                        net.nodes[i].peek(from),
                        want,
                        "{what}: party {i}, part {part}"
                    );
                }
            }
        }
    }
}
