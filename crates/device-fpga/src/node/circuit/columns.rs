//! Where columns lie, and for how long.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::graph::{Graph, Step};
use super::waves::Wave;

/// Columns for values that come and go: the first that are free for as many as are needed.
#[derive(Default)]
pub(super) struct Pool {
    /// First column that is free: how many, and from which wave on.
    free: BTreeMap<u32, (u32, u32)>,
    /// Columns that were ever used.
    pub(super) columns: u32,
}

impl Pool {
    /// `count` columns behind one another, which are written in a wave.
    pub(super) fn take(&mut self, count: u32, wave: u32) -> u32 {
        let (mut first, mut room) = (0, 0);
        for (&at, &(columns, from)) in &self.free {
            if from > wave {
                room = 0;
                continue;
            }
            if room == 0 || at != first + room {
                (first, room) = (at, 0);
            }
            room += columns;
            if room >= count {
                break;
            }
        }
        if room < count {
            // Behind all others: with the last of them, if they are free.
            if room == 0 || first + room != self.columns {
                first = self.columns;
            }
            self.columns = first + count;
        }
        self.cut(first, count);
        first
    }

    /// Takes columns out of those that are free.
    fn cut(&mut self, first: u32, count: u32) {
        let within: Vec<u32> = (self.free.range(first..first + count))
            .map(|(at, _)| *at)
            .collect();
        for at in within {
            let Some((columns, from)) = self.free.remove(&at) else {
                continue;
            };
            if at + columns > first + count {
                let left = at + columns - first - count;
                self.free.insert(first + count, (left, from));
            }
        }
    }

    /// Columns that may be written from a wave on.
    pub(super) fn give(&mut self, first: u32, count: u32, from: u32) {
        self.free.insert(first, (count, from));
    }
}

/// Steps in an order in which operands of neighbours lie behind one another, where they do; each with whether its operands change places.
pub(super) fn runs(
    graph: &Graph,
    steps: &[u32],
    column: impl Fn(u32) -> u64,
    stride: u64,
) -> Vec<(u32, bool)> {
    let operands = |step: u32| match graph.steps[step as usize] {
        Step::Xor(a, b) | Step::And(a, b) => (column(a), column(b)),
        Step::Not(a) => (column(a), u64::MAX),
        Step::Input => (u64::MAX, u64::MAX),
    };
    let mut of = HashMap::new();
    for step in steps {
        let (a, b) = operands(*step);
        of.insert((b, a), (*step, true));
        of.insert((a, b), (*step, false));
    }
    let by = |(a, b): (u64, u64), go: fn(u64, u64) -> u64| {
        let go = |of| if of == u64::MAX { of } else { go(of, stride) };
        (go(a), go(b))
    };
    let mut runs = Vec::new();
    let mut placed = HashSet::new();
    for step in steps {
        if placed.contains(step) {
            continue;
        }
        let mut at = operands(*step);
        if !of.contains_key(&at) {
            // Another step has the same operands.
            runs.push((*step, false));
            continue;
        }
        // To the beginning of the run, then to its end.
        while of.contains_key(&by(at, u64::wrapping_sub)) {
            at = by(at, u64::wrapping_sub);
        }
        while let Some(found) = of.remove(&at) {
            of.remove(&(at.1, at.0));
            placed.insert(found.0);
            runs.push(found);
            at = by(at, u64::wrapping_add);
        }
    }
    runs
}

/// The wave in which each value is read last; none is read before it is there. `kept` are never free.
pub(super) fn last_reads(graph: &Graph, waves: &[Wave], kept: &[u32]) -> Vec<u32> {
    let mut last = vec![0; graph.steps.len()];
    for (number, wave) in (0..).zip(waves) {
        for step in wave.sums.iter().chain(&wave.products) {
            // Who is never read is free when it is there.
            last[*step as usize] = number;
            for operand in graph.steps[*step as usize].operands() {
                last[operand as usize] = number;
            }
        }
    }
    for value in kept {
        last[*value as usize] = u32::MAX;
    }
    last
}

/// Places in the order of neighbourhoods, those of which the first step comes first; within one in the order of the circuit.
pub(super) fn ordered(steps: &[u32], of: &[u64]) -> Vec<u32> {
    let mut first = HashMap::new();
    for step in steps {
        first.entry(of[*step as usize]).or_insert(*step);
    }
    let mut ordered = steps.to_vec();
    ordered.sort_by_key(|step| (first[&of[*step as usize]], *step));
    ordered
}

#[cfg(test)]
mod tests {
    use super::Pool;

    #[test]
    fn columns_are_used_again_when_no_step_reads_them() {
        let mut pool = Pool::default();
        assert_eq!(pool.take(4, 0), 0);
        assert_eq!(pool.take(2, 0), 4);
        pool.give(0, 4, 3);
        assert_eq!(pool.take(1, 2), 6, "not yet");
        assert_eq!(pool.take(3, 3), 0);
        pool.give(4, 2, 3);
        assert_eq!(pool.take(3, 5), 3, "neighbours are one");
        pool.give(6, 1, 4);
        assert_eq!(pool.take(5, 5), 6, "the last may grow");
        assert_eq!(pool.columns, 11);
    }
}
