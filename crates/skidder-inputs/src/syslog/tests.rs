//! The parser beside Filebeat, and the input with real clients.

use super::*;
use crate::testing::{Bench, context, read_with};
use serde_json::{Value, json};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_event::{Base, Encoder, Precision, Provenance, Row, SourceId, Text};
use skidder_net::Sockets;
use skidder_testkit::SimClock;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

/// What Filebeat made of lines, with `timezone: "+0200"` in the year 2026.
const GOLDEN: &str = include_str!("../../testdata/syslog/filebeat-9.6.jsonl");

/// 2026-11-25T12:00:00Z.
const NOW: i64 = 1_795_608_000_000_000_000;

fn parser(format: Format, zone: &str) -> Parser {
    let clock = SimClock::starting_at(skidder_os::Timestamp(NOW));
    Parser::new(format, timezone(zone).unwrap(), Arc::new(clock))
}

/// A batch of lines, parsed.
fn parsed(parser: &Parser, lines: &[&[u8]]) -> Batch {
    let bytes = lines.concat();
    let utf8 = std::str::from_utf8(&bytes).is_ok();
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let mut batch = Batch::new(bytes, utf8, base, Provenance::new(SourceId(1), 0..1));
    let mut start = 0;
    for (line, number) in lines.iter().zip(0..) {
        let text = Text { start, len: line.len() as u32 };
        batch.push(Row::numbered(number, text.len, text, NOW));
        start += text.len;
    }
    parser.run(&mut batch);
    batch
}

/// The events of lines, with `@timestamp` in milliseconds; `raw` is one that was received now, with its line.
fn events(parser: &Parser, lines: &[&[u8]]) -> Vec<Value> {
    let batch = parsed(parser, lines);
    let mut encoder = Encoder::new(Precision::default());
    let mut found = Vec::new();
    for (row, line) in lines.iter().enumerate() {
        let mut out = Vec::new();
        encoder.write(&mut out, &batch, row);
        let mut event: Value = serde_json::from_slice(&out).unwrap();
        let fields = event.as_object_mut().unwrap();
        fields.remove("@metadata");
        let message = String::from_utf8_lossy(line);
        let is_raw = event == json!({"@timestamp": "2026-11-25T12:00:00.000Z", "message": message});
        found.push(if is_raw { json!("raw") } else { event });
    }
    found
}

fn event(format: Format, line: &str) -> Value {
    events(&parser(format, "+0200"), &[line.as_bytes()]).remove(0)
}

#[test]
fn events_are_those_of_filebeat() {
    let cases: Vec<Value> =
        GOLDEN.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |case: &Value| -> Vec<u8> {
        // Each letter is a byte.
        case["line"].as_str().unwrap().chars().map(|letter| letter as u8).collect()
    };
    let lines: Vec<Vec<u8>> = cases.iter().map(line).collect();
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let ours = |format| events(&parser(format, "+0200"), &lines);
    let (old, new) = (ours(Format::Rfc3164), ours(Format::Rfc5424));
    let auto = ours(Format::Auto);
    assert!(cases.len() > 100);
    for (at, case) in cases.iter().enumerate() {
        let shown = &case["line"];
        for (name, found) in [("rfc3164", &old[at]), ("rfc5424", &new[at])] {
            // Where we differ, the file has both.
            let ours = case.get("ours").and_then(|ours| ours.get(name));
            assert_ne!(ours, Some(&case[name]), "{shown}: they are the same");
            assert_eq!(found, ours.unwrap_or(&case[name]), "{name} {shown}");
        }
        let expected = if case["auto"] == "rfc5424" { &new[at] } else { &old[at] };
        assert_eq!(&auto[at], expected, "auto {shown}");
    }
}

