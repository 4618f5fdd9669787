//! Bits that both parties share, what a program begins with, and what it gives in the clear.

use super::super::super::SplitMix;
use super::super::Case;
use crate::{Dst, Instr, Src};

/// Components of the slots.
pub(super) const LABEL: u8 = 0;
pub(super) const MAC: u8 = 1;
pub(super) const KEY: u8 = 2;
pub(super) const PUBLIC: u8 = 3;

/// Blocks of an array, or of labels.
pub(super) type Blocks = Vec<u128>;

pub(super) fn block(rng: &mut SplitMix) -> u128 {
    u128::from(rng.next()) << 64 | u128::from(rng.next())
}

pub(super) fn times(bit: u128, block: u128) -> u128 {
    (bit & 1).wrapping_neg() & block
}

pub(super) fn to_bytes(blocks: &[u128]) -> Vec<u8> {
    blocks
        .iter()
        .flat_map(|block| block.to_le_bytes())
        .collect()
}

pub(super) fn of_bytes(bytes: &[u8]) -> Blocks {
    let blocks = bytes.as_chunks::<16>().0.iter();
    blocks.map(|block| u128::from_le_bytes(*block)).collect()
}

pub(super) fn bit_of(bits: &[u8], at: usize) -> u128 {
    (bits[at / 8] >> (at % 8) & 1).into()
}

/// MACs and keys of bits, of the garbler and of the evaluator.
pub(super) struct Shared {
    pub(super) macs: [Blocks; 2],
    pub(super) keys: [Blocks; 2],
}

impl Shared {
    pub(super) fn new(rng: &mut SplitMix, offsets: [u128; 2], values: &[u128]) -> Self {
        let mut of = Shared {
            macs: [vec![], vec![]],
            keys: [vec![], vec![]],
        };
        for value in values {
            let part = block(rng) & 1;
            let keys = [(); 2].map(|()| block(rng) & !1);
            for (p, part) in [part, part ^ value].into_iter().enumerate() {
                of.macs[p].push(keys[1 - p] ^ times(part, offsets[1 - p]));
                of.keys[p].push(keys[p]);
            }
        }
        of
    }

    pub(super) fn values(&self) -> Blocks {
        let both = self.macs[0].iter().zip(&self.macs[1]);
        both.map(|(a, b)| (a ^ b) & 1).collect()
    }

    /// Whether each MAC is the other party's key, and its offset where the part is 1.
    pub(super) fn holds(&self, offsets: [u128; 2]) -> bool {
        (0..2).all(|p| {
            let mut both = self.macs[p].iter().zip(&self.keys[1 - p]);
            both.all(|(mac, key)| *mac == key ^ times(*mac, offsets[1 - p]))
        })
    }
}

/// Values that a program begins with: of slots, row by row, or job-wide.
pub(super) struct Inputs {
    pub(super) values: Blocks,
    masks: Shared,
    zero: Blocks,
}

impl Inputs {
    pub(super) fn new(rng: &mut SplitMix, offsets: [u128; 2], count: usize) -> Self {
        let [values, masks] = [(); 2].map(|()| (0..count).map(|_| block(rng) & 1).collect());
        let masks: Blocks = masks;
        Inputs {
            values,
            masks: Shared::new(rng, offsets, &masks),
            zero: (0..count).map(|_| block(rng) & !2).collect(),
        }
    }

    /// What a party has of them, by the component of slots.
    pub(super) fn part(&self, party: usize, part: u8, offset: u128) -> Blocks {
        let public = self.values.iter().zip(self.masks.values());
        let public: Blocks = public.map(|(value, mask)| value ^ mask).collect();
        match (part, party) {
            (LABEL, 0) => self.zero.clone(),
            (LABEL, _) => {
                let both = self.zero.iter().zip(public);
                both.map(|(zero, bit)| zero ^ times(bit, offset)).collect()
            }
            (MAC, _) => self.masks.macs[party].clone(),
            (KEY, _) => self.masks.keys[party].clone(),
            _ => public,
        }
    }
}

/// What a program gives in the clear: operands of products and results, block by block, and slots in the end.
pub(super) fn plain(of: &Case, [slots, all_rows]: [&Inputs; 2]) -> ([Blocks; 3], Blocks) {
    let rows = of.frame.rows as usize;
    let mut gates = [(); 3].map(|()| vec![0; of.gates()]);
    let mut ends = slots.values.clone();
    for row in 0..rows {
        let mut temps = vec![0; of.program.temps as usize];
        for instr in &of.program.code {
            let get = |src: Src| match src {
                Src::Slot(slot) => ends[slot as usize * rows + row],
                Src::Temp(temp) => temps[temp as usize],
                Src::JobWide(value) => all_rows.values[value as usize],
            };
            let (to, value) = match *instr {
                Instr::Add(a, b, to) | Instr::Sub(a, b, to) => (to, get(a) ^ get(b)),
                Instr::Times(a, c, to) => (to, get(a) & c),
                Instr::Plus(a, c, to) => (to, get(a) ^ c & 1),
                Instr::Copy(a, to) => (to, get(a)),
                Instr::Constant(c, to) => (to, c & 1),
                Instr::Product {
                    ref pairs,
                    out,
                    index,
                } => {
                    let (a, b) = of.program.pairs[pairs.start as usize];
                    let (a, b) = (get(a), get(b));
                    let at = index as usize * rows + row;
                    for (gates, value) in gates.iter_mut().zip([a, b, a & b]) {
                        gates[at] = value;
                    }
                    (Dst::Slot(out), a & b)
                }
                Instr::Sum(..) | Instr::ProductSum { .. } => continue,
            };
            match to {
                Dst::Slot(slot) => ends[slot as usize * rows + row] = value,
                Dst::Temp(temp) => temps[temp as usize] = value,
            }
        }
    }
    (gates, ends)
}
