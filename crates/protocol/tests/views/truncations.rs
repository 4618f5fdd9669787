//! What a party receives when integers are truncated among three does not depend on the integers, given its own shares of them: by statistics over the real rounds.
//! The model of the golden vectors shows it exhaustively over a small ring (`vectors/model/truncations.py`).

use super::{Kind, ROWS, RUNS, SCHEMES, Scheme, alike, and_plan, bits, net};
use crate::common::job::pack;
use std::sync::Arc;
use veil_circuit::{Gate, Wire};
use veil_device::{Command, Op, Span};
use veil_math::Ring;
use veil_protocol::{Options, Plan, Task};
use veil_prss::DomainTag;
use veil_session::Peer;

/// Integers in a row: each party has every role in one of three.
const COUNT: u32 = 3;

/// Numbers of messages of truncations, of which the fourth is of bits.
const NUMBERS: std::ops::Range<u16> = 0x200..0x205;
const OF_BITS: u16 = 0x203;

/// What one party saw over all runs on one input.
#[derive(Default)]
struct Seen {
    /// Bytes of the integers that it received, and of the bits.
    integers: Vec<u8>,
    bits: Vec<u8>,
    /// Per row the low bits of its components of the inputs, and of the integers that it received.
    joint: Vec<u16>,
    /// The same of the bits in place of the integers.
    joint_bits: Vec<u16>,
}

fn scheme() -> &'static Scheme {
    let three = SCHEMES.iter().find(|scheme| scheme.count() == 3);
    three.expect("a scheme of three parties")
}

/// Integers that are rounded down by three bits.
fn plan(ring: Ring) -> Plan {
    let mut job = (*and_plan(scheme(), ring).job).clone();
    let circuit = &mut job.circuit;
    circuit.inputs.truncate(1);
    circuit.inputs[0].width = COUNT;
    let shifted = (0..COUNT).map(|k| Gate::ShiftRight {
        of: Wire(k),
        by: 3,
        bits: ring.bits() - 1,
    });
    circuit.gates = shifted.collect();
    circuit.outputs[0].wires = (0..COUNT).map(|k| Wire(COUNT + k)).collect();
    job.blocks[0].holders.truncate(1);
    let options = Options {
        lanes: 1,
        chunk_rows: Some(ROWS),
    };
    Plan::new(Arc::new(job), options).expect("a job that can be planned")
}

/// Draws of these tags are zero.
fn bare(command: &mut Command, tags: &[DomainTag], ring: Ring) {
    let drawn = command.calls.first().map(|call| call.tag);
    if command.op == Op::Random && drawn.is_some_and(|tag| tags.contains(&tag)) {
        let ring = if drawn == Some(DomainTag::truncate3(5)) {
            Ring::Bits
        } else {
            ring
        };
        let dst = command.dst.clone();
        *command = Command::new(Op::Combine { ring, minus: 0 }, vec![], dst);
    }
}

/// Runs the real rounds with `x` as all inputs of every row.
fn seen(ring: Ring, x: u128, runs: std::ops::Range<u64>, without: &[DomainTag]) -> Vec<Seen> {
    let mut all: Vec<Seen> = (0..3).map(|_| Seen::default()).collect();
    let (size, rows) = (ring.bytes(1) as usize, ROWS as usize);
    let kind = *Kind::all().last().expect("there is a device");
    for run in runs {
        let mut net = net(scheme(), plan(ring), run, kind);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        let owner = net.nodes.iter_mut().find(|n| n.me == Peer::Owner(0));
        let owner = owner.expect("the owner takes part");
        let (_, span) = owner.protocol.spans().inputs[0];
        owner.write(span, &pack(ring, &vec![x; rows * COUNT as usize]));
        net.run(|_| Task::Inputs { block: 0 })
            .expect("consistent shares");
        let before = net.log.len();
        let (slots, port) = (net.plan.programs[0].slots, net.plan.inputs[0]);
        let of = |component| Span {
            region: slots,
            component,
            first: port.first,
            count: port.width,
        };
        let shares: Vec<Vec<Vec<u8>>> = (net.nodes[..3].iter_mut())
            .map(|node| (0..2).map(|part| node.peek(of(part))).collect())
            .collect();
        net.run_changed(|_| Task::Layers, |command| bare(command, without, ring))
            .expect("honest parties");
        for (i, seen) in all.iter_mut().enumerate() {
            let me = Peer::Party(scheme().parties[i]);
            let to_me = net.log[before..].iter();
            let to_me = to_me.filter(|m| m.to == me && NUMBERS.contains(&m.part));
            let (told, integers): (Vec<_>, Vec<_>) = to_me.partition(|m| m.part == OF_BITS);
            let own = shares[i].iter().flat_map(|bytes| bytes.chunks(rows * size));
            let own: Vec<&[u8]> = own.collect();
            let columns = integers.iter().flat_map(|m| m.bytes.chunks(rows * size));
            let columns: Vec<&[u8]> = columns.collect();
            assert_eq!(columns.len(), 4, "what each party receives in three roles");
            let of_bits: Vec<&[u8]> = told.iter().flat_map(|m| m.bytes.chunks(rows / 8)).collect();
            // The bit on the way, and those of the sum.
            assert_eq!(of_bits.len(), 1 + 3);
            for t in 0..rows {
                let low = own.iter().map(|column| u16::from(column[t * size] & 1));
                let own = low.fold(0, |cell, bit| cell << 1 | bit);
                let low = columns.iter().map(|column| u16::from(column[t * size] & 1));
                seen.joint.push(low.fold(own, |cell, bit| cell << 1 | bit));
                let told = of_bits
                    .iter()
                    .map(|column| u16::from(column[t / 8] >> (t % 8) & 1));
                seen.joint_bits
                    .push(told.fold(own, |cell, bit| cell << 1 | bit));
            }
            seen.integers.extend(integers.iter().flat_map(|m| &m.bytes));
            seen.bits.extend(of_bits.into_iter().flatten());
        }
    }
    all
}

/// Runs `check` on what each party saw of integers that are 0 and of the greatest ones.
fn compare(rings: &[Ring], without: &[DomainTag], check: impl Fn([&Seen; 2], &str)) {
    for &ring in rings {
        let greatest = (1 << (ring.bits() - 1)) - 1;
        let zeros = seen(ring, 0, 0..RUNS, without);
        let others = seen(ring, greatest, RUNS..2 * RUNS, without);
        for (i, (a, b)) in zeros.iter().zip(&others).enumerate() {
            check([a, b], &format!("{ring:?}, party {i}"));
        }
    }
}

#[test]
fn what_a_party_sees_does_not_depend_on_the_integers() {
    compare(&[Ring::Z32, Ring::Z64], &[], |[a, b], what| {
        assert!(alike(&bits(&a.integers), &bits(&b.integers), 2), "{what}");
        assert!(alike(&a.integers, &b.integers, 256), "{what}");
        assert!(alike(&bits(&a.bits), &bits(&b.bits), 2), "{what}: bits");
        assert!(alike(&a.joint, &b.joint, 1 << 10), "{what}: joint");
        assert!(alike(&a.joint_bits, &b.joint_bits, 1 << 10), "{what}: bits");
    });
}

/// The statistics have power: without what two parties draw, the third sees the integers.
#[test]
fn sums_without_masks_are_noticed() {
    compare(&[Ring::Z32], &[DomainTag::truncate3(0)], |[a, b], what| {
        assert!(!alike(&a.joint, &b.joint, 1 << 10), "{what}");
    });
}
