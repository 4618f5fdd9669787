//! Oblivious transfer by small fields: what two parties compute to stretch a few trees of keys to any number of transfers (Roy,
//! "SoftSpokenOT: Communication-Computation Tradeoffs in OT Extension", 2022).
//!
//! The *receiver* has all leaves of some trees of keys. The *sender* has all but one of each, and the numbers of its missing leaves are the
//! bits of its secret *offset* Δ. A transfer takes a bit x of the receiver; afterwards the receiver has a label T and the sender a label Q
//! = T ⊕ x Δ (labels as in [`garble`](crate::garble)). So Q and Q ⊕ Δ are two keys, of which the receiver has the one it chose, and the
//! sender does not know which.
//!
//! # Strings
//!
//! A command is about `items` items of choices in all rows of a chunk. They are taken as one *string* of bits: the packed bytes of the
//! items, one after the other (or, where items are bytes and not rows, all their bits: [`Choices`]), padded with zeros to B whole blocks of 16 bytes; then one block more, of transfers that are never used: they
//! hide what the check tells about the others. [`blocks`] is B + 1. A leaf s is stretched to the string L_s = PRF_s(tag, lane, first,
//! chunk) ‖ PRF_s(…, first + 1, …) ‖ …, B + 1 blocks.
//!
//! With n = 128/k trees of 2^k leaves, and bits of numbers from 0, of tree i:
//!
//! - the receiver has u_i = ⊕_x L_{i,x}, and *columns* t_{k i + p} = ⊕ L_{i,x} over the x whose bit p is 1;
//! - it sends the corrections d_i = x ⊕ u_i, where x is the string of choices. In the last block x is that of u_0, which is random,
//!   and d_0 is not sent;
//! - the sender, which numbers leaves so that it lacks leaf 0 ([`Trees::index`]), has columns
//!   q_{k i + p} = (⊕ L_{i,y} over the y whose bit p is 1) ⊕ Δ_{k i + p} d_i.
//!
//! Between the bytes of the items and the last block, of which nothing is sent, columns are zero. Then q_c = t_c ⊕ Δ_c x for all 128
//! columns c. Bit j of column c is bit c of label j.
//!
//! # Check
//!
//! A receiver that sends corrections of different x would learn bits of Δ from what the sender does with its columns. So both ends
//! *fold* each column to 16 bytes, h(s) = POLYVAL_χ(the first B blocks of s) ⊕ its last block (RFC 8452, without the length), under a
//! challenge χ that the receiver cannot have known when it sent the corrections. The receiver sends h(t_c) for each column and h(x);
//! the sender accepts if h(q_c) = h(t_c) ⊕ Δ_c h(x) for all c. If two of the x differ their folds are the same with probability B / 2^128
//! at most; if not, the receiver has to guess the k bits of Δ of every tree whose x is another one than the h(x) it sends belongs to.

mod check;

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use veil_math::Ring;

use crate::command::KeyId;
use crate::layout::ColumnType;

pub(crate) use check::check;

/// A step of transfers between two parties.
///
/// Columns are a resident region of `Bytes`, an item for each column, and as long as [`column_bytes`] or longer: bytes beyond it are
/// neither read nor written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ot {
    /// The receiver's columns, and its message. src: choices, rows of bits or bytes. dst: corrections, of the same column type, of each tree as many items as
    /// there are choices; corrections of the last block, of each tree but the first 16 bytes; 129 columns, of which the last is the
    /// string of choices. calls: the first leaf of the first tree, and the counter of the first block.
    Receive {
        /// Which trees.
        trees: Trees,
    },
    /// The sender's columns. src: both messages of [`Ot::Receive`]. dst: 128 columns. calls: as there.
    Send {
        /// Which trees.
        trees: Trees,
        /// The key that is Δ.
        offset: KeyId,
    },
    /// dst 0, 16 bytes for each column, = its fold. src: columns, and the challenge, which is the first 16 bytes of one item of bytes.
    Fold {
        /// Items of choices.
        items: u32,
        /// What each of them is.
        of: Choices,
    },
    /// Compares at the sender the folds of its 128 columns, src 0, with the 129 folds of the receiver, src 1; if they do not
    /// fit, the batch ends with [`Outcome::Mismatch`](crate::Outcome::Mismatch).
    Compare {
        /// The key that is Δ.
        offset: KeyId,
    },
    /// dst 0 = the labels of src 0, all of its columns: an item for each item of choices, a column of labels for rows of bits, 128 bytes for each byte.
    Labels {
        /// Bit 0 of each.
        low: Low,
    },
    /// Keys of transfers, of which no two have anything to do with each other: the hash of [`garble`](crate::garble#hash) of labels
    /// src 0. Row r of item p has the tweak (first + p) · 2^16 + r, and the start point is block 0 of call 0. At the receiver, which has
    /// no offset, dst 0 is the hash of T; at the sender dst 0 is that of Q and dst 1 that of Q ⊕ Δ.
    Keys {
        /// The key that is Δ, at the sender.
        offset: Option<KeyId>,
    },
    /// dst 0 = src 0 ⊕ (src 2) · src 1, item by item: labels, labels, rows of bits. The destination may be source 0.
    Choose,
}

