//! Tests of kernels on the emulator: one program for all of them, which links once.

mod bench;
mod circuits;
mod common;
#[cfg(feature = "probes")]
mod conformance;
mod device;
#[cfg(feature = "probes")]
mod emulator;
mod few;
mod kernels;
