//! Authenticated garbling: what two parties compute to garble a circuit whose gates neither of them can falsify (Wang, Ranellucci, Katz,
//! "Authenticated Garbling and Efficient Maliciously Secure Two-Party Computation", 2017; Katz, Ranellucci, Rosulek, Wang, "Optimizing
//! Authenticated Garbling for Faster Secure Two-Party Computation", 2018).
//!
//! # Authenticated bits
//!
//! Each party has an offset Δ, whose bit 0 is 1; bit 1 is 1 in the garbler's and 0 in the evaluator's. A bit v = v^A ⊕ v^B is *authenticated*:
//! each party P has its part v^P with a *MAC* M_P under the other party's offset, and a *key* K_P for the other party Q's part, with
//! M_P = K_Q ⊕ v^P Δ_Q. Bit 0 of every key is 0, so that bit 0 of a MAC is the part. Sums of authenticated bits are XORs of MACs and of
//! keys. A public bit c is added by the garbler to its MAC, M ⊕= c, and by the evaluator to its key, K ⊕= c (Δ_B ⊕ 1).
//!
//! Both come of a correlated transfer Q = T ⊕ x Δ ([`ot`](crate::ot)): K is Q with bit 0 cleared, and M is T with bit 0 replaced by x ([`Ag::Pin`]).
//!
//! # Arrays
//!
//! A step is about *arrays* of blocks of 16 bytes: columns of [`Labels`](crate::ColumnType::Labels), of [`Label`](crate::ColumnType::Label), or of
//! [`Bytes`](crate::ColumnType::Bytes) whose number is a multiple of 16; and about their bits, packed: rows of bits, bits that all rows share, or
//! bytes, of which bit i is bit i mod 8 of byte ⌊i / 8⌋. Spans of a step have as many columns each, and columns as many blocks. A destination
//! overlaps no source; an array may be in the place of a source that is an array, except in folds, of bits and in steps with a program, whose
//! spans lie in none of the program's regions. Of bits that are written, those behind the last block become zero.
//!
//! # Leaky products
//!
//! With authenticated bits a, b, r, fresh, the parties make c = a b. H is the hash of [`garble`](crate::garble#hash) under a start point of its own;
//! the tweak of candidate i is t_P = 2 (first + i) + the role of the party that garbles, 0 for the garbler and 1 for the evaluator:
//!
//! - C_P = b^P Δ_P ⊕ K_P\[b\] ⊕ M_P\[b\], and G_P = H(K_P\[a\], t_P) ⊕ H(K_P\[a\] ⊕ Δ_P, t_P) ⊕ C_P goes to the other party ([`Ag::Offer`]);
//! - of the other party's G_Q, S_P = H(K_P\[a\], t_P) ⊕ H(M_P\[a\], t_Q) ⊕ a^P G_Q ⊕ K_P\[r\] ⊕ M_P\[r\] ⊕ a^P C_P ⊕ r^P Δ_P, whose bit 1,
//!   d^P, goes to the other party ([`Ag::Take`]);
//! - c = r ⊕ d with d = d^A ⊕ d^B public, and L_P = S_P ⊕ d Δ_P, which both have if neither lied ([`Ag::Settle`]).
//!
//! A party that lies in G learns whether the other's part of a is what it bet on. So several layers of candidates are combined
//! at random shifts ([`Ag::Rotate`], [`Ag::Absorb`]): c = ⊕ (c_k ⊕ d_k a_k) and a = ⊕ a_k, for b = b_0 and opened d_k = b_0 ⊕ b_k.
//!
//! # Gates
//!
//! A wire has an authenticated *mask* λ, and the parties know Λ = value ⊕ λ. The garbler has its label for Λ = 0, whose bit 1 is 0; the evaluator
//! has that label ⊕ Λ Δ_A, whose bit 1 so is Λ. A product γ of α and β takes a product (a, b, c): of opened ε = λ_α ⊕ a and δ = λ_β ⊕ b follows
//! σ = λ_α λ_β = c ⊕ ε b ⊕ δ a ⊕ ε δ ([`Ag::Spend`]). With i = 2 g and g as in half-gates, and at the garbler g(w) = w^A Δ_A ⊕ K_A\[w\]:
//!
//! - G_0 = H(A, i) ⊕ H(A ⊕ Δ, i) ⊕ g(λ_β), and G_1 = H(B, i + 1) ⊕ H(B ⊕ Δ, i + 1) ⊕ A ⊕ g(λ_α);
//! - C = H(A, i) ⊕ H(B, i + 1) ⊕ g(σ ⊕ λ_γ); z is bit 1 of C, which is cleared in the label of the result ([`Ag::Garble`]);
//! - the evaluator has H(A, i) ⊕ H(B, i + 1) ⊕ Λ_α (G_0 ⊕ M_B\[λ_β\]) ⊕ Λ_β (G_1 ⊕ A ⊕ M_B\[λ_α\]) ⊕ M_B\[σ ⊕ λ_γ\], whose bit 1 becomes
//!   Λ_γ by adding z ([`Ag::Evaluate`]).
//!
//! XORs of wires are XORs of labels, MACs and keys; a NOT adds a public 1 to the mask, and changes neither label nor Λ.
//!
//! Gates are right if τ = Λ_α Λ_β ⊕ Λ_γ ⊕ Λ_α λ_β ⊕ Λ_β λ_α ⊕ σ ⊕ λ_γ is 0 in each, which both parties check by the MAC of its part ([`Ag::Gates`]).