/// Bit 0 of labels, whose other bits are those of columns 1 to 127.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Low {
    /// That of column 0, of 128 columns: labels T or Q.
    Column,
    /// The choice, which is column 128 of 129: T, with x in its lowest bit.
    Choice,
    /// 0, of 128 columns: Q, whose lowest bit is that of a number without a choice.
    Zero,
}

impl Low {
    /// Columns that labels are made of.
    pub const fn columns(self) -> u32 {
        match self {
            Low::Column | Low::Zero => COLUMNS,
            Low::Choice => COLUMNS + 1,
        }
    }

    /// The column that has bit 0, if one has it.
    pub(crate) const fn column(self) -> Option<u32> {
        match self {
            Low::Column => Some(0),
            Low::Choice => Some(COLUMNS),
            Low::Zero => None,
        }
    }
}

/// An item of choices.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Choices {
    /// A bit for each row.
    Rows,
    /// So many bytes, all of whose bits are choices, whatever rows there are.
    Bytes(u32),
}

impl Choices {
    /// What a column is an item of, if it is one of any.
    pub(crate) const fn of(column: ColumnType) -> Option<Self> {
        match column {
            ColumnType::Rows(Ring::Bits) => Some(Choices::Rows),
            ColumnType::Bytes(bytes) => Some(Choices::Bytes(bytes)),
            _ => None,
        }
    }

    /// What an item is as a column.
    pub const fn column(self) -> ColumnType {
        match self {
            Choices::Rows => ColumnType::Rows(Ring::Bits),
            Choices::Bytes(bytes) => ColumnType::Bytes(bytes),
        }
    }

    /// Bytes of an item in `rows` rows.
    pub const fn bytes(self, rows: u32) -> u64 {
        self.column().bytes(rows)
    }

    /// Blocks of the string of `items` items in a chunk of `rows` rows: B + 1. As many counters are drawn, for a full chunk.
    pub const fn blocks(self, items: u32, rows: u32) -> u64 {
        (items as u64 * self.bytes(rows)).div_ceil(BLOCK as u64) + 1
    }
}

/// Blocks of the string of `items` items with a bit for each of `rows` rows.
pub const fn blocks(items: u32, rows: u32) -> u64 {
    Choices::Rows.blocks(items, rows)
}

/// Bytes of a column of `items` items in a chunk of `rows` rows.
pub const fn column_bytes(of: Choices, items: u32, rows: u32) -> u64 {
    of.blocks(items, rows) * BLOCK as u64
}

/// h of a string of whole blocks, at least one: POLYVAL of all of them but the last under the challenge, XOR the last.
///
/// # Panics
/// If the string is shorter than a block.
pub fn fold(challenge: &[u8; BLOCK], string: &[u8]) -> [u8; BLOCK] {
    let (blocks, last) = string.split_at(string.len() - BLOCK);
    let mut state = Polyval::new(&(*challenge).into());
    state.update_padded(blocks);
    let mut folded: [u8; BLOCK] = state.finalize().into();
    folded.iter_mut().zip(last).for_each(|(f, last)| *f ^= last);
    folded
}

/// Bytes of a block, and of a fold.
pub const BLOCK: usize = 16;

/// Columns of labels.
pub const COLUMNS: u32 = 128;

/// What a column is in a workspace, and how many are in a block.
pub(crate) const FOLD: ColumnType = ColumnType::Bytes(BLOCK as u32);
/// How many bits of the offset Δ a tree of keys stands for: 1, 2, 4 or 8. There are 128 bits, so 128/k trees of 2^k leaves.
///
/// A random transfer costs 128/k bits on the link and 2^k/k AES blocks at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Trees(u8);

impl Trees {
    /// All of them.
    pub const ALL: [Trees; 4] = [Trees(1), Trees(2), Trees(4), Trees(8)];

    /// Trees that stand for `k` bits each; nothing if there are no such trees.
    pub const fn new(k: u8) -> Option<Self> {
        match k {
            1 | 2 | 4 | 8 => Some(Trees(k)),
            _ => None,
        }
    }

    /// The bits that a tree stands for, k.
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }

    /// Number of trees.
    pub const fn count(self) -> u32 {
        128 / self.bits()
    }

    /// Leaves of a tree.
    pub const fn leaves(self) -> u32 {
        1 << self.bits()
    }

    /// Number of a leaf among the leaves of all trees: at most 4095. The receiver counts the leaves of a tree by their path, first step
    /// most significant; the sender by the XOR of this with the path of its missing leaf, which so is leaf 0 of every tree.
    pub const fn index(self, tree: u32, leaf: u32) -> u16 {
        (tree * self.leaves() + leaf) as u16
    }
}

impl Default for Trees {
    /// Four bits: half as much to send as two, and about as fast.
    fn default() -> Self {
        Trees(4)
    }
}
