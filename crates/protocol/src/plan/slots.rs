//! Slots of a workspace, while a schedule gives them out and takes them back.

use std::collections::{BTreeMap, BTreeSet};

/// Slots of a ring.
#[derive(Default)]
pub(super) struct Slots {
    /// How many there are.
    pub(super) count: u32,
    free: Free,
    /// Slots that become free after a layer.
    dying: Vec<Vec<u32>>,
}

/// Free slots.
enum Free {
    /// The last that became free is the first to be used again: it is in the cache.
    Stack(Vec<u32>),
    /// Runs of slots side by side, by first slot and by length.
    Runs(BTreeMap<u32, u32>, BTreeSet<(u32, u32)>),
}

impl Default for Free {
    fn default() -> Self {
        Free::Stack(Vec::new())
    }
}

impl Slots {
    /// Slots whose free ones are kept as runs, if products of a layer are to lie `side_by_side`.
    pub(super) fn new(side_by_side: bool) -> Self {
        let free = if side_by_side {
            Free::Runs(BTreeMap::new(), BTreeSet::new())
        } else {
            Free::default()
        };
        Slots {
            free,
            ..Slots::default()
        }
    }

    /// Prepares for a schedule that ends with layer `tail`.
    pub(super) fn begin(&mut self, tail: u32) {
        self.dying = vec![Vec::new(); tail as usize + 2];
    }

    /// A slot.
    pub(super) fn take(&mut self) -> u32 {
        self.take_run(1)
    }

    /// So many slots, in as few runs as there are free ones, by first slot. There are no more slots after it than there have to be.
    pub(super) fn take_runs(&mut self, mut count: u32) -> Vec<std::ops::Range<u32>> {
        let mut taken = Vec::new();
        while count > 0 {
            let longest = match &self.free {
                Free::Stack(_) => None,
                Free::Runs(_, by_length) => by_length.last().map(|(length, _)| *length),
            };
            let first = match longest {
                Some(length) if length < count => {
                    let first = self.take_run(length);
                    taken.push(first..first + length);
                    count -= length;
                    continue;
                }
                _ => self.take_run(count),
            };
            taken.push(first..first + count);
            break;
        }
        taken.sort_unstable_by_key(|run| run.start);
        taken
    }

    /// So many slots side by side, at least one.
    pub(super) fn take_run(&mut self, count: u32) -> u32 {
        match &mut self.free {
            Free::Stack(free) => {
                if count == 1
                    && let Some(slot) = free.pop()
                {
                    return slot;
                }
                free.sort_unstable();
                let side_by_side = |run: &[u32]| run[run.len() - 1] - run[0] == count - 1;
                if let Some(at) = free.windows(count as usize).position(side_by_side) {
                    let first = free[at];
                    free.drain(at..at + count as usize);
                    return first;
                }
            }
            Free::Runs(runs, by_length) => {
                // The shortest run that is long enough, so that longer ones stay for others.
                if let Some(&(length, first)) = by_length.range((count, 0)..).next() {
                    by_length.remove(&(length, first));
                    runs.remove(&first);
                    if length > count {
                        runs.insert(first + count, length - count);
                        by_length.insert((length - count, first + count));
                    }
                    return first;
                }
                // Or else the last free ones, and new ones behind them.
                if let Some((&first, &length)) = runs.last_key_value()
                    && first + length == self.count
                {
                    runs.remove(&first);
                    by_length.remove(&(length, first));
                    self.count = first + count;
                    return first;
                }
            }
        }
        self.count += count;
        self.count - count
    }

    /// A slot is free after `layer`.
    pub(super) fn dies(&mut self, slot: u32, layer: u32) {
        self.dying[layer as usize].push(slot);
    }

    /// The end of a layer.
    pub(super) fn end(&mut self, layer: u32) {
        for slot in std::mem::take(&mut self.dying[layer as usize]) {
            self.give_back(slot);
        }
    }

    fn give_back(&mut self, slot: u32) {
        let (runs, by_length) = match &mut self.free {
            Free::Stack(free) => return free.push(slot),
            Free::Runs(runs, by_length) => (runs, by_length),
        };
        let (mut first, mut length) = (slot, 1);
        if let Some((&before, &long)) = runs.range(..slot).next_back()
            && before + long == slot
        {
            runs.remove(&before);
            by_length.remove(&(long, before));
            (first, length) = (before, long + 1);
        }
        if let Some(long) = runs.remove(&(slot + 1)) {
            by_length.remove(&(long, slot + 1));
            length += long;
        }
        runs.insert(first, length);
        by_length.insert((length, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(slots: &Slots) -> Vec<(u32, u32)> {
        match &slots.free {
            Free::Runs(runs, by_length) => {
                assert_eq!(runs.len(), by_length.len());
                runs.iter()
                    .map(|(first, length)| (*first, *length))
                    .collect()
            }
            Free::Stack(free) => free.iter().map(|slot| (*slot, 1)).collect(),
        }
    }

    #[test]
    fn neighbours_join_and_the_shortest_run_is_taken() {
        let mut slots = Slots::new(true);
        slots.begin(9);
        assert_eq!(slots.take_run(10), 0);
        for slot in [3, 5, 4, 0, 8, 7] {
            slots.dies(slot, 1);
        }
        slots.end(1);
        assert_eq!(free(&slots), [(0, 1), (3, 3), (7, 2)]);
        assert_eq!(slots.take(), 0);
        assert_eq!(slots.take_run(2), 7);
        assert_eq!(slots.take(), 3);
        assert_eq!(free(&slots), [(4, 2)]);
        // Nothing is long enough, and the last slot is in use.
        assert_eq!(slots.take_run(3), 10);
        slots.dies(12, 2);
        slots.end(2);
        assert_eq!(slots.take_run(4), 12);
        assert_eq!((slots.count, free(&slots)), (16, vec![(4, 2)]));
        // Free ones first, however short, and new ones for what is left.
        slots.dies(0, 3);
        slots.end(3);
        assert_eq!(slots.take_runs(5), [0..1, 4..6, 16..18]);
        assert_eq!((slots.count, slots.take_runs(0)), (18, vec![]));
    }

    #[test]
    fn without_runs_the_last_that_was_freed_comes_first() {
        let mut slots = Slots::new(false);
        slots.begin(9);
        assert_eq!(slots.take_run(4), 0);
        for slot in [2, 0, 3] {
            slots.dies(slot, 1);
        }
        slots.end(1);
        assert_eq!(slots.take(), 3);
        slots.dies(3, 2);
        slots.end(2);
        assert_eq!(slots.take_run(2), 2);
        assert_eq!((slots.take(), slots.count), (0, 4));
    }
}
