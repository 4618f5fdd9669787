//! Cheats over inputs: attack cases A4 and A7, and the digests that find them.

use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{everything, peer};
use veil_testkit::{Kind, flipped};

use super::{Case, OWNER, ROWS, check, in_eights};

pub(crate) fn cases() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let case = |name, chunk, kind, from, to, found| Case {
        name,
        world: in_eights(everything(Ring::Z64, ROWS)),
        chunk,
        kind,
        from,
        to,
        change: flipped,
        found,
    };
    let (seed, shares) = ("an owner's seed", "an owner's shares");
    let seeds = |a, b| {
        vec![
            check(a, Kind::SeedDigest, &[OWNER, b], seed),
            check(b, Kind::SeedDigest, &[OWNER, a], seed),
        ]
    };
    let components = |owner, kind| {
        vec![
            check(p0, kind, &[owner, p2], shares),
            check(p2, kind, &[owner, p0], shares),
        ]
    };
    vec![
        case(
            "A4: another seed 0 for party 0",
            0,
            Kind::Seeds,
            OWNER,
            p0,
            seeds(p0, p1),
        ),
        case(
            "A4: another seed 0 for party 1",
            0,
            Kind::Seeds,
            OWNER,
            p1,
            seeds(p0, p1),
        ),
        case(
            "A4: another seed 1 for party 2",
            0,
            Kind::Seeds,
            OWNER,
            p2,
            seeds(p1, p2),
        ),
        case(
            "a party's wrong digest of a seed",
            0,
            Kind::SeedDigest,
            p0,
            p1,
            vec![check(p1, Kind::SeedDigest, &[OWNER, p0], seed)],
        ),
        case(
            "A7: another list",
            0,
            Kind::List,
            p2,
            p1,
            vec![check(p1, Kind::List, &[p2], "the list of accepted inputs")],
        ),
        case(
            "A4: another value per job for party 0",
            0,
            Kind::OwnerJobInput,
            OWNER,
            p0,
            components(OWNER, Kind::OwnerJobDigest),
        ),
        case(
            "A4: another value per job for party 2",
            0,
            Kind::OwnerJobInput,
            OWNER,
            p2,
            components(OWNER, Kind::OwnerJobDigest),
        ),
        case(
            "a party's wrong digest of values per job",
            0,
            Kind::OwnerJobDigest,
            p2,
            p0,
            vec![check(p0, Kind::OwnerJobDigest, &[OWNER, p2], shares)],
        ),
        case(
            "A4: other rows for party 0",
            2,
            Kind::OwnerInput,
            Peer::Owner(1),
            p0,
            components(Peer::Owner(1), Kind::OwnerDigest),
        ),
        case(
            "A4: other rows for party 2",
            3,
            Kind::OwnerInput,
            OWNER,
            p2,
            components(OWNER, Kind::OwnerDigest),
        ),
        case(
            "a party's wrong digest of rows",
            2,
            Kind::OwnerDigest,
            p0,
            p2,
            vec![check(p2, Kind::OwnerDigest, &[OWNER, p0], shares)],
        ),
    ]
}
