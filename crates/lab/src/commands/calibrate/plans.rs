//! What is measured: small plans of all protocols, which differ in the kinds of work that they have most of.

use std::sync::Arc;

use miette::{IntoDiagnostic, Result};
use veil_circuit::generate::{self, Aim};
use veil_circuit::{Builder, Circuit, Per, Wire};
use veil_job::{
    Adversary, Audience, Block, Holder, JobSpec, Order, ProtocolKind, Security, Tables,
};
use veil_math::Ring;
use veil_protocol::{Options, Plan};
use veil_session::PartyId;

/// A plan to measure.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) plan: Arc<Plan>,
}

/// Whether a set of plans is complete, or just enough to show that measuring works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    Full,
    Small,
}

/// All of them.
pub(super) fn samples(extent: Extent) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let sharing = [
        (ProtocolKind::Rep3, Adversary::SemiHonest),
        (ProtocolKind::Rep3, Adversary::Malicious),
        (ProtocolKind::Rep4, Adversary::SemiHonest),
        (ProtocolKind::Rep4, Adversary::Malicious),
    ];
    for (protocol, adversary) in sharing {
        let security = Security::of(protocol).against(adversary);
        // Three parties check products modulo 2^128 against no malicious one.
        let none = |ring| {
            (protocol, adversary, ring) == (ProtocolKind::Rep3, Adversary::Malicious, Ring::Z128)
        };
        for (name, circuit, rows) in shared(extent)? {
            let rows = if none(circuit.ring) { Vec::new() } else { rows };
            for rows in rows {
                samples.push(sample(name, &circuit, rows, 1, security)?);
            }
        }
        // Two lanes, which share the cores.
        samples.push(sample(
            "products of bits",
            &products(Ring::Bits, 64, 16)?,
            20_000,
            2,
            security,
        )?);
    }
    let yao = Security::of(ProtocolKind::Yao);
    let three = Security {
        tables: Tables::ThreeHalves,
        ..yao
    };
    for security in [yao, three] {
        for (name, circuit, rows) in garbled(extent)? {
            for rows in rows {
                samples.push(sample(name, &circuit, rows, 1, security)?);
            }
        }
    }
    let cut = yao.against(Adversary::CutAndChoose);
    for (name, width, rows) in [
        ("adder", 8, 1),
        ("adder", 64, 1),
        ("adder", 64, 4),
        ("product", 16, 1),
    ] {
        let circuit = match name {
            "adder" => make(&format!("adder:{width}"))?,
            _ => make(&format!("mul:{width}"))?,
        };
        samples.push(sample(name, &circuit, rows, 1, cut)?);
        if extent == Extent::Small {
            break;
        }
    }
    Ok(samples)
}

