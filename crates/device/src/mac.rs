//! The authentication code of `Op::Mac`: POLYVAL (RFC 8452, section 3), masked by a call that is made once (Carter, Wegman 1981).
//!
//! A party without the key gives a wrong message the right tag with probability at most (blocks + 1) / 2^128.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use veil_prss::{DomainTag, Prf};
use zeroize::Zeroizing;

/// Bytes of a block, of a hash key, and of a code.
pub const BLOCK: usize = 16;

/// The key of the hash under a key of the device.
pub fn hash_key(prf: &Prf) -> Zeroizing<[u8; BLOCK]> {
    Zeroizing::new(prf.block(DomainTag::MAC_KEY, 0, 0, 0))
}

/// The last block: how many bytes were hashed.
pub(crate) fn length_block(bytes: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..8].copy_from_slice(&bytes.to_le_bytes());
    block
}

/// The hash of sources, as it is defined: each is padded with zeros to whole blocks; the length of all of them follows.
pub(crate) struct Hash {
    state: Polyval,
    bytes: u64,
}

impl Hash {
    pub(crate) fn new(key: &[u8; BLOCK]) -> Self {
        Hash {
            state: Polyval::new(&(*key).into()),
            bytes: 0,
        }
    }

    pub(crate) fn source(&mut self, bytes: &[u8]) {
        self.state.update_padded(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(crate) fn finish(mut self) -> [u8; BLOCK] {
        self.state.update_padded(&length_block(self.bytes));
        self.state.finalize().into()
    }
}
