//! Proofs that rows were moved rightly.
//!
//! Three parties move rows by a permutation π that two of them know. Each of the two sends the third, who knows the component u that it moves, V = π(u) + r with a
//! mask r that both of the two draw: it is right if V(π(j)) = u(j) + r(π(j)) for every row j. The sender proves it, to the other one that knows π and r, and to the one
//! that knows u and V.
//!
//! Words of 64 bits of all columns of a row, in order, are w_0, w_1, …; a column of up to eight bytes has one word, another two. Keys k_0, k_1, … and weights ρ(j) of rows
//! are elements of GF(2^64) ([`Gf64`](veil_math::Gf64)) that come from a seed, which the verifiers tell the prover when they have all of its messages. With the *hash*
//! h(w) = Σ k_i w_i of a row, which is linear, the message is right, but with a chance of 2^-63 at most, if
//!
//! ```text
//! Σ_j ρ(π(j)) h(u(j)) = Σ_j ρ(j) h(V(j)) + Σ_j ρ(j) h(r(j))
//! ```
//!
//! On the left one verifier has ρ(π(j)), the other one h(u(j)); of the right each has a claim. So it is a product of two vectors with a claim in two shares, as
//! products of bits have after two levels, and the levels from the third on prove it. A move back has V(j) = u(π(j)) + r(j), and weights ρ(j) in place π(j).
//!
//! A party is the prover of two messages, and both have one proof: vectors are twice as many elements as there are rows in whole words of 64, those of one message
//! in *place* 0, of the other one in place 1, and zeros behind them. In each place a party that knows π has weights, and a party that knows u has hashes.

use veil_math::Ring;
use veil_prss::{DomainTag, Prf};
use veil_session::{Frame, Secret};
use zeroize::Zeroizing;

use super::SEED;
use super::check::SPANS;
use crate::command::Command;
use crate::layout::{ColumnType, Layout, Residency, Span};
use crate::moves::is_permutation;

/// A step over rows. Sources begin with the seed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RowStep {
    /// Place `place` of dst 0, a vector, += k_word w of a column, src 1, and if it has two words k_(word + 1) w' of the second one. With word 0 the place is zero before.
    Hashes {
        /// Words of the columns before.
        word: u32,
        /// 0 or 1.
        place: u8,
    },
    /// Place `place` of dst 0, a vector, = the weight ρ(π(j)) of each row j, of π that is src 1. `back`: weight ρ(j) at π(j).
    Weights {
        /// 0 or 1.
        place: u8,
        /// Whether rows move back.
        back: bool,
    },
    /// dst 0, an element, += the hashes of a column, src 1, times the weights ρ(j) of `place`; with `first` it is zero before.
    Claim {
        /// Words of the columns before.
        word: u32,
        /// 0 or 1.
        place: u8,
        /// Whether nothing was added before.
        first: bool,
    },
}

/// Of how many products of bits the vectors are as long, after two levels, as those of rows that move: what [`Proof`](super::Proof)'s later steps are given.
pub const PRODUCTS: u32 = 128;

/// Elements of a place.
pub(crate) const fn place(rows: u32) -> usize {
    (rows as usize).next_multiple_of(super::WORD as usize)
}

/// Where in a vector a place is.
pub(crate) fn in_vector(vector: Span, at: u8, rows: u32) -> Span {
    // Spans of vectors were checked: places are within.
    let count = place(rows) as u32;
    Span {
        first: vector.first + u32::from(at) * count,
        count,
        ..vector
    }
}

/// The keys of a column's words.
pub(crate) fn keys(seed: &Secret, frame: Frame, word: u32, count: u32) -> Zeroizing<[u64; 2]> {
    let prf = Prf::new(seed);
    let mut keys = Zeroizing::new([0; 2]);
    for (word, key) in (u64::from(word)..).zip(keys.iter_mut().take(count as usize)) {
        let block = prf.block(DomainTag::DZKP_WORDS, frame.lane, word / 2, frame.chunk);
        let block = Zeroizing::new(block);
        let (halves, _) = block.as_chunks::<8>();
        *key = u64::from_le_bytes(halves[(word % 2) as usize]);
    }
    keys
}

/// Words of a column whose elements have so many bytes.
pub const fn words(bytes: u64) -> u32 {
    if bytes > 8 { 2 } else { 1 }
}

/// The first thing that is wrong with a step.
pub(super) fn check(
    step: RowStep,
    command: &Command,
    (layout, rows): (&Layout, u32),
) -> Result<(), &'static str> {
    let region = |span: &Span| &layout.regions[span.region as usize];
    let elements = |span: &Span| region(span).column == ColumnType::One(Ring::Z64);
    let column = |span: &Span| {
        let of = region(span);
        let known = matches!(of.column, ColumnType::Words(_)) && of.column.is_known();
        known && of.residency != Residency::Plane && span.count == 1
    };
    let ([seed, from], [to]) = (&command.src[..], &command.dst[..]) else {
        return Err(SPANS);
    };
    let seeded = elements(seed) && seed.count == SEED && command.calls.is_empty();
    let vector = |at: u8| at < 2 && elements(to) && to.count as usize >= 2 * place(rows);
    let fits = match step {
        RowStep::Hashes { place, .. } => column(from) && vector(place),
        RowStep::Weights { place, .. } => is_permutation(layout, from) && vector(place),
        RowStep::Claim { place, .. } => {
            place < 2 && column(from) && elements(to) && to.count == 1 && !to.overlaps(*seed)
        }
    };
    if fits && seeded { Ok(()) } else { Err(SPANS) }
}
