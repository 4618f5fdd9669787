//! Half-gates.

use super::{Gate, Table, colour};

pub(super) fn garble(gate: &Gate, offset: u128, [a, b]: [u128; 2]) -> (u128, Table) {
    let [a0, a1] = [a, a ^ offset].map(|x| gate.hash(x, 0));
    let [b0, b1] = [b, b ^ offset].map(|x| gate.hash(x, 1));
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

pub(super) fn evaluate(gate: &Gate, [a, b]: [u128; 2], table: &Table) -> u128 {
    let [garbler, evaluator, _] = table.labels;
    gate.hash(a, 0) ^ (colour(a) & garbler) ^ gate.hash(b, 1) ^ (colour(b) & (evaluator ^ a))
}
