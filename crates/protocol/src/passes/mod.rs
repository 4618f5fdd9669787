//! Programs over relations, planned: the passes of a run, and the rounds of moves.
//!
//! Passes have keys of their own, derived from those of the run and the number of the pass, so that no two of them draw the same.
//!
//! From: Araki, Furukawa, Ohara, Pinkas, Rosemarin, Tsuchida, "Secure Graph Analysis at Scale", CCS 2021 (moves of three parties); Dalskov, Escudero,
//! Keller, "Fantastic Four", USENIX Security 2021 (joint messages of four).

mod columns;
mod cost;
mod moves;
mod ordering;
mod product;
mod program;
mod proved;
mod rank;
mod regions;
mod rep3;
mod rep4;
mod search;

pub use columns::{ColumnKind, ColumnPlan};
pub use moves::{MovePlan, Moves};
pub use product::ProductPlan;
pub use program::{Compares, Pass, PassProgram, ProgramError};
pub use search::{NoOrder, Search};
pub use veil_job::passes::{
    Axis, ColumnForm, ColumnId, MadeSpec, MoveKind, PassSpec, ProgramSpec, Take,
};

use veil_device::{Command, Op, PrfCall, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Peer;

use crate::replicated::Scheme;
use crate::round::{Check, Round};
use moves::Moving;
use regions::Places;

/// to = Σ ± src ± draws.
fn combined(
    form: ColumnForm,
    src: Vec<Span>,
    signs: impl Iterator<Item = bool>,
    calls: Vec<PrfCall>,
    to: Span,
) -> Command {
    let minus = (0..)
        .zip(signs)
        .map(|(k, minus)| u32::from(minus) << k)
        .sum();
    // Bits are their own negatives.
    let (ring, minus) = match form {
        ColumnForm::Ring(ring) => (ring, minus),
        ColumnForm::Words(_) => (Ring::Bits, 0),
    };
    let mut command = Command::new(Op::Combine { ring, minus }, src, vec![to]);
    command.calls = calls;
    command
}

/// Draws all factors that a party knows.
fn draw(moving: &Moving<'_>, tag: fn(u8) -> DomainTag) -> impl Iterator<Item = Command> {
    moving.scheme.parts().map(move |part| {
        let component = moving.scheme.component_of(moving.me, part);
        let to = moving.places.factor(part);
        let mut command = Command::new(Op::Permutation, vec![], vec![to]);
        command.calls = vec![PrfCall {
            key: Scheme::key(part),
            tag: tag(component.number() as u8),
            first: 0,
        }];
        command
    })
}

/// Puts what has moved in the order of opened positions; before a move back, takes it out of that order.
fn order(moving: &Moving<'_>, index: usize) -> impl Iterator<Item = Command> {
    let all = moving.scheme.parts();
    all.map(move |part| order_part(moving, index, part))
}

/// The same of one part.
fn order_part(moving: &Moving<'_>, index: usize, part: u8) -> Command {
    let back = moving.plan.kind == MoveKind::Back;
    let ordered = moving.places.message(index, part);
    let (from, to) = if back {
        (ordered, Places::part(index, part))
    } else {
        (moving.places.moved(index, part), ordered)
    };
    let src = vec![from, moving.places.opened()];
    Command::new(Op::Permute { back }, src, vec![to])
}

/// Looks at the opened positions, which ends the run if they are no permutation.
fn look(moving: &Moving<'_>, round: &mut Round) {
    let others = moving.scheme.others(moving.me).map(Peer::Party);
    round.checks.push(Check {
        command: round.finish.len(),
        suspects: others.collect(),
        what: "opened positions, which are no permutation",
    });
    let opened = vec![moving.places.opened()];
    round.finish.push(Command::new(Op::Invert, opened, vec![]));
}
