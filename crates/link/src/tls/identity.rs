//! Who a participant is: a key pair, known to others by its fingerprint.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::config;

/// What stands before the digits of a fingerprint: Veilworks, first kind.
const PREFIX: &str = "vw1:";

/// No key file is longer; more is not read.
const LONGEST_FILE: u64 = 1 << 16;

/// SHA-256 of a participant's public key (its `SubjectPublicKeyInfo`). Prints as `vw1:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The digest itself, for hashes over who takes part.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The fingerprint with this digest, as [`Fingerprint::as_bytes`] gives it.
    pub const fn from_bytes(digest: [u8; 32]) -> Self {
        Fingerprint(digest)
    }

    /// The fingerprint of the key in a certificate. Nothing but the key counts: no name, no date, no issuer.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let key = ParsedCertificate::try_from(certificate)?.subject_public_key_info();
        Ok(Fingerprint(Sha256::digest(&key).into()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Text that is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no fingerprint: one is `vw1:` and 64 hexadecimal digits, as its owner's `veil` prints it"
)]
pub struct FingerprintError {
    text: String,
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let parse = || {
            let digits = text.trim().strip_prefix(PREFIX)?.as_bytes();
            let mut out = [0; 32];
            if digits.len() != 64 {
                return None;
            }
            for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
                let [high, low] = [pair[0], pair[1]].map(|d| char::from(d).to_digit(16));
                *byte = (high? * 16 + low?) as u8;
            }
            Some(Fingerprint(out))
        };
        // The text is cut: it may be a whole file pasted by mistake.
        parse().ok_or_else(|| FingerprintError {
            text: text.chars().take(80).collect(),
        })
    }
}

/// A key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// Reading or writing it failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others on this machine can read the key.
    #[error("{}: others may read this private key: run `chmod 600` on it, and replace it if they might have", path.display())]
    Permissions {
        /// The file.
        path: PathBuf,
    },
    /// It holds no private key in PEM form that we can use.
    #[error("{}: holds no usable private key (PKCS #8, PEM): {why}", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// The system's source of randomness or the provider of cryptography failed.
    #[error("cannot make a key: {0}")]
    Provider(String),
}

/// A participant's key pair. The certificate that TLS wants is made from it whenever it is loaded, so that nothing expires.
pub struct Identity {
    pem: Zeroizing<String>,
    certified: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// A new Ed25519 key pair.
    ///
    /// # Errors
    /// [`IdentityError::Provider`] if the system's randomness or the cryptography provider fails.
    pub fn generate() -> Result<Self, IdentityError> {
        let provider = |e: rcgen::Error| IdentityError::Provider(e.to_string());
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(provider)?;
        Self::from_key(&key).map_err(IdentityError::Provider)
    }

    /// Writes the private key to a new file that only its owner can read. An existing file is never overwritten.
    ///
    /// # Errors
    /// [`IdentityError::Io`] if the file exists or cannot be written; no part of it stays then.
    pub fn save(&self, path: &Path) -> Result<(), IdentityError> {
        let err = |source| IdentityError::Io {
            path: path.to_owned(),
            source,
        };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(err)?;
        let written = file
            .write_all(self.pem.as_bytes())
            .and_then(|()| file.sync_all());
        written.map_err(|source| {
            // Half a key is worse than none; that it could not be written is the error to report.
            let _ = std::fs::remove_file(path);
            err(source)
        })
    }

    /// Reads a file that [`Identity::save`] wrote. Refuses one that others can read.
    ///
    /// # Errors
    /// [`IdentityError::Io`] if the file cannot be read, [`IdentityError::Permissions`] if its group or others may,
    /// [`IdentityError::NoKey`] if it holds no private key in PEM form.
    pub fn load(path: &Path) -> Result<Self, IdentityError> {
        let err = |source| IdentityError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(err)?;
        if file.metadata().map_err(err)?.permissions().mode() & 0o077 != 0 {
            return Err(IdentityError::Permissions {
                path: path.to_owned(),
            });
        }
        let mut pem = Zeroizing::new(String::new());
        file.take(LONGEST_FILE)
            .read_to_string(&mut pem)
            .map_err(err)?;
        rcgen::KeyPair::from_pem(&pem)
            .map_err(|e| e.to_string())
            .and_then(|key| Self::from_key(&key))
            .map_err(|why| IdentityError::NoKey {
                path: path.to_owned(),
                why,
            })
    }

