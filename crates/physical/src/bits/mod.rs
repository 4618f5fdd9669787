//! Integers as bits: circuits over integers whose wires are words of wires, and which bits of columns are read.
//!
//! Both plans in bits alone are made of this: [one circuit](crate::wires) for two parties, and passes over words for three of whom one may be malicious.

mod gates;
mod reads;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use veil_circuit::Builder;

use crate::PhysicalError;
pub(crate) use gates::InRows;
pub(crate) use reads::Reads;

/// Gates of a circuit, at most, those among them that no result needs. Upside of more: larger queries. Downside: every participant plans the circuit by itself, in about 130 bytes of
/// memory for each gate.
pub const MOST_GATES: u64 = 1 << 24;

/// What is too large by so many ANDs: of how many rows, [`flat`](crate::wires::flat) says.
pub(crate) fn too_large(ands: u64) -> PhysicalError {
    PhysicalError::TooLarge {
        rows: 0,
        ands,
        limit: MOST_GATES,
    }
}

/// Refuses what has become too large.
pub(crate) fn fits(b: &Builder) -> Result<(), PhysicalError> {
    if b.wires() <= MOST_GATES {
        return Ok(());
    }
    Err(too_large(b.products()))
}
