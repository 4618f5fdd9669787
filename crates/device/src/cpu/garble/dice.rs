//! Dice of the garbler: two bits for each gate of three-halves.

#![expect(
    clippy::inline_always,
    reason = "everything is inlined into the function that enables the instruction set"
)]

use zeroize::Zeroizing;

use super::super::exec::{self, Mask};
use super::super::tape::Product;
use super::super::vector::Vector;
use super::Run;
#[cfg(target_arch = "x86_64")]
use super::{blocks::LANES, gates::GateGroup};

/// Bytes of a block of the PRF.
const BLOCK: usize = 16;

/// The dice of a batch of products.
pub(super) struct Dice {
    /// `[product]`, each of whole blocks: bits 2 r and 2 r + 1 belong to row r.
    bytes: Zeroizing<Vec<u8>>,
    /// Bytes from a product to the next.
    pitch: usize,
    /// Blocks from a product's to the next one's.
    stride: usize,
}

impl Dice {
    /// For batches of up to `products` products with `rows` rows.
    pub(super) fn new(run: &Run<'_>, products: usize, rows: usize) -> Self {
        let pitch = rows.div_ceil(4).next_multiple_of(BLOCK).max(BLOCK);
        let bytes = if run.dice.is_some() {
            pitch * products
        } else {
            0
        };
        Dice {
            bytes: Zeroizing::new(vec![0; bytes]),
            pitch,
            stride: run.stride as usize,
        }
    }

    /// Throws those of a batch.
    ///
    /// # Safety
    /// The instruction set of `V` is enabled in the caller.
    #[inline(always)]
    pub(super) unsafe fn throw<V: Vector>(&mut self, run: &Run<'_>, products: &[Product]) {
        let (Some(mask), Some(first)) = (run.dice, products.first()) else {
            return;
        };
        let counter = |mask: Mask<'_>, index: u32| mask.first + u64::from(index) * run.stride;
        let in_order = (first.index..).zip(products).all(|(k, p)| p.index == k);
        // SAFETY: the caller's instruction set.
        unsafe {
            if in_order && self.stride * BLOCK == self.pitch {
                // Their blocks follow each other.
                let bytes = &mut self.bytes[..self.pitch * products.len()];
                exec::random::<V>(mask, counter(mask, first.index), bytes);
                return;
            }
            for (product, bytes) in products.iter().zip(self.bytes.chunks_exact_mut(self.pitch)) {
                exec::random::<V>(mask, counter(mask, product.index), bytes);
            }
        }
    }

    /// ρ and ρ' of a row of a product of the batch, in bits 0 and 1; 0 if no dice are thrown.
    pub(super) fn gate(&self, product: usize, row: usize) -> u8 {
        let byte = self.bytes.get(product * self.pitch + row / 4);
        byte.map_or(0, |byte| byte >> (row % 4 * 2) & 3)
    }

    /// ρ and ρ' of the lanes of an item, a bit for each.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn of<const NARROW: bool>(&self, gates: &GateGroup) -> [u8; 2] {
        let mut pairs = 0;
        if NARROW {
            for lane in 0..LANES {
                let (product, row) = gates.which[lane];
                pairs |= (self.bytes[product * self.pitch] >> (2 * row) & 3) << (2 * lane);
            }
        } else {
            let (product, row) = gates.which[0];
            pairs = self.bytes[product * self.pitch + row / 4];
        }
        [evens(pairs), evens(pairs >> 1)]
    }
}

/// Bits 0, 2, 4, 6.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
const fn evens(bits: u8) -> u8 {
    let pairs = bits & 0x55;
    let pairs = (pairs | pairs >> 1) & 0x33;
    (pairs | pairs >> 2) & 0x0f
}
