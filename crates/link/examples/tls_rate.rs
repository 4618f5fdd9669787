//! Throughput of links over TLS on loopback: payload bytes per CPU-second of both ends together, and by the clock.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use veil_link::tls::{Identity, Meeting, Port, Reception, Terms, TlsLink, meet};
use veil_link::{Bounds, Link};
use veil_session::{Channel, Frame, PartyId, Peer, PlanHash, StepId};

/// Payload bytes per size of message.
const TOTAL: u64 = 4 << 30;

type Failure = Box<dyn std::error::Error + Send + Sync>;

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

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// CPU time of this process, user and system, in seconds.
fn cpu() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

fn pair(bounds: Bounds) -> Result<(TlsLink, TlsLink), Failure> {
    let [a, b, _] = PartyId::ALL.map(Peer::Party);
    let (first, second) = (Identity::generate()?, Identity::generate()?);
    let pins: BTreeMap<_, _> = [(a, first.fingerprint()), (b, second.fingerprint())].into();
    let terms = |me| Terms {
        me,
        plan: PlanHash([1; 32]),
        pins: pins.clone(),
        other: None,
    };
    let reception = Reception::sole([second.fingerprint()]);
    let port = Port::bind(&first, "127.0.0.1:0", reception)?;
    let dial = [(a, port.address().to_string())];
    let dialling = Meeting {
        dial: &dial,
        from: &[],
        lanes: 1,
        until: soon(),
    };
    let listening = Meeting {
        dial: &[],
        from: &[b],
        ..dialling
    };
    let go = AtomicBool::new(false);
    thread::scope(|scope| {
        let dialler = scope.spawn(|| meet(&second, &terms(b), None, &dialling, &go));
        let mut heard = meet(&first, &terms(a), Some(&port), &listening, &go)?;
        let mut dialled = dialler.join().map_err(|_| "the dialler panicked")??;
        Ok((
            TlsLink::new(heard.remove(0), bounds),
            TlsLink::new(dialled.remove(0), bounds),
        ))
    })
}

fn main() -> Result<(), Failure> {
    let [a, b, _] = PartyId::ALL.map(Peer::Party);
    for bytes in [256, 4096, 16384, 65536, 1 << 20] {
        let count = (TOTAL / bytes / if bytes < 4096 { 8 } else { 1 }) as u32;
        let bounds = Bounds {
            longest: 1 << 20,
            early: 1 << 22,
            credit: 1 << 21,
            places: count,
            chunks: 1,
        };
        let (mut first, mut second) = pair(bounds)?;
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
