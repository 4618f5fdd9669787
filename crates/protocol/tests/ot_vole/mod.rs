//! Vectors of products between two parties on every device: honest ones against the model and against their law, and lies of either.

mod byzantine;
mod laws;
mod model;
mod pair;
