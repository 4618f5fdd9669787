//! Silent transfers: many correlated transfers from a few, by learning parity with noise (Yang, Weng, Lan, Zhang, Wang, "Ferret: Fast
//! Extension for Correlated OT with Small Communication", CCS 2020), with trees whose nodes add up to the offset (Guo, Yang, Wang, Zhang, Xie,
//! Liu, Zhao, "Half-Tree: Halving the Cost of Tree Expansion in COT and DPF", EUROCRYPT 2023).
//!
//! A *correlation* is a block K of the sender and a block M = K ⊕ r Δ of the receiver, whose choice r is random. Bit 0 of K is 0 and bit 0 of Δ is 1, so
//! that bit 0 of M is r. A round makes t · 2^h correlations from [`Lpn::base`] ones, the *base*, of which each is used once:
//!
//! - the first 2^k are the secret of the code;
//! - the next t · h are the levels of t trees, h for each;
//! - the last 128 hide what the check tells.
//!
//! # Trees
//!
//! Leaf x of a tree is reached from the root by the bits of x, bit 0 first. With H(x) = AES_S(σ(x)) ⊕ σ(x), the hash of [`garble`](crate::garble#hash) for
//! tweak 0 from a start point S of the tree,
//!
//! ```text
//! level 0:  s, s ⊕ Δ            below:  H(x), x ⊕ H(x)
//! ```
//!
//! so that the nodes of each level add up to Δ. In a level the sender sends c = K ⊕ (the sum of all left nodes) for its base correlation. The receiver has
//! c ⊕ M, the sum of the left nodes if r = 0 and of the right ones if r = 1: it lacks the leaf α whose bits are the complements of its choices r, and
//! has all others. Last bit 0 of all leaves becomes 0. Leaf α of the receiver is the sum of the others with bit 0 set, which is that of the sender XOR Δ.
//!
//! # Rows
//!
//! Output i is leaf i of all trees XOR ten blocks of the secret, at the places that words 10 i, …, 10 i + 9 of the stream of a public call say (32 bits,
//! little-endian, of which the lowest k bits count). The receiver's choices are a sparse vector, with a 1 in each tree, plus a product of a public matrix with
//! a secret: random, if learning parity with regular noise is hard.
//!
//! # Check
//!
//! In the field of POLYVAL (RFC 8452), with products as there, of n leaves w of the receiver and v of the sender under a challenge χ
//!
//! ```text
//! V = Σ χ^(n−i) v_i        W = Σ χ^(n−i) w_i = V ⊕ φ Δ        φ = Σ over trees of χ^(n−i) of its leaf α
//! ```
//!
//! The last 128 base correlations are K* = Σ X^i K_i and M* = Σ X^i M_i = K* ⊕ x* Δ for x* whose bits are their choices. The receiver sends φ ⊕ x*, and
//! compares a digest of W ⊕ M* with that of the sender's V ⊕ K* ⊕ (φ ⊕ x*) Δ. A sender that sent other sums passes if it has guessed the bits of the α that its lie
//! depends on.

mod check;
mod steps;

use veil_math::Ring;

use crate::command::KeyId;
use crate::layout::ColumnType;

pub(crate) use check::check;
pub(crate) use steps::{Known, hiding, mask_of, step, weight};

/// A set of parameters: t trees of 2^h leaves, and a secret of 2^k blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lpn {
    /// Number of trees: the weight of the noise.
    pub trees: u32,
    /// Logarithm of the number of blocks of the secret.
    pub log_secret: u8,
    /// Bits of the number of a leaf.
    pub height: u8,
}

/// Blocks of the secret that are added to each leaf.
pub const WEIGHT: usize = 10;

/// Correlations that hide what a check tells.
pub const HIDING: u32 = 128;

impl Lpn {
    /// The default: 0.76 bits of messages for an output.
    pub const C12: Lpn = Lpn::of(1520, 18, 11);
    /// For processors with a small second level of the cache: 1.42 bits for an output.
    pub const C11: Lpn = Lpn::of(1170, 17, 10);

    /// As published (emp-ot, 2026), with more samples for the same noise, at an estimate of 128 bits and so without a margin. The number in a name is the level of the tree.
    pub const F10: Lpn = Lpn::of(850, 16, 10);
    /// See [`Lpn::F10`].
    pub const F11: Lpn = Lpn::of(1170, 17, 11);
    /// See [`Lpn::F10`].
    pub const F12: Lpn = Lpn::of(1520, 18, 12);
    /// See [`Lpn::F10`].
    pub const F13: Lpn = Lpn::of(1900, 19, 13);

