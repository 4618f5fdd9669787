//! Keys of the store: one secret of the party, and from it one key per dataset.

use std::fmt;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use data_encoding::HEXLOWER;
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes that the authentication tag adds to what is encrypted.
pub(crate) const TAG: usize = 16;

/// What separates these keys from all others that are derived from the same identity.
const EXTRACT: &[u8] = b"veilworks store v1";

/// The key of a party's store. Keys of datasets are derived from it; it encrypts nothing itself. Wiped on drop.
///
/// ```
/// use veil_store::StoreKey;
/// let key = StoreKey::derive(b"32 bytes that only this party has");
/// assert_eq!(key.id(), StoreKey::derive(b"32 bytes that only this party has").id());
/// assert_ne!(key.id(), StoreKey::derive(b"32 bytes of another party's own..").id());
/// ```
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct StoreKey([u8; 32]);

impl StoreKey {
    /// Derives the key from a secret of the party, such as one derived from its identity: HKDF-SHA-256 (RFC 5869), extract step.
    ///
    /// The secret must have full entropy: 32 random bytes, never a password.
    pub fn derive(secret: &[u8]) -> Self {
        let (mut extracted, _) = Hkdf::<Sha256>::extract(Some(EXTRACT), secret);
        let key = StoreKey(extracted.into());
        extracted.as_mut_slice().zeroize();
        key
    }

    /// The name of the key, in clear in every file that it encrypts. It tells nothing of the key.
    pub fn id(&self) -> KeyId {
        let mut id = [0; 8];
        self.expand(&[], b"id", &mut id);
        KeyId(id)
    }

    /// The keys of one dataset: its salt is random and used once.
    pub(crate) fn dataset(&self, salt: &[u8; 32]) -> DatasetKeys {
        let mut key = Zeroizing::new([0; 32]);
        self.expand(salt, b"chunks", &mut *key);
        let chunks = UnboundKey::new(&AES_256_GCM, &*key).expect("the key has 32 bytes");
        self.expand(salt, b"manifest", &mut *key);
        DatasetKeys {
            chunks: LessSafeKey::new(chunks),
            manifest: hmac::Key::new(hmac::HMAC_SHA256, &*key),
        }
    }

    /// HKDF-SHA-256, expand step; the salt has a fixed length, so purpose and salt cannot be confused.
    fn expand(&self, salt: &[u8], purpose: &[u8], out: &mut [u8]) {
        let hkdf = Hkdf::<Sha256>::from_prk(&self.0).expect("the key has 32 bytes");
        hkdf.expand_multi_info(&[purpose, &[0], salt], out)
            .expect("at most 32 bytes are asked for");
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreKey({}, ..)", self.id())
    }
}

/// The name of a [`StoreKey`]. Public.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyId([u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl KeyId {
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        unhex(text).map(KeyId)
    }
}

/// The keys of one dataset. `aws-lc` wipes its key schedules when they are dropped.
pub(crate) struct DatasetKeys {
    chunks: LessSafeKey,
    manifest: hmac::Key,
}

/// Where an encrypted column is: no two of a dataset are the same, and no place is written twice.
#[derive(Clone, Copy)]
pub(crate) struct CellIndex {
    /// Chunk, counted over the dataset.
    pub(crate) chunk: u64,
    /// Port and component: `components · port + component`.
    pub(crate) column: u32,
    /// Block, first row in it, rows that count.
    pub(crate) block: u32,
    pub(crate) first: u64,
    pub(crate) rows: u32,
}

impl CellIndex {
    /// The place itself is the nonce: 96 bits, unique under the dataset's key.
    fn nonce(self) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&self.chunk.to_le_bytes());
        nonce[8..].copy_from_slice(&self.column.to_le_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    fn data(self, header: &[u8; 32]) -> Aad<[u8; 60]> {
        let mut data = [0; 60];
        data[..32].copy_from_slice(header);
        data[32..40].copy_from_slice(&self.chunk.to_le_bytes());
        data[40..44].copy_from_slice(&self.column.to_le_bytes());
        data[44..48].copy_from_slice(&self.block.to_le_bytes());
        data[48..56].copy_from_slice(&self.first.to_le_bytes());
        data[56..].copy_from_slice(&self.rows.to_le_bytes());
        Aad::from(data)
    }
}