    /// The fingerprint that others pin.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The same key in a new certificate, for a process that runs for long. Peers check the key alone: a certificate of any
    /// age will do, and this one only keeps its dates sensible.
    ///
    /// # Errors
    /// [`IdentityError::Provider`] if the certificate cannot be made or signed.
    pub fn renewed(&self) -> Result<Self, IdentityError> {
        rcgen::KeyPair::from_pem(&self.pem)
            .map_err(|e| e.to_string())
            .and_then(|key| Self::from_key(&key))
            .map_err(IdentityError::Provider)
    }

    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    fn from_key(key: &rcgen::KeyPair) -> Result<Self, String> {
        let params = rcgen::CertificateParams::new([config::NAME.to_owned()]);
        Self::certify(key, &params.map_err(|e| e.to_string())?)
    }

    fn certify(key: &rcgen::KeyPair, params: &rcgen::CertificateParams) -> Result<Self, String> {
        let text = |e: &dyn fmt::Display| e.to_string();
        let certificate = params.self_signed(key).map_err(|e| text(&e))?.der().clone();
        let fingerprint = Fingerprint::of(&certificate).map_err(|e| text(&e))?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let signer = config::provider()
            .key_provider
            .load_private_key(private)
            .map_err(|e| text(&e))?;
        Ok(Identity {
            pem: Zeroizing::new(key.serialize_pem()),
            certified: Arc::new(CertifiedKey::new(vec![certificate], signer)),
            fingerprint,
        })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({}, ..)", self.fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_and_loaded_it_is_the_same_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        let identity = Identity::generate().unwrap();
        identity.save(&path).unwrap();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            Identity::load(&path).unwrap().fingerprint(),
            identity.fingerprint()
        );
        assert!(
            matches!(identity.save(&path), Err(IdentityError::Io { .. })),
            "never overwritten"
        );

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            Identity::load(&path),
            Err(IdentityError::Permissions { .. })
        ));
        let debug = format!("{identity:?}");
        assert!(!debug.contains("PRIVATE") && debug.contains("vw1:"));
    }

    #[test]
    fn a_file_without_a_key_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .unwrap();
        file.write_all(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
            .unwrap();
        assert!(matches!(
            Identity::load(&path),
            Err(IdentityError::NoKey { .. })
        ));
    }

    #[test]
    fn the_fingerprint_is_that_of_the_raw_public_key() {
        // RFC 8410: the SubjectPublicKeyInfo of an Ed25519 key is these twelve bytes and the key.
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let mut info = vec![
            0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
        ];
        info.extend_from_slice(rcgen::PublicKeyData::der_bytes(&key));
        let want: [u8; 32] = Sha256::digest(&info).into();
        assert_eq!(
            Identity::from_key(&key).unwrap().fingerprint().as_bytes(),
            &want
        );
    }

    #[test]
    fn fingerprints_survive_their_text_and_other_text_is_refused() {
        let print = Identity::generate().unwrap().fingerprint();
        assert_eq!(print.to_string().parse(), Ok(print));
        assert_eq!(format!(" {print}\n").parse(), Ok(print));
        let long = format!("{print}0");
        for text in [
            "",
            "vw1:",
            "vw2:00",
            &print.to_string()[4..],
            &long,
            "vw1:é",
        ] {
            assert!(text.parse::<Fingerprint>().is_err(), "{text}");
        }
    }

    /// Whether a dialler that pins `pinned` finishes the handshake with a listener that shows `shown`.
    fn accepts(pinned: Fingerprint, shown: &Identity) -> bool {
        use rustls::{ClientConnection, ServerConnection, pki_types::ServerName};

        let ours = Identity::generate().unwrap();
        let name = ServerName::try_from(config::NAME).unwrap();
        let client = config::client(&ours, pinned).unwrap();
        let mut client = ClientConnection::new(client, name).unwrap();
        let pinned = ours.fingerprint();
        let server = config::server(shown, move |key| *key == pinned).unwrap();
        let mut server = ServerConnection::new(server).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            server.read_tls(&mut bytes.as_slice()).unwrap();
            if server.process_new_packets().is_err() {
                return false;
            }
            let mut bytes = Vec::new();
            server.write_tls(&mut bytes).unwrap();
            client.read_tls(&mut bytes.as_slice()).unwrap();
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[test]
    fn the_key_counts_and_the_dates_of_its_certificate_do_not() {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let mut params = rcgen::CertificateParams::new([config::NAME.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2001, 1, 2);
        let expired = Identity::certify(&key, &params).unwrap();
        assert!(accepts(expired.fingerprint(), &expired), "expired long ago");
        let renewed = expired.renewed().unwrap();
        assert_eq!(renewed.fingerprint(), expired.fingerprint());
        assert!(accepts(expired.fingerprint(), &renewed));
        let valid = Identity::generate().unwrap();
        assert!(!accepts(expired.fingerprint(), &valid), "another key");
    }
}
