//! Circuits: what is computed, before anyone knows by which protocol.
//!
//! A [`Circuit`] is a list of gates over one ring, in topological order by construction. Gate `i` drives wire
//! `inputs + i`.

mod gate;

pub use gate::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
