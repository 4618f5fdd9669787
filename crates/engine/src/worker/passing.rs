//! Passes of a program, one after the other, and the columns between them.

use std::sync::Arc;

use veil_device::Device;
use veil_protocol::passes::{Compares, Pass};
use veil_protocol::{Chunk, Plan, Protocol};
use veil_session::Frame;

use super::{Before, Stage, Worker, loaded};
use crate::abort::Abort;
use crate::memory::in_flight;
use crate::run::Run;

impl Worker {
    /// The plan of the present pass, if it is of rows.
    pub(super) fn rows(&self) -> Option<&Plan> {
        self.acts.pass(self.pass).rows().map(|plan| &**plan)
    }

    /// Whether the present pass opens something in every row.
    pub(super) fn opens_rows(&self) -> bool {
        self.rows().is_some_and(Plan::opens_rows)
    }

    /// The rows that the present pass compares, if that is what it does.
    pub(super) fn compares(&self) -> Option<&Compares> {
        self.acts.pass(self.pass).compares()
    }

    /// Whether no pass follows.
    pub(super) fn is_last(&self) -> bool {
        self.pass + 1 == self.acts.count()
    }

    /// A frame of the present pass.
    pub(super) fn of_pass(&self, frame: Frame) -> Frame {
        Frame {
            epoch: self.pass as u16,
            ..frame
        }
    }

    /// Chunk `index` of the present pass. Parties alone move rows and put them in order; where nothing is left to compare, there are no chunks.
    pub(super) fn chunk_at(&self, index: u32) -> Option<Chunk> {
        let pass = self.acts.pass(self.pass);
        let of_parties = pass.rows().is_none() || pass.compares().is_some();
        if of_parties && self.protocol.me().party().is_none() {
            return None;
        }
        let chunk = pass.chunk(index)?;
        if pass.compares().is_some() && chunk.first >= self.shared.columns.comparisons() {
            return None;
        }
        Some(Chunk {
            frame: self.of_pass(chunk.frame),
            ..chunk
        })
    }

    /// All lanes have finished the present pass: begins the next one.
    pub(super) fn next_pass(&mut self) -> Result<(), Abort> {
        let before = self.acts.like(self.pass);
        self.pass += 1;
        let acts = Arc::clone(&self.acts);
        let pass = acts.pass(self.pass);
        self.protocol = Arc::clone(acts.protocol(self.pass));
        self.plan = Arc::clone(pass.rows().unwrap_or_else(|| acts.plan()));
        let like = acts.like(self.pass);
        if like != before {
            let known = self.devices.iter().position(|of| of.like == like);
            let (device, in_flight) = if let Some(at) = known {
                let Before {
                    device, in_flight, ..
                } = self.devices.swap_remove(at);
                (device, in_flight)
            } else {
                let beside = self.device.beside();
                let device = loaded(pass, &*self.protocol, || {
                    beside.map_or_else(|| (self.factory)(), Ok)
                })?;
                let in_flight = most_in_flight(pass, &*self.protocol, (&*device, self.window));
                (device, in_flight)
            };
            self.devices.push(Before {
                like: before,
                device: std::mem::replace(&mut self.device, device),
                in_flight: std::mem::replace(&mut self.in_flight, in_flight),
            });
        }
        let shared = Arc::clone(&self.shared);
        let ready = shared.ready.get().expect("set before the first pass");
        self.load(&ready.keys)?;
        self.data = self.ends[self.pass].clone();
        self.next_chunk = u32::from(self.lane);
        self.stage = Stage::Chunks;
        Ok(())
    }

    /// Takes columns into the workspace of a run that begins.
    pub(super) fn take_columns(&mut self, run: &Run) -> Result<(), Abort> {
        let (acts, protocol) = (Arc::clone(&self.acts), Arc::clone(&self.protocol));
        let pass = acts.pass(self.pass);
        let spans = protocol.spans();
        let taken = spans.takes.iter();
        let taken = taken.filter_map(|stored| Some((stored, pass.take(stored.port)?)));
        let mut taken: Vec<_> = taken.collect();
        if pass.rows().is_none() {
            return self.lend_columns(run, &taken);
        }
        // What is made of one column one after the other: its rows are in the cache then.
        taken.sort_by_key(|(_, take)| take.columns().first().copied());
        for (stored, take) in taken {
            let bits = width(pass, stored.port, |plan, port| {
                let port = &plan.inputs[port];
                (port.bits || plan.ring == veil_math::Ring::Bits).then_some(port.width)
            });
            for (component, span) in stored.components.iter().enumerate() {
                let constants = spans.constants >> component & 1 == 1;
                let into = self.device.map(run.workspace, *span)?;
                let of = (component, constants);
                self.shared.columns.load(&take, of, run.slice(), bits, into);
            }
        }
        Ok(())
    }

    /// Leaves what a run has computed in columns.
    pub(super) fn leave_columns(&mut self, run: &Run) -> Result<(), Abort> {
        let pass = self.acts.pass(self.pass);
        if pass.rows().is_none() {
            return self.take_back_columns(run);
        }
        for stored in &self.protocol.spans().leaves {
            let Some(column) = pass.leave(stored.port) else {
                continue;
            };
            let bits = width(pass, stored.port, |plan, port| {
                let port = &plan.outputs[port];
                (port.bits || plan.ring == veil_math::Ring::Bits).then_some(port.width)
            });
            for (component, span) in stored.components.iter().enumerate() {
                let shares = self.device.view(run.workspace, *span)?;
                let columns = &self.shared.columns;
                columns.leave(column, component, run.slice(), bits, shares);
            }
        }
        Ok(())
    }

    /// Wipes the devices of other passes.
    pub(super) fn wipe_devices(&mut self) {
        self.devices
            .iter_mut()
            .for_each(|before| before.device.wipe());
    }
}

/// Chunks in flight of a pass, at most, on this device, at the participant that runs `protocol`: a move is one chunk.
pub(super) fn most_in_flight(
    pass: &Pass,
    protocol: &dyn Protocol,
    (device, window): (&dyn Device, usize),
) -> usize {
    match pass.rows() {
        Some(plan) if device.ahead() => in_flight(plan, protocol, window),
        _ => window,
    }
}

/// Wires of a port that is of bits: how they lie in a workspace; moves have elements.
fn width(pass: &Pass, port: usize, of: impl FnOnce(&Plan, usize) -> Option<u32>) -> Option<u32> {
    pass.rows().and_then(|plan| of(plan, port))
}
