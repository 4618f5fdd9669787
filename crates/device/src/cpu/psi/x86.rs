//! Keys in tiles: their rows by AES in vectors, the columns that these name fetched while the tile before is added up, and what is hashed many at a time.

#![allow(
    clippy::inline_always,
    clippy::needless_range_loop,
    reason = "everything is inlined into the function that enables the instruction set, and closures would not be"
)]

#[allow(
    clippy::wildcard_imports,
    reason = "intrinsics carry their namespace in their names"
)]
use std::arch::x86_64::*;

use zeroize::Zeroizing;

use super::super::Isa;
use super::super::garble::blocks::{Blocks, Fixed, LANES};
use super::super::garble::{aesni::Xmm, vaes::Ymm, x86::Zmm};
use super::super::mac::wide::product;
use super::super::sha;
use crate::psi::{Each, Entry, Okvs, Row, TAG, VALUE};

/// Keys of a tile.
const TILE: usize = 64;

/// Bytes of a block.
const BLOCK: usize = 16;

/// Bytes that are hashed of a key: a head, a block and 32 bytes.
const HASHED: usize = 4 + 3 * BLOCK;

type Block = [u8; BLOCK];
type Digest = [u8; 2 * BLOCK];

/// Blocks that SHA-256 compresses, one for each key of a tile.
type Hashed = [[u8; sha::BLOCK]; TILE];

/// A device with one of the instruction sets.
pub(super) struct Many(pub(super) Isa);

impl Many {
    /// The rows of at most a tile of keys.
    fn tile(&self, okvs: Okvs, seed: u128, digests: &[Digest], to: &mut [Row]) {
        let mut blocks = Zeroizing::new([[0; BLOCK]; TILE]);
        // SAFETY: a device with these vectors was asked for on a machine that has them; there are at most as many keys as blocks, and not none.
        unsafe {
            match self.0 {
                Isa::Avx512 => hash_avx512(seed, digests, &mut blocks),
                Isa::Avx2Vaes => hash_avx2_vaes(seed, digests, &mut blocks),
                _ => hash_avx2(seed, digests, &mut blocks),
            }
        }
        for (block, to) in blocks.iter().zip(to) {
            *to = okvs.row(*block);
        }
    }

    /// The digests of blocks.
    fn compress(&self, blocks: &Hashed, to: &mut [Digest; TILE]) {
        let (sixteens, _) = blocks.as_chunks::<{ sha::LANES }>();
        for (blocks, to) in sixteens.iter().zip(to.as_chunks_mut::<{ sha::LANES }>().0) {
            if self.0 == Isa::Avx512 {
                // SAFETY: as in `tile`.
                *to = unsafe { sha::blocks(blocks) };
            } else {
                for (block, to) in blocks.iter().zip(to) {
                    *to = sha::block(block);
                }
            }
        }
    }
}

impl Each for Many {
    fn digests(&self, salt: Block, keys: &[Digest], to: &mut [Digest]) {
        let mut blocks = Zeroizing::new(padded(VALUE));
        let mut digests = Zeroizing::new([[0; 2 * BLOCK]; TILE]);
        for block in &mut *blocks {
            block[4..][..BLOCK].copy_from_slice(&salt);
        }
        for (keys, to) in keys.chunks(TILE).zip(to.chunks_mut(TILE)) {
            for (key, block) in keys.iter().zip(&mut *blocks) {
                block[4 + BLOCK..HASHED].copy_from_slice(key);
            }
            self.compress(&blocks, &mut digests);
            to.copy_from_slice(&digests[..to.len()]);
        }
    }

    fn rows(&self, okvs: Okvs, seed: Block, digests: &[Digest], to: &mut [Row]) {
        let seed = u128::from_le_bytes(seed);
        for (digests, to) in digests.chunks(TILE).zip(to.chunks_mut(TILE)) {
            self.tile(okvs, seed, digests, to);
        }
    }

    fn rests(&self, digests: &[Digest], entries: &[Entry], dense: &[Block], to: &mut [u128]) {
        // SAFETY: every instruction set but the portable one has the instructions.
        unsafe { rests(digests, entries, dense, to) }
    }

    fn shifted(&self, offset: u128, b: &[Block], sent: &[Block], to: &mut [Block]) {
        // SAFETY: as in `rests`.
        unsafe { shifted(offset, b, sent, to) }
    }

    fn tags(
        &self,
        (okvs, seed, table): (Okvs, Block, &[Block]),
        known: (u128, u128),
        digests: &[Digest],
        to: &mut [Block],
    ) {
        assert!(table.len() as u64 >= okvs.columns());
        let seed = u128::from_le_bytes(seed);
        let mut blocks = Zeroizing::new(padded(TAG));
        let mut hashed = Zeroizing::new([[0; 2 * BLOCK]; TILE]);
        let mut rows = Zeroizing::new([[Row::default(); TILE]; 2]);
        let tiles = digests.chunks(TILE);
        if let Some(first) = digests.chunks(TILE).next() {
            self.tile(okvs, seed, first, &mut rows[0]);
        }
        for (k, (digests_of, to)) in tiles.zip(to.chunks_mut(TILE)).enumerate() {
            let next = digests.get((k + 1) * TILE..).unwrap_or_default();
            if let Some(next) = next.chunks(TILE).next() {
                self.tile(okvs, seed, next, &mut rows[(k + 1) % 2]);
                fetch(okvs, table, &rows[(k + 1) % 2][..next.len()]);
            }
            let rows = &rows[k % 2][..digests_of.len()];
            // SAFETY: as in `rests`; rows are those of the store, and the table has its columns.
            unsafe { sums((okvs, table), known, (digests_of, rows), &mut blocks) }
            self.compress(&blocks, &mut hashed);
            for (to, digest) in to.iter_mut().zip(&*hashed) {
                to.copy_from_slice(&digest[..BLOCK]);
            }
        }
    }
}

