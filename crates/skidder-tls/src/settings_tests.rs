//! What is wrong in the files of `ssl`: all that are missing, and keys that are broken.

use super::*;
use skidder_config::{Problems, Settings};
use skidder_os::RealFs;

const CERTIFICATE: &str = include_str!("../testdata/plain.crt");
const KEY: &str = include_str!("../testdata/plain.pem");
const OTHER_KEY: &str = include_str!("../testdata/other.pem");

/// A client with this certificate and key.
fn client(certificate: &str, key: &str) -> TlsSettings {
    TlsSettings {
        verification_mode: VerificationMode::None,
        identity: Some((Pem::of(certificate), Pem::of(key))),
        ..TlsSettings::default()
    }
}

fn mistake(settings: &TlsSettings) -> TlsError {
    settings.client(&RealFs).expect_err("a mistake")
}

#[test]
fn a_broken_key_is_not_blamed_on_the_certificate() {
    client(CERTIFICATE, KEY).client(&RealFs).expect("they fit");
    let garbage = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let encrypted = include_str!("../testdata/pkcs8-aes256.pem");
    let wrong = Secret::new("wrong".to_owned());
    for (key, passphrase, expected) in [
        (OTHER_KEY, None, "it does not belong to the certificate in `ssl.certificate`"),
        (garbage, None, "failed to parse private key"),
        (garbage, Some(wrong.clone()), "is the passphrase right?"),
        (CERTIFICATE, None, "`ssl.key` cannot be used"),
        (encrypted, Some(wrong), "it cannot be decrypted"),
        (encrypted, None, "set `ssl.key_passphrase`"),
    ] {
        let settings = TlsSettings { key_passphrase: passphrase, ..client(CERTIFICATE, key) };
        let error = mistake(&settings);
        assert_eq!(error.setting(), "ssl.key", "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = mistake(&client(KEY, KEY));
    assert_eq!(error.setting(), "ssl.certificate", "{error}");
}

#[test]
fn all_files_that_are_missing_are_reported_each_at_its_place() {
    let settings = TlsSettings {
        verification_mode: VerificationMode::Full,
        certificate_authorities: vec![Pem::of("/none/ca"), Pem::of(CERTIFICATE)],
        ..client("/none/crt", "/none/key")
    };
    let error = mistake(&settings);
    let found: Vec<&str> = error.each().iter().map(TlsError::setting).collect();
    assert_eq!(found, ["ssl.certificate", "ssl.key", "ssl.certificate_authorities"], "{error}");
    for path in ["/none/ca", "/none/crt", "/none/key"] {
        assert_eq!(error.to_string().matches(path).count(), 1, "{error}");
    }
    let text = "a:\n  ssl:\n    certificate: /none/crt\n    key: /none/key\n    certificate_authorities: [/none/ca]";
    let parsed = Settings::parse("x", text).expect("YAML");
    let problems = Problems::new();
    let root = parsed.root(&problems);
    let section = root.section("a");
    error.report(&section);
    section.skip();
    root.skip();
    let problems = problems.to_string();
    for expected in [
        "x:3:18: cannot read `a.ssl.certificate` from `/none/crt`",
        "x:4:10: cannot read `a.ssl.key` from `/none/key`",
        ": cannot read `a.ssl.certificate_authorities` from `/none/ca`",
    ] {
        assert!(problems.contains(expected), "{problems}");
    }
}

#[test]
fn files_that_are_not_read_are_not_missing() {
    let unread = TlsSettings {
        certificate_authorities: vec![Pem::of("/none/ca")],
        key_passphrase_path: Some(PathBuf::from("/none/passphrase")),
        identity: None,
        ..client(CERTIFICATE, KEY)
    };
    unread.client(&RealFs).expect("nothing is read");
    let one = TlsSettings { key_passphrase_path: None, ..client("/none/crt", KEY) };
    assert!(matches!(mistake(&one), TlsError::Read { setting: "ssl.certificate", .. }));
    // Another mistake stays, beside what is missing.
    let both = TlsSettings {
        verification_mode: VerificationMode::Full,
        certificate_authorities: vec![Pem::of(KEY)],
        ..client(CERTIFICATE, "/none/key")
    };
    let error = mistake(&both);
    let found: Vec<&str> = error.each().iter().map(TlsError::setting).collect();
    assert_eq!(found, ["ssl.certificate_authorities", "ssl.key"], "{error}");
}
