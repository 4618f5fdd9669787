//! What a party receives when bits are lifted does not depend on the bits, given its own shares of them: by statistics over the real rounds. The model of
//! the golden vectors shows it exhaustively over a small ring (`vectors/model/lifts.py`).

use super::{Kind, ROWS, RUNS, SCHEMES, Scheme, alike, and_plan, bits, net};
use crate::common::job::pack;
use std::sync::Arc;
use veil_circuit::{Gate, Wire};
use veil_device::{Command, Lifting, Op, Span};
use veil_job::Adversary;
use veil_math::Ring;
use veil_protocol::{Options, Plan, Task};
use veil_session::Peer;

/// What one party saw over all runs on one input.
#[derive(Default)]
struct Seen {
    /// Bytes of the elements that it received.
    received: Vec<u8>,
    /// MACs of them.
    macs: Vec<u8>,
    /// Per row the low bits of its components of the inputs, and of the elements that it received.
    joint: Vec<u16>,
}

/// Lifts in a row: of three parties, each has every role in one of three; of four, a lift has all roles.
fn lifted(scheme: &Scheme) -> u32 {
    if scheme.count() == 3 { 3 } else { 1 }
}

/// The lowest bits of integers, lifted.
fn plan(scheme: &Scheme, ring: Ring) -> Plan {
    let count = lifted(scheme);
    let mut job = (*and_plan(scheme, ring).job).clone();
    let circuit = &mut job.circuit;
    circuit.inputs.truncate(1);
    circuit.inputs[0].width = count;
    let bits = (0..count).map(|k| Gate::Bit(Wire(k), 0));
    let lifted = (0..count).map(|k| Gate::Lift(Wire(count + k)));
    circuit.gates = bits.chain(lifted).collect();
    circuit.outputs[0].wires = (0..count).map(|k| Wire(2 * count + k)).collect();
    job.blocks[0].holders.truncate(1);
    let options = Options {
        lanes: 1,
        chunk_rows: Some(ROWS),
    };
    Plan::new(Arc::new(job), options).expect("a job that can be planned")
}

/// Takes the mask away from what is shared first.
fn bare(command: &mut Command) {
    if let Op::Lifting(Lifting::Share) = command.op {
        let (src, dst) = (command.src.clone(), vec![command.dst[1]]);
        *command = Command::new(Op::Lift, src, dst);
    }
}

/// Runs the real rounds with `x` as all inputs of every row.
fn seen(
    (scheme, ring): (&'static Scheme, Ring),
    x: u128,
    runs: std::ops::Range<u64>,
    masked: bool,
) -> Vec<Seen> {
    let mut all: Vec<Seen> = scheme.parties.iter().map(|_| Seen::default()).collect();
    let size = ring.bytes(1) as usize;
    let rows = ROWS as usize;
    let kind = *Kind::all().last().expect("there is a device");
    for run in runs {
        let mut net = net(scheme, plan(scheme, ring), run, kind);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        let owner = net.nodes.iter_mut().find(|n| n.me == Peer::Owner(0));
        let owner = owner.expect("the owner takes part");
        let (_, span) = owner.protocol.spans().inputs[0];
        owner.write(span, &pack(ring, &vec![x; rows * lifted(scheme) as usize]));
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
        let parts = scheme.parts.len() as u8;
        let shares: Vec<Vec<Vec<u8>>> = (net.nodes[..scheme.count()].iter_mut())
            .map(|node| (0..parts).map(|part| node.peek(of(part))).collect())
            .collect();
        let change = |command: &mut Command| {
            if !masked {
                bare(command);
            }
        };
        net.run_changed(|_| Task::Layers, change)
            .expect("honest parties");
        for (i, seen) in all.iter_mut().enumerate() {
            let me = Peer::Party(scheme.parties[i]);
            let to_me = net.log[before..].iter().filter(|m| m.to == me);
            let (macs, elements): (Vec<_>, Vec<_>) = to_me.partition(|m| m.bytes.len() == 16);
            seen.macs.extend(macs.iter().flat_map(|m| &m.bytes));
            let columns: Vec<&[u8]> = shares[i]
                .iter()
                .map(Vec::as_slice)
                .chain(elements.iter().map(|m| &m.bytes[..]))
                .flat_map(|bytes| bytes.chunks(rows * size))
                .collect();
            for t in 0..rows {
                let low = columns.iter().map(|column| u16::from(column[t * size] & 1));
                seen.joint.push(low.fold(0, |cell, bit| cell << 1 | bit));
            }
            seen.received.extend(elements.iter().flat_map(|m| &m.bytes));
        }
    }
    all
}

/// Runs `check` on what each party saw of bits that are 0 and of bits that are 1.
fn compare(rings: &[Ring], masked: bool, check: impl Fn(usize, [&Seen; 2], &str)) {
    for scheme in &SCHEMES {
        // Checked parties find that others have drawn the mask.
        if !masked && scheme.adversary == Adversary::Malicious {
            continue;
        }
        for &ring in rings {
            let zeros = seen((scheme, ring), 0, 0..RUNS, masked);
            let ones = seen((scheme, ring), 1, RUNS..2 * RUNS, masked);
            for (i, (a, b)) in zeros.iter().zip(&ones).enumerate() {
                let what = format!(
                    "{:?}, {} parties, {ring:?}, party {i}",
                    scheme.adversary,
                    scheme.count()
                );
                check(i, [a, b], &what);
            }
        }
    }
}

/// Cells of the joint histogram.
fn cells(seen: &Seen) -> usize {
    let most = seen.joint.iter().max().expect("there are rows");
    (usize::from(*most) + 1).next_power_of_two()
}

#[test]
fn what_a_party_sees_does_not_depend_on_the_bits() {
    compare(&[Ring::Z32, Ring::Z64], true, |_, [a, b], what| {
        // Every party receives something.
        assert!(alike(&bits(&a.received), &bits(&b.received), 2), "{what}");
        assert!(alike(&a.received, &b.received, 256), "{what}");
        assert!(alike(&a.joint, &b.joint, cells(a)), "{what}");
        if !a.macs.is_empty() {
            assert!(alike(&bits(&a.macs), &bits(&b.macs), 2), "{what}: codes");
        }
    });
}

/// The statistics have power: a party that receives what is shared first without its mask tells bits apart.
#[test]
fn unmasked_lifts_are_noticed() {
    compare(&[Ring::Z32], false, |party, [a, b], what| {
        let receives = what.contains("3 parties") || party % 2 == 1;
        assert_eq!(alike(&a.joint, &b.joint, cells(a)), !receives, "{what}");
    });
}
