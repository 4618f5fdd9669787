//! Parties over TLS of which one is killed, stands still, or deviates, at each kind of round: what every other participant says, with which
//! code, whom it blames, and how soon. Four of them, three that prove their products, and two that cut and choose.

use std::thread;

use crate::common::byzantine::{Round, Site};
use crate::common::deployment::alone;
use veil_testkit::Kind;

/// In each round the second of two parties stands still, since the first one keeps it there. All at once: nothing moves for most of the
/// time.
fn stand_still<const N: usize>(site: fn() -> Site, rounds: [(Round, [usize; 2]); N]) {
    thread::scope(|scope| {
        for (round, who) in rounds {
            scope.spawn(move || site().stands_still(round, who));
        }
    });
}

/// Four parties.
mod four {
    use super::*;

    /// All participants; parties are the first four.
    const NAMES: &[&str] = &["a", "b", "c", "d", "ann", "eve"];

    /// The recipient.
    const EVE: usize = 5;

    const JOB: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c", "d"]
recipients = ["eve"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "wages", kind = "variance", of = "wage", to = "eve" },
            { name = "again", kind = "sum", of = "wage", to = "INSIDE" }]
"#;

    const LAYERS: Round = Round::of(Kind::SumProduct, "a joint message of a product");
    const OPENING: Round = Round::of(Kind::Total, "an opened component");

    fn site() -> Site {
        let wages = "wage\n3100\n2900\n4000\n3500\n2500\n";
        Site::new(NAMES, JOB, &[("ann.csv", wages)])
    }

    /// After the agreement a party owes the others nothing but its part of the opening.
    #[test]
    fn a_party_that_is_killed_at_any_round_is_named_at_once() {
        let _alone = alone();
        let site = site();
        site.is_killed(Round::HANDSHAKE, [3, 1]);
        site.is_killed(Round::SET_UP, [1, 3]);
        site.is_killed(Round::INPUTS, [0, 2]);
        site.is_killed(LAYERS, [2, 0]);
        site.is_killed(Round::AGREEMENT, [0, 3]);
    }

    #[test]
    #[ignore = "tier processes: kills, stalls and waits"]
    fn a_party_that_stands_still_at_any_round_is_named_in_time() {
        stand_still(
            site,
            [
                (Round::HANDSHAKE, [2, 0]),
                (Round::SET_UP, [0, 2]),
                (Round::INPUTS, [2, 0]),
                (LAYERS, [3, 1]),
                (Round::AGREEMENT, [0, 3]),
            ],
        );
    }

    #[test]
    fn a_party_that_lies_at_any_round_is_found_by_whom_it_lies_to() {
        let _alone = alone();
        let site = site();
        site.lies(Round::HANDSHAKE, [0, 2], &[2]);
        site.lies(Round::SET_UP, [3, 1], &[1]);
        site.lies(Round::INPUTS, [2, 0], &[0]);
        site.lies(LAYERS, [1, 3], &[3]);
        site.lies(Round::AGREEMENT, [0, 1], &[1]);
        site.lies(OPENING, [2, EVE], &[EVE]);
    }
}

/// Three parties, of whom any may be malicious.
mod three {
    use super::*;

    /// All participants; parties are the first three.
    const NAMES: &[&str] = &["a", "b", "c", "ann", "eve"];

    /// The recipient.
    const EVE: usize = 4;

    const JOB: &str = r#"version = 1
kind = "circuit"
name = "all three, and two of them"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
adversary = "malicious"
circuit = { file = "and.txt", rows = 40 }
input = [{ port = "in0", owner = "ann", format = "hex", file = "bits.hex" }]
output = [{ port = "out0", to = "eve", format = "hex", file = "all.hex" },
          { port = "out1", to = "INSIDE", format = "hex", file = "two.hex" }]
"#;

    /// Two products, one after the other, and what is linear after them.
    const CIRCUIT: &str = "3 6\n1 3\n2 1 1\n\n2 1 0 1 3 AND\n2 1 3 2 4 AND\n2 1 4 3 5 XOR\n";

