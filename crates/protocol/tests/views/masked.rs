//! Values that are opened behind masks, and what each party gets of them, do not depend on what is masked.

use veil_circuit::{Builder, generate};
use veil_protocol::is_masked;

use super::*;

/// What is opened of one input.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Opens {
    /// A truncation.
    Truncation,
    /// A word of bits.
    Word,
}

fn plan(scheme: &Scheme, ring: Ring, opens: Opens) -> Plan {
    let mut b = Builder::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let z = match opens {
        Opens::Truncation => b.truncate_pr(x, 3, 8),
        Opens::Word => {
            let bits: Vec<Wire> = (0..8).map(|j| b.bit(x, j)).collect();
            generate::compose(&mut b, &bits, false)
        }
    };
    b.output("z", &[z]);
    let mut job = (*and_plan(scheme, ring).job).clone();
    job.circuit = b.finish().expect("a valid circuit");
    job.blocks[0].holders.truncate(1);
    let options = Options {
        lanes: 1,
        chunk_rows: Some(ROWS),
    };
    Plan::new(Arc::new(job), options).expect("a job that can be planned")
}

/// What one party saw over all runs on one input.
#[derive(Default)]
struct Got {
    /// Bytes of the component that it was sent.
    component: Vec<u8>,
    /// The low byte of what was opened, of the bits of it that are the masked value's; and its highest bit.
    opened: Vec<u8>,
    top: Vec<u8>,
    /// The lowest of these bits, with those of the party's components of x.
    joint: Vec<u8>,
}

/// The elements of an opened component: bits of words are in messages of their own columns.
fn values(ring: Ring, opens: Opens, bytes: &[u8]) -> Vec<u128> {
    match opens {
        Opens::Truncation => crate::common::vectors::elements(ring, bytes),
        Opens::Word => {
            let mut all = vec![0u128; ROWS as usize];
            for (j, column) in bytes.chunks(ROWS as usize / 8).enumerate() {
                for (t, value) in all.iter_mut().enumerate() {
                    *value |= u128::from(column[t / 8] >> (t % 8) & 1) << j;
                }
            }
            all
        }
    }
}

/// What happens to a run.
#[derive(Clone, Copy, PartialEq)]
enum Under {
    /// Nothing.
    Honest,
    /// All masks are zero.
    NoMasks,
    /// Party 1 of three adds something to every product that it sends, and vouches for what comes of it.
    Errors,
}

