//! Checks of a step of authenticated garbling, so that it stays within its spans and repeats no tweak.

use std::ops::Range;

use veil_math::Ring;

use super::{Ag, BLOCK};
use crate::command::Command;
use crate::garble::{MOST_PRODUCTS, ROW_BITS};
use crate::layout::{ColumnType, Layout, Span};
use crate::program::Needs;

/// Columns of a span, and blocks of each.
type Shape = (u32, u64);

struct Spans<'a> {
    layout: &'a Layout,
    rows: u32,
}

impl Spans<'_> {
    fn column(&self, span: &Span) -> ColumnType {
        self.layout.regions[span.region as usize].column
    }

    /// The shape of an array; nothing if it is none.
    fn array(&self, span: &Span) -> Option<Shape> {
        let column = self.column(span);
        let whole = match column {
            ColumnType::Labels | ColumnType::Label => true,
            ColumnType::Bytes(bytes) => bytes > 0 && (bytes as usize).is_multiple_of(BLOCK),
            _ => false,
        };
        (whole && span.count > 0).then_some((span.count, column.bytes(self.rows) / BLOCK as u64))
    }

    /// Whether all spans are arrays of a shape.
    fn arrays(&self, spans: &[Span], shape: Shape) -> bool {
        spans.iter().all(|span| self.array(span) == Some(shape))
    }

    /// Whether all spans hold a bit for each block of a shape.
    fn bits(&self, spans: &[Span], (count, blocks): Shape) -> bool {
        spans.iter().all(|span| {
            let column = self.column(span);
            let packed = matches!(
                column,
                ColumnType::Rows(Ring::Bits) | ColumnType::One(Ring::Bits) | ColumnType::Bytes(_)
            );
            packed && span.count == count && column.bytes(self.rows) >= blocks.div_ceil(8)
        })
    }

    /// Whether a span is one item of at least so many bytes.
    fn item(&self, span: &Span, bytes: u32) -> bool {
        span.count == 1 && matches!(self.column(span), ColumnType::Bytes(n) if n >= bytes)
    }
}

/// Whether destinations are apart, and each source apart from all, or an array in the place of one. Bits that lie in the place of blocks
/// would change before all of them are read.
fn apart(command: &Command, arrays: Range<usize>, of_arrays: usize) -> bool {
    let dst = &command.dst;
    let mut others = dst.iter().enumerate();
    others.all(|(k, to)| {
        let mut sources = command.src.iter().enumerate();
        dst[..k].iter().all(|other| !to.overlaps(*other))
            && sources.all(|(s, from)| {
                !to.overlaps(*from) || to == from && k < of_arrays && arrays.contains(&s)
            })
    })
}

/// Sources of a step that are arrays, in whose place destinations may be.
fn in_place(step: Ag) -> Range<usize> {
    match step {
        Ag::Pin { .. } => 0..1,
        Ag::Offer { .. } => 0..3,
        Ag::Take { .. } => 0..7,
        Ag::Rotate { .. } => 1..2,
        Ag::Absorb => 2..6,
        Ag::Spend { .. } => 4..12,
        Ag::Gates { offset: None, .. } => 2..5,
        Ag::Gates { .. } => 3..9,
        _ => 0..0,
    }
}

