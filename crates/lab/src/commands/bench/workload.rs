//! What is measured: a job, and how many operations it is.

use std::sync::Arc;

use veil_circuit::{Builder, Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire, generate};
use veil_job::{Audience, Block, Holder, JobSpec, ProtocolKind, Security};
use veil_math::Ring;
use veil_protocol::{Options, Plan};
use veil_session::PartyId;

use super::figure;

/// Products of a layer in every row, of rings.
pub(super) const WIDTH: u32 = 16;

/// Names of benches, as they are written on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Name {
    /// ANDs of shared bits.
    And,
    /// Products in Z_2^64.
    Mul64,
    /// Products in Z_2^128.
    Mul128,
    /// AES-128 blocks under a shared, expanded key: 5120 ANDs each.
    Aes,
    /// ANDs of AES-128 between two parties, garbled: 5120 in each row
    Yao,
    /// The same against a malicious party, by authenticated garbling, with all that is made before gates
    Ag,
    /// Products in Z_2^128 among four parties against the size of a batch: what fills a network
    Rep4Mul,
    /// ANDs of AES-128 garbled and evaluated by a device, without a link
    Garble,
    /// One block of AES-128 with its key schedule between two parties of whom one cheats, by cut-and-choose
    Cut,
    /// Integers in Z_2^64 to their bits.
    A2b,
    /// Bits to integers in Z_2^64.
    B2a,
    /// Bits of words to integers in Z_2^64, 64 by one opened, masked sum.
    Word,
    /// Shared bits to integers in Z_2^32, and nothing else: the bits are drawn, and of the integers one sum is put out.
    Lift,
    /// The same in Z_2^64.
    Lift64,
}

/// Streams of AES blocks of a product, a bit of a block each, over all parties: of three each makes two streams of masks; of four, three make that
/// of each of the six joint messages; of two, one hashes the four labels of a gate, and the other two of them, a block each.
pub(super) fn streams(sharing: ProtocolKind) -> f64 {
    match sharing {
        ProtocolKind::Rep3 => 3.0 * 2.0,
        ProtocolKind::Rep4 => 6.0 * 3.0,
        ProtocolKind::Yao => (4.0 + 2.0) * 128.0,
    }
}

/// A job to measure.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) job: Arc<JobSpec>,
    /// Operations per row.
    pub(crate) ops: u64,
    /// AES blocks of masks per operation, over all parties.
    pub(crate) blocks_per_op: f64,
    /// The part of them that transfers of the extension take, which silent ones take the place of.
    pub(crate) blocks_of_transfers: f64,
}

impl Name {
    /// Rows that are measured if nothing else is said.
    pub(crate) fn batch(self) -> u64 {
        match self {
            Name::And | Name::Aes | Name::B2a | Name::Word => 100_000,
            Name::A2b => 1_000_000,
            Name::Lift | Name::Lift64 => 500_000,
            Name::Yao | Name::Garble => 4000,
            Name::Ag => 256,
            Name::Mul64 => 20_000,
            Name::Mul128 => 10_000,
            Name::Cut => 1,
            Name::Rep4Mul => figure::LARGEST / u64::from(WIDTH),
        }
    }

    /// The job on `rows` rows. Party 0 supplies the values, and party 1 gets the results and supplies some of two, so that only the parties
    /// take part in what is measured.
    pub(crate) fn workload(self, rows: u64, security: Security) -> Workload {
        let (name, circuit, ops, bits) = match self {
            Name::And => ("and", chain(Ring::Bits, 128, 256), 128 * 256, 1.0),
            Name::Mul64 => ("mul64", chain(Ring::Z64, WIDTH, 256), 16 * 256, 64.0),
            Name::Mul128 => ("mul128", chain(Ring::Z128, WIDTH, 256), 16 * 256, 128.0),
            Name::Rep4Mul => {
                let layers = figure::layers(rows * u64::from(WIDTH));
                let ops = u64::from(WIDTH * layers);
                ("rep4-mul", chain(Ring::Z128, WIDTH, layers), ops, 128.0)
            }
            Name::Aes => (
                "aes",
                veil_circuit::make("aes128-expanded").expect("the catalogue has it"),
                1,
                5120.0,
            ),
            Name::Garble => {
                let circuit = veil_circuit::make("aes128-expanded");
                ("garble", circuit.expect("the catalogue has it"), 5120, 1.0)
            }
            Name::Yao => {
                let circuit = veil_circuit::make("aes128-expanded");
                ("yao", circuit.expect("the catalogue has it"), 5120, 1.0)
            }
            Name::Ag => {
                let circuit = veil_circuit::make("aes128-expanded");
                let mut circuit = circuit.expect("the catalogue has it");
                circuit
                    .inputs
                    .iter_mut()
                    .for_each(|port| port.per = Per::Row);
                // 13 transfers in each direction are 201 blocks, four leaky products 32, the gate itself 6: 40 times those of the gate.
                ("ag", circuit, 5120, 40.0)
            }
            Name::Cut => {
                let circuit = veil_circuit::make("aes128");
                ("cut", circuit.expect("the catalogue has it"), 1, 1.0)
            }
            Name::A2b => ("a2b", parity(), 1, 0.0),
            Name::B2a => ("b2a", lowest(), 64, 0.0),
            Name::Lift => ("lift", lifts(Ring::Z32), u64::from(LIFTED), 0.0),
            Name::Lift64 => ("lift64", lifts(Ring::Z64), u64::from(LIFTED), 0.0),
            Name::Word => ("word", word(), 64, 0.0),
        };
        let (inputs, outputs) = (circuit.inputs.len(), circuit.outputs.len());
        let job = JobSpec {
            name: format!("bench {name}"),
            schema: String::new(),
            owners: vec![],
            parties: (0..security.protocol.parties())
                .map(|p| format!("party {p}"))
                .collect(),
            recipients: vec![],
            security,
            totals: None,
            circuit,
            blocks: vec![Block {
                name: "rows".into(),
                rows,
                holders: (0..inputs)
                    .map(|input| match self {
                        // A key of the garbler, blocks of the evaluator.
                        Name::Yao | Name::Ag | Name::Garble | Name::Cut => {
                            Holder::Party(PartyId::TWO[input % 2])
                        }
                        _ => Holder::Party(PartyId::TWO[0]),
                    })
                    .collect(),
                stored: None,
                order: veil_job::Order::Unsaid,
            }],
            audiences: vec![Audience::Party(PartyId::THREE[1]); outputs],
            opened: vec!["the results of a benchmark".into(); outputs],
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
        };
        let job = Arc::new(job);
        let of_transfers = if self == Name::Ag { 201.0 } else { 0.0 };
        Workload {
            blocks_of_transfers: of_transfers,
            name,
            ops,
            blocks_per_op: streams(security.protocol) * (bits + conversions(&job) / ops as f64)
                / 128.0,
            job,
        }
    }
}

