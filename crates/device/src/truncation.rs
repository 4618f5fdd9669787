//! Steps by which three parties truncate shared integers: one of them learns the sum of the integer and a mask that the two others draw.
//!
//! With c = x + r modulo 2^k and x below 2^(k-1), ⌊c / 2^by⌋ - ⌊r / 2^by⌋ + 2^(k-by) w is ⌊x / 2^by⌋, or one more where the lowest bits of c are less than
//! those of r. The carry w is the product of two bits, one on each side: of the highest bit of r, and of that of c, inverted. Bit `top` of a value is its highest.

use veil_math::Ring;

use crate::command::Command;
use crate::layout::{ColumnType, Layout, Span};

/// A step of truncations, column by column and row by row, over one ring of integers modulo 2^k.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Truncation {
    /// By who draws r, dst 2, with one other: dst 0 = src 0 + r; dst 1 = s · top(r) + call 1, where the bit s is the lowest of call 0; dst 2 = -⌊r / 2^by⌋.
    Hide {
        /// Bits that go: at least one, and fewer than the ring has.
        by: u32,
    },
    /// By who learns the sum: with c = dst 0 + src 0, dst 0 = c, but for its highest bit, which is the bit d = s xor not top(c), where s is the lowest of call 1;
    /// dst 1 = call 0; dst 2 = ⌊c / 2^by⌋ - 2^(k-by) ((1 - 2d) call 2 + call 3) - call 0.
    Take {
        /// As above.
        by: u32,
    },
    /// By the other one that draws r, dst 1, with the bit d of src 0: dst 0 = (1 - 2d) dst 0 + d · top(r) + call 0; dst 1 = 2^(k-by) dst 0 - ⌊r / 2^by⌋.
    Answer {
        /// As above.
        by: u32,
    },
    /// By who began: dst 0 = dst 0 + 2^(k-by) src 0.
    Settle {
        /// As above.
        by: u32,
    },
}

impl Truncation {
    /// Calls of the step.
    pub const fn calls(self) -> usize {
        match self {
            Truncation::Hide { .. } => 2,
            Truncation::Take { .. } => 4,
            Truncation::Answer { .. } => 1,
            Truncation::Settle { .. } => 0,
        }
    }

    /// Bits that go.
    pub const fn by(self) -> u32 {
        match self {
            Truncation::Hide { by }
            | Truncation::Take { by }
            | Truncation::Answer { by }
            | Truncation::Settle { by } => by,
        }
    }

    /// Destinations.
    const fn results(self) -> usize {
        match self {
            Truncation::Answer { .. } => 2,
            Truncation::Hide { .. } | Truncation::Take { .. } => 3,
            Truncation::Settle { .. } => 1,
        }
    }
}

/// The first thing that is wrong with a step, in a workspace of `layout`.
pub(crate) fn check(
    step: Truncation,
    command: &Command,
    layout: &Layout,
) -> Result<(), &'static str> {
    let column = |span: &Span| layout.regions[span.region as usize].column;
    let (src, dst) = (&command.src[..], &command.dst[..]);
    if command.calls.len() != step.calls() {
        return Err("not the draws of a step of truncations");
    }
    if (src.len(), dst.len()) != (1, step.results()) {
        return Err("not the sources and destinations of a step of truncations");
    }
    let first = &dst[0];
    let ColumnType::Rows(ring) = column(first) else {
        return Err("integers in every row are needed");
    };
    let of = match step {
        Truncation::Answer { .. } => ColumnType::Rows(Ring::Bits),
        _ => column(first),
    };
    if ring == Ring::Bits || dst.iter().any(|to| column(to) != column(first)) {
        return Err("integers of one ring, in every row, are needed");
    }
    if column(&src[0]) != of {
        return Err("the source of a step of truncations is of another type");
    }
    if src.iter().chain(dst).any(|span| span.count != first.count) {
        return Err("as many items of each are needed");
    }
    if step.by() == 0 || step.by() >= ring.bits() {
        return Err("at least one bit goes, and fewer than the ring has");
    }
    let all = || src.iter().chain(dst).enumerate();
    let meets = |(k, a): (usize, &Span)| all().skip(k + 1).any(|(_, b)| a.overlaps(*b));
    if all().any(meets) {
        return Err("spans of a step of truncations overlap");
    }
    Ok(())
}
