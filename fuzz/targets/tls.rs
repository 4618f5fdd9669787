//! Records of a peer that holds the keys of TLS, or damages what it sealed: unit tests of `crates/link` run scripts without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_link::tls::fuzz_records(bytes);
});
