//! `veil-lab bench yao --svg FILE`: ANDs per second from end to end against the rate of the link, by both ways to garble: where three halves pay.

use std::time::Duration;

use miette::Result;
use plotters::prelude::*;
use veil_engine::DeviceFactory;
use veil_job::{ProtocolKind, Security, Tables, Word};
use veil_link::shape::Profile;

use super::chart::{self, Drawn, Line};
use super::measure::{Carrier, Row, Setup, measure};
use super::workload::Name;
use super::{BenchArgs, print_json, short};

/// Links, in Gb/s.
const LINKS: [f64; 7] = [0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0];

/// One way of a machine room's links.
const LATENCY: Duration = Duration::from_micros(50);

/// A run takes about so many seconds of a slow link.
const SECONDS: f64 = 1.0;

/// A way to garble on a link.
struct Point {
    tables: Tables,
    gbit_per_s: f64,
    /// ANDs per second of the clock, after the set-up.
    rate: f64,
    /// What the link allows.
    allowed: f64,
}

/// Measures every link, prints the table, and draws it. Each party has a thread, so that one garbles while the other evaluates.
pub(super) fn run(args: &BenchArgs, device: &DeviceFactory, path: &std::path::Path) -> Result<()> {
    let mut points = Vec::new();
    for tables in [Tables::HalfGates, Tables::ThreeHalves] {
        if args.tables.is_some_and(|only| only != tables) {
            continue;
        }
        for gbit_per_s in LINKS {
            let row = on_link(args, device, tables, gbit_per_s)?;
            if args.json {
                print_json(&row)?;
            }
            points.push(point(&row, tables, gbit_per_s));
        }
    }
    if !args.json {
        print(&points);
    }
    let mut svg = String::new();
    let drawn = draw(&points, &mut svg);
    chart::put(drawn, &svg, path)
}

/// What runs on a link.
fn on_link(
    args: &BenchArgs,
    device: &DeviceFactory,
    tables: Tables,
    gbit_per_s: f64,
) -> Result<Row> {
    let security = Security {
        tables,
        ..Security::of(ProtocolKind::Yao)
    };
    // Blocks of half-gates that the link takes in that time.
    let block = 5120.0 * 32.0 * 8.0;
    let most = (gbit_per_s * 1e9 * SECONDS / block) as u64;
    let batch = args.batch.unwrap_or_else(|| Name::Yao.batch()).min(most);
    let workload = Name::Yao.workload(batch.max(1), security);
    measure(
        &workload,
        &Setup {
            net: Some(Profile {
                latency: LATENCY,
                bandwidth: (gbit_per_s * 1e9) as u64,
            }),
            ..args.setup(device, Carrier::Tls, args.cores.0)
        },
    )
}

fn point(row: &Row, tables: Tables, gbit_per_s: f64) -> Point {
    let ands = row.batch as f64 * 5120.0;
    Point {
        tables,
        gbit_per_s,
        rate: ands / (row.online_ms / 1e3),
        allowed: gbit_per_s * 1e9 / 8.0 / row.bytes_per_op,
    }
}

fn print(points: &[Point]) {
    println!("\nANDs per second on a link, after the set-up");
    for tables in [Tables::HalfGates, Tables::ThreeHalves] {
        let mut of = points.iter().filter(|p| p.tables == tables).peekable();
        if of.peek().is_none() {
            continue;
        }
        print!("{:<12}", tables.word());
        of.for_each(|p| print!("   {} Gb/s: {}", p.gbit_per_s, short(p.rate)));
        println!();
    }
    if let Some(link) = crossing(points) {
        println!("three halves pay below about {link:.1} Gb/s");
    }
}

/// The link on which both ways make as many, between the last one where three halves make more and the next.
fn crossing(points: &[Point]) -> Option<f64> {
    let of = |tables| points.iter().filter(move |p| p.tables == tables);
    let gains = of(Tables::HalfGates).zip(of(Tables::ThreeHalves));
    let gains = gains.map(|(half, three)| (half.gbit_per_s, (three.rate / half.rate).ln()));
    let gains: Vec<(f64, f64)> = gains.collect();
    let pair = gains.windows(2).rfind(|w| w[0].1 > 0.0 && w[1].1 <= 0.0)?;
    let [(low, gain), (high, loss)] = [pair[0], pair[1]];
    Some(low * (high / low).powf(gain / (gain - loss)))
}

fn draw(points: &[Point], svg: &mut String) -> Drawn {
    let most = points.iter().map(|p| p.rate).fold(1e6, f64::max) / 1e6 * 1.15;
    let schemes = [Tables::HalfGates, Tables::ThreeHalves].into_iter();
    let lines = schemes.enumerate().map(|(number, tables)| {
        let line = |y: fn(&Point) -> f64| {
            let of = points.iter().filter(|p| p.tables == tables);
            let of = of.map(|p| (p.gbit_per_s, y(p) / 1e6));
            of.filter(|(_, y)| *y <= most).collect()
        };
        Line {
            name: format!("{} (pale: what the link takes)", tables.word()),
            color: Palette99::pick(number).to_rgba(),
            points: line(|p| p.rate),
            limit: line(|p| p.allowed),
        }
    });
    let title = "ANDs of AES-128 by two parties, from end to end";
    let axes = ["Gb/s of the link", "M/s"];
    chart::lines(title, axes, most, lines.collect(), svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_between_the_links_around_it() {
        let points = |rates: [[f64; 3]; 2]| {
            let schemes = [Tables::HalfGates, Tables::ThreeHalves]
                .into_iter()
                .zip(rates);
            let points = schemes.flat_map(|(tables, rates)| {
                [1.0, 4.0, 16.0]
                    .into_iter()
                    .zip(rates)
                    .map(move |(gbit_per_s, rate)| Point {
                        tables,
                        gbit_per_s,
                        rate,
                        allowed: 0.0,
                    })
            });
            points.collect::<Vec<_>>()
        };
        // A gain of 1.3, and a loss of as much: halfway between them, of a scale of ratios.
        let link = crossing(&points([[3.0, 10.0, 13.0], [3.9, 13.0, 10.0]]));
        assert!(
            link.is_some_and(|link| (link - 8.0).abs() < 1e-6),
            "{link:?}"
        );
        assert_eq!(
            crossing(&points([[3.0, 10.0, 13.0], [3.9, 13.0, 14.0]])),
            None
        );
    }
}