/// The first thing that is wrong with a step, in a workspace of `layout` with `rows` rows.
pub(crate) fn check(
    step: Ag,
    command: &Command,
    (layout, rows): (&Layout, u32),
    program: Option<&Needs>,
) -> Result<(), &'static str> {
    let spans = Spans { layout, rows };
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let shape = |of: Option<&Span>| of.and_then(|span| spans.array(span));
    // Numbers of candidates stay below 2^46, as those of gates do.
    let numbered = |(count, blocks): Shape| {
        let call = command.calls.first();
        call.is_some_and(|call| {
            let end = u64::from(count)
                .checked_mul(blocks)
                .and_then(|all| all.checked_add(call.first));
            end.is_some_and(|end| end <= MOST_PRODUCTS)
        })
    };
    let fits = match step {
        Ag::Pin { bit } => match (src, dst, shape(dst.first())) {
            ([from, bits @ ..], [_], Some(of)) => {
                bit < 2 && bits.len() < 2 && spans.arrays(&[*from], of) && spans.bits(bits, of)
            }
            _ => false,
        },
        Ag::Expand => match (src, dst, shape(dst.first())) {
            ([_], [_], Some(of)) => spans.bits(src, of),
            _ => false,
        },
        Ag::Bits { bit } => match (dst, shape(src.first())) {
            ([_], Some(of)) => bit < 2 && spans.arrays(src, of) && spans.bits(dst, of),
            _ => false,
        },
        Ag::Offer { .. } => match (src, dst, shape(dst.first())) {
            ([_, _, _], [_], Some(of)) => spans.arrays(src, of) && numbered(of),
            _ => false,
        },
        Ag::Take { .. } => match (src.len(), dst, shape(dst.first())) {
            (7, [_, bits], Some(of)) => {
                spans.arrays(src, of) && spans.bits(&[*bits], of) && numbered(of)
            }
            _ => false,
        },
        Ag::Settle { .. } => match (src, dst, shape(dst.first())) {
            ([_, _], [_, _], Some(of)) => spans.bits(src, of) && spans.arrays(dst, of),
            _ => false,
        },
        Ag::Fold { offset } => {
            let bits = usize::from(offset.is_some());
            let (challenge, of) = (src.first(), src.get(1..1 + bits).unwrap_or_default());
            let arrays = src.get(1 + bits..).unwrap_or_default();
            match (challenge, dst, shape(arrays.first())) {
                (Some(challenge), [to], Some(shape)) => {
                    spans.item(challenge, BLOCK as u32)
                        && spans.column(to) == ColumnType::Bytes(BLOCK as u32)
                        && to.count == 1
                        && of.len() == bits
                        && spans.bits(of, shape)
                        && spans.arrays(arrays, shape)
                }
                _ => false,
            }
        }
        Ag::Expect { .. } => {
            let item = |span: &Span| {
                spans.column(span) == ColumnType::Bytes(BLOCK as u32) && span.count == 1
            };
            (src.len(), dst.len()) == (2, 1) && src.iter().chain(dst).all(item)
        }
        Ag::Rotate { .. } => match (src, dst, shape(dst.first())) {
            ([digest, from], [_], Some(of)) => {
                spans.column(digest) == ColumnType::Bytes(32)
                    && digest.count == 1
                    && spans.arrays(&[*from], of)
            }
            _ => false,
        },
        Ag::Absorb => match (src.len(), dst.len(), shape(dst.first())) {
            (6, 4, Some(of)) => {
                spans.bits(&src[..2], of) && spans.arrays(&src[2..], of) && spans.arrays(dst, of)
            }
            _ => false,
        },
        Ag::Spend { .. } => match (src.len(), dst.len(), shape(dst.first())) {
            (12, 2, Some(of)) => {
                spans.bits(&src[..4], of) && spans.arrays(&src[4..], of) && spans.arrays(dst, of)
            }
            _ => false,
        },
        Ag::Gates { offset, .. } => {
            let (bits, arrays) = if offset.is_some() { (3, 6) } else { (2, 3) };
            match (src.len() == bits + arrays, dst, shape(dst.first())) {
                (true, [_], Some(of @ (1, _))) => {
                    spans.bits(&src[..bits], of) && spans.arrays(&src[bits..], of)
                }
                _ => false,
            }
        }
        Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. } => {
            return programs(step, command, &spans, program);
        }
    };
    // A rotation copies what it reads first, and the others read a block of all sources before they write it. Only the second
    // destination of `Take` is no array where sources are.
    let of_arrays = if let Ag::Take { .. } = step {
        1
    } else {
        dst.len()
    };
    if fits && apart(command, in_place(step), of_arrays) {
        Ok(())
    } else {
        Err(SPANS)
    }
}

const SPANS: &str = "a step of authenticated garbling whose spans are not those that it needs";

/// The same of a step with a program.
fn programs(
    step: Ag,
    command: &Command,
    spans: &Spans<'_>,
    program: Option<&Needs>,
) -> Result<(), &'static str> {
    let program = program.ok_or("a program is needed")?;
    if !program.labels {
        return Err("its program is not over labels");
    }
    let products = program.messages[0];
    let (Ag::Masks { at, .. } | Ag::Garble { at, .. } | Ag::Evaluate { at }) = step else {
        return Err(SPANS);
    };
    let gates = (u64::from(at) + u64::from(products)) * u64::from(spans.rows);
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let long = |of: &[Span], shape: Shape| spans.arrays(of, shape) && shape.1 >= gates;
    let shape = |of: Option<&Span>| of.and_then(|span| spans.array(span)).filter(|s| s.0 == 1);
    let tables = |span: &Span| {
        let region = &spans.layout.regions[span.region as usize];
        region.column == ColumnType::Labels
            && region.residency.is_packed()
            && u64::from(span.count) >= 2 * u64::from(products)
    };
    let numbered = || {
        let call = command.calls.first();
        call.is_some_and(|call| call.first + u64::from(products) <= MOST_PRODUCTS)
            && spans.rows <= 1 << ROW_BITS
    };
    let fits = match (step, src, dst) {
        (Ag::Masks { part, .. }, [_], [_, _]) => match shape(src.first()) {
            Some(of) => part < program.regions[0].components && long(src, of) && long(dst, of),
            None => false,
        },
        (Ag::Garble { .. }, masks, [to, z, labels]) => match shape(Some(labels)) {
            Some(of) => {
                masks.len() == 6
                    && long(masks, of)
                    && long(&[*labels], of)
                    && spans.bits(&[*z], of)
                    && tables(to)
                    && numbered()
            }
            None => false,
        },
        (Ag::Evaluate { .. }, [from, z, masks @ ..], [labels, bits @ ..]) => {
            match shape(Some(labels)) {
                Some(of) => {
                    (masks.len(), bits.len()) == (3, 3)
                        && long(masks, of)
                        && long(&[*labels], of)
                        && spans.bits(&[*z], of)
                        && spans.bits(bits, of)
                        && tables(from)
                        && numbered()
                }
                None => false,
            }
        }
        _ => false,
    };
    // What a program changes is read and written by nothing else.
    let mut all = src.iter().chain(dst);
    if fits && apart(command, 0..0, 0) && !all.any(|span| program.has(*span)) {
        Ok(())
    } else {
        Err(SPANS)
    }
}
