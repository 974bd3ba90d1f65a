//! Packets of real exporters, captured from traffic that was made for it between two network namespaces: pmacct 1.7.7
//! (`sfprobe`, `nfprobe`) and Open vSwitch 3.1 (a userspace bridge). What is expected was compared with that traffic, and
//! with what `sfacctd` and `nfacctd` made of the same packets.

use super::golden::{directory, events, hex};
use crate::netflow::event::Internal;
use serde_json::Value;
use skidder_netflow::{Decoder, Fields, Protocol, Settings};
use skidder_processors::Network;
use std::time::Duration;

/// What an event says, in one line.
fn summary(event: &Value) -> String {
    let at = |path: &str| {
        let found = path.split('.').fold(event, |value, name| &value[name]);
        if let Value::String(text) = found { text.clone() } else { found.to_string() }
    };
    let end = |end: &str| format!("{}:{}", at(&format!("{end}.ip")), at(&format!("{end}.port")));
    format!(
        "{} {} {} > {} {}/{}",
        at("netflow.type"),
        at("network.transport"),
        end("source"),
        end("destination"),
        at("network.packets"),
        at("network.bytes")
    )
}

/// The packets with their names.
fn packets() -> Vec<(String, Vec<u8>)> {
    let text = std::fs::read_to_string(directory().join("exporters.packets.jsonl")).unwrap();
    let packet = |line: &str| {
        let packet: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| packet[key].as_str().unwrap().to_owned();
        (text("exporter"), hex(&text("hex")))
    };
    text.lines().map(packet).collect()
}

fn decoder() -> Decoder {
    Decoder::new(Settings {
        protocols: Protocol::WORDS.iter().map(|(_, protocol)| *protocol).collect(),
        fields: Fields::known(),
        expiration: Duration::ZERO,
        detect_reset: true,
        share_templates: true,
    })
}

#[test]
fn flows_of_real_exporters_are_those_of_their_traffic() {
    let mut decoder = decoder();
    let internal = Internal(vec![Network::parse("private").unwrap()]);
    let from = "192.0.2.1:2055".parse().unwrap();
    let mut said = String::new();
    for (name, bytes) in packets() {
        said.push_str(&name);
        match events(&mut decoder, &internal, from, &bytes) {
            None => said.push_str(" damaged"),
            Some(events) => {
                for event in events {
                    said.push_str("\n  ");
                    said.push_str(&summary(&event));
                }
            }
        }
        said.push('\n');
    }
    let path = directory().join("exporters.flows.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &said).unwrap();
    }
    assert_eq!(said, std::fs::read_to_string(&path).unwrap(), "UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn bytes_that_are_no_record_and_no_padding_are_an_error() {
    let packets = packets();
    let packet = |name: &str| {
        let found = packets.iter().find(|(of, _)| of == name);
        found.unwrap().1.clone()
    };
    let read = |all: &[&[u8]]| {
        let (mut decoder, mut flows, mut last) = (decoder(), 0, Ok(()));
        for bytes in all {
            let from = "192.0.2.1:2055".parse().unwrap();
            last = decoder.packet(bytes, from, Duration::ZERO, &mut |_| flows += 1);
        }
        (flows, last.map_err(|error| error.to_string()))
    };
    let damaged = |version: u16, what: &str| {
        Err(format!("a packet of NetFlow version {version} is damaged: {what}"))
    };
    // The name of an interface that is longer than its set.
    let (template, mut data) = (packet("ovs-ipfix-template-292"), packet("ovs-ipfix-292"));
    assert_eq!(read(&[&template, &data]), (1, Ok(())));
    let name = data.windows(3).position(|bytes| bytes == [2, b'p', b'a']).unwrap();
    data[name] = 0xf0;
    assert_eq!(read(&[&template, &data]), (0, damaged(10, "a record is longer than its set")));
    // The exporter has one more field and has not said so yet.
    let (flows, read_so_far) = read(&[&template, &packet("ovs-ipfix-292-before-new-template")]);
    let read_so_far = read_so_far.unwrap_err();
    assert!(flows == 1 && read_so_far.contains("use another template"), "{flows} {read_so_far}");
    // A packet of version 9 does not have its length.
    let templates = packet("nfprobe-v9-templates");
    let with = |rest: &[u8]| read(&[&[&templates, rest].concat()]);
    assert_eq!(with(&[0; 3]), (0, Ok(())));
    assert_eq!(with(&[1, 0]), (0, damaged(9, "it ends within the header of a set")));
}
