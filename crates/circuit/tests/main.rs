//! Tests of circuits, their files and their transformations: one program for all of them, which links once.

mod bristol;
mod bristol_errors;
mod common;
mod evaluate;
mod generators;
mod manifest;
mod optimise;
mod scd;
mod schedule;
mod sequential_files;
mod smoke_bristol;
mod smoke_yosys;
mod verilog;
