//! Checks of a step of silent transfers, so that it stays within its spans.

use super::{CHOICES, HIDING, Lpn, Over, Silent};
use crate::command::Command;
use crate::layout::{ColumnType, Layout, Span};

/// The type of sums of levels, and of messages of the check.
const BLOCK: ColumnType = ColumnType::Bytes(16);

/// The first thing that is wrong with a step, in a workspace of `layout` with `rows` rows.
pub(crate) fn check(
    step: Silent,
    command: &Command,
    (layout, rows): (&Layout, u32),
) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let column = |span: &Span| region(span).column;
    let message = |span: &Span| region(span).residency.is_packed();
    let leaves = |set: Lpn, spans: &[Span]| {
        let of = set.tree_columns();
        let all = spans.iter().map(|span| u64::from(span.count)).sum::<u64>();
        let fits = |span: &Span| column(span) == set.column() && span.count.is_multiple_of(of);
        spans.iter().all(fits) && all == u64::from(set.trees) * u64::from(of)
    };
    let base = |set: Lpn, span: &Span| {
        set.is_there() && column(span) == set.column() && span.count == set.base_columns()
    };
    // Blocks of a span whose columns are whole ones.
    let held = |span: &Span| match column(span) {
        ColumnType::Bytes(bytes) if bytes.is_multiple_of(16) => {
            u64::from(bytes / 16) * u64::from(span.count)
        }
        _ => 0,
    };
    let levels = |set: Lpn, span: &Span| match set.over {
        Over::Bits => base(set, span),
        Over::Blocks => set.is_there() && held(span) >= u64::from(set.levels()),
    };
    let over_blocks = |set: Lpn| set.over == Over::Blocks;
    let blocks = |span: &Span, count: u32| column(span) == BLOCK && span.count == count;
    let sums = |set: Lpn, span: &Span| message(span) && blocks(span, set.levels());
    let challenge = |span: &Span| {
        span.count == 1 && matches!(column(span), ColumnType::Bytes(bytes) if bytes >= 16)
    };
    // Outputs, a label for each, and a bit for each.
    let chosen = |first: u64, outputs: &Span, bits: &[&Span], labels: &Span| {
        let wanted = u64::from(labels.count) * u64::from(rows);
        let last = first.checked_add(wanted);
        last.is_some_and(|last| last <= held(outputs))
            && column(labels) == ColumnType::Labels
            && bits
                .iter()
                .all(|span| column(span) == CHOICES && span.count == labels.count)
    };
    let (src, dst, calls) = (&command.src[..], &command.dst[..], command.calls.len());
    let fits = match (step, src, dst) {
        (Silent::Grow { set, .. }, [from], [a, b, told]) => {
            levels(set, from) && leaves(set, &[*a, *b]) && sums(set, told) && calls == 2
        }
        (Silent::Puncture { set }, [from, told], [a, b]) => {
            levels(set, from) && leaves(set, &[*a, *b]) && sums(set, told) && calls == 1
        }
        (Silent::Give { set }, [from], [a, b, told]) => {
            over_blocks(set)
                && base(set, from)
                && leaves(set, &[*a, *b])
                && (message(told) && blocks(told, set.trees))
                && calls == 1
        }
        (Silent::Fill { set }, [from, told, own, other], [a, b, c, d]) => {
            over_blocks(set)
                && levels(set, from)
                && (message(told) && blocks(told, set.trees))
                && (base(set, own) && base(set, other))
                && leaves(set, &[*a, *b])
                && [c.count, d.count] == [a.count, b.count]
                && leaves(set, &[*c, *d])
                && calls == 1
        }
        (Silent::Ask { set }, [a, b, c, d, own, other, by], [told, kept]) => {
            over_blocks(set)
                && (base(set, own) && base(set, other))
                && leaves(set, &[*a, *b])
                && leaves(set, &[*c, *d])
                && challenge(by)
                && (blocks(told, 1) && blocks(kept, 1))
                && calls == 0
        }
        (Silent::Ask { set }, ..) if over_blocks(set) => false,
        (Silent::Ask { set }, [a, b, from, by], [told, kept])
        | (Silent::Answer { set, .. }, [a, b, from, by, told], [kept]) => {
            base(set, from)
                && leaves(set, &[*a, *b])
                && challenge(by)
                && blocks(told, 1)
                && blocks(kept, 1)
                && calls == 0
        }
        (Silent::Rows { set }, [from], [a, b]) => {
            base(set, from) && leaves(set, &[*a, *b]) && calls == 1
        }
        (Silent::Rows { set }, [from, other], [a, b, c, d]) => {
            over_blocks(set)
                && (base(set, from) && base(set, other))
                && leaves(set, &[*a, *b])
                && [c.count, d.count] == [a.count, b.count]
                && leaves(set, &[*c, *d])
                && calls == 1
        }
        (Silent::Pack, [from], [to, others @ ..]) => {
            let fits = |span: &Span| blocks(span, to.count);
            others.len() <= 1
                && (fits(to) && others.iter().all(fits))
                && held(from) >= u64::from(HIDING) * u64::from(to.count)
                && calls == 0
        }
        (Silent::Choose { first }, [outputs, bits], [told, labels]) => {
            chosen(first, outputs, &[bits, told], labels) && calls == 0
        }
        (Silent::Turn { first, .. }, [outputs, told], [labels]) => {
            chosen(first, outputs, &[told], labels) && calls == 0
        }
        (Silent::Take { first, at, count }, [outputs], [to]) => {
            let within = |from: u64, span: &Span| {
                let end = from.checked_add(count);
                end.is_some_and(|end| end <= held(span))
            };
            count > 0 && within(first, outputs) && within(at, to) && calls == 0
        }
        _ => false,
    };
    let mut others = dst.iter().enumerate();
    let apart = others.all(|(k, to)| {
        let mut read = src.iter().chain(&dst[..k]);
        read.all(|span| !to.overlaps(*span))
    });
    if fits && apart {
        Ok(())
    } else {
        Err("a step of silent transfers whose spans are not those that it needs")
    }
}
