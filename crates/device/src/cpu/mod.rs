//! The CPU device: programs become tapes, tapes run 512 bits at a time.

mod ag;
mod commands;
mod convert;
mod cut;
mod exec;
mod garble;
mod hash;
mod isa;
mod lift;
mod mac;
mod masked;
mod matmul;
mod moves;
mod offload;
mod ot;
mod proof;
mod psi;
mod rank;
#[cfg(target_arch = "x86_64")]
mod sha;
mod silent;
mod tape;
mod truncation;
mod vector;
mod workspace;

use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use veil_session::{Frame, Secret, SessionId, Wiped};

pub use garble::HashRate;
pub use isa::Isa;
use mac::MacKey;
pub use offload::{Gates, Shares};
use tape::Tape;
use vector::{Domain, Portable, RoundKeys};
use workspace::Memory;

use crate::command::{Command, Completion, KeyId, Outcome, ProgramId, Tag};
use crate::layout::{Layout, Region, Residency, Span};
use crate::program::{Needs, Program};
use crate::{Compiled, Device, Fault, Workspace};

/// The CPU device of one lane.
pub struct Cpu {
    isa: Isa,
    session: SessionId,
    keys: BTreeMap<KeyId, RoundKeys>,
    /// The same keys, as keys of the hash of codes, where one was needed.
    macs: BTreeMap<KeyId, OnceCell<MacKey>>,
    tapes: Vec<Arc<(Tape, Needs)>>,
    /// Scratch rows that loaded tapes need behind each region, of each layout that they were loaded for.
    scratch: Vec<(Layout, Vec<u32>)>,
    /// Open workspaces by number; numbers are used again.
    workspaces: Vec<Option<Memory>>,
    /// Memory of workspaces that were closed, of this device and of those beside it.
    pool: Arc<Mutex<Vec<Memory>>>,
    done: VecDeque<Completion>,
}

/// Largest workspace: 4 GiB. A plan that needs more has a chunk too long; the planner keeps workspaces within the cache.
const LARGEST_WORKSPACE: u64 = 1 << 32;

impl Cpu {
    /// The device with the fastest instruction set of this machine.
    pub fn detect() -> Self {
        Cpu::with(Isa::available()[0])
    }

    /// The device with a given instruction set, for tests and comparisons.
    ///
    /// # Panics
    /// If this machine does not have it.
    pub fn with(isa: Isa) -> Self {
        assert!(
            Isa::available().contains(&isa),
            "this machine has no {isa:?}"
        );
        Cpu {
            isa,
            session: SessionId([0; 32]),
            keys: BTreeMap::new(),
            macs: BTreeMap::new(),
            tapes: Vec::new(),
            scratch: Vec::new(),
            workspaces: Vec::new(),
            pool: Arc::default(),
            done: VecDeque::new(),
        }
    }

    fn pool(&self) -> MutexGuard<'_, Vec<Memory>> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Columns that a program needs behind its region of slots, for its temps. The program must be a valid one.
    pub fn scratch(program: &Program, slots: &Region) -> u32 {
        tape::compile(program, slots).scratch
    }

    /// Shapes of the XORs of a valid program of bits, one for each part of it that hangs together and may be computed at once: for each XOR four times its sources, one more
    /// if it adds 1, and two more if its result is read by others than XORs of that part; then, for each source, four times its number, and what it is: 0 a row from outside,
    /// 1 a job-wide value, 2 the result of an XOR of that part.
    pub fn shapes(program: &Program) -> Vec<Vec<u16>> {
        tape::shapes::of(program)
    }

    /// The shapes that are computed at once, without a row for what lies between.
    pub fn templates() -> &'static [&'static [u16]] {
        &exec::templates::SHAPES
    }
}

