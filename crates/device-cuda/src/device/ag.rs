//! Steps of authenticated garbling as launches of kernels/ag and, of programs, kernels/device/gates.cu.

use veil_device::ag::{Ag, One};
use veil_device::garble::{Garbling, NO_OFFSET};
use veil_device::{Command, Fault, Span};
use zeroize::Zeroizing;

use super::labels::numbers;
use super::queue::{Argument, PARTIAL, Queue};
use crate::kernels::{
    AG_ABSORB, AG_BITS, AG_EXPAND, AG_EXPECT, AG_FOLD, AG_FOLD_END, AG_GATES, AG_OFFER, AG_PACK,
    AG_PIN, AG_ROTATE, AG_SETTLE, AG_SHIFT, AG_SPEND, AG_TAKE, EVALUATE_MASKED, GARBLE_MASKED,
    MASKS,
};

/// Bytes of a block.
const BLOCK: u64 = 16;
/// Blocks of a fold that a thread has, at least: its powers of the challenge take as long as many of them.
const FOLDED: u64 = 16;

impl Queue<'_> {
    /// A step, which was checked.
    pub(super) fn authenticated(&mut self, step: Ag, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let at = |span: &Span| self.memory.at(*span);
        // Blocks of a column, columns, and all blocks.
        let shape = |span: &Span| {
            let blocks = self.memory.item(span.region) / BLOCK;
            let columns = u64::from(span.count);
            (blocks, columns, blocks * columns)
        };
        // Bits: where, and bytes of a column.
        let bits = |span: &Span| [self.memory.at(*span), self.memory.item(span.region)];
        let mut call = Zeroizing::new(Vec::with_capacity(32));
        match step {
            Ag::Pin { bit } => {
                let (blocks, columns, all) = shape(&dst[0]);
                let of = src.get(1).map_or([0; 2], bits);
                call.extend([blocks, columns, at(&dst[0]), at(&src[0]), bit.into()]);
                call.push((src.len() - 1) as u64);
                call.extend(of);
                self.plain(&AG_PIN, Some(all), &call);
            }
            Ag::Expand => {
                let (blocks, columns, all) = shape(&dst[0]);
                call.extend([blocks, columns, at(&dst[0])]);
                call.extend(bits(&src[0]));
                self.plain(&AG_EXPAND, Some(all), &call);
            }
            Ag::Bits { bit } => self.bits_of(bit, src, dst[0]),
            Ag::Offer { .. } => self.candidates(step, command)?,
            Ag::Take { .. } => {
                self.candidates(step, command)?;
                self.bits_of(1, &dst[..1], dst[1]);
            }
            Ag::Settle { offset, role } => {
                let offset = Zeroizing::new(self.offset(offset)?);
                let (blocks, columns, all) = shape(&dst[0]);
                call.extend([blocks, columns]);
                call.extend(src.iter().flat_map(bits));
                for (to, by) in dst.iter().zip([*offset, role.one(*offset)]) {
                    call.push(at(to));
                    call.extend(numbers(by));
                }
                self.plain(&AG_SETTLE, Some(all), &call);
            }
            Ag::Fold { offset: key } => {
                let offset = Zeroizing::new(key.map_or(Ok(0), |key| self.offset(key))?);
                let with = usize::from(key.is_some());
                let of = if with > 0 { bits(&src[1]) } else { [0; 2] };
                let arrays = &src[1 + with..];
                let (blocks, columns, all) = shape(&arrays[0]);
                call.extend([at(&dst[0]), at(&src[0]), blocks, columns]);
                call.extend([arrays.len() as u64, with as u64]);
                call.extend(of);
                call.extend(numbers(*offset));
                call.extend(arrays.iter().map(at));
                let call = self.call(&call);
                let arguments = [Argument::Workspace, Argument::Sums, call, Argument::Verdict];
                self.step(&AG_FOLD, Some(all / FOLDED), &arguments);
                self.step(&AG_FOLD_END, None, &arguments);
                self.sums = self.sums.max(PARTIAL);
            }
            Ag::Rotate { layer } => self.rotate(layer, src, dst[0]),
            Ag::Expect { offset } => {
                let offset = Zeroizing::new(self.offset(offset)?);
                call.extend([at(&dst[0]), at(&src[0]), at(&src[1])]);
                call.extend(numbers(*offset));
                self.plain(&AG_EXPECT, None, &call);
            }
            Ag::Absorb => {
                let (blocks, columns, all) = shape(&dst[0]);
                call.extend([blocks, columns]);
                call.extend(src[..2].iter().flat_map(bits));
                call.extend(src[2..].iter().chain(dst).map(at));
                self.plain(&AG_ABSORB, Some(all), &call);
            }
            Ag::Spend { offset, role } => {
                let offset = Zeroizing::new(self.offset(offset)?);
                let (blocks, columns, all) = shape(&dst[0]);
                call.extend([blocks, columns]);
                call.extend(src[..4].iter().flat_map(bits));
                call.extend(src[4..].iter().chain(dst).map(at));
                let mut ones = [0; 2];
                ones[role.number() as usize] = role.one(*offset);
                call.extend(ones.into_iter().flat_map(numbers));
                self.plain(&AG_SPEND, Some(all), &call);
            }
            Ag::Gates {
                offset: key,
                products,
            } => {
                let offset = Zeroizing::new(key.map_or(Ok(0), |key| self.offset(key))?);
                let (blocks, ..) = shape(&dst[0]);
                let used = u64::from(products) * u64::from(self.memory.frame.rows);
                call.extend([blocks, used, at(&dst[0]), key.is_some().into()]);
                call.extend(numbers(*offset));
                call.extend(src.iter().map(at));
                self.plain(&AG_GATES, Some(blocks), &call);
            }
            Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } => {
                self.programs(step, command)?;
            }
        }
        Ok(())
    }

    /// A bit of sums of blocks.
    fn bits_of(&mut self, bit: u8, from: &[Span], to: Span) {
        let (blocks, bytes) = (
            self.memory.item(from[0].region) / BLOCK,
            self.memory.item(to.region),
        );
        let columns = u64::from(to.count);
        let mut call = vec![blocks, columns, self.memory.at(to), bytes, bit.into()];
        call.push(from.len() as u64);
        call.extend(from.iter().map(|span| self.memory.at(*span)));
        self.plain(&AG_BITS, Some(columns * bytes), &call);
    }

    /// What is hashed of candidates: G, or S.
    fn candidates(&mut self, step: Ag, command: &Command) -> Result<(), Fault> {
        let (kernel, offset, role) = match step {
            Ag::Offer { offset, role } => (&AG_OFFER, offset, role),
            Ag::Take { offset, role } => (&AG_TAKE, offset, role),
            _ => return Ok(()),
        };
        let offset = Zeroizing::new(self.offset(offset)?);
        let (prf_call, frame) = (command.calls[0], self.memory.frame);
        let prf = &self.key(prf_call)?.prf;
        let start = prf.block(prf_call.tag, frame.lane, 0, frame.chunk);
        let all = self.bytes(command.dst[0]) / BLOCK;
        let mut call = Zeroizing::new(Vec::with_capacity(16));
        call.extend([all, role.number(), prf_call.first]);
        call.extend(numbers(u128::from_le_bytes(start)));
        call.extend(numbers(*offset));
        let spans = command.dst[..1].iter().chain(&command.src);
        call.extend(spans.map(|span| self.memory.at(*span)));
        self.plain(kernel, Some(all), &call);
        Ok(())
    }

    /// Columns rotated; in their own places, from a copy that lies apart.
    fn rotate(&mut self, layer: u32, src: &[Span], to: Span) {
        let (digest, from) = (self.memory.at(src[0]), src[1]);
        let blocks = self.memory.item(to.region) / BLOCK;
        let columns = u64::from(to.count);
        let (all, apart) = (self.bytes(to), from == to);
        // The shift lies in the first block.
        let copy = if apart {
            self.copy_apart(from, BLOCK);
            BLOCK
        } else {
            self.memory.at(from)
        };
        self.with_temps(&AG_SHIFT, None, &[blocks, layer.into(), digest, 0]);
        let to = self.memory.at(to);
        let call = [blocks, columns, to, apart.into(), copy, 0];
        self.with_temps(&AG_ROTATE, Some(blocks * columns), &call);
        self.temps = self.temps.max(BLOCK + if apart { all } else { 0 });
    }

    /// A program over a component of its slots.
    fn programs(&mut self, step: Ag, command: &Command) -> Result<(), Fault> {
        let (src, dst) = (&command.src[..], &command.dst[..]);
        let (id, compiled) = self.code(command)?;
        let code = &compiled.code;
        let rows = u64::from(self.memory.frame.rows);
        let gates = u64::from(code.numbers) * rows;
        // What the program forgets, then a byte for each gate.
        let flags = (BLOCK * u64::from(code.temps)).saturating_mul(rows);
        // Gates before those of the program: what they have in arrays stays.
        let others = match step {
            Ag::Masks { at, .. } | Ag::Garble { at, .. } | Ag::Evaluate { at } => u64::from(at),
            _ => 0,
        };
        let before = others * rows;
        // What a public 1 adds, or the offset of the garbler.
        let mut own = Zeroizing::new(0);
        let (kernel, part, tables, arrays, zeros) = match step {
            Ag::Masks { part, one, .. } => {
                *own = match one {
                    One::Nothing => 0,
                    One::Unit => 1,
                    One::Offset(key) => self.offset(key)? ^ 1,
                };
                let arrays = [&src[..1], dst].concat();
                (&MASKS, part, None, arrays, dst)
            }
            Ag::Garble { offset, .. } => {
                *own = self.offset(offset)?;
                if *own & 3 != 3 {
                    return Err(NO_OFFSET);
                }
                let arrays = [src, &dst[2..]].concat();
                (&GARBLE_MASKED, 0, Some(dst[0]), arrays, &dst[2..])
            }
            _ => {
                let arrays = [&src[2..], &[src[1], dst[0]]].concat();
                (&EVALUATE_MASKED, 0, Some(src[0]), arrays, &dst[..1])
            }
        };
        let (mut first, mut start) = (0, 0);
        if let (Some(_), Some(prf_call)) = (tables, command.calls.first()) {
            let prf = &self.key(*prf_call)?.prf;
            first = prf_call.first;
            start = Garbling::HalfGates.start(prf, prf_call.tag, self.memory.frame);
        }
        if others == 0 {
            for to in zeros {
                self.clear(*to)?;
            }
        }
        let at = |span: Span| self.memory.at(span);
        let [slots, job_wide, _] = code.regions;
        let [slots, job_wide] = [slots, job_wide].map(|region| at(self.component(region, part)));
        let mut call = Zeroizing::new(Vec::with_capacity(36));
        call.extend([u64::from(code.levels), u64::from(code.depth), rows]);
        call.extend([slots, job_wide, u64::from(code.pairs), first]);
        call.extend([tables.map_or(0, at), 0]);
        call.extend(numbers(start));
        call.extend(numbers(*own));
        // Neither dice, nor rows that are circuits of their own.
        call.extend([0; 7]);
        call.extend([flags, before]);
        call.extend(arrays.into_iter().map(at));
        let call = self.call(&call);
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
            Argument::Schedules,
            Argument::Code(id, 0),
        ];
        // Numbers that no product has are among those of gates.
        let all = gates.next_multiple_of(BLOCK);
        self.zeros_apart(flags, all);
        self.levels(kernel, (code, rows), &arguments);
        let packed = match step {
            Ag::Garble { .. } => &dst[1..2],
            Ag::Evaluate { .. } => &dst[1..],
            _ => &[],
        };
        for (bit, to) in (0..).zip(packed) {
            let bytes = self.memory.item(to.region);
            let to = self.memory.at(*to);
            let call = [gates, bit, flags, to, bytes, before];
            self.with_temps(&AG_PACK, Some(bytes - before / 8), &call);
        }
        self.temps = self.temps.max(flags.saturating_add(all));
        Ok(())
    }
}
