//! Checks of a step of cut-and-choose, so that it stays within its spans.

use veil_math::Ring;

use super::{Cut, DIGEST, MARKS};
use crate::command::Command;
use crate::garble::{Garbling, MOST_PRODUCTS};
use crate::layout::{ColumnType, Layout, Span};
use crate::program::Needs;

/// The scheme of its tables.
const SCHEME: Garbling = Garbling::HalfGates;

/// The first thing that is wrong with a step, in a workspace of `layout` with `rows` rows.
pub(crate) fn check(
    step: Cut,
    command: &Command,
    (layout, rows): (&Layout, u32),
    program: Option<&Needs>,
) -> Result<(), &'static str> {
    let column = |span: &Span| layout.regions[span.region as usize].column;
    let (bits, bit) = (ColumnType::Rows(Ring::Bits), ColumnType::One(Ring::Bits));
    let labels = |span: &Span| column(span) == ColumnType::Labels;
    let single = |span: &Span| labels(span) && span.count == 1;
    let marks = |wires: &Span, of: &Span| {
        labels(wires) && labels(of) && Some(of.count) == wires.count.checked_mul(MARKS)
    };
    // Keys or choices of transfers, one after the other in rows.
    let long = |span: &Span, wires: u32| u64::from(span.count) * u64::from(rows) >= wires.into();
    let twice = |a: &Span, b: &Span| Some(a.count) == b.count.checked_mul(2);
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let fits = match (step, src, dst) {
        (Cut::Stretch, [seeds], [offsets, starts, to]) => {
            single(seeds) && single(offsets) && single(starts) && labels(to)
        }
        (Cut::Number { first }, [], [to]) => single(to) && first.checked_add(rows).is_some(),
        (Cut::Digest { .. }, from, [to]) => {
            labels(to) && to.count == DIGEST && from.iter().all(|s| labels(s) || column(s) == bits)
        }
        (Cut::Marks { .. }, [wires, offsets, numbers], [to]) => {
            marks(wires, to) && single(offsets) && single(numbers)
        }
        (Cut::Member { .. }, [wires, of, numbers], []) => marks(wires, of) && single(numbers),
        (Cut::Majority { .. }, [wires, of, numbers], [to]) => {
            marks(wires, of) && single(numbers) && column(to) == bit && to.count == wires.count
        }
        (Cut::Matrix { key }, [add, from, keys @ ..], [to]) => {
            let kind = [ColumnType::Labels, bit].contains(&column(to));
            let keyed = match (key, keys) {
                (Some(_), []) => true,
                (None, [key]) => column(key) == ColumnType::Label && key.count == 1,
                _ => false,
            };
            kind && keyed
                && (column(add), column(from), add.count) == (column(to), column(to), to.count)
        }
        (Cut::Active, [zeros, offsets, choice], [to]) => {
            labels(zeros)
                && labels(to)
                && single(offsets)
                && column(choice) == bit
                && (choice.count, zeros.count) == (to.count, to.count)
        }
        (Cut::Spread, [from], [to]) => {
            column(from) == bit && column(to) == bits && long(to, from.count)
        }
        (Cut::Mask, [zeros, offsets, numbers, keys @ ..], [to]) => {
            let [zero, one] = keys else { return Err(SPANS) };
            labels(zeros)
                && labels(to)
                && single(offsets)
                && single(numbers)
                && twice(to, zeros)
                && [zero, one]
                    .iter()
                    .all(|k| labels(k) && long(k, zeros.count))
        }
        (Cut::Unmask, [masked, keys, choice, numbers], [to]) => {
            labels(masked)
                && labels(keys)
                && labels(to)
                && column(choice) == bit
                && single(numbers)
                && twice(masked, to)
                && choice.count == to.count
                && long(keys, to.count)
        }
        (Cut::Shuffle, [digest], [to]) => {
            let order = rows.checked_mul(8).map(ColumnType::Bytes);
            column(digest) == ColumnType::Bytes(32)
                && digest.count == 1
                && Some(column(to)) == order
                && to.count == 1
        }
        (Cut::Pick { half }, [from, order], [to]) => {
            let whole = rows.checked_mul(8).map(ColumnType::Bytes);
            half < 2
                && [ColumnType::Labels, bits].contains(&column(to))
                && column(from) == column(to)
                && twice(from, to)
                && Some(column(order)) == whole
                && order.count == 1
        }
        (Cut::Same, [from], []) => column(from) == bits,
        (Cut::Garble { first }, [offsets, starts], to) => {
            return if single(offsets) && single(starts) {
                garbled(first, to, layout, program)
            } else {
                Err(SPANS)
            };
        }
        (Cut::Evaluate { first }, [starts, from @ ..], []) => {
            return if single(starts) {
                garbled(first, from, layout, program)
            } else {
                Err(SPANS)
            };
        }
        _ => false,
    };
    let apart = |to: &Span| src.iter().all(|from| !to.overlaps(*from));
    if fits && dst.iter().all(apart) {
        Ok(())
    } else {
        Err(SPANS)
    }
}

const SPANS: &str = "a step of cut-and-choose with other spans than it has";

/// Tables of a step that has some.
pub(crate) fn tables(step: Cut, command: &Command) -> &[Span] {
    match step {
        Cut::Garble { .. } => &command.dst,
        _ => &command.src[1..],
    }
}

fn garbled(
    first: u64,
    spans: &[Span],
    layout: &Layout,
    program: Option<&Needs>,
) -> Result<(), &'static str> {
    let program = program.ok_or("a program is needed")?;
    if !program.labels || !program.met_by(layout) {
        return Err("its program is not over labels of this workspace");
    }
    let products = program.messages[0];
    if products == 0 {
        return Ok(());
    }
    if first.saturating_add(products.into()) > MOST_PRODUCTS {
        return Err("gates beyond the last number");
    }
    let (kind, count) = SCHEME.tables()[0];
    let [span] = spans else {
        return Err("a message of tables is missing");
    };
    let region = &layout.regions[span.region as usize];
    if region.column != kind || !region.residency.is_packed() {
        return Err("a message that holds no tables of the scheme");
    }
    if u64::from(span.count) < u64::from(products) * u64::from(count) {
        return Err("a message is too short for its tables");
    }
    Ok(())
}
