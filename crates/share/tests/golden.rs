//! The golden vectors of sharing: `vectors/share.json`, written by the Python model.

use serde_json::Value;
use veil_math::Ring;
use veil_share::rep3::{self, PairShare};

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../vectors/share.json")).expect("the vectors are JSON")
}

fn list(value: &Value) -> &[Value] {
    let list = value.as_array().expect("a list");
    assert!(!list.is_empty(), "an empty list of vectors tests nothing");
    list
}

fn ring(case: &Value) -> Ring {
    match case["ring"].as_str() {
        Some("bits") => Ring::Bits,
        Some("z64") => Ring::Z64,
        Some("z128") => Ring::Z128,
        other => panic!("the ring {other:?} is none of ours"),
    }
}

/// The elements of a column, padding bits of a last byte too.
fn elements(ring: Ring, hex: &Value) -> Vec<u128> {
    let digits = hex.as_str().expect("a string of hex digits").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16);
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| byte(pair).expect("hex digits"))
        .collect();
    match ring {
        Ring::Bits => bytes
            .iter()
            .flat_map(|b| (0..8).map(move |i| u128::from(b >> i & 1)))
            .collect(),
        Ring::Z32 | Ring::Z64 | Ring::Z128 => {
            let element = |bytes: &[u8]| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |sum, b| sum << 8 | u128::from(*b))
            };
            bytes.chunks(ring.bytes(1) as usize).map(element).collect()
        }
    }
}

/// One column per component or party.
fn three(ring: Ring, columns: &Value) -> [Vec<u128>; 3] {
    std::array::from_fn(|i| elements(ring, &columns[i]))
}

#[test]
fn formats_and_openings_are_those_of_the_model() {
    for case in list(&vectors()["formats"]) {
        let ring = ring(case);
        let [u, x, a, opening] =
            ["components", "x", "a", "opening"].map(|name| three(ring, &case[name]));
        let (value, opened) = (
            elements(ring, &case["value"]),
            elements(ring, &case["opened"]),
        );
        for t in 0..value.len() {
            let shares = rep3::from_components([u[0][t], u[1][t], u[2][t]]);
            for i in 0..3 {
                let pair = PairShare {
                    x: x[i][t],
                    a: a[i][t],
                };
                assert!(
                    rep3::to_pair_format(ring, shares[i]) == pair,
                    "{ring:?}, party {i}, row {t}"
                );
                assert!(
                    rep3::from_pair_format(ring, pair) == shares[i],
                    "{ring:?}, party {i}, row {t}"
                );
                // What P_i sends to P_{i+1}, and what that one makes of it.
                assert_eq!(shares[i].previous, opening[i][t]);
                let next = shares[(i + 1) % 3];
                let sum = ring.add(ring.add(next.own, next.previous), opening[i][t]);
                assert_eq!(sum, opened[t], "{ring:?}, party {i}, row {t}");
            }
            assert_eq!(rep3::join(ring, shares), Ok(value[t]), "{ring:?}, row {t}");
        }
    }
}

/// An outside owner's sharing is a split by what its two seeds draw.
#[test]
fn splits_are_those_of_the_model() {
    for case in list(&vectors()["owner_input"]) {
        let ring = ring(case);
        for column in list(&case["columns"]) {
            let (value, u) = (
                elements(ring, &column["value"]),
                three(ring, &column["components"]),
            );
            for t in 0..value.len() {
                let shares = rep3::split(ring, value[t], [u[0][t], u[1][t]]);
                assert!(
                    shares == rep3::from_components([u[0][t], u[1][t], u[2][t]]),
                    "{ring:?}, row {t}"
                );
            }
        }
    }
}

#[test]
fn every_sharing_of_the_model_joins_to_its_value() {
    let vectors = vectors();
    let columns = ["party_input", "owner_input"]
        .into_iter()
        .flat_map(|name| list(&vectors[name]))
        .flat_map(|case| {
            let ring = ring(case);
            list(&case["columns"])
                .iter()
                .map(move |column| (ring, column))
        });
    let random = list(&vectors["random"])
        .iter()
        .map(|case| (ring(case), case));
    for (ring, sharing) in columns.chain(random) {
        let (value, u) = (
            elements(ring, &sharing["value"]),
            three(ring, &sharing["components"]),
        );
        for t in 0..value.len() {
            let shares = rep3::from_components([u[0][t], u[1][t], u[2][t]]);
            assert_eq!(rep3::join(ring, shares), Ok(value[t]), "{ring:?}, row {t}");
        }
    }
}