fn got(
    (scheme, ring, opens): (&'static Scheme, Ring, Opens),
    x: u128,
    runs: std::ops::Range<u64>,
    under: Under,
) -> Vec<Got> {
    let mut all: Vec<Got> = scheme.parties.iter().map(|_| Got::default()).collect();
    let kind = *Kind::all().last().expect("there is a device");
    for run in runs {
        let mut net = net(scheme, plan(scheme, ring, opens), run, kind);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        let is_owner = |n: &&mut Node| n.me == Peer::Owner(0);
        let owner = net.nodes.iter_mut().find(is_owner);
        let owner = owner.expect("the owner takes part");
        let (_, span) = owner.protocol.spans().inputs[0];
        owner.write(span, &pack(ring, &[x; ROWS as usize]));
        net.run(|_| Task::Inputs { block: 0 })
            .expect("consistent shares");
        let shares: Vec<Vec<Vec<u128>>> = (net.nodes[..scheme.count()].iter_mut())
            .map(|node| {
                let parts = 0..scheme.parts.len() as u8;
                let shares = parts.map(|part| Span {
                    region: 0,
                    component: part,
                    first: 0,
                    count: 1,
                });
                let columns = shares.map(|span| node.peek(span));
                columns
                    .map(|c| crate::common::vectors::elements(ring, &c))
                    .collect()
            })
            .collect();
        let before = net.log.len();
        if under == Under::Errors {
            let byzantine = Peer::Party(scheme.parties[1]);
            net.tap = Box::new(move |m| {
                if m.from == byzantine && m.task == Task::Layers && !is_masked(m.part) {
                    // Another error in every layer, and in every row.
                    let mut byte = 0x6b ^ m.place as u8;
                    for sent in &mut m.bytes {
                        *sent ^= byte;
                        byte = byte.rotate_left(1) ^ 0x1d;
                    }
                }
            });
        }
        let change = |command: &mut Command| {
            // Masks of zero: whatever is drawn for a random value is nothing. What lifts draw has another use, at all who draw it.
            let random = [DomainTag::RAND3, DomainTag::RAND4];
            let drawn = command.calls.first().map(|call| call.tag);
            let is_mask = drawn.is_some_and(|tag| random.contains(&tag));
            if under == Under::NoMasks && command.op == Op::Random && is_mask {
                command.op = Op::Combine { ring, minus: 0 };
                command.calls.clear();
            }
            if under == Under::Errors && command.op == Op::CheckEqual {
                command.src[1] = command.src[0];
            }
        };
        net.run_changed(|_| Task::Layers, change)
            .expect("honest parties");
        let log = net.log[before..].iter();
        let sent: Vec<_> = log
            .filter(|m| is_masked(m.part) && m.bytes.len() != 32)
            .collect();
        // Each component is sent in clear once.
        assert_eq!(sent.len(), scheme.count());
        let mut opened = vec![0u128; ROWS as usize];
        for message in &sent {
            for (sum, c) in opened.iter_mut().zip(values(ring, opens, &message.bytes)) {
                *sum = match opens {
                    Opens::Truncation => ring.add(*sum, c),
                    Opens::Word => *sum ^ c,
                };
            }
        }
        // A truncation of 8 bits has them below the highest.
        let low = match opens {
            Opens::Truncation => ring.bits() - 9,
            Opens::Word => 0,
        };
        for (i, got) in all.iter_mut().enumerate() {
            let me = Peer::Party(scheme.parties[i]);
            let mine = sent.iter().find(|m| m.to == me).expect("one is sent to it");
            got.component.extend(&mine.bytes);
            for (t, c) in opened.iter().enumerate() {
                got.opened.push((c >> low) as u8);
                got.top.push((c >> (ring.bits() - 1)) as u8 & 1);
                let own = shares[i].iter().map(|column| column[t] as u8 & 1);
                let bit = (c >> low) as u8 & 1;
                got.joint.push(own.fold(bit, |cell, bit| cell << 1 | bit));
            }
        }
    }
    all
}

fn compare(under: Under, check: impl Fn([&Got; 2], &str)) {
    // Among four, two honest parties would hold different shares.
    let additive = |scheme: &&Scheme| scheme.count() == 3;
    for scheme in (SCHEMES.iter()).filter(|s| under != Under::Errors || additive(s)) {
        for ring in [Ring::Z64, Ring::Z128] {
            for opens in [Opens::Truncation, Opens::Word] {
                // Three parties truncate without an opening (`truncations`).
                if opens == Opens::Truncation && scheme.count() == 3 {
                    continue;
                }
                let of = (scheme, ring, opens);
                let zero = got(of, 0, 0..16, under);
                let ones = got(of, 0xff, 16..32, under);
                for (i, (a, b)) in zero.iter().zip(&ones).enumerate() {
                    let count = scheme.count();
                    check([a, b], &format!("{opens:?}, {count}, {ring:?}, party {i}"));
                }
            }
        }
    }
}

fn hidden(under: Under) {
    compare(under, |[a, b], what| {
        assert!(alike(&a.opened, &b.opened, 256), "{what}: opened");
        assert!(alike(&a.top, &b.top, 2), "{what}: highest bit");
        assert!(alike(&a.joint, &b.joint, 16), "{what}: with own shares");
        assert!(alike(&bits(&a.component), &bits(&b.component), 2), "{what}");
        // And it is uniform: as from a sample that is.
        let uniform: Vec<u8> = (0..a.opened.len()).map(|k| k as u8).collect();
        for opened in [&a.opened, &b.opened] {
            assert!(alike(opened, &uniform, 256), "{what}: uniform");
        }
    });
}

#[test]
#[ignore = "tier long: seconds of one processor"]
fn what_is_opened_behind_masks_does_not_depend_on_the_inputs() {
    hidden(Under::Honest);
}

/// Not even if a party has added errors to the products before: those of the adder that a word and its mask go through are among them.
#[test]
fn errors_in_products_do_not_unmask_what_is_opened() {
    hidden(Under::Errors);
}

/// The statistics have power: without a mask, what is opened tells the inputs apart.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn openings_without_masks_are_noticed() {
    compare(Under::NoMasks, |[a, b], what| {
        assert!(!alike(&a.opened, &b.opened, 256), "{what}");
    });
}
