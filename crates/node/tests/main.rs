//! Tests of homes, consent and services: one program for all of them, which links once.

mod consent;
mod fuzz;
mod home;
mod log;
mod pairing;
mod policy;
mod tamper;
