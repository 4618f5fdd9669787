//! A simulated card in the place of a device: the bytes of the reference, and right results of whole runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use veil_circuit::{Builder, Initial, Per, make};
use veil_device::{Cpu, Device, conformance};
use veil_device_fpga::share::Cores;
use veil_device_fpga::{Absent, Assembled, Fpga, Garbler, Stalls};
use veil_job::{Audience, Holder, JobSpec, Rows, Schedule};
use veil_math::Ring;
use veil_session::Peer;
use veil_testkit::sample::{between_two, everything, job, party};
use veil_testkit::{Seed, World, clocked};

/// A card, or a message and nothing.
fn card(stalls: Stalls) -> Option<Fpga> {
    match Garbler::simulated(2, stalls) {
        Ok(garbler) => {
            let cores = Cores::simulated(stalls).expect("they are built where garblers are");
            Some(Fpga::with(garbler).shares(cores))
        }
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
        assert!(fpga.share_cycles() > 1000, "and others what is shared");
        assert!(fpga.overlapped() > 10, "some of it as loops");
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
fn right(job: &JobSpec, chunk_rows: u32) {
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

/// Cycles that overlap in the core have the messages of a processor, bit for bit, in whichever order.
#[test]
fn cycles_on_a_card_have_the_messages_of_a_processor() {
    if card(Stalls::default()).is_none() {
        return;
    }
    let run = |job: &JobSpec, seed: Seed, on_card: bool| {
        let world = World::in_chunks(job.clone(), 4, 1).seed(seed);
        let world = world.devices(move |peer| -> Box<dyn Device> {
            if on_card && peer == Peer::Party(party(0)) {
                Box::new(card(Stalls::default()).expect("there was one"))
            } else {
                Box::new(Cpu::detect())
            }
        });
        let outcome = world.run();
        outcome.assert_right().digests()
    };
    for k in 0..12 {
        let seed = Seed(k);
        let mut circuit = clocked(seed);
        circuit.clock.cycles = [2, 40, 300][k as usize % 3];
        let holders = [0, 1, 1, 0].map(|k| Holder::Party(party(k)));
        let audiences = [Audience::Parties, Audience::Party(party(1))];
        let mut job = between_two(job(circuit, &[(5, &holders)], &audiences));
        if k % 4 > 0 {
            job.security.schedule = Schedule::List(Rows::Two);
        }
        assert_eq!(run(&job, seed, true), run(&job, seed, false), "{seed}");
    }
}

/// A card that says in the end how many clock cycles its core has run.
struct Counted {
    card: Fpga,
    cycles: Arc<AtomicU64>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.cycles.fetch_add(self.card.cycles(), Ordering::Relaxed);
    }
}

impl Device for Counted {
    veil_device::forward!(self, self.card, name bind load_key load open close write map view submit poll wipe);
}

/// Cycles of the netlist.
const CYCLES: u64 = 1000;

/// A register of five bits that goes round through an AND and an XOR: a core that did one netlist cycle after the other would need the time
/// of both, and that of labels to come and to leave, for each.
#[test]
fn netlist_cycles_of_a_run_overlap() {
    if card(Stalls::default()).is_none() {
        return;
    }
    let mut b = Builder::new(Ring::Bits);
    b.cycles(CYCLES);
    let start = b.input("start", 5, Per::Row);
    let x = b.input("x", 1, Per::Cycle)[0];
    let state: Vec<_> = (start.iter().map(|wire| b.register(Initial::Wire(*wire)))).collect();
    let both = b.and(state[0], state[3]);
    let new = b.xor(both, x);
    for (k, bit) in state.iter().enumerate() {
        b.set_next(*bit, if k == 0 { new } else { state[k - 1] });
    }
    b.output("state", &state);
    let circuit = b.finish().expect("a valid circuit");
    let holders = [Holder::Party(party(0)); 2];
    let mut job = between_two(job(circuit, &[(1, &holders)], &[Audience::Parties]));
    job.security.schedule = Schedule::List(Rows::Two);
    let cycles = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&cycles);
    let world = World::new(job).devices(move |peer| -> Box<dyn Device> {
        if peer != Peer::Party(party(0)) {
            return Box::new(Cpu::detect());
        }
        Box::new(Counted {
            card: card(Stalls::default()).expect("there was one"),
            cycles: Arc::clone(&counter),
        })
    });
    world.run().assert_right();
    // An AND and an XOR take 11 clock cycles, 13 with a register behind memories of labels, and the ring has a netlist cycle for each: windows
    // of 256 cycles have their beginnings and ends.
    let cycles = cycles.load(Ordering::Relaxed);
    println!("{cycles} clock cycles for {CYCLES} of the netlist");
    assert!((1..14 * CYCLES).contains(&cycles), "{cycles}");
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
