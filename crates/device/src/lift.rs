//! Steps by which parties lift shared bits: a bit becomes an integer in two rounds of messages, on components that pairs of parties hold.

use veil_math::Ring;

use crate::command::Command;
use crate::layout::{ColumnType, Layout, Span};

/// A step of lifts, column by column and row by row, over one ring of integers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lifting {
    /// A bit as an integer in two components: dst 0 = call 0, dst 1 = src 0 - call 0. Of src 0, bits are the integers 0 and 1.
    Share,
    /// What is added up by two components is multiplied by 1 - 2 t, of the bit t of src 0, and t added to another one: dst 0 = dst 0 + call 0 where
    /// t is 0, and call 0 - dst 0 where it is 1; dst 1 = t - call 0 - call 1.
    Turn,
    /// dst: two messages, then three components x. m_k = -2 x_r x_o - call k for (r, o) in terms, of the components as they were; then x_o grows by m_k,
    /// and x_r by call k. In the end components grow by calls 2 and 3 that are kept.
    Terms {
        /// Components of each message: that which its receiver lacks, and that which the receiver gets it for.
        terms: [(u8, u8); 2],
        /// Components that calls of other parties' messages are kept for.
        keeps: [Option<u8>; 2],
    },
}

/// Components of a value that [`Lifting::Terms`] is about.
pub(crate) const PARTS: usize = 3;

impl Lifting {
    /// Calls of the step.
    pub fn calls(self) -> usize {
        match self {
            Lifting::Share => 1,
            Lifting::Turn => 2,
            Lifting::Terms { terms, keeps } => terms.len() + keeps.iter().flatten().count(),
        }
    }
}

/// The first thing that is wrong with a step, in a workspace of `layout`.
pub(crate) fn check(step: Lifting, command: &Command, layout: &Layout) -> Result<(), &'static str> {
    let column = |span: &Span| layout.regions[span.region as usize].column;
    let (src, dst) = (&command.src[..], &command.dst[..]);
    if command.calls.len() != step.calls() {
        return Err("not the draws of a step of lifts");
    }
    let (bits, integers) = match step {
        Lifting::Share | Lifting::Turn => (1, 2),
        Lifting::Terms { .. } => (0, 2 + PARTS),
    };
    if (src.len(), dst.len()) != (bits, integers) {
        return Err("not the sources and destinations of a step of lifts");
    }
    let first = &dst[0];
    if !matches!(column(first), ColumnType::Rows(ring) if ring != Ring::Bits)
        || dst.iter().any(|to| column(to) != column(first))
        || src
            .iter()
            .any(|of| column(of) != ColumnType::Rows(Ring::Bits))
    {
        return Err("bits and integers of one ring, in every row, are needed");
    }
    if src.iter().chain(dst).any(|span| span.count != first.count) {
        return Err("as many items of bits and of integers are needed");
    }
    let meets = |(k, a): (usize, &Span)| dst[k + 1..].iter().any(|b| a.overlaps(*b));
    if dst.iter().enumerate().any(meets) {
        return Err("destinations of a step of lifts overlap");
    }
    if let Lifting::Terms { terms, keeps } = step {
        let fits = |part: u8| usize::from(part) < PARTS;
        let two = |(r, o): &(u8, u8)| fits(*r) && fits(*o) && r != o;
        // Calls are numbered without gaps.
        let dense = keeps[0].is_some() || keeps[1].is_none();
        if !terms.iter().all(two) || !keeps.iter().flatten().all(|p| fits(*p)) || !dense {
            return Err("a term of components that a value does not have");
        }
    }
    Ok(())
}
