//! Four parties compute what the circuit says in the clear, and send what was declared.

use std::sync::Arc;

use veil_engine::participants;
use veil_job::{Adversary, Audience};
use veil_math::Ring;
use veil_protocol::{Protocol, Replicated, Task, WorkspaceOf};
use veil_testkit::World;
use veil_testkit::sample::{against, among_four, dot, everything, peer, product};

const ADVERSARIES: [Adversary; 2] = [Adversary::SemiHonest, Adversary::Malicious];

#[test]
fn every_kind_of_input_and_output_over_every_ring() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        for (chunk_rows, lanes) in [(8, 1), (5, 2), (64, 3)] {
            let job = among_four(everything(ring, &[13, 9, 30]));
            for adversary in ADVERSARIES {
                World::in_chunks(against(job.clone(), adversary), chunk_rows, lanes)
                    .run()
                    .assert_right();
            }
        }
    }
}

#[test]
fn participants_on_their_own_compute_the_same() {
    let job = among_four(everything(Ring::Z128, &[13, 9]));
    World::in_chunks(job, 8, 2).run_apart().assert_right();
}

/// Six elements per product, whatever the rows; against a malicious party a MAC of 16 bytes for each in every round; a dot product costs
/// as much as a product.
#[test]
fn a_product_costs_six_elements_and_six_codes() {
    let rows = 1 << 10;
    for ((job, elements), adversary) in [
        (product(Ring::Z64, rows, Audience::Parties), rows),
        (dot(Ring::Z64, rows, Audience::Parties), 1),
    ]
    .into_iter()
    .flat_map(|job| ADVERSARIES.map(|adversary| (job.clone(), adversary)))
    {
        let job = against(among_four(job), adversary);
        let world = World::in_chunks(job, rows as u32, 1);
        let plan = world.plan();
        for chunk in [1, 2] {
            let frame = veil_session::Frame {
                chunk,
                ..plan.chunk(0).expect("a chunk").frame
            };
            let costs = [0, 1, 2, 3].map(|party| {
                Replicated::new(Arc::clone(plan), peer(party)).cost(Task::Layers, frame)
            });
            assert!(costs.iter().all(|cost| cost.rounds == 1), "{costs:?}");
            let bytes: u64 = costs.iter().map(|cost| cost.bytes).sum();
            let code = if adversary == Adversary::Malicious {
                16
            } else {
                0
            };
            assert_eq!(bytes, 6 * (8 * elements + code));
            // Who sends two of them changes from chunk to chunk.
            let sends = |cost: u64| cost / (8 * elements);
            let sent = costs.map(|cost| sends(cost.bytes));
            let twice: [u64; 4] = if chunk == 2 {
                [2, 2, 1, 1]
            } else {
                [1, 1, 2, 2]
            };
            assert!(elements == 1 || sent == twice, "{sent:?}");
        }
    }
}

#[test]
fn what_is_sent_is_what_was_declared() {
    for adversary in ADVERSARIES {
        let job = against(among_four(everything(Ring::Z64, &[13, 9])), adversary);
        let (input, compute) = job.stages();
        for job in [job, input, compute] {
            sends_what_it_declares(&World::in_chunks(job, 8, 2));
        }
    }
}

fn sends_what_it_declares(world: &World) {
    let plan = world.plan();
    for me in participants(plan) {
        let protocol = Replicated::new(Arc::clone(plan), me);
        for task in veil_testkit::tasks(plan, &protocol) {
            for frame in [plan.set_up_frame(), plan.chunk(0).expect("a chunk").frame] {
                let rounds = protocol.flow(task, frame);
                let sends = rounds.rounds().iter().flat_map(|round| &round.sends);
                let layout = protocol.layout(WorkspaceOf::Rows);
                let (count, sum) = sends.fold((0, 0), |(n, sum), send| {
                    (n + 1, sum + send.bytes(layout, frame.rows))
                });
                let declared = protocol.cost(task, frame);
                // What all rows share has one row.
                if !matches!(task, Task::SetUp) || frame.rows == 1 {
                    assert_eq!(
                        (declared.messages, declared.bytes),
                        (count, sum),
                        "{me}, {task:?}"
                    );
                }
            }
        }
    }
}
