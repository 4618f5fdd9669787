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
//!
//! # Over blocks
//!
//! An *entry* of a VOLE is a block B of the sender and blocks A and C of the receiver with A = B ⊕ C Δ, where C is random. Products are those of POLYVAL, a · b · X^−128. 128
//! correlations are an entry: B = Σ X^i K_i, A = Σ X^i M_i, and bit i of C is the choice of correlation i ([`Silent::Pack`]).
//!
//! A round over blocks ([`Over::Blocks`]) makes t · 2^h entries from [`Lpn::base`] entries, of which the first 2^k are the secret of the code, the next t the
//! noise, and one hides what the check tells; and from t · h correlations, the levels of t trees. These grow as above. Then each leaf x becomes H(x) from another start point, which gives
//! v, and the receiver lacks v of leaf α: of its leaf, the sender's ⊕ Δ, it has another hash. With entry (b, a, c) of the noise the sender sends
//!
//! ```text
//! d = b ⊕ Σ v          and the receiver has          w_α = d ⊕ a ⊕ Σ of the others = v_α ⊕ c Δ,      w = v elsewhere
//! ```
//!
//! so that w = v ⊕ e Δ for the noise e, which is c at leaf α and 0 elsewhere. The check is that above, with φ = Σ χ^(n−i) e_i, and the last entry of the base
//! for K*, M* and x*. Rows add ten products to v, to w and to e: block 10 i + j of the stream is the place, its lowest k bits, and with these cleared the coefficient, of term j of
//! row i.
//!
//! Coefficients are as long as blocks for a reason. If they were bits, the code would be one over GF(2) for each bit of a block, 128 times the same with noise at the same places. The
//! errors of 2^k samples would have t 2^k / n = 2^(k−h) blocks that are not zero, and if those are 127 or fewer, a sum of bits of a block vanishes in all of
//! them. It is found by linear algebra.

mod check;
mod steps;
mod vole;

use veil_math::Ring;

use crate::command::KeyId;
use crate::layout::ColumnType;

pub(crate) use check::check;
pub(crate) use steps::{Known, hiding, lacking, mask_of, step, weight};
pub(crate) use vole::hides;

/// What a code is over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Over {
    /// GF(2): choices of correlations.
    Bits,
    /// GF(2^128): entries of a VOLE.
    Blocks,
}

/// A set of parameters: t trees of 2^h leaves, and a secret of 2^k blocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lpn {
    /// Number of trees: the weight of the noise.
    pub trees: u32,
    /// Logarithm of the number of blocks of the secret.
    pub log_secret: u8,
    /// Bits of the number of a leaf.
    pub height: u8,
    /// What the code is over.
    pub over: Over,
}

/// Blocks of the secret that are added to each leaf.
pub const WEIGHT: usize = 10;

