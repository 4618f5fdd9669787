//! Parties as nodes on a network, three or four: what a layer of products takes end to end, and what hosts do for it.

use std::hint::black_box;

use miette::Result;
use plotters::prelude::*;
use serde::Serialize;
use veil_device_fpga::Absent;
use veil_device_fpga::node::{
    self, Accesses, CLOCK_MHZ, Host as Driver, NodeError, Shape, Start, Throughput,
};
use veil_math::Ring;

use super::super::chart::{self, Drawn, Line};
use super::super::measure::thread_cpu;
use super::super::print_json;

/// Words of a layer: 128 ANDs each.
const WORDS: [u32; 4] = [4, 64, 1024, 16384];
/// The same of four parties.
const OF_FOUR: [u32; 3] = [4, 256, 1024];
/// Layers over which accesses of hosts are counted, and their words.
const LAYERS: (u32, u32) = (4, 16);
/// Layers of which a host's CPU time is taken at once, and how often; the median counts.
const TIMED: (u32, usize) = (4096, 15);

/// A layer of ANDs at nodes.
#[derive(Serialize)]
pub(super) struct Layer {
    bench: &'static str,
    parties: u8,
    /// Whether messages have codes, which four parties make.
    checked: bool,
    ands: u64,
    /// From the first command until all messages lie in memory and all hosts know it.
    cycles: u64,
    mhz: f64,
    us: f64,
    /// Messages of a party, without headers and seals.
    gbit_per_s: f64,
    /// What a party sends, with headers, seals and answers.
    bytes_sent: u64,
}

/// What the host of a node does in a layer, once everything is set up.
#[derive(Serialize)]
pub(super) struct Host {
    bench: &'static str,
    /// Whether node 0 alone starts the others' commands.
    headless: bool,
    node: u8,
    registers: f64,
    commands: f64,
    completions: f64,
    /// CPU time of its driver for the layer: commands are made and written to their ring, completions read from theirs.
    cpu_ns: f64,
    /// CPU time before the layer, to arm what another host starts.
    armed_cpu_ns: f64,
}

/// What was measured.
pub(super) struct Nodes {
    layers: Vec<Layer>,
    hosts: Vec<Host>,
    /// Cycles that a packet takes from a node to another one.
    latency: u32,
}

