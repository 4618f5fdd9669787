//! Tests of numbers.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod binades;
mod exact;
mod functions;
