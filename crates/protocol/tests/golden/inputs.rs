//! The golden vectors of inputs and random values: `vectors/share.json`, written by the Python model, reproduced by the rounds of
//! parties and owners on every device of this machine.

use crate::common::vectors::{
    PARTY_0, bytes, circuit, drawn, frame, joined, json, keys, list, moved, number, plan, ring,
    shares,
};
use crate::common::{Kind, Message, Net};
use serde_json::Value;
use veil_circuit::{Reduce, Wire};
use veil_job::{Holder, Security};
use veil_protocol::Task;
use veil_protocol::rep3::{OWN, PREVIOUS};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

/// The file.
fn vectors() -> Value {
    json(include_str!("../../../../vectors/share.json"))
}

/// Runs the input rounds of a case by `holder`; the shares are then in the slots.
fn input(vectors: &Value, case: &Value, holder: Holder, kind: Kind) -> Net {
    let columns = list(&case["columns"]);
    let width = columns.len() as u32;
    let circuit = circuit(ring(case), width, vec![], vec![Wire(0)], Reduce::None);
    let plan = plan(
        circuit,
        Security::among(3),
        holder,
        number(&case["chunk_rows"]),
    );
    let mut net = Net::new(plan, &keys(vectors), kind);
    net.open(frame(case));
    let me = match holder {
        Holder::Party(p) => Peer::Party(p),
        Holder::Owner(o) => Peer::Owner(o),
        Holder::Stored | Holder::Column => unreachable!("these jobs store nothing"),
    };
    let values: Vec<u8> = columns.iter().flat_map(|c| bytes(&c["value"])).collect();
    let node = net
        .nodes
        .iter_mut()
        .find(|n| n.me == me)
        .expect("the holder takes part");
    let (_, span) = node.protocol.spans().inputs[0];
    node.write(span, &values);
    net.run_changed(|_| Task::Inputs { block: 0 }, moved(number(&case["first"])))
        .expect("consistent shares");
    for i in 0..3 {
        for (part, component) in [(OWN, i), (PREVIOUS, (i + 2) % 3)] {
            let span = shares(&net, part);
            let want = joined(columns.iter().map(|c| &c["components"]), component);
            assert_eq!(
                net.nodes[i].peek(span),
                want,
                "part {part} of the share of party {i} on {kind:?}: {case}"
            );
        }
    }
    net
}

#[test]
fn inputs_by_parties_are_those_of_the_model() {
    let vectors = vectors();
    for (case, kind) in list(&vectors["party_input"])
        .iter()
        .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
    {
        let party = PartyId::THREE[number::<usize>(&case["party"])];
        assert_eq!(
            DomainTag::input3(party.index() as u8),
            DomainTag(number(&case["tag"]))
        );
        let net = input(&vectors, case, Holder::Party(party), kind);
        let [message] = &net.log[..] else {
            panic!("one message, of the party to the one before it")
        };
        let to = PartyId::THREE[number::<usize>(&case["to"])];
        assert_eq!(
            (message.from, message.to),
            (Peer::Party(party), Peer::Party(to))
        );
        assert_eq!(message.bytes, bytes(&case["message"]));
    }
}

#[test]
fn inputs_by_owners_are_those_of_the_model() {
    let vectors = vectors();
    for (case, kind) in list(&vectors["owner_input"])
        .iter()
        .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
    {
        let net = input(&vectors, case, Holder::Owner(0), kind);
        let sent: Vec<&Message> = net
            .log
            .iter()
            .filter(|m| m.from == Peer::Owner(0))
            .collect();
        let to: Vec<Peer> = list(&case["to"])
            .iter()
            .map(|p| Peer::Party(PartyId::THREE[number::<usize>(p)]))
            .collect();
        assert_eq!(sent.iter().map(|m| m.to).collect::<Vec<_>>(), to);
        for message in sent {
            assert_eq!(message.bytes, bytes(&case["message"]));
        }
    }
}

#[test]
fn random_values_are_those_of_the_model() {
    let vectors = vectors();
    for (case, kind) in list(&vectors["random"])
        .iter()
        .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
    {
        let circuit = circuit(ring(case), 1, vec![], vec![Wire(0)], Reduce::None);
        let plan = plan(
            circuit,
            Security::among(3),
            PARTY_0,
            number(&case["chunk_rows"]),
        );
        let mut net = Net::new(plan, &keys(&vectors), kind);
        net.open(frame(case));
        let to = [OWN, PREVIOUS].map(|part| shares(&net, part));
        for i in 0..3 {
            let node = &mut net.nodes[i];
            assert_eq!(
                node.submit(&drawn(to, number(&case["tag"]), number(&case["first"]))),
                None
            );
            let pair = to.map(|span| node.peek(span));
            let want = [i, (i + 2) % 3].map(|component| bytes(&case["components"][component]));
            assert_eq!(pair, want, "party {i} on {kind:?}: {case}");
        }
    }
}
