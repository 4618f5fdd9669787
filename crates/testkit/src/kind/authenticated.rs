//! Messages of authenticated garbling.

use veil_device::ColumnType;
use veil_protocol::ag::{AgMessage, ag_message};
use veil_protocol::{Protocol, Task, Transfer, WorkspaceOf, yao};

use super::{CODE, Kind};

/// A digest.
const DIGEST: ColumnType = ColumnType::Bytes(32);

/// The message of a round of silent transfers.
pub(super) fn of_silent(round: u32) -> Kind {
    match round {
        0 => Kind::SilentSums,
        1 => Kind::SilentQuestion,
        _ => Kind::SilentAnswer,
    }
}

/// The kind of a message of authenticated garbling.
pub(super) fn kind(
    protocol: &dyn Protocol,
    (task, inputs): (Task, bool),
    send: &Transfer,
) -> Option<Kind> {
    let garbles = protocol.me().party() == Some(yao::GARBLER);
    let of = match task {
        Task::SetUp => WorkspaceOf::Job,
        _ => WorkspaceOf::Rows,
    };
    let opens = matches!(task, Task::Open(_));
    let Some(message) = ag_message(send) else {
        let column = protocol.layout(of).regions[send.span.region as usize].column;
        if task == Task::SetUp && column == DIGEST {
            return None;
        }
        return Some(match (column, send.part, inputs) {
            (ColumnType::Labels, ..) => Kind::Table,
            (_, 2, true) => Kind::TransferFolds,
            (_, 2, false) => Kind::BatchTransferFolds,
            (CODE, 0, true) => Kind::TransferChallenge,
            (CODE, 0, false) => Kind::BatchTransferChallenge,
            (_, _, true) => Kind::Correction,
            (_, _, false) => Kind::BatchCorrection,
        });
    };
    Some(match message {
        AgMessage::InputParts if send.peer.party().is_none() => Kind::OutsideParts,
        AgMessage::InputParts => Kind::InputParts,
        AgMessage::ProductChallenge => Kind::LeakyChallenge,
        AgMessage::OpeningChallenge if inputs => Kind::InputChallenge,
        AgMessage::OpeningChallenge if opens => Kind::OutputChallenge,
        AgMessage::OpeningChallenge => Kind::BitChallenge,
        AgMessage::GateChallenge => Kind::GateChallenge,
        AgMessage::Folds if inputs => Kind::InputFold,
        AgMessage::Folds if opens => Kind::OutputFolds,
        AgMessage::Folds if send.span.count > 1 => Kind::BitFolds,
        AgMessage::Folds if garbles => Kind::GateFold,
        AgMessage::Folds => Kind::LabelFold,
        AgMessage::Public => Kind::MaskedInput,
        AgMessage::Offers => Kind::LeakyOffer,
        AgMessage::Differences => Kind::LeakyBits,
        AgMessage::DigestCommitment => Kind::LeakyCommitment,
        AgMessage::Digest => Kind::LeakyDigest,
        AgMessage::DigestNonce => Kind::LeakyNonce,
        AgMessage::CoinCommitment => Kind::CoinCommitment,
        AgMessage::GarblerCoin => Kind::GarblerCoin,
        AgMessage::EvaluatorCoin => Kind::EvaluatorCoin,
        AgMessage::CoinNonce => Kind::CoinNonce,
        AgMessage::Opened => Kind::OpenedBits,
        AgMessage::Colours => Kind::TableColours,
        AgMessage::Results => Kind::MaskedResults,
        AgMessage::OutputParts => Kind::OutputParts,
        AgMessage::MaskedDigest => Kind::MaskedInputDigest,
        AgMessage::OutsideParts => Kind::OutsideParts,
        AgMessage::OutsideResults => Kind::OutsideResults,
        AgMessage::OutsideChallenge => Kind::OutsideChallenge,
        AgMessage::OutsideSum => Kind::OutsideSum,
        AgMessage::OutsideAnswers => Kind::OutsideAnswers,
    })
}
