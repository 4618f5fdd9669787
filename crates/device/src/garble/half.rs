//! Half-gates.

use super::{Table, colour};

/// `hash` of a label and a tweak of the gate.
pub(super) fn garble(
    hash: impl Fn(u128, u64) -> u128,
    offset: u128,
    [a, b]: [u128; 2],
) -> (u128, Table) {
    let [a0, a1] = [a, a ^ offset].map(|x| hash(x, 0));
    let [b0, b1] = [b, b ^ offset].map(|x| hash(x, 1));
    let (p, q) = (colour(a), colour(b));
    let garbler = a0 ^ a1 ^ (q & offset);
    let evaluator = b0 ^ b1 ^ a;
    let c = a0 ^ (p & garbler) ^ b0 ^ (q & (evaluator ^ a));
    let table = Table {
        labels: [garbler, evaluator, 0],
        bits: 0,
    };
    (c, table)
}

pub(super) fn evaluate(hash: impl Fn(u128, u64) -> u128, [a, b]: [u128; 2], table: &Table) -> u128 {
    let [garbler, evaluator, _] = table.labels;
    hash(a, 0) ^ (colour(a) & garbler) ^ hash(b, 1) ^ (colour(b) & (evaluator ^ a))
}