    const PRODUCT: Round = Round::of(Kind::Product, PROOF);
    const READY: Round = Round::of(Kind::ProofReady, "the seed of a proof");
    const SEED: Round = Round::of(Kind::ProofSeed, "the challenge to a proof");
    const SHARE: Round = Round::of(Kind::ProofShare, PROOF);
    const CHALLENGE: Round = Round::of(Kind::Challenge, "the challenge to a proof");
    const ECHO: Round = Round::of(Kind::Echo, "the challenge to a proof");
    const FINDINGS: Round = Round::of(Kind::Findings, PROOF);
    const OPENING: Round = Round::of(Kind::Opened, "an opened component");
    const PROOF: &str = "the proof of a party's products";

    fn site() -> Site {
        let bits = "00\n01\n02\n03\n04\n05\n06\n07\n".repeat(5);
        Site::new(NAMES, JOB, &[("bits.hex", &bits), ("and.txt", CIRCUIT)])
    }

    /// A share goes to the next party, a challenge and an echo to the previous one, and what a verifier found to both.
    #[test]
    fn a_party_that_is_killed_at_any_round_is_named_at_once() {
        let _alone = alone();
        let site = site();
        site.is_killed(Round::HANDSHAKE, [2, 1]);
        site.is_killed(Round::SET_UP, [1, 2]);
        site.is_killed(Round::INPUTS, [0, 2]);
        site.is_killed(PRODUCT, [2, 0]);
        site.is_killed(PRODUCT.after(1), [0, 1]);
        site.is_killed(READY, [1, 0]);
        site.is_killed(SEED, [2, 1]);
        site.is_killed(SHARE, [1, 2]);
        site.is_killed(SHARE.after(3), [2, 0]);
        site.is_killed(CHALLENGE, [0, 2]);
        site.is_killed(CHALLENGE.after(2), [1, 0]);
        site.is_killed(ECHO, [2, 1]);
        site.is_killed(FINDINGS, [0, 1]);
        site.is_killed(Round::AGREEMENT, [0, 2]);
    }

    #[test]
    fn a_party_that_stands_still_at_any_round_is_named_in_time() {
        stand_still(
            site,
            [
                (PRODUCT, [0, 1]),
                (READY, [0, 2]),
                (SEED, [2, 1]),
                (SHARE.after(1), [1, 2]),
                (CHALLENGE.after(2), [2, 1]),
                (ECHO.after(2), [0, 2]),
                (FINDINGS, [2, 0]),
                (Round::AGREEMENT, [1, 0]),
            ],
        );
    }

    /// A verifier may be the first to say that a proof is wrong; a participant that is told then says that. Of a wrong challenge only the other
    /// verifier hears, from the prover, and of wrong findings only the one to whom they are told.
    #[test]
    #[ignore = "tier processes: kills, stalls and waits"]
    fn a_party_that_lies_at_any_round_is_found() {
        let _alone = alone();
        let site = site();
        site.lies(Round::HANDSHAKE, [0, 2], &[2]);
        site.lies(Round::SET_UP, [2, 1], &[1]);
        site.lies(Round::INPUTS, [2, 0], &[0]);
        // What is multiplied further is wrong in the proof of the next party too, which the corrupt party verifies like any other.
        site.lies(PRODUCT, [1, 2], &[0, 1, 2]);
        site.lies(PRODUCT.after(1), [0, 1], &[1, 2]);
        site.lies(SHARE, [2, 0], &[0, 1]);
        site.lies(SHARE.after(3), [1, 2], &[0, 2]);
        // Who tells the previous party another seed or challenge is found by the next one, which is the other verifier.
        site.lies(READY, [1, 0], &[0]);
        site.lies(SEED, [2, 1], &[0]);
        site.lies(CHALLENGE, [1, 0], &[2]);
        site.lies(CHALLENGE.after(2), [0, 2], &[1]);
        site.lies(ECHO, [2, 1], &[1]);
        site.lies(ECHO.after(2), [0, 2], &[2]);
        site.lies(FINDINGS, [1, 0], &[0]);
        site.lies(Round::AGREEMENT, [0, 1], &[1]);
        site.lies(OPENING, [2, EVE], &[EVE]);
    }
}

