//! The golden vectors of products, zero sharings and linear gates: `vectors/rep3_*.json`, written by the Python model, reproduced by
//! the planner's own rounds on every device of this machine.

use crate::common::vectors::{
    PARTY_0, bytes, call, circuit, deal, elements, frame, joined, json, keys, list, moved, number,
    open, opened, plan, results,
};
use crate::common::{Kind, Message, Net};
use serde_json::Value;
use veil_circuit::{Gate, Reduce, Wire};
use veil_device::Span;
use veil_job::Security;
use veil_math::Ring;
use veil_protocol::Task;
use veil_protocol::rep3::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS};
use veil_session::{Frame, PartyId, Peer};

const RINGS: [(Ring, &str); 3] = [
    (
        Ring::Bits,
        include_str!("../../../../vectors/rep3_bits.json"),
    ),
    (Ring::Z64, include_str!("../../../../vectors/rep3_z64.json")),
    (
        Ring::Z128,
        include_str!("../../../../vectors/rep3_z128.json"),
    ),
];

/// What party `i` sent to the next one at even parts (values; digests have odd ones) in the messages from `start` on.
fn value_to_next(net: &Net, start: usize, i: usize) -> &Message {
    let (from, to) = (PartyId::THREE[i], PartyId::THREE[i].after(1, 3));
    let values = |m: &&Message| {
        m.from == Peer::Party(from) && m.to == Peer::Party(to) && m.part.is_multiple_of(2)
    };
    let mut messages = net.log[start..]
        .iter()
        .filter(values)
        .filter(|m| !m.bytes.is_empty());
    let message = messages.next().expect("a message to the next party");
    assert!(
        messages.next().is_none(),
        "one message for one product command"
    );
    message
}

/// The products of a case as a circuit: a gate per pair and the additions that join them.
fn products(case: &Value) -> (Vec<Gate>, Vec<Wire>) {
    let inputs = list(&case["operands"]).len() as u32;
    let mut gates = Vec::new();
    let mut outputs = Vec::new();
    for item in list(&case["items"]) {
        let mut sum: Option<Wire> = None;
        for pair in list(&item["pairs"]) {
            gates.push(Gate::Mul(Wire(number(&pair[0])), Wire(number(&pair[1]))));
            let product = Wire(inputs + gates.len() as u32 - 1);
            sum = Some(match sum {
                None => product,
                Some(before) => {
                    gates.push(Gate::Add(before, product));
                    Wire(inputs + gates.len() as u32 - 1)
                }
            });
        }
        outputs.push(sum.expect("an item has a pair"));
    }
    (gates, outputs)
}

fn product_net(ring: Ring, vectors: &Value, case: &Value, kind: Kind) -> Net {
    let (gates, outputs) = products(case);
    let reduce = if case["sum_rows"] == true {
        Reduce::Sum
    } else {
        Reduce::None
    };
    let width = list(&case["operands"]).len() as u32;
    let circuit = circuit(ring, width, gates, outputs, reduce);
    let plan = plan(
        circuit,
        Security::among(3),
        PARTY_0,
        number(&case["chunk_rows"]),
    );
    let layer = &plan.layers[0];
    let items = list(&case["items"]).len() as u32;
    let want = if reduce == Reduce::Sum {
        (0, items)
    } else {
        (items, 0)
    };
    assert_eq!(
        (layer.products, layer.sums),
        want,
        "a product command is one layer"
    );
    Net::new(plan, &keys(vectors), kind)
}

#[test]
fn products_are_those_of_the_model() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        for (case, kind) in list(&vectors["commands"])
            .iter()
            .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
        {
            let what = format!("{} over {ring:?} on {kind:?}", case["name"]);
            let mut net = product_net(ring, &vectors, case, kind);
            net.open(frame(case));
            deal(&mut net, list(&case["operands"]));
            net.run_changed(|_| Task::Layers, moved(number(&case["first"])))
                .expect("there is no check in layers");
            let items = list(&case["items"]);
            let sum = case["sum_rows"] == true;
            for i in 0..3 {
                let sent: Vec<&Message> = net
                    .log
                    .iter()
                    .filter(|m| m.from == Peer::Party(PartyId::THREE[i]))
                    .collect();
                assert_eq!(sent.len(), 1, "{what}: one message of party {i}");
                assert_eq!(
                    sent[0].to,
                    Peer::Party(PartyId::THREE[i].after(1, 3)),
                    "{what}: to the next party"
                );
                assert_eq!(
                    sent[0].bytes,
                    bytes(&case["messages"][i]),
                    "{what}: r of party {i}"
                );
            }
            for i in 0..3 {
                for (part, component) in [(OWN, i), (PREVIOUS, (i + 2) % 3)] {
                    let span = results(&net, part);
                    let node = &mut net.nodes[i];
                    let share = if sum {
                        node.view(span)
                    } else {
                        node.peek(span)
                    };
                    let want = joined(items.iter().map(|item| &item["components"]), component);
                    assert_eq!(share, want, "{what}: part {part} of the share of party {i}");
                }
            }
            let before = open(&mut net, sum);
            let want: Vec<u8> = list(&case["opened"]).iter().flat_map(bytes).collect();
            for i in 0..3 {
                assert_eq!(
                    value_to_next(&net, before, i).bytes,
                    bytes(&case["opening"][i]),
                    "{what}: opening of party {i}"
                );
                assert_eq!(opened(&net, i, sum), want, "{what}: opened at party {i}");
            }
        }
    }
}

