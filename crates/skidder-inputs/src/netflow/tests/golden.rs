//! Events of packets that we made (`skidder-netflow` `src/tests/packets.rs`), compared with those that Filebeat 9.6 makes of
//! them.

use crate::netflow::event::{Internal, Writer};
use crate::netflow::keys::Keys;
use serde_json::Value;
use skidder_event::{Base, Batch, Encoder, Map, Precision, Provenance, Row, SourceId, Text};
use skidder_netflow::{CustomField, Decoder, Fields, Protocol, Settings};
use skidder_processors::Network;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How the packets of a case are decoded.
struct Case {
    name: &'static str,
    custom: Vec<CustomField>,
    internal: &'static [&'static str],
    share_templates: bool,
}

fn case(name: &'static str) -> Case {
    Case { name, custom: Vec::new(), internal: &["private"], share_templates: false }
}

/// The events of one packet, in the order of its flows; `None` if it is damaged.
pub(super) fn events(
    decoder: &mut Decoder,
    internal: &Internal,
    from: SocketAddr,
    packet: &[u8],
) -> Option<Vec<Value>> {
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    let provenance = Provenance::new(SourceId(1), 0..1);
    let mut batch = Batch::new(Vec::new(), true, Arc::clone(&base), provenance);
    let mut keys = Keys::append(&mut batch);
    let address = batch.append(from.to_string().as_bytes());
    let ip = batch.append(from.ip().to_string().as_bytes());
    let mut scratch = String::new();
    let decoded = decoder.packet(packet, from, Duration::ZERO, &mut |flow| {
        batch.push(Row::numbered(0, 1, Text::default(), flow.header.time.unwrap_or(0)));
        let row = batch.len() - 1;
        let mut event = batch.event_mut(row, &base);
        Writer::new(&mut event, &mut keys, internal, &mut scratch).write(flow, 0, address, ip);
    });
    let event = |row| {
        let mut out = Vec::new();
        Encoder::new(Precision::default()).write(&mut out, &batch, row);
        let mut event: Value = serde_json::from_slice(&out).unwrap();
        event.as_object_mut().unwrap().remove("@metadata");
        let created = event["event"].as_object_mut().unwrap().remove("created");
        assert_eq!(created.unwrap(), "1970-01-01T00:00:00.000Z");
        event
    };
    let events = (0..batch.len()).map(event).collect();
    decoded.ok().map(|()| events)
}

pub(super) fn hex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn compare(directory: &Path, case: Case) {
    let protocols = Protocol::WORDS.iter().map(|(_, protocol)| *protocol).collect();
    let mut decoder = Decoder::new(Settings {
        protocols,
        fields: Fields::known().with(case.custom),
        expiration: Duration::ZERO,
        detect_reset: true,
        share_templates: case.share_templates,
    });
    let network = |name: &&str| Network::parse(name).unwrap();
    let internal = Internal(case.internal.iter().map(network).collect());
    let read = |end: &str| {
        let path = directory.join(format!("{}.{end}", case.name));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let (packets, judged) = (read("packets.jsonl"), read("filebeat.jsonl"));
    assert_eq!(packets.lines().count(), judged.lines().count());
    for (number, (packet, judged)) in packets.lines().zip(judged.lines()).enumerate() {
        let packet: Value = serde_json::from_str(packet).unwrap();
        let expected: Value = serde_json::from_str(judged).unwrap();
        let from = packet["source"].as_str().unwrap().parse().unwrap();
        let bytes = hex(packet["hex"].as_str().unwrap());
        let events = events(&mut decoder, &internal, from, &bytes);
        let place = format!("{} packet {number}", case.name);
        let Some(expected) = expected["events"].as_array() else {
            assert_eq!(events, None, "{place}");
            continue;
        };
        let events = events.unwrap_or_else(|| panic!("{place} is damaged"));
        assert_eq!(events.len(), expected.len(), "{place}");
        for (at, (event, expected)) in events.iter().zip(expected).enumerate() {
            assert_eq!(event, expected, "{place} flow {at}");
        }
    }
}

pub(super) fn directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../skidder-netflow/testdata")
}

#[test]
fn events_are_those_of_filebeat() {
    let directory = directory();
    for name in ["fixed", "flows", "values", "ipfix", "damaged"] {
        compare(&directory, case(name));
    }
}

#[test]
fn fields_and_networks_of_the_user_and_shared_templates_are_as_in_filebeat() {
    let directory = directory();
    let text = std::fs::read_to_string(directory.join("custom.yml")).unwrap();
    let custom = crate::netflow::definitions::read("custom.yml", &text).unwrap();
    compare(&directory, Case { custom, internal: &["100.64.0.0/10"], ..case("custom") });
    compare(&directory, Case { share_templates: true, ..case("shared") });
}
