//! Replaying a record as a function of bytes, for a fuzzer.

use super::format::MAGIC;
use super::replay::replay_within;
use super::tape::chain;
use crate::{Cpu, Device, Reference};

/// Bytes of workspaces, so that a run is short.
const MOST_BYTES: u64 = 1 << 18;

/// For fuzzing: takes `bytes` for a record, gives it the digests that it should have, whatever it holds, and drives the reference device
/// and the fastest one with it. Returns whether the fastest one gave what it says. Forms of products live as long as the process: a fuzzer that
/// looks for leaks has to be told not to.
///
/// # Panics
///
/// If the reference device plays the record to its end and the fastest one does not; it keeps no ledger of calls, and refuses less.
#[doc(hidden)]
pub fn fuzz_record(bytes: &[u8]) -> bool {
    let record = sealed(bytes);
    let devices: [Box<dyn Device>; 2] = [Box::new(Reference::default()), Box::new(Cpu::detect())];
    let [reference, cpu] =
        devices.map(|mut device| replay_within(&record[..], &mut *device, MOST_BYTES));
    assert!(cpu.is_ok() || reference.is_err(), "{:?}", cpu.err());
    cpu.is_ok()
}

/// The steps of a record with their right digests.
fn sealed(record: &[u8]) -> Vec<u8> {
    let mut rest = record.strip_prefix(MAGIC).unwrap_or(record);
    let (mut sealed, mut digest) = (MAGIC.to_vec(), [0; 32]);
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (step, after) = after.split_at(length.min(after.len()));
        digest = chain(&digest, step);
        sealed.extend_from_slice(&(step.len() as u64).to_le_bytes());
        sealed.extend_from_slice(step);
        sealed.extend_from_slice(&digest[..8]);
        rest = after.get(8..).unwrap_or_default();
    }
    sealed
}
