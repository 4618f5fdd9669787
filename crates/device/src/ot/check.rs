//! Checks of a step of transfers, so that it stays within its spans.

use veil_math::Ring;

use super::{COLUMNS, Choices, FOLD, Ot, Trees, column_bytes};
use crate::command::Command;
use crate::garble::{MOST_PRODUCTS, ROW_BITS};
use crate::layout::{ColumnType, Layout, Residency, Span};

/// The first thing that is wrong with a step, in a workspace of `layout` with `rows` rows.
pub(crate) fn check(
    step: Ot,
    command: &Command,
    (layout, rows): (&Layout, u32),
) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let item = |span: &Span| region(span).column;
    let bits = |span: &Span| item(span) == ColumnType::Rows(Ring::Bits);
    // What came from a peer or goes to it.
    let message = |span: &Span| region(span).residency.is_packed();
    let of = |span: &Span| {
        Choices::of(item(span)).filter(|of| of.bytes(rows) > 0 || *of == Choices::Rows)
    };
    let columns = |span: &Span, count: u32, (items, of): (u32, Option<Choices>)| {
        let long = match (item(span), of) {
            (ColumnType::Bytes(bytes), Some(of)) => {
                u64::from(bytes) >= column_bytes(of, items, rows)
            }
            _ => false,
        };
        long && region(span).residency == Residency::Resident && span.count == count
    };
    let corrections = |trees: Trees, spans: &[Span], items: u32| {
        let [rows, last] = spans else { return false };
        of(rows).is_some()
            && item(last) == FOLD
            && message(rows)
            && message(last)
            && rows.count.checked_rem(trees.count()) == Some(0)
            && rows.count / trees.count() == items
            && last.count == trees.count() - 1
    };
    let leaves = |trees: Trees| {
        let [call] = &command.calls[..] else {
            return false;
        };
        u32::from(call.key.0) + trees.count() * trees.leaves() <= 1 << 16
    };
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let fits = match (step, src, dst) {
        (Ot::Receive { trees }, [choices], [message @ .., to]) => {
            of(choices).is_some()
                && corrections(trees, message, choices.count)
                && item(choices) == item(&message[0])
                && !choices.overlaps(message[0])
                && columns(to, COLUMNS + 1, (choices.count, of(choices)))
                && leaves(trees)
        }
        (Ot::Send { trees, .. }, [from, _], [to]) => {
            let items = from.count / trees.count();
            corrections(trees, src, items)
                && columns(to, COLUMNS, (items, of(from)))
                && leaves(trees)
        }
        (Ot::Fold { items, of }, [from, challenge], [to]) => {
            let long =
                matches!(item(challenge), ColumnType::Bytes(n) if n as usize >= super::BLOCK);
            columns(from, from.count, (items, Some(of)))
                && long
                && challenge.count == 1
                && item(to) == FOLD
                && to.count == from.count
        }
        (Ot::Compare { .. }, [own, theirs], []) => {
            (item(own), item(theirs)) == (FOLD, FOLD)
                && (own.count, theirs.count) == (COLUMNS, COLUMNS + 1)
        }
        (Ot::Labels { low }, [from], [to]) => {
            let of = match item(to) {
                ColumnType::Labels => Some(Choices::Rows),
                ColumnType::Bytes(bytes) if bytes > 0 && bytes % 128 == 0 => {
                    Some(Choices::Bytes(bytes / 128))
                }
                _ => None,
            };
            columns(from, low.columns(), (to.count, of))
        }
        (Ot::Keys { offset }, [from], to) => {
            let keys = |span: &Span| {
                item(span) == ColumnType::Labels
                    && span.count == from.count
                    && !span.overlaps(*from)
            };
            let apart = to.len() < 2 || !to[0].overlaps(to[1]);
            let numbers = command.calls.first().is_some_and(|call| {
                call.first + u64::from(from.count) <= MOST_PRODUCTS && rows <= 1 << ROW_BITS
            });
            item(from) == ColumnType::Labels
                && to.len() == if offset.is_some() { 2 } else { 1 }
                && to.iter().all(keys)
                && apart
                && numbers
        }
        (Ot::Choose, [a, b, choices], [to]) => {
            let labels = |span: &Span| item(span) == ColumnType::Labels && span.count == to.count;
            let same = |span: &Span| !to.overlaps(*span) || to.first == span.first;
            labels(a)
                && labels(b)
                && labels(to)
                && bits(choices)
                && choices.count == to.count
                && same(a)
                && same(b)
        }
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err("a step of transfers whose spans are not those that it needs")
    }
}
