//! Lifts of bits to integers in a layer: where they are, and what their steps draw.

use veil_device::{Command, KeyId, Lifting, Op, PrfCall, Span};
use veil_prss::DomainTag;

use crate::plan::{BIT_SLOTS, LiftPlan, Plan, SLOTS};

/// Lifts of a layer that lie side by side: all of them, or those of one rotation.
#[derive(Clone, Copy)]
pub(crate) struct Lifts {
    /// First slots of bits and of integers.
    from: u32,
    to: u32,
    pub(crate) count: u32,
    /// Counter of the first.
    first: u64,
}

impl Lifts {
    /// All of them.
    pub(crate) fn all(lifts: &LiftPlan) -> Self {
        Lifts {
            from: lifts.from,
            to: lifts.to,
            count: lifts.count(),
            first: lifts.first,
        }
    }

    /// Those of a rotation.
    pub(crate) fn of(plan: &Plan, lifts: &LiftPlan, rotation: usize) -> Self {
        let before: u32 = lifts.counts[..rotation].iter().sum();
        let stride = plan.stride(plan.words);
        Lifts {
            from: lifts.from + before,
            to: lifts.to + before,
            count: lifts.counts[rotation],
            first: lifts.first + u64::from(before) * stride,
        }
    }

    /// A component of the bits.
    pub(crate) fn bits(&self, part: u8) -> Span {
        Span {
            region: BIT_SLOTS,
            component: part,
            first: self.from,
            count: self.count,
        }
    }

    /// A component of the integers.
    pub(crate) fn integers(&self, part: u8) -> Span {
        Span {
            region: SLOTS,
            component: part,
            first: self.to,
            count: self.count,
        }
    }

    /// A message of them.
    pub(crate) fn message(&self, region: u16, part: u8) -> Span {
        Span {
            region,
            component: part,
            first: 0,
            count: self.count,
        }
    }

    /// A draw for each of them.
    pub(crate) fn call(&self, key: KeyId, tag: DomainTag) -> PrfCall {
        PrfCall {
            key,
            tag,
            first: self.first,
        }
    }
}

/// A step.
pub(crate) fn step(
    step: Lifting,
    src: Vec<Span>,
    dst: Vec<Span>,
    calls: impl IntoIterator<Item = PrfCall>,
) -> Command {
    let mut command = Command::new(Op::Lifting(step), src, dst);
    command.calls = calls.into_iter().collect();
    command
}
