//! For devices that keep their workspaces here and do some commands elsewhere.

use zeroize::Zeroizing;

use super::Cpu;
use super::workspace::Memory;
use crate::command::{Command, NO_PROGRAM, Op};
use crate::layout::{ColumnType, Residency, Span};
use crate::{Fault, Frame, Garbling, Repeat, Workspace};

/// A garbling command that is offloaded: a card does it on a workspace of this device.
pub struct Gates<'a> {
    /// How tables are made.
    pub scheme: Garbling,
    /// The offset Δ.
    pub offset: Zeroizing<u128>,
    /// The start point of the chunk's hash.
    pub start: Zeroizing<u128>,
    /// Number of product 0.
    pub first: u64,
    memory: &'a mut Memory,
}

impl Cpu {
    /// Checks command `index` of a batch, a [`Op::Garble`] whose program has products, and gives what the card that does it has to know.
    ///
    /// # Errors
    /// [`Fault`] as of [`Command::check`]; [`Fault::Unknown`] if workspace or key is not loaded, or the command is no [`Op::Garble`]
    /// with a program and a call.
    pub fn offload_gates(
        &mut self,
        workspace: Workspace,
        index: usize,
        command: &Command,
    ) -> Result<Gates<'_>, Fault> {
        let needs = command.program.and_then(|id| self.tapes.get(id.0 as usize));
        let needs = needs.map(|of| &of.1);
        let memory = (self.workspaces.get(workspace.0 as usize)).and_then(Option::as_ref);
        let memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        command.check(index, (&memory.layout, memory.frame.rows), needs)?;
        let (Op::Garble { scheme, offset }, Some(call)) = (&command.op, command.calls.first())
        else {
            return Err(NO_PROGRAM);
        };
        let offset = Zeroizing::new(self.offset(*offset)?);
        let mask = self.mask(*call, memory.frame)?;
        let start = Zeroizing::new(scheme.start(mask.key.prf(), call.tag, memory.frame));
        let memory = (self.workspaces.get_mut(workspace.0 as usize)).and_then(Option::as_mut);
        Ok(Gates {
            scheme: *scheme,
            offset,
            start,
            first: call.first,
            memory: memory.ok_or(Fault::Unknown("the workspace"))?,
        })
    }
}

impl Cpu {
    /// Checks command `index` of a batch, an [`Op::Repeat`], and its commands in the first and in the last repetition, around which no other
    /// goes. Says how many rows the workspace has.
    ///
    /// # Errors
    /// [`Fault`] as of [`Command::check`], for the command itself and for its body in the first and the last repetition;
    /// [`Fault::Unknown`] if the workspace is not open or the command is no [`Op::Repeat`].
    pub fn offload_repeat(
        &self,
        workspace: Workspace,
        index: usize,
        command: &Command,
    ) -> Result<u32, Fault> {
        let memory = (self.workspaces.get(workspace.0 as usize)).and_then(Option::as_ref);
        let memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        let of = (&memory.layout, memory.frame.rows);
        command.check(index, of, None)?;
        let Op::Repeat(repeat) = &command.op else {
            return Err(Fault::Unknown("what a command repeats"));
        };
        for step in &repeat.body {
            for repetition in [0, repeat.count - 1] {
                let command = step.at(repetition);
                let needs = command.program.and_then(|id| self.tapes.get(id.0 as usize));
                command.check(index, of, needs.map(|of| &of.1))?;
            }
        }
        Ok(memory.frame.rows)
    }
}

impl Cpu {
    /// Clears the repeated columns that do not live, when a card has done the repetition.
    ///
    /// # Errors
    /// [`Fault::Unknown`] if the workspace is not open.
    pub fn clear_offloaded(&mut self, workspace: Workspace, repeat: &Repeat) -> Result<(), Fault> {
        let memory = (self.workspaces.get_mut(workspace.0 as usize)).and_then(Option::take);
        let mut memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        self.forget(&mut memory, repeat);
        self.workspaces[workspace.0 as usize] = Some(memory);
        Ok(())
    }
}

impl Gates<'_> {
    /// The chunk.
    pub fn frame(&self) -> Frame {
        self.memory.frame
    }

    /// Labels of column `column` of a region: one per row, or one that all rows share.
    pub fn labels(&self, region: u16, column: u32) -> &[[u8; 16]] {
        let bytes = self.memory.column_bytes(self.of(region, column), 0);
        bytes.as_chunks().0
    }

    /// The same, to be written.
    pub fn labels_mut(&mut self, region: u16, column: u32) -> &mut [[u8; 16]] {
        let span = self.of(region, column);
        self.memory.column_bytes_mut(span, 0).as_chunks_mut().0
    }

    fn of(&self, region: u16, column: u32) -> Span {
        let there = &self.memory.layout.regions[region as usize];
        assert!(
            matches!(there.column, ColumnType::Labels | ColumnType::Label)
                && column < there.count
                && there.residency != Residency::Public,
            "the command was checked, and names labels"
        );
        Span {
            region,
            component: 0,
            first: column,
            count: 1,
        }
    }
}

/// A workspace with shares that an offloading card computes on.
pub struct Shares<'a> {
    memory: &'a mut Memory,
}

impl Cpu {
    /// Checks commands of a batch, the first of which is number `first`, and lends their workspace. They run programs over shares, add
    /// messages, or make and compare MACs; the card that does them writes the bytes of the reference, and stays within the spans that they
    /// name.
    ///
    /// # Errors
    /// [`Fault`] as of [`Command::check`]; [`Fault::Unknown`] if the workspace is not open or a command is of another kind.
    pub fn offload_shares(
        &mut self,
        workspace: Workspace,
        first: usize,
        commands: &[Command],
    ) -> Result<Shares<'_>, Fault> {
        let memory = (self.workspaces.get_mut(workspace.0 as usize)).and_then(Option::as_mut);
        let memory = memory.ok_or(Fault::Unknown("the workspace"))?;
        memory.land();
        let of = (&memory.layout, memory.frame.rows);
        for (index, command) in (first..).zip(commands) {
            let needs = command.program.and_then(|id| self.tapes.get(id.0 as usize));
            command.check(index, of, needs.map(|of| &of.1))?;
            if !matches!(
                command.op,
                Op::Linear
                    | Op::Product(_)
                    | Op::AddReceived { .. }
                    | Op::Publish
                    | Op::Mac
                    | Op::CheckEqual
            ) {
                return Err(NO_PROGRAM);
            }
        }
        Ok(Shares { memory })
    }
}

impl Shares<'_> {
    /// The chunk.
    pub fn frame(&self) -> Frame {
        self.memory.frame
    }

    /// Rows of a full chunk: counters advance by so many.
    pub fn chunk_rows(&self) -> u32 {
        self.memory.layout.chunk_rows
    }

    /// Packed bytes of one component of column `column` of a region.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column(&self, region: u16, component: u8, column: u32) -> &[u8] {
        self.memory
            .column_bytes(self.of(region, component, column), 0)
    }

    /// The same, to be written.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn column_mut(&mut self, region: u16, component: u8, column: u32) -> &mut [u8] {
        let span = self.of(region, component, column);
        self.memory.column_bytes_mut(span, 0)
    }

    fn of(&self, region: u16, component: u8, column: u32) -> Span {
        let span = Span {
            region,
            component,
            first: column,
            count: 1,
        };
        assert!(
            self.memory.layout.contains(span),
            "the command was checked, and names items that there are"
        );
        span
    }
}
