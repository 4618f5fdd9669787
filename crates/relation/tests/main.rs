//! Tests of relations: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;
mod exprs;
mod forest;
mod network;
mod operators;
mod refused;
mod text;
