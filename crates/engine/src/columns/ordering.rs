//! Rows that are being put in order: which are compared, and where they go by what was opened of it.

use std::sync::{PoisonError, RwLockWriteGuard};

use veil_job::Slice;
use veil_job::passes::comparisons_at_once;
use veil_protocol::passes::{NoOrder, Search};

use super::rows::pick;
use super::{Columns, NOT_THERE};
use crate::abort::Abort;

/// Rows that are being put in order: what is compared now, and what was opened of it, a bit each.
pub(super) struct Ordering {
    pub(super) search: Search,
    opened: Vec<u8>,
}

impl Columns {
    /// Chooses what pass number `pass` compares, if it compares rows.
    pub(super) fn choose(&self, pass: usize) {
        let Some(compares) = self.program.passes()[pass].compares() else {
            return;
        };
        let mut now = self.ordering();
        let now = now.get_or_insert_with(|| Ordering {
            search: Search::new(compares.rows),
            opened: Vec::new(),
        });
        let room = comparisons_at_once(compares.rows);
        now.search.choose(room);
        now.opened.clear();
        now.opened.resize(room.div_ceil(8) as usize, 0);
    }

    /// Takes what pass number `pass` has opened of rows that it compared: they are nearer to their places.
    ///
    /// # Errors
    /// [`Abort::Unordered`] if comparisons contradict each other, or are over before all places are known.
    pub(crate) fn order(&self, pass: usize) -> Result<(), Abort> {
        let Some(compares) = self.program.passes()[pass].compares() else {
            return Ok(());
        };
        if self.parts == 0 {
            return Ok(());
        }
        let mut now = self.ordering();
        let Ordering { search, opened } = now.as_mut().expect(NOT_THERE);
        let learnt = search.learn(opened);
        learnt.map_err(|_: NoOrder| Abort::Unordered {
            what: "what was opened of rows that were compared is no order",
        })?;
        for column in &compares.of {
            let mut guard = self.write(*column);
            let column = guard.as_mut().expect(NOT_THERE);
            let bytes = column.plan.form.bytes() as usize;
            let mut before = self.memory(compares.rows as usize * bytes);
            for component in &mut column.components {
                for (places, from) in search.moved() {
                    let all = places.start * bytes..places.end * bytes;
                    let before = &mut before[..all.len()];
                    before.copy_from_slice(&component[all.clone()]);
                    let first = places.start as u32;
                    let from = from.iter().map(|from| from - first);
                    pick(before, bytes, from, &mut component[all]);
                }
            }
            drop(guard);
            self.give_back(before);
        }
        if let Some(column) = compares.positions {
            let positions = search.positions().ok_or(Abort::Unordered {
                what: "the permutation that was drawn takes more comparisons than there are: run again",
            })?;
            let mut guard = self.write(column);
            let into = &mut guard.as_mut().expect(NOT_THERE).components[0];
            let (into, _) = into.as_chunks_mut();
            let positions = positions.into_iter().map(u32::to_le_bytes);
            into.iter_mut().zip(positions).for_each(|(to, of)| *to = of);
            *now = None;
        }
        Ok(())
    }

    /// How many rows are compared in the present pass.
    pub(crate) fn comparisons(&self) -> u64 {
        let now = self.ordering.read().unwrap_or_else(PoisonError::into_inner);
        now.as_ref()
            .map_or(0, |now| now.search.pairs()[0].len() as u64)
    }

    /// Notes what was opened of rows that are compared.
    pub(crate) fn compared(&self, slice: Slice, opened: &[u8]) {
        let mut now = self.ordering();
        let into = &mut now.as_mut().expect(NOT_THERE).opened[slice.first as usize / 8..];
        let bytes = (slice.rows as usize).div_ceil(8).min(into.len());
        into[..bytes].copy_from_slice(&opened[..bytes]);
    }

    pub(super) fn ordering(&self) -> RwLockWriteGuard<'_, Option<Ordering>> {
        self.ordering
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
