//! The memory of a workspace: one aligned block, scrubbed when it goes back to the pool.

use std::cell::OnceCell;

use veil_session::{Frame, Wiped};
use zeroize::Zeroizing;

use super::vector::VECTOR;
use crate::Fault;
use crate::layout::{ColumnType, Layout, Residency, Span};

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "read through pointers")] [u8; VECTOR]);

/// Where a region lies, and how far its columns and components are apart.
#[derive(Clone, Copy)]
pub(super) struct RegionStrides {
    /// Offset of column 0, part 0.
    pub(super) offset: usize,
    /// Bytes from a column to the next.
    pub(super) column: usize,
    /// Bytes from a part to the next.
    pub(super) component: usize,
    /// Bytes of one part of one column that count; resident rows are padded beyond it to whole vectors.
    pub(super) packed: usize,
    /// Columns behind each part of the region, for temps.
    pub(super) scratch: u32,
    /// Of a plane whose columns are padded: where its packed copy begins, `[component][column][row]`, through which the host moves bytes.
    pub(super) copy: Option<usize>,
    /// Of a lent column: which of [`Memory::lent`] its part 0 is.
    lent: Option<usize>,
}

/// A workspace: each region is `[component][column][row]`. Rows that programs compute on are padded to whole vectors; what the host reaches is
/// packed. Columns of a plane are both where their bytes are whole vectors; where not, messages go through a packed copy.
pub(super) struct Memory {
    lines: Vec<Line>,
    pub(super) layout: Layout,
    pub(super) frame: Frame,
    pub(super) all_strides: Vec<RegionStrides>,
    /// Spans of copies of planes that the host may have written since the last batch.
    landed: Vec<Span>,
    /// Parts of lent columns, each in memory of its own; none that was neither read nor written.
    lent: Vec<OnceCell<Wiped<u8>>>,
}

/// Where memory that is lent begins: at a multiple of it.
const ALIGNED: usize = 16;

impl Memory {
    /// A zeroed workspace in `pooled` memory. `scratch[r]` columns are kept behind region `r` for temps.
    pub(super) fn new(
        pooled: Option<Memory>,
        layout: &Layout,
        frame: Frame,
        scratch: &[u32],
    ) -> Self {
        let (mut lines, mut all_strides) =
            pooled.map_or((Vec::new(), Vec::new()), |m| (m.lines, m.all_strides));
        all_strides.clear();
        let plane = |residency| residency == Residency::Plane;
        let (mut offset, mut lent) = (0usize, Vec::new());
        for (index, region) in layout.regions.iter().enumerate() {
            let packed = region.column.bytes(frame.rows) as usize;
            let (components, count) = (region.components as usize, region.count as usize);
            let (padded, scratched) = match (region.residency, region.column) {
                (Residency::Resident | Residency::Plane, ColumnType::Rows(_)) => (true, true),
                // A few labels are as many wires as they are: circuits with one row have long workspaces.
                (Residency::Resident, ColumnType::Labels) => (packed >= VECTOR, true),
                _ => (false, false),
            };
            let scratch = if scratched {
                scratch.get(index).copied().unwrap_or(0)
            } else {
                0
            };
            let column = if padded {
                packed.next_multiple_of(VECTOR)
            } else {
                packed
            };
            let mut component = column * (count + scratch as usize);
            if padded && components > 1 {
                // An odd number of lines: components of a column do not compete for one set of the cache.
                component = ((component / VECTOR) | 1) * VECTOR;
            }
            let mut strides = RegionStrides {
                offset,
                column,
                component,
                packed,
                scratch,
                copy: None,
                lent: None,
            };
            if region.residency == Residency::Lent {
                strides.lent = Some(lent.len());
                lent.extend((0..components).map(|_| OnceCell::new()));
                all_strides.push(strides);
                continue;
            }
            offset = (offset + component * components).next_multiple_of(VECTOR);
            if plane(region.residency) && column != packed {
                strides.copy = Some(offset);
                offset = (offset + packed * count * components).next_multiple_of(VECTOR);
            }
            all_strides.push(strides);
        }
        lines.resize(offset / VECTOR, Line([0; VECTOR]));
        Memory {
            lines,
            layout: layout.clone(),
            frame,
            all_strides,
            landed: Vec::new(),
            lent,
        }
    }

