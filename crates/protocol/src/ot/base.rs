//! Base transfers: 128 pairs of keys, of which the receiver learns one each (Masny, Rindal, "Endemic Oblivious Transfer", 2019, in the
//! group ristretto255 of RFC 9496).
//!
//! The sender draws a and sends A = aG. For transfer i and choice c the receiver draws b and a point r_{1−c}, and sends r_0 and r_1, where
//! r_c = bG − H(i, 1−c, r_{1−c}). The keys are k_j = K(i, j, A, r_0, r_1, a (r_j + H(i, 1−j, r_{1−j}))), of which the receiver knows
//! k_c = K(…, b A). Both messages are sent at once. H and K have the session and both ends in them.
//!
//! A Byzantine end may choose its own keys, not more: here they mask keys that it did not choose ([`trees`](super::trees)).

use std::num::NonZero;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use sha2::digest::Update;
use sha2::{Digest, Sha256, Sha512};
use subtle::{Choice, ConditionallySelectable};
use veil_session::Secret;
use zeroize::{Zeroize, Zeroizing};

use super::hash::{For, SEAL, open, seal, start};
use super::{Cheat, Ends};

/// Number of base transfers: the bits of an offset.
pub const TRANSFERS: usize = 128;

/// Bytes of the sender's message: A, and its seal.
pub const SENDER_MESSAGE: usize = 32 + SEAL;

/// Bytes of the receiver's message: r_0 and r_1 of each transfer, and its seal.
pub const RECEIVER_MESSAGE: usize = TRANSFERS * 64 + SEAL;

/// Random bytes that the sender takes.
pub const SENDER_RANDOM: usize = 64;

/// Random bytes that the receiver takes.
pub const RECEIVER_RANDOM: usize = TRANSFERS * 128;

/// The sender of base transfers, after its message. Wiped on drop.
pub struct BaseSender {
    ends: Ends,
    a: Zeroizing<Scalar>,
    point: CompressedRistretto,
}

impl BaseSender {
    /// The sender, and its message ([`SENDER_MESSAGE`]).
    pub fn start(ends: &Ends, random: &[u8; SENDER_RANDOM]) -> (Self, Vec<u8>) {
        let a = Zeroizing::new(Scalar::from_bytes_mod_order_wide(random));
        let point = RistrettoPoint::mul_base(&a).compress();
        let mut message = point.to_bytes().to_vec();
        message.extend_from_slice(&seal(ends, For::BaseSender, &message));
        let ends = *ends;
        (BaseSender { ends, a, point }, message)
    }

    /// Both keys of each transfer, from the receiver's message ([`RECEIVER_MESSAGE`]).
    ///
    /// # Errors
    /// [`Cheat::Length`] and [`Cheat::Stranger`] if this is no receiver's message of these ends and this session,
    /// [`Cheat::Twice`] if two points are the same, [`Cheat::Point`] if one does not decode or is the identity.
    pub fn finish(self, message: &[u8]) -> Result<Vec<[Secret; 2]>, Cheat> {
        let body = open(&self.ends, For::BaseReceiver, RECEIVER_MESSAGE, message)?;
        let encoded: &[[u8; 32]] = body.as_chunks().0;
        different(encoded.iter().chain([self.point.as_bytes()]))?;
        // The identity is no point either.
        let mut points = vec![RistrettoPoint::identity(); 2 * TRANSFERS];
        in_parts(&mut points, |i, point| {
            *point = decode(&encoded[i]).unwrap_or_default();
        });
        if points.iter().any(IsIdentity::is_identity) {
            return Err(Cheat::Point);
        }
        let mut keys = vec![[BLANK; 2]; TRANSFERS];
        in_parts(&mut keys, |i, keys| {
            let r = [encoded[2 * i], encoded[2 * i + 1]];
            *keys = [0, 1].map(|j: usize| {
                let hashed = hash_to_point(&self.ends, i, 1 - j as u8, &r[1 - j]);
                let agreed = Zeroizing::new((points[2 * i + j] + hashed) * *self.a);
                key(&self.ends, (i, j as u8), &self.point, &r, &agreed)
            });
        });
        Ok(keys)
    }
}

/// The receiver of base transfers, after its message. Wiped on drop.
pub struct BaseReceiver {
    ends: Ends,
    choices: Zeroizing<[u8; TRANSFERS]>,
    drawn: Vec<Drawn>,
}

/// b of a transfer, and r_0 and r_1.
type Drawn = (Zeroizing<Scalar>, [[u8; 32]; 2]);