    /// `trees` trees of `height` levels, with a secret of 2^`log_secret` blocks. Whether they hide anything is for who takes them to know.
    pub const fn of(trees: u32, log_secret: u8, height: u8) -> Self {
        Lpn {
            trees,
            log_secret,
            height,
        }
    }

    /// Leaves of a tree.
    pub const fn leaves(self) -> u32 {
        1 << self.height
    }

    /// Outputs of a round.
    pub const fn outputs(self) -> u64 {
        (self.trees as u64) << self.height
    }

    /// Correlations that a round takes.
    pub const fn base(self) -> u64 {
        (1 << self.log_secret) + self.trees as u64 * self.height as u64 + HIDING as u64
    }

    /// Columns of leaves that hold the base of a round.
    pub const fn base_columns(self) -> u32 {
        self.base().div_ceil(self.leaves() as u64) as u32
    }

    /// What a tree is as a column: all of its leaves, 16 bytes each. Bases are columns of the same type.
    pub const fn column(self) -> ColumnType {
        ColumnType::Bytes(16 << self.height)
    }

    /// Blocks that the rows of a round take of their call.
    pub const fn row_blocks(self) -> u64 {
        self.outputs() / 4 * WEIGHT as u64
    }

    /// Whether a device does it.
    const fn is_there(self) -> bool {
        self.trees > 0
            && self.trees <= 1 << 14
            && self.log_secret > 0
            && self.log_secret <= 24
            && self.height >= 3
            && self.height <= 16
    }
}

/// A step of silent transfers.
///
/// *Leaves* are two spans, one behind the other, with a column for each tree: outputs for use, and the base of the next round. A
/// *base* is one span of [`Lpn::base_columns`] columns. All are of type [`Lpn::column`], and no two of a step overlap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silent {
    /// Trees at the sender. src: base. dst: leaves; sums of levels, 16 bytes each, h for a tree. calls: start points and roots, a counter for each tree.
    Grow {
        /// The parameters.
        set: Lpn,
        /// The key that is Δ.
        offset: KeyId,
    },
    /// Trees at the receiver, which lacks a leaf of each. src: base; sums of levels. dst: leaves. calls: start points.
    Puncture {
        /// The parameters.
        set: Lpn,
    },
    /// The check at the receiver. src: leaves; base; the challenge, which is the first 16 bytes of one item of bytes. dst: φ ⊕ x*; W ⊕ M*. 16 bytes each.
    Ask {
        /// The parameters.
        set: Lpn,
    },
    /// The check at the sender. src: leaves; base; the challenge; φ ⊕ x*. dst: V ⊕ K* ⊕ (φ ⊕ x*) Δ.
    Answer {
        /// The parameters.
        set: Lpn,
        /// The key that is Δ.
        offset: KeyId,
    },
    /// Leaves become outputs. src: base. dst: leaves. calls: rows, [`Lpn::row_blocks`] counters. Memory is reached at public places.
    Rows {
        /// The parameters.
        set: Lpn,
    },
    /// Transfers of choices x at the receiver, from outputs with number `first` on, item by item and row by row. src: outputs, blocks; rows of bits x. dst: rows of
    /// bits d = x ⊕ r; labels T = M. Bits beyond the last row become zero.
    Choose {
        /// The first output.
        first: u64,
    },
    /// The same at the sender. src: outputs; rows of bits d. dst: labels Q = K ⊕ d Δ, so that Q = T ⊕ x Δ.
    Turn {
        /// The first output.
        first: u64,
        /// The key that is Δ.
        offset: KeyId,
    },
}

impl Silent {
    /// The key that is Δ, of a step that needs one.
    pub(crate) const fn offset(self) -> Option<KeyId> {
        match self {
            Silent::Grow { offset, .. }
            | Silent::Answer { offset, .. }
            | Silent::Turn { offset, .. } => Some(offset),
            _ => None,
        }
    }

    /// Counters that each call of a step takes.
    pub(crate) const fn counters(self) -> u64 {
        match self {
            Silent::Grow { set, .. } | Silent::Puncture { set } => set.trees as u64,
            Silent::Rows { set } => set.row_blocks(),
            _ => 0,
        }
    }

    /// Whether a step takes the levels of its base, which no other step may take again.
    pub(crate) const fn spends(self) -> bool {
        matches!(self, Silent::Grow { .. } | Silent::Puncture { .. })
    }
}

/// The type of choices, and of their message.
const CHOICES: ColumnType = ColumnType::Rows(Ring::Bits);
