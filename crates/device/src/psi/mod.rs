//! Intersection of the keys of two, by vector oblivious linear evaluation (VOLE) and an oblivious key-value store (Rindal, Schoppmann, "VOLE-PSI: Fast OPRF and
//! Circuit-PSI from Vector-OLE", EUROCRYPT 2021; Raghuraman, Rindal, "Blazing Fast PSI from Improved OKVS and Subfield VOLE", CCS 2022).
//!
//! The *receiver* R learns which of its keys the *sender* S has. Products are those of POLYVAL's field, a · b · X^−128 (RFC 8452). There is a VOLE: blocks A and
//! C of R, blocks B and δ of S, with A = B ⊕ C δ and C random.
//!
//! ```text
//! R, S  digest of each key: SHA-256("psi1" ‖ salt ‖ key) = V ‖ ρ, 16 bytes each      Psi::Hash
//! R     P with ⟨row(x), P⟩ = V(x) for its keys x; sends seed, P ⊕ C                   Psi::Encode
//! S     B' = B ⊕ (P ⊕ C) δ; sends in ascending order                                  Psi::Tags
//!           SHA-256("psi2" ‖ ⟨row(y), B'⟩ ⊕ V(y) δ ⊕ w ‖ digest of y), first 16 bytes
//! R     the same of its keys from ⟨row(x), A⟩ ⊕ w, which are found or not             Psi::Match
//! ```
//!
//! as ⟨row, B'⟩ = ⟨row, A⟩ ⊕ ⟨row, P⟩ δ. The block w is one that both have had a part in, and that R could not know when it chose P. Of a key that R did not
//! encode, S's tag is the hash of something that R would have to guess δ for.
//!
//! # Rows
//!
//! With H(x) = AES_S(σ(x)) ⊕ σ(x) from the seed S, the hash of [`garble`](crate::garble#hash) for tweak 0, the four words of H(ρ), 32 bits each and
//! little-endian, say where a key belongs: w₀ its bin, w₁, w₂, w₃ three different sparse columns of this bin. A number below n is ⌊w n / 2^32⌋ of a word w. The
//! first column is one of s, the second one of the s − 1 others, the third one of the s − 2 others, counted in their order. So
//!
//! ```text
//! ⟨row, P⟩ = P[a] ⊕ P[b] ⊕ P[c] ⊕ ρ d₁ ⊕ ρ² d₂ ⊕ …
//! ```
//!
//! with the dense columns d of the bin, which lie behind its sparse ones. [`Okvs::of`] says how many of each there are.
//!
//! # Encoding
//!
//! Any solution P is as good as any other, and one of all of them is taken at random: first every column is drawn, then some are set, a bin after the other. The
//! columns that one key has for itself are listed, in ascending order; the first of the list is taken with its key, all columns lose this key, and those that
//! have a single one left come to the list's end. The keys that are left at last, in ascending order, are solved by Gaussian elimination, with the lowest column
//! of each as its pivot; sums without sparse columns are equations of the dense ones, with their first column as pivot. Then the keys that were taken first get
//! their columns, the last one first. Where this does not end, because there are more equations than dense columns, or more than 512 keys left, the next seed is
//! tried, of eight.
//!
//! # Promises
//!
//! - Sizes of messages, and what a step reads and writes of a workspace, follow from numbers of keys.
//! - Keys are no peer's doing: whether an encoding ends depends on nothing that a peer chooses.
//!
//! # Limits
//!
//! - Branches, and positions in memory, follow from digests of a party's *own* keys, in all steps but [`Psi::Hash`]: columns of rows, and what is found. A process that
//!   shares a cache with that party may learn of them. They follow from tags too, which are hashes, as these are sorted and found; otherwise neither from δ, nor
//!   from A, B and C, nor from what a peer sends but the seed.
//! - A receiver may choose a P that is right for more keys than it declared: for up to [`Okvs::most_keys`], by a count of equations that is no proof. Han, Kim,
//!   Lee and Son ("Revisiting OKVS-Based OPRF and PSI: Cryptanalysis and Better Construction", ASIACRYPT 2024) do so for more keys than was claimed in 2021.

mod check;
mod encode;
mod okvs;
mod steps;

use crate::command::KeyId;

pub(crate) use check::check;
pub(crate) use encode::Entry;
pub(crate) use okvs::Row;
pub use okvs::{KEYS_OF_A_BIN, Okvs};
pub use steps::{DUPLICATE, TAG, UNSOLVED, VALUE};
pub(crate) use steps::{Each, Known, Plain, block_of, step};

/// Seeds that are tried.
pub const SEEDS: u32 = 8;

/// Most keys that are left over in a bin and solved.
const MOST_LEFT: usize = 512;

/// A step of an intersection.
///
/// *Keys*, *digests* and *blocks* are arrays of 32, 32 and 16 bytes, one behind the other in the columns of a span of type
/// [`ColumnType::Bytes`](crate::ColumnType::Bytes) of any length that is a multiple of theirs. The span has as many as are needed; of a VOLE it may have more, of which the
/// first are taken. Spans that are written overlap no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Psi {
    /// Digests. src: keys. dst: digests, as many. calls: the salt, a counter.
    Hash,
    /// The receiver's keys are encoded. src: digests; C, [`Okvs::columns`] blocks or more. dst: the seed, a block; P ⊕ C, [`Okvs::columns`] blocks. calls: seeds and
    /// columns, [`Okvs::counters`]. It is a [`Fault::Shape`](crate::Fault::Shape) if two keys are equal, or no seed is good; then the destinations are zero.
    Encode {
        /// The store.
        okvs: Okvs,
    },
    /// The sender's tags. src: digests; B; P ⊕ C; the seed; blocks that add up to w. dst: tags, blocks, as many as digests, in ascending order of their
    /// bytes. It is a [`Fault::Shape`](crate::Fault::Shape) if two keys are equal; then the destination is zero.
    Tags {
        /// The receiver's store.
        okvs: Okvs,
        /// The key that is δ.
        offset: KeyId,
    },
    /// What the receiver finds. src: digests; A; the seed; blocks that add up to w; tags. dst: a bit for each digest, packed into bytes: 1 if its tag is one of them, else 0. If the
    /// tags are not strictly ascending nothing is found, and the batch ends with [`Outcome::Mismatch`](crate::Outcome::Mismatch).
    Match {
        /// The receiver's store.
        okvs: Okvs,
    },
}

impl Psi {
    /// Counters that each call of a step takes.
    pub(crate) const fn counters(self) -> u64 {
        match self {
            Psi::Hash => 1,
            Psi::Encode { okvs } => okvs.counters(),
            _ => 0,
        }
    }
}
