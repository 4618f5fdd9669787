//! Authenticated encryption of records and packets, by whichever library is faster at it on this processor.
//!
//! aws-lc has kernels of AES-GCM for VAES on registers of 512 bits, and for AES-NI. On a processor that has VAES on 256 bits only, ring is twice as fast
//! (feature `ring`). Bytes are the same.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305};
use aws_lc_rs::aead::{Algorithm, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;

/// Bytes that authentication adds.
pub(crate) const TAG: usize = 16;

/// A nonce, which is for one message under a key.
pub(crate) type NonceBytes = [u8; 12];

/// Which cipher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cipher {
    /// NIST SP 800-38D.
    Aes128Gcm,
    /// The same with keys of 256 bits.
    Aes256Gcm,
    /// RFC 8439.
    ChaCha20Poly1305,
}

impl Cipher {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            Cipher::Aes128Gcm => &AES_128_GCM,
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    /// Bytes of a key.
    pub(crate) fn key_len(self) -> usize {
        self.algorithm().key_len()
    }
}

/// A key, which is wiped on drop.
pub(crate) struct Key(Held);

enum Held {
    General(LessSafeKey),
    #[cfg(feature = "ring")]
    Ring(in_ring::Key),
}

impl Key {
    /// The key of a cipher, for the library that is faster at it here.
    ///
    /// # Panics
    /// If `key` is not as long as the cipher says.
    pub(crate) fn new(cipher: Cipher, key: &[u8]) -> Self {
        #[cfg(feature = "ring")]
        if in_ring::is_faster()
            && let Some(key) = in_ring::Key::new(cipher, key)
        {
            return Key(Held::Ring(key));
        }
        Self::general(cipher, key)
    }

    fn general(cipher: Cipher, key: &[u8]) -> Self {
        let key = UnboundKey::new(cipher.algorithm(), key).expect("as long as the cipher says");
        Key(Held::General(LessSafeKey::new(key)))
    }

    /// Seals `plain` and the byte `last` behind it into `body`, which has room for both and the tag.
    pub(crate) fn seal(
        &self,
        nonce: NonceBytes,
        aad: &[u8],
        plain: &[u8],
        last: u8,
        body: &mut [u8],
    ) -> Result<(), Unspecified> {
        match &self.0 {
            Held::General(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let (cipher, end) = body.split_at_mut(plain.len());
                key.seal_out_of_place_scatter(nonce, Aad::from(aad), plain, cipher, &[last], end)
            }
            #[cfg(feature = "ring")]
            Held::Ring(key) => {
                body[..plain.len()].copy_from_slice(plain);
                key.seal_with(nonce, aad, last, body)
            }
        }
    }

    /// Seals what is in `body`, except for its end, where `last` and the tag go.
    pub(crate) fn seal_here(
        &self,
        nonce: NonceBytes,
        aad: &[u8],
        last: u8,
        body: &mut [u8],
    ) -> Result<(), Unspecified> {
        match &self.0 {
            Held::General(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let (plain, end) = body.split_at_mut(body.len() - 1 - TAG);
                key.seal_in_place_scatter(nonce, Aad::from(aad), plain, &[last], end)
            }
            #[cfg(feature = "ring")]
            Held::Ring(key) => key.seal_with(nonce, aad, last, body),
        }
    }

    /// Seals `text` where it is: its tag, for a message without anything beside it. Packets of libfabric are sealed so.
    #[cfg(any(libfabric, test))]
    pub(crate) fn seal_apart(
        &self,
        nonce: NonceBytes,
        text: &mut [u8],
    ) -> Result<[u8; TAG], Unspecified> {
        match &self.0 {
            Held::General(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), text)?;
                tag.as_ref().try_into().map_err(|_| Unspecified)
            }
            #[cfg(feature = "ring")]
            Held::Ring(key) => key.seal(nonce, &[], text),
        }
    }

    /// Opens `body` into `into`, which is shorter by the tag.
    pub(crate) fn open(
        &self,
        nonce: NonceBytes,
        aad: &[u8],
        body: &[u8],
        into: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (cipher, tag) = body.split_at(body.len() - TAG);
        match &self.0 {
            Held::General(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_separate_gather(nonce, Aad::from(aad), cipher, tag, into)
            }
            #[cfg(feature = "ring")]
            Held::Ring(key) => {
                into.copy_from_slice(cipher);
                key.open(nonce, aad, tag, into)
            }
        }
    }

    /// Opens `body` where it is; its last bytes, the tag, stay.
    pub(crate) fn open_here(
        &self,
        nonce: NonceBytes,
        aad: &[u8],
        body: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (text, tag) = body.split_at_mut(body.len() - TAG);
        match &self.0 {
            Held::General(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, text)
                    .map(|_| ())
            }
            #[cfg(feature = "ring")]
            Held::Ring(key) => key.open(nonce, aad, tag, text),
        }
    }
}

/// Keys of ring.
#[cfg(feature = "ring")]
mod in_ring {
    use std::mem::MaybeUninit;
    use std::sync::OnceLock;

