//! The golden vectors of conversions between integers and bits: `vectors/conversions*.json`, written by the Python model, reproduced by
//! every device.

use std::sync::Arc;

use serde_json::Value;

use crate::common::vectors::json;
use crate::common::vectors::{
    FourKeys, PARTY_0, bytes, circuit, frame, keys, list, number, plan, results, ring, shares,
};
use crate::common::{Keyring, Kind, Net};
use veil_circuit::{Circuit, Gate, Reduce, Wire};
use veil_job::Security;
use veil_protocol::Task;
use veil_session::{PartyId, Peer};

const FILES: [(usize, &str); 2] = [
    (3, include_str!("../../../../vectors/conversions3.json")),
    (4, include_str!("../../../../vectors/conversions4.json")),
];

/// The component that party `i` of `parties` keeps as part `part`.
pub(crate) fn component(parties: usize, i: usize, part: u8) -> usize {
    match (parties, part) {
        (3, 0) => i,
        (3, _) => (i + 2) % 3,
        _ => (i + 1 + usize::from(part)) % 4,
    }
}

/// Runs the circuit of each case of a file on every device: the messages and the components of results are those of the file. A case's columns of inputs and of
/// results are `columns`.
pub(crate) fn reproduced(
    (parties, text): (usize, &str),
    circuit: impl Fn(&Value) -> Circuit,
    columns: impl Fn(&Value) -> [Vec<Value>; 2],
) {
    let vectors = json(text);
    for (case, kind) in list(&vectors["cases"])
        .iter()
        .flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
    {
        let what = format!(
            "{parties} parties, {:?}, {} rows on {kind:?}",
            ring(case),
            case["rows"]
        );
        let [inputs, outputs] = columns(case);
        let security = Security::among(parties);
        let plan = plan(
            circuit(case),
            security,
            PARTY_0,
            number(&case["chunk_rows"]),
        );
        let all = &PartyId::FOUR[..parties];
        let keyring: Arc<dyn Keyring> = match parties {
            3 => Arc::new(keys(&vectors)),
            _ => Arc::new(FourKeys(vectors.clone())),
        };
        let mut net = Net::of(plan, all, keyring, kind);
        net.open(frame(case));
        let joined = |of: &[Value], component: usize| -> Vec<u8> {
            let columns = of.iter().map(|x| bytes(&x["components"][component]));
            columns.collect::<Vec<_>>().concat()
        };
        let parts = 0..parties as u8 - 1;
        for i in 0..parties {
            for part in parts.clone() {
                let to = shares(&net, part);
                net.nodes[i].poke(to, &joined(&inputs, component(parties, i, part)));
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
        for i in 0..parties {
            for part in parts.clone() {
                let want = joined(&outputs, component(parties, i, part));
                let from = results(&net, part);
                assert_eq!(
                    net.nodes[i].peek(from),
                    want,
                    "{what}: party {i}, part {part}"
                );
            }
        }
    }
}

#[test]
fn bit_one_as_an_integer_is_that_of_the_model() {
    let of = |case: &Value| {
        let gates = vec![Gate::Bit(Wire(0), 1), Gate::Lift(Wire(1))];
        circuit(ring(case), 1, gates, vec![Wire(2)], Reduce::None)
    };
    for file in FILES {
        reproduced(file, of, |case| {
            [&case["x"], &case["result"]].map(|x| vec![x.clone()])
        });
    }
}
