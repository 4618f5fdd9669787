//! The golden vectors of lifts of bits: `vectors/lifts*.json`, written by the Python model, reproduced by every device.

use serde_json::Value;

use crate::common::vectors::{circuit, list, ring};
use crate::conversions::reproduced;
use veil_circuit::{Gate, Reduce, Wire};

const FILES: [(usize, &str); 2] = [
    (3, include_str!("../../../../vectors/lifts3.json")),
    (4, include_str!("../../../../vectors/lifts4.json")),
];

#[test]
fn lowest_bits_as_integers_are_those_of_the_model() {
    let of = |case: &Value| {
        let count = list(&case["x"]).len() as u32;
        let bits = (0..count).map(|k| Gate::Bit(Wire(k), 0));
        let lifted = (0..count).map(|k| Gate::Lift(Wire(count + k)));
        let outputs = (0..count).map(|k| Wire(2 * count + k)).collect();
        let gates = bits.chain(lifted).collect();
        circuit(ring(case), count, gates, outputs, Reduce::None)
    };
    for file in FILES {
        reproduced(file, of, |case| {
            [&case["x"], &case["results"]].map(|x| list(x).to_vec())
        });
    }
}
