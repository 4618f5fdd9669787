//! What protocols send, byte for byte, against vectors of the Python models: a program of its own, which `make quick` builds without the others.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod ag;
#[path = "../common/mod.rs"]
mod common;
mod conversions;
mod cut;
mod four;
mod garbling;
mod inputs;
mod lifts;
mod macs;
mod masked;
mod matrices;
mod moves;
mod ot_set_up;
mod proof;
mod proved;
mod three;
mod truncations;
