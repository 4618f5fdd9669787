//! The steps that need no program, as they are defined: block by block. Devices that do better with some of them do the others this way.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use zeroize::Zeroizing;

use super::gate::{Candidate, all, sum};
use super::{Ag, BLOCK, shift};
use crate::command::Command;
use crate::cut::Columns;
use crate::field::times;
use crate::layout::Span;

/// What a step knows beside the workspace.
pub(crate) struct Known {
    /// Δ of the party; 0 where a step has none.
    pub(crate) offset: Zeroizing<u128>,
    /// Where the hash of candidates starts.
    pub(crate) start: u128,
}

/// Blocks that are worked on at a time: a word of their bits.
const TILE: usize = 64;

type Blocks = Zeroizing<[u128; TILE]>;

/// A tile of all spans of a step: blocks from number `at` on of column `k`.
struct Tile<'a, W> {
    workspace: &'a mut W,
    k: u32,
    at: usize,
    len: usize,
    last: bool,
}

impl<W: Columns> Tile<'_, W> {
    fn blocks(&self, span: Span) -> Blocks {
        let mut blocks = Zeroizing::new([0; TILE]);
        let bytes = &self.workspace.get(span, self.k)[BLOCK * self.at..][..BLOCK * self.len];
        for (block, bytes) in blocks.iter_mut().zip(bytes.as_chunks::<BLOCK>().0) {
            *block = u128::from_le_bytes(*bytes);
        }
        blocks
    }

    fn bits(&self, span: Span) -> u64 {
        let mut word = [0; 8];
        let bytes = self.workspace.get(span, self.k);
        let bytes = &bytes[self.at / 8..][..self.len.div_ceil(8)];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    fn put(&mut self, span: Span, blocks: &Blocks) {
        let bytes = self.workspace.get_mut(span, self.k);
        let bytes = bytes[BLOCK * self.at..][..BLOCK * self.len].as_chunks_mut::<BLOCK>();
        for (bytes, block) in bytes.0.iter_mut().zip(blocks.iter()) {
            *bytes = block.to_le_bytes();
        }
    }

    fn put_bits(&mut self, span: Span, bits: u64) {
        let bits = if self.len < TILE {
            bits & ((1 << self.len) - 1)
        } else {
            bits
        };
        let to = &mut self.workspace.get_mut(span, self.k)[self.at / 8..];
        let whole = self.len.div_ceil(8);
        to[..whole].copy_from_slice(&bits.to_le_bytes()[..whole]);
        // Behind the last block there is nothing.
        if self.last {
            to[whole..].fill(0);
        }
    }
}

/// All bits of a block where a bit of a word is 1. Unknown to the compiler, which could branch on it otherwise.
fn where_set(bits: u64, i: usize) -> u128 {
    all(u128::from(std::hint::black_box(bits >> i & 1)))
}

