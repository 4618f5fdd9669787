//! The golden vectors of moves of rows: `vectors/moves*.json`, written by the Python model, reproduced by every device; and a lie in every message.

use std::sync::Arc;

use serde_json::Value;

use crate::common::vectors::{FourKeys, PARTY_0, bytes, circuit, json, keys, list, number, plan};
use crate::common::{Keyring, Kind, Message, Mismatch, Net};
use veil_circuit::{Reduce, Wire};
use veil_job::{Adversary, Security};
use veil_math::Ring;
use veil_protocol::Task;
use veil_protocol::passes::{ColumnForm, MoveKind, MovePlan, Moves};
use veil_session::{Frame, PartyId, Peer};

const FILES: [(usize, &str); 2] = [
    (3, include_str!("../../../../vectors/moves3.json")),
    (4, include_str!("../../../../vectors/moves4.json")),
];

fn form(case: &Value) -> ColumnForm {
    match case["form"].as_str() {
        Some("words1") => ColumnForm::Words(1),
        Some("z32") => ColumnForm::Ring(Ring::Z32),
        Some("z64") => ColumnForm::Ring(Ring::Z64),
        other => panic!("the form {other:?} is none of ours"),
    }
}

/// The component that party `i` of `parties` keeps as part `part`.
fn component(parties: usize, i: usize, part: usize) -> usize {
    match (parties, part) {
        (3, 0) => i,
        (3, _) => (i + 2) % 3,
        _ => (i + 1 + part) % 4,
    }
}

fn security(parties: usize) -> Security {
    let adversary = match parties {
        4 => Adversary::Malicious,
        _ => Adversary::SemiHonest,
    };
    Security {
        adversary,
        ..Security::among(parties)
    }
}

/// A case of a file, ready to run: what moves is there, and the factors, if it goes back.
fn net(parties: usize, vectors: &Value, case: &Value, kind: MoveKind, device: Kind) -> Net {
    let rows: u32 = number(&case["rows"]);
    let security = security(parties);
    let moves = Arc::new(MovePlan {
        security,
        rows,
        rotation: number(&case["rotation"]),
        kind,
        columns: vec![form(case)],
        orders: kind == MoveKind::Open,
    });
    // Whose participants and keys the move has.
    let of = circuit(Ring::Bits, 1, vec![], vec![Wire(0)], Reduce::None);
    let plan = Arc::new(plan(of, security, PARTY_0, 512));
    let keyring: Arc<dyn Keyring> = match parties {
        3 => Arc::new(keys(vectors)),
        _ => Arc::new(FourKeys(vectors.clone())),
    };
    let all = &PartyId::FOUR[..parties];
    let protocol = |me| Arc::new(Moves::new(&moves, me)) as _;
    let mut net = Net::by(plan, all, keyring, device, &protocol);
    net.open(Frame {
        epoch: 0,
        lane: 0,
        chunk: 1,
        rows,
    });
    let before = match kind {
        MoveKind::Back => &case["moved"],
        MoveKind::There | MoveKind::Along | MoveKind::Open | MoveKind::Rank => &case["x"],
    };
    for i in 0..parties {
        let takes = net.nodes[i].protocol.spans().takes.clone();
        for (part, span) in takes[0].components.iter().enumerate() {
            let c = component(parties, i, part);
            net.nodes[i].write(*span, &bytes(&before["components"][c]));
        }
        for (part, span) in takes
            .iter()
            .skip(1)
            .flat_map(|t| t.components.iter().enumerate())
        {
            let factor = list(&case["permutations"][component(parties, i, part)]);
            let entries = factor.iter().map(number::<u32>);
            let packed: Vec<u8> = entries.flat_map(u32::to_le_bytes).collect();
            net.nodes[i].write(*span, &packed);
        }
    }
    net
}

/// Messages are those of the model: by round, ends and, where it says one, number.
fn same_messages(net: &Net, wanted: &Value, what: &str) {
    let first = net.log.iter().map(|m| m.place).min().expect("messages");
    let peer = |index: &Value| Peer::Party(PartyId::FOUR[number::<usize>(index)]);
    assert_eq!(
        net.log.len(),
        list(wanted).len(),
        "{what}: number of messages"
    );
    for message in list(wanted) {
        let (from, to) = (peer(&message["from"]), peer(&message["to"]));
        let place = first + number::<u32>(&message["round"]);
        let is = |m: &&Message| {
            let part = message["part"]
                .as_u64()
                .is_none_or(|part| part == u64::from(m.part));
            (m.from, m.to, m.place) == (from, to, place) && part
        };
        let found = net.log.iter().find(is);
        let found = found.unwrap_or_else(|| panic!("{what}: no message {message}"));
        assert_eq!(found.bytes, bytes(&message["bytes"]), "{what}: {message}");
    }
    for meter in &net.meters {
        assert_eq!(meter.found, meter.declared, "{what}: {}", meter.peer);
    }
}

