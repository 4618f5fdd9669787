//! Where single elements of a proof are, and how many it takes.

use veil_device::Span;
use veil_device::proof::rows::PRODUCTS;
use veil_device::proof::{FINDINGS, PIECES, SEED, length, levels, values};

use crate::replicated::Batch;

/// Elements of a level, from 0, whose challenge is the seed: claims about both provers, then shares that are sent, received and drawn, then what
/// is told.
const LEVEL: u32 = 176;

/// What a party is told of a level, or tells.
#[derive(Clone, Copy)]
pub(super) enum One {
    /// The challenge to this party.
    Challenge,
    /// The challenges to the previous one, and to the next.
    Given([u32; 1]),
    /// The challenge that the next one was told.
    Echo,
    /// The seed that the next one has for the previous one.
    Ready,
}

/// The region of messages and single elements of a proof.
#[derive(Clone, Copy)]
pub(super) struct In(pub(super) u16);

impl In {
    fn element(self, first: u32, count: u32) -> Span {
        Span {
            region: self.0,
            component: 0,
            first,
            count,
        }
    }

    /// What the shares of a level are to add up to: of each piece of the batch at level 1, later one element.
    pub(super) fn claims(self, level: u32, prover: u32) -> Span {
        let count = if level == 1 { PIECES } else { 1 };
        self.element(LEVEL * level + PIECES * prover, count)
    }

    /// Shares of a level: 0 sent, 1 received, 2 drawn.
    pub(super) fn share(self, level: u32, which: u32) -> Span {
        self.element(LEVEL * level + 64 + 32 * which, values(level))
    }

    pub(super) fn one(self, level: u32, which: One) -> Span {
        let at = match which {
            One::Challenge => 160,
            One::Given([of]) => 162 + 2 * of,
            One::Echo => 166,
            One::Ready => 168,
        };
        self.element(LEVEL * level + at, if level == 0 { SEED } else { 1 })
    }

    /// What was found about a prover, a value and a share of the last claim: by this party, or told by the other verifier.
    pub(super) fn found(self, levels: u32, prover: u32, told: bool) -> Span {
        self.element(
            LEVEL * (levels + 1) + FINDINGS * (2 * prover + u32::from(told)),
            FINDINGS,
        )
    }
}

/// Elements of the region of single elements that a proof takes: of so many products of bits, or of rows that moved.
const fn elements_of(levels: u32) -> u32 {
    LEVEL * (levels + 1) + 4 * FINDINGS
}

/// Elements of the region [`PROOF`](crate::replicated::regions::PROOF) that a batch takes.
pub(crate) fn elements(batch: &Batch) -> u32 {
    elements_of(levels(batch.products, batch.rows))
}

/// Elements of the vectors of a batch.
pub(crate) fn longest(batch: &Batch) -> u32 {
    let length = length(batch.products, batch.rows, 3);
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// The same of rows that moved: single elements, and those of vectors.
pub(crate) fn sizes_of_rows(rows: u32) -> [u32; 2] {
    let length = length(PRODUCTS, rows, 3);
    [
        elements_of(levels(PRODUCTS, rows)),
        u32::try_from(length).unwrap_or(u32::MAX),
    ]
}
