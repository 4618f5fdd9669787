//! What tests of kernels share: memory of the emulator that is filled, and read.

pub(crate) mod deep;
pub(crate) mod far;
mod linear;

use veil_device_cuda::backend::{Backend, Buffer, Emulator};

pub(crate) fn given(on: &mut Emulator, bytes: &[u8]) -> Buffer {
    let buffer = on.allocate(bytes.len() as u64).expect("it fits");
    on.write(&buffer, 0, bytes).expect("it fits");
    buffer
}

pub(crate) fn bytes(on: &mut Emulator, buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.bytes() as usize];
    on.read(buffer, 0, &mut bytes).expect("it fits");
    bytes
}
