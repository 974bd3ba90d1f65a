//! A section `ssl` of a client, read.

use crate::keys;
use crate::names::{self, Named};
use crate::settings::{Pem, TlsSettings, VerificationMode};
use skidder_config::Section;

impl TlsSettings {
    /// Reads a section `ssl`; what is wrong is told there.
    pub fn read(section: &Section<'_>) -> Self {
        let modes = [
            ("full", VerificationMode::Full),
            ("strict", VerificationMode::Full),
            ("certificate", VerificationMode::Certificate),
            ("none", VerificationMode::None),
        ];
        let pem = |text: String| Pem::of(&text);
        let authorities = section.strings("certificate_authorities").optional().unwrap_or_default();
        let filled = |text: &String| !text.is_empty();
        let certificate = section.string("certificate").optional().filter(filled).map(pem);
        let key = section.secret("key").optional().filter(|key| !key.reveal().is_empty());
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
        let renegotiation = section.string("renegotiation").check(|text| match text.as_str() {
            "never" => Ok(()),
            "once" | "freely" => {
                Err("a connection is never negotiated anew; use `never`".to_owned())
            }
            _ => Err("expected `never`".to_owned()),
        });
        renegotiation.optional();
        let (tls12, tls13) = read_protocols(section);
        let key_passphrase = section.secret("key_passphrase").optional();
        let key_passphrase_path = section.path_buf("key_passphrase_path").optional();
        if key_passphrase.is_some() && key_passphrase_path.is_some() {
            let message = "`key_passphrase` and `key_passphrase_path` are both set; expected one";
            section.problem("key_passphrase_path", message, "");
        }
        let hashes = |texts: Vec<String>| texts.iter().map(|text| base64_hash(text)).collect();
        let hash = |text: String| {
            keys::hex(text.trim())
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or("expected the SHA-256 of a certificate in 64 hexadecimal digits".to_owned())
        };
        TlsSettings {
            key_passphrase,
            key_passphrase_path,
            ca_sha256: section.strings("ca_sha256").try_map(hashes).optional().unwrap_or_default(),
            ca_trusted_fingerprint: section
                .string("ca_trusted_fingerprint")
                .try_map(hash)
                .optional(),
            cipher_suites: read_names(section, "cipher_suites", names::cipher_suites),
            curve_types: read_names(section, "curve_types", names::curves),
            enabled: section.bool("enabled").or(true),
            verification_mode: section
                .one_of("verification_mode", &modes)
                .or(VerificationMode::Full),
            certificate_authorities: authorities.into_iter().map(pem).collect(),
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

/// A list of names. Those that are missing here are told and left out, as long as others remain.
fn read_names<T>(
    section: &Section<'_>,
    key: &str,
    find: impl FnOnce(&[String]) -> Result<Named<T>, String>,
) -> Vec<T> {
    let found = section.strings(key).try_map(|names| {
        let found = find(&names)?;
        if found.known.is_empty() && !found.absent.is_empty() {
            return Err(format!("skidder has none of {}", found.absent.join(", ")));
        }
        Ok(found)
    });
    let Some(found) = found.optional() else { return Vec::new() };
    if !found.absent.is_empty() {
        let message = format!("skidder does not have {}", found.absent.join(", "));
        section.warning(key, message, "the others are used");
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
    let setting = section.strings("supported_protocols").try_map(|names| {
        let minors: Vec<u8> = names.iter().map(minor).collect::<Result<_, _>>()?;
        match (minors.iter().min(), minors.iter().max()) {
            (Some(_), Some(&(0 | 1))) => {
                Err("TLS 1.0 and 1.1 are not supported; allow `TLSv1.2`".to_owned())
            }
            (Some(&min), Some(&max)) => Ok((min, max)),
            _ => Ok((2, 3)),
        }
    });
    let (min, max) = setting.or((2, 3));
    if min < 2 {
        let message = "TLS 1.0 and 1.1 are not supported and stay off";
        section.warning("supported_protocols", message, "");
    }
    (min <= 2 && max >= 2, max >= 3)
}
