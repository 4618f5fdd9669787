//! A file of a model, trees or a network: `crates/program/tests/queries/networks.rs` and `forests.rs` read damaged ones without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = veil_program::read_model("model", bytes);
});
