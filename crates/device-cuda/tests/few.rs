//! A case of each part of the suite of devices: what is done in time where each thread of a grid is a thread of the system, under sanitizers
//! (`scripts/emulate-sanitized.sh`).

use veil_device::conformance::{Section, check_section};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};

#[test]
fn a_case_of_each_equals_the_reference() {
    for section in Section::ALL {
        let mut device = Cuda::on(Box::new(Emulator::new(Order::Forward)));
        check_section(&mut device, section, 7, 1).unwrap_or_else(|e| panic!("{section:?}: {e}"));
    }
}
