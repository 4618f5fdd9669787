//! Checks and generators of the project itself.
fn main() {}
