//! Certificates for tests, good ones and bad ones.

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, PublicKeyData as _};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// An authority and what it signed.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub struct Certificate {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

/// What a certificate that signed itself is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfSigned {
    /// As `openssl req -x509` makes it: it says that it is an authority.
    Authority,
    /// It says that it is none.
    Leaf,
    /// An authority whose time is over.
    Expired,
    /// An authority, for clients only.
    ForClients,
}

impl fmt::Debug for Authority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Authority")
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Certificate")
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one that is not trusted yet.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate in the name of `name`.
    pub fn sign(&self, name: &str) -> Certificate {
        self.signed(CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    /// One whose time is over.
    pub fn sign_expired(&self, name: &str) -> Certificate {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        self.signed(params)
    }

    /// A certificate in the name of `name` for a key that is there already, in PEM.
    pub fn sign_for(&self, name: &str, key: &str) -> Certificate {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        self.signed_for(params, KeyPair::from_pem(key).unwrap())
    }

    /// Its own certificate in DER, and its public key, as it is hashed for pins.
    pub fn der(&self) -> (Vec<u8>, Vec<u8>) {
        (self.0.der().to_vec(), self.0.key().subject_public_key_info())
    }

    fn signed(&self, params: CertificateParams) -> Certificate {
        self.signed_for(params, KeyPair::generate().unwrap())
    }

    fn signed_for(&self, params: CertificateParams, key: KeyPair) -> Certificate {
        Certificate { certificate: params.signed_by(&key, &self.0).unwrap(), key }
    }

    /// What accepts connections with a certificate and the authority's behind it; with `clients`, only from those that this authority signed.
    pub fn acceptor(&self, certificate: &Certificate, clients: bool) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivatePkcs8KeyDer::from(certificate.key.serialize_der());
        let chain = vec![certificate.certificate.der().clone(), self.0.der().clone()];
        let config = builder.with_single_cert(chain, PrivateKeyDer::Pkcs8(key)).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Certificate {
    /// A self-signed one, in the name of `name`.
    pub fn self_signed(name: &str, what: SelfSigned) -> Self {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = match what {
            SelfSigned::Leaf => rcgen::IsCa::ExplicitNoCa,
            _ => rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained),
        };
        if what == SelfSigned::Expired {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        }
        if what == SelfSigned::ForClients {
            params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        }
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap(), key }
    }

    /// What accepts connections with it alone.
    pub fn acceptor(&self) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        let chain = vec![self.certificate.der().clone()];
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::Pkcs8(key))
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Certificate {
    /// The certificate.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }

    /// Its key.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }
}
