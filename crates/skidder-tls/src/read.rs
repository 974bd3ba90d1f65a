//! A section `ssl` of a client, read.

use crate::settings::{Pem, TlsSettings, VerificationMode};
use skidder_config::Section;

impl TlsSettings {
    /// Reads a section `ssl`; what is wrong is told there.
    pub fn read(section: &Section<'_>) -> Self {
        let keys = ["key_passphrase", "key_passphrase_path"];
        section.unsupported(&keys, "store the key decrypted, readable by us alone");
        let keys = ["cipher_suites", "curve_types", "ca_sha256", "ca_trusted_fingerprint"];
        section.unsupported(&keys, "remove it, and use `ssl.certificate_authorities`");
        let modes = [
            ("full", VerificationMode::Full),
            ("strict", VerificationMode::Full),
            ("certificate", VerificationMode::Certificate),
            ("none", VerificationMode::None),
        ];
        let pem = |text: String| Pem::of(&text);
        let authorities = section.strings("certificate_authorities").optional().unwrap_or_default();
        let certificate = section.string("certificate").map(pem).optional();
        let key = section.secret("key").map(|key| Pem::of(key.reveal())).optional();
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
        section.one_of("renegotiation", &[("never", ())]).or(());
        let (tls12, tls13) = read_protocols(section);
        TlsSettings {
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
