//! Frames of a peer, through the receiver's checks: unit tests of `crates/link` run mutated streams without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_link::fuzz_frame(bytes);
});