#[test]
fn messages_with_the_header_of_an_earlier_one_have_the_events_that_they_have_alone() {
    let parts = |parts: &[&[u8]]| parts.concat();
    let heads: [&[u8]; 4] = [b"<13>1 ", b"<14>1 ", b"<13>2 ", b"<013>1 "];
    let times: [&[u8]; 3] =
        [b"2026-10-11T22:14:15Z ", b"2026-10-11T22:14:15.5+01:00 ", b"2026-13-11T22:14:15Z "];
    let headers: [&[u8]; 10] = [
        b"h a 1 id - ",
        b"h a 1 id -",
        b"h a 1 id [e a=\"1\"] ",
        b"h a 1 id [e a=\"1\"][f] ",
        b"h a 1 id [e a=\"1\"]",
        b"h a 1 id [e a=\"x\\\"]\\]\"] ",
        b"h a 1 id [e a=\"1\" e.f=\"2\"] ",
        b"h a 12 id - ",
        b"- - - - - ",
        b"h a\"b \\ id [wrong ",
    ];
    let texts: [&[u8]; 7] =
        [b"text", b"", b"\n\n", b"\xef\xbb\xbfmarked", b" [f] x", b"\xff\"", b"-"];
    let mut lines = Vec::new();
    for (round, time) in times.iter().cycle().take(6).enumerate() {
        for (at, text) in texts.iter().enumerate() {
            for header in headers {
                lines.push(parts(&[heads[(round + at) % 4], time, header, text]));
            }
        }
    }
    // More different headers than are remembered.
    for number in 0..100 {
        let header = format!("<13>1 2026-10-11T22:14:15Z h a {} id - text", number % 40);
        lines.push(header.into_bytes());
    }
    let parser = parser(Format::Rfc5424, "UTC");
    let lines: Vec<&[u8]> = lines.iter().map(Vec::as_slice).collect();
    let together = events(&parser, &lines);
    let mut parsed = 0;
    for (line, event) in lines.iter().zip(together) {
        let shown = String::from_utf8_lossy(line);
        assert_eq!(event, events(&parser, &[line])[0], "{shown:?}");
        parsed += usize::from(event != "raw");
    }
    assert!((lines.len() / 3..lines.len() * 2 / 3).contains(&parsed), "{parsed}");
}

#[test]
fn a_field_that_changes_on_one_event_stays_on_others_with_its_header() {
    let line: &[u8] = b"<13>1 2026-10-11T22:14:15Z h a 1 id [e a=\"1\"] text";
    let mut batch = parsed(&parser(Format::Auto, "UTC"), &[line; 3]);
    let base = Arc::clone(batch.base());
    let path = skidder_event::Path::parse("syslog.data.e.a").unwrap();
    let value = skidder_event::Value::Int(2);
    batch.event_mut(1, &base).put(&path, &value).unwrap();
    let mut encoder = Encoder::new(Precision::default());
    let found = [0, 1, 2].map(|row| {
        let mut out = Vec::new();
        encoder.write(&mut out, &batch, row);
        serde_json::from_slice::<Value>(&out).unwrap()["syslog"]["data"]["e"]["a"].take()
    });
    assert_eq!(found, [json!("1"), json!(2), json!("1")]);
}

#[test]
fn the_time_of_a_message_is_in_the_zone_of_the_settings_and_in_the_year_of_the_clock() {
    for (zone, expected) in [
        ("UTC", "2026-07-01T12:00:00.000Z"),
        ("-05:30", "2026-07-01T17:30:00.000Z"),
        ("Europe/Berlin", "2026-07-01T10:00:00.000Z"),
    ] {
        let line = b"<13>Jul  1 12:00:00 h a: text";
        let found = events(&parser(Format::Rfc3164, zone), &[line]);
        assert_eq!(found[0]["@timestamp"], expected, "{zone}");
    }
}

#[test]
fn structured_data_is_kept_up_to_a_bound_and_what_is_beyond_it_stays_text() {
    let header = "<13>1 2026-10-11T22:14:15Z h a 1 id ";
    let data = (0..600).map(|number| format!("[e{number}]")).collect::<Vec<_>>().concat();
    let found = event(Format::Rfc5424, &format!("{header}{data} text"));
    assert_eq!(found["syslog"]["data"].as_object().unwrap().len(), 512);
    assert_eq!(found["message"], format!("{data} text"));
    // Names of 32 bytes are the longest.
    let name = "n".repeat(33);
    assert_eq!(event(Format::Rfc5424, &format!("{header}[{name}] text")), "raw");
    let found = event(Format::Rfc5424, &format!("{header}[e {name}=\"1\"] text"));
    assert_eq!(found["message"], format!("[e {name}=\"1\"] text"));
}

