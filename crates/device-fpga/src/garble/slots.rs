//! Slots of one bank, over a kernel that repeats.

/// Which slots of a bank are taken, and when.
#[derive(Default, Debug)]
pub(super) struct Slots {
    used: u32,
    /// Slots with a value that lives into the next repetition: from when they are free, and until when.
    windows: Vec<(u32, u32, u32)>,
    /// Slots that are free at the end of the values in them: `(free from, slot)`.
    free: std::collections::BTreeSet<(u32, u32)>,
}

impl Slots {
    /// Slots that were given so far.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// A ring of 2^`ring` slots, which no other value gets. Rings are asked for from the longest to the shortest, before all else, so
    /// that each begins at a multiple of its size.
    pub(super) fn ring(&mut self, ring: u32) -> u32 {
        let slot = self.used;
        debug_assert_eq!(slot % (1 << ring), 0, "longer rings come first");
        self.used += 1 << ring;
        slot
    }

    /// A slot for a value that is written by what starts at `life.0` of a kernel of `interval` bundles, and last read at `life.1`, which is
    /// beyond the interval if the value lives into the next repetition. Those come first, the others in the order of their starts.
    ///
    /// A value may be written by what starts when the one before it is read last: it is there a cycle later at least.
    pub(super) fn one(&mut self, life: (u32, u32), interval: u32) -> u32 {
        let (from, to) = life;
        if to > interval {
            let slot = self.used;
            self.used += 1;
            self.windows.push((to - interval, from, slot));
            return slot;
        }
        // The window that ends first of those that are long enough.
        let fits = |(free, until, _): &(u32, u32, u32)| *free <= from && to <= *until;
        let windows = self.windows.iter_mut().filter(|window| fits(window));
        if let Some(window) = windows.min_by_key(|(_, until, _)| *until) {
            window.0 = to;
            return window.2;
        }
        // The slot that was left last of those that are free: so fewer are used.
        let before = self.free.range(..=(from, u32::MAX)).next_back().copied();
        let slot = before.map_or_else(
            || {
                self.used += 1;
                self.used - 1
            },
            |(free, slot)| {
                self.free.remove(&(free, slot));
                slot
            },
        );
        self.free.insert((to, slot));
        slot
    }
}
