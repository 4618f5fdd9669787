//! Throughput of links over TLS on loopback: payload bytes per CPU-second of both ends together, and by the clock.

#![allow(
    clippy::unwrap_used,
    reason = "without a connection there is nothing to measure"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::thread;
use std::time::Instant;

use common::{World, at, party, soon};
use rustix::time::{ClockId, clock_gettime};
use veil_link::{Bounds, Link, LinkKind};

/// Payload bytes per size of message.
const TOTAL: u64 = 4 << 30;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// CPU time of this process, user and system, in seconds.
fn cpu() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Failure> {
    let [a, b] = [0, 1].map(party);
    for bytes in [256, 4096, 16384, 65536, 1 << 20] {
        let count = (TOTAL / bytes / if bytes < 4096 { 8 } else { 1 }) as u32;
        let bounds = Bounds {
            longest: 1 << 20,
            early: 1 << 22,
            credit: 1 << 21,
            places: count,
            chunks: 1,
        };
        let (mut first, mut second) = World::pair(LinkKind::Tls, bounds);
        let (start, before) = (Instant::now(), cpu());
        let sender = thread::spawn(move || -> Result<(), Failure> {
            let message = vec![1; bytes as usize];
            for place in 0..count {
                while !first.post(b, at(place), &message)? {
                    first.wait(soon())?;
                }
            }
            Ok(first.close(soon())?)
        });
        let mut got = vec![0; bytes as usize];
        // As an engine does: announced ahead, taken in order.
        let ahead = 16.min(count);
        for place in 0..ahead {
            second.expect(a, at(place), bytes)?;
        }
        for place in 0..count {
            while !second.land(a, at(place), &mut got)? {
                second.wait(soon())?;
            }
            if place + ahead < count {
                second.expect(a, at(place + ahead), bytes)?;
            }
        }
        second.close(soon())?;
        sender.join().map_err(|_| "the sender panicked")??;
        let (wall, spent) = (start.elapsed().as_secs_f64(), cpu() - before);
        let gigabytes = (u64::from(count) * bytes) as f64 / 1e9;
        println!(
            "{bytes:8} bytes a message: {:5.2} GB per CPU-second of both ends, {:5.2} GB/s by the clock",
            gigabytes / spent,
            gigabytes / wall
        );
    }
    Ok(())
}
