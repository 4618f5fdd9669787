//! The key schedule: every working key has one purpose, and no two runs share one.

use std::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{Peer, SessionId};

/// A 128-bit key. Wiped on drop; never printed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 16]);

impl Secret {
    /// Wraps key bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Secret(bytes)
    }

    /// The key of pass number `pass` of a program of several, in the place of this one: HKDF-SHA256 of it.
    ///
    /// Passes count their draws from 0 on, each under keys of its own.
    #[must_use]
    pub fn of_pass(&self, pass: u16) -> Self {
        let mut key = [0; 16];
        Hkdf::<Sha256>::new(Some(b"veilworks pass"), &self.0)
            .expand(&pass.to_le_bytes(), &mut key)
            .expect("16 bytes are half a block of SHA-256");
        let secret = Secret::new(key);
        key.zeroize();
        secret
    }

    /// The key bytes, for the device or the message that needs them.
    pub const fn expose(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The secret that two participants share with no third one: the input of their key schedule. Wiped on drop.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct PairSecret(Vec<u8>);

impl PairSecret {
    /// Joins the secret of the transport (a TLS exporter; empty where there is none) and an agreed X25519
    /// secret. Either one alone suffices for secrecy; both must match for the keys to match.
    pub fn combine(exporter: &[u8], agreed: &[u8; 32]) -> Self {
        let mut ikm = Vec::with_capacity(8 + exporter.len() + 32);
        ikm.extend_from_slice(&(exporter.len() as u64).to_le_bytes());
        ikm.extend_from_slice(exporter);
        ikm.extend_from_slice(agreed);
        PairSecret(ikm)
    }
}

impl fmt::Debug for PairSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairSecret(..)")
    }
}

/// The purpose of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Protocol, such as `rep3`.
    pub protocol: &'a str,
    /// Purpose within the protocol, such as `pair`.
    pub purpose: &'a str,
    /// Key epoch.
    pub epoch: u16,
    /// Execution of the plan within the session.
    pub run: u64,
}

/// Derives keys from a pair secret under a session.
///
/// K = HKDF-SHA256(salt = session id, IKM = exporter ‖ X25519 secret, info = length-prefixed protocol, purpose,
/// ordered participants, epoch, run, and whether this is a key or a confirmation) — RFC 5869. The last keeps a confirmation, which
/// is sent, from starting with the key of the same label.
pub struct KeySchedule {
    extracted: Hkdf<Sha256>,
    pair: [Peer; 2],
}

impl KeySchedule {
    /// The schedule of `pair` in `session`. The order of the pair does not matter.
    pub fn new(session: &SessionId, secret: &PairSecret, mut pair: [Peer; 2]) -> Self {
        pair.sort();
        KeySchedule {
            extracted: Hkdf::new(Some(&session.0), &secret.0),
            pair,
        }
    }

    /// The key for `label`.
    pub fn derive(&self, label: Label<'_>) -> Secret {
        let mut key = [0; 16];
        self.expand(label, Output::Key, &mut key);
        let secret = Secret::new(key);
        key.zeroize();
        secret
    }

    /// A 32-byte tag that proves knowledge of the schedule and tells nothing of any key, that of the same label included.
    pub fn confirm(&self, label: Label<'_>) -> [u8; 32] {
        let mut tag = [0; 32];
        self.expand(label, Output::Confirmation, &mut tag);
        tag
    }

    fn expand(&self, label: Label<'_>, output: Output, out: &mut [u8]) {
        let mut info = Vec::with_capacity(64);
        for field in [label.protocol.as_bytes(), label.purpose.as_bytes()] {
            info.extend_from_slice(&(field.len() as u32).to_le_bytes());
            info.extend_from_slice(field);
        }
        for peer in self.pair {
            info.extend_from_slice(&peer.to_bytes());
        }
        info.extend_from_slice(&label.epoch.to_le_bytes());
        info.extend_from_slice(&label.run.to_le_bytes());
        info.push(output as u8);
        self.extracted
            .expand(&info, out)
            .expect("at most 255 blocks of SHA-256 are asked for");
    }
}

/// What is expanded: the last byte of the info.
#[derive(Clone, Copy)]
enum Output {
    Key = 0,
    Confirmation = 1,
}

impl fmt::Debug for KeySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySchedule({} and {}, ..)", self.pair[0], self.pair[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartyId;

    fn schedule(session: u8, exporter: &[u8], agreed: u8) -> KeySchedule {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        KeySchedule::new(
            &SessionId([session; 32]),
            &PairSecret::combine(exporter, &[agreed; 32]),
            [b, a],
        )
    }

    const LABEL: Label<'static> = Label {
        protocol: "rep3",
        purpose: "pair",
        epoch: 0,
        run: 0,
    };

    #[test]
    fn every_part_of_the_tuple_changes_the_key() {
        let base = *schedule(1, b"x", 1).derive(LABEL).expose();
        let changed = [
            schedule(2, b"x", 1).derive(LABEL),
            schedule(1, b"y", 1).derive(LABEL),
            schedule(1, b"x", 2).derive(LABEL),
            schedule(1, b"x", 1).derive(Label {
                protocol: "rep",
                ..LABEL
            }),
            schedule(1, b"x", 1).derive(Label {
                purpose: "pai",
                ..LABEL
            }),
            schedule(1, b"x", 1).derive(Label { epoch: 1, ..LABEL }),
            schedule(1, b"x", 1).derive(Label { run: 1, ..LABEL }),
        ];
        for key in changed {
            assert_ne!(&base, key.expose());
        }
        assert_eq!(&base, schedule(1, b"x", 1).derive(LABEL).expose());
    }

    #[test]
    fn a_confirmation_does_not_start_with_the_key() {
        let schedule = schedule(1, b"x", 1);
        assert_ne!(
            &schedule.confirm(LABEL)[..16],
            schedule.derive(LABEL).expose()
        );
    }

    #[test]
    fn secrets_do_not_print() {
        assert_eq!(format!("{:?}", Secret::new([7; 16])), "Secret(..)");
        assert!(!format!("{:?}", PairSecret::combine(&[7], &[7; 32])).contains('7'));
    }
}
