//! Statements signed by an identity, outside of any connection.

use rustls::SignatureScheme;
use rustls::pki_types::alg_id;
use sha2::{Digest, Sha256};

use super::config;
use super::identity::{Fingerprint, Identity, IdentityError};

/// What stands before everything that is signed here. TLS 1.3 signs 64 blanks and a sentence of its own (RFC 8446,
/// section 4.4.3), so that neither can be taken for the other.
const DOMAIN: &[u8] = b"veilworks statement 1";

/// The beginning of an Ed25519 key's SubjectPublicKeyInfo; 32 bytes of key follow (RFC 8410, section 4).
const ED25519: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

impl Fingerprint {
    /// The fingerprint of a public key, given as its SubjectPublicKeyInfo.
    pub fn of_key(public_key: &[u8]) -> Self {
        Fingerprint::from_bytes(Sha256::digest(public_key).into())
    }
}

impl Identity {
    /// The public key: an Ed25519 SubjectPublicKeyInfo of 44 bytes, whose hash is the fingerprint.
    ///
    /// # Errors
    /// [`IdentityError::Provider`] if the certificate cannot be parsed.
    pub fn public_key(&self) -> Result<Vec<u8>, IdentityError> {
        let error = |e: rustls::Error| IdentityError::Provider(e.to_string());
        let certified = self.certified();
        let certificate = certified.end_entity_cert().map_err(error)?;
        let parsed = rustls::server::ParsedCertificate::try_from(certificate).map_err(error)?;
        Ok(parsed.subject_public_key_info().to_vec())
    }

    /// Signs `message` for the use `context`, a constant of the caller: a signature for one use means nothing in another.
    ///
    /// # Errors
    /// [`IdentityError::Provider`] if the key is no Ed25519 key or the signature fails.
    pub fn sign(&self, context: &str, message: &[u8]) -> Result<[u8; 64], IdentityError> {
        let certified = self.certified();
        let signer = certified.key.choose_scheme(&[SignatureScheme::ED25519]);
        let signer = signer.ok_or_else(|| {
            IdentityError::Provider("only an Ed25519 key signs statements".to_owned())
        })?;
        let signature = signer
            .sign(&statement(context, message))
            .map_err(|e| IdentityError::Provider(e.to_string()))?;
        signature
            .try_into()
            .map_err(|_| IdentityError::Provider("a signature of another length".to_owned()))
    }
}

/// Whether `signature` is that of the holder of `public_key` (SubjectPublicKeyInfo) under `message` for the use `context`.
pub fn verify(public_key: &[u8], context: &str, message: &[u8], signature: &[u8]) -> bool {
    let Some(raw) = public_key.strip_prefix(&ED25519) else {
        return false;
    };
    let algorithms = config::provider().signature_verification_algorithms.all;
    algorithms
        .iter()
        .find(|algorithm| algorithm.signature_alg_id() == alg_id::ED25519)
        .is_some_and(|algorithm| {
            algorithm
                .verify_signature(raw, &statement(context, message), signature)
                .is_ok()
        })
}

fn statement(context: &str, message: &[u8]) -> Vec<u8> {
    let length = (context.len() as u64).to_le_bytes();
    [DOMAIN, &length, context.as_bytes(), message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_for_one_key_one_use_and_one_message() {
        let [ours, other] = [(); 2].map(|()| Identity::generate().unwrap());
        let key = ours.public_key().unwrap();
        assert_eq!(Fingerprint::of_key(&key), ours.fingerprint());
        let signature = ours.sign("test", b"hello").unwrap();
        assert!(verify(&key, "test", b"hello", &signature));
        assert!(!verify(&key, "test", b"hellO", &signature));
        assert!(!verify(&key, "tesT", b"hello", &signature));
        assert!(!verify(&key, "testh", b"ello", &signature));
        assert!(!verify(
            &other.public_key().unwrap(),
            "test",
            b"hello",
            &signature
        ));
        for at in 0..64 {
            let mut damaged = signature;
            damaged[at] ^= 1;
            assert!(!verify(&key, "test", b"hello", &damaged), "byte {at}");
        }
        assert!(!verify(&key, "test", b"hello", &signature[..63]));
        assert!(!verify(&key[1..], "test", b"hello", &signature));
    }

    #[test]
    fn what_is_signed_is_framed_by_its_use() {
        let signed = b"veilworks statement 1\x04\0\0\0\0\0\0\0testhello";
        assert_eq!(statement("test", b"hello"), signed);
    }
}
