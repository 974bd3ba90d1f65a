//! `ssl`: the checks of a server's certificate, and our own certificate.
//!
//! rustls with ring. TLS 1.2 and 1.3; a certificate without a subject alternative name is not
//! accepted by its common name, which Filebeat's `full` mode would still do.

use crate::error::TlsError;
use crate::keys;
use crate::own::OwnServer;
use crate::verify::{NoCheck, Verifier};
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, ClientConfig, NamedGroup, RootCertStore, SupportedProtocolVersion};
use skidder_config::Secret;
use skidder_os::Fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest certificate or key file that is read.
const PEM_BYTES_MAX: usize = 16 << 20;

/// `ssl.verification_mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerificationMode {
    /// `full` and `strict`: the chain and the name.
    #[default]
    Full,
    /// `certificate`: the chain alone.
    Certificate,
    /// `none`: anything.
    None,
}

/// Something in PEM: in a file, or written into the configuration.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// A file.
    File(PathBuf),
    /// The text itself.
    Inline(String),
}

impl Pem {
    /// Text that begins with a PEM header is the thing itself, all else is a path.
    pub fn of(text: &str) -> Self {
        if text.trim_start().starts_with("-----BEGIN ") {
            Self::Inline(text.to_owned())
        } else {
            Self::File(PathBuf::from(text))
        }
    }
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => out.debug_tuple("File").field(path).finish(),
            Self::Inline(_) => out.write_str("Inline"),
        }
    }
}

/// `ssl` of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// `ssl.enabled`: when false, hosts with `https` are a mistake.
    pub enabled: bool,
    /// `ssl.verification_mode`.
    pub verification_mode: VerificationMode,
    /// `ssl.certificate_authorities`; empty = those of the system.
    pub certificate_authorities: Vec<Pem>,
    /// The only certificate that a server may have, if set: no authority, no pin and no name counts beside it.
    pub only: Option<Pem>,
    /// `ssl.certificate` and `ssl.key`.
    pub identity: Option<(Pem, Pem)>,
    /// `ssl.key_passphrase`.
    pub key_passphrase: Option<Secret>,
    /// `ssl.key_passphrase_path`: a file whose text, without line feeds at its end, is the passphrase.
    pub key_passphrase_path: Option<PathBuf>,
    /// `ssl.ca_sha256`: hashes of public keys, one of which must be in a server's chain; empty = any.
    pub ca_sha256: Vec<[u8; 32]>,
    /// `ssl.ca_trusted_fingerprint`: hash of an authority's certificate that is trusted when a server shows it.
    pub ca_trusted_fingerprint: Option<[u8; 32]>,
    /// `ssl.cipher_suites`; empty = all that there are.
    pub cipher_suites: Vec<CipherSuite>,
    /// `ssl.curve_types`; empty = all that there are.
    pub curve_types: Vec<NamedGroup>,
    /// Whether `ssl.supported_protocols` allows TLS 1.2.
    pub tls12: bool,
    /// Whether it allows TLS 1.3.
    pub tls13: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            verification_mode: VerificationMode::Full,
            certificate_authorities: Vec::new(),
            only: None,
            identity: None,
            key_passphrase: None,
            key_passphrase_path: None,
            ca_sha256: Vec::new(),
            ca_trusted_fingerprint: None,
            cipher_suites: Vec::new(),
            curve_types: Vec::new(),
            tls12: true,
            tls13: true,
        }
    }
}

impl TlsSettings {
    /// Reads the files and builds what connections need.
    pub fn client(&self, fs: &dyn Fs) -> Result<Arc<ClientConfig>, TlsError> {
        let checks = self.only.is_none() && self.verification_mode != VerificationMode::None;
        self.build_client(fs).map_err(|error| self.with_unreadable(fs, error, checks))
    }

