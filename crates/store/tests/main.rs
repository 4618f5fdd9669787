//! Tests of stored shares: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;
mod damage;
mod fit;
mod full;
mod round_trip;
mod second_reader;
mod stock;
mod stock_files;
mod stock_kept;
mod stock_kinds;
mod writing;
