//! The input over sockets: exporters send, the program starts again, settings change.

use crate::Context;
use crate::datagram::{Left, Settings, serve};
use crate::netflow::event::Internal;
use crate::netflow::{Make, read};
use crate::testing::{Bench, context, read_with};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{DatagramSocket, Datagrams as _, Sockets};
use skidder_netflow::{Fields, Protocol};
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A packet of version 9 of source 7, with these sets.
fn packet(sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = [9_u16.to_be_bytes(), (sets.len() as u16).to_be_bytes()].concat();
    for number in [1000, 1_790_000_000, sequence, 7] {
        bytes.extend(u32::to_be_bytes(number));
    }
    bytes.extend(sets.concat());
    bytes
}

fn set(id: u16, body: &[u8]) -> Vec<u8> {
    [&id.to_be_bytes()[..], &(4 + body.len() as u16).to_be_bytes(), body].concat()
}

/// A template with one field: `wlanSSID`, a text of eight bytes.
fn template() -> Vec<u8> {
    set(0, &[1, 0, 0, 1, 0, 147, 0, 8])
}

fn data(texts: &[&str]) -> Vec<u8> {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:8}")).collect();
    set(256, texts.concat().as_bytes())
}

pub(super) fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// An input at a port, with more settings, that keeps templates in a folder.
pub(super) fn input(
    port: u16,
    more: &str,
    folder: Option<&Path>,
    sockets: &Sockets,
) -> Box<dyn Input> {
    let text = format!("{{host: '127.0.0.1:{port}', {more}}}");
    let data = folder.map(Path::to_path_buf);
    let context = Context { data, ..context(sockets) };
    let (input, problems) = read_with(&text, |section| read(section, &context));
    assert_eq!(problems, "");
    input.unwrap()
}

pub(super) fn exporter(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(SocketAddr::from(([127, 0, 0, 1], port))).unwrap();
    socket
}

/// The names of networks in the events that came.
fn names(bench: &Bench) -> Vec<&str> {
    let names = bench.events.iter().filter_map(|event| event["network"]["name"].as_str());
    names.map(str::trim_end).collect()
}

