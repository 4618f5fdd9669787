//! A members file: `crates/node/tests/fuzz.rs` runs damaged ones without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_node::fuzz_members(bytes);
});
