//! Tests of `veil-lab`, from outside: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod bench;
mod calibrate;
mod cards;
mod circuits;
#[path = "../../cli/tests/common/mod.rs"]
mod common;
mod devices;
mod nodes;
mod orders;
mod replay;
mod traces;

/// The program that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_veil-lab");