impl DatasetKeys {
    /// Encrypts a column in place; the last [`TAG`] bytes of `buffer` become its tag. `header` is the digest of the file's header.
    pub(crate) fn seal(&self, header: &[u8; 32], cell: CellIndex, buffer: &mut [u8]) {
        let (text, tag) = buffer.split_at_mut(buffer.len() - TAG);
        let made = self
            .chunks
            .seal_in_place_separate_tag(cell.nonce(), cell.data(header), text)
            .expect("a column is far shorter than 64 GB");
        tag.copy_from_slice(made.as_ref());
    }

    /// Decrypts `sealed` into `out`, which is [`TAG`] bytes shorter; `false` if anything about it was changed.
    pub(crate) fn open(
        &self,
        header: &[u8; 32],
        cell: CellIndex,
        sealed: &[u8],
        out: &mut [u8],
    ) -> bool {
        let Some((text, tag)) = sealed.split_last_chunk::<TAG>() else {
            return false;
        };
        let opened =
            self.chunks
                .open_separate_gather(cell.nonce(), cell.data(header), text, tag, out);
        if opened.is_err() {
            out.zeroize();
        }
        opened.is_ok()
    }

    /// The MAC that ends a manifest.
    pub(crate) fn authenticate(&self, manifest: &[u8]) -> [u8; 32] {
        let mut mac = [0; 32];
        mac.copy_from_slice(hmac::sign(&self.manifest, manifest).as_ref());
        mac
    }

    /// Whether `mac` is that of `manifest`; in constant time.
    pub(crate) fn is_authentic(&self, manifest: &[u8], mac: &[u8]) -> bool {
        hmac::verify(&self.manifest, manifest, mac).is_ok()
    }
}

/// SHA-256 of some bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// The bytes of lower-case hexadecimal digits, if there are exactly as many.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    unhex_all(text)?.try_into().ok()
}

/// The bytes of lower-case hexadecimal digits.
pub(crate) fn unhex_all(text: &str) -> Option<Vec<u8>> {
    HEXLOWER.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [u8; 32] = [7; 32];
    const CELL: CellIndex = CellIndex {
        chunk: 3,
        column: 2,
        block: 1,
        first: 2048,
        rows: 10,
    };

    #[test]
    fn the_key_is_that_of_rfc_5869_and_its_text_is_not() {
        // HMAC-SHA-256 by another library: extract is HMAC(salt, secret), the first block of expand HMAC(key, info ‖ 1).
        let mac = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
                .as_ref()
                .to_vec()
        };
        let key = StoreKey::derive(b"secret");
        assert_eq!(key.0.to_vec(), mac(EXTRACT, b"secret"));
        assert_eq!(key.id().0.to_vec(), mac(&key.0, b"id\0\x01")[..8]);
        assert!(!format!("{key:?}").contains(&hex(&key.0[..4])));
    }

    #[test]
    fn another_place_header_salt_or_bit_does_not_open() {
        let store = StoreKey::derive(b"secret");
        let keys = store.dataset(&[1; 32]);
        let mut sealed = [0; 40 + TAG];
        sealed[..40].copy_from_slice(&[9; 40]);
        keys.seal(&HEADER, CELL, &mut sealed);
        let open = |keys: &DatasetKeys, header, cell, sealed: &[u8]| {
            let mut out = [1; 40];
            let opened = keys.open(header, cell, sealed, &mut out);
            assert_eq!(out, [if opened { 9 } else { 0 }; 40]);
            opened
        };
        assert!(open(&keys, &HEADER, CELL, &sealed));
        let elsewhere = [
            CellIndex { chunk: 4, ..CELL },
            CellIndex { column: 3, ..CELL },
            CellIndex { block: 0, ..CELL },
            CellIndex { first: 0, ..CELL },
            CellIndex { rows: 9, ..CELL },
        ];
        for cell in elsewhere {
            assert!(!open(&keys, &HEADER, cell, &sealed));
        }
        assert!(!open(&keys, &[8; 32], CELL, &sealed));
        assert!(!open(&store.dataset(&[2; 32]), &HEADER, CELL, &sealed));
        let other = StoreKey::derive(b"other");
        assert!(!open(&other.dataset(&[1; 32]), &HEADER, CELL, &sealed));
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!open(&keys, &HEADER, CELL, &changed), "bit {bit}");
        }
    }

    #[test]
    fn digits_survive() {
        assert_eq!(hex(&[0, 0xaf, 9]), "00af09");
        assert_eq!(unhex("00af09"), Some([0, 0xaf, 9]));
        for bad in ["0", "0g", "AF", "é"] {
            assert_eq!(unhex_all(bad), None, "{bad}");
        }
    }
}