#[test]
fn rows_move_there_and_back_as_in_the_model() {
    for (parties, text) in FILES {
        let vectors = json(text);
        let cases = list(&vectors["cases"]).iter();
        for (case, device) in
            cases.flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
        {
            let kinds = [
                (MoveKind::There, "there", "moved"),
                (MoveKind::Back, "back", "again"),
            ];
            for (kind, messages, results) in kinds {
                let what = format!(
                    "{parties} parties, {}, {} rows, {messages}, {device:?}",
                    case["form"], case["rows"]
                );
                let mut net = net(parties, &vectors, case, kind, device);
                net.run(|_| Task::Layers).expect("codes that are right");
                same_messages(&net, &case[messages], &what);
                for i in 0..parties {
                    let left = net.nodes[i].protocol.spans().leaves.clone();
                    for (part, span) in left[0].components.iter().enumerate() {
                        let c = component(parties, i, part);
                        let want = bytes(&case[results]["components"][c]);
                        assert_eq!(
                            net.nodes[i].view(*span),
                            want,
                            "{what}: party {i}, part {part}"
                        );
                    }
                }
            }
        }
    }
}

/// The cases of an opening: positions, shared.
fn positions(parties: usize, case: &Value) -> Value {
    let rows: u32 = number(&case["rows"]);
    let mut case = case.clone();
    let hex = |column: Vec<u32>| -> Value {
        // Elements are little-endian.
        let digits = column
            .into_iter()
            .map(|x| format!("{:08x}", x.swap_bytes()));
        digits.collect::<Vec<_>>().concat().into()
    };
    // The value is row 0 last, the others before it.
    let clear: Vec<u32> = (0..rows).map(|row| (row + rows - 1) % rows).collect();
    let random = |c: u32| (0..rows).map(move |row| row.wrapping_mul(0x9e37_79b9 + c) ^ c << 30);
    let mut last = clear;
    let mut components = Vec::new();
    for c in 1..parties as u32 {
        for (last, random) in last.iter_mut().zip(random(c)) {
            *last = last.wrapping_sub(random);
        }
        components.push(hex(random(c).collect()));
    }
    components.push(hex(last));
    case["x"]["components"] = components.into();
    case
}

#[test]
fn an_opening_of_moved_rows_is_that_of_the_model() {
    let (parties, text) = FILES[0];
    let vectors = json(text);
    let cases = list(&vectors["cases"]).iter();
    let cases = cases.filter(|case| form(case) == ColumnForm::Ring(Ring::Z32));
    for (case, device) in
        cases.flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
    {
        let what = format!("{} rows, {device:?}", case["rows"]);
        let mut net = net(parties, &vectors, case, MoveKind::Open, device);
        // What the model opens is no permutation: the messages are right, and a party finds that.
        let found = net
            .run(|_| Task::Layers)
            .expect_err("integers that are no permutation");
        assert_eq!(
            found.what, "opened positions, which are no permutation",
            "{what}"
        );
        for message in list(&case["opening"]).iter().filter(|m| m["round"] == 0) {
            let sent = net.log.iter().any(|m| m.bytes == bytes(&message["bytes"]));
            assert!(sent, "{what}: {message}");
        }
    }
}

