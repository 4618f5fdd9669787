//! A device record whose digests are right: `crates/testkit/tests/record.rs` runs forged ones without libFuzzer. Forms of products
//! live as long as the process, so it runs with `ASAN_OPTIONS=detect_leaks=0`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_device::record::fuzz_record(bytes);
});
