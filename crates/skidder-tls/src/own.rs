//! A server and its own commands, which read the same configuration: each knows the other by the server's certificate.
//!
//! A command connects to wherever the server listens, so that the name in the certificate says nothing; the authority
//! that signed it may be unknown to this machine. What counts is that the server has the key of `ssl.certificate`. The
//! same certificate, shown by a client, is proof of the same key: it stands for a certificate of an authority.

use crate::verify::NoCheck;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::sync::Arc;

/// The error for a server with another certificate.
const OTHER: &str = "the server's certificate is not the one in `ssl.certificate`: it runs with an earlier \
                     configuration, or is another program";

/// Accepts a server that has one certificate.
#[derive(Debug)]
pub(crate) struct OwnServer {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) signatures: NoCheck,
}

impl ServerCertVerifier for OwnServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if end_entity[..] == self.certificate[..] {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General(OTHER.to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_verify_schemes()
    }
}

/// Accepts clients that have the server's own certificate, and those that `others` accepts.
#[derive(Debug)]
pub(crate) struct OwnClient {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) others: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for OwnClient {
    fn offer_client_auth(&self) -> bool {
        self.others.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.others.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.others.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if end_entity[..] == self.certificate[..] {
            return Ok(ClientCertVerified::assertion());
        }
        self.others.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.others.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.others.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.others.supported_verify_schemes()
    }
}
