//! Steps of silent transfers as launches of kernels/silent.

use veil_device::silent::HIDING;
use veil_device::{Command, Fault, Lpn, Over, Silent, Span};
use zeroize::Zeroizing;

use super::labels::numbers;
use super::queue::{Argument, PARTIAL, Queue};
use crate::kernels::{
    COMBINE, SILENT_CHECK, SILENT_CHOOSE, SILENT_FILL, SILENT_FOLD, SILENT_GIVE, SILENT_GROW,
    SILENT_HIDE, SILENT_PACK, SILENT_PRODUCTS, SILENT_PUNCTURE, SILENT_ROWS, SILENT_TURN,
};

/// Bytes of a block.
const BLOCK: u64 = 16;
/// Threads that have a tree.
const WARP: u64 = 32;
/// Blocks of a fold that a thread has, at least: its powers of the challenge take as long as many of them.
const FOLDED: u64 = 16;

impl Queue<'_> {
    /// A step, which was checked.
    pub(super) fn silent(&mut self, step: Silent, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        match step {
            Silent::Grow { set, .. }
            | Silent::Puncture { set }
            | Silent::Give { set }
            | Silent::Fill { set } => self.trees(step, set, command)?,
            Silent::Ask { set } | Silent::Answer { set, .. } => {
                self.asked(step, set, command)?;
            }
            Silent::Rows { set } => self.outputs(set, command)?,
            Silent::Pack => {
                let [from, to] = [src[0], dst[0]].map(|span| self.memory.at(span));
                let choices = dst.get(1).map_or(0, |span| self.memory.at(*span));
                let entries = u64::from(dst[0].count);
                let call = [entries, from, to, (dst.len() - 1) as u64, choices];
                self.plain(&SILENT_PACK, Some(entries), &call);
            }
            Silent::Choose { first } => {
                let (rows, labels) = (self.memory.frame.rows, dst[1]);
                let (count, bytes) = (u64::from(labels.count), self.memory.item(dst[0].region));
                let at = |span| self.memory.at(span);
                let mut call = vec![rows.into(), count, at(src[0]) + BLOCK * first, at(labels)];
                call.extend([bytes, at(src[1]), at(dst[0])]);
                self.plain(&SILENT_CHOOSE, Some(count * u64::from(rows)), &call);
            }
            Silent::Turn { first, offset } => {
                let offset = Zeroizing::new(numbers(self.offset(offset)?));
                let (rows, labels) = (self.memory.frame.rows, dst[0]);
                let (count, bytes) = (u64::from(labels.count), self.memory.item(src[1].region));
                let at = |span| self.memory.at(span);
                let mut call = Zeroizing::new(Vec::with_capacity(8));
                call.extend([
                    u64::from(rows),
                    count,
                    at(src[0]) + BLOCK * first,
                    at(labels),
                ]);
                call.extend([bytes, at(src[1])]);
                call.extend(*offset);
                self.plain(&SILENT_TURN, Some(count * u64::from(rows)), &call);
            }
            Silent::Take { first, at, count } => {
                let from = self.memory.at(src[0]) + BLOCK * first;
                let to = self.memory.at(dst[0]) + BLOCK * at;
                // A sum of one source, of bits of which all are kept.
                let call = [to, BLOCK * count, 1, 0, 0, 0xff, 1, from];
                self.plain(&COMBINE, Some(count), &call);
            }
        }
        Ok(())
    }

    /// Two runs of leaves, as kernels/silent/trees.h has them.
    fn leaves(&self, spans: &[Span]) -> [u64; 3] {
        let blocks = self.bytes(spans[0]) / BLOCK;
        [self.memory.at(spans[0]), blocks, self.memory.at(spans[1])]
    }

    /// Where correlations of levels are, behind the secret if they are in the base.
    fn levels_at(&self, set: Lpn, span: Span) -> u64 {
        match set.over {
            Over::Bits => self.behind(set, span),
            Over::Blocks => self.memory.at(span),
        }
    }

    /// What is behind the secret in a base.
    fn behind(&self, set: Lpn, base: Span) -> u64 {
        self.memory.at(base) + (BLOCK << set.log_secret)
    }

    /// Steps with a tree at a time.
    fn trees(&mut self, step: Silent, set: Lpn, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let at = |span: Span| self.memory.at(span);
        let (kernel, levels, told) = match step {
            Silent::Grow { .. } => (&SILENT_GROW, self.levels_at(set, src[0]), dst[2]),
            Silent::Give { .. } => (&SILENT_GIVE, self.behind(set, src[0]), dst[2]),
            Silent::Fill { .. } => (&SILENT_FILL, at(src[0]), src[1]),
            _ => (&SILENT_PUNCTURE, self.levels_at(set, src[0]), src[1]),
        };
        let mut call = Zeroizing::new(Vec::with_capacity(16));
        call.extend([u64::from(set.trees), set.height.into()]);
        call.extend(self.leaves(dst));
        call.extend([levels, at(told)]);
        for drawn in &command.calls {
            call.extend(self.prf_call(*drawn)?);
        }
        match step {
            Silent::Grow { offset, .. } => call.extend(numbers(self.offset(offset)?)),
            Silent::Fill { .. } => {
                call.extend([src[2], src[3]].map(|base| self.behind(set, base)));
                call.extend(self.leaves(&dst[2..]));
            }
            _ => {}
        }
        self.drawing(kernel, WARP * u64::from(set.trees), &call);
        Ok(())
    }

    /// What is added to a sum of threads: a fold of leaves.
    fn fold_of(&mut self, challenge: u64, sum: u64, spans: &[Span]) {
        let blocks = (self.bytes(spans[0]) + self.bytes(spans[1])) / BLOCK;
        let leaves = self.leaves(spans);
        let call = self.call(&[&[challenge, sum, blocks][..], &leaves].concat());
        let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
        self.step(&SILENT_FOLD, Some(blocks / FOLDED), &arguments);
    }

    /// The check, at either end.
    fn asked(&mut self, step: Silent, set: Lpn, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let at = |span: Span| self.memory.at(span);
        let asks = matches!(step, Silent::Ask { .. });
        let noisy = asks && set.over == Over::Blocks;
        // Behind the leaves, and the noise: bases, then the challenge, then what the receiver tells.
        let rest = &src[if noisy { 4 } else { 2 }..];
        let bases = &rest[..if noisy { 2 } else { 1 }];
        let challenge = at(rest[bases.len()]);
        let (to, told) = if asks {
            (dst[1], dst[0])
        } else {
            (dst[0], rest[bases.len() + 1])
        };
        let mut end = Zeroizing::new(vec![at(to)]);
        let mut hiding = [0; 2];
        for (of, base) in hiding.iter_mut().zip(bases) {
            *of = self.behind(set, *base) + BLOCK * u64::from(set.trees);
        }
        match set.over {
            Over::Bits => end.extend([0; 3]),
            Over::Blocks => {
                end.push(bases.len() as u64);
                end.extend(hiding);
            }
        }
        end.extend([asks.into(), at(told)]);
        end.extend(match step {
            Silent::Answer { offset, .. } => numbers(self.offset(offset)?),
            _ => [0; 2],
        });
        let levels = self.behind(set, bases[0]);
        self.fold_of(challenge, 0, &src[..2]);
        if noisy {
            self.fold_of(challenge, 1, &src[2..4]);
        }
        if set.over == Over::Bits {
            let trees = u64::from(set.trees);
            let call = [challenge, trees, set.height.into(), asks.into(), levels];
            let call = self.call(&call);
            let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
            let work = trees + u64::from(HIDING);
            self.step(&SILENT_HIDE, Some(work), &arguments);
        }
        let call = self.call(&end);
        let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
        self.step(&SILENT_CHECK, None, &arguments);
        self.sums = self.sums.max(PARTIAL);
        Ok(())
    }

    /// Leaves become outputs.
    fn outputs(&mut self, set: Lpn, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let mask = (1 << set.log_secret) - 1;
        let drawn = self.prf_call(command.calls[0])?;
        let mut call = vec![set.outputs()];
        let (kernel, work) = match set.over {
            Over::Bits => {
                call.extend(self.leaves(dst));
                call.extend([self.memory.at(src[0]), mask]);
                call.extend(drawn);
                (&SILENT_ROWS, set.outputs() / 2)
            }
            Over::Blocks => {
                call.push(mask);
                call.extend(drawn);
                call.push(src.len() as u64);
                for (base, leaves) in src.iter().zip(dst.chunks(2)) {
                    call.extend(self.leaves(leaves));
                    call.push(self.memory.at(*base));
                }
                (&SILENT_PRODUCTS, set.outputs())
            }
        };
        self.drawing(kernel, work, &call);
        Ok(())
    }
}
