//! The digest of `Op::Hash`, sixteen pieces of a source side by side where the CPU has vectors for them.

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Isa;
#[cfg(target_arch = "x86_64")]
use super::sha::{self, LANES};
use super::workspace::Memory;
use crate::hash::{self, PIECE, reduced};
use crate::layout::Span;

/// Bytes that are gathered of a source whose columns lie apart.
const GATHERED: usize = 16 * PIECE;

/// The digest of a head and of sources.
pub(super) fn digest(isa: Isa, head: &[u8], memory: &Memory, src: &[Span]) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix(head);
    let pieces = |bytes: &[u8]| pieces(isa, bytes);
    for span in src {
        if let Some(whole) = memory.whole(*span) {
            digest.update(reduced(whole, &pieces));
            continue;
        }
        let columns = || (0..span.count).map(|k| memory.column_bytes(*span, k));
        if columns().map(<[u8]>::len).sum::<usize>() <= PIECE {
            columns().for_each(|bytes| digest.update(bytes));
            continue;
        }
        let (mut gathered, mut digests) =
            (Zeroizing::new(Vec::with_capacity(GATHERED)), Vec::new());
        for mut bytes in columns() {
            while !bytes.is_empty() {
                let (now, rest) = bytes.split_at(bytes.len().min(GATHERED - gathered.len()));
                gathered.extend_from_slice(now);
                bytes = rest;
                if gathered.len() == GATHERED {
                    digests.extend(pieces(&gathered));
                    gathered.clear();
                }
            }
        }
        digests.extend(pieces(&gathered));
        digest.update(reduced(&digests, &pieces));
    }
    digest.finalize().into()
}

/// The digests of pieces.
#[cfg(target_arch = "x86_64")]
fn pieces(isa: Isa, bytes: &[u8]) -> Vec<u8> {
    let (whole, rest) = match isa {
        Isa::Avx512 => bytes.as_chunks::<{ LANES * PIECE }>(),
        _ => (&[][..], bytes),
    };
    let mut digests = Vec::with_capacity(32 * bytes.len().div_ceil(PIECE));
    for sixteen in whole {
        // SAFETY: a device with these vectors was asked for on a machine that has them.
        digests.extend(unsafe { sha::pieces(sixteen) }.as_flattened());
    }
    digests.extend(hash::pieces(rest));
    digests
}

/// The digests of pieces.
#[cfg(not(target_arch = "x86_64"))]
fn pieces(_: Isa, bytes: &[u8]) -> Vec<u8> {
    hash::pieces(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_side_by_side_are_those_one_by_one() {
        for length in [
            0,
            5,
            PIECE,
            GATHERED - 1,
            GATHERED,
            2 * GATHERED + 3 * PIECE + 5,
        ] {
            let bytes: Vec<u8> = (0..length).map(|k| (k * 31 % 253) as u8).collect();
            for isa in Isa::available() {
                assert_eq!(
                    pieces(isa, &bytes),
                    hash::pieces(&bytes),
                    "{isa:?}: {length}"
                );
            }
        }
    }
}