    fn build_client(&self, fs: &dyn Fs) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(self.provider());
        let versions = self.versions()?;
        let verifier = self.server_verifier(fs, &provider)?;
        let setting = "ssl.supported_protocols";
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|source| TlsError::Certificate { setting, source })?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(fs, "ssl.certificate", certificate)?;
                let key = self.private_key(fs, key, &provider)?;
                builder.with_client_auth_cert(chain, key).map_err(TlsError::of_identity)?
            }
        };
        Ok(Arc::new(config))
    }

    fn server_verifier(
        &self,
        fs: &dyn Fs,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
        if let Some(only) = &self.only {
            let certificate = first_certificate(fs, only)?;
            let signatures = NoCheck(Arc::clone(provider));
            return Ok(Arc::new(OwnServer { certificate, signatures }));
        }
        Ok(match self.verification_mode {
            VerificationMode::None => Arc::new(NoCheck(Arc::clone(provider))),
            VerificationMode::Full | VerificationMode::Certificate => {
                let configured = self.configured(fs)?;
                Arc::new(Verifier {
                    roots: Arc::new(self.roots(&configured)?),
                    roots_are_default: configured.is_empty(),
                    configured,
                    fingerprint: self.ca_trusted_fingerprint,
                    pins: self.ca_sha256.clone(),
                    check_name: self.verification_mode == VerificationMode::Full,
                    provider: Arc::clone(provider),
                })
            }
        })
    }

    /// The versions that `ssl.supported_protocols` allows.
    pub(crate) fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
        let mut versions: Vec<&'static SupportedProtocolVersion> = Vec::new();
        if self.tls12 {
            versions.push(&rustls::version::TLS12);
        }
        if self.tls13 {
            versions.push(&rustls::version::TLS13);
        }
        if versions.is_empty() { Err(TlsError::NoVersion) } else { Ok(versions) }
    }

    /// The cipher suites and curves that may be used. A list for TLS 1.2 leaves those of 1.3 alone, as in Go.
    pub(crate) fn provider(&self) -> CryptoProvider {
        let mut provider = ring::default_provider();
        if !self.cipher_suites.is_empty() {
            provider.cipher_suites.retain(|suite| {
                suite.tls13().is_some() || self.cipher_suites.contains(&suite.suite())
            });
        }
        if !self.curve_types.is_empty() {
            provider.kx_groups.retain(|group| self.curve_types.contains(&group.name()));
        }
        provider
    }

    /// Whether it names certificates of its own, which may be missing.
    pub fn names_certificates(&self) -> bool {
        !self.certificate_authorities.is_empty() || self.identity.is_some()
    }

    /// The certificates of `ssl.certificate_authorities`.
    pub(crate) fn configured(&self, fs: &dyn Fs) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let mut all = Vec::new();
        for authority in &self.certificate_authorities {
            all.extend(certificates(fs, "ssl.certificate_authorities", authority)?);
        }
        Ok(all)
    }

    pub(crate) fn roots(
        &self,
        configured: &[CertificateDer<'static>],
    ) -> Result<RootCertStore, TlsError> {
        let setting = "ssl.certificate_authorities";
        let mut roots = RootCertStore::empty();
        let mut why_none = String::new();
        if self.certificate_authorities.is_empty() {
            let native = rustls_native_certs::load_native_certs();
            let (_, ignored) = roots.add_parsable_certificates(native.certs);
            if ignored > 0 {
                tracing::debug!(
                    ignored,
                    "certificate authorities of the system that cannot be read"
                );
            }
            if let Some(error) = native.errors.first() {
                why_none = format!(" on this system: {error}");
            }
        }
        for certificate in configured {
            roots
                .add(certificate.clone())
                .map_err(|source| TlsError::Certificate { setting, source })?;
        }
        if roots.is_empty() && self.ca_trusted_fingerprint.is_none() {
            return Err(TlsError::NoAuthorities(why_none));
        }
        Ok(roots)
    }

    /// The key, which the provider can use.
    pub(crate) fn private_key(
        &self,
        fs: &dyn Fs,
        pem: &Pem,
        provider: &CryptoProvider,
    ) -> Result<PrivateKeyDer<'static>, TlsError> {
        let setting = "ssl.key";
        let text = load(fs, setting, pem)?;
        let mut passphrase = self.key_passphrase.as_ref().map(|own| own.reveal().to_owned());
        if let Some(path) = &self.key_passphrase_path {
            let setting = "ssl.key_passphrase_path";
            let text = load(fs, setting, &Pem::File(path.clone()))?;
            let wrong = |_| TlsError::Key { setting, reason: "it is not in UTF-8".to_owned() };
            let text = String::from_utf8(text).map_err(wrong)?;
            passphrase = Some(text.trim_end_matches(['\r', '\n']).to_owned());
        }
        let wrong = |reason| TlsError::Key { setting, reason };
        let key = keys::read(&text, passphrase.as_deref()).map_err(wrong)?;
        // Together with a certificate, that would be blamed.
        match provider.key_provider.load_private_key(key.clone_key()) {
            Ok(_) => Ok(key),
            Err(error) if passphrase.is_some() => {
                Err(wrong(format!("{error}; is the passphrase right?")))
            }
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// The files that it names, each with its setting.
    pub(crate) fn files(&self) -> Vec<(&'static str, &Path)> {
        let identity = self
            .identity
            .iter()
            .flat_map(|(certificate, key)| [("ssl.certificate", certificate), ("ssl.key", key)]);
        let only = self.only.iter().map(|pem| ("ssl.certificate", pem));
        let authorities =
            self.certificate_authorities.iter().map(|pem| ("ssl.certificate_authorities", pem));
        let mut files = Vec::new();
        for (setting, pem) in only.chain(identity).chain(authorities) {
            if let Pem::File(path) = pem {
                files.push((setting, path.as_path()));
            }
        }
        let passphrase = self.key_passphrase_path.iter();
        files.extend(passphrase.map(|path| ("ssl.key_passphrase_path", path.as_path())));
        files.dedup();
        files
    }

    /// A mistake together with all files that cannot be read: a user wants to know of all of them at once.
    pub(crate) fn with_unreadable(
        &self,
        fs: &dyn Fs,
        first: TlsError,
        reads_authorities: bool,
    ) -> TlsError {
        let mut errors = Vec::new();
        for (setting, path) in self.files() {
            let is_read = match setting {
                "ssl.certificate_authorities" => reads_authorities,
                "ssl.key_passphrase_path" => self.identity.is_some(),
                _ => true,
            };
            if is_read {
                errors.extend(load(fs, setting, &Pem::File(path.to_owned())).err());
            }
        }
        if errors.is_empty() || !matches!(first, TlsError::Read { .. }) {
            errors.insert(0, first);
        }
        if errors.len() == 1 { errors.swap_remove(0) } else { TlsError::Several(errors) }
    }
}

fn load(fs: &dyn Fs, setting: &'static str, pem: &Pem) -> Result<Vec<u8>, TlsError> {
    let read = |path: &Path| skidder_os::read_to_end(&*fs.open(path)?, PEM_BYTES_MAX);
    match pem {
        Pem::Inline(text) => Ok(text.as_bytes().to_vec()),
        Pem::File(path) => {
            read(path).map_err(|source| TlsError::Read { setting, path: path.clone(), source })
        }
    }
}

pub(crate) fn certificates(
    fs: &dyn Fs,
    setting: &'static str,
    pem: &Pem,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = load(fs, setting, pem)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let wrong = |reason: String| TlsError::Pem { setting, reason };
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() { Err(wrong("it has no certificate".to_owned())) } else { Ok(found) }
}

/// The certificate of `ssl.certificate` itself, without those of authorities behind it.
pub(crate) fn first_certificate(
    fs: &dyn Fs,
    pem: &Pem,
) -> Result<CertificateDer<'static>, TlsError> {
    Ok(certificates(fs, "ssl.certificate", pem)?.swap_remove(0))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
