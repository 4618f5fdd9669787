//! Silent transfers between two parties on every device: honest ones against the model and against their law, and lies of either (cases T14 to T17 of the
//! sender's sums, and of what the receiver tells).

mod byzantine;
mod laws;
mod model;
pub(crate) mod pair;
