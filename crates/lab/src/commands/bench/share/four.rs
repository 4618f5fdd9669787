//! Four parties: figure 3 of Patel, Haghi, Jain, Kot, Krishnan, Varia, Herbordt, HPEC 2022.

use miette::Result;
use plotters::prelude::*;
use serde::Serialize;
use veil_device_fpga::Absent;
use veil_device_fpga::share::rates::{self, Pace};

use super::super::chart::{self, BAR, BOUND, Drawn, Line};
use super::super::print_json;

/// The clock of figure 3, in MHz.
const MHZ: f64 = 275.0;
/// Products of a batch.
const BATCHES: [u16; 6] = [16, 64, 256, 1024, 4096, 16384];
/// The link to fill, in Gb/s.
const LINK: f64 = 100.0;
/// Bits of an element.
const ELEMENT: f64 = 128.0;

/// Where figure 3 saturates: Gb/s of one accelerator, and how many fill the link. Its curve below that has no numbers in the text.
const PUBLISHED: [(bool, f64, u32); 2] = [(false, 17.5, 6), (true, 26.3, 4)];

/// A batch of products on one accelerator.
#[derive(Serialize)]
pub(super) struct Batch {
    bench: &'static str,
    /// In how many cycles a product starts.
    fold: u32,
    /// Whether codes of what is vouched for are made: against a malicious party.
    checked: bool,
    products: u64,
    /// From the first command until the last message, and the codes, have left.
    cycles: u64,
    /// Simulated, or by the rule: `fold` cycles for each product, and what the core that was simulated takes beside.
    simulated: bool,
    mhz: f64,
    /// Three elements of each product, as the paper counts: they are sent or vouched for.
    gbit_per_s: f64,
    /// What leaves: one and a half of them, on average over parties and chunks.
    gbit_per_s_sent: f64,
}

/// Both cores, at all batches.
pub(super) fn measure() -> Result<Vec<Batch>, Absent> {
    let mut all = Vec::new();
    for checked in [false, true] {
        for products in BATCHES {
            let whole = rates::local(1, products, checked)?;
            all.push(batch(1, checked, &whole, true));
            let folded = match rates::local(rates::FOLDED, products, checked) {
                Err(Absent::NoVerilator) => None,
                pace => Some(pace?),
            };
            let simulated = folded.is_some();
            let pace = folded.unwrap_or_else(|| rule(&whole));
            all.push(batch(rates::FOLDED, checked, &pace, simulated));
        }
    }
    Ok(all)
}

/// What a folded core takes, from one that is not.
fn rule(whole: &Pace) -> Pace {
    let more = u64::from(rates::FOLDED) - 1;
    Pace {
        cycles: whole.cycles + more * whole.beats,
        first: whole.first + more,
        ..*whole
    }
}

fn batch(fold: u32, checked: bool, pace: &Pace, simulated: bool) -> Batch {
    let per_s = pace.beats as f64 * MHZ * 1e6 / pace.cycles as f64;
    Batch {
        bench: "fpga-share-four",
        fold,
        checked,
        products: pace.beats,
        cycles: pace.cycles,
        simulated,
        mhz: MHZ,
        gbit_per_s: 3.0 * ELEMENT * per_s / 1e9,
        gbit_per_s_sent: 1.5 * ELEMENT * per_s / 1e9,
    }
}

/// A core, as tables and plots name it.
fn name(fold: u32, checked: bool) -> String {
    let adversary = if checked { "malicious" } else { "semi-honest" };
    format!("Fold {fold}, {adversary}")
}

/// The cores, each with its batches.
fn kinds(runs: &[Batch]) -> impl Iterator<Item = (u32, bool, Vec<&Batch>)> {
    let kinds = [
        (1, false),
        (1, true),
        (rates::FOLDED, false),
        (rates::FOLDED, true),
    ];
    kinds.into_iter().map(|(fold, checked)| {
        let own = runs.iter();
        let own = own.filter(|run| (run.fold, run.checked) == (fold, checked));
        (fold, checked, own.collect())
    })
}

/// The tables.
pub(super) fn print(runs: &[Batch], json: bool) -> Result<()> {
    if json {
        return runs.iter().try_for_each(print_json);
    }
    println!(
        "\nproducts modulo 2^128 of four parties at {MHZ} MHz, first stage, by cycles of simulation\n{:<20} {:>8} {:>8} {:>15} {:>10} {:>6} {:>26}",
        "core",
        "products",
        "cycles",
        "10^6 products/s",
        "Gb/s made",
        "sent",
        "fill 100 Gb/s: made, sent"
    );
    for (fold, checked, own) in kinds(runs) {
        for run in own {
            let rate = run.gbit_per_s * 1e3 / (3.0 * ELEMENT);
            let cycles = if run.simulated {
                run.cycles.to_string()
            } else {
                format!("({})", run.cycles)
            };
            println!(
                "{:<20} {:>8} {cycles:>8} {rate:>15.1} {:>10.2} {:>6.2} {:>18.0}, {:.0}",
                name(fold, checked),
                run.products,
                run.gbit_per_s,
                run.gbit_per_s_sent,
                (LINK / run.gbit_per_s).ceil(),
                (LINK / run.gbit_per_s_sent).ceil(),
            );
        }
    }
    if runs.iter().any(|run| !run.simulated) {
        println!(
            "(in parentheses: by the rule that a folded core takes {} cycles for a product; VEIL_RTL_FOLDED=1 builds it to be simulated)",
            rates::FOLDED
        );
    }
    println!(
        "made: three elements of each product, which the party sends or vouches for; sent: one and a half of them, on average"
    );
    for (checked, gbit_per_s, fill) in PUBLISHED {
        let adversary = if checked { "malicious" } else { "semi-honest" };
        println!(
            "figure 3 of the paper, {adversary}: saturates at {gbit_per_s} Gb/s made, {fill} accelerators fill {LINK} Gb/s"
        );
    }
    Ok(())
}

/// Figure 3. Of the paper's curves the text has the ends: they are drawn as levels.
pub(super) fn draw(runs: &[Batch], svg: &mut String) -> Drawn {
    let most = runs.iter().map(|run| run.gbit_per_s).fold(1.0, f64::max);
    let own = kinds(runs).enumerate().map(|(k, (fold, checked, own))| {
        let points = own
            .iter()
            .map(|run| (run.products as f64, run.gbit_per_s))
            .collect();
        Line {
            name: name(fold, checked),
            color: Palette99::pick(k).to_rgba(),
            points,
            limit: Vec::new(),
        }
    });
    let [first, last] = [BATCHES[0], BATCHES[BATCHES.len() - 1]].map(f64::from);
    let theirs = PUBLISHED.iter().zip([BOUND, BAR]);
    let theirs = theirs.map(|((checked, gbit_per_s, _), color)| {
        let adversary = if *checked { "malicious" } else { "semi-honest" };
        Line {
            name: format!("a COPA accelerator, {adversary}, saturated"),
            color: color.mix(0.7),
            points: vec![(first, *gbit_per_s), (last, *gbit_per_s)],
            limit: Vec::new(),
        }
    });
    let lines = own.chain(theirs).collect();
    let title = "Products modulo 2^128 of four parties on one accelerator at 275 MHz";
    let axes = ["products in a batch", "Gb/s made for others"];
    chart::lines(title, axes, most * 1.4, lines, svg)
}
