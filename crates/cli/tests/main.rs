//! Tests of the command, from outside: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod adverse;
mod bad_input;
mod bench;
mod binding;
mod commands;
mod common;
mod data;
mod devices;
mod durable;
mod fabric;
mod faithless;
mod firsttime;
mod four;
mod guaranteed;
mod home;
mod hostile;
mod jobs;
mod kept;
mod killed;
mod limits;
mod lying;
mod meeting;
mod network;
mod nodes;
mod operator;
mod own_data;
mod party;
mod reshare;
mod rules;
mod secrets;
mod seeing;
mod serve;
mod shares;
mod soak;
mod stages;
mod traces;
mod two;
