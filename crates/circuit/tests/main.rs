//! Tests of circuits, their files and their transformations: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod bristol;
mod bristol_errors;
mod common;
mod evaluate;
mod generators;
mod manifest;
mod numeric;
mod optimise;
mod scd;
mod schedule;
mod sequential_files;
mod smoke_bristol;
mod smoke_yosys;
mod verilog;