/// Two parties, of whom any may be malicious: many circuits, of which half are opened.
mod two {
    use super::*;

    /// The garbler and the evaluator.
    const NAMES: &[&str] = &["a", "b"];

    const JOB: &str = r#"version = 1
kind = "circuit"
name = "sum"
owners = ["a", "b"]
parties = ["a", "b"]
recipients = ["b"]
protocol = "yao"
adversary = "malicious-cutchoose"
circuit = { make = "adder:9" }
input = [{ port = "x", owner = "a", format = "hex", file = "x.hex" },
         { port = "y", owner = "b", format = "hex", file = "y.hex" }]
output = [{ port = "out", to = "b", format = "hex", file = "sum.hex" }]
"#;

    const GARBLED: [usize; 2] = [0, 1];
    const CHOSEN: [usize; 2] = [1, 0];

    const POINTS: Round = Round::of(Kind::Points, TRANSFERS);
    const TREES: Round = Round::of(Kind::Trees, TRANSFERS);
    const TRANSFERS: &str =
        "sent a message of oblivious transfer that was not made for this session";
    const COMMITMENTS: Round = Round::of(Kind::Commitments, SEED);
    const CORRECTION: Round = Round::of(Kind::Correction, "corrections of oblivious transfer");
    const DIGESTS: Round = Round::of(Kind::CircuitDigests, SEED);
    const GARBLER_COIN: Round = Round::of(Kind::GarblerCoin, SEED);
    const COIN: Round = Round::of(
        Kind::EvaluatorCoin,
        "the coin that the evaluator committed to",
    );
    const SEEDS: Round = Round::of(Kind::OpenedSeeds, SEED);
    const SEED: &str = "the seed of a circuit";
    const SHOWN: Round = Round::of(Kind::ShownLabels, CIRCUIT);
    const TABLES: Round = Round::of(Kind::Table, CIRCUIT);
    const CIRCUIT: &str = "a circuit that is evaluated";

    fn site() -> Site {
        Site::new(
            NAMES,
            JOB,
            &[("x.hex", "ff00\n1200\n"), ("y.hex", "0100\n0001\n")],
        )
    }

    /// The garbler waits for nothing any more when it has the evaluator's coin.
    #[test]
    fn a_party_that_is_killed_at_any_round_is_named_at_once() {
        let _alone = alone();
        let site = site();
        site.is_killed(Round::HANDSHAKE, GARBLED);
        site.is_killed(POINTS, CHOSEN);
        site.is_killed(TREES, CHOSEN);
        site.is_killed(COMMITMENTS, GARBLED);
        site.is_killed(CORRECTION, CHOSEN);
        site.is_killed(DIGESTS.after(1), GARBLED);
        site.is_killed(GARBLER_COIN, GARBLED);
        site.is_killed(COIN, CHOSEN);
    }

    #[test]
    fn a_party_that_stands_still_at_any_round_is_named_in_time() {
        stand_still(
            site,
            [
                (COMMITMENTS, GARBLED),
                (CORRECTION, CHOSEN),
                (DIGESTS, GARBLED),
                (COIN.after(1), CHOSEN),
            ],
        );
    }

    #[test]
    fn a_party_that_lies_at_any_round_is_found_by_the_other() {
        let _alone = alone();
        let site = site();
        site.lies(Round::HANDSHAKE, GARBLED, &[1]);
        for (round, who) in [
            (POINTS, GARBLED),
            (POINTS, CHOSEN),
            (COMMITMENTS, GARBLED),
            (CORRECTION, CHOSEN),
            (DIGESTS, GARBLED),
            (GARBLER_COIN, GARBLED),
            (COIN, CHOSEN),
            (SEEDS.after(1), GARBLED),
            (SHOWN, GARBLED),
            (TABLES, GARBLED),
        ] {
            site.lies(round, who, &[who[1]]);
        }
    }
}
