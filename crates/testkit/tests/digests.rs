//! What is on the wire does not change unnoticed, and is the same whatever device a party computes on: for a fixed seed, the SHA-256 of the
//! messages of every direction.
//!
//! A change of these digests is a change of the protocol for everyone: participants of two releases no longer understand each other. It
//! needs a new version in the plan hash and a line in `news/`.

use std::fmt::Write as _;

use veil_device::{Cpu, Device, Isa};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_job::{Adversary, Audience, Holder, JobSpec, Ot, Rows, Schedule};
use veil_math::Ring;
use veil_testkit::sample::{
    against_malicious, among_four, authenticated, between_two, cut, dot, everything, job, product,
};
use veil_testkit::{Outcome, Seed, World, clocked};

use crate::silent::{TINY, silent};

const RECORDED: &str = include_str!("digests.txt");

fn jobs() -> [(&'static str, JobSpec); 16] {
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
        ("a sum of bits, cut and choose", cut("adder:4", 2)),
        (
            "a sum of bits, authenticated",
            authenticated("adder:9", 23, Audience::Parties),
        ),
        (
            "everything over bits, authenticated, by silent transfers",
            silent(everything(Ring::Bits, &[13, 9])),
        ),
        (
            "everything over bits, authenticated",
            against_malicious(between_two(everything(Ring::Bits, &[13, 9]))),
        ),
        (
            "cycles over bits, authenticated",
            against_malicious(between_two(cycles())),
        ),
        (
            "everything over bits, among four",
            among_four(everything(Ring::Bits, &[13, 9])),
        ),
        (
            "everything over bits, among four, checked",
            against_malicious(among_four(everything(Ring::Bits, &[13, 9]))),
        ),
        (
            "everything over 128-bit numbers, among four, checked",
            against_malicious(among_four(everything(Ring::Z128, &[13, 9]))),
        ),
    ]
}

/// Cycles of few gates, whose tables go together.
fn cycles() -> JobSpec {
    let mut circuit = clocked(Seed(2));
    circuit.clock.cycles = 300;
    let holders = [0, 1, 1, 0].map(Holder::Owner);
    let audiences = [Audience::Parties, Audience::Recipient(0)];
    job(circuit, &[(5, &holders)], &audiences)
}

fn world(job: &JobSpec, seed: u64) -> World {
    // Of cut-and-choose a chunk is one row.
    let one = job.security.adversary == Adversary::CutAndChoose;
    let (rows, lanes) = if one { (1, 1) } else { (16, 2) };
    let (rows, lanes) = match job.security.ot {
        Ot::Extension => (rows, lanes),
        // More chunks go on with a stream.
        Ot::Silent => (4, 2),
    };
    let world = World::in_chunks(job.clone(), rows, lanes).seed(Seed(seed));
    match job.security.ot {
        Ot::Extension => world,
        Ot::Silent => world.expanding(TINY),
    }
}

fn run(job: &JobSpec, seed: u64) -> Outcome {
    world(job, seed).run()
}

/// A device of each kind; a GPU, where there is one.
type Make = fn() -> Box<dyn Device>;

fn devices() -> Vec<(&'static str, Make)> {
    let mut devices: Vec<(&'static str, Make)> = vec![
        ("the fastest of this processor", || Box::new(Cpu::detect())),
        ("any processor", || Box::new(Cpu::with(Isa::Portable))),
        ("kernels, emulated", || {
            Box::new(Cuda::on(Box::new(Emulator::new(Order::Random(5)))))
        }),
    ];
    match Cuda::open(0) {
        Ok(_) => devices.push(("a GPU", || match Cuda::open(0) {
            Ok(gpu) => Box::new(gpu),
            Err(absent) => panic!("the GPU has gone: {absent}"),
        })),
        Err(absent) => println!("no GPU: {absent}"),
    }
    devices
}

#[test]
fn whatever_computes_them_messages_are_the_same() {
    for (name, job) in jobs() {
        let defined = run(&job, 1).digests();
        for (device, make) in devices() {
            let outcome = world(&job, 1).devices(move |_| make()).run();
            assert_eq!(
                outcome.assert_right().digests(),
                defined,
                "{name}: {device}"
            );
        }
    }
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
    for (name, outcome) in crate::stock_transfers::recorded() {
        writeln!(text, "# {name}").unwrap();
        for ((from, to), digest) in outcome.assert_right().digests() {
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
