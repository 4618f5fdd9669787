//! Tests of links: one program for all of them, which links once.

mod common;
mod fabric;
mod meeting;
mod memory;
mod other_stage;
mod port;
mod replay;
mod tls;
