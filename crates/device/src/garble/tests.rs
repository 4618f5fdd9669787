//! Every gate, in the clear.

use super::*;

/// Labels of every pair of colours, with every pair of inversions, dice and values: the evaluator gets the label of the AND, the
/// garbler's equations agree with each other (they are asserted), and no two tables are alike.
#[test]
fn every_kind_of_gate_is_an_and() {
    let offset = 0x1f0e_7c55_93aa_0b6d_8812_45f1_3e07_9d31;
    let start = 0x6a09_e667_f3bc_c908_bb67_ae85_84ca_a73b;
    let mut tables = std::collections::BTreeSet::new();
    let mut gates = 0;
    for scheme in Garbling::ALL {
        for case in 0..64u32 {
            let bit = |k: u32| u128::from(case >> k & 1);
            let masked = |b: u128| b.wrapping_neg() & offset;
            // Zero-labels of colours p and q, before inversions of either wire, which swap the labels.
            let a = 0x00ff_3a41_5bc2_9d70_1122_3344_5566_7788 ^ bit(0);
            let b = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834 ^ bit(1);
            let (zero_a, zero_b) = (a ^ masked(bit(2)), b ^ masked(bit(3)));
            let gate = Gate::new(scheme, start, u64::from(case), 7);
            let dice = (case >> 4) as u8;
            let (c, table) = gate.garble(offset, [zero_a, zero_b], dice);
            for values in 0..4 {
                let (x, y) = (values & 1, values >> 1);
                let active = [zero_a ^ masked(x), zero_b ^ masked(y)];
                let got = gate.evaluate(active, &table);
                assert_eq!(got, c ^ masked(x & y), "{scheme:?}, {case}, {x}{y}");
            }
            tables.insert((table.labels, table.bits));
            gates += 1;
        }
    }
    assert_eq!(tables.len(), gates);
}

/// Every tweak of a chunk is another one, also across neighbouring gates and rows.
#[test]
fn tweaks_differ() {
    let mut seen = std::collections::BTreeSet::new();
    for scheme in Garbling::ALL {
        seen.clear();
        for product in [0, 1, 2, 70_000, MOST_PRODUCTS - 1] {
            for row in [0, 1, 2, (1 << ROW_BITS) - 1] {
                let gate = Gate::new(scheme, 0, product, row);
                for k in 0..scheme.tweaks() {
                    let tweak = gate.number.checked_mul(scheme.tweaks());
                    let tweak = tweak.and_then(|tweak| tweak.checked_add(k));
                    assert!(seen.insert(tweak.expect("it fits")), "{product}, {row}");
                }
            }
        }
    }
}

#[test]
fn sigma_is_an_orthomorphism() {
    // Linear, and both it and its sum with the identity are invertible: no single bit, and no pair of bits, is lost.
    let images = |f: fn(u128) -> u128| {
        let mut rows: Vec<u128> = (0..128).map(|k| f(1 << k)).collect();
        let mut rank = 0;
        while let Some(row) = rows.pop() {
            if row == 0 {
                continue;
            }
            rank += 1;
            let low = row & row.wrapping_neg();
            for other in &mut rows {
                if *other & low != 0 {
                    *other ^= row;
                }
            }
        }
        rank
    };
    assert_eq!(images(hash::sigma), 128);
    assert_eq!(images(|x| hash::sigma(x) ^ x), 128);
}
