//! Lifts of bits to integers, and integers modulo 2^32: runs against arithmetic in the clear, and a lie in every message among four.

use veil_circuit::{Builder, Circuit, Per};
use veil_device::Cpu;
use veil_job::{Audience, Holder, JobSpec};
use veil_math::Ring;
use veil_testkit::sample::{against_malicious, among_four, everything, job, party};
use veil_testkit::{Kind, Message, Seed, Values, World};

use crate::common::suspected;

/// Lowest bits of `count` integers, lifted in one layer; their products with others of them, lifts of the lowest bits of these products in a later one; and sums over
/// rows.
fn circuit(ring: Ring, count: u32) -> Circuit {
    let mut b = Builder::new(ring);
    let x = b.input("x", count, Per::Row);
    let y = b.input("y", 1, Per::Row)[0];
    let mut lifted = Vec::new();
    for x in &x {
        let bit = b.bit(*x, 0);
        lifted.push(b.lift(bit));
    }
    let mut later = Vec::new();
    for (of, x) in lifted.iter().zip(x.iter().rev()) {
        let product = b.mul(*of, *x);
        let product = b.add(product, y);
        let bit = b.bit(product, 0);
        later.push(b.lift(bit));
    }
    // The same bit once more, and a constant.
    let again = b.bit(x[0], 0);
    let (again, one) = (b.lift(again), b.constant_bit(true));
    let one = b.lift(one);
    b.output("lifted", &lifted);
    b.output("later", &later);
    b.output("more", &[again, one]);
    b.output_sum("sums", &[lifted[0], later[0]]);
    b.finish().expect("a valid circuit")
}

/// Over the lowest bits of integers of an owner, for the parties and a recipient.
pub(crate) fn lifts(ring: Ring, count: u32, rows: u64) -> JobSpec {
    let holders = [Holder::Owner(0), Holder::Party(party(1))];
    let to = Audience::Recipient(0);
    job(
        circuit(ring, count),
        &[(rows, &holders), (3, &holders)],
        &[to, Audience::Parties, to, to],
    )
}

fn protocols(job: &JobSpec) -> Vec<JobSpec> {
    let four = among_four(job.clone());
    let mut all = vec![job.clone(), four.clone(), against_malicious(four)];
    if job.circuit.ring != Ring::Z128 {
        all.push(against_malicious(job.clone()));
    }
    all
}

#[test]
fn lifted_bits_are_the_bits() {
    for ring in [Ring::Z32, Ring::Z64, Ring::Z128] {
        for (count, rows, chunk_rows) in [(1, 20, 7), (2, 9, 64), (3, 70, 64), (8, 40, 16)] {
            for job in protocols(&lifts(ring, count, rows)) {
                World::in_chunks(job.clone(), chunk_rows, 2)
                    .devices(|_| Box::new(Cpu::detect()))
                    .run()
                    .assert_right();
                // The reference's ledger sees every draw.
                World::in_chunks(job, chunk_rows, 1).run().assert_right();
            }
        }
    }
}

#[test]
fn whatever_is_computed_over_other_rings_is_over_32_bits() {
    for blocks in [&[1][..], &[23, 9], &[17, 8, 30]] {
        for job in protocols(&everything(Ring::Z32, blocks)) {
            World::in_chunks(job.clone(), 8, 2).run().assert_right();
            World::in_chunks(job, 10, 1)
                .devices(|_| Box::new(Cpu::detect()))
                .run()
                .assert_right();
        }
    }
}

/// Numbers of the messages of lifts among four: behind those of products, six of each kind.
const LIFTS: u16 = 24;

/// Among four, a wrong element and a wrong MAC of each of the six joint messages are found by the receiver, in their round, and the pair that
/// computes it is named, whatever the bits are.
#[test]
fn lies_in_lifts_are_found() {
    let job = against_malicious(among_four(lifts(Ring::Z32, 2, 9)));
    for low in [0, 1] {
        let mut values = Values::random(&job, Seed(5));
        for x in values
            .blocks
            .iter_mut()
            .flatten()
            .flat_map(|row| &mut row[0])
        {
            *x = *x & !1 | low;
        }
        let world = World::in_chunks(job.clone(), 16, 1).seed(Seed(5));
        let world = world.values(values);
        let honest = world.run();
        honest.assert_right();
        let of_lifts = |m: &&Message| m.kind == Some(Kind::Product) && m.at.part >= LIFTS;
        let elements: Vec<&Message> = honest.transcript.iter().filter(of_lifts).collect();
        // Two blocks, of a chunk each; two layers of bits.
        assert_eq!(elements.len(), 2 * 2 * 6);
        for element in elements {
            let joint = element.at.part - LIFTS;
            let is_mac = |m: &&Message| {
                (m.kind, m.at.part) == (Some(Kind::Mac), 3 * joint + 2)
                    && (m.to, m.at.step, m.at.frame)
                        == (element.to, element.at.step, element.at.frame)
            };
            let mac = honest.transcript.iter().find(is_mac).expect("a code");
            for wrong in [element, mac] {
                let (mut suspects, what, _) = suspected(&world, wrong);
                let mut pair = [element.from, mac.from];
                pair.sort_unstable();
                suspects.sort_unstable();
                assert_eq!(suspects, pair, "{low}: {wrong:?}");
                assert_eq!(what, "a joint message of a product");
            }
        }
    }
}
