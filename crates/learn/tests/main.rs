//! Tests of models: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod clusters;
mod components;
mod descent;
mod fits;
mod networks;
mod secret;
mod trees;
