//! The digest of `Op::Hash`: the head that is hashed before its sources, and sources as trees, whose pieces are hashed at once.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use veil_session::{Frame, SessionId};

use crate::PrfCall;

/// The head of the hashed bytes for `label` in `frame` of `session`, about values drawn by `calls`; the sources' bytes follow.
pub fn head(session: &SessionId, label: u16, frame: Frame, calls: &[PrfCall]) -> Vec<u8> {
    let mut head = session.0.to_vec();
    head.extend(label.to_le_bytes());
    head.extend(frame.epoch.to_le_bytes());
    head.extend(frame.lane.to_le_bytes());
    head.extend(frame.chunk.to_le_bytes());
    head.extend(frame.rows.to_le_bytes());
    for call in calls {
        head.extend(call.tag.0.to_le_bytes());
        head.extend(call.first.to_le_bytes());
    }
    head
}

/// Bytes of a piece.
pub const PIECE: usize = 1024;

/// SHA-256 of the head and of the sources, as it is defined: a source that is longer than a piece is replaced with the digests of its pieces,
/// until it is no longer than one.
///
/// Both ends know from the plan how long each source is, so that what differs in a source differs in the digest, or SHA-256 has a collision
/// (Merkle 1979).
pub(crate) fn digest<'a>(head: &[u8], sources: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix(head);
    for source in sources {
        digest.update(reduced(source, &pieces));
    }
    digest.finalize().into()
}

/// What stands for a source, where `pieces` makes the digests of all its pieces.
pub(crate) fn reduced<'a>(source: &'a [u8], pieces: &dyn Fn(&[u8]) -> Vec<u8>) -> Cow<'a, [u8]> {
    let mut reduced = Cow::Borrowed(source);
    while reduced.len() > PIECE {
        reduced = Cow::Owned(pieces(&reduced));
    }
    reduced
}

/// The digests of pieces, the last of which may be shorter.
pub(crate) fn pieces(bytes: &[u8]) -> Vec<u8> {
    bytes.chunks(PIECE).flat_map(Sha256::digest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the definition has it, level by level, for lengths around whole pieces and whole levels.
    #[test]
    fn sources_are_trees_of_pieces() {
        for length in [
            0,
            1,
            PIECE - 1,
            PIECE,
            PIECE + 1,
            5 * PIECE,
            32 * PIECE,
            32 * PIECE + 1,
        ] {
            let source: Vec<u8> = (0..length).map(|k| (k * 7 % 251) as u8).collect();
            let mut of = source.clone();
            let mut levels = 0;
            while of.len() > 1024 {
                let mut next = Vec::new();
                for first in (0..of.len()).step_by(1024) {
                    next.extend(Sha256::digest(&of[first..of.len().min(first + 1024)]));
                }
                (of, levels) = (next, levels + 1);
            }
            assert_eq!(
                levels,
                usize::from(length > 1024) + usize::from(length > 32 * 1024)
            );
            let whole = Sha256::digest([b"head", &of[..], b"short"].concat());
            let sources = [&source[..], b"short"];
            assert_eq!(
                digest(b"head", sources.into_iter()),
                *whole,
                "{length} bytes"
            );
        }
    }
}