#[test]
fn no_bytes_make_the_parser_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % bound
    };
    let cases: Vec<Value> =
        GOLDEN.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let parsers = [Format::Rfc3164, Format::Rfc5424, Format::Auto].map(|of| parser(of, "+0200"));
    for case in &cases {
        let line = case["line"].as_str().unwrap().chars().map(|letter| letter as u8);
        let line: Vec<u8> = line.collect();
        for _ in 0..100 {
            let mut broken = line.clone();
            for _ in 0..=below(3) {
                let at = below(broken.len().max(1)).min(broken.len().saturating_sub(1));
                match below(3) {
                    0 => broken.truncate(at),
                    1 if !broken.is_empty() => broken[at] = b"<>[]:\"\\=- \n0Z."[below(14)],
                    _ if !broken.is_empty() => drop(broken.remove(at)),
                    _ => {}
                }
            }
            for parser in &parsers {
                events(parser, &[&broken]);
            }
        }
    }
}

fn input(text: &str, sockets: &Sockets) -> (Option<Box<dyn Input>>, String) {
    read_with(text, |section| read(section, &context(sockets)))
}

#[test]
fn settings_are_those_of_filebeat() {
    for (text, expected) in [
        ("protocol.tcp.host: 'localhost:9000'", ""),
        ("protocol.udp.host: ':9000'", ""),
        (
            "{protocol.unix.path: /run/s, format: auto, timezone: Europe/Berlin, keep_null: true}",
            "",
        ),
        ("protocol: {tcp: {host: ':1', framing: rfc6587, timeout: 1s, max_connections: 3}}", ""),
        ("protocol: {unix: {path: /run/s, socket_type: datagram}}", ""),
        ("protocol: {udp: {host: ':1', read_buffer: 1MiB, max_message_size: 64KiB}}", ""),
        ("{}", "`protocol` has to be one of `tcp`, `udp` and `unix`"),
        ("protocol: {tcp: {host: ':1'}, udp: {host: ':1'}}", "`protocol` has several"),
        ("host: ':1'", "hint: it belongs to the protocol: `protocol.tcp.host` or"),
        ("{protocol.udp.host: ':1', host: ':1'}", "hint: it belongs to the protocol"),
        ("protocol.udp.hosts: [':1']", "hint: did you mean `host`?"),
        ("protocol.udp:", "`protocol.udp.host` is missing; expected an address to listen on"),
        ("protocol.tcp:", "`protocol.tcp.host` is missing; expected an address to listen on"),
        ("protocol.unix:", "`protocol.unix.path` is missing; expected the path of a socket"),
        ("protocol.tls.host: ':1'", "`protocol.tls"),
        ("{protocol.udp.host: ':1', format: bsd}", "`format` is `bsd`"),
        (
            "{protocol.udp.host: ':1', timezone: Nowhere}",
            "`timezone` is `Nowhere`; not a time zone",
        ),
        ("{protocol.udp.host: ':1', keep_null: x}", "`keep_null`"),
    ] {
        let (read, problems) = input(text, &Sockets::default());
        assert!(problems.contains(expected), "{text}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{text}: {problems}");
        assert!(read.is_some() || !expected.is_empty(), "{text}");
    }
    // One mistake is one error.
    for text in ["protocol: {tcp: {host: ':1'}, udp: {host: ':1'}}", "host: ':1'"] {
        let (_, problems) = input(text, &Sockets::default());
        assert_eq!(problems.matches("error: ").count(), 1, "{text}: {problems}");
    }
    for protocol in ["tcp: {host: ':1', ", "udp: {host: ':1', ", "unix: {path: /run/s, "] {
        let text = format!("protocol: {{{protocol}number_of_workers: 2}}}}");
        let (read, problems) = input(&text, &Sockets::default());
        assert!(read.is_some() && problems.starts_with("warning: "), "{problems}");
        assert!(problems.contains("each connection runs the processors"), "{problems}");
    }
    for (word, format) in Format::WORDS {
        assert_eq!(format.name(), word);
    }
    let metadata = input("protocol.udp.host: ':1'", &Sockets::default()).0.unwrap().metadata();
    assert_eq!(metadata.get("truncated"), Some(&skidder_event::Value::Bool(false)));
}

type Send = Box<dyn FnMut(&str)>;

