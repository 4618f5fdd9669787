//! Authenticated garbling between two parties: results on every device, declared costs, and what it does not compute.

use std::sync::Arc;

use veil_circuit::{Per, make};
use veil_device::{Cpu, Device, Isa, Reference};
use veil_job::{Adversary, Audience, Holder, JobSpec, Tables};
use veil_math::Ring;
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer};
use veil_testkit::sample::{self, between_two, everything, job, party};
use veil_testkit::{Kind, Seed, Values, World};

const GARBLER: Holder = Holder::Party(PartyId::TWO[0]);
const EVALUATOR: Holder = Holder::Party(PartyId::TWO[1]);

/// A job against a party that cheats.
fn authenticated(job: JobSpec) -> JobSpec {
    let mut job = between_two(job);
    job.security = job.security.against(Adversary::Malicious);
    job
}

fn adder(rows: u64, holders: [Holder; 2], audience: Audience) -> JobSpec {
    let circuit = make("adder:9").expect("the catalogue has it");
    authenticated(job(circuit, &[(rows, &holders)], &[audience]))
}

#[test]
fn results_are_those_of_the_clear_evaluation_whoever_supplies_and_reads() {
    let audiences = [
        Audience::Party(party(0)),
        Audience::Party(party(1)),
        Audience::Parties,
    ];
    for x in [GARBLER, EVALUATOR] {
        for y in [GARBLER, EVALUATOR] {
            for audience in audiences {
                let world = World::in_chunks(adder(3, [x, y], audience), 1, 2);
                world.run().assert_right();
            }
        }
    }
}

#[test]
fn every_device_at_either_end() {
    for rows in [1, 5, 37] {
        let job = adder(rows, [GARBLER, EVALUATOR], Audience::Parties);
        for isa in Isa::available() {
            for other in [0, 1] {
                let world = World::in_chunks(job.clone(), 2, 16);
                let mixed = world.devices(move |peer| -> Box<dyn Device> {
                    if peer == Peer::Party(party(other)) {
                        Box::new(Cpu::with(isa))
                    } else {
                        Box::new(Reference::default())
                    }
                });
                mixed.run().assert_right();
            }
        }
    }
}

/// A chunk of two batches, with few gates.
pub(crate) fn in_batches() -> World {
    let job = sample::authenticated("adder:4", 8192, Audience::Parties);
    World::in_chunks(job, 8192, 1)
}

/// Several batches, each with several layers.
#[test]
fn a_circuit_of_many_batches() {
    let mut circuit = make("aes128").expect("the catalogue has it");
    circuit
        .inputs
        .iter_mut()
        .for_each(|port| port.per = Per::Row);
    let holders = [GARBLER, EVALUATOR];
    let of = job(circuit, &[(5, &holders)], &[Audience::Parties]);
    let world = World::in_chunks(authenticated(of), 1, 4);
    world
        .devices(|_| Box::new(Cpu::detect()))
        .run()
        .assert_right();
}

/// In a batch for each chunk, and in several.
#[test]
fn costs_are_as_declared() {
    let one = World::in_chunks(adder(13, [GARBLER, EVALUATOR], Audience::Parties), 8, 1);
    for (world, batches) in [(one, 2), (in_batches(), 2)] {
        let outcome = world.run();
        crate::yao::costs(&world, outcome.assert_right());
        let offers = outcome.of(Kind::LeakyOffer).count();
        assert_eq!(offers, 2 * batches, "one of each party in each batch");
    }
}

/// Owners and recipients from outside, of rows and of the job, in chunks of one row and more.
#[test]
fn participants_from_outside_supply_and_read() {
    for (rows, lanes) in [(1, 1), (5, 2), (16, 1)] {
        let job = authenticated(everything(Ring::Bits, &[13, 9]));
        let world = World::in_chunks(job, rows, lanes);
        let outcome = world.run();
        crate::yao::costs(&world, outcome.assert_right());
    }
    let job = authenticated(everything(Ring::Bits, &[13, 9]));
    World::in_chunks(job, 8, 2).run_apart().assert_right();
    let both = [0, 1].map(Holder::Owner);
    let job = adder(7, both, Audience::Recipient(0));
    World::in_chunks(job, 4, 1).run().assert_right();
}

/// What a party is told of the other one's parts is random, in one row and in several: every bit is 1 in half of the runs, whatever the input is.
#[test]
fn sums_that_parties_are_told_are_uniform() {
    const RUNS: u64 = 60;
    for (rows, value) in [(1, 0), (1, 511), (5, 511)] {
        let job = adder(rows, [0, 1].map(Holder::Owner), Audience::Recipient(0));
        let mut ones = [[0u32; 128]; 2];
        let mut told = 0;
        for seed in 0..RUNS {
            let values = Values::new(&job, |_, _, _, _| value);
            let world = World::in_chunks(job.clone(), 8, 1)
                .seed(Seed(seed))
                .values(values);
            let outcome = world.devices(|_| Box::new(Cpu::detect())).run();
            for m in outcome.of(Kind::OutsideSum) {
                let sum = u128::from_le_bytes(m.bytes[..].try_into().expect("16 bytes"));
                let to = usize::from(m.to == Peer::Party(party(1)));
                let bits = ones[to].iter_mut().enumerate();
                bits.for_each(|(k, ones)| *ones += (sum >> k & 1) as u32);
                told += u64::from(to == 0);
            }
        }
        assert_eq!(told, 3 * RUNS, "two owners and a recipient");
        // Six standard deviations.
        let (n, bound) = (
            f64::from(told as u32),
            6.0 * (f64::from(told as u32) / 4.0).sqrt(),
        );
        for ones in ones.iter().flatten() {
            let off = (f64::from(*ones) - n / 2.0).abs();
            assert!(off < bound, "{ones} of {told} in {rows} rows");
        }
    }
}

/// A value for all rows is authenticated once, and opened masked once; one row's values per job are its own.
#[test]
fn values_of_the_job_in_all_rows() {
    for rows in [1, 2, 37] {
        for holders in [[GARBLER, EVALUATOR], [EVALUATOR, GARBLER]] {
            let mut job = adder(rows, holders, Audience::Parties);
            job.circuit.inputs[0].per = Per::Job;
            let world = World::in_chunks(job, 2, 16);
            let outcome = world.run();
            crate::yao::costs(&world, outcome.assert_right());
        }
    }
    let mut both = adder(5, [GARBLER, EVALUATOR], Audience::Parties);
    let ports = both.circuit.inputs.iter_mut();
    ports.for_each(|port| port.per = Per::Job);
    World::in_chunks(both, 2, 1).run().assert_right();
}

#[test]
fn what_it_does_not_compute_is_refused() {
    let refused = |job: JobSpec| match Plan::new(Arc::new(job), Options::default()) {
        Err(PlanError::Fit(_, what)) => what,
        other => panic!("{other:?}"),
    };
    let good = adder(2, [GARBLER, EVALUATOR], Audience::Parties);
    let mut three = good;
    three.security.tables = Tables::ThreeHalves;
    assert_eq!(refused(three), "half-gates");
    let integers = authenticated(everything(Ring::Z64, &[3]));
    let plan = Plan::new(Arc::new(integers), Options::default());
    assert!(matches!(plan, Err(PlanError::BitsOnly(_))), "{plan:?}");
}
