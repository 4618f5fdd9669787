//! What both ends keep after a session, so that the next one begins without base transfers: 128 transfers that nobody has used, in the other
//! direction than the session's own ([`turn`](super::turn)). In the next session they are turned again, to its base transfers. They are used
//! up so, whatever comes of that session; if all goes well it leaves others.

use sha2::digest::Update;
use sha2::{Digest, Sha256};
use veil_session::{Peer, Secret};

use super::Ends;
use super::hash::{For, start};
use super::turn::Choices;

/// What the sender of a session keeps: both keys of each transfer. Wiped on drop.
pub struct KeptSender {
    pub(super) pairs: Vec<[Secret; 2]>,
}

/// What the receiver of a session keeps: its choices, and the keys that it chose. Wiped on drop.
pub struct KeptReceiver {
    pub(super) choices: Choices,
    pub(super) keys: Vec<Secret>,
}

/// Bytes of a [`claim`].
pub const CLAIM: usize = 32;

/// What `from`, one of the ends, says in a session if it has kept transfers under `key`, a key that both ends and nobody else had in the session that left
/// them. Who does not have the key cannot say it, and learns nothing from hearing it; that of one session is none of another.
pub fn claim(ends: &Ends, from: Peer, key: &Secret) -> [u8; CLAIM] {
    let mut hash: Sha256 = start(ends, For::Claim);
    Update::update(&mut hash, &from.to_bytes());
    Update::update(&mut hash, key.expose());
    hash.finalize().into()
}
