//! What is checked on a server's certificate: its chain, with pins and roots that only a server shows, and its name.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage};

/// Object identifier of the basic constraints of a certificate (RFC 5280, 4.2.1.9), with its tag and length.
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];

/// What is said of a chain that is good, and yet not the one that was asked for.
const NOT_PINNED: &str = "no certificate of the server's chain has a public key of `ssl.ca_sha256`";

/// Checks chains, and names if it is asked to.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) roots: Arc<RootCertStore>,
    /// Whether `roots` are those of the system: a root that is trusted by its fingerprint then stands alone.
    pub(crate) roots_are_default: bool,
    /// SHA-256 of an authority that may be trusted when a server shows it.
    pub(crate) fingerprint: Option<[u8; 32]>,
    /// SHA-256 of public keys, one of which must be in the chain; empty: any.
    pub(crate) pins: Vec<[u8; 32]>,
    pub(crate) check_name: bool,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl Verifier {
    /// The roots for a server that shows these certificates.
    fn roots(&self, shown: &[CertificateDer<'_>]) -> Arc<RootCertStore> {
        let Some(fingerprint) = self.fingerprint else { return Arc::clone(&self.roots) };
        let pinned =
            shown.iter().find(|certificate| Sha256::digest(certificate)[..] == fingerprint);
        let Some(pinned) = pinned else {
            tracing::warn!("no certificate of the server's chain has `ssl.ca_trusted_fingerprint`");
            return Arc::clone(&self.roots);
        };
        if !is_authority(pinned) {
            tracing::warn!("the certificate with `ssl.ca_trusted_fingerprint` is no authority's");
            return Arc::clone(&self.roots);
        }
        let mut roots =
            if self.roots_are_default { RootCertStore::empty() } else { (*self.roots).clone() };
        if let Err(error) = roots.add(pinned.clone().into_owned()) {
            tracing::warn!(%error, "the certificate with `ssl.ca_trusted_fingerprint` cannot be used");
            return Arc::clone(&self.roots);
        }
        Arc::new(roots)
    }

    /// Whether a chain to `roots` has one of the pins.
    fn check_pins(
        &self,
        roots: &RootCertStore,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let is_pinned = |key: &[u8]| {
            let hash = Sha256::digest(key);
            self.pins.iter().any(|pin| hash[..] == *pin)
        };
        let check = |path: &webpki::VerifiedPath<'_>| {
            let pinned = is_pinned(&path.end_entity().subject_public_key_info())
                || path
                    .intermediate_certificates()
                    .any(|certificate| is_pinned(&certificate.subject_public_key_info()))
                || is_pinned(&sequence(&path.anchor().subject_public_key_info));
            if pinned { Ok(()) } else { Err(webpki::Error::UnknownIssuer) }
        };
        let not_pinned = |_| Error::General(NOT_PINNED.to_owned());
        let certificate = EndEntityCert::try_from(end_entity).map_err(not_pinned)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        certificate
            .verify_for_usage(
                algorithms,
                &roots.roots,
                intermediates,
                now,
                KeyUsage::server_auth(),
                None,
                Some(&check),
            )
            .map(|_| ())
            .map_err(not_pinned)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown: Vec<CertificateDer<'_>> =
            std::iter::once(end_entity).chain(intermediates).cloned().collect();
        let roots = self.roots(&shown);
        if roots.is_empty() {
            return Err(CertificateError::UnknownIssuer.into());
        }
        let provider = Arc::clone(&self.provider);
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider)
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        match usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Ok(_) => {}
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => {}
            Err(error) => return Err(error),
        }
        if !self.pins.is_empty() {
            self.check_pins(&roots, end_entity, intermediates, now)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls12(&self.provider, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls13(&self.provider, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Takes any certificate; the handshake's signature is still checked.
#[derive(Debug)]
pub(crate) struct NoCheck(pub(crate) Arc<CryptoProvider>);

impl ServerCertVerifier for NoCheck {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls12(&self.0, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        tls13(&self.0, message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn tls12(
    provider: &CryptoProvider,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider.signature_verification_algorithms;
    verify_tls12_signature(message, certificate, signature, algorithms)
}

fn tls13(
    provider: &CryptoProvider,
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = &provider.signature_verification_algorithms;
    verify_tls13_signature(message, certificate, signature, algorithms)
}

/// Whether a certificate says that it is an authority's: the basic constraints are a sequence that begins with true.
/// The certificate is one whose hash a person has written down, so that looking for the bytes is enough.
fn is_authority(certificate: &[u8]) -> bool {
    certificate.windows(BASIC_CONSTRAINTS.len()).enumerate().any(|(at, window)| {
        if window != BASIC_CONSTRAINTS {
            return false;
        }
        let rest = &certificate[at + BASIC_CONSTRAINTS.len()..];
        // `critical`, if it is there.
        let rest = rest.strip_prefix(&[0x01, 0x01, 0xff]).unwrap_or(rest);
        matches!(rest, [0x04, _, 0x30, _, 0x01, 0x01, 0xff, ..])
    })
}

/// The DER of a sequence with this content.
fn sequence(content: &[u8]) -> Vec<u8> {
    let mut der = vec![0x30];
    let length = content.len();
    if length < 0x80 {
        der.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let bytes = &bytes[length.leading_zeros() as usize / 8..];
        der.push(0x80 | bytes.len() as u8);
        der.extend_from_slice(bytes);
    }
    der.extend_from_slice(content);
    der
}
