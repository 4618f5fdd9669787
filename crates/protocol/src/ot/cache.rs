//! The transfers that both ends keep after a session, so that the next one begins without base transfers: 128 unused transfers, in the
//! other direction than the session's own ([`reversal`](super::reversal)). The next session reverses them again, into its base transfers. That uses
//! them up, however that session ends; if it ends well it leaves new ones.

use sha2::digest::Update;
use sha2::{Digest, Sha256};
use veil_session::{Peer, Secret};

use super::Ends;
use super::hash::{For, start};
use super::reversal::Choices;

/// The cached transfers of a session's sender: both keys of each transfer. Wiped on drop.
pub struct CachedSender {
    pub(super) pairs: Vec<[Secret; 2]>,
}

/// The cached transfers of a session's receiver: its choices, and the keys that it chose. Wiped on drop.
pub struct CachedReceiver {
    pub(super) choices: Choices,
    pub(super) keys: Vec<Secret>,
}

/// Bytes of a [`claim`].
pub const CLAIM: usize = 32;

/// The claim of `from`, one of the ends, in a session that it has cached transfers under `key`, which only both ends had in the session that
/// left them. Without the key it cannot be made, and tells nothing; a claim of one session is worthless in another.
pub fn claim(ends: &Ends, from: Peer, key: &Secret) -> [u8; CLAIM] {
    let mut hash: Sha256 = start(ends, For::Claim);
    Update::update(&mut hash, &from.to_bytes());
    Update::update(&mut hash, key.expose());
    hash.finalize().into()
}
