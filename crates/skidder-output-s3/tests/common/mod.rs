//! Helpers of this crate's tests.
#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]

pub(crate) mod s3;

pub(crate) use skidder_contract::{Fixture, batch, check_report, line, number};

use skidder_contract::Authority;
use skidder_outputs::Context;
use skidder_tls::{Pem, TlsSettings};

/// The context of outputs in tests.
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
