//! `veil-lab bench rep4-mul`: how much of a network products in Z_2^128 among four parties fill, against the size of a batch.
//!
//! Figure 3 of Patel, Haghi, Jain, Kot, Krishnan, Varia, Herbordt, *Distributed Hardware Accelerated Secure Joint Computation on the
//! COPA Framework*, HPEC 2022, redrawn for cores in the place of accelerators.

use std::sync::Arc;

use miette::{Result, miette};
use plotters::prelude::*;
use veil_cli::devices::Registry;
use veil_job::{Adversary, ProtocolKind, Security, Word};

use super::chart::{self, BAR, BOUND, Drawn, Line};
use super::measure::{Carrier, Row, measure};
use super::workload::{Name, WIDTH};
use super::{BenchArgs, print_json, short};

/// Products of the smallest and of the largest batch; each has four times those of the one before.
const SMALLEST: u64 = 1 << 6;
pub(super) const LARGEST: u64 = 1 << 20;

/// Products of a run, about: half a second of one core.
const PRODUCTS: u64 = 1 << 22;

/// Layers of a run whose batch has so many products: enough that set-up and inputs do not matter.
pub(super) fn layers(batch: u64) -> u32 {
    (PRODUCTS / batch.max(1)).clamp(32, 8192) as u32
}

/// The networks to fill, in Gb/s.
const NETWORKS: [f64; 2] = [10.0, 100.0];

/// What the paper has for one accelerator of one party, at the largest batches.
struct Published {
    adversary: Adversary,
    /// Gb/s: three elements per product, and half as much again for hashes.
    gbit_per_s: f64,
    /// Accelerators that fill 100 Gb/s, as the paper rounds them.
    fill_100: u32,
}

static PUBLISHED: [Published; 2] = [
    Published {
        adversary: Adversary::SemiHonest,
        gbit_per_s: 17.5,
        fill_100: 6,
    },
    Published {
        adversary: Adversary::Malicious,
        gbit_per_s: 26.3,
        fill_100: 4,
    },
];

/// Measures, prints the table, and draws.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let device = args.devices(registry)?;
    if args.protocol.is_some_and(|of| of != ProtocolKind::Rep4) {
        return Err(miette!(
            help = "`veil-lab bench mul128` measures any protocol",
            "rep4-mul is of four parties"
        ));
    }
    let mut rows = Vec::new();
    if !args.json {
        println!("{HEADER}");
    }
    for &carrier in &args.link {
        for published in &PUBLISHED {
            if args
                .adversary
                .is_some_and(|only| only != published.adversary)
            {
                continue;
            }
            for batch in batches(args.batch) {
                let security = Security::of(ProtocolKind::Rep4).against(published.adversary);
                let workload = Name::Rep4Mul.workload(batch / u64::from(WIDTH), security);
                let row = measure(&workload, &args.setup(&device, carrier, args.cores.0))?;
                if args.json {
                    print_json(&row)?;
                } else {
                    print(&row);
                }
                rows.push(row);
            }
        }
    }
    if !args.json {
        print_published();
        for &carrier in &args.link {
            print_price(&rows, carrier);
        }
    }
    match &args.svg {
        Some(path) => {
            let mut svg = String::new();
            let drawn = draw(&rows, &mut svg);
            chart::put(drawn, &svg, path)
        }
        None => Ok(()),
    }
}

/// Products computed together, in multiples of a layer of one row.
fn batches(only: Option<u64>) -> Vec<u64> {
    let width = u64::from(WIDTH);
    let rounded = |batch: u64| batch.div_ceil(width).max(1) * width;
    match only {
        Some(batch) => vec![rounded(batch)],
        None => std::iter::successors(Some(SMALLEST), |batch| Some(batch * 4))
            .take_while(|batch| *batch <= LARGEST)
            .collect(),
    }
}

const HEADER: &str =
    "link    adversary      batch   products/s   Gb/s of a core   cores for 10 Gb/s   for 100 Gb/s";

fn print(row: &Row) {
    let [ten, hundred] = NETWORKS.map(|network| network / row.gbit_per_core_s);
    println!(
        "{:<7} {:<11} {:>8} {:>12} {:>16.2} {ten:>19.1} {hundred:>14.1}",
        row.link,
        row.adversary,
        batch(row),
        short(row.rate_per_cpu_s),
        row.gbit_per_core_s,
    );
}

/// Products of a layer.
fn batch(row: &Row) -> u64 {
    row.batch * u64::from(WIDTH)
}

fn print_published() {
    println!(
        "\none COPA accelerator at 275 MHz, as published: the same products, with more bytes for each if hashed"
    );
    for Published {
        adversary,
        gbit_per_s,
        fill_100,
    } in &PUBLISHED
    {
        let word = adversary.word();
        println!("{word:<11} {gbit_per_s:>5.1} Gb/s, {fill_100} fill 100 Gb/s");
    }
}

/// What security against a malicious party costs, in CPU time for the same products.
fn print_price(rows: &[Row], carrier: Carrier) {
    let rate = |adversary: Adversary| {
        let rows = rows.iter().filter(|row| row.link == carrier.name());
        let mut rows = rows.filter(|row| row.adversary == adversary.word());
        rows.next_back().map(|row| row.rate_per_cpu_s)
    };
    if let (Some(trusting), Some(checked)) =
        (rate(Adversary::SemiHonest), rate(Adversary::Malicious))
    {
        println!(
            "{}: malicious costs {:.2} times semi-honest at the largest batch",
            carrier.name(),
            trusting / checked
        );
    }
}

fn draw(rows: &[Row], svg: &mut String) -> Drawn {
    let most = rows.iter().map(|row| row.gbit_per_core_s);
    let published = PUBLISHED.iter().map(|published| published.gbit_per_s);
    let most = most.chain(published).fold(1.0, f64::max);
    let ends = |f: fn(u64, u64) -> u64| rows.iter().map(batch).reduce(f).unwrap_or(SMALLEST);
    let (first, last) = (ends(u64::min) as f64, ends(u64::max) as f64);
    let line = |name, color, points| Line {
        name,
        color,
        points,
        limit: Vec::new(),
    };
    let mut kinds: Vec<(&str, &str)> = rows.iter().map(|r| (r.link, r.adversary)).collect();
    kinds.dedup();
    let measured = kinds.into_iter().enumerate().map(|(k, (link, adversary))| {
        let of = rows
            .iter()
            .filter(|r| (r.link, r.adversary) == (link, adversary));
        let points = of.map(|r| (batch(r) as f64, r.gbit_per_core_s)).collect();
        let name = format!("rep4, {adversary}, {link}");
        line(name, Palette99::pick(k).to_rgba(), points)
    });
    let published = PUBLISHED.iter().zip([BOUND, BAR]);
    let published = published.map(|(published, color)| {
        let height = published.gbit_per_s;
        let name = format!(
            "one COPA accelerator, {}, saturated",
            published.adversary.word()
        );
        line(name, color.mix(0.7), vec![(first, height), (last, height)])
    });
    let title = "Gb/s that one core of a party fills with products in Z_2^128";
    let axes = ["products in a batch", "Gb/s"];
    let lines = measured.chain(published).collect();
    chart::lines(title, axes, most * 1.15, lines, svg)
}
