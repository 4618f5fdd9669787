//! The digest of `Op::Hash`, for every device that computes it on the host.

use sha2::{Digest, Sha256};
use veil_session::{Frame, SessionId};

/// Starts a digest for `label` in `frame` of `session`; the sources' bytes follow.
pub(crate) fn start(session: &SessionId, label: u16, frame: Frame) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(session.0);
    hash.update(label.to_le_bytes());
    hash.update(frame.epoch.to_le_bytes());
    hash.update(frame.lane.to_le_bytes());
    hash.update(frame.chunk.to_le_bytes());
    hash.update(frame.rows.to_le_bytes());
    hash
}
