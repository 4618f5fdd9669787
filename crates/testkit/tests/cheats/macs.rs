//! Cheats among three parties of whom one may be malicious, in the check of products of integers by their MACs (attack case A1).

use veil_math::Ring;
use veil_testkit::sample::{against_malicious, everything, peer};
use veil_testkit::{Kind, flipped};

use super::{Case, ROWS, in_eights};
use crate::common::{NOT_THE_SAME, NOT_ZERO, found_by_codes};

pub(crate) fn cases() -> Vec<Case> {
    let case = |name, chunk, kind, from, by: u8| {
        let round = match chunk {
            0 => Kind::JobDifference,
            _ => Kind::Difference,
        };
        // Only the party that is told a wrong component finds that.
        let told = [Kind::Difference, Kind::JobDifference].contains(&kind);
        let mut found = found_by_codes(round, &[NOT_THE_SAME, NOT_ZERO]);
        found.retain(|f| !told || f.by() == peer((from + by) % 3));
        Case {
            name,
            world: in_eights(against_malicious(everything(Ring::Z64, ROWS))),
            chunk,
            kind,
            from: peer(from),
            to: peer((from + by) % 3),
            change: flipped,
            found,
        }
    };
    vec![
        case("A1: a product, or its code", 2, Kind::Product, 1, 1),
        case("A1: a sum of products", 1, Kind::SumProduct, 2, 1),
        case("A1: a product per job", 0, Kind::JobProduct, 0, 1),
        case("a code of values per job", 2, Kind::JobWideMac, 1, 1),
        case("weighted sums", 2, Kind::CheckSums, 0, 1),
        case("r times one of them", 1, Kind::CheckProduct, 1, 1),
        case("the difference, to the next", 2, Kind::Difference, 2, 1),
        case("the difference, to the previous", 2, Kind::Difference, 0, 2),
        case("weighted sums per job", 0, Kind::JobCheckSums, 1, 1),
        case("r times one, per job", 0, Kind::JobCheckProduct, 2, 1),
        case("the difference per job", 0, Kind::JobDifference, 1, 1),
        case(
            "the difference per job, to the previous",
            0,
            Kind::JobDifference,
            1,
            2,
        ),
    ]
}
