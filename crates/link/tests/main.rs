//! Tests of links: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;
mod fabric;
mod meeting;
mod memory;
mod other_stage;
mod port;
mod replay;
mod tls;
