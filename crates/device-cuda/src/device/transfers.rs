//! Steps of oblivious transfers as launches of kernels/ot and kernels/device/transfers.cu.

use veil_device::ot::{BLOCK, COLUMNS, Choices, Low, Ot, Trees};
use veil_device::{ColumnType, Command, Fault, KeyId, PrfCall, Span};
use zeroize::Zeroizing;

use super::labels::numbers;
use super::queue::{Argument, Queue};
use crate::kernels::{
    CHOOSE, COMPARE_FOLDS, DECIDE, GATHER, OT_APPLY, OT_CORRECT, OT_EXPAND, OT_FOLD, OT_KEYS,
    OT_LABELS, SPREAD,
};

/// Bytes of a block.
const BYTES: u64 = BLOCK as u64;

/// Strings in a workspace: where, how far the next one is, how long one is, and how many there are.
#[derive(Clone, Copy)]
struct Strings {
    at: u64,
    pitch: u64,
    bytes: u64,
    count: u64,
}

impl Strings {
    const fn one(at: u64, bytes: u64) -> Self {
        Strings {
            at,
            pitch: bytes,
            bytes,
            count: 1,
        }
    }
}

impl Queue<'_> {
    /// Strings of the workspace apart: to where, how far the next one is, and how many bytes of each are wanted.
    fn gather(&mut self, from: Strings, to: u64, pitch: u64, wanted: u64) {
        self.gather_items(from, (to, pitch, wanted), (1, 0xff));
    }

    /// The bytes of a span, apart.
    pub(super) fn copy_apart(&mut self, span: Span, to: u64) {
        let bytes = self.bytes(span);
        let from = Strings::one(self.memory.at(span), bytes);
        self.gather(from, to, bytes, bytes);
    }

    /// Zeros, apart.
    pub(super) fn zeros_apart(&mut self, to: u64, bytes: u64) {
        self.gather(Strings::one(0, 0), to, bytes, bytes);
    }

    /// The same of items of so many bytes, of whose last byte these bits are kept.
    fn gather_items(
        &mut self,
        from: Strings,
        (to, pitch, wanted): (u64, u64, u64),
        (item, keep): (u64, u8),
    ) {
        let Strings {
            at,
            pitch: step,
            bytes,
            count,
        } = from;
        let item = item.max(1);
        let keep = u64::from(keep);
        let call = self.call(&[at, step, bytes, count, to, pitch, wanted, item, keep]);
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
        ];
        self.step(&GATHER, Some(count * wanted.div_ceil(BYTES)), &arguments);
    }

    /// The other way.
    fn spread(&mut self, from: u64, pitch: u64, to: Strings) {
        let Strings {
            at,
            pitch: step,
            bytes,
            count,
        } = to;
        let call = self.call(&[at, step, bytes, count, from, pitch]);
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
        ];
        self.step(&SPREAD, Some(count * bytes.div_ceil(BYTES)), &arguments);
    }

    /// What an item of choices, or of corrections, is.
    fn choices(&self, span: Span) -> Choices {
        match self.item(span) {
            ColumnType::Bytes(bytes) => Choices::Bytes(bytes),
            _ => Choices::Rows,
        }
    }

    /// The first bytes of columns.
    fn columns(&self, span: Span, bytes: u64) -> Strings {
        Strings {
            at: self.memory.at(span),
            pitch: self.memory.item(span.region),
            bytes,
            count: u64::from(span.count),
        }
    }

    /// Sums of leaves from `leaf` on: columns at the beginning of what lies apart, sums of trees at `sums`.
    fn expand(
        &mut self,
        trees: Trees,
        leaf: u32,
        prf_call: PrfCall,
        strings: (u64, u64),
        sums: u64,
    ) -> Result<(), Fault> {
        let (blocks, length) = strings;
        let all = (trees.count() * trees.leaves()) as usize;
        let mut keys = Zeroizing::new(Vec::with_capacity(2 * all));
        for tree in 0..trees.count() {
            for of in 0..trees.leaves() {
                if of < leaf {
                    keys.extend([0, 0]);
                    continue;
                }
                let id = KeyId(prf_call.key.0.wrapping_add(trees.index(tree, of)));
                let key = self.keys.get(&id);
                let key = key.ok_or(Fault::Unknown("a leaf of the trees"))?;
                let label = Zeroizing::new(u128::from_le_bytes(*key.secret.expose()));
                keys.extend(numbers(*label));
            }
        }
        let [head, tail] = self.ends(prf_call);
        let keys = self.call(&keys);
        let arguments = [
            keys,
            Argument::Apart(0),
            Argument::Apart(sums),
            Argument::Number(trees.bits()),
            Argument::Number(leaf),
            Argument::Number(blocks as u32),
            Argument::Wide(length),
            Argument::Wide(prf_call.first),
            Argument::Number(head),
            Argument::Number(tail),
        ];
        let work = u64::from(trees.count()) * blocks.div_ceil(2);
        self.step(&OT_EXPAND, Some(work), &arguments);
        Ok(())
    }

    /// Queues a step, command `index` of the batch, which was checked.
    pub(super) fn transfer(
        &mut self,
        index: usize,
        step: Ot,
        command: &Command,
    ) -> Result<(), Fault> {
        let (src, dst) = (&command.src, &command.dst);
        let rows = self.memory.frame.rows;
        // Blocks of a string, and bytes of the choices in it.
        let strings = |of: Choices, items: u32| {
            let length = u64::from(items) * of.bytes(rows);
            (of.blocks(items, rows), length)
        };
        match step {
            Ot::Receive { trees } => {
                let (blocks, length) = strings(self.choices(src[0]), src[0].count);
                let (string, count) = (BYTES * blocks, u64::from(trees.count()));
                let choices = u64::from(COLUMNS) * string;
                let sums = choices + string;
                let from = Strings::one(self.memory.at(src[0]), length);
                let keep = self.item(src[0]).padding(rows);
                let item = self.memory.item(src[0].region);
                self.gather_items(from, (choices, string, string), (item, keep));
                self.expand(trees, 0, command.calls[0], (blocks, length), sums)?;
                let arguments = [
                    Argument::Apart(sums),
                    Argument::Apart(choices),
                    Argument::Number(trees.count()),
                    Argument::Number(blocks as u32),
                ];
                self.step(&OT_CORRECT, Some(blocks), &arguments);
                let corrections = Strings {
                    at: self.memory.at(dst[0]),
                    pitch: length,
                    bytes: length,
                    count,
                };
                self.spread(sums, string, corrections);
                let last = self.columns(dst[1], BYTES);
                self.spread(sums + 2 * string - BYTES, string, last);
                let columns = self.columns(dst[2], string);
                self.spread(0, string, columns);
                self.temps = self.temps.max(sums + count * string);
            }
            Ot::Send { trees, offset } => {
                let (blocks, length) = strings(self.choices(src[0]), src[0].count / trees.count());
                let (string, count) = (BYTES * blocks, u64::from(trees.count()));
                let corrections = u64::from(COLUMNS) * string;
                let sums = corrections + count * string;
                let offset = Zeroizing::new(numbers(self.offset(offset)?));
                let from = Strings {
                    at: self.memory.at(src[0]),
                    pitch: length,
                    bytes: length,
                    count,
                };
                self.gather(from, corrections, string, string);
                // Nothing was sent for the last block of the first tree.
                let last = self.columns(src[1], BYTES);
                self.gather(last, corrections + 2 * string - BYTES, string, BYTES);
                self.expand(trees, 1, command.calls[0], (blocks, length), sums)?;
                let offset = self.call(&*offset);
                let arguments = [
                    Argument::Apart(0),
                    Argument::Apart(corrections),
                    offset,
                    Argument::Number(trees.bits()),
                    Argument::Number(blocks as u32),
                    Argument::Wide(length),
                ];
                self.step(&OT_APPLY, Some(u64::from(COLUMNS) * blocks), &arguments);
                let columns = self.columns(dst[0], string);
                self.spread(0, string, columns);
                self.temps = self.temps.max(sums + count * string);
            }
            Ot::Fold { items, of } => {
                let (blocks, _) = strings(of, items);
                let string = BYTES * blocks;
                let count = u64::from(dst[0].count);
                let challenge = count * string;
                let folds = challenge + BYTES;
                let columns = self.columns(src[0], string);
                self.gather(columns, 0, string, string);
                let from = Strings::one(self.memory.at(src[1]), BYTES);
                self.gather(from, challenge, BYTES, BYTES);
                let arguments = [
                    Argument::Apart(0),
                    Argument::Apart(challenge),
                    Argument::Apart(folds),
                    Argument::Number(blocks as u32),
                    Argument::Number(dst[0].count),
                ];
                self.step(&OT_FOLD, Some(32 * count), &arguments);
                let to = self.columns(dst[0], BYTES);
                self.spread(folds, BYTES, to);
                self.temps = self.temps.max(folds + count * BYTES);
            }
            Ot::Compare { offset } => {
                let offset = numbers(self.offset(offset)?);
                let [own, theirs] = [0, 1].map(|k: usize| self.memory.at(src[k]));
                let call = Zeroizing::new([own, theirs, offset[0], offset[1]]);
                self.plain(&COMPARE_FOLDS, Some(COLUMNS.into()), &*call);
                let command = Argument::Number(index as u32);
                self.step(&DECIDE, None, &[Argument::Verdict, command]);
            }
            Ot::Labels { low } => {
                // Of choices that are bytes an item has 128 bytes of labels for each.
                let (of, labelled) = match self.item(dst[0]) {
                    ColumnType::Bytes(bytes) => (Choices::Bytes(bytes / 128), bytes / 16),
                    _ => (Choices::Rows, rows),
                };
                let (blocks, _) = strings(of, dst[0].count);
                let string = BYTES * blocks;
                let labels = u64::from(COLUMNS) * string;
                let columns = Span {
                    count: COLUMNS,
                    ..src[0]
                };
                let columns = self.columns(columns, string);
                self.gather(columns, 0, string, string);
                match low {
                    Low::Column => {}
                    Low::Choice => {
                        let choices = Span {
                            first: src[0].first + COLUMNS,
                            count: 1,
                            ..src[0]
                        };
                        let choices = self.columns(choices, string);
                        self.gather(choices, 0, string, string);
                    }
                    Low::Zero => self.zeros_apart(0, string),
                }
                let arguments = [
                    Argument::Apart(0),
                    Argument::Apart(labels),
                    Argument::Number(blocks as u32),
                    Argument::Number(dst[0].count),
                    Argument::Number(labelled),
                ];
                self.step(&OT_LABELS, Some(32 * blocks), &arguments);
                let bytes = self.bytes(dst[0]);
                let to = Strings::one(self.memory.at(dst[0]), bytes);
                self.spread(labels, bytes, to);
                self.temps = self.temps.max(labels + bytes);
            }
            Ot::Keys { offset } => {
                let prf_call = command.calls[0];
                let frame = self.memory.frame;
                let start = self
                    .key(prf_call)?
                    .prf
                    .block(prf_call.tag, frame.lane, 0, frame.chunk);
                let offset = offset.map_or(Ok(0), |key| self.offset(key))?;
                let secrets = [u128::from_le_bytes(start), offset].map(numbers);
                let secrets = self.call(&Zeroizing::new(secrets.concat()));
                let bytes = self.bytes(src[0]);
                let labels = Strings::one(self.memory.at(src[0]), bytes);
                self.gather(labels, 0, bytes, bytes);
                let arguments = [
                    Argument::Apart(0),
                    Argument::Apart(bytes),
                    secrets,
                    Argument::Number(src[0].count),
                    Argument::Number(rows),
                    Argument::Wide(prf_call.first),
                ];
                self.step(&OT_KEYS, Some(bytes / BYTES), &arguments);
                for (k, to) in (1..).zip(dst) {
                    let to = Strings::one(self.memory.at(*to), bytes);
                    self.spread(k * bytes, bytes, to);
                }
                self.temps = self.temps.max(3 * bytes);
            }
            Ot::Choose => {
                let to = dst[0];
                let [a, b, bits] = [0, 1, 2].map(|k: usize| self.memory.at(src[k]));
                let (count, cells) = (u64::from(to.count), self.labels(self.item(to)));
                let bytes = self.memory.item(src[2].region);
                let call = [self.memory.at(to), cells, count, a, b, bits, bytes];
                self.plain(&CHOOSE, Some(count * cells), &call);
            }
        }
        Ok(())
    }
}
