//! What several tests of devices need.

use veil_device::{Command, Cpu, Device, Isa, Reference, Span};

/// The reference device, and one of each instruction set that this machine has.
pub(crate) fn devices() -> Vec<Box<dyn Device>> {
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Reference::default())];
    for isa in Isa::available() {
        devices.push(Box::new(Cpu::with(isa)));
    }
    devices
}

/// The same command with span `k` changed: destinations follow the sources.
pub(crate) fn with_span(good: &Command, k: usize, change: &dyn Fn(&mut Span)) -> Command {
    let mut command = good.clone();
    let sources = good.src.len();
    change(if k < sources {
        &mut command.src[k]
    } else {
        &mut command.dst[k - sources]
    });
    command
}
