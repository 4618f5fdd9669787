//! Any bytes as a job file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use veil_program::{Files, Job};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Job::parse(text, "/nowhere/job.toml".as_ref(), Files::new());
    }
});
