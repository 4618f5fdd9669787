//! The golden vectors of four-party products, their MACs and openings: `vectors/rep4_*.json`, written by the Python model, reproduced by
//! every device.

use std::sync::Arc;

use crate::common::vectors::{
    FourKeys, PARTY_0, bytes, circuit, frame, joined, json, list, moved, number, open, opened,
    plan, results, shares,
};
use crate::common::{Kind, Message, Net};
use serde_json::Value;
use veil_circuit::{Gate, Reduce, Wire};
use veil_device::{Command, Op};
use veil_job::{Adversary, Holder, Security};
use veil_math::Ring;
use veil_protocol::{Plan, Task};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};
use veil_share::rep4::component;

const RINGS: [(Ring, &str); 3] = [
    (
        Ring::Bits,
        include_str!("../../../../vectors/rep4_bits.json"),
    ),
    (Ring::Z64, include_str!("../../../../vectors/rep4_z64.json")),
    (
        Ring::Z128,
        include_str!("../../../../vectors/rep4_z128.json"),
    ),
];

/// A net whose only layer is the command of a case.
fn net(ring: Ring, vectors: &Value, case: &Value, kind: Kind, adversary: Adversary) -> Net {
    let operands = list(&case["operands"]).len() as u32;
    let mut gates = Vec::new();
    let mut outputs = Vec::new();
    for item in list(&case["items"]) {
        let mut sum = None;
        for pair in list(&item["pairs"]) {
            let [a, b] = [0, 1].map(|k| Wire(number(&pair[k])));
            let wire = |gates: &Vec<Gate>| Wire(operands + gates.len() as u32 - 1);
            gates.push(Gate::Mul(a, b));
            let product = wire(&gates);
            sum = Some(match sum {
                None => product,
                Some(before) => {
                    gates.push(Gate::Add(before, product));
                    wire(&gates)
                }
            });
        }
        outputs.push(sum.expect("an item has pairs"));
    }
    let reduce = if case["sum_rows"] == true {
        Reduce::Sum
    } else {
        Reduce::None
    };
    let chunk_rows = number(&case["chunk_rows"]);
    let circuit = circuit(ring, operands, gates, outputs, reduce);
    let plan = plan(
        circuit,
        Security::among(4).against(adversary),
        PARTY_0,
        chunk_rows,
    );
    of(plan, vectors, kind)
}

/// Four parties, with the keys of a file.
fn of(plan: Plan, vectors: &Value, kind: Kind) -> Net {
    Net::of(
        plan,
        &PartyId::FOUR,
        Arc::new(FourKeys(vectors.clone())),
        kind,
    )
}

/// Moves masks to where the vectors stand, and MACs to the layer of the case.
fn at_case(case: &Value) -> impl Fn(&mut Command) {
    let (first, layer): (u64, u64) = (number(&case["first"]), number(&case["layer"]));
    move |command| match command.op {
        Op::Mac => command.calls[0].first = layer,
        _ => moved(first)(command),
    }
}

