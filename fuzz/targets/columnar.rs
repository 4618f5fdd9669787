//! An owner's Parquet or Arrow file of a statistics job: `crates/program/tests/columnar.rs` runs damaged ones without
//! libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_program::stats::fuzz_table("table.parquet", bytes);
    veil_program::stats::fuzz_table("table.arrow", bytes);
});
