//! Steps of intersections are those of the model.

use serde_json::Value;
use veil_device::{
    ColumnType, Command, Frame, KeyId, Layout, Okvs, Op, Outcome, PrfCall, Psi, Region, Residency,
    Span, Tag,
};
use veil_prss::DomainTag;
use veil_session::Secret;

use crate::common::Kind;
use crate::common::vectors::{bytes, json, list, number};

const OFFSET: KeyId = KeyId(0);
const OWN: KeyId = KeyId(1);
const COMMON: [KeyId; 2] = [KeyId(2), KeyId(3)];

fn vectors() -> Value {
    json(include_str!("../../../vectors/psi.json"))
}

fn store(of: &Value) -> Okvs {
    Okvs {
        bins: number(&of["bins"]),
        sparse: number(&of["sparse"]),
        dense: number(&of["dense"]),
    }
}

#[test]
fn stores_are_those_of_the_model() {
    for of in list(&vectors()["stores"]) {
        assert_eq!(Okvs::of(number(&of["keys"])), store(of), "{of}");
    }
}

/// The golden vectors: `vectors/psi.json`.
#[test]
fn steps_are_those_of_the_model() {
    for case in list(&vectors()["cases"]) {
        for kind in Kind::all() {
            all(case, kind);
        }
    }
}

fn all(case: &Value, kind: Kind) {
    let (okvs, offset) = (store(case), OFFSET);
    let mut layout = Layout {
        chunk_rows: 1,
        regions: vec![],
    };
    // As many items of so many bytes as a field has.
    let mut add = |name: &str, size| {
        let region = layout.add(Region {
            residency: Residency::Mapped,
            column: ColumnType::Bytes(size),
            components: 1,
            count: bytes(&case[name]).len() as u32 / size,
        });
        layout.all(region, 0)
    };
    let keys = ["receiver_keys", "sender_keys"].map(|name| add(name, 32));
    let digests = ["receiver_digests", "sender_digests"].map(|name| add(name, 32));
    let [a, b, c] = ["a", "b", "c"].map(|name| add(name, 16));
    let [w, seed, sent, tags] = ["w", "seed", "sent", "tags"].map(|name| add(name, 16));
    let found = add("found", 1);
    let mut device = kind.device();
    let loaded = [
        (OFFSET, "offset"),
        (OWN, "own"),
        (COMMON[0], "common"),
        (COMMON[1], "common"),
    ];
    for (id, name) in loaded {
        let key = bytes(&case[name]).try_into().expect("16 bytes");
        device.load_key(id, &Secret::new(key)).unwrap();
    }
    let frame = Frame {
        epoch: 0,
        lane: number(&case["lane"]),
        chunk: number(&case["chunk"]),
        rows: 1,
    };
    let workspace = device.open(&layout, frame).unwrap();
    let given = [
        (keys[0], "receiver_keys"),
        (keys[1], "sender_keys"),
        (a, "a"),
        (b, "b"),
        (c, "c"),
        (w, "w"),
    ];
    for (span, name) in given {
        device.write(workspace, span, &bytes(&case[name])).unwrap();
    }
    let step = |step, src: &[Span], dst: &[Span], call: Option<(KeyId, DomainTag)>| {
        let mut command = Command::new(Op::Psi(step), src.to_vec(), dst.to_vec());
        let calls = call.into_iter().map(|(key, tag)| PrfCall {
            key,
            tag,
            first: number(&case["first"]),
        });
        command.calls = calls.collect();
        command
    };
    let salt = |end: usize| Some((COMMON[end], DomainTag::PSI_SALT));
    let commands = [
        step(Psi::Hash, &[keys[0]], &[digests[0]], salt(0)),
        step(Psi::Hash, &[keys[1]], &[digests[1]], salt(1)),
        step(
            Psi::Encode { okvs },
            &[digests[0], c],
            &[seed, sent],
            Some((OWN, DomainTag::PSI_ENCODE)),
        ),
        step(
            Psi::Tags { okvs, offset },
            &[digests[1], b, sent, seed, w],
            &[tags],
            None,
        ),
        step(
            Psi::Match { okvs },
            &[digests[0], a, seed, w, tags],
            &[found],
            None,
        ),
    ];
    device.submit(workspace, &commands, Tag(0)).unwrap();
    let ended = device.poll().unwrap().map(|done| done.outcome);
    assert_eq!(ended, Some(Outcome::Done), "{kind:?}: {okvs:?}");
    let said = [
        (digests[0], "receiver_digests"),
        (digests[1], "sender_digests"),
        (seed, "seed"),
        (sent, "sent"),
        (tags, "tags"),
        (found, "found"),
    ];
    for (span, name) in said {
        let got = device.view(workspace, span).unwrap();
        assert_eq!(got, bytes(&case[name]), "{kind:?}: {okvs:?}: {name}");
    }
}
