//! What one party sees does not depend on what it must not learn: exhaustively for one product, and by statistics over the real rounds.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::job::pack;
use common::{Keys, Kind, Net};
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Form, Span};
use veil_math::Ring;
use veil_program::{Audience, Block, Holder, Lowered};
use veil_protocol::rep3::{OWN, PREVIOUS};
use veil_protocol::{Options, Plan, Protocol, Task};
use veil_session::{PartyId, Peer};

/// How often a party sees what it sees of a product: ring elements, as digits of one number.
type Histogram = BTreeMap<u64, u32>;

/// One product `x · y` modulo `modulus`, in which everything that is drawn takes every value once: the components `u_0`, `u_1` and
/// `w_0`, `w_1` of the operands, and `ρ_0`, `ρ_1`, `ρ_2` of the masks.
struct Exhaustive {
    form: &'static Form,
    modulus: u64,
    masked: bool,
}

impl Exhaustive {
    /// The views of each party on inputs `x` and `y`; with the opening of the product to all, if `opened`.
    fn views(&self, [x, y]: [u64; 2], opened: bool) -> [Histogram; 3] {
        let m = self.modulus;
        let mut histograms = [const { Histogram::new() }; 3];
        for choice in 0..m.pow(7) {
            let drawn: [u64; 7] = std::array::from_fn(|k| choice / m.pow(k as u32) % m);
            let [u0, u1, w0, w1, rho @ ..] = drawn;
            let u = [u0, u1, (x + 2 * m - u0 - u1) % m];
            let w = [w0, w1, (y + 2 * m - w0 - w1) % m];
            let r: [u64; 3] = std::array::from_fn(|i| {
                let previous = (i + 2) % 3;
                let (a, b) = ([u[i], u[previous]], [w[i], w[previous]]);
                let terms = self.form.crosses[0].terms.iter();
                let product: u64 = terms.map(|(p, q)| a[*p as usize] * b[*q as usize]).sum();
                let mask = if self.masked {
                    rho[i] + m - rho[previous]
                } else {
                    0
                };
                (product + mask) % m
            });
            assert_eq!(
                r.iter().sum::<u64>() % m,
                x * y % m,
                "the form is not a product"
            );
            for (i, histogram) in histograms.iter_mut().enumerate() {
                let previous = (i + 2) % 3;
                let opening = if opened { r[(i + 1) % 3] } else { 0 };
                let view = [
                    u[i],
                    u[previous],
                    w[i],
                    w[previous],
                    rho[i],
                    rho[previous],
                    r[previous],
                    opening,
                ];
                *histogram
                    .entry(view.iter().fold(0, |number, digit| number * m + digit))
                    .or_default() += 1;
            }
        }
        histograms
    }

    fn all(&self, opened: bool) -> Vec<([u64; 2], [Histogram; 3])> {
        let inputs = (0..self.modulus).flat_map(|x| (0..self.modulus).map(move |y| [x, y]));
        inputs
            .map(|input| (input, self.views(input, opened)))
            .collect()
    }
}

/// Bits as they are; the forms of the rings modulo 4, where they are the same polynomials.
const MASKED: [Exhaustive; 3] = [
    Exhaustive {
        form: Form::replicated(Ring::Bits),
        modulus: 2,
        masked: true,
    },
    Exhaustive {
        form: Form::replicated(Ring::Z64),
        modulus: 4,
        masked: true,
    },
    Exhaustive {
        form: Form::replicated(Ring::Z128),
        modulus: 4,
        masked: true,
    },
];

#[test]
fn a_product_shows_a_party_nothing() {
    for product in &MASKED {
        let all = product.all(false);
        for (input, views) in &all {
            assert!(
                views == &all[0].1,
                "{:?}: views on {input:?} differ",
                product.form.ring
            );
        }
    }
}

#[test]
fn an_opened_product_shows_a_party_the_product_only() {
    for product in &MASKED {
        let all = product.all(true);
        for (a, seen) in &all {
            for (b, other) in &all {
                let same = a[0] * a[1] % product.modulus == b[0] * b[1] % product.modulus;
                for i in 0..3 {
                    assert_eq!(
                        seen[i] == other[i],
                        same,
                        "{:?}, party {i}: {a:?} and {b:?}",
                        product.form.ring
                    );
                }
            }
        }
    }
}

