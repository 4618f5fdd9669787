//! The suite of devices on the emulator, with threads in three orders.

use veil_device::conformance::{Part, check_part};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Random(1)];

fn passes(part: Part, cases: u32) {
    for (seed, order) in (1..).zip(ORDERS) {
        let mut device = Cuda::on(Box::new(Emulator::new(order)));
        check_part(&mut device, part, seed, cases).unwrap_or_else(|e| panic!("{order:?}: {e}"));
    }
}

#[test]
fn programs_over_shares_equal_the_reference() {
    passes(Part::Rings, 30);
}

#[test]
fn integers_equal_the_reference() {
    passes(Part::Integers, 30);
}

#[test]
fn proofs_equal_the_reference() {
    passes(Part::Proofs, 25);
}

#[test]
fn programs_over_labels_equal_the_reference() {
    passes(Part::Labels, 25);
}

#[test]
fn repetitions_equal_the_reference() {
    passes(Part::Repeats, 15);
}

#[test]
fn transfers_equal_the_reference() {
    passes(Part::Transfers, 8);
}

#[test]
fn steps_of_cut_and_choose_equal_the_reference() {
    passes(Part::Cut, 25);
}