/// Does something with each tile of `span`, whose columns are blocks.
fn tiles<W: Columns>(workspace: &mut W, span: Span, mut with: impl FnMut(&mut Tile<'_, W>)) {
    for k in 0..span.count {
        let blocks = workspace.get(span, k).len() / BLOCK;
        for at in (0..blocks).step_by(TILE) {
            with(&mut Tile {
                workspace: &mut *workspace,
                k,
                at,
                len: TILE.min(blocks - at),
                last: blocks - at <= TILE,
            });
        }
    }
}

/// Does a step, which was checked.
///
/// # Panics
/// At steps with a program.
pub(crate) fn step<W: Columns>(workspace: &mut W, known: &Known, step: Ag, command: &Command) {
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let offset = *known.offset;
    match step {
        Ag::Pin { bit } => tiles(workspace, src[0], |tile| {
            let mut blocks = tile.blocks(src[0]);
            let bits = src.get(1).map_or(0, |bits| tile.bits(*bits));
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = *block & !(1 << bit) | u128::from(bits >> i & 1) << bit;
            }
            tile.put(dst[0], &blocks);
        }),
        Ag::Expand => tiles(workspace, dst[0], |tile| {
            let bits = tile.bits(src[0]);
            let mut blocks = Zeroizing::new([0; TILE]);
            for (i, block) in blocks.iter_mut().enumerate() {
                *block = u128::from(bits >> i & 1);
            }
            tile.put(dst[0], &blocks);
        }),
        Ag::Bits { bit } => tiles(workspace, src[0], |tile| {
            let mut bits = 0;
            for span in src {
                let blocks = tile.blocks(*span);
                for (i, block) in blocks.iter().enumerate() {
                    bits ^= ((block >> bit) as u64 & 1) << i;
                }
            }
            tile.put_bits(dst[0], bits);
        }),
        Ag::Offer { role, .. } => {
            let of = numbered(workspace, src[0], known.start, command.calls[0].first);
            tiles(workspace, src[0], |tile| {
                let [key, mac_b, key_b] = [0, 1, 2].map(|s: usize| tile.blocks(src[s]));
                let mut offers = Zeroizing::new([0; TILE]);
                for i in 0..tile.len {
                    let c = sum(offset, [mac_b[i], key_b[i]]);
                    offers[i] = of(tile.k, tile.at + i).offer(role, offset, key[i], c);
                }
                tile.put(dst[0], &offers);
            });
        }
        Ag::Take { role, .. } => {
            let of = numbered(workspace, src[0], known.start, command.calls[0].first);
            tiles(workspace, src[0], |tile| {
                let all_of: [Blocks; 7] = std::array::from_fn(|s| tile.blocks(src[s]));
                let [mac_a, key_a, mac_b, key_b, mac_r, key_r, offer] = &all_of;
                let (mut sums, mut bits) = (Zeroizing::new([0; TILE]), 0);
                for i in 0..tile.len {
                    let c = sum(offset, [mac_b[i], key_b[i]]);
                    let r = sum(offset, [mac_r[i], key_r[i]]);
                    let candidate = of(tile.k, tile.at + i);
                    sums[i] = r ^ candidate.take(role, [mac_a[i], key_a[i]], c, offer[i]);
                    bits |= ((sums[i] >> 1) as u64 & 1) << i;
                }
                tile.put(dst[0], &sums);
                tile.put_bits(dst[1], bits);
            });
        }
        Ag::Settle { role, .. } => {
            let one = role.one(offset);
            tiles(workspace, dst[0], |tile| {
                let d = tile.bits(src[0]) ^ tile.bits(src[1]);
                for (to, by) in [(dst[0], offset), (dst[1], one)] {
                    let mut blocks = tile.blocks(to);
                    for (i, block) in blocks.iter_mut().enumerate() {
                        *block ^= where_set(d, i) & by;
                    }
                    tile.put(to, &blocks);
                }
            });
        }
        Ag::Fold { offset: of } => fold(workspace, of.map(|_| offset), src, dst[0]),
        Ag::Expect { .. } => {
            let block = |span: Span| {
                let bytes = workspace.get(span, 0).first_chunk().expect("16 bytes");
                Zeroizing::new(u128::from_le_bytes(*bytes))
            };
            let expected = *block(src[0]) ^ times(*block(src[1]), offset);
            workspace
                .get_mut(dst[0], 0)
                .copy_from_slice(&expected.to_le_bytes());
        }
        Ag::Rotate { layer } => {
            let digest = *workspace.get(src[0], 0).first_chunk().expect("32 bytes");
            for k in 0..src[1].count {
                if src[1] != dst[0] {
                    let from = Zeroizing::new(workspace.get(src[1], k).to_vec());
                    workspace.get_mut(dst[0], k).copy_from_slice(&from);
                }
                let (blocks, _) = workspace.get_mut(dst[0], k).as_chunks_mut::<BLOCK>();
                blocks.rotate_left(shift(&digest, layer, blocks.len()));
            }
        }
        Ag::Absorb => tiles(workspace, src[2], |tile| {
            let d = tile.bits(src[0]) ^ tile.bits(src[1]);
            // Destinations may be in the place of sources.
            let sums = [0, 1].map(|p: usize| {
                let (a, c) = (tile.blocks(src[2 + p]), tile.blocks(src[4 + p]));
                let mut sums = [dst[p], dst[2 + p]].map(|to| tile.blocks(to));
                for i in 0..tile.len {
                    sums[0][i] ^= a[i];
                    sums[1][i] ^= c[i] ^ (where_set(d, i) & a[i]);
                }
                sums
            });
            for (p, [a, c]) in sums.iter().enumerate() {
                tile.put(dst[p], a);
                tile.put(dst[2 + p], c);
            }
        }),
        Ag::Spend { role, .. } => {
            let one = role.one(offset);
            tiles(workspace, src[4], |tile| {
                let epsilon = tile.bits(src[0]) ^ tile.bits(src[1]);
                let delta = tile.bits(src[2]) ^ tile.bits(src[3]);
                let sums = [0, 1].map(|p: usize| {
                    let [a, b, mut c, gamma] =
                        [4, 6, 8, 10].map(|s: usize| tile.blocks(src[s + p]));
                    let adds = p as u64 == role.number();
                    let one = if adds { one } else { 0 };
                    for i in 0..tile.len {
                        c[i] ^= gamma[i]
                            ^ (where_set(epsilon, i) & b[i])
                            ^ (where_set(delta, i) & a[i])
                            ^ (where_set(epsilon & delta, i) & one);
                    }
                    c
                });
                for (to, sums) in dst.iter().zip(&sums) {
                    tile.put(*to, sums);
                }
            });
        }
        Ag::Gates {
            offset: of,
            products,
        } => {
            let used = products as usize * workspace.frame().rows as usize;
            gates(workspace, of.map(|_| offset), used, src, dst[0]);
        }
        Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } => {
            unreachable!("these steps have programs")
        }
    }
}

