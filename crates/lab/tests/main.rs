//! Tests of the command, from outside: one program for all of them, which links once.

mod bench;
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
