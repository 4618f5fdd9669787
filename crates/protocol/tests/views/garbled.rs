//! What either of two parties sees of a gate: by statistics over the real rounds. Hashes are the devices' here; that no distribution of labels
//! tells more, whatever the statistics are, is counted exhaustively with the equations (`veil_device::garble`).

use std::sync::Arc;

use veil_device::{ColumnType, Garbling, KeyId, Span};
use veil_job::{Audience, Holder, Security, Tables};
use veil_math::Ring;
use veil_protocol::yao::{EVALUATOR, GARBLER};
use veil_protocol::{Task, Transfers};
use veil_session::{PartyId, Peer, Secret};

use super::{Kind, Net, Plan, ROWS, RUNS, Seeded, alike, and_job, bits};
use crate::common::job::pack;

/// Slots hold labels; of a plan like this one those of `x`, of `y` and of the product.
const SLOTS: u16 = 0;

/// Which keys of [`Seeded`] leaves and offsets are, of the first direction, and of the second: behind those of participants.
const LEAF: u16 = 0x4000;
const OFFSET: u16 = 0x4002;

const SCHEMES: [Tables; 2] = [Tables::HalfGates, Tables::ThreeHalves];

/// Who supplies x and y: each party, and an owner, once first and once second.
const HOLDERS: [[Holder; 2]; 3] = [
    [Holder::Party(GARBLER), Holder::Party(EVALUATOR)],
    [Holder::Party(EVALUATOR), Holder::Owner(0)],
    [Holder::Owner(0), Holder::Party(GARBLER)],
];

