//! Steps of cut-and-choose as launches of kernels/cutchoose and, of circuits, kernels/device/gates.cu.

use veil_device::cut::{self, By, Cut};
use veil_device::garble::Garbling;
use veil_device::{ColumnType, Command, Fault, Span};

use super::labels::Circuits;
use super::queue::{Argument, Queue};
use crate::kernels::{
    CUT_ACTIVE, CUT_DIGEST, CUT_MAJORITY, CUT_MARKS, CUT_MASK, CUT_MATRIX, CUT_NUMBER, CUT_PICK,
    CUT_SAME, CUT_SHUFFLE, CUT_SPREAD, CUT_STRETCH, CUT_UNMASK, CUT_VOTES, DECIDE,
};

/// Bytes as numbers, the first one lowest.
fn packed(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let word = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
    };
    bytes.chunks(8).map(word)
}

impl Queue<'_> {
    /// Step `index` of the batch, which was checked.
    pub(super) fn cut(&mut self, index: usize, step: Cut, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let rows = u64::from(self.memory.frame.rows);
        let at = |span: &Span| self.memory.at(*span);
        let count = |span: &Span| u64::from(span.count);
        let bytes = rows.div_ceil(8);
        match step {
            Cut::Stretch => {
                let blocks = count(&dst[2]) + 2;
                let [offsets, starts, to] = [0, 1, 2].map(|k: usize| at(&dst[k]));
                let call = [rows, blocks, at(&src[0]), offsets, starts, to];
                self.plain(&CUT_STRETCH, Some(blocks * rows), &call);
            }
            Cut::Number { first } => {
                let call = [rows, at(&dst[0]), first.into()];
                self.plain(&CUT_NUMBER, Some(rows), &call);
            }
            Cut::Digest { label } => self.digests(label, command),
            Cut::Marks { label, by } => {
                let mut call = vec![rows, count(&src[0])];
                call.extend(self.marked(label));
                call.extend(src.iter().map(at));
                call.extend([at(&dst[0]), u64::from(by == By::Colour)]);
                self.plain(&CUT_MARKS, Some(count(&src[0]) * rows), &call);
            }
            Cut::Member { label } => {
                self.votes(label, src, false);
                let command = Argument::Number(index as u32);
                self.step(&DECIDE, None, &[Argument::Verdict, command]);
            }
            Cut::Majority { label } => {
                let wires = count(&src[0]);
                let call = [rows, wires, at(&dst[0])];
                self.votes(label, src, true);
                let call = self.call(&call);
                let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
                self.step(&CUT_MAJORITY, Some(wires), &arguments);
                self.sums = self.sums.max(4 * wires);
            }
            Cut::Matrix { key } => {
                let bytes = self.memory.item(dst[0].region);
                let units = if bytes.is_multiple_of(16) {
                    bytes / 16
                } else {
                    bytes
                };
                let [items, columns] = [&dst[0], &src[1]].map(count);
                let mut call = vec![bytes, items, columns];
                call.extend([&dst[0], &src[0], &src[1]].map(at));
                match key {
                    Some(key) => {
                        call.push(0);
                        call.extend(packed(&key));
                    }
                    None => call.extend([1, at(&src[2]), 0]),
                }
                self.plain(&CUT_MATRIX, Some(items * units), &call);
            }
            Cut::Active => {
                let mut call = vec![rows, count(&dst[0]), at(&dst[0])];
                call.extend(src.iter().map(at));
                self.plain(&CUT_ACTIVE, Some(count(&dst[0]) * rows), &call);
            }
            Cut::Spread => {
                let [to, from] = [&dst[0], &src[0]];
                let call = [rows, count(to), at(to), at(from), count(from)];
                self.plain(&CUT_SPREAD, Some(count(to) * bytes), &call);
            }
            Cut::Mask => {
                let wires = count(&src[0]);
                let mut call = vec![rows, wires, at(&dst[0])];
                call.extend(src.iter().map(at));
                self.plain(&CUT_MASK, Some(2 * wires * rows), &call);
            }
            Cut::Unmask => {
                let wires = count(&dst[0]);
                let mut call = vec![rows, wires, at(&dst[0])];
                call.extend(src.iter().map(at));
                self.plain(&CUT_UNMASK, Some(wires * rows), &call);
            }
            Cut::Shuffle => {
                let call = [2 * rows, at(&dst[0]), at(&src[0])];
                self.with_temps(&CUT_SHUFFLE, None, &call);
                self.temps = self.temps.max(16 * rows);
            }
            Cut::Pick { half } => {
                let bits = self.item(dst[0]) != ColumnType::Labels;
                let mut call = vec![rows, count(&dst[0]), at(&dst[0])];
                call.extend(src.iter().map(at));
                call.extend([u64::from(half), u64::from(bits)]);
                let cells = if bits { bytes } else { rows };
                self.plain(&CUT_PICK, Some(count(&dst[0]) * cells), &call);
            }
            Cut::Same => {
                let call = [rows, count(&src[0]), at(&src[0])];
                self.plain(&CUT_SAME, Some(count(&src[0]) * bytes), &call);
                let command = Argument::Number(index as u32);
                self.step(&DECIDE, None, &[Argument::Verdict, command]);
            }
            Cut::Garble { first } => {
                let circuits = Circuits::Each {
                    first,
                    starts: src[1],
                    offsets: Some(src[0]),
                };
                self.circuits((Garbling::HalfGates, true), circuits, dst, command)?;
            }
            Cut::Evaluate { first } => {
                let circuits = Circuits::Each {
                    first,
                    starts: src[0],
                    offsets: None,
                };
                self.circuits((Garbling::HalfGates, false), circuits, &src[1..], command)?;
            }
        }
        Ok(())
    }

    /// What marks of a kind are of, but for wire, circuit and label.
    fn marked(&self, label: u16) -> [u64; 4] {
        let at = (self.session, self.memory.frame);
        let marked = cut::marked(at, label, 0, 0);
        let mut words = packed(&marked);
        std::array::from_fn(|_| words.next().unwrap_or_default())
    }

    /// Compares labels with the marks of their wires.
    fn votes(&mut self, label: u16, src: &[Span], count: bool) {
        let (rows, wires) = (u64::from(self.memory.frame.rows), u64::from(src[0].count));
        let mut call = vec![rows, wires];
        call.extend(self.marked(label));
        call.extend(src.iter().map(|span| self.memory.at(*span)));
        let call = self.call(&call);
        let count = Argument::Number(count.into());
        let arguments = [
            Argument::Workspace,
            Argument::Sums,
            call,
            Argument::Verdict,
            count,
        ];
        self.step(&CUT_VOTES, Some(wires * rows), &arguments);
    }

    fn digests(&mut self, label: u16, command: &Command) {
        let rows = u64::from(self.memory.frame.rows);
        let head = cut::head(self.session, label, self.memory.frame);
        let (mut bytes, mut sources) = (head.len() as u64, Vec::new());
        for from in &command.src {
            let bits = self.item(*from) != ColumnType::Labels;
            let each = if bits { 1 } else { 16 };
            bytes += each * u64::from(from.count);
            sources.extend([self.memory.at(*from), from.count.into(), bits.into()]);
        }
        let to = self.memory.at(command.dst[0]);
        let mut call = vec![rows, to, bytes, command.src.len() as u64];
        call.extend(packed(&head));
        call.extend(sources);
        self.plain(&CUT_DIGEST, Some(rows), &call);
    }
}
