//! Cheats in the comparison of the order of rows: attack case G5 and its like. Owners 0 and 1 hold the block, party 0 is the judge.

use veil_program::Holder;
use veil_session::Peer;
use veil_testkit::sample::peer;
use veil_testkit::{Kind, flipped};

use super::{Case, OWNER};
use crate::common::{Found, SAME, ordered};

pub(crate) fn cases() -> Vec<Case> {
    let other = Peer::Owner(1);
    let judge = peer(0);
    let differ = |first, rows| {
        [OWNER, other, judge]
            .map(|by| Found::Misaligned { by, first, rows })
            .to_vec()
    };
    let case = |name, from_part, kind, from, to, change, found| Case {
        name,
        world: ordered(&[Holder::Owner(0), Holder::Owner(1)], &[SAME, from_part], 1),
        chunk: 0,
        kind,
        from,
        to,
        change,
        found,
    };
    vec![
        case(
            "an owner that says another order than its own",
            SAME,
            Kind::Order,
            other,
            judge,
            flipped,
            differ(0, 4),
        ),
        case(
            "G5: a judge that says that rows differ which are not there",
            SAME,
            Kind::OrderAnswer,
            judge,
            OWNER,
            |_| vec![2, 0, 0, 0],
            vec![Found::SetUp {
                by: OWNER,
                peer: judge,
                what: "says that rows differ which the block does not have",
            }],
        ),
        // Its one byte says nothing but that it was sent.
        case(
            "an owner that says that it heard otherwise",
            1,
            Kind::OrderHeard,
            OWNER,
            judge,
            flipped,
            differ(4, 3),
        ),
    ]
}
