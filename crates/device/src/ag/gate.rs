//! Gates and candidates, one at a time, as they are defined.

use super::Role;
use crate::garble::hash;

/// All bits of a block, or none.
pub(crate) const fn all(bit: u128) -> u128 {
    (bit & 1).wrapping_neg()
}

/// What both parties have of a candidate: where its hash starts, and its number.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) start: u128,
    pub(crate) number: u64,
}

impl Candidate {
    fn hash(self, role: u64, x: u128) -> u128 {
        hash(self.start, 2 * self.number + role, x)
    }

    /// G of K\[a\] and of C.
    pub(crate) fn offer(self, role: Role, offset: u128, key: u128, c: u128) -> u128 {
        let role = role.number();
        self.hash(role, key) ^ self.hash(role, key ^ offset) ^ c
    }

    /// What S has of M\[a\], K\[a\], C and the other party's G.
    pub(crate) fn take(self, role: Role, [mac, key]: [u128; 2], c: u128, offer: u128) -> u128 {
        let theirs = self.hash(role.other(), mac) ^ (all(mac) & (offer ^ c));
        self.hash(role.number(), key) ^ theirs
    }
}

/// C of a party, from M\[b\] and K\[b\].
pub(crate) const fn sum(offset: u128, [mac, key]: [u128; 2]) -> u128 {
    (all(mac) & offset) ^ mac ^ key
}

/// A gate at either party: where its hash starts, and its number.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    pub(crate) start: u128,
    pub(crate) number: u64,
}

/// Bit 1 of a block.
pub(crate) const COLOUR: u128 = 2;

impl Gate {
    fn hash(self, x: u128, k: u64) -> u128 {
        hash(self.start, 2 * self.number + k, x)
    }

    /// The label of the result, G_0 and G_1, and z. `masks` are M and K of λ_α, λ_β, σ ⊕ λ_γ.
    pub(crate) fn garble(
        self,
        offset: u128,
        [a, b]: [u128; 2],
        masks: [[u128; 2]; 3],
    ) -> (u128, [u128; 2], u128) {
        let [alpha, beta, gamma] = masks.map(|[mac, key]| (all(mac) & offset) ^ key);
        let [a0, a1] = [a, a ^ offset].map(|x| self.hash(x, 0));
        let [b0, b1] = [b, b ^ offset].map(|x| self.hash(x, 1));
        let c = a0 ^ b0 ^ gamma;
        let tables = [a0 ^ a1 ^ beta, b0 ^ b1 ^ a ^ alpha];
        (c & !COLOUR, tables, c >> 1 & 1)
    }

    /// The active label of the result. `masks` are M of λ_α, λ_β, σ ⊕ λ_γ.
    pub(crate) fn evaluate(
        self,
        [a, b]: [u128; 2],
        [g0, g1]: [u128; 2],
        z: u128,
        [alpha, beta, gamma]: [u128; 3],
    ) -> u128 {
        let of_a = all(a >> 1) & (g0 ^ beta);
        let of_b = all(b >> 1) & (g1 ^ a ^ alpha);
        self.hash(a, 0) ^ self.hash(b, 1) ^ of_a ^ of_b ^ gamma ^ (z & 1) << 1
    }
}
