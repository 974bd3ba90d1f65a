//! Packets of a real exporter: softflowd reads a capture that is made here.

use super::run::{free_port, input, listens};
use crate::testing::Bench;
use skidder_net::Sockets;
use std::path::Path;

/// Conversations of the capture; each has two directions.
const CONVERSATIONS: u8 = 20;

/// A packet of UDP over Ethernet.
fn frame(source: [u8; 4], destination: [u8; 4], ports: [u16; 2], len: u16) -> Vec<u8> {
    let mut bytes = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0][..]].concat();
    bytes.extend((28 + len).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    bytes.extend([source, destination].concat());
    for number in [ports[0], ports[1], 8 + len, 0] {
        bytes.extend(number.to_be_bytes());
    }
    bytes.resize(bytes.len() + usize::from(len), 0);
    bytes
}

/// A capture as tcpdump writes it.
fn write_capture(path: &Path) {
    let mut bytes = Vec::new();
    for number in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(u32::to_le_bytes(number));
    }
    for at in 0..CONVERSATIONS {
        let (client, server) = ([10, 0, 0, at], [192, 0, 2, 1]);
        let port = 40_000 + u16::from(at);
        for frame in [frame(client, server, [port, 53], 60), frame(server, client, [53, port], 900)]
        {
            let len = frame.len() as u32;
            for number in [1_790_000_000 + u32::from(at), 0, len, len] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(frame);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs softflowd"]
async fn softflowd_exports_each_flow_in_every_version() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("flows.pcap");
    write_capture(&capture);
    for version in ["1", "5", "9", "10"] {
        let port = free_port();
        let protocols = "protocols: [v1, v5, v9, ipfix]";
        let mut bench = Bench::start(input(port, protocols, None, &Sockets::default()), 1000);
        listens(&mut bench).await;
        let mut softflowd = std::process::Command::new("softflowd");
        softflowd.args(["-d", "-v", version, "-n", &format!("127.0.0.1:{port}"), "-r"]);
        softflowd.arg(&capture);
        let exported = tokio::task::spawn_blocking(move || softflowd.output());
        let exported = exported.await.unwrap().unwrap();
        assert!(exported.status.success(), "{exported:?}");
        let flows = |bench: &Bench| {
            let is_flow = |event: &&serde_json::Value| event["netflow"]["type"] == "netflow_flow";
            bench.events.iter().filter(is_flow).count()
        };
        let all = 2 * usize::from(CONVERSATIONS);
        bench.until("all flows", |bench| flows(bench) >= all).await;
        bench.stop().await;
        assert_eq!(flows(&bench), all, "version {version}");
        let bytes: u64 =
            bench.events.iter().filter_map(|event| event["network"]["bytes"].as_u64()).sum();
        assert_eq!(bytes, u64::from(CONVERSATIONS) * (60 + 900 + 2 * 28), "version {version}");
        assert_eq!(bench.input.metrics().errors.get(), 0);
    }
}
