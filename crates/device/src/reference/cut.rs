//! Cut-and-choose: steps as they are defined, and programs under the offset and start point of each row.

use veil_session::Frame;

use super::garble::Circuits;
use super::{Memory, Reference};
use crate::Fault;
use crate::command::Command;
use crate::cut::{self, Columns, Cut};
use crate::garble::Garbling;
use crate::layout::{ColumnType, Span};

impl Columns for Memory {
    fn frame(&self) -> Frame {
        self.frame
    }

    fn kind(&self, region: u16) -> ColumnType {
        self.layout.regions[region as usize].column
    }

    fn get(&self, span: Span, k: u32) -> &[u8] {
        self.bytes(span.column(k))
    }

    fn get_mut(&mut self, span: Span, k: u32) -> &mut [u8] {
        self.bytes_mut(span.column(k))
    }
}

impl Reference {
    /// Does a step, which was checked, and says what a comparison found.
    pub(super) fn cut(
        &mut self,
        memory: &mut Memory,
        step: Cut,
        command: &Command,
    ) -> Result<bool, Fault> {
        let (circuits, first) = match step {
            Cut::Garble { first } => {
                let [offsets, starts] = [command.src[0], command.src[1]];
                (Circuits::each(memory, Some(offsets), starts), first)
            }
            Cut::Evaluate { first } => (Circuits::each(memory, None, command.src[0]), first),
            _ => return Ok(cut::step(memory, &self.session, step, command)),
        };
        let tables = cut::tables(step, command);
        self.run_labels(
            memory,
            command,
            (Garbling::HalfGates, circuits, first),
            tables,
        )?;
        Ok(true)
    }
}
