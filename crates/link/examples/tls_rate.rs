//! Cost of links over TLS on loopback: nanoseconds of CPU time per payload byte, of both ends together, beside what the same bytes cost in
//! rustls' own buffers, and beside the two things that no implementation spares: the cipher, once at each end, and the socket.

#![allow(
    clippy::unwrap_used,
    reason = "without a connection there is nothing to measure"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{BufRead, IoSlice, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use common::{World, at, party, soon};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use veil_link::floor::{self, CALL, Cost, RECORD, measure, sockets};
use veil_link::{Bounds, Link, LinkKind};

/// Payload bytes per measurement.
const TOTAL: u64 = 256 << 20;

/// Measurements, of which the least counts: neighbours only make them longer.
const ROUNDS: usize = 7;

/// Bytes of the header of a frame, as links have it.
const HEADER: usize = 40;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The cipher, with errors as the others have them.
fn cipher(bytes: usize, count: u32) -> Result<Cost, Failure> {
    Ok(floor::cipher(bytes, count)?)
}

fn socket(bytes: usize, count: u32) -> Result<Cost, Failure> {
    Ok(floor::socket(bytes, count)?)
}

/// The link, used as an engine does: announced ahead, taken in order.
fn link(bytes: usize, count: u32) -> Result<Cost, Failure> {
    let [a, b] = [0, 1].map(party);
    let bounds = Bounds {
        longest: 1 << 20,
        early: 1 << 22,
        credit: 1 << 21,
        places: count,
        chunks: 1,
        epochs: 1,
    };
    let (mut first, mut second) = World::pair(LinkKind::Tls, bounds);
    measure(u64::from(count) * bytes as u64, || {
        let sender = thread::spawn(move || -> Result<(), Failure> {
            let message = vec![1; bytes];
            for place in 0..count {
                while !first.post(b, at(place), &message)? {
                    first.wait(soon())?;
                }
            }
            Ok(first.close(soon())?)
        });
        let mut got = vec![0; bytes];
        let ahead = 16.min(count);
        for place in 0..ahead {
            second.expect(a, at(place), bytes as u64)?;
        }
        for place in 0..count {
            while !second.land(a, at(place), &mut got)? {
                second.wait(soon())?;
            }
            if place + ahead < count {
                second.expect(a, at(place + ahead), bytes as u64)?;
            }
        }
        second.close(soon())?;
        sender.join().map_err(|_| "the sender panicked")?
    })
}

/// The same frames through rustls' buffered connection, as links had it: header and payload into its writer, the socket's bytes into its
/// reader, plaintext into a body, the body to its place.
fn buffered(bytes: usize, count: u32) -> Result<Cost, Failure> {
    let name = "peer.veil.invalid";
    let signed = rcgen::generate_simple_self_signed([name.to_owned()])?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(signed.cert.der().clone())?;
    let mut server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)?;
    server.send_tls13_tickets = 0;
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites =
        vec![rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256];
    let client = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(client), ServerName::try_from(name)?)?;
    let mut server = ServerConnection::new(Arc::new(server))?;
    let [mut dialled, mut heard] = sockets()?;
    let shaken = thread::spawn(move || -> Result<_, Failure> {
        client.complete_io(&mut dialled)?;
        Ok((client, dialled))
    });
    server.complete_io(&mut heard)?;
    let (mut client, mut dialled) = shaken.join().map_err(|_| "the dialler panicked")??;
    client.set_buffer_limit(Some(CALL));
    measure(u64::from(count) * bytes as u64, || {
        let sender = thread::spawn(move || -> Result<(), Failure> {
            let message = vec![1; bytes];
            let header = [0; HEADER];
            let send = |client: &mut ClientConnection, dialled: &mut TcpStream| {
                while client.wants_write() {
                    client.write_tls(dialled)?;
                }
                Ok::<(), Failure>(())
            };
            for _ in 0..count {
                let (mut head, mut rest) = (&header[..], &message[..]);
                while !rest.is_empty() {
                    let slices = [IoSlice::new(head), IoSlice::new(rest)];
                    let taken = client.writer().write_vectored(&slices)?;
                    let of_head = taken.min(head.len());
                    (head, rest) = (&head[of_head..], &rest[taken - of_head..]);
                    // Short messages share records, as in links.
                    if bytes >= RECORD || !rest.is_empty() {
                        send(&mut client, &mut dialled)?;
                    }
                }
            }
            send(&mut client, &mut dialled)
        });
        let (mut received, mut from) = (vec![0; CALL], 0..0);
        let mut body = Vec::with_capacity(bytes + HEADER);
        let mut got = vec![0; bytes];
        let mut left = count;
        while left > 0 {
            let mut reader = server.reader();
            let taken = match reader.fill_buf() {
                Ok(plain) => {
                    let some = plain.len().min(bytes + HEADER - body.len());
                    body.extend_from_slice(&plain[..some]);
                    some
                }
                Err(_) => 0,
            };
            reader.consume(taken);
            if body.len() == bytes + HEADER {
                got.copy_from_slice(&body[HEADER..]);
                body.clear();
                left -= 1;
                continue;
            }
            if taken > 0 {
                continue;
            }
            if from.is_empty() {
                from = 0..heard.read(&mut received)?;
            }
            from.start += server.read_tls(&mut &received[from.clone()])?;
            server.process_new_packets()?;
        }
        sender.join().map_err(|_| "the sender panicked")?
    })
}

fn main() -> Result<(), Failure> {
    println!("ns of CPU time per byte, both ends (GB/s by the clock)");
    println!(
        "{:>8}  {:>15}  {:>15}  {:>15}  {:>15}",
        "message", "link", "buffered rustls", "cipher alone", "socket alone"
    );
    for bytes in [256, 4096, RECORD, 64 << 10, 256 << 10, 1 << 20] {
        let total = if bytes < 4096 { TOTAL / 8 } else { TOTAL };
        let count = (total / bytes as u64) as u32;
        let mut best = [[f64::INFINITY, 0.0]; 4];
        for _ in 0..ROUNDS {
            for (best, work) in best.iter_mut().zip([link, buffered, cipher, socket]) {
                let Cost { cpu, rate } = work(bytes, count)?;
                *best = [best[0].min(cpu), best[1].max(rate)];
            }
        }
        let columns =
            best.map(|[cost, rate]| format!("  {:>15}", format!("{cost:.3} ({rate:.2})")));
        println!("{bytes:8}{}", columns.concat());
    }
    Ok(())
}
