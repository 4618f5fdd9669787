//! Columns that wait on the disk, where memory has no room for all that later passes take.
//!
//! A program says of each column which passes take it, so what goes to the disk is what is taken last. What a pass takes, and what it leaves, is in memory
//! as a whole. Each party does this by itself: no other one sees it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use veil_job::Spill;
use veil_protocol::WorkspaceOf;
use veil_protocol::passes::{ColumnId, ColumnKind, ColumnPlan, Pass, PassProgram, Search};
use veil_session::Wiped;

use super::{Column, Columns};
use crate::Acts;
use crate::abort::Abort;

/// A bound on the memory of columns at one participant, and where others wait.
#[derive(Clone)]
pub struct Room {
    /// Bytes of the columns of a program in memory, with the workspace of a move, at most; a pass whose own columns take more has them all the same
    /// ([`columns_of_a_pass`]).
    pub bytes: u64,
    /// Where columns wait.
    pub spill: Arc<dyn Spill>,
}

/// The same for a program: what each of its passes takes beside columns, and when each column is taken.
pub(crate) struct Limit {
    bytes: u64,
    pub(super) spill: Arc<dyn Spill>,
    /// Of each pass: bytes of what it leaves, and of its workspace if it is a move.
    beside: Vec<u64>,
    /// Of each column: the passes that take it, or before which something is made of it.
    taken: Vec<Vec<usize>>,
}

impl Limit {
    /// Of a participant of a program.
    pub(crate) fn new(room: Room, acts: &Acts) -> Self {
        let program = acts.program();
        let mut taken = vec![Vec::new(); program.columns().len()];
        for pass in 0..acts.count() {
            for column in reads(program, pass) {
                taken[column.0 as usize].push(pass);
            }
        }
        let parts = acts.protocol(0).spans().sums.len();
        let beside = (0..acts.count()).map(|pass| {
            let left = left(program, pass).map(|of| bytes_of(of, parts));
            left.sum::<u64>() + workspace(acts, pass)
        });
        Limit {
            bytes: room.bytes,
            spill: room.spill,
            beside: beside.collect(),
            taken,
        }
    }

    /// The next pass after number `pass` that takes a column.
    fn next(&self, column: ColumnId, pass: usize) -> usize {
        let taken = self.taken[column.0 as usize].iter();
        let later = taken.copied().find(|taken| *taken > pass);
        later.unwrap_or(usize::MAX)
    }
}

/// The most that the columns of one pass take in memory at a participant, with the workspace of a move: with less room than that a program does not run as it
/// should.
pub fn columns_of_a_pass(acts: &Acts) -> u64 {
    let program = acts.program();
    let parts = acts.protocol(0).spans().sums.len();
    let plans = program.columns();
    let of_pass = |pass: usize| {
        let taken = program.taken_by(pass);
        let taken = taken.into_iter().map(|column| plans[column.0 as usize]);
        let columns = taken.chain(left(program, pass));
        columns.map(|of| bytes_of(of, parts)).sum::<u64>() + workspace(acts, pass)
    };
    let made = |pass: usize| {
        let made = program.made_before(pass);
        let columns: BTreeSet<ColumnId> = made
            .flat_map(|made| made.take.columns().into_iter().chain([made.column]))
            .collect();
        let columns = columns.iter();
        columns
            .map(|column| bytes_of(plans[column.0 as usize], parts))
            .sum::<u64>()
    };
    let passes = 0..acts.count();
    passes
        .map(|pass| of_pass(pass).max(made(pass)))
        .max()
        .unwrap_or(0)
}

/// What pass number `pass` takes, and what something is made of before it.
fn reads(program: &PassProgram, pass: usize) -> BTreeSet<ColumnId> {
    let mut all = program.taken_by(pass);
    all.extend(
        program
            .made_before(pass)
            .flat_map(|made| made.take.columns()),
    );
    all
}

/// What pass number `pass` leaves.
fn left(program: &PassProgram, pass: usize) -> impl Iterator<Item = ColumnPlan> + '_ {
    let left = program.left_by(pass).into_iter();
    left.map(|column| program.columns()[column.0 as usize])
}

/// Bytes of a column at a party that holds so many components of a shared value.
fn bytes_of(plan: ColumnPlan, parts: usize) -> u64 {
    let parts = match plan.kind {
        ColumnKind::Opened => parts.min(1),
        ColumnKind::Shared | ColumnKind::Factors { .. } => parts,
    };
    u64::from(plan.rows) * plan.form.bytes() * parts as u64
}