/// All values of x and y.
const INPUTS: [[u128; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

/// What a party saw over all runs on one input.
#[derive(Default)]
struct Seen {
    /// Bytes of the labels that it has of operands and result.
    labels: Vec<u8>,
    /// Bytes that it received of the other party and of owners, but for the opening.
    received: Vec<u8>,
    /// Per row the colours of its labels, and the low bits of what it received that has a part for each row.
    joint: Vec<u16>,
}

fn plan(tables: Tables, holders: [Holder; 2], audience: Audience) -> Plan {
    let mut security = Security::among(2);
    security.tables = tables;
    and_job((Ring::Bits, security), holders, audience)
}

/// Both parties, an owner and a recipient, with all keys that they have after a handshake, of both directions where there are two.
pub(super) fn net(plan: Plan, seed: u64) -> Net {
    let keys = Seeded(seed);
    let kind = *Kind::all().last().expect("there is a device");
    let mut net = Net::of(plan, &PartyId::TWO, Arc::new(Seeded(seed)), kind);
    for node in &mut net.nodes {
        let Some(transfers) = node.protocol.transfers() else {
            continue;
        };
        let Transfers { sender, trees, .. } = transfers;
        let sends = node.me == sender;
        let first = (transfers.offset, transfers.leaves, transfers.pins, sends);
        let back = transfers.back;
        let back = back.map(|back| (back.offset, back.leaves, back.pins, !sends));
        let mut load = |id: KeyId, secret| {
            let loaded = node.device.load_key(id, &Secret::new(secret));
            loaded.expect("room for a key");
        };
        for (k, (key, leaves, pins, sends)) in (0..).zip([first].into_iter().chain(back)) {
            let drawn = u128::from_le_bytes(keys.key(OFFSET + k, 0));
            let offset = drawn & !pins.mask() | pins.value();
            if sends {
                load(key, offset.to_le_bytes());
            }
            for tree in 0..trees.count() {
                // The leaf that the sender lacks; it counts from there.
                let path = (offset >> (trees.bits() * tree)) as u32 & (trees.leaves() - 1);
                for leaf in 0..trees.leaves() {
                    let secret = keys.key(LEAF + k, trees.index(tree, leaf).into());
                    let place = if sends { leaf ^ path } else { leaf };
                    if !sends || place > 0 {
                        load(KeyId(leaves.0 + trees.index(tree, place)), secret);
                    }
                }
            }
        }
    }
    net
}

/// Bit 0 of what a message of columns of items has for a row.
fn low(bytes: &[u8], item: ColumnType, column: usize, row: usize) -> u8 {
    let rows = ROWS as usize;
    match item {
        ColumnType::Labels => bytes[16 * (column * rows + row)] & 1,
        ColumnType::Halves => bytes[8 * (column * rows + row)] & 1,
        _ => bytes[column * rows / 8 + row / 8] >> (row % 8) & 1,
    }
}

/// Runs the real rounds under the keys of `runs`, with `x` and `y` in every row, and gives what the garbler saw, and the evaluator. With
/// `together` the evaluator sees the colours of the garbler's label for 0 of x, too.
fn seen(
    (tables, holders, audience): (Tables, [Holder; 2], Audience),
    input: [u128; 2],
    runs: std::ops::Range<u64>,
    together: bool,
) -> [Seen; 2] {
    let mut all = [Seen::default(), Seen::default()];
    for run in runs {
        let mut net = net(plan(tables, holders, audience), run);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        for node in &mut net.nodes {
            for (port, span) in node.protocol.spans().inputs.clone() {
                node.write(span, &pack(Ring::Bits, &[input[port]; ROWS as usize]));
            }
        }
        net.run(|_| Task::Inputs { block: 0 })
            .expect("honest transfers");
        net.run(|_| Task::Layers).expect("nothing is checked");
        let before = net.log.len();
        net.run(|_| Task::Agree).expect("nothing is checked");
        net.run(|n| Task::Open(n.cleared()))
            .expect("nothing is checked");
        let wires = [0, 1].map(|port| net.plan.inputs[port].first);
        let wires = [wires[0], wires[1], net.plan.outputs[0].first];
        let peek = |net: &mut Net, party: usize| {
            wires.map(|first| {
                net.nodes[party].peek(Span {
                    region: SLOTS,
                    component: 0,
                    first,
                    count: 1,
                })
            })
        };
        let labels = [0, 1].map(|party| peek(&mut net, party));
        for (party, seen) in all.iter_mut().enumerate() {
            let me = Peer::Party(PartyId::TWO[party]);
            let mut columns: Vec<(&[u8], ColumnType, usize)> = labels[party]
                .iter()
                .map(|label| (&label[..], ColumnType::Labels, 0))
                .collect();
            if together && party == 1 {
                columns.push((&labels[0][0], ColumnType::Labels, 0));
            }
            let to_me = |m: &&crate::common::Message| m.to == me;
            for m in net.log[..before].iter().filter(to_me) {
                seen.received.extend_from_slice(&m.bytes);
                let bit = ColumnType::Rows(Ring::Bits);
                match (m.task, m.from) {
                    (Task::Layers, _) => {
                        let scheme = match tables {
                            Tables::HalfGates => Garbling::HalfGates,
                            Tables::ThreeHalves => Garbling::ThreeHalves,
                        };
                        let (item, count) = scheme.tables()[usize::from(m.part)];
                        columns.extend((0..count as usize).map(|k| (&m.bytes[..], item, k)));
                    }
                    (_, Peer::Owner(_)) => columns.push((&m.bytes, bit, 0)),
                    // Corrections, of the first tree and of the last; the rest has no parts for rows.
                    _ if m.bytes.len() as u32 >= 32 * ROWS / 8 => {
                        let last = m.bytes.len() * 8 / ROWS as usize - 1;
                        columns.extend([0, last].map(|k| (&m.bytes[..], bit, k)));
                    }
                    _ => {}
                }
            }
            // As many cells as there are samples for: all but a bit of three-halves.
            columns.truncate(10);
            // What is opened to a party is a bit of each row, too.
            for m in net.log[before..].iter().filter(to_me) {
                columns.push((&m.bytes, ColumnType::Rows(Ring::Bits), 0));
            }
            for row in 0..ROWS as usize {
                let cell = columns.iter().fold(0, |cell, (bytes, item, k)| {
                    cell << 1 | u16::from(low(bytes, *item, *k, row))
                });
                seen.joint.push(cell);
            }
            seen.labels.extend(labels[party].concat());
        }
    }
    all
}

fn check(a: &Seen, b: &Seen, what: &str) {
    for (of, a, b) in [
        ("labels", &a.labels, &b.labels),
        ("messages", &a.received, &b.received),
    ] {
        assert_eq!(a.is_empty(), b.is_empty(), "{what}: {of}");
        if !a.is_empty() {
            assert!(alike(&bits(a), &bits(b), 2), "{what}: bits of {of}");
            assert!(alike(a, b, 256), "{what}: bytes of {of}");
        }
    }
    assert!(joint(a, b), "{what}: all together");
}

fn joint(a: &Seen, b: &Seen) -> bool {
    let most = a.joint.iter().chain(&b.joint).max();
    let cells = usize::from(*most.expect("there are rows")) + 1;
    alike(&a.joint, &b.joint, cells.next_power_of_two())
}

/// Runs on all inputs, each under keys of its own.
fn on_all_inputs(job: (Tables, [Holder; 2], Audience), together: bool) -> [[Seen; 2]; 4] {
    let mut first = 0;
    INPUTS.map(|input| {
        first += RUNS;
        seen(job, input, first - RUNS..first, together)
    })
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn what_either_of_two_parties_sees_does_not_depend_on_the_inputs() {
    for tables in SCHEMES {
        for holders in HOLDERS {
            let all = on_all_inputs((tables, holders, Audience::Recipient(0)), false);
            for (input, seen) in INPUTS.iter().zip(&all).skip(1) {
                for (party, (a, b)) in all[0].iter().zip(seen).enumerate() {
                    let what = format!("{tables:?}, {holders:?}, {input:?}, party {party}");
                    check(a, b, &what);
                }
            }
        }
    }
}

/// The share of the other party gives a result to the party to which it is opened, and to no other: inputs with the same result look the same.
#[test]
fn a_result_is_for_whom_it_is_opened_and_shows_the_result_only() {
    for tables in SCHEMES {
        for to in [GARBLER, EVALUATOR] {
            let job = (tables, HOLDERS[1], Audience::Party(to));
            let all = on_all_inputs(job, false);
            for (input, seen) in INPUTS.iter().zip(&all).skip(1) {
                for (party, (a, b)) in all[0].iter().zip(seen).enumerate() {
                    let told = party == to.index() && *input == [1, 1];
                    let what = format!("{tables:?}, to {to:?}, {input:?}, party {party}");
                    assert_eq!(joint(a, b), !told, "{what}");
                }
            }
        }
    }
}

/// The statistics have power: the label of 0 beside the active one tells the value.
#[test]
fn both_views_together_tell_the_inputs() {
    let job = (SCHEMES[0], HOLDERS[0], Audience::Recipient(0));
    let all = on_all_inputs(job, true);
    let [[_, zero], [_, other], [_, one], _] = &all;
    assert!(joint(zero, other), "y is none of x");
    assert!(!joint(zero, one), "x is seen");
}
