//! How TLS is set up: version 1.3, both sides show a key, and only pinned keys are let in.

use std::fmt;
use std::sync::{Arc, LazyLock};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    ServerConfig, SignatureScheme,
};

use super::identity::{Fingerprint, Identity};

/// The name in every certificate and in every hello: it tells no reader anything.
pub(super) const NAME: &str = "peer.veil.invalid";

/// The protocol inside TLS: another service on the port is noticed in the handshake.
const PROTOCOL: &[u8] = b"veil/1";

/// AES-128-GCM first: the cheapest per byte, and the shares inside are masked with AES-128 anyway. The hybrid key exchange first: shares that were recorded today stay secret from a quantum computer.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
});

pub(super) fn provider() -> &'static Arc<CryptoProvider> {
    &PROVIDER
}

/// The side that dials.
pub(super) fn client(identity: &Identity, pinned: Fingerprint) -> Result<Arc<ClientConfig>, Error> {
    let verifier = Arc::new(Pinned::new(move |shown| *shown == pinned));
    let mut config = ClientConfig::builder_with_provider(Arc::clone(provider()))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())));
    // Every connection proves its keys afresh, and its exporter is its own.
    config.resumption = Resumption::disabled();
    // For the record layer of a link.
    config.enable_secret_extraction = true;
    config.enable_sni = false;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// The side that listens; `admits` is asked in every handshake.
pub(super) fn server(
    identity: &Identity,
    admits: impl Fn(&Fingerprint) -> bool + Send + Sync + 'static,
) -> Result<Arc<ServerConfig>, Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(Pinned::new(admits)))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified())));
    config.send_tls13_tickets = 0;
    config.enable_secret_extraction = true;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// A key was shown that is not pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no member here has the key {0}")]
pub(super) struct UnknownKey(pub(super) Fingerprint);

impl UnknownKey {
    /// The key that was refused, if that was the error.
    pub(super) fn within(error: &Error) -> Option<Fingerprint> {
        match error {
            Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
                inner.downcast_ref::<UnknownKey>().map(|unknown| unknown.0)
            }
            _ => None,
        }
    }
}

/// Lets in a peer that proves to hold one of these keys. Certificates are only envelopes: names, dates and issuers do not count.
struct Pinned {
    admits: Box<dyn Fn(&Fingerprint) -> bool + Send + Sync>,
}

impl Pinned {
    fn new(admits: impl Fn(&Fingerprint) -> bool + Send + Sync + 'static) -> Self {
        Pinned {
            admits: Box::new(admits),
        }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        // Fingerprints are public: this comparison may take any time.
        let shown = Fingerprint::of(certificate)?;
        if (self.admits)(&shown) {
            return Ok(());
        }
        let unknown = OtherError(Arc::new(UnknownKey(shown)));
        Err(Error::InvalidCertificate(CertificateError::Other(unknown)))
    }

    fn check_signature(
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pinned")
    }
}

/// What the verifiers of both sides have in common.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _certificate: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not spoken here".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Pinned::check_signature(message, certificate, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            provider()
                .signature_verification_algorithms
                .supported_schemes()
        }
    };
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(certificate)
            .map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(certificate)
            .map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}
