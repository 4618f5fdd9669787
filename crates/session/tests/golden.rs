//! The golden vectors of the key schedule: `vectors/keys.json`, written by the Python model.

use serde_json::Value;
use veil_session::{KeySchedule, Label, PairSecret, Peer, SessionId};

fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().expect("a string of hex digits").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("hex digits"))
        .collect()
}

fn array<const N: usize>(hex: &Value) -> [u8; N] {
    bytes(hex)
        .try_into()
        .expect("as many bytes as the field has")
}

fn peer(hex: &Value) -> Peer {
    Peer::from_bytes(array(hex)).expect("bytes that name a peer")
}

#[test]
fn keys_and_confirmations_are_those_of_the_model() {
    let vectors: Value = serde_json::from_str(include_str!("../../../vectors/keys.json"))
        .expect("the vectors are JSON");
    let cases = vectors["derivations"].as_array().expect("a list");
    assert!(!cases.is_empty(), "an empty list of vectors tests nothing");
    for case in cases {
        let text = |name: &str| case[name].as_str().expect("a string");
        let label = Label {
            protocol: text("protocol"),
            purpose: text("purpose"),
            epoch: case["epoch"]
                .as_u64()
                .and_then(|e| e.try_into().ok())
                .expect("16 bits"),
            run: text("run").parse().expect("64 bits"),
        };
        let secret = PairSecret::combine(&bytes(&case["exporter"]), &array(&case["agreed"]));
        let pair = [peer(&case["pair"][0]), peer(&case["pair"][1])];
        // Either end names itself first.
        for pair in [pair, [pair[1], pair[0]]] {
            let schedule = KeySchedule::new(&SessionId(array(&case["session"])), &secret, pair);
            assert_eq!(
                schedule.derive(label).expose(),
                &array(&case["key"]),
                "{case}"
            );
            assert_eq!(schedule.confirm(label), array(&case["confirm"]), "{case}");
        }
    }
}
