//! Yosys' JSON: `crates/circuit/tests/smoke_yosys.rs` runs the same without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    veil_circuit::yosys::fuzz(text);
});
