//! Events of sFlow: datagrams that are made by the specification (`skidder-netflow` `src/tests/agents.rs`), compared with
//! what goflow2 2.2 reads in them.

use super::run::{exporter, free_port, input, listens};
use crate::testing::Bench;
use serde_json::Value;
use skidder_net::Sockets;
use std::path::Path;

fn lines(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skidder-netflow/testdata").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events of all datagrams.
async fn events() -> Vec<Value> {
    let port = free_port();
    let more = "protocols: [v9, sflow]";
    let mut bench = Bench::start(input(port, more, None, &Sockets::default()), 1000);
    listens(&mut bench).await;
    let agent = exporter(port);
    let mut wanted = 0;
    for (packet, events) in lines("sflow.packets.jsonl").iter().zip([11, 1, 4, 2]) {
        let hex = packet["hex"].as_str().unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        agent.send(&bytes).unwrap();
        wanted += events;
        bench.events(wanted).await;
    }
    let shown = |bench: &Bench| {
        let flows = bench.input.metrics().listening().flows.get();
        flows.is_some_and(|flows| flows.flows.get() == 18)
    };
    bench.until("counts are shown", shown).await;
    let flows = bench.input.metrics().listening().flows.get().unwrap();
    assert_eq!((flows.packets.get(), flows.errors.get(), flows.sources.get()), (4, 0, 2));
    assert_eq!((flows.skipped.get(), flows.lost.get()), (1, 2));
    let address = agent.local_addr().unwrap().to_string();
    for event in &bench.events {
        assert_eq!(event["netflow"]["exporter"]["address"], address.as_str());
        assert_eq!(event["netflow"]["exporter"]["version"], 5);
        assert_eq!(event["netflow"]["exporter"]["uptime_millis"], 600_000);
    }
    bench.stop().await;
    std::mem::take(&mut bench.events)
}

/// The value behind this path; `Null` without it.
fn at<'a>(event: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(event, |value, name| &value[name])
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_flows_with_the_fields_of_netflow() {
    let events = events().await;
    let expect = |number: usize, path: &str, expected: Value| {
        let found = at(&events[number], path);
        assert_eq!(*found, expected, "{path} of event {number}: {}", events[number]);
    };
    for (path, expected) in [
        ("netflow.type", Value::from("sflow_flow")),
        ("event.action", "sflow_flow".into()),
        ("event.kind", "event".into()),
        ("event.type", vec!["connection"].into()),
        ("event.category", vec!["network"].into()),
        ("observer.ip", "10.9.9.9".into()),
        ("source.ip", "10.1.0.1".into()),
        ("source.port", 443.into()),
        ("source.mac", "02-00-00-00-00-01".into()),
        ("source.bytes", 1482.into()),
        ("source.packets", 1.into()),
        ("source.locality", "internal".into()),
        ("destination.ip", "198.51.100.7".into()),
        ("destination.port", 51_000.into()),
        ("network.bytes", 1482.into()),
        ("network.packets", 1.into()),
        ("network.transport", "tcp".into()),
        ("network.iana_number", 6.into()),
        ("network.direction", "inbound".into()),
        ("network.community_id", "1:8/QfjzYgrGt37uTm7mnBaNjzLTo=".into()),
        ("netflow.sampling_interval", 400.into()),
        ("netflow.tcp_control_bits", 24.into()),
        ("netflow.exporter.source_id", 0.into()),
        ("netflow.exporter.timestamp", Value::Null),
        ("related.ip", vec!["10.1.0.1", "198.51.100.7"].into()),
    ] {
        expect(0, path, expected);
    }
    // A packet without its own length: the frame without 22 bytes of headers and 4 that were stripped.
    expect(8, "network.bytes", 1474.into());
    expect(8, "netflow.stripped_octets", 4.into());
    // Type and code are in the ID.
    expect(2, "network.community_id", "1:7bvG0UQbqZD+NcySqRNYxYsqvPE=".into());
    expect(6, "network.community_id", "1:u2vMS3HiWth2lIMKHB1fjELshpQ=".into());
    expect(11, "netflow.as_path", vec![64_500_u32, 4_200_000_001, 64_502].into());
    expect(11, "netflow.bgp_community", vec![0xfbf0_0064_u32, 0xffff_ff01].into());
    expect(12, "observer.ip", "2001:db8::99".into());
    expect(12, "netflow.exporter.source_id", 1.into());
    expect(14, "network.direction", "outbound".into());
    // ARP, and a frame of LLDP: no ends that could be the same as those of others.
    for number in [9, 15] {
        for path in ["flow", "network.community_id"] {
            expect(number, path, Value::Null);
        }
    }
    expect(16, "netflow.type", "sflow_counters".into());
    expect(16, "netflow.scope.if_index", 3.into());
    expect(16, "netflow.options.if_in_octets", (1_u64 << 40).into());
    expect(16, "source", Value::Null);
    expect(17, "observer.ip", "10.9.9.9".into());
    let id = |number: usize| at(&events[number], "flow.id").as_str().unwrap();
    assert_eq!(id(0), id(11));
    assert!(at(&events[0], "event.created").is_string());
}

/// Flows in which goflow2 reads options of IPv4, or data of a later fragment, as ports.
const WITHOUT_PORTS: [usize; 3] = [1, 3, 7];

#[tokio::test(flavor = "multi_thread")]
async fn samples_are_those_that_goflow2_reads() {
    let mut events = events().await;
    events.retain(|event| event["netflow"]["type"] == "sflow_flow");
    let judged = lines("sflow.goflow2.jsonl");
    assert_eq!(events.len(), judged.len());
    let mut compared = 0;
    for (number, (event, judge)) in events.iter().zip(&judged).enumerate() {
        for (name, path) in [
            ("sampling_rate", "netflow.sampling_interval"),
            ("sampler_address", "observer.ip"),
            ("src_addr", "source.ip"),
            ("dst_addr", "destination.ip"),
            ("src_port", "source.port"),
            ("dst_port", "destination.port"),
            ("in_if", "netflow.ingress_interface"),
            ("src_vlan", "netflow.vlan_id"),
            ("dst_vlan", "netflow.post_vlan_id"),
            ("ip_tos", "netflow.ip_class_of_service"),
            ("ip_ttl", "netflow.ip_ttl"),
            ("tcp_flags", "netflow.tcp_control_bits"),
            ("ipv6_flow_label", "netflow.flow_label_ipv6"),
            ("src_as", "netflow.bgp_source_as_number"),
            ("next_hop", "netflow.ip_next_hop_ipv4_address"),
            ("next_hop_as", "netflow.bgp_next_adjacent_as_number"),
            ("bgp_next_hop", "netflow.bgp_next_hop_ipv4_address"),
        ] {
            let expected = &judge[name];
            let is_port = name.ends_with("_port");
            if *expected == 0 || *expected == "" || is_port && WITHOUT_PORTS.contains(&number) {
                continue;
            }
            assert_eq!(at(event, path), expected, "{name} of flow {number}");
            compared += 1;
        }
        for (name, path) in [("src_mac", "source.mac"), ("dst_mac", "destination.mac")] {
            let expected = judge[name].as_str().unwrap().replace(':', "-").to_uppercase();
            if number < 12 {
                assert_eq!(*at(event, path), expected, "{name} of flow {number}");
            }
        }
    }
    assert!(compared > 90, "{compared}");
    // It reads only the first segment of the path.
    let path = at(&events[11], "netflow.as_path").as_array().unwrap();
    assert_eq!(path[..2], judged[11]["as_path"].as_array().unwrap()[..]);
}
