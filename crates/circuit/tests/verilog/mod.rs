//! Circuits from Verilog: as few ANDs as they should have, and the values that a simulator finds.
//!
//! Each test says so and passes where Yosys or Icarus Verilog is missing; `make test` installs them.

mod support;

mod benchmarks;
mod clocked;
mod errors;
mod operators;
mod programs;
