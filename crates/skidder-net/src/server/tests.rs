//! Servers with real clients: certificates, limits, requests of HTTP.

use super::*;
use crate::route::{Host, Route, WithoutTls};
use ::http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use rcgen::{CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use skidder_config::{Problems, Settings};
use skidder_os::RealFs;
use skidder_tls::{Pem, TlsClient, TlsServerSettings, TlsSettings};
use std::convert::Infallible;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SOON: Duration = Duration::from_secs(10);

/// An authority, and the PEM of what it signs: certificate and key.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, "Tests");
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// The TLS of a server with these lines under `ssl`, besides certificate and key.
    fn server(&self, lines: &str) -> Arc<TlsServer> {
        let (certificate, key) = self.sign("localhost");
        let indented = |text: &str| text.replace('\n', "\n      ");
        let text = format!(
            "ssl:\n  certificate: |\n      {}\n  key: |\n      {}\n{}",
            indented(&certificate),
            indented(&key),
            lines.replace("AUTHORITY", &indented(&self.0.pem())),
        );
        let problems = Problems::new();
        let settings = Settings::parse("x", &text).unwrap();
        let root = settings.root(&problems);
        let read = TlsServerSettings::read(&root.section("ssl"));
        root.finish();
        assert_eq!(problems.to_string(), "");
        TlsServer::new(&read.unwrap(), Arc::new(RealFs)).unwrap()
    }

    /// A client that trusts this authority, with a certificate of `signer`.
    fn client(&self, signer: Option<&Authority>) -> Arc<TlsClient> {
        let identity = signer.map(|signer| signer.sign("shipper"));
        let settings = TlsSettings {
            certificate_authorities: vec![Pem::Inline(self.0.pem())],
            identity: identity.map(|(pem, key)| (Pem::Inline(pem), Pem::Inline(key))),
            ..TlsSettings::default()
        };
        TlsClient::new(&settings, Arc::new(RealFs)).unwrap()
    }
}

const REQUIRED: &str = "  certificate_authorities:\n    - |\n      AUTHORITY\n";
const OPTIONAL: &str =
    "  client_authentication: optional\n  certificate_authorities:\n    - |\n      AUTHORITY\n";

async fn bind(settings: ServerSettings) -> (Server, Host) {
    let address = ListenAddress::Tcp { host: "localhost".to_owned(), port: 0 };
    let server = Server::bind(&address, settings).await.unwrap();
    let BoundAddress::Tcp(bound) = server.address() else { panic!("no TCP") };
    let host = Host { name: "localhost".to_owned(), port: bound.port() };
    (server, host)
}

/// The server's view of a client, and whether the client got an answer.
async fn talk(
    server_tls: Arc<TlsServer>,
    client: Arc<TlsClient>,
) -> (Result<TlsSession, String>, bool) {
    let settings = ServerSettings { tls: Some(server_tls), ..ServerSettings::default() };
    let (server, host) = bind(settings).await;
    let serving = async {
        let mut connection = server.accept().await.open().await.map_err(|e| e.to_string())?;
        let byte = connection.stream.read_u8().await.map_err(|error| error.to_string())?;
        connection.stream.write_all(&[byte]).await.map_err(|error| error.to_string())?;
        connection.stream.flush().await.map_err(|error| error.to_string())?;
        assert!(connection.peer.is_local());
        Ok(connection.tls.unwrap())
    };
    let route =
        Route { host, proxy: None, tls: Some(client), http2: false, without_tls: WithoutTls::Http };
    let asking = async {
        let mut stream = route.open(SOON).await.ok()?;
        stream.write_all(b"x").await.ok()?;
        stream.flush().await.ok()?;
        stream.read_u8().await.ok()
    };
    let (session, answer) = tokio::join!(serving, asking);
    (session, answer == Some(b'x'))
}