/// All bits of `x`, in one bit that is put out, and that depends on all of them.
fn parity() -> Circuit {
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", 1, Per::Row)[0];
    let mut parity = b.bit(x, 0);
    for j in 1..Ring::Z64.bits() {
        let bit = b.bit(x, j);
        parity = b.xor(parity, bit);
    }
    let parity = b.lift(parity);
    b.output("z", &[parity]);
    b.finish().expect("a valid circuit")
}

/// The lowest bits of 64 values as integers. They cost nothing to take.
fn lowest() -> Circuit {
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", 64, Per::Row);
    let mut sum = b.constant(0);
    for x in x {
        let bit = b.bit(x, 0);
        let bit = b.lift(bit);
        sum = b.add(sum, bit);
    }
    b.output("z", &[sum]);
    b.finish().expect("a valid circuit")
}

/// Bits that are lifted in a row: as many as leave a chunk in the cache more rows than two vectors have.
const LIFTED: u32 = 64;

/// Random bits as integers, whose sum over all rows is put out.
fn lifts(ring: Ring) -> Circuit {
    let mut b = Builder::new(ring);
    let mut sum = b.input("x", 1, Per::Row)[0];
    for _ in 0..LIFTED {
        let bit = b.random_bit();
        let bit = b.lift(bit);
        sum = b.add(sum, bit);
    }
    b.output_sum("z", &[sum]);
    b.finish().expect("a valid circuit")
}

/// The lowest bits of 64 values, put together to a word.
fn word() -> Circuit {
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", 64, Per::Row);
    let bits: Vec<Wire> = x.into_iter().map(|x| b.bit(x, 0)).collect();
    let word = generate::compose(&mut b, &bits, false);
    b.output("z", &[word]);
    b.finish().expect("a valid circuit")
}

/// Bits of products, of lifts and of truncations per row that a job with conversions takes: a lift has as many streams of masks as a product, six over all parties, and a truncation ten.
pub(super) fn conversions(job: &Arc<JobSpec>) -> f64 {
    match Plan::new(Arc::clone(job), Options::default()) {
        Ok(plan) if plan.is_mixed() => {
            let elements = (plan.products() + plan.lifts()) as f64;
            let elements = elements + plan.truncations() as f64 * 10.0 / 6.0;
            plan.bit_products() as f64 + f64::from(plan.ring.bits()) * elements
        }
        _ => 0.0,
    }
}

/// `layers` layers of `width` products, each of two neighbours in the layer before: nothing but products, every one of them needed.
fn chain(ring: Ring, width: u32, layers: u32) -> Circuit {
    let wire = |layer: u32, k: u32| Wire(layer * width + k % width);
    let gates = (0..layers)
        .flat_map(|l| (0..width).map(move |k| Gate::Mul(wire(l, k), wire(l, k + 1))))
        .collect();
    let wires = (0..width).map(|k| wire(layers, k)).collect();
    Circuit {
        ring,
        inputs: vec![InputPort {
            name: "x".into(),
            width,
            per: Per::Row,
            bits: false,
        }],
        gates,
        outputs: vec![OutputPort {
            name: "z".into(),
            wires,
            reduce: Reduce::None,
        }],
        clock: veil_circuit::Clock::default(),
    }
}
