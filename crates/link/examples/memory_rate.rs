//! Nanoseconds per message of the link in memory: one thread that steps both ends, then two threads.

use std::thread;
use std::time::{Duration, Instant};

use veil_link::{Bounds, Link, memory};
use veil_session::{Channel, Frame, PartyId, Peer, StepId};

const MESSAGES: u32 = 2_000_000;

fn at(place: u32) -> Channel {
    Channel {
        frame: Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: 64,
        },
        step: StepId { place, cycle: 0 },
        part: 0,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bounds = Bounds {
        longest: 1 << 20,
        early: 1 << 22,
        credit: 1 << 22,
        places: MESSAGES,
        chunks: 1,
        epochs: 1,
    };
    let [a, b, _] = PartyId::THREE.map(Peer::Party);
    for bytes in [8, 1024, 16384] {
        let mut links = memory::mesh(&[a, b], bounds);
        let (mut second, mut first) = (
            links.pop().ok_or("two ends")?,
            links.pop().ok_or("two ends")?,
        );
        let (sent, mut got) = (vec![1; bytes], vec![0; bytes]);
        let start = Instant::now();
        for place in 0..MESSAGES {
            second.expect(a, at(place), bytes as u64)?;
            first.post(b, at(place), &sent)?;
            second.land(a, at(place), &mut got)?;
        }
        let one = start.elapsed().as_nanos() as f64 / f64::from(MESSAGES);

        let mut links = memory::mesh(&[a, b], bounds);
        let (mut second, mut first) = (
            links.pop().ok_or("two ends")?,
            links.pop().ok_or("two ends")?,
        );
        let start = Instant::now();
        let sender = thread::spawn(move || -> Result<(), veil_link::LinkError> {
            for place in 0..MESSAGES {
                while !first.post(b, at(place), &sent)? {
                    first.wait(Instant::now() + Duration::from_secs(9))?;
                }
            }
            first.close(Instant::now())
        });
        for place in 0..MESSAGES {
            second.expect(a, at(place), bytes as u64)?;
            while !second.land(a, at(place), &mut got)? {
                second.wait(Instant::now() + Duration::from_secs(9))?;
            }
        }
        sender.join().map_err(|_| "the sender panicked")??;
        let two = start.elapsed().as_nanos() as f64 / f64::from(MESSAGES);
        println!("{bytes:6} bytes: {one:7.1} ns per message in one thread, {two:7.1} ns in two");
    }
    Ok(())
}
