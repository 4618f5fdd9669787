//! Garbled circuits: the schemes, gate by gate, as they are defined.
//!
//! A wire has two labels of 128 bits, W and W ⊕ Δ, for its values 0 and 1; Δ is the garbler's secret *offset*, whose bit 0 is 1. The
//! garbler keeps W, the *zero-label*; the evaluator has one of the two, the *active* label, and does not know which. Bit 0 of a label is
//! its *colour*: of the two labels of a wire one has colour 0 and one has colour 1. An XOR of wires is an XOR of labels, on both sides,
//! and costs nothing (Kolesnikov, Schneider 2008: Improved Garbled Circuit: Free XOR Gates and Applications). An AND costs a *table*,
//! which the garbler makes and the evaluator reads.
//!
//! A label is 16 bytes, little-endian: bit 0 is bit 0 of byte 0.
//!
//! # Hash
//!
//! H(X, i) = AES-128 under the key S ⊕ (i ≪ 64) of σ(X), ⊕ σ(X), where σ(hi ‖ lo) = (hi ⊕ lo) ‖ hi (Guo, Katz, Wang, Weng, Yu 2020:
//! Better Concrete Security for Half-Gates Garbling). Without σ one table tells the evaluator Δ. S is the start point of a chunk, a
//! block of the PRF under a key that both parties have:
//! S = PRF(use, lane, counter, chunk), with counter 0 for half-gates and 1 for three-halves, so that no two schemes share a start point.
//! Product p of a command, in row r, is gate g = (first + p) · 2^16 + r, and no tweak i is used twice under one S.
//!
//! The following is for one gate with zero-labels A, B at the garbler, active labels A, B at the evaluator, and p, q the colours of A, B.

mod check;
mod half;
mod hash;
mod three;

use veil_math::Ring;
use veil_prss::{DomainTag, Prf};
use veil_session::Frame;

pub(crate) use check::check;
pub(crate) use hash::Fixed;
pub use hash::hash;

use crate::Fault;
use crate::layout::ColumnType;

/// A scheme for the tables of AND gates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Garbling {
    /// Two labels per AND, 256 bits (Zahur, Rosulek, Evans 2015: Two Halves Make a Whole). With i = 2 g:
    ///
    /// - T_G = H(A, i) ⊕ H(A ⊕ Δ, i) ⊕ q Δ
    /// - T_E = H(B, i + 1) ⊕ H(B ⊕ Δ, i + 1) ⊕ A
    /// - C = H(A, i) ⊕ p T_G ⊕ H(B, i + 1) ⊕ q (T_E ⊕ A), the zero-label of the result;
    /// - the evaluator computes C = H(A, i) ⊕ p T_G ⊕ H(B, i + 1) ⊕ q (T_E ⊕ A) of its own labels and colours.
    HalfGates,
    /// Three half labels and five bits per AND, 197 bits (Rosulek, Roy 2021: Three Halves Make a Whole?). With i = 3 g, h and η the low
    /// half and bit 64 of the hash, X_L and X_R the high and the low half of a label:
    ///
    /// - The garbler names labels by colour: A_0, A_1 = A_0 ⊕ Δ, B_0, B_1, and X_c = A_0 ⊕ B_0 ⊕ c Δ; a = 1 ⊕ p and b = 1 ⊕ q are the
    ///   colours at which the AND is 1; ρ, ρ' are two dice bits, uniform for each gate and known to the garbler alone.
    /// - The control bits (r, r') of colours j, k are (ρ, ρ'), (ρ ⊕ a ⊕ b, ρ' ⊕ a), (ρ ⊕ b, ρ' ⊕ a ⊕ b), (ρ ⊕ a, ρ' ⊕ b) for
    ///   (j, k) = 00, 01, 10, 11.
    /// - M_jk(A, B) is the label of halves r (A_L ⊕ A_R ⊕ B_L) ⊕ r' (A_L ⊕ B_R) ⊕ (1 ⊕ j) B_L and
    ///   r (A_L ⊕ B_R) ⊕ r' (A_R ⊕ B_L ⊕ B_R) ⊕ (1 ⊕ k) A_R.
    /// - Y_jk = (h(A_j, i), h(B_k, i + 1)) ⊕ (h(X_{j ⊕ k}, i + 2) twice) ⊕ M_jk(A_j, B_k), and v_jk = 1 where (j, k) = (a, b), else 0.
    /// - C = Y_00 ⊕ v_00 Δ is the zero-label. With D_jk = Y_jk ⊕ C ⊕ v_jk Δ the table is G_0 = D_11,L, G_1 = D_11,R, G_2 = D_01,L,
    ///   and z = (ρ ⊕ η(A_0) ⊕ η(X_0), ρ' ⊕ η(B_0) ⊕ η(X_0), a ⊕ η(A_0) ⊕ η(A_1), b ⊕ η(B_0) ⊕ η(B_1), a ⊕ b ⊕ η(X_0) ⊕ η(X_1)).
    /// - The evaluator, with colours j, k, has r = z_0 ⊕ j z_2 ⊕ (j ⊕ k) z_4 ⊕ η(A) ⊕ η(A ⊕ B) and r' = z_1 ⊕ k z_3 ⊕ (j ⊕ k) z_4 ⊕
    ///   η(B) ⊕ η(A ⊕ B), and C = Y ⊕ (j G_0 ⊕ (j ⊕ k) G_2, k G_1 ⊕ (j ⊕ k) G_2), with Y of its own labels.
    ThreeHalves,
}

