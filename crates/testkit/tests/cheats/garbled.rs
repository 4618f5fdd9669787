//! Cheats over oblivious transfers, in a garbled circuit: attack cases D1 and D2. What the parties compute afterwards is not checked between
//! two who follow the protocol (`unchecked.rs`).

use veil_math::Ring;
use veil_testkit::sample::{between_two, everything, peer};
use veil_testkit::{Kind, flipped};

use super::{Case, ROWS, check, in_eights};
use crate::common::Found;

pub(crate) fn cases() -> Vec<Case> {
    let [garbler, evaluator] = [0, 1].map(peer);
    let case = |name, chunk, kind, from, to, found| Case {
        name,
        world: in_eights(between_two(everything(Ring::Bits, ROWS))),
        chunk,
        kind,
        from,
        to,
        change: flipped,
        found: vec![found],
    };
    let set_up = |by, peer| Found::SetUp {
        by,
        peer,
        what: "sent a message of oblivious transfer that was not made for this session",
    };
    let corrections = |kind| {
        let what = "corrections of oblivious transfer";
        check(garbler, kind, &[evaluator], what)
    };
    vec![
        case(
            "other points for base transfers",
            0,
            Kind::Points,
            garbler,
            evaluator,
            set_up(evaluator, garbler),
        ),
        case(
            "another point of their sender",
            0,
            Kind::Points,
            evaluator,
            garbler,
            set_up(garbler, evaluator),
        ),
        case(
            "D1: other trees of keys",
            0,
            Kind::Trees,
            evaluator,
            garbler,
            set_up(garbler, evaluator),
        ),
        case(
            "D2: corrections of several choices, per job",
            0,
            Kind::JobCorrection,
            evaluator,
            garbler,
            corrections(Kind::JobCorrection),
        ),
        case(
            "D2: corrections of several choices",
            2,
            Kind::Correction,
            evaluator,
            garbler,
            corrections(Kind::Correction),
        ),
    ]
}
