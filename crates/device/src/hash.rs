//! The digest of `Op::Hash`, for every device that computes it on the host.

use sha2::{Digest, Sha256};
use veil_session::{Frame, SessionId};

use crate::Draw;

/// Starts a digest for `label` in `frame` of `session`, of what was drawn as `draws` say; the sources' bytes follow.
pub(crate) fn start(session: &SessionId, label: u16, frame: Frame, draws: &[Draw]) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update(session.0);
    hash.update(label.to_le_bytes());
    hash.update(frame.epoch.to_le_bytes());
    hash.update(frame.lane.to_le_bytes());
    hash.update(frame.chunk.to_le_bytes());
    hash.update(frame.rows.to_le_bytes());
    for draw in draws {
        hash.update(draw.tag.0.to_le_bytes());
        hash.update(draw.first.to_le_bytes());
    }
    hash
}
