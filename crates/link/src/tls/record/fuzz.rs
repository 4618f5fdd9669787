//! The record layer as a function of bytes, for a fuzzer: a script of what a peer sends, which holds the keys or damages what it sealed.

use std::io::IoSlice;

use rustls::Error;
use zeroize::Zeroizing;

use super::keys::{Keys, Suite};
use super::open::{FRUITLESS, RECEIVE};
use super::{FULL, HEAD, LONGEST, OVERHEAD, Records, TAG, head, kind};

const SECRETS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

/// What end `end` sends under.
fn keys(end: usize) -> Keys {
    let secret = Zeroizing::new(SECRETS[end].to_vec());
    Keys::of(Suite::AES_128_GCM_SHA256, secret, 0)
}

/// The two ends of a connection: the one that dialled, and the other.
pub(super) fn ends() -> [Records; 2] {
    [0, 1].map(|end| Records::new(keys(end), keys(1 - end), end == 0, Vec::new()))
}

/// A peer that seals what it likes, under the keys of one end.
pub(super) struct Forger(Keys);

impl Forger {
    /// Under the keys of what end `end` sends.
    pub(super) fn new(end: usize) -> Self {
        Forger(keys(end))
    }

    /// A record of this type, with so many zeros behind.
    pub(super) fn seal(&mut self, kind: u8, content: &[u8], zeros: usize) -> Vec<u8> {
        let mut inner = content.to_vec();
        inner.push(kind);
        inner.resize(inner.len() + zeros, 0);
        let last = inner.pop().unwrap_or_default();
        let mut record = vec![0; inner.len() + OVERHEAD];
        let head = head(inner.len() + 1 + TAG);
        record[..HEAD].copy_from_slice(&head);
        let sealed = self.0.seal(last, &inner, head, &mut record[HEAD..]);
        sealed.expect("the numbers of records do not end here");
        record
    }

    /// The next keys.
    pub(super) fn renew(&mut self) {
        self.0.renew();
    }
}

/// Hands `bytes` to an end, as a socket would.
pub(super) fn feed(end: &mut Records, bytes: &[u8]) {
    end.space().extend_from_slice(bytes);
}

/// Bytes of a script, zeros after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> usize {
        let Some((byte, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(*byte)
    }

    fn some(&mut self, most: usize) -> &[u8] {
        let (some, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        some
    }
}

/// For fuzzing: takes `bytes` for a script of what a peer sends and of how this side takes it. The plaintext that comes out is the beginning of
/// what the peer sealed, whatever lay between; what this side answers opens at the peer.
///
/// # Panics
///
/// If other plaintext comes out, if more is held than the layer says, or if an answer does not open.
pub fn fuzz_records(bytes: &[u8]) {
    let mut script = Script(bytes);
    let [mut near, mut far] = ends();
    let mut forger = Forger::new(1);
    let (mut sent, mut got) = (Vec::new(), Vec::new());
    // The peer has sent something that ends the connection, or sealed what may look like data.
    let (mut strange, mut forged) = (false, false);
    // Records one after the other that bring no data.
    let mut idle = 0;
    while !script.0.is_empty() {
        idle += 1;
        let mut stream = match script.byte() % 8 {
            0 | 1 => {
                let length = (script.byte() * 256 + script.byte()).min(FULL);
                let zeros = script.byte() % 4;
                // Content that another place, or another record, does not have.
                let content: Vec<u8> = (sent.len()..sent.len() + length)
                    .map(|at| (at ^ (at >> 8)) as u8)
                    .collect();
                let zeros = zeros.min(FULL - length);
                let record = forger.seal(kind::DATA, &content, zeros);
                if length > 0 {
                    idle = 0;
                }
                sent.extend_from_slice(&content);
                record
            }
            2 => {
                let answer = (script.byte() % 2) as u8;
                let record = forger.seal(kind::HANDSHAKE, &[24, 0, 0, 1, answer], 0);
                forger.renew();
                record
            }
            3 => {
                let kind = script.byte() as u8;
                let (most, zeros) = (script.byte(), script.byte());
                (strange, forged) = (true, true);
                forger.seal(kind, script.some(most), zeros)
            }
            4 => {
                let most = script.byte();
                let mut content = vec![4, 0, 0, most as u8];
                content.resize(4 + most, 1);
                forger.seal(kind::HANDSHAKE, &content, 0)
            }
            5 => {
                strange = true;
                let most = script.byte();
                script.some(most).to_vec()
            }
            6 => {
                strange = true;
                forger.seal(kind::ALERT, &[script.byte() as u8, script.byte() as u8], 0)
            }
            _ => {
                let bytes = vec![7; script.byte() * 64];
                let written = near.write(&[IoSlice::new(&bytes)]);
                idle -= 1;
                answered(&mut near, &mut far);
                if written.is_err() {
                    return;
                }
                continue;
            }
        };
        if script.byte() % 64 == 63 && !stream.is_empty() {
            strange = true;
            let at = script.byte() * 256 + script.byte();
            let at = at % stream.len();
            stream[at] ^= 1 << (script.byte() % 8);
        }
        let step = 1 + script.byte() * 128;
        let want = script.byte() * 64;
        for piece in stream.chunks(step) {
            feed(&mut near, piece);
            let taken = take(&mut near, want, &mut got);
            assert!(forged || sent.starts_with(&got), "what came out was sent");
            if let Err(error) = taken {
                assert!(strange || idle > FRUITLESS, "{error}");
                answered(&mut near, &mut far);
                return;
            }
        }
        assert!(strange || got.len() == sent.len(), "all that came is here");
        let held = near.space().capacity();
        assert!(
            held <= RECEIVE + LONGEST,
            "no more is held than one call brings"
        );
    }
}

/// Takes all that is here, `want` bytes at a time where that is not 0.
fn take(end: &mut Records, want: usize, got: &mut Vec<u8>) -> Result<(), Error> {
    loop {
        if want > 0 {
            let mut into = vec![0; want + 1];
            let filled = end.fill(&mut into)?;
            got.extend_from_slice(&into[..filled]);
            if filled > 0 {
                continue;
            }
        }
        let plain = end.plain();
        got.extend_from_slice(plain);
        end.take(plain.len());
        if !end.open()? {
            return Ok(());
        }
    }
}

/// The peer opens what an end sends.
fn answered(near: &mut Records, far: &mut Records) {
    let waiting = near.waiting().expect("what waits can be sealed").to_vec();
    near.left(waiting.len());
    feed(far, &waiting);
    // Data and updates, and perhaps an alert at the end.
    match take(far, 0, &mut Vec::new()) {
        Ok(()) | Err(Error::AlertReceived(_)) => {}
        Err(error) => panic!("{error}"),
    }
}
