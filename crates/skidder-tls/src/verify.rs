//! The checks of a server's certificate: its chain, with pins and roots that only a server shows, and its name; and
//! on a client's: its chain, with pins.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage};

/// Object identifier of the basic constraints of a certificate (RFC 5280, 4.2.1.9), with its tag and length.
const BASIC_CONSTRAINTS: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x13];

/// Object identifiers of the extended key usage (4.2.1.12), and of the two uses that a server's certificate may have.
const EXTENDED_KEY_USAGE: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x25];
const SERVER_AUTH: &[u8] = &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const ANY_USE: &[u8] = &[0x06, 0x04, 0x55, 0x1d, 0x25, 0x00];

/// The error for a valid chain without a pinned certificate.
const NOT_PINNED: &str = "no certificate of the server's chain has a public key of `ssl.ca_sha256`";
const CLIENT_NOT_PINNED: &str =
    "no certificate of the client's chain has a public key of `ssl.ca_sha256`";

/// Checks chains, and names if configured.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) roots: Arc<RootCertStore>,
    /// The certificates of `ssl.certificate_authorities`.
    pub(crate) configured: Vec<CertificateDer<'static>>,
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

    /// Checks a server's certificate that calls itself an authority's, and is one of those that a person trusts: there
    /// is no chain. Its time was looked at before.
    fn check_trusted(
        &self,
        end_entity: &CertificateDer<'_>,
        server_name: &ServerName<'_>,
    ) -> Result<ServerCertVerified, Error> {
        let bad = |error: webpki::Error| Error::General(error.to_string());
        let certificate = EndEntityCert::try_from(end_entity).map_err(bad)?;
        if has(end_entity, EXTENDED_KEY_USAGE)
            && !has(end_entity, SERVER_AUTH)
            && !has(end_entity, ANY_USE)
        {
            return Err(CertificateError::InvalidPurpose.into());
        }
        if self.check_name && certificate.verify_is_valid_for_subject_name(server_name).is_err() {
            return Err(CertificateError::NotValidForName.into());
        }
        if !self.pins.is_empty() && !is_pinned(&self.pins, &certificate.subject_public_key_info()) {
            return Err(Error::General(NOT_PINNED.to_owned()));
        }
        Ok(ServerCertVerified::assertion())
    }

    /// Whether a person has named this certificate itself.
    fn is_trusted(&self, certificate: &CertificateDer<'_>) -> bool {
        self.configured.iter().any(|one| one[..] == certificate[..])
            || self.fingerprint.is_some_and(|hash| Sha256::digest(certificate)[..] == hash)
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
            // An authority's certificate that a server shows as its own, as self-signed ones are: Go takes it if it is one
            // of its roots.
            Err(Error::InvalidCertificate(error))
                if is_authority_as_server(&error) && self.is_trusted(end_entity) =>
            {
                return self.check_trusted(end_entity, server_name);
            }
            Err(error) => return Err(error),
        }
        if !self.pins.is_empty() {
            let pinned = Pinned { pins: &self.pins, roots: &roots, provider: &self.provider };
            pinned.check(end_entity, intermediates, now, KeyUsage::server_auth(), NOT_PINNED)?;
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

/// Which keys a chain must have one of.
struct Pinned<'a> {
    /// SHA-256 of public keys.
    pins: &'a [[u8; 32]],
    roots: &'a RootCertStore,
    provider: &'a CryptoProvider,
}

impl Pinned<'_> {
    /// Checks that a chain to the roots has one of the pins; `message` is the error's.
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        usage: KeyUsage,
        message: &str,
    ) -> Result<(), Error> {
        let check = |path: &webpki::VerifiedPath<'_>| {
            let pinned = is_pinned(self.pins, &path.end_entity().subject_public_key_info())
                || path.intermediate_certificates().any(|certificate| {
                    is_pinned(self.pins, &certificate.subject_public_key_info())
                })
                || is_pinned(self.pins, &sequence(&path.anchor().subject_public_key_info));
            if pinned { Ok(()) } else { Err(webpki::Error::UnknownIssuer) }
        };
        let not_pinned = |_| Error::General(message.to_owned());
        let certificate = EndEntityCert::try_from(end_entity).map_err(not_pinned)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        certificate
            .verify_for_usage(
                algorithms,
                &self.roots.roots,
                intermediates,
                now,
                usage,
                None,
                Some(&check),
            )
            .map(|_| ())
            .map_err(not_pinned)
    }
}

fn is_pinned(pins: &[[u8; 32]], key: &[u8]) -> bool {
    let hash = Sha256::digest(key);
    pins.iter().any(|pin| hash[..] == *pin)
}

/// Checks the chains of clients, and their pins besides.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    /// Checks the chain.
    pub(crate) usual: Arc<dyn ClientCertVerifier>,
    pub(crate) roots: Arc<RootCertStore>,
    /// SHA-256 of public keys, one of which must be in the chain.
    pub(crate) pins: Vec<[u8; 32]>,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.usual.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.usual.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.usual.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.usual.verify_client_cert(end_entity, intermediates, now)?;
        let pinned = Pinned { pins: &self.pins, roots: &self.roots, provider: &self.provider };
        let usage = KeyUsage::client_auth();
        pinned.check(end_entity, intermediates, now, usage, CLIENT_NOT_PINNED)?;
        Ok(verified)
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

/// Whether all that is wrong with a server's certificate is that it is an authority's. It is what is looked at behind
/// the time (webpki, `check_issuer_independent_properties`).
pub fn is_authority_as_server(error: &CertificateError) -> bool {
    let CertificateError::Other(OtherError(error)) = error else { return false };
    error.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
}

/// Whether these bytes are somewhere in a certificate, which is one that a person has named.
fn has(certificate: &[u8], bytes: &[u8]) -> bool {
    certificate.windows(bytes.len()).any(|window| window == bytes)
}

/// Whether a certificate is marked as an authority's: the basic constraints are a sequence that begins with true.
/// The user has configured its hash, so that looking for the bytes is enough.
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