#[test]
fn opened_positions_are_the_product_of_all_factors() {
    for (parties, text) in FILES {
        let vectors = json(text);
        let cases = list(&vectors["cases"]).iter();
        let cases = cases.filter(|case| form(case) == ColumnForm::Ring(Ring::Z32));
        for (case, device) in
            cases.flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
        {
            let rows: u32 = number(&case["rows"]);
            let case = positions(parties, case);
            let mut net = net(parties, &vectors, &case, MoveKind::Open, device);
            net.run(|_| Task::Layers).expect("positions");
            for meter in &net.meters {
                assert_eq!(meter.found, meter.declared, "{}", meter.peer);
            }
            let factor = |c: usize| -> Vec<u32> {
                list(&case["permutations"][c]).iter().map(number).collect()
            };
            let rotation: usize = number(&case["rotation"]);
            let order = match parties {
                3 => vec![rotation % 3, (rotation + 2) % 3, (rotation + 1) % 3],
                _ => vec![0, 1, 2, 3],
            };
            let mut want = vec![0; rows as usize];
            for row in 0..rows {
                let to = order.iter().fold(row, |at, c| factor(*c)[at as usize]);
                let value = (row + rows - 1) % rows;
                want[to as usize] = value;
            }
            for node in &net.nodes {
                let left = node.protocol.spans().leaves.clone();
                let entries = |span| -> Vec<u32> {
                    let bytes = node.view(span);
                    let entries = bytes
                        .chunks_exact(4)
                        .map(|b| u32::from_le_bytes(b.try_into().unwrap()));
                    entries.collect()
                };
                let Some(positions) = left.last() else {
                    panic!("an opening leaves positions");
                };
                assert_eq!(entries(positions.components[0]), want, "{parties} parties");
            }
        }
    }
}

/// Runs a move in which byte `byte` of message `index` is another.
fn lied(
    (parties, vectors, case): (usize, &Value, &Value),
    kind: MoveKind,
    index: usize,
    last: bool,
) -> (Message, Result<(), Mismatch>) {
    let mut net = net(parties, vectors, case, kind, Kind::Reference);
    let seen = std::rc::Rc::new(std::cell::RefCell::new((0, None)));
    let tapped = std::rc::Rc::clone(&seen);
    net.tap = Box::new(move |message| {
        let mut seen = tapped.borrow_mut();
        if seen.0 == index {
            let at = if last { message.bytes.len() - 1 } else { 0 };
            message.bytes[at] ^= if last { 0x80 } else { 1 };
            seen.1 = Some(message.clone());
        }
        seen.0 += 1;
    });
    let ended = net.run(|_| Task::Layers);
    let message = seen
        .borrow_mut()
        .1
        .take()
        .expect("a message of that number");
    (message, ended)
}

/// Every message among four has a second source: a lie in its first or its last bit, in elements, in a code, in what is opened and in its digest, is found
/// in the round by its receiver, who suspects the sender and one other.
#[test]
fn a_lie_among_four_is_found_in_the_round() {
    let (parties, text) = FILES[1];
    let vectors = json(text);
    let case = list(&vectors["cases"])
        .iter()
        .find(|case| case["rows"] == 5 && form(case) == ColumnForm::Ring(Ring::Z32));
    let case = positions(parties, case.expect("five rows"));
    for (kind, messages) in [
        (MoveKind::There, 24),
        (MoveKind::Back, 24),
        (MoveKind::Open, 32),
    ] {
        for (index, last) in (0..messages).flat_map(|index| [(index, false), (index, true)]) {
            let of = (parties, &vectors, &case);
            let (message, ended) = lied(of, kind, index, last);
            let found = ended.expect_err("a lie");
            assert_eq!(found.at, message.to, "{kind:?}, message {index}");
            assert!(found.suspects.contains(&message.from) && found.suspects.len() == 2);
            assert!(!found.suspects.contains(&message.to));
            let opened = message.place == 12;
            let what = if opened {
                "an opened component of positions"
            } else {
                "a joint message of a move"
            };
            assert_eq!(found.what, what, "{kind:?}, message {index}");
        }
    }
}

/// Three semi-honest parties have no second source. What they open they look at: a lie in it is no permutation, and a lie before it is one at random.
#[test]
fn a_lie_among_three_that_is_opened_is_no_permutation() {
    let (parties, text) = FILES[0];
    let vectors = json(text);
    let case = list(&vectors["cases"])
        .iter()
        .find(|case| case["rows"] == 5 && form(case) == ColumnForm::Ring(Ring::Z32));
    let case = positions(parties, case.expect("five rows"));
    for index in 0..6 {
        let of = (parties, &vectors, &case);
        let (_, ended) = lied(of, MoveKind::Open, index, false);
        let found = ended.expect_err("one of the positions is another's, or none");
        assert_eq!(found.what, "opened positions, which are no permutation");
    }
    // What is not opened is what was sent: nothing is promised of it.
    for index in 0..4 {
        let (_, ended) = lied((parties, &vectors, &case), MoveKind::There, index, false);
        assert_eq!(ended, Ok(()));
    }
}
