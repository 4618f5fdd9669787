//! The golden vectors of products of matrices: `vectors/matrices*.json`, written by the Python model, reproduced by every device.

use std::sync::Arc;

use serde_json::Value;
use veil_circuit::{Reduce, Wire};
use veil_device::{Command, MatMul, Op};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_protocol::Task;
use veil_protocol::passes::{Moves, ProductPlan};
use veil_session::{Frame, PartyId, Peer};

use crate::common::vectors::{
    FourKeys, PARTY_0, bytes, circuit, json, keys, list, number, plan, ring,
};
use crate::common::{Keyring, Kind, Net};
use crate::conversions::component;

const FILES: [(usize, &str); 2] = [
    (3, include_str!("../../../../vectors/matrices3.json")),
    (4, include_str!("../../../../vectors/matrices4.json")),
];

/// A case of a file, ready to run: both matrices are there.
fn net(parties: usize, vectors: &Value, case: &Value, device: Kind) -> Net {
    let adversary = match parties {
        4 => Adversary::Malicious,
        _ => Adversary::SemiHonest,
    };
    let security = Security::among(parties).against(adversary);
    let rows: u32 = number(&case["rows"]);
    let product = ProductPlan {
        security,
        rows,
        ring: ring(case),
        left: number(&case["left"]),
        right: number(&case["right"]),
        transposed: case["transposed"].as_bool().expect("yes or no"),
        rotation: number(&case["rotation"]),
        public: case["public"].as_bool().expect("yes or no"),
    };
    // Whose participants and keys the product has.
    let of = circuit(Ring::Bits, 1, vec![], vec![Wire(0)], Reduce::None);
    let plan = Arc::new(plan(of, security, PARTY_0, 512));
    let keyring: Arc<dyn Keyring> = match parties {
        3 => Arc::new(keys(vectors)),
        _ => Arc::new(FourKeys(vectors.clone())),
    };
    let protocol = |me| Arc::new(Moves::product(&product, me)) as _;
    let all = &PartyId::FOUR[..parties];
    let mut net = Net::by(plan, all, keyring, device, &protocol);
    net.open(Frame {
        epoch: 0,
        lane: number(&case["lane"]),
        chunk: number(&case["chunk"]),
        rows,
    });
    for i in 0..parties {
        let takes = net.nodes[i].protocol.spans().takes.clone();
        let columns = list(&case["x"]).iter().chain(list(&case["w"]));
        assert_eq!(columns.clone().count(), takes.len());
        for (column, stored) in columns.zip(takes) {
            for (part, span) in (0..).zip(&stored.components) {
                let of = &column["components"][component(parties, i, part)];
                net.nodes[i].write(*span, &bytes(of));
            }
        }
    }
    net
}

/// All cases on all devices, each with what it is.
fn each(check: impl Fn(usize, &Value, &Value, Kind, &str)) {
    for (parties, text) in FILES {
        let vectors = json(text);
        for case in list(&vectors["cases"]) {
            for device in Kind::all() {
                let what = format!(
                    "{parties} parties, {}, {} × {} × {}, transposed {}, public {}, {device:?}",
                    case["ring"],
                    case["rows"],
                    case["left"],
                    case["right"],
                    case["transposed"],
                    case["public"]
                );
                check(parties, &vectors, case, device, &what);
            }
        }
    }
}

/// The first message that is another than that of the model.
fn difference(net: &Net, case: &Value) -> Option<String> {
    let wanted = list(&case["messages"]);
    if net.log.len() != wanted.len() {
        return Some(format!("{} messages", net.log.len()));
    }
    let peer = |index: &Value| Peer::Party(PartyId::FOUR[number::<usize>(index)]);
    let wrong = wanted.iter().find(|message| {
        let name = (
            peer(&message["from"]),
            peer(&message["to"]),
            number::<u16>(&message["part"]),
        );
        let mut found = net.log.iter().filter(|m| (m.from, m.to, m.part) == name);
        found.next().map(|m| &m.bytes) != Some(&bytes(&message["bytes"]))
    });
    wrong.map(Value::to_string)
}

#[test]
fn products_and_what_is_sent_are_those_of_the_model() {
    each(|parties, vectors, case, device, what| {
        let mut net = net(parties, vectors, case, device);
        net.run(|_| Task::Layers).expect("codes that are right");
        assert_eq!(difference(&net, case), None, "{what}");
        for meter in &net.meters {
            assert_eq!(meter.found, meter.declared, "{what}: {}", meter.peer);
        }
        for i in 0..parties {
            let leaves = net.nodes[i].protocol.spans().leaves.clone();
            assert_eq!(leaves.len(), list(&case["product"]).len(), "{what}");
            for (column, stored) in list(&case["product"]).iter().zip(leaves) {
                for (part, span) in (0..).zip(&stored.components) {
                    let want = bytes(&column["components"][component(parties, i, part)]);
                    let got = net.nodes[i].view(*span);
                    assert_eq!(got, want, "{what}: party {i}, part {part}");
                }
            }
        }
    });
}

/// The vectors tell apart what is nearly right: masks of other counters, a column of the right matrix that is another.
#[test]
fn other_masks_and_other_columns_are_noticed() {
    each(|parties, vectors, case, device, what| {
        let changes: [fn(&MatMul, &mut Command); 2] = [
            |_, command| command.calls[0].first += 1,
            |of, command| {
                let right = of.left as usize * if of.form.crosses.len() == 1 { 2 } else { 3 };
                command.src.swap(right, right + 1);
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            // Of a public matrix a device leaves out what is zero.
            if number == 1 && case["public"] == Value::Bool(true) {
                continue;
            }
            let mut net = net(parties, vectors, case, device);
            let ran = net.run_changed(
                |_| Task::Layers,
                |command| {
                    if let Op::MatMul(of) = command.op {
                        change(&of, command);
                    }
                },
            );
            let noticed = ran.is_err() || difference(&net, case).is_some();
            assert!(noticed, "{what}: change {number}");
        }
    });
}
