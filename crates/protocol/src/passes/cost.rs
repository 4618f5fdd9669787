//! What a move costs, by formula.

use veil_session::PartyId;

use super::rep4::{givers, steps};
use super::{MoveKind, MovePlan, rank};
use crate::rep3::cost_of_rows;
use crate::replicated::Scheme;
use crate::round::Cost;

/// Bytes of an authentication code, and of a digest.
const CODE: u64 = 16;
const DIGEST: u64 = 32;

/// What a party sends, and how often it waits.
pub(super) fn of(scheme: &Scheme, plan: &MovePlan, me: PartyId) -> Cost {
    if plan.kind == MoveKind::Rank {
        return rank::cost(scheme, plan, me);
    }
    match scheme.parties.len() {
        3 if scheme.products.proof.is_some() => proved(plan),
        3 => of_three(plan, me),
        _ => of_four(scheme, plan, me),
    }
}

/// Bytes of all columns, and of the positions alone.
fn bytes(plan: &MovePlan) -> [u64; 2] {
    let rows = u64::from(plan.rows);
    let each = plan.columns.iter().map(|form| form.bytes() * rows);
    let positions = match plan.kind {
        MoveKind::Open => 4 * rows,
        MoveKind::There | MoveKind::Along | MoveKind::Back | MoveKind::Rank => 0,
    };
    [each.sum(), positions]
}

/// E sends all columns once, F and G twice and once; what is opened they send once more, to E.
fn of_three(plan: &MovePlan, me: PartyId) -> Cost {
    let [all, opened] = bytes(plan);
    let columns = plan.columns.len() as u64;
    let opens = u64::from(plan.kind == MoveKind::Open);
    let by = (me.index() + 3 - usize::from(plan.rotation) % 3) % 3;
    let back = plan.kind == MoveKind::Back;
    let (e, f) = if back { (2, 1) } else { (0, 1) };
    let (rounds, messages, bytes) = match by {
        _ if by == e => (opens, columns, all),
        _ if by == f => (2, 2 * columns + opens, 2 * all + opened),
        _ => (2, columns + opens, all + opened),
    };
    Cost {
        rounds,
        messages,
        bytes,
    }
}

/// Every party sends all columns twice, receives them once, and proves what it has sent.
fn proved(plan: &MovePlan) -> Cost {
    let [all, _] = bytes(plan);
    let moved = Cost {
        rounds: 1,
        messages: 2 * plan.columns.len() as u64,
        bytes: 2 * all,
    };
    moved + cost_of_rows(plan.rows)
}

fn of_four(scheme: &Scheme, plan: &MovePlan, me: PartyId) -> Cost {
    let [all, opened] = bytes(plan);
    let columns = if plan.rows > 0 {
        plan.columns.len() as u64
    } else {
        0
    };
    let codes = scheme.products.macs > 0;
    let mut cost = Cost::default();
    for g in steps(plan.kind) {
        if g == me.index() {
            cost.rounds += 1;
            continue;
        }
        for c in (0..4).filter(|c| ![g, me.index()].contains(c)) {
            if givers(plan.rotation, g, c)[0] == me {
                cost.messages += columns;
                cost.bytes += all;
            } else if codes {
                cost.messages += 1;
                cost.bytes += CODE;
            }
        }
    }
    if plan.kind == MoveKind::Open {
        // The component that the next party lacks, and a digest of the one that the previous party lacks.
        cost.rounds += 1;
        cost.messages += 2;
        cost.bytes += opened + DIGEST;
    }
    cost
}
