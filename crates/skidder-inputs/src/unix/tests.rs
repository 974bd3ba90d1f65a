//! The input with real clients.

use super::*;
use crate::testing::{Bench, context, read_with};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_net::Sockets;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

/// A client that keeps its connection.
struct Client {
    sockets: Sockets,
    directory: tempfile::TempDir,
    connection: tokio::sync::Mutex<Option<UnixStream>>,
}

impl Client {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { sockets: Sockets::default(), directory, connection: tokio::sync::Mutex::default() }
    }

    async fn connect(&self) -> UnixStream {
        let path = self.directory.path().join("s");
        loop {
            // The input is about to listen.
            match UnixStream::connect(&path).await {
                Ok(connection) => {
                    rustix::net::sockopt::set_socket_send_buffer_size(&connection, 4096).unwrap();
                    return connection;
                }
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
}

impl InputTrial for Client {
    fn input(&self) -> Box<dyn Input> {
        let path = self.directory.path().join("s");
        let text = format!("{{path: {}, max_message_size: 256}}", path.display());
        let (input, problems) = read_with(&text, |section| read(section, &context(&self.sockets)));
        assert_eq!(problems, "");
        input.unwrap()
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
            let text: String = lines.map(|number| line(number) + "\n").collect();
            connection.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            let mut connection = self.connect().await;
            connection.write_all("x".repeat(300).as_bytes()).await.unwrap();
            // It is closed for it.
            connection.readable().await.unwrap();
        }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_inputs() {
    keep_input(Client::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_no_address_and_the_socket_has_its_mode_and_goes_at_the_end() {
    let client = Client::new();
    let path = client.directory.path().join("s");
    let text = format!("{{path: {}, mode: '0620'}}", path.display());
    let (input, problems) = read_with(&text, |section| read(section, &context(&client.sockets)));
    assert_eq!(problems, "");
    let mut bench = Bench::start(input.unwrap(), 100);
    client.connect().await.write_all(b"a\nb").await.unwrap();
    bench.events(2).await;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o620);
    assert_eq!(bench.events[0], serde_json::json!({"message": "a", "input": {"type": "unix"}}));
    bench.stop().await;
    assert_eq!(bench.messages(), ["a", "b"]);
    std::fs::metadata(&path).unwrap_err();
}

#[test]
fn settings_are_those_of_filebeat() {
    let sockets = Sockets::default();
    for (text, expected) in [
        ("path: /run/s", ""),
        ("{path: /run/s, group: root, mode: '0600', socket_type: stream}", ""),
        ("{}", "`path`"),
        ("path: ''", "`path` is "),
        ("{path: /run/s, group: no-such-group}", "there is no such group"),
        ("{path: /run/s, mode: '1777'}", "`mode`"),
        ("{path: /run/s, socket_type: x}", "`socket_type` is `x`"),
    ] {
        let (_, problems) = read_with(text, |section| read(section, &context(&sockets)));
        assert!(problems.contains(expected), "{text}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{text}: {problems}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_are_messages_and_the_socket_goes_to_the_next_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let sockets = Sockets::default();
    let fresh = |more: &str| {
        let text =
            format!("{{path: {}, socket_type: datagram, mode: '0600'{more}}}", path.display());
        let (input, problems) = read_with(&text, |section| read(section, &context(&sockets)));
        assert_eq!(problems, "");
        input.unwrap()
    };
    let mut bench = Bench::start(fresh(""), 1000);
    let client = std::os::unix::net::UnixDatagram::unbound().unwrap();
    bench.until("a socket", |_| client.connect(&path).is_ok()).await;
    // A client may connect between `bind` and `chmod`.
    let mode = || path.metadata().unwrap().permissions().mode() & 0o777;
    bench.until("its mode", |_| mode() == 0o600).await;
    client.send(b"one\ntwo").unwrap();
    client.send(b"three").unwrap();
    bench.until("both", |bench| bench.events.len() == 2).await;
    assert_eq!(
        bench.events[0],
        serde_json::json!({"input": {"type": "unix"}, "message": "one\ntwo"})
    );
    // The client keeps its connection: the name in the file system and the socket stay.
    bench.replace(fresh(", max_message_size: 4")).await;
    client.send(b"four-and-more").unwrap();
    bench.until("the cut one", |bench| bench.events.len() == 3).await;
    assert_eq!(bench.events[2]["message"], "four");
    assert_eq!(bench.events[2]["log"]["flags"][0], "truncated");
    bench.stop().await;
    assert!(path.metadata().is_err(), "its name goes with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_a_socket_ends_the_input_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let (file, folder) = (directory.path().join("file"), directory.path().join("folder"));
    std::fs::write(&file, "precious").unwrap();
    std::fs::create_dir(&folder).unwrap();
    for path in [&file, &folder] {
        for kind in ["stream", "datagram"] {
            let text = format!("{{path: {}, socket_type: {kind}}}", path.display());
            let sockets = Sockets::default();
            let (input, problems) = read_with(&text, |of| read(of, &context(&sockets)));
            assert_eq!(problems, "");
            let mut bench = Bench::start(input.unwrap(), 100);
            let state = |bench: &Bench| format!("{:?}", bench.input.state());
            bench.until("its end", |bench| state(bench).starts_with("Failed")).await;
            let state = state(&bench);
            let expected =
                format!("cannot listen on {}: it exists and is not a socket", path.display());
            assert!(state.contains(&expected), "{state}");
        }
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert!(folder.is_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_of_datagrams_wait_for_a_full_queue() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let sockets = Sockets::default();
    let text = format!("{{path: {}, socket_type: datagram}}", path.display());
    let (input, problems) = read_with(&text, |section| read(section, &context(&sockets)));
    assert_eq!(problems, "");
    let mut bench = Bench::start(input.unwrap(), 100);
    let client = std::os::unix::net::UnixDatagram::unbound().unwrap();
    bench.until("a socket", |_| client.connect(&path).is_ok()).await;
    let sender = std::thread::spawn(move || {
        for number in 0..20_000 {
            client.send(line(number).as_bytes()).unwrap();
        }
    });
    bench.events(20_000).await;
    sender.join().unwrap();
    let ledger = bench.settle.total();
    assert_eq!((ledger.read(), ledger.dropped().total()), (20_000, 0));
    let came: Vec<String> = bench.messages().into_iter().map(str::to_owned).collect();
    assert_eq!(came, (0..20_000).map(line).collect::<Vec<_>>());
    bench.stop().await;
}

#[test]
fn settings_are_those_of_filebeat_and_a_path_fits_into_the_address_of_a_socket() {
    let read = |text: &str| {
        let (input, problems) = read_with(text, |of| read(of, &context(&Sockets::default())));
        assert_eq!(input.is_none(), problems.contains("error"), "{text}: {problems}");
        problems
    };
    let path = |bytes: usize| format!("/{}", "p".repeat(bytes - 1));
    for kind in ["stream", "datagram"] {
        let of = |bytes| format!("{{path: {}, socket_type: {kind}}}", path(bytes));
        assert_eq!(read(&of(107)), "");
        let expected = "`path` has 108 bytes; a socket can have 107";
        assert!(read(&of(108)).contains(expected), "{}", read(&of(108)));
    }
    for (text, expected) in [
        ("{}", "`path` is missing; expected the path of a socket, as in"),
        ("path: ''", "`path` is empty"),
        ("{path: /s, socket_type: packet}", "`socket_type` is `packet`"),
        ("{path: /s, socket_type: datagram, max_message_size: 21MiB}", "`max_message_size`"),
        ("{path: /s, group: no such group}", "there is no such group"),
        (
            "{path: 'unix:///run/s'}",
            "error: x:1:8: `path` is `unix:///run/s`; expected a path, and no URL\n\
             hint: write the path alone: `path: /run/s`",
        ),
        ("{path: 'unix://run/s', socket_type: datagram}", "write the path alone: `path: /run/s`"),
        ("{path: /run/app/}", "name the socket in it, as in `/run/app/log.sock`"),
    ] {
        let (_, problems) = read_with(text, |of| super::read(of, &context(&Sockets::default())));
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}
