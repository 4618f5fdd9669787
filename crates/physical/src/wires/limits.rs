//! How large a circuit may be, and how soon that is known.

use std::collections::HashMap;

use veil_circuit::{Builder, Limits};
use veil_job::passes::{MoveKind, PassSpec, ProgramSpec};
use veil_math::Ring;

use super::{form_bits, network};
use crate::{PhysicalError, PhysicalPlan};

/// Gates of a circuit, at most, those among them that no result needs. Upside of more: larger queries. Downside: every participant plans the circuit by itself, in about 130 bytes of
/// memory for each gate.
pub const MOST_GATES: u64 = 1 << 24;

pub(super) const fn limits() -> Limits {
    Limits {
        gates: MOST_GATES,
        wires: 2 * MOST_GATES,
        ports: 1 << 14,
        output_wires: MOST_GATES,
        cycles: 1,
        value_bits: 1 << 31,
    }
}

/// Rows of all tables that owners supply.
pub(super) fn rows_of(plan: &PhysicalPlan) -> u64 {
    let mut tables: HashMap<usize, u64> = HashMap::new();
    for of in &plan.tables {
        if let Some(PassSpec::Rows { job, .. }) = plan.passes.passes.get(of.pass) {
            tables.insert(of.table, job.rows());
        }
    }
    tables.values().sum()
}

/// What is too large by so many ANDs: of how many rows, [`flat`](super::flat) says.
pub(super) fn too_large(ands: u64) -> PhysicalError {
    PhysicalError::TooLarge {
        rows: 0,
        ands,
        limit: MOST_GATES,
    }
}

/// Refuses what has become too large.
pub(super) fn fits(b: &Builder) -> Result<(), PhysicalError> {
    if b.wires() <= MOST_GATES {
        return Ok(());
    }
    Err(too_large(b.products()))
}

/// Refuses what will be too large: so many parts of which each takes as many gates, and as many ANDs, as those since there were this many of both.
pub(super) fn will_fit(
    b: &Builder,
    (parts, since, all): (u64, (u64, u64), u64),
) -> Result<(), PhysicalError> {
    let more = |now: u64, then: u64| (now - then).saturating_mul(all) / parts.max(1);
    let (wires, products) = since;
    // What folds at the ends of a relation is not known yet.
    let gates = b.wires().saturating_add(more(b.wires(), wires));
    if gates <= MOST_GATES + MOST_GATES / 4 {
        return Ok(());
    }
    let now = b.products();
    Err(too_large(now.saturating_add(more(now, products))))
}

/// Rows of a pass from which on is known what the others take.
pub(super) const TRIED: [usize; 2] = [8, 24];

/// Refuses rows to be exchanged that have too many bits: an exchange takes an AND for each, and more gates.
pub(super) fn may_exchange(b: &Builder, rows: usize, bits: usize) -> Result<(), PhysicalError> {
    let ands = network::least_pairs(rows as u64).saturating_mul(bits as u64);
    if ands <= MOST_GATES / 2 {
        return Ok(());
    }
    Err(too_large(b.products().saturating_add(ands)))
}

/// Refuses a program that is far too large, before any of it is made: by the products of its circuits of bits and the exchanges of its sorts, of which not all fold.
pub(super) fn estimated(spec: &ProgramSpec) -> Result<(), PhysicalError> {
    let of = |pass: &PassSpec| -> u64 {
        let exchanged = |rows: u32, bits: u32| {
            // Known zeros above words cost nothing: a half of them may be.
            network::least_pairs(rows.into()).saturating_mul(u64::from(bits) / 2)
        };
        match pass {
            PassSpec::Rows { job, .. } if job.circuit.ring == Ring::Bits => {
                let products = job.circuit.stats().total_muls();
                products.saturating_mul(job.rows())
            }
            PassSpec::Move {
                rows,
                kind: MoveKind::Along | MoveKind::Back,
                takes,
                ..
            } => {
                let bits = takes.iter().map(|(_, form)| form_bits(*form));
                exchanged(*rows, bits.fold(0, u32::saturating_add))
            }
            PassSpec::Compare { job, rows, .. } => {
                // Both rows of a comparison.
                let bits = job.circuit.input_wires() / 2;
                exchanged(*rows, 2 * bits)
            }
            PassSpec::Rows { .. } | PassSpec::Move { .. } | PassSpec::Product { .. } => 0,
        }
    };
    let ands = spec.passes.iter().map(of).fold(0, u64::saturating_add);
    // Circuits have three gates or more for an AND.
    if ands <= MOST_GATES {
        return Ok(());
    }
    Err(too_large(ands))
}
