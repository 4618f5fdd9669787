//! The golden vectors of the PRF: `vectors/prf.json`, written by the Python model.

use serde_json::Value;
use veil_prss::{DomainTag, Prf};
use veil_session::Secret;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../vectors/prf.json")).expect("the vectors are JSON")
}

fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().expect("a string of hex digits").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("hex digits"))
        .collect()
}

fn number<T: TryFrom<u64>>(value: &Value) -> T {
    let number = value.as_u64().expect("a number");
    T::try_from(number).ok().expect("a number in range")
}

fn list(value: &Value) -> &[Value] {
    let list = value.as_array().expect("a list");
    assert!(!list.is_empty(), "an empty list of vectors tests nothing");
    list
}

fn prf(vectors: &Value) -> Prf {
    Prf::new(&Secret::new(
        bytes(&vectors["key"]).try_into().expect("16 bytes"),
    ))
}

#[test]
fn blocks_are_those_of_the_model() {
    let vectors = vectors();
    let prf = prf(&vectors);
    for case in list(&vectors["blocks"]) {
        let counter = case["counter"].as_str().expect("a decimal string");
        let counter = counter.parse().expect("64 bits");
        let tag = DomainTag(number(&case["tag"]));
        let block = prf.block(tag, number(&case["lane"]), counter, number(&case["chunk"]));
        assert_eq!(block[..], bytes(&case["block"]), "{case}");
    }
}

#[test]
fn streams_of_items_are_those_of_the_model() {
    let vectors = vectors();
    let prf = prf(&vectors);
    for case in list(&vectors["streams"]) {
        let want = bytes(&case["stream"]);
        let item: u64 = number(&case["item"]);
        let counter = number::<u64>(&case["first"]) + item * number::<u64>(&case["stride"]);
        let mut stream = vec![0; want.len()];
        let (tag, lane, chunk) = (
            DomainTag(number(&case["tag"])),
            number(&case["lane"]),
            number(&case["chunk"]),
        );
        prf.stream(tag, lane, counter, chunk, &mut stream);
        assert_eq!(stream, want, "{case}");
    }
}

/// A use of which there are several.
type Numbered = fn(u8) -> DomainTag;

#[test]
fn families_have_the_numbers_of_the_model() {
    let vectors = vectors();
    let families = vectors["families"].as_object().expect("an object");
    let ours = [
        ("AND3", DomainTag::AND3),
        ("MUL3", DomainTag::MUL3),
        ("INPUT3", DomainTag::input3(0)),
        ("SHARE3", DomainTag::SHARE3),
        ("RAND3", DomainTag::RAND3),
        ("SUM3", DomainTag::SUM3),
        ("MAC_KEY", DomainTag::MAC_KEY),
        ("JOINT4", DomainTag::joint4(0)),
        ("SUM4", DomainTag::sum4(0)),
        ("CODE4", DomainTag::mac4(0)),
        ("INPUT4", DomainTag::input4(0)),
        ("SHARE4", DomainTag::SHARE4),
        ("RAND4", DomainTag::RAND4),
        ("LIFT3", DomainTag::lift3(0)),
        ("LIFT4", DomainTag::lift4(0)),
        ("TRUNCATE3", DomainTag::truncate3(0)),
        ("DZKP_SHARE", DomainTag::dzkp_share(0)),
        ("DZKP_PMASK", DomainTag::dzkp_p_mask(0)),
        ("DZKP_QMASK", DomainTag::dzkp_q_mask(0)),
        ("DZKP_CHAL", DomainTag::dzkp_challenge(0)),
        ("DZKP_SEED", DomainTag::dzkp_seed(0)),
        ("DZKP_THETA", DomainTag::DZKP_THETA),
        ("DZKP_ROWS", DomainTag::DZKP_WORDS),
        ("PERM3", DomainTag::perm3(0)),
        ("MOVE3", DomainTag::move3(0)),
        ("PERM4", DomainTag::perm4(0)),
        ("MOVE4", DomainTag::move4(0)),
    ];
    for (name, tag) in ours {
        assert_eq!(tag.0, number::<u16>(&families[name]) << 8, "{name}");
    }
    let numbered: [(&str, Numbered); 17] = [
        ("INPUT3", DomainTag::input3),
        ("INPUT4", DomainTag::input4),
        ("JOINT4", DomainTag::joint4),
        ("SUM4", DomainTag::sum4),
        ("CODE4", DomainTag::mac4),
        ("LIFT3", DomainTag::lift3),
        ("LIFT4", DomainTag::lift4),
        ("TRUNCATE3", DomainTag::truncate3),
        ("DZKP_SHARE", DomainTag::dzkp_share),
        ("DZKP_PMASK", DomainTag::dzkp_p_mask),
        ("DZKP_QMASK", DomainTag::dzkp_q_mask),
        ("DZKP_CHAL", DomainTag::dzkp_challenge),
        ("DZKP_SEED", DomainTag::dzkp_seed),
        ("PERM3", DomainTag::perm3),
        ("MOVE3", DomainTag::move3),
        ("PERM4", DomainTag::perm4),
        ("MOVE4", DomainTag::move4),
    ];
    for (name, tag) in numbered {
        for sub in 0..6 {
            let want = number::<u16>(&families[name]) << 8 | u16::from(sub);
            assert_eq!(tag(sub).0, want, "{name}");
        }
    }
    assert_eq!(
        families.len(),
        ours.len(),
        "a family that the crate does not have"
    );
}
