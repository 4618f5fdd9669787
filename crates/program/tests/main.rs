//! Tests of jobs and tables: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod broken_csv;
mod columnar;
mod common;
mod common_contract;
mod common_keys;
mod examples;
mod files;
mod integers;
mod intersect;
mod job_errors;
mod keep;
mod queries;
mod reshare;
mod sent;
mod sequential;
mod stats;
mod tables;
mod words;
