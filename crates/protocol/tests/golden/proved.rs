//! The golden vectors of moves that are proved: `vectors/proved_moves.json`, written by the Python model, reproduced by every device, for parties that are honest and for
//! one that sends a wrong bit.

use std::sync::Arc;

use serde_json::Value;

use crate::common::vectors::{PARTY_0, bytes, circuit, json, keys, list, number, plan};
use crate::common::{Kind, Mismatch, Net};
use veil_circuit::{Reduce, Wire};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_protocol::Task;
use veil_protocol::passes::{ColumnForm, MoveKind, MovePlan, Moves};
use veil_session::{Frame, PartyId, Peer};

const VECTORS: &str = include_str!("../../../../vectors/proved_moves.json");

/// Rounds of a move before its proof.
const STEPS: u32 = 3;

fn party(index: usize) -> Peer {
    Peer::Party(PartyId::THREE[index % 3])
}

/// The component that party `i` keeps as part `part`.
const fn component(i: usize, part: usize) -> usize {
    if part == 0 { i } else { (i + 2) % 3 }
}

/// A case, ready to run: what moves is there, and the factors, if it goes back.
fn net(vectors: &Value, case: &Value, device: Kind) -> Net {
    let rows: u32 = number(&case["rows"]);
    let security = Security::among(3).against(Adversary::Malicious);
    let sizes = list(&case["sizes"]).iter();
    let moves = Arc::new(MovePlan {
        security,
        rows,
        rotation: 1,
        kind: if case["back"] == true {
            MoveKind::Back
        } else {
            MoveKind::There
        },
        columns: sizes.map(|size| ColumnForm::Words(number(size))).collect(),
        orders: false,
    });
    // Whose participants and keys the move has.
    let of = circuit(Ring::Bits, 1, vec![], vec![Wire(0)], Reduce::None);
    let plan = Arc::new(plan(of, security, PARTY_0, 512));
    let protocol = |me| Arc::new(Moves::new(&moves, me)) as _;
    let keyring = Arc::new(keys(vectors));
    let mut net = Net::by(plan, &PartyId::THREE, keyring, device, &protocol);
    net.open(Frame {
        epoch: 0,
        lane: 0,
        chunk: 1,
        rows,
    });
    let columns = list(&case["x"]);
    for i in 0..3 {
        let takes = net.nodes[i].protocol.spans().takes.clone();
        for (number_of, take) in takes.iter().enumerate() {
            for (part, span) in take.components.iter().enumerate() {
                let c = component(i, part);
                let packed = if let Some(column) = columns.get(number_of) {
                    bytes(&column[c])
                } else {
                    let factor = list(&case["permutations"][c]);
                    let entries = factor.iter().map(number::<u32>);
                    entries.flat_map(u32::to_le_bytes).collect()
                };
                net.nodes[i].write(*span, &packed);
            }
        }
    }
    net
}

/// Flips the bits that the case says were sent wrong: of the message of place 0 of a party the first of its step, of place 1 the second.
fn flip_wrong(net: &mut Net, case: &Value, first: u32) {
    let sizes: Vec<usize> = list(&case["sizes"]).iter().map(number).collect();
    let all = case["wrong"].as_array().expect("a list").iter();
    let wrong: Vec<[usize; 4]> = all.map(|of| [0, 1, 2, 3].map(|k| number(&of[k]))).collect();
    net.tap = Box::new(move |message| {
        for [who, place, column, row] in &wrong {
            let part = (2 * column + place) as u16;
            let is = (message.from, message.part) == (party(*who), part);
            if is && message.place < first + STEPS {
                message.bytes[row * sizes[*column]] ^= 1;
            }
        }
    });
}

#[test]
fn moves_and_their_proofs_are_those_of_the_model() {
    let vectors = json(VECTORS);
    for (case, kind) in list(&vectors["cases"])
        .iter()
        .flat_map(|c| Kind::all().into_iter().map(move |k| (c, k)))
    {
        let what = format!("{} on {kind:?}", case["name"]);
        let mut net = net(&vectors, case, kind);
        let first = {
            let flow = net.nodes[0].protocol.flow(
                Task::Layers,
                Frame {
                    epoch: 0,
                    lane: 0,
                    chunk: 1,
                    rows: number(&case["rows"]),
                },
            );
            flow.rounds()[0].place
        };
        flip_wrong(&mut net, case, first);
        let found = net.run(|_| Task::Layers);
        let proofs = list(&case["proofs"]);
        let corrupt = proofs.iter().position(|proof| proof["accepted"] == false);
        match (corrupt, found) {
            (None, found) => found.expect("right moves are accepted"),
            (Some(corrupt), found) => {
                let Mismatch { at, suspects, what } = found.expect_err("a wrong row is found");
                assert_eq!(what, "the proof of rows that a party moved");
                assert!([1, 2].map(|by| party(corrupt + by)).contains(&at));
                assert_eq!(suspects[0], party(corrupt));
            }
        }
        let sent = |place: u32, from: usize, to: usize, part: Option<u16>| -> &[u8] {
            let (from, to) = (party(from), party(to));
            let is = |m: &&crate::common::Message| {
                (m.from, m.to, m.place) == (from, to, place) && part.is_none_or(|p| p == m.part)
            };
            let message = net.log.iter().find(is);
            &message
                .unwrap_or_else(|| panic!("{what}: no message"))
                .bytes
        };
        for message in list(&case["messages"]) {
            let (from, to): (usize, usize) = (number(&message["from"]), number(&message["to"]));
            let place = first + number::<u32>(&message["round"]);
            // E is two places before the party that it sends to, F one.
            let own = u16::from((to + 3 - from) % 3 == 1);
            for (k, column) in (0..).zip(list(&message["columns"])) {
                let found = sent(place, from, to, Some(2 * k + own));
                assert_eq!(
                    found,
                    bytes(column),
                    "{what}: column {k} from {from} to {to}"
                );
            }
        }
        let proof = first + STEPS;
        for (i, model) in proofs.iter().enumerate() {
            let challenges = list(&model["challenges"]);
            let told = std::iter::once(&model["seed"]).chain(challenges);
            for (level, (share, told)) in (0..).zip(list(&model["shares"]).iter().zip(told)) {
                let what = format!("{what}: level {} of party {i}", level + 3);
                let at = proof + 2 * level;
                assert_eq!(sent(at + 1, i + 1, i, None), bytes(told), "{what}");
                assert_eq!(sent(at + 2, i, i + 2, None), bytes(told), "{what}: echo");
                assert_eq!(sent(at + 2, i, i + 1, None), bytes(share), "{what}");
            }
            let ready = sent(proof, i + 2, i + 1, None);
            assert_eq!(ready, bytes(&model["seed"]), "{what}: ready");
            let last = proof + 2 * challenges.len() as u32 + 1;
            let right = sent(last, i + 1, i + 2, None);
            assert_eq!(right, bytes(&model["right"]), "{what}: next");
            let left = sent(last, i + 2, i + 1, None);
            assert_eq!(left, bytes(&model["left"]), "{what}: previous");
        }
        if corrupt.is_some() {
            continue;
        }
        for i in 0..3 {
            let left = net.nodes[i].protocol.spans().leaves.clone();
            for (column, stored) in list(&case["moved"]).iter().zip(&left) {
                for (part, span) in stored.components.iter().enumerate() {
                    let want = bytes(&column[component(i, part)]);
                    assert_eq!(net.nodes[i].view(*span), want, "{what}: party {i}");
                }
            }
        }
        for meter in &net.meters {
            assert_eq!(meter.found, meter.declared, "{what}: {}", meter.peer);
        }
    }
}
