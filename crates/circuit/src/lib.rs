//! Circuits: gates over one ring, before a protocol is chosen for them.
//!
//! A [`Circuit`] is a list of gates over one ring, in topological order by construction; gate `i` drives wire `sources + i`. A circuit with a
//! [`Clock`] has registers, and runs for a number of cycles. [`Circuit::evaluate`], in the clear, defines the result that every protocol is
//! tested against. This crate knows rings and bytes, no protocol and no party: every planner, protocol, device and tool may use it.
//!
//! ```text
//! Builder, make ──────┐
//! bristol, scd ───────┼─► Circuit ─► optimise ─┬─► Circuit::evaluate   the result in the clear
//! verilog ─► yosys ───┘                        ├─► bristol             a file
//!                                              ├─► schedule            times of gates on garbling engines
//!                                              └─► the planner         layers of a protocol
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_circuit::{bristol, make, optimise, Flavour};
//!
//! let adder = make("adder:8")?;
//! assert_eq!(adder.stats().muls, 7);
//! let bits = |value: u32| (0..8).map(|i| u128::from(value >> i & 1)).collect::<Vec<_>>();
//! assert_eq!(adder.evaluate(&[bits(200), bits(100)])?, [bits(300 % 256)]);
//! let mut file = Vec::new();
//! bristol::write(&optimise(&adder), Flavour::Fashion, &mut file)?;
//! assert!(file.starts_with(b"34 50\n2 8 8\n1 8\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Builder`] and [`make`] build circuits, [`bristol`] and [`scd`] read files, [`verilog`] compiles Verilog by way of [`yosys`], and
//! [`optimise`](optimise()) makes circuits smaller and shallower.
//!
//! # Promises
//!
//! - Bytes of a file never cause a panic, an overflow, or an allocation beyond the [`Limits`] and the size of the file itself.
//! - A circuit that a reader or a finished builder returns is valid ([`Circuit::validate`]).
//! - Generated circuits do not change between runs or machines, and [`Circuit::canonical_hash`] tells any two circuits apart.
//! - Bit 0 is the least significant bit, and byte `k` of a value is its wires `8k..8k + 8`.
//!
//! # Limits
//!
//! - Evaluation in the clear hides nothing: its time and memory depend on the circuit only, but no promise about secrets follows from that.
//! - Other file formats are not here.

mod build;
mod check;
mod clock;
mod evaluate;
mod gate;
mod hash;
mod optimise;
mod stats;

pub mod bristol;
pub mod scd;
pub mod schedule;
pub mod verilog;
pub mod yosys;

pub use bristol::Flavour;
pub use build::{Builder, CatalogueEntry, MakeError, catalogue, generate, make};
pub use check::{CircuitError, Limits};
pub use clock::{Clock, Initial, Register};
pub use evaluate::EvaluateError;
pub use gate::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
pub use optimise::{balance, optimise, schedule, simplify};
pub use stats::Stats;
