//! The first bytes of a dialler, and the answer to them: unit tests of `crates/link` damage them without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_link::tls::fuzz_preface(bytes);
});
