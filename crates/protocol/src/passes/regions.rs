//! Regions of the workspace of a move, whose rows are all rows of a relation.

use veil_device::{ColumnType, Layout, Region, Residency, Side, Span};
use veil_math::Ring;

use super::columns;
use super::moves::Moving;
use super::{MoveKind, MovePlan, proved};
use crate::rep3::sizes_of_rows;
use crate::replicated::{Scheme, place};
use crate::round::{Spans, Stored};

/// Rounds of moves have places from here on.
pub(super) const FIRST: u32 = place::LAYERS;
/// Rounds of the longest move: a step for each of four parties, and an opening.
const ROUNDS: u32 = 5;
/// Rounds of the longest move that is proved: a step for each of three parties, and the proof, whose eleven levels fewer than 2^31 rows take.
const PROVED_ROUNDS: u32 = 3 + 24;

/// Places of a move.
pub(super) const fn places(scheme: &Scheme) -> u32 {
    FIRST
        + if scheme.products.proof.is_some() {
            PROVED_ROUNDS
        } else {
            ROUNDS
        }
}

/// Authentication MACs that a party sends, computes and receives in a step.
const MACS: u32 = 3;
/// Digests of an opened component: computed here, and received.
const DIGESTS: u32 = 4;

/// Where things are.
#[derive(Clone, Copy)]
pub(super) struct Places {
    columns: u16,
    parts: u32,
    /// Whether moves are proved: then what has moved is in a place of its own.
    proved: bool,
}

/// What a party computes, sends or receives of a column beside its components: among three parties, and among four.
const fn messages(scheme: &Scheme) -> u8 {
    match scheme.parties.len() {
        3 if scheme.products.proof.is_some() => proved::MESSAGES,
        3 => 2,
        _ => 3,
    }
}

impl Places {
    pub(super) fn of(scheme: &Scheme, plan: &MovePlan) -> Self {
        Places {
            columns: plan.columns.len() as u16,
            parts: scheme.parts.len() as u32,
            proved: scheme.products.proof.is_some(),
        }
    }

    const fn one(region: u16, component: u8, first: u32) -> Span {
        Span {
            region,
            component,
            first,
            count: 1,
        }
    }

    /// Part `part` of column `index`.
    pub(super) const fn part(index: usize, part: u8) -> Span {
        Self::one(index as u16, part, 0)
    }

    /// Part `part` of column `index` when it has moved.
    pub(super) fn moved(self, index: usize, part: u8) -> Span {
        if self.proved {
            proved::moved(self, index, part)
        } else {
            Self::part(index, part)
        }
    }

    /// What is computed, sent or received of column `index`.
    pub(super) const fn message(self, index: usize, which: u8) -> Span {
        Self::one(self.columns + index as u16, which, 0)
    }

    /// The factor that is drawn with the key of part `part`.
    pub(super) const fn factor(self, part: u8) -> Span {
        Self::one(2 * self.columns, part, 0)
    }

    /// Opened positions.
    pub(super) const fn opened(self) -> Span {
        Self::one(2 * self.columns + 1, 0, 0)
    }

    /// The `k`-th MAC of those that are sent (0), computed (1) or received (2).
    pub(super) const fn mac(self, group: u32, k: u32) -> Span {
        Self::one(2 * self.columns + 2, 0, self.parts * group + k)
    }

    /// A digest of an opened component.
    pub(super) const fn digest(self, k: u32) -> Span {
        Self::one(2 * self.columns + 3, 0, k)
    }

    /// The regions of a proof: single elements, and vectors.
    pub(super) const fn proof(self) -> [u16; 2] {
        [2 * self.columns + 4, 2 * self.columns + 5]
    }
}

/// The workspace of a party.
pub(super) fn layout(scheme: &Scheme, plan: &MovePlan) -> Layout {
    let mut layout = Layout {
        chunk_rows: plan.rows,
        regions: Vec::new(),
    };
    let parts = scheme.parts.len() as u8;
    let mapped = |column, components, count| Region {
        residency: Residency::Mapped,
        column,
        components,
        count,
    };
    // A column of all rows, if it is there.
    let lent = |column, components, count| Region {
        residency: if count == 1 {
            Residency::Lent
        } else {
            Residency::Mapped
        },
        ..mapped(column, components, count)
    };
    for components in [parts, messages(scheme)] {
        for form in &plan.columns {
            layout.add(lent(columns::column(*form), components, 1));
        }
    }
    let positions = ColumnType::Rows(Ring::Z32);
    let opens = u32::from(plan.kind == MoveKind::Open);
    layout.add(lent(positions, parts, 1));
    // The host puts in what other passes have opened.
    let orders = u32::from(plan.orders);
    layout.add(match plan.kind {
        MoveKind::Open => Region {
            residency: Residency::Public,
            ..mapped(positions, 1, orders)
        },
        MoveKind::There | MoveKind::Along | MoveKind::Back | MoveKind::Rank => {
            lent(positions, 1, orders)
        }
    });
    let macs = if scheme.products.macs > 0 {
        MACS * u32::from(parts)
    } else {
        0
    };
    layout.add(mapped(ColumnType::Bytes(16), 1, macs));
    layout.add(mapped(ColumnType::Bytes(32), 1, DIGESTS * opens));
    if scheme.products.proof.is_some() {
        let [elements, vectors] = sizes_of_rows(plan.rows);
        let element = ColumnType::One(Ring::Z64);
        layout.add(mapped(element, 1, elements));
        layout.add(Region {
            residency: Residency::Resident,
            ..mapped(element, Side::ALL.len() as u8, vectors)
        });
    }
    layout
}

/// Where the host puts what a move takes, and finds what it leaves: the columns in order, then the factors of the permutation, then opened positions.
///
/// What is put in an order is in the place of messages then, and what is taken out of it comes from there.
pub(super) fn spans(moving: &Moving<'_>) -> Spans {
    let (plan, places) = (moving.plan, moving.places);
    let columns = |ordered: bool, moved: bool| {
        let span = move |index, part| {
            if ordered {
                places.message(index, part)
            } else if moved {
                places.moved(index, part)
            } else {
                Places::part(index, part)
            }
        };
        let stored = move |index| Stored {
            port: index,
            components: moving
                .scheme
                .parts()
                .map(|part| span(index, part))
                .collect(),
        };
        (0..plan.columns.len()).map(stored)
    };
    let back = plan.kind == MoveKind::Back;
    let mut spans = Spans {
        constants: (moving.scheme.constants)(Ring::Bits, moving.me),
        takes: columns(plan.orders && back, false).collect(),
        leaves: columns(plan.orders && !back, true).collect(),
        ..Spans::default()
    };
    let next = plan.columns.len();
    let factors = Stored {
        port: next,
        components: moving
            .scheme
            .parts()
            .map(|part| places.factor(part))
            .collect(),
    };
    let positions = plan.orders.then(|| Stored {
        port: next + 1,
        components: vec![places.opened()],
    });
    let known = std::iter::once(factors).chain(positions);
    match plan.kind {
        MoveKind::Along | MoveKind::Back => spans.takes.extend(known),
        MoveKind::There | MoveKind::Open => spans.leaves.extend(known),
        MoveKind::Rank => {}
    }
    spans
}
