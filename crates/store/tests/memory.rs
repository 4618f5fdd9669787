//! A dataset that is much larger than the memory that keeping and loading it may take.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::{description, expected, key, packed, parties, parts};
use veil_job::Slice;
use veil_math::Ring;
use veil_store::{Reader, Writer};
use veil_testkit::peak_memory;

/// Of the whole process, test harness included.
const BUDGET: u64 = 32 << 20;
const ROWS: u64 = 3_000_000;
const CHUNK: u32 = 16_384;
const LANES: usize = 4;

/// Does something for every one of `all`, in as many threads as a run has lanes.
fn on_lanes<T: Sync>(all: &[T], act: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    act(one);
                }
            });
        }
    });
}

#[test]
fn a_large_dataset_takes_no_more_memory_than_a_small_one() {
    let root = tempfile::tempdir().unwrap();
    let d = description(Ring::Z64, &[1, 1], false, &[ROWS], CHUNK);
    // The same shares in every chunk: what is tested is not their making.
    let shares = |slice: Slice| {
        let first = Slice { first: 0, ..slice };
        packed(&d, d.ring, 0, 0, first)
    };
    let full = Slice {
        block: 0,
        first: 0,
        rows: CHUNK,
    };
    let [full, last] =
        [CHUNK, (ROWS % u64::from(CHUNK)) as u32].map(|rows| shares(Slice { rows, ..full }));
    let shares = |slice: &Slice| if slice.rows == CHUNK { &full } else { &last };
    let parts = parts(&d);

    let writer = Writer::create(root.path(), &key(), &d).unwrap();
    on_lanes(&parts, |(port, component, slice)| {
        writer
            .keep(*port, *component, *slice, shares(slice))
            .unwrap();
    });
    writer.finish().unwrap();
    drop(writer);
    let bytes = fs::metadata(root.path().join("pay 2025/shares.arrow"))
        .unwrap()
        .len();
    assert!(bytes > 2 * BUDGET, "{bytes} bytes prove nothing");
    let written = peak_memory();
    assert!(
        written < BUDGET,
        "{written} bytes of memory to write {bytes}"
    );

    let parties = parties();
    let reader =
        Reader::open(root.path(), "pay 2025", &key(), &expected(&parties, d.ring)).unwrap();
    on_lanes(&parts, |(port, component, slice)| {
        let want = shares(slice);
        let mut into = vec![0; want.len()];
        reader.load(*port, *component, *slice, &mut into).unwrap();
        assert!(into == *want, "{slice:?}");
    });
    let loaded = peak_memory();
    assert!(loaded < BUDGET, "{loaded} bytes of memory to load {bytes}");
}