#[test]
fn products_and_codes_are_those_of_the_model() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        for case in list(&vectors["commands"]) {
            let both = [Adversary::SemiHonest, Adversary::Malicious];
            for (kind, adversary) in Kind::all().into_iter().flat_map(|k| both.map(|a| (k, a))) {
                let what = format!("{} over {ring:?} on {kind:?}, {adversary:?}", case["name"]);
                let mut net = net(ring, &vectors, case, kind, adversary);
                net.open(frame(case));
                for i in 0..4 {
                    for part in 0..3 {
                        let to = shares(&net, part);
                        let operands = list(&case["operands"]);
                        let operands = operands.iter().map(|o| &o["components"]);
                        net.nodes[i].poke(to, &joined(operands, component(i, part)));
                    }
                }
                net.run_changed(|_| Task::Layers, at_case(case))
                    .expect("codes that are right");
                let sum = case["sum_rows"] == true;
                for (k, joint) in list(&case["joint"]).iter().enumerate() {
                    let party =
                        |role: &str| Peer::Party(PartyId::FOUR[number::<usize>(&joint[role])]);
                    let sent = |from: Peer, part: usize| -> &Message {
                        let is =
                            |m: &&Message| m.from == from && usize::from(m.part) == 3 * k + part;
                        let mut all = net.log.iter().filter(is);
                        let message = all.next().unwrap_or_else(|| panic!("{what}: joint {k}"));
                        assert!(all.next().is_none(), "{what}: joint {k} is sent twice");
                        assert_eq!(message.to, party("receiver"), "{what}: joint {k}");
                        message
                    };
                    let message = sent(party("sender"), usize::from(sum));
                    assert_eq!(message.bytes, bytes(&joint["message"]), "{what}: joint {k}");
                    if adversary == Adversary::Malicious {
                        let code = sent(party("backup"), 2);
                        assert_eq!(
                            code.bytes,
                            bytes(&joint["code"]),
                            "{what}: code of joint {k}"
                        );
                    }
                }
                if adversary == Adversary::SemiHonest {
                    let code = net.log.iter().find(|message| message.part % 3 == 2);
                    assert!(code.is_none(), "{what}: no party vouches");
                }
                let items = list(&case["items"]);
                for i in 0..4 {
                    for part in 0..3 {
                        let want = joined(
                            items.iter().map(|item| &item["components"]),
                            component(i, part),
                        );
                        let from = results(&net, part);
                        let got = if sum {
                            net.nodes[i].view(from)
                        } else {
                            net.nodes[i].peek(from)
                        };
                        assert_eq!(got, want, "{what}: part {part} of party {i}");
                    }
                }
                let before = open(&mut net, sum);
                let want: Vec<u8> = list(&case["opened"]).iter().flat_map(bytes).collect();
                for i in 0..4 {
                    let me = PartyId::FOUR[i];
                    let value = net.log[before..].iter().find(|m| {
                        m.from == Peer::Party(PartyId::FOUR[(i + 3) % 4])
                            && m.to == Peer::Party(me)
                            && m.part % 2 == 0
                    });
                    let value = value.expect("the one before it sends what it lacks");
                    assert_eq!(
                        value.bytes,
                        bytes(&case["opening"][i]),
                        "{what}: to party {i}"
                    );
                    assert_eq!(opened(&net, i, sum), want, "{what}: opened at party {i}");
                }
                let metered = net.meters.iter();
                metered.for_each(|m| assert_eq!(m.found, m.declared, "{what}: {}", m.peer));
                net.close();
            }
        }
    }
}

/// Rule R1: a change of a joint message, or of its MAC, is found before anything follows from it, and the receiver names its sender and
/// its voucher.
#[test]
fn a_changed_joint_message_is_found_by_its_receiver() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        let cases = list(&vectors["commands"]);
        for case in cases
            .iter()
            .filter(|case| case["name"] != "last-chunk")
            .take(4)
        {
            for (k, joint) in list(&case["joint"]).iter().enumerate() {
                for part in [usize::from(case["sum_rows"] == true), 2] {
                    let mut net = net(ring, &vectors, case, Kind::all()[1], Adversary::Malicious);
                    net.open(frame(case));
                    net.tap = Box::new(move |message| {
                        if usize::from(message.part) == 3 * k + part {
                            *message.bytes.last_mut().expect("a message") ^= 0x80;
                        }
                    });
                    let found = net
                        .run_changed(|_| Task::Layers, at_case(case))
                        .expect_err("it is found");
                    let party =
                        |role: &str| Peer::Party(PartyId::FOUR[number::<usize>(&joint[role])]);
                    assert_eq!(found.at, party("receiver"));
                    assert_eq!(found.suspects, [party("sender"), party("backup")]);
                    assert_eq!(found.what, "a joint message of a product");
                }
            }
        }
    }
}

