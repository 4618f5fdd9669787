//! Tests of homes, consent and services: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod consent;
mod fuzz;
mod home;
mod log;
mod pairing;
mod policy;
mod tamper;
