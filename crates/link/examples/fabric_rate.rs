//! Latency and rate of links between two threads of one machine, over TLS and over libfabric, beside what bounds them: a plain TCP connection over
//! loopback, and copies in memory.

#![allow(
    clippy::unwrap_used,
    reason = "without a connection there is nothing to measure"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use common::{World, at, party, soon, take};
use veil_link::{Bounds, Link, LinkKind};

/// Messages there and back per size.
const ROUNDS: u32 = 4000;

/// Bytes per measurement of a rate.
const TOTAL: usize = 1 << 30;

/// One message of that.
const LONG: usize = 1 << 20;

const SIZES: [usize; 3] = [64, 4096, 65536];

/// Half of a round trip: median and smallest, in microseconds.
fn halves(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let half = |at: usize| times[at] * 1e6 / 2.0;
    (half(times.len() / 2), half(0))
}

/// Each message is answered by one as long.
fn latency(kind: LinkKind, bytes: usize) -> (f64, f64) {
    let bounds = Bounds {
        longest: 1 << 20,
        early: 1 << 22,
        credit: 1 << 22,
        places: ROUNDS,
        chunks: 1,
        epochs: 1,
    };
    let (mut a, mut b) = World::pair(kind, bounds);
    let echo = thread::spawn(move || {
        let mut into = vec![0; bytes];
        for place in 0..ROUNDS {
            b.expect(party(0), at(place), bytes as u64).unwrap();
            take(&mut b, party(0), at(place), &mut into);
            assert!(b.post(party(0), at(place), &into).unwrap());
            b.poll().unwrap();
        }
        b.close(soon()).unwrap();
    });
    let mut message = vec![1; bytes];
    let mut times = Vec::new();
    for place in 0..ROUNDS {
        let start = Instant::now();
        a.expect(party(1), at(place), bytes as u64).unwrap();
        assert!(a.post(party(1), at(place), &message).unwrap());
        a.poll().unwrap();
        take(&mut a, party(1), at(place), &mut message);
        times.push(start.elapsed().as_secs_f64());
    }
    a.close(soon()).unwrap();
    echo.join().unwrap();
    halves(times)
}

/// Gigabytes per second, one way.
fn rate(kind: LinkKind) -> f64 {
    let count = (TOTAL / LONG) as u32;
    let bounds = Bounds {
        longest: LONG as u64,
        early: 1 << 23,
        credit: 1 << 22,
        places: count,
        chunks: 1,
        epochs: 1,
    };
    let (mut a, mut b) = World::pair(kind, bounds);
    let start = Instant::now();
    let sender = thread::spawn(move || {
        let message = vec![1; LONG];
        for place in 0..count {
            while !a.post(party(1), at(place), &message).unwrap() {
                a.wait(soon()).unwrap();
            }
        }
        a.close(soon()).unwrap();
    });
    let mut into = vec![0; LONG];
    let ahead = 8.min(count);
    for place in 0..ahead {
        b.expect(party(0), at(place), LONG as u64).unwrap();
    }
    for place in 0..count {
        take(&mut b, party(0), at(place), &mut into);
        if place + ahead < count {
            b.expect(party(0), at(place + ahead), LONG as u64).unwrap();
        }
    }
    let taken = start.elapsed().as_secs_f64();
    b.close(soon()).unwrap();
    sender.join().unwrap();
    TOTAL as f64 / taken / 1e9
}

fn loopback() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let b = listener.accept().unwrap().0;
    for socket in [&a, &b] {
        socket.set_nodelay(true).unwrap();
    }
    (a, b)
}

/// The same over a plain connection.
fn plain_latency(bytes: usize) -> (f64, f64) {
    let (mut a, mut b) = loopback();
    let echo = thread::spawn(move || {
        let mut into = vec![0; bytes];
        for _ in 0..ROUNDS {
            b.read_exact(&mut into).unwrap();
            b.write_all(&into).unwrap();
        }
    });
    let mut message = vec![1; bytes];
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        a.write_all(&message).unwrap();
        a.read_exact(&mut message).unwrap();
        times.push(start.elapsed().as_secs_f64());
    }
    echo.join().unwrap();
    halves(times)
}

fn plain_rate() -> f64 {
    let (mut a, mut b) = loopback();
    let start = Instant::now();
    let sender = thread::spawn(move || {
        let message = vec![1; LONG];
        for _ in 0..TOTAL / LONG {
            a.write_all(&message).unwrap();
        }
    });
    let mut into = vec![0; LONG];
    for _ in 0..TOTAL / LONG {
        b.read_exact(&mut into).unwrap();
    }
    sender.join().unwrap();
    TOTAL as f64 / start.elapsed().as_secs_f64() / 1e9
}

fn copies() -> f64 {
    let (from, mut into) = (vec![1_u8; LONG], vec![0; LONG]);
    let start = Instant::now();
    for _ in 0..TOTAL / LONG {
        into.copy_from_slice(black_box(&from));
        black_box(&mut into);
    }
    TOTAL as f64 / start.elapsed().as_secs_f64() / 1e9
}

fn row(name: &str, latency: impl Fn(usize) -> (f64, f64), rate: f64) {
    let cells = SIZES.map(|bytes| {
        let (median, least) = latency(bytes);
        format!("{least:8.1} / {median:8.1}")
    });
    println!("{name:<12} {} {rate:10.2}", cells.join(" "));
}

fn main() {
    println!(
        "half a round trip in us, least / median, of 64 B, 4 KiB, 64 KiB; then GB/s of messages of 1 MiB"
    );
    for name in ["tls", "fabric:tcp", "fabric:shm"] {
        let kind: LinkKind = name.parse().unwrap();
        match kind.check() {
            Ok(()) => row(name, |bytes| latency(kind, bytes), rate(kind)),
            Err(why) => println!("{name:<12} skipped: {why}"),
        }
    }
    row("plain TCP", plain_latency, plain_rate());
    println!("{:<12} {:>62.2}", "copies", copies());
}