    /// Bytes that a workspace of this shape takes.
    pub(super) fn len(&self) -> usize {
        self.lines.len() * VECTOR
    }

    /// Bytes that a workspace may take in this memory.
    pub(super) fn room(&self) -> usize {
        self.lines.capacity() * VECTOR
    }

    pub(super) fn scrub(&mut self) {
        // Wiped where it is dropped.
        self.lent.clear();
        self.lines.fill(Line([0; VECTOR]));
        // The zeros are seen by a reader, as far as the compiler knows: they are written, at the speed of a fill.
        std::hint::black_box(self.lines.as_ptr());
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// The workspace of another chunk of as many rows: these columns are zero, and others hold what is left. Builds with assertions leave junk there, so
    /// that a plan that reads it does not go unnoticed.
    pub(super) fn reuse(&mut self, frame: Frame, (zeros, kept): (&[Span], &[Span])) {
        self.frame = frame;
        self.landed.clear();
        self.lent.iter_mut().for_each(|lent| drop(lent.take()));
        if cfg!(debug_assertions) {
            let places: Vec<_> = kept.iter().map(|span| self.place(*span)).collect();
            let left: Vec<_> = (places.iter())
                .map(|place| Zeroizing::new(self.all_mut()[place.clone()].to_vec()))
                .collect();
            crate::layout::junk(self.all_mut());
            for (place, bytes) in places.into_iter().zip(left) {
                self.all_mut()[place].copy_from_slice(&bytes);
            }
        }
        for span in zeros {
            let strides = self.all_strides[span.region as usize];
            if strides.lent.is_none() {
                let (at, _) = self.column(*span, 0);
                self.all_mut()[at..][..strides.column * span.count as usize].fill(0);
            }
            if strides.copy.is_some() {
                let copy = self.reached(*span);
                self.all_mut()[copy].fill(0);
            }
        }
    }

    /// Whether spans are in the memory of this workspace, once and in one place.
    pub(super) fn holds(&self, spans: &[Span]) -> bool {
        spans.iter().all(|span| {
            let strides = &self.all_strides[span.region as usize];
            strides.lent.is_none() && strides.copy.is_none()
        })
    }

    /// Where the columns of a span are, with what is between them.
    fn place(&self, span: Span) -> std::ops::Range<usize> {
        let (at, _) = self.column(span, 0);
        at..at + self.all_strides[span.region as usize].column * span.count as usize
    }

    pub(super) fn base(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// The part of a lent column that a span is of, with its bytes.
    fn lent(&self, span: Span) -> Option<(&OnceCell<Wiped<u8>>, usize)> {
        let strides = &self.all_strides[span.region as usize];
        let lent = strides.lent?;
        Some((&self.lent[lent + span.component as usize], strides.packed))
    }

    /// The memory of a lent column.
    fn lent_memory(&self, span: Span) -> Option<&Wiped<u8>> {
        let (lent, bytes) = self.lent(span)?;
        Some(lent.get_or_init(|| Wiped::zeros(bytes)))
    }

    /// The bytes of a lent column.
    fn lent_bytes(&self, span: Span) -> Option<&[u8]> {
        self.lent_memory(span).map(|lent| &**lent)
    }

    /// The memory of a lent column.
    fn lent_mut(&mut self, span: Span) -> Option<&mut Wiped<u8>> {
        self.lent_memory(span)?;
        let strides = &self.all_strides[span.region as usize];
        self.lent[strides.lent? + span.component as usize].get_mut()
    }

    /// Exchanges the memory of a lent column; `None` if it is none, or `bytes` do not fill it.
    pub(super) fn swap(&mut self, span: Span, bytes: &mut Wiped<u8>) -> Option<bool> {
        let (_, packed) = self.lent(span)?;
        if ![0, packed].contains(&bytes.len()) {
            return None;
        }
        // Kernels reach elements of up to 16 bytes as such.
        if !bytes.as_ptr().addr().is_multiple_of(ALIGNED) && !bytes.is_empty() {
            return Some(false);
        }
        let at = self.all_strides[span.region as usize].lent?;
        let lent = &mut self.lent[at + span.component as usize];
        let held = lent.take().unwrap_or_default();
        let given = std::mem::replace(bytes, held);
        if !given.is_empty() {
            *lent = OnceCell::from(given);
        }
        Some(true)
    }

    /// Where column 0 of a span's part is.
    pub(super) fn first(&mut self, span: Span) -> *mut u8 {
        if let Some(lent) = self.lent_mut(span) {
            return lent.as_mut_ptr();
        }
        let (at, _) = self.column(span, 0);
        self.base().wrapping_add(at)
    }

    /// Offset of one column of a span's part, which is not lent, and its packed length.
    pub(super) fn column(&self, span: Span, k: u32) -> (usize, usize) {
        let strides = &self.all_strides[span.region as usize];
        debug_assert!(strides.lent.is_none(), "a lent column has no offset");
        let at = strides.offset
            + span.component as usize * strides.component
            + (span.first + k) as usize * strides.column;
        (at, strides.packed)
    }

    /// Bytes of one column of a region.
    pub(super) fn packed(&self, region: u16) -> usize {
        self.all_strides[region as usize].packed
    }

    /// Whether the columns of a span lie one after the other, without gaps.
    pub(super) fn is_whole(&self, span: Span) -> bool {
        self.lent(span).is_some() || self.run(span).is_some()
    }

    /// The bytes of a span, if its columns lie one after the other, without gaps.
    pub(super) fn whole(&self, span: Span) -> Option<&[u8]> {
        match self.lent_bytes(span) {
            None => self.run(span).map(|run| &self.all()[run]),
            lent => lent,
        }
    }

    /// Where the bytes of a span are, if its columns lie one after the other, without gaps, and are not lent.
    pub(super) fn run(&self, span: Span) -> Option<std::ops::Range<usize>> {
        if self.lent(span).is_some() {
            return None;
        }
        let (at, packed) = self.column(span, 0);
        let whole = self.all_strides[span.region as usize].column == packed;
        whole.then(|| at..at + packed * span.count as usize)
    }

    /// The whole block.
    pub(super) fn all(&self) -> &[u8] {
        // SAFETY: `lines` owns this many initialised bytes, and bytes have no alignment.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len()) }
    }

    /// The whole block.
    pub(super) fn all_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        // SAFETY: as `all`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), len) }
    }

    /// The bytes of regions, none of which may be named twice.
    pub(super) fn regions_mut<const N: usize>(
        &mut self,
        regions: [u16; N],
    ) -> Result<[&mut [u8]; N], Fault> {
        let range = |index: u16| {
            let (strides, region) = (
                &self.all_strides[index as usize],
                &self.layout.regions[index as usize],
            );
            let bytes = strides.component * usize::from(region.components);
            strides.offset..strides.offset + bytes
        };
        let ranges = regions.map(range);
        let disjoint = self.all_mut().get_disjoint_mut(ranges);
        disjoint.map_err(|_| Fault::Program("a region that is read and written at once"))
    }

    /// The packed bytes of column `k` of a span.
    pub(super) fn column_bytes(&self, span: Span, k: u32) -> &[u8] {
        if let Some(lent) = self.lent_bytes(span) {
            return lent;
        }
        let (at, len) = self.column(span, k);
        &self.all()[at..at + len]
    }

    /// The packed bytes of column `k` of a span.
    pub(super) fn column_bytes_mut(&mut self, span: Span, k: u32) -> &mut [u8] {
        if self.lent(span).is_some() {
            return self.lent_mut(span).map_or(&mut [], |lent| &mut **lent);
        }
        let (at, len) = self.column(span, k);
        &mut self.all_mut()[at..at + len]
    }

    /// The bytes of a span that is stored packed (not resident rows).
    pub(super) fn bytes(&self, span: Span) -> &[u8] {
        if let Some(lent) = self.lent_bytes(span) {
            return lent;
        }
        let (at, len) = self.column(span, 0);
        &self.all()[at..at + len * span.count as usize]
    }

    /// The bytes of a span that is stored packed (not resident rows).
    pub(super) fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        let (at, len) = self.column(span, 0);
        &mut self.all_mut()[at..at + len * span.count as usize]
    }