impl Device for Cpu {
    fn name(&self) -> &'static str {
        match self.isa {
            Isa::Avx512 => "cpu-avx512",
            Isa::Avx2Vaes => "cpu-avx2-vaes",
            Isa::Avx2 => "cpu-avx2",
            Isa::Portable => "cpu-portable",
        }
    }

    fn ahead(&self) -> bool {
        true
    }

    fn beside(&self) -> Option<Box<dyn Device>> {
        let mut beside = Cpu::with(self.isa);
        beside.pool = Arc::clone(&self.pool);
        Some(Box::new(beside))
    }

    fn bind(&mut self, session: SessionId) {
        self.session = session;
    }

    fn load_key(&mut self, id: KeyId, key: &Secret) -> Result<(), Fault> {
        let keys = RoundKeys::new(key);
        self.macs.insert(id, OnceCell::new());
        self.keys.insert(id, keys);
        Ok(())
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        static TAPES: Compiled<(Tape, Needs)> = Compiled::new();
        let compiled = TAPES.of(program, layout, || {
            let needs = Needs::of(program, layout)?;
            Ok((tape::compile(program, &needs.regions[0]), needs))
        })?;
        let slots = program.slots as usize;
        if self.scratch.iter().all(|(of, _)| of != layout) {
            let none = vec![0; layout.regions.len()];
            self.scratch.push((layout.clone(), none));
        }
        for (_, scratch) in self.scratch.iter_mut().filter(|(of, _)| of == layout) {
            scratch[slots] = scratch[slots].max(compiled.0.scratch);
        }
        self.tapes.push(compiled);
        Ok(ProgramId(self.tapes.len() as u32 - 1))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let scratch = self.scratch.iter().find(|(of, _)| of == layout);
        let scratch = scratch.map_or(&[][..], |(_, scratch)| scratch);
        let bytes: u64 = layout
            .regions
            .iter()
            .enumerate()
            .map(|(index, r)| {
                let scratch = scratch.get(index).copied().unwrap_or(0);
                // A plane may have a copy.
                let times = 1 + u64::from(r.residency == Residency::Plane);
                // Rows are padded to whole vectors, and so is a region.
                let padding = if r.column.of_rows() { 64 } else { 0 };
                (times * (r.column.bytes(frame.rows) + padding))
                    .saturating_mul(u64::from(r.components))
                    .saturating_mul(u64::from(r.count) + u64::from(scratch))
                    .saturating_add(2 * 64)
            })
            .fold(0, u64::saturating_add);
        if bytes > LARGEST_WORKSPACE {
            return Err(Fault::TooLarge { bytes });
        }
        if layout.regions.iter().any(crate::moves::is_lent_badly) {
            return Err(Fault::NotReachable);
        }
        let pooled = {
            let mut pool = self.pool();
            let fits = pool
                .iter()
                .rposition(|memory| memory.room() as u64 >= bytes);
            fits.map(|at| pool.swap_remove(at)).or_else(|| pool.pop())
        };
        let memory = Memory::new(pooled, layout, frame, scratch);
        let workspace = self
            .workspaces
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.workspaces.len());
        if workspace == self.workspaces.len() {
            self.workspaces.push(None);
        }
        self.workspaces[workspace] = Some(memory);
        Ok(Workspace(workspace as u32))
    }

    fn reuse(
        &mut self,
        workspace: Workspace,
        frame: Frame,
        (zeros, kept): (&[Span], &[Span]),
    ) -> Result<bool, Fault> {
        let memory = self
            .workspaces
            .get_mut(workspace.0 as usize)
            .and_then(Option::as_mut)
            .ok_or(Fault::Unknown("the workspace"))?;
        crate::layout::fits_reuse(&memory.layout, memory.frame, (frame, zeros, kept))?;
        // Memory that is lent is another one's in the next chunk.
        if !memory.holds(kept) {
            return Ok(false);
        }
        memory.reuse(frame, (zeros, kept));
        Ok(true)
    }

    fn close(&mut self, workspace: Workspace) {
        if let Some(mut memory) = self
            .workspaces
            .get_mut(workspace.0 as usize)
            .and_then(Option::take)
        {
            memory.scrub();
            self.pool().push(memory);
        }
    }

    fn map(&mut self, workspace: Workspace, to: Span) -> Result<&mut [u8], Fault> {
        let memory = self
            .workspaces
            .get_mut(workspace.0 as usize)
            .and_then(Option::as_mut)
            .ok_or(Fault::Unknown("the workspace"))?;
        if !memory.layout.contains(to)
            || !memory.layout.regions[to.region as usize]
                .residency
                .is_mapped()
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.map(to))
    }

    fn view(&self, workspace: Workspace, from: Span) -> Result<&[u8], Fault> {
        let memory = self
            .workspaces
            .get(workspace.0 as usize)
            .and_then(Option::as_ref)
            .ok_or(Fault::Unknown("the workspace"))?;
        if !memory.layout.contains(from)
            || memory.layout.regions[from.region as usize].residency == Residency::Resident
        {
            return Err(Fault::NotReachable);
        }
        Ok(memory.view(from))
    }

    fn swap(
        &mut self,
        workspace: Workspace,
        of: Span,
        bytes: &mut Wiped<u8>,
    ) -> Result<bool, Fault> {
        let memory = self
            .workspaces
            .get_mut(workspace.0 as usize)
            .and_then(Option::as_mut)
            .ok_or(Fault::Unknown("the workspace"))?;
        let lent = |region: &Region| region.residency == Residency::Lent;
        if !memory.layout.contains(of)
            || of.count != 1
            || !lent(&memory.layout.regions[of.region as usize])
        {
            return Err(Fault::NotReachable);
        }
        memory.swap(of, bytes).ok_or(Fault::Shape {
            command: 0,
            what: "memory that is lent does not fill its column",
        })
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        // Out of the list while the commands run: they read keys and tapes of the device.
        let slot = self.workspaces.get_mut(workspace.0 as usize);
        let mut memory = slot
            .and_then(Option::take)
            .ok_or(Fault::Unknown("the workspace"))?;
        memory.land();
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
        self.workspaces[workspace.0 as usize] = Some(memory);
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
        self.workspaces.iter_mut().flatten().for_each(Memory::scrub);
        self.workspaces.clear();
        self.pool().clear();
        self.keys.clear();
        self.macs.clear();
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Cpu {
    /// Blocks of the PRF that this device makes per CPU-second on one core when it does nothing else: what bounds every protocol whose
    /// masks it makes. Measured for about `budget`.
    pub fn prf_rate(&self, budget: std::time::Duration) -> f64 {
        let keys = [0u8, 1].map(|k| RoundKeys::new(&Secret::new([k; 16])));
        let domain = Domain {
            tag: veil_prss::DomainTag::RAND3,
            lane: 0,
            j: 0,
        };
        let start = std::time::Instant::now();
        let (mut best, mut ctr, mut sink) = (0f64, 0u64, 0u8);
        while start.elapsed() < budget {
            let round = std::time::Instant::now();
            // SAFETY: `with` checked the instruction set.
            sink ^= unsafe {
                match self.isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => rate_avx512(&keys, domain, ctr),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2Vaes => rate_avx2_vaes(&keys, domain, ctr),
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => rate_avx2(&keys, domain, ctr),
                    _ => exec::rate::<Portable>(&keys, domain, ctr),
                }
            };
            ctr += exec::RATE_BLOCKS;
            // The best round of many: the others were interrupted.
            best = best.max(exec::RATE_BLOCKS as f64 / round.elapsed().as_secs_f64());
        }
        std::hint::black_box(sink);
        best
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes")]
unsafe fn rate_avx512(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { exec::rate::<vector::Avx512>(keys, domain, ctr) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes,vaes,bmi2")]
unsafe fn rate_avx2_vaes(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { exec::rate::<vector::Avx2Vaes>(keys, domain, ctr) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,aes")]
unsafe fn rate_avx2(keys: &[RoundKeys; 2], domain: Domain, ctr: u64) -> u8 {
    // SAFETY: the caller's.
    unsafe { exec::rate::<vector::Avx2>(keys, domain, ctr) }
}

#[cfg(test)]
mod tests {
    use veil_math::Ring;

    use super::*;
    use crate::layout::{ColumnType, Region};
    use crate::program::{Dst, Instr, Src};

    /// A workspace has room for the temps of programs that run on it, and for no others'.
    #[test]
    fn a_workspace_has_the_scratch_rows_of_its_layout() -> Result<(), Fault> {
        let layout = |slots| {
            let region = |residency, column, count| Region {
                residency,
                column,
                components: 2,
                count,
            };
            let (rows, one) = (ColumnType::Rows(Ring::Z64), ColumnType::One(Ring::Z64));
            Layout {
                chunk_rows: 100,
                regions: vec![
                    region(Residency::Resident, rows, slots),
                    region(Residency::Mapped, one, 1),
                    region(Residency::Mapped, one, 1),
                ],
            }
        };
        // All temps are alive at once.
        let program = |temps: u32| {
            let make = (0..temps).map(|t| Instr::Add(Src::Slot(0), Src::Slot(t % 2), Dst::Temp(t)));
            let read = (0..temps).map(|t| Instr::Add(Src::Temp(t), Src::Slot(1), Dst::Slot(2)));
            Arc::new(Program {
                ring: Ring::Z64,
                slots: 0,
                job_wide: 1,
                sums: 2,
                temps,
                pairs: vec![],
                code: make.chain(read).collect(),
            })
        };
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows: 100,
        };
        let mut cpu = Cpu::detect();
        for (slots, temps) in [(3, 0), (4, 50), (5, 20), (5, 10)] {
            cpu.load(&program(temps), &layout(slots))?;
        }
        for (slots, temps) in [(3, 0), (4, 50), (5, 20), (6, 0)] {
            let workspace = cpu.open(&layout(slots), frame)?;
            let memory = cpu.workspaces[workspace.0 as usize].as_ref();
            let scratch = memory.map(|memory| memory.all_strides[0].scratch);
            assert_eq!(scratch, Some(temps), "{slots} slots");
            cpu.close(workspace);
        }
        Ok(())
    }

    /// What chunks leave in a workspace is gone when it is closed, whichever of them left it.
    #[test]
    fn a_workspace_that_served_chunks_is_scrubbed() -> Result<(), Fault> {
        let mut layout = Layout {
            chunk_rows: 100,
            regions: vec![],
        };
        let region = layout.add(Region {
            residency: Residency::Mapped,
            column: ColumnType::Rows(Ring::Z64),
            components: 2,
            count: 3,
        });
        let frame = |chunk| Frame {
            epoch: 0,
            lane: 0,
            chunk,
            rows: 100,
        };
        let mut cpu = Cpu::detect();
        let workspace = cpu.open(&layout, frame(1))?;
        cpu.map(workspace, layout.all(region, 0))?.fill(7);
        assert!(cpu.reuse(workspace, frame(2), (&[], &[]))?);
        cpu.map(workspace, layout.all(region, 1))?.fill(9);
        cpu.close(workspace);
        let pool = cpu.pool();
        assert_eq!(pool.len(), 1);
        assert!(pool[0].all().iter().all(|byte| *byte == 0));
        Ok(())
    }
}
