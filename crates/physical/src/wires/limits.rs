//! How large a circuit may be, and how soon that is known.

use std::collections::HashMap;

use veil_circuit::{Builder, Limits};
use veil_job::passes::{MoveKind, PassSpec, ProgramSpec};
use veil_math::Ring;

use super::{form_bits, network};
use crate::bits::{MOST_GATES, too_large};
use crate::{PhysicalError, PhysicalPlan};

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

/// Gates of a bit that is exchanged, and of one that is compared besides, of which one each is an AND.
const EXCHANGED: u64 = 4;
const SORTED: u64 = 8;

/// Refuses rows of so many bits to be exchanged, or to be sorted, that make a circuit too large.
pub(super) fn may_exchange(
    b: &Builder,
    (rows, bits): (usize, u64),
    sorts: bool,
) -> Result<(), PhysicalError> {
    let pairs = network::least_pairs(rows as u64).saturating_mul(bits);
    let (gates, ands) = if sorts { (SORTED, 2) } else { (EXCHANGED, 1) };
    if pairs.saturating_mul(gates).saturating_add(b.wires()) <= MOST_GATES {
        return Ok(());
    }
    let ands = pairs.saturating_mul(ands);
    Err(too_large(b.products().saturating_add(ands)))
}

/// Refuses a program that is too large, before any of it is made: by the products of its circuits of bits and the exchanges of its sorts.
pub(super) fn estimated(spec: &ProgramSpec) -> Result<(), PhysicalError> {
    let pairs = |rows: u32| network::least_pairs(rows.into());
    let of = |pass: &PassSpec| -> u64 {
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
                pairs(*rows).saturating_mul(known_to_move(bits))
            }
            PassSpec::Compare { job, rows, .. } => {
                // Words of both rows: an AND for a comparison of two bits, and one for their exchange.
                let bits = job.circuit.input_wires();
                pairs(*rows).saturating_mul(bits.into())
            }
            PassSpec::Rows { .. } | PassSpec::Move { .. } | PassSpec::Product { .. } => 0,
        }
    };
    let ands = spec.passes.iter().map(of).fold(0, u64::saturating_add);
    // Circuits have more gates than three for an AND.
    if ands <= MOST_GATES / 3 {
        return Ok(());
    }
    Err(too_large(ands))
}

/// Of columns whose elements have so many bits, no more than are not known: the upper half of each may be zeros.
pub(super) fn known_to_move(bits: impl Iterator<Item = u32>) -> u64 {
    bits.map(|bits| u64::from(bits) / 2).sum()
}
