//! Stock of two parties: of which kind a job takes some, and the job that makes it.

use veil_job::{JobSpec, Statistical, StockKind};

use crate::choose::Choice;
use crate::{ag, yao};

/// What runs of a job take from a stock, if its protocol takes anything.
pub fn stock_kind(job: &JobSpec) -> Option<StockKind> {
    match Choice::of_job(job)? {
        Choice::Authenticated => Some(StockKind::Cells),
        Choice::Garbled(_) => Some(StockKind::Transfers),
        Choice::Shared(_) | Choice::Cut | Choice::Intersected => None,
    }
}

/// Items of a row of the job that makes them: stock is made in whole ones.
pub const fn items_of_row(kind: StockKind) -> u64 {
    match kind {
        StockKind::Cells => ag::CELLS_OF_ROW,
        StockKind::Transfers => yao::TRANSFERS_OF_ROW,
    }
}

/// The job that makes at least so many items for jobs of this statistical parameter.
pub fn making_of(
    kind: StockKind,
    parties: [String; 2],
    statistical: Statistical,
    items: u64,
) -> JobSpec {
    match kind {
        StockKind::Cells => ag::stock_of(parties, statistical, items),
        StockKind::Transfers => yao::transfers_of(parties, items),
    }
}

/// The statistical parameter s of what is made for jobs of this one: a batch errs with probability 2^-s at most. That of transfers follows from their check alone.
pub const fn stock_parameter(kind: StockKind, statistical: Statistical) -> u8 {
    match kind {
        StockKind::Cells => statistical.bits(),
        StockKind::Transfers => yao::CHECKED,
    }
}
