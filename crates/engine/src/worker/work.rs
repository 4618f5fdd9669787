//! The work of a lane in each stage: workspaces are opened and filled, stepped, and read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use veil_device::{Fault, Workspace};
use veil_job::{Holder, Slice};
use veil_protocol::{Chunk, Stored, Task, WorkspaceOf};
use veil_session::{Frame, Peer};

use super::{AHEAD_AFTER, Stage, Worker};
use crate::abort::Abort;
use crate::run::{Advance, Run, Work};
use crate::setup::{Keys, list_digest};
use crate::shared::add;
use crate::stored::clear_beyond;

impl Worker {
    /// Opens the workspace of the first chunk while others are waited for: memory that is touched for the first time takes as long as a small
    /// circuit.
    pub(super) fn open_first(&mut self) -> Result<(), Abort> {
        if let (None, Some(chunk)) = (&self.first, self.chunk_at(u32::from(self.lane))) {
            let layout = self.protocol.layout(WorkspaceOf::Rows);
            let workspace = self
                .device
                .open(layout, self.workspace(WorkspaceOf::Rows, chunk.frame))?;
            self.first = Some((chunk.frame, workspace));
        }
        Ok(())
    }

    fn open(&mut self, frame: Frame, block: u32, first: u64, work: Work) -> Result<Run, Abort> {
        let opened = self.first.take_if(|(opened, _)| *opened == frame);
        let of_workspace = self.workspace(work.workspace(), frame);
        let workspace = if let Some((_, workspace)) = opened {
            workspace
        } else if let Some(workspace) = self.left(work, of_workspace)? {
            workspace
        } else if self.continues(work, frame) {
            return Err(Fault::Unsupported {
                device: self.device.name(),
                what: "silent transfers, which go on from chunk to chunk: leave `ot` out",
            }
            .into());
        } else {
            let layout = self.protocol.layout(work.workspace());
            self.device.open(layout, of_workspace)?
        };
        Ok(Run::new(
            Chunk {
                frame,
                block,
                first,
            },
            (workspace, of_workspace.rows),
            work,
        ))
    }

    /// Whether a chunk goes on with what another one has left.
    fn continues(&self, work: Work, frame: Frame) -> bool {
        matches!(work, Work::Chunk { .. }) && self.protocol.goes_on(frame)
    }

    /// The workspace of a chunk of the present pass that is over, for another one of as many rows.
    fn left(&mut self, work: Work, frame: Frame) -> Result<Option<Workspace>, Abort> {
        let spans = self.protocol.spans();
        let (Work::Chunk { .. }, Some(zeros)) = (work, &spans.zeros) else {
            return Ok(None);
        };
        let Some(at) = self.left.iter().rposition(|(rows, _)| *rows == frame.rows) else {
            return Ok(None);
        };
        let (_, workspace) = self.left.swap_remove(at);
        if self.device.reuse(workspace, frame, (zeros, &spans.kept))? {
            return Ok(Some(workspace));
        }
        self.device.close(workspace);
        Ok(None)
    }

    /// Leaves the workspace of a chunk that is over for one that has not begun, if there may be one.
    fn leave_workspace(&mut self, run: &Run) {
        if self.protocol.spans().zeros.is_some() && self.chunk_at(self.next_chunk).is_some() {
            self.left.push((run.rows(), run.workspace));
        } else {
            self.device.close(run.workspace);
        }
    }

    /// A frame, with as many rows as its workspace has.
    fn workspace(&self, of: WorkspaceOf, frame: Frame) -> Frame {
        Frame {
            rows: self.protocol.rows(of, frame.rows),
            ..frame
        }
    }

