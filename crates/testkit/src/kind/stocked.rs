//! Messages of random transfers for a stock, and of those that come from one.

use veil_protocol::{Plan, Protocol, Stock, Task, Transfer, yao};

use super::Kind;

/// The kind of a message that a run without a stock does not have, or has elsewhere.
pub(super) fn kind(
    protocol: &dyn Protocol,
    plan: &Plan,
    (task, place): (Task, u32),
    send: &Transfer,
) -> Option<Kind> {
    let garbles = protocol.me().party()? == yao::GARBLER;
    match (plan.stock, task) {
        _ if protocol.name() != "yao" => None,
        (Stock::Used, Task::SetUp) if yao::masks_offset(plan, place) => Some(Kind::JobMaskedOffset),
        (Stock::Used, _) if yao::masks_offset(plan, place) => Some(Kind::MaskedOffset),
        (Stock::Used, Task::Layers) if !garbles => Some(Kind::Correction),
        (Stock::Made, Task::Layers) => Some(match (garbles, send.part) {
            (true, _) => Kind::BatchTransferChallenge,
            (false, 2) => Kind::BatchTransferFolds,
            (false, _) => Kind::BatchCorrection,
        }),
        _ => None,
    }
}
