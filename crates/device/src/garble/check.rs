//! Checks of a command about labels, so that it stays within its spans and repeats no tweak.

use veil_math::Ring;

use super::{Garbling, MOST_PRODUCTS, ROW_BITS};
use crate::command::{Command, Op};
use crate::layout::{ColumnType, Layout, Span};
use crate::program::Needs;

/// The first thing that is wrong with a command about labels, in a workspace of `layout` with `rows` rows.
pub(crate) fn check(
    command: &Command,
    (layout, rows): (&Layout, u32),
    program: Option<&Needs>,
) -> Result<(), &'static str> {
    let item = |span: &Span| layout.regions[span.region as usize].column;
    match command.op {
        Op::Garble { scheme, .. } => {
            let calls = scheme.tables().len();
            tables(
                scheme,
                &command.dst,
                command,
                (layout, rows, calls),
                program,
            )
        }
        Op::Evaluate { scheme } => {
            tables(scheme, &command.src, command, (layout, rows, 1), program)
        }
        Op::Encode { .. } => {
            let ([labels, bits], [to]) = (&command.src[..], &command.dst[..]) else {
                return Err("labels, bits and one destination are needed");
            };
            let of = match item(to) {
                ColumnType::Labels => ColumnType::Rows(Ring::Bits),
                ColumnType::Label => ColumnType::One(Ring::Bits),
                _ => return Err("the destination of labels holds something else"),
            };
            if (item(labels), item(bits)) != (item(to), of) {
                return Err("labels and a bit for each are needed");
            }
            if (labels.count, bits.count) != (to.count, to.count) {
                return Err("as many labels as bits are needed");
            }
            if to.overlaps(*labels) && to.first != labels.first {
                return Err("the destination overlaps a source");
            }
            Ok(())
        }
        Op::Colour => {
            let ([from], [to]) = (&command.src[..], &command.dst[..]) else {
                return Err("one source and one destination are needed");
            };
            match (item(from), item(to)) {
                (ColumnType::Labels, ColumnType::Rows(Ring::Bits))
                | (ColumnType::Label, ColumnType::One(Ring::Bits))
                    if from.count == to.count =>
                {
                    Ok(())
                }
                _ => Err("as many bits as labels are needed"),
            }
        }
        _ => Err("it is not about labels"),
    }
}

fn tables(
    scheme: Garbling,
    spans: &[Span],
    command: &Command,
    (layout, rows, calls): (&Layout, u32, usize),
    program: Option<&Needs>,
) -> Result<(), &'static str> {
    let program = program.ok_or("a program is needed")?;
    if !program.labels {
        return Err("its program is not over labels");
    }
    let products = program.messages[0];
    if products == 0 {
        return Ok(());
    }
    if command.calls.len() < calls {
        return Err("a start point, and dice where the scheme has some, are needed");
    }
    if command.calls[0].first + u64::from(products) > MOST_PRODUCTS || rows > 1 << ROW_BITS {
        return Err("gates beyond the last number");
    }
    for (k, (item, count)) in scheme.tables().iter().enumerate() {
        let Some(span) = spans.get(k) else {
            return Err("a message of tables is missing");
        };
        let region = &layout.regions[span.region as usize];
        if region.column != *item || !region.residency.is_packed() {
            return Err("a message that holds no tables of the scheme");
        }
        if u64::from(span.count) < u64::from(products) * u64::from(*count) {
            return Err("a message is too short for its tables");
        }
    }
    Ok(())
}