/// Blocks with a head and with what SHA-256 has behind a message: a bit, zeros, and its length in bits (FIPS 180-4, section 5.1.1).
fn padded(head: [u8; 4]) -> Hashed {
    let mut block = [0; sha::BLOCK];
    block[..4].copy_from_slice(&head);
    block[HASHED] = 0x80;
    block[sha::BLOCK - 8..].copy_from_slice(&(8 * HASHED as u64).to_be_bytes());
    [block; TILE]
}

/// Asks for the sparse columns of rows.
fn fetch(okvs: Okvs, table: &[Block], rows: &[Row]) {
    for row in rows {
        let bin = u64::from(row.bin) * okvs.width();
        for at in row.at {
            let column = table.as_ptr().wrapping_add((bin + u64::from(at)) as usize);
            // SAFETY: a hint, which reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(column.cast()) }
        }
    }
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(block: &Block) -> __m128i {
    // SAFETY: a block is 16 bytes.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn splat(number: u128) -> __m128i {
    load(&number.to_le_bytes())
}

/// V and ρ.
#[inline]
#[target_feature(enable = "sse2")]
fn parts(digest: &Digest) -> (__m128i, __m128i) {
    let [value, factor] = crate::psi::block_of(digest);
    (load(value), load(factor))
}

/// ρ d₁ ⊕ ρ² d₂ ⊕ …
#[inline]
#[target_feature(enable = "sse2,pclmulqdq")]
fn of_dense(factor: __m128i, columns: &[Block]) -> __m128i {
    let mut sum = _mm_setzero_si128();
    for k in (0..columns.len()).rev() {
        sum = product(factor, _mm_xor_si128(sum, load(&columns[k])));
    }
    sum
}

/// What is hashed of the keys of a tile.
#[target_feature(enable = "sse2,pclmulqdq")]
fn sums(
    (okvs, table): (Okvs, &[Block]),
    (offset, w): (u128, u128),
    (digests, rows): (&[Digest], &[Row]),
    to: &mut Hashed,
) {
    let (offset, w) = (splat(offset), splat(w));
    let (width, sparse) = (okvs.width() as usize, okvs.sparse as usize);
    for k in 0..rows.len() {
        let (row, (value, factor)) = (&rows[k], parts(&digests[k]));
        let bin = &table[row.bin as usize * width..][..width];
        let mut sum = _mm_xor_si128(w, product(value, offset));
        for at in row.at {
            sum = _mm_xor_si128(sum, load(&bin[at as usize]));
        }
        sum = _mm_xor_si128(sum, of_dense(factor, &bin[sparse..]));
        let block = &mut to[k];
        // SAFETY: the head is followed by 16 bytes.
        unsafe { _mm_storeu_si128(block.as_mut_ptr().add(4).cast(), sum) };
        block[4 + BLOCK..HASHED].copy_from_slice(&digests[k]);
    }
}

#[target_feature(enable = "sse2,pclmulqdq")]
fn rests(digests: &[Digest], entries: &[Entry], dense: &[Block], to: &mut [u128]) {
    for k in 0..entries.len() {
        let (value, factor) = parts(&digests[entries[k].key as usize]);
        let rest = _mm_xor_si128(value, of_dense(factor, dense));
        // SAFETY: a number is 16 bytes.
        unsafe { _mm_storeu_si128((&raw mut to[k]).cast(), rest) };
    }
}

#[target_feature(enable = "sse2,pclmulqdq")]
fn shifted(offset: u128, b: &[Block], sent: &[Block], to: &mut [Block]) {
    let offset = splat(offset);
    for k in 0..to.len() {
        let sum = _mm_xor_si128(load(&b[k]), product(load(&sent[k]), offset));
        // SAFETY: a block is 16 bytes.
        unsafe { _mm_storeu_si128(to[k].as_mut_ptr().cast(), sum) };
    }
}

/// H(ρ) of at most a tile of keys, and not none.
#[inline(always)]
unsafe fn hash<B: Blocks, const G: usize>(seed: u128, digests: &[Digest], to: &mut [Block; TILE]) {
    // SAFETY: the caller's instruction set; the last key stands for those that there are not, and a tile has whole groups.
    unsafe {
        let hash = Fixed::<B>::new(seed);
        let last = digests.len() - 1;
        for at in (0..digests.len()).step_by(G * LANES) {
            let mut x = [B::splat(0); G];
            for g in 0..G {
                let mut from = [digests.as_ptr().cast::<u8>(); LANES];
                for lane in 0..LANES {
                    let key = (at + g * LANES + lane).min(last);
                    from[lane] = from[lane].add(2 * BLOCK * key + BLOCK);
                }
                x[g] = B::gather(from);
            }
            let hashed = hash.hash(x);
            for g in 0..G {
                hashed[g].store(to[at + g * LANES..].as_mut_ptr().cast());
            }
        }
    }
}

/// The kernel once per instruction set.
macro_rules! kernels {
    ($blocks:ty, $groups:literal, $features:literal, $hash:ident) => {
        #[target_feature(enable = $features)]
        unsafe fn $hash(seed: u128, digests: &[Digest], to: &mut [Block; TILE]) {
            // SAFETY: the caller's.
            unsafe { hash::<$blocks, $groups>(seed, digests, to) }
        }
    };
}
kernels!(
    Zmm,
    4,
    "avx512f,avx512bw,avx512dq,avx512ifma,avx512vbmi2,vaes,bmi2,adx",
    hash_avx512
);
kernels!(Ymm, 2, "avx2,aes,vaes,bmi2", hash_avx2_vaes);
kernels!(Xmm, 1, "avx2,aes", hash_avx2);
