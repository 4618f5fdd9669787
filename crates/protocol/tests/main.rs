//! Tests of protocols without a network: one program for all of them, which links once.

mod checks;
mod common;
mod golden;
mod golden4;
mod golden_codes;
mod golden_conversions;
mod golden_cut;
mod golden_garbling;
mod golden_inputs;
mod golden_masked;
mod golden_ot_set_up;
mod golden_proof;
mod hashes;
mod ot_kept;
mod ot_set_up;
mod ot_transfers;
mod plan;
mod views;