#[tokio::test]
async fn certificates_of_clients_are_required_optional_or_not_asked_for() {
    let (ours, others) = (Authority::new("Ours"), Authority::new("Others"));
    let shown = ClientCertificate {
        subject: "CN=shipper".to_owned(),
        issuer: "O=Tests,CN=Ours".to_owned(),
        common_name: Some("shipper".to_owned()),
    };
    for (lines, signer, expected) in [
        ("", None, Ok(None)),
        ("", Some(&ours), Ok(None)),
        (REQUIRED, Some(&ours), Ok(Some(&shown))),
        (OPTIONAL, Some(&ours), Ok(Some(&shown))),
        (OPTIONAL, None, Ok(None)),
        (REQUIRED, None, Err("the client needs a certificate of one of the authorities")),
        (REQUIRED, Some(&others), Err("is of none of the authorities")),
        (OPTIONAL, Some(&others), Err("is of none of the authorities")),
    ] {
        let (session, is_answered) = talk(ours.server(lines), ours.client(signer)).await;
        let who = signer.map(|signer| signer.0.pem());
        match (session, expected) {
            (Ok(session), Ok(client)) => {
                assert_eq!(session.client.as_ref(), client, "{lines} {who:?}");
                assert_eq!(session.version, "TLSv1.3");
                assert!(session.cipher.starts_with("TLS_AES_"), "{}", session.cipher);
                assert_eq!(session.server_name.as_deref(), Some("localhost"));
                assert!(is_answered);
            }
            (Err(error), Err(expected)) => {
                assert!(error.contains(expected), "{error}");
                assert!(!is_answered);
            }
            (session, _) => panic!("{lines} {who:?}: {session:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_s_chain_must_have_a_key_of_ca_sha256() {
    use base64::Engine as _;
    use rcgen::PublicKeyData as _;
    use sha2::Digest as _;
    let ours = Authority::new("Ours");
    let key = ours.0.key().subject_public_key_info();
    let pin = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(&key));
    let lines = |pin: &str| format!("{REQUIRED}  ca_sha256: ['{pin}']\n");
    let (session, _) = talk(ours.server(&lines(&pin)), ours.client(Some(&ours))).await;
    assert!(session.unwrap().client.is_some());
    let other = base64::engine::general_purpose::STANDARD.encode([7; 32]);
    let (session, _) = talk(ours.server(&lines(&other)), ours.client(Some(&ours))).await;
    assert!(session.unwrap_err().contains("`ssl.ca_sha256`"));
}

#[tokio::test]
async fn a_client_that_does_not_trust_the_server_is_told_from_others() {
    let (ours, others) = (Authority::new("Ours"), Authority::new("Others"));
    let (session, is_answered) = talk(ours.server(""), others.client(None)).await;
    let error = session.unwrap_err();
    assert!(error.contains("the client does not trust `ssl.certificate`"), "{error}");
    assert!(!is_answered);
}

#[tokio::test]
async fn an_older_protocol_is_used_where_only_that_is_allowed() {
    let ours = Authority::new("Ours");
    let lines = format!("{REQUIRED}  supported_protocols: [TLSv1.2]\n");
    let (session, _) = talk(ours.server(&lines), ours.client(Some(&ours))).await;
    let session = session.unwrap();
    assert_eq!(session.version, "TLSv1.2");
    assert!(session.cipher.starts_with("TLS_ECDHE_ECDSA_"), "{}", session.cipher);
    assert_eq!(session.client.unwrap().subject, "CN=shipper");
}

#[tokio::test]
async fn clients_without_tls_and_silent_ones_hold_up_only_themselves() {
    let ours = Authority::new("Ours");
    let settings = ServerSettings {
        tls: Some(ours.server("")),
        handshake_timeout: Duration::from_millis(50),
        ..ServerSettings::default()
    };
    let (server, host) = bind(settings).await;
    let mut plain = TcpStream::connect((host.name.as_str(), host.port)).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let error = server.accept().await.open().await.unwrap_err().to_string();
    assert!(error.contains("the client does not speak TLS"), "{error}");
    let silent = TcpStream::connect((host.name.as_str(), host.port)).await.unwrap();
    let error = server.accept().await.open().await.unwrap_err().to_string();
    let peer = silent.local_addr().unwrap();
    assert_eq!(error, format!("{peer} did not finish the TLS handshake within 0.05 s"));
}

#[tokio::test]
async fn clients_beyond_the_limit_wait_until_a_connection_is_closed() {
    let settings = ServerSettings { connections_max: 1, ..ServerSettings::default() };
    let (server, host) = bind(settings).await;
    let connect = || TcpStream::connect((host.name.clone(), host.port));
    let (one, two) = (connect().await.unwrap(), connect().await.unwrap());
    let first = server.accept().await.open().await.unwrap();
    assert_eq!(first.peer, Peer::Tcp(one.local_addr().unwrap()));
    assert_eq!(first.tls, None);
    let early = tokio::time::timeout(Duration::from_millis(50), server.accept()).await;
    early.unwrap_err();
    drop(first);
    let second = tokio::time::timeout(SOON, server.accept()).await.unwrap();
    assert_eq!(*second.peer(), Peer::Tcp(two.local_addr().unwrap()));
}

const LIMITS: HttpLimits = HttpLimits {
    head_timeout: Duration::from_millis(200),
    head_bytes_max: 8192,
    connection_time_max: None,
};

/// Sends bytes to a server of HTTP that reads bodies of at most 4 bytes within 100 ms; returns all that it answers until
/// it closes the connection, and how that ended.
async fn exchange(bytes: &[u8], limits: HttpLimits) -> (String, HttpEnd) {
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let service = service_fn(|request: Request<Incoming>| async move {
        let read = read_request_body(request, 4, Duration::from_millis(100)).await;
        let text = read.map_or_else(|error| error.to_string(), |body| format!("{body:?}"));
        Ok::<_, Infallible>(Response::new(text))
    });
    let never = std::future::pending;
    let grace = || tokio::time::sleep(SOON);
    let serving = serve_http(theirs, service, limits, never(), never(), grace);
    let asking = async {
        ours.write_all(bytes).await.unwrap();
        let mut answer = String::new();
        ours.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let (end, answer) = tokio::join!(serving, asking);
    (answer, end)
}

#[tokio::test]
async fn requests_of_http_have_limits_in_bytes_and_time() {
    let post = |length: usize, body: &str| {
        format!(
            "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    for (request, expected) in [
        (post(4, "abcd"), "[97, 98, 99, 100]"),
        (post(5, "abcde"), "the body is longer than 4 bytes"),
        (post(4, "ab"), "the body did not arrive within 0.1 s"),
    ] {
        let (answer, _) = exchange(request.as_bytes(), LIMITS).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with(expected), "{answer}");
    }
    let long = format!("GET / HTTP/1.1\r\nhost: {}\r\n\r\n", "a".repeat(9000));
    assert!(exchange(long.as_bytes(), LIMITS).await.0.starts_with("HTTP/1.1 431"));
    let (answer, end) = exchange(b"GET / HTTP/1.1\r\nhos", LIMITS).await;
    assert!(answer.is_empty() && matches!(end, HttpEnd::Broken(_)), "{answer} {end:?}");
    let short = HttpLimits { connection_time_max: Some(Duration::from_millis(50)), ..LIMITS };
    let (answer, end) = exchange(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", short).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK") && matches!(end, HttpEnd::Closed), "{end:?}");
}
