//! Messages of the set-up of oblivious transfers, changed: unit tests of `crates/protocol` run the same without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_protocol::ot::fuzz_set_up(bytes);
});
