//! What can be wrong with the settings of TLS.

use crate::verify::is_authority_as_server;
use rustls::InconsistentKeys;
use skidder_config::Section;
use std::io;
use std::path::PathBuf;

/// An error of rustls in words, also where it only names a variant.
fn words(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "it does not belong to the certificate in `ssl.certificate`".to_owned()
        }
        rustls::Error::InvalidCertificate(error) if is_authority_as_server(error) => {
            "the certificate is that of an authority, not of a server or client".to_owned()
        }
        error => error.to_string(),
    }
}

/// An error of a handshake in words, also where it only names a variant.
pub fn handshake_words(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|error| error.downcast_ref());
    inner.map_or_else(|| error.to_string(), words)
}

/// Why encryption cannot be set up. All are mistakes of the configuration.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read `{setting}` from `{path}`: {source}")]
    Read {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A text is not what it should be.
    #[error("`{setting}` is not in PEM: {reason}")]
    Pem {
        /// The setting.
        setting: &'static str,
        /// The mistake.
        reason: String,
    },
    /// A key or its passphrase cannot be used.
    #[error("`{setting}` cannot be used: {reason}")]
    Key {
        /// The setting.
        setting: &'static str,
        /// The mistake.
        reason: String,
    },
    /// There is nothing to check servers against.
    #[error("no certificate authority was found{0}; set `ssl.certificate_authorities`")]
    NoAuthorities(String),
    /// A certificate.
    #[error("`{setting}` cannot be used: {}", words(.source))]
    Certificate {
        /// The setting.
        setting: &'static str,
        /// The error of rustls.
        source: rustls::Error,
    },
    /// Neither version is left.
    #[error("`ssl.supported_protocols` allows neither TLS 1.2 nor TLS 1.3")]
    NoVersion,
    /// Several mistakes, the first of which is not the worst.
    #[error("{}", joined(.0))]
    Several(Vec<TlsError>),
}

fn joined(errors: &[TlsError]) -> String {
    let texts: Vec<String> = errors.iter().map(TlsError::to_string).collect();
    texts.join("; ")
}

impl TlsError {
    /// A certificate and a key that cannot be used together: the one that is wrong.
    pub(crate) fn of_identity(source: rustls::Error) -> Self {
        match source {
            rustls::Error::InconsistentKeys(_) => {
                Self::Key { setting: "ssl.key", reason: words(&source) }
            }
            source => Self::Certificate { setting: "ssl.certificate", source },
        }
    }

    /// All mistakes, one by one.
    pub fn each(&self) -> &[Self] {
        match self {
            Self::Several(errors) => errors,
            error => std::slice::from_ref(error),
        }
    }

    /// Reports all mistakes to the section that has `ssl`, each at its setting.
    pub fn report(&self, section: &Section<'_>) {
        for error in self.each() {
            section.problem_named(error.setting(), error);
        }
    }

    /// The setting that is wrong, or the first of them.
    pub fn setting(&self) -> &'static str {
        match self {
            Self::Read { setting, .. }
            | Self::Pem { setting, .. }
            | Self::Key { setting, .. }
            | Self::Certificate { setting, .. } => setting,
            Self::NoAuthorities(_) => "ssl.certificate_authorities",
            Self::NoVersion => "ssl.supported_protocols",
            Self::Several(errors) => errors.first().map_or("ssl", Self::setting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, OtherError};
    use std::sync::Arc;

    #[test]
    fn errors_that_only_name_a_variant_are_put_in_words() {
        let key = rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch);
        assert_eq!(
            TlsError::of_identity(key).to_string(),
            "`ssl.key` cannot be used: it does not belong to the certificate in `ssl.certificate`"
        );
        let authority = OtherError(Arc::new(webpki::Error::CaUsedAsEndEntity));
        let authority = rustls::Error::InvalidCertificate(CertificateError::Other(authority));
        let of_handshake =
            |error| handshake_words(&io::Error::new(io::ErrorKind::InvalidData, error));
        assert!(of_handshake(authority).starts_with("the certificate is that of an authority"));
        let other = rustls::Error::NoCertificatesPresented;
        assert_eq!(of_handshake(other.clone()), other.to_string());
        assert_eq!(handshake_words(&io::Error::other("x")), "x");
    }
}
