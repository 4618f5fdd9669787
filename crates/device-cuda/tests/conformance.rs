//! The suite of devices on the emulator, with threads in three orders, and with streams in many.

use veil_device::conformance::{Section, check, check_section};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order, Reordered};

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Random(1)];

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

#[test]
fn proofs_equal_the_reference() {
    passes(Section::Proofs, 25);
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
    passes(Section::Transfers, 8);
}

#[test]
fn steps_of_cut_and_choose_equal_the_reference() {
    passes(Section::Cut, 25);
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
