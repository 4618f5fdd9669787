//! Iterative modulo scheduling: B. R. Rau 1994, "Iterative Modulo Scheduling: An Algorithm For Software Pipelining Loops", figures 2 to 5.
//!
//! Deviations: one kind of resource (an engine, that a node takes for one cycle), so that the earliest free time is found in a bit map; who
//! is driven out is the node of the least height in that cycle.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::graph::Graph;

/// How often a node is placed, on average, before the interval is given up.
const ATTEMPTS: usize = 8;
/// Times stay below this.
const LAST: i64 = 1 << 31;
/// The most places: engines for as many cycles as the interval has. Where there are more, rings are long and engines are idle.
const PLACES: u64 = 1 << 24;

/// Who starts when, modulo the interval.
struct Slots {
    interval: u32,
    engines: usize,
    /// Nodes that start in cycle `m` are `who[m * engines..][..count[m]]`.
    who: Vec<u32>,
    count: Vec<u16>,
    /// Bit `m`: an engine is free in cycle `m`.
    room: Vec<u64>,
    /// Bit `m` of `taken[engine]`: a product with that engine starts there.
    taken: Vec<Vec<u64>>,
}

impl Slots {
    fn new(interval: u32, engines: u32, fixed: bool) -> Slots {
        let words = interval.div_ceil(64) as usize;
        Slots {
            interval,
            engines: engines as usize,
            who: vec![0; interval as usize * engines as usize],
            count: vec![0; interval as usize],
            room: vec![u64::MAX; words],
            taken: vec![vec![0; words]; if fixed { engines as usize } else { 0 }],
        }
    }

    fn at(&self, cycle: u32) -> &[u32] {
        let from = cycle as usize * self.engines;
        &self.who[from..from + usize::from(self.count[cycle as usize])]
    }

    /// Cycles from `from` until a node with `engine`, if that is fixed, can start.
    fn wait(&self, engine: Option<u32>, from: u32) -> Option<u32> {
        let later = self.first(engine, from, self.interval).map(|at| at - from);
        later.or_else(|| {
            let next = self.first(engine, 0, from)?;
            Some(self.interval - from + next)
        })
    }

    fn first(&self, engine: Option<u32>, from: u32, to: u32) -> Option<u32> {
        let mut word = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while word * 64 < to {
            let taken = engine.map_or(0, |engine| self.taken[engine as usize][word as usize]);
            let free = self.room[word as usize] & !taken & mask;
            if free != 0 {
                let at = word * 64 + free.trailing_zeros();
                return (at < to).then_some(at);
            }
            mask = u64::MAX;
            word += 1;
        }
        None
    }

    fn put(&mut self, node: u32, engine: Option<u32>, cycle: u32) {
        let (word, bit) = (cycle as usize / 64, 1 << (cycle % 64));
        let count = &mut self.count[cycle as usize];
        self.who[cycle as usize * self.engines + usize::from(*count)] = node;
        *count += 1;
        if usize::from(*count) == self.engines {
            self.room[word] &= !bit;
        }
        if let Some(engine) = engine {
            self.taken[engine as usize][word] |= bit;
        }
    }

    fn drop(&mut self, node: u32, engine: Option<u32>, cycle: u32) {
        let (word, bit) = (cycle as usize / 64, 1 << (cycle % 64));
        let from = cycle as usize * self.engines;
        let count = usize::from(self.count[cycle as usize]);
        let own = &mut self.who[from..from + count];
        if let Some(k) = own.iter().position(|&other| other == node) {
            own.swap(k, count - 1);
            self.count[cycle as usize] -= 1;
            self.room[word] |= bit;
            if let Some(engine) = engine {
                self.taken[engine as usize][word] &= !bit;
            }
        }
    }
}

/// When each node starts if a netlist cycle starts every `interval` cycles, or `None` if that was not found.
///
/// `heights` are those at this interval; `fixed` gives engines of products that have one.
pub(super) fn modulo(
    graph: &Graph<'_>,
    heights: &[i64],
    interval: u32,
    engines: u32,
    fixed: Option<&[Option<u32>]>,
) -> Option<Vec<u32>> {
    if u64::from(interval) * u64::from(engines) > PLACES {
        return None;
    }
    let nodes = graph.nodes.len();
    let engine = |node: u32| fixed.and_then(|engines| engines[node as usize]);
    let mut slots = Slots::new(interval, engines, fixed.is_some());
    let mut starts = vec![-1_i64; nodes];
    let mut before = vec![-1_i64; nodes];
    let mut waiting: BinaryHeap<_> = (0..nodes as u32)
        .map(|node| (heights[node as usize], Reverse(node)))
        .collect();
    let cycle = |start: i64| (start % i64::from(interval)) as u32;
    let mut left = ATTEMPTS * nodes;
    while let Some((_, Reverse(node))) = waiting.pop() {
        left = left.checked_sub(1)?;
        let mut start = 0;
        for read in graph.reads(node) {
            let other = starts[read.node as usize];
            if other >= 0 {
                start = start.max(other + graph.gap(read.node, *read, u64::from(interval)));
            }
        }
        if let Some(wait) = slots.wait(engine(node), cycle(start)) {
            start += i64::from(wait);
        } else {
            // Later than the last time: so two do not drive each other out for ever.
            start = start.max(before[node as usize] + 1);
            let out = loser(&slots, heights, cycle(start), engine(node), engine);
            for other in out.into_iter().flatten() {
                slots.drop(other, engine(other), cycle(start));
                starts[other as usize] = -1;
                waiting.push((heights[other as usize], Reverse(other)));
            }
        }
        if start >= LAST {
            return None;
        }
        before[node as usize] = start;
        starts[node as usize] = start;
        slots.put(node, engine(node), cycle(start));
        for reader in graph.readers(node) {
            let other = starts[reader.node as usize];
            if other >= 0 && other < start + graph.gap(node, *reader, u64::from(interval)) {
                slots.drop(reader.node, engine(reader.node), cycle(other));
                starts[reader.node as usize] = -1;
                waiting.push((heights[reader.node as usize], Reverse(reader.node)));
            }
        }
    }
    let first = starts.iter().min().copied().unwrap_or(0);
    Some(starts.iter().map(|&start| (start - first) as u32).collect())
}

/// Who makes room for a node in `cycle`: the product with the same engine, and if there still is none, who has most time.
fn loser(
    slots: &Slots,
    heights: &[i64],
    cycle: u32,
    own: Option<u32>,
    engine: impl Fn(u32) -> Option<u32>,
) -> [Option<u32>; 2] {
    let there = slots.at(cycle);
    let same = there
        .iter()
        .copied()
        .find(|&other| own.is_some() && engine(other) == own);
    let full = there.len() == slots.engines && same.is_none();
    let least = there
        .iter()
        .copied()
        .min_by_key(|&other| (heights[other as usize], other));
    [same, least.filter(|_| full)]
}
