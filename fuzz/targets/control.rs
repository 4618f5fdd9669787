//! What members ask each other, and answer: `crates/node/tests/fuzz.rs` runs damaged ones without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_node::control::fuzz_control(bytes);
});
