//! Packets of one direction, sealed and numbered: AES-128-GCM (NIST SP 800-38D) under keys that are derived from one secret.
//!
//! The nonce is the packet's number, which is not sent: a packet that was changed, cut, swapped, repeated or left out does not open. A key
//! seals 2^20 packets of 2^12 blocks, so that the chance to tell its ciphertexts from random bits stays below 2^-64; the next key, and the
//! secret after it, come of the last secret by HKDF-SHA256 (RFC 5869), so that the present secret opens no earlier packet.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk};
use zeroize::Zeroizing;

use super::SLOT;
use crate::aead::{Cipher, Key, NonceBytes};

/// Bytes that a seal adds.
pub(super) use crate::aead::TAG;

/// Bytes of plaintext in a packet at most.
pub(super) const PAYLOAD: usize = SLOT - TAG;

/// Packets under one key.
const EPOCH: u64 = 1 << 20;

/// One direction's keys at one end.
pub(super) struct Seal {
    secret: Zeroizing<[u8; 32]>,
    key: Key,
    /// Packets so far.
    count: u64,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seal")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// So many bytes.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn derive<const N: usize>(secret: &[u8; 32], label: &[u8]) -> Zeroizing<[u8; N]> {
    let mut out = Zeroizing::new([0; N]);
    let prk = Prk::new_less_safe(HKDF_SHA256, secret);
    let labels = [label];
    prk.expand(&labels, Length(N))
        .and_then(|okm| okm.fill(&mut out[..]))
        .expect("16 and 32 bytes are within what HKDF gives");
    out
}

fn key(secret: &[u8; 32]) -> Key {
    let bytes = derive::<16>(secret, b"veilworks fabric key");
    Key::new(Cipher::Aes128Gcm, &bytes[..])
}

impl Seal {
    /// The keys that come of `secret`.
    pub(super) fn new(secret: Zeroizing<[u8; 32]>) -> Self {
        Seal {
            key: key(&secret),
            secret,
            count: 0,
        }
    }

    /// Packets so far: the number of the next one.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The next packet's nonce, under the key that is its.
    fn next(&mut self) -> NonceBytes {
        if self.count > 0 && self.count.is_multiple_of(EPOCH) {
            self.secret = derive(&self.secret, b"veilworks fabric next");
            self.key = key(&self.secret);
        }
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&self.count.to_be_bytes());
        self.count += 1;
        nonce
    }

    /// Encrypts the next packet in place; what follows it on the wire.
    pub(super) fn seal(&mut self, bytes: &mut [u8]) -> [u8; TAG] {
        let nonce = self.next();
        self.key
            .seal_apart(nonce, bytes)
            .expect("a packet is shorter than AES-GCM's limit")
    }

    /// Decrypts the next packet, which ends with its tag, in place: its plaintext, if it is this packet and nothing else.
    pub(super) fn open<'a>(&mut self, bytes: &'a mut [u8]) -> Option<&'a [u8]> {
        let nonce = self.next();
        let length = bytes.len().checked_sub(TAG)?;
        self.key.open_here(nonce, &[], bytes).ok()?;
        Some(&bytes[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> [Seal; 2] {
        [(); 2].map(|()| Seal::new(Zeroizing::new([7; 32])))
    }

    fn sealed(seal: &mut Seal, text: &[u8]) -> Vec<u8> {
        let mut bytes = text.to_vec();
        let tag = seal.seal(&mut bytes);
        bytes.extend_from_slice(&tag);
        bytes
    }

    #[test]
    fn packets_open_in_order_and_not_otherwise() {
        let [mut ours, mut theirs] = pair();
        let [mut first, mut second] = [b"first", b"secnd"].map(|text| sealed(&mut ours, text));
        assert_ne!(first, b"first", "it is encrypted");
        let repeated = first.clone();
        assert_eq!(theirs.open(&mut first), Some(&b"first"[..]));
        assert_eq!(
            pair()[1].open(&mut second.clone()),
            None,
            "the second as the first"
        );
        assert_eq!(theirs.open(&mut second), Some(&b"secnd"[..]));
        assert_eq!(
            theirs.open(&mut repeated.clone()),
            None,
            "the first as the third"
        );
    }

    #[test]
    fn a_changed_or_cut_packet_does_not_open() {
        let whole = sealed(&mut pair()[0], b"text");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert_eq!(pair()[1].open(&mut bytes), None, "byte {at}");
            assert_eq!(
                pair()[1].open(&mut whole[..at].to_vec()),
                None,
                "length {at}"
            );
        }
        assert!(pair()[1].open(&mut whole.clone()).is_some());
    }

    #[test]
    fn keys_change_after_an_epoch_at_both_ends() {
        let [mut ours, mut theirs] = pair();
        ours.count = EPOCH - 1;
        theirs.count = EPOCH - 1;
        let [mut last, mut next] = [b"l", b"n"].map(|text| sealed(&mut ours, text));
        assert_eq!(theirs.open(&mut last), Some(&b"l"[..]));
        let before = *theirs.secret;
        assert_eq!(theirs.open(&mut next.clone()), Some(&b"n"[..]));
        assert_ne!(*theirs.secret, before);
        let mut same_key = pair().into_iter().next().unwrap();
        // Under the first key the same number does not open it.
        same_key.count = EPOCH + 1;
        let nonce = {
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&EPOCH.to_be_bytes());
            nonce
        };
        assert!(same_key.key.open_here(nonce, &[], &mut next).is_err());
    }
}
