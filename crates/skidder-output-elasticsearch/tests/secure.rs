//! The Elasticsearch output over TLS, and `test output`.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::server::FakeServer;
use common::{Fixture, check_report, context, trusting};
use rustls::pki_types::pem::PemObject as _;
use rustls::{CipherSuite, NamedGroup};
use sha2::{Digest as _, Sha256};
use skidder_config::{Problems, Secret, Settings};
use skidder_contract::{Authority, Certificate, FakeHttpProxy, SelfSigned};
use skidder_output_elasticsearch::{
    Config, Elasticsearch, Pem, TlsSettings, VerificationMode, parse_host,
};
use skidder_pipeline::Output as _;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

fn config(server: &FakeServer, tls: TlsSettings) -> Config {
    let port = server.address.rsplit_once(':').unwrap().1;
    let host = parse_host(&format!("https://localhost:{port}"), "http", "").unwrap();
    Config {
        tls,
        timeout: Duration::from_secs(2),
        backoff_init: Duration::from_millis(1),
        backoff_max: Duration::from_millis(5),
        ..Config::new(vec![host])
    }
}

async fn check(config: Config) -> (bool, String) {
    let output = Elasticsearch::new(config, context()).unwrap();
    check_report(async |report| output.check(report).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_through_tls() {
    let authority = Authority::new();
    let server =
        FakeServer::start_with([], Some(authority.acceptor(&authority.sign("localhost"), false)))
            .await;
    let mut fixture = Fixture::new();
    fixture.push(3000, 500);
    let output = Elasticsearch::new(config(&server, trusting(&authority)), context()).unwrap();
    fixture.run(output).await;
    fixture.judge(&server.taken());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_shown_when_asked_for() {
    let authority = Authority::new();
    let server =
        FakeServer::start_with([], Some(authority.acceptor(&authority.sign("localhost"), true)))
            .await;
    let client = authority.sign("client");
    let plain = Some((Pem::of(&client.pem()), Pem::of(&client.key_pem())));
    // The same with a key that has a passphrase, in the settings or in a file.
    let client = authority.sign_for("client", include_str!("../../skidder-tls/testdata/plain.pem"));
    let key = include_str!("../../skidder-tls/testdata/pkcs8-aes256.pem");
    let encrypted = Some((Pem::of(&client.pem()), Pem::of(key)));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("passphrase");
    std::fs::write(&file, "secret\n").unwrap();
    for (identity, key_passphrase, key_passphrase_path) in [
        (plain, None, None),
        (encrypted.clone(), Some(Secret::new("secret")), None),
        (encrypted.clone(), None, Some(file)),
    ] {
        let mut fixture = Fixture::new();
        fixture.push(10, 10);
        let server = FakeServer::start_with(
            [],
            Some(authority.acceptor(&authority.sign("localhost"), true)),
        )
        .await;
        let settings =
            TlsSettings { identity, key_passphrase, key_passphrase_path, ..trusting(&authority) };
        fixture.run(Elasticsearch::new(config(&server, settings), context()).unwrap()).await;
        fixture.judge(&server.taken());
    }
    let settings = TlsSettings { identity: encrypted, ..trusting(&authority) };
    let error = Elasticsearch::new(config(&server, settings), context()).unwrap_err();
    assert!(error.to_string().contains("ssl.key_passphrase"), "{error}");
    let (good, printed) = check(config(&server, trusting(&authority))).await;
    assert!(!good, "{printed}");
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
        let server =
            FakeServer::start_with([], Some(signer.acceptor(&signer.sign(name), false))).await;
        let settings = TlsSettings { verification_mode, ..trusting(&ours) };
        let (good, printed) = check(config(&server, settings)).await;
        assert_eq!(good, accepted, "{signed} {name} {verification_mode:?}\n{printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_taken_if_it_is_itself_among_the_authorities() {
    use SelfSigned::{Expired, ForClients, Leaf};
    use VerificationMode::{Certificate as Chain, Full};
    let another = Certificate::self_signed("localhost", SelfSigned::Authority);
    let table = [
        // what the server shows, in which name, mode, whether it is configured, whether it is accepted
        (SelfSigned::Authority, "localhost", Full, true, true),
        (Leaf, "localhost", Full, true, true),
        (SelfSigned::Authority, "localhost", Full, false, false),
        (SelfSigned::Authority, "elsewhere", Full, true, false),
        (SelfSigned::Authority, "elsewhere", Chain, true, true),
        (SelfSigned::Authority, "elsewhere", Chain, false, false),
        (Expired, "localhost", Full, true, false),
        (Expired, "localhost", Chain, true, false),
        (ForClients, "localhost", Full, true, false),
    ];
    for (what, name, verification_mode, configured, accepted) in table {
        let own = Certificate::self_signed(name, what);
        let server = FakeServer::start_with([], Some(own.acceptor())).await;
        let trusted = if configured { &own } else { &another };
        let settings = TlsSettings {
            verification_mode,
            certificate_authorities: vec![Pem::of(&another.pem()), Pem::of(&trusted.pem())],
            ..TlsSettings::default()
        };
        let (good, printed) = check(config(&server, settings)).await;
        assert_eq!(good, accepted, "{what:?} {name} {verification_mode:?} {configured}\n{printed}");
        // Its fingerprint has the same effect, if it is an authority's.
        if what != Leaf && configured {
            let der = rustls::pki_types::CertificateDer::from_pem_slice(own.pem().as_bytes());
            let settings = TlsSettings {
                verification_mode,
                certificate_authorities: vec![Pem::of(&another.pem())],
                ca_trusted_fingerprint: Some(Sha256::digest(der.unwrap()).into()),
                ..TlsSettings::default()
            };
            let (good, printed) = check(config(&server, settings)).await;
            assert_eq!(good, accepted, "fingerprint of {what:?} {name}\n{printed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_server_is_told_with_what_to_do() {
    let own = Certificate::self_signed("localhost", SelfSigned::Authority);
    let authority = Authority::new();
    let signed = Some(authority.acceptor(&authority.sign("localhost"), false));
    let secure = FakeServer::start_with([], Some(own.acceptor())).await;
    let known = FakeServer::start_with([], signed).await;
    // As servers of HTTP/1 do that read a handshake; a fake one waits for the end of the request.
    let refusing = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut plain = FakeServer::start([]).await;
    let waiting = plain.address.clone();
    plain.address = refusing.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = refusing.accept().await {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    let mut mute = FakeServer::start([]).await;
    mute.address = waiting;
    let foreign = FakeServer::start([]).await;
    foreign.state.lock().unwrap().greeting = vec![(200, "<html>"); 9].into();
    let closed = FakeServer::start([]).await;
    closed.state.lock().unwrap().allows = Some(std::sync::Arc::new(|_| false));
    let table = [
        ("http", &known, "if this port speaks TLS, use `https://`"),
        ("https", &plain, "this port does not speak TLS: use `http://`"),
        ("https", &mute, "does this port speak TLS? If not, use `http://`"),
        ("https", &secure, "as self-signed ones do: put it into `ssl.certificate_authorities`"),
        ("http", &foreign, "not as Elasticsearch or OpenSearch do"),
        ("http", &closed, "see `username`, `password`, `api_key` and `kerberos`"),
    ];
    for (scheme, server, expected) in table {
        let mut config = config(server, trusting(&authority));
        config.hosts[0].https = scheme == "https";
        let (good, printed) = check(config.clone()).await;
        assert!(!good && printed.contains(expected), "{expected}:\n{printed}");
        // The log and `status` have the same text.
        let mut fixture = Fixture::new();
        fixture.push(1, 1);
        let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
        let output = Elasticsearch::new(config, context()).unwrap();
        let running = Box::new(output).run(fixture.feed.clone());
        let failed = async {
            while metrics.last_failure().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = running => panic!("it ended"),
            () = failed => {}
        }
        let said = format!("{:?}", metrics.last_failure());
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_allowed_protocols_are_spoken() {
    let authority = Authority::new();
    let server =
        FakeServer::start_with([], Some(authority.acceptor(&authority.sign("localhost"), false)))
            .await;
    for (tls12, tls13, version) in [(true, true, "TLSv1_3"), (true, false, "TLSv1_2")] {
        let settings = TlsSettings { tls12, tls13, ..trusting(&authority) };
        let (good, printed) = check(config(&server, settings)).await;
        assert!(good && printed.contains(version), "{printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pins_and_fingerprints_are_checked_on_what_the_server_shows() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let server =
        FakeServer::start_with([], Some(ours.acceptor(&ours.sign("localhost"), false))).await;
    let hash = |bytes: &[u8]| Some(<[u8; 32]>::try_from(&Sha256::digest(bytes)[..]).unwrap());
    let (our_certificate, our_key) = ours.der();
    let (their_certificate, their_key) = theirs.der();
    let only =
        |ca_trusted_fingerprint| TlsSettings { ca_trusted_fingerprint, ..TlsSettings::default() };
    let pinned = |keys: &[&[u8]]| TlsSettings {
        ca_sha256: keys.iter().filter_map(|key| hash(key)).collect(),
        ..trusting(&ours)
    };
    let both = TlsSettings { ca_trusted_fingerprint: hash(&our_certificate), ..trusting(&theirs) };
    let wrong_name =
        FakeServer::start_with([], Some(ours.acceptor(&ours.sign("elsewhere"), false))).await;
    let table = [
        (&server, only(hash(&our_certificate)), true, ""),
        (&server, only(hash(&their_certificate)), false, "ssl.ca_trusted_fingerprint"),
        (&server, both, true, ""),
        (&wrong_name, only(hash(&our_certificate)), false, "verification_mode: certificate"),
        (&server, pinned(&[&our_key]), true, ""),
        (&server, pinned(&[&their_key, &our_key]), true, ""),
        (&server, pinned(&[&their_key]), false, "ssl.ca_sha256"),
    ];
    for (number, (server, settings, accepted, said)) in table.into_iter().enumerate() {
        let (good, printed) = check(config(server, settings)).await;
        assert!(good == accepted && printed.contains(said), "{number}: {printed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_allowed_suites_and_curves_are_spoken() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&authority.sign("localhost"), false);
    let server = FakeServer::start_with([], Some(acceptor)).await;
    let settings = TlsSettings {
        tls13: false,
        cipher_suites: vec![CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256],
        curve_types: vec![NamedGroup::secp384r1],
        ..trusting(&authority)
    };
    let (good, printed) = check(config(&server, settings.clone())).await;
    assert!(good && printed.contains("ECDSA_WITH_CHACHA20"), "{printed}");
    // The certificate of the server is no RSA one.
    let cipher_suites = vec![CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256];
    let (good, printed) = check(config(&server, TlsSettings { cipher_suites, ..settings })).await;
    assert!(!good && printed.contains("ssl.supported_protocols"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_read_again_when_they_change() {
    let (old, new) = (Authority::new(), Authority::new());
    let acceptor = new.acceptor(&new.sign("localhost"), false);
    let server = FakeServer::start_with([], Some(acceptor)).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("ca.pem");
    std::fs::write(&file, old.pem()).unwrap();
    let settings = TlsSettings {
        certificate_authorities: vec![Pem::File(file.clone())],
        ..TlsSettings::default()
    };
    let mut fixture = Fixture::new();
    fixture.push(100, 10);
    fixture.queue.close();
    let output = Elasticsearch::new(config(&server, settings), context()).unwrap();
    let running = tokio::spawn(Box::new(output).run(fixture.feed.clone()));
    let failures = |count: u64| {
        let metrics = std::sync::Arc::clone(&fixture.feed.metrics);
        async move {
            let until = metrics.write_errors.get() + count;
            while metrics.write_errors.get() < until {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    failures(3).await;
    // An unusable file leaves the old one in force.
    std::fs::write(&file, "not in PEM").unwrap();
    failures(3).await;
    assert_eq!(fixture.settle.total().delivered(), 0);
    std::fs::write(&file, new.pem()).unwrap();
    tokio::time::timeout(Duration::from_secs(30), running).await.unwrap().unwrap();
    fixture.judge(&server.taken());
}

/// The proxy of these settings, for all hosts.
fn proxied(config: Config, settings: &str) -> Config {
    let problems = Problems::new();
    let settings = Settings::parse("x", &format!("{{hosts: es, {settings}}}")).unwrap();
    let (read, _) = skidder_output_elasticsearch::read(&settings.root(&problems));
    assert_eq!(problems.to_string(), "");
    Config { proxy: read.unwrap().proxy, ..config }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_through_a_proxy_with_and_without_tls() {
    let authority = Authority::new();
    for secure in [false, true] {
        let acceptor = authority.acceptor(&authority.sign("localhost"), false);
        let server = FakeServer::start_with([], secure.then_some(acceptor)).await;
        let proxy = FakeHttpProxy::start(&server.address, "Basic dTpw").await;
        let mut direct = config(&server, trusting(&authority));
        direct.hosts[0].https = secure;
        let mut fixture = Fixture::new();
        fixture.push(3000, 500);
        let settings = format!(
            "proxy_url: 'http://u:p@{}', proxy_headers: {{X-Who: me}}, loadbalance: true",
            proxy.address
        );
        let output = Elasticsearch::new(proxied(direct.clone(), &settings), context()).unwrap();
        fixture.run(output).await;
        fixture.judge(&server.taken());
        let port = server.address.rsplit_once(':').unwrap().1;
        let heads = proxy.heads();
        if secure {
            let expected = format!("CONNECT localhost:{port} HTTP/1.1\r\n");
            assert!(heads.iter().all(|head| head.starts_with(&expected)), "{heads:?}");
            assert!(heads.iter().all(|head| head.contains("x-who: me\r\n")), "{heads:?}");
        } else {
            let expected = format!("GET http://localhost:{port}/ HTTP/1.1\r\n");
            assert!(heads[0].starts_with(&expected), "{heads:?}");
            let expected = format!("POST http://localhost:{port}/_bulk?filter_path=");
            assert!(heads[1].starts_with(&expected), "{heads:?}");
        }
        // A proxy that requires a password, and one that is not there.
        for (url, said) in [
            (format!("http://{}", proxy.address), if secure { "wants a user" } else { "407" }),
            (
                format!("http://u:wrong@{}", proxy.address),
                if secure { "refuses the user" } else { "407" },
            ),
            ("http://127.0.0.1:1".to_owned(), "dial up by the proxy http://127.0.0.1:1... ERROR"),
        ] {
            let (good, printed) =
                check(proxied(direct.clone(), &format!("proxy_url: '{url}'"))).await;
            assert!(!good && printed.contains(said) && !printed.contains("wrong"), "{printed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_tells_each_step() {
    let server = FakeServer::start([]).await;
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    let plain = |text: &str| Config {
        timeout: Duration::from_secs(2),
        ..Config::new(vec![parse_host(text, "http", "").unwrap()])
    };
    let (good, printed) = check(plain(&server.address)).await;
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
  ask for the credentials... OK
  credentials: the server has no security, or does not tell
"
    );
    assert_eq!(printed, expected);
    server.state.lock().unwrap().greeting.push_back((401, ""));
    let (good, printed) = check(plain(&server.address)).await;
    assert!(
        !good
            && printed.contains(
                "talk to server... ERROR the server refused the credentials (401); see `username`"
            ),
        "{printed}"
    );
    let (good, printed) = check(plain("nowhere.invalid")).await;
    assert!(!good && printed.contains("dns lookup... ERROR"), "{printed}");
    let (good, printed) = check(plain("127.0.0.1:1")).await;
    assert!(!good && printed.contains("dial up... ERROR"), "{printed}");
    assert!(server.bulks().is_empty());
}
