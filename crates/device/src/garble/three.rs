//! Three-halves.

use super::{Table, colour};

/// The low half of a hash, and its bit 64.
fn split(hash: u128) -> (u64, u8) {
    (hash as u64, (hash >> 64) as u8 & 1)
}

/// A bit in all bits of a half label.
fn every(bit: u8) -> u64 {
    u64::from(bit & 1).wrapping_neg()
}

fn halves(label: u128) -> [u64; 2] {
    [(label >> 64) as u64, label as u64]
}

fn label([left, right]: [u64; 2]) -> u128 {
    u128::from(left) << 64 | u128::from(right)
}

/// Y of labels with colours j, k, from the low halves of the hashes of A, B, A ⊕ B, and the control bits r, r'.
fn target([a, b]: [u128; 2], hashes: [u64; 3], [r, s]: [u8; 2]) -> u128 {
    let (j, k) = (a as u8 & 1, b as u8 & 1);
    let ([al, ar], [bl, br]) = (halves(a), halves(b));
    let (r, s) = (every(r), every(s));
    let [ha, hb, hx] = hashes;
    label([
        ha ^ hx ^ (r & (al ^ ar ^ bl)) ^ (s & (al ^ br)) ^ (every(1 ^ j) & bl),
        hb ^ hx ^ (r & (al ^ br)) ^ (s & (ar ^ bl ^ br)) ^ (every(1 ^ k) & ar),
    ])
}

/// `hash` of a label and a tweak of the gate.
pub(super) fn garble(
    hash: impl Fn(u128, u64) -> u128,
    offset: u128,
    [a, b]: [u128; 2],
    dice: u8,
) -> (u128, Table) {
    let (a0, b0) = (a ^ (colour(a) & offset), b ^ (colour(b) & offset));
    let (one_a, one_b) = (1 ^ (a as u8 & 1), 1 ^ (b as u8 & 1));
    let both = |x: u128, tweak| [x, x ^ offset].map(|x| split(hash(x, tweak)));
    let (ha, hb, hx) = (both(a0, 0), both(b0, 1), both(a0 ^ b0, 2));
    let (rho, sigma) = (dice & 1, dice >> 1 & 1);
    let y = |j: u8, k: u8| {
        let of = |x: u128, colour: u8| x ^ (u128::from(colour).wrapping_neg() & offset);
        let x = usize::from(j ^ k);
        let hashes = [ha[usize::from(j)].0, hb[usize::from(k)].0, hx[x].0];
        let control = match (j, k) {
            (0, 0) => [rho, sigma],
            (0, _) => [rho ^ one_a ^ one_b, sigma ^ one_a],
            (_, 0) => [rho ^ one_b, sigma ^ one_a ^ one_b],
            _ => [rho ^ one_a, sigma ^ one_b],
        };
        let is_one = u64::from(1 ^ j ^ one_a) & u64::from(1 ^ k ^ one_b);
        let one = u128::from(is_one).wrapping_neg() & offset;
        target([of(a0, j), of(b0, k)], hashes, control) ^ one
    };
    let c = y(0, 0);
    let [right, both] = [y(0, 1) ^ c, y(1, 1) ^ c];
    debug_assert_eq!(y(1, 0) ^ c, {
        let [[g0, g1], [g2, _]] = [both, right].map(halves);
        debug_assert_eq!(halves(right)[1], g1 ^ g2);
        label([g0 ^ g2, g2])
    });
    let [g0, g1] = halves(both);
    let [g2, _] = halves(right);
    let z = [
        rho ^ ha[0].1 ^ hx[0].1,
        sigma ^ hb[0].1 ^ hx[0].1,
        one_a ^ ha[0].1 ^ ha[1].1,
        one_b ^ hb[0].1 ^ hb[1].1,
        one_a ^ one_b ^ hx[0].1 ^ hx[1].1,
    ];
    let table = Table {
        labels: [g0, g1, g2].map(u128::from),
        bits: (0..).zip(z).fold(0, |bits, (k, z)| bits | z << k),
    };
    (c, table)
}

pub(super) fn evaluate(hash: impl Fn(u128, u64) -> u128, [a, b]: [u128; 2], table: &Table) -> u128 {
    let (j, k) = (a as u8 & 1, b as u8 & 1);
    let x = j ^ k;
    let [(ha, ea), (hb, eb), (hx, ex)] =
        [(a, 0), (b, 1), (a ^ b, 2)].map(|(label, tweak)| split(hash(label, tweak)));
    let z = |bit: u8| table.bits >> bit & 1;
    let r = z(0) ^ (j & z(2)) ^ (x & z(4)) ^ ea ^ ex;
    let s = z(1) ^ (k & z(3)) ^ (x & z(4)) ^ eb ^ ex;
    let [g0, g1, g2] = table.labels.map(|g| g as u64);
    let (j, k, x) = (every(j), every(k), every(x));
    target([a, b], [ha, hb, hx], [r, s]) ^ label([(j & g0) ^ (x & g2), (k & g1) ^ (x & g2)])
}
