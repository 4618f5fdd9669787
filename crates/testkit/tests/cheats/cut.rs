//! Cheats in cut-and-choose: every message of the garbler, and the evaluator's coin (attack cases E5, E7). Garblers that lie to their own
//! device, consistently, are in `cut_and_choose.rs`.

use veil_testkit::sample::{cut, peer};
use veil_testkit::{Kind, World, flipped};

use super::{Case, check};

pub(crate) fn cases() -> Vec<Case> {
    let [garbler, evaluator] = [0, 1].map(peer);
    let case = |name, kind, change: fn(&[u8]) -> Vec<u8>, (by, found, what)| {
        let (from, to) = if by == evaluator {
            (garbler, evaluator)
        } else {
            (evaluator, garbler)
        };
        Case {
            name,
            world: World::in_chunks(cut("adder:9", 3), 1, 1),
            chunk: 2,
            kind,
            from,
            to,
            change,
            found: vec![check(by, found, &[from], what)],
        }
    };
    let seed = (evaluator, Kind::OpenedSeeds, "the seed of a circuit");
    let masked = "labels of the evaluator's inputs in circuits that were opened";
    let tables = (evaluator, Kind::Table, "a circuit that is evaluated");
    let coin = (
        garbler,
        Kind::EvaluatorCoin,
        "the coin that the evaluator committed to",
    );
    let corrections = (
        garbler,
        Kind::Correction,
        "corrections of oblivious transfer",
    );
    vec![
        // Another order of circuits follows from them.
        case("other commitments", Kind::Commitments, flipped, seed),
        case("E5: other digests", Kind::CircuitDigests, flipped, seed),
        case("another coin", Kind::GarblerCoin, flipped, seed),
        case("E5: another seed", Kind::OpenedSeeds, flipped, seed),
        case("another nonce of a seed", Kind::OpenedSeeds, last, seed),
        case(
            "other labels under keys of transfers",
            Kind::MaskedLabels,
            all,
            (evaluator, Kind::OpenedSeeds, masked),
        ),
        case(
            "E7: another start point",
            Kind::ShownLabels,
            flipped,
            tables,
        ),
        case(
            "E5: another mark of an output",
            Kind::ShownLabels,
            last,
            tables,
        ),
        case(
            "another colour of a sum",
            Kind::ShownColours,
            flipped,
            tables,
        ),
        case("another table", Kind::Table, flipped, tables),
        case(
            "another commitment to a coin",
            Kind::CoinCommitment,
            flipped,
            coin,
        ),
        case(
            "another coin than committed to",
            Kind::EvaluatorCoin,
            flipped,
            coin,
        ),
        case("another nonce of a coin", Kind::CoinNonce, flipped, coin),
        case(
            "D2: corrections of several choices",
            Kind::Correction,
            flipped,
            corrections,
        ),
    ]
}

fn last(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    bytes
}

fn all(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ 1).collect()
}
