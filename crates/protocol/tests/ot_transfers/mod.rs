//! Transfers between two parties on every device: honest ones against the model and against their law, and lies of the receiver (cases
//! D2 and D3).

mod byzantine;
mod laws;
mod model;
pub(crate) mod pair;
