//! Proofs that products of bits were computed rightly: what the parties of a three-party protocol compute to prove and to verify.
//!
//! A *gate* is a product in a row. Of its operands (u, u'), (w, w') with masks ρ, ρ' and messages r of this party and r' of the party
//! before it (components as in [`Form::replicated`](crate::Form::replicated)), each party has two halves of its own statement and one half
//! of each other party's, [`Side`]. A half is three bits (x, y, s), which stand for four numbers modulo 2^61 - 1, (1 - 2s)(x y, y, x, 1),
//! the numbers of one half times (-2, 1, 1, -1/2). The inner product of both halves of a gate is -1/2 if it is right, 1/2 if not; so the
//! inner product of the vectors of all gates says whether all are right (Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai, "Zero-Knowledge
//! Proofs on Secret-Shared Data via Fully Linear PCPs", 2019; the relation: Li et al., "Efficient 3PC for Binary Circuits", 2023).
//!
//! The vectors are folded level by level, [`factor`] values into one: the first level folds the four numbers of a gate, the second
//! gates of four quarters of the products, further ones the whole vector, in the order of products, whole bytes of rows each. A *piece*
//! of a vector of n chunks is values j, n + j, 2n + j, …, the places 0, 1, 2, … of a polynomial; beyond the end are zeros.

mod check;
mod scalar;
mod steps;

pub(crate) use check::check;
pub(crate) use scalar::{BASE, Table, basis_of, fold, gram};
pub(crate) use steps::{Elements, put_share, step};

/// One of the halves of statements that a party holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Of its own, what the next party has as well: (u, w, r + ρ), where r is what it should have sent.
    OwnNext,
    /// Of its own, what the previous party has as well: (w', u', ρ' + u' w').
    OwnPrevious,
    /// Of the previous party's, what this one has: (u', w', r' + ρ').
    Previous,
    /// Of the next party's, what this one has: (w, u, ρ + u w).
    Next,
}

impl Side {
    /// All of them: vector k of a workspace is side k.
    pub const ALL: [Side; 4] = [Side::OwnNext, Side::OwnPrevious, Side::Previous, Side::Next];

    /// Whether it is the half that (-2, 1, 1, -1/2) belongs to.
    pub(crate) const fn is_left(self) -> bool {
        matches!(self, Side::OwnNext | Side::Previous)
    }
}

/// A step of a proof. Elements are items of 64 bits, as of `One(Z64)`; elements of a peer are read modulo the prime, written elements are
/// below it. Spans of gates are the trace of all products (see [`Op::Product`](crate::Op::Product)) and the messages received of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// dst 0 = elements of call 0, a block each: `from` + (128 bits modulo 2^61 - 1 - `from`).
    Elements {
        /// The smallest.
        from: u32,
    },
    /// dst 0 = -(gates)/2: what the inner product must be.
    Claim {
        /// Products of the batch.
        products: u32,
    },
    /// dst 0 (256 elements) = what the first two levels of a proof follow from: of quarters (i, j) and numbers (k, l) of the two halves,
    /// Σ (1 - 2(s + t)) n_k m_l over the rows and products of a quarter. src: trace, received.
    Counts,
    /// dst 0 = the values at 0, …, 2L - 2 of the polynomial whose sum over 0, …, L - 1 is the inner product, less call 0. src: at level 1
    /// the counts; at level 2 the counts and the challenge of level 1; else both vectors. If it is the `last` level, these are one piece,
    /// with elements of calls 1 and 2 in its last place.
    Share {
        /// The level.
        level: u32,
        /// Products of the batch.
        products: u32,
        /// Whether it is the last one.
        last: bool,
    },
    /// dst 0 = the vector of a side after levels 1 and 2. src: trace, received, challenges of both levels.
    Expand {
        /// The side.
        side: Side,
    },
    /// dst 0 = the vector after `level`: every piece's polynomial at the challenge. src: the vector before, which is where it is after,
    /// and the challenge.
    Fold {
        /// The level.
        level: u32,
        /// Products of the batch.
        products: u32,
    },
    /// dst 0 = the value at the challenge of the last level's piece, with call 0 in its last place. src: the vector, the challenge.
    End {
        /// The level.
        level: u32,
        /// Products of the batch.
        products: u32,
    },
    /// dst 0 = what the sum of a level's share lacks to the claim; dst 1 = the next claim, the share's polynomial at the challenge. src:
    /// claim, share, challenge.
    Verify {
        /// Whether it is the last level, which has a mask in its last place.
        last: bool,
    },
    /// Compares what both verifiers found, src 0 and src 1: the differences of each level add up to zero, and the last value of one, times that
    /// of the other, is the sum of what follows them. If not, the batch ends with [`Outcome::Mismatch`](crate::Outcome::Mismatch).
    Compare,
}

/// Parts of the trace of a product: both operands, and both masks.
pub const TRACE_PARTS: u8 = 6;

/// Elements of [`Proof::Counts`].
pub const COUNTS: u32 = 256;

/// Most elements of a level's share.
pub const MOST_VALUES: u32 = 15;

/// How many values a level, from 1, folds into one.
pub const fn factor(level: u32) -> u32 {
    if level <= 3 { 4 } else { 8 }
}

/// Elements of a level's share.
pub const fn values(level: u32) -> u32 {
    2 * factor(level) - 1
}

/// Length of the vectors that enter a level, from 3 on.
pub fn length(products: u32, rows: u32, level: u32) -> u64 {
    let width = u64::from(rows.div_ceil(8)) * 8;
    let first = u64::from(products.div_ceil(4)) * width;
    (3..level).fold(first, |length, l| length.div_ceil(u64::from(factor(l))))
}

/// The last level for a batch of so many rows or fewer: its vectors leave room for a mask. Of longer batches there is none.
pub fn levels(products: u32, rows: u32) -> u32 {
    let ends = |level: &u32| length(products, rows, *level) < u64::from(factor(*level));
    // Every level from 3 on leaves a quarter or less of a length below 2^61.
    (4..64)
        .find(ends)
        .expect("vectors get shorter from level to level")
}