mod check;
pub(crate) mod gate;
mod plain;

use crate::command::KeyId;

pub(crate) use check::check;
pub(crate) use plain::{Known, clear, clear_bits, step};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// Which of the two parties.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It garbles.
    Garbler,
    /// It evaluates.
    Evaluator,
}

impl Role {
    /// Its number in tweaks.
    pub const fn number(self) -> u64 {
        match self {
            Role::Garbler => 0,
            Role::Evaluator => 1,
        }
    }

    /// The role of the other party.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Role::Garbler => Role::Evaluator,
            Role::Evaluator => Role::Garbler,
        }
    }

    /// What it adds for a public 1 under its offset: to its MAC as the garbler, to its key as the evaluator.
    pub const fn one(self, offset: u128) -> u128 {
        match self {
            Role::Garbler => 1,
            Role::Evaluator => offset ^ 1,
        }
    }

    /// The other one's number in tweaks.
    pub const fn other(self) -> u64 {
        1 - self.number()
    }
}

/// What a public 1 adds to the values of a program ([`Ag::Masks`]).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum One {
    /// Nothing: labels, keys of the garbler, MACs of the evaluator, Λ.
    Nothing,
    /// 1: MACs of the garbler.
    Unit,
    /// Δ ⊕ 1: keys of the evaluator.
    Offset(KeyId),
}

