//! What one party sees does not depend on what it must not learn: exhaustively for one product, and by statistics over the real rounds.

mod authenticated;
mod exhaustive;
mod garbled;
mod lifts;
mod masked;
mod proof;
mod truncations;

use std::sync::Arc;

use crate::common::job::pack;
use crate::common::{Keyring, Kind, Net, Node};
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Command, Cross, Form, Op, Span};
use veil_job::{Adversary, Audience, Block, Holder, JobSpec, Security};
use veil_math::Ring;
use veil_protocol::{Options, Plan, Task};
use veil_prss::{DomainTag, Prf};
use veil_session::{PartyId, Peer, Secret};

/// Who holds what.
struct Scheme {
    parties: &'static [PartyId],
    adversary: Adversary,
    /// Part k of party i is component i + parts\[k\].
    parts: &'static [usize],
    /// The party to which an outside owner sends nothing but seeds.
    seeded: usize,
}

static SCHEMES: [Scheme; 3] = [
    Scheme {
        parties: &PartyId::THREE,
        adversary: Adversary::SemiHonest,
        parts: &[0, 2],
        seeded: 1,
    },
    Scheme {
        parties: &PartyId::FOUR,
        adversary: Adversary::SemiHonest,
        parts: &[1, 2, 3],
        seeded: 3,
    },
    Scheme {
        parties: &PartyId::FOUR,
        adversary: Adversary::Malicious,
        parts: &[1, 2, 3],
        seeded: 3,
    },
];

impl Scheme {
    fn count(&self) -> usize {
        self.parties.len()
    }

    fn component(&self, party: usize, part: u8) -> usize {
        (party + self.parts[usize::from(part)]) % self.count()
    }

    fn parts_of(&self, party: usize) -> impl Iterator<Item = usize> {
        self.parts.iter().map(move |by| (party + by) % self.count())
    }
}

/// Rows of a run: with 32 runs, 32 768 elements per party and input.
const ROWS: u32 = 1024;
const RUNS: u64 = 32;

/// What one party saw over all runs on one input.
#[derive(Default)]
struct Seen {
    /// Bytes of the messages of products that it received.
    received: Vec<u8>,
    /// MACs of them that others sent.
    macs: Vec<u8>,
    /// Bytes that it received from the owner.
    inputs: Vec<u8>,
    /// Per row the low bits of its components of `x` and of `y`, and of what it received of the product.
    joint: Vec<u8>,
}

fn and_plan(scheme: &Scheme, ring: Ring) -> Plan {
    let security = Security::among(scheme.count()).against(scheme.adversary);
    let holders = [Holder::Owner(0); 2];
    and_job((ring, security), holders, Audience::Recipient(0))
}

/// x y of every row.
fn and_job((ring, security): (Ring, Security), holders: [Holder; 2], audience: Audience) -> Plan {
    let parties = security.protocol.parties();
    let port = |name: &str| InputPort {
        name: name.into(),
        width: 1,
        per: Per::Row,
        bits: false,
    };
    let circuit = Circuit {
        ring,
        inputs: vec![port("x"), port("y")],
        gates: vec![Gate::Mul(Wire(0), Wire(1))],
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: vec![Wire(2)],
            reduce: Reduce::None,
        }],
        clock: veil_circuit::Clock::default(),
    };
    let job = JobSpec {
        name: "view".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: (0..parties).map(|p| format!("p{p}")).collect(),
        recipients: vec!["eve".into()],
        security,
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: ROWS.into(),
            holders: holders.into(),
            stored: None,
            order: veil_job::Order::Unsaid,
        }],
        audiences: vec![audience],
        opened: vec!["z".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    };
    Plan::new(
        Arc::new(job),
        Options {
            lanes: 1,
            chunk_rows: Some(ROWS),
        },
    )
    .expect("a job that can be planned")
}

/// Keys that follow from a number.
struct Seeded(u64);

impl Seeded {
    fn key(&self, use_of: u16, index: usize) -> [u8; 16] {
        let prf = Prf::new(&Secret::new([0xa5; 16]));
        prf.block(DomainTag(use_of), 0, self.0, index as u32)
    }
}

impl Keyring for Seeded {
    fn pair(&self, a: PartyId, b: PartyId) -> [u8; 16] {
        self.key(0, 4 * a.min(b).index() + a.max(b).index())
    }

    fn dealt(&self, by: Peer, index: u8) -> [u8; 16] {
        let by = u16::from_le_bytes(by.to_bytes()[1..3].try_into().expect("two bytes"));
        self.key(1 + by, index.into())
    }
}

