//! The endpoint over TLS, with real clients.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Run;
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use skidder_config::{Problems, Settings};
use skidder_net::{BoundAddress, Host, HttpClient, HttpRequest};
use skidder_observe::{HttpConfig, ServeError, Serving, serve};
use skidder_os::{Fs, RealFs};
use skidder_tls::{Pem, TlsClient, TlsSettings};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// No test waits longer for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Certificate and key in the name of `name`.
    fn sign(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        // The usual certificate of a server, which no authority lets a client show.
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    fn sign_client(&self) -> (String, String) {
        let params = CertificateParams::new(vec!["operator".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

fn write_pair(directory: &Path, (certificate, key): &(String, String)) {
    std::fs::write(directory.join("own.pem"), certificate).unwrap();
    std::fs::write(directory.join("own.key"), key).unwrap();
}

/// The endpoint with the certificate in a directory and these settings of `ssl`.
fn config(directory: &Path, more: &str) -> HttpConfig {
    let place = directory.display();
    let text = format!(
        "http: {{enabled: true, port: 0, timeout: 300ms, ssl: {{certificate: {place}/own.pem, \
         key: {place}/own.key{more}}}}}"
    );
    let settings = Settings::parse("filebeat.yml", &text).unwrap();
    let problems = Problems::new();
    let config = HttpConfig::from_section(settings.root(&problems).section("http"));
    assert_eq!(problems.to_string(), "");
    config
}

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

struct Server {
    serving: Serving,
    stop: oneshot::Sender<()>,
}

async fn start(config: &HttpConfig) -> Result<Server, ServeError> {
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        drop(stopped.await);
    };
    let mut sources = Run::idle().sources;
    // Certificates are real files.
    Arc::get_mut(&mut sources).unwrap().fs = fs();
    Ok(Server { serving: serve(config, sources, shutdown).await?, stop })
}

impl Server {
    fn port(&self) -> u16 {
        let BoundAddress::Tcp(address) = &self.serving.address else { panic!("not TCP") };
        address.port()
    }

    /// The status of `/stats`, or why there is none.
    async fn ask(&self, tls: Option<Arc<TlsClient>>) -> Result<u16, String> {
        let host = Host { name: "localhost".to_owned(), port: self.port() };
        let client = HttpClient::tcp(host, tls, PATIENCE);
        let answer = client.answer(HttpRequest::get("/stats")).await;
        answer.map(|(status, _)| status.as_u16()).map_err(|error| error.to_string())
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.serving.task).await.unwrap().unwrap();
    }
}

fn client(authority: &Authority, shows: Option<(String, String)>) -> Arc<TlsClient> {
    let settings = TlsSettings {
        certificate_authorities: vec![Pem::Inline(authority.0.pem())],
        identity: shows.map(|(certificate, key)| (Pem::Inline(certificate), Pem::Inline(key))),
        ..TlsSettings::default()
    };
    TlsClient::new(&settings, fs()).unwrap()
}

#[tokio::test]
async fn clients_need_a_certificate_of_the_authority_and_own_commands_show_the_endpoint_s() {
    let (ours, others, directory) =
        (Authority::new(), Authority::new(), tempfile::tempdir().unwrap());
    write_pair(directory.path(), &ours.sign("localhost"));
    let authority = directory.path().join("clients.pem");
    std::fs::write(&authority, ours.0.pem()).unwrap();
    let more = format!(", certificate_authorities: [{}]", authority.display());
    let config = config(directory.path(), &more);
    let server = start(&config).await.unwrap();
    assert_eq!(server.ask(Some(client(&ours, Some(ours.sign_client())))).await, Ok(200));
    assert_eq!(server.ask(config.tls_client(&fs()).unwrap()).await, Ok(200));
    for (what, tls) in [
        ("no certificate", Some(client(&ours, None))),
        ("a foreign certificate", Some(client(&ours, Some(others.sign_client())))),
        ("the certificate of another server", Some(client(&ours, Some(ours.sign("localhost"))))),
        ("no TLS", None),
    ] {
        server.ask(tls).await.expect_err(what);
    }
    server.end().await;
}

#[tokio::test]
async fn own_commands_need_neither_the_name_nor_the_authority_nor_without_client_certificates_the_key()
 {
    let (ours, directory) = (Authority::new(), tempfile::tempdir().unwrap());
    let pair = ours.sign("logs.example");
    write_pair(directory.path(), &pair);
    let config = config(directory.path(), "");
    let server = start(&config).await.unwrap();
    std::fs::remove_file(directory.path().join("own.key")).unwrap();
    assert_eq!(server.ask(config.tls_client(&fs()).unwrap()).await, Ok(200));
    let error = server.ask(Some(client(&ours, None))).await.unwrap_err();
    assert!(error.contains("logs.example"), "{error}");
    // A certificate with the same name, from the same authority, is still another server.
    std::fs::write(directory.path().join("own.key"), pair.1).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    write_pair(elsewhere.path(), &ours.sign("logs.example"));
    let other = self::config(elsewhere.path(), "").tls_client(&fs()).unwrap();
    let error = server.ask(other).await.unwrap_err();
    assert!(error.contains("is not the one in `ssl.certificate`"), "{error}");
    server.end().await;
}

#[tokio::test]
async fn a_silent_or_plain_client_holds_up_only_itself_and_changed_files_are_used() {
    let (ours, directory) = (Authority::new(), tempfile::tempdir().unwrap());
    write_pair(directory.path(), &ours.sign("localhost"));
    let config = config(directory.path(), "");
    let server = start(&config).await.unwrap();
    let mut silent = TcpStream::connect(("localhost", server.port())).await.unwrap();
    let mut plain = TcpStream::connect(("localhost", server.port())).await.unwrap();
    plain.write_all(b"GET /stats HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(server.ask(Some(client(&ours, None))).await, Ok(200));
    for stream in [&mut silent, &mut plain] {
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        // An alert of TLS at most, or a reset.
        assert!(read.is_err() || !answer.starts_with(b"HTTP"), "{answer:?}");
    }
    let next = Authority::new();
    write_pair(directory.path(), &next.sign("localhost"));
    assert_eq!(server.ask(Some(client(&next, None))).await, Ok(200));
    server.ask(Some(client(&ours, None))).await.expect_err("the old authority");
    server.end().await;
}

#[tokio::test]
async fn a_file_that_is_missing_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let error = start(&config(directory.path(), "")).await.err().unwrap();
    assert!(matches!(error, ServeError::Tls(_)), "{error}");
    assert!(error.to_string().contains("own.pem"), "{error}");
}