/// The candidate of a block of a column, whose columns are as long as those of `span`.
fn numbered<W: Columns>(
    workspace: &W,
    span: Span,
    start: u128,
    first: u64,
) -> impl Fn(u32, usize) -> Candidate + use<W> {
    let blocks = match span.count {
        0 => 0,
        _ => workspace.get(span, 0).len() / BLOCK,
    };
    move |k, i| Candidate {
        start,
        number: first + (k as usize * blocks + i) as u64,
    }
}

fn fold<W: Columns>(workspace: &mut W, offset: Option<u128>, src: &[Span], to: Span) {
    let challenge: [u8; BLOCK] = *workspace.get(src[0], 0).first_chunk().expect("16 bytes");
    let mut state = Polyval::new(&challenge.into());
    let (bits, arrays) = match offset {
        Some(_) => (Some(src[1]), &src[2..]),
        None => (None, &src[1..]),
    };
    tiles(workspace, arrays[0], |tile| {
        let mut sums = Zeroizing::new([0; TILE]);
        for span in arrays {
            for (sum, block) in sums.iter_mut().zip(tile.blocks(*span).iter()) {
                *sum ^= block;
            }
        }
        let bits = bits.map_or(0, |bits| tile.bits(bits));
        for (i, sum) in sums[..tile.len].iter().enumerate() {
            let block = sum ^ (where_set(bits, i) & offset.unwrap_or(0));
            state.update(&[block.to_le_bytes().into()]);
        }
    });
    let folded: [u8; BLOCK] = state.finalize().into();
    workspace.get_mut(to, 0).copy_from_slice(&folded);
}

/// MACs of τ, or what they are where it is 0.
fn gates<W: Columns>(workspace: &mut W, offset: Option<u128>, used: usize, src: &[Span], to: Span) {
    tiles(workspace, to, |tile| {
        let [alpha, beta] = [0, 1].map(|s: usize| tile.bits(src[s]));
        let of = |bit: u64, i: usize| where_set(bit, i);
        let macs = if offset.is_some() { 3 } else { 2 };
        let sums = |first: usize| {
            let [a, b, s] = [0, 1, 2].map(|k: usize| tile.blocks(src[first + k]));
            let mut sums = Zeroizing::new([0; TILE]);
            for i in 0..tile.len {
                sums[i] = s[i] ^ (of(alpha, i) & b[i]) ^ (of(beta, i) & a[i]);
            }
            sums
        };
        let mut blocks = sums(macs);
        if let Some(offset) = offset {
            let (parts, gamma) = (blocks, tile.bits(src[2]));
            blocks = sums(macs + 3);
            for i in 0..tile.len {
                let public = of(alpha & beta ^ gamma, i);
                blocks[i] ^= (all(parts[i]) ^ public) & offset;
            }
        }
        for i in 0..tile.len {
            if tile.at + i >= used {
                blocks[i] = 0;
            }
        }
        tile.put(to, &blocks);
    });
}

/// Makes the blocks of an array of one column zero, from number `at` on.
pub(crate) fn clear(workspace: &mut impl Columns, span: Span, at: usize) {
    workspace.get_mut(span, 0)[BLOCK * at..].fill(0);
}

/// Makes packed bits zero, from number `at` on.
pub(crate) fn clear_bits(workspace: &mut impl Columns, span: Span, at: usize) {
    let bytes = &mut workspace.get_mut(span, 0)[at / 8..];
    if let Some((first, others)) = bytes.split_first_mut() {
        *first &= (1 << (at % 8)) - 1;
        others.fill(0);
    }
}
