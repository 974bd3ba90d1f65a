//! `ssl` of a server: the certificate that it shows, and the certificates that clients may or must show.
//!
//! The rules are those of Filebeat (elastic-agent-libs, `transport/tlscommon/server_config.go`). A client's certificate
//! is checked up to an authority; its names are not compared with anything.

use crate::error::TlsError;
use crate::own::OwnClient;
use crate::read::BOTH_ENDS;
use crate::settings::{TlsSettings, VerificationMode, certificates, first_certificate};
use crate::verify::ClientVerifier;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use skidder_config::{Group, Key, OneOf, Section, settings};
use skidder_os::Fs;
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// Settings of a section `ssl` of a server.
    pub static SSL_SERVER = Group::new("ssl.server", "TLS of a server.")
        .include(&[&BOTH_ENDS])
        .unsupported(&[
            ("ca_trusted_fingerprint", "it has no meaning for a server: remove it"),
            ("renegotiation", "it has no meaning for a server: remove it"),
        ]);

    CLIENT_AUTHENTICATION: OneOf<ClientAuthentication> = Key::one_of(
        "client_authentication",
        &[
            ("none", ClientAuthentication::None),
            ("optional", ClientAuthentication::Optional),
            ("required", ClientAuthentication::Required),
        ],
    )
    .default_words("`required` with `certificate_authorities`, else `none`")
    .about("whether clients must show a certificate; `optional`: one that is shown must be good");
    RELOADS: bool = Key::new("certificate_reload.enabled")
        .default(true)
        .about("files that changed are read again, for the next handshake");
    RELOAD_INTERVAL: Duration = Key::new("certificate_reload.reload_interval")
        .about("no effect: files are looked at for each handshake, which is never later");
}

/// `ssl.client_authentication`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// Clients need no certificate.
    #[default]
    None,
    /// A client may show one; one that is shown must be good.
    Optional,
    /// No client without a good certificate.
    Required,
}

/// `ssl` of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsServerSettings {
    /// The common settings of servers and clients. `identity` is there; `verification_mode` has no meaning.
    pub common: TlsSettings,
    /// `ssl.client_authentication`.
    pub client_authentication: ClientAuthentication,
    /// `ssl.certificate_reload.enabled`: files that changed are read again.
    pub reloads: bool,
    /// Whether a client may show the server's own certificate: for a server with commands that connect to it
    /// ([`TlsServerSettings::own_client`]). Off for a section that was read.
    pub takes_own: bool,
}

