//! Tests of the command, from outside: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod adverse;
mod asked;
mod bad_input;
mod binding;
mod byzantine;
mod byzantine_views;
mod commands;
mod common;
mod data;
mod draft;
mod durable;
mod estimates;
mod fabric;
mod firsttime;
mod four;
mod guaranteed;
mod home;
mod hostile;
mod intersect;
mod jobs;
mod kept;
mod killed;
mod limits;
mod meeting;
mod network;
mod operator;
mod ot_cache;
mod own_data;
mod party;
mod queries;
mod reshare;
mod rules;
mod secrets;
mod seeing;
mod serve;
mod shadow;
mod shares;
mod soak;
mod stages;
mod statistics;
mod stock;
mod stock_refills;
mod stock_services;
mod stock_transfers;
mod two;
mod two_queries;
mod wishes;

/// The program that is tested.
const PROGRAM: &str = env!("CARGO_BIN_EXE_veil");
