//! A dataset of shares: `crates/store/tests/damage.rs` runs damaged ones without libFuzzer.

#![no_main]

use std::sync::LazyLock;

static ROOT: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary folder"));

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let key = veil_store::StoreKey::derive(&[0x5e; 32]);
    veil_store::fuzz_dataset(ROOT.path(), &key, bytes);
});
