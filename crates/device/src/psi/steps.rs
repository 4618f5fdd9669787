//! The steps, over arrays; and what they compute of each key, as it is defined: key by key.

use sha2::{Digest as _, Sha256};
use veil_session::Wiped;
use zeroize::Zeroizing;

use super::encode::{self, Entry};
use super::{Okvs, Psi, Row};
use crate::garble::Fixed;
use crate::gf128::dot;

/// A block.
pub(super) type Block = [u8; 16];

/// A key, or its digest: V ‖ ρ.
pub(super) type Digest = [u8; 32];

/// The head of what is hashed to digests.
pub const VALUE: [u8; 4] = *b"psi1";
/// The head of what is hashed to tags.
pub const TAG: [u8; 4] = *b"psi2";

/// What a step says of keys that are equal.
pub const DUPLICATE: &str = "keys of an intersection of which two are equal";
/// What a step says of keys that it could not encode.
pub const UNSOLVED: &str = "keys of an intersection that no seed of eight encodes";

/// What is computed of every key, one after the other or many at a time. Lengths are those of the keys.
pub(crate) trait Each {
    /// Digests of keys.
    fn digests(&self, salt: Block, keys: &[Digest], to: &mut [Digest]);
    /// Rows of keys.
    fn rows(&self, okvs: Okvs, seed: Block, digests: &[Digest], to: &mut [Row]);
    /// Of each key of a bin its value less its dense part.
    fn rests(&self, digests: &[Digest], entries: &[Entry], dense: &[Block], to: &mut [u128]);
    /// b ⊕ sent · δ, block by block.
    fn shifted(&self, offset: u128, b: &[Block], sent: &[Block], to: &mut [Block]);
    /// Tags from the products of rows with a table, of values with δ, and w.
    fn tags(
        &self,
        store: (Okvs, Block, &[Block]),
        known: (u128, u128),
        digests: &[Digest],
        to: &mut [Block],
    );
}

/// V and ρ of a key.
pub(super) fn parts(digest: &Digest) -> (u128, u128) {
    let [value, factor] = *block_of(digest);
    (u128::from_le_bytes(value), u128::from_le_bytes(factor))
}

/// The two blocks of a digest.
pub(crate) fn block_of(digest: &[u8; 32]) -> &[[u8; 16]; 2] {
    digest
        .as_chunks()
        .0
        .try_into()
        .expect("32 bytes are two blocks")
}

/// ρ d₁ ⊕ ρ² d₂ ⊕ …
fn dense(factor: u128, columns: &[Block]) -> u128 {
    columns.iter().rev().fold(0, |sum, column| {
        dot(factor, sum ^ u128::from_le_bytes(*column))
    })
}

/// A device that does every key as it is defined.
pub(crate) struct Plain;

impl Each for Plain {
    fn digests(&self, salt: Block, keys: &[Digest], to: &mut [Digest]) {
        for (key, to) in keys.iter().zip(to) {
            *to = hash(VALUE, salt, key);
        }
    }

    fn rows(&self, okvs: Okvs, seed: Block, digests: &[Digest], to: &mut [Row]) {
        let hash = Fixed::new(u128::from_le_bytes(seed));
        for (digest, to) in digests.iter().zip(to) {
            *to = okvs.row(hash.of(parts(digest).1).to_le_bytes());
        }
    }

    fn rests(&self, digests: &[Digest], entries: &[Entry], columns: &[Block], to: &mut [u128]) {
        for (entry, to) in entries.iter().zip(to) {
            let (value, factor) = parts(&digests[entry.key as usize]);
            *to = value ^ dense(factor, columns);
        }
    }

    fn shifted(&self, offset: u128, b: &[Block], sent: &[Block], to: &mut [Block]) {
        for (to, (b, sent)) in to.iter_mut().zip(b.iter().zip(sent)) {
            let product = dot(u128::from_le_bytes(*sent), offset);
            *to = (u128::from_le_bytes(*b) ^ product).to_le_bytes();
        }
    }

    fn tags(
        &self,
        (okvs, seed, table): (Okvs, Block, &[Block]),
        (offset, w): (u128, u128),
        digests: &[Digest],
        to: &mut [Block],
    ) {
        let hashed = Fixed::new(u128::from_le_bytes(seed));
        for (digest, to) in digests.iter().zip(to) {
            let (value, factor) = parts(digest);
            let row = okvs.row(hashed.of(factor).to_le_bytes());
            let bin = &table[row.bin as usize * okvs.width() as usize..][..okvs.width() as usize];
            let (sparse, columns) = bin.split_at(okvs.sparse as usize);
            let mut sum = w ^ dot(value, offset) ^ dense(factor, columns);
            for at in row.at {
                sum ^= u128::from_le_bytes(sparse[at as usize]);
            }
            *to = block_of(&hash(TAG, sum.to_le_bytes(), digest))[0];
        }
    }
}

fn hash(head: [u8; 4], block: Block, rest: &Digest) -> Digest {
    let digest = Sha256::new_with_prefix(head).chain_update(block);
    digest.chain_update(rest).finalize().into()
}

/// What a step knows beside the workspace.
pub(crate) struct Known<'a> {
    /// δ; 0 where a step has none.
    pub(crate) offset: Zeroizing<u128>,
    /// Makes blocks of the call, from one on; nothing where a step has none.
    pub(crate) draw: &'a dyn Fn(u64, &mut [u8]),
}

