//! Tests of queries: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod accepted;
mod claims;
mod common;
mod descent;
mod families;
mod flags;
mod forests;
mod functions;
mod inference;
mod jobs;
mod kept;
mod limits;
mod models;
mod networks;
mod oracle;
mod parties;
mod ranges;
mod reals;
mod refused;
mod rules;
mod secret;
mod sizes;
mod sorts;
mod sums;
mod three;
mod tpch;
mod trees;
mod turns;
mod two;
