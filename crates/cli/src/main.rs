//! The `veil` command.
fn main() {}