/// Does a step, which was checked, on the bytes of its sources and destinations; whether what it looks at is as it should be.
pub(crate) fn step<E: Each>(
    each: &E,
    step: Psi,
    known: &Known<'_>,
    (src, dst): (&[&[u8]], &mut [&mut [u8]]),
) -> Result<bool, &'static str> {
    let blocks = |k: usize| src[k].as_chunks::<16>().0;
    let digests = || src[0].as_chunks::<32>().0;
    let first = |k: usize| blocks(k)[0];
    let sum = |k: usize| {
        blocks(k)
            .iter()
            .fold(0, |sum, block| sum ^ u128::from_le_bytes(*block))
    };
    match step {
        Psi::Hash => {
            let mut salt = Block::default();
            (known.draw)(0, &mut salt);
            each.digests(salt, digests(), dst[0].as_chunks_mut().0);
        }
        Psi::Encode { okvs } => {
            let [seed, to] = dst else {
                unreachable!("it was checked")
            };
            let (to, _) = to.as_chunks_mut::<16>();
            let (seed, _) = seed.as_chunks_mut();
            let encoded = encode::encode(each, okvs, digests(), known.draw, (&mut seed[0], to));
            if encoded.is_err() {
                seed[0].fill(0);
                to.as_flattened_mut().fill(0);
                return encoded.map(|()| true);
            }
            for (to, c) in to.iter_mut().zip(blocks(1)) {
                *to = (u128::from_le_bytes(*to) ^ u128::from_le_bytes(*c)).to_le_bytes();
            }
        }
        Psi::Tags { okvs, .. } => {
            let mut table = Wiped::zeros(okvs.columns() as usize);
            each.shifted(*known.offset, blocks(1), blocks(2), &mut table);
            let (tags, _) = dst[0].as_chunks_mut();
            let secrets = Zeroizing::new((*known.offset, sum(4)));
            each.tags((okvs, first(3), &table), *secrets, digests(), tags);
            sort(tags);
            if !ascending(tags) {
                tags.as_flattened_mut().fill(0);
                return Err(DUPLICATE);
            }
        }
        Psi::Match { okvs } => {
            let theirs = blocks(4);
            dst[0].fill(0);
            if !ascending(theirs) {
                return Ok(false);
            }
            let mut own = Wiped::zeros(digests().len());
            let table = &blocks(1)[..okvs.columns() as usize];
            each.tags((okvs, first(2), table), (0, sum(3)), digests(), &mut own);
            find(theirs, &own, dst[0]);
        }
    }
    Ok(true)
}

/// Whether each block is greater than the one before, as strings of bytes.
fn ascending(blocks: &[Block]) -> bool {
    blocks
        .windows(2)
        .all(|two| u128::from_be_bytes(two[0]) < u128::from_be_bytes(two[1]))
}

/// Into ascending order, as strings of bytes.
fn sort(blocks: &mut [Block]) {
    blocks.sort_unstable_by_key(|block| u128::from_be_bytes(*block));
}

/// Bits, which were 0: 1 where a block is among ascending ones. Tags are as good as random: with as many ranges of their first bits as there are tags a range has about one. Where
/// a peer's are not, a range is halved until it is found, or not.
fn find(theirs: &[Block], own: &[Block], to: &mut [u8]) {
    let bits = theirs.len().max(2).ilog2();
    let range = |block: &Block| {
        let head = u64::from_be_bytes(*block.first_chunk().expect("16 bytes"));
        (head >> (64 - bits)) as usize
    };
    // Where ranges begin.
    let mut starts = vec![0u32; (1 << bits) + 1];
    for block in theirs {
        starts[range(block) + 1] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    for (k, block) in own.iter().enumerate() {
        let range = range(block);
        let among = &theirs[starts[range] as usize..starts[range + 1] as usize];
        let same =
            among.binary_search_by_key(&u128::from_be_bytes(*block), |x| u128::from_be_bytes(*x));
        to[k / 8] |= u8::from(same.is_ok()) << (k % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(x: u128) -> Block {
        x.to_be_bytes()
    }

    #[test]
    fn blocks_are_found_wherever_they_are() {
        let random = |k: u128| k.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        // Spread, and close together.
        for of in [random, |k| k, |k| u128::MAX - 3 * k] {
            for count in [0, 1, 2, 3, 7, 8, 100, 1000] {
                let mut theirs: Vec<Block> = (0..count).map(|k| block(of(2 * k))).collect();
                sort(&mut theirs);
                assert!(ascending(&theirs));
                let own: Vec<Block> = (0..2 * count + 2).map(|k| block(of(k))).collect();
                let mut found = vec![0; own.len().div_ceil(8)];
                find(&theirs, &own, &mut found);
                for k in 0..8 * found.len() {
                    let is = k % 2 == 0 && k < 2 * count as usize;
                    assert_eq!(found[k / 8] >> (k % 8) & 1, u8::from(is), "{k} of {count}");
                }
            }
        }
    }

    #[test]
    fn equal_blocks_are_not_ascending() {
        assert!(ascending(&[]) && ascending(&[block(5)]));
        assert!(ascending(&[block(5), block(6), block(1 << 127)]));
        assert!(!ascending(&[block(5), block(5)]));
        assert!(!ascending(&[block(1), block(6), block(5)]));
    }
}
