//! Cheats in openings of masked values in the middle of a computation: attack case A3, in the round of a layer.

use veil_job::Audience;
use veil_session::Peer;
use veil_testkit::sample::{among_four, peer, word};
use veil_testkit::{Kind, flipped};

use super::{Case, check, in_eights};

pub(crate) fn cases() -> Vec<Case> {
    let [p0, p1, p2, p3] = [0, 1, 2, 3].map(peer);
    let job = || word(20, Audience::Recipient(0));
    let case = |name, job, kind, from, to, other: [Peer; 2]| Case {
        name,
        world: in_eights(job),
        chunk: 2,
        kind,
        from,
        to,
        change: flipped,
        found: vec![check(to, kind, &other, "a masked value")],
    };
    // What party 1 lacks comes from party 0, and its digest from party 2.
    vec![
        case("A3: a masked value", job(), Kind::Masked, p0, p1, [p0, p2]),
        case(
            "A3: its digest",
            job(),
            Kind::MaskedDigest,
            p2,
            p1,
            [p0, p2],
        ),
        case(
            "A3: a masked value among four",
            among_four(job()),
            Kind::Masked,
            p1,
            p2,
            [p1, p3],
        ),
        case(
            "A3: its digest among four",
            among_four(job()),
            Kind::MaskedDigest,
            p3,
            p2,
            [p1, p3],
        ),
    ]
}
