//! The golden vectors of what opens masked values: `vectors/masked*.json`, written by the Python model, reproduced by every device.

use std::sync::Arc;

use crate::common::vectors::json;
use crate::common::vectors::{
    FourKeys, PARTY_0, bytes, circuit, elements, frame, keys, list, number, plan, results, ring,
    shares,
};
use crate::common::{Keyring, Kind, Net};
use serde_json::Value;
use veil_circuit::{Gate, Reduce, Wire};
use veil_job::Security;
use veil_protocol::{Task, is_masked};
use veil_session::{PartyId, Peer};

const FILES: [(usize, &str); 2] = [
    (3, include_str!("../../../../vectors/masked3.json")),
    (4, include_str!("../../../../vectors/masked4.json")),
];

/// The component that party `i` of `parties` keeps as part `part`.
fn component(parties: usize, i: usize, part: u8) -> usize {
    match (parties, part) {
        (3, 0) => i,
        (3, _) => (i + 2) % 3,
        _ => (i + 1 + usize::from(part)) % 4,
    }
}

/// Runs a case of `gates` on every device.
fn each(
    parties: usize,
    vectors: &Value,
    case: &Value,
    gates: &[Gate],
    check: impl Fn(&mut Net, &str),
) {
    for kind in Kind::all() {
        let last = Wire(gates.len() as u32);
        let circuit = circuit(ring(case), 1, gates.to_vec(), vec![last], Reduce::None);
        let security = Security::among(parties);
        let plan = plan(circuit, security, PARTY_0, number(&case["chunk_rows"]));
        let keyring: Arc<dyn Keyring> = match parties {
            3 => Arc::new(keys(vectors)),
            _ => Arc::new(FourKeys(vectors.clone())),
        };
        let all = &PartyId::FOUR[..parties];
        let mut net = Net::of(plan, all, keyring, kind);
        net.open(frame(case));
        for i in 0..parties {
            for part in 0..parties as u8 - 1 {
                let x = bytes(&case["x"]["components"][component(parties, i, part)]);
                let to = shares(&net, part);
                net.nodes[i].poke(to, &x);
            }
        }
        net.run(|_| Task::Layers).expect("honest parties");
        let what = format!(
            "{parties} parties, {} of {} bits, {} rows on {kind:?}",
            case["ring"], case["bits"], case["rows"]
        );
        check(&mut net, &what);
    }
}

#[test]
fn truncations_open_and_give_what_the_model_says() {
    // Three parties truncate without an opening (`truncations`).
    for (parties, text) in FILES.into_iter().filter(|(parties, _)| *parties == 4) {
        let vectors = json(text);
        for case in list(&vectors["truncations"]) {
            let gate = Gate::TruncatePr {
                of: Wire(0),
                by: number(&case["by"]),
                bits: number(&case["bits"]),
            };
            each(parties, &vectors, case, &[gate], |net, what| {
                let peer = |index: usize| Peer::Party(PartyId::FOUR[index]);
                let wanted = list(&case["messages"]);
                let masked = net.log.iter().filter(|m| is_masked(m.part));
                assert_eq!(masked.count(), wanted.len(), "{what}: number of messages");
                for message in wanted {
                    let name = (
                        peer(number(&message["from"])),
                        peer(number(&message["to"])),
                        number::<u16>(&message["part"]),
                    );
                    let found = (net.log.iter()).find(|m| (m.from, m.to, m.part) == name);
                    let found = found.unwrap_or_else(|| panic!("{what}: no message {name:?}"));
                    assert_eq!(found.bytes, bytes(&message["bytes"]), "{what}: {name:?}");
                }
                // Whose components of the result these are is a matter of products.
                let ring = ring(case);
                let mut sum = vec![0; number(&case["rows"])];
                for (i, part) in [(0, 0), (0, 1), (0, 2), (1, 2)] {
                    let from = results(net, part);
                    let column = net.nodes[i].peek(from);
                    for (sum, x) in sum.iter_mut().zip(elements(ring, &column)) {
                        *sum = ring.add(*sum, x);
                    }
                }
                assert_eq!(sum, elements(ring, &bytes(&case["result"])), "{what}");
            });
        }
    }
}

#[test]
fn words_open_and_give_what_the_model_says() {
    for (parties, text) in FILES {
        let vectors = json(text);
        for case in list(&vectors["words"]) {
            let bits: u32 = number(&case["bits"]);
            let mut gates: Vec<Gate> = (0..bits).map(|j| Gate::Bit(Wire(0), j)).collect();
            gates.push(Gate::Constant(0));
            for j in (0..bits).rev() {
                gates.push(Gate::Append(Wire(gates.len() as u32), Wire(1 + j)));
            }
            each(parties, &vectors, case, &gates, |net, what| {
                let ring = ring(case);
                let rows: usize = number(&case["rows"]);
                // Every component is sent in clear once; a message has bit after bit, in whole bytes of rows.
                let values = net.log.iter().filter(|m| is_masked(m.part));
                let values = values.filter(|m| (m.part - 0x100).is_multiple_of(3));
                let mut opened = vec![0u128; rows];
                let mut count = 0;
                for message in values {
                    count += 1;
                    for (j, column) in message.bytes.chunks(rows.div_ceil(8)).enumerate() {
                        for (t, value) in opened.iter_mut().enumerate() {
                            *value ^= u128::from(column[t / 8] >> (t % 8) & 1) << j;
                        }
                    }
                }
                assert_eq!(count, parties, "{what}");
                assert_eq!(opened, elements(ring, &bytes(&case["opened"])), "{what}");
                for i in 0..parties {
                    for part in 0..parties as u8 - 1 {
                        let from = results(net, part);
                        let want =
                            bytes(&case["result"]["components"][component(parties, i, part)]);
                        let got = net.nodes[i].peek(from);
                        assert_eq!(got, want, "{what}: party {i}, part {part}");
                    }
                }
            });
        }
    }
}
