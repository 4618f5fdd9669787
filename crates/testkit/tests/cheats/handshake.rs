//! Cheats in the handshake.

use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::Kind;
use veil_testkit::sample::{everything, peer};

use super::{Case, OWNER, RECIPIENT, ROWS, in_eights};
use crate::common::Found;

fn set_up(by: Peer, peer: Peer, what: &'static str) -> Found {
    Found::SetUp { by, peer, what }
}

/// `bytes` with bit 0 of byte `at` changed.
fn flip_at(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1;
    bytes
}

pub(crate) fn cases() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let everyone = [p2, OWNER, Peer::Owner(1), RECIPIENT, Peer::Recipient(1)];
    let case = |name, kind, from, to, change, found| Case {
        name,
        world: in_eights(everything(Ring::Z64, ROWS)),
        chunk: 0,
        kind,
        from,
        to,
        change,
        found,
    };
    let nonces = "was told other nonces by another party";
    let keys = "does not hold the same keys: an attacker sits between the two ends";
    let plan = "runs another plan: compare job files, versions, lanes, and --protocol, --adversary and --output";
    let mut told = vec![set_up(p0, p1, nonces), set_up(p1, p0, nonces)];
    told.extend(everyone.map(|by| set_up(by, p0, nonces)));
    vec![
        case(
            "a party with another plan",
            Kind::Hello,
            p1,
            p0,
            |b| flip_at(b, 64),
            vec![set_up(p0, p1, plan)],
        ),
        case(
            "an owner with another plan",
            Kind::Hello,
            OWNER,
            p2,
            |b| flip_at(b, 95),
            vec![set_up(p2, OWNER, plan)],
        ),
        case(
            "a recipient with another plan",
            Kind::Hello,
            RECIPIENT,
            p1,
            |b| flip_at(b, 80),
            vec![set_up(p1, RECIPIENT, plan)],
        ),
        case(
            "a party that tells two nonces",
            Kind::Hello,
            p1,
            p0,
            |b| flip_at(b, 0),
            told,
        ),
        case(
            "a key share that makes the secret known",
            Kind::Hello,
            p1,
            p0,
            |b| [&b[..32], &[0; 32], &b[64..]].concat(),
            vec![set_up(p0, p1, "sent a key share of small order")],
        ),
        case(
            "a man in the middle of two parties",
            Kind::Hello,
            p1,
            p0,
            |b| flip_at(b, 40),
            vec![set_up(p0, p1, keys), set_up(p1, p0, keys)],
        ),
        case(
            "a man in the middle of owner and party",
            Kind::Hello,
            p2,
            OWNER,
            |b| flip_at(b, 40),
            vec![set_up(p2, OWNER, keys), set_up(OWNER, p2, keys)],
        ),
        case(
            "a proof for another session",
            Kind::Proof,
            p2,
            p0,
            |b| flip_at(b, 31),
            vec![set_up(p0, p2, nonces)],
        ),
        case(
            "a wrong proof",
            Kind::Proof,
            p2,
            p0,
            |b| flip_at(b, 32),
            vec![set_up(p0, p2, keys)],
        ),
        case(
            "a recipient's wrong proof",
            Kind::Proof,
            RECIPIENT,
            p1,
            |b| flip_at(b, 63),
            vec![set_up(p1, RECIPIENT, keys)],
        ),
    ]
}