/// Runs the input rounds of a case by `holder`, and compares what it sends and what every party then has.
fn input(ring: Ring, vectors: &Value, case: &Value, holder: Holder, kind: Kind) {
    let columns = list(&case["columns"]);
    let chunk_rows = number(&case["chunk_rows"]);
    let width = columns.len() as u32;
    let circuit = circuit(ring, width, vec![], vec![Wire(0)], Reduce::None);
    let plan = plan(circuit, Security::among(4), holder, chunk_rows);
    let mut net = of(plan, vectors, kind);
    net.open(frame(case));
    let me = holder.peer().expect("a participant supplies it");
    let values: Vec<u8> = columns.iter().flat_map(|c| bytes(&c["value"])).collect();
    let node = net.nodes.iter_mut().find(|n| n.me == me);
    let node = node.expect("the holder takes part");
    let (_, span) = node.protocol.spans().inputs[0];
    node.write(span, &values);
    net.run_changed(|_| Task::Inputs { block: 0 }, moved(number(&case["first"])))
        .expect("consistent shares");
    let sent = net.log.iter().filter(|m| m.from == me);
    let mut to: Vec<Peer> = sent
        .inspect(|m| assert_eq!(m.bytes, bytes(&case["message"]), "{case}"))
        .map(|m| m.to)
        .collect();
    to.sort_unstable();
    let receivers = list(&case["to"]).iter();
    let mut want: Vec<Peer> = receivers
        .map(|party| Peer::Party(PartyId::FOUR[number::<usize>(party)]))
        .collect();
    want.sort_unstable();
    assert_eq!(to, want, "{case}");
    for i in 0..4 {
        for part in 0..3 {
            let from = shares(&net, part);
            let want = joined(columns.iter().map(|c| &c["components"]), component(i, part));
            assert_eq!(
                net.nodes[i].peek(from),
                want,
                "part {part} of party {i} on {kind:?}: {case}"
            );
        }
    }
}

#[test]
fn inputs_are_those_of_the_model() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        for kind in Kind::all() {
            for case in list(&vectors["party_input"]) {
                let party = PartyId::FOUR[number::<usize>(&case["party"])];
                assert_eq!(
                    DomainTag::input4(party.index() as u8),
                    DomainTag(number(&case["tag"]))
                );
                input(ring, &vectors, case, Holder::Party(party), kind);
            }
            for case in list(&vectors["owner_input"]) {
                assert_eq!(DomainTag::SHARE4, DomainTag(number(&case["tag"])));
                input(ring, &vectors, case, Holder::Owner(0), kind);
            }
        }
    }
}

/// Attack case B8: a participant that supplies different explicit components to their holders is found out before any party uses them.
#[test]
fn inconsistent_inputs_are_found() {
    for (ring, text) in RINGS {
        let vectors = json(text);
        let holders = [Holder::Owner(0)]
            .into_iter()
            .chain(PartyId::FOUR.map(Holder::Party));
        for holder in holders {
            let me = holder.peer().expect("a participant supplies it");
            let circuit = circuit(ring, 1, vec![], vec![Wire(0)], Reduce::None);
            let plan = plan(circuit, Security::among(4), holder, 100);
            let mut net = of(plan, &vectors, Kind::all()[1]);
            net.open(veil_session::Frame {
                epoch: 0,
                lane: 0,
                chunk: 1,
                rows: 100,
            });
            let mut first = true;
            net.tap = Box::new(move |message| {
                if message.from == me && std::mem::take(&mut first) {
                    message.bytes[0] ^= 1;
                }
            });
            let found = net
                .run(|_| Task::Inputs { block: 0 })
                .expect_err("it is found");
            assert_eq!(found.suspects[0], me);
            let what = match holder {
                Holder::Owner(_) => "an owner's shares",
                _ => "a party's shares",
            };
            assert_eq!(found.what, what);
        }
    }
}