/// Correlations that hide what a check tells, and those of an entry of a VOLE.
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

    /// Entries of a VOLE: 2.6 bits of messages for an entry.
    pub const V: Lpn = Lpn::over_blocks(2560, 16, 9);

    /// `trees` trees of `height` levels, with a secret of 2^`log_secret` blocks, over bits. Whether they hide anything is for who takes them to know.
    pub const fn of(trees: u32, log_secret: u8, height: u8) -> Self {
        Lpn {
            trees,
            log_secret,
            height,
            over: Over::Bits,
        }
    }

    /// The same over blocks.
    pub const fn over_blocks(trees: u32, log_secret: u8, height: u8) -> Self {
        let over = Over::Blocks;
        Lpn {
            over,
            ..Lpn::of(trees, log_secret, height)
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

    /// Levels of all trees, for each of which there is a correlation.
    pub const fn levels(self) -> u32 {
        self.trees * self.height as u32
    }

    /// What a round takes: correlations, of which the secret is the first part, or over blocks entries, without the correlations of levels.
    pub const fn base(self) -> u64 {
        let others = match self.over {
            Over::Bits => self.levels() + HIDING,
            Over::Blocks => self.trees + 1,
        };
        (1 << self.log_secret) + others as u64
    }

    /// Trees whose leaves are as many as the base of a round, or a few more.
    pub const fn base_trees(self) -> u32 {
        self.base().div_ceil(self.leaves() as u64) as u32
    }

    /// Columns that hold the base of a round: all of [`Lpn::base_trees`] trees.
    pub const fn base_columns(self) -> u32 {
        self.base_trees() * self.tree_columns()
    }

    /// The type of columns of leaves, and of bases: a tree with all of its leaves, 16 bytes each; over blocks a leaf.
    pub const fn column(self) -> ColumnType {
        match self.over {
            Over::Bits => ColumnType::Bytes(16 << self.height),
            Over::Blocks => ColumnType::Bytes(16),
        }
    }

    /// Columns of a tree.
    pub const fn tree_columns(self) -> u32 {
        match self.over {
            Over::Bits => 1,
            Over::Blocks => self.leaves(),
        }
    }

    /// Blocks that the rows of a round take of their call: of each row ten words, or ten blocks.
    pub const fn row_blocks(self) -> u64 {
        match self.over {
            Over::Bits => self.outputs() / 4 * WEIGHT as u64,
            Over::Blocks => self.outputs() * WEIGHT as u64,
        }
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
/// *Leaves* are two spans, one behind the other, with [`Lpn::tree_columns`] for each tree: outputs for use, and the base of the next round. A
/// *base* is one span of [`Lpn::base_columns`] columns. All are of type [`Lpn::column`], and no two spans of a step overlap. *Levels* are where the correlations of levels are: over bits
/// the base, over blocks a span of whole blocks that begins with them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Silent {
    /// Trees at the sender. src: levels. dst: leaves; sums of levels, 16 bytes each, h for a tree. calls: start points and roots, a counter for each tree.
    Grow {
        /// The parameters.
        set: Lpn,
        /// The key that is Δ.
        offset: KeyId,
    },
    /// Trees at the receiver, which lacks a leaf of each. src: levels; sums of levels. dst: leaves. calls: start points.
    Puncture {
        /// The parameters.
        set: Lpn,
    },
    /// Leaves over blocks become v, at the sender. src: base. dst: leaves; d, 16 bytes for each tree. calls: start points of the second hash, a counter for each tree.
    Give {
        /// The parameters, over blocks.
        set: Lpn,
    },
    /// Leaves over blocks become w, at the receiver, and the noise e is written. src: levels; d; A and C of the base. dst: leaves; the noise, which is spans as long as those. calls: start
    /// points as of [`Silent::Give`].
    Fill {
        /// The parameters, over blocks.
        set: Lpn,
    },
    /// The check at the receiver. src: leaves; base; the challenge, which is the first 16 bytes of one item of bytes. Over blocks: leaves; noise; A and C of the base; the
    /// challenge. dst: φ ⊕ x*; W ⊕ M*. 16 bytes each.
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
    /// Leaves become outputs. src: base. dst: leaves. Over blocks at the receiver: src: A and C of the base. dst: leaves; noise, which becomes C. calls: rows, [`Lpn::row_blocks`] counters. Memory is
    /// reached at public places.
    Rows {
        /// The parameters.
        set: Lpn,
    },
    /// Entries of a VOLE, of 128 correlations each. src: correlations, whole blocks, of which the first are taken. dst, 16 bytes for each entry: B, or A and C.
    Pack,
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
    /// Outputs as they are, for choices that are random: `count` of them from number `first` on become blocks of an array from number `at` on. src: outputs. dst: the
    /// array, columns of whole blocks.
    Take {
        /// The first output.
        first: u64,
        /// Where it goes.
        at: u64,
        /// How many.
        count: u64,
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
            Silent::Grow { set, .. }
            | Silent::Puncture { set }
            | Silent::Give { set }
            | Silent::Fill { set } => set.trees as u64,
            Silent::Rows { set } => set.row_blocks(),
            _ => 0,
        }
    }

    /// Which sources a step takes so that no other step may take them again: levels, noise, and correlations that become entries.
    pub(crate) const fn spends(self) -> &'static [usize] {
        match self {
            Silent::Grow { .. } | Silent::Puncture { .. } | Silent::Give { .. } | Silent::Pack => {
                &[0]
            }
            Silent::Fill { .. } => &[2, 3],
            _ => &[],
        }
    }
}

/// The type of choices, and of their message.
const CHOICES: ColumnType = ColumnType::Rows(Ring::Bits);