    use aws_lc_rs::error::Unspecified;
    use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};

    use super::{Cipher, NonceBytes, TAG};

    /// Whether ring has a kernel for this processor, and aws-lc none.
    pub(super) fn is_faster() -> bool {
        static FASTER: OnceLock<bool> = OnceLock::new();
        *FASTER.get_or_init(detect)
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> bool {
        let wide = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("vpclmulqdq");
        // What aws-lc asks for before it takes registers of 512 bits.
        let widest = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl");
        wide && !widest
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> bool {
        false
    }

    /// A key in memory of its own, which is overwritten on drop: ring does not do that. It is there until then.
    pub(super) struct Key(Box<MaybeUninit<LessSafeKey>>);

    // Nothing that a key of ring holds has to be dropped, or is anywhere else.
    const _: () = assert!(!std::mem::needs_drop::<LessSafeKey>());

    impl Key {
        /// Nothing for a cipher at which ring is no faster.
        pub(super) fn new(cipher: Cipher, key: &[u8]) -> Option<Self> {
            let algorithm = match cipher {
                Cipher::Aes128Gcm => &AES_128_GCM,
                Cipher::Aes256Gcm => &AES_256_GCM,
                Cipher::ChaCha20Poly1305 => return None,
            };
            let mut place = Box::new(MaybeUninit::uninit());
            let key = UnboundKey::new(algorithm, key).expect("as long as the cipher says");
            place.write(LessSafeKey::new(key));
            Some(Key(place))
        }

        fn key(&self) -> &LessSafeKey {
            // SAFETY: it was written when it was made, and is overwritten only on drop.
            unsafe { self.0.assume_init_ref() }
        }

        /// Seals what is in `body`, except for its end, where `last` and the tag go.
        pub(super) fn seal_with(
            &self,
            nonce: NonceBytes,
            aad: &[u8],
            last: u8,
            body: &mut [u8],
        ) -> Result<(), Unspecified> {
            let (text, end) = body.split_at_mut(body.len() - TAG);
            let behind = text.len() - 1;
            text[behind] = last;
            end.copy_from_slice(&self.seal(nonce, aad, text)?);
            Ok(())
        }

        /// Seals `text` where it is: its tag.
        pub(super) fn seal(
            &self,
            nonce: NonceBytes,
            aad: &[u8],
            text: &mut [u8],
        ) -> Result<[u8; TAG], Unspecified> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let sealed = self
                .key()
                .seal_in_place_separate_tag(nonce, Aad::from(aad), text);
            let tag = sealed.map_err(|_| Unspecified)?;
            tag.as_ref().try_into().map_err(|_| Unspecified)
        }

        /// Opens `text` where it is.
        pub(super) fn open(
            &self,
            nonce: NonceBytes,
            aad: &[u8],
            tag: &[u8],
            text: &mut [u8],
        ) -> Result<(), Unspecified> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = Tag::try_from(tag).map_err(|_| Unspecified)?;
            let opened =
                self.key()
                    .open_in_place_separate_tag(nonce, Aad::from(aad), tag, text, 0..);
            opened.map(|_| ()).map_err(|_| Unspecified)
        }
    }

    impl Drop for Key {
        fn drop(&mut self) {
            zeroize::Zeroize::zeroize(&mut *self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The key of both libraries, where this build has both.
    fn keys(cipher: Cipher, key: &[u8]) -> Vec<Key> {
        #[allow(unused_mut, reason = "the other library is a feature")]
        let mut keys = vec![Key::general(cipher, key)];
        #[cfg(feature = "ring")]
        keys.extend(in_ring::Key::new(cipher, key).map(|key| Key(Held::Ring(key))));
        keys
    }

    proptest! {
        /// What one library seals, in each of the three ways, is what the other one seals, and both open it, in both ways.
        #[test]
        fn libraries_agree(
            which in 0..3usize,
            key in prop::collection::vec(any::<u8>(), 32),
            nonce: NonceBytes,
            aad in prop::collection::vec(any::<u8>(), 0..20),
            plain in prop::collection::vec(any::<u8>(), 0..1000),
            last: u8,
            wrong in any::<prop::sample::Index>(),
        ) {
            let cipher = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305][which];
            let keys = keys(cipher, &key[..cipher.key_len()]);
            let mut sealed = Vec::new();
            let mut packets = Vec::new();
            for key in &keys {
                let mut body = vec![0; plain.len() + 1 + TAG];
                key.seal(nonce, &aad, &plain, last, &mut body).unwrap();
                let mut here = plain.clone();
                here.resize(body.len(), 7);
                key.seal_here(nonce, &aad, last, &mut here).unwrap();
                prop_assert_eq!(&here, &body);
                sealed.push(body);
                let mut packet = plain.clone();
                let tag = key.seal_apart(nonce, &mut packet).unwrap();
                packet.extend(tag);
                packets.push(packet);
            }
            prop_assert!(sealed.windows(2).all(|of| of[0] == of[1]));
            prop_assert!(packets.windows(2).all(|of| of[0] == of[1]));
            let mut want = plain.clone();
            want.push(last);
            let mut changed = sealed[0].clone();
            changed[wrong.index(plain.len() + 1 + TAG)] ^= 1;
            for key in &keys {
                let mut into = vec![0; plain.len() + 1];
                key.open(nonce, &aad, &sealed[0], &mut into).unwrap();
                prop_assert_eq!(&into, &want);
                let mut here = sealed[0].clone();
                key.open_here(nonce, &aad, &mut here).unwrap();
                prop_assert_eq!(&here[..=plain.len()], &want[..]);
                let mut packet = packets[0].clone();
                key.open_here(nonce, &[], &mut packet).unwrap();
                prop_assert_eq!(&packet[..plain.len()], &plain[..]);
                prop_assert!(key.open(nonce, &aad, &changed, &mut into).is_err());
                prop_assert!(key.open_here(nonce, &aad, &mut changed.clone()).is_err());
            }
        }
    }
}
