//! What `Op::Hash` hashes before its sources.

use sha2::{Digest, Sha256};
use veil_session::{Frame, SessionId};

use crate::Draw;

/// The head of what is hashed for `label` in `frame` of `session`, of what was drawn as `draws` say; the sources' bytes follow.
pub fn head(session: &SessionId, label: u16, frame: Frame, draws: &[Draw]) -> Vec<u8> {
    let mut head = session.0.to_vec();
    head.extend(label.to_le_bytes());
    head.extend(frame.epoch.to_le_bytes());
    head.extend(frame.lane.to_le_bytes());
    head.extend(frame.chunk.to_le_bytes());
    head.extend(frame.rows.to_le_bytes());
    for draw in draws {
        head.extend(draw.tag.0.to_le_bytes());
        head.extend(draw.first.to_le_bytes());
    }
    head
}

/// Starts a digest with its head, for devices that compute it on the host.
pub(crate) fn start(session: &SessionId, label: u16, frame: Frame, draws: &[Draw]) -> Sha256 {
    Sha256::new_with_prefix(head(session, label, frame, draws))
}