#[test]
fn results_of_one_layer_are_the_operands_of_the_next() {
    for (_, text) in RINGS {
        let vectors = json(text);
        let named = |name: &str| {
            list(&vectors["commands"])
                .iter()
                .find(|c| c["name"] == name)
                .expect("the chain")
        };
        let (first, second) = (named("chain-0"), named("chain-1"));
        for (item, operand) in list(&first["items"]).iter().zip(list(&second["operands"])) {
            assert_eq!(item["components"], operand["components"]);
        }
    }
}

#[test]
fn zero_sharings_are_those_of_the_model() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        for (case, kind) in list(&vectors["commands"])
            .iter()
            .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
        {
            let mut net = product_net(ring, &vectors, case, kind);
            net.open(frame(case));
            let (tag, first) = (number(&case["tag"]), number(&case["first"]));
            let slots = results(&net, OWN);
            for i in 0..3 {
                // Straight to where the host sees it: a combination would clear the bits beyond the last row.
                let node = &mut net.nodes[i];
                let to = if case["sum_rows"] == true {
                    slots
                } else {
                    node.window(slots).0
                };
                let [rho, before] = [KEY_OWN, KEY_PREVIOUS].map(|key| {
                    assert_eq!(node.submit(&[call(to, key, tag, first)]), None);
                    elements(ring, &node.view(to))
                });
                let alpha: Vec<u128> = rho
                    .iter()
                    .zip(&before)
                    .map(|(a, b)| ring.sub(*a, *b))
                    .collect();
                let want = joined(list(&case["items"]).iter().map(|item| &item["alpha"]), i);
                let want = elements(ring, &want);
                assert_eq!(
                    alpha, want,
                    "{} over {ring:?} on {kind:?}: mask of party {i}",
                    case["name"]
                );
            }
        }
    }
}

#[test]
fn linear_gates_are_those_of_the_model() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        for (case, kind) in list(&vectors["linear"])
            .iter()
            .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
        {
            let (u, w) = (Wire(0), Wire(1));
            let mut gates = vec![("add", Gate::Add(u, w)), ("sub", Gate::Sub(u, w))];
            if ring == Ring::Bits {
                gates.extend([("not", Gate::Plus(u, 1)), ("one", Gate::Constant(1))]);
            } else {
                let constant = bytes(&case["constant"])
                    .iter()
                    .rev()
                    .fold(0, |sum, b| sum << 8 | u128::from(*b));
                gates.extend([
                    ("add_constant", Gate::Plus(u, constant)),
                    ("scale_constant", Gate::Times(u, constant)),
                    ("constant_sharing", Gate::Constant(constant)),
                ]);
            }
            let rows = number(&case["rows"]);
            let outputs = (2..2 + gates.len() as u32).map(Wire).collect();
            let list = gates.iter().map(|(_, gate)| *gate).collect();
            let circuit = circuit(ring, 2, list, outputs, Reduce::None);
            let plan = plan(circuit, Security::among(3), PARTY_0, rows);
            let mut net = Net::new(plan, &keys(&vectors), kind);
            net.open(Frame {
                epoch: 0,
                lane: 0,
                chunk: 1,
                rows,
            });
            deal(&mut net, &[case["u"].clone(), case["w"].clone()]);
            net.run(|_| Task::Layers)
                .expect("there is no check in layers");
            assert!(net.log.is_empty(), "linear gates send nothing");
            for (i, (k, (name, _))) in
                (0..3).flat_map(|i| gates.iter().enumerate().map(move |g| (i, g)))
            {
                for (part, component) in [(OWN, i), (PREVIOUS, (i + 2) % 3)] {
                    let all = results(&net, part);
                    let share = net.nodes[i].peek(Span {
                        first: all.first + k as u32,
                        count: 1,
                        ..all
                    });
                    let want = bytes(&case[name]["components"][component]);
                    assert_eq!(
                        share, want,
                        "{name} of {rows} rows over {ring:?} on {kind:?}, part {part} of party {i}"
                    );
                }
            }
        }
    }
}
