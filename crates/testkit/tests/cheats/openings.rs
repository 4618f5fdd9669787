//! Cheats in openings and in the agreement before them: attack case A3, for each kind of audience.

use veil_job::Audience;
use veil_math::Ring;
use veil_testkit::sample::{dot, party, peer, product};
use veil_testkit::{Kind, flipped};

use super::{Case, RECIPIENT, check, in_eights};

pub(crate) fn cases() -> Vec<Case> {
    let [p0, p1, p2] = [0, 1, 2].map(peer);
    let opened = "an opened component";
    let agreement = "the agreement to open";
    let case = |name, job, chunk, kind, from, to, found| Case {
        name,
        world: in_eights(job),
        chunk,
        kind,
        from,
        to,
        change: flipped,
        found,
    };
    let rows = |audience| product(Ring::Z64, 20, audience);
    let sums = |audience| dot(Ring::Z64, 20, audience);
    let [all, one, out] = [
        Audience::Parties,
        Audience::Party(party(1)),
        Audience::Recipient(0),
    ];
    let at_party = |kind| vec![check(p1, kind, &[p0, p2], opened)];
    let at_recipient = |kind, holder, other| vec![check(RECIPIENT, kind, &[holder, other], opened)];
    // Party 1 misses u_2: party 0 sends it, party 2 its digest. A recipient gets u_0 from party 0 and its digest from party 1.
    let mut cases = vec![
        case(
            "no agreement",
            rows(all),
            2,
            Kind::Agreement,
            p1,
            p2,
            vec![check(p2, Kind::Agreement, &[p1], agreement)],
        ),
        // The chunk after the last is that of the totals.
        case(
            "no agreement on sums",
            sums(all),
            4,
            Kind::Agreement,
            p0,
            p1,
            vec![check(p1, Kind::Agreement, &[p0], agreement)],
        ),
        case(
            "A3: to a recipient",
            rows(out),
            2,
            Kind::Opened,
            p0,
            RECIPIENT,
            at_recipient(Kind::Opened, p0, p1),
        ),
        case(
            "A3: digest to a recipient",
            rows(out),
            1,
            Kind::OpenedDigest,
            p0,
            RECIPIENT,
            at_recipient(Kind::Opened, p2, p0),
        ),
        case(
            "A3: sum to a recipient",
            sums(out),
            4,
            Kind::Total,
            p2,
            RECIPIENT,
            at_recipient(Kind::Total, p2, p0),
        ),
        case(
            "A3: digest of a sum to a recipient",
            sums(out),
            4,
            Kind::TotalDigest,
            p2,
            RECIPIENT,
            at_recipient(Kind::Total, p1, p2),
        ),
    ];
    for audience in [all, one] {
        cases.extend([
            case(
                "A3: to a party",
                rows(audience),
                3,
                Kind::Opened,
                p0,
                p1,
                at_party(Kind::Opened),
            ),
            case(
                "A3: digest to a party",
                rows(audience),
                1,
                Kind::OpenedDigest,
                p2,
                p1,
                at_party(Kind::Opened),
            ),
            case(
                "A3: sum to a party",
                sums(audience),
                4,
                Kind::Total,
                p0,
                p1,
                at_party(Kind::Total),
            ),
            case(
                "A3: digest of a sum to a party",
                sums(audience),
                4,
                Kind::TotalDigest,
                p2,
                p1,
                at_party(Kind::Total),
            ),
        ]);
    }
    cases
}
