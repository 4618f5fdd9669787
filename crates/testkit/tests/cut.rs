//! Cut-and-choose between two parties: results on every device, at every statistical parameter; declared costs; what it does not compute.

use std::sync::Arc;

use veil_circuit::{Per, make};
use veil_device::{Cpu, Device, Isa, Reference};
use veil_job::{Adversary, Audience, Holder, JobSpec, Statistical, Tables, Word};
use veil_math::Ring;
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer};
use veil_testkit::World;
use veil_testkit::sample::{between_two, everything, job, party};

const GARBLER: Holder = Holder::Party(PartyId::TWO[0]);
const EVALUATOR: Holder = Holder::Party(PartyId::TWO[1]);

/// A job against a party that cheats, which gets away with it with probability 2^-s.
fn cut(job: JobSpec, s: &str) -> JobSpec {
    let mut job = between_two(job);
    job.security = job.security.against(Adversary::CutAndChoose);
    job.security.statistical = Statistical::parse(s).expect("there is such a parameter");
    job
}

fn adder(rows: u64, holders: [Holder; 2]) -> JobSpec {
    let circuit = make("adder:9").expect("the catalogue has it");
    job(circuit, &[(rows, &holders)], &[Audience::Party(party(1))])
}

fn world(job: JobSpec) -> World {
    World::in_chunks(job, 1, 1)
}

#[test]
fn results_are_those_of_the_clear_evaluation_whichever_participant_supplies() {
    for x in [GARBLER, EVALUATOR] {
        for y in [GARBLER, EVALUATOR] {
            world(cut(adder(3, [x, y]), "9")).run().assert_right();
        }
    }
}

#[test]
fn every_device_at_either_end() {
    let job = cut(adder(2, [GARBLER, EVALUATOR]), "9");
    for isa in Isa::available() {
        for other in [0, 1] {
            let mixed = world(job.clone()).devices(move |peer| -> Box<dyn Device> {
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

#[test]
fn every_statistical_parameter() {
    for s in Statistical::ALL {
        let job = cut(adder(1, [GARBLER, EVALUATOR]), s.word());
        let cpu = world(job).devices(|_| Box::new(Cpu::detect()));
        cpu.run().assert_right();
    }
}

#[test]
fn what_it_does_not_compute_is_refused() {
    let refused = |job: JobSpec| match Plan::new(Arc::new(job), Options::default()) {
        Err(PlanError::Fit(_, what)) => what,
        other => panic!("{other:?}"),
    };
    let owner = adder(2, [GARBLER, Holder::Owner(0)]);
    assert!(refused(cut(owner, "40")).starts_with("inputs of the two parties"));
    let mut both = adder(2, [GARBLER, EVALUATOR]);
    both.audiences = vec![Audience::Parties];
    assert!(refused(cut(both, "40")).starts_with("outputs to the second"));
    let mut once = adder(2, [GARBLER, EVALUATOR]);
    once.circuit.inputs[0].per = Per::Job;
    assert!(refused(cut(once.clone(), "40")).starts_with("inputs with a value in every row"));
    // One row's values per job are its own.
    once.blocks[0].rows = 1;
    world(cut(once, "9")).run().assert_right();
    let mut three = cut(adder(2, [GARBLER, EVALUATOR]), "40");
    three.security.tables = Tables::ThreeHalves;
    assert_eq!(refused(three), "half-gates");
    let integers = cut(everything(Ring::Z64, &[3]), "40");
    let plan = Plan::new(Arc::new(integers), Options::default());
    assert!(matches!(plan, Err(PlanError::BitsOnly(_))), "{plan:?}");
}
