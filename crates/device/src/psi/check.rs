//! Checks of a step of an intersection, so that it stays within its spans.

use super::{Okvs, Psi};
use crate::command::Command;
use crate::layout::{ColumnType, Layout, Span};

/// Bytes of a block, and of a key or digest.
const BLOCK: u64 = 16;
const DIGEST: u64 = 32;

/// The first thing that is wrong with a step, in a workspace of `layout`.
pub(crate) fn check(step: Psi, command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let message = |span: &Span| region(span).residency.is_packed();
    // Items of so many bytes in a span, if it has them alone.
    let items = |span: &Span, size: u64| match region(span).column {
        ColumnType::Bytes(bytes) if bytes > 0 && u64::from(bytes).is_multiple_of(size) => {
            Some(u64::from(bytes) / size * u64::from(span.count))
        }
        _ => None,
    };
    let as_many = |a: &Span, b: &Span, size: u64| {
        let count = items(a, DIGEST);
        count.is_some_and(|count| count <= u32::MAX.into()) && count == items(b, size)
    };
    let block = |span: &Span| items(span, BLOCK) == Some(1);
    let sum = |span: &Span| items(span, BLOCK).is_some_and(|count| count > 0);
    let columns = |okvs: Okvs, span: &Span| {
        okvs.is_there() && items(span, BLOCK).is_some_and(|count| count >= okvs.columns())
    };
    let sent = |okvs: Okvs, span: &Span| {
        okvs.is_there() && message(span) && items(span, BLOCK) == Some(okvs.columns())
    };
    let (src, dst) = (&command.src[..], &command.dst[..]);
    let (fits, calls) = match (step, src, dst) {
        (Psi::Hash, [keys], [digests]) => (as_many(keys, digests, DIGEST), 1),
        (Psi::Encode { okvs }, [digests, c], [seed, to]) => {
            let keys = as_many(digests, digests, DIGEST);
            let told = message(seed) && block(seed);
            (keys && columns(okvs, c) && told && sent(okvs, to), 1)
        }
        (Psi::Tags { okvs, .. }, [digests, b, from, seed, w], [tags]) => {
            let tags = message(tags) && as_many(digests, tags, BLOCK);
            let told = sent(okvs, from) && block(seed) && sum(w);
            (tags && columns(okvs, b) && told, 0)
        }
        (Psi::Match { okvs }, [digests, a, seed, w, tags], [found]) => {
            let tags = items(tags, BLOCK).is_some_and(|count| count <= u32::MAX.into());
            let told = block(seed) && sum(w) && tags;
            let count = items(digests, DIGEST).filter(|count| *count <= u32::MAX.into());
            let bits = count.map(|count| count.div_ceil(8));
            let found = bits.is_some() && bits == items(found, 1);
            (found && columns(okvs, a) && told, 0)
        }
        _ => (false, 0),
    };
    let mut others = dst.iter().enumerate();
    let apart = others.all(|(k, to)| {
        let mut read = src.iter().chain(&dst[..k]);
        read.all(|span| !to.overlaps(*span))
    });
    if fits && apart && command.calls.len() == calls {
        Ok(())
    } else {
        Err("a step of an intersection whose spans are not those that it needs")
    }
}
