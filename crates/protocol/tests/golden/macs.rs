//! The golden vectors of the check of products of integers by their MACs: `vectors/macs.json`, written by the Python model, reproduced by
//! the planner's own rounds on every device of this machine.

use crate::common::vectors::{
    PARTY_0, bytes, circuit, frame, json, keys, list, number, plan, results, shares,
};
use crate::common::{Kind, Net};
use veil_circuit::{Gate, Reduce, Wire};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_protocol::Task;
use veil_session::{PartyId, Peer};

const VECTORS: &str = include_str!("../../../../vectors/codes.json");

fn party(index: usize) -> Peer {
    Peer::Party(PartyId::THREE[index])
}

#[test]
fn checks_of_codes_are_those_of_the_model() {
    let vectors = json(VECTORS);
    for (case, kind) in list(&vectors["cases"])
        .iter()
        .flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
    {
        let what = format!("{} rows on {kind:?}", case["rows"]);
        let gates = vec![Gate::Mul(Wire(0), Wire(1)), Gate::Mul(Wire(3), Wire(2))];
        let circuit = circuit(Ring::Z64, 3, gates, vec![Wire(4)], Reduce::None);
        let security = Security::among(3).against(Adversary::Malicious);
        let plan = plan(circuit, security, PARTY_0, number(&case["chunk_rows"]));
        let mut net = Net::new(plan, &keys(&vectors), kind);
        net.open(frame(case));
        for i in 0..3 {
            for part in 0..2 {
                let component = (i + 3 - usize::from(part)) % 3;
                let inputs = list(&case["inputs"]).iter();
                let inputs = inputs.flat_map(|u| bytes(&u["components"][component]));
                let to = shares(&net, part);
                net.nodes[i].poke(to, &inputs.collect::<Vec<u8>>());
            }
        }
        net.run(|_| Task::Layers).expect("codes that fit");
        // The check comes after the layers; the last of them, and the round before them, send nothing.
        let mut places: Vec<u32> = net.log.iter().map(|m| m.place).collect();
        places.sort_unstable();
        places.dedup();
        let wanted = list(&case["messages"]);
        assert_eq!((places.len(), net.log.len()), (6, wanted.len()), "{what}");
        for message in wanted {
            let [step, from, to] = ["step", "from", "to"].map(|k| number::<usize>(&message[k]));
            let found = (net.log.iter())
                .find(|m| (m.from, m.to, m.place) == (party(from), party(to), places[step]));
            let found = found.unwrap_or_else(|| panic!("{what}: no message {message}"));
            assert_eq!(
                found.bytes,
                bytes(&message["bytes"]),
                "{what}: step {step} of party {from}"
            );
        }
        for i in 0..3 {
            for part in 0..2 {
                let component = (i + 3 - usize::from(part)) % 3;
                let want = bytes(&case["result"]["components"][component]);
                let from = results(&net, part);
                assert_eq!(
                    net.nodes[i].peek(from),
                    want,
                    "{what}: party {i}, part {part}"
                );
            }
        }
        for m in net.meters.iter().filter(|m| m.task == Task::Layers) {
            assert_eq!(m.found, m.declared, "{what}: cost of {}", m.peer);
        }
    }
}
