//! Checks of a step of a proof, so that it stays within its spans.

use veil_math::Ring;

use super::{
    FINDINGS, MOST_VALUES, PIECES, Proof, SEED, Side, TRACE_PARTS, factor, length, rows, values,
};
use crate::command::Command;
use crate::layout::{ColumnType, Layout, Residency, Span};

/// The highest level of a proof: beyond it no plan goes.
const MOST_LEVELS: u32 = 32;

/// Why spans are refused.
pub(super) const SPANS: &str = "a step of a proof whose spans are not those that it needs";

/// The first thing that is wrong with a step, in a workspace of `layout` with `rows` rows.
pub(crate) fn check(
    proof: Proof,
    command: &Command,
    (layout, rows): (&Layout, u32),
) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let elements = |span: &Span| region(span).column == ColumnType::One(Ring::Z64);
    let has = |spans: &[Span], counts: &[u32]| {
        let fits = |(span, count): (&Span, &u32)| elements(span) && span.count == *count;
        spans.len() == counts.len() && spans.iter().zip(counts).all(fits)
    };
    let long = |span: &Span, length: u64| elements(span) && u64::from(span.count) >= length;
    // The trace of some products, and as many received messages.
    let bits = |spans: &[Span]| match spans {
        [trace, received] => {
            let bits = |s: &Span| region(s).column == ColumnType::Rows(Ring::Bits);
            let traced = (
                region(trace).residency,
                region(trace).components,
                trace.component,
            );
            bits(trace)
                && bits(received)
                && traced == (Residency::Resident, TRACE_PARTS, 0)
                && region(received).residency.is_packed()
                && trace.count == received.count
                && trace.count > 0
        }
        _ => false,
    };
    let (src, dst) = (&command.src[..], &command.dst[..]);
    // Gates, a seed, and so many challenges.
    let gates = |challenges: usize| {
        let counts = [SEED, 1, 1];
        src.len() == 3 + challenges && bits(&src[..2]) && has(&src[2..], &counts[..=challenges])
    };
    let calls = |count| command.calls.len() == count;
    let products_there =
        |products: u32, level: u32| products > 0 && (3..=MOST_LEVELS).contains(&level);
    let ends = |products, level| length(products, rows, level) < u64::from(factor(level));
    let fits = match proof {
        Proof::Elements { .. } => {
            calls(1) && dst.len() == 1 && elements(&dst[0]) && dst[0].count <= MOST_VALUES
        }
        Proof::Claims { side } => {
            matches!(side, Side::Previous | Side::Next) && gates(0) && has(dst, &[PIECES])
        }
        Proof::Share {
            level: level @ (1 | 2),
            products,
            last: false,
        } => {
            calls(1)
                && gates(level as usize - 1)
                && src[0].count == products
                && has(dst, &[values(level)])
        }
        Proof::Share {
            level,
            products,
            last,
        } => {
            products_there(products, level)
                && calls(if last { 3 } else { 1 })
                && has(dst, &[values(level)])
                && src.len() == 2
                && src.iter().all(|s| long(s, length(products, rows, level)))
                && (!last || ends(products, level))
        }
        Proof::Expand { .. } => {
            gates(2) && dst.len() == 1 && long(&dst[0], length(src[0].count, rows, 3))
        }
        Proof::Fold { level, products } => {
            products_there(products, level)
                && src.len() == 2
                && dst.len() == 1
                && has(&src[1..], &[1])
                && src[0] == dst[0]
                && long(&src[0], length(products, rows, level))
        }
        Proof::End { level, products } => {
            products_there(products, level)
                && calls(1)
                && src.len() == 2
                && has(&src[1..], &[1])
                && has(dst, &[1])
                && long(&src[0], length(products, rows, level))
                && ends(products, level)
        }
        Proof::Verify { level, last } => {
            let claims = if level == 1 { PIECES } else { 1 };
            (1..=MOST_LEVELS).contains(&level)
                && (!last || level > 2)
                && has(src, &[claims, values(level), 1])
                && has(dst, &[1])
        }
        Proof::Rows(step) => return rows::check(step, command, (layout, rows)),
        Proof::Compare => has(src, &[FINDINGS; 2]),
    };
    if fits { Ok(()) } else { Err(SPANS) }
}
