//! A section `ssl` of a client, read.

use crate::keys;
use crate::names::{self, Named};
use crate::settings::{Pem, TlsSettings, VerificationMode};
use skidder_config::{Group, Key, OneOf, Secret, Section, settings};
use std::path::PathBuf;

mod client {
    use super::*;

    settings! {
        /// Settings that only a client has.
        pub(super) static OF_CLIENT = Group::new("ssl.client", "TLS of a client.");

        pub(super) CA_TRUSTED_FINGERPRINT: String = Key::new("ca_trusted_fingerprint").about(
            "SHA-256 of an authority's certificate, in hexadecimal: trusted if the server shows it",
        );
        pub(super) RENEGOTIATION: String =
            Key::new("renegotiation").default("never").about("nothing else");
    }
}

/// Settings of a section `ssl` of a client.
pub static SSL: Group =
    Group::new("ssl", "TLS of a client.").include(&[&BOTH_ENDS, &client::OF_CLIENT]);

settings! {
    /// Settings that a section `ssl` of a client and one of a server have in common.
    pub(crate) static BOTH_ENDS = Group::new("ssl.both_ends", "TLS.").called_elsewhere(&[
        ("ca", "certificate_authorities", ""),
        ("ca_cert", "certificate_authorities", ""),
        ("ca_file", "certificate_authorities", ""),
        ("cert", "certificate", ""),
        ("cert_file", "certificate", ""),
        ("key_file", "key", ""),
    ]);

    ENABLED: bool = Key::new("enabled").default(true).about("`false`: hosts with `https` are an error");
    VERIFICATION_MODE: OneOf<VerificationMode> = Key::one_of(
        "verification_mode",
        &[
            ("full", VerificationMode::Full),
            ("strict", VerificationMode::Full),
            ("certificate", VerificationMode::Certificate),
            ("none", VerificationMode::None),
        ],
    )
    .default("full")
    .about("`full`, `strict`: chain and name; `certificate`: chain; `none`");
    CERTIFICATE_AUTHORITIES: Vec<String> =
        Key::new("certificate_authorities").default_words("the system's").about("paths or PEM");
    CA_SHA256: Vec<String> = Key::new("ca_sha256").about(
        "SHA-256 of public keys, in base64: one of them must be in the server's chain",
    );
    CERTIFICATE: String = Key::new("certificate").about("path or PEM; needs `key`");
    KEY: Secret = Key::<Secret>::new("key").path_or_pem().about("path or PEM; needs `certificate`");
    KEY_PASSPHRASE: Secret = Key::new("key_passphrase").about(
        "of a key in PKCS#8, or encrypted in OpenSSL's old way (AES, 3DES, DES in CBC)",
    );
    KEY_PASSPHRASE_PATH: PathBuf =
        Key::new("key_passphrase_path").about("a file with the passphrase, instead of it");
    SUPPORTED_PROTOCOLS: Vec<String> = Key::<Vec<String>>::new("supported_protocols")
        .default(&["TLSv1.2", "TLSv1.3"])
        .about("the range that the list spans");
    CIPHER_SUITES: Vec<String> = Key::new("cipher_suites").default_words("all").about(
        "of TLS 1.2, by Filebeat's names: `ECDHE-ECDSA-` or `ECDHE-RSA-` with `AES-128-GCM-SHA256`, \
         `AES-256-GCM-SHA384`, `CHACHA20-POLY1305`. Others are left out with a warning; if none is left it is an error",
    );
    CURVE_TYPES: Vec<String> = Key::new("curve_types")
        .default_words("all")
        .about("`P-256`, `P-384`, `X25519`; others as above");
}

impl TlsSettings {
    /// Reads a section `ssl` of a client and reports its problems there.
    pub fn read(section: &Section<'_>) -> Self {
        section.declared_by(&SSL);
        let renegotiation = section.get(&client::RENEGOTIATION).check(|text| match text.as_str() {
            "never" => Ok(()),
            "once" | "freely" => {
                Err("a connection is never negotiated anew; use `never`".to_owned())
            }
            _ => Err("expected `never`".to_owned()),
        });
        renegotiation.optional();
        let hash = |text: String| {
            keys::hex(text.trim())
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or("expected the SHA-256 of a certificate in 64 hexadecimal digits".to_owned())
        };
        let fingerprint = section.get(&client::CA_TRUSTED_FINGERPRINT).try_map(hash).optional();
        Self { ca_trusted_fingerprint: fingerprint, ..Self::read_both(section) }
    }

