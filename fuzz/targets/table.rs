//! An owner's CSV file of a statistics job: `crates/program/tests/tables.rs` runs damaged ones without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_program::stats::fuzz_table("table.csv", bytes);
});
