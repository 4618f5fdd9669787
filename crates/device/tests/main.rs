//! Tests of devices against the reference: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod columns;
mod common;
mod escape;
mod moves;
mod one_row;
mod processors;
mod psi;
mod refused;
mod refused_ag;
mod refused_garble;
mod refused_ot;
mod refused_psi;
mod refused_rows;
mod refused_silent;
mod refused_vole;