impl BaseReceiver {
    /// The receiver that makes these choices (0 or 1), and its message ([`RECEIVER_MESSAGE`]). Of the random bytes of a transfer, 64 are for
    /// the point that it does not know, 64 for its secret.
    pub fn start(
        ends: &Ends,
        choices: Zeroizing<[u8; TRANSFERS]>,
        random: &[u8; RECEIVER_RANDOM],
    ) -> (Self, Vec<u8>) {
        let (chunks, _) = random.as_chunks::<64>();
        let mut drawn = vec![Drawn::default(); TRANSFERS];
        in_parts(&mut drawn, |i, (b, points)| {
            **b = Scalar::from_bytes_mod_order_wide(&chunks[2 * i + 1]);
            let other = RistrettoPoint::from_uniform_bytes(&chunks[2 * i]).compress();
            let hashed = hash_to_point(ends, i, 1 - choices[i], other.as_bytes());
            let chosen = (RistrettoPoint::mul_base(b) - hashed).compress();
            let choice = Choice::from(choices[i]);
            let select = |zero: &CompressedRistretto, one: &CompressedRistretto| {
                <[u8; 32]>::conditional_select(zero.as_bytes(), one.as_bytes(), choice)
            };
            *points = [select(&chosen, &other), select(&other, &chosen)];
        });
        let points = drawn.iter().flat_map(|(_, points)| points.as_flattened());
        let mut message: Vec<u8> = points.copied().collect();
        message.extend_from_slice(&seal(ends, For::BaseReceiver, &message));
        let ends = *ends;
        let receiver = BaseReceiver {
            ends,
            choices,
            drawn,
        };
        (receiver, message)
    }

    /// The chosen key of each transfer, from the sender's message ([`SENDER_MESSAGE`]).
    ///
    /// # Errors
    /// [`Cheat::Length`] and [`Cheat::Stranger`] if this is no sender's message of these ends and this session, [`Cheat::Point`]
    /// if the point does not decode, [`Cheat::Twice`] if it is one of the receiver's own.
    pub fn finish(self, message: &[u8]) -> Result<Vec<Secret>, Cheat> {
        let body = open(&self.ends, For::BaseSender, SENDER_MESSAGE, message)?;
        let encoded: [u8; 32] = body.try_into().map_err(|_| Cheat::Length)?;
        let point = decode(&encoded)?;
        let own = self.drawn.iter().flat_map(|(_, points)| points);
        different(own.chain([&encoded]))?;
        let encoded = CompressedRistretto(encoded);
        let table = RistrettoBasepointTable::create(&point);
        let mut keys = vec![BLANK; TRANSFERS];
        in_parts(&mut keys, |i, of_transfer| {
            let (b, points) = &self.drawn[i];
            let agreed = Zeroizing::new(&table * &**b);
            let place = (i, self.choices[i]);
            *of_transfer = key(&self.ends, place, &encoded, points, &agreed);
        });
        Ok(keys)
    }
}

/// Does something to each item, on several cores: the points of a transfer have nothing to do with those of another, and a thread that
/// waits for them waits for nothing else.
fn in_parts<T: Send>(items: &mut [T], to: impl Fn(usize, &mut T) + Sync) {
    // The system is asked once: it reads files to know.
    static CORES: LazyLock<usize> =
        LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
    let cores = MOST_CORES.min(*CORES);
    let size = items.len().div_ceil(cores).max(1);
    let part = |(number, items): (usize, &mut [T])| {
        for (i, item) in items.iter_mut().enumerate() {
            to(size * number + i, item);
        }
    };
    let parts = Mutex::new(items.chunks_mut(size).enumerate());
    let next = || {
        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.next()
    };
    let work = || {
        while let Some(one) = next() {
            part(one);
        }
    };
    thread::scope(|scope| {
        for _ in 1..cores {
            // A system that gives no thread leaves the parts to those there are.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
}

/// A key that is not made yet.
const BLANK: Secret = Secret::new([0; 16]);

/// Cores that one end takes for its points.
const MOST_CORES: usize = 4;

/// A point of the group in its one encoding, not the identity; there are no points of small order beside it.
fn decode(bytes: &[u8; 32]) -> Result<RistrettoPoint, Cheat> {
    let point = CompressedRistretto(*bytes)
        .decompress()
        .ok_or(Cheat::Point)?;
    if point.is_identity() {
        return Err(Cheat::Point);
    }
    Ok(point)
}

/// Points that were drawn at random are all different.
fn different<'a>(points: impl Iterator<Item = &'a [u8; 32]>) -> Result<(), Cheat> {
    let mut sorted: Vec<_> = points.collect();
    sorted.sort_unstable();
    if sorted.windows(2).any(|two| two[0] == two[1]) {
        return Err(Cheat::Twice);
    }
    Ok(())
}

/// H(i, j, point).
fn hash_to_point(ends: &Ends, i: usize, j: u8, point: &[u8; 32]) -> RistrettoPoint {
    let mut hash: Sha512 = start(ends, For::Point);
    Update::update(&mut hash, &(i as u16).to_le_bytes());
    Update::update(&mut hash, &[j]);
    Update::update(&mut hash, point);
    RistrettoPoint::from_uniform_bytes(&hash.finalize().into())
}

/// K(i, j, A, r_0, r_1, agreed).
fn key(
    ends: &Ends,
    (i, j): (usize, u8),
    a: &CompressedRistretto,
    r: &[[u8; 32]; 2],
    agreed: &RistrettoPoint,
) -> Secret {
    let mut hash: Sha256 = start(ends, For::Key);
    Update::update(&mut hash, &(i as u16).to_le_bytes());
    Update::update(&mut hash, &[j]);
    Update::update(&mut hash, a.as_bytes());
    Update::update(&mut hash, r.as_flattened());
    let agreed = Zeroizing::new(agreed.compress().to_bytes());
    Update::update(&mut hash, &agreed[..]);
    let mut digest: [u8; 32] = hash.finalize().into();
    let (bytes, _) = digest.split_first_chunk().expect("16 of 32 bytes");
    let secret = Secret::new(*bytes);
    digest.zeroize();
    secret
}