impl TlsServerSettings {
    /// Reads a section `ssl`; mistakes go to its problems. `None` if it is turned off, or has a mistake.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        section.declared_by(&SSL_SERVER);
        let common = TlsSettings::read_both(section);
        let requested = section.get(&CLIENT_AUTHENTICATION).optional();
        let reloads = section.get(&RELOADS).value();
        let _ = section.get(&RELOAD_INTERVAL).optional();
        if !common.enabled {
            return None;
        }
        if common.identity.is_none() {
            // One of them alone was reported already.
            if !section.has("certificate") && !section.has("key") {
                let message = "a server with TLS needs `ssl.certificate` and `ssl.key`";
                section.problem("certificate", message, "or set `ssl.enabled: false`");
            }
            return None;
        }
        let has_authorities = !common.certificate_authorities.is_empty();
        let client_authentication = requested.unwrap_or(if has_authorities {
            ClientAuthentication::Required
        } else {
            ClientAuthentication::None
        });
        if client_authentication == ClientAuthentication::None && has_authorities {
            let message = "`ssl.certificate_authorities` is not used: clients are not asked for a certificate";
            let hint = "set `ssl.client_authentication` to `optional` or `required`";
            section.warning("certificate_authorities", message, hint);
        }
        if client_authentication != ClientAuthentication::None && !has_authorities {
            let message = "clients need a certificate of an authority that this system knows, as \
                           `ssl.certificate_authorities` is not set";
            let hint = "set `ssl.certificate_authorities` to the authority of your clients";
            section.warning("client_authentication", message, hint);
        }
        if client_authentication != ClientAuthentication::None
            && common.verification_mode == VerificationMode::None
        {
            let message = "certificates of clients are checked nevertheless, as in Filebeat";
            let hint = "set `ssl.client_authentication: none` to take any client";
            section.warning("verification_mode", message, hint);
        }
        Some(Self { common, client_authentication, reloads, takes_own: false })
    }

    /// The settings of a client that reads the same configuration: it trusts this certificate and no other, whatever the
    /// name in it, and shows it where the server lets in no client without one. Only then it needs the key.
    #[must_use]
    pub fn own_client(&self) -> TlsSettings {
        let common = self.common.clone();
        let certificate = common.identity.as_ref().map(|(certificate, _)| certificate.clone());
        let shows = self.client_authentication == ClientAuthentication::Required;
        TlsSettings {
            only: certificate,
            identity: common.identity.filter(|_| shows),
            certificate_authorities: Vec::new(),
            ca_sha256: Vec::new(),
            verification_mode: VerificationMode::Full,
            ..common
        }
    }

    /// Reads the files and builds what connections need.
    pub(crate) fn server(
        &self,
        fs: &dyn Fs,
        protocols: &[&str],
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let asks = self.client_authentication != ClientAuthentication::None;
        let built = self.build(fs, protocols);
        built.map_err(|error| self.common.with_unreadable(fs, error, asks))
    }

    fn build(&self, fs: &dyn Fs, protocols: &[&str]) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(self.common.provider());
        let versions = self.common.versions()?;
        let setting = "ssl.supported_protocols";
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|source| TlsError::Certificate { setting, source })?;
        let builder = match self.client_verifier(fs)? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let setting = "ssl.certificate";
        let missing = || TlsError::Pem { setting, reason: "it is missing".to_owned() };
        let (certificate, key) = self.common.identity.as_ref().ok_or_else(missing)?;
        let chain = certificates(fs, setting, certificate)?;
        let key = self.common.private_key(fs, key, &provider)?;
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(TlsError::of_identity)?;
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }

    fn client_verifier(
        &self,
        fs: &dyn Fs,
    ) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        if self.client_authentication == ClientAuthentication::None {
            return Ok(None);
        }
        let roots = Arc::new(self.common.roots(&self.common.configured(fs)?)?);
        let provider = Arc::new(self.common.provider());
        let mut builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        if self.client_authentication == ClientAuthentication::Optional {
            builder = builder.allow_unauthenticated();
        }
        let setting = "ssl.certificate_authorities";
        let usual = builder
            .build()
            .map_err(|error| TlsError::Pem { setting, reason: error.to_string() })?;
        let pins = self.common.ca_sha256.clone();
        let others: Arc<dyn ClientCertVerifier> = if pins.is_empty() {
            usual
        } else {
            Arc::new(ClientVerifier { usual, roots, pins, provider })
        };
        let own = self.common.identity.as_ref().filter(|_| self.takes_own);
        let Some((certificate, _)) = own else { return Ok(Some(others)) };
        let certificate = first_certificate(fs, certificate)?;
        Ok(Some(Arc::new(OwnClient { certificate, others })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    fn read(text: &str) -> (Option<TlsServerSettings>, String) {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let root = settings.root(&problems);
        let read = TlsServerSettings::read(&root.section("ssl"));
        root.finish();
        (read, problems.to_string())
    }

    #[test]
    fn authorities_alone_make_certificates_of_clients_required() {
        for (text, expected) in [
            ("", ClientAuthentication::None),
            (", certificate_authorities: [ca.pem]", ClientAuthentication::Required),
            (
                ", certificate_authorities: [ca.pem], client_authentication: optional",
                ClientAuthentication::Optional,
            ),
        ] {
            let (read, problems) = read(&format!("ssl: {{certificate: c, key: k{text}}}"));
            let found = read.map(|settings| settings.client_authentication);
            assert_eq!((found, problems.as_str()), (Some(expected), ""), "{text}");
        }
    }

    #[test]
    fn changed_files_are_read_again_unless_that_is_turned_off() {
        let read = |text: &str| read(&format!("ssl: {{certificate: c, key: k{text}}}"));
        let reload = |text: &str| read(&format!(", certificate_reload: {text}")).0.unwrap().reloads;
        assert!(read("").0.unwrap().reloads);
        assert!(reload("{reload_interval: 1m}"));
        assert!(!reload("{enabled: false, reload_interval: 1m}"));
        assert!(read(", certificate_reload.reload_interval: soon").1.contains("soon"));
    }

    #[test]
    fn mistakes_are_reported_and_a_section_that_is_off_is_none() {
        assert_eq!(read("ssl.enabled: false"), (None, String::new()));
        for (text, expected) in [
            ("ssl.enabled: true", "a server with TLS needs `ssl.certificate` and `ssl.key`"),
            ("ssl.certificate: c", "`ssl.certificate` needs `ssl.key`"),
            ("ssl: {certificate: c, key: k, renegotiation: never}", "has no meaning for a server"),
            ("ssl: {certificate: c, key: k, client_authentication: x}", "`required`"),
        ] {
            let (_, problems) = read(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
        let unused =
            "{certificate: c, key: k, certificate_authorities: [a], client_authentication: none}";
        assert!(read(&format!("ssl: {unused}")).1.contains("clients are not asked"));
        let anyone = "ssl: {certificate: c, key: k, client_authentication: required}";
        let (read_anyone, problems) = read(anyone);
        assert!(read_anyone.is_some() && problems.contains("that this system knows"), "{problems}");
        let checked =
            "{certificate: c, key: k, certificate_authorities: [a], verification_mode: none}";
        assert!(read(&format!("ssl: {checked}")).1.contains("checked nevertheless"));
    }
}
