//! Oblivious transfer by small fields (Roy, "SoftSpokenOT: Communication-Computation Tradeoffs in OT Extension", 2022).
//!
//! The receiver has all leaves of some trees of keys; the sender all but one of each, and the numbers of those that it lacks are the
//! bits of its offset Δ.

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

    /// Number of a leaf among those of all trees: at most 4095. The receiver counts the leaves of a tree by their path, first step most
    /// significant; the sender by the XOR of this with that of the leaf it lacks, which so is leaf 0 of every tree.
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
