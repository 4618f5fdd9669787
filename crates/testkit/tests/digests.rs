//! What is on the wire does not change unnoticed: for a fixed seed, the SHA-256 of the messages of every direction.
//!
//! A change of these digests is a change of the protocol for everyone: participants of two releases no longer understand each other. It
//! needs a new version in the plan hash and a line in `news/`.

use std::fmt::Write as _;

use veil_math::Ring;
use veil_program::{Audience, Holder, Lowered, Rows, Schedule};
use veil_testkit::sample::{against_malicious, between_two, dot, everything, job, product};
use veil_testkit::{Outcome, Seed, World, clocked};

const RECORDED: &str = include_str!("digests.txt");

fn jobs() -> [(&'static str, Lowered); 8] {
    let garbled = between_two(everything(Ring::Bits, &[13, 9]));
    let mut listed = garbled.clone();
    listed.security.schedule = Schedule::List(Rows::Two);
    [
        (
            "product of bits",
            product(Ring::Bits, 100, Audience::Recipient(0)),
        ),
        (
            "dot product of 128-bit numbers",
            dot(Ring::Z128, 20, Audience::Parties),
        ),
        (
            "everything over 64-bit numbers",
            everything(Ring::Z64, &[13, 9]),
        ),
        (
            "everything over bits, proved",
            against_malicious(everything(Ring::Bits, &[13, 9])),
        ),
        (
            "everything over 64-bit numbers, with codes",
            against_malicious(everything(Ring::Z64, &[13, 9])),
        ),
        ("everything over bits, garbled", garbled),
        (
            "everything over bits, garbled in the order of two rows",
            listed,
        ),
        ("cycles over bits, garbled", between_two(cycles())),
    ]
}

/// Cycles of few gates, whose tables go together.
fn cycles() -> Lowered {
    let mut circuit = clocked(Seed(2));
    circuit.clock.cycles = 300;
    let holders = [0, 1, 1, 0].map(Holder::Owner);
    let audiences = [Audience::Parties, Audience::Recipient(0)];
    job(circuit, &[(5, &holders)], &audiences)
}

fn run(job: &Lowered, seed: u64) -> Outcome {
    World::in_chunks(job.clone(), 16, 2).seed(Seed(seed)).run()
}

#[test]
fn what_is_on_the_wire_is_as_recorded() {
    let mut text = String::new();
    for (name, job) in jobs() {
        writeln!(text, "# {name}").unwrap();
        for ((from, to), digest) in run(&job, 1).assert_right().digests() {
            writeln!(text, "{from} -> {to}: {digest}").unwrap();
        }
    }
    assert!(
        text == RECORDED,
        "what is on the wire has changed; if that is meant, crates/testkit/tests/digests.txt becomes\n{text}"
    );
}

#[test]
fn the_same_seed_gives_the_same_messages_and_another_seed_gives_others() {
    for (name, job) in jobs() {
        let names = |outcome: &Outcome| {
            let mut names: Vec<_> = outcome
                .transcript
                .iter()
                .map(|m| (m.from, m.to, m.at, m.bytes.len()))
                .collect();
            names.sort_unstable();
            names
        };
        let (first, again, other) = (run(&job, 1), run(&job, 1), run(&job, 2));
        assert_eq!(first.digests(), again.digests(), "{name}");
        assert_ne!(first.digests(), other.digests(), "{name}");
        // Names and lengths are public: they depend on the job alone.
        assert_eq!(names(&first), names(&other), "{name}");
    }
}
