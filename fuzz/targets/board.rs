//! What a board answers its host, and a host asks a board: `crates/device-fpga/tests/board.rs` damages messages without libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    veil_device_fpga::board::fuzz_messages(bytes);
});
