//! What no link over TLS spares, measured: the cipher, once at each end, and the socket. Benchmarks compare rates with it.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use aws_lc_rs::error::Unspecified;
use rustix::time::{ClockId, clock_gettime};

use crate::aead::{Cipher, Key, TAG};

/// Bytes of plaintext in a record of TLS.
pub const RECORD: usize = 16 << 10;

/// Bytes that one call takes from a socket, or gives to it, at most.
pub const CALL: usize = 256 << 10;

/// What bytes cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cost {
    /// Nanoseconds of CPU time per byte, user and system, of all threads of this process.
    pub cpu: f64,
    /// Bytes per nanosecond of the clock.
    pub rate: f64,
}

/// CPU time of this process, user and system, in seconds.
fn cpu() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// What `work` costs for each of so many bytes.
///
/// # Errors
/// Those of `work`.
pub fn measure<E>(bytes: u64, work: impl FnOnce() -> Result<(), E>) -> Result<Cost, E> {
    let (start, before) = (Instant::now(), cpu());
    work()?;
    let (wall, spent) = (start.elapsed().as_secs_f64(), cpu() - before);
    Ok(Cost {
        cpu: spent * 1e9 / bytes as f64,
        rate: bytes as f64 / 1e9 / wall,
    })
}

/// Two ends of a socket on loopback.
///
/// # Errors
/// As of sockets.
pub fn sockets() -> io::Result<[TcpStream; 2]> {
    let port = TcpListener::bind("127.0.0.1:0")?;
    let dialled = TcpStream::connect(port.local_addr()?)?;
    let (heard, _) = port.accept()?;
    dialled.set_nodelay(true)?;
    Ok([dialled, heard])
}

/// The cipher alone, over `count` messages of so many bytes: by records, once from the source, once to the destination.
///
/// # Errors
/// [`Unspecified`] if the cipher refuses a record, which it has no reason to.
pub fn cipher(bytes: usize, count: u32) -> Result<Cost, Unspecified> {
    let key = Key::new(Cipher::Aes128Gcm, &[7; 16]);
    let (message, mut got) = (vec![1; bytes], vec![0; RECORD + 1]);
    let room = RECORD + 1 + TAG;
    let mut sealed = vec![0; bytes.div_ceil(RECORD) * room];
    measure(u64::from(count) * bytes as u64, || {
        for number in 0..count {
            let nonce = |piece: usize| {
                let mut nonce = [0; 12];
                nonce[..4].copy_from_slice(&number.to_le_bytes());
                nonce[4..].copy_from_slice(&piece.to_le_bytes());
                nonce
            };
            let pieces = || message.chunks(RECORD).enumerate();
            for ((piece, from), to) in pieces().zip(sealed.chunks_mut(room)) {
                key.seal(nonce(piece), &[], from, 0, &mut to[..from.len() + 1 + TAG])?;
            }
            for ((piece, from), sealed) in pieces().zip(sealed.chunks(room)) {
                let length = from.len() + 1;
                key.open(
                    nonce(piece),
                    &[],
                    &sealed[..length + TAG],
                    &mut got[..length],
                )?;
            }
        }
        Ok(())
    })
}

/// The socket alone, over `count` messages of so many bytes: as many bytes per call as a link sends.
///
/// # Errors
/// As of sockets.
pub fn socket(bytes: usize, count: u32) -> io::Result<Cost> {
    let [mut dialled, mut heard] = sockets()?;
    let total = u64::from(count) * bytes as u64;
    measure(total, || {
        let call = bytes.clamp(RECORD, CALL);
        let sender = thread::spawn(move || -> io::Result<()> {
            let message = vec![1; call];
            let mut left = total;
            while left > 0 {
                let some = left.min(call as u64);
                dialled.write_all(&message[..some as usize])?;
                left -= some;
            }
            Ok(())
        });
        let mut got = vec![0; CALL];
        while heard.read(&mut got)? > 0 {}
        sender
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the sender panicked")))
    })
}