    /// The set-up workspace: the list of accepted inputs, digests of seeds, values per job.
    pub(super) fn set_up(&mut self, keys: Keys) -> Result<(), Abort> {
        let run = self.open(self.plan.set_up_frame(), 0, 0, Work::SetUp)?;
        let protocol = Arc::clone(&self.protocol);
        let spans = protocol.spans();
        if let Some(list) = spans.list {
            let accepted = 0..self.plan.job.owners.len() as u16;
            self.device.write(
                run.workspace,
                list,
                &list_digest((&self.plan, self.acts.hash()), keys.session, accepted),
            )?;
            for (span, digest) in &keys.seed_digests {
                self.device.write(run.workspace, *span, digest)?;
            }
        }
        let slice = Slice {
            block: 0,
            first: 0,
            rows: 1,
        };
        for &(port, span) in &spans.job_inputs {
            let source = self
                .data
                .source
                .as_ref()
                .expect("checked when the worker was made");
            source.fill(port, slice, self.device.map(run.workspace, span)?)?;
        }
        self.fetch(&run, &spans.job_loads, slice)?;
        self.stage = Stage::SetUp(run, keys);
        Ok(())
    }

    pub(super) fn chunks(&mut self) -> Result<bool, Abort> {
        let mut moved = false;
        while self.active.len() < self.window && self.begin()? {
            moved = true;
        }
        let over = self.chunk_at(self.next_chunk).is_none();
        if over && self.is_last() && self.sends() {
            self.shared.status.in_last_chunk(self.lane);
        }
        let mut active = std::mem::take(&mut self.active);
        let mut result = Ok(());
        active.retain_mut(|run| {
            if result.is_err() {
                return true;
            }
            match self.chunk(run) {
                Ok((going, m)) => {
                    moved |= m;
                    going
                }
                Err(e) => {
                    result = Err(e);
                    true
                }
            }
        });
        self.active = active;
        result?;
        // All have waited for messages, and for longer than a message takes on one machine: meanwhile another one is computed.
        if !moved && self.may_begin() && self.has_waited() >= AHEAD_AFTER {
            moved = self.begin()?;
        }
        if self.active.is_empty() && self.chunk_at(self.next_chunk).is_none() {
            for (_, workspace) in self.left.drain(..) {
                self.device.close(workspace);
            }
            if !self.sums.is_empty() {
                let sums = std::mem::take(&mut self.sums);
                self.shared.add(self.plan.words, &sums);
            }
            if !self.is_last() {
                self.shared.passed(self.pass, self.plan.lanes)?;
                self.stage = Stage::Passing;
                return Ok(true);
            }
            if self.lane == 0 {
                self.stage = Stage::Lanes;
                return Ok(true);
            }
            self.close();
            return Ok(true);
        }
        self.stage = Stage::Chunks;
        Ok(moved)
    }

    /// Whether another chunk may be in flight, and there is one.
    pub(super) fn may_begin(&self) -> bool {
        self.active.len() < self.in_flight && self.chunk_at(self.next_chunk).is_some()
    }

    /// Begins the next chunk, if there is one.
    fn begin(&mut self) -> Result<bool, Abort> {
        let Some(chunk) = self.chunk_at(self.next_chunk) else {
            return Ok(false);
        };
        self.next_chunk += u32::from(self.plan.lanes);
        let run = self.start(chunk)?;
        if self.opens_rows() && self.compares().is_none() && self.sends() {
            self.shared.status.opens();
        }
        self.active.push_back(run);
        Ok(true)
    }

    fn start(&mut self, chunk: Chunk) -> Result<Run, Abort> {
        let opens = self.opens_rows();
        let run = self.open(
            chunk.frame,
            chunk.block,
            chunk.first,
            Work::Chunk {
                block: chunk.block,
                opens,
            },
        )?;
        let protocol = Arc::clone(&self.protocol);
        let spans = protocol.spans();
        let slice = run.slice();
        self.take_columns(&run)?;
        if self.rows().is_none() {
            return Ok(run);
        }
        if self.pass == 0 {
            self.share_job_wide(&run)?;
        }
        for &(port, span) in &spans.inputs {
            let holder = self.plan.job.blocks[chunk.block as usize].holders[port];
            if holder.peer() == Some(protocol.me()) {
                let source = self
                    .data
                    .source
                    .as_ref()
                    .expect("checked when the worker was made");
                source.fill(port, slice, self.device.map(run.workspace, span)?)?;
            }
        }
        let holders = &self.plan.job.blocks[chunk.block as usize].holders;
        let loads = spans.loads.iter();
        let loads: Vec<_> = loads
            .filter(|load| holders[load.port] == Holder::Stored)
            .cloned()
            .collect();
        self.fetch(&run, &loads, slice)?;
        Ok(run)
    }