impl Garbling {
    /// All schemes.
    pub const ALL: [Garbling; 2] = [Garbling::HalfGates, Garbling::ThreeHalves];

    /// The layout of tables: each message's item, and how many items of it a product has. Item `k` of product `p` is item `p · count + k`
    /// of the message.
    ///
    /// Half-gates: T_G, T_E. Three-halves: G_0, G_1, G_2; and z_0 to z_4, whose bits beyond the last row are zero.
    pub const fn tables(self) -> &'static [(ColumnType, u32)] {
        match self {
            Garbling::HalfGates => &[(ColumnType::Labels, 2)],
            Garbling::ThreeHalves => &[(ColumnType::Halves, 3), (ColumnType::Rows(Ring::Bits), 5)],
        }
    }

    /// Tweaks of a gate: as many numbers i.
    pub const fn tweaks(self) -> u64 {
        match self {
            Garbling::HalfGates => 2,
            Garbling::ThreeHalves => 3,
        }
    }

    /// Counters of the dice of a product: bits 2 r and 2 r + 1 of product p's blocks are ρ and ρ' of row r; its blocks begin at
    /// counter `first + p · dice(chunk_rows)`. Half-gates have none.
    pub const fn dice(self, chunk_rows: u32) -> u64 {
        match self {
            Garbling::HalfGates => 0,
            Garbling::ThreeHalves => chunk_rows.div_ceil(64) as u64,
        }
    }

    /// The start point of a chunk's hash.
    pub fn start(self, prf: &Prf, tag: DomainTag, frame: Frame) -> u128 {
        let counter = match self {
            Garbling::HalfGates => 0,
            Garbling::ThreeHalves => 1,
        };
        u128::from_le_bytes(prf.block(tag, frame.lane, counter, frame.chunk))
    }
}

/// A device without the offset that a command names.
pub const NO_OFFSET: Fault = Fault::Unknown("an offset whose bit 0 is 1");

/// Rows of a chunk, at most: the low bits of a gate's number.
pub(crate) const ROW_BITS: u32 = 16;

/// Products under one start point, at most, so that every tweak has 64 bits: three of each gate.
pub(crate) const MOST_PRODUCTS: u64 = 1 << 46;

/// The colour of a label, in all bits.
pub(crate) const fn colour(label: u128) -> u128 {
    (label & 1).wrapping_neg()
}

/// The table of one gate, at most: two labels, or three halves and five bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Table {
    /// T_G, T_E; or G_0, G_1, G_2 in the low halves.
    pub(crate) labels: [u128; 3],
    /// z_0 to z_4.
    pub(crate) bits: u8,
}

/// A gate at either side: the scheme, the start point of its chunk, and its number.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    pub(crate) scheme: Garbling,
    pub(crate) start: u128,
    pub(crate) number: u64,
}

impl Gate {
    /// Gate of product `product`, counted from the chunk's first, in row `row`.
    pub(crate) const fn new(scheme: Garbling, start: u128, product: u64, row: u32) -> Self {
        Gate {
            scheme,
            start,
            number: (product << ROW_BITS) + row as u64,
        }
    }

    /// The hash of a label under tweak `k` of the gate.
    fn hash(&self, x: u128, k: u64) -> u128 {
        hash(self.start, self.number * self.scheme.tweaks() + k, x)
    }

    /// The zero-label of the result, and the table. `dice` are ρ and ρ', in bits 0 and 1.
    pub(crate) fn garble(&self, offset: u128, labels: [u128; 2], dice: u8) -> (u128, Table) {
        match self.scheme {
            Garbling::HalfGates => half::garble(|x, k| self.hash(x, k), offset, labels),
            Garbling::ThreeHalves => three::garble(|x, k| self.hash(x, k), offset, labels, dice),
        }
    }

    /// The active label of the result.
    pub(crate) fn evaluate(&self, labels: [u128; 2], table: &Table) -> u128 {
        match self.scheme {
            Garbling::HalfGates => half::evaluate(|x, k| self.hash(x, k), labels, table),
            Garbling::ThreeHalves => three::evaluate(|x, k| self.hash(x, k), labels, table),
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod views;