/// The test can fail: without masks, what a party receives depends on the inputs.
#[test]
fn an_unmasked_product_shows_every_party_something() {
    for form in [Ring::Bits, Ring::Z64, Ring::Z128].map(Form::replicated) {
        let product = Exhaustive {
            form,
            modulus: 2,
            masked: false,
        };
        let (zero, one) = (product.views([0, 0], false), product.views([1, 1], false));
        for i in 0..3 {
            assert_ne!(zero[i], one[i], "{:?}, party {i}", form.ring);
        }
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
    /// Bytes that it received from the owner: none at party 1.
    inputs: Vec<u8>,
    /// Per row the low bits of its two components of `x` and of `y`, and of what it received of the product: a number below 32.
    joint: Vec<u8>,
}

fn and_plan(ring: Ring) -> Plan {
    let port = |name: &str| InputPort {
        name: name.into(),
        width: 1,
        per: Per::Row,
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
    };
    let job = Lowered {
        name: "view".into(),
        schema: String::new(),
        owners: vec!["ann".into()],
        parties: ["p0", "p1", "p2"].map(String::from).into(),
        recipients: vec!["eve".into()],
        security: veil_program::Security::among(3),
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: ROWS.into(),
            holders: vec![Holder::Owner(0); 2],
            stored: None,
            aligned: None,
        }],
        audiences: vec![Audience::Recipient(0)],
        opened: vec!["z".into()],
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

/// The keys of run `run`; equal pair keys cancel every mask of a product.
fn keys(run: u64, masked: bool) -> Keys {
    let keys = Keys::from_seed(run, 1);
    if masked {
        keys
    } else {
        Keys {
            pairs: [keys.pairs[0]; 3],
            ..keys
        }
    }
}

/// Runs the real rounds under the keys of `runs`, with `x` and `y` in every row, on the fastest device.
fn seen(ring: Ring, [x, y]: [u128; 2], runs: std::ops::Range<u64>, masked: bool) -> [Seen; 3] {
    let mut all: [Seen; 3] = Default::default();
    let low = |bytes: &[u8], t: usize| match ring {
        Ring::Bits => bytes[t / 8] >> (t % 8) & 1,
        Ring::Z64 | Ring::Z128 => bytes[t * ring.bytes(1) as usize] & 1,
    };
    for run in runs {
        let mut net = Net::new(and_plan(ring), &keys(run, masked), Kind::all()[1]);
        net.open(net.plan.chunk(0).expect("a chunk").frame);
        let owner = net
            .nodes
            .iter_mut()
            .find(|n| n.me == Peer::Owner(0))
            .expect("the owner takes part");
        let spans = owner.protocol.spans().inputs.clone();
        for ((_, span), value) in spans.into_iter().zip([x, y]) {
            owner.write(span, &pack(ring, &[value; ROWS as usize]));
        }
        net.run(|_| Task::Inputs { block: 0 })
            .expect("consistent shares");
        let sent_before = net.log.len();
        let slots = net.plan.programs[0].slots;
        let shares: Vec<[Vec<u8>; 4]> = (0..3)
            .map(|i| {
                let ports = net.plan.inputs.clone();
                let operands = [(0, OWN), (0, PREVIOUS), (1, OWN), (1, PREVIOUS)];
                operands.map(|(port, part)| {
                    let port = ports[port];
                    net.nodes[i].peek(Span {
                        region: slots,
                        part,
                        first: port.first,
                        count: port.width,
                    })
                })
            })
            .collect();
        net.run(|_| Task::Layers)
            .expect("there is no check in layers");
        for (i, seen) in all.iter_mut().enumerate() {
            let me = Peer::Party(PartyId::THREE[i]);
            let from_owner = net.log[..sent_before]
                .iter()
                .filter(|m| m.to == me && m.from == Peer::Owner(0));
            seen.inputs.extend(from_owner.flat_map(|m| &m.bytes));
            let received: Vec<u8> = net.log[sent_before..]
                .iter()
                .filter(|m| m.to == me)
                .flat_map(|m| m.bytes.clone())
                .collect();
            for t in 0..ROWS as usize {
                let bits = shares[i].iter().chain([&received]);
                seen.joint
                    .push(bits.fold(0, |cell, column| cell << 1 | low(column, t)));
            }
            seen.received.extend(received);
        }
    }
    all
}

/// z of a one-sided p-value of 10^-5. Keys are fixed, so these tests pass always or never; with 39 comparisons the chance that honest
/// code would have been unlucky with its keys was less than 4 · 10^-4.
const Z: f64 = 4.2649;

/// The quantile of χ² with `freedom` degrees of freedom at `Z`, by Wilson and Hilferty (1931).
fn quantile(freedom: f64) -> f64 {
    let h = 2.0 / (9.0 * freedom);
    freedom * (1.0 - h + Z * h.sqrt()).powi(3)
}

/// Two-sample χ²: whether both samples may come from one distribution over the numbers below `cells`.
fn alike(a: &[u8], b: &[u8], cells: usize) -> bool {
    assert_eq!(a.len(), b.len(), "what is sent depends on the values");
    assert!(
        a.len() >= 16 * cells,
        "too few values for the approximation"
    );
    let count = |sample: &[u8]| {
        let mut counts = vec![0.0f64; cells];
        for v in sample {
            counts[*v as usize] += 1.0;
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

#[test]
fn what_a_party_sees_does_not_depend_on_the_inputs() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let [zero, ones] = two_inputs(ring);
        let (zero, ones) = (
            seen(ring, zero, 0..RUNS, true),
            seen(ring, ones, RUNS..2 * RUNS, true),
        );
        for (i, (a, b)) in zero.iter().zip(&ones).enumerate() {
            assert!(
                alike(&bits(&a.received), &bits(&b.received), 2),
                "{ring:?}, party {i}: bits of products"
            );
            assert!(
                alike(&a.received, &b.received, 256),
                "{ring:?}, party {i}: bytes of products"
            );
            assert!(
                alike(&a.joint, &b.joint, 32),
                "{ring:?}, party {i}: products together with own shares"
            );
            assert_eq!(
                a.inputs.is_empty(),
                i == 1,
                "the owner sends to parties 2 and 0"
            );
            if i != 1 {
                assert!(
                    alike(&bits(&a.inputs), &bits(&b.inputs), 2),
                    "{ring:?}, party {i}: bits of inputs"
                );
                assert!(
                    alike(&a.inputs, &b.inputs, 256),
                    "{ring:?}, party {i}: bytes of inputs"
                );
            }
        }
    }
}

/// The statistics have power: when equal keys cancel the masks, every party's view tells the inputs apart.
#[test]
fn unmasked_products_are_noticed() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        let [zero, ones] = two_inputs(ring);
        let (zero, ones) = (
            seen(ring, zero, 0..RUNS, false),
            seen(ring, ones, RUNS..2 * RUNS, false),
        );
        for (i, (a, b)) in zero.iter().zip(&ones).enumerate() {
            assert!(!alike(&a.joint, &b.joint, 32), "{ring:?}, party {i}");
        }
    }
}

