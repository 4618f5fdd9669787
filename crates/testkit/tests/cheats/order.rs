//! Cheats in the comparison of the order of rows: attack case G5 and its like. Owners 0 and 1 hold the block, parties 0 and 1 are
//! the judges.

use veil_job::Holder;
use veil_session::Peer;
use veil_testkit::sample::peer;
use veil_testkit::{Kind, flipped};

use super::{Case, OWNER, check};
use crate::common::{Found, SAME, ordered};

pub(crate) fn cases() -> Vec<Case> {
    let other = Peer::Owner(1);
    let [judge, second] = [0, 1].map(peer);
    let differ = |first, rows| {
        [OWNER, other, judge, second]
            .map(|by| Found::Misaligned { by, first, rows })
            .to_vec()
    };
    let contradiction = |by, holder| {
        let what = "what two judges say of the order of rows";
        check(by, Kind::OrderAnswer, &[judge, second, holder], what)
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
            "an owner that says another order than its own to one judge",
            SAME,
            Kind::Order,
            other,
            judge,
            flipped,
            vec![
                Found::Misaligned {
                    by: judge,
                    first: 0,
                    rows: 4,
                },
                contradiction(OWNER, other),
                contradiction(other, OWNER),
            ],
        ),
        case(
            "G5: a judge that says that nothing differs",
            1,
            Kind::OrderAnswer,
            judge,
            OWNER,
            |_| vec![0xff; 4],
            [differ(4, 3).split_off(1), vec![contradiction(OWNER, other)]].concat(),
        ),
        case(
            "G5: a judge that says that rows differ which are alike",
            SAME,
            Kind::OrderAnswer,
            judge,
            OWNER,
            |_| vec![1, 0, 0, 0],
            vec![contradiction(OWNER, other)],
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
