//! Workspaces: bytes of a device, packed as the host sees them, and what the host has of them.

use veil_device::{Fault, Frame, Layout, Residency, Span};

use super::{card, too_large};
use crate::backend::{Backend, Buffer, Error, Host};

/// Regions begin at multiples of this.
const ALIGNED: u64 = 256;

/// A workspace.
pub(super) struct Memory {
    pub(super) layout: Layout,
    pub(super) frame: Frame,
    pub(super) buffer: Buffer,
    /// Where regions are.
    places: Vec<u64>,
    /// Regions that the host reaches, and where they are in its memory.
    mirror: Host,
    mirrored: Vec<Option<u64>>,
    /// What the host may have written since the last batch.
    touched: Vec<Span>,
    /// Values that a program forgets, or packed matrices.
    pub(super) temps: Option<Buffer>,
    /// Sums of threads: zero between commands.
    pub(super) sums: Option<Buffer>,
}

impl Memory {
    pub(super) fn new(on: &mut dyn Backend, layout: &Layout, frame: Frame) -> Result<Self, Fault> {
        let (mut bytes, mut near) = (0u64, 0u64);
        let (mut places, mut mirrored) = (Vec::new(), Vec::new());
        for region in &layout.regions {
            let items = u64::from(region.components) * u64::from(region.count);
            let all = region.column.bytes(frame.rows).saturating_mul(items);
            let all = all.saturating_add(ALIGNED - 1) / ALIGNED * ALIGNED;
            places.push(bytes);
            bytes = bytes.saturating_add(all);
            let reached = region.residency != Residency::Resident;
            mirrored.push(reached.then_some(near));
            if reached {
                near = near.saturating_add(all);
            }
        }
        let buffer = on
            .allocate(bytes.max(ALIGNED))
            .map_err(|_| too_large(bytes))?;
        let Ok(mirror) = on.pin(near) else {
            on.free(buffer);
            return Err(too_large(near));
        };
        Ok(Memory {
            layout: layout.clone(),
            frame,
            buffer,
            places,
            mirror,
            mirrored,
            touched: Vec::new(),
            temps: None,
            sums: None,
        })
    }

    /// Whether it is one of this layout for so many rows.
    pub(super) fn is_of(&self, layout: &Layout, rows: u32) -> bool {
        self.frame.rows == rows && self.layout == *layout
    }

    /// Makes it as a new one is: all zero, on the device and on the host.
    pub(super) fn wipe(&mut self, on: &mut dyn Backend) -> Result<(), Error> {
        self.touched.clear();
        let apart = [&self.temps, &self.sums].into_iter().flatten();
        for buffer in apart.chain([&self.buffer]) {
            on.clear(buffer, 0, buffer.bytes())?;
        }
        // Bytes that are read later: these stores are not left out.
        on.host_mut(&self.mirror)?.fill(0);
        Ok(())
    }

    /// Makes it one of another chunk, with zeros in some columns, on the device and on the host; in all others is what was there.
    pub(super) fn reuse(
        &mut self,
        on: &mut dyn Backend,
        frame: Frame,
        zeros: &[Span],
    ) -> Result<(), Error> {
        self.frame = frame;
        for span in zeros {
            let (at, bytes) = (self.at(*span), self.within(*span).1);
            on.clear(&self.buffer, at, bytes)?;
            if let Some((near, bytes)) = self.near(*span) {
                on.host_mut(&self.mirror)?[near as usize..][..bytes as usize].fill(0);
            }
        }
        Ok(())
    }

    /// Wipes and frees it.
    pub(super) fn free(self, on: &mut dyn Backend) {
        on.free(self.buffer);
        on.unpin(self.mirror);
        for buffer in [self.temps, self.sums].into_iter().flatten() {
            on.free(buffer);
        }
    }

    /// Makes room for values that programs forget, and for sums.
    pub(super) fn room(
        &mut self,
        on: &mut dyn Backend,
        temps: u64,
        sums: u64,
    ) -> Result<(), Fault> {
        for (buffer, bytes) in [(&mut self.temps, temps), (&mut self.sums, sums)] {
            if bytes > buffer.as_ref().map_or(0, Buffer::bytes) {
                if let Some(old) = buffer.take() {
                    on.free(old);
                }
                *buffer = Some(on.allocate(bytes).map_err(|_| too_large(bytes))?);
            }
        }
        Ok(())
    }

    /// Where a span is within its region, and how long it is.
    fn within(&self, span: Span) -> (u64, u64) {
        let region = &self.layout.regions[span.region as usize];
        let item = region.column.bytes(self.frame.rows);
        let first = u64::from(span.component) * u64::from(region.count) + u64::from(span.first);
        (first * item, u64::from(span.count) * item)
    }

    /// Where a span is in the workspace.
    pub(super) fn at(&self, span: Span) -> u64 {
        self.places[span.region as usize] + self.within(span).0
    }

    /// Bytes of an item of a region.
    pub(super) fn item(&self, region: u16) -> u64 {
        let region = &self.layout.regions[region as usize];
        region.column.bytes(self.frame.rows)
    }

    /// Bytes of a component of a region.
    pub(super) fn part(&self, region: u16) -> u64 {
        u64::from(self.layout.regions[region as usize].count) * self.item(region)
    }

    /// Where a span is in the host's memory, and how long it is, if the host reaches its region.
    fn near(&self, span: Span) -> Option<(u64, u64)> {
        let (at, bytes) = self.within(span);
        let place = self.mirrored[span.region as usize]?;
        Some((place + at, bytes))
    }

    /// Bytes for the host to write.
    pub(super) fn map<'a>(
        &mut self,
        on: &'a mut dyn Backend,
        to: Span,
    ) -> Result<&'a mut [u8], Fault> {
        let mapped = self.layout.contains(to)
            && self.layout.regions[to.region as usize]
                .residency
                .is_mapped();
        let near = self.near_if(mapped, to)?;
        if !self.touched.contains(&to) {
            self.touched.push(to);
        }
        let bytes = on.host_mut(&self.mirror).map_err(card)?;
        Ok(&mut bytes[near.0 as usize..][..near.1 as usize])
    }

    /// Bytes for the host to read.
    pub(super) fn view<'a>(&self, on: &'a dyn Backend, from: Span) -> Result<&'a [u8], Fault> {
        let near = self.near_if(self.layout.contains(from), from)?;
        let bytes = on.host(&self.mirror).map_err(card)?;
        Ok(&bytes[near.0 as usize..][..near.1 as usize])
    }

    fn near_if(&self, may: bool, span: Span) -> Result<(u64, u64), Fault> {
        let near = if may { self.near(span) } else { None };
        near.ok_or(Fault::NotReachable)
    }

    /// Queues that the device gets what the host wrote.
    pub(super) fn upload(&mut self, on: &mut dyn Backend) -> Result<(), Fault> {
        for span in std::mem::take(&mut self.touched) {
            if let Some((near, bytes)) = self.near(span) {
                let to = (&self.buffer, self.at(span));
                on.upload((&self.mirror, near), to, bytes).map_err(card)?;
            }
        }
        Ok(())
    }

    /// Queues that the host gets what the device wrote, if it reaches that.
    pub(super) fn download(&self, on: &mut dyn Backend, span: Span) -> Result<(), Fault> {
        let Some((near, bytes)) = self.near(span) else {
            return Ok(());
        };
        let from = (&self.buffer, self.at(span));
        on.download(from, (&self.mirror, near), bytes).map_err(card)
    }
}
