//! Cheats among four parties: attack cases B1 to B6 and B8, and A3, A4 and A7 among them. A participant that gets something from one
//! party is told by another whether it is right.

use veil_job::{Audience, JobSpec};
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{among_four, dot, everything, peer, product};
use veil_testkit::{Kind, flipped};

use super::{Case, Found, OWNER, RECIPIENT, ROWS, check, in_eights};

const JOINT: &str = "a joint message of a product";
const INPUT: &str = "a party's shares";

/// The joint messages of a product in even chunks, and those that change places in odd ones: name, chunk, sender, receiver, voucher. What
/// one party sends to another in a round is all changed: from 0 to 3 that is two messages.
const MESSAGES: [(&str, u32, u8, u8, u8); 7] = [
    ("B1: a product to party 3", 2, 0, 3, 1),
    ("B2: a product to party 0", 2, 1, 0, 2),
    ("B3: a product to party 1", 2, 2, 1, 3),
    ("B4: a product to party 2", 2, 3, 2, 0),
    ("B6: a product to party 2", 2, 1, 2, 3),
    ("B1: a product in odd chunks", 1, 1, 3, 0),
    ("B5: a product in odd chunks", 1, 2, 3, 0),
];

/// Adds 2^(k-1) to one element, that of the last row.
fn shifted(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 0x80;
    }
    bytes
}

/// Every bit of every element changes.
fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

pub(crate) fn cases() -> Vec<Case> {
    let [p0, p1, p2, p3] = [0, 1, 2, 3].map(peer);
    let case = |name, chunk, kind, from, to, found: Vec<Found>| Case {
        name,
        world: in_eights(among_four(everything(Ring::Z64, ROWS))),
        chunk,
        kind,
        from,
        to,
        change: flipped,
        found,
    };
    let joint = |by, round, sender, voucher| vec![check(by, round, &[sender, voucher], JOINT)];
    // The two holders of what a party made explicit.
    let compared = |kind, supplier, [a, b]: [Peer; 2], what| {
        let found = |by, other| check(by, kind, &[supplier, other], what);
        vec![found(a, b), found(b, a)]
    };
    let (code, job_mac) = (Kind::Mac, Kind::JobMac);
    let mut cases = Vec::new();
    for (name, chunk, from, to, voucher) in MESSAGES {
        let [from, to, voucher] = [from, to, voucher].map(peer);
        for change in [flipped, shifted, inverted] {
            let found = joint(to, code, from, voucher);
            cases.push(Case {
                change,
                ..case(name, chunk, Kind::Product, from, to, found)
            });
        }
    }
    cases.extend([
        case(
            "a sum of products",
            2,
            Kind::SumProduct,
            p2,
            p1,
            joint(p1, code, p2, p3),
        ),
        case(
            "a product of values per job",
            0,
            Kind::JobProduct,
            p1,
            p0,
            joint(p0, job_mac, p1, p2),
        ),
        case(
            "the code of a product",
            2,
            code,
            p2,
            p0,
            joint(p0, code, p1, p2),
        ),
        case(
            "the code of values per job",
            0,
            job_mac,
            p3,
            p1,
            joint(p1, job_mac, p2, p3),
        ),
        case(
            "B8: other rows of a party",
            2,
            Kind::PartyInput,
            p0,
            p3,
            compared(Kind::PartyDigest, p0, [p1, p3], INPUT),
        ),
        case(
            "B8: another value per job of a party",
            0,
            Kind::PartyJobInput,
            p2,
            p1,
            compared(Kind::PartyJobDigest, p2, [p1, p3], INPUT),
        ),
        case(
            "a wrong digest of a party's rows",
            2,
            Kind::PartyDigest,
            p1,
            p3,
            vec![check(p3, Kind::PartyDigest, &[p0, p1], INPUT)],
        ),
        case(
            "a wrong digest of a party's value per job",
            0,
            Kind::PartyJobDigest,
            p3,
            p1,
            vec![check(p1, Kind::PartyJobDigest, &[p2, p3], INPUT)],
        ),
        case(
            "another key of three parties",
            0,
            Kind::Seeds,
            p1,
            p2,
            compared(Kind::SeedDigest, p1, [p2, p3], "a key of three parties"),
        ),
        case(
            "A4: another seed of an owner",
            0,
            Kind::Seeds,
            OWNER,
            p3,
            [(p1, p3), (p2, p3), (p3, p1)]
                .map(|(by, other)| check(by, Kind::SeedDigest, &[OWNER, other], "an owner's seed"))
                .to_vec(),
        ),
        case(
            "a wrong digest of a seed",
            0,
            Kind::SeedDigest,
            p3,
            p2,
            vec![check(p2, Kind::SeedDigest, &[OWNER, p3], "an owner's seed")],
        ),
        case(
            "A7: another list",
            0,
            Kind::List,
            p3,
            p1,
            vec![check(p1, Kind::List, &[p3], "the list of accepted inputs")],
        ),
        case(
            "no agreement",
            2,
            Kind::Agreement,
            p3,
            p0,
            vec![check(p0, Kind::Agreement, &[p3], "the agreement to open")],
        ),
    ]);
    // Party i lacks u_i, gets it from the one before, and its digest from the one after; a recipient from one holder and two others.
    let opened = |job: JobSpec, chunk, kind, from, to, found| Case {
        world: in_eights(among_four(job)),
        ..case("A3: an opening", chunk, kind, from, to, found)
    };
    let out = Audience::Recipient(0);
    for (value, digest, chunk, job) in [
        (
            Kind::Opened,
            Kind::OpenedDigest,
            2,
            product as fn(Ring, u64, Audience) -> JobSpec,
        ),
        (Kind::Total, Kind::TotalDigest, 4, dot),
    ] {
        let job = |audience| job(Ring::Z64, 20, audience);
        let by = |by, suspects: &[Peer]| check(by, value, suspects, "an opened component");
        let [all, out] = [Audience::Parties, out].map(job);
        cases.extend([
            opened(all.clone(), chunk, value, p2, p3, vec![by(p3, &[p2, p0])]),
            opened(all, chunk, digest, p1, p0, vec![by(p0, &[p3, p1])]),
            opened(
                out.clone(),
                chunk,
                value,
                p1,
                RECIPIENT,
                vec![by(RECIPIENT, &[p1, p2])],
            ),
            opened(
                out,
                chunk,
                digest,
                p3,
                RECIPIENT,
                vec![by(RECIPIENT, &[p1, p3])],
            ),
        ]);
    }
    // Three hold it: a party that got another one differs from both others, and they from it.
    for (to, first) in [(p0, p1), (p1, p0), (p2, p0)] {
        let what = "an owner's shares";
        let others = [p0, p1, p2].into_iter().filter(|by| *by != to);
        let others = others.map(|by| check(by, Kind::OwnerDigest, &[OWNER, to], what));
        let own = check(to, Kind::OwnerDigest, &[OWNER, first], what);
        let found = others.chain([own]).collect();
        cases.push(case(
            "B8: other rows of an owner",
            1,
            Kind::OwnerInput,
            OWNER,
            to,
            found,
        ));
    }
    cases
}
