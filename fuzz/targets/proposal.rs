//! A proposal as a planning process reads it: `crates/node/tests/fuzz.rs` runs damaged ones without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_node::planner::fuzz_proposal(bytes);
});