    /// Puts what the set-up made, the job-wide values, into the workspace of a run.
    fn share_job_wide(&mut self, run: &Run) -> Result<(), Abort> {
        let protocol = Arc::clone(&self.protocol);
        if let Some(ready) = self.shared.ready.get() {
            for (span, bytes) in protocol.spans().job_wide.iter().zip(&ready.job_wide) {
                self.device.write(run.workspace, *span, bytes)?;
            }
        }
        Ok(())
    }

    /// Loads both components of `ports` from the party's store.
    fn fetch(&mut self, run: &Run, ports: &[Stored], slice: Slice) -> Result<(), Abort> {
        for Stored { port, components } in ports {
            let store = self.data.stored.as_ref();
            let store = store.expect("checked when the worker was made");
            for (component, span) in components.iter().enumerate() {
                let into = self.device.map(run.workspace, *span)?;
                store.load(*port, component as u8, slice, into)?;
                clear_beyond(self.plan.ring, slice.rows, into);
            }
        }
        Ok(())
    }

    /// Gives both components of ports to the party's store.
    pub(super) fn keep(
        &self,
        run: &Run,
        of: impl Fn(&veil_protocol::Spans) -> &Vec<Stored>,
    ) -> Result<(), Abort> {
        for Stored { port, components } in of(self.protocol.spans()) {
            let store = self.data.keeps.as_ref();
            let store = store.expect("checked when the worker was made");
            for (component, span) in components.iter().enumerate() {
                let shares = self.device.view(run.workspace, *span)?;
                store.keep(*port, component as u8, run.slice(), shares)?;
            }
        }
        Ok(())
    }

    /// Advances a chunk: whether it goes on, and whether anything moved.
    fn chunk(&mut self, run: &mut Run) -> Result<(bool, bool), Abort> {
        let mut moved = false;
        loop {
            let advance = self.advance(run)?;
            self.note_received(run);
            match advance {
                Advance::Waiting => return Ok((true, moved)),
                Advance::Moved => return Ok((true, true)),
                Advance::TaskDone(Task::Layers) => {
                    self.leave_columns(run)?;
                    self.keep(run, |s| &s.keeps)?;
                    self.put_stock(run)?;
                    if self.rows().is_some_and(|plan| plan.sums > 0) {
                        let sums = self.read(run, |s| &s.sums)?;
                        if self.sums.is_empty() {
                            self.sums = sums;
                        } else {
                            let ring = self.plan.words;
                            self.sums
                                .iter_mut()
                                .zip(&sums)
                                .for_each(|(a, b)| add(ring, a, b));
                        }
                    }
                }
                Advance::Feeds { place, cycle } => self.feed(run, place, cycle)?,
                Advance::TaskDone(Task::Open(_)) => self.put(run, |s| &s.opened)?,
                Advance::TaskDone(_) => {}
                Advance::Done => {
                    self.shared.note_done();
                    self.leave_workspace(run);
                    self.shared
                        .rows_done
                        .fetch_add(u64::from(run.chunk.frame.rows), Ordering::Relaxed);
                    return Ok((false, true));
                }
            }
            moved = true;
        }
    }

