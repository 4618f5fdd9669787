//! A case of each part of the suite of devices: what is done in time where each thread of a grid is a thread of the system, under sanitizers
//! (`scripts/emulate-sanitized.sh`).

use veil_device::conformance::{Part, check_part};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};

#[test]
fn a_case_of_each_equals_the_reference() {
    for part in Part::ALL {
        let mut device = Cuda::on(Box::new(Emulator::new(Order::Forward)));
        check_part(&mut device, part, 7, 1).unwrap_or_else(|e| panic!("{part:?}: {e}"));
    }
}