    /// Where the host finds the packed bytes of a span: in the copy of a plane that has one.
    fn reached(&self, span: Span) -> std::ops::Range<usize> {
        let strides = &self.all_strides[span.region as usize];
        let at = match strides.copy {
            Some(copy) => self.copied(copy, span),
            None => self.column(span, 0).0,
        };
        at..at + strides.packed * span.count as usize
    }

    /// Where a span is in the packed copy of its plane, which begins at `copy`.
    fn copied(&self, copy: usize, span: Span) -> usize {
        let count = self.layout.regions[span.region as usize].count as usize;
        let columns = span.component as usize * count + span.first as usize;
        copy + columns * self.all_strides[span.region as usize].packed
    }

    /// The packed bytes of a span that the host reaches.
    pub(super) fn view(&self, span: Span) -> &[u8] {
        if let Some(lent) = self.lent_bytes(span) {
            return lent;
        }
        &self.all()[self.reached(span)]
    }

    /// The same, to be filled: what is written takes effect with the next batch.
    pub(super) fn map(&mut self, span: Span) -> &mut [u8] {
        if self.lent(span).is_some() {
            return self.column_bytes_mut(span, 0);
        }
        let copied = self.all_strides[span.region as usize].copy.is_some();
        if copied && !self.landed.contains(&span) {
            self.landed.push(span);
        }
        let range = self.reached(span);
        &mut self.all_mut()[range]
    }

