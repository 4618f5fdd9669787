//! Traffic keys of one direction, and the ones after them.

use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use rustls::{ConnectionTrafficSecrets, Error};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::HEAD;
use crate::aead::{Cipher, Key, NonceBytes};

/// Records that this side seals under one key: AES-GCM's limit is 2^24.5 of full size (RFC 8446, section 5.5), and no cipher of TLS 1.3 has
/// a lower one.
pub(super) const LIMIT: u64 = 1 << 24;

/// Updates of keys before the record layer takes over at most: as many as rustls takes in a row.
const BEFORE: usize = 32;

/// A cipher, and the hash that derives its keys.
#[derive(Clone, Copy)]
pub(super) struct Suite {
    cipher: Cipher,
    hash: hkdf::Algorithm,
}

impl Suite {
    pub(super) const AES_128_GCM_SHA256: Suite = Suite {
        cipher: Cipher::Aes128Gcm,
        hash: HKDF_SHA256,
    };
    const AES_256_GCM_SHA384: Suite = Suite {
        cipher: Cipher::Aes256Gcm,
        hash: HKDF_SHA384,
    };
    const CHACHA20_POLY1305_SHA256: Suite = Suite {
        cipher: Cipher::ChaCha20Poly1305,
        hash: HKDF_SHA256,
    };
}

/// The secret of one direction, and the key that comes of it.
pub(crate) struct Keys {
    suite: Suite,
    secret: Zeroizing<Vec<u8>>,
    key: Key,
    iv: Zeroizing<[u8; 12]>,
    /// Records so far: the number of the next one.
    count: u64,
}

/// So many bytes.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// `HKDF-Expand-Label` (RFC 8446, section 7.1) with an empty context.
fn expand(suite: Suite, secret: &[u8], label: &[u8], out: &mut [u8]) {
    let length = (out.len() as u16).to_be_bytes();
    let prefix = b"tls13 ";
    let label_length = [(prefix.len() + label.len()) as u8];
    let info = [&length[..], &label_length, prefix, label, &[0]];
    Prk::new_less_safe(suite.hash, secret)
        .expand(&info, Length(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("48 bytes and fewer are within what HKDF gives");
}

/// The key and the vector of a secret (RFC 8446, section 7.3).
fn derive(suite: Suite, secret: &[u8]) -> (Zeroizing<Vec<u8>>, Zeroizing<[u8; 12]>) {
    let mut key = Zeroizing::new(vec![0; suite.cipher.key_len()]);
    let mut iv = Zeroizing::new([0; 12]);
    expand(suite, secret, b"key", &mut key);
    expand(suite, secret, b"iv", &mut iv[..]);
    (key, iv)
}

impl Keys {
    /// The keys that rustls has in use, `count` records of which are over. Of the secret that rustls began with come all later ones: which of
    /// them is in use, the keys say.
    pub(crate) fn taken(
        (count, used): &(u64, ConnectionTrafficSecrets),
        first: Zeroizing<Vec<u8>>,
    ) -> Result<Self, Error> {
        let (suite, key, iv) = match used {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Suite::AES_128_GCM_SHA256, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Suite::AES_256_GCM_SHA384, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (Suite::CHACHA20_POLY1305_SHA256, key, iv)
            }
            _ => return Err(Error::General("a cipher without a record layer".into())),
        };
        let mut secret = first;
        for _ in 0..=BEFORE {
            let (own, vector) = derive(suite, &secret);
            if bool::from(own.ct_eq(key.as_ref()) & vector[..].ct_eq(iv.as_ref())) {
                return Ok(Self::of(suite, secret, *count));
            }
            secret = after(suite, &secret);
        }
        Err(Error::General("keys that come of no secret".into()))
    }

    /// The keys of `secret`.
    pub(super) fn of(suite: Suite, secret: Zeroizing<Vec<u8>>, count: u64) -> Self {
        let (key, iv) = derive(suite, &secret);
        Keys {
            suite,
            secret,
            key: Key::new(suite.cipher, &key),
            iv,
            count,
        }
    }

    /// Goes on with the next keys (RFC 8446, section 7.2).
    pub(super) fn renew(&mut self) {
        *self = Self::of(self.suite, after(self.suite, &self.secret), 0);
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// The nonce of the next record (RFC 8446, section 5.3), whose number is used up with it. None is left where numbers would begin again.
    fn nonce(&mut self) -> Option<NonceBytes> {
        let mut nonce = *self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.count.to_be_bytes()) {
            *byte ^= number;
        }
        self.count = self.count.checked_add(1)?;
        Some(nonce)
    }

    /// Seals `plain` and its type `kind` into `body`, which has room for both and the tag.
    pub(super) fn seal(
        &mut self,
        kind: u8,
        plain: &[u8],
        head: [u8; HEAD],
        body: &mut [u8],
    ) -> Result<(), Error> {
        let nonce = self.nonce().ok_or(Error::EncryptError)?;
        let sealed = self.key.seal(nonce, &head, plain, kind, body);
        sealed.map_err(|_| Error::EncryptError)
    }

    /// Seals what is in `body`, except for the room at its end, where its type `kind` and the tag go.
    pub(super) fn seal_here(
        &mut self,
        kind: u8,
        head: [u8; HEAD],
        body: &mut [u8],
    ) -> Result<(), Error> {
        let nonce = self.nonce().ok_or(Error::EncryptError)?;
        let sealed = self.key.seal_here(nonce, &head, kind, body);
        sealed.map_err(|_| Error::EncryptError)
    }

    /// Opens `body` into `into`, which is shorter by the tag. False if it is not the next record.
    pub(super) fn open(&mut self, head: [u8; HEAD], body: &[u8], into: &mut [u8]) -> bool {
        let nonce = self.nonce();
        nonce.is_some_and(|nonce| self.key.open(nonce, &head, body, into).is_ok())
    }

    /// Opens `body` where it is; its last bytes, the tag, stay. False if it is not the next record.
    pub(super) fn open_here(&mut self, head: [u8; HEAD], body: &mut [u8]) -> bool {
        let nonce = self.nonce();
        nonce.is_some_and(|nonce| self.key.open_here(nonce, &head, body).is_ok())
    }

    /// As if so many records were over.
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, count: u64) {
        self.count = count;
    }
}

/// The secret after this one.
fn after(suite: Suite, secret: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut next = Zeroizing::new(vec![0; secret.len()]);
    expand(suite, secret, b"traffic upd", &mut next);
    next
}
