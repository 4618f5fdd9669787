//! Circuits: what is computed, before anyone knows by which protocol.
//!
//! **What it is for.** A [`Circuit`] is a list of gates over one ring, in topological order by construction; gate `i`
//! drives wire `sources + i`. One with a [`Clock`] has registers, and is run for a number of cycles. This crate builds circuits ([`Builder`], [`make`]), reads and writes them ([`bristol`]),
//! makes them of Verilog ([`verilog`], by way of [`yosys`]),
//! improves them ([`optimise`](optimise())), and says what they mean: [`Circuit::evaluate`] in the clear is the definition that
//! protocols are tested against.
//!
//! **Who may use it.** Everything that plans or runs a computation. It knows rings and bytes; no protocol, no party.
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
//! **What it promises.** Bytes of a file never cause a panic, an overflow, or an allocation beyond the [`Limits`] and
//! the size of the file itself; a circuit that a reader or a finished builder returns is valid ([`Circuit::validate`]).
//! Generated circuits do not change between runs or machines, and [`Circuit::canonical_hash`] tells any two circuits
//! apart. Bit 0 is the least significant bit, and byte `k` of a value is its wires `8k..8k + 8`.
//!
//! **What it does not.** Evaluation in the clear hides nothing: its time and memory depend on the circuit only, but
//! that is no promise about secrets. Other file formats are not here.

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
