//! Strings that people send each other: unit tests of `crates/node` damage them without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_node::fuzz_string(bytes);
});
