//! Messages of intersections, and of the correlations that they take.

use veil_device::ColumnType;
use veil_protocol::intersect::{IntersectMessage, intersect_message};
use veil_protocol::{Protocol, Task, Transfer, WorkspaceOf};

use super::{CODE, Kind};

/// A digest.
const DIGEST: ColumnType = ColumnType::Bytes(32);

/// The kind of a message of an intersection.
pub(super) fn kind(protocol: &dyn Protocol, task: Task, send: &Transfer) -> Option<Kind> {
    if task != Task::Layers {
        return None;
    }
    if let Some(message) = intersect_message(send) {
        return Some(match message {
            IntersectMessage::Commitment => Kind::KeysCommitment,
            IntersectMessage::Seed => Kind::EncodingSeed,
            IntersectMessage::Encoding => Kind::Encoding,
            IntersectMessage::ReceiverCoin => Kind::ReceiverCoin,
            IntersectMessage::SenderCoin => Kind::SenderCoin,
            IntersectMessage::Tags => Kind::KeyTags,
        });
    }
    let layout = protocol.layout(WorkspaceOf::Rows);
    let column = layout.regions[send.span.region as usize].column;
    let receives = protocol
        .transfers()
        .is_some_and(|transfers| transfers.receiver == protocol.me());
    Some(match (receives, column, send.span.count, send.part) {
        (true, _, _, 2) => Kind::TransferFolds,
        (true, CODE, 1, 0) => Kind::SilentQuestion,
        (true, ..) => Kind::Correction,
        (false, DIGEST, ..) => Kind::SilentAnswer,
        (false, CODE, 1, _) => Kind::TransferChallenge,
        (false, ..) => Kind::SilentSums,
    })
}
