//! Cheats among four parties: attack cases B1 to B8. Whoever gets something from one party is told by another whether it is right.

use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{among_four, everything, peer};
use veil_testkit::{Kind, flipped};

use super::{Case, Found, OWNER, ROWS, check, in_eights};

const JOINT: &str = "a joint message of a product";
const INPUT: &str = "a party's shares";

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
    // Holders of what a party or an owner made explicit.
    let compared = |kind, supplier: Peer, holders: &[Peer], what| -> Vec<Found> {
        let pairs = holders
            .iter()
            .flat_map(|a| holders.iter().map(move |b| (*a, *b)));
        let pairs = pairs.filter(|(a, b)| a != b);
        pairs
            .map(|(a, b)| check(a, kind, &[supplier, b], what))
            .collect()
    };
    let (code, job_code) = (Kind::Code, Kind::JobCode);
    let mut cases = vec![
        // Even chunks: senders of the six joint messages, and who vouches.
        case(
            "B1: a product to party 3",
            2,
            Kind::Product,
            p0,
            p3,
            joint(p3, code, p0, p1),
        ),
        case(
            "B2: a product to party 0",
            2,
            Kind::Product,
            p1,
            p0,
            joint(p0, code, p1, p2),
        ),
        case(
            "B3: a product to party 1",
            2,
            Kind::Product,
            p2,
            p1,
            joint(p1, code, p2, p3),
        ),
        case(
            "B4: a product to party 2",
            2,
            Kind::Product,
            p3,
            p2,
            joint(p2, code, p3, p0),
        ),
        case(
            "B6: a product to party 2",
            2,
            Kind::Product,
            p1,
            p2,
            joint(p2, code, p1, p3),
        ),
        // Odd ones: they have changed places.
        case(
            "B1: a product in odd chunks",
            1,
            Kind::Product,
            p1,
            p3,
            joint(p3, code, p1, p0),
        ),
        case(
            "B5: a product in odd chunks",
            1,
            Kind::Product,
            p2,
            p3,
            joint(p3, code, p2, p0),
        ),
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
            joint(p0, job_code, p1, p2),
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
            job_code,
            p3,
            p1,
            joint(p1, job_code, p2, p3),
        ),
        case(
            "B8: other rows of a party",
            2,
            Kind::PartyInput,
            p0,
            p3,
            compared(Kind::PartyDigest, p0, &[p1, p3], INPUT),
        ),
        case(
            "B8: another value per job of a party",
            0,
            Kind::PartyJobInput,
            p2,
            p1,
            compared(Kind::PartyJobDigest, p2, &[p1, p3], INPUT),
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
            compared(Kind::SeedDigest, p1, &[p2, p3], "a key of three parties"),
        ),
    ];
    // Three hold it: whoever got another one differs from both others, and they from it.
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
