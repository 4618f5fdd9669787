//! A circuit, a source and a sink of one's own, and progress while it runs: the sum over a million rows that are made when they are asked for.
//!
//! ```text
//! cargo run --package veilworks --example own_ends
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use veilworks::{Builder, Computation, DataError, Local, Per, Ring, Sink, Slice, Source};

const ROWS: u64 = 1 << 20;

/// The squares of the row numbers, times the number of the owner.
struct Readings(u64);

impl Source for Readings {
    fn fill(&self, _port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        for (row, bytes) in (slice.first..).zip(into.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&(self.0 * row * row).to_le_bytes());
        }
        Ok(())
    }
}

/// Keeps the one number that is opened, and shows it once all is verified.
#[derive(Default)]
struct Total {
    held: Mutex<u64>,
    shown: AtomicU64,
}

impl Sink for Total {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let bytes = values.try_into();
        let bytes = bytes.map_err(|_| DataError::out_of_reach(port, slice))?;
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = u64::from_le_bytes(bytes);
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.shown.store(held, Ordering::Relaxed);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut circuit = Builder::new(Ring::Z64);
    let [x, y] = ["x", "y"].map(|name| circuit.input(name, 1, Per::Row)[0]);
    let product = circuit.mul(x, y);
    circuit.output_sum("total", &[product]);
    let job = Computation::new("inner product", circuit.finish()?)
        .parties(["a", "b", "c"])
        .input("x", "ann")
        .input("y", "bob")
        .output("total", "eve", "the sum of all products")
        .rows(ROWS)
        .job()?;
    let total = Arc::new(Total::default());
    let run = Local::of(&job)
        .source("ann", Arc::new(Readings(1)))
        .source("bob", Arc::new(Readings(3)))
        .sink("eve", total.clone())
        .start();
    for participants in run.progress() {
        let rows = participants.iter().map(|one| one.rows).min();
        eprintln!("{} of {ROWS} rows", rows.unwrap_or_default());
    }
    run.join()?;
    println!("{}", total.shown.load(Ordering::Relaxed));
    Ok(())
}