/// The input with one protocol, and a client that sends to it.
fn run_with(protocol: &str, framing: &str, directory: &std::path::Path) -> (Bench, Send) {
    let sockets = Sockets::default();
    let path = directory.join("s");
    let (place, mut send): (String, Send) = match protocol {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            sockets.adopt(listener.into(), "").unwrap();
            let mut client = None;
            let send = move |text: &str| {
                let client = client.get_or_insert_with(|| TcpStream::connect(address).unwrap());
                client.write_all(text.as_bytes()).unwrap();
            };
            (format!("host: '{address}'"), Box::new(send))
        }
        "udp" => {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let address = socket.local_addr().unwrap();
            sockets.adopt(socket.into(), "").unwrap();
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.connect(address).unwrap();
            let send =
                move |text: &str| assert_eq!(client.send(text.as_bytes()).unwrap(), text.len());
            (format!("host: '{address}'"), Box::new(send))
        }
        _ => {
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            sockets.adopt(listener.into(), "").unwrap();
            let place = format!("path: {}", path.display());
            let mut client = None;
            let send = move |text: &str| {
                let client = client.get_or_insert_with(|| UnixStream::connect(&path).unwrap());
                client.write_all(text.as_bytes()).unwrap();
            };
            (place, Box::new(send))
        }
    };
    let text = format!("{{format: auto, protocol.{protocol}: {{{place}{framing}}}}}");
    let (read, problems) = input(&text, &sockets);
    assert_eq!(problems, "");
    send("");
    (Bench::start(read.unwrap(), 3200), send)
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_every_protocol_are_parsed() {
    let lines = [
        "<13>Oct 11 22:14:15 host su[12]: hi",
        "<13>1 2026-10-11T22:14:15Z host app 1 id [a b=\"c\"] there",
        "no syslog",
    ];
    for (protocol, framing) in
        [("tcp", ""), ("tcp", ", framing: rfc6587"), ("udp", ""), ("unix", "")]
    {
        let directory = tempfile::tempdir().unwrap();
        let (mut bench, mut send) = run_with(protocol, framing, directory.path());
        for line in lines {
            let framed = match (protocol, framing) {
                ("udp", _) => line.to_owned(),
                (_, "") => format!("{line}\n"),
                _ => format!("{} {line}", line.len()),
            };
            send(&framed);
        }
        bench.events(lines.len()).await;
        let address = bench.events[0]["log"]["source"]["address"].as_str();
        assert_eq!(address.is_some(), protocol != "unix");
        for event in &mut bench.events {
            let event = event.as_object_mut().unwrap();
            event.remove("log");
            event.remove("input");
        }
        let [old, new, raw] = &bench.events[..] else { panic!("{:?}", bench.events) };
        assert_eq!(
            old,
            &json!({
                "message": "hi", "hostname": "host", "process": {"program": "su", "pid": 12},
                "event": {"severity": 5},
                "syslog": {
                    "priority": 13, "facility": 1, "facility_label": "user-level",
                    "severity_label": "Notice"
                },
            })
        );
        assert_eq!(
            (&new["message"], &new["syslog"]["data"]),
            (&json!("there"), &json!({"a": {"b": "c"}}))
        );
        assert_eq!(raw, &json!({"message": "no syslog"}));
        bench.stop().await;
    }
}

/// A client that keeps its connection, and sends each line as the text of a message.
struct Client {
    sockets: Sockets,
    directory: tempfile::TempDir,
    connection: tokio::sync::Mutex<Option<tokio::net::UnixStream>>,
}

impl InputTrial for Client {
    fn input(&self) -> Box<dyn Input> {
        let path = self.directory.path().join("s");
        let text = format!("{{format: rfc5424, protocol.unix.path: {}}}", path.display());
        let (read, problems) = input(&text, &self.sockets);
        assert_eq!(problems, "");
        read.unwrap()
    }

    fn meaning(&self) -> Meaning {
        Meaning::Nothing
    }

    fn send(&self, lines: std::ops::Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let path = self.directory.path().join("s");
            let mut connection = self.connection.lock().await;
            while connection.is_none() {
                // The input is about to listen.
                *connection = tokio::net::UnixStream::connect(&path).await.ok();
                tokio::task::yield_now().await;
            }
            let connection = connection.as_mut().unwrap();
            rustix::net::sockopt::set_socket_send_buffer_size(&*connection, 4096).unwrap();
            let message = |number| {
                format!("<13>1 2026-10-11T22:14:15Z h a 1 id [a b=\"c\"] {}\n", line(number))
            };
            let text = lines.map(message).collect::<Vec<_>>().concat();
            tokio::io::AsyncWriteExt::write_all(connection, text.as_bytes()).await.unwrap();
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract_of_inputs() {
    let fresh = || Client {
        sockets: Sockets::default(),
        directory: tempfile::tempdir().unwrap(),
        connection: tokio::sync::Mutex::default(),
    };
    keep_input(fresh).await;
}