pub(super) async fn listens(bench: &mut Bench) {
    bench
        .until("it listens", |bench| bench.input.metrics().listening().device.get().is_some())
        .await;
    bench.until("it has a source", |bench| bench.input.metrics().opened.get() > 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flows_come_with_their_exporter_and_damage_is_counted() {
    let port = free_port();
    let mut bench = Bench::start(input(port, "", None, &Sockets::default()), 1000);
    listens(&mut bench).await;
    let (one, two) = (exporter(port), exporter(port));
    one.send(&packet(1, &[template(), data(&["a", "b"])])).unwrap();
    one.send(b"\0\x01 of a version that is not configured").unwrap();
    // The data of the other exporter comes behind these.
    bench.events(2).await;
    two.send(&packet(1, &[data(&["c"])])).unwrap();
    two.send(&packet(2, &[template()])).unwrap();
    bench.events(3).await;
    assert_eq!(names(&bench), ["a", "b", "c"]);
    for (at, exporter) in [&one, &one, &two].iter().enumerate() {
        let address = exporter.local_addr().unwrap().to_string();
        let event = &bench.events[at];
        assert_eq!(event["netflow"]["exporter"]["address"], address.as_str());
        assert_eq!(event["observer"]["ip"], "127.0.0.1");
        assert_eq!(event["input"]["type"], "netflow");
        assert_eq!(event["message"], serde_json::Value::Null);
    }
    let metrics = bench.input.metrics();
    assert_eq!(metrics.errors.get(), 1);
    let flows = metrics.listening().flows.get().unwrap();
    assert_eq!((flows.flows.get(), flows.errors.get(), flows.sources.get()), (3, 1, 2));
    assert_eq!((flows.without_template.get(), flows.decoded_later.get()), (1, 1));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_the_order_in_which_their_exporters_sent() {
    let port = free_port();
    let mut bench = Bench::start(input(port, "", None, &Sockets::default()), 1000);
    listens(&mut bench).await;
    let exporters: Vec<UdpSocket> = (0..100).map(|_| exporter(port)).collect();
    for (number, exporter) in exporters.iter().enumerate() {
        exporter.send(&packet(1, &[template(), data(&[&number.to_string()])])).unwrap();
    }
    bench.events(exporters.len()).await;
    let numbers: Vec<String> = (0..exporters.len()).map(|number| number.to_string()).collect();
    assert_eq!(names(&bench), numbers);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn templates_survive_a_restart_and_a_reload() {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let exporter = exporter(port);
    let sockets = Sockets::default();
    let mut bench = Bench::start(input(port, "", Some(folder.path()), &sockets), 1000);
    listens(&mut bench).await;
    exporter.send(&packet(100_000, &[template(), data(&["a"])])).unwrap();
    bench.events(1).await;
    let other = "internal_networks: []";
    bench.replace(input(port, other, Some(folder.path()), &sockets)).await;
    exporter.send(&packet(100_001, &[data(&["b"])])).unwrap();
    bench.events(2).await;
    bench.stop().await;
    assert_eq!(names(&bench), ["a", "b"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    // Another run. The exporter has gone on, which is no new beginning; and if it had begun anew, it would have sent templates.
    let again = input(port, "", Some(folder.path()), &Sockets::default());
    let mut bench = Bench::start(again, 1000);
    listens(&mut bench).await;
    exporter.send(&packet(5, &[data(&["c"])])).unwrap();
    bench.events(1).await;
    assert_eq!(names(&bench), ["c"]);
    bench.stop().await;
    // The file is damaged: the run goes on without it.
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(entry.unwrap().path(), "skidder-netflow 1\n").unwrap();
    }
    let again = input(port, "", Some(folder.path()), &Sockets::default());
    let mut bench = Bench::start(again, 1000);
    listens(&mut bench).await;
    exporter.send(&packet(6, &[data(&["d"])])).unwrap();
    exporter.send(&packet(7, &[template(), data(&["e"])])).unwrap();
    bench.events(2).await;
    assert_eq!(names(&bench), ["d", "e"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_exporters_than_sources_share_one_and_each_event_has_its_own() {
    let port = free_port();
    let mut bench = Bench::start(input(port, "", None, &Sockets::default()), 100_000);
    listens(&mut bench).await;
    let exporters: Vec<UdpSocket> = (0..1100).map(|_| exporter(port)).collect();
    for (number, exporter) in exporters.iter().enumerate() {
        let text = number.to_string();
        exporter.send(&packet(1, &[template(), data(&[&text])])).unwrap();
        if number % 64 == 0 {
            bench.events(number / 2).await;
        }
    }
    bench.events(exporters.len()).await;
    let address =
        |of: &serde_json::Value| of["netflow"]["exporter"]["address"].as_str().unwrap().to_owned();
    for event in &bench.events {
        let number: usize = event["network"]["name"].as_str().unwrap().trim_end().parse().unwrap();
        assert_eq!(address(event), exporters[number].local_addr().unwrap().to_string());
    }
    assert!(bench.input.metrics().open.get() <= 1025);
    bench.stop().await;
}

/// An input over a socket that outlives it, as in a reload.
struct Receives(DatagramSocket);

impl Input for Receives {
    fn kind(&self) -> &'static str {
        "netflow"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        let decoder = skidder_netflow::Settings {
            protocols: vec![Protocol::V9],
            fields: Fields::known(),
            expiration: Duration::ZERO,
            detect_reset: true,
            share_templates: false,
        };
        let make = Make { decoder, internal: Internal(Vec::new()), place: None };
        let settings = Settings {
            message_bytes_max: 1024,
            read_buffer: 8 << 20,
            // More than the 5000 lines of one case need, less than the 20,000 of another.
            backlog_bytes_max: 8 << 20,
            device: "localhost:0".to_owned(),
            on_batch: None,
            sink: Some(Arc::new(make)),
        };
        let socket = Box::new(self.0);
        let left = Left { socket, drops: 0, name: None, waiting: Vec::new(), kept: None };
        Box::pin(serve(left, None, settings, intake))
    }
}

/// Exporters whose flows have the lines of the contract as names of networks.
struct Exporters {
    socket: UdpSocket,
    senders: Vec<UdpSocket>,
}

impl InputTrial for Exporters {
    fn input(&self) -> Box<dyn Input> {
        Box::new(Receives(self.socket.try_clone().unwrap().into()))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Nothing
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for number in lines {
                let sender = &self.senders[number % self.senders.len()];
                let text = line(number);
                let mut fields = vec![1, 0, 0, 1, 0, 147];
                fields.extend((text.len() as u16).to_be_bytes());
                let sets = [set(0, &fields), set(256, text.as_bytes())];
                sender.send(&packet(number as u32, &sets)).unwrap();
                if number % 64 == 0 {
                    // As fast as a network.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async move {
            for garbage in [&b"\0\x09"[..], b"\0\x05 neither one nor the other", b"", &[0; 3000]] {
                self.senders[0].send(garbage).unwrap();
            }
        }))
    }

    fn waits(&self) -> bool {
        false
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_contract() {
    let fresh = || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let port = socket.local_addr().unwrap().port();
        let socket = DatagramSocket::from(socket);
        socket.set_read_buffer(32 << 20).unwrap();
        let socket = socket.as_fd().try_clone_to_owned().unwrap().into();
        Exporters { socket, senders: (0..3).map(|_| exporter(port)).collect() }
    };
    keep_input(fresh).await;
}
