//! One party of a run is recorded on one device and replayed alone on another.

use std::sync::{Arc, Mutex};

use veil_device::record::{Damage, Recording, ReplayError, Tape, fuzz_record, replay};
use veil_device::{Cpu, Device, Reference};
use veil_job::{Audience, Holder, JobSpec};
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{
    against_malicious, authenticated, between_two, dot, everything, job, party, peer, product,
};
use veil_testkit::{OneBitWrong, Seed, World, clocked, damaged};

const RINGS: [Ring; 3] = [Ring::Bits, Ring::Z64, Ring::Z128];

type Make = fn() -> Box<dyn Device>;

fn cpu() -> Box<dyn Device> {
    Box::new(Cpu::detect())
}

fn reference() -> Box<dyn Device> {
    Box::new(Reference::default())
}

/// The records of every lane of `who`, whose devices `make` makes.
fn recorded(world: World, who: Peer, make: Make) -> Vec<Vec<u8>> {
    let tapes = Arc::new(Mutex::new(Vec::new()));
    let on = Arc::clone(&tapes);
    let world = world.devices(move |peer| {
        if peer != who {
            return Box::new(Cpu::detect());
        }
        let tape = Tape::memory();
        on.lock().expect("no test thread panics").push(tape.clone());
        Box::new(Recording::new(make(), tape))
    });
    world.run().assert_right();
    let tapes = tapes.lock().expect("no test thread panics");
    tapes
        .iter()
        .map(|tape| tape.finish().expect("memory takes all"))
        .collect()
}

#[test]
fn every_role_replays_on_the_other_device() {
    let jobs = RINGS.map(|ring| everything(ring, &[40, 33]));
    let proved = [Ring::Bits, Ring::Z64].map(|ring| against_malicious(everything(ring, &[40, 33])));
    for job in jobs.into_iter().chain(proved) {
        for who in [
            peer(0),
            peer(1),
            peer(2),
            Peer::Owner(0),
            Peer::Recipient(0),
        ] {
            for (make, other) in [(cpu as Make, reference as Make), (reference, cpu)] {
                let world = World::in_chunks(job.clone(), 16, 2);
                let records = recorded(world, who, make);
                assert_eq!(records.len(), 2);
                for record in records {
                    let replayed = replay(&record[..], &mut *other()).unwrap();
                    assert_eq!(replayed.recorded_on, make().name());
                    assert!(
                        replayed.workspaces > 2 && replayed.bytes > 0,
                        "{replayed:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn authenticated_garbling_replays_on_the_other_device() {
    let job = authenticated("adder:9", 20, Audience::Parties);
    replays_between_two(&World::in_chunks(job, 16, 1));
}

/// Cycles that share a round are one command.
#[test]
fn cycles_replay_on_the_other_device() {
    replays_between_two(&World::new(between_two(cycles())));
}

fn replays_between_two(world: &World) {
    for who in [peer(0), peer(1)] {
        for (make, other) in [(cpu as Make, reference as Make), (reference, cpu)] {
            let record = recorded(world.clone(), who, make).remove(0);
            let replayed = replay(&record[..], &mut *other()).unwrap();
            assert!(
                replayed.workspaces > 1 && replayed.bytes > 0,
                "{replayed:?}"
            );
        }
    }
}

/// Cycles of few gates.
fn cycles() -> JobSpec {
    let mut circuit = clocked(Seed(2));
    circuit.clock.cycles = 40;
    let holders = [0, 1, 1, 0].map(|k| Holder::Party(party(k)));
    job(circuit, &[(5, &holders)], &[Audience::Parties; 2])
}

#[test]
fn products_and_sums_of_products_replay() {
    let jobs = [
        product(Ring::Bits, 100, Audience::Recipient(0)),
        product(Ring::Z128, 100, Audience::Parties),
        dot(Ring::Z64, 100, Audience::Recipient(0)),
    ];
    for job in jobs {
        let record = recorded(World::in_chunks(job, 32, 1), peer(1), cpu).remove(0);
        replay(&record[..], &mut *reference()).unwrap();
    }
}

#[test]
fn a_wrong_bit_is_named() {
    for ring in RINGS {
        let world = World::in_chunks(product(ring, 100, Audience::Recipient(0)), 40, 1);
        let record = recorded(world, peer(2), cpu).remove(0);
        let mut wrong = OneBitWrong::new(cpu(), 0);
        let Err(ReplayError::Differs(difference)) = replay(&record[..], &mut wrong) else {
            panic!("a wrong device passed");
        };
        // The product's slot, behind those of its operands.
        assert_eq!((difference.frame.chunk, difference.item), (1, 2));
        assert_eq!(difference.byte, 0);
        let (_, command, name) = difference.command.unwrap();
        assert_eq!((command, name), (0, "product"));
        let text = difference.to_string();
        assert!(
            text.contains("item 2 of region 0") && text.contains("command 0 (product)"),
            "{text}"
        );
    }
}

#[test]
fn a_damaged_record_is_refused_wherever_it_is_damaged() {
    let world = World::in_chunks(product(Ring::Bits, 9, Audience::Recipient(0)), 8, 1);
    let record = recorded(world, peer(0), cpu).remove(0);
    for at in 0..record.len() {
        let mut damaged = record.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = replay(&damaged[..], &mut *reference()).unwrap_err();
        assert!(matches!(error, ReplayError::Damaged(_)), "{at}: {error}");
    }
    for length in 0..record.len() {
        let error = replay(&record[..length], &mut *reference()).unwrap_err();
        let cut = matches!(
            error,
            ReplayError::Damaged(Damage::Cut { .. } | Damage::Stranger)
        );
        assert!(cut, "{length}: {error}");
    }
}

/// A forged record drives no device into anything but a refusal, and no device further than the other.
#[test]
fn forged_records_are_played_or_refused() {
    let jobs = RINGS.map(|ring| everything(ring, &[9]));
    let records: Vec<Vec<u8>> = jobs
        .into_iter()
        .chain([between_two(cycles())])
        .map(|job| recorded(World::in_chunks(job, 8, 1), peer(1), cpu).remove(0))
        .collect();
    assert!(records.iter().all(|record| fuzz_record(record)));
    let (mut played, mut refused) = (0u32, 0u32);
    for seed in 0..2000 {
        let mut numbers = Seed(seed).numbers("forged records");
        let forged = damaged(&records[seed as usize % records.len()], &mut numbers);
        let fed = std::panic::catch_unwind(|| fuzz_record(&forged));
        *(if fed.unwrap_or_else(|_| panic!("seed {seed}")) {
            &mut played
        } else {
            &mut refused
        }) += 1;
    }
    // Both paths were taken: a changed key or value of one's own is no difference to a device.
    assert!(
        played > 20 && refused > 1000,
        "{played} played, {refused} refused"
    );
}
