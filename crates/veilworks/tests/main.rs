//! Tests of the facade: one program for all of them, which links once.

mod errors;
mod examples;
mod local;
mod participants;