/// A step of authenticated garbling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ag {
    /// dst 0 = src 0 with this bit replaced by src 1, bits; without src 1 by 0.
    Pin {
        /// 0 or 1.
        bit: u8,
    },
    /// dst 0, blocks, = the bits of src 0 as the numbers 0 and 1.
    Expand,
    /// dst 0, bits, = this bit of the XOR of the sources.
    Bits {
        /// 0 or 1.
        bit: u8,
    },
    /// dst 0 = G. src: K\[a\], M\[b\], K\[b\]. calls: the start point, whose `first` is the number of candidate 0 of column 0.
    Offer {
        /// The key that is the party's Δ.
        offset: KeyId,
        /// The party.
        role: Role,
    },
    /// dst: S, and bits d. src: M\[a\], K\[a\], M\[b\], K\[b\], M\[r\], K\[r\], and the other party's G. calls: as there.
    Take {
        /// The key that is the party's Δ.
        offset: KeyId,
        /// The party.
        role: Role,
    },
    /// src: bits d of both parties. dst: S, which becomes L; M\[r\] at the garbler, K\[r\] at the evaluator, which becomes that of c.
    Settle {
        /// The key that is the party's Δ.
        offset: KeyId,
        /// The party.
        role: Role,
    },
    /// dst 0, one item of 16 bytes, = POLYVAL (RFC 8452, without the length) under a challenge of the XOR of the sources, all blocks in order. src: the challenge,
    /// one item whose first 16 bytes it is, arrays; where there is an offset, first bits v, for which v Δ is added to the blocks.
    Fold {
        /// The key that is the party's Δ.
        offset: Option<KeyId>,
    },
    /// dst 0 = src 0 ⊕ s Δ, with s in src 1; each one item of 16 bytes. What a fold of MACs must be, by the fold of keys and the fold of parts, which are
    /// the numbers 0 and 1; the product is that of POLYVAL's field, in which block 1 is the number 1.
    Expect {
        /// The key that is the party's Δ.
        offset: KeyId,
    },
    /// dst 0 = src 1 rotated, column by column: block i is block (i + s) mod n, for the shift s of the layer ([`shift`]) that follows from src 0, a digest of 32 bytes.
    Rotate {
        /// Number of the layer.
        layer: u32,
    },
    /// Adds a layer to products. src: bits d of both parties, M\[a\], K\[a\], M\[c\], K\[c\] of the layer. dst: M\[a\], K\[a\], M\[c\], K\[c\], which become those of
    /// a ⊕ a' and c ⊕ c' ⊕ d a'.
    Absorb,
    /// dst: M and K of σ ⊕ λ_γ. src: bits ε of both parties, bits δ of both; M\[a\], K\[a\], M\[b\], K\[b\], M\[c\], K\[c\] of the products, M\[λ_γ\], K\[λ_γ\].
    Spend {
        /// The key that is the party's Δ.
        offset: KeyId,
        /// The party.
        role: Role,
    },
    /// dst 0: at the garbler the MACs of τ. src: bits Λ_α, Λ_β; M\[λ_α\], M\[λ_β\], M\[σ ⊕ λ_γ\]. At the evaluator, where there is an offset, what they are if
    /// τ = 0: src: bits Λ_α, Λ_β, Λ_γ; M\[λ_α\], M\[λ_β\], M\[σ ⊕ λ_γ\], K\[λ_α\], K\[λ_β\], K\[σ ⊕ λ_γ\]. Blocks behind those of the gates become zero.
    Gates {
        /// The evaluator's Δ, at the evaluator.
        offset: Option<KeyId>,
        /// Products, each with a block for each row.
        products: u32,
    },
    /// Runs the program on component `part` of its slots: masks, or Λ. Results of products are read, and operands written: src 0: results. dst: first operands, second
    /// operands. Row r of product p is block (at + p) R + r of R rows. Blocks of no product stay, but all that are behind become zero where `at` is 0.
    Masks {
        /// Component of the slots.
        part: u8,
        /// Products before product 0.
        at: u32,
        /// Public constants.
        one: One,
    },
    /// Runs the program as the garbler on component 0 of its slots. src: M\[λ_α\], K\[λ_α\], M\[λ_β\], K\[λ_β\], M\[σ ⊕ λ_γ\], K\[σ ⊕ λ_γ\]. dst: tables, two labels for each
    /// product, counted from the first of the span; bits z; labels of results. calls: the start point of the hash, as of half-gates ([`garble`](crate::garble)). Blocks are
    /// as in [`Ag::Masks`]; bits before product 0 stay, and those behind the last become zero.
    Garble {
        /// Products before product 0.
        at: u32,
        /// The key that is Δ_A; its bits 0 and 1 are 1.
        offset: KeyId,
    },
    /// The same as the evaluator. src: tables; bits z; M\[λ_α\], M\[λ_β\], M\[σ ⊕ λ_γ\]. dst: labels of results; bits Λ_α, Λ_β, Λ_γ.
    Evaluate {
        /// Products before product 0.
        at: u32,
    },
}

impl Ag {
    /// The key that is Δ, of a step that needs one beside a program.
    pub(crate) const fn offset(self) -> Option<KeyId> {
        match self {
            Ag::Offer { offset, .. }
            | Ag::Take { offset, .. }
            | Ag::Settle { offset, .. }
            | Ag::Spend { offset, .. }
            | Ag::Garble { offset, .. }
            | Ag::Expect { offset }
            | Ag::Masks {
                one: One::Offset(offset),
                ..
            } => Some(offset),
            Ag::Fold { offset } | Ag::Gates { offset, .. } => offset,
            _ => None,
        }
    }
}

/// The shift of layer `layer` of `blocks` blocks: LE128 of AES-128 under the first 16 bytes of the digest, of LE128 of the layer, modulo
/// the number of blocks. No shift is more than blocks · 2^-128 likelier than another.
pub fn shift(digest: &[u8; 32], layer: u32, blocks: usize) -> usize {
    use aes::cipher::{BlockCipherEncrypt, KeyInit};
    let (key, _) = digest.split_first_chunk::<BLOCK>().expect("32 bytes");
    let mut block = u128::from(layer).to_le_bytes().into();
    aes::Aes128::new(&(*key).into()).encrypt_block(&mut block);
    (u128::from_le_bytes(block.into()) % blocks.max(1) as u128) as usize
}
