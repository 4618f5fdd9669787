//! Bristol Fashion, old Bristol Format, and our formats like them: `crates/circuit/tests/smoke_bristol.rs` runs the same without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    veil_circuit::bristol::fuzz(text);
});
