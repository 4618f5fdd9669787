//! What either of two parties sees of a gate that it cannot falsify: by statistics over the real rounds.

use std::collections::BTreeMap;

use veil_device::Span;
use veil_job::{Adversary, Audience, Holder, Security};
use veil_math::Ring;
use veil_protocol::Task;
use veil_protocol::ag::{AgMessage, ag_message};
use veil_protocol::yao::{EVALUATOR, GARBLER};
use veil_session::{PartyId, Peer};

use super::garbled::net;
use super::{Net, Plan, ROWS, RUNS, alike, and_job, bits};
use crate::common::job::pack;

/// All values of x, which the garbler has, and of y, which the evaluator has.
const INPUTS: [[usize; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

/// Labels, MACs and Λ of wires.
const SLOTS: u16 = 0;
const LABEL: u8 = 0;
const MAC: u8 = 1;
const PUBLIC: u8 = 3;

/// What a party saw over all runs on one input.
#[derive(Default)]
struct Seen {
    /// Bytes that it received.
    received: Vec<u8>,
    /// Per row the bits that it has: parts of masks, Λ, parts of masks that it was told, opened bits, a bit of the table.
    joint: Vec<u16>,
}

/// The bit of a row in some bytes.
type Bit = fn(&[u8], usize) -> u8;

/// A bit of each row of some bytes.
struct Column(Vec<u8>, Bit);

fn packed(bytes: &[u8], row: usize) -> u8 {
    bytes[row / 8] >> (row % 8) & 1
}

fn lowest(bytes: &[u8], row: usize) -> u8 {
    bytes[16 * row] & 1
}

fn colour(bytes: &[u8], row: usize) -> u8 {
    bytes[16 * row] >> 1 & 1
}

fn plan(audience: Audience) -> Plan {
    let security = Security::among(2).against(Adversary::Malicious);
    let holders = PartyId::TWO.map(Holder::Party);
    and_job((Ring::Bits, security), holders, audience)
}

/// The kinds of all messages after the set-up, by sender, place and part.
fn kinds(net: &Net) -> BTreeMap<(Peer, u32, u16), Option<AgMessage>> {
    let mut kinds = BTreeMap::new();
    for node in &net.nodes[..2] {
        let frame = net.plan.chunk(0).expect("a chunk").frame;
        let tasks = [
            Task::Inputs { block: 0 },
            Task::Layers,
            Task::Open(node.cleared()),
        ];
        for round in tasks
            .into_iter()
            .flat_map(|task| node.protocol.flow(task, frame).all())
        {
            for send in &round.sends {
                kinds.insert((node.me, round.place, send.part), ag_message(send));
            }
        }
    }
    kinds
}

/// Bits of masks or of Λ that a party has of x, of y and of the result.
fn of_wires(net: &mut Net, party: usize, component: u8) -> [Vec<u8>; 3] {
    let [x, y] = [0, 1].map(|port| net.plan.inputs[port].first);
    [x, y, net.plan.outputs[0].first].map(|first| {
        net.nodes[party].peek(Span {
            region: SLOTS,
            component,
            first,
            count: 1,
        })
    })
}

/// Runs the real rounds under the keys of `runs`, with x and y in every row, and gives what each party saw. With `together` each has the
/// other's part of the mask of its own input, too.
fn seen(
    audience: Audience,
    input: [usize; 2],
    runs: std::ops::Range<u64>,
    together: bool,
) -> [Seen; 2] {
    let rows = ROWS as usize;
    let mut all = [Seen::default(), Seen::default()];
    for run in runs {
        let mut net = net(plan(audience), run);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        for node in &mut net.nodes {
            for (port, span) in node.protocol.spans().inputs.clone() {
                node.write(
                    span,
                    &pack(Ring::Bits, &[input[port] as u128; ROWS as usize]),
                );
            }
        }
        net.run(|_| Task::Inputs { block: 0 }).expect("honest");
        net.run(|_| Task::Layers).expect("honest");
        net.run(|_| Task::Agree).expect("honest");
        net.run(|n| Task::Open(n.cleared())).expect("honest");
        let kinds = kinds(&net);
        let parts = [0, 1].map(|party| of_wires(&mut net, party, MAC));
        for (party, seen) in all.iter_mut().enumerate() {
            let me = Peer::Party(PartyId::TWO[party]);
            // The garbler keeps Λ in a component of its own, the evaluator in bit 1 of its labels.
            let (component, bit): (u8, Bit) = if party == GARBLER.index() {
                (PUBLIC, lowest)
            } else {
                (LABEL, colour)
            };
            let public = of_wires(&mut net, party, component);
            let own = parts[party].clone().map(|part| Column(part, lowest));
            let mut columns: Vec<Column> = own.into_iter().collect();
            columns.extend(public.map(|of| Column(of, bit)));
            if together {
                columns.push(Column(parts[1 - party][1 - party].clone(), lowest));
            }
            for m in net.log.iter().filter(|m| m.to == me) {
                seen.received.extend_from_slice(&m.bytes);
                match kinds[&(m.from, m.place, m.part)] {
                    Some(AgMessage::InputParts | AgMessage::OutputParts) => {
                        columns.push(Column(m.bytes.clone(), packed));
                    }
                    // As many candidates as rows: the last two columns are of operands.
                    Some(AgMessage::Opened) => {
                        let last = m.bytes.rchunks(rows / 8).take(2);
                        columns.extend(last.map(|bits| Column(bits.to_vec(), packed)));
                    }
                    None if m.bytes.len() == 2 * 16 * rows => {
                        columns.push(Column(m.bytes.clone(), lowest));
                    }
                    _ => {}
                }
            }
            assert!(columns.len() >= 9, "{} columns", columns.len());
            // As many cells as there are samples for.
            columns.truncate(11);
            for row in 0..rows {
                let cell = columns.iter().fold(0, |cell, Column(bytes, bit)| {
                    cell << 1 | u16::from(bit(bytes, row))
                });
                seen.joint.push(cell);
            }
        }
    }
    all
}

/// Runs on all inputs, each under keys of its own.
fn on_all_inputs(audience: Audience, together: bool) -> [[Seen; 2]; 4] {
    let mut first = 0;
    INPUTS.map(|input| {
        first += RUNS;
        seen(audience, input, first - RUNS..first, together)
    })
}

fn joint(a: &Seen, b: &Seen) -> bool {
    let most = a.joint.iter().chain(&b.joint).max();
    let cells = usize::from(*most.expect("there are rows")) + 1;
    alike(&a.joint, &b.joint, cells.next_power_of_two())
}

/// What a party saw on inputs that differ in the other party's: for each party and value of its own.
fn pairs(all: &[[Seen; 2]; 4]) -> impl Iterator<Item = (usize, usize, [&Seen; 2])> {
    (0..2).flat_map(move |party| {
        (0..2).map(move |own| {
            let with = |other: usize| {
                let at = if party == 0 {
                    2 * own + other
                } else {
                    2 * other + own
                };
                &all[at][party]
            };
            (party, own, [with(0), with(1)])
        })
    })
}

/// A party's view depends on the other one's input by the result that is opened to it, and no further.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn a_view_of_authenticated_garbling_shows_what_is_opened_only() {
    for to in [GARBLER, EVALUATOR] {
        let all = on_all_inputs(Audience::Party(to), false);
        for (party, own, [a, b]) in pairs(&all) {
            let what = format!("to {to:?}, party {party}, its input {own}");
            assert!(
                alike(&bits(&a.received), &bits(&b.received), 2),
                "{what}: bits"
            );
            assert!(alike(&a.received, &b.received, 256), "{what}: bytes");
            let told = party == to.index() && own == 1;
            assert_eq!(joint(a, b), !told, "{what}: all together");
        }
    }
}

/// The statistics have power: the other party's part of the mask of its input tells that.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn both_views_of_authenticated_garbling_together_tell_the_inputs() {
    let all = on_all_inputs(Audience::Party(EVALUATOR), true);
    for (party, own, [a, b]) in pairs(&all) {
        assert!(!joint(a, b), "party {party}, its input {own}");
    }
}