fn net(scheme: &'static Scheme, plan: Plan, seed: u64, kind: Kind) -> Net {
    let keys = Arc::new(Seeded(seed));
    Net::of(plan, scheme.parties, keys, kind)
}

/// Takes the masks away from products.
fn bare(command: &mut Command) {
    let Op::Product(form) = command.op else {
        return;
    };
    let cross = |cross: &Cross| Cross {
        masks: &[],
        ..*cross
    };
    let crosses: Vec<Cross> = form.crosses.iter().map(cross).collect();
    command.op = Op::Product(Box::leak(Box::new(Form {
        crosses: crosses.leak(),
        keeps: &[],
        ..*form
    })));
    command.calls.clear();
}

/// Runs the real rounds under the keys of `runs`, with `x` and `y` in every row, on the fastest device.
fn seen(
    (scheme, ring): (&'static Scheme, Ring),
    [x, y]: [u128; 2],
    runs: std::ops::Range<u64>,
    masked: bool,
) -> Vec<Seen> {
    let mut all: Vec<Seen> = scheme.parties.iter().map(|_| Seen::default()).collect();
    let low = |bytes: &[u8], t: usize| match ring {
        Ring::Bits => bytes[t / 8] >> (t % 8) & 1,
        Ring::Z32 | Ring::Z64 | Ring::Z128 => bytes[t * ring.bytes(1) as usize] & 1,
    };
    let kind = *Kind::all().last().expect("there is a device");
    for run in runs {
        let mut net = net(scheme, and_plan(scheme, ring), run, kind);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        let is_owner = |n: &&mut Node| n.me == Peer::Owner(0);
        let owner = net.nodes.iter_mut().find(is_owner);
        let owner = owner.expect("the owner takes part");
        let spans = owner.protocol.spans().inputs.clone();
        for ((_, span), value) in spans.into_iter().zip([x, y]) {
            owner.write(span, &pack(ring, &[value; ROWS as usize]));
        }
        net.run(|_| Task::Inputs { block: 0 })
            .expect("consistent shares");
        let sent_before = net.log.len();
        let slots = net.plan.programs[0].slots;
        let ports = net.plan.inputs.clone();
        let parts = 0..scheme.parts.len() as u8;
        let operands: Vec<Span> = ports
            .iter()
            .flat_map(|port| {
                parts.clone().map(|part| Span {
                    region: slots,
                    component: part,
                    first: port.first,
                    count: port.width,
                })
            })
            .collect();
        let peek = |node: &mut Node| operands.iter().map(|of| node.peek(*of)).collect();
        let shares: Vec<Vec<Vec<u8>>> = net.nodes[..scheme.count()].iter_mut().map(peek).collect();
        let change = |command: &mut Command| {
            if !masked {
                bare(command);
            }
        };
        net.run_changed(|_| Task::Layers, change)
            .expect("honest parties");
        for (i, seen) in all.iter_mut().enumerate() {
            let me = Peer::Party(scheme.parties[i]);
            let from_owner = net.log[..sent_before]
                .iter()
                .filter(|m| m.to == me && m.from == Peer::Owner(0));
            seen.inputs.extend(from_owner.flat_map(|m| &m.bytes));
            let to_me = net.log[sent_before..].iter().filter(|m| m.to == me);
            let (macs, products): (Vec<_>, Vec<_>) = to_me.partition(|m| m.bytes.len() == 16);
            seen.macs.extend(macs.iter().flat_map(|m| &m.bytes));
            let received: Vec<Vec<u8>> = products.iter().map(|m| m.bytes.clone()).collect();
            for t in 0..ROWS as usize {
                let bits = shares[i].iter().chain(&received);
                seen.joint
                    .push(bits.fold(0, |cell, column| cell << 1 | low(column, t)));
            }
            seen.received.extend(received.concat());
        }
    }
    all
}

/// z of a one-sided p-value of 10^-5. Keys are fixed, so these tests pass always or never; with 145 comparisons the chance that honest
/// code would have been unlucky with its keys was less than 2 · 10^-3.
const Z: f64 = 4.2649;

/// The quantile of χ² with `freedom` degrees of freedom at `Z`, by Wilson and Hilferty (1931).
fn quantile(freedom: f64) -> f64 {
    let h = 2.0 / (9.0 * freedom);
    freedom * (1.0 - h + Z * h.sqrt()).powi(3)
}

/// Two-sample χ²: whether both samples may come from one distribution over the numbers below `cells`.
fn alike<T: Copy + Into<usize>>(a: &[T], b: &[T], cells: usize) -> bool {
    assert_eq!(a.len(), b.len(), "what is sent depends on the values");
    assert!(
        a.len() >= 16 * cells,
        "too few values for the approximation"
    );
    let count = |sample: &[T]| {
        let mut counts = vec![0.0f64; cells];
        for v in sample {
            counts[(*v).into()] += 1.0;
        }
        counts
    };
    let (a, b) = (count(a), count(b));
    let found: Vec<(f64, f64)> = a.into_iter().zip(b).filter(|(a, b)| a + b > 0.0).collect();
    let statistic: f64 = found.iter().map(|(a, b)| (a - b).powi(2) / (a + b)).sum();
    statistic < quantile(found.len() as f64 - 1.0)
}

/// The bits of `bytes`.
fn bits(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .flat_map(|b| (0..8).map(move |k| b >> k & 1))
        .collect()
}

/// Inputs, the same in every row, that differ most: all bits of the operands, and of their product.
fn two_inputs(ring: Ring) -> [[u128; 2]; 2] {
    [[0, 0], [ring.reduce(u128::MAX), 1]]
}

/// Runs `check` on what each party saw on both inputs, of every protocol over every ring.
fn compare(masked: bool, check: impl Fn(&Scheme, usize, [&Seen; 2], &str)) {
    for scheme in &SCHEMES {
        for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
            let [zero, ones] = two_inputs(ring);
            let zero = seen((scheme, ring), zero, 0..RUNS, masked);
            let ones = seen((scheme, ring), ones, RUNS..2 * RUNS, masked);
            for (i, (a, b)) in zero.iter().zip(&ones).enumerate() {
                let what = format!(
                    "{:?}, {} parties, {ring:?}, party {i}",
                    scheme.adversary,
                    scheme.count()
                );
                check(scheme, i, [a, b], &what);
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
fn what_a_party_sees_does_not_depend_on_the_inputs() {
    compare(true, |scheme, i, [a, b], what| {
        let check = |a: &[u8], b: &[u8], of: &str| {
            assert!(alike(&bits(a), &bits(b), 2), "{what}: bits of {of}");
            if a.len() >= 16 * 256 {
                assert!(alike(a, b, 256), "{what}: bytes of {of}");
            }
        };
        check(&a.received, &b.received, "products");
        let joint = alike(&a.joint, &b.joint, cells(a));
        assert!(joint, "{what}: products together with own shares");
        assert_eq!(
            a.macs.is_empty(),
            scheme.adversary == Adversary::SemiHonest,
            "{what}"
        );
        if !a.macs.is_empty() {
            check(&a.macs, &b.macs, "codes");
        }
        assert_eq!(a.inputs.is_empty(), i == scheme.seeded, "{what}");
        if i != scheme.seeded {
            check(&a.inputs, &b.inputs, "inputs");
        }
    });
}

/// The statistics have power: when products are not masked, every party's view tells the inputs apart.
#[test]
fn unmasked_products_are_noticed() {
    compare(false, |_, _, [a, b], what| {
        assert!(!alike(&a.joint, &b.joint, cells(a)), "{what}");
    });
}

/// Three rows fill a byte together with five that do not exist, in which the device computes along on the value that all rows use. What
/// is sent to open the rows must not have them (attack case G3).
#[test]
fn rows_that_do_not_exist_are_not_opened() {
    for scheme in &SCHEMES {
        let mut job = (*and_plan(scheme, Ring::Bits).job).clone();
        job.circuit.inputs[1].per = Per::Job;
        job.blocks[0].rows = 3;
        let plan = Plan::new(Arc::new(job), Options::default()).expect("a job that can be planned");
        for kind in Kind::all() {
            for secret in [0, 1] {
                let mut net = net(scheme, plan.clone(), 9, kind);
                let rows = (0..3).map(|t| vec![vec![t % 2], vec![secret]]).collect();
                net.job(&vec![rows]).expect("honest participants");
                // Values have even parts, their digests odd ones.
                let opened = net
                    .log
                    .iter()
                    .filter(|m| matches!(m.task, Task::Open(_)) && m.part.is_multiple_of(2));
                let bytes: Vec<u8> = opened.flat_map(|m| m.bytes.clone()).collect();
                assert_eq!(bytes.len(), scheme.count(), "each component once");
                assert!(
                    bytes.iter().all(|b| b & 0b1111_1000 == 0),
                    "{kind:?} sent {bytes:?}"
                );
            }
        }
    }
}