/// Runs layers on three simulated nodes, and on four.
pub(super) fn measure() -> Result<Result<Nodes, NodeError>, Absent> {
    let shape = Shape::new(3);
    let mut layers = Vec::new();
    for words in WORDS {
        match node::throughput(shape, Ring::Bits, words)? {
            Ok(run) => layers.push(layer(3, &run)),
            Err(error) => return Ok(Err(error)),
        }
    }
    for words in OF_FOUR {
        match node::throughput_of_four(Shape::new(4), (Ring::Bits, true), words)? {
            Ok(run) => layers.push(layer(4, &run)),
            Err(error) => return Ok(Err(error)),
        }
    }
    let mut hosts = Vec::new();
    for start in [Start::Hosts, Start::Headless] {
        match node::accesses(shape, start, LAYERS)? {
            Ok(all) => {
                for (node, of) in (0..).zip(all) {
                    match host(start, node, of) {
                        Ok(host) => hosts.push(host),
                        Err(error) => return Ok(Err(error)),
                    }
                }
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(Nodes {
        layers,
        hosts,
        latency: shape.latency,
    }))
}

fn layer(parties: u8, run: &Throughput) -> Layer {
    Layer {
        bench: "fpga-share-nodes",
        parties,
        checked: parties == 4,
        ands: 128 * u64::from(run.words),
        cycles: run.cycles,
        mhz: CLOCK_MHZ,
        us: run.cycles as f64 / CLOCK_MHZ,
        gbit_per_s: run.gigabits(),
        bytes_sent: 16 * run.sent,
    }
}

fn host(start: Start, node: u8, of: Accesses) -> Result<Host, NodeError> {
    let layers = f64::from(LAYERS.0);
    let (layer, arming): (Option<Work>, Option<Work>) = match (start, node) {
        (Start::Hosts, _) => (Some(Driver::run), None),
        (Start::Headless, 0) => (Some(Driver::start), None),
        (Start::Headless, _) => (None, Some(Driver::arm)),
    };
    Ok(Host {
        bench: "fpga-share-hosts",
        headless: start == Start::Headless,
        node,
        registers: (of.reads + of.writes) as f64 / layers,
        commands: of.commands as f64 / layers,
        completions: of.completions as f64 / layers,
        cpu_ns: timed(node, layer)?,
        armed_cpu_ns: timed(node, arming)?,
    })
}

/// What a host does for a layer.
type Work = fn(&mut Driver) -> Result<(), NodeError>;

/// CPU time of it, in ns.
fn timed(node: u8, work: Option<Work>) -> Result<f64, NodeError> {
    let Some(work) = work else { return Ok(0.0) };
    let mut driver = Driver::new(node, LAYERS.1)?;
    let mut times = Vec::new();
    for _ in 0..TIMED.1 {
        let before = thread_cpu();
        (0..TIMED.0).try_for_each(|_| work(black_box(&mut driver)))?;
        let took = thread_cpu().saturating_sub(before);
        times.push(took.as_nanos() as f64 / f64::from(TIMED.0));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The tables.
pub(super) fn print(nodes: &Nodes, json: bool) -> Result<()> {
    if json {
        nodes.layers.iter().try_for_each(print_json)?;
        return nodes.hosts.iter().try_for_each(print_json);
    }
    println!(
        "\nANDs of parties as nodes at {CLOCK_MHZ} MHz, {} cycles from node to node; the first row is the latency of a multiplication end to end; four parties check theirs, and node 0 starts them\n{:>7} {:>9} {:>8} {:>8} {:>10} {:>11}",
        nodes.latency, "parties", "ANDs", "cycles", "us", "Gb/s", "bytes sent"
    );
    for row in &nodes.layers {
        println!(
            "{:>7} {:>9} {:>8} {:>8.1} {:>10.2} {:>11}",
            row.parties, row.ands, row.cycles, row.us, row.gbit_per_s, row.bytes_sent
        );
    }
    println!(
        "\nwhat hosts do in a layer: accesses of registers, commands, completions, and CPU time of their drivers, with that of arming before"
    );
    for headless in [false, true] {
        let what = if headless {
            "node 0 starts all"
        } else {
            "each starts its own"
        };
        let own = nodes.hosts.iter().filter(|host| host.headless == headless);
        let own: Vec<String> = own
            .map(|of| {
                format!(
                    "node {}: {}, {}, {}, {:.0} + {:.0} ns",
                    of.node, of.registers, of.commands, of.completions, of.cpu_ns, of.armed_cpu_ns
                )
            })
            .collect();
        println!("{what:<20} {}", own.join("; "));
    }
    Ok(())
}

/// Gb/s against the size of a layer.
pub(super) fn draw(nodes: &Nodes, svg: &mut String) -> Drawn {
    let points = nodes
        .layers
        .iter()
        .filter(|row| row.parties == 3)
        .map(|row| (row.ands as f64, row.gbit_per_s));
    let points: Vec<_> = points.collect();
    let most = points
        .iter()
        .map(|(_, gbit_per_s)| *gbit_per_s)
        .fold(1.0, f64::max);
    let line = Line {
        name: "a party's messages".to_owned(),
        color: Palette99::pick(0).to_rgba(),
        points,
        limit: Vec::new(),
    };
    let title = &format!("ANDs of three parties as nodes at {CLOCK_MHZ} MHz");
    chart::lines(
        title,
        ["ANDs in a layer", "Gb/s of messages"],
        most * 1.4,
        vec![line],
        svg,
    )
}
