//! Tests of kernels on the emulator: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

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
mod psi;
