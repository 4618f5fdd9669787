//! Silent transfers between two parties on every device: honest ones against the model and against their law, and lies of either (cases F11 to F14).

mod byzantine;
mod laws;
mod model;
pub(crate) mod pair;
