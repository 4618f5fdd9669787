//! SCD netlists: `crates/circuit/tests/scd.rs` runs the same without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    veil_circuit::scd::fuzz(text);
});