type Measured = (&'static str, Circuit, Vec<u64>);

/// Circuits for shares, and how many rows of them.
fn shared(extent: Extent) -> Result<Vec<Measured>> {
    if extent == Extent::Small {
        return Ok(vec![
            (
                "products of bits",
                products(Ring::Bits, 16, 4)?,
                vec![100, 4000],
            ),
            ("products of Z_2^64", products(Ring::Z64, 4, 4)?, vec![300]),
        ]);
    }
    let comparison = |width: u32| make(&format!("int-lt:{width}"));
    Ok(vec![
        (
            "products of bits",
            products(Ring::Bits, 128, 32)?,
            vec![1, 512, 5000],
        ),
        (
            "products of Z_2^64",
            products(Ring::Z64, 16, 16)?,
            vec![1, 512, 5000],
        ),
        (
            "products of Z_2^128",
            products(Ring::Z128, 16, 16)?,
            vec![1, 512, 3000],
        ),
        (
            "sums of bits",
            linear(Ring::Bits, 256, 200)?,
            vec![1, 10_000],
        ),
        ("sums of Z_2^64", linear(Ring::Z64, 32, 200)?, vec![1, 3000]),
        (
            "sums of Z_2^128",
            linear(Ring::Z128, 32, 100)?,
            vec![1, 3000],
        ),
        ("values of bits", linear(Ring::Bits, 512, 1)?, vec![30_000]),
        ("values of Z_2^64", linear(Ring::Z64, 16, 1)?, vec![15_000]),
        ("dot products", dots(Ring::Z64, 16)?, vec![1000, 30_000]),
        (
            "dot products of Z_2^128",
            dots(Ring::Z128, 8)?,
            vec![15_000],
        ),
        (
            "AES",
            generate::aes128_expanded(Per::Row, Aim::Depth),
            vec![1, 600],
        ),
        (
            "AES under one key",
            generate::aes128(Per::Job, Aim::Size),
            vec![300],
        ),
        ("deep sums", make("adder:64")?, vec![1, 1000]),
        ("comparisons of bits", make("lt-fast:64")?, vec![3000]),
        ("comparisons", comparison(32)?, vec![1, 1000]),
        ("bits of integers", make("int-bits:32")?, vec![1000]),
    ])
}

/// Circuits for labels.
fn garbled(extent: Extent) -> Result<Vec<Measured>> {
    if extent == Extent::Small {
        return Ok(vec![("deep sums", make("adder:16")?, vec![1, 200])]);
    }
    Ok(vec![
        (
            "AES",
            generate::aes128_expanded(Per::Row, Aim::Size),
            vec![1, 50],
        ),
        (
            "AES under one key",
            generate::aes128(Per::Job, Aim::Size),
            vec![100],
        ),
        (
            "products of bits",
            products(Ring::Bits, 64, 16)?,
            vec![1, 1000],
        ),
        ("sums of bits", linear(Ring::Bits, 256, 100)?, vec![1, 300]),
        ("values of bits", linear(Ring::Bits, 512, 1)?, vec![1000]),
        ("deep sums", make("adder:64")?, vec![1, 1000]),
        ("SHA-256", make("sha256")?, vec![1, 8]),
    ])
}

fn make(name: &str) -> Result<Circuit> {
    veil_circuit::make(name).into_diagnostic()
}

/// `layers` layers of `width` products, each of two neighbours in the layer before.
fn products(ring: Ring, width: usize, layers: u32) -> Result<Circuit> {
    let mut b = Builder::new(ring);
    let mut wires = b.input("x", width as u32, Per::Row);
    for _ in 0..layers {
        wires = neighbours(&wires).map(|(x, y)| b.mul(x, y)).collect();
    }
    b.output("z", &wires);
    b.finish().into_diagnostic()
}

/// So many layers of sums of neighbours, and no product.
fn linear(ring: Ring, width: usize, layers: u32) -> Result<Circuit> {
    let mut b = Builder::new(ring);
    let mut wires = b.input("x", width as u32, Per::Row);
    for _ in 0..layers {
        wires = neighbours(&wires).map(|(x, y)| b.add(x, y)).collect();
    }
    b.output("z", &wires[..1]);
    b.finish().into_diagnostic()
}

/// Sums over the rows of products and of values.
fn dots(ring: Ring, width: usize) -> Result<Circuit> {
    let mut b = Builder::new(ring);
    let wires = b.input("x", width as u32, Per::Row);
    let squares: Vec<Wire> = neighbours(&wires).map(|(x, y)| b.mul(x, y)).collect();
    b.output_sum("products", &squares);
    b.output_sum("values", &wires);
    b.finish().into_diagnostic()
}

/// Each wire with the next.
fn neighbours(wires: &[Wire]) -> impl Iterator<Item = (Wire, Wire)> {
    let next = wires.iter().cycle().skip(1);
    wires.iter().copied().zip(next.copied())
}

/// A job of this circuit: an owner supplies the first input and a party the others, and a recipient gets the results; in cut-and-choose the two
/// parties do.
fn sample(
    name: &str,
    circuit: &Circuit,
    rows: u64,
    lanes: u16,
    security: Security,
) -> Result<Sample> {
    let [first, second] = PartyId::TWO;
    let cut = security.adversary == Adversary::CutAndChoose;
    let (supplies, gets) = if cut {
        (Holder::Party(first), Audience::Party(second))
    } else {
        (Holder::Owner(0), Audience::Recipient(0))
    };
    let others = std::iter::repeat(Holder::Party(second));
    let holders = [supplies].into_iter().chain(others);
    let job = JobSpec {
        name: name.to_owned(),
        schema: String::new(),
        owners: if cut { vec![] } else { vec!["owner".into()] },
        parties: (0..security.protocol.parties())
            .map(|p| format!("party {p}"))
            .collect(),
        recipients: if cut {
            vec![]
        } else {
            vec!["recipient".into()]
        },
        security,
        totals: None,
        blocks: vec![Block {
            name: "rows".into(),
            rows,
            holders: holders.take(circuit.inputs.len()).collect(),
            stored: None,
            order: Order::Unsaid,
        }],
        audiences: vec![gets; circuit.outputs.len()],
        opened: vec!["what is measured".into(); circuit.outputs.len()],
        circuit: circuit.clone(),
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    };
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    let plan = Plan::new(Arc::new(job), options).into_diagnostic()?;
    let rows = veil_cli::output::count(rows, "row");
    let lanes = if lanes == 1 {
        String::new()
    } else {
        format!(", {lanes} lanes")
    };
    Ok(Sample {
        name: format!("{security}: {name}, {rows}{lanes}"),
        plan: Arc::new(plan),
    })
}