    /// Puts what a round needs into the workspace of a run: cells of stock, and the inputs of the cycles that are shared with `cycle`.
    pub(super) fn feed(&mut self, run: &Run, place: u32, cycle: u64) -> Result<(), Abort> {
        let protocol = Arc::clone(&self.protocol);
        let plan = Arc::clone(&self.plan);
        if let Some(take) = protocol.takes(place, cycle, run.chunk.frame) {
            self.take_stock(run, &take)?;
        }
        let Some(cycles) = plan
            .cycles
            .as_ref()
            .filter(|_| protocol.feeds_inputs(place))
        else {
            return Ok(());
        };
        let last = cycles.count.min(cycle.saturating_add(cycles.window));
        for &(port, span) in &protocol.spans().cycle_inputs {
            let holder = plan.job.blocks[run.chunk.block as usize].holders[port];
            if holder.peer() != Some(protocol.me()) {
                continue;
            }
            let source = self.data.source.as_ref();
            let source = source.expect("checked when the worker was made");
            let into = self.device.map(run.workspace, span)?;
            // The window may go on where the cycles end.
            let share = into.len() as u64 / cycles.window * (last - cycle);
            let (values, beyond) = into.split_at_mut(share as usize);
            source.fill_cycles(port, run.slice(), (cycle..last, cycles.count), values)?;
            beyond.fill(0);
        }
        Ok(())
    }

    pub(super) fn totals(&mut self) -> Result<(), Abort> {
        let frame = self.of_pass(self.plan.totals_frame());
        let run = self.open(frame, 0, 0, Work::Totals)?;
        let sums = self.shared.take_sums();
        let protocol = Arc::clone(&self.protocol);
        let spans = protocol.spans();
        for (span, bytes) in spans.sums.iter().zip(&sums) {
            self.device.write(run.workspace, *span, bytes)?;
        }
        self.share_job_wide(&run)?;
        self.stage = Stage::Totals(run);
        Ok(())
    }

    pub(super) fn read(
        &self,
        run: &Run,
        of: impl Fn(&veil_protocol::Spans) -> &Vec<veil_device::Span>,
    ) -> Result<Vec<Vec<u8>>, Abort> {
        let spans = of(self.protocol.spans());
        spans
            .iter()
            .map(|s| Ok(self.device.view(run.workspace, *s)?.to_vec()))
            .collect()
    }

    /// Whether others need messages of this participant for an opening. What a recipient outside receives, it opens without an answer.
    fn sends(&self) -> bool {
        !matches!(self.protocol.me(), Peer::Recipient(_))
    }

    /// Notes that a part of an opening has come to a recipient.
    pub(super) fn note_received(&self, run: &Run) {
        if !self.sends() && run.is_under_way() {
            self.shared.status.opens();
        }
    }

    pub(super) fn put(
        &self,
        run: &Run,
        of: impl Fn(&veil_protocol::Spans) -> &Vec<(usize, veil_device::Span)>,
    ) -> Result<(), Abort> {
        if self.compares().is_some() {
            let slice = run.slice();
            for (_, span) in of(self.protocol.spans()) {
                let opened = self.device.view(run.workspace, *span)?;
                self.shared.columns.compared(slice, opened);
            }
            return Ok(());
        }
        self.shared.status.opens();
        // Claims first: where one is false, no result is handed on.
        let pass = self.acts.pass(self.pass);
        for (port, span) in of(self.protocol.spans()) {
            let Some(what) = pass.claimed(*port) else {
                continue;
            };
            let opened = self.device.view(run.workspace, *span)?;
            if opened.iter().any(|byte| *byte != 0) {
                let what = match self.acts.count() {
                    1 => Arc::from(what),
                    _ => pass.claim().map_or_else(|| Arc::from(what), Arc::clone),
                };
                return Err(Abort::Claim { what });
            }
        }
        for (port, span) in of(self.protocol.spans()) {
            if pass.claimed(*port).is_some() {
                continue;
            }
            let sink = self
                .data
                .sink
                .as_ref()
                .expect("checked when the worker was made");
            sink.put(*port, run.slice(), self.device.view(run.workspace, *span)?)?;
        }
        Ok(())
    }
}
