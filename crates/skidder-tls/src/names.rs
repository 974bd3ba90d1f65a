//! Names of cipher suites and curves, as Filebeat has them (elastic-agent-libs, `transport/tlscommon/types.go`).

use rustls::{CipherSuite, NamedGroup};

/// Those that rustls has with ring, by their names. One is misspelt in Filebeat, which is understood as well.
const SUITES: [(&str, CipherSuite); 10] = [
    ("ECDHE-ECDSA-AES-128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES-256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES-128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES-256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-CHACHA20-POLY1205", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS-AES-128-GCM-SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS-AES-256-GCM-SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS-CHACHA20-POLY1305-SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// Those of Filebeat that are not here: CBC, RC4, 3DES, and keys that are not ephemeral.
const WEAK_SUITES: [&str; 17] = [
    "ECDHE-ECDSA-AES-128-CBC-SHA",
    "ECDHE-ECDSA-AES-128-CBC-SHA256",
    "ECDHE-ECDSA-AES-256-CBC-SHA",
    "ECDHE-ECDSA-RC4-128-SHA",
    "ECDHE-RSA-3DES-CBC3-SHA",
    "ECDHE-RSA-AES-128-CBC-SHA",
    "ECDHE-RSA-AES-128-CBC-SHA256",
    "ECDHE-RSA-AES-256-CBC-SHA",
    "ECDHE-RSA-RC4-128-SHA",
    "RSA-RC4-128-SHA",
    "RSA-3DES-CBC3-SHA",
    "RSA-AES-128-CBC-SHA",
    "RSA-AES-128-CBC-SHA256",
    "RSA-AES-128-GCM-SHA256",
    "RSA-AES-256-CBC-SHA",
    "RSA-AES-256-CBC-SHA256",
    "RSA-AES-256-GCM-SHA384",
];

const CURVES: [(&str, NamedGroup); 3] = [
    ("P-256", NamedGroup::secp256r1),
    ("P-384", NamedGroup::secp384r1),
    ("X25519", NamedGroup::X25519),
];

/// Those of Filebeat that ring does not have.
const OTHER_CURVES: [&str; 2] = ["P-521", "X25519MLKEM768"];

/// A list of names, split by support.
#[derive(Debug, PartialEq)]
pub(crate) struct Named<T> {
    /// Those that are here, in their order.
    pub(crate) known: Vec<T>,
    /// Names that only Filebeat supports.
    pub(crate) absent: Vec<String>,
}

/// `ssl.cipher_suites`.
pub(crate) fn cipher_suites(names: &[String]) -> Result<Named<CipherSuite>, String> {
    find(names, &SUITES, &WEAK_SUITES, "cipher suite")
}

/// `ssl.curve_types`.
pub(crate) fn curves(names: &[String]) -> Result<Named<NamedGroup>, String> {
    find(names, &CURVES, &OTHER_CURVES, "curve")
}

fn find<T: Copy>(
    names: &[String],
    known: &[(&str, T)],
    absent: &[&str],
    what: &str,
) -> Result<Named<T>, String> {
    let mut found = Named { known: Vec::new(), absent: Vec::new() };
    for name in names {
        match known.iter().find(|(known, _)| known == name) {
            Some((_, value)) => found.known.push(*value),
            None if absent.contains(&name.as_str()) => found.absent.push(name.clone()),
            None => {
                let all: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                return Err(format!("`{name}` is no {what}; there are {}", all.join(", ")));
            }
        }
    }
    Ok(found)
}