/// Three rows fill a byte together with five that do not exist, in which the device computes along on the value that all rows use. What
/// is sent to open the rows must not have them (attack case G3).
#[test]
fn rows_that_do_not_exist_are_not_opened() {
    let mut job = (*and_plan(Ring::Bits).job).clone();
    job.circuit.inputs[1].per = Per::Job;
    job.blocks[0].rows = 3;
    let plan = Plan::new(Arc::new(job), Options::default()).expect("a job that can be planned");
    for kind in Kind::all() {
        for secret in [0, 1] {
            let mut net = Net::new(plan.clone(), &Keys::from_seed(9, 1), kind);
            let rows = (0..3).map(|t| vec![vec![t % 2], vec![secret]]).collect();
            net.job(&vec![rows]).expect("honest participants");
            // Values have even parts, their digests odd ones.
            let opened = net
                .log
                .iter()
                .filter(|m| matches!(m.task, Task::Open(_)) && m.part.is_multiple_of(2));
            let bytes: Vec<u8> = opened.flat_map(|m| m.bytes.clone()).collect();
            assert_eq!(bytes.len(), 3, "each component once");
            assert!(
                bytes.iter().all(|b| b & 0b1111_1000 == 0),
                "{kind:?} sent {bytes:?}"
            );
        }
    }
}