    /// Reads what a client and a server have in common.
    pub(crate) fn read_both(section: &Section<'_>) -> Self {
        let pem = |text: String| Pem::of(&text);
        let authorities = section.get(&CERTIFICATE_AUTHORITIES).optional().unwrap_or_default();
        let filled = |text: &String| !text.is_empty();
        let certificate = section.get(&CERTIFICATE).optional().filter(filled).map(pem);
        let key = section.get(&KEY).optional().filter(|key| !key.reveal().is_empty());
        let key = key.map(|key| Pem::of(key.reveal()));
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => {
                section.problem("certificate", "`ssl.certificate` needs `ssl.key`", "");
                None
            }
            (None, Some(_)) => {
                section.problem("key", "`ssl.key` needs `ssl.certificate`", "");
                None
            }
        };
        let (tls12, tls13) = read_protocols(section);
        let key_passphrase = section.get(&KEY_PASSPHRASE).optional();
        let key_passphrase_path = section.get(&KEY_PASSPHRASE_PATH).optional();
        if key_passphrase.is_some() && key_passphrase_path.is_some() {
            let message = "`key_passphrase` and `key_passphrase_path` are both set; expected one";
            section.problem("key_passphrase_path", message, "");
        }
        let hashes = |texts: Vec<String>| texts.iter().map(|text| base64_hash(text)).collect();
        TlsSettings {
            key_passphrase,
            key_passphrase_path,
            ca_sha256: section.get(&CA_SHA256).try_map(hashes).optional().unwrap_or_default(),
            ca_trusted_fingerprint: None,
            cipher_suites: read_names(section, &CIPHER_SUITES, names::cipher_suites),
            curve_types: read_names(section, &CURVE_TYPES, names::curves),
            enabled: section.get(&ENABLED).value(),
            verification_mode: section.get(&VERIFICATION_MODE).value(),
            certificate_authorities: authorities.into_iter().map(pem).collect(),
            only: None,
            identity,
            tls12,
            tls13,
        }
    }
}

/// A hash in base64.
fn base64_hash(text: &str) -> Result<[u8; 32], String> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| format!("`{text}` is no SHA-256 in base64, of 44 letters"))
}

/// A list of names. Reports unsupported ones and leaves them out, as long as others remain.
fn read_names<T>(
    section: &Section<'_>,
    key: &Key<Vec<String>>,
    find: impl Fn(&[String]) -> Result<Named<T>, String>,
) -> Vec<T> {
    let found = section.get(key).try_map(|names| {
        let found = find(&names)?;
        if found.known.is_empty() && !found.absent.is_empty() {
            return Err(format!("skidder has none of {}", found.absent.join(", ")));
        }
        Ok(found)
    });
    let Some(found) = found.optional() else { return Vec::new() };
    if !found.absent.is_empty() {
        let message = format!("skidder does not have {}", found.absent.join(", "));
        section.warning(key.name(), message, "the others are used");
    }
    found.known
}

/// Whether TLS 1.2 and 1.3 are in the range that `supported_protocols` spans.
fn read_protocols(section: &Section<'_>) -> (bool, bool) {
    let minor = |text: &String| match text.as_str() {
        "TLSv1" | "TLSv1.0" => Ok(0),
        "TLSv1.1" => Ok(1),
        "TLSv1.2" => Ok(2),
        "TLSv1.3" => Ok(3),
        _ => Err(format!("`{text}` is none of `TLSv1.2` and `TLSv1.3`")),
    };
    let setting = section.get(&SUPPORTED_PROTOCOLS).try_map(|names| {
        let minors: Vec<u8> = names.iter().map(minor).collect::<Result<_, _>>()?;
        match (minors.iter().min(), minors.iter().max()) {
            (Some(_), Some(&(0 | 1))) => {
                Err("TLS 1.0 and 1.1 are not supported; allow `TLSv1.2`".to_owned())
            }
            (Some(&min), Some(&max)) => Ok((min, max)),
            _ => Ok((2, 3)),
        }
    });
    let (min, max) = setting.value();
    if min < 2 {
        let message = "TLS 1.0 and 1.1 are not supported and stay off";
        section.warning("supported_protocols", message, "");
    }
    (min <= 2 && max >= 2, max >= 3)
}
