//! The session negotiated in a TLS handshake: the facts for the fields `tls.*` of events.

use rustls::{ProtocolVersion, ServerConnection};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// The session negotiated with a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSession {
    /// The protocol, as Filebeat names it: `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite by its registered name, as `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The server name in the client's handshake (SNI).
    pub server_name: Option<String>,
    /// The certificate that the client showed, if any.
    pub client: Option<ClientCertificate>,
}

/// Names in a client's certificate, as in RFC 4514: `CN=shipper,O=Example`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The subject.
    pub subject: String,
    /// The issuer.
    pub issuer: String,
    /// `CN` of the subject by itself.
    pub common_name: Option<String>,
}

impl TlsSession {
    /// Of a connection whose handshake is complete.
    pub(super) fn of(connection: &ServerConnection) -> Self {
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "",
        };
        let suite = connection.negotiated_cipher_suite().map(|suite| suite.suite());
        let cipher = suite.and_then(|suite| suite.as_str()).unwrap_or_default();
        let shown = connection.peer_certificates().and_then(<[_]>::first);
        Self {
            version,
            cipher: cipher.replacen("TLS13_", "TLS_", 1),
            server_name: connection.server_name().map(str::to_owned),
            client: shown.and_then(|certificate| ClientCertificate::read(certificate)),
        }
    }
}

impl ClientCertificate {
    /// `None` if the certificate cannot be read, which rustls has made sure of before.
    fn read(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let content = certificate.tbs_certificate();
        let (subject, issuer) = (content.subject().to_string(), content.issuer().to_string());
        let common_name = content.subject().common_name().ok().flatten();
        let common_name = common_name.map(|name| name.value().into_owned());
        Some(Self { subject, issuer, common_name })
    }
}
