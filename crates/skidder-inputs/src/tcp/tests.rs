//! The input with real clients.

use super::*;
use crate::testing::{context, read_with};
use rustix::net::sockopt;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_net::Sockets;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::ops::Range;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};

/// What the kernel keeps for each side of a connection: small, so that a client notices when nothing is read.
const KERNEL_BYTES: usize = 4 << 10;

pub(super) fn read_text(text: &str, sockets: &Sockets) -> (Option<Tcp>, String) {
    read_with(text, |section| Tcp::read(section, &context(sockets)))
}

/// A client that keeps its connection, and a socket that is passed as systemd does.
struct Client {
    sockets: Sockets,
    address: SocketAddr,
    settings: &'static str,
    octets: bool,
    connection: tokio::sync::Mutex<Option<TcpStream>>,
}

impl Client {
    fn new(settings: &'static str, octets: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        sockopt::set_socket_recv_buffer_size(&listener, KERNEL_BYTES).unwrap();
        let address = listener.local_addr().unwrap();
        let sockets = Sockets::default();
        sockets.adopt(listener.into(), "test").unwrap();
        Self { sockets, address, settings, octets, connection: tokio::sync::Mutex::default() }
    }

    async fn connect(&self) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(KERNEL_BYTES as u32).unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

impl InputTrial for Client {
    fn input(&self) -> Box<dyn Input> {
        let text = format!("{{host: '{}', {}}}", self.address, self.settings);
        let (read, problems) = read_text(&text, &self.sockets);
        assert_eq!(problems, "");
        Box::new(read.unwrap())
    }

    fn meaning(&self) -> Meaning {
        Meaning::Nothing
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let mut connection = self.connection.lock().await;
            if connection.is_none() {
                *connection = Some(self.connect().await);
            }
            let mut text = String::new();
            for number in lines {
                let line = line(number);
                let written = if self.octets {
                    write!(text, "{} {line}", line.len())
                } else {
                    writeln!(text, "{line}")
                };
                written.unwrap();
            }
            connection.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            let mut connection = self.connect().await;
            let garbage = if self.octets { "12x".to_owned() } else { "x".repeat(300) };
            connection.write_all(garbage.as_bytes()).await.unwrap();
            // It is closed for it.
            connection.readable().await.unwrap();
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_keep_the_contract_of_inputs() {
    keep_input(|| Client::new("max_message_size: 256", false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counted_messages_keep_the_contract_of_inputs() {
    keep_input(|| Client::new("framing: rfc6587", true)).await;
}

#[test]
fn settings_are_those_of_filebeat() {
    let sockets = Sockets::default();
    for (text, expected) in [
        ("host: 'localhost:9000'", ""),
        ("{host: ':9000', network: tcp6, max_connections: 7}", ""),
        ("{host: '[::1]:9000', ssl.enabled: false}", ""),
        ("{host: ':9000', max_connections: -1, keep_null: true}", ""),
        ("{}", "`host` is missing; expected an address to listen on, as in `localhost:9000`"),
        ("{host: ':9000', keep_null: 7}", "`keep_null` is `7`"),
        (
            "{host: ':9000', number_of_workers: -3}",
            "`number_of_workers` is `-3`; it cannot be negative",
        ),
        ("{host: ':9000', number_of_workers: 0}", "expected a number of workers, at least 1"),
        ("{host: ':9000', number_of_workers: 4}", "each connection runs the processors by itself"),
        ("{host: ':9000', ssl: {certificate: a, key: b, client_authentication: x}}", "`required`"),
        ("host: 9000", "expected `host:port`"),
        ("{host: ':9000', framing: ''}", ""),
        (
            "{host: ':9000', hosts: [':9001']}",
            "unknown setting `hosts`\nhint: did you mean `host`?",
        ),
        ("host: ':99999'", "ports go up to 65535"),
        ("{host: ':9000', network: udp}", "`network` is `udp`"),
        ("{host: ':9000', ssl.enabled: true}", "`ssl.certificate` and `ssl.key`"),
        ("{host: ':9000', ssl: true}", "settings\nhint: write `ssl.certificate` and `ssl.key`"),
        ("{host: ':9000', ssl: false}", "settings\nhint: write `ssl.enabled: false`"),
        ("{host: ':9000', tls: true}", "did you mean `ssl.enabled: true`?"),
        ("{host: ':9000', ssl_enabled: true}", "did you mean `ssl.enabled`?"),
        ("{host: ':9000', format: rfc5424}", "hint: the processor `syslog` has it"),
        ("{host: ':9000', ssl: {certificate: /nowhere, key: /nowhere}}", "/nowhere"),
        ("{host: ':9000', line_delimiter: ''}", "`line_delimiter` is empty"),
        ("{host: '*:514'}", "`*` is no address: write `0.0.0.0:514` or `:514`"),
        (
            "{host: ':9000', tls_fields: true}",
            "warning: x:1:29: `tls_fields` has no effect: connections have no TLS",
        ),
        ("{host: ':9000', tls_fields: true, ssl.enabled: false}", "`tls_fields` has no effect"),
        ("{host: ':9000', tls_fields: false}", ""),
    ] {
        let (read, problems) = read_text(text, &sockets);
        assert!(problems.contains(expected), "{text}: {problems}");
        assert!(read.is_some() || !expected.is_empty(), "{text}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{text}: {problems}");
    }
    // A missing `host` is not reported then.
    let (_, problems) = read_text("hosts: [':9000']", &sockets);
    assert_eq!(problems.matches("error: ").count(), 1, "{problems}");
}
