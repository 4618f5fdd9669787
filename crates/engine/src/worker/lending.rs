//! Columns of a move or of a product of matrices, whose workspace has all rows: their memory itself goes into it and comes out of it, where the device exchanges memory.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use veil_device::{Layout, Residency, Span};
use veil_job::Slice;
use veil_protocol::passes::{ColumnId, Pass, Take};
use veil_protocol::{Stored, WorkspaceOf};
use veil_session::Wiped;

use super::Worker;
use crate::abort::Abort;
use crate::run::{Run, is_lent};

/// The parts of lent columns.
fn lent(layout: &Layout) -> impl Iterator<Item = Span> + '_ {
    let regions = (0..).zip(&layout.regions);
    let lent = regions.filter(|(_, region)| region.residency == Residency::Lent);
    lent.flat_map(|(number, region)| {
        (0..region.components).map(move |component| Span {
            region: number,
            component,
            first: 0,
            count: 1,
        })
    })
}

impl Worker {
    /// Puts what a move takes into its workspace, and memory for all else that it writes.
    pub(super) fn lend_columns(
        &mut self,
        run: &Run,
        taken: &[(&Stored, Cow<'_, Take>)],
    ) -> Result<(), Abort> {
        let (shared, protocol) = (Arc::clone(&self.shared), Arc::clone(&self.protocol));
        let layout = protocol.layout(WorkspaceOf::Rows);
        let bytes = |span: Span| layout.bytes(span, run.slice().rows) as usize;
        let constants = protocol.spans().constants;
        let acts = Arc::clone(&self.acts);
        let pass = acts.pass(self.pass);
        // How often each column is taken, or something is made of it before the next pass.
        let mut times: HashMap<ColumnId, u32> = HashMap::new();
        let made = acts.program().made_before(self.pass + 1);
        let made = made.flat_map(|made| made.take.columns());
        let takes = taken.iter().flat_map(|(_, take)| take.columns());
        for column in takes.chain(made) {
            *times.entry(column).or_default() += 1;
        }
        let ending: HashSet<ColumnId> = acts.program().ending(self.pass).collect();
        let mut put = HashSet::new();
        for (stored, take) in taken {
            // What is taken as it is, here and nowhere else in this pass.
            let alone = match **take {
                Take::Of(column) => (times[&column] == 1).then_some(column),
                _ => None,
            };
            let ends = alone.filter(|column| ending.contains(column));
            // A product reads its matrices and no more: a column that is taken later goes back as it is.
            let comes_back =
                alone.filter(|_| ends.is_none() && matches!(pass, Pass::Product { .. }));
            let slice = Slice {
                rows: pass.taken_rows(stored.port).unwrap_or(run.slice().rows),
                ..run.slice()
            };
            for (component, span) in stored.components.iter().enumerate() {
                let comes_back = comes_back.filter(|_| is_lent(layout, *span));
                let mut memory = match ends.or(comes_back) {
                    Some(column) => shared.columns.take_whole(column, component),
                    None => shared.columns.memory(bytes(*span)),
                };
                if ends.or(comes_back).is_none() {
                    let of = (component, constants >> component & 1 == 1);
                    let columns = &shared.columns;
                    columns.load(take, of, slice, None, &mut memory);
                }
                let exchanged = is_lent(layout, *span)
                    && self.device.swap(run.workspace, *span, &mut memory)?;
                if !exchanged {
                    let into = self.device.map(run.workspace, *span)?;
                    into.copy_from_slice(&memory);
                }
                match comes_back {
                    Some(column) if exchanged => {
                        self.borrowed.push((*span, column, component));
                        shared.columns.give_back(memory);
                    }
                    Some(column) => shared.columns.leave_whole(column, component, memory),
                    None => shared.columns.give_back(memory),
                }
                put.insert(*span);
            }
        }
        for span in lent(layout).filter(|span| !put.contains(span)) {
            let mut memory = shared.columns.memory(bytes(span));
            let exchanges = self.device.swap(run.workspace, span, &mut memory)?;
            shared.columns.give_back(memory);
            if !exchanges {
                break;
            }
        }
        Ok(())
    }

    /// Leaves what a move has computed, and takes all its memory back.
    pub(super) fn take_back_columns(&mut self, run: &Run) -> Result<(), Abort> {
        let (shared, protocol) = (Arc::clone(&self.shared), Arc::clone(&self.protocol));
        let pass = Arc::clone(&self.acts);
        let pass = pass.pass(self.pass);
        let layout = protocol.layout(WorkspaceOf::Rows);
        for stored in &protocol.spans().leaves {
            let Some(column) = pass.leave(stored.port) else {
                continue;
            };
            for (component, span) in stored.components.iter().enumerate() {
                let mut memory = Wiped::default();
                let exchanged = is_lent(layout, *span)
                    && self.device.swap(run.workspace, *span, &mut memory)?;
                if !exchanged {
                    let left = self.device.view(run.workspace, *span)?;
                    memory = shared.columns.memory(left.len());
                    memory.copy_from_slice(left);
                }
                shared.columns.leave_whole(column, component, memory);
            }
        }
        let borrowed = std::mem::take(&mut self.borrowed);
        for (span, column, component) in &borrowed {
            let mut memory = Wiped::default();
            self.device.swap(run.workspace, *span, &mut memory)?;
            shared.columns.leave_whole(*column, *component, memory);
        }
        let back: HashSet<Span> = borrowed.iter().map(|(span, ..)| *span).collect();
        for span in lent(layout).filter(|span| !back.contains(span)) {
            let mut memory = Wiped::default();
            if !self.device.swap(run.workspace, span, &mut memory)? {
                break;
            }
            shared.columns.give_back(memory);
        }
        Ok(())
    }
}