    /// Puts what the host has written into copies of planes where it belongs.
    pub(super) fn land(&mut self) {
        for span in std::mem::take(&mut self.landed) {
            self.copy_columns(span, |column, copy| (copy, column));
        }
    }

    /// Makes columns of a plane a message: they are in its copy, if there is one.
    pub(super) fn publish(&mut self, span: Span) {
        if self.all_strides[span.region as usize].copy.is_some() {
            self.copy_columns(span, |column, copy| (column, copy));
        }
    }

    /// Copies bytes between columns of a plane and its copy: `way` says from where and to where, of a column and what the copy has of it.
    fn copy_columns(&mut self, span: Span, way: impl Fn(usize, usize) -> (usize, usize)) {
        let packed = self.all_strides[span.region as usize].packed;
        let mut copy = self.reached(span).start;
        for k in 0..span.count {
            let (from, to) = way(self.column(span, k).0, copy);
            self.all_mut().copy_within(from..from + packed, to);
            copy += packed;
        }
    }

    /// The packed bytes of a column that is read, and of one that is written, which is another one.
    pub(super) fn column_to_column(
        &mut self,
        from: (Span, u32),
        to: (Span, u32),
    ) -> (&[u8], &mut [u8]) {
        let (a, read) = self.column(from.0, from.1);
        let (b, written) = self.column(to.0, to.1);
        let bytes = self.all_mut();
        if a < b {
            let (low, high) = bytes.split_at_mut(b);
            (&low[a..a + read], &mut high[..written])
        } else {
            let (low, high) = bytes.split_at_mut(a);
            (&high[..read], &mut low[b..b + written])
        }
    }
}
