//! The alarm against calling the PRF twice on one tuple (attack case A8).

use std::collections::BTreeMap;

use crate::DomainTag;

/// The PRF was called on a tuple before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reuse {
    /// Number of the key at this party.
    pub key: u16,
    /// Domain tag of the call.
    pub tag: DomainTag,
    /// Lane of the call.
    pub lane: u16,
    /// Chunk of the call.
    pub j: u32,
    /// First counter that is repeated.
    pub ctr: u64,
}

impl std::fmt::Display for Reuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "counter {} of tag {:#06x}, lane {}, chunk {} was drawn before under key {}",
            self.ctr, self.tag.0, self.lane, self.j, self.key
        )
    }
}

impl std::error::Error for Reuse {}

type Domain = (u16, u16, u16, u32);

/// Remembers every PRF call of a run, as disjoint ranges of counters.
#[derive(Default, Debug)]
pub struct Ledger(BTreeMap<Domain, BTreeMap<u64, u64>>);

impl Ledger {
    /// Records the call on `count` counters from `first`, unless one of them was called before.
    ///
    /// # Errors
    /// [`Reuse`] with the first counter that was called before, or with `u64::MAX` if `first + count` exceeds it. Nothing is
    /// recorded then.
    pub fn record_call(
        &mut self,
        key: u16,
        tag: DomainTag,
        lane: u16,
        j: u32,
        first: u64,
        count: u64,
    ) -> Result<(), Reuse> {
        if count == 0 {
            return Ok(());
        }
        let end = first.checked_add(count).ok_or(Reuse {
            key,
            tag,
            lane,
            j,
            ctr: u64::MAX,
        })?;
        let ranges = self.0.entry((key, tag.0, lane, j)).or_default();
        if let Some((&start, &stop)) = ranges.range(..end).next_back()
            && stop > first
        {
            return Err(Reuse {
                key,
                tag,
                lane,
                j,
                ctr: start.max(first),
            });
        }
        // Neighbours grow together: a run of products is one range.
        let mut start = first;
        if let Some((&before, &stop)) = ranges.range(..first).next_back()
            && stop == first
        {
            start = before;
        }
        let end = ranges.remove(&end).unwrap_or(end);
        ranges.insert(start, end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_on_overlap_only() {
        let mut ledger = Ledger::default();
        let mut call = |tag, j, first, count| {
            ledger
                .record_call(0, DomainTag(tag), 0, j, first, count)
                .map_err(|r| r.ctr)
        };
        assert_eq!(call(1, 0, 10, 5), Ok(()));
        assert_eq!(call(1, 0, 15, 5), Ok(()));
        assert_eq!(call(1, 0, 5, 5), Ok(()));
        assert_eq!(call(1, 0, 19, 1), Err(19));
        assert_eq!(call(1, 0, 0, 6), Err(5));
        assert_eq!(call(1, 0, 12, 1), Err(12));
        assert_eq!(call(1, 1, 12, 1), Ok(()));
        assert_eq!(call(2, 0, 12, 1), Ok(()));
        assert_eq!(call(1, 0, u64::MAX, 2), Err(u64::MAX));
    }
}
