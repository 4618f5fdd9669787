//! Proofs that products of bits were computed rightly: what the parties of a three-party protocol compute to prove and to verify.
//!
//! A *gate* is a product in a row. Of its operands (u, u'), (w, w') with masks ρ, ρ' and messages r of this party and r' of the party
//! before it (components as in [`Form::replicated`](crate::Form::replicated)), a party's message is right if a b + c d + e + f = 0 over
//! bits, where the next party has a, c, e as well, and the previous one b, d, f: [`Side`].
//!
//! The bits of a batch are a string of words, 64 rows of a product each: products in order, each with whole words. Rows that do not exist
//! are 0. The string is 32 *pieces* of n words, zero beyond its end; gate p is at *position* p of each piece, bit p mod 64 of word
//! j = ⌊p / 64⌋, and has the *weight* key_j · x^(p mod 64) in GF(2^64) ([`Gf64`](veil_math::Gf64)), the same in all pieces. Keys come from
//! a seed that the verifiers tell the prover when they have all of its messages.
//!
//! At the first level the bits of a position in all pieces are values at the places 0, …, 31 of a polynomial; each piece has a claim
//! of its own. After it there are vectors of elements, of the left half a's and c's with their weights, of the right half b's and d's:
//! element (64 c + b) n + j is bit b of word j, c = 0 for a and b, 1 for c and d. The vectors are folded level by level, [`factor`] values
//! into one: of a vector that leaves n values, values j, n + j, 2n + j, … are at the places 0, 1, 2, … of a polynomial; beyond the end are
//! zeros (Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai, "Zero-Knowledge Proofs on Secret-Shared Data via Fully Linear PCPs", 2019; the
//! relation: Li et al., "Efficient 3PC for Binary Circuits", 2023).
//!
//! Of rows that move the vectors are another: see [`rows`].

mod check;
pub mod rows;
mod scalar;
mod steps;

pub(crate) use check::check;
pub use rows::RowStep;
pub(crate) use scalar::{basis, draws, fold, pair_of, pair_sums, pairs, share_of, weights};
pub(crate) use steps::{Elements, put_share, seed_of, step};

/// One of the halves of statements that a party holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Of its own, what the next party has as well: a = u, c = w.
    OwnNext,
    /// Of its own, what the previous party has as well: b = w', d = u'.
    OwnPrevious,
    /// Of the previous party's, what this one has: a = u', c = w', e = r' + ρ'.
    Previous,
    /// Of the next party's, what this one has: b = w, d = u, f = ρ + u w.
    Next,
}

impl Side {
    /// All of them: vector k of a workspace is side k.
    pub const ALL: [Side; 4] = [Side::OwnNext, Side::OwnPrevious, Side::Previous, Side::Next];

    /// The parts of the trace that it multiplies: a and c, or b and d.
    pub(crate) const fn parts(self) -> [u8; 2] {
        match self {
            Side::OwnNext => [0, 2],
            Side::OwnPrevious => [3, 1],
            Side::Previous => [1, 3],
            Side::Next => [2, 0],
        }
    }

    /// Whether it is the half that has the weights.
    pub(crate) const fn is_left(self) -> bool {
        matches!(self, Side::OwnNext | Side::Previous)
    }
}

/// A step of a proof. Elements are items of 64 bits, as of `One(Z64)`. Spans of gates are the trace of all products (see
/// [`Op::Product`](crate::Op::Product)) and the messages received of them; a seed is two elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// dst 0 = elements of call 0, a block each: `from` + (128 bits modulo 2^64 - `from`).
    Elements {
        /// The smallest.
        from: u32,
    },
    /// dst 0 (32 elements) = of each piece the sum of all weights times e, or f. src: trace, received, seed.
    Claims {
        /// The side, [`Side::Previous`] or [`Side::Next`].
        side: Side,
    },
    /// dst 0 = values of the level's polynomial, less elements of call 0: at level 1 at 32, …, 62, else at 1, …, 2L - 2, as the others
    /// follow from claims. src: at level 1 trace, received and seed; at level 2 also the challenge of level 1; else both vectors. If it is
    /// the `last` level, these are values of one position, with elements of calls 1 and 2 in the last place.
    Share {
        /// The level.
        level: u32,
        /// Products of the batch.
        products: u32,
        /// Whether it is the last one.
        last: bool,
    },
    /// dst 0 = the vector of a side after levels 1 and 2. src: trace, received, seed, challenges of both levels.
    Expand {
        /// The side.
        side: Side,
    },
    /// dst 0 = the vector after `level`: every position's polynomial at the challenge. src: the vector before, which is where it is after,
    /// and the challenge.
    Fold {
        /// The level.
        level: u32,
        /// Products of the batch.
        products: u32,
    },
    /// dst 0 = the value at the challenge of the last level's polynomial, with call 0 in its last place. src: the vector, the challenge.
    End {
        /// The level.
        level: u32,
        /// Products of the batch.
        products: u32,
    },
    /// dst 0 = the next claim: the polynomial of a level at its challenge. src: the claims of level 1, or the claim; the share; the
    /// challenge. From level 2 on the value at 0 is the claim plus those at the other places that are folded.
    Verify {
        /// The level.
        level: u32,
        /// Whether it is the last one, which has a mask in its last place.
        last: bool,
    },
    /// A step over [`rows`] that move.
    Rows(RowStep),
    /// Compares what both verifiers found, src 0 and src 1: a value of a half and a share of the last claim each. The product of the values
    /// is the sum of the shares. If not, the batch ends with [`Outcome::Mismatch`](crate::Outcome::Mismatch).
    Compare,
}

/// Parts of the trace of a product: both operands, and both masks.
pub const TRACE_PARTS: u8 = 6;

/// Pieces of a batch, each of which has a claim.
pub const PIECES: u32 = 32;

/// Elements of a seed.
pub const SEED: u32 = 2;

/// Elements of what a verifier found.
pub const FINDINGS: u32 = 2;

/// Rows of a word.
pub(crate) const WORD: u32 = 64;

/// Most elements of a level's share.
pub const MOST_VALUES: u32 = PIECES - 1;

/// How many values a level, from 1, folds into one.
pub const fn factor(level: u32) -> u32 {
    match level {
        1 => PIECES,
        2 => 4,
        _ => 8,
    }
}

/// Elements of a level's share.
pub const fn values(level: u32) -> u32 {
    match level {
        1 => PIECES - 1,
        _ => 2 * factor(level) - 2,
    }
}

/// Words of a piece.
pub fn words(products: u32, rows: u32) -> u64 {
    let words = u64::from(products) * u64::from(rows.div_ceil(WORD));
    words.div_ceil(PIECES.into()).max(1)
}

/// Length of the vectors that enter a level, from 2 on.
pub fn length(products: u32, rows: u32, level: u32) -> u64 {
    let first = 2 * u64::from(WORD) * words(products, rows);
    (2..level).fold(first, |length, l| length.div_ceil(u64::from(factor(l))))
}

/// The last level for a batch of so many rows or fewer: its vectors leave room for a mask. Of longer batches there is none.
pub fn levels(products: u32, rows: u32) -> u32 {
    let ends = |level: &u32| length(products, rows, *level) < u64::from(factor(*level));
    // Every level leaves a quarter or less of a length below 2^64.
    (3..64)
        .find(ends)
        .expect("vectors get shorter from level to level")
}
