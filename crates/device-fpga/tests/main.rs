//! Tests of simulated cores: one program for all of them, which links once. Without cores it is there and empty, so that `--test tests` names it in
//! every build.
#![cfg(feature = "simulated")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod board;
mod common;
mod device;
mod loops;
mod node;
mod offset;
mod ordered;
mod shares;
