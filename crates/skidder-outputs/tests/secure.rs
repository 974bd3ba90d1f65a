//! The Elasticsearch output over TLS, and `test output`.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::server::FakeServer;
use common::{Fixture, context};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use skidder_outputs::Elasticsearch;
use skidder_outputs::elasticsearch::{Config, HostUrl, Pem, TlsSettings, VerificationMode};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// An authority and what it signed.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// What accepts connections in the name of `name`; with `clients`, only from those we signed.
    fn acceptor(&self, name: &str, clients: bool) -> TlsAcceptor {
        let (certificate, key) = self.sign(name);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn config(server: &FakeServer, tls: TlsSettings) -> Config {
    let port = server.address.rsplit_once(':').unwrap().1;
    let host = HostUrl::parse(&format!("https://localhost:{port}"), "http", "").unwrap();
    Config {
        tls,
        timeout: Duration::from_secs(2),
        backoff_init: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        ..Config::new(vec![host])
    }
}

fn trusting(authority: &Authority) -> TlsSettings {
    TlsSettings {
        certificate_authorities: vec![Pem::of(&authority.0.pem())],
        ..TlsSettings::default()
    }
}

async fn check(config: Config) -> (bool, String) {
    let output = Elasticsearch::new(config, context()).unwrap();
    let mut told = String::new();
    let mut tell = |line: &str| {
        told.push_str(line);
        told.push('\n');
    };
    let good = output.check(&mut tell).await;
    (good, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_through_tls() {
    let authority = Authority::new();
    let server = FakeServer::start_with([], Some(authority.acceptor("localhost", false))).await;
    let mut fixture = Fixture::new();
    fixture.push(3000, 500);
    let output = Elasticsearch::new(config(&server, trusting(&authority)), context()).unwrap();
    fixture.run(output).await;
    fixture.judge(&server.taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_shown_when_asked_for() {
    let authority = Authority::new();
    let server = FakeServer::start_with([], Some(authority.acceptor("localhost", true))).await;
    let (certificate, key) = authority.sign("client");
    let identity = Some((Pem::of(&certificate.pem()), Pem::of(&key.serialize_pem())));
    let mut fixture = Fixture::new();
    fixture.push(10, 10);
    let settings = TlsSettings { identity, ..trusting(&authority) };
    fixture.run(Elasticsearch::new(config(&server, settings), context()).unwrap()).await;
    fixture.judge(&server.taken());
    let (good, told) = check(config(&server, trusting(&authority))).await;
    assert!(!good, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_verification_mode_accepts_what_it_should() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    use VerificationMode::{Certificate, Full, None};
    let table = [
        // signed by ours, name, mode, whether it is accepted
        (true, "localhost", Full, true),
        (true, "elsewhere", Full, false),
        (false, "localhost", Full, false),
        (true, "elsewhere", Certificate, true),
        (false, "elsewhere", Certificate, false),
        (false, "elsewhere", None, true),
    ];
    for (signed, name, verification_mode, accepted) in table {
        let signer = if signed { &ours } else { &theirs };
        let server = FakeServer::start_with([], Some(signer.acceptor(name, false))).await;
        let settings = TlsSettings { verification_mode, ..trusting(&ours) };
        let (good, told) = check(config(&server, settings)).await;
        assert_eq!(good, accepted, "{signed} {name} {verification_mode:?}\n{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_allowed_protocols_are_spoken() {
    let authority = Authority::new();
    let server = FakeServer::start_with([], Some(authority.acceptor("localhost", false))).await;
    for (tls12, tls13, version) in [(true, true, "TLSv1_3"), (true, false, "TLSv1_2")] {
        let settings = TlsSettings { tls12, tls13, ..trusting(&authority) };
        let (good, told) = check(config(&server, settings)).await;
        assert!(good && told.contains(version), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_tells_each_step() {
    let server = FakeServer::start([]).await;
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let plain = |text: &str| Config {
        timeout: Duration::from_secs(2),
        ..Config::new(vec![HostUrl::parse(text, "http", "").unwrap()])
    };
    let (good, told) = check(plain(&server.address)).await;
    assert!(good);
    let expected = format!(
        "elasticsearch: http://127.0.0.1:{port}...
  parse url... OK
  connection...
    parse host... OK
    dns lookup... OK
    addresses: 127.0.0.1
    dial up... OK
  TLS... WARN secure connection disabled
  HTTP... OK
  talk to server... OK
  version: 9.5.0 (Elasticsearch)
"
    );
    assert_eq!(told, expected);
    server.state.lock().unwrap().greeting.push_back((401, ""));
    let (good, told) = check(plain(&server.address)).await;
    assert!(!good && told.contains("talk to server... ERROR it answered 401"), "{told}");
    let (good, told) = check(plain("nowhere.invalid")).await;
    assert!(!good && told.contains("dns lookup... ERROR"), "{told}");
    let (good, told) = check(plain("127.0.0.1:1")).await;
    assert!(!good && told.contains("dial up... ERROR"), "{told}");
    assert!(server.bulks().is_empty());
}
