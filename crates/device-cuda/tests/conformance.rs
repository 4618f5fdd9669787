//! The suite of devices on the emulator, with threads in three orders, and with streams in many.

use veil_device::conformance::{Product, Section, check, check_product, check_section};
use veil_device::{Command, Cpu, Device, Fault, Tag, Workspace};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order, Reordered};
use veil_math::Ring;

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Random(1)];

/// A device that may refuse nothing: the suite leaves out what a device refuses.
struct Whole(Cuda);

impl Device for Whole {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let queued = self.0.submit(workspace, batch, tag);
        if let Err(Fault::Unsupported { what, .. }) = queued {
            panic!("it refuses {what}");
        }
        queued
    }

    veil_device::forward!(self, self.0, bind load_key load open reuse close write map view poll wipe);
}

/// Cases of which none is refused.
fn passes_all(section: Section, cases: u32) {
    for (seed, order) in (1..).zip(ORDERS) {
        let mut device = Whole(Cuda::on(Box::new(Emulator::new(order))));
        check_section(&mut device, section, seed, cases)
            .unwrap_or_else(|e| panic!("{order:?}: {e}"));
    }
}

fn passes(section: Section, cases: u32) {
    for (seed, order) in (1..).zip(ORDERS) {
        let mut device = Cuda::on(Box::new(Emulator::new(order)));
        check_section(&mut device, section, seed, cases)
            .unwrap_or_else(|e| panic!("{order:?}: {e}"));
    }
}

#[test]
fn programs_over_shares_equal_the_reference() {
    passes(Section::Rings, 30);
}

#[test]
fn integers_equal_the_reference() {
    passes(Section::Integers, 30);
}

#[test]
fn lifts_equal_the_reference() {
    passes(Section::Lifts, 40);
}

#[test]
fn products_of_matrices_equal_the_reference() {
    passes(Section::Matrices, 60);
}

/// Several tiles in each direction, fewer multiprocessors than tiles and more, and all numbers of warps that a block may have.
#[test]
fn matrices_of_several_tiles_equal_those_of_the_processor() {
    for (threads, shape) in [(32, [40, 70, 37]), (96, [70, 40, 70]), (256, [130, 33, 70])] {
        for (ring, four) in [(Ring::Z32, true), (Ring::Z64, false), (Ring::Z128, false)] {
            for transposed in [false, true] {
                let (saturated, cpu) = (false, &mut Cpu::detect());
                let of = Product {
                    ring,
                    four,
                    transposed,
                    shape,
                    saturated,
                };
                for blocks in [1, 40] {
                    let on = Emulator::new(Order::Random(2)).sized(blocks, threads);
                    let same = check_product(&mut Cuda::on(Box::new(on)), cpu, of);
                    assert_eq!(same, Ok(()), "{of:?} {threads} {blocks}");
                }
            }
        }
    }
}

/// The largest limb products, of more terms than have sums of 32 bits: 16512 terms of Z_2^64 have them, and 5504 of Z_2^128. Three parties add up two products
/// for each element.
#[test]
fn sums_of_the_largest_limbs_are_right() {
    for (ring, terms) in [(Ring::Z32, 9000), (Ring::Z64, 8400), (Ring::Z128, 2900)] {
        let (four, transposed, saturated) = (false, true, true);
        let shape = [terms, 2, 1];
        let of = Product {
            ring,
            four,
            transposed,
            shape,
            saturated,
        };
        let on = Emulator::new(Order::Forward).sized(1, 32);
        let same = check_product(&mut Cuda::on(Box::new(on)), &mut Cpu::detect(), of);
        assert_eq!(same, Ok(()), "{of:?}");
    }
}

/// More packed sums than there is room for at once: blocks of terms.
#[test]
fn blocks_of_terms_are_added_up() {
    let of = Product {
        ring: Ring::Z128,
        four: true,
        transposed: true,
        shape: [2500, 3, 2],
        saturated: false,
    };
    let on = Emulator::new(Order::Reverse).sized(1, 64);
    let same = check_product(&mut Cuda::on(Box::new(on)), &mut Cpu::detect(), of);
    assert_eq!(same, Ok(()));
}

#[test]
fn proofs_equal_the_reference() {
    passes_all(Section::Proofs, 25);
}

#[test]
fn programs_over_labels_equal_the_reference() {
    passes(Section::Labels, 25);
}

#[test]
fn repetitions_equal_the_reference() {
    passes(Section::Repeats, 15);
}

#[test]
fn transfers_equal_the_reference() {
    passes_all(Section::Transfers, 8);
}

#[test]
fn steps_of_cut_and_choose_equal_the_reference() {
    passes(Section::Cut, 25);
}

#[test]
fn steps_of_authenticated_garbling_equal_the_reference() {
    passes_all(Section::Authenticated, 40);
}

#[test]
fn steps_of_silent_transfers_equal_the_reference() {
    passes_all(Section::Silent, 20);
}

#[test]
fn steps_of_intersections_equal_the_reference() {
    passes_all(Section::Intersections, 60);
}

/// A copy that is not waited for comes too late here.
#[test]
fn streams_do_what_they_were_told_in_whatever_order() {
    for seed in 1..=4 {
        let streams = Reordered::new(Emulator::new(Order::Forward), seed);
        let mut device = Cuda::on(Box::new(streams));
        check(&mut device, seed, 10).unwrap_or_else(|e| panic!("{seed}: {e}"));
    }
}
