//! The scalar device: every operation element by element, as it is defined, with the ledger of draws always on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use veil_prss::{Ledger, Prf};
use veil_session::{Frame, Secret, SessionId};
use zeroize::Zeroize;

mod commands;
mod cut;
mod garble;
mod memory;
mod ot;
mod programs;
mod proof;

use memory::Memory;

use crate::command::{Command, Completion, Draw, KeyId, Outcome, ProgramId, Tag};
use crate::layout::{Item, Layout, Place, Span};
use crate::program::{Needs, Program};
use crate::{Bank, Device, Fault};

/// The reference device.
pub struct Reference {
    session: SessionId,
    keys: BTreeMap<KeyId, Prf>,
    /// The same keys, where a key is a label.
    secrets: BTreeMap<KeyId, Secret>,
    programs: Vec<(Arc<Program>, Needs)>,
    banks: BTreeMap<u32, Memory>,
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
            banks: BTreeMap::new(),
            opened: 0,
            done: VecDeque::new(),
            ledger: Ledger::default(),
        }
    }
}

impl Reference {
    /// Packed bytes of items `0..count` of a draw.
    fn draw(
        &mut self,
        memory: &Memory,
        draw: Draw,
        item: Item,
        count: u32,
    ) -> Result<Vec<u8>, Fault> {
        let Frame {
            lane, chunk, rows, ..
        } = memory.frame;
        let bytes = item.bytes(rows) as usize;
        let stride = item.bytes(memory.layout.chunk_rows).div_ceil(16);
        let prf = self
            .keys
            .get(&draw.key)
            .ok_or(Fault::Unknown("the key of a draw"))?;
        let mut out = vec![0; bytes * count as usize];
        if bytes > 0 {
            for (p, piece) in out.chunks_mut(bytes).enumerate() {
                let ctr = draw.first + p as u64 * stride;
                self.ledger
                    .draw(draw.key.0, draw.tag, lane, chunk, ctr, stride)?;
                prf.stream(draw.tag, lane, ctr, chunk, piece);
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

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Bank, Fault> {
        let size = |r: &crate::Region| {
            r.item.bytes(frame.rows) as usize * r.parts as usize * r.count as usize
        };
        let regions = layout.regions.iter().map(|r| vec![0; size(r)]).collect();
        let bank = self.opened;
        self.opened += 1;
        self.banks.insert(
            bank,
            Memory {
                layout: layout.clone(),
                frame,
                regions,
            },
        );
        Ok(Bank(bank))
    }

    fn close(&mut self, bank: Bank) {
        if let Some(mut memory) = self.banks.remove(&bank.0) {
            memory.regions.zeroize();
        }
    }

    fn map(&mut self, bank: Bank, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self
            .banks
            .get_mut(&bank.0)
            .ok_or(Fault::Unknown("the bank"))?;
        if !memory.layout.contains(to)
            || memory.layout.regions[to.region as usize].place != Place::Mapped
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes_mut(to))
    }

    fn view(&self, bank: Bank, from: Span) -> Result<&[u8], Fault> {
        let memory = self.banks.get(&bank.0).ok_or(Fault::Unknown("the bank"))?;
        if !memory.layout.contains(from)
            || memory.layout.regions[from.region as usize].place == Place::Resident
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.bytes(from))
    }

    fn submit(&mut self, bank: Bank, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let mut memory = self
            .banks
            .remove(&bank.0)
            .ok_or(Fault::Unknown("the bank"))?;
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
        self.banks.insert(bank.0, memory);
        self.done.push_back(Completion {
            tag,
            outcome: outcome?,
        });
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }

    fn wipe(&mut self) {
        self.banks.values_mut().for_each(|m| m.regions.zeroize());
        self.banks.clear();
        self.keys.clear();
        self.secrets.clear();
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        self.wipe();
    }
}
