//! List scheduling of one netlist cycle by the critical path: T. C. Hu 1961, "Parallel Sequencing and Assembly Line Problems".

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::Graph;
use super::{Machine, NO_NUMBER, ScheduleError};

/// In which order products with numbers start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Products {
    /// By the critical path, as others.
    Free,
    /// By number in each engine, and only when their lines find room.
    InOrder,
}

/// Number, height, node.
type Numbered = (Reverse<u32>, i64, Reverse<u32>);

/// What can start, the best last. Products with numbers wait for their own engine, all others for any.
struct Ready {
    any: BinaryHeap<(i64, Reverse<u32>)>,
    engines: Vec<BinaryHeap<Numbered>>,
}

/// Lines of tables of one netlist cycle.
struct Lines {
    left: Vec<u32>,
    /// When all products of these lines have started, in order.
    done: Vec<u32>,
    last: Vec<u32>,
}

impl Lines {
    fn new(products: u32, engines: u32) -> Lines {
        let lines = products.div_ceil(engines);
        let left = (0..lines).map(|line| engines.min(products - line * engines));
        Lines {
            left: left.collect(),
            done: Vec::new(),
            last: vec![0; lines as usize],
        }
    }

    fn start(&mut self, line: u32, time: u32) {
        let line = line as usize;
        self.left[line] -= 1;
        self.last[line] = self.last[line].max(time);
        while self.left.get(self.done.len()) == Some(&0) {
            let before = self.done.last().copied().unwrap_or(0);
            self.done.push(before.max(self.last[self.done.len()]));
        }
    }

    /// When a product of `line` finds room; `None` if that is not known yet.
    fn room(&self, line: u32, machine: &Machine) -> Option<u32> {
        match line.checked_sub(machine.lines) {
            None => Some(0),
            Some(before) => Some(self.done.get(before as usize)? + machine.drain),
        }
    }
}

/// When the nodes of a netlist cycle start, as if it were the only one. With `numbers` engines of products are fixed.
pub(super) fn list(
    graph: &Graph<'_>,
    heights: &[i64],
    machine: &Machine,
    numbers: Option<(&[u32], Products)>,
) -> Result<Vec<u32>, ScheduleError> {
    let engines = machine.engines as usize;
    let mut starts = vec![0_u32; graph.nodes.len()];
    let mut awaited = graph.awaited();
    let mut ready = Ready {
        any: BinaryHeap::new(),
        engines: vec![BinaryHeap::new(); if numbers.is_some() { engines } else { 0 }],
    };
    let products = graph.nodes.iter().filter(|node| node.product).count() as u32;
    let mut lines = Lines::new(products, machine.engines);
    let number = |node: u32| match numbers {
        Some((numbers, _)) => numbers[node as usize],
        None => NO_NUMBER,
    };
    let in_order = matches!(numbers, Some((_, Products::InOrder)));
    let add = |ready: &mut Ready, node: u32| {
        let height = heights[node as usize];
        match number(node) {
            NO_NUMBER => ready.any.push((height, Reverse(node))),
            number => {
                let first = if in_order { number } else { 0 };
                let own = &mut ready.engines[number as usize % engines];
                own.push((Reverse(first), height, Reverse(node)));
            }
        }
    };
    for node in (0..graph.nodes.len() as u32).filter(|&node| awaited[node as usize] == 0) {
        add(&mut ready, node);
    }
    let mut later: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    let mut earliest = vec![0_u32; graph.nodes.len()];
    let mut left = graph.nodes.len();
    let mut time = 0;
    while left > 0 {
        while let Some(&Reverse((at, node))) = later.peek()
            && at <= time
        {
            later.pop();
            add(&mut ready, node);
        }
        let mut free = vec![true; ready.engines.len()];
        let mut next = later.peek().map(|&Reverse((at, _))| at);
        let mut started = 0;
        while started < engines {
            let mut best = ready
                .any
                .peek()
                .map(|&(height, node)| (height, node, engines));
            for (engine, own) in ready
                .engines
                .iter()
                .enumerate()
                .filter(|&(engine, _)| free[engine])
            {
                let Some(&(_, height, node)) = own.peek() else {
                    continue;
                };
                if in_order {
                    match lines.room(number(node.0) / machine.engines, machine) {
                        Some(at) if at <= time => {}
                        Some(at) => {
                            next = Some(next.map_or(at, |next| next.min(at)));
                            continue;
                        }
                        None => continue,
                    }
                }
                if best.is_none_or(|(height_, node_, _)| (height, node) > (height_, node_)) {
                    best = Some((height, node, engine));
                }
            }
            let Some((_, Reverse(node), engine)) = best else {
                break;
            };
            if engine == engines {
                ready.any.pop();
            } else {
                ready.engines[engine].pop();
                free[engine] = false;
                lines.start(number(node) / machine.engines, time);
            }
            starts[node as usize] = time;
            started += 1;
            for reader in graph.readers(node).iter().filter(|r| r.distance == 0) {
                let other = reader.node as usize;
                earliest[other] = earliest[other].max(time + graph.latency[node as usize]);
                awaited[other] -= 1;
                if awaited[other] == 0 {
                    later.push(Reverse((earliest[other], reader.node)));
                }
            }
        }
        left -= started;
        if started > 0 || left == 0 {
            time += 1;
        } else if let Some(next) = next {
            time = next.max(time + 1);
        } else {
            return Err(stuck(&ready, machine, number));
        }
    }
    Ok(starts)
}

/// Nothing can ever start: the product of the smallest number that waits for room.
fn stuck(ready: &Ready, machine: &Machine, number: impl Fn(u32) -> u32) -> ScheduleError {
    let waiting = ready.engines.iter().filter_map(BinaryHeap::peek);
    ScheduleError::Order {
        number: waiting
            .map(|&(_, _, Reverse(node))| number(node))
            .min()
            .unwrap_or(NO_NUMBER),
        lines: machine.lines,
    }
}