/// Bytes of the workspace of a move or of a product of matrices, or of rows that are being put in order.
fn workspace(acts: &Acts, pass: usize) -> u64 {
    match acts.pass(pass) {
        whole @ (Pass::Move { .. } | Pass::Product { .. }) => {
            let rows = whole.whole().map_or(0, |chunk| chunk.frame.rows);
            let layout = acts.protocol(pass).layout(WorkspaceOf::Rows);
            let bytes = layout.regions.iter().map(|region| {
                let columns = u64::from(region.components) * u64::from(region.count);
                region.column.bytes(rows) * columns
            });
            bytes.sum()
        }
        pass @ Pass::Rows { .. } => pass
            .compares()
            .map_or(0, |of| u64::from(of.rows) * (Search::BYTES + 16)),
    }
}

impl Column {
    fn is_away(&self) -> bool {
        !self.away.is_empty()
    }
}

impl Columns {
    /// Brings into memory what is made before pass number `pass`, and makes room for it.
    ///
    /// # Errors
    /// [`Abort::Data`] if the disk takes or gives back no columns, or gives back others.
    pub(crate) fn bring_for_made(&self, pass: usize) -> Result<(), Abort> {
        let Some(limit) = &self.limit else {
            return Ok(());
        };
        let plans = self.program.columns();
        let (mut taken, mut more) = (BTreeSet::new(), 0);
        for made in self.program.made_before(pass) {
            taken.extend(made.take.columns());
            more += bytes_of(plans[made.column.0 as usize], self.parts);
        }
        match more {
            0 => Ok(()),
            _ => self.bring(limit, &taken, more, pass),
        }
    }

    /// Brings into memory what pass number `pass` takes, and makes room for what it leaves.
    ///
    /// # Errors
    /// As of [`Columns::bring_for_made`].
    pub(crate) fn bring_for(&self, pass: usize) -> Result<(), Abort> {
        let Some(limit) = &self.limit else {
            return Ok(());
        };
        let taken = self.program.taken_by(pass);
        self.bring(limit, &taken, limit.beside[pass], pass)
    }

    fn bring(
        &self,
        limit: &Limit,
        taken: &BTreeSet<ColumnId>,
        mut more: u64,
        pass: usize,
    ) -> Result<(), Abort> {
        if self.parts == 0 {
            return Ok(());
        }
        let mut inside = 0;
        let mut others = Vec::new();
        let mut absent = Vec::new();
        for (column, of) in (0..).map(ColumnId).zip(&self.of) {
            let of = of.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Some(of) = &*of else { continue };
            let bytes = bytes_of(of.plan, self.parts);
            match (of.is_away(), taken.contains(&column)) {
                (true, true) => {
                    more += bytes;
                    absent.push(column);
                }
                (true, false) => {}
                (false, of_pass) => {
                    inside += bytes;
                    if !of_pass && bytes > 0 {
                        others.push((Reverse(limit.next(column, pass)), column, bytes));
                    }
                }
            }
        }
        let spare: u64 = self.spare().iter().map(|memory| memory.len() as u64).sum();
        if inside + more + spare > limit.bytes {
            self.spare().clear();
        }
        others.sort_unstable();
        for (_, column, bytes) in others {
            if inside + more <= limit.bytes {
                break;
            }
            self.put_away(column, limit)?;
            inside -= bytes;
        }
        absent
            .into_iter()
            .try_for_each(|column| self.bring_back(column, limit))
    }

    fn put_away(&self, column: ColumnId, limit: &Limit) -> Result<(), Abort> {
        let mut guard = self.write(column);
        let Some(column) = guard.as_mut() else {
            return Ok(());
        };
        for component in std::mem::take(&mut column.components) {
            let place = limit.spill.put(&component);
            let place = place.map_err(|error| Abort::Data(Arc::new(error)))?;
            column.away.push(place);
        }
        Ok(())
    }

    fn bring_back(&self, column: ColumnId, limit: &Limit) -> Result<(), Abort> {
        let mut guard = self.write(column);
        let Some(column) = guard.as_mut() else {
            return Ok(());
        };
        let bytes = column.plan.form.bytes() as usize * column.plan.rows as usize;
        for place in std::mem::take(&mut column.away) {
            let mut component: Wiped<u8> = self.memory(bytes);
            let brought = limit.spill.get(place, &mut component);
            brought.map_err(|error| Abort::Data(Arc::new(error)))?;
            column.components.push(component);
        }
        Ok(())
    }
}
