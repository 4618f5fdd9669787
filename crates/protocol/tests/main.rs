//! Tests of protocols without a network: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod checks;
mod common;
mod contract;
mod hashes;
mod ot_both;
mod ot_cache;
mod ot_set_up;
mod ot_silent;
mod ot_transfers;
mod ot_vole;
mod plan;
mod psi;
mod views;
