//! Three parties of whom one may be malicious compute what the circuit says in the clear, as long as all are honest.

use crate::common::{made, of_circuit, second_stage};
use veil_circuit::{catalogue, make};
use veil_device::Cpu;
use veil_math::Ring;
use veil_testkit::sample::{against_malicious, everything, guarded};
use veil_testkit::{Kind, Seed, World};

/// What has a proof, and what has MACs.
const RINGS: [Ring; 2] = [Ring::Bits, Ring::Z64];

fn world(ring: Ring, blocks: &[u64], chunk_rows: u32, lanes: u16) -> World {
    let job = against_malicious(everything(ring, blocks));
    World::in_chunks(job, chunk_rows, lanes)
}

#[test]
fn every_kind_of_input_and_output() {
    for ring in RINGS {
        for (chunk_rows, lanes) in [(8, 1), (5, 2), (64, 3)] {
            let world = world(ring, &[13, 9, 30], chunk_rows, lanes);
            world.run().assert_right();
        }
    }
}

#[test]
fn participants_on_their_own_compute_the_same() {
    for ring in RINGS {
        world(ring, &[13, 9], 8, 2).run_apart().assert_right();
    }
}

/// Whole vectors and ragged ones, on the fast device.
#[test]
fn longer_batches_are_right() {
    for ring in RINGS {
        for (rows, chunk_rows) in [(1300, 512), (700, 2048), (5000, 4096)] {
            world(ring, &[rows], chunk_rows, 1)
                .devices(|_| Box::new(Cpu::detect()))
                .run()
                .assert_right();
        }
    }
}

/// Everything of the catalogue that has integers and bits: their products are proved and checked together.
#[test]
fn conversions_are_right() {
    for entry in catalogue().iter().filter(|e| e.name.starts_with("int-")) {
        for bits in if entry.name.starts_with("int-div") {
            [3, 5]
        } else {
            [13, 64]
        } {
            let circuit = make(&format!("{}:{bits}", entry.name)).expect("the catalogue has it");
            if circuit.ring == Ring::Z128 {
                continue;
            }
            // What is random is not what the clear evaluation says.
            let exact = !["-pr", "random"]
                .iter()
                .any(|word| entry.name.contains(word));
            let job = of_circuit(circuit, 70);
            for chunk_rows in [5, 64] {
                let world = World::in_chunks(job.clone(), chunk_rows, 1);
                let outcome = world.devices(|_| Box::new(Cpu::detect())).run();
                if exact {
                    outcome.assert_right();
                }
                assert!(
                    outcome.aborts.is_empty(),
                    "{}: {:?}",
                    entry.name,
                    outcome.aborts
                );
                assert_eq!(outcome.of(Kind::Masked).count(), 0, "{}", entry.name);
            }
        }
    }
}

#[test]
fn matrix_products_are_right() {
    let outcome = World::in_chunks(made("matmul64:3x5x2", 30), 8, 1).run();
    outcome.assert_right();
    // An element each of a product and of its MAC, per element of the result, and one per element of a factor.
    assert_eq!(outcome.plan.products(), 6 + 6 + 10);
}

#[test]
fn what_is_made_of_sums_is_right() {
    for (seed, lanes) in [(1, 1), (2, 2), (3, 1), (4, 2)] {
        let job = against_malicious(guarded(everything(Ring::Z64, &[13, 9]), 1 << 63));
        let world = World::in_chunks(job, 8, lanes);
        world.seed(Seed(seed)).run().assert_right();
    }
}

#[test]
fn shares_at_rest_are_elements_of_the_circuits_ring() {
    let job = against_malicious(everything(Ring::Z64, &[13, 9]));
    second_stage(&job, Seed(3)).run().assert_right();
}
