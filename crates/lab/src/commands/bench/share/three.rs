//! Three parties: table II and figure 4 of Wolfe, Patel, Munafo, Varia, Herbordt, FPL 2020.

use miette::Result;
use plotters::prelude::*;
use serde::Serialize;
use veil_device_fpga::share::rates::Pace;

use super::super::chart::{self, BAR, BOUND, Drawn, Line};
use super::super::print_json;
use super::area::{self, Areas};

/// The clock of the paper's FPGA, in MHz.
const MHZ: f64 = 125.0;
/// ANDs of one AES, by which the paper counts.
const ANDS_OF_AES: f64 = 5440.0;
/// ANDs that a core does at once.
const WORD: u32 = 128;
/// The links to fill, in Gb/s.
const LINKS: [f64; 3] = [10.0, 100.0, 200.0];

/// A row of table II, and what the text says of figure 4: the part of a VU9P that so many cores take.
struct Published {
    cores: u32,
    gbit_per_s: f64,
    million_aes_per_s: f64,
    area: Option<f64>,
}

/// Figure 4 itself has no numbers at its marks: of 12 cores and more, nothing is said in the text.
const PUBLISHED: [Published; 6] = [
    published(1, 2.67, 0.490, Some(0.032)),
    published(3, 8.00, 1.47, Some(0.05)),
    published(12, 32.0, 5.89, None),
    published(24, 64.0, 11.8, None),
    published(48, 128.0, 23.5, None),
    published(60, 160.0, 29.4, None),
];

const fn published(
    cores: u32,
    gbit_per_s: f64,
    million_aes_per_s: f64,
    area: Option<f64>,
) -> Published {
    Published {
        cores,
        gbit_per_s,
        million_aes_per_s,
        area,
    }
}

/// So many cores of one party.
#[derive(Serialize)]
pub(super) struct Row {
    bench: &'static str,
    cores: u32,
    bits: u32,
    /// As it was measured.
    cycles_per_beat: f64,
    mhz: f64,
    /// Sent: a bit for each AND.
    gbit_per_s: f64,
    aes_per_s: f64,
    paper_gbit_per_s: f64,
    paper_aes_per_s: f64,
    /// Of all LUTs of a VU9P, cores of bits.
    area: Option<f64>,
    /// From the cores that were mapped, by a line through the last two.
    area_extrapolated: bool,
    paper_area: Option<f64>,
}

/// Table II at the pace that was measured. Cores side by side follow one command, and so all have the pace of one.
pub(super) fn rows(pace: &Pace, areas: &Areas) -> Vec<Row> {
    let rows = PUBLISHED.iter().map(|paper| {
        let bits = paper.cores * WORD;
        let gbit_per_s = f64::from(bits) * MHZ / 1e3 / pace.cycles_per_beat();
        let area = area::of_cores(areas, paper.cores);
        Row {
            bench: "fpga-share-three",
            cores: paper.cores,
            bits,
            cycles_per_beat: pace.cycles_per_beat(),
            mhz: MHZ,
            gbit_per_s,
            aes_per_s: gbit_per_s * 1e9 / ANDS_OF_AES,
            paper_gbit_per_s: paper.gbit_per_s,
            paper_aes_per_s: paper.million_aes_per_s * 1e6,
            area: area.map(|(part, _)| part),
            area_extrapolated: area.is_some_and(|(_, counted)| !counted),
            paper_area: paper.area,
        }
    });
    rows.collect()
}

/// The table, and how many cores fill links.
pub(super) fn print(pace: &Pace, rows: &[Row], json: bool) -> Result<()> {
    if json {
        return rows.iter().try_for_each(print_json);
    }
    println!(
        "ANDs of three parties at {MHZ} MHz, table II of the paper beside ours; {} beats took {} cycles in simulation, the first of them {}\n{:>5} {:>5} {:>11} {:>9} {:>16} {:>9} {:>15} {:>9}",
        pace.beats,
        pace.cycles,
        pace.first,
        "cores",
        "bits",
        "Gb/s, paper",
        "Gb/s",
        "10^6 AES/s, paper",
        "ours",
        "of VU9P, paper",
        "ours"
    );
    for row in rows {
        let part =
            |of: Option<f64>| of.map_or_else(String::new, |part| format!("{:.2} %", 100.0 * part));
        let area = if row.area_extrapolated {
            format!("({})", part(row.area))
        } else {
            part(row.area)
        };
        println!(
            "{:>5} {:>5} {:>11.2} {:>9.1} {:>16.3} {:>10.2} {:>15} {area:>9}",
            row.cores,
            row.bits,
            row.paper_gbit_per_s,
            row.gbit_per_s,
            row.paper_aes_per_s / 1e6,
            row.aes_per_s / 1e6,
            part(row.paper_area),
        );
    }
    println!("(in parentheses: by a line through the cores that were mapped)");
    if let Some(one) = rows.first() {
        for link in LINKS {
            let fill = |gbit_per_s: f64| (link / gbit_per_s).ceil();
            println!(
                "{link:>3} Gb/s: {:>2} cores fill it, {} of the paper's",
                fill(one.gbit_per_s),
                fill(one.paper_gbit_per_s)
            );
        }
    }
    Ok(())
}

fn line(name: &str, color: RGBColor, points: Vec<(f64, f64)>) -> Line {
    Line {
        name: name.to_owned(),
        color: color.to_rgba(),
        points,
        limit: Vec::new(),
    }
}

fn points(rows: &[Row], of: impl Fn(&Row) -> Option<f64>) -> Vec<(f64, f64)> {
    let point = |row: &Row| Some((f64::from(row.cores), of(row)?));
    rows.iter().filter_map(point).collect()
}

/// Table II.
pub(super) fn draw(rows: &[Row], svg: &mut String) -> Drawn {
    let most = rows.iter().map(|row| row.gbit_per_s).fold(1.0, f64::max);
    let lines = vec![
        line("ours", BAR, points(rows, |row| Some(row.gbit_per_s))),
        line(
            "the paper's",
            BOUND,
            points(rows, |row| Some(row.paper_gbit_per_s)),
        ),
    ];
    let title = "ANDs of three parties at 125 MHz";
    chart::lines(
        title,
        ["cores of a party", "Gb/s sent"],
        most * 1.1,
        lines,
        svg,
    )
}

/// Figure 4.
pub(super) fn draw_area(rows: &[Row], svg: &mut String) -> Drawn {
    let percent = |of: Option<f64>| of.map(|part| 100.0 * part);
    let own = points(rows, |row| percent(row.area));
    let most = own.iter().map(|point| point.1).fold(1.0, f64::max);
    let lines = vec![
        line("ours, mapped by Yosys", BAR, own),
        line(
            "the paper's, as its text says",
            BOUND,
            points(rows, |row| percent(row.paper_area)),
        ),
    ];
    let title = "Cores of bits on a VU9P";
    chart::lines(
        title,
        ["cores of a party", "% of its LUTs"],
        most * 1.1,
        lines,
        svg,
    )
}
