//! The scalar device: every operation element by element, as it is defined, with the ledger of calls always on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use veil_prss::{Ledger, Prf};
use veil_session::{Frame, Secret, SessionId};
use zeroize::Zeroize;

mod ag;
mod commands;
mod cut;
mod garble;
mod lift;
mod matmul;
mod memory;
mod moves;
mod ot;
mod programs;
mod proof;
mod psi;
mod rank;
mod silent;
mod truncation;

use memory::Memory;

use crate::command::{Command, Completion, KeyId, Outcome, PrfCall, ProgramId, Tag};
use crate::layout::{ColumnType, Layout, Residency, Span};
use crate::program::{Needs, Program};
use crate::{Device, Fault, Workspace};

/// The reference device.
pub struct Reference {
    session: SessionId,
    keys: BTreeMap<KeyId, Prf>,
    /// The same keys, where a key is a label.
    secrets: BTreeMap<KeyId, Secret>,
    programs: Vec<(Arc<Program>, Needs)>,
    workspaces: BTreeMap<u32, Memory>,
    opened: u32,
    done: VecDeque<Completion>,
    ledger: Ledger,
}

impl Default for Reference {
    fn default() -> Self {
        Reference {
            session: SessionId([0; 32]),
            keys: BTreeMap::new(),
            secrets: BTreeMap::new(),
            programs: Vec::new(),
            workspaces: BTreeMap::new(),
            opened: 0,
            done: VecDeque::new(),
            ledger: Ledger::default(),
        }
    }
}

impl Reference {
    /// Packed bytes of columns `0..count` of a call.
    fn pseudorandom(
        &mut self,
        memory: &Memory,
        call: PrfCall,
        column: ColumnType,
        count: u32,
    ) -> Result<Vec<u8>, Fault> {
        let Frame {
            lane, chunk, rows, ..
        } = memory.frame;
        let bytes = column.bytes(rows) as usize;
        let stride = column.bytes(memory.layout.chunk_rows).div_ceil(16);
        let prf = self
            .keys
            .get(&call.key)
            .ok_or(Fault::Unknown("the key of a draw"))?;
        let mut out = vec![0; bytes * count as usize];
        if bytes > 0 {
            for (p, piece) in out.chunks_mut(bytes).enumerate() {
                let ctr = call.first + p as u64 * stride;
                self.ledger
                    .record_call(call.key.0, call.tag, lane, chunk, ctr, stride)?;
                prf.stream(call.tag, lane, ctr, chunk, piece);
            }
        }
        Ok(out)
    }
}

impl Device for Reference {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn bind(&mut self, session: SessionId) {
        self.session = session;
        self.ledger = Ledger::default();
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        self.keys.insert(id, Prf::new(key));
        self.secrets.insert(id, key.clone());
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let needs = Needs::of(program, layout)?;
        self.programs.push((Arc::clone(program), needs));
        Ok(ProgramId(self.programs.len() as u32 - 1))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let size = |r: &crate::Region| {
            r.column.bytes(frame.rows) as usize * r.components as usize * r.count as usize
        };
        let regions = layout.regions.iter().map(|r| vec![0; size(r)]).collect();
        let workspace = self.opened;
        self.opened += 1;
        self.workspaces.insert(
            workspace,
            Memory {
                layout: layout.clone(),
                frame,
                regions,
                spent: BTreeSet::new(),
            },
        );
        Ok(Workspace(workspace))
    }

    fn reuse(
        &mut self,
        workspace: Workspace,
        frame: Frame,
        (zeros, kept): (&[Span], &[Span]),
    ) -> Result<bool, Fault> {
        let memory = self
            .workspaces
            .get_mut(&workspace.0)
            .ok_or(Fault::Unknown("the workspace"))?;
        crate::layout::fits_reuse(&memory.layout, memory.frame, (frame, zeros, kept))?;
        memory.frame = frame;
        // What is kept and was taken is not taken again in the next chunk either.
        memory.spent.retain(|(region, component, column)| {
            kept.iter().any(|span| {
                (span.region, span.component) == (*region, *component)
                    && (span.first..span.first + span.count).contains(column)
            })
        });
        let left: Vec<_> = kept
            .iter()
            .map(|span| memory.bytes(*span).to_vec())
            .collect();
        for region in &mut memory.regions {
            crate::layout::junk(region);
        }
        for (span, mut bytes) in kept.iter().zip(left) {
            memory.bytes_mut(*span).copy_from_slice(&bytes);
            bytes.zeroize();
        }
        for span in zeros {
            memory.bytes_mut(*span).fill(0);
        }
        Ok(true)
    }

    fn close(&mut self, workspace: Workspace) {
        if let Some(mut memory) = self.workspaces.remove(&workspace.0) {
            memory.regions.zeroize();
        }
    }

    fn map(&mut self, workspace: Workspace, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self
            .workspaces
            .get_mut(&workspace.0)
            .ok_or(Fault::Unknown("the workspace"))?;
        if !memory.layout.contains(to)
            || !memory.layout.regions[to.region as usize]
                .residency
                .is_mapped()
        {
            return Err(Fault::NotReachable);
        }
        memory.renew(to);
        Ok(memory.bytes_mut(to))
    }

    fn view(&self, workspace: Workspace, from: Span) -> Result<&[u8], Fault> {
        let memory = self
            .workspaces
            .get(&workspace.0)
            .ok_or(Fault::Unknown("the workspace"))?;
        if !memory.layout.contains(from)
            || memory.layout.regions[from.region as usize].residency == Residency::Resident
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes(from))
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let mut memory = self
            .workspaces
            .remove(&workspace.0)
            .ok_or(Fault::Unknown("the workspace"))?;
        let mut outcome = Ok(Outcome::Done);
        for (index, command) in batch.iter().enumerate() {
            match self.run(&mut memory, index, command) {
                Ok(true) => {}
                Ok(false) => outcome = Ok(Outcome::Mismatch { command: index }),
                Err(fault) => outcome = Err(fault),
            }
            if outcome != Ok(Outcome::Done) {
                break;
            }
        }
        self.workspaces.insert(workspace.0, memory);
        self.done.push_back(Completion {
            tag,
            outcome: outcome?,
        });
        Ok(())
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        Ok(self.done.pop_front())
    }

    fn wipe(&mut self) {
        self.workspaces
            .values_mut()
            .for_each(|m| m.regions.zeroize());
        self.workspaces.clear();
        self.keys.clear();
        self.secrets.clear();
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.wipe();
    }
}
