//! Rows and numbers of nodes that have times.

use super::{Machine, NO_NUMBER, Node, Schedule};

const FREE: u32 = u32::MAX;

/// Gives engines, and numbers in the order of starts: products that start one after the other are a line.
///
/// Products of one cycle, modulo the interval, need different engines, and so do those of one line. That is a colouring of the edges of a
/// graph with cycles on one side and lines on the other, with as many colours as the most edges at a node, which there always is (D. König
/// 1916, "Über Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre").
pub(super) fn number(
    nodes: &[Node],
    starts: Vec<u32>,
    interval: u32,
    machine: &Machine,
) -> Schedule {
    let engines = machine.engines as usize;
    let mut order: Vec<u32> = (0..nodes.len() as u32)
        .filter(|&node| nodes[node as usize].product)
        .collect();
    order.sort_by_key(|&node| (starts[node as usize], node));
    let cycle = |&node: &u32| starts[node as usize] % interval;
    let mut cycles: Vec<u32> = order.iter().map(cycle).collect();
    cycles.sort_unstable();
    cycles.dedup();
    let edges: Vec<[u32; 2]> = (0..)
        .zip(&order)
        .map(|(k, node)| {
            let cycle = cycles.partition_point(|&other| other < cycle(node));
            [cycle as u32, k / machine.engines]
        })
        .collect();
    let mut colours = colour(&edges, cycles.len(), engines);
    // The last line has numbers of the first engines only.
    let mut renamed = vec![FREE; engines];
    let last = order.len() - order.len() % engines;
    let ends = colours[last..].iter().copied().chain(0..engines as u32);
    let mut next = 0;
    for colour in ends {
        if renamed[colour as usize] == FREE {
            renamed[colour as usize] = next;
            next += 1;
        }
    }
    for colour in &mut colours {
        *colour = renamed[*colour as usize];
    }
    let mut numbers = vec![NO_NUMBER; nodes.len()];
    for ((k, &node), &engine) in order.iter().enumerate().zip(&colours) {
        numbers[node as usize] = (k - k % engines) as u32 + engine;
    }
    place(nodes, starts, numbers, interval, machine)
}

/// Gives engines where products have numbers: others take what engines are left in their cycles.
pub(super) fn place(
    nodes: &[Node],
    starts: Vec<u32>,
    numbers: Vec<u32>,
    interval: u32,
    machine: &Machine,
) -> Schedule {
    let cycle = |node: u32| starts[node as usize] % interval;
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    order.sort_by_key(|&node| (cycle(node), !nodes[node as usize].product));
    let mut engines = vec![0; nodes.len()];
    for own in order.chunk_by(|&a, &b| cycle(a) == cycle(b)) {
        let mut left = vec![true; machine.engines as usize];
        for &node in own {
            let engine = if nodes[node as usize].product {
                numbers[node as usize] % machine.engines
            } else {
                let first = left.iter().position(|&left| left);
                first.expect("at most as many nodes as engines start in a cycle") as u32
            };
            left[engine as usize] = false;
            engines[node as usize] = engine;
        }
    }
    Schedule {
        interval,
        starts,
        engines,
        numbers,
    }
}

/// Colours edges between cycles and lines, at most `colours` at each, so that those at one differ.
fn colour(edges: &[[u32; 2]], cycles: usize, colours: usize) -> Vec<u32> {
    let lines = edges.len().div_ceil(colours);
    // Which edge has a colour at an end: cycles first, then lines.
    let mut at = vec![FREE; (cycles + lines) * colours];
    let mut of = vec![FREE; edges.len()];
    let end = |edge: u32, side: usize| edges[edge as usize][side] as usize + side * cycles;
    for edge in 0..edges.len() as u32 {
        let free = |side: usize| {
            let from = end(edge, side) * colours;
            let own = &at[from..from + colours];
            own.iter().position(|&other| other == FREE)
        };
        let (Some(a), Some(b)) = (free(0), free(1)) else {
            unreachable!("no more edges at an end than colours");
        };
        // From the line go on along a, b, a, ..., and change these; the path never comes to the cycle, where a is free.
        let mut path = Vec::new();
        let (mut side, mut here, mut along) = (1, end(edge, 1), a);
        while a != b && at[here * colours + along] != FREE {
            let other = at[here * colours + along];
            path.push(other);
            side = 1 - side;
            here = end(other, side);
            along = a + b - along;
        }
        for &other in &path {
            for side in 0..2 {
                at[end(other, side) * colours + of[other as usize] as usize] = FREE;
            }
        }
        for &other in &path {
            let colour = a + b - of[other as usize] as usize;
            of[other as usize] = colour as u32;
            for side in 0..2 {
                at[end(other, side) * colours + colour] = other;
            }
        }
        of[edge as usize] = a as u32;
        for side in 0..2 {
            at[end(edge, side) * colours + a] = edge;
        }
    }
    of
}

/// When the last product of a line, or of one before it, starts. `numbers` are those of products, each once.
pub(super) fn reached(nodes: &[Node], starts: &[u32], numbers: &[u32], engines: u32) -> Vec<u32> {
    let products = nodes.iter().filter(|node| node.product).count() as u32;
    let mut last = vec![0; products.div_ceil(engines) as usize];
    for (node, _) in nodes.iter().enumerate().filter(|(_, node)| node.product) {
        let line = &mut last[(numbers[node] / engines) as usize];
        *line = starts[node].max(*line);
    }
    for line in 1..last.len() {
        last[line] = last[line].max(last[line - 1]);
    }
    last
}

/// A product that would start before the buffer has room for its line.
pub(super) struct Blocked {
    pub(super) node: u32,
    /// From which interval on it has, if any.
    pub(super) interval: Option<u32>,
}

/// The product that needs the largest interval for its line to find room, if one needs more than `interval`.
///
/// Lines are counted over all netlist cycles. A product may start when the line that is [`Machine::lines`] before its own has left.
pub(super) fn blocked(
    nodes: &[Node],
    starts: &[u32],
    numbers: &[u32],
    interval: u32,
    machine: &Machine,
) -> Option<Blocked> {
    let reached = reached(nodes, starts, numbers, machine.engines);
    let (lines, depth) = (reached.len() as u64, u64::from(machine.lines));
    let mut worst = None;
    let mut most = interval;
    for (node, _) in nodes.iter().enumerate().filter(|(_, node)| node.product) {
        let line = u64::from(numbers[node] / machine.engines);
        let free = |line: u64| u64::from(reached[line as usize] + machine.drain);
        let start = u64::from(starts[node]);
        if line >= depth && free(line - depth) > start {
            return Some(Blocked {
                node: node as u32,
                interval: None,
            });
        }
        // The first earlier netlist cycle with such a line, and the one before, all of whose lines must have left.
        let back = depth.saturating_sub(line).div_ceil(lines).max(1);
        let first = line + back * lines - depth;
        for (back, line) in [(back, first.min(lines - 1)), (back + 1, lines - 1)] {
            let needs = free(line).saturating_sub(start).div_ceil(back) as u32;
            if needs > most {
                most = needs;
                worst = Some(Blocked {
                    node: node as u32,
                    interval: Some(most),
                });
            }
        }
    }
    worst
}
