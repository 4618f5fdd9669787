//! Reading a dataset as a function of bytes, for a fuzzer.

use std::fs;
use std::path::Path;

use crate::folder::{Home, MANIFEST, SHARES};
use crate::{StoreKey, verify};

/// For fuzzing: takes `bytes` for the Arrow file and the manifest of a dataset `x` in the folder `root`, cut at their first two bytes,
/// a length in little-endian order of the manifest, and reads all of it. Returns whether it was accepted.
pub fn fuzz_dataset(root: &Path, key: &StoreKey, bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else {
        return false;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (manifest, shares) = rest.split_at(length);
    let Ok(home) = Home::new(root, "x") else {
        return false;
    };
    let written = fs::create_dir_all(&home.folder)
        .and_then(|()| fs::write(home.file(MANIFEST), manifest))
        .and_then(|()| fs::write(home.file(SHARES), shares));
    written.is_ok() && verify(root, "x", key).is_ok()
}
