//! The input with programs that others wrote: `openssl s_client` and `logger`.

use super::tests::read_text;
use super::*;
use crate::testing::{Bench, Certificates, free_address};
use serde_json::json;
use skidder_net::Sockets;
use std::net::SocketAddr;

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::net::TcpStream;

/// Settings of a server.
fn server(certificates: &Certificates, address: SocketAddr, more: &str, ssl: &str) -> String {
    format!("{{host: '{address}'{more}, ssl: {{{}{ssl}}}}}", certificates.server())
}

/// A client of OpenSSL.
fn openssl(certificates: &Certificates, address: SocketAddr, has_certificate: bool) -> Child {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-quiet", "-no_ign_eof", "-servername", "localhost"]);
    command.args(["-connect", &address.to_string()]);
    if has_certificate {
        let (pem, key) = (certificates.path("shipper.pem"), certificates.path("shipper.key"));
        command.args(["-cert", &pem, "-key", &key]);
    }
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("openssl is installed")
}

fn input(text: &str, sockets: &Sockets) -> Box<dyn Input> {
    let (read, problems) = read_text(text, sockets);
    assert_eq!(problems, "");
    Box::new(read.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_sends_lines_with_a_certificate_and_not_without_one() {
    let certificates = Certificates::new();
    let (address, sockets) = free_address();
    let settings = server(&certificates, address, ", tls_fields: true", "");
    let mut bench = Bench::start(input(&settings, &sockets), 100);
    let mut without = openssl(&certificates, address, false);
    bench.until("it is refused", |bench| bench.input.metrics().errors.get() > 0).await;
    let mut client = openssl(&certificates, address, true);
    client.stdin.take().unwrap().write_all(b"one\r\ntwo\nrest").unwrap();
    bench.events(3).await;
    assert_eq!(bench.messages(), ["one", "two", "rest"]);
    let expected = json!({
        "established": true,
        "version": "1.3",
        "version_protocol": "tls",
        "cipher": "TLS_AES_256_GCM_SHA384",
        "client": {"server_name": "localhost", "subject": "", "issuer": ""},
    });
    let mut found = bench.events[0]["tls"].clone();
    for name in ["subject", "issuer"] {
        assert!(found["client"][name].is_string(), "{found}");
        found["client"][name] = json!("");
    }
    assert_eq!(found, expected);
    drop(without.stdin.take());
    without.wait().unwrap();
    client.wait().unwrap();
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_keeps_a_tls_connection_and_its_rest_unless_its_settings_change() {
    let certificates = Certificates::new();
    let (address, sockets) = free_address();
    let settings = server(&certificates, address, "", "");
    let mut bench = Bench::start(input(&settings, &sockets), 100);
    let mut client = openssl(&certificates, address, true);
    let mut stdin = client.stdin.take().unwrap();
    stdin.write_all(b"one\ntw").unwrap();
    bench
        .until("it has the rest", |bench| {
            bench.events.len() == 1 && bench.input.metrics().bytes.get() == 6
        })
        .await;
    let same = server(&certificates, address, ", max_connections: 5", "");
    bench.replace(input(&same, &sockets)).await;
    stdin.write_all(b"o\nthr").unwrap();
    bench
        .until("it has the rest", |bench| {
            bench.events.len() == 2 && bench.input.metrics().bytes.get() == 5
        })
        .await;
    // Client certificates are not required any more: accepted clients must connect again.
    let other = server(&certificates, address, "", ", client_authentication: optional");
    bench.replace(input(&other, &sockets)).await;
    bench.events(3).await;
    bench.until("it is closed", |bench| bench.input.metrics().open.get() == 0).await;
    client.wait().unwrap();
    let mut next = openssl(&certificates, address, false);
    next.stdin.take().unwrap().write_all(b"four\n").unwrap();
    bench.events(4).await;
    next.wait().unwrap();
    bench.stop().await;
    assert_eq!(bench.messages(), ["one", "two", "thr", "four"]);
    assert!(bench.events.iter().all(|event| event.get("tls").is_none()), "as Filebeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn logger_counts_its_octets_and_sends_lines() {
    let (address, sockets) = free_address();
    let settings = format!("{{host: '{address}', framing: rfc6587}}");
    let mut bench = Bench::start(input(&settings, &sockets), 100);
    let port = address.port().to_string();
    for (count, more) in (1..).zip([&["--octet-count"][..], &[]]) {
        let mut command = Command::new("logger");
        command.args(["--tcp", "-n", "127.0.0.1", "-P", &port, "--rfc5424", "-t", "tag"]);
        let status = command.args(more).arg("a message").status().expect("logger is installed");
        assert!(status.success());
        bench.events(count).await;
    }
    bench.stop().await;
    for message in bench.messages() {
        assert!(message.starts_with("<13>1 ") && message.ends_with("a message"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_filebeat_and_an_address_of_both_versions_shows_ipv4() {
    let sockets = Sockets::default();
    let listener = std::net::TcpListener::bind("[::]:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    sockets.adopt(listener.into(), "").unwrap();
    let mut bench = Bench::start(input(&format!("host: ':{port}'"), &sockets), 100);
    let mut peers = Vec::new();
    for host in ["127.0.0.1", "::1"] {
        let mut client = TcpStream::connect((host, port)).await.unwrap();
        peers.push(client.local_addr().unwrap().to_string());
        tokio::io::AsyncWriteExt::write_all(&mut client, b"bad \xff\xfe\xe2\x82 end\n")
            .await
            .unwrap();
        bench.events(peers.len()).await;
    }
    // What waits in the kernel when the input stops was received as well.
    bench.stop().await;
    for (event, peer) in bench.events.iter().zip(&peers) {
        // Filebeat writes a replacement for each byte, here and for files; ours is one for a broken character.
        let expected = json!({
            "message": "bad \u{fffd}\u{fffd}\u{fffd} end",
            "log": {"source": {"address": peer}},
            "input": {"type": "tcp"},
        });
        assert_eq!(*event, expected);
    }
    assert!(bench.input.metrics().listening().receive_queue_length().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_delivers_what_the_kernel_has_received_of_every_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let sockets = Sockets::default();
    let mut bench =
        Bench::start(input(&format!("{{host: '{address}', max_connections: 1}}"), &sockets), 100);
    let connect = async {
        loop {
            if let Ok(client) = TcpStream::connect(address).await {
                return client;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let mut first = connect.await;
    tokio::io::AsyncWriteExt::write_all(&mut first, b"one\npart").await.unwrap();
    bench.events(1).await;
    drop(first);
    bench.events(2).await;
    // It is accepted at the stop or before.
    let mut second = TcpStream::connect(address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut second, b"two\nrest").await.unwrap();
    bench.stop().await;
    assert_eq!(bench.messages(), ["one", "part", "two", "rest"]);
    assert!(std::net::TcpListener::bind(address).is_ok(), "the address is free");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs rsyslog"]
async fn rsyslog_forwards_lines_octets_and_tls_and_goes_on_after_a_reload() {
    let certificates = Certificates::new();
    for mode in ["lines", "octets", "tls"] {
        let (address, sockets) = free_address();
        let framing = if mode == "lines" { "delimiter" } else { "rfc6587" };
        let settings = match mode {
            "tls" => server(
                &certificates,
                address,
                ", framing: rfc6587",
                ", client_authentication: optional",
            ),
            _ => format!("{{host: '{address}', framing: {framing}}}"),
        };
        let mut bench = Bench::start(input(&settings, &sockets), 1000);
        let target = address.to_string();
        let starting = tokio::task::spawn_blocking(move || {
            skidder_testkit::servers::Server::own_rsyslog(&target, mode).unwrap()
        });
        let rsyslog = starting.await.unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", rsyslog.port())).await.unwrap();
        let mut number = 0;
        let mut send = async |bench: &mut Bench| {
            let mut lines = String::new();
            for _ in 0..100 {
                number += 1;
                writeln!(lines, "<13>Nov 25 06:00:00 host tag: message {number}").unwrap();
            }
            tokio::io::AsyncWriteExt::write_all(&mut client, lines.as_bytes()).await.unwrap();
            bench.events(number).await;
        };
        send(&mut bench).await;
        bench.replace(input(&settings, &sockets)).await;
        send(&mut bench).await;
        bench.stop().await;
        for (message, number) in bench.messages().iter().zip(1..) {
            // Its template for RFC 5424 ends with a line feed, which is counted: it belongs to the message.
            let message = message.trim_end();
            assert!(message.ends_with(&format!("message {number}")), "{mode}: {message}");
            assert_eq!(message.starts_with("<13>1 "), mode != "lines", "{mode}: {message}");
        }
        drop(client);
        tokio::task::spawn_blocking(move || drop(rsyslog)).await.unwrap();
    }
}
