//! Garbled circuits between two parties: results, whoever supplies what and gets it, on every device, in both schemes; declared costs.

use std::sync::Arc;

use veil_circuit::make;
use veil_device::{Cpu, Device, Reference};
use veil_engine::participants;
use veil_math::Ring;
use veil_program::{Audience, Holder, Lowered, Tables};
use veil_protocol::{Cost, Options, Plan, protocol};
use veil_protocol::{PlanError, Task};
use veil_session::Peer;
use veil_testkit::sample::{between_two, everything, job, party, product};
use veil_testkit::{Outcome, World, tasks};

const SCHEMES: [Tables; 2] = [Tables::HalfGates, Tables::ThreeHalves];

fn with(job: Lowered, tables: Tables) -> Lowered {
    let mut job = between_two(job);
    job.security.tables = tables;
    job
}

/// Runs it on the reference device, on the CPU's, and with one of them at each end, in one process and apart.
fn right(job: &Lowered, chunk_rows: u32, lanes: u16) {
    let world = World::in_chunks(job.clone(), chunk_rows, lanes);
    world.run().assert_right();
    world.run_apart().assert_right();
    let cpu = || -> Box<dyn Device> { Box::new(Cpu::detect()) };
    world.clone().devices(move |_| cpu()).run().assert_right();
    for other in [0, 1] {
        let mixed = world.clone().devices(move |peer| {
            if peer == Peer::Party(party(other)) {
                cpu()
            } else {
                Box::new(Reference::default())
            }
        });
        mixed.run().assert_right();
    }
}

#[test]
fn everybody_may_supply_and_receive() {
    let [garbler, evaluator] = [0, 1].map(|p| Holder::Party(party(p)));
    let holders = [garbler, evaluator, Holder::Owner(0)];
    let audiences = [
        Audience::Parties,
        Audience::Party(party(0)),
        Audience::Party(party(1)),
        Audience::Recipient(0),
    ];
    let circuit = make("adder:9").expect("the catalogue has it");
    for x in holders {
        for y in holders {
            for audience in audiences {
                let job = job(circuit.clone(), &[(11, &[x, y])], &[audience]);
                World::in_chunks(between_two(job), 4, 1)
                    .run()
                    .assert_right();
            }
        }
    }
}

#[test]
fn every_kind_of_input_and_output_on_every_device_in_both_schemes() {
    for tables in SCHEMES {
        right(&with(everything(Ring::Bits, &[13, 9]), tables), 8, 1);
        right(&with(everything(Ring::Bits, &[40, 1, 7]), tables), 16, 2);
    }
}

#[test]
fn aes_of_many_rows_and_of_one() {
    let circuit = make("aes128").expect("the catalogue has it");
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    for (tables, rows) in [(SCHEMES[0], 1), (SCHEMES[0], 70), (SCHEMES[1], 33)] {
        let job = with(
            job(
                circuit.clone(),
                &[(rows, &holders)],
                &[Audience::Party(party(1))],
            ),
            tables,
        );
        let world = World::new(job).devices(|_| Box::new(Cpu::detect()));
        world.run().assert_right();
    }
}

/// Declared cost = sum over the rounds = what the meters say.
#[test]
fn costs_are_as_declared() {
    for tables in SCHEMES {
        let world = World::in_chunks(with(everything(Ring::Bits, &[13, 9]), tables), 8, 1);
        let outcome = world.run();
        outcome.assert_right();
        costs(&world, &outcome);
    }
}

fn costs(world: &World, outcome: &Outcome) {
    let plan = world.plan();
    for peer in participants(plan) {
        let protocol = protocol(Arc::clone(plan), peer);
        let of_task = |task, frame| {
            let declared = protocol.cost(task, frame);
            let layout = protocol.layout(plan.bank_of(frame));
            let flow = protocol.flow(task, frame);
            let sends = flow.rounds().iter().flat_map(|round| &round.sends);
            let bytes = sends
                .clone()
                .map(|send| layout.bytes(send.span, frame.rows));
            let sent = bytes.clone().filter(|bytes| *bytes > 0).count() as u64;
            assert_eq!(
                (declared.messages, declared.bytes),
                (sent, bytes.sum()),
                "{peer}, {task:?}"
            );
            declared
        };
        let all = tasks(plan, &*protocol);
        let open = all.iter().find(|task| matches!(task, Task::Open(_)));
        let open = *open.expect("all tasks are listed");
        let mut total = of_task(Task::SetUp, plan.set_up_frame());
        for chunk in (0..).map_while(|index| plan.chunk(index)) {
            for task in [
                Task::Inputs { block: chunk.block },
                Task::Layers,
                Task::Agree,
                open,
            ] {
                total = total + of_task(task, chunk.frame);
            }
        }
        let handshake = veil_engine::handshake_cost(plan, &*protocol);
        let Cost {
            messages, bytes, ..
        } = total + handshake;
        let meters = outcome.reports[&peer].meters;
        assert_eq!(
            (meters.messages_sent, meters.payload_sent),
            (messages, bytes),
            "{peer}"
        );
    }
}

#[test]
fn what_is_not_of_bits_has_no_plan() {
    let plan = |job: Lowered| Plan::new(Arc::new(job), Options::default()).map(|_| ());
    let integers = between_two(product(Ring::Z64, 3, Audience::Parties));
    let security = integers.security;
    assert_eq!(plan(integers), Err(PlanError::BitsOnly(security)));
    let kept = between_two(product(Ring::Bits, 3, Audience::Stored));
    assert_eq!(plan(kept), Err(PlanError::NoShares(security)));
}
