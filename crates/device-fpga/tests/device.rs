//! A simulated card in the place of a device: the bytes of the reference, and right results of whole runs.

use veil_circuit::make;
use veil_device::{Cpu, Device, conformance};
use veil_device_fpga::{Absent, Assembled, Fpga, Garbler, Stalls};
use veil_math::Ring;
use veil_program::{Audience, Holder, Lowered};
use veil_session::Peer;
use veil_testkit::World;
use veil_testkit::sample::{between_two, everything, job, party};

/// A card, or a message and nothing.
fn card(stalls: Stalls) -> Option<Fpga> {
    match Garbler::simulated(2, stalls) {
        Ok(garbler) => Some(Fpga::with(garbler)),
        Err(Absent::NoVerilator) => {
            eprintln!("skipped: {}", Absent::NoVerilator);
            None
        }
        Err(absent) => panic!("{absent}"),
    }
}

#[test]
fn it_equals_the_reference() {
    for (seed, rate) in [(1, 0), (2, 100)] {
        let Some(mut fpga) = card(Stalls { seed, rate }) else {
            return;
        };
        conformance::check(&mut fpga, seed, 100).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(fpga.cycles() > 1000, "the core did the garbling");
    }
}

#[test]
fn what_one_device_has_assembled_another_one_takes() {
    let assembled = Assembled::default();
    let mut counts = Vec::new();
    for _ in 0..2 {
        let Some(fpga) = card(Stalls::default()) else {
            return;
        };
        conformance::check(&mut fpga.sharing(&assembled), 3, 9).unwrap_or_else(|e| panic!("{e}"));
        counts.push(assembled.count());
    }
    assert!(counts[0] > 0 && counts[1] == counts[0], "{counts:?}");
}

/// Runs a job with a card at the garbler.
fn right(job: &Lowered, chunk_rows: u32) {
    if card(Stalls::default()).is_none() {
        return;
    }
    let world = World::in_chunks(between_two(job.clone()), chunk_rows, 1).devices(
        |peer| -> Box<dyn Device> {
            if peer == Peer::Party(party(0)) {
                Box::new(card(Stalls::default()).expect("there was one"))
            } else {
                Box::new(Cpu::detect())
            }
        },
    );
    world.run().assert_right();
}

#[test]
fn the_evaluator_decodes_what_a_card_garbled() {
    right(&everything(Ring::Bits, &[13, 9]), 8);
    let holders = [Holder::Party(party(0)), Holder::Party(party(1))];
    let of = |circuit, rows| {
        let circuit = make(circuit).expect("the catalogue has it");
        job(circuit, &[(rows, &holders)], &[Audience::Party(party(1))])
    };
    right(&of("adder:9", 40), 16);
    right(&of("aes128", 2), 2);
}
