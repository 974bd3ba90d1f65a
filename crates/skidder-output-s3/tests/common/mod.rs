//! What the tests of this crate share.
#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

pub(crate) mod s3;

pub(crate) use skidder_contract::{Fixture, batch, line, number};

use skidder_contract::Authority;
use skidder_outputs::Context;
use skidder_tls::{Pem, TlsSettings};

/// What outputs are told in tests.
pub(crate) fn context() -> Context {
    Context::sample()
}

/// TLS that trusts this authority only.
pub(crate) fn trusting(authority: &Authority) -> TlsSettings {
    TlsSettings {
        certificate_authorities: vec![Pem::of(&authority.pem())],
        ..TlsSettings::default()
    }
}

/// What `test output` says, line by line, and whether it is content.
pub(crate) async fn told(
    check: impl AsyncFnOnce(&mut (dyn FnMut(&str) + Send)) -> bool,
) -> (bool, String) {
    let mut told = String::new();
    let good = check(&mut |line| {
        told.push_str(line);
        told.push('\n');
    })
    .await;
    (good, told)
}
