//! Moves of rows by permutations that a party knows: what their commands need (Araki, Furukawa, Ohara, Pinkas, Rosemarin, Tsuchida, *Secure
//! Graph Analysis at Scale*, CCS 2021).

use veil_math::Ring;

use crate::Fault;
use crate::command::{Command, Op};
use crate::layout::{ColumnType, Layout, Region, Residency, Span};
use crate::proof::Proof;

/// Why words are refused.
pub(crate) const WORDS: &str = "words of 1, 2, 4, 8 or 16 bytes, in no plane, are needed";

/// A permutation: of each row the position to which it moves.
const PERMUTATION: ColumnType = ColumnType::Rows(Ring::Z32);

/// The fault of an entry of a permutation that is no row.
pub(crate) const fn no_row(command: usize) -> Fault {
    Fault::Shape {
        command,
        what: "a permutation with an entry that is no row",
    }
}

/// Whether a region has words as there are none.
pub(crate) fn is_strange(region: &Region) -> bool {
    let words = matches!(region.column, ColumnType::Words(_));
    words && (region.residency == Residency::Plane || !region.column.is_known())
}

/// What is wrong with a command that has a lent column and moves no rows.
pub(crate) const LENT: &str = "lent columns are of rows that move, and of commands that move them";

/// Whether a command may have columns that are lent: those that moves are made of.
pub(crate) const fn takes_lent(op: &Op) -> bool {
    matches!(
        op,
        Op::Random
            | Op::Combine { .. }
            | Op::Hash { .. }
            | Op::Mac
            | Op::CheckEqual
            | Op::Permutation
            | Op::Permute { .. }
            | Op::Invert
            | Op::Rank(_)
            | Op::MatMul(_)
            | Op::Proof(Proof::Rows(_))
    )
}

/// Whether a region is lent as none can be.
pub(crate) fn is_lent_badly(region: &Region) -> bool {
    region.residency == Residency::Lent && !(region.count == 1 && moves(region.column))
}

/// Whether a column has elements that move: integers, or words.
fn moves(column: ColumnType) -> bool {
    match column {
        ColumnType::Rows(ring) => ring != Ring::Bits,
        ColumnType::Words(_) => true,
        _ => false,
    }
}

/// The first thing that is wrong with the calls and the words of a sum.
pub(crate) fn check_sum(command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let mut spans = command.src.iter().chain(&command.dst);
    let plane = |span: &Span| region(span).residency == Residency::Plane;
    let to = region(&command.dst[0]).column;
    if spans.clone().any(|span| is_strange(region(span))) {
        return Err(WORDS);
    }
    if command.calls.is_empty() {
        return Ok(());
    }
    if !moves(to) || spans.any(plane) {
        return Err("draws are added to integers or words, in rows that are no plane's");
    }
    if command.src.len() + command.calls.len() > 32 {
        return Err("more sources and draws than there are signs");
    }
    Ok(())
}

/// The first thing that is wrong with a permutation that is to be drawn.
pub(crate) fn check_drawn(command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let fits = command.src.is_empty() && command.calls.len() == 1;
    match &command.dst[..] {
        [to] if fits && is_permutation(layout, to) => Ok(()),
        _ => Err("one draw, and one item of integers modulo 2^32, are needed"),
    }
}

/// The first thing that is wrong with rows that are to move.
pub(crate) fn check_moved(command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let ([from, by @ ..], [to]) = (&command.src[..], &command.dst[..]) else {
        return Err("rows, one or two permutations, and one destination are needed");
    };
    if !(1..=2).contains(&by.len()) || !by.iter().all(|span| is_permutation(layout, span)) {
        return Err(
            "one or two permutations, of one item of integers modulo 2^32 each, are needed",
        );
    }
    if is_strange(region(to)) || is_strange(region(from)) {
        return Err(WORDS);
    }
    if !moves(region(to).column)
        || (region(from).column, from.count) != (region(to).column, to.count)
    {
        return Err("as many items of integers or words, of one type, are needed");
    }
    if command.src.iter().any(|span| to.overlaps(*span)) {
        return Err("the destination overlaps a source");
    }
    Ok(())
}

/// The first thing that is wrong with a permutation that is to be inverted.
pub(crate) fn check_inverted(command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let ([from], [] | [_]) = (&command.src[..], &command.dst[..]) else {
        return Err("one source, and one destination or none, are needed");
    };
    let to = command.dst.first();
    if !is_permutation(layout, from) || to.is_some_and(|to| !is_permutation(layout, to)) {
        return Err("permutations, of one item of integers modulo 2^32 each, are needed");
    }
    if !layout.regions[from.region as usize].residency.is_packed() {
        return Err("what is inverted is what the host reaches");
    }
    if to.is_some_and(|to| to.overlaps(*from)) {
        return Err("the destination overlaps a source");
    }
    Ok(())
}

pub(crate) fn is_permutation(layout: &Layout, span: &Span) -> bool {
    layout.regions[span.region as usize].column == PERMUTATION && span.count == 1
}
